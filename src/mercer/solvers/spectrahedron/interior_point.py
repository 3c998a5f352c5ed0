"""A primal-dual interior-point method for likelihoods on the spectrahedron {C ≽ 0, Tr C = 1}.

The objective is f(C) = ⟨R, C⟩ - Σ_i a_i log G_iᵀ C G_i. With a slack Z ≽ 0 of ∇f(C) - θI, C Z = 0 at an optimum, every
step solves the equations of C Z = μI linearised in the scaling of Nesterov and Todd, P C P = Z:

    H(D) + P D P = μC⁻¹ - ∇f(C) + νI,   Tr D = 0,   H(D) = Σ_i (a_i/p_i²) G_i G_iᵀ ⟨G_i G_iᵀ, D⟩.

D is a direction of descent of the barrier function f(C) - μ log det C, whatever the logarithms do: steps are as long as
keeps C and Z inside their cones and makes that function fall. Since the inverse of D ↦ P D P is D ↦ V D V, V = P⁻¹, the
equations are ones of order n with the matrix (G V Gᵀ)∘², squared entry by entry, or of order s(s+1)/2, whichever is
less. Of many points those of a part precondition conjugate gradients.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from mercer.backends.arrays import Array, cholesky, cholesky_factor, cholesky_solve, eigh, eigvalsh, namespace
from mercer.backends.chunks import PANEL_ENTRIES, row_chunks, rows_within
from mercer.backends.rounding import EPS
from mercer.backends.symmetric_entries import SymmetricEntries

LARGEST_SYSTEM = 2500  # equations of a step that it is reasonable to solve
_MANY_ROWS, _FEW_ENTRIES = 8000, 150  # beyond both, the equations of a part of the points are factored
_PART_ROWS, _SHARE = 2000, 20  # points of that part at least, and one in so many of all
_EQUATIONS, _MOST_PRODUCTS = 1e-3, 30  # how well the equations of all are then solved
_TO_BOUNDARY = 0.98
_MARGIN = 0.1
_SUFFICIENT = 1e-4
_HALVINGS = 30
_MOST_STEPS = 100
_STEPS_BACK, _PROGRESS = 4, 0.5
Solve = Callable[[Array], Array]


@dataclass(frozen=True)
class Likelihood:
    """⟨R, C⟩ - Σ_i a_i log G_iᵀ C G_i for rows G of shape (n, s), positive shares a and R symmetric of order s."""

    rows: Array
    shares: Array
    linear: Array

    def values_of(self, C: Array) -> Array:
        """G_iᵀ C G_i."""
        return namespace(C).sum((self.rows @ C) * self.rows, axis=1)

    def gradient(self, values: Array) -> Array:
        """R - Σ (a_i/p_i) G_i G_iᵀ, given the values p."""
        gamma = (self.rows.T * (self.shares / values)) @ self.rows
        return self.linear - (gamma + gamma.T) / 2

    def barrier(self, C: Array, mu: float) -> float:
        """The objective less μ log det C; infinite outside the cone."""
        xp = namespace(C)
        try:
            inside = 2.0 * float(xp.sum(xp.log(xp.linalg.diagonal(cholesky(C)))))
        except np.linalg.LinAlgError:
            return math.inf
        values = self.values_of(C)
        if not bool((values > 0).all()):
            return math.inf
        return float((self.linear * C).sum()) - float(self.shares @ xp.log(values)) - mu * inside


def minimise_likelihood(objective: Likelihood, *, tol: float) -> Array:
    """Minimise ⟨R, C⟩ - Σ_i a_i log G_iᵀ C G_i over C ≽ 0 of trace one.

    Returns
    -------
    array of shape (s, s)
        C, positive definite, of trace one to rounding: no other is better by more than tol, or by what rounding leaves.

    Notes
    -----
    Some twenty steps of n²s + n³/3 operations, or of n q² + q³/3 with q = s(s+1)/2; beyond 8 000 points of some 60 n s²
    and a twentieth of n q². Memory: the square of the lesser of n and q, which is to be 2 500 at most.
    """
    s, xp = objective.linear.shape[0], namespace(objective.rows)
    C = xp.eye(s, dtype=objective.rows.dtype, device=objective.rows.device) / s
    if s == 1:
        return C
    Z = _slack(objective.gradient(objective.values_of(C)))
    best, gaps = C, [_gap(objective, C)]
    while gaps[-1] > tol and len(gaps) < _MOST_STEPS and _moves(gaps):
        try:
            moved = _step(objective, C, Z)
        except np.linalg.LinAlgError:  # C or Z has reached the boundary to rounding
            break
        if moved is None:
            break
        C, Z = moved
        gaps.append(_gap(objective, C))
        best = C if gaps[-1] <= min(gaps) else best
    return best


def _gap(objective: Likelihood, C: Array) -> float:
    """The oracle's, ⟨∇f, C⟩ - λ_min(∇f)."""
    G = objective.gradient(objective.values_of(C))
    return max(float((G * C).sum()) - float(eigvalsh(G, 0, 1)[0]), 0.0)


def _moves(gaps: list[float]) -> bool:
    """Whether the last steps have brought the gap down by a good part."""
    return len(gaps) <= _STEPS_BACK or min(gaps[-_STEPS_BACK:]) < _PROGRESS * min(gaps[:-_STEPS_BACK])


def _slack(G: Array) -> Array:
    """G - θI for a θ below its least eigenvalue."""
    xp, levels = namespace(G), eigvalsh(G)
    room = _MARGIN * max(float(levels[-1] - levels[0]), EPS)
    return G - (float(levels[0]) - room) * xp.eye(G.shape[0], dtype=G.dtype, device=G.device)


class _Scaling(NamedTuple):
    """P and V of Nesterov and Todd, and C⁻¹."""

    P: Array
    V: Array
    inverse: Array


def _scaling(C: Array, Z: Array) -> _Scaling:
    xp, L = namespace(C), cholesky(C)
    inverse = xp.linalg.inv(L)
    values, vectors = eigh(L.T @ Z @ L)
    if not float(values[0]) > 0:
        raise np.linalg.LinAlgError("Z is not positive definite.")
    roots = xp.sqrt(values)
    P = inverse.T @ (vectors * roots) @ vectors.T @ inverse
    V = L @ (vectors / roots) @ vectors.T @ L.T
    return _Scaling((P + P.T) / 2, (V + V.T) / 2, inverse.T @ inverse)


def _step(objective: Likelihood, C: Array, Z: Array) -> tuple[Array, Array] | None:
    """C and Z after one predictor and one corrector; None where no step makes the barrier function fall."""
    s, xp = C.shape[0], namespace(C)
    identity = xp.eye(s, dtype=C.dtype, device=C.device)
    residual = objective.values_of(C)
    G, scaling = objective.gradient(residual), _scaling(C, Z)
    solved = _solver(objective, residual, scaling)
    unit = solved(identity)
    mu = float((C * Z).sum()) / s

    def direction(target: float) -> tuple[Array, Array]:
        """dC and dZ towards C Z = target · I, along Tr dC = 0."""
        free = solved(target * scaling.inverse - G)
        move = free - xp.linalg.trace(free) / xp.linalg.trace(unit) * unit
        return move, target * scaling.inverse - scaling.P @ move @ scaling.P - Z

    dC, dZ = direction(0.0)
    length = min(_longest(C, dC), _longest(Z, dZ))
    ahead = max(float(((C + length * dC) * (Z + length * dZ)).sum()) / s, 0.0)
    target = mu * min(max((ahead / mu) ** 3, 1e-4), 1.0)
    dC, dZ = direction(target)
    found = _descending(objective, C, dC, target, _longest(C, dC), float(((G - target * scaling.inverse) * dC).sum()))
    if found is None:
        return None
    moved, along = C + found * dC, min(_longest(Z, dZ), found)
    moved, Z = (moved + moved.T) / 2, Z + along * dZ
    return moved / xp.linalg.trace(moved), (Z + Z.T) / 2


def _descending(objective: Likelihood, C: Array, dC: Array, mu: float, length: float, slope: float) -> float | None:
    """A step length at which the barrier function has fallen enough, to rounding; None where none has."""
    before = objective.barrier(C, mu)
    noise = 64 * EPS * (1 + abs(before))
    for _ in range(_HALVINGS):
        after = objective.barrier(C + length * dC, mu)
        if after <= before + _SUFFICIENT * length * min(slope, 0.0) + noise:
            return length
        length *= 0.5
    return None


def _longest(M: Array, dM: Array) -> float:
    """The step, at most one, that keeps M + t dM well inside the cone."""
    inverse = namespace(M).linalg.inv(cholesky(M))
    least = float(eigh(inverse @ dM @ inverse.T)[0][0])
    return 1.0 if least > -_TO_BOUNDARY else -_TO_BOUNDARY / least


def _solver(objective: Likelihood, residual: Array, scaling: _Scaling) -> Solve:
    """The inverse of D ↦ H(D) + P D P, for symmetric right-hand sides."""
    xp = namespace(residual)
    rows = objective.rows * xp.sqrt(xp.sqrt(objective.shares) / residual)[:, None]
    n, entries = rows.shape[0], rows.shape[1] * (rows.shape[1] + 1) // 2
    if n > _MANY_ROWS and entries > _FEW_ENTRIES:
        return _by_part(rows, scaling)
    return _by_points(rows, scaling) if n <= entries else _by_entries(rows, scaling)


def _by_points(rows: Array, scaling: _Scaling) -> Solve:
    """With an equation for each point: (I + (G V Gᵀ)∘²) y = ⟨G_i G_iᵀ, V M V⟩, D = V (M - Σ y_i G_i G_iᵀ) V."""
    xp, V = namespace(rows), scaling.V
    matrix = (rows @ V @ rows.T) ** 2
    i = xp.arange(rows.shape[0], device=rows.device)
    matrix[i, i] += 1.0
    factor = cholesky_factor(matrix)

    def solved(M: Array) -> Array:
        image = V @ M @ V
        y = cholesky_solve(factor, xp.sum((rows @ image) * rows, axis=1))
        out = image - V @ ((rows.T * y) @ rows) @ V
        return (out + out.T) / 2

    return solved


def _by_part(rows: Array, scaling: _Scaling) -> Solve:
    """Conjugate gradients with products over all points, on the equations of a part of them: n s² operations each.

    The part has the points with the largest entries on the diagonal of the system by points, and of the others some,
    evenly spaced, that count for all.
    """
    xp, n = namespace(rows), rows.shape[0]
    order, size = xp.argsort(-xp.sum((rows @ scaling.V) * rows, axis=1)), max(_PART_ROWS, n // _SHARE)
    heavy, others = order[: size // 4], xp.sort(order[size // 4 :])
    every = -(-others.shape[0] // size)
    stretched = rows[others[::every]] * float(others.shape[0] / others[::every].shape[0]) ** 0.25
    nearly = _by_entries(xp.concat([rows[heavy], stretched]), scaling)

    def product(D: Array) -> Array:
        image = (rows.T * xp.sum((rows @ D) * rows, axis=1)) @ rows + scaling.P @ D @ scaling.P
        return (image + image.T) / 2

    def solved(M: Array) -> Array:
        rest = (M + M.T) / 2
        direction, D = nearly(rest), xp.zeros_like(rest)
        along = float((rest * direction).sum())
        enough = _EQUATIONS**2 * along
        for _ in range(_MOST_PRODUCTS):
            image = product(direction)
            length = along / float((direction * image).sum())
            D, rest = D + length * direction, rest - length * image
            ready = nearly(rest)
            ahead = float((rest * ready).sum())
            if ahead <= enough:
                break
            direction, along = ready + (ahead / along) * direction, ahead
        return D

    return solved


def _by_entries(rows: Array, scaling: _Scaling) -> Solve:
    """With an equation for each entry of D."""
    entries = SymmetricEntries(rows.shape[1], rows)
    matrix = entries.congruence(scaling.P)
    for part in row_chunks(rows.shape[0], rows_within(PANEL_ENTRIES, entries.rows.shape[0])):
        products = rows[part][:, entries.rows] * rows[part][:, entries.cols] * entries.scale
        matrix += products.T @ products
    factor = cholesky_factor(matrix)

    def solved(M: Array) -> Array:
        return entries.unpack(cholesky_solve(factor, entries.pack(M)))

    return solved
