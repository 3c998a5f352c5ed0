"""Kernel matrices on tensors of torch, wherever they lie. Imported only where a tensor comes in: torch is optional."""

from __future__ import annotations

from functools import partial
from typing import Any

from mercer.backends import forms
from mercer.backends.arrays import is_sparse_tensor
from mercer.backends.entries import entries_of
from mercer.backends.matrix import KernelMatrix
from mercer.backends.torch.composites import ColumnsEntries, NormalizedEntries, PairEntries, ScalarEntries
from mercer.backends.torch.distances import DistanceEntries
from mercer.backends.torch.entries import Entries
from mercer.backends.torch.functions import FunctionEntries
from mercer.backends.torch.inner_products import InnerProductEntries
from mercer.backends.torch.matrix import StoredMatrix, TiledMatrix
from mercer.backends.torch.stored import StoredEntries, sparse_form


def _pairing(form: forms.Pairing, *points: Any) -> Entries:
    return (InnerProductEntries if form.metric in ("dot", "cosine") else DistanceEntries)(form, *points)


compile_form = partial(
    entries_of,
    {
        forms.Pairing: _pairing,
        forms.Stored: StoredEntries,
        forms.TileFunction: FunctionEntries,
        forms.SumOf: PairEntries,
        forms.ProductOf: PairEntries,
        forms.MultipleOf: ScalarEntries,
        forms.PowerOf: ScalarEntries,
        forms.NormalizedOf: NormalizedEntries,
        forms.OnColumns: ColumnsEntries,
    },
)


def torch_matrix(form: forms.Form, rows: Any, cols: Any = None, *, dtype: Any = None) -> KernelMatrix:
    """The matrix of a form on tensors; ``cols=None`` means the symmetric matrix of ``rows`` with itself."""
    entries = compile_form(form, rows, cols, dtype=dtype)
    if isinstance(entries, StoredEntries) and not entries.of_logarithms:
        return StoredMatrix(entries, entries.matrix)
    if is_sparse_tensor(rows):

        def diagonal(inner: forms.Form, side: Any) -> Any:
            return compile_form(inner, rows, cols, dtype=dtype).diagonal(side)

        return StoredMatrix(entries, sparse_form(form, rows, cols, entries.dtype, diagonal))
    return TiledMatrix(entries)
