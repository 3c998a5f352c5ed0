"""Where products run, by name: this machine's memory with NumPy, or torch, on a card or in this machine's memory too.

``"cpu"`` leaves NumPy arrays to NumPy. ``"cuda"`` and ``"cuda:1"`` are cards; ``"torch"`` goes the way of a card with
tensors in this machine's memory, so that what a card would do can be tried, and is tested, without one.
"""

from __future__ import annotations

import re
from importlib.util import find_spec
from typing import Any

from mercer.backends.config import get_config

_NAMES = "'cpu', 'cuda', 'cuda:1' and the like, or 'torch' (torch in this machine's memory)"


def checked_device(name: Any) -> str:
    """The name of a device that is there; ValueError says in one sentence why it is not."""
    if name in ("cpu", "torch") and isinstance(name, str):
        if name == "torch":
            _require_torch(name)
        return str(name)
    found = re.fullmatch(r"cuda(?::(\d+))?", name) if isinstance(name, str) else None
    if found is None:
        raise ValueError(f"device={name!r} must be {_NAMES}.")
    _require_torch(name)
    _require_card(name, int(found[1] or 0))
    return str(name)


def _require_torch(name: str) -> None:
    if find_spec("torch") is None:
        raise ValueError(f"device={name!r} needs torch, which is not installed: pip install 'mercer[gpu]'.")


def _require_card(name: str, number: int) -> None:
    import torch

    count = torch.cuda.device_count() if torch.cuda.is_available() else 0
    if not count:
        raise ValueError(f"device={name!r} needs a card that torch can use, and torch sees none: use device='cpu'.")
    if number >= count:
        cards = "one card, 'cuda:0'" if count == 1 else f"{count} cards, 'cuda:0' to 'cuda:{count - 1}'"
        raise ValueError(f"device={name!r} is not there: torch sees {cards}.")


def torch_device() -> Any | None:
    """The device of torch that the configuration names; None where NumPy arrays are left to NumPy."""
    name = get_config().device
    if name == "cpu":
        return None
    import torch

    return torch.device("cpu" if name == "torch" else name)
