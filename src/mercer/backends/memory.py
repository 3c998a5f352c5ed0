"""How much memory is free, as the operating system and the container see it."""

from __future__ import annotations

import os
import time
from pathlib import Path

_CGROUP_FILES = (
    ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory.current"),
    ("/sys/fs/cgroup/memory/memory.limit_in_bytes", "/sys/fs/cgroup/memory/memory.usage_in_bytes"),
)
_CAUTIOUS = 2 * 10**9
_FRESH = 0.02  # seconds: to read the system's files takes a quarter of a millisecond, and small fits ask twenty times
_last = (-_FRESH, 0)


def free_memory() -> int:
    """Bytes that could be allocated without swapping: the least of what the machine and the container allow."""
    return max(0, min(_machine_free(), _container_free()))


def lately_free_memory() -> int:
    """The same, read again only where the last reading is older than a fiftieth of a second."""
    global _last
    now, (when, free) = time.monotonic(), _last
    if now - when > _FRESH:
        free = free_memory()
        _last = now, free
    return free


def _machine_free() -> int:
    try:
        for line in Path("/proc/meminfo").read_text().splitlines():
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) * 1024
    except (OSError, ValueError):
        pass
    try:  # no /proc: half of the physical memory stands in for what is free
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // 2
    except (AttributeError, OSError, ValueError):
        return _CAUTIOUS


def _container_free() -> int:
    for limit, usage in _CGROUP_FILES:
        try:
            return int(Path(limit).read_text()) - int(Path(usage).read_text())
        except (OSError, ValueError):  # not in such a container, or its limit reads "max"
            continue
    return 2**63
