"""Our threads over chunks of tensors in this machine's memory; a device of its own runs them one after the other.

torch's own threads meet at a barrier after each operation, which on tiles of a cache's size takes longer than the
operation itself once other processes want the cores. So each of our threads works on tiles alone, with torch held to
one thread inside it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, TypeVar

import torch

from mercer.backends.threads import run_chunks

T = TypeVar("T")
R = TypeVar("R")


def run_on(device: Any, function: Callable[[T], R], chunks: Iterable[T]) -> list[R]:
    """Return ``[function(c) for c in chunks]``, on our threads where the tensors lie in this machine's memory."""
    if device.type != "cpu":
        return [function(chunk) for chunk in chunks]
    before = torch.get_num_threads()

    def alone(chunk: T) -> R:
        torch.set_num_threads(1)  # of this thread, and of threads that torch has not met yet
        return function(chunk)

    try:
        return run_chunks(alone, chunks)
    finally:
        torch.set_num_threads(before)
