"""A bound on the largest eigenvalue of a symmetric map from Chebyshev polynomials of it: products, and a few vectors.

Let N be the map on the complement of Q (:mod:`mercer.certificates.krylov`), λ its largest eigenvalue, u a unit vector
that belongs to it, and G a matrix of b independent Gaussian columns. Let ℓ take an interval to [-1, 1]. The columns of
Wₖ = Tₖ(ℓ(N)) G come by the recurrence of the Chebyshev polynomials, and Wₖᵀu = Tₖ(ℓ(λ)) Gᵀu. The length of Gᵀu does not
depend on u: its square is χ² with b degrees of freedom, and falls below c² with probability at most
(c²/2)^(b/2)/Γ(b/2 + 1). In all other cases

    Tₖ(ℓ(λ)) c ≤ ‖Wₖ‖,

and since Tₖ grows like exp(k√(2δ))/2 at 1 + δ while ‖Wₖ‖ stays near √n where the spectrum lies within the interval, λ
cannot be far beyond its end. The steps are as many as those of Lanczos with the same starts, but

- nothing is known of the other end of the spectrum: were the interval wrong, ‖Wₖ‖ would grow and show it;
- no basis is kept and nothing is orthogonalised against one: the memory is that of a few blocks of columns;
- the chance is that of Gᵀu alone, however often one looks.

**Rounding.** Let the row uᵀWⱼ err by Eⱼ in step j. With x = ℓ(λ) > 1 its recurrence gives

    uᵀWₖ = Tₖ(x) uᵀG + Σⱼ Uₖ₋₁₋ⱼ(x) εⱼ, ‖εⱼ‖ ≤ Eⱼ,    Uₘ(x) ≤ (m + 1) Tₘ(x),    Tₖ₋₁₋ⱼ(x) Tⱼ₊₁(x) ≤ Tₖ(x),

so that rounding lowers c by no more than Σⱼ (k - j) Eⱼ/Tⱼ₊₁(x), with Eⱼ from the sizes of Wⱼ as they are met. Wⱼ is
brought to the complement of Q in every step. What that leaves in the span of Q, since inner products of n terms round
and Q is orthonormal to rounding only, is orthogonal to u: it matters by way of the coupling R of the next product
alone, which is small.
"""

from __future__ import annotations

import math
from typing import final

import numpy as np

from mercer.backends.arrays import Array, like, namespace
from mercer.backends.rounding import TINY, UNIT, gamma
from mercer.certificates.allowances import ProductRounding
from mercer.certificates.krylov import SEPARATED, Deflated, safely
from mercer.linalg.lanczos import BlockLanczos, RandomStarts
from mercer.linalg.tall import inner_products, inner_products_depth, tall_product

_STARTS = 4  # columns: with more, fewer steps that cost more each
_DEPTH, _KEPT, _RESTARTS = 40, 12, 4  # Lanczos steps, of one column, that show where the spectrum lies; where many
# steps are to come, again from so many Ritz vectors at most so many times
_MARGIN = 0.05  # of the interval, added below: Ritz values lie inside the spectrum
_MOST_STEPS, _MOST_IN_VAIN = 2000, 100  # steps that may be planned, the second where the goal is known to be false
_SPARE, _FEW = 1.5, 32  # times and beside what is planned, the steps that may be taken
_POINT = 1e-4  # of the norm: a spectrum that is a single point gets an interval of this length
_LOOSER, _HARDLY_MORE = 1.5, 1.25
_MOST_VECTORS, _WORTH, _PAYS = 16, 60, 0.7  # Ritz vectors to take out: where many steps become that part of them
_MORE = 1e-9  # for the roundings of the test itself


@final
class ChebyshevFilter:
    """Wⱼ = Tⱼ(ℓ(N)) G for a Gaussian G, j growing step by step, and what it proves of λmax(N).

    Parameters
    ----------
    deflated : Deflated
        M and Q, with N = PMP, P the projector on the complement of Q.
    interval : tuple of two floats
        Where most of the spectrum of N is expected; nothing depends on whether it is.
    starts : RandomStarts
        Where G comes from, its number of columns, and the probability that what is proved is wrong.
    rounding : ProductRounding
        Of M.
    """

    def __init__(
        self, deflated: Deflated, interval: tuple[float, float], starts: RandomStarts, rounding: ProductRounding
    ) -> None:
        self.deflated, self.interval, self._rounding = deflated, interval, rounding
        low, high = interval
        self._slope, self._offset = 4 / (high - low), 2 * (high + low) / (high - low)
        n, q = deflated.Q.shape
        self._depth = inner_products_depth(deflated.Q)
        self._left_inside, self._projected = self._projection_errors(q)
        self._coupling = self._coupling_bound(q)
        G = like(starts.rng.standard_normal((n, starts.block)), deflated.Q)
        self._share = least_share(starts.block, starts.failure_probability)
        length = self._sizes(G)[1]
        self._start_error, self._leak = 2 * self._projected * length, 2 * self._left_inside * length
        self._before = namespace(G).zeros_like(G)
        self._now = self._complement(self._complement(G))
        self.depth = 0
        self._errors: list[float] = []
        self.size, self._length = self._sizes(self._now)
        self._before_length, self.reached = 0.0, -math.inf

    def step(self) -> None:
        """Go from Wⱼ to Wⱼ₊₁, one product with b columns."""
        half = 0.5 if self.depth == 0 else 1.0
        X = self.deflated.multiply(self._now)
        self.reached = self._rayleigh(X)
        X *= half * self._slope
        X -= half * self._offset * self._now
        X -= self._before  # zero at first
        bound = (self._slope * self._rounding.norm + abs(self._offset)) * self._length + self._before_length
        product = self._slope * (self._rounding.error * self._length + self._coupling * self._leak)
        self._errors.append(product + (self._projected + 8 * UNIT) * bound)
        self._leak = self._left_inside * bound
        self._before, self._now = self._now, self._complement(X)
        self._before_length = self._length
        self.depth += 1
        self.size, self._length = self._sizes(self._now)

    def _rayleigh(self, product: Array) -> float:
        """About the largest Rayleigh quotient of the columns of Wⱼ: λmax(N) is no less."""
        inside, xp = inner_products(self._now, product).diagonal(), namespace(product)
        return float((inside / xp.clip(self._squares, TINY, None)).max())

    def proves(self, bound: float) -> bool:
        """Whether λmax(N) lies below the bound, except with the stated probability."""
        low, high = self.interval
        x = (2 * bound - high - low) / (high - low)
        if x <= 1 or self.depth == 0:
            return False
        steps = np.arange(self.depth)
        with np.errstate(over="ignore"):
            growth = np.cosh(np.arccosh(x) * (1 + steps))
        lost = self._start_error + float(np.sum((self.depth - steps) * np.asarray(self._errors) / growth))
        left = (self._share - lost) * (1 - _MORE)
        return bool(left > 0 and growth[-1] > self.size / left)

    def bound(self) -> float:
        """About the least bound that is proved; infinity where none is."""
        low, high = self.interval
        reach = high - low
        while not self.proves(high + reach):
            reach *= 2
            if reach > 1e6 * (high - low):
                return math.inf
        below, above = 0.0, reach
        for _ in range(50):
            middle = (below + above) / 2
            below, above = (below, middle) if self.proves(high + middle) else (middle, above)
        return high + above

    def _complement(self, X: Array) -> Array:
        if self.deflated.Q.shape[1] == 0:
            return X
        X -= tall_product(self.deflated.Q, inner_products(self.deflated.Q, X))
        return X

    def _projection_errors(self, columns: int) -> tuple[float, float]:
        """What the projection of a unit vector leaves in the span of Q, and how far it is off in the complement."""
        if columns == 0:
            return 0.0, 0.0
        Q, xp, root = self.deflated.Q, namespace(self.deflated.Q), columns**0.5
        off = float(xp.linalg.matrix_norm(inner_products(Q, Q) - xp.eye(columns, dtype=Q.dtype, device=Q.device)))
        own = 2 * gamma(columns + 4, UNIT) * root
        return 1.01 * (off + (columns + 2 * root) * gamma(self._depth, UNIT) + own), 1.01 * own

    def _coupling_bound(self, columns: int) -> float:
        """A bound on ‖R‖, from products and roundings as they were."""
        own = self.deflated.amplification * self._rounding.error + 4 * gamma(columns + 4, UNIT) * self._rounding.norm
        return 1.01 * (self.deflated.coupling_norm + columns**0.5 * own) if columns else 0.0

    def _sizes(self, W: Array) -> tuple[float, float]:
        """Upper bounds of the largest singular value and of the Frobenius norm."""
        gram = inner_products(W, W)
        self._squares = gram.diagonal()
        squared = float(self._squares.sum())
        rounding = gamma(self._depth + 8, UNIT) * W.shape[1] * squared
        largest = float(namespace(W).linalg.eigvalsh((gram + gram.T) / 2)[-1])
        return math.sqrt(largest + rounding) * (1 + 8 * UNIT), math.sqrt(squared + rounding)


def least_share(starts: int, failure_probability: float) -> float:
    """The c that the length of Gᵀu, χ with so many degrees of freedom, falls below with this probability at most."""
    half = starts / 2
    return math.sqrt(2 * (failure_probability * math.gamma(half + 1)) ** (1 / half))


def bound_by_filter(
    deflated: Deflated,
    starts: RandomStarts,
    *,
    rounding: ProductRounding,
    goal: float | None = None,
    resolution: float = 1e-9,
) -> tuple[float, Deflated]:
    """A number that λmax does not exceed, except with the stated probability.

    Parameters
    ----------
    deflated : Deflated
        The map and what is known of it.
    starts : RandomStarts
        The source of random numbers, and the probability.
    rounding : ProductRounding
        Of the map.
    goal : float, optional
        What is to be proved; left out, or out of reach: something about as good as possible.
    resolution : float, default=1e-9
        A difference that does not matter.

    Returns
    -------
    bound : float
        λmax(M) ≤ bound.
    deflated : Deflated
        The map with the leading Ritz vectors found taken out as well.
    """
    if deflated.is_everything:
        return safely(deflated.inside_top), deflated
    starts = RandomStarts(starts.rng, starts.failure_probability, _STARTS)
    plan = _Plan(deflated, starts, rounding.norm, goal, resolution)
    deflated = plan.deflated
    filter_ = ChebyshevFilter(deflated, plan.interval, starts, rounding)
    outside = deflated.allowed_outside(plan.target)
    for _ in range(int(_SPARE * plan.steps) + _FEW):
        filter_.step()
        if filter_.proves(outside) or filter_.reached > outside:
            break
    return safely(deflated.combine(filter_.bound())), deflated


@final
class _Plan:
    """What to prove, on which interval, with which Ritz vectors taken out, and in how many steps: all of it a guess."""

    def __init__(
        self, deflated: Deflated, starts: RandomStarts, norm: float, goal: float | None, resolution: float
    ) -> None:
        self._least_reach = max(_POINT * norm, TINY)
        n, q = deflated.Q.shape
        self._ratio = math.sqrt(n) / least_share(starts.block, starts.failure_probability)
        self.deflated, self._taken, self._low = deflated, 0, math.inf
        space = BlockLanczos(deflated.multiply, deflated.Q, starts.rng)
        for round_ in range(1 + _RESTARTS):
            if round_:
                space.restart(_KEPT)
            space.extend(space.depth + min(_DEPTH, n - q) - (_KEPT if round_ else 0))
            self._values, self._errors = space.ritz_values(), space.residual_norms()
            self._low = min(self._low, float(self._values[-1] - self._errors[-1]))
            reached = deflated.ritz_top(space)
            self.target = self._target(reached, deflated.inside_top, goal, resolution)
            self.steps = self._steps_of(deflated, 0)
            self._take_out(deflated, space)
            if self.steps <= _WORTH or space.closed or n - q <= _DEPTH:
                break
        self._tighten(reached)
        most = _MOST_STEPS if goal is None or reached < goal else _MOST_IN_VAIN
        while self.steps > most:
            self.target = reached + _LOOSER * max(self.target - reached, resolution)
            self.steps = self._steps_of(self.deflated, self._taken)

    def _tighten(self, reached: float) -> None:
        """Aim at a tenth of what the goal leaves, where that takes hardly more steps."""
        loose, steps = self.target, self.steps
        self.target = reached + 0.1 * (loose - reached)
        self.steps = self._steps_of(self.deflated, self._taken)
        if self.steps > _HARDLY_MORE * steps:
            self.target, self.steps = loose, steps

    @staticmethod
    def _target(reached: float, inside: float, goal: float | None, resolution: float) -> float:
        """The goal, or a little above what the spectrum is known to reach if that is above the goal."""
        if goal is not None and reached < goal:
            return goal
        return reached + resolution + (0.1 if goal is None else 1.0) * max(reached - inside, 0.0)

    @property
    def interval(self) -> tuple[float, float]:
        """From below the least Ritz value to the largest that is left; eigenvalues a little beyond do no harm."""
        return self._interval(self._taken)

    def _interval(self, taken: int) -> tuple[float, float]:
        high = float(self._values[min(taken, len(self._values) - 1)])
        reach = max(high - self._low, self._least_reach)
        return high - (1 + _MARGIN) * reach, high

    def _steps_of(self, deflated: Deflated, taken: int) -> float:
        self._taken = taken
        low, high = self._interval(taken)
        beyond = 2 * (deflated.allowed_outside(self.target) - high) / (high - low)
        return math.acosh(self._ratio) / math.acosh(1 + beyond) if beyond > 1e-12 else math.inf

    def _are_eigenvectors(self, count: int) -> bool:
        """Whether so many leading Ritz vectors are nearly right (Davis, Kahan), so that what is left lies below."""
        left = float((self._values[count:] + self._errors[count:]).max())
        wrong = float(self._errors[:count] @ self._errors[:count]) ** 0.5
        return float(self._values[count - 1]) - left > SEPARATED * wrong

    def _take_out(self, deflated: Deflated, space: BlockLanczos) -> None:
        """Take out the Ritz vectors before the widest gap, where that saves more than it costs."""
        self.deflated = deflated
        most = min(_MOST_VECTORS, len(self._values) - 1, space.basis.shape[0] - space.basis.shape[1] - 1)
        counts = [0, *(count for count in range(1, most + 1) if self._are_eigenvectors(count))]
        count = min(counts, key=lambda count: self._steps_of(deflated, count))
        guess = self._steps_of(deflated, count)
        self._taken = 0
        if count == 0 or not self.steps > _WORTH or guess > _PAYS * self.steps:
            return
        _, X, product = space.ritz_pairs(count)
        further = deflated.enlarged(X, product)
        steps = self._steps_of(further, count)  # with what the vectors, which are not exact, leave behind
        if steps < _PAYS * self.steps:
            self.deflated, self.steps = further, steps
        else:
            self._taken = 0
