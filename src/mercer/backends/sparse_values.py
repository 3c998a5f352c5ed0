"""What the algebra of kernels makes of the entries that a sparse matrix stores, on arrays of any library.

Sums, products, multiples, powers and normalisations keep a zero a zero, so they change the values and no places.
"""

from __future__ import annotations

from collections.abc import Callable

from mercer.backends import forms
from mercer.backends.arrays import Array, namespace
from mercer.backends.entries import inverse_root

Diagonal = Callable[[forms.Form, str], Array]


def sparse_values(
    form: forms.Form, given: Array, rows: Array, cols: Array, diagonal: Diagonal, *, symmetric: bool
) -> Array:
    """The values of a form at the places of the entries given.

    Parameters
    ----------
    form : Form
        ``Stored``, or what the algebra makes of it.
    given : array of shape (k,)
        The entries stored.
    rows, cols : arrays of int, of shape (k,)
        Their places.
    diagonal : callable
        Of a form and ``"rows"`` or ``"cols"``, returns k(x, x) of the points of that side.
    symmetric : bool
        Whether the matrix is that of one set of points: its diagonal is then written as ``diagonal`` has it.

    Returns
    -------
    array of shape (k,)
        In the arithmetic of tiles, so to the same bits as the dense matrix; the array given itself for ``Stored``.
    """
    values = _values(form, given, rows, cols, diagonal)
    if symmetric and not isinstance(form, forms.Stored):
        loops = rows == cols
        values[loops] = diagonal(form, "rows")[rows[loops]]
    return values


def _values(form: forms.Form, given: Array, rows: Array, cols: Array, diagonal: Diagonal) -> Array:
    def of(inner: forms.Form) -> Array:
        return _values(inner, given, rows, cols, diagonal)

    if isinstance(form, forms.Stored):
        return given
    if isinstance(form, forms.SumOf):
        return of(form.left) + of(form.right)
    if isinstance(form, forms.ProductOf):
        return of(form.left) * of(form.right)
    if isinstance(form, forms.MultipleOf):
        return of(form.inner) * form.factor
    if isinstance(form, forms.PowerOf):
        return namespace(given).pow(of(form.inner), form.exponent)
    if isinstance(form, forms.NormalizedOf):
        left, right = (inverse_root(diagonal(form.inner, side)) for side in ("rows", "cols"))
        return of(form.inner) * (left[rows] * right[cols])
    raise TypeError(f"{type(form).__name__} is no form of sparse affinities.")
