"""What the embedding looks like at every bandwidth, so that a person can choose one."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

import numpy as np
from scipy.sparse.linalg import ArpackError
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from mercer.embedding.sdp import SDPEmbedding
from mercer.embedding.validation import checked_kernel, checked_points, whole_number
from mercer.kernels import Kernel
from mercer.linalg import leading_eigenpairs
from mercer.linalg.random import as_generator
from mercer.operators import DiffusionOperator, GramOperator
from mercer.operators.diffusion import DegenerateKernelError
from mercer.solvers import Status

Array = np.ndarray[Any, np.dtype[Any]]

_BANDWIDTHS = ("sigma", "length_scale")
_STAYS = 0.5
_NEARLY_CONSTANT = 1e-2
_GRID = 2.0 ** np.arange(-4, 2.25, 0.5)
_SHOWN = 4
_EIGENVALUE_TOLERANCE = 1e-8  # of Lanczos, for large samples: the table shows four digits


class Diagnosis(Enum):
    """What a bandwidth does to the data; the value is the word for it."""

    INFORMATIVE = "informative"
    NEARLY_ISOLATED = "nearly isolated"
    ISOLATED = "isolated"
    NEARLY_CONSTANT = "nearly constant"
    CONSTANT = "constant"
    DEGENERATE = "degenerate"
    NOT_CONVERGED = "not converged"

    @property
    def message(self) -> str:
        """One or two sentences for a person."""
        return _MESSAGES[self]

    @property
    def degenerate(self) -> bool:
        """Whether there is no embedding at this bandwidth."""
        return self in (Diagnosis.ISOLATED, Diagnosis.CONSTANT, Diagnosis.DEGENERATE)


_MESSAGES = {
    Diagnosis.INFORMATIVE: "The affinities tell points apart and connect them.",
    Diagnosis.NEARLY_ISOLATED: (
        "At least half of the points have more affinity to themselves than to all the others together: the optimum "
        "is nearly flat, and its rank follows chance neighbours. Choose a larger bandwidth."
    ),
    Diagnosis.ISOLATED: "Every point is isolated, so every embedding is optimal. Choose a larger bandwidth.",
    Diagnosis.NEARLY_CONSTANT: (
        "The affinities are constant to within one part in a hundred: only their first-order expansion is seen, and "
        "the embedding hardly depends on the bandwidth any more. Choose a smaller one, or a linear method."
    ),
    Diagnosis.CONSTANT: "All points look alike: what tells them apart is rounding noise. Choose a smaller bandwidth.",
    Diagnosis.DEGENERATE: "The kernel gives the diffusion nothing to work with.",
    Diagnosis.NOT_CONVERGED: "The solver did not reach its tolerances: raise max_iter, or accept the certified gap.",
}


@dataclass(frozen=True, eq=False)
class RankPathEntry:
    """One bandwidth of a path.

    Attributes
    ----------
    sigma : float
        The bandwidth.
    diagnosis : Diagnosis
        What it does to the data, in a word.
    note : str
        The same in a sentence; at a degenerate bandwidth, why there is no embedding.
    rank : int
        Dimensions of the solution; 0 where there is none.
    eigenvalues : array of shape (rank,)
        Of B / Tr B, in falling order.
    objective : float
        ⟨Ā, B⟩ at the solution; NaN where there is none.
    relative_gap : float
        As certified; NaN where nothing was certified.
    status : Status or None
        Why the solver stopped; None where it did not start.
    diffusion_eigenvalues : array of shape (n_eigenvalues,)
        The largest eigenvalues λ₁ ≥ λ₂ ≥ … of Ā, those of diffusion maps; empty where there is no embedding.
    n_products : int
        Columns the solver applied the operator to.
    staying : float
        The median over the points of k(x, x)/m(x), the probability that the diffusion stays where it is.
    signal : float
        maxₓ 1 - m(x)²/(vol k(x, x)): how far the affinities are from constant, between 0 and 1.
    """

    sigma: float
    diagnosis: Diagnosis
    note: str
    rank: int = 0
    eigenvalues: Array = field(default_factory=lambda: np.empty(0))
    objective: float = float("nan")
    relative_gap: float = float("nan")
    status: Status | None = None
    diffusion_eigenvalues: Array = field(default_factory=lambda: np.empty(0))
    n_products: int = 0
    staying: float = float("nan")
    signal: float = float("nan")

    @property
    def spectral_gaps(self) -> Array:
        """λ₁ - λ₂, λ₂ - λ₃, and so on."""
        return self.diffusion_eigenvalues[:-1] - self.diffusion_eigenvalues[1:]


@dataclass(frozen=True, eq=False)
class RankPath:
    """Embeddings of one sample at rising bandwidths; ``str(path)`` is a table.

    Attributes
    ----------
    entries : tuple of RankPathEntry
        One for every bandwidth, from small to large.
    kernel : Kernel
        The kernel; its own bandwidth takes no part.
    parameter : str
        The name of the bandwidth among the parameters of the kernel.
    """

    entries: tuple[RankPathEntry, ...]
    kernel: Kernel
    parameter: str

    @property
    def sigmas(self) -> Array:
        """The bandwidths, rising."""
        return np.array([entry.sigma for entry in self.entries])

    @property
    def ranks(self) -> Array:
        """The rank at every bandwidth, 0 where there is no embedding."""
        return np.array([entry.rank for entry in self.entries])

    @property
    def relative_gaps(self) -> Array:
        """The certified relative gap at every bandwidth, NaN where there is none."""
        return np.array([entry.relative_gap for entry in self.entries])

    @property
    def objectives(self) -> Array:
        """The objective at every bandwidth, NaN where there is none."""
        return np.array([entry.objective for entry in self.entries])

    @property
    def eigenvalues(self) -> Array:
        """Spectra of B / Tr B, one row a bandwidth: zero beyond the rank, NaN where there is no embedding."""
        width = max((entry.rank for entry in self.entries), default=0)
        return np.array(
            [_padded(entry.eigenvalues, width, np.nan if entry.rank == 0 else 0.0) for entry in self.entries]
        )

    @property
    def diffusion_eigenvalues(self) -> Array:
        """The largest eigenvalues of Ā, one row a bandwidth; NaN where there is no embedding."""
        width = max((entry.diffusion_eigenvalues.size for entry in self.entries), default=0)
        return np.array([_padded(entry.diffusion_eigenvalues, width, np.nan) for entry in self.entries])

    @property
    def diagnoses(self) -> tuple[Diagnosis, ...]:
        """What every bandwidth does to the data, in a word."""
        return tuple(entry.diagnosis for entry in self.entries)

    @property
    def n_products(self) -> int:
        """Columns the operators were applied to along the whole path."""
        return sum(entry.n_products for entry in self.entries)

    def __str__(self) -> str:
        """A table with one line for every bandwidth."""
        head = (self.parameter.rpartition("__")[2], "rank", "spectrum of B/TrB", "gap", "diffusion λ₁ λ₂ …")
        rows = [(*head, "λ₁-λ₂", "columns", "diagnosis"), *(_cells(entry) for entry in self.entries)]
        widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
        return "\n".join("  ".join(map(str.ljust, row, widths)).rstrip() for row in rows)


def rank_path(
    X: Any,
    sigmas: Any = None,
    *,
    kernel: Kernel | None = None,
    parameter: str | None = None,
    n_eigenvalues: int = 5,
    max_iter: int = 1000,
    random_state: Any = None,
    **parameters: Any,
) -> RankPath:
    """Embed X at every bandwidth of a grid and say what each of them shows.

    The rank of the solution, the spectrum of B / Tr B and the eigenvalues of diffusion maps change with the bandwidth.
    Where they stay the same over a range of bandwidths they belong to the data; a person chooses σ there.

    Parameters
    ----------
    X : array of shape (n, d)
        The points.
    sigmas : array of shape (m,), optional
        Bandwidths, strictly rising. By default 13 of them, from 1/16 to 4 times the median distance (the rule
        ``"median"`` of the kernel, in its own metric), each √2 times the one before; see Notes.
    kernel : Kernel, default=None
        Any kernel with a bandwidth: ``sigma`` or ``length_scale`` among its parameters, those of inner kernels
        included. The bandwidth it has is ignored. None means :class:`~mercer.Gaussian`.
    parameter : str, optional
        The name of the bandwidth, needed only where the kernel has several, as in ``"left__sigma"``.
    n_eigenvalues : int, default=5
        Eigenvalues of diffusion maps to compute.
    max_iter : int, default=1000
        Steps of the solver for a bandwidth, fewer than for a single fit: where many more are needed the bandwidth is
        nearly always too small to be of use, and the entry says ``not converged`` with the gap that was reached.
    random_state : None, int or generator, default=None
        The starting point.
    **parameters
        Further parameters of :class:`~mercer.SDPEmbedding`, such as ``tol`` or ``initial_rank``.

    Returns
    -------
    RankPath
        One entry for every bandwidth. A degenerate one has a diagnosis and no embedding; it does not end the path. On
        Ctrl-C the path ends with the bandwidths fitted so far.

    Notes
    -----
    *The grid.* At 4 times the median distance the affinity of a typical pair is 0.94 and the kernel is nearly its
    first-order expansion: on wine, iris, two moons and three clusters the leading eigenvalue of B / Tr B moved by 0.003
    at most from there to 64 times the median. At 1/16 most points of wine and iris have no neighbour left. Points on
    a curve or a surface have neighbours below that still: pass smaller bandwidths for them.

    *The diagnoses.* ``nearly isolated``: the median of k(x, x)/m(x) exceeds one half, so the diffusion rather stays
    than moves. ``nearly constant``: 1 - m²/(vol k(x, x)) is at most 0.01 at every point. ``isolated`` and ``constant``
    are what :class:`~mercer.SDPEmbedding` refuses. ``not converged`` is said where no other reason is known.

    *No bandwidth is suggested.* The longest range of constant rank is no rule: the embedding has a limit as σ grows, so
    that range always reaches the large end of the grid and is as long as the grid makes it.

    Cost: a fit for every bandwidth, and for the eigenvalues of diffusion maps a dense eigenproblem up to n = 1500 or
    some tens of products beyond.

    Examples
    --------
    >>> from mercer import rank_path
    >>> from mercer.datasets import three_clusters
    >>> X, labels = three_clusters()
    >>> path = rank_path(X, [1e-6, 1.2, 3.6, 1e9], random_state=0)
    >>> path.ranks
    array([0, 2, 2, 0])
    >>> [diagnosis.value for diagnosis in path.diagnoses]
    ['isolated', 'informative', 'informative', 'constant']
    """
    count = whole_number(n_eigenvalues, "n_eigenvalues", 1)
    kernel = clone(checked_kernel(kernel))
    name = _bandwidth_name(kernel, parameter)
    model = SDPEmbedding(kernel, max_iter=max_iter, random_state=random_state, **parameters)
    X = checked_points(model, X, fitting=True)
    if np.all(X[:1] == X):
        raise DegenerateKernelError("All points are equal: there is nothing to embed.")
    grid = _default_grid(kernel, name, X) if sigmas is None else _checked_sigmas(sigmas)
    entries: list[RankPathEntry] = []
    for sigma in grid[::-1]:
        entries.append(_entry(model.set_params(kernel=clone(kernel).set_params(**{name: sigma})), X, sigma, count))
        if entries[-1].status is Status.INTERRUPTED:
            break
    return RankPath(tuple(entries[::-1]), kernel, name)


def _entry(model: SDPEmbedding, X: Any, sigma: float, count: int) -> RankPathEntry:
    """Fit at one bandwidth; a degenerate one becomes an entry without an embedding."""
    try:
        with warnings.catch_warnings():  # the entry says both, for its bandwidth
            warnings.simplefilter("ignore", ConvergenceWarning)
            warnings.filterwarnings("ignore", "All points look nearly alike", UserWarning)
            model.fit(X)
    except DegenerateKernelError as error:
        return RankPathEntry(sigma, _degenerate(model.kernel_, X), str(error))
    staying = model.diagonal_ + model.stationary_  # k(x, x)/m(x), for d = k(x, x)/m - m/vol
    typical, signal = float(np.median(staying)), float(np.max(model.diagonal_ / staying))
    diagnosis = _diagnosis(model.status_, typical, signal)
    certificate = model.certificate_
    return RankPathEntry(
        sigma,
        diagnosis,
        diagnosis.message,
        model.rank_,
        model.eigenvalues_,
        model.history_[-1].objective if certificate is None else certificate.lower,
        float("nan") if certificate is None else certificate.relative_gap,
        model.status_,
        _diffusion_eigenvalues(model, X, count),
        model.n_products_,
        typical,
        signal,
    )


def _diagnosis(status: Status, staying: float, signal: float) -> Diagnosis:
    """The reason first: a bandwidth that is far too small or too large also keeps the solver from converging."""
    if staying > _STAYS:
        return Diagnosis.NEARLY_ISOLATED
    if signal <= _NEARLY_CONSTANT:
        return Diagnosis.NEARLY_CONSTANT
    return Diagnosis.INFORMATIVE if status is Status.CONVERGED else Diagnosis.NOT_CONVERGED


def _degenerate(kernel: Kernel, X: Any) -> Diagnosis:
    """Which end a kernel that was refused lies at."""
    gram = GramOperator(kernel, X)
    sums, diagonal = gram.row_sums(), gram.diagonal()
    if np.all(sums > 0) and np.median(diagonal / sums) > _STAYS:
        return Diagnosis.ISOLATED
    if np.all(sums > 0) and np.max(1 - sums**2 / (np.sum(sums) * diagonal)) <= _NEARLY_CONSTANT:
        return Diagnosis.CONSTANT
    return Diagnosis.DEGENERATE


def _diffusion_eigenvalues(model: SDPEmbedding, X: Any, count: int) -> Array:
    """λ₁, λ₂, …; NaN where Lanczos does not converge, which a small bandwidth and a large sample may bring about."""
    operator = DiffusionOperator(GramOperator(model.kernel_, X))
    count = min(count, operator.shape[0] - 1)
    rng = as_generator(model.random_state)
    try:
        values, _ = leading_eigenpairs(operator, count, rng=rng, tolerance=_EIGENVALUE_TOLERANCE)
    except ArpackError:
        return np.full(count, np.nan)
    except np.linalg.LinAlgError:
        values = np.empty(0)
    if values.size == count:
        return values
    # LAPACK's search for a few eigenvalues loses some when nearly all are equal to one, the search for all does not
    return np.linalg.eigvalsh(operator.to_dense())[: -count - 1 : -1]


def _bandwidth_name(kernel: Kernel, wanted: str | None) -> str:
    """The parameter to vary: the one asked for, or the only one that is a bandwidth."""
    names = [name for name in kernel.get_params() if name.rpartition("__")[2] in _BANDWIDTHS]
    if not names:
        raise ValueError(f"{kernel!r} has no bandwidth to vary: take one such as Gaussian(), Laplacian() or Matern().")
    if wanted is None and len(names) > 1:
        raise ValueError(f"{kernel!r} has several bandwidths: choose one by parameter={' or '.join(map(repr, names))}.")
    if wanted is not None and wanted not in names:
        raise ValueError(f"parameter={wanted!r} is no bandwidth of {kernel!r}, which has {', '.join(names)}.")
    return names[0] if wanted is None else wanted


def _default_grid(kernel: Kernel, name: str, X: Any) -> Array:
    rule = clone(kernel).set_params(**{name: "median"})
    return float(rule.resolve(X).get_params()[name]) * _GRID


def _checked_sigmas(sigmas: Any) -> Array:
    try:
        grid = np.asarray(sigmas, dtype=np.float64)
    except (TypeError, ValueError):
        raise ValueError(f"sigmas={sigmas!r} must be a sequence of positive numbers.") from None
    if grid.ndim != 1 or grid.size == 0:
        raise ValueError(f"sigmas must be a sequence of at least one number, not of shape {grid.shape}.")
    if not np.all(np.isfinite(grid) & (grid > 0)):
        bad = grid[~(np.isfinite(grid) & (grid > 0))][0]
        raise ValueError(f"sigmas has {bad:g}: every bandwidth must be a finite number greater than 0.")
    if np.any(np.diff(grid) <= 0):
        at = int(np.argmax(np.diff(grid) <= 0))
        raise ValueError(f"sigmas must rise strictly, but {grid[at]:g} is followed by {grid[at + 1]:g}: sort them.")
    return grid


def _padded(values: Array, width: int, fill: float) -> Array:
    return np.pad(values, (0, width - values.size), constant_values=fill)


def _cells(entry: RankPathEntry) -> tuple[str, ...]:
    """One line of the table; a dash where there is no embedding."""
    if entry.diagnosis.degenerate:
        return (f"{entry.sigma:.4g}", *"------", entry.diagnosis.value)
    more = " …" if entry.rank > _SHOWN else ""
    gaps = entry.spectral_gaps
    return (
        f"{entry.sigma:.4g}",
        str(entry.rank),
        " ".join(f"{value:.4f}" for value in entry.eigenvalues[:_SHOWN]) + more,
        f"{entry.relative_gap:.0e}",
        " ".join(f"{value:.4f}" for value in entry.diffusion_eigenvalues[:_SHOWN]),
        f"{gaps[0]:.4f}" if gaps.size else "-",
        str(entry.n_products),
        entry.diagnosis.value,
    )
