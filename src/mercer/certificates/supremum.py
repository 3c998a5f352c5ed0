"""The supremum of a function on a box, bounded from above by halving cells of which it is known how fast it changes.

In a cell with centre c and half sides s the function is at most g(c) + modulus(s). Cells whose bound lies above the
best value by more than a tolerance are halved along their longest side, many at a time. In few dimensions this costs
little beyond the neighbourhoods of the maxima; the bound is valid whenever it ends.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from mercer.backends.arrays import Array
from mercer.backends.rounding import UNIT

_FIRST_CELLS = 64
_AT_A_TIME = 20_000
_PEAKS = 12


class Supremum(NamedTuple):
    """A number no smaller than the supremum, points near where it is reached, the values there, and evaluations."""

    bound: float
    points: Array
    values: Array
    n_cells: int


def bound_supremum(
    function: Callable[[Array], Array],
    modulus: Callable[[Array], Array],
    corners: tuple[Array, Array],
    *,
    tolerance: float,
    most: int,
) -> Supremum:
    """Bound a function on the box between two corners of shape (d,).

    Parameters
    ----------
    function : callable
        Upper bounds of the function's values at the rows of an array.
    modulus : callable
        Of half sides of shape (n, d): how much the function can grow from the centre of such a cell to any point of it.
    tolerance : float
        A bound that is larger than the best value seen by no more will do.
    most : int
        Evaluations at most, about.
    """
    centres, sides = _first_cells(*corners)
    values = function(centres)
    bounds = values + modulus(sides)
    closed, best, spent = -np.inf, float(np.max(values)), values.size
    peaks = _Peaks(centres, values)
    while True:
        is_open = bounds > best + tolerance
        closed = max(closed, float(np.max(bounds[~is_open], initial=-np.inf)))
        if not is_open.any() or spent >= most:
            left = float(np.max(bounds[is_open], initial=-np.inf))
            bound = max(closed, left)
            return Supremum(bound + 4 * UNIT * abs(bound), *peaks.found(), spent)
        centres, sides, bounds = centres[is_open], sides[is_open], bounds[is_open]
        worst = np.argsort(-bounds)
        now, later = worst[:_AT_A_TIME], worst[_AT_A_TIME:]
        halves = _halved(centres[now], sides[now])
        values = function(halves[0])
        spent += values.size
        best = max(best, float(np.max(values)))
        peaks.add(halves[0], values)
        new = np.minimum(values + modulus(halves[1]), np.repeat(bounds[now], 2))
        centres, sides = (
            np.concatenate([kept[later], half]) for kept, half in zip((centres, sides), halves, strict=True)
        )
        bounds = np.concatenate([bounds[later], new])


def _first_cells(lower: Array, upper: Array) -> tuple[Array, Array]:
    """Some cells of about equal sides that cover the box, slightly more than it."""
    centre, side = (lower + upper) / 2, (upper - lower) / 2
    centres, sides = centre[None], (side * (1 + 8 * UNIT) + 8 * UNIT * np.abs(centre))[None]
    while centres.shape[0] < _FIRST_CELLS:
        centres, sides = _halved(centres, sides)
    return centres, sides


def _halved(centres: Array, sides: Array) -> tuple[Array, Array]:
    """Both halves of every cell along its longest side, neighbours in the result, with room for rounding."""
    longest = np.argmax(sides, axis=1)
    step = np.zeros_like(sides)
    rows = np.arange(sides.shape[0])
    half = sides[rows, longest] / 2
    step[rows, longest] = half
    sides = sides.copy()
    sides[rows, longest] = half * (1 + 4 * UNIT) + 2 * UNIT * np.abs(centres[rows, longest])
    both = np.stack([centres - step, centres + step], axis=1).reshape(-1, centres.shape[1])
    return both, np.repeat(sides, 2, axis=0)


class _Peaks:
    """The points with the largest values, no two of them in the same place to a hundredth of their cell's round."""

    def __init__(self, centres: Array, values: Array) -> None:
        self._centres, self._values = centres, values

    def add(self, centres: Array, values: Array) -> None:
        top = np.argsort(-values)[: 20 * _PEAKS]
        both = np.concatenate([self._values, values[top]])
        order = np.argsort(-both)[: 40 * _PEAKS]
        self._centres, self._values = np.concatenate([self._centres, centres[top]])[order], both[order]

    def found(self) -> tuple[Array, Array]:
        """Apart from each other by a fiftieth of their spread at least."""
        order = np.argsort(-self._values)
        spread = np.ptp(self._centres, axis=0) / 50 + 1e-300
        chosen: list[int] = []
        for number in order:
            near = np.abs(self._centres[chosen] - self._centres[number]) <= spread
            if not np.any(np.all(near, axis=1)):
                chosen.append(int(number))
            if len(chosen) == _PEAKS:
                break
        return self._centres[chosen], self._values[chosen]
