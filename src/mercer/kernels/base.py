"""The kernel: parameters as in scikit-learn, values by a declared form, algebra by operators."""

from __future__ import annotations

import inspect
import math
from abc import ABC, abstractmethod
from functools import cache
from typing import Any, ClassVar

import numpy as np

from mercer.backends.arrays import Array, cast, dtype_name, is_tensor, namespace
from mercer.backends.forms import Form
from mercer.backends.matrix import KernelMatrix, kernel_matrix
from mercer.kernels.checks import as_sides
from mercer.kernels.properties import Properties
from mercer.kernels.tables import Table, is_frame
from mercer.wording import parameters_in_a_line


class UnresolvedKernelError(ValueError):
    """A kernel was called before its data-dependent parameters were fixed."""


class Kernel(ABC):
    """A symmetric function k(x, y) of two points.

    ``k(X, Y=None)`` is a dense block, ``k.diag(X)`` its diagonal. ``k1 + k2``, ``k1 * k2``, ``c * k``, ``k ** p``,
    ``k.normalized()`` and ``k.on(columns)`` are kernels. A kernel whose parameters depend on the data
    (``sigma="median"``) refuses to be called until :meth:`resolve` has fixed them, so that fit and predict cannot use
    different bandwidths. A data frame may take the place of an array.
    """

    __array_ufunc__ = None  # array * kernel is refused instead of becoming an array of kernels
    _elsewhere: ClassVar[dict[str, str]] = {}  # parameters of other libraries, and ours in terms of them

    def __new__(cls, *args: Any, **params: Any) -> Any:
        """Refuse a parameter that the kernel does not have, with the one that does the same."""
        names = _parameter_names(cls)
        for name in params:
            if name not in names:
                raise TypeError(cls._no_parameter(name, names))
        return super().__new__(cls)

    @classmethod
    def _no_parameter(cls, name: str, names: Any) -> str:
        hint = f" Give {cls._elsewhere[name]}." if name in cls._elsewhere else ""
        return f"{cls.__name__} has no parameter {name!r}; it has {', '.join(names) or 'none'}.{hint}"

    @abstractmethod
    def _form(self, n_features: int) -> Form:
        """Declare how the kernel is evaluated on points with so many features; parameters are validated here."""

    @property
    @abstractmethod
    def properties(self) -> Properties:
        """What is known of this kernel."""

    @property
    def is_resolved(self) -> bool:
        """Whether every parameter is fixed."""
        return all(kernel.is_resolved for kernel in self._inner_kernels())

    @property
    def is_local(self) -> bool:
        """Whether k is zero but between neighbours of a training set: a part of the set is then no small copy of it."""
        return any(kernel.is_local for kernel in self._inner_kernels())

    def resolve(self, X: Any, sample_weight: Any = None) -> Kernel:
        """Return a kernel with data-dependent parameters fixed from X; the kernel itself is not changed."""
        kernel, X, _ = self.read(X)
        if kernel is not self:
            return kernel.resolve(X, sample_weight)
        changed = {
            name: value.resolve(X, sample_weight) if isinstance(value, Kernel) else value
            for name, value in self._own_params().items()
        }
        return type(self)(**changed)

    def form(self, n_features: int) -> Form:
        """Return the declared form; an unresolved kernel has none."""
        if not self.is_resolved:
            raise UnresolvedKernelError(
                f"{self!r} depends on the data: call kernel = kernel.resolve(X) with the training points first."
            )
        return self._form(n_features)

    def matrix(self, X: Any, Y: Any = None, *, dtype: Any = None) -> KernelMatrix:
        """The kernel matrix of points X (and Y) where they lie; entries of the points' dtype, or of a wider one."""
        form = self.form(X.shape[1])
        if dtype is None:
            dtype = X.dtype if Y is None else namespace(X).result_type(X.dtype, Y.dtype)
        return kernel_matrix(form, *self._points(X, Y), dtype=dtype)

    def __call__(self, X: Any, Y: Any = None) -> Any:
        """Return the block k(X, Y), or the symmetric k(X, X) if Y is None or X itself.

        Two single points, as one-dimensional arrays, give the number k(x, y): some of scikit-learn's estimators ask for
        one pair at a time.
        """
        if _is_vector(X) and _is_vector(Y):
            return float(self(X[None], Y[None])[0, 0])
        kernel, X, Y = self.read(X, Y)
        X, Y = kernel._checked(X, Y)
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):  # what is not finite is named
            return self._finite(kernel.matrix(X, Y).dense())

    def diag(self, X: Any) -> Array:
        """Return k(x, x) for every row of X, equal bit for bit to the diagonal of ``k(X)``."""
        kernel, X, _ = self.read(X)
        X = kernel._checked(X, None)[0]
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            return self._finite(kernel.matrix(X).diagonal())

    def log(self, X: Any, Y: Any = None) -> Array:
        """Return log k(X, Y), finite where k underflows; minus infinity where k is zero."""
        kernel, X, Y = self.read(X, Y)
        return kernel.matrix(*kernel._checked(X, Y)).log_block(slice(None), slice(None))

    def on(self, columns: Any) -> Kernel:
        """Return the kernel of some columns of the points: numbers, or names of a data frame's, one or several."""
        from mercer.kernels.on_columns import OnColumns

        return OnColumns(self, columns)

    def read_as_numbers(self, n_features: int) -> frozenset[int]:
        """The columns whose numbers the kernel calculates with; of others it sees at most whether they are equal."""
        inner = self._inner_kernels()
        return (
            frozenset().union(*(k.read_as_numbers(n_features) for k in inner))
            if inner
            else frozenset(range(n_features))
        )

    def bound(self, table: Table) -> Kernel:
        """The kernel on the columns of a table: those that it names as numbers."""
        changed = {name: k.bound(table) for name, k in self._own_params().items() if isinstance(k, Kernel)}
        return type(self)(**{**self._own_params(), **changed}) if changed else self

    @property
    def reads(self) -> frozenset[Any] | None:
        """The columns that it depends on, as numbers or names; None for all there are."""
        sets = [kernel.reads for kernel in self._inner_kernels()]
        return None if not sets or None in sets else frozenset().union(*sets)  # type: ignore[arg-type]

    def read(self, X: Any, Y: Any = None) -> tuple[Kernel, Any, Any]:
        """The kernel and points, those of data frames as arrays in which equal categories have equal numbers."""
        if not is_frame(X):
            return self, X, Y
        table = Table.of(X) if Y is None or Y is X else Table.of(X, Y)
        kernel = self.bound(table)
        table.require_numbers(kernel)
        return kernel, table.coded(X), None if Y is None or Y is X else table.coded(Y)

    def _finite(self, values: Array) -> Array:
        """The values, if they all are numbers."""
        count = math.prod(values.shape)
        if count and not (math.isfinite(values.min()) and math.isfinite(values.max())):
            bad = int((~namespace(values).isfinite(values)).sum())
            raise ValueError(
                f"{self!r} is not a finite number of {dtype_name(values.dtype)} at {bad} of {count} pairs of these "
                "points: bring the points, or its parameters, to a size near one."
            )
        return values

    def _checked(self, X: Any, Y: Any) -> tuple[Any, Any]:
        """Validate both sides, as every inner kernel asks for; Y being X means the symmetric block."""
        inner = self._inner_kernels()
        for kernel in inner:
            X, Y = kernel._checked(X, Y)
        return (X, Y) if inner else as_sides(X, Y)

    def _points(self, X: Any, Y: Any) -> tuple[Any, Any]:
        """What the form is evaluated on: both sides in one dtype, or what a kernel of its own kind makes of them."""
        inner = self._inner_kernels()
        if self._reader is not None:
            if len({repr(kernel._reader) for kernel in inner}) > 1:
                raise ValueError(
                    f"{self!r} combines a kernel that learns from its training points with another kernel, and only "
                    "one that has the same training points and neighbours has values at the same pairs: use one alone."
                )
            return inner[0]._points(X, Y)
        if Y is None:
            return X, None
        dtype = namespace(X).result_type(X.dtype, Y.dtype)
        return cast(X, dtype), cast(Y, dtype)

    @property
    def _reader(self) -> Kernel | None:
        """The kernel inside that makes something of points before a form is evaluated; None for the most."""
        return next((reader for kernel in self._inner_kernels() if (reader := kernel._reader) is not None), None)

    def _own_params(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in _parameter_names(type(self))}

    def _inner_kernels(self) -> list[Kernel]:
        return [value for value in self._own_params().values() if isinstance(value, Kernel)]

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the parameters by name, with those of inner kernels as ``name__parameter`` if deep."""
        params = self._own_params()
        if deep:
            for name, value in list(params.items()):
                if isinstance(value, Kernel):
                    params.update({f"{name}__{key}": inner for key, inner in value.get_params().items()})
        return params

    def set_params(self, **params: Any) -> Kernel:
        """Set parameters in place, ``name__parameter`` reaching inner kernels, and return self."""
        own = self._own_params()
        own_first = sorted(params.items(), key=lambda item: "__" in item[0])
        for key, value in own_first:
            name, _, rest = key.partition("__")
            if name not in own:
                raise ValueError(self._no_parameter(name, own))
            if rest:
                inner = getattr(self, name)
                if not isinstance(inner, Kernel):
                    raise ValueError(f"{name}={inner!r} is not a kernel, so it has no parameter {rest!r}.")
                inner.set_params(**{rest: value})
            else:
                setattr(self, name, value)
        return self

    def __repr__(self) -> str:
        """Return the constructor call, in a line: without defaults where it would be longer."""
        return parameters_in_a_line(self, self._own_params())

    def _spelled(self) -> str:
        """The whole constructor call, however long: two kernels that spell alike are the same."""
        own = self._own_params().items()
        return f"{type(self).__name__}({', '.join(f'{name}={spelled(value)}' for name, value in own)})"

    def __add__(self, other: Any) -> Kernel:
        """Return the sum of two kernels."""
        from mercer.kernels.algebra import Sum

        return Sum(self, other) if isinstance(other, Kernel) else NotImplemented

    def __mul__(self, other: Any) -> Kernel:
        """Return the product with a kernel or with a positive number."""
        from mercer.kernels.algebra import Product, Scaled

        if isinstance(other, Kernel):
            return Product(self, other)
        return Scaled(other, self) if _is_scalar(other) else NotImplemented

    def __rmul__(self, other: Any) -> Kernel:
        """Return the product with a positive number."""
        return self.__mul__(other)

    def __pow__(self, exponent: Any) -> Kernel:
        """Return the entrywise power."""
        from mercer.kernels.algebra import Power

        return Power(self, exponent) if _is_scalar(exponent) else NotImplemented

    def normalized(self) -> Kernel:
        """Return k(x, y) / sqrt(k(x, x) k(y, y))."""
        from mercer.kernels.algebra import Normalized

        return Normalized(self)


@cache
def _parameter_names(kind: type[Kernel]) -> list[str]:
    return [name for name in inspect.signature(kind.__init__).parameters if name != "self"]


def _is_vector(x: Any) -> bool:
    return (isinstance(x, np.ndarray) or is_tensor(x)) and x.ndim == 1


def _is_scalar(value: Any) -> bool:
    """Whether a value is a scalar of any kind; what kind is checked, with a sentence, where it is used."""
    return bool(np.isscalar(value))


def spelled(value: Any) -> str:
    """A parameter in full: kernels by their whole call, arrays by all their numbers."""
    if isinstance(value, Kernel):
        return value._spelled()
    if hasattr(value, "tolist"):
        return repr(value.tolist())
    return repr(value)
