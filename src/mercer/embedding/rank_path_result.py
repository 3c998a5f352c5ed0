"""The result of a path of bandwidths, and what is said of each of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import Enum

import numpy as np
from sklearn.base import clone

from mercer.backends.arrays import Array
from mercer.kernels import Kernel
from mercer.solvers import Status
from mercer.wording import brief

_SHOWN = 4
REMEMBERS = 0.5  # of an embedding in one step of the walk, for its bandwidth to be suggested
_MANY_KEPT = 0.5
STAYS = 0.5  # a median of k(x, x)/m(x) above: the diffusion rather stays than moves


class Diagnosis(Enum):
    """What a bandwidth does to the data; the value is the word for it."""

    INFORMATIVE = "informative"
    NEARLY_ISOLATED = "nearly isolated"
    ISOLATED = "isolated"
    NEARLY_CONSTANT = "nearly constant"
    CONSTANT = "constant"
    DEGENERATE = "degenerate"
    FLAT = "flat"
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
    Diagnosis.FLAT: (
        "Embeddings of other ranks are optimal to the tolerance too, so that neither the rank nor the spectrum belongs "
        "to the data. Choose a larger bandwidth, or a smaller tol."
    ),
    Diagnosis.NOT_CONVERGED: "The solver did not reach its tolerances: raise max_products, or accept the gap.",
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
        Columns the operator was applied to.
    n_stand_in_products : int
        Columns its low-rank stand-in was applied to, which costs less.
    staying : float
        The median over the points of k(x, x)/m(x), the probability that the diffusion stays where it is.
    signal : float
        maxₓ 1 - m(x)²/(vol k(x, x)): how far the affinities are from constant, between 0 and 1.
    undetermined : float
        The share of Tr B that any embedding within ``tol`` of the optimum may have outside the dimensions of the
        optimum, at most; NaN where nothing was certified, or the certificate has no eigenvalue beyond the rank.
    rigidity : float
        How much B must change its diagonal to change at all within its own dimensions: of the order of 1 where it is
        the only solution there, 0 where it is not.
    correlation : float
        ⟨Ā, B⟩/Tr B: the part of the embedding that one step of the walk between the points keeps.
    kept : float
        The share of the 15 nearest others of a point, by their affinity, that are among its 15 nearest in the
        embedding.
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
    n_stand_in_products: int = 0
    staying: float = float("nan")
    signal: float = float("nan")
    undetermined: float = float("nan")
    rigidity: float = float("nan")
    correlation: float = float("nan")
    kept: float = float("nan")

    def __repr__(self) -> str:
        return brief(self, "sigma", "diagnosis", "rank", "relative_gap")

    @property
    def spectral_gaps(self) -> Array:
        """λ₁ - λ₂, λ₂ - λ₃, and so on."""
        return self.diffusion_eigenvalues[:-1] - self.diffusion_eigenvalues[1:]


@dataclass(frozen=True, eq=False)
class RankPath:
    """Embeddings of one sample at rising bandwidths; ``str(path)`` is a table that ends in a suggestion.

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

    def __repr__(self) -> str:
        return brief(self, "parameter", "sigmas", "ranks", "suggested")

    @property
    def suggested(self) -> RankPathEntry | None:
        """The bandwidth for who wants one; None if none is good, and :attr:`reason` says why.

        Of the informative bandwidths at which one step of the walk keeps at least half of the embedding, the one
        whose embedding keeps most neighbours.
        """
        return max(_candidates(self.entries), key=lambda entry: (entry.kept, -entry.sigma), default=None)

    @property
    def reason(self) -> str:
        """Why :attr:`suggested` is the one, or why there is none, in sentences."""
        chosen = self.suggested
        return _refusal(self) if chosen is None else _praise(self, chosen)

    @property
    def suggested_kernel(self) -> Kernel:
        """The kernel with the suggested bandwidth; a ValueError where none is suggested."""
        if self.suggested is None:
            raise ValueError(self.reason)
        return clone(self.kernel).set_params(**{self.parameter: self.suggested.sigma})

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

    @property
    def n_stand_in_products(self) -> int:
        """Columns their low-rank stand-ins were applied to along the whole path."""
        return sum(entry.n_stand_in_products for entry in self.entries)

    def __str__(self) -> str:
        """A table with one line for every bandwidth, and the reason of the suggestion below it."""
        head = [self.parameter.rpartition("__")[2], "rank", "spectrum of B/TrB", "gap", "diffusion λ₁ λ₂ …", "λ₁-λ₂"]
        head += ["columns (stand-in)", "step keeps", "neighbours kept", "diagnosis"]
        rows = [tuple(head), *(_cells(entry) for entry in self.entries)]
        widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
        table = "\n".join("  ".join(map(str.ljust, row, widths)).rstrip() for row in rows)
        return f"{table}\n{self.reason}"


def _informative(entries: Sequence[RankPathEntry]) -> list[RankPathEntry]:
    return [entry for entry in entries if entry.diagnosis is Diagnosis.INFORMATIVE]


def _candidates(entries: Sequence[RankPathEntry]) -> list[RankPathEntry]:
    """Where the solution is unique and the walk remembers it; below, an embedding tends to a linear one."""
    return [entry for entry in _informative(entries) if entry.correlation >= REMEMBERS]


def _praise(path: RankPath, chosen: RankPathEntry) -> str:
    """Why a bandwidth is suggested, and what there is to doubt."""
    name = path.parameter.rpartition("__")[2]
    sentences = [
        f"Suggested: {name} = {chosen.sigma:.4g}, whose embedding keeps {chosen.kept:.0%} of the nearest neighbours of "
        f"a point, the most of {_counted(len(_candidates(path.entries)))} that are informative and at which one step "
        "of the walk keeps at least half of the embedding."
    ]
    if chosen is path.entries[0] and len(path.entries) > 1:
        sentences.append("It is the smallest of the grid: smaller ones may do better.")
    if chosen.kept < _MANY_KEPT:
        sentences.append("That is less than half, so no bandwidth is good everywhere: SelfTuning() has one a point.")
    return " ".join(sentences)


def _refusal(path: RankPath) -> str:
    """Why no bandwidth is suggested, and what to do."""
    informative, count = _informative(path.entries), _counted(len(path.entries))
    if informative:
        best = max(informative, key=lambda entry: entry.correlation)
        why = (
            "none is informative and has an embedding of which one step of the walk keeps half (the most is "
            f"{best.correlation:.0%} at {best.sigma:.4g}): they are too large or too far apart, or the data have no "
            "structure that one bandwidth shows"
        )
    else:
        words = Counter(diagnosis.value for diagnosis in path.diagnoses)
        why = f"none is informative ({', '.join(f'{number} {word}' for word, number in words.items())})"
    return f"No bandwidth is suggested: of {count} {why}. Pass others, or take SelfTuning()."


def _counted(number: int) -> str:
    return "1 bandwidth" if number == 1 else f"{number} bandwidths"


def _padded(values: Array, width: int, fill: float) -> Array:
    return np.pad(values, (0, width - values.size), constant_values=fill)


def _cells(entry: RankPathEntry) -> tuple[str, ...]:
    """One line of the table; a dash where there is no embedding."""
    if entry.diagnosis.degenerate:
        return (f"{entry.sigma:.4g}", *"--------", entry.diagnosis.value)
    more = " …" if entry.rank > _SHOWN else ""
    gaps = entry.spectral_gaps
    return (
        f"{entry.sigma:.4g}",
        str(entry.rank),
        " ".join(f"{value:.4f}" for value in entry.eigenvalues[:_SHOWN]) + more,
        f"{entry.relative_gap:.0e}",
        " ".join(f"{value:.4f}" for value in entry.diffusion_eigenvalues[:_SHOWN]),
        f"{gaps[0]:.4f}" if gaps.size else "-",
        f"{entry.n_products} ({entry.n_stand_in_products})",
        f"{entry.correlation:.0%}",
        f"{entry.kept:.0%}",
        entry.diagnosis.value,
    )
