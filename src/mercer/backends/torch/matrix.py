"""Kernel matrices on a torch device: products by tiles of torch operations, with bounded memory.

A symmetric matrix is swept by its upper triangle: a tile K_IJ serves both K_IJ V_J and K_IJᵀ V_I, which halves the
evaluations. Sums over tiles are in double precision. Threads and streams are torch's own.

Cost: n² d flops for the pairing, n² profile evaluations (half of both if symmetric), 2 n² r flops for the product.
Memory: some tiles, prepared points within a share of the memory limit, and n × r doubles.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, final

import torch

from mercer.backends.arrays import like, positions
from mercer.backends.chunks import panel_bytes, panel_rows, row_chunks
from mercer.backends.config import get_config
from mercer.backends.matrix import KernelMatrix, Side
from mercer.backends.rounding import EntryError
from mercer.backends.torch.entries import Entries, Tensor, Which, log_in_place
from mercer.backends.torch.stored import StoredEntries, dense_rows

_TILE_SIDE = {"cpu": 512, "cuda": 8192}  # a tile in cache, or large enough for a device that wants much at once
_LEAST_SIDE = 64
_TILES, _TILE_SHARE = 6, 1 / 8  # buffers of a tile that are alive at once, and their part of the memory limit
_CAST = 1  # rounding of the sum in double to the precision of the entries
_IN_CACHE = 32 * 2**20  # a stored matrix of this size is read faster than any kernel is evaluated
_STORE_FROM_COST = 40.0  # beyond, evaluating an entry costs more than reading it from memory


class _TensorMatrix(KernelMatrix):
    """What a tiled matrix and a stored one have in common: what fills their entries."""

    def __init__(self, entries: Entries) -> None:
        _require_full_precision(entries.dtype)
        self._entries = entries
        self.shape, self.dtype, self.symmetric = entries.shape, entries.dtype, entries.symmetric
        self.n_features = entries.n_features
        self._side = _side(entries)  # fixed here, so that the depth of sums stays what was said of it
        self._reference = torch.empty(0, dtype=self.dtype, device=entries.device)

    def diagonal(self, side: Side = "rows") -> Tensor:
        return self._entries.diagonal(side)

    @property
    def nonnegative(self) -> bool:
        return self._entries.nonnegative

    @property
    def entry_error(self) -> EntryError:
        return self._entries.entry_error

    def scaled_product(self, v: Any) -> tuple[Tensor, Tensor]:
        v = like(v, self._reference, dtype=torch.float64)
        n, m = self.shape
        scale = torch.zeros(n, dtype=torch.float64, device=v.device)
        product = torch.zeros((n, v.shape[1]), dtype=torch.float64, device=v.device)
        for rows in row_chunks(n if m else 0, panel_rows(m)):
            P = self._filled(rows, slice(0, m), log=self.nonnegative).double()
            if self.nonnegative:
                top = P.amax(dim=1)
                scale[rows] = torch.where(top == -torch.inf, 0.0, top)
                P = P.sub_(scale[rows][:, None]).exp_()
            product[rows] = P @ v
        return scale, product

    def _columns(self, v: Any) -> Tensor:
        return like(v, self._reference, dtype=self.dtype).contiguous()

    def _selections(self, rows: Any, cols: Any) -> tuple[Which, Which]:
        return positions(rows, self.shape[0], self._reference), positions(cols, self.shape[1], self._reference)

    def _filled(self, i: Which, j: Which, *, log: bool = False) -> Tensor:
        """k or log k of some rows and columns, tile by tile; the whole of a symmetric matrix by its triangle."""
        out = torch.empty((_length(i), _length(j)), dtype=self.dtype, device=self._entries.device)
        whole = self.symmetric and not log and _is_run(i, self.shape[0]) and _is_run(j, self.shape[1])
        for p in row_chunks(out.shape[0], self._side):
            x = self._entries.panel("rows", _part(i, p))
            for q in row_chunks(out.shape[1], self._side):
                if not whole or p.start <= q.start:
                    y = self._entries.panel("cols", _part(j, q))
                    tile = self._entries.filled(_part(i, p), _part(j, q), (x, y), log=log)
                    out[p, q] = torch.triu(tile) + torch.triu(tile, 1).T if whole and p == q else tile
                if whole and p.start < q.start:
                    out[q, p] = out[p, q].T
        return out


@final
class TiledMatrix(_TensorMatrix):
    """Entries are made tile by tile, used and forgotten."""

    def multiply(self, v: Any, *, transpose: bool = False) -> Tensor:
        v = self._columns(v)
        n = self.shape[1] if transpose else self.shape[0]
        total = torch.zeros((n, v.shape[1]), dtype=torch.float64, device=v.device)
        for rows, cols, tile in self._tiles():
            if self.symmetric or not transpose:
                total[rows] += tile @ v[cols]
            if rows != cols if self.symmetric else transpose:
                total[cols] += tile.T @ v[rows]
        return total.to(self.dtype)

    def row_sums(self, *, transpose: bool = False) -> Tensor:
        n = self.shape[1] if transpose else self.shape[0]
        total = torch.zeros(n, dtype=torch.float64, device=self._entries.device)
        for rows, cols, tile in self._tiles():
            if self.symmetric or not transpose:
                total[rows] += tile.sum(dim=1)
            if rows != cols if self.symmetric else transpose:
                total[cols] += tile.sum(dim=0)
        return total.to(self.dtype)

    def dense(self) -> Tensor:
        return self.block(slice(None), slice(None))

    def block(self, rows: Any, cols: Any) -> Tensor:
        return self._filled(*self._selections(rows, cols))

    def log_block(self, rows: Any, cols: Any) -> Tensor:
        return self._filled(*self._selections(rows, cols), log=True)

    @property
    def summation_depth(self) -> int:
        """Those inside a tile, over tiles, and the last one to the precision of the entries."""
        longest = max(self.shape)
        return min(longest, self._side + -(-longest // self._side)) + _CAST

    def worth_storing(self, allowed: int) -> bool:
        size = self.shape[0] * self.shape[1] * self._reference.element_size()
        return size <= allowed and (size <= _IN_CACHE or self._entries.cost >= _STORE_FROM_COST)

    def stored(self) -> KernelMatrix:
        return StoredMatrix(self._entries, self.dense())

    def _tiles(self) -> Iterator[tuple[slice, slice, Tensor]]:
        """The tiles of the matrix, those of the upper triangle if it is symmetric."""
        ranges = row_chunks(self.shape[1], self._side)
        few = self.shape[1] * self.n_features * 8 <= panel_bytes()
        kept = [self._entries.panel("cols", cols) for cols in ranges] if few else None
        for rows in row_chunks(self.shape[0], self._side):
            x = self._entries.panel("rows", rows)
            for q, cols in enumerate(ranges):
                if not self.symmetric or rows.start <= cols.start:
                    y = kept[q] if kept is not None else self._entries.panel("cols", cols)
                    yield rows, cols, self._entries.filled(rows, cols, (x, y))


@final
class StoredMatrix(_TensorMatrix):
    """Entries lie in the device's memory, dense or sparse (CSR): products are those of torch."""

    def __init__(self, entries: Entries, matrix: Tensor) -> None:
        super().__init__(entries)
        self.entries = matrix.to(self.dtype)

    def multiply(self, v: Any, *, transpose: bool = False) -> Tensor:
        matrix = self.entries.transpose(0, 1) if transpose and not self.symmetric else self.entries
        return matrix @ self._columns(v)

    def row_sums(self, *, transpose: bool = False) -> Tensor:
        n = self.shape[0] if transpose else self.shape[1]
        ones = torch.ones((n, 1), dtype=self.dtype, device=self._entries.device)
        return self.multiply(ones, transpose=transpose)[:, 0]

    def dense(self) -> Tensor:
        return self.entries.clone() if self.entries.layout == torch.strided else self.entries.to_dense()

    def block(self, rows: Any, cols: Any) -> Tensor:
        i, j = self._selections(rows, cols)
        if self.entries.layout == torch.strided:
            return self.entries[i][:, j].clone()
        indices = torch.arange(i.start, i.stop, device=self.entries.device) if isinstance(i, slice) else i
        return dense_rows(self.entries, indices)[:, j].clone()

    def log_block(self, rows: Any, cols: Any) -> Tensor:
        if not isinstance(self._entries, StoredEntries):  # the kernel knows logarithms of what underflows
            return self._filled(*self._selections(rows, cols), log=True)
        return log_in_place(self.block(rows, cols))

    def absolute_product(self, v: Any) -> Tensor:
        if self.entries.layout == torch.strided:
            return super().absolute_product(v)
        return self.entries.abs().to(torch.float64) @ like(v, self._reference, dtype=torch.float64)

    @property
    def row_entries(self) -> float:
        held = self.shape[0] * self.shape[1] if self.entries.layout == torch.strided else self.entries.values().numel()
        return held / max(1, self.shape[0])

    @property
    def summation_depth(self) -> int:
        """A row is summed by torch, in any order."""
        return max(self.shape) + _CAST

    @property
    def is_stored(self) -> bool:
        return True

    def worth_storing(self, allowed: int) -> bool:
        return True

    def stored(self) -> KernelMatrix:
        return self


def _require_full_precision(dtype: Any) -> None:
    """Refuse single precision where torch may multiply with fewer digits: the bounds on rounding would be false."""
    if dtype == torch.float32 and torch.get_float32_matmul_precision() != "highest":
        raise ValueError(
            "torch is set to multiply float32 with fewer digits, so that no bound on rounding would hold: call "
            'torch.set_float32_matmul_precision("highest"), or pass float64.'
        )


def _side(entries: Entries) -> int:
    wanted = _TILE_SIDE.get(entries.device.type, _TILE_SIDE["cpu"])
    affordable = math.isqrt(get_config().share(_TILE_SHARE) // (8 * _TILES))
    return max(_LEAST_SIDE, min(wanted, affordable))


def _is_run(which: Which, n: int) -> bool:
    return isinstance(which, slice) and which == slice(0, n)


def _length(which: Which) -> int:
    return which.stop - which.start if isinstance(which, slice) else int(which.shape[0])


def _part(which: Which, run: slice) -> Which:
    """A run of a selection, as a slice where the selection is one."""
    return slice(which.start + run.start, which.start + run.stop) if isinstance(which, slice) else which[run]
