"""Fused products: whether they can run, in which blocks, and the launch of the kernel.

Rows are dealt to programs. Where there are too few of them to fill a card, the columns are cut into runs whose sums are
added in order. The number of runs depends on the sizes alone, and the blocks that timing chooses among differ only in
their rows, so that a product is the same bit for bit on every run and card of a kind.

A symmetric matrix is made whole: to use a tile for its mirror image as well, programs would have to add to the same
rows, in an order that changes from run to run.
"""

from __future__ import annotations

import logging
import math
import os
from contextlib import AbstractContextManager, nullcontext
from functools import cache
from importlib.util import find_spec
from typing import Any, NamedTuple, final

import torch

from mercer.backends.rounding import UNIT, EntryError, unit_of
from mercer.backends.torch.triton_errors import matrix_units
from mercer.backends.torch.triton_plan import CHUNK, Plan, Side
from mercer.backends.torch.triton_tuning import chosen

Tensor = Any

_PADDED = (16, 32)  # columns of one launch, rounded up; up to four have a sum each
_PROGRAMS, _MOST_RUNS = 512, 16  # what fills a card, and how often the columns are cut for it
_MATRIX_PRECISION = "tf32x3"  # float32 on the matrix units, as three products of ten bits each
COLUMNS = 64  # of a tile; the same for all blocks, as sums depend on it
_log = logging.getLogger("mercer")


class Block(NamedTuple):
    """The rows of a program, and the warps that share them."""

    rows: int
    warps: int


BLOCKS = (Block(64, 4), Block(128, 4), Block(128, 8), Block(32, 4))  # the first is safe everywhere


def can_run(device: Any) -> bool:
    """Whether Triton runs on tensors of this device: on a card, or interpreted in this machine's memory for tests.

    ``MERCER_FUSED=0`` in the environment leaves products to torch.
    """
    if os.environ.get("MERCER_FUSED") == "0":
        return False
    if device.type == "cpu":
        return os.environ.get("TRITON_INTERPRET") == "1" and find_spec("triton") is not None
    return device.type == "cuda" and _compiles(device)


@cache
def _compiles(device: Any) -> bool:
    """Whether a small product compiles and runs on a card, tried once."""
    if find_spec("triton") is None:
        return False
    try:
        points = torch.zeros(2, 1, device=device)
        empty = points.new_empty(0)
        side = Side(points.T.contiguous(), empty)
        numbers = torch.tensor([1.0, 1.0, 0.0, 0.0], dtype=torch.float64, device=device)
        plan = Plan(0, False, False, empty, numbers, 0, 1, 1, False, side, side, empty)
        return bool(torch.equal(FusedProducts(plan, EntryError(0.0)).row_sums().cpu(), torch.full((2,), 2.0)))
    except torch.OutOfMemoryError:  # which says nothing of Triton, and would be remembered
        raise
    except Exception as error:  # no compiler, a driver that is too old: whatever it is, tiles of torch do without
        _log.warning("Triton does not run on %s, products are made by torch: %s", device, error)
        return False


@final
class FusedProducts:
    """K V and row sums of a planned form.

    Parameters
    ----------
    plan : Plan
        The form and its points.
    error : EntryError
        How far an entry can be from the kernel's value.

    Attributes
    ----------
    entry_error : EntryError
        The same.
    """

    def __init__(self, plan: Plan, error: EntryError) -> None:
        self._plan, self.entry_error = plan, error

    @property
    def summation_depth(self) -> int:
        """The most roundings of the precision of the entries that a term of a product goes through.

        A tile is summed in that precision, on matrix units where there are many columns, and all tiles in double.
        """
        unit = unit_of(self._plan.diagonal.dtype)
        tile = COLUMNS if unit == UNIT else max(COLUMNS + 1, math.ceil(matrix_units(COLUMNS) / unit))
        tiles = -(-max(self._sizes(False)) // COLUMNS) + _MOST_RUNS
        return tile + math.ceil(tiles * UNIT / unit)

    def multiply(self, v: Tensor, *, transpose: bool = False) -> Tensor:
        """K v or Kᵀ v for contiguous columns in the precision of the entries."""
        count = int(v.shape[1])
        w, most = v.T.contiguous(), _PADDED[-1]
        parts = [self._launched(w[lo : lo + most], transpose) for lo in range(0, count, most)]
        return torch.cat(parts).T.to(v.dtype).contiguous() if parts else self._nothing(v, transpose)

    def row_sums(self, *, transpose: bool = False) -> Tensor:
        """K 1 or Kᵀ 1."""
        return self._launched(None, transpose)[0].to(self._plan.diagonal.dtype)

    def _nothing(self, v: Tensor, transpose: bool) -> Tensor:
        rows = self._sizes(transpose)[0]
        return v.new_zeros((rows, 0))

    def _sizes(self, transpose: bool) -> tuple[int, int]:
        axis = 0 if self._plan.by_dot else 1
        n, m = (int(side.points.shape[axis]) for side in (self._plan.rows, self._plan.cols))
        return (m, n) if transpose else (n, m)

    def _launched(self, w: Tensor | None, transpose: bool) -> Tensor:
        """The product with the rows of w, or with ones, in double precision: a row for each of them."""
        n, m = self._sizes(transpose)
        count = 1 if w is None else int(w.shape[0])
        out = torch.zeros((cut(n, m)[0], count, n), dtype=torch.float64, device=self._plan.numbers.device)
        if n and m:
            key = (str(out.device), self._plan.diagonal.dtype, self._plan.rows.points.dtype, self._kind(w))
            with _on(out.device):
                block = chosen(key, BLOCKS, lambda block: self._run(block, w, transpose, out), out.device)
                self._run(block, w, transpose, out)
        return out.sum(dim=0)

    def _kind(self, w: Tensor | None) -> tuple[Any, ...]:
        """What the speed of a block depends on."""
        plan = self._plan
        return plan.pair, plan.by_dot, plan.profile, plan.n_features, 0 if w is None else int(w.shape[0])

    def _run(self, block: Block, w: Tensor | None, transpose: bool, out: Tensor) -> None:
        from mercer.backends.torch import triton_kernels

        plan = self._plan
        rows, cols = (plan.cols, plan.rows) if transpose else (plan.rows, plan.cols)
        n, m = self._sizes(transpose)
        count = 0 if w is None else int(w.shape[0])
        triton_kernels.product[(-(-n // block.rows), int(out.shape[0]))](
            *(rows.points, cols.points, rows.norms, cols.norms, plan.weights, plan.numbers, plan.diagonal),
            *(plan.diagonal if w is None else w, out, n, m, plan.n_features, cut(n, m)[1]),
            PAIR=plan.pair,
            NORMS=plan.norms,
            WEIGHED=bool(plan.weights.shape[0]),
            BY_DOT=plan.by_dot,
            D=int(plan.rows.points.shape[1]) if plan.by_dot else 1,
            PROFILE=plan.profile,
            DEGREE=plan.degree,
            SYMMETRIC=plan.symmetric,
            R=count,
            RP=next(most for most in _PADDED if count <= most),
            PRECISION=_MATRIX_PRECISION,
            BM=block.rows,
            BN=COLUMNS,
            BD=CHUNK,
            num_warps=block.warps,
            enable_fp_fusion=True,  # multiply-adds, which the bounds allow for
        )


def _on(device: Any) -> AbstractContextManager[Any]:
    """Work on this card, though another may be the current one, on which Triton runs what it is given."""
    return torch.cuda.device(device) if device.type == "cuda" else nullcontext()


def cut(n: int, m: int) -> tuple[int, int]:
    """How many runs of the m columns there are, so that few rows fill a card too, and the columns of each."""
    programs = max(1, -(-n // BLOCKS[0].rows))
    wanted = max(1, min(_MOST_RUNS, -(-_PROGRAMS // programs), -(-m // COLUMNS)))
    span = COLUMNS * max(1, -(-m // (COLUMNS * wanted)))
    return max(1, -(-m // span)), span
