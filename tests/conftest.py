"""What tests of every room share: array libraries, and tensors that refuse to become NumPy arrays."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest


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
