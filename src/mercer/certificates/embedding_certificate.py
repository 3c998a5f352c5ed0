"""The certificate of an embedding: its bounds, and how far the solution is from the conditions of an optimum."""

from __future__ import annotations

from dataclasses import dataclass

from mercer.certificates.certificate import Certificate

GOOD_GAP = 1e-9  # the relative gap aimed at where no tolerance is given
N_LEAST = 6  # eigenvalues of the dual slack that are reported


@dataclass(frozen=True)
class EmbeddingCertificate(Certificate):
    """A :class:`Certificate` of an embedding, with what only an embedding has.

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
