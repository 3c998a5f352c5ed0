"""Kernel matrices that are given as tensors, dense or sparse (CSR)."""

from __future__ import annotations

import warnings
from functools import cached_property
from typing import Any, final

import numpy as np
import torch

from mercer.backends import forms
from mercer.backends.entries import Side, StoredForm, Which
from mercer.backends.sparse_values import sparse_values
from mercer.backends.torch.entries import Entries, Tensor, log_in_place


@final
class StoredEntries(StoredForm, Entries):
    """A kernel matrix that is given: the points are its rows."""

    def panel(self, side: Side, which: Which) -> Which:
        return which

    def tile(self, rows: Any, cols: Any, *, log: bool = False) -> Tensor:
        if self.matrix.layout == torch.strided:
            block = self.matrix[rows][:, cols]
        else:
            indices = torch.arange(rows.start, rows.stop, device=self.device) if isinstance(rows, slice) else rows
            block = dense_rows(self.matrix, indices, -torch.inf if self.of_logarithms else 0.0)[:, cols]
        if self.of_logarithms:
            return (block if log else block.exp()).to(self.dtype, copy=True)
        block = block.to(self.dtype, copy=True)
        return log_in_place(block) if log else block

    @cached_property
    def nonnegative(self) -> bool:
        if self.of_logarithms:
            return True
        values = self.matrix if self.matrix.layout == torch.strided else self.matrix.values()
        return values.numel() == 0 or bool(values.min() >= 0)

    def _diagonal_of(self, matrix: Any) -> Tensor:
        if matrix.layout == torch.strided:
            return matrix.diagonal().clone()
        rows = torch.arange(matrix.shape[0], device=matrix.device)
        at = torch.repeat_interleave(rows, torch.diff(matrix.crow_indices()))
        on = at == matrix.col_indices()
        zeros = torch.zeros(matrix.shape[0], dtype=matrix.dtype, device=matrix.device)
        return zeros.index_add_(0, at[on], matrix.values()[on])


def csr_tensor(matrix: Any, device: Any) -> Tensor:
    """A sparse matrix of SciPy by rows as a tensor of the same entries."""
    places = (matrix.indptr, matrix.indices)
    starts, columns = (torch.as_tensor(part.astype(np.int64), device=device) for part in places)
    values = torch.as_tensor(matrix.data, device=device)
    with warnings.catch_warnings():  # torch calls the layout a beta
        warnings.filterwarnings("ignore", "Sparse CSR tensor support", UserWarning)
        return torch.sparse_csr_tensor(starts, columns, values, tuple(matrix.shape), check_invariants=False)


def sparse_form(form: forms.Form, rows: Tensor, cols: Tensor | None, dtype: Any, diagonal: Any) -> Tensor:
    """What the algebra makes of a sparse matrix: other values at the same places."""
    values = (rows.values().exp() if form.of_logarithms else rows.values()).to(dtype)
    places = torch.repeat_interleave(torch.arange(rows.shape[0], device=rows.device), torch.diff(rows.crow_indices()))
    made = sparse_values(form, values, places, rows.col_indices(), diagonal, symmetric=cols is None)
    return torch.sparse_csr_tensor(
        rows.crow_indices(), rows.col_indices(), made, tuple(rows.shape), check_invariants=False
    )


def dense_rows(matrix: Tensor, rows: Tensor, missing: float = 0.0) -> Tensor:
    """Some rows of a sparse matrix, dense; entries that are not stored are zero, or what else is said of them."""
    counts, positions = _stored_in(matrix, rows)
    block = torch.full((rows.shape[0], matrix.shape[1]), missing, dtype=matrix.dtype, device=matrix.device)
    at = torch.repeat_interleave(torch.arange(rows.shape[0], device=matrix.device), counts)
    return block.index_put_((at, matrix.col_indices()[positions]), matrix.values()[positions])


def _stored_in(matrix: Tensor, rows: Tensor) -> tuple[Tensor, Tensor]:
    """How many entries each of some rows stores, and where these entries lie."""
    starts = matrix.crow_indices()[rows]
    counts = matrix.crow_indices()[rows + 1] - starts
    before = torch.cumsum(counts, 0) - counts
    return counts, torch.arange(int(counts.sum()), device=matrix.device) + torch.repeat_interleave(
        starts - before, counts
    )
