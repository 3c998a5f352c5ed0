"""Bounds on the largest eigenvalue of M from a partial Cholesky factor.

M = DAD - (Dv)(Dv)ᵀ with A ≽ 0 and D diagonal. A partial Cholesky factorisation A = FFᵀ + E leaves E ≽ 0 with a known
diagonal. With P the projector on the complement of Q and N = P(DFFᵀD - (Dv)(Dv)ᵀ)P,

    λmax(PMP) ≤ λmax(N) + ‖P DED P‖.

*The first term* is exact, from an eigenproblem of order k, the rank: with C = PDF and w = PDv,

    λ ≥ λmax(CCᵀ - wwᵀ)   ⟺   λ ≥ g(λ) = λmax(CᵀC - (Cᵀw)(Cᵀw)ᵀ/(λ + ‖w‖²))        for λ > 0,

by Schur complements. g grows with λ, so whenever g(λ) ≤ λ the number g(λ) is a bound too.

*The second term* is at most trace(DED): no chance involved. That is a poor bound when the rank is modest, so Lanczos
from random starts on the psd map P DED P, whose products are those of M less those of the factor, gives a sharper one
that holds up to a stated probability; there a relative accuracy of one half is enough.
"""

from __future__ import annotations

from typing import final

import numpy as np

from mercer.backends.arrays import Array, cholesky, copied, namespace, solve_triangular
from mercer.backends.rounding import TINY, UNIT
from mercer.certificates.factorisation import prove_below
from mercer.certificates.krylov import Deflated
from mercer.linalg.eigen import largest_of
from mercer.linalg.lanczos import BlockLanczos, Looks, RandomStarts
from mercer.linalg.tall import inner_products, tall_product, weighted_gram

_LOOKS = 8
_GROWTH = 1.3
_MOST_VECTORS = 32
_DENSE_UP_TO = 384  # columns of a factor up to which its eigenvalues are found by dense decompositions
_LANCZOS_BLOCK, _LANCZOS_DEPTH = 8, 16


@final
class StandIn:
    """N = P(DFFᵀD - (Dv)(Dv)ᵀ)P, P the projector on the complement of Q, with a bound on what F leaves out.

    F is used as it is: neither DF nor PDF is ever formed.

    Parameters
    ----------
    factor : array of shape (n, k)
        F.
    scaling : array of shape (n,)
        The diagonal of D.
    leftover : array of shape (n,)
        Bounds on the diagonal of DED.
    vector : array of shape (n,)
        Dv; zero if nothing was removed.
    deflated : Deflated
        M and Q.
    factor_rounding : float
        How far the roundings of F and of the entries of A may take the eigenvalues of DED below zero, or its trace
        above what the leftover says.
    """

    def __init__(
        self,
        factor: Array,
        scaling: Array,
        leftover: Array,
        vector: Array,
        deflated: Deflated,
        factor_rounding: float = 0.0,
    ) -> None:
        self.deflated = deflated
        self.rank = factor.shape[1]
        self._factor, self._scaling, self._vector = factor, scaling, vector
        whole = self._whole_gram()
        self._across = self._inner(deflated.Q).T
        self._gram = whole - self._across.T @ self._across  # of PD[F, v]
        trace = float(whole[:-1, :-1].diagonal().sum() + leftover.sum())
        self.factor_rounding = factor_rounding
        self.leftover = float(leftover.sum()) + factor_rounding
        size = trace + float(vector @ vector)
        self.rounding = 4 * (factor.shape[0] + self.rank) * UNIT * size
        self._values, self._mix = _leading(self._gram) if self.rank <= _DENSE_UP_TO else _leading_of_many(self._gram)

    def _whole_gram(self) -> Array:
        """The inner products of the columns of D[F, v]."""
        xp, order = namespace(self._factor), self.rank + 1
        gram = xp.empty((order, order), dtype=xp.float64, device=self._factor.device)
        gram[:-1, :-1] = weighted_gram(self._factor, self._scaling)
        gram[:, -1] = gram[-1] = self._inner(self._vector[:, None])[:, 0]
        return gram

    def _combine(self, mix: Array) -> Array:
        """PD[F, v] times some mixtures of its columns."""
        whole = self._scaling[:, None] * tall_product(self._factor, mix[:-1]) + self._vector[:, None] * mix[-1]
        return whole - self.deflated.Q @ (self._across @ mix)

    def _inner(self, X: Array) -> Array:
        """Inner products of the columns of PD[F, v] with those of X, which lie in the complement of Q."""
        inner = inner_products(self._factor, self._scaling[:, None] * X)
        return namespace(X).concat([inner, (self._vector @ X)[None, :]], axis=0)

    def vectors(self, count: int) -> Array:
        """Orthonormal vectors near the leading eigenvectors of N, orthogonal to Q."""
        X = self._combine(self._mix[:, :count])
        Q = self.deflated.Q
        return namespace(X).linalg.qr(X - Q @ (Q.T @ X))[0]

    def next_value(self, count: int) -> float:
        """About the largest eigenvalue of N once ``count`` vectors are taken out."""
        return float(self._values[count]) if count < self.n_vectors else 0.0

    @property
    def n_vectors(self) -> int:
        """How many vectors can be taken out."""
        return int(self._values.shape[0])

    def bound(self, X: Array | None = None) -> float:
        """A number that λmax(N) on the complement of Q, and of X, does not exceed; zero if that is larger."""
        gram = self._gram
        if X is not None:
            across = self._inner(X)
            gram = gram - across @ across.T
        value = self.next_value(0 if X is None else X.shape[1])
        square = max(float(gram[-1, -1]), 0.0)
        step = max(1e-6 * abs(value), self.rounding, TINY)
        value = max(value, 0.0)
        for _ in range(60):
            value += step
            inner = gram[:-1, -1]
            reduced = gram[:-1, :-1] - inner[:, None] * inner / (value + square)
            proved = _proved(reduced, value)
            if proved is not None:
                return max(proved, 0.0) + self.rounding
            step *= 4
        raise ArithmeticError("No bound of the stand-in was found: its factor is not finite.")

    def multiply_leftover(self, V: Array) -> Array:
        """P DED V for columns V in the complement of Q, up to a part in Q."""
        mix = copied(self._inner(V))
        mix[-1] *= -1
        return self.deflated.multiply(V) - self._combine(mix)


def _leading(gram: Array) -> tuple[Array, Array]:
    """Estimates of the leading eigenvalues of N, falling, and of its eigenvectors in terms of PD[F, v]."""
    xp = namespace(gram)
    sizes, U = xp.linalg.eigh(gram)
    kept = sizes > 1e-12 * max(float(sizes[-1]), TINY)
    basis = U[:, kept] / xp.sqrt(sizes[kept])  # PD[F, v] basis has orthonormal columns
    inner = basis.T @ gram
    N = inner[:, :-1] @ inner[:, :-1].T - inner[:, -1:] * inner[:, -1]
    values, X = xp.linalg.eigh((N + N.T) / 2)
    return xp.flip(values[-_MOST_VECTORS:], axis=0), basis @ xp.flip(X[:, -_MOST_VECTORS:], axis=1)


def _leading_of_many(gram: Array) -> tuple[Array, Array]:
    """The same for a factor of many columns, by Lanczos, from below.

    With LLᵀ the Gram matrix of PD[F, v], that times L⁻ᵀ has orthonormal columns, and there N is Lᵀ Diag(1, …, 1, -1) L.
    """
    xp, k = namespace(gram), gram.shape[0]
    ridge = 1e-14 * float(gram.diagonal().sum())
    identity = xp.eye(k, dtype=gram.dtype, device=gram.device)
    while True:
        try:
            L = cholesky(gram + ridge * identity)
            break
        except np.linalg.LinAlgError:
            ridge *= 10

    def multiply(V: Array) -> Array:
        W = L @ V
        W[-1] *= -1
        return L.T @ W

    space = BlockLanczos(multiply, identity[:, :0], np.random.default_rng(0), block=_LANCZOS_BLOCK)
    space.extend(_LANCZOS_DEPTH)
    values, X, _ = space.ritz_pairs(_MOST_VECTORS)
    return values, solve_triangular(L, X, lower=True, transpose=True)


def _proved(symmetric: Array, value: float) -> float | None:
    """A number that λmax does not exceed, where that is at most about the value given; None where it is more.

    Of a large matrix a Cholesky factor of value·I - S shows it (:mod:`mercer.certificates.factorisation`).
    """
    if symmetric.shape[0] == 0:
        return 0.0
    symmetric = (symmetric + symmetric.T) / 2
    if symmetric.shape[0] > _DENSE_UP_TO:
        proof = prove_below(symmetric, value)
        return None if proof is None else value + proof[0]
    largest = largest_of(symmetric)
    return largest if largest <= value else None


# --- the two bounds ---------------------------------------------------------------------------------------------


def bound_by_trace(stand_in: StandIn, *, goal: float) -> tuple[float, Deflated]:
    """λmax(M) by λmax(N) + trace(DED): a proof without chance, and the map with what was taken out of it."""
    return _bound_given_leftover(stand_in, stand_in.leftover, goal)


def bound_by_leftover_lanczos(
    stand_in: StandIn, starts: RandomStarts, *, goal: float, patient: bool = True
) -> tuple[float, Deflated]:
    """λmax(M) by λmax(N) + ‖P DED P‖, the latter by block Lanczos: wrong with the stated probability at most.

    The Krylov space is looked at until the goal is met or cannot be met: the Ritz value is a lower bound of the norm.
    If not ``patient``, a goal that cannot be met ends the attempt even before the first look, with the bound infinity.
    """
    deflated = stand_in.deflated
    if deflated.is_everything:
        return deflated.inside_top, deflated
    looks = Looks(stand_in.multiply_leftover, deflated.Q, starts, count=_LOOKS, growth=_GROWTH)
    best: tuple[float, Deflated] = (np.inf, deflated)
    for depth in () if patient else range(1, looks.first):
        looks.space.extend(depth)
        if _number_to_take_out(stand_in, max(float(looks.space.ritz_values()[0]), 0.0)) is None:
            return best
    lift = stand_in.factor_rounding
    for value in looks:
        ritz = max(value, 0.0)
        leftover = (ritz + lift) / (1 - looks.underestimate()) + stand_in.rounding + lift
        found = _bound_given_leftover(stand_in, min(leftover, stand_in.leftover), goal)
        best = min(best, found, key=lambda pair: pair[0])
        if best[0] <= goal or looks.space.closed or _number_to_take_out(stand_in, ritz) is None:
            break
    return best


def _bound_given_leftover(stand_in: StandIn, leftover: float, goal: float) -> tuple[float, Deflated]:
    """The bound for ‖P DED P‖ ≤ leftover; where it misses the goal, again with vectors of the stand-in taken out."""
    deflated = stand_in.deflated
    if deflated.is_everything:
        return deflated.inside_top, deflated
    best = deflated.combine(stand_in.bound() + leftover)
    count = _number_to_take_out(stand_in, leftover)
    if best <= goal or not count or max(stand_in.next_value(0), deflated.inside_top) > goal:
        return best, deflated
    X = stand_in.vectors(count)
    larger = deflated.enlarged(X)
    return min(best, larger.combine(stand_in.bound(X) + leftover)), larger


def _number_to_take_out(stand_in: StandIn, leftover: float) -> int | None:
    """How many vectors of the stand-in must go so that the rest lies well below the largest eigenvalue; None: never."""
    for count in range(stand_in.n_vectors + 1):
        if stand_in.next_value(count) + 2 * leftover < stand_in.deflated.inside_top:
            return count
    return None
