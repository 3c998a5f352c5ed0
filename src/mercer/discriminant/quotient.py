"""The quotient that Roweis discriminant analysis maximises, as numbers in a basis of the labels.

With the points centred and scaled by the roots of their shares, Z, the scatter matrices of the family are

    S_T = ZᵀZ,    S_B = Zᵀ(Q t Qᵀ)Z,    S_W = S_T - S_B,    S_H = Zᵀ(Q s Qᵀ)Z,

Q an orthonormal basis of the features of the labels, s the eigenvalues of their centred kernel matrix over n, and t how
much of each is explained: 1 for classes. A penalty ε adds εI to S_T and to S_W, as a little noise in every point would:

    R₁ = r₁ S_H + (1 - r₁)(S_T + εI),    R₂ = r₂ (S_W + εI) + (1 - r₂) I.

R₁ less a multiple of R₂ has the same eigenvectors, and with the multiple that takes the identity out of it

    Zᵀ(βI + Q m Qᵀ)Z u = μ (r₂ S_W + αI) u,    α = r₂ε + 1 - r₂,    θ = r₂ε/α,    β = (1 - r₁)(1 - θ),
    m = r₁ s + (1 - r₁) θ t,    λ = μ + (1 - r₁) ε/α.

At r₂ = 1 and at r₁ = 1, β = 0: the left side has the rank of the labels, and nothing larger than that is decomposed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

from mercer.backends.arrays import Array


@final
@dataclass(frozen=True)
class Quotient:
    """RDA(r₁, r₂) with a penalty.

    Attributes
    ----------
    r1, r2 : float
        From 0 to 1.
    penalty : float
        ε, in the unit of the squared features.
    """

    r1: float
    r2: float
    penalty: float = 0.0

    @property
    def identity(self) -> float:
        """α, the part of the identity in R₂."""
        return self.r2 * self.penalty + (1 - self.r2)  # so that a penalty in a small unit is not lost beside one

    @property
    def _theta(self) -> float:
        return 1.0 if self.r2 == 1 else self.r2 * self.penalty / self.identity

    @property
    def spread(self) -> float:
        """β, the part of all points, whatever their labels."""
        return (1 - self.r1) * (1 - self._theta)

    @property
    def shift(self) -> float:
        """λ - μ."""
        if self.r2 == 1:
            return 1 - self.r1
        return (1 - self.r1) * self.penalty / self.identity

    def label_weights(self, strengths: Array, explained: Array) -> Array:
        """The weights m of the features of the labels, from s and t."""
        return self.r1 * strengths + (1 - self.r1) * self._theta * explained
