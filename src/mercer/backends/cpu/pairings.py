"""Forms on points in this machine's memory: pairings, given entries, functions, and the programs of them."""

from __future__ import annotations

from functools import cached_property, partial
from typing import Any, final

import numpy as np

from mercer.backends import forms
from mercer.backends.arrays import Array
from mercer.backends.chunks import TALL_ROWS, row_chunks
from mercer.backends.cpu.composites import ColumnsEvaluator, NormalizedEvaluator, PairEvaluator, ScalarEvaluator
from mercer.backends.cpu.panels import largest_norm
from mercer.backends.cpu.profiles import apply, apply_log, log_in_place
from mercer.backends.cpu.program import Builder, Compiled, Evaluator, Leaf, NotCompiledError
from mercer.backends.cpu.steps import (
    ABSOLUTE,
    CHI2,
    COSINE,
    DOT,
    EXPONENTIAL,
    IDENTITY,
    INNER,
    MISMATCHES,
    POWER,
    ROOT_EXPONENTIAL,
    SQUARED,
    TANH,
    WEIGHED_ABSOLUTE,
    WEIGHED_SQUARED,
)
from mercer.backends.cpu.tasks import fill
from mercer.backends.entries import FunctionForm, Side, StoredForm, Which, entries_of
from mercer.backends.pairings import LARGEST_DISTANCE, DistanceForm, InnerProductForm, PairingForm
from mercer.backends.profiles import Exponential, Identity, PowerOfAffine, Profile, RootExponential, TanhOfAffine
from mercer.backends.threads import run_chunks, unwatched

_PREPARE_ROWS = 4096
_PAIRINGS = {"sqeuclidean": SQUARED, "cityblock": ABSOLUTE, "chi2": CHI2, "dot": DOT, "cosine": COSINE}
_WEIGHED = {"sqeuclidean": WEIGHED_SQUARED, "cityblock": WEIGHED_ABSOLUTE, "mismatches": MISMATCHES}


class _PairingEvaluator(PairingForm, Evaluator):
    """A profile of a pairing: programs of compiled loops, and a profile that is none of them by NumPy."""

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

    def _profiled(self, values: Array) -> Array:
        apply(self._profile, values)
        return values


@final
class _DistanceEvaluator(DistanceForm, _PairingEvaluator):
    """Distances of scaled points, and the weight of columns that differ."""

    def _center_of(self, points: Array) -> Array:
        """The mean, halved before the sum so that it cannot overflow."""
        n = max(points.shape[0], 1)
        total = np.zeros(points.shape[1])
        for part in row_chunks(points.shape[0], _PREPARE_ROWS):
            total += np.sum(points[part] / (2.0 * n), axis=0, dtype=np.float64)
        return 2 * total

    def _largest_norm(self) -> float:
        sides = ("rows", "cols") if not self.symmetric else ("rows",)
        chunks = [self._points[side][part] for side in sides for part in row_chunks(len(self._points[side]), TALL_ROWS)]
        lengths, limit, center = self._lengths, self._limit, self._center
        with unwatched():
            norms = run_chunks(lambda points: largest_norm(points, INNER, lengths, limit, center), chunks)
        return max(norms, default=0.0)

    def emit(self, builder: Builder, *, log: bool) -> None:
        profile, parameters = profile_step(self._profile)
        none = np.zeros(self.n_features)
        if self._by_products:
            leaf = Leaf(INNER, profile, [self._limit, 0.0, 0.0, *parameters], self._center, self._lengths, none)
        else:
            factor, most = float(self.dtype.type(self._factor)), LARGEST_DISTANCE[self._name]
            pairing = (_WEIGHED if self._weighed else _PAIRINGS)[self._metric]
            leaf = Leaf(pairing, profile, [0.0, factor, most, *parameters], none, self._scales, self._weights)
        builder.leaf(leaf, self._work, log)


@final
class _InnerProductEvaluator(InnerProductForm, _PairingEvaluator):
    """Inner products of the points or of their directions."""

    def emit(self, builder: Builder, *, log: bool) -> None:
        profile, parameters = profile_step(self._profile)
        none = np.zeros(self.n_features)
        leaf = Leaf(_PAIRINGS[self._metric], profile, [0.0, 0.0, 0.0, *parameters], none, self._lengths, none)
        builder.leaf(leaf, self.dtype, log)

    def diagonal(self, side: Side = "rows") -> Array:
        points: Array = self._points[side]
        if self._metric == "dot":
            return self._profiled(np.einsum("ij,ij->i", points, points, dtype=self.dtype))
        return self._profiled(np.any(points != 0, axis=1).astype(self.dtype))


@final
class StoredEvaluator(StoredForm, Evaluator):
    """A kernel matrix that is given, dense or sparse: the points are its rows."""

    def values(self, rows: Which, cols: Which, out: Array, *, log: bool = False) -> None:
        block = self.matrix[rows][:, cols]
        out[...] = block.toarray() if hasattr(block, "toarray") else block
        if log:
            log_in_place(out)

    @cached_property
    def nonnegative(self) -> bool:
        return 0 in self.shape or self.of_logarithms or bool(self.matrix.min() >= 0)

    def _diagonal_of(self, matrix: Any) -> Array:
        return np.array(matrix.diagonal())


@final
class FunctionEvaluator(FunctionForm, Evaluator):
    """Entries by a function of the kernel's own."""

    def _some(self, side: Side, which: Which) -> Array:
        return np.asarray(self._points[side][which], self.dtype)

    def values(self, rows: Which, cols: Which, out: Array, *, log: bool = False) -> None:
        logarithm = self._form.logarithm if log else None
        block = (logarithm or self._form.function)(self._some("rows", rows), self._some("cols", cols))
        forms.require_block(block, out.shape)
        out[...] = block
        if log and logarithm is None:
            log_in_place(out)

    def diagonal(self, side: Side = "rows") -> Array:
        values = np.array(self._form.diagonal(self._some(side, slice(None))), self.dtype)
        forms.require_block(values, (self._points[side].shape[0],))
        return values


def _pairing(form: forms.Pairing, *points: Any) -> Evaluator:
    return (_InnerProductEvaluator if form.metric in ("dot", "cosine") else _DistanceEvaluator)(form, *points)


compile_form = partial(
    entries_of,
    {
        forms.Pairing: _pairing,
        forms.Stored: StoredEvaluator,
        forms.TileFunction: FunctionEvaluator,
        forms.SumOf: PairEvaluator,
        forms.ProductOf: PairEvaluator,
        forms.MultipleOf: ScalarEvaluator,
        forms.PowerOf: ScalarEvaluator,
        forms.NormalizedOf: NormalizedEvaluator,
        forms.OnColumns: ColumnsEvaluator,
    },
)


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
