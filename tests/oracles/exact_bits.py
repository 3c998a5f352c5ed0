"""All numbers of an answer as they lie in memory: what is compared where two runs must agree to the last bit."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np


def bits(value: Any) -> Any:
    """All numbers of a value but seconds."""
    if isinstance(value, np.ndarray):
        return value.dtype.str, value.shape, value.tobytes()
    if isinstance(value, (tuple, list)):
        return [bits(each) for each in value]
    if dataclasses.is_dataclass(value):
        return [bits(getattr(value, each.name)) for each in dataclasses.fields(value) if each.name != "seconds"]
    return value if isinstance(value, (int, float, str, type(None))) else repr(type(value))


def told(model: Any) -> dict[str, Any]:
    """Those of all that a fit has set."""
    return {name: bits(value) for name, value in vars(model).items() if name.endswith("_") and name != "phases_"}
