"""Where products run, by name: this machine's memory with NumPy, or torch, on a card or in this machine's memory too.

``"cpu"`` leaves NumPy arrays to NumPy. ``"cuda"`` and ``"cuda:1"`` are cards; ``"torch"`` goes the way of a card with
tensors in this machine's memory, so that what a card would do can be tried, and is tested, without one.
"""

from __future__ import annotations

import gc
import re
import traceback
from importlib.util import find_spec
from typing import Any

from mercer.backends.config import get_config

_USABLE = 0.9  # of a card's memory, beside what the driver and fragments take
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


def memory_error(error: BaseException, rows: int | None = None) -> MemoryError | None:
    """One sentence on a card that is full and what would fit, where that is the error; None of any other.

    All that the call held on the card is given back first, so that the next one finds it free.

    Parameters
    ----------
    error : exception
        What was raised; the frames of its traceback are cleared where it is torch's.
    rows : int, optional
        Points that the call was about.
    """
    kind = type(error)
    if kind.__name__ != "OutOfMemoryError" or not kind.__module__.startswith("torch"):
        return None
    fits = _rows_that_fit(str(error), rows)
    _forget(error)
    _give_back()
    advice = "pass fewer points" if fits is None else f"about {fits} of these {rows} points would fit"
    return MemoryError(
        f"The card ran out of memory: {advice}; or take landmarks, store less by memory_limit, or use device='cpu'."
    )


def _forget(error: BaseException) -> None:
    """Clear the frames of an error, and of those that it came of: they hold tensors."""
    chain: list[BaseException | None] = [error]
    while chain:
        each = chain.pop()
        if each is not None:
            traceback.clear_frames(each.__traceback__)
            each.__traceback__ = None
            chain += [each.__cause__, each.__context__]


def _rows_that_fit(message: str, rows: int | None) -> int | None:
    """So many as if memory grew with the points; where it grows with their square, more would fit."""
    asked = re.search(r"Tried to allocate ([0-9.]+) (\w+)", message)
    memory = card_memory()
    if asked is None or memory is None or not rows:
        return None
    unit = {"bytes": 1, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30, "TiB": 2**40}.get(asked[2])
    if unit is None:
        return None
    held, total = memory
    part = _USABLE * total / (held + float(asked[1]) * unit)
    return max(1, int(min(part, _USABLE) * rows))


def card_memory(device: Any = None) -> tuple[int, int] | None:
    """Bytes that tensors hold on a card, the current one unless one is named, and all that it has; None without one."""
    import torch

    if not torch.cuda.is_available():
        return None
    return int(torch.cuda.memory_allocated(device)), int(torch.cuda.mem_get_info(device)[1])


def free_on_card(device: Any) -> int | None:
    """Bytes that are free on a card, with those that torch keeps for later; None where the device is no card."""
    import torch

    device = torch.device(device)
    if device.type != "cuda" or not torch.cuda.is_available():
        return None
    kept = torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device)
    return int(torch.cuda.mem_get_info(device)[0]) + int(kept)


def _give_back() -> None:
    """Return what torch keeps for later to the card."""
    import torch

    gc.collect()
    if torch.cuda.is_available():
        torch.cuda.empty_cache()
