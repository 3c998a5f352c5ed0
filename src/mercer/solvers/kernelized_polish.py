"""Newton steps on the optimality conditions of the kernelised programme at a fixed rank: the last digits of Ξ.

An interior point is as good as its gap, and its coordinates as the root of that. With Ξ = LN the conditions are

    Z(y) N = 0,        ‖ξᵢ‖² = dᵢ,        Z(y) = Lᵀ(Diag(y) - PK̄P)L + λI,

and a step solves their linearisation, (Z + εI)δ + LᵀDiag(δy)Ξ = -ZN and 2ξᵢ·(Lδ)ᵢ = dᵢ - ‖ξᵢ‖²: ε keeps rotations of Ξ,
which change nothing, from being steps. Eliminating δ leaves the matrix LZ⁻¹Lᵀ ∘ ΞΞᵀ of order m for δy.
"""

from __future__ import annotations

import numpy as np
from scipy.linalg import solve_triangular

from mercer.backends.arrays import Array, add_to_diagonal
from mercer.problems.kernelized import KernelizedProgramme
from mercer.solvers.cone import damped_system, inverse_of, lower_factor

_STEPS = 6
_FALLS = 0.5  # a step that leaves more of the residual than this is rounding's
_PROXIMAL = 1e-7  # of λ


def polished(programme: KernelizedProgramme, coordinates: Array, y: Array) -> tuple[Array, Array]:
    """Coordinates Ξ and dual variables y nearer to the optimality conditions, or those given where no step helps.

    Cost: a factorisation, an inverse and four products of order m a step, at most six of them.
    """
    best = coordinates, y
    least = _residual(programme, coordinates, y)
    for _ in range(_STEPS):
        moved = _step(programme, *best)
        residual = np.inf if moved is None else _residual(programme, *moved)
        if moved is None or not residual < least:
            break
        fallen, best, least = residual / least, moved, residual
        if fallen > _FALLS:
            break
    return best


def _residual(programme: KernelizedProgramme, coordinates: Array, y: Array) -> float:
    """The size of ZN beside λN, for rows of the prescribed lengths."""
    N = solve_triangular(programme.factor, coordinates, lower=True)
    return float(np.linalg.norm(programme.slack(y) @ N) / (programme.regularization * np.linalg.norm(N)))


def _step(programme: KernelizedProgramme, rows: Array, y: Array) -> tuple[Array, Array] | None:
    L, d = programme.factor, programme.prescribed
    N, Z = solve_triangular(L, rows, lower=True), programme.slack(y)
    pull = Z @ N
    add_to_diagonal(Z, _PROXIMAL * programme.regularization)
    factor = lower_factor(Z)
    if factor is None:
        return None
    inverse = inverse_of(factor)
    left = L @ inverse
    system = damped_system((left @ L.T) * (rows @ rows.T))
    if system is None:
        return None
    towards = np.sum(rows * (left @ pull), axis=1)
    dy = system.solve(-towards - (d - np.sum(rows**2, axis=1)) / 2)
    moved = N - inverse @ (pull + L.T @ (dy[:, None] * rows))
    return programme.rescaled(L @ moved), y + dy
