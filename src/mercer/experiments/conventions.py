"""What the papers on the SDP embedding share: how they stop, what they draw and classify, which ranks they print."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, final

import numpy as np

from mercer.backends.arrays import Array
from mercer.certificates import EmbeddingCertificate, certify_elliptope
from mercer.embedding import DiffusionMaps, SDPEmbedding
from mercer.embedding.diffusion_problem import DiffusionProblem
from mercer.experiments.report import Comparison, Experiment, claim, compare
from mercer.kernels import Gaussian
from mercer.linalg.tall import row_lengths
from mercer.plots import plot_spectra
from mercer.problems import Elliptope
from mercer.solvers import Goal, Status, solve
from mercer.solvers.elliptope.method import ElliptopeMethod, Iterate, evaluated

# What appendix C of PSD22 calls convergence, and what the authors' programme does: 5000 power steps at most.
PAPER_STEPS = 5000
_RANK_TOL = 1e-5  # of the trace: the default of the library


# --- models -------------------------------------------------------------------------------------------------


def both_embeddings(
    X: Array,
    sigma: float,
    *,
    n_components: int = 2,
    time: float = 1,
    normalization: str = "symmetric",
    random_state: Any = 0,
    **options: Any,
) -> tuple[SDPEmbedding, DiffusionMaps]:
    """The SDP embedding, which takes the ``options``, and diffusion maps, both by one Gaussian kernel.

    PSD22 draws and classifies the eigenvectors u of the symmetric matrix Ā (section 1.2), PSD17 the eigenvectors ψ of
    the Markov matrix, ``normalization="markov"``.
    """
    kernel = Gaussian(sigma=sigma)
    sdp = SDPEmbedding(kernel, random_state=random_state, **options).fit(X)
    maps = DiffusionMaps(
        kernel, n_components=n_components, time=time, normalization=normalization, random_state=random_state
    )
    return sdp, maps.fit(X)


@dataclass(frozen=True, eq=False)
class StoppedRun:
    """The papers' power method where it ended, by the names of :class:`~mercer.SDPEmbedding`."""

    embedding_: Array
    eigenvalues_: Array  #: of B / Tr B
    certificate_: EmbeddingCertificate
    status_: Status
    n_iter_: int

    @property
    def rank_(self) -> int:
        """Dimensions above the tolerance with which the library counts them."""
        return int(self.eigenvalues_.size)


@final
class PapersPower(ElliptopeMethod):
    """The projected power method of PSD22 Algorithm 1: rows of J H of unit length, random ones for zero rows."""

    name = "the papers' power method"

    def __init__(self, rng: np.random.Generator) -> None:
        self._rng = rng

    def moved(self, problem: Elliptope, at: Iterate) -> Iterate:
        lost = np.any(row_lengths(at.G) == 0)
        return evaluated(problem, problem.project(at.G, uniform_rows(at.H.shape, self._rng) if lost else at.H))


def uniform_rows(shape: tuple[int, ...], rng: np.random.Generator) -> Array:
    """Rows of entries drawn uniformly from [-1, 1], then of unit length, where the papers start."""
    return directions(rng.uniform(-1, 1, shape))


def stopped_power_method(
    X: Array,
    sigma: float,
    *,
    initial_rank: int = 30,
    tol: float = 1e-9,
    max_iter: int = PAPER_STEPS,
    random_state: Any = 0,
) -> StoppedRun:
    """The plain projected power method (PSD22 Algorithm 1), stopped as the authors stop it, converged or not.

    It starts where the papers do (:func:`uniform_rows`). The authors stop when a step moves the factor by less than a
    tolerance, here the row residual must fall below it and the gap with it. The certificate says how far from the
    optimum the run stopped. Cost: ``max_iter`` products with ``initial_rank`` columns.
    """
    rng = np.random.default_rng(random_state)
    problem = DiffusionProblem.of(Gaussian(sigma=sigma), X, None, rng).working

    def proof(H: Array) -> EmbeddingCertificate:
        return certify_elliptope(problem, H, rng=rng, tol=tol)

    goal = Goal(tol, residual_tol=tol, max_iter=max_iter)
    start = uniform_rows((problem.size, min(initial_rank, problem.size)), rng)
    found = solve(problem, PapersPower(rng), start, goal=goal, certify=lambda iterate: proof(iterate.H))
    H = problem.reduced(found.point.H, _RANK_TOL)
    return StoppedRun(*problem.principal(H), proof(H), found.status, found.history[-1].number)


def embedded_cases(
    cases: Mapping[Any, tuple[float, Array]], *, paper_steps: int, random_state: Any
) -> tuple[dict[Any, SDPEmbedding], dict[Any, DiffusionMaps], dict[Any, StoppedRun]]:
    """Both embeddings of every case, a bandwidth and its points, and the papers' method unless it has no steps."""
    options = {"max_iter": 50_000, "normalization": "markov", "random_state": random_state}
    models = {case: both_embeddings(X, sigma, **options) for case, (sigma, X) in cases.items()}
    stopped = {
        case: stopped_power_method(X, sigma, max_iter=paper_steps, random_state=random_state)
        for case, (sigma, X) in cases.items()
        if paper_steps
    }
    return {case: sdp for case, (sdp, _) in models.items()}, {case: maps for case, (_, maps) in models.items()}, stopped


def random_split(size: int, train_fraction: float, seed: Any) -> tuple[Array, Array]:
    """The rows of a training set and of the rest, in random order."""
    train, test = np.split(np.random.default_rng(seed).permutation(size), [int(train_fraction * size)])
    return train, test


# --- coordinates --------------------------------------------------------------------------------------------


def in_the_plane(coordinates: Array) -> Array:
    """The first two coordinates; the second is zero where there is only one."""
    return np.pad(coordinates, ((0, 0), (0, 1)))[:, :2]


def directions(points: Array) -> Array:
    """The points at unit length; zero where a point is zero."""
    lengths = np.linalg.norm(points, axis=1, keepdims=True)
    return np.divide(points, lengths, out=np.zeros_like(points), where=lengths > 0)


# --- ranks and spectra --------------------------------------------------------------------------------------


def proved_gap(model: SDPEmbedding | StoppedRun) -> float:
    """The certified relative gap of a model, NaN where none was asked for."""
    return float("nan") if model.certificate_ is None else model.certificate_.relative_gap


def spectrum_text(eigenvalues: Array, count: int = 4) -> str:
    """Eigenvalues in one line, such as ``.963, .017, .007``."""
    return ", ".join(f"{value:.4f}".lstrip("0") for value in eigenvalues[:count])


def compare_rank(
    quantity: str, paper: int, model: SDPEmbedding, *, stopped: StoppedRun | None = None, reason: str = ""
) -> Comparison:
    """Compare the rank of a converged model with the printed one.

    The reason tells the spectrum and the certified gap, and, where it has another rank, that of ``stopped``: the
    papers' power method on the same data.
    """
    parts = [reason] if reason else []
    proof = "" if model.certificate_ is None else f", certified to {model.certificate_.relative_gap:.0e}"
    parts.append(f"spectrum {spectrum_text(model.eigenvalues_)}{proof}")
    if stopped is not None and stopped.rank_ != model.rank_:
        left = spectrum_text(stopped.eigenvalues_, 6)
        gap = f" and a gap of {stopped.certificate_.relative_gap:.0e}"
        parts.append(f"the power method stopped after {stopped.n_iter_} steps has rank {stopped.rank_}{gap}: {left}")
    return compare(quantity, paper, model.rank_, within=0, reason="; ".join(parts))


def claim_convergence(where: str, stopped: StoppedRun, measured: str, reason: str) -> Comparison:
    """The papers take their power method for converged; its status, and the reason given, know better."""
    done = stopped.status_ is Status.CONVERGED
    name = f"power method as the authors stop it, {where}"
    return claim(name, "converged", f"{stopped.n_iter_} steps{measured}", done, "" if done else reason)


def draw_learned_spectra(
    ax: Any, certified: Mapping[float, Array], stopped: Mapping[float, StoppedRun], *, early: str, **look: Any
) -> None:
    """Draw the certified spectra over the bandwidth as curves, and as crosses, named ``early``, the stopped ones."""
    sigmas, at = sorted(certified), sorted(stopped)
    plot_spectra(ax, sigmas, [certified[sigma] for sigma in sigmas], **look)
    plot_spectra(ax, at, [stopped[sigma].eigenvalues_ for sigma in at], **look, crosses=True)
    ax.plot([], [], "k.-", markersize=5, label="certified")
    ax.plot([], [], "kx", markersize=5, label=early)
    ax.legend(fontsize=8)


@dataclass(frozen=True)
class EmbeddedCases(Experiment):
    """The same points, or the same classes, embedded at several bandwidths."""

    labels: Array  #: classes; -1 for outliers
    sdp: dict[Any, SDPEmbedding]  #: by case: a bandwidth, or the name of a bandwidth and a scale
    diffusion_maps: dict[Any, DiffusionMaps]  #: likewise
    #: the papers' power method, stopped as theirs, at the cases at which it was asked for
    stopped: dict[Any, StoppedRun]

    def _compare_ranks(self, reading: str) -> tuple[Comparison, ...]:
        """The rank of ρ in every case, two in the paper, under a reading of what it does not print."""
        names = {case: case if isinstance(case, str) else f"σ = {case:g}" for case in self.sdp}
        return tuple(
            compare_rank(f"rank of ρ, {names[case]}", 2, model, stopped=self.stopped.get(case), reason=reading)
            for case, model in self.sdp.items()
        )

    def _draw_learned_spectra(self, ax: Any, title: str, early: str) -> None:
        certified = {sigma: model.eigenvalues_ for sigma, model in self.sdp.items()}
        draw_learned_spectra(ax, certified, self.stopped, early=early, title=title, count=3)
