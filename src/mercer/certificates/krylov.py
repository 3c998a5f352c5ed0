"""A bound on the largest eigenvalue of a symmetric map by products alone.

Lanczos from random starts bounds λmax but for a known probability (:mod:`mercer.linalg.lanczos`). Used bluntly that
takes 10⁴ products for six digits. So a space Q that holds the largest eigenvalues is taken out first. In the basis (Q,
Q⊥)

    M = | T  Rᵀ |  ≼  | T  Rᵀ |        T = QᵀMQ,   R = (I - QQᵀ)MQ,   b ≥ λmax of M on the complement,
        | R  N  |     | R  bI |

and λmax of the right-hand side is that of a matrix of order 2q, since R has q columns. It exceeds λmax(T) by no more
than ‖R‖²/(λmax(T) - b): accurate to second order as soon as b is below. Columns of Q that belong to eigenvalues below
the largest may couple more strongly (their R may be larger) without harm. The cost depends on how well the complement
is separated, not on the accuracy asked for, and Q may be enlarged by Ritz vectors on the way.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import final

import numpy as np
from scipy.linalg import LinAlgError, eigh, qr

from mercer.backends.arrays import Array, cholesky, is_tensor, namespace, solve_triangular
from mercer.linalg.lanczos import BlockLanczos, depth_for, underestimate

Multiply = Callable[[Array], Array]

_DIRECTION = 1e-3  # directions that hardly occur in the solution are no eigenvectors yet
_KNOWN = 0.1  # of those that occur more than this the product follows from that of the solution
_ROUNDS = 3
_LOOKS = 12
_GROWTH = 1.25
_MOST_VECTORS = 32
_REPORTED = 6  # vectors handed back for estimates of the slack
_SEPARATED = 5.0  # Davis–Kahan: the space is right to about a fifth where the gap is five times the residual
_PAYS = 0.8  # deflate where the rest then takes less than this part of the steps it would take without


@final
class Deflated:
    """A symmetric map together with an orthonormal Q that is taken out of it.

    Parameters
    ----------
    multiply : callable
        V ↦ M V for blocks of columns.
    Q : array of shape (n, q)
        Orthonormal columns.
    MQ : array of shape (n, q)
        Their product.
    amplification : float, default=1
        By how much the rounding errors of a product with unit vectors are enlarged in MQ.
    """

    def __init__(self, multiply: Multiply, Q: Array, MQ: Array, *, amplification: float = 1.0) -> None:
        self.multiply, self.Q, self.MQ, self.amplification = multiply, Q, MQ, amplification
        T = Q.T @ MQ
        self.inside = (T + T.T) / 2
        xp = namespace(Q)
        self.inside_top = float(xp.linalg.eigvalsh(self.inside)[-1])
        off = MQ - Q @ T  # R, of which RᵀR is all that matters
        self._coupling: Array = xp.linalg.qr(off)[1] if is_tensor(Q) else qr(off, mode="r")[0][: Q.shape[1]]

    def combine(self, outside_top: float) -> float:
        """The bound on λmax given one on the complement."""
        if outside_top == -np.inf:
            return self.inside_top
        if not np.isfinite(outside_top):
            return np.inf
        C, q = self._coupling, self.Q.shape[1]
        xp = namespace(C)
        outside = outside_top * xp.eye(C.shape[0], dtype=C.dtype, device=C.device)
        whole = _bordered(self.inside, C.T, outside)
        return max(float(xp.linalg.eigvalsh(whole)[q + C.shape[0] - 1]), outside_top)

    def allowed_outside(self, goal: float) -> float:
        """The largest b with combine(b) ≤ goal, -∞ if there is none: goal - b ≥ λmax((goal I - T)⁻¹RᵀR)."""
        inside, C = self.inside, self._coupling
        room = goal * namespace(inside).eye(inside.shape[0], dtype=inside.dtype, device=inside.device) - inside
        try:
            cost = _largest_ratio(C.T @ C, room)
        except LinAlgError:  # goal I - T is not positive definite
            return -np.inf
        return float(goal - max(cost, 0.0))

    def enlarged(self, X: Array, outer_product: Array) -> Deflated:
        """The same map with X, orthonormal and orthogonal to Q, taken out too; ``outer_product`` is (I - QQᵀ)MX."""
        MX = outer_product + self.Q @ (self.MQ.T @ X)
        join = namespace(X).concat
        Q, MQ = join([self.Q, X], axis=1), join([self.MQ, MX], axis=1)
        return Deflated(self.multiply, Q, MQ, amplification=self.amplification)

    def ritz_top(self, space: BlockLanczos) -> float:
        """The largest eigenvalue of M on Q and the Krylov space together: a lower bound of λmax(M)."""
        values, X, _ = space.ritz_pairs(_MOST_VECTORS)
        xp = namespace(X)
        within = values * xp.eye(values.shape[0], dtype=X.dtype, device=X.device)
        return float(xp.linalg.eigvalsh(_bordered(self.inside, self.MQ.T @ X, within))[-1])


def _bordered(inside: Array, across: Array, outside: Array) -> Array:
    """[[T, C], [Cᵀ, B]]."""
    join = namespace(inside).concat
    return join([join([inside, across], axis=1), join([across.T, outside], axis=1)], axis=0)


def _largest_ratio(A: Array, B: Array) -> float:
    """λmax of A v = λ B v for a positive definite B; LinAlgError where B is not."""
    if not is_tensor(A):
        return float(eigh(A, B, eigvals_only=True)[-1])
    L = cholesky(B)
    half = solve_triangular(L, A)
    return float(namespace(A).linalg.eigvalsh(solve_triangular(L, half.T))[-1])


def deflate(multiply: Multiply, directions: Array, product: Array | None = None) -> Deflated:
    """Take out of M the space that the columns of ``directions`` span, but for what hardly occurs in it.

    ``product`` is M times the directions where that is at hand: products with the directions that occur strongly follow
    from it, the others are computed.
    """
    xp = namespace(directions)
    U, sizes, Vt = xp.linalg.svd(directions, full_matrices=False)
    kept = int((sizes > _DIRECTION * sizes[0]).sum())
    known = 0 if product is None else int((sizes > _KNOWN * sizes[0]).sum())
    parts = []
    if product is not None and known:
        parts.append(product @ (Vt[:known].T / sizes[:known]))
    if known < kept:
        parts.append(multiply(U[:, known:kept]))
    amplification = float(sizes[0] / sizes[known - 1]) if known else 1.0
    return Deflated(multiply, U[:, :kept], xp.concat(parts, axis=1), amplification=amplification)


def bound_by_lanczos(
    deflated: Deflated,
    *,
    lift: float,
    failure_probability: float,
    rng: np.random.Generator,
    goal: float | None = None,
    resolution: float = 1e-9,
    block: int = 1,
    most_columns: int | None = None,
) -> tuple[float, Deflated]:
    """A number that λmax does not exceed but for the stated probability.

    Parameters
    ----------
    deflated : Deflated
        The map and what is known of it.
    lift : float
        A number t ≥ 0 with M + tI ≽ 0.
    failure_probability : float
        Of all looks in all rounds together.
    rng : numpy.random.Generator
        Starting blocks, fresh in every round and so independent of Q.
    goal : float, optional
        Stop once the bound is at most this; left out, or out of reach: once it is about as good as it can get.
    resolution : float, default=1e-9
        A difference that does not matter.
    block : int, default=1
        Columns of the starting block.
    most_columns : int, optional
        Columns of a Krylov space at most, all of which are kept; the first look is taken in any case.

    Returns
    -------
    bound : float
        λmax(M) ≤ bound.
    deflated : Deflated
        The map with the leading Ritz vectors found taken out as well.

    Notes
    -----
    A round looks at depths fixed beforehand. At each look the number of steps to come is compared with that of a new
    round after some Ritz vectors have been taken out, and the cheaper of the two is chosen.
    """
    best, end = np.inf, _ROUNDS - 1
    for number in range(_ROUNDS):
        share = failure_probability / _ROUNDS / _LOOKS
        n, q = deflated.Q.shape
        if n == q:
            return _safely(deflated.inside_top), deflated
        space = BlockLanczos(deflated.multiply, deflated.Q, rng, block=block)
        depths = _depths(n - q, share, block)
        if most_columns is not None:
            depths = [depth for depth in depths if depth * block <= most_columns] or depths[:1]
        for depth in depths:
            space.extend(depth)
            outside = _outside(space, depths[-1] if space.closed else depth, share, lift, block)
            best = min(best, deflated.combine(outside))
            target = _target(deflated.ritz_top(space), deflated, goal, resolution)
            if best <= target or space.closed:
                return _safely(best), _with_ritz_vectors(deflated, space, _REPORTED)
            count = _worth_deflating(deflated, space, target, lift, share, block) if number < end else 0
            if count:
                break
        else:
            break
        deflated = _with_ritz_vectors(deflated, space, count)
    if not np.isfinite(best):
        raise ArithmeticError("The Lanczos bound needs more steps than it may take.")
    return _safely(best), _with_ritz_vectors(deflated, space, _REPORTED)


def _safely(bound: float) -> float:
    """The bound with the roundings of small eigenproblems and of orthogonality."""
    return float(bound + 1e-13 * abs(bound) + 1e-15)


def _depths(dimension: int, share: float, block: int) -> list[int]:
    """When to look: first where the Ritz value is known to a factor of two, then at growing distances."""
    first = depth_for(0.5, dimension, share, block)
    return [int(np.ceil(first * _GROWTH**j)) for j in range(_LOOKS)]


def _outside(space: BlockLanczos, depth: int, share: float, lift: float, block: int) -> float:
    """The bound on the complement; an invariant space is the Krylov space of any depth."""
    n, q = space.basis.shape
    ritz = float(space.ritz_values()[0])
    if space.n_columns == n - q:
        return ritz
    epsilon = underestimate(depth, n - q, share, block)
    return (ritz + lift) / (1 - epsilon) - lift if epsilon < 1 else np.inf


def _target(reached: float, deflated: Deflated, goal: float | None, resolution: float) -> float:
    """What to aim at. ``reached`` is a value of the spectrum: a goal below it cannot be met, and then less is asked."""
    excess = max(reached - deflated.inside_top, 0.0)
    if goal is not None and reached < goal:
        return goal
    return reached + resolution + (0.1 if goal is None else 1.0) * excess


def _worth_deflating(
    deflated: Deflated, space: BlockLanczos, target: float, lift: float, share: float, block: int
) -> int:
    """How many Ritz vectors to take out before starting afresh; 0 where going on costs no more."""
    n, q = space.basis.shape
    values, errors = space.ritz_values(), space.residual_norms()
    above = _from_here_on(values + errors)  # what is left may still rise so far

    def steps(allowed: float, ritz: float) -> float:
        epsilon = 1 - (ritz + lift) / (allowed + lift) if allowed + lift > 0 else -1.0
        return depth_for(epsilon, n - q, share, block) if epsilon > 0 else np.inf

    least = _PAYS * (steps(deflated.allowed_outside(target), float(above[0])) - space.depth)
    best = 0
    for count in range(1, min(_MOST_VECTORS, values.shape[0] - 1, n - q - 1) + 1):
        if float(values[count - 1] - above[count]) < _SEPARATED * float(errors[:count] @ errors[:count]) ** 0.5:
            continue  # not yet the eigenvectors: what they leave behind could be as large as they are
        allowed = _with_ritz_vectors(deflated, space, count).allowed_outside(target)
        cost = steps(allowed, float(above[count]))
        if cost < least:
            best, least = count, cost
    return best


def _from_here_on(values: Array) -> Array:
    """The largest of each value and those after it."""
    xp = namespace(values)
    backwards = xp.flip(values, axis=0)
    rising = backwards.cummax(0).values if is_tensor(values) else np.maximum.accumulate(backwards)
    return xp.flip(rising, axis=0)


def _with_ritz_vectors(deflated: Deflated, space: BlockLanczos, count: int) -> Deflated:
    _, X, product = space.ritz_pairs(count)
    return deflated.enlarged(X, product)
