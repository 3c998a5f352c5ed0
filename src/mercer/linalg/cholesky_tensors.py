"""The sweeps of :class:`mercer.linalg.cholesky_update.UpdatedCholesky` on tensors.

A row taken out leaves the rows below it as L₂₂L₂₂ᵀ + llᵀ = L₂₂(I + zzᵀ)L₂₂ᵀ with z = L₂₂⁻¹l. The Givens rotations that
mend them one after another multiply up to the factor C of I + zzᵀ, which is known in closed form: with t = 1 + the sums
of the first squares of z,

    C_kk = √(t_k/t_k₋₁),   C_ik = zᵢz_k/√(t_k₋₁t_k) for i > k

so that all of L₂₂C follows from sums along rows (method C1 of Gill, Golub, Murray and Saunders 1974): n² operations in
a handful of calls, where a loop over rotations would make n of them.
"""

from __future__ import annotations

import math
from typing import final

import numpy as np

from mercer.backends.arrays import Array, cholesky, copied, namespace, solve_triangular


@final
class TensorSweeps:
    """Forward and back substitution, a row more, a row less."""

    @staticmethod
    def append(factor: Array, sides: Array, n: int, column: Array, diagonal: float, new_sides: Array) -> float:
        """Extend the factor by a row and the sides by an entry each; returns the square of the pivot."""
        row = solve_triangular(factor[:n, :n], column) if n else column
        pivot = diagonal - float(row @ row)
        if not pivot > 0:
            return pivot
        root = math.sqrt(pivot)
        factor[n, :n], factor[n, n] = row, root
        sides[:, n] = (new_sides - sides[:, :n] @ row) / root
        return pivot

    @staticmethod
    def remove(factor: Array, sides: Array, n: int, position: int) -> None:
        """Take a row out."""
        p, below = position, slice(position + 1, n)
        before, changed = copied(factor[below, :p]), copied(sides[:, below])
        if p + 1 < n:
            xp = namespace(factor)
            old, gone = xp.tril(factor[below, below]), copied(factor[below, p])
            new = _mended(old, solve_triangular(old, gone))
            changed = solve_triangular(new, old @ changed.T + gone[:, None] * sides[:, p]).T
            factor[p : n - 1, :p], factor[p : n - 1, p : n - 1] = before, new
        sides[:, p : n - 1] = changed

    @staticmethod
    def back(factor: Array, n: int, out: Array) -> Array:
        """L⁻ᵀ applied to rows."""
        return solve_triangular(factor[:n, :n], out.T, transpose=True).T if n else out

    @staticmethod
    def forward(factor: Array, n: int, out: Array) -> Array:
        """L⁻¹ applied to rows."""
        return solve_triangular(factor[:n, :n], out.T).T if n else out

    @staticmethod
    def fresh(matrix: Array) -> Array:
        """A new factor; zeros where there is none."""
        try:
            return cholesky(matrix)
        except np.linalg.LinAlgError:
            return namespace(matrix).zeros_like(matrix)

    @staticmethod
    def solve_lower(factor: Array, right: Array) -> Array:
        """L⁻¹ applied to columns."""
        return solve_triangular(factor, right)


def _mended(old: Array, z: Array) -> Array:
    """L₂₂C: column k is C_kk times the old one, and z_k/√(t_k₋₁t_k) times the sum of the zᵢ-fold columns beyond it."""
    xp = namespace(old)
    one = xp.ones(1, dtype=z.dtype, device=z.device)
    t = xp.concat([one, 1.0 + xp.cumulative_sum(z * z)])
    sums = xp.flip(xp.cumulative_sum(xp.flip(old * z, axis=1), axis=1), axis=1)
    beyond = xp.concat([sums[:, 1:], xp.zeros_like(sums[:, :1])], axis=1)
    return old * xp.sqrt(t[1:] / t[:-1]) + beyond * (z / (xp.sqrt(t[:-1]) * xp.sqrt(t[1:])))
