"""What tests of every room share: array libraries, and tensors that refuse to become NumPy arrays."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

import pytest

# Before a library reads it. On a busy machine the threads of BLAS and torch wait for each other: the small matrices of
# tests then take tens of times as long. Our own threads do not read it, and tests of threads say how many they want.
os.environ.setdefault("OMP_NUM_THREADS", "1")


@pytest.fixture
def refuse_numpy(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """While this holds, a tensor that is asked for its values as a NumPy array or as a list refuses."""
    torch = pytest.importorskip("torch")

    def refuse(*_: Any, **__: Any) -> Any:
        raise AssertionError("A tensor was converted to NumPy.")

    for way in ("numpy", "__array__", "tolist"):
        monkeypatch.setattr(torch.Tensor, way, refuse)
    yield torch
    monkeypatch.undo()


@pytest.fixture
def pretend_card(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """While this holds, torch has a card, which refuses what a real one refuses; its products are made by tiles."""
    pytest.importorskip("torch")
    from pretend_card import PretendCard

    monkeypatch.setenv("MERCER_FUSED", "0")
    with PretendCard() as card:
        yield card
