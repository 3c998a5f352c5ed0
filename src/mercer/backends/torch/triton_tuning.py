"""The quickest of some blocks for a product, found by running each and remembered as long as the process lives."""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable, Sequence
from typing import Any, TypeVar

import torch

B = TypeVar("B")

_found: dict[Hashable, Any] = {}
_lock = threading.Lock()


def chosen(key: Hashable, blocks: Sequence[B], run: Callable[[B], None], device: Any) -> B:
    """The quickest block on a card, among those that run there; in this machine's memory the first."""
    if device.type != "cuda":
        return blocks[0]
    with _lock:
        if key not in _found:
            _found[key] = _quickest(blocks, run)
        best: B = _found[key]
        return best


def _quickest(blocks: Sequence[B], run: Callable[[B], None]) -> B:
    timed = [(seconds, k) for k, block in enumerate(blocks) if (seconds := _seconds(run, block)) is not None]
    if not timed:
        run(blocks[0])  # which says why
    return blocks[min(timed)[1] if timed else 0]


def _seconds(run: Callable[[B], None], block: B) -> float | None:
    """The time of a second run, the first compiles; None where the block asks for more than the card has."""
    try:
        run(block)
    except torch.OutOfMemoryError:
        raise
    except Exception:  # triton's own errors of resources, which have no common base
        return None
    begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    begin.record()
    run(block)
    end.record()
    end.synchronize()
    return float(begin.elapsed_time(end))
