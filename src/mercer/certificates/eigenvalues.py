"""What is proved of the leading eigenpairs of a symmetric map M, found by whatever method.

**Every pair.** For any vector v and number θ there is an eigenvalue of M within ‖Mv - θv‖/‖v‖ of θ. The residual is
computed with one product, and raised by what rounding may have done to that product and to the entries of M.

**None missed.** With Q orthonormal, T = QᵀMQ, R = (I - QQᵀ)MQ and b ≥ λmax of M on the complement of Q,

    M ≼ | T  Rᵀ |
        | R  bI |

so that the j-th largest eigenvalue of M lies between the j-th of T (Cauchy) and the j-th of the right-hand side (Weyl),
a matrix of twice the columns of Q, and no eigenvalue beyond the first q exceeds b (Courant and Fischer). The number b
comes from a factorisation up to n = 1500, without chance, and beyond from a Lanczos bound of random starts
(:mod:`mercer.certificates.krylov`), which fails with a stated probability.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import final

import numpy as np

from mercer.backends import get_config
from mercer.backends.arrays import Array, as_double, namespace, to_numpy
from mercer.backends.rounding import UNIT, gamma
from mercer.certificates.certificate import Certificate
from mercer.certificates.factorisation import bound_largest_eigenvalue
from mercer.certificates.krylov import Deflated, bound_by_lanczos
from mercer.linalg.eigen import largest_of, least_of
from mercer.linalg.lanczos import BlockLanczos, RandomStarts, depth_for
from mercer.linalg.tall import inner_products, inner_products_depth
from mercer.operators import LinearMap
from mercer.operators.base import MapRounding

_ROUNDS = 3
_APART = 1e-3  # of the last eigenvalue wanted: by so much the complement should lie below it
_BELOW = 0.9  # of the first eigenvalue not wanted: below, that is the next one for certain
_DENSE_UP_TO = 1500
_KRYLOV_SHARE = 0.125  # of the memory limit
_MORE = 1.01


def residual_bounds(map_: LinearMap, rounding: MapRounding, values: Array, vectors: Array) -> Array:
    """For every pair θ, v a distance within which M has an eigenvalue; one product, in double precision."""
    xp, n = namespace(vectors), map_.shape[0]
    residual = as_double(map_ @ vectors) - values * vectors
    lengths = xp.linalg.vector_norm(vectors, axis=0)
    size = xp.max(abs(residual), axis=0)  # whose squares need not be numbers
    size = xp.where(size > 0, size, 1.0)
    slack = rounding.product * rounding.norm + rounding.entries + 4 * UNIT * (rounding.norm + abs(values))
    return (size * xp.linalg.vector_norm(residual / size, axis=0) / lengths + slack) * (1 + 4 * gamma(n + 8, UNIT))


@final
@dataclass(frozen=True, eq=False)
class LeadingEigenvalues:
    """Bounds of the leading eigenvalues of M, each counted as often as it occurs.

    Attributes
    ----------
    lower, upper : arrays of shape (k,)
        The j-th largest eigenvalue of M lies between ``lower[j]``, without chance, and ``upper[j]``.
    beyond : float
        No other eigenvalue exceeds this.
    failure_probability : float
        Of ``upper`` and ``beyond``.
    n_columns : int
        Columns that M was multiplied by, or that were formed of it.
    """

    lower: Array
    upper: Array
    beyond: float
    failure_probability: float
    n_columns: int


def certify_leading(
    map_: LinearMap, rounding: MapRounding, vectors: Array, proved: LeadingEigenvalues, unit: float
) -> Certificate:
    """Bounds on max Tr(VᵀMV) over k orthonormal columns V, the sum of the k largest eigenvalues, times a power of two.

    The lower one is what the given vectors attain, the upper one the sum of the k bounds that were proved.
    """
    taken = _Taken(map_, rounding, vectors)
    inside = taken.inside()
    lower = math.fsum(to_numpy(inside)) - inside.shape[0] * taken.slack
    upper = math.fsum(to_numpy(proved.upper))
    return Certificate(
        lower=unit * (lower - 2 * UNIT * abs(lower)),
        upper=unit * (upper + 2 * UNIT * abs(upper)),
        failure_probability=proved.failure_probability,
        method="eigenvalues by factorisation" if proved.failure_probability == 0 else "eigenvalues by Lanczos",
        n_products=proved.n_columns + taken.n_columns,
    )


def enclose_leading(
    map_: LinearMap, rounding: MapRounding, vectors: Array, starts: RandomStarts, *, count: int | None = None
) -> LeadingEigenvalues:
    """Enclose the k largest eigenvalues of M, given about their eigenvectors as the first columns of ``vectors``.

    There are ``count`` = k of them; further columns, about the eigenvectors that come next, spare products, and all
    columns are leading ones if it is left out.

    Cost: one product with the vectors, and some ten to a hundred products with blocks of the starts: the more the
    closer the complement comes to the last eigenvalue wanted. The map works in double precision.
    """
    count = vectors.shape[1] if count is None else count
    taken, starts = _Taken(map_, rounding, vectors), starts.share(_ROUNDS)
    lower = taken.inside()[:count] - taken.slack
    best = namespace(vectors).full_like(lower, math.inf)
    beyond, spent, columns = math.inf, 0.0, 0
    for _ in range(_ROUNDS):
        outside, wider = taken.bound_outside(starts, taken.goal(count))
        columns += taken.n_columns
        spent += starts.failure_probability if wider is not None else 0.0
        most = taken.not_exceeded(outside)
        best = namespace(best).minimum(best, most[:count])
        beyond = min(beyond, float(most[count]) if most.shape[0] > count else outside)
        if outside <= (1 - _APART) * float(lower[-1]) or wider is None:
            break
        taken = _Taken(map_, rounding, wider)
    return LeadingEigenvalues(lower, best, beyond, spent, columns)


def bound_below(map_: LinearMap, rounding: MapRounding, vectors: Array, starts: RandomStarts) -> float:
    """A number t ≥ 0 with M + tI ≽ 0, given about the leading eigenvectors of M.

    By a factorisation up to n = 1500, without chance; beyond by Lanczos on -M, whose leading part, taken out, would
    otherwise hide the negative one.
    """
    if map_.shape[0] <= _DENSE_UP_TO:
        matrix = as_double(map_.to_dense())
        matrix = (matrix + matrix.T) / 2
        guess = max(-least_of(matrix), 0.0)
        return max(bound_largest_eigenvalue(-matrix, guess) + rounding.entries, 0.0)
    taken, starts = _Taken(map_, rounding, vectors), starts.share(3)
    outside, _ = taken.bound_outside(starts, float(taken.inside()[-1]))
    lift = max(outside, 0.0) + taken.slack
    space, bounds = Deflated(lambda V: -taken.outside(V), taken.Q, 0.0 * taken.Q), []
    for _ in range(2):  # the second time with the least eigenvectors found taken out: to more digits
        bound, space = bound_by_lanczos(space, starts, lift=lift)
        bounds.append(bound + _rounding_of(rounding, space.Q))
    negative = Deflated(lambda V: -taken.multiply(V), taken.Q, -taken.product)
    return max(negative.combine(min(bounds)) + taken.slack, 0.0)


class _Taken:
    """M with an orthonormal Q taken out: T and R by one product, and what rounding does to bounds from them."""

    def __init__(self, map_: LinearMap, rounding: MapRounding, vectors: Array) -> None:
        xp = namespace(vectors)
        self._map, self._rounding, self.n_columns = map_, rounding, 0
        self.Q = xp.linalg.qr(as_double(vectors))[0]
        self.product = self.multiply(self.Q)
        self._deflated = Deflated(self.multiply, self.Q, self.product)
        self.slack = _rounding_of(rounding, self.Q)

    def multiply(self, V: Array) -> Array:
        """The product with M."""
        self.n_columns += V.shape[1]
        return as_double(self._map @ V)

    def inside(self) -> Array:
        """The eigenvalues of T in falling order."""
        xp = namespace(self.Q)
        return xp.flip(xp.linalg.eigvalsh(self._deflated.inside), axis=0)

    def not_exceeded(self, outside: float) -> Array:
        """What the eigenvalues of M do not exceed, one after the other, given a bound outside."""
        values = self._deflated.combined_spectrum(outside)
        return values + 1e-13 * float(abs(values).max()) + self.slack

    def goal(self, count: int) -> float:
        """What the complement should lie below: the first eigenvalue not wanted, where Q has it, or the last wanted."""
        inside = self.inside()
        return float(_BELOW * inside[count] if inside.shape[0] > count else (1 - _APART) * inside[count - 1])

    def bound_outside(self, starts: RandomStarts, goal: float) -> tuple[float, Array | None]:
        """A bound on λmax on the complement of Q, and Q widened by what was found there; None where that is all."""
        if self._deflated.is_everything:
            return -math.inf, None
        if self.Q.shape[0] <= _DENSE_UP_TO:
            return self._factored_outside(), None
        nothing = Deflated(self.outside, self.Q, 0.0 * self.Q)
        lift = self.slack if self._rounding.semidefinite else self._norm_outside(starts.share(2))
        bound, wider = bound_by_lanczos(nothing, starts.share(2), lift=lift, goal=goal)
        return bound + _rounding_of(self._rounding, wider.Q), wider.Q

    def _factored_outside(self) -> float:
        """The same by a factorisation, without chance."""
        self.n_columns += self.Q.shape[0]
        matrix = as_double(self._map.to_dense())
        matrix = matrix - self.Q @ (self.Q.T @ matrix)
        matrix = matrix - (matrix @ self.Q) @ self.Q.T
        matrix = (matrix + matrix.T) / 2
        return bound_largest_eigenvalue(matrix, max(largest_of(matrix), 0.0)) + self.slack

    def outside(self, V: Array) -> Array:
        """The product with M on the complement of Q."""
        V = V - self.Q @ inner_products(self.Q, V)
        W = self.multiply(V)
        return W - self.Q @ inner_products(self.Q, W)

    def _norm_outside(self, starts: RandomStarts) -> float:
        """A bound on the norm of M on the complement of Q, to a factor of 1.4, from its square, which is psd."""
        n = self.Q.shape[0] - self.Q.shape[1]
        space = BlockLanczos(lambda V: self.outside(self.outside(V)), self.Q, starts.rng, block=starts.block)
        space.extend(depth_for(0.5, n, starts.failure_probability, starts.block))
        if space.closed:
            return self._rounding.norm + self.slack
        most = _MORE * math.sqrt(max(2 * float(space.ritz_values()[0]), 0.0)) + 4 * self.slack
        return min(most, self._rounding.norm) + self.slack


def _rounding_of(rounding: MapRounding, Q: Array) -> float:
    """How far rounding may take a bound from products with Q and with a Krylov space beside it.

    An exactly orthonormal matrix lies within η = ‖QᵀQ - I‖ of Q. Products with unit vectors err by what the map says,
    inner products with the columns of Q by γ of their length, all of them at most 4 + 2√q times.
    """
    xp, (n, q) = namespace(Q), Q.shape
    identity = xp.eye(q, dtype=Q.dtype, device=Q.device)
    off = float(xp.linalg.vector_norm(inner_products(Q, Q) - identity)) + gamma(inner_products_depth(Q) + 2, UNIT) * q
    each = (rounding.product + 4 * off + 4 * math.sqrt(q) * gamma(n + q, UNIT)) * rounding.norm
    return _MORE * ((4 + 2 * math.sqrt(q)) * each + rounding.entries)


def starts_for(map_: LinearMap, rng: np.random.Generator, failure_probability: float) -> RandomStarts:
    """Eight starts, fewer on a small map, and no larger a Krylov space than an eighth of the memory limit."""
    n = map_.shape[0]
    columns = get_config().share(_KRYLOV_SHARE) // (8 * max(1, n))
    return RandomStarts(rng, failure_probability, max(1, min(8, n // 8)), most_columns=columns)
