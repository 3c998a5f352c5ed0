"""The numbers of a game on candidates with proved errors: kernel matrices, weights, losses and norms as balls.

Entries of kernel matrices are computed in double precision, with the error that the kernel's form states for them;
everything that follows is in balls. Any positive semi-definite kernel will do.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any, NamedTuple, final

import numpy as np

from mercer.backends.arrays import Array, to_numpy
from mercer.backends.balls import Ball, ball, up
from mercer.kernels.base import Kernel
from mercer.problems.losses import Loss

_MORE = 1.01  # an entry's true value beside the computed one, and the rounding of these bounds


class Points(NamedTuple):
    """The candidates as the proof sees them.

    Attributes
    ----------
    place : array of shape (N,)
        Which of the distinct inputs each candidate has.
    targets : array of shape (N,)
        y_j, exact.
    shares : Ball of shape (N,)
        μ̂_j, the sample's weights.
    """

    place: Array
    targets: Array
    shares: Ball


def kernel_ball(kernel: Kernel, X: Any, Y: Any = None) -> Ball:
    """k(X, Y), whose entries err by what the kernel states."""
    matrix = kernel.matrix(X, Y)
    error, values = matrix.entry_error, to_numpy(kernel(X, Y))
    rows = np.sqrt(np.abs(to_numpy(kernel.diag(X))))
    columns = rows if Y is None else np.sqrt(np.abs(to_numpy(kernel.diag(Y))))
    spread = error.relative * np.abs(values) + error.scaled * rows[:, None] * columns + error.absolute
    return Ball(values, 0.0, up(_MORE * spread))


@final
class CandidateEnclosures:
    """What bounds on the game are made of.

    Parameters
    ----------
    gram : Ball of shape (M, M)
        k at the distinct inputs.
    similarity : Ball of shape (N, N)
        The kernel of targets, which that of pairs has as a factor.
    points : Points
        The candidates.
    loss : Loss
        Of f and y.

    Notes
    -----
    Memory: three arrays of N² numbers. Cost of a norm or of values: as a few dozen products of a matrix and a vector.
    """

    def __init__(self, gram: Ball, similarity: Ball, points: Points, loss: Loss) -> None:
        self.gram, self._similarity, self._loss = gram, similarity, loss
        self.place, self.targets, self.shares = points

    @cached_property
    def pair_gram(self) -> Ball:
        """The kernel of pairs at the candidates."""
        return self.gram[np.ix_(self.place, self.place)] * self._similarity

    def losses(self, dual: Array) -> Ball:
        """ℓ_j of f = Σ dual_a k(·, x_a)."""
        return self._loss.enclosed((self.gram @ ball(dual))[self.place], self.targets)

    def squared_norm(self, dual: Array) -> Ball:
        """‖f‖²."""
        return (ball(dual) * (self.gram @ ball(dual))).sum()

    def priced(self, prices: Array) -> tuple[Ball, Ball]:
        """g_j and ‖g‖ of g = Σ c_j k(·, z_j)."""
        g = self.pair_gram @ ball(prices)
        return g, (ball(prices) * g).sum().root()

    def squared_distance(self, weights: Ball) -> Ball:
        """‖w_μ - w_μ̂‖²."""
        moved = weights - self.shares
        return (moved * (self.pair_gram @ moved)).sum()

    def tangent_bound(self, weights: Ball, slopes: Array, regularization: float) -> Ball:
        """Σ μ_j d(p_j, y_j) - ‖Σ μ_j p_j k(·, x_j)‖²/(4λ)."""
        pull = weights * slopes
        images = (self.gram[:, self.place] @ pull)[self.place]
        squared = (pull * images).sum() / Ball(regularization)
        return (weights * self._loss.enclosed_intercepts(slopes, self.targets)).sum() - squared.scaled(-2)

    def are_admissible(self, slopes: Array) -> bool:
        """Whether all slopes are those of tangents."""
        return bool(np.array_equal(self._loss.admissible(slopes, self.targets), slopes))
