"""Mean embeddings: measures as vectors of the reproducing kernel Hilbert space of a kernel (SOS section 2)."""

from __future__ import annotations

from functools import cached_property
from numbers import Real
from typing import Any, final

import numpy as np

from mercer.backends import get_config
from mercer.kernels import Kernel
from mercer.kernels.validation import as_points
from mercer.operators import GramOperator
from mercer.operators.signed import difference, energy
from mercer.validation import require_points, resolved_kernel, weighted_sample

Array = np.ndarray[Any, np.dtype[Any]]


@final
class MeanEmbedding:
    """The vector w = Σ aᵢ k(xᵢ, ·) of a weighted sample, or w = ∫ k(x, ·) p(x) dρ(x) of a density.

    It is the function for which ∫ f dμ = ⟨f, w⟩ for every f of the space; for a characteristic kernel no two
    probability measures share it. Embeddings with the same kernel are vectors: ``2 * w - v`` is one, ``w @ v`` their
    inner product, ``w(Y)`` the values of w as a function.

    Parameters
    ----------
    kernel : Kernel or None
        k; None means ``Gaussian(sigma="median")``. What depends on the data is fixed from X, weighted by |a|: to
        compare two samples fix the kernel first, ``kernel.resolve(np.concatenate([X, Y]))``.
    X : array of shape (n, d)
        The points.
    weights : array or float, optional
        a, of any sign, used as they are; 1/n if left out.

    Attributes
    ----------
    kernel : Kernel
        The kernel with its parameters fixed.
    points, weights : arrays of shape (n, d) and (n,)
        The sample.

    Notes
    -----
    Nothing of size n × n is stored. Evaluation at m points costs n m kernel evaluations, a norm n²/2, an inner product
    or a distance of samples of n and m points about as many as there are pairs. The norm is computed once and kept.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer import Gaussian, MeanEmbedding
    >>> w = MeanEmbedding(Gaussian(sigma=1.0), np.array([[0.0], [1.0]]))
    >>> v = MeanEmbedding(Gaussian(sigma=1.0), np.array([[0.0], [3.0]]))
    >>> round(w.distance(v) ** 2, 6), round(w @ v, 6)
    (0.490842, 0.34658)
    >>> w.witness(v, np.array([[1.0], [3.0]])).round(3)
    array([ 0.701, -0.701])
    """

    __array_ufunc__ = None  # array * embedding is refused instead of becoming an array of embeddings

    def __init__(self, kernel: Any, X: Any, weights: Any = None) -> None:
        require_points(kernel, "A mean embedding evaluates the kernel between points")
        self.points, self.weights = weighted_sample(X, weights, "X", "weights", signed=True)
        used = None if weights is None or not np.any(self.weights) else np.abs(self.weights)
        self.kernel: Kernel = resolved_kernel(kernel, self.points, used)

    def __call__(self, Y: Any) -> Array:
        """⟨w, k(y, ·)⟩ for every row y of Y: the mean of k(x, y) over the measure."""
        Y = as_points(Y, "Y").astype(get_config().dtype, copy=False)
        return np.asarray(GramOperator(self.kernel, Y, self.points) @ self.weights, np.float64)

    def __matmul__(self, other: Any) -> float:
        """The inner product ⟨w, v⟩."""
        other = self._compatible(other)
        return self.norm_squared if other is self else float(self.weights @ other(self.points))

    @cached_property
    def norm_squared(self) -> float:
        """‖w‖²."""
        return energy(self.kernel, self.points, self.weights)

    def norm(self) -> float:
        """‖w‖; of the difference of two embeddings it is their distance."""
        return float(np.sqrt(self.norm_squared))

    def distance(self, other: MeanEmbedding) -> float:
        """The maximum mean discrepancy ‖w - v‖. What two samples have in common leaves no rounding error in it."""
        return (self - other).norm()

    def witness(self, other: MeanEmbedding, Y: Any) -> Array:
        """(w - v)(y)/‖w - v‖ for every row y of Y: the function of unit norm whose means differ most.

        The difference of its means under the two measures is the maximum mean discrepancy. Where the embeddings are
        equal it is zero.
        """
        gap = self - other
        values, norm = gap(Y), gap.norm()
        return values / norm if norm > 0 else np.zeros_like(values)

    def __sub__(self, other: Any) -> MeanEmbedding:
        other = self._compatible(other)
        return self._like(*difference(self.points, self.weights, other.points, other.weights))

    def __add__(self, other: Any) -> MeanEmbedding:
        return self - (-self._compatible(other))

    def __mul__(self, factor: Any) -> MeanEmbedding:
        if isinstance(factor, bool) or not isinstance(factor, Real):
            return NotImplemented
        return self._like(self.points, float(factor) * self.weights)

    def __rmul__(self, factor: Any) -> MeanEmbedding:
        return self.__mul__(factor)

    def __neg__(self) -> MeanEmbedding:
        return -1.0 * self

    def __repr__(self) -> str:
        n, d = self.points.shape
        return f"<MeanEmbedding of {n} points with {d} features under {self.kernel!r}>"

    def _like(self, points: Array, weights: Array) -> MeanEmbedding:
        twin = object.__new__(MeanEmbedding)
        twin.kernel, twin.points, twin.weights = self.kernel, points, weights
        return twin

    def _compatible(self, other: Any) -> MeanEmbedding:
        if not isinstance(other, MeanEmbedding):
            raise TypeError(f"A mean embedding meets another one, not {type(other).__name__}.")
        if not _same(self.kernel, other.kernel):
            raise ValueError(
                f"The embeddings lie in different spaces, of {self.kernel!r} and {other.kernel!r}: make both with the "
                "same kernel, its parameters fixed by kernel.resolve(X)."
            )
        if self.points.shape[1] != other.points.shape[1]:
            raise ValueError(
                f"The embeddings are of points with {self.points.shape[1]} and {other.points.shape[1]} features: they "
                "must agree."
            )
        return other


def _same(one: Kernel, other: Kernel) -> bool:
    """Whether two kernels are the same function: of one kind, with equal parameters all the way down."""
    if type(one) is not type(other):
        return False
    mine, theirs = one.get_params(deep=False), other.get_params(deep=False)
    return all(
        _same(value, theirs[name]) if isinstance(value, Kernel) else bool(value == theirs[name])
        for name, value in mine.items()
    )
