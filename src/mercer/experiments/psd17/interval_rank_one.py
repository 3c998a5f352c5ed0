"""The bandwidth at which the kernel learned on an interval has a closed form of rank one (PSD17 section 6.2)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from mercer.backends.arrays import Array
from mercer.datasets import interval
from mercer.embedding import SDPEmbedding
from mercer.experiments.conventions import compare_rank
from mercer.experiments.registry import experiment
from mercer.experiments.report import Comparison, Experiment, claim
from mercer.kernels import Gaussian
from mercer.plots import new_figure
from mercer.plots.scatter import COLOURS

_MIDDLE = (
    "the middle one of an odd number of points has no sign and becomes a second dimension, which the paper rounds off"
)


@dataclass(frozen=True)
class IntervalRankOne(Experiment):
    """The embedding of an odd number of points, and that of one point fewer."""

    odd: SDPEmbedding
    even: SDPEmbedding

    @property
    def distance(self) -> float:
        """How far the even solution is from the closed form: the rows Ξ(x) sign(x) / √K(x,x) should all be equal."""
        _, closed = _closed_form(self.even)
        rows = self.even.embedding_ / closed[:, None]
        return float(np.linalg.norm(rows - rows[-1], axis=1).max())

    @property
    def comparisons(self) -> tuple[Comparison, ...]:
        """The rank for both numbers of points, the spectrum, and the closed form."""
        n_odd, n_even = len(self.odd.diagonal_), len(self.even.diagonal_)
        return (
            compare_rank(f"rank of ρ, {n_odd} points", 1, self.odd, reason=_MIDDLE if self.odd.rank_ == 2 else ""),
            compare_rank(f"rank of ρ, {n_even} points", 1, self.even),
            self._spectrum(),
            self._closed(),
        )

    def _spectrum(self) -> Comparison:
        values = self.odd.eigenvalues_
        return claim(
            f"eigenvalues of ρ / Tr ρ, {len(self.odd.diagonal_)} points",
            "1",
            ", ".join(f"{value:.6g}" for value in values),
            len(values) == 1,
            "rank one" if len(values) == 1 else "a true second dimension, too small to be seen in a plot",
        )

    def _closed(self) -> Comparison:
        holds = self.distance < 1e-6
        return claim(
            f"ρ(x, y) = sign(x) √K(x,x) sign(y) √K(y,y), {len(self.even.diagonal_)} points",
            "equal",
            f"rows apart by {self.distance:.0e} of their length",
            holds,
            "" if holds else "this bandwidth is too narrow for the closed form",
        )

    def figure(self) -> Any:
        """The coordinates of both over the interval with the closed form, and the middle of the odd one enlarged."""
        figure, axes = new_figure(3)
        _draw(axes[0], self.odd)
        _draw(axes[1], self.odd)
        _draw(axes[2], self.even)
        nearby = 20 * 2.0 / (len(self.odd.diagonal_) - 1)
        height = 1.5 * float(np.sqrt(self.odd.diagonal_.min())) / _scale(self.odd)
        axes[1].set(xlim=(-nearby, nearby), ylim=(-height, height), title="The middle, enlarged")
        return figure


@experiment("psd17-section6", place=8.5, seconds=1)
def interval_rank_one(sigma: float = 1.0, *, n_points: int = 2001, random_state: Any = 0) -> IntervalRankOne:
    """The interval [-1, 1] at σ = 1: a closed form of rank one, but for the middle point (PSD17 section 6.2).

    Solved for ``n_points``, an odd number, and for one fewer. Cost: two dense matrices of that order.
    """
    if n_points % 2 == 0:
        raise ValueError(f"n_points={n_points} must be odd, so that zero is one of the points.")
    kernel = Gaussian(sigma=sigma)
    odd, even = (SDPEmbedding(kernel, random_state=random_state).fit(interval(n)) for n in (n_points, n_points - 1))
    return IntervalRankOne(odd, even)


def _closed_form(model: SDPEmbedding) -> tuple[Array, Array]:
    """The points and sign(x) √K(x,x) at them."""
    x = interval(len(model.diagonal_))[:, 0]
    return x, np.sign(x) * np.sqrt(model.diagonal_)


def _scale(model: SDPEmbedding) -> float:
    """The root of the spacing: divided by it, coordinates are functions on the interval."""
    return float(np.sqrt(2.0 / (len(model.diagonal_) - 1)))


def _draw(ax: Any, model: SDPEmbedding) -> None:
    x, closed = _closed_form(model)
    upright = np.where((np.sign(x) + (x == 0)) @ model.embedding_ < 0, -1.0, 1.0)
    coordinates = model.embedding_ * upright / _scale(model)
    for i, (column, colour) in enumerate(zip(coordinates.T, (COLOURS[0], "#ee3333", *COLOURS[1:]), strict=False)):
        ax.plot(x, column, ".", color=colour, markersize=5, label=f"$\\chi_{i + 1}$")
    for side in (x < 0, x > 0):
        label = "sign(x) √K(x,x)" if side[0] else None
        ax.plot(x[side], closed[side] / _scale(model), color="black", linewidth=0.8, label=label)
    ax.set(xlabel="x", title=f"{len(x)} points: rank {model.rank_}")
    ax.legend(fontsize=9, loc="upper left")
