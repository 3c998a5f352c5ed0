"""A bound on the largest eigenvalue of a symmetric map by products alone.

Lanczos from random starts bounds λmax up to a known probability (:mod:`mercer.linalg.lanczos`). Used directly that
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

from typing import final

import numpy as np
from scipy.linalg import LinAlgError, eigh, qr

from mercer.backends.arrays import Array, cholesky, is_tensor, namespace, solve_triangular
from mercer.linalg.lanczos import BlockLanczos, Looks, Multiply, RandomStarts

_DIRECTION = 1e-3  # directions that hardly occur in the solution are no eigenvectors yet
_KNOWN = 0.1  # of those that occur more than this the product follows from that of the solution
_ROUNDS = 3
_LOOKS = 12
_GROWTH = 1.25
_MOST_VECTORS = 32
_REPORTED = 6  # vectors handed back for estimates of the slack
SEPARATED = 5.0  # Davis–Kahan: the space is right to about a fifth where the gap is five times the residual
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

    @property
    def coupling_norm(self) -> float:
        """‖R‖ in the Frobenius norm."""
        return float(namespace(self.Q).linalg.matrix_norm(self._coupling))

    @property
    def is_everything(self) -> bool:
        """Whether Q spans the whole space, so that nothing is left to bound."""
        return bool(self.Q.shape[0] == self.Q.shape[1])

    def combine(self, outside_top: float) -> float:
        """The bound on λmax given one on the complement."""
        return float(self.combined_spectrum(outside_top)[0])

    def combined_spectrum(self, outside_top: float) -> Array:
        """In falling order, numbers that the largest eigenvalues do not exceed, one after the other; 2q of them or q.

        The map is below the bordered matrix, whose eigenvalues are those of the matrix of order 2q and the bound on the
        complement, as often as it takes.
        """
        C, xp = self._coupling, namespace(self._coupling)
        if outside_top == -np.inf:
            return xp.flip(xp.linalg.eigvalsh(self.inside), axis=0)
        if not np.isfinite(outside_top):
            return xp.full_like(self.inside[0], np.inf)
        outside = outside_top * xp.eye(C.shape[0], dtype=C.dtype, device=C.device)
        whole = xp.linalg.eigvalsh(_bordered(self.inside, C.T, outside))
        return xp.clip(xp.flip(whole, axis=0), outside_top, None)

    def allowed_outside(self, goal: float) -> float:
        """The largest b with combine(b) ≤ goal, -∞ if there is none: goal - b ≥ λmax((goal I - T)⁻¹RᵀR)."""
        inside, C = self.inside, self._coupling
        room = goal * namespace(inside).eye(inside.shape[0], dtype=inside.dtype, device=inside.device) - inside
        try:
            cost = _largest_ratio(C.T @ C, room)
        except LinAlgError:  # goal I - T is not positive definite
            return -np.inf
        return float(goal - max(cost, 0.0))

    def enlarged(self, X: Array, outer_product: Array | None = None) -> Deflated:
        """The same map with X, orthonormal and orthogonal to Q, taken out too; ``outer_product`` is (I - QQᵀ)MX."""
        if outer_product is None:
            product = self.multiply(X)
            outer_product = product - self.Q @ (self.Q.T @ product)
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
    """Take out of M the space that the columns of ``directions`` span, except for what hardly occurs in it.

    ``product`` is M times the directions where that is known: products with the directions that occur strongly follow
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
    deflated: Deflated, starts: RandomStarts, *, lift: float, goal: float | None = None, resolution: float = 1e-9
) -> tuple[float, Deflated]:
    """A number that λmax does not exceed, except with the stated probability.

    Parameters
    ----------
    deflated : Deflated
        The map and what is known of it.
    starts : RandomStarts
        Starting blocks, fresh in every round and so independent of Q, and the probability of all rounds together.
    lift : float
        A number t ≥ 0 with M + tI ≽ 0.
    goal : float, optional
        Stop once the bound is at most this; left out, or out of reach: once it is about as good as it can get.
    resolution : float, default=1e-9
        A difference that does not matter.

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
    best, starts = np.inf, starts.share(_ROUNDS)
    for rounds_left in reversed(range(_ROUNDS)):
        if deflated.is_everything:
            return safely(deflated.inside_top), deflated
        attempt = _Round(deflated, starts, lift)
        for ritz in attempt.looks:
            best = min(best, deflated.combine(attempt.outside(ritz)))
            target = attempt.target(goal, resolution)
            if best <= target or attempt.space.closed:
                return safely(best), attempt.deflated_further(_REPORTED)
            count = attempt.worth_taking_out(target) if rounds_left else 0
            if count:
                break
        else:
            break
        deflated = attempt.deflated_further(count)
    if not np.isfinite(best):
        raise ArithmeticError("The Lanczos bound needs more steps than it may take.")
    return safely(best), attempt.deflated_further(_REPORTED)


def safely(bound: float) -> float:
    """The bound with the roundings of small eigenproblems and of orthogonality."""
    return float(bound + 1e-13 * abs(bound) + 1e-15)


@final
class _Round:
    """One Krylov space on the complement of what is taken out, M + lift·I being psd."""

    def __init__(self, deflated: Deflated, starts: RandomStarts, lift: float) -> None:
        self.deflated, self.lift = deflated, lift
        self.looks = Looks(deflated.multiply, deflated.Q, starts, count=_LOOKS, growth=_GROWTH)
        self.space = self.looks.space

    def outside(self, ritz: float) -> float:
        """The bound on the complement."""
        if self.space.n_columns == self.looks.dimension:
            return ritz
        epsilon = self.looks.underestimate()
        return (ritz + self.lift) / (1 - epsilon) - self.lift if epsilon < 1 else np.inf

    def target(self, goal: float | None, resolution: float) -> float:
        """What to aim at: the goal, or a little above what the spectrum is known to reach if that is above the goal."""
        reached = self.deflated.ritz_top(self.space)
        excess = max(reached - self.deflated.inside_top, 0.0)
        if goal is not None and reached < goal:
            return goal
        return reached + resolution + (0.1 if goal is None else 1.0) * excess

    def worth_taking_out(self, target: float) -> int:
        """How many Ritz vectors to take out before a new start; 0 where going on costs no more."""
        values, errors = self.space.ritz_values(), self.space.residual_norms()
        above = _from_here_on(values + errors)  # what is left may still rise so far
        least = _PAYS * (self._steps(self.deflated.allowed_outside(target), float(above[0])) - self.space.depth)
        best = 0
        for count in range(1, min(_MOST_VECTORS, values.shape[0] - 1, self.looks.dimension - 1) + 1):
            if float(values[count - 1] - above[count]) < SEPARATED * float(errors[:count] @ errors[:count]) ** 0.5:
                continue  # not yet the eigenvectors: what they leave behind could be as large as they are
            cost = self._steps(self.deflated_further(count).allowed_outside(target), float(above[count]))
            if cost < least:
                best, least = count, cost
        return best

    def _steps(self, allowed: float, ritz: float) -> float:
        """Steps until the bound on the complement is as low as allowed, for a Ritz value that comes to be this."""
        epsilon = 1 - (ritz + self.lift) / (allowed + self.lift) if allowed + self.lift > 0 else -1.0
        return self.looks.depth_for(epsilon) if epsilon > 0 else np.inf

    def deflated_further(self, count: int) -> Deflated:
        """The map with so many leading Ritz vectors taken out as well."""
        _, X, product = self.space.ritz_pairs(count)
        return self.deflated.enlarged(X, product)


def _from_here_on(values: Array) -> Array:
    """The largest of each value and those after it."""
    xp = namespace(values)
    backwards = xp.flip(values, axis=0)
    rising = backwards.cummax(0).values if is_tensor(values) else np.maximum.accumulate(backwards)
    return xp.flip(rising, axis=0)
