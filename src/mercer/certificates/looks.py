"""Krylov spaces from random starts, looked at in depths fixed beforehand: what a bound with a stated chance rests on.

The probabilities of all looks are added up (:mod:`mercer.linalg.lanczos`), so each has an equal share.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import final

import numpy as np

from mercer.backends.arrays import Array
from mercer.linalg.lanczos import BlockLanczos, depth_for, underestimate

Multiply = Callable[[Array], Array]


@final
@dataclass(frozen=True)
class RandomStarts:
    """Where a Krylov space starts, and the chance that its Ritz values mislead.

    Attributes
    ----------
    rng : numpy.random.Generator
        Starting blocks.
    failure_probability : float
        Of everything that is concluded from these starts.
    block : int, default=1
        Columns of a starting block.
    most_columns : int, optional
        Columns of a Krylov space at most, all of which are kept; the first look is taken in any case.
    """

    rng: np.random.Generator
    failure_probability: float
    block: int = 1
    most_columns: int | None = None

    def share(self, parts: int) -> RandomStarts:
        """The same with one of so many equal parts of the probability."""
        return replace(self, failure_probability=self.failure_probability / parts)


@final
class Looks:
    """A Krylov space of a symmetric map on the complement of Q, and when it is looked at.

    The first look is where the Ritz value is known to a factor of two, the others follow at growing distances.

    Parameters
    ----------
    multiply : callable
        V ↦ M V for blocks of columns.
    basis : array of shape (n, q)
        Q, with orthonormal columns, q < n.
    starts : RandomStarts
        The starts, and the probability of all looks together.
    count : int
        The number of looks.
    growth : float
        Of the depth, from one look to the next.
    """

    def __init__(self, multiply: Multiply, basis: Array, starts: RandomStarts, *, count: int, growth: float) -> None:
        self.space = BlockLanczos(multiply, basis, starts.rng, block=starts.block)
        self.dimension = basis.shape[0] - basis.shape[1]
        self._share, self._block = starts.failure_probability / count, starts.block
        self.first = self.depth_for(0.5)
        depths = [int(np.ceil(self.first * growth**j)) for j in range(count)]
        if starts.most_columns is not None:
            depths = [depth for depth in depths if depth * starts.block <= starts.most_columns] or depths[:1]
        self._depths = depths

    def __iter__(self) -> Iterator[float]:
        """Grow the space from look to look, and give its largest Ritz value at each."""
        for depth in self._depths:
            self.space.extend(depth)
            yield float(self.space.ritz_values()[0])

    def underestimate(self) -> float:
        """The ε of the present Ritz value; an invariant space is the Krylov space of any depth."""
        depth = self._depths[-1] if self.space.closed else self.space.depth
        return underestimate(depth, self.dimension, self._share, self._block)

    def depth_for(self, epsilon: float) -> int:
        """The least depth at which the underestimate of one look is at most ε."""
        return depth_for(epsilon, self.dimension, self._share, self._block)
