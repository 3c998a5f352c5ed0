"""What is known of a form on given points before an entry is made, on any device: shape, sign, cost and accuracy.

A device adds how tiles are made (:mod:`mercer.backends.cpu.program`, :mod:`mercer.backends.torch.entries`). Here are
forms made of other forms, of functions and of given entries; distances and inner products are in
:mod:`mercer.backends.pairings`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from functools import cached_property
from typing import Any, Literal

import numpy as np

from mercer.backends import forms
from mercer.backends.arrays import Array, cast, chosen_columns, dtype_name, namespace
from mercer.backends.ordering import equal_pairs, flatnonzero
from mercer.backends.rounding import EntryError, unit_of

Side = Literal["rows", "cols"]
Which = Any  # a slice of step one, or an array of whole numbers


class FormEntries(ABC):
    """One form on given points, evaluated in the arithmetic of the points or in a wider one.

    Parameters
    ----------
    rows, cols : arrays of shape (n, d) and (m, d)
        Points; ``cols=None`` means the symmetric matrix of ``rows`` with itself.
    dtype : dtype, optional
        Of the entries.
    """

    def __init__(self, rows: Any, cols: Any | None, dtype: Any = None) -> None:
        self._points = {"rows": rows, "cols": rows if cols is None else cols}
        self.symmetric = cols is None
        self.shape = (int(rows.shape[0]), int(self._points["cols"].shape[0]))
        self.n_features = int(rows.shape[1])
        widest = namespace(rows).result_type(rows.dtype, self._points["cols"].dtype) if dtype is None else dtype
        self.dtype = self._precision(widest)

    def _precision(self, dtype: Any) -> Any:
        """A precision as the library of the points has it."""
        xp = namespace(self._points["rows"])
        return np.dtype(dtype_name(dtype)) if xp is np else getattr(xp, dtype_name(dtype))

    def full(self, shape: tuple[int, ...], value: float) -> Array:
        """An array of one number in the precision of the entries, where the points lie."""
        rows = self._points["rows"]
        return namespace(rows).full(shape, value, dtype=self.dtype, device=getattr(rows, "device", None))

    @property
    def unit(self) -> float:
        """The unit roundoff of the entries."""
        return unit_of(self.dtype)

    @abstractmethod
    def diagonal(self, side: Side = "rows") -> Array:
        """k(x, x) of every point of one side."""

    @property
    @abstractmethod
    def nonnegative(self) -> bool:
        """Whether k ≥ 0 is known, so that logarithms tell all of it and may be combined."""

    @property
    @abstractmethod
    def cost(self) -> float:
        """What an entry costs to evaluate, in units of one coordinate of an inner product."""

    @property
    @abstractmethod
    def entry_error(self) -> EntryError:
        """How far an entry, the diagonal's too, can be from the kernel's value at the points given."""

    @cached_property
    def _diagonal(self) -> Array:
        return self.diagonal("rows")

    def set_diagonal(self, rows: Which, cols: Which, tile: Array, *, log: bool = False) -> None:
        """Write the exact diagonal where a tile of a symmetric matrix crosses it."""
        if not self.symmetric:
            return
        xp, diagonal = namespace(tile), self._diagonal

        if isinstance(rows, slice) and isinstance(cols, slice):
            first, last = max(rows.start, cols.start), min(rows.stop, cols.stop)
            if first >= last:
                return
            i = xp.arange(first, last, device=tile.device)
            at, values = (i - rows.start, i - cols.start), diagonal[i]
        elif isinstance(rows, slice):
            hit = flatnonzero((cols >= rows.start) & (cols < rows.stop))
            at, values = (cols[hit] - rows.start, hit), diagonal[cols[hit]]
        elif isinstance(cols, slice):
            hit = flatnonzero((rows >= cols.start) & (rows < cols.stop))
            at, values = (hit, rows[hit] - cols.start), diagonal[rows[hit]]
        else:
            at = equal_pairs(rows, cols)
            values = diagonal[cols[at[1]]]
        if log:  # where k(x, x) underflows, the tile knows its logarithm
            seen = values > 0
            at, values = (at[0][seen], at[1][seen]), xp.log(values[seen])
        tile[at] = values


class PairForm(FormEntries):
    """Sum or product of two kernels on the same points."""

    def __init__(self, form: Any, rows: Any, cols: Any | None, dtype: Any, left: Any, right: Any) -> None:
        super().__init__(rows, cols, dtype)
        self.shape = left.shape
        self._left, self._right, self._product = left, right, isinstance(form, forms.ProductOf)

    @abstractmethod
    def _combined(self, left: Array, right: Array) -> Array:
        """The sum or product of two arrays, in place of the first."""

    @property
    def nonnegative(self) -> bool:
        return bool(self._left.nonnegative and self._right.nonnegative)

    @property
    def cost(self) -> float:
        return float(self._left.cost + self._right.cost)

    @property
    def entry_error(self) -> EntryError:
        left, right = self._left.entry_error, self._right.entry_error
        if self._product:
            return left.times(right, unit=self.unit)
        return left.plus(right, nonnegative=self.nonnegative, unit=self.unit)

    def diagonal(self, side: Side = "rows") -> Array:
        return self._combined(self._left.diagonal(side), self._right.diagonal(side))


class FormOfOne(FormEntries):
    """Made of the entries of one other form, ``_inner``, with their signs and their cost."""

    _inner: Any

    @property
    def nonnegative(self) -> bool:
        return bool(self._inner.nonnegative)

    @property
    def cost(self) -> float:
        return float(self._inner.cost)


class ScalarForm(FormOfOne):
    """A multiple or a power of one kernel."""

    def __init__(self, form: Any, rows: Any, cols: Any | None, dtype: Any, inner: Any) -> None:
        super().__init__(rows, cols, dtype)
        self.shape = inner.shape
        self._inner, self._power = inner, isinstance(form, forms.PowerOf)
        self._value = float(form.exponent if self._power else form.factor)

    @abstractmethod
    def _changed(self, values: Array) -> Array:
        """The multiple or power of an array, in place."""

    @property
    def nonnegative(self) -> bool:
        return super().nonnegative or (self._power and self._value % 2 == 0)

    @property
    def entry_error(self) -> EntryError:
        inner = self._inner.entry_error
        return inner.power(self._value, unit=self.unit) if self._power else inner.multiple(self._value, unit=self.unit)

    def diagonal(self, side: Side = "rows") -> Array:
        return self._changed(self._inner.diagonal(side))


class NormalizedForm(FormOfOne):
    """k(x, y) / sqrt(k(x, x) k(y, y))."""

    def __init__(self, form: Any, rows: Any, cols: Any | None, dtype: Any, inner: Any) -> None:
        super().__init__(rows, cols, dtype)
        self.shape = inner.shape
        self._inner = inner
        rows, cols = (inverse_root(checked_diagonal(inner.diagonal(side))) for side in ("rows", "cols"))
        self._scales = {"rows": rows, "cols": cols}

    @property
    def entry_error(self) -> EntryError:
        return self._inner.entry_error.normalised(unit=self.unit)

    def diagonal(self, side: Side = "rows") -> Array:
        return cast(self._scales[side] > 0, self.dtype)


def checked_diagonal(diagonal: Array) -> Array:
    """Values k(x, x) to normalise by, all of them finite and none negative."""
    if bool((diagonal < 0).any()):
        raise ValueError("A kernel with a negative k(x, x) cannot be normalised.")
    if not bool(namespace(diagonal).isfinite(diagonal).all()):
        raise ValueError(
            "A kernel whose k(x, x) leaves floating point cannot be normalised: bring the points, or its parameters, "
            "to a size near one."
        )
    return diagonal


def inverse_root(diagonal: Array) -> Array:
    """1/√k(x, x), zero where k(x, x) is."""
    xp = namespace(diagonal)
    safe = xp.where(diagonal > 0, diagonal, xp.ones_like(diagonal))
    return cast(xp.where(diagonal > 0, 1 / xp.sqrt(safe), xp.zeros_like(diagonal)), diagonal.dtype)


class StoredForm(FormEntries):
    """A kernel matrix that is given, dense or sparse: the points are its rows."""

    def __init__(self, form: forms.Stored, rows: Any, cols: Any | None, dtype: Any) -> None:
        super().__init__(rows, cols, dtype)
        self.matrix = rows
        self.shape = (int(rows.shape[0]), int(rows.shape[1]))
        self._new_diagonal, self._given, self.of_logarithms = form.new_diagonal, form.error, form.logarithms

    @abstractmethod
    def _diagonal_of(self, matrix: Any) -> Array:
        """The diagonal of a square matrix."""

    def _values_of(self, given: Array) -> Array:
        """k, where its logarithms may be given."""
        return namespace(given).exp(given) if self.of_logarithms else given

    @property
    def cost(self) -> float:
        return 0.0

    @property
    def entry_error(self) -> EntryError:
        """What is stated of the entries; where they may have been rounded to single precision, that comes on top."""
        narrow = self.dtype if self.of_logarithms else self.matrix.dtype
        rounded = EntryError(unit_of(narrow) if dtype_name(narrow) == "float32" else 0.0)
        return rounded if self._given == EntryError(0.0) else self._given.beside(rounded)

    def diagonal(self, side: Side = "rows") -> Array:
        if self.symmetric or side == "cols":
            return cast(self._values_of(self._diagonal_of(self._points[side])), self.dtype)
        value = self._new_diagonal
        if value is None:
            training = self._values_of(self._diagonal_of(self._points["cols"]))
            if not bool((training == training[0]).all()):
                raise ValueError(
                    "k(x, x) of new points is not known for this precomputed kernel, whose training diagonal is not "
                    "constant: pass Precomputed(new_diagonal=...)."
                )
            value = float(training[0])
        return self.full(self.shape[:1], value)


class FunctionForm(FormEntries):
    """Entries by a function of the kernel's own."""

    def __init__(self, form: forms.TileFunction, rows: Any, cols: Any | None, dtype: Any) -> None:
        super().__init__(rows, cols, dtype)
        self._form = form

    @property
    def nonnegative(self) -> bool:
        return self._form.nonnegative

    @property
    def cost(self) -> float:
        return self._form.cost

    @property
    def entry_error(self) -> EntryError:
        return self._form.roundings.in_units(self.unit)


class ColumnsForm(FormOfOne):
    """A kernel on some columns of the points, which knows no others."""

    def __init__(self, form: forms.OnColumns, rows: Any, cols: Any | None, dtype: Any, inner: Any) -> None:
        super().__init__(rows, cols, dtype)
        self._inner, self._columns = inner, form.columns

    @property
    def entry_error(self) -> EntryError:
        error: EntryError = self._inner.entry_error
        return error

    def diagonal(self, side: Side = "rows") -> Array:
        values: Array = self._inner.diagonal(side)
        return values


Kinds = Mapping[type, Callable[..., Any]]  # what a device makes of each form


def entries_of(kinds: Kinds, form: forms.Form, rows: Any, cols: Any | None = None, *, dtype: Any = None) -> Any:
    """What a device makes of a form on points; ``cols=None`` means the symmetric matrix of ``rows`` with itself."""
    if type(form) not in kinds:
        raise TypeError(f"{type(form).__name__} is no form that can be evaluated on these points.")
    seen = rows, cols
    if isinstance(form, forms.OnColumns):
        seen = chosen_columns(rows, form.columns), None if cols is None else chosen_columns(cols, form.columns)
    parts = [entries_of(kinds, part, *seen, dtype=dtype) for part in form.parts]
    return kinds[type(form)](form, rows, cols, dtype, *parts)
