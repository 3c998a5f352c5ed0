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

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the parameters by name, if deep those of the kernels that None stands for too."""
        params = super().get_params(deep)
        for name, kernel in self._parts().items() if deep else ():
            params.update({f"{name}__{key}": value for key, value in kernel.get_params().items()})
        return params

    def set_params(self, **params: Any) -> Kernel:
        """Set parameters in place and return self; ``numbers__sigma`` puts a kernel in the place of None."""
        for name, kernel in self._parts().items():
            if name not in params and any(key.startswith(f"{name}__") for key in params):
                setattr(self, name, kernel)
        return super().set_params(**params)

    @property
    def is_resolved(self) -> bool:
        """Never: it becomes another kernel when it is resolved."""
        return False

    @property
    def properties(self) -> Properties:
        """Those of a product of kernels of different columns."""
        parts = self._parts()
        return (parts["numbers"].on([0]) * parts["categories"].on([1])).properties

    @property
    def reads(self) -> frozenset[Any] | None:
        """All columns."""
        return None

    def bound(self, table: Table) -> Kernel:
        """The product on the columns of a table."""
        parts, categories = self._parts(), sorted(table.categories)
        numbers = [k for k in range(len(table.names)) if k not in table.categories]
        if not numbers or not categories:
            return parts["numbers" if numbers else "categories"]
        return parts["numbers"].on(numbers) * parts["categories"].on(categories)

    def resolve(self, X: Any, sample_weight: Any = None) -> Kernel:
        """Return the kernel of the columns of X."""
        kernel, X, _ = self.read(X)
        return (self._parts()["numbers"] if kernel is self else kernel).resolve(X, sample_weight)

    def _form(self, n_features: int) -> forms.Form:
        raise UnresolvedKernelError(f"{self!r} depends on the columns: call kernel = kernel.resolve(X) first.")

    def _parts(self) -> dict[str, Kernel]:
        """The two kernels."""
        return {
            "numbers": Gaussian("columns") if self.numbers is None else self.numbers,
            "categories": Categories() if self.categories is None else self.categories,
        }
