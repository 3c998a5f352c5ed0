"""Mean embeddings: measures as vectors of the Hilbert space of a kernel (SOS section 2; RKHS (6)-(9), (119)).

Every measure here is a sum of *parts* Σ aᵢ N(xᵢ, v I): points with weights where v = 0, and for the Gaussian kernel
exp(-‖x-y‖²/σ²) normal laws of one variance, since

    ∬ k dN(x, v) dN(x', v') = s^{-d/2} exp(-‖x - x'‖²/(s σ²)),   s = 1 + 2(v + v')/σ²

is a Gaussian kernel again. A density k_xᵀ B k_x of that kernel is such a mixture, one law for each pair of its support;
densities of other kernels are masses at the nodes of a quadrature.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property
from numbers import Real
from typing import Any, ClassVar, final

import numpy as np
from sklearn.utils.validation import check_is_fitted

from mercer.backends import get_config
from mercer.backends.arrays import Array, as_double, cast, is_source, is_tensor, like, namespace, to_numpy
from mercer.dependence.growing_mean import Growth
from mercer.dependence.mmd import ALIKE
from mercer.kernels import Gaussian, Kernel
from mercer.kernels.checks import as_points, in_one_unit
from mercer.kernels.integrals import GaussianIntegrals, GaussianMixture, NodeIntegrals, kernel_integrals
from mercer.kernels.integrals.quadrature import MOST_FEATURES
from mercer.kernels.tables import Table, is_frame
from mercer.operators import GramOperator
from mercer.operators.signed_measure import difference, energy, in_units, overflowing, require_room_for_pairs
from mercer.progress import warn_user
from mercer.validation import checked_kernel, require_points, resolved_kernel, warn_if_not, weighted_sample

_ACCURATE = 1e-4  # relative error of a quadrature beyond which a person is warned
_NEEDED = ("kernel_", "support_", "measure_", "factor_")


@final
class MeanEmbedding:
    """The vector w = Σ aᵢ k(xᵢ, ·) of a weighted sample, or w = ∫ k(x, ·) p(x) dx of a density.

    It is the function for which ∫ f dμ = ⟨f, w⟩ for every f of the space (RKHS (125)); for a characteristic kernel no
    two probability measures share it. Embeddings with the same kernel are vectors: ``2 * w - v`` is one, ``w @ v``
    their inner product, ``w(Y)`` the values of w as a function.

    Parameters
    ----------
    kernel : Kernel or None
        k; None means ``Gaussian(sigma="median")``. What depends on the data is fixed from X, weighted by ``abs(a)``: to
        compare two samples fix the kernel first, ``kernel.resolve(np.concatenate([X, Y]))``.
    X : array of shape (n, d)
        The points.
    weights : array or float, optional
        a, of any sign, used as they are; 1/n if left out.

    Attributes
    ----------
    kernel : Kernel
        The kernel with its parameters fixed.
    parts : tuple of GaussianMixture
        The measure: ``weights``, ``means`` and ``variance`` of each part; of a sample one part without variance.

    Notes
    -----
    Nothing of size n × n is stored. Evaluation at m points costs n m kernel evaluations, a norm n²/2, an inner product
    or a distance of measures of n and m points about as many as there are pairs. A density on m points of support
    counts as m²/2 points. The norm is computed once and kept. Of points that are a tensor the values are tensors, too,
    and torch computes them.

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

    kernel: Kernel
    parts: tuple[GaussianMixture, ...]
    _table: Table | None
    _n_first: int | None
    _growth: Growth
    _sometimes: ClassVar[frozenset[str]] = frozenset({"_growth", "_n_first"})

    def __init__(self, kernel: Any, X: Any, weights: Any = None) -> None:
        require_points(kernel, "A mean embedding evaluates the kernel between points")
        self._table = Table.of(X) if is_frame(X) else None
        kernel, X, _ = checked_kernel(kernel).read(X)
        points, signed = weighted_sample(X, weights, "X", "weights", signed=True)
        used = None if weights is None or not bool((signed != 0).any()) else abs(signed)
        self.kernel = resolved_kernel(kernel, points, used)
        self.parts = (GaussianMixture(signed, points, 0.0),)
        self._n_first = int(points.shape[0]) if weights is None else None

    def partial_fit(self, X: Any) -> MeanEmbedding:
        """Make this the embedding of its points and further rows together, which need not be kept; returns itself.

        It stays a sum over the points of the constructor, some hundred rows of the stream, all of equal weight, that
        serve as landmarks: the mean of the sections of all rows, projected on theirs, which agrees with the true one at
        these points. ``projection_error`` bounds the distance between the two.

        Parameters
        ----------
        X : array of shape (k, d) or data frame
            The next rows.
        """
        growth: Growth | None = getattr(self, "_growth", None)
        growth = self._begun() if growth is None else growth
        X = cast(as_points(X if self._table is None else self._table.coded(X)), self.parts[0].means.dtype)
        if X.shape[1] != self.n_features:
            raise ValueError(f"X has {X.shape[1]} features, and the embedding is of points with {self.n_features}.")
        self._growth = growth.with_rows(X)
        self.parts = (GaussianMixture(self._growth.weights, growth.features.components, 0.0),)
        for kept in ("_in_unit", "_energy"):
            self.__dict__.pop(kept, None)
        return self

    def _begun(self) -> Growth:
        """Nothing yet beyond the rows of the constructor, which must count alike and lie in memory."""
        points = self.parts[0].means
        alike = getattr(self, "_n_first", None) is not None and len(self.parts) == 1
        if not alike or is_source(points) or is_tensor(points):
            raise ValueError("partial_fit goes on from a sample in memory whose rows count alike: give no weights.")
        return Growth.of(self.kernel, points)

    @property
    def projection_error(self) -> float:
        """A bound on the distance from the embedding of all rows that were seen; zero without :meth:`partial_fit`."""
        growth: Growth | None = getattr(self, "_growth", None)
        return 0.0 if growth is None else growth.error

    @classmethod
    def of_density(cls, model: Any) -> MeanEmbedding:
        """The embedding of a fitted :class:`mercer.SumOfSquaresDensity`, under its own kernel.

        Exact for the Gaussian kernel on R^d, with Lebesgue's measure or a normal law N(μ, s² I), and for a reference
        that is a sum over nodes. Elsewhere the density is replaced by masses at the nodes of a quadrature, which sum to
        one, in three dimensions at most. For smooth kernels, or on the line, that is accurate to many digits; a kernel
        with kinks has in the plane an error of some per cent, in the norm above all, even where its fit was in closed
        form: a warning says how large it is.
        """
        if not all(hasattr(model, name) for name in _NEEDED):
            if hasattr(model, "fit"):
                check_is_fitted(model)
            raise TypeError(f"of_density takes a fitted SumOfSquaresDensity, not {model!r}.")
        if getattr(model, "sections_", None) is not None:
            raise ValueError(
                "A density of Gaussians with covariances of their own has no one kernel to be embedded under: embed a "
                "sample of it, MeanEmbedding(kernel, model.sample(1000))."
            )
        integrals: Any = kernel_integrals(model.kernel_, model.support_, model.measure_)
        closed = isinstance(integrals, GaussianIntegrals) and integrals.is_isotropic
        if not closed and not isinstance(integrals, NodeIntegrals):
            if integrals.points.shape[1] > MOST_FEATURES:
                raise ValueError(
                    f"A density of {model.kernel_!r} has no embedding in closed form under this measure, and "
                    f"quadrature takes {MOST_FEATURES} features at most: embed a sample of it instead."
                )
            integrals = NodeIntegrals(integrals.kernel, integrals.points, integrals.measure)
        factor = model.factor_ * float(np.exp(0.5 * integrals.log_scale))
        mixture = integrals.mixture(factor @ factor.T)
        if closed:
            return cls._made(integrals.kernel, [mixture])
        if integrals.error > _ACCURATE:
            warn_user(
                f"The embedding of this density of {model.kernel_!r} is a quadrature accurate to {integrals.error:.0e} "
                "only: fit it with kernel=Gaussian(), or embed a sample of the density.",
            )
        masses = mixture.weights / mixture.weights.sum()
        return cls._made(model.kernel_, [GaussianMixture(masses, mixture.means, 0.0)])

    @classmethod
    def _made(cls, kernel: Kernel, parts: Iterable[GaussianMixture], table: Table | None = None) -> MeanEmbedding:
        made = object.__new__(cls)
        made.kernel, made.parts, made._table, made._n_first = kernel, tuple(parts), table, None
        return made

    @property
    def n_features(self) -> int:
        """d."""
        return int(self.parts[0].means.shape[1])

    def __call__(self, Y: Any) -> Array:
        """⟨w, k(y, ·)⟩ for every row y of Y: the mean of k(x, y) over the measure."""
        Y = self._at_home(as_points(Y if self._table is None else self._table.coded(Y), "Y"))
        Y = cast(Y, getattr(namespace(Y), get_config().dtype))
        total = namespace(Y).zeros(Y.shape[0], dtype=namespace(Y).float64, device=Y.device)
        self._require_room(self.parts, int(Y.shape[0]))
        with np.errstate(over="ignore", invalid="ignore"):
            for part in self.parts:
                total += self._smoothed(part, Y, 0.0)
        self._require_finite(total)
        return total

    def _require_room(self, parts: Iterable[GaussianMixture], further: int = 0) -> None:
        """Refuse sums over more pairs than the memory limit has room for; rows that come by blocks take none."""
        there = [part.weights.shape[0] for part in parts if not is_source(part.means)]
        if there:
            require_room_for_pairs(sum(there) + further, self.n_features)

    def _at_home(self, Y: Array) -> Array:
        """Points in the library of the measure."""
        means = self.parts[0].means
        if is_source(Y):
            return Y
        return like(Y, means) if is_tensor(means) else to_numpy(Y)

    def _require_finite(self, values: Any) -> None:
        if not bool(namespace(values).isfinite(values).all()):
            raise ValueError(overflowing(self.kernel) + " Large weights do the same: divide them by their sum.")

    @cached_property
    def _in_unit(self) -> tuple[tuple[GaussianMixture, ...], int]:
        """The parts with weights in units of two to a power, and that power."""
        *weights, power = in_one_unit(*(part.weights for part in self.parts))
        parts = zip(weights, self.parts, strict=True)
        return tuple(GaussianMixture(w, part.means, part.variance) for w, part in parts), power

    def _smoothed(self, part: GaussianMixture, Y: Array, variance: float) -> Array:
        """Σ aᵢ ∬ k dN(xᵢ, v) dN(y, variance) at every row of Y."""
        kernel, factor = self._widened(part.variance + variance)
        return factor * as_double(GramOperator(kernel, Y, part.means) @ part.weights)

    def _widened(self, variance: float) -> tuple[Kernel, float]:
        """The kernel smoothed by a normal law: another Gaussian, and the factor before it."""
        if variance == 0:
            return self.kernel, 1.0
        assert isinstance(self.kernel, Gaussian)
        s = 1.0 + 2.0 * variance / float(self.kernel.sigma) ** 2
        return Gaussian(sigma=float(np.sqrt(s) * self.kernel.sigma)), float(s ** (-0.5 * self.n_features))

    def __matmul__(self, other: Any) -> float:
        """The inner product ⟨w, v⟩."""
        other = self._compatible(other)
        if other is self:
            return self.norm_squared
        (mine, power), (theirs, another) = self._in_unit, other._in_unit
        with np.errstate(over="ignore", invalid="ignore"):
            value = float(sum(self._product(one, self._brought(two)) for one in mine for two in theirs))
        self._require_finite(value)
        return in_units(value, power + another, "The inner product")

    def _brought(self, part: GaussianMixture) -> GaussianMixture:
        """A part of another measure in the library of this one."""
        weights, means = (self._at_home(values) for values in (part.weights, part.means))
        return GaussianMixture(weights, means, part.variance)

    def _product(self, one: GaussianMixture, other: GaussianMixture) -> float:
        return float(one.weights @ self._smoothed(other, one.means, one.variance))

    @property
    def norm_squared(self) -> float:
        """‖w‖²."""
        return in_units(self._energy, 2 * self._in_unit[1], "The squared norm")

    @cached_property
    def _energy(self) -> float:
        """‖w‖² of the weights in their unit."""
        total, (parts, _) = 0.0, self._in_unit
        self._require_room(parts)
        with np.errstate(over="ignore", invalid="ignore"):
            for i, part in enumerate(parts):
                kernel, factor = self._widened(2 * part.variance)
                total += factor * energy(kernel, part.means, part.weights)
                total += 2 * sum(self._product(part, other) for other in parts[:i])
        self._require_finite(total)
        return max(total, 0.0)

    def norm(self) -> float:
        """‖w‖; of the difference of two embeddings it is their distance."""
        return in_units(float(np.sqrt(self._energy)), self._in_unit[1], "The norm")

    def distance(self, other: MeanEmbedding) -> float:
        """The maximum mean discrepancy ‖w - v‖. What two samples have in common leaves no rounding error in it.

        A kernel that is known not to be characteristic is named in a warning.
        """
        warn_if_not("characteristic", self.kernel, ALIKE)
        return (self - other).norm()

    def witness(self, other: MeanEmbedding, Y: Any) -> Array:
        """(w - v)(y)/‖w - v‖ for every row y of Y: the function of unit norm whose means differ most.

        The difference of its means under the two measures is the maximum mean discrepancy. Where the embeddings are
        equal it is zero.
        """
        gap = self - other
        near = self._made(self.kernel, gap._in_unit[0], self._table)
        values, norm = near(Y), near.norm()
        return values / norm if norm > 0 else namespace(values).zeros_like(values)

    def __sub__(self, other: Any) -> MeanEmbedding:
        mine = {part.variance: part for part in self.parts}
        for part in map(self._brought, self._compatible(other).parts):
            negative = GaussianMixture(-part.weights, part.means, part.variance)
            mine[part.variance] = _without(mine[part.variance], part) if part.variance in mine else negative
        return self._made(self.kernel, mine.values(), self._table)

    def __add__(self, other: Any) -> MeanEmbedding:
        return self - (-self._compatible(other))

    def __mul__(self, factor: Any) -> MeanEmbedding:
        if isinstance(factor, bool) or not isinstance(factor, Real):
            return NotImplemented
        if not np.isfinite(float(factor)):
            raise ValueError(f"A mean embedding times {factor!r} is no vector: multiply by a finite number.")
        with np.errstate(over="ignore"):
            scaled = [float(factor) * part.weights for part in self.parts]
        if not all(bool(namespace(weights).isfinite(weights).all()) for weights in scaled):
            raise ValueError(f"A mean embedding times {factor!r} has weights beyond double precision.")
        parts = zip(scaled, self.parts, strict=True)
        return self._made(
            self.kernel, (GaussianMixture(w, part.means, part.variance) for w, part in parts), self._table
        )

    def __rmul__(self, factor: Any) -> MeanEmbedding:
        return self.__mul__(factor)

    def __truediv__(self, divisor: Any) -> MeanEmbedding:
        if isinstance(divisor, bool) or not isinstance(divisor, Real):
            return NotImplemented
        if divisor == 0:
            raise ZeroDivisionError("A mean embedding is divided by zero.")
        with np.errstate(over="ignore"):
            parts = [GaussianMixture(part.weights / float(divisor), part.means, part.variance) for part in self.parts]
        if not all(bool(namespace(part.weights).isfinite(part.weights).all()) for part in parts):
            raise ValueError(f"A mean embedding over {divisor!r} has weights beyond double precision.")
        return self._made(self.kernel, parts, self._table)

    def __neg__(self) -> MeanEmbedding:
        return -1.0 * self

    def __repr__(self) -> str:
        kinds = " and ".join(
            f"{part.weights.shape[0]} {'points' if part.variance == 0 else 'normal laws'}" for part in self.parts
        )
        return f"<MeanEmbedding of {kinds} with {self.n_features} features under {self.kernel!r}>"

    def _compatible(self, other: Any) -> MeanEmbedding:
        if not isinstance(other, MeanEmbedding):
            raise TypeError(f"A mean embedding meets another one, not {type(other).__name__}.")
        if not _same(self.kernel, other.kernel):
            raise ValueError(
                f"The embeddings lie in different spaces, of {self.kernel!r} and {other.kernel!r}: make both with the "
                "same kernel, its parameters fixed by kernel.resolve(X)."
            )
        if (self._table or other._table) and self._table != other._table:
            raise ValueError(
                "The embeddings are of data frames whose columns or categories differ: give both the same, as pandas' "
                "CategoricalDtype does, or compare the samples by mercer.mmd."
            )
        if self.n_features != other.n_features:
            raise ValueError(
                f"The embeddings are of points with {self.n_features} and {other.n_features} features: they must agree."
            )
        return other


def _without(one: GaussianMixture, other: GaussianMixture) -> GaussianMixture:
    """The difference of two parts of one variance."""
    points, signed = difference(one.means, one.weights, other.means, other.weights)
    return GaussianMixture(signed, points, one.variance)


def _same(one: Kernel, other: Kernel) -> bool:
    """Whether two kernels are the same function: of one kind, with equal parameters all the way down."""
    if type(one) is not type(other):
        return False
    mine, theirs = one.get_params(deep=False), other.get_params(deep=False)
    return all(
        _same(value, theirs[name]) if isinstance(value, Kernel) else bool(value == theirs[name])
        for name, value in mine.items()
    )
