"""Kernel matrices on a torch device: products by tiles of torch operations, with bounded memory.

A symmetric matrix is swept by its upper triangle: a tile K_IJ serves both K_IJ V_J and K_IJᵀ V_I, which halves the
evaluations. Tiles are dealt to chunks whose number depends on the problem alone; each chunk adds into a buffer of its
own in double precision, and the buffers are added in order, so that a product is the same for any number of threads.

Cost: n² d flops for the pairing, n² profile evaluations (half of both if symmetric), 2 n² r flops for the product.
Memory: some tiles a thread, prepared points and n × r doubles a chunk within shares of the memory limit.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cached_property
from itertools import pairwise
from typing import Any, final

import torch

from mercer.backends.arrays import like, positions
from mercer.backends.chunks import STORED_ROWS, panel_bytes, panel_rows, row_chunks, run_of, size_of
from mercer.backends.config import get_config
from mercer.backends.device import free_on_card
from mercer.backends.entries import Which
from mercer.backends.matrix import EntriesMatrix, KernelMatrix
from mercer.backends.rounding import EntryError
from mercer.backends.torch.entries import Entries, Tensor, log_in_place
from mercer.backends.torch.precision import require_full_precision
from mercer.backends.torch.stored import StoredEntries, dense_rows
from mercer.backends.torch.threads import run_on
from mercer.backends.torch.triton_products import FusedProducts, can_run

_TILE_SIDE = {"cpu": 512, "cuda": 8192}  # a tile in cache, or large enough for a device that wants much at once
_LEAST_SIDE = 64
_TILES, _TILE_SHARE = 6, 1 / 8  # buffers of a tile that are alive at once, and their part of the memory limit
_BUFFER_BYTES, _BUFFER_SHARE, _MOST_CHUNKS = 64 * 2**20, 1 / 8, 64  # the sums of the chunks of a product
_CAST = 1  # rounding of the sum in double to the precision of the entries

_Use = Callable[[Tensor, slice, slice, Tensor], None]


class _TensorMatrix(EntriesMatrix):
    """What a tiled matrix and a stored one have in common: what fills their entries."""

    def __init__(self, entries: Entries) -> None:
        require_full_precision(entries.dtype)
        super().__init__(entries)
        self._side = _side(entries)  # fixed here, so that the depth of sums stays what was said of it
        self._reference = torch.empty(0, dtype=self.dtype, device=entries.device)

    def worth_storing(self, allowed: int) -> bool:
        free = free_on_card(self._entries.device)
        return super().worth_storing(allowed if free is None else min(allowed, free // 4))

    def scaled_product(self, v: Any) -> tuple[Tensor, Tensor]:
        v = like(v, self._reference, dtype=torch.float64)
        n, m = self.shape
        scale = torch.zeros(n, dtype=torch.float64, device=v.device)
        product = torch.zeros((n, v.shape[1]), dtype=torch.float64, device=v.device)

        def fill(rows: slice) -> None:
            P = self._filled(rows, slice(0, m), log=self.nonnegative).double()
            if self.nonnegative:
                top = P.amax(dim=1)
                scale[rows] = torch.where(top == -torch.inf, 0.0, top)
                P = P.sub_(scale[rows][:, None]).exp_()
            product[rows] = P @ v

        run_on(v.device, fill, row_chunks(n if m else 0, panel_rows(m * get_config().threads)))
        return scale, product

    def _columns(self, v: Any) -> Tensor:
        require_full_precision(self.dtype)  # which may have been changed since
        return like(v, self._reference, dtype=self.dtype).contiguous()

    def _selections(self, rows: Any, cols: Any) -> tuple[Which, Which]:
        return positions(rows, self.shape[0], self._reference), positions(cols, self.shape[1], self._reference)

    def _filled(self, i: Which, j: Which, *, log: bool = False) -> Tensor:
        """k or log k of some rows and columns, tile by tile; the whole of a symmetric matrix by its triangle."""
        out = torch.empty((size_of(i), size_of(j)), dtype=self.dtype, device=self._entries.device)
        whole = self.symmetric and not log and _is_run(i, self.shape[0]) and _is_run(j, self.shape[1])

        def fill(p: slice) -> None:
            x = self._entries.panel("rows", run_of(i, p))
            for q in row_chunks(out.shape[1], self._side):
                if not whole or p.start <= q.start:
                    y = self._entries.panel("cols", run_of(j, q))
                    tile = self._entries.filled(run_of(i, p), run_of(j, q), (x, y), log=log)
                    out[p, q] = torch.triu(tile) + torch.triu(tile, 1).T if whole and p == q else tile
                if whole and p.start < q.start:
                    out[q, p] = tile.T

        run_on(self._entries.device, fill, row_chunks(out.shape[0], self._side))
        return out


@final
class TiledMatrix(_TensorMatrix):
    """Entries are made tile by tile, used and forgotten; on a card by fused products, where the form has them."""

    def multiply(self, v: Any, *, transpose: bool = False) -> Tensor:
        v = self._columns(v)
        if self._fused is not None:
            return self._fused.multiply(v, transpose=transpose)

        def along(total: Tensor, rows: slice, cols: slice, tile: Tensor) -> None:
            total[rows] += tile @ v[cols]

        def across(total: Tensor, rows: slice, cols: slice, tile: Tensor) -> None:
            total[cols] += tile.T @ v[rows]

        return self._swept((v.shape[1],), along, across, transpose)

    def row_sums(self, *, transpose: bool = False) -> Tensor:
        if self._fused is not None:
            return self._fused.row_sums(transpose=transpose)

        def along(total: Tensor, rows: slice, cols: slice, tile: Tensor) -> None:
            total[rows] += tile.sum(dim=1)

        def across(total: Tensor, rows: slice, cols: slice, tile: Tensor) -> None:
            total[cols] += tile.sum(dim=0)

        return self._swept((), along, across, transpose)

    @property
    def entry_error(self) -> EntryError:
        """That of fused products where there are any, which bounds the error of tiles as well."""
        return super().entry_error if self._fused is None else self._fused.entry_error

    @cached_property
    def _fused(self) -> FusedProducts | None:
        """Products that make no tile; the points are prepared for them when the first is asked for."""
        plan = self._entries.plan() if can_run(self._entries.device) else None
        return None if plan is None else FusedProducts(plan, self._entries.fused_error(plan))

    def block(self, rows: Any, cols: Any) -> Tensor:
        return self._filled(*self._selections(rows, cols))

    def log_block(self, rows: Any, cols: Any) -> Tensor:
        return self._filled(*self._selections(rows, cols), log=True)

    @property
    def summation_depth(self) -> int:
        """Those inside a tile, over tiles and over chunks, and the last one to the precision of the entries."""
        if self._fused is not None:
            return self._fused.summation_depth + _CAST
        longest = max(self.shape)
        return min(longest, self._side + -(-longest // self._side) + _MOST_CHUNKS) + _CAST

    def stored(self) -> KernelMatrix:
        return StoredMatrix(self._entries, self.dense())

    def _swept(self, width: tuple[int, ...], along: _Use, across: _Use, transpose: bool) -> Tensor:
        """The sum over all tiles of what they add to a buffer, along their rows, across them, or both if symmetric."""
        shape = (self.shape[1] if transpose else self.shape[0], *width)
        cols, rows = row_chunks(self.shape[1], self._side), row_chunks(self.shape[0], self._side)
        few = self.shape[1] * self.n_features * 8 <= panel_bytes()
        kept = [self._entries.panel("cols", part) for part in cols] if few else None

        def sweep(pairs: list[tuple[int, int]]) -> Tensor:
            total = torch.zeros(shape, dtype=torch.float64, device=self._entries.device)
            last, x = -1, None
            for p, q in pairs:
                if p != last:
                    last, x = p, self._entries.panel("rows", rows[p])
                y = kept[q] if kept is not None else self._entries.panel("cols", cols[q])
                tile = self._entries.filled(rows[p], cols[q], (x, y))
                if self.symmetric or not transpose:
                    along(total, rows[p], cols[q], tile)
                if p != q if self.symmetric else transpose:
                    across(total, rows[p], cols[q], tile)
            return total

        pairs = [(p, q) for p in range(len(rows)) for q in range(p if self.symmetric else 0, len(cols))]
        parts = run_on(self._entries.device, sweep, _dealt(pairs, self._chunk_count(shape)))
        total = parts[0] if parts else torch.zeros(shape, dtype=torch.float64, device=self._entries.device)
        for part in parts[1:]:
            total += part
        return total.to(self.dtype)

    def _chunk_count(self, shape: tuple[int, ...]) -> int:
        if self._entries.device.type != "cpu":
            return 1
        affordable = get_config().share(_BUFFER_SHARE, _BUFFER_BYTES) // (8 * max(1, math.prod(shape)))
        return max(1, min(_MOST_CHUNKS, affordable))


@final
class StoredMatrix(_TensorMatrix):
    """Entries lie in the device's memory, dense or sparse (CSR): products are those of torch."""

    def __init__(self, entries: Entries, matrix: Tensor) -> None:
        super().__init__(entries)
        self.entries = matrix.to(self.dtype)

    def multiply(self, v: Any, *, transpose: bool = False) -> Tensor:
        matrix = self.entries.transpose(0, 1) if transpose and not self.symmetric else self.entries
        v = self._columns(v)
        if matrix.layout != torch.strided:
            return matrix @ v
        out = torch.empty((matrix.shape[0], v.shape[1]), dtype=self.dtype, device=v.device)

        def fill(rows: slice) -> None:
            torch.matmul(matrix[rows], v, out=out[rows])

        run_on(v.device, fill, row_chunks(out.shape[0], STORED_ROWS if v.device.type == "cpu" else out.shape[0]))
        return out

    def dense(self) -> Tensor:
        return self.entries.clone() if self.entries.layout == torch.strided else self.entries.to_dense()

    def block(self, rows: Any, cols: Any) -> Tensor:
        i, j = self._selections(rows, cols)
        if self.entries.layout == torch.strided:
            return self.entries[i][:, j].clone()
        indices = torch.arange(i.start, i.stop, device=self.entries.device) if isinstance(i, slice) else i
        return dense_rows(self.entries, indices)[:, j].clone()

    def log_block(self, rows: Any, cols: Any) -> Tensor:
        given = isinstance(self._entries, StoredEntries) and not self._entries.of_logarithms
        if not given:  # the kernel knows logarithms of what underflows
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

    def stored(self) -> KernelMatrix:
        return self


def _dealt(items: list[Any], count: int) -> list[list[Any]]:
    """Split items into at most count runs of nearly equal length."""
    count = min(count, len(items))
    bounds = [len(items) * i // count for i in range(count + 1)] if count else [0]
    return [items[a:b] for a, b in pairwise(bounds)]


def _side(entries: Entries) -> int:
    wanted = _TILE_SIDE.get(entries.device.type, _TILE_SIDE["cpu"])
    affordable = math.isqrt(get_config().share(_TILE_SHARE) // (8 * _TILES))
    return max(_LEAST_SIDE, min(wanted, affordable))


def _is_run(which: Which, n: int) -> bool:
    return isinstance(which, slice) and which == slice(0, n)
