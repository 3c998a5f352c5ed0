"""What the header of a model file says of a model, for people and for programs that do not build it."""

from __future__ import annotations

import math
from typing import Any

_LONGEST = 200  # characters of a parameter in words


def summary(model: Any) -> dict[str, Any]:
    """Parameters, kernel, data and certificates of a model; None where it has none."""
    kernel, levels = getattr(model, "kernel_", None), getattr(model, "levels_", ())
    return {
        "parameters": {name: _plain(value) for name, value in _parameters(model).items()},
        "kernel": None if kernel is None else repr(kernel),
        "data": _data(model),
        "certificate": _certificate(getattr(model, "certificate_", None)),
        "levels": [_certificate(level.certificate) for level in levels] if len(levels) > 1 else None,
    }


def _parameters(model: Any) -> dict[str, Any]:
    return model.get_params(deep=False) if hasattr(model, "get_params") else {}


def _plain(value: Any) -> Any:
    """A parameter as JSON has it; in words, if JSON has no such thing."""
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float) and math.isfinite(value):
        return float(value)
    if hasattr(value, "shape") and hasattr(value, "dtype") and tuple(value.shape):
        return f"array of shape {tuple(value.shape)}, {value.dtype}"
    words = repr(value)
    return words if len(words) <= _LONGEST else f"{words[: _LONGEST - 1]}…"


def _data(model: Any) -> dict[str, Any] | None:
    seen = getattr(model, "_data_seen", None)
    return None if seen is None else dict(seen._asdict())


def _certificate(proof: Any) -> dict[str, Any] | None:
    if proof is None:
        return None
    names = "lower", "upper", "relative_gap", "failure_probability"
    numbers = {name: float(getattr(proof, name)) for name in names}
    finite = {name: value if math.isfinite(value) else None for name, value in numbers.items()}
    return {**finite, "method": proof.method, "words": str(proof)}
