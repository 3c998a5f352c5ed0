"""A kernel of data frames with columns of several kinds."""

from __future__ import annotations

from typing import Any, final

from mercer.backends import forms
from mercer.kernels.base import Kernel, UnresolvedKernelError
from mercer.kernels.categories import Categories
from mercer.kernels.properties import Properties
from mercer.kernels.stationary import Gaussian
from mercer.kernels.tables import Table


@final
class Mixed(Kernel):
    """A kernel of the columns that hold numbers times one of those that hold categories, whichever a data frame has.

    :meth:`resolve` or a fit sees the data frame and makes ``numbers.on([…]) * categories.on([…])`` of it. Texts,
    categories and booleans are categories. Of an array, all columns are numbers.

    Parameters
    ----------
    numbers : Kernel or None, default=None
        Of the columns of numbers; None means ``Gaussian("columns")``, a bandwidth for each.
    categories : Kernel or None, default=None
        Of the columns of categories; None means ``Categories()``.

    Examples
    --------
    >>> import pandas
    >>> from mercer.kernels import Mixed
    >>> frame = pandas.DataFrame({"size": [1.0, 2.0, 4.0], "colour": ["red", "blue", "red"]})
    >>> Mixed().resolve(frame)
    Product(left=Gaussian(sigma=(2.0,)).on([0]), right=Categories(sigma=1.0).on([1]))
    """

    def __init__(self, numbers: Kernel | None = None, categories: Kernel | None = None) -> None:
        self.numbers = numbers
        self.categories = categories

    @property
    def is_resolved(self) -> bool:
        """Never: it becomes another kernel when it is resolved."""
        return False

    @property
    def properties(self) -> Properties:
        """Those of a product of kernels of different columns."""
        return (self._numbers.on([0]) * self._categories.on([1])).properties

    @property
    def reads(self) -> frozenset[Any] | None:
        """All columns."""
        return None

    def bound(self, table: Table) -> Kernel:
        """The product on the columns of a table."""
        numbers = [k for k in range(len(table.names)) if k not in table.categories]
        if not numbers:
            return self._categories
        if not table.categories:
            return self._numbers
        return self._numbers.on(numbers) * self._categories.on(sorted(table.categories))

    def resolve(self, X: Any, sample_weight: Any = None) -> Kernel:
        """Return the kernel of the columns of X."""
        kernel, X, _ = self.read(X)
        return (self._numbers if kernel is self else kernel).resolve(X, sample_weight)

    def _form(self, n_features: int) -> forms.Form:
        raise UnresolvedKernelError(f"{self!r} depends on the columns: call kernel = kernel.resolve(X) first.")

    @property
    def _numbers(self) -> Kernel:
        return Gaussian("columns") if self.numbers is None else self.numbers

    @property
    def _categories(self) -> Kernel:
        return Categories() if self.categories is None else self.categories
