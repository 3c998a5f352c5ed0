"""What the benchmarks of cards share: the card in words, times that wait for it, and a page of results."""

from __future__ import annotations

import argparse
import platform
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

import torch

T = TypeVar("T")
RESULTS = Path(__file__).parent / "results"
NO_CARD = "No card: torch sees none here. Run this on a machine with one, or with --device torch to see that it runs."


def options(doc: str | None, *, n: Sequence[int]) -> argparse.Namespace:
    """The device, the sizes and a page; ends with a sentence where the device is not there."""
    parser = argparse.ArgumentParser(description=(doc or "").splitlines()[0])
    parser.add_argument("--device", default="cuda", help="cuda, cuda:1, …; torch runs in this machine's memory")
    parser.add_argument("--n", type=int, nargs="+", default=list(n), help="numbers of points")
    parser.add_argument("--page", type=Path, help="where the table goes; printed alone without a card")
    given = parser.parse_args()
    if given.device.startswith("cuda") and not torch.cuda.is_available():
        sys.exit(NO_CARD)
    return given


def described(device: str) -> str:
    """The card, torch, and the machine around it."""
    if not device.startswith("cuda"):
        return f"this machine's memory, no card; torch {torch.__version__}, Python {platform.python_version()}"
    card = torch.cuda.get_device_properties(device)
    return f"{card.name}, {card.total_memory / 2**30:.0f} GiB; torch {torch.__version__}, CUDA {torch.version.cuda}"


def waited(device: str) -> None:
    """Wait until the card has done what was asked of it."""
    if device.startswith("cuda"):
        torch.cuda.synchronize(device)


def timed(work: Callable[[], T], device: str) -> tuple[float, T]:
    """The seconds of a call, to its end on the card, and what it returned."""
    waited(device)
    began = time.perf_counter()
    done = work()
    waited(device)
    return time.perf_counter() - began, done


def best_of(work: Callable[[], Any], device: str, *, least: float = 0.3, most: int = 20) -> float:
    """The least time of some calls after a first that compiles and chooses."""
    timed(work, device)
    times = [timed(work, device)[0]]
    while sum(times) < least and len(times) < most:
        times.append(timed(work, device)[0])
    return min(times)


def peak_gigabytes(device: str) -> str:
    """The most memory that tensors took on the card since it was last asked; a dash without one."""
    if not device.startswith("cuda"):
        return "–"
    peak = torch.cuda.max_memory_allocated(device) / 1e9
    torch.cuda.reset_peak_memory_stats(device)
    return f"{peak:.1f}"


def told(given: argparse.Namespace, name: str, title: str, words: str, table: Sequence[str]) -> None:
    """Print a table; on a card write the page too."""
    page = [f"# {title}", "", f"{described(given.device)}. {words}", "", *table, ""]
    print("\n".join(page))
    if given.page is not None or given.device.startswith("cuda"):
        (given.page or RESULTS / f"{name}.md").write_text("\n".join(page), encoding="utf-8")
