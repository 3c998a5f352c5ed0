"""Arrays inside a page: the smallest type that keeps every value, compressed where that pays, in base64."""

from __future__ import annotations

import base64
import json
import zlib
from typing import Any

import numpy as np

from mercer.backends.arrays import Array
from mercer.plots.explorer.columns import Column

_PAYS = 0.85  # of the size: compression that saves less is left out
_LEVEL = 6
_WHOLE = (("i1", "Int8Array"), ("i2", "Int16Array"), ("i4", "Int32Array"))


class Packer:
    """Collects arrays as elements of a page; ``add`` gives the description by which a script finds one again."""

    def __init__(self) -> None:
        self.elements: list[str] = []

    def add(self, values: Array) -> dict[str, Any]:
        """An array of numbers of one dimension."""
        kind, stored = smallest(values)
        return self._keep(stored.tobytes(), kind, int(values.size))

    def add_texts(self, texts: list[str]) -> dict[str, Any]:
        """A list of texts."""
        return self._keep(json.dumps(texts, ensure_ascii=False).encode(), "texts", len(texts))

    def add_column(self, column: Column) -> dict[str, Any]:
        """A column with its name and the words of its categories."""
        if column.kind == "text":
            packed = self.add_texts([str(value) for value in column.values.tolist()])
        else:
            packed = self.add(column.values)
        return {"name": column.name, "kind": column.kind, "words": list(column.words), "values": packed}

    def _keep(self, raw: bytes, kind: str, length: int) -> dict[str, Any]:
        small = zlib.compress(raw, _LEVEL)
        packed = len(small) < _PAYS * len(raw)
        text = base64.b64encode(small if packed else raw).decode("ascii")
        place = f"array-{len(self.elements)}"
        self.elements.append(f'<script type="text/plain" id="{place}">{text}</script>')
        return {"id": place, "kind": kind, "length": length, "packed": packed}


def smallest(values: Array) -> tuple[str, Array]:
    """The name of a typed array of JavaScript that keeps every value, and the values in it, little-endian."""
    values = np.asarray(values)
    if np.isfinite(values).all() and np.array_equal(values, np.round(values)):
        top = float(np.abs(values).max(initial=0.0))
        for code, kind in _WHOLE:
            if top <= np.iinfo(code).max:
                return kind, values.astype(f"<{code}")
    with np.errstate(over="ignore"):
        single = values.astype("<f4")
    if np.array_equal(single.astype(np.float64), values.astype(np.float64), equal_nan=True):
        return "Float32Array", single
    return "Float64Array", values.astype("<f8")
