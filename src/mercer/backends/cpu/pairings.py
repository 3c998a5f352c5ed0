"""Forms on points in this machine's memory: how points are paired, in which arithmetic, and how accurate that is.

Squared distances come from inner products when that is accurate, and from differences otherwise. With the points
centred and divided by the bandwidth, inner products leave an error of about u·R² in the exponent, R the largest norm
and u the unit roundoff. Where u·R² is too large, float32 points are multiplied in float64, and where that is not enough
the points are subtracted. A profile that behaves like t^p at zero, p < 1, turns an error e into e^p and is held to a
stricter bound.

Differences need no centre: the points are multiplied by a power of two near 1 / length, which is exact, and the rest of
the length goes into the distance. So a difference keeps its digits whatever offset, outliers or units the points have.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import Any

import numpy as np

from mercer.backends import forms
from mercer.backends.accuracy import (
    COORDINATE_LIMIT,
    DIRECT_UP_TO,
    EXPONENT_ERROR,
    LARGEST_DISTANCE,
    PRODUCTS,
    SUBTRACTIONS,
    power_of_two_below,
    profile_error,
)
from mercer.backends.arrays import Array
from mercer.backends.chunks import TALL_ROWS, row_chunks
from mercer.backends.cpu.composites import NormalizedEvaluator, PairEvaluator, ScalarEvaluator
from mercer.backends.cpu.evaluator import Evaluator, Side, Which
from mercer.backends.cpu.panels import largest_norm
from mercer.backends.cpu.profiles import apply, apply_log, log_in_place
from mercer.backends.cpu.program import Builder, Compiled, NotCompiledError
from mercer.backends.cpu.steps import (
    ABSOLUTE,
    CHI2,
    COSINE,
    DOT,
    EXPONENTIAL,
    IDENTITY,
    INNER,
    POWER,
    ROOT_EXPONENTIAL,
    SQUARED,
    TANH,
)
from mercer.backends.cpu.tasks import fill
from mercer.backends.profiles import Exponential, Identity, PowerOfAffine, Profile, RootExponential, TanhOfAffine
from mercer.backends.rounding import EntryError, gamma, unit_of
from mercer.backends.threads import run_chunks, unwatched

_PREPARE_ROWS = 4096
_PAIRINGS = {"sqeuclidean": SQUARED, "cityblock": ABSOLUTE, "chi2": CHI2, "dot": DOT, "cosine": COSINE}


class _PairingEvaluator(Evaluator):
    """A profile of a pairing: programs of compiled loops, and a profile that is none of them by NumPy."""

    def __init__(self, form: forms.Pairing, rows: Array, cols: Array | None, dtype: Any) -> None:
        super().__init__(rows, cols, dtype)
        self._metric, self._profile = form.metric, form.profile

    def values(self, rows: Which, cols: Which, out: Array, *, log: bool = False) -> None:
        fill(self._pairing, rows, cols, out)
        (apply_log if log else apply)(self._profile, out)

    @cached_property
    def _pairing(self) -> Compiled:
        """The program of the pairing alone."""
        twin = object.__new__(type(self))
        twin.__dict__.update(self.__dict__, _profile=Identity(), symmetric=False)
        program = twin._compiled(log=False)
        assert program is not None
        return program

    @property
    def nonnegative(self) -> bool:
        return self._profile.nonnegative


class _DistanceEvaluator(_PairingEvaluator):
    """Squared Euclidean, l1 and chi-squared distances of scaled points."""

    def __init__(self, form: forms.Pairing, rows: Array, cols: Array | None, dtype: Any) -> None:
        super().__init__(form, rows, cols, dtype)
        self._length = float(form.length)
        self._work = self.dtype
        self._use_blas = form.metric == "sqeuclidean" and rows.shape[1] > DIRECT_UP_TO and self._inner_products_hold()
        if not self._use_blas:
            self._choose_scale()

    def _inner_products_hold(self) -> bool:
        """Find the precision in which inner products are accurate enough, if there is one."""
        self._limit = COORDINATE_LIMIT[self.dtype.name]
        self._center = _center(self._points["cols"])
        self._largest = largest = self._largest_norm()
        allowed = EXPONENT_ERROR[self.dtype.name] ** (1 / self._profile.power_at_zero)
        for work in (self.dtype, np.dtype(np.float64)):
            self._work = work
            if np.finfo(work).eps * largest <= allowed:
                return True
        return False

    def _largest_norm(self) -> float:
        sides = ("rows", "cols") if not self.symmetric else ("rows",)
        chunks = [self._points[side][part] for side in sides for part in row_chunks(len(self._points[side]), TALL_ROWS)]
        numbers = np.array([self._length, self._limit])
        with unwatched():
            norms = run_chunks(lambda points: largest_norm(points, INNER, numbers, self._center), chunks)
        return max(norms, default=0.0)

    def _choose_scale(self) -> None:
        """Points times a power of two, distances times a factor: a division by the length without rounding."""
        largest = max(float(np.abs(points).max(initial=0.0)) for points in self._extremes())
        scale = power_of_two_below(1 / self._length, COORDINATE_LIMIT["float64"], largest)
        narrow = self.dtype == np.float32 and scale * largest < COORDINATE_LIMIT["float32"] and 1e-30 < scale < 1e30
        self._work = self.dtype if narrow else np.dtype(np.float64)
        self._scale = self._work.type(scale)
        rest = min(1 / max(self._length * scale, 1e-300), COORDINATE_LIMIT[self.dtype.name])
        self._factor = self.dtype.type(rest**2 if self._metric == "sqeuclidean" else rest)

    def _extremes(self) -> Iterator[Array]:
        """Least and greatest coordinates, found without a copy."""
        for points in self._points.values():
            yield points.min(axis=0, initial=0.0)
            yield points.max(axis=0, initial=0.0)

    def emit(self, builder: Builder, *, log: bool) -> None:
        profile, parameters = profile_step(self._profile)
        if self._use_blas:
            numbers = [self._length, self._limit, 0.0, 0.0, *parameters]
            builder.leaf(INNER, profile, numbers, self._center, self._work, log)
        else:
            most = LARGEST_DISTANCE[self.dtype.name]
            numbers = [float(self._scale), 0.0, float(self._factor), most, *parameters]
            builder.leaf(_PAIRINGS[self._metric], profile, numbers, None, self._work, log)

    @property
    def cost(self) -> float:
        d = self._points["rows"].shape[1]
        compiled_profile = isinstance(self._profile, (Exponential, RootExponential))
        return (d if self._use_blas else 4 * d) + (10 if compiled_profile else 1000)

    @cached_property
    def entry_error(self) -> EntryError:
        d, unit = self.n_features, unit_of(self.dtype)
        if not self._use_blas:
            return profile_error(self._profile, self.dtype, gamma(d + SUBTRACTIONS, unit), 0.0, self._most())
        lost = gamma(2 * d + PRODUCTS, unit_of(self._work)) * self._largest
        return profile_error(self._profile, self.dtype, 4 * unit, lost, 4 * self._largest)

    def _most(self) -> float:
        """A bound on the distances of the points."""
        ends = list(self._extremes())
        with np.errstate(over="ignore"):
            low, high = np.min(ends[::2], axis=0).astype(np.float64), np.max(ends[1::2], axis=0).astype(np.float64)
            ranges = high / self._length - low / self._length  # a chi-squared term is below the larger coordinate
            return float(np.sum(ranges**2 if self._metric == "sqeuclidean" else ranges))

    def diagonal(self, side: Side = "rows") -> Array:
        zeros = np.zeros((1, 1), self.dtype)
        apply(self._profile, zeros)
        return np.full(self._points[side].shape[0], zeros[0, 0])


class _InnerProductEvaluator(_PairingEvaluator):
    """Inner products of the points or of their directions."""

    def emit(self, builder: Builder, *, log: bool) -> None:
        profile, parameters = profile_step(self._profile)
        builder.leaf(_PAIRINGS[self._metric], profile, [0.0, 0.0, 0.0, 0.0, *parameters], None, self.dtype, log)

    @property
    def cost(self) -> float:
        return float(self._points["rows"].shape[1] + (0 if isinstance(self._profile, Identity) else 40))

    @cached_property
    def entry_error(self) -> EntryError:
        """|Δ(x·y)| ≤ γ ‖x‖‖y‖, and (γ‖x‖‖y‖ + c)² ≤ (γ‖x‖² + c)(γ‖y‖² + c) where c ≥ 0."""
        unit = unit_of(self.dtype)
        lost = gamma(self.n_features + 8, unit)
        profile = self._profile
        if isinstance(profile, Identity):
            return EntryError(unit, lost)
        if isinstance(profile, PowerOfAffine) and profile.coef0 >= 0:
            return EntryError(8 * unit, float(np.expm1(profile.degree * np.log1p(lost + 4 * unit))))
        size = (
            max(
                float(np.max(np.linalg.norm(points.astype(np.float64), axis=1), initial=0.0))
                for points in self._points.values()
            )
            ** 2
        )
        if isinstance(profile, PowerOfAffine):
            base = profile.gamma * size + abs(profile.coef0)
            return EntryError(
                8 * unit, 0.0, float(base**profile.degree * np.expm1(profile.degree * np.log1p(2 * lost)))
            )
        return EntryError(
            8 * unit,
            0.0,
            (profile.gamma * size + abs(profile.coef0)) * lost if isinstance(profile, TanhOfAffine) else float("inf"),
        )

    def diagonal(self, side: Side = "rows") -> Array:
        points: Array = self._points[side]
        if self._metric == "dot":
            values = np.einsum("ij,ij->i", points, points, dtype=self.dtype)
        else:
            values = np.any(points != 0, axis=1).astype(self.dtype)
        apply(self._profile, values)
        return values


class StoredEvaluator(Evaluator):
    """A kernel matrix that is given, dense or sparse: the points are its rows."""

    def __init__(self, form: forms.Stored, rows: Any, cols: Any | None, dtype: Any) -> None:
        super().__init__(rows, cols, dtype)
        self.matrix = rows
        self.shape = rows.shape
        self._new_diagonal = form.new_diagonal

    def values(self, rows: Which, cols: Which, out: Array, *, log: bool = False) -> None:
        block = self.matrix[rows][:, cols]
        out[...] = block.toarray() if hasattr(block, "toarray") else block
        if log:
            log_in_place(out)

    @cached_property
    def nonnegative(self) -> bool:
        return 0 in self.shape or bool(self.matrix.min() >= 0)

    @property
    def cost(self) -> float:
        return 0.0

    @property
    def entry_error(self) -> EntryError:
        """None, but where the matrix may have been rounded to single precision on its way here."""
        return EntryError(unit_of(self.matrix.dtype) if self.matrix.dtype == np.float32 else 0.0)

    def diagonal(self, side: Side = "rows") -> Array:
        points = self._points[side]
        if self.symmetric or side == "cols":
            return np.array(points.diagonal(), dtype=self.dtype)
        value = self._new_diagonal
        if value is None:
            training = np.asarray(self._points["cols"].diagonal())
            if not np.all(training == training[0]):
                raise ValueError(
                    "k(x, x) of new points is not known for this precomputed kernel, whose training diagonal is not "
                    "constant: pass Precomputed(new_diagonal=...)."
                )
            value = training[0]
        return np.full(self.shape[0], value, self.dtype)


class FunctionEvaluator(Evaluator):
    """Entries by a function of the kernel's own."""

    def __init__(self, form: forms.TileFunction, rows: Array, cols: Array | None, dtype: Any) -> None:
        super().__init__(rows, cols, dtype)
        self._form = form

    def _some(self, side: Side, which: Which) -> Array:
        return np.asarray(self._points[side][which], self.dtype)

    def values(self, rows: Which, cols: Which, out: Array, *, log: bool = False) -> None:
        logarithm = self._form.logarithm if log else None
        block = (logarithm or self._form.function)(self._some("rows", rows), self._some("cols", cols))
        forms.require_block(block, out.shape)
        out[...] = block
        if log and logarithm is None:
            log_in_place(out)

    @property
    def nonnegative(self) -> bool:
        return self._form.nonnegative

    @property
    def cost(self) -> float:
        return self._form.cost

    @property
    def entry_error(self) -> EntryError:
        return self._form.roundings.in_units(unit_of(self.dtype))

    def diagonal(self, side: Side = "rows") -> Array:
        values = np.array(self._form.diagonal(self._some(side, slice(None))), self.dtype)
        forms.require_block(values, (self._points[side].shape[0],))
        return values


def compile_form(form: forms.Form, rows: Any, cols: Any | None = None, *, dtype: Any = None) -> Evaluator:
    """Make the evaluator of a form on points; ``cols=None`` means the symmetric matrix of ``rows`` with itself.

    Entries have the dtype of the points, or a wider one that is asked for: points are then widened tile by tile.
    """
    if isinstance(form, forms.Pairing):
        kind = _InnerProductEvaluator if form.metric in ("dot", "cosine") else _DistanceEvaluator
        return kind(form, rows, cols, dtype)
    if isinstance(form, forms.Stored):
        return StoredEvaluator(form, rows, cols, dtype)
    if isinstance(form, forms.TileFunction):
        return FunctionEvaluator(form, rows, cols, dtype)
    if isinstance(form, (forms.SumOf, forms.ProductOf)):
        left, right = (compile_form(part, rows, cols, dtype=dtype) for part in (form.left, form.right))
        return PairEvaluator(left, right, isinstance(form, forms.ProductOf), rows, cols)
    if isinstance(form, forms.MultipleOf):
        return ScalarEvaluator(compile_form(form.inner, rows, cols, dtype=dtype), form.factor, False, rows, cols)
    if isinstance(form, forms.PowerOf):
        return ScalarEvaluator(compile_form(form.inner, rows, cols, dtype=dtype), form.exponent, True, rows, cols)
    if isinstance(form, forms.NormalizedOf):
        return NormalizedEvaluator(compile_form(form.inner, rows, cols, dtype=dtype), rows, cols)
    raise TypeError(f"No CPU evaluator for {type(form).__name__}.")


def profile_step(profile: Profile) -> tuple[int, tuple[float, float, float]]:
    """The number of a profile in compiled loops, and its parameters."""
    if isinstance(profile, Exponential):
        return EXPONENTIAL, (0.0, 0.0, 0.0)
    if isinstance(profile, RootExponential):
        return ROOT_EXPONENTIAL, (profile.linear, profile.quadratic, 0.0)
    if isinstance(profile, Identity):
        return IDENTITY, (0.0, 0.0, 0.0)
    if isinstance(profile, PowerOfAffine) and profile.degree % 1 == 0:
        return POWER, (profile.gamma, profile.coef0, float(profile.degree))
    if isinstance(profile, TanhOfAffine):
        return TANH, (profile.gamma, profile.coef0, 0.0)
    raise NotCompiledError


def _center(points: Array) -> Array:
    """A point amid the others: the mean, halved before the sum so that it cannot overflow."""
    n = max(points.shape[0], 1)
    total = np.zeros(points.shape[1])
    for lo in range(0, points.shape[0], _PREPARE_ROWS):
        total += np.sum(points[lo : lo + _PREPARE_ROWS] / (2.0 * n), axis=0, dtype=np.float64)
    return 2 * total
