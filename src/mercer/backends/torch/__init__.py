"""Kernel matrices on tensors of torch, wherever they lie. Imported only where a tensor comes in: torch is optional."""

from __future__ import annotations

from typing import Any

from mercer.backends import forms
from mercer.backends.arrays import is_sparse_tensor
from mercer.backends.matrix import KernelMatrix
from mercer.backends.torch.composites import NormalizedEntries, PairEntries, ScalarEntries
from mercer.backends.torch.distances import DistanceEntries
from mercer.backends.torch.entries import Entries
from mercer.backends.torch.functions import FunctionEntries
from mercer.backends.torch.inner_products import InnerProductEntries
from mercer.backends.torch.matrix import StoredMatrix, TiledMatrix
from mercer.backends.torch.stored import StoredEntries, sparse_form


def torch_matrix(form: forms.Form, rows: Any, cols: Any = None, *, dtype: Any = None) -> KernelMatrix:
    """The matrix of a form on tensors; ``cols=None`` means the symmetric matrix of ``rows`` with itself."""
    entries = compile_form(form, rows, cols, dtype=dtype)
    if isinstance(entries, StoredEntries):
        return StoredMatrix(entries, entries.matrix)
    if is_sparse_tensor(rows):

        def diagonal(inner: forms.Form, side: Any) -> Any:
            return compile_form(inner, rows, cols, dtype=dtype).diagonal(side)

        return StoredMatrix(entries, sparse_form(form, rows, cols, entries.dtype, diagonal))
    return TiledMatrix(entries)


def compile_form(form: forms.Form, rows: Any, cols: Any = None, *, dtype: Any = None) -> Entries:
    """What fills the tiles of a form on given points."""
    if isinstance(form, forms.Pairing):
        kind = InnerProductEntries if form.metric in ("dot", "cosine") else DistanceEntries
        return kind(form, rows, cols, dtype)
    if isinstance(form, forms.Stored):
        return StoredEntries(form, rows, cols, dtype)
    if isinstance(form, forms.TileFunction):
        return FunctionEntries(form, rows, cols, dtype)
    if isinstance(form, (forms.SumOf, forms.ProductOf)):
        left, right = (compile_form(part, rows, cols, dtype=dtype) for part in (form.left, form.right))
        return PairEntries(left, right, isinstance(form, forms.ProductOf), rows, cols)
    if isinstance(form, forms.MultipleOf):
        return ScalarEntries(compile_form(form.inner, rows, cols, dtype=dtype), form.factor, False, rows, cols)
    if isinstance(form, forms.PowerOf):
        return ScalarEntries(compile_form(form.inner, rows, cols, dtype=dtype), form.exponent, True, rows, cols)
    if isinstance(form, forms.NormalizedOf):
        return NormalizedEntries(compile_form(form.inner, rows, cols, dtype=dtype), rows, cols)
    raise TypeError(f"No entries on tensors for {type(form).__name__}.")
