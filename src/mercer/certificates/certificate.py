"""A pair of bounds on an optimum, with what they rest on."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from mercer.backends.arrays import Array
from mercer.certificates.card import FAR, card_of
from mercer.wording import brief

GOOD_GAP = 1e-9  # the relative gap aimed at where no tolerance is given
N_LEAST = 6  # eigenvalues of the dual slack that are reported


class CrossedBoundsError(ArithmeticError):
    """A proof gave a lower bound above its upper one: something it counts on does not hold."""


@dataclass(frozen=True, repr=False)
class Certificate:
    """lower ≤ optimum ≤ upper, proved.

    Attributes
    ----------
    lower : float
        The optimum is at least this: the objective of the given solution where that is maximised.
    upper : float
        A value the optimum cannot exceed: the objective of the given solution where that is minimised.
    failure_probability : float
        The probability, over the random numbers of the proof, that its bound is wrong; 0 for a deterministic proof.
    method : str
        How the bound was proved.
    n_products : int
        Columns of the sample's kernel matrix (of its square, for a measure) that the proof multiplied by or whose
        entries it formed; not those of a stand-in that was handed in. Zero for proofs on the integrals of a support, as
        of densities and regressions.
    least_eigenvalues : array
        The least eigenvalues of the dual slack: zero, as often as the solution has rank, at an optimum. No part of the
        proof, and empty where they are not computed.
    complementarity : float
        The size of the dual slack times the solution: zero at an optimum, nan where it is not computed.
    minimised : bool
        Whether the objective was minimised, so that ``upper`` is its value and ``lower`` the proved bound.
    """

    lower: float
    upper: float
    failure_probability: float
    method: str
    n_products: int
    least_eigenvalues: Array = field(default_factory=lambda: np.empty(0))
    complementarity: float = float("nan")
    minimised: bool = False

    def __post_init__(self) -> None:
        """Refuse bounds that contradict each other: a proof of that kind proves nothing."""
        if not self.lower <= self.upper:
            raise CrossedBoundsError(
                f"The {self.method} gave {self.lower!r} as lower and {self.upper!r} as upper bound, which cannot be: "
                "the matrix is not what it is taken for (symmetric, positive semi-definite), or the proof is wrong."
            )

    @property
    def objective(self) -> float:
        """The value of the given solution."""
        return self.upper if self.minimised else self.lower

    @property
    def relative_gap(self) -> float:
        """(upper - lower) / objective, never negative; infinite where the objective is zero and the bound is not."""
        width = self.upper - self.lower
        if width == 0:
            return 0.0
        return width / abs(self.objective) if self.objective != 0 else float("inf")

    @property
    def gap_beyond_rounding(self) -> float:
        """The gap that a better solution could still close: the relative gap, where rounding's part is not known."""
        return self.relative_gap

    def holds(self, tol: float) -> bool:
        """Whether no solution is better by more than a fraction tol of this one's objective."""
        return bool(self.relative_gap <= tol)

    def __repr__(self) -> str:
        return brief(self, "lower", "upper", "relative_gap", "method")

    def _repr_html_(self) -> str:
        """The card that a notebook shows."""
        return card_of(self).as_html()

    def __str__(self) -> str:
        """One line a person understands."""
        odds = self.failure_probability
        chance = "no chance involved" if odds == 0 else f"wrong with probability {odds:.0e}"
        best = f"at least {self.lower:.7g}" if self.minimised else f"at most {self.upper:.7g}"
        bounds = f"objective {self.objective:.7g}, best possible {best} ({self.method}, {chance})"
        return f"{self.verdict[1]}: {bounds}"

    @property
    def verdict(self) -> tuple[str, str]:
        """What is proved, as one of "open", "far" and "proved", and in words."""
        if not np.isfinite(self.relative_gap):
            return "open", "Not certified"
        if self.relative_gap > FAR:
            return "far", f"Far from certified, gap {self.relative_gap:.1e}"
        return "proved", f"Certified optimal to within {self.relative_gap:.1e}"


@dataclass(frozen=True, repr=False)
class EmbeddingCertificate(Certificate):
    """The certificate of an embedding, with what only an embedding has (PSD17 section 6.1).

    The ``least_eigenvalues`` are those of Diag(y) - Ã, y = z/d: found to working accuracy where the matrix is factored,
    estimates from above elsewhere. The ``complementarity`` is the Frobenius norm of (Diag(y) - Ã) B over that of Ã B.

    Attributes
    ----------
    mean_value_residual : float
        How far Ξᵢ is from the multiple of (ÃΞ)ᵢ that PSD17 (11) says it is, relative to the largest ‖Ξᵢ‖.
    conformality_residual : float
        How much the cosines between rows of ÃΞ differ from those of Ξ, root mean square over all pairs.
    stand_in_rank : int
        Rank of the low-rank factor the proof made use of; 0 without one.
    rounding : float
        How far apart rounding alone keeps the bounds, whatever the solution: the rest of the gap is the solution's.
    """

    mean_value_residual: float = float("nan")
    conformality_residual: float = float("nan")
    stand_in_rank: int = 0
    rounding: float = 0.0

    @property
    def gap_beyond_rounding(self) -> float:
        """The relative gap without the part that rounding alone makes: what a better solution could still close."""
        width = max(self.upper - self.lower - self.rounding, 0.0)
        return self.relative_gap * width / (self.upper - self.lower) if width > 0 else 0.0

    def in_units(self, factor: float) -> EmbeddingCertificate:
        """The same for a diagonal in other units, that is multiplied by a power of two."""
        if factor == 1:
            return self
        return replace(self, **{name: factor * getattr(self, name) for name in ("lower", "upper", "rounding")})


@dataclass(frozen=True, repr=False)
class RegressionCertificate(Certificate):
    """The certificate of a regression or a classifier, with what only these have.

    Attributes
    ----------
    robust_risk : float
        The mean loss of the function is no larger under any distribution that its adversary may choose; of penalised
        least squares, the sample's plus the penalty on f².
    sample_risk : float
        Its mean loss on the sample.
    """

    robust_risk: float = float("nan")
    sample_risk: float = float("nan")

    def in_units(self, factor: float) -> RegressionCertificate:
        """The same for losses in other units, that is multiplied by a power of two."""
        names = ("lower", "upper", "robust_risk", "sample_risk")
        return replace(self, **{name: factor * getattr(self, name) for name in names})
