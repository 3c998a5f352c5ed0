"""Objects in one line: what ``repr`` says of estimators, kernels, certificates and results; sizes and times."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from enum import Enum
from typing import Any

LINE = 120  # characters
_VALUE = 30  # of a single parameter where not all of them fit


class OneLine:
    """An estimator whose ``repr`` is one line: its name, and the parameters that are not as they are by default."""

    def __repr__(self, N_CHAR_MAX: int = LINE) -> str:
        given = self.get_params(deep=False)  # type: ignore[attr-defined]
        return call_in_a_line(type(self).__name__, _changed(type(self), given))


def brief(thing: Any, *names: str) -> str:
    """The name of an object's class with some of its attributes, in a line; numbers to eight digits."""
    values = {name: getattr(thing, name) for name in names}
    rounded = {name: _Rounded(value) if isinstance(value, float) else value for name, value in values.items()}
    return call_in_a_line(type(thing).__name__, rounded)


class _Rounded:
    """A number as it is shown where its last digits do not matter."""

    def __init__(self, value: float) -> None:
        self._value = value

    def __repr__(self) -> str:
        return f"{self._value:.8g}"


def call_in_a_line(name: str, values: Mapping[str, Any], *, ending: str = "") -> str:
    """``name(a=…, b=…)``: values are cut short, and the last ones left out, where the line is too short for them."""
    room = LINE - len(f"{name}(, …){ending}")
    parts = [f"{key}={_shown(value)}" for key, value in values.items()]
    if len(", ".join(parts)) > room:
        parts = [f"{key}={_short(value)}" for key, value in values.items()]
    kept = [part for k, part in enumerate(parts) if len(", ".join(parts[: k + 1])) <= room]
    return f"{name}({', '.join(kept if len(kept) == len(parts) else [*kept, '…'])}){ending}"


def parameters_in_a_line(thing: Any, given: Mapping[str, Any], *, ending: str = "") -> str:
    """The call that makes an object: all its parameters where they fit into a line, else those that are no defaults."""
    name = type(thing).__name__
    whole = f"{name}({', '.join(f'{key}={_shown(value)}' for key, value in given.items())}){ending}"
    return whole if len(whole) <= LINE else call_in_a_line(name, _changed(type(thing), given), ending=ending)


def size_in_words(size: float) -> str:
    """Bytes in the unit that suits them, to two digits or more."""
    if size >= 1e9:
        return f"{size / 1e9:.1f} GB"
    if size >= 1e5:
        return f"{size / 1e6:.0f} MB" if size > 1e7 else f"{size / 1e6:.3g} MB"
    return f"{size / 1e3:.3g} kB"


def time_in_words(seconds: float) -> str:
    """Seconds in the unit that suits them."""
    if seconds < 100:
        return f"{seconds:.2g} s" if seconds < 10 else f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 6000 else f"{seconds / 3600:.1f} h"


def _changed(kind: type, given: Mapping[str, Any]) -> dict[str, Any]:
    """The parameters whose value is not their default."""
    known = inspect.signature(kind).parameters
    return {name: value for name, value in given.items() if name not in known or _differs(value, known[name].default)}


def _differs(value: Any, default: Any) -> bool:
    return value is not default and (type(value) is not type(default) or repr(value) != repr(default))


def _shown(value: Any) -> str:
    """A value on one line, without NumPy's name around a number; long arrays and functions by what they are."""
    if isinstance(value, Enum):
        return f"{type(value).__name__}.{value.name}"
    text = repr(float(value) if isinstance(value, float) else value)
    if "\n" not in text and not text.startswith(("<function", "<bound method", "<built-in")):
        return text
    if getattr(value, "shape", None):
        return f"<array of shape {tuple(value.shape)}>"
    return f"<{getattr(value, '__name__', None) or type(value).__name__}>"


def _short(value: Any) -> str:
    text = _shown(value)
    if len(text) <= _VALUE:
        return text
    if getattr(value, "shape", None):
        return f"<array of shape {tuple(value.shape)}>"
    if isinstance(value, (list, tuple, dict, set)):
        return f"<{type(value).__name__} of {len(value)}>"
    head, bracket, _ = text.partition("(")
    if bracket and head.isidentifier() and not isinstance(value, str):
        return f"{head}(…)"
    return f"{text[: _VALUE - 1]}…"
