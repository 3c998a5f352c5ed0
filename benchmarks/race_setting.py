"""What the tables of the race share: the machine they were measured on."""

from __future__ import annotations

import os
import platform
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.metadata import PackageNotFoundError, version

from threadpoolctl import threadpool_limits


@contextmanager
def one_thread() -> Iterator[None]:
    """One thread for everybody, ours and those of BLAS and torch: seconds are then those of one processor.

    On a machine with other jobs beside, the seconds of the processor are what a call costs; those of the clock are what
    the others leave of it.
    """
    import mercer

    torch = sys.modules.get("torch")
    if torch is not None:
        torch.set_num_threads(1)
    with threadpool_limits(1), mercer.config_context(n_threads=1):
        yield


def machine(*packages: str) -> str:
    """A line on the machine, its load, and the versions of the peers."""
    found = []
    for name in packages:
        try:
            found.append(f"{name} {version(name)}")
        except PackageNotFoundError:
            found.append(f"{name} not installed")
    parts = [
        f"Seconds of the processor, one thread each, on {os.cpu_count()} cores with other jobs beside (load "
        f"{os.getloadavg()[0]:.0f} at the end)",
        f"{platform.machine()}, Python {platform.python_version()}",
        *found,
    ]
    return ", ".join(parts) + "."
