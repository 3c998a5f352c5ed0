"""The kernelised programme: a learned kernel that is a function of the Hilbert space of another one.

    p* = max Tr((P K̄ P - λ K⁻¹) B')  subject to  B' ≽ 0, B'ᵢᵢ = d(xᵢ)

with P = Diag(p), shares p of m different points that sum to one, K̄ = K - uuᵀ and u = Kp/√(pᵀKp), the normalised mean
embedding. With equal shares this is PSD22's programme of section 1.2.2 divided by n², that is (1.9).

With any L for which LLᵀ = K and B' = L B Lᵀ, the penalty is λ Tr B and a vector y bounds the optimum by dᵀy as soon as

    Z = Lᵀ (Diag(y) - P K̄ P) L + λ I ≽ 0.

No inverse of K enters, so that neither a step nor a proof loses the digits that an ill-conditioned K takes away.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import final

import numpy as np

from mercer.backends.arrays import Array, add_to_diagonal, solve_triangular
from mercer.backends.balls import Ball
from mercer.backends.chunks import row_chunks
from mercer.backends.rounding import UNIT, EntryError, gamma
from mercer.linalg.factors import upper_factor
from mercer.problems.problem import Problem

_MATRICES = 26  # of doubles, of order m, that a solve or a proof holds at once
_MORE = 1.1
_REFINEMENTS, _HELPS = 50, 0.9  # at most; what a refinement that helps leaves of the residual
_TRIES = 3
_ROWS = 128  # of a product without rounding at a time


def kernelized_bytes(m: int) -> int:
    """Memory that a solve with m points takes."""
    return 8 * _MATRICES * m * m


class SingularKernelError(ValueError):
    """The kernel matrix has no inverse that double precision could tell from rounding."""


@final
@dataclass(eq=False)
class KernelizedProgramme(Problem):
    """Maximise Tr((P K̄ P - λ K⁻¹) B') over B' ≽ 0 with the diagonal d; arrays of NumPy, in double precision.

    Attributes
    ----------
    matrix : array of shape (m, m)
        K, symmetric, as floating point gives it.
    shares : array of shape (m,)
        p > 0, of sum one.
    prescribed : array of shape (m,)
        d > 0.
    regularization : float
        λ > 0.
    entry_error : EntryError
        How far the entries of K may be from those of the kernel.
    prescribed_error : array of shape (m,)
        How far d may be from what it stands for; zero where it is given.
    sharp : bool, default=False
        Whether the rounding of the factor of K is found and not only bounded, by fifteen products of order m.
    """

    matrix: Array
    shares: Array
    prescribed: Array
    regularization: float
    entry_error: EntryError
    prescribed_error: Array
    sharp: bool = False

    @property
    def size(self) -> int:
        """The number of points m."""
        return int(self.shares.shape[0])

    @cached_property
    def radii(self) -> Array:
        """A bound on the error of every entry of K, between any two of its evaluations."""
        error, root = self.entry_error.doubled(), np.sqrt(np.diagonal(self.matrix))
        radii = error.relative * np.abs(self.matrix) + error.absolute
        return np.asarray(_MORE * (radii + error.scaled * root[:, None] * root))

    @cached_property
    def entries_norm(self) -> float:
        """A bound on the norm of what the errors of entries may do to K."""
        return _MORE * float(self.radii.sum(axis=1).max())

    @property
    def lift(self) -> float:
        """τ such that K + τI, factored in floating point, is no less than the kernel's own matrix."""
        return self._lifted[1]

    @property
    def factor(self) -> Array:
        """L, lower triangular, with LLᵀ = K + τI.

        Raises
        ------
        SingularKernelError
            If it does not exist.
        """
        return self._lifted[0]

    @cached_property
    def _lifted(self) -> tuple[Array, float]:
        """L and τ, of which it is known that LLᵀ ≽ K for every K that the errors of entries allow.

        The entries of a Cholesky factor's error are at most γ √(Kᵢᵢ Kⱼⱼ) each, whose matrix has the norm γ Tr K. What
        it is in truth, far less, is found by products without rounding where the programme is to be sharp.
        """
        rest = 64 * UNIT * float(np.max(np.diagonal(self.matrix)))
        for _ in range(_TRIES if self.sharp else 0):
            tau = self.entries_norm + rest
            L = self._cholesky(tau)
            error = _MORE * max(self._row_errors(L, tau, rows) for rows in row_chunks(self.size, _ROWS))
            if error <= rest:
                return L, tau
            rest = 2 * error
        tau = self.entries_norm + _MORE * gamma(self.size + 2, UNIT) * float(np.trace(self.matrix))
        return self._cholesky(tau), tau

    def _row_errors(self, L: Array, tau: float, rows: slice) -> float:
        """The largest of some row sums of |LLᵀ - K - τI|, bounded."""
        lifted = Ball(self.matrix[rows]) + Ball(tau) * np.eye(self.size)[rows]
        return float((Ball(L[rows]) @ Ball(L.T) - lifted).magnitude().sum(axis=1).max())

    def _cholesky(self, tau: float) -> Array:
        lifted = self.matrix.copy()
        add_to_diagonal(lifted, tau)
        R = upper_factor(lifted)
        if R is None or not np.all(np.isfinite(np.diagonal(R))):
            raise SingularKernelError("The kernel matrix has no Cholesky factor.")
        return np.ascontiguousarray(np.triu(R).T)

    @cached_property
    def mean(self) -> Array:
        """u = Kp/√(pᵀKp), the mean embedding at the points."""
        sums = self.matrix @ self.shares
        total = float(self.shares @ sums)  # the squared length of the mean, which may be zero
        return np.asarray(sums / np.sqrt(total)) if total > 0 else np.zeros_like(sums)

    @cached_property
    def centred(self) -> Array:
        """P K̄ P."""
        p = self.shares
        inside = self.matrix - self.mean[:, None] * self.mean
        inside = p[:, None] * inside * p
        return np.asarray((inside + inside.T) / 2)

    @property
    def dominating(self) -> Array:
        """y with P K̄ P ≼ Diag(y): the row sums of absolute values."""
        return np.asarray(np.abs(self.centred).sum(axis=1))

    def coefficients(self, coordinates: Array) -> Array:
        """About K⁻¹Ξ, by the factor and refinements while they help: K times them is Ξ to rounding.

        The factor is that of K + τI, so that they are many where the least eigenvalue of K is no larger than τ.
        """
        found, rest, least = np.zeros_like(coordinates), coordinates, np.inf
        for _ in range(_REFINEMENTS):
            found = found + solve_triangular(self.factor, solve_triangular(self.factor, rest), transpose=True)
            rest = coordinates - self.matrix @ found
            size = float(np.abs(rest).max(initial=0.0))
            if not size < _HELPS * least:
                break
            least = size
        return np.asarray(found)

    def product_rounding(self, coefficients: Array) -> float:
        """What rounding may do to an entry of K times coefficients: much where these are large."""
        sums = np.abs(self.matrix) @ np.abs(coefficients)
        return _MORE * gamma(self.size + 2, UNIT) * float(sums.max(initial=0.0))

    def rescaled(self, coordinates: Array) -> Array:
        """The rows brought to the lengths √d; a row of zeros takes the first direction."""
        lengths = np.linalg.norm(coordinates, axis=1)
        first = np.zeros(coordinates.shape[1])
        first[0] = 1.0
        rows = np.where(lengths[:, None] > 0, coordinates, first)
        scale = np.sqrt(self.prescribed) / np.where(lengths > 0, lengths, 1.0)
        return np.asarray(scale[:, None] * rows)

    def alignment(self, coordinates: Array) -> float:
        """Tr(P K̄ P B'), f_n of PSD22 (kVP-n)."""
        return float(np.sum(coordinates * (self.centred @ coordinates)))

    def trace(self, coordinates: Array) -> float:
        """Tr(K⁻¹B'), the trace of the operator 𝔹."""
        return float(np.sum(coordinates * self.coefficients(coordinates)))

    def objective(self, coordinates: Array) -> float:
        """The value of B' = ΞΞᵀ."""
        return self.alignment(coordinates) - self.regularization * self.trace(coordinates)

    def multipliers(self, coordinates: Array) -> Array:
        """yᵢ = ((P K̄ P - λK⁻¹)B')ᵢᵢ/dᵢ: the dual variables that a first-order point determines."""
        slope = self.centred @ coordinates - self.regularization * self.coefficients(coordinates)
        return np.asarray(np.sum(slope * coordinates, axis=1) / self.prescribed)

    @cached_property
    def compressed(self) -> Array:
        """LᵀP K̄ P L."""
        inside = self.factor.T @ (self.centred @ self.factor)
        return np.asarray((inside + inside.T) / 2)

    def slack(self, y: Array) -> Array:
        """Z = Lᵀ(Diag(y) - P K̄ P)L + λI."""
        Z = (y[:, None] * self.factor).T @ self.factor
        Z = (Z + Z.T) / 2 - self.compressed
        add_to_diagonal(Z, self.regularization)
        return np.asarray(Z)
