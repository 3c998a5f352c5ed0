"""One immutable configuration, changed for the length of a ``with`` block, and the memory that is free."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from numbers import Real
from pathlib import Path
from typing import Any, Literal

import numpy as np

from mercer.wording import size_in_words

_NOT_COUNTED = 16 * 10**6
_UNITS = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12, "ki": 2**10, "mi": 2**20, "gi": 2**30, "ti": 2**40}
_SECONDS = {"s": 1, "m": 60, "min": 60, "h": 3600, "d": 86400}
_CGROUP_FILES = (
    ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory.current"),
    ("/sys/fs/cgroup/memory/memory.limit_in_bytes", "/sys/fs/cgroup/memory/memory.usage_in_bytes"),
)
_CAUTIOUS = 2 * 10**9
_FRESH = 0.02  # seconds: to read the system's files takes a quarter of a millisecond, and small fits ask twenty times
_last = (-_FRESH, 0)


@dataclass(frozen=True)
class Config:
    """How and where Mercer multiplies.

    Attributes
    ----------
    device : str
        Where products of NumPy arrays run: ``"cpu"``, ``"cuda"``, ``"cuda:1"`` and the like, or ``"torch"``. Tensors
        stay on theirs.
    memory_limit : int or None
        Bytes that may be taken beyond the data and the answer, as near as a run can keep to it. None means a quarter of
        the memory that is free when asked, on a card of that.
    n_threads : int or None
        Worker threads of a product. None means every core this process may use.
    dtype : {"float64", "float32"}
        The arithmetic of estimators and certificates.
    cluster : Cluster or None
        The Dask cluster on which large kernel matrices are multiplied: :doc:`/user_guide/cluster`.
    checkpoint : str or None
        The file, or the folder of files, from which a run that was killed is taken up again.
    checkpoint_every : float or None
        Seconds between two writings of it. None lets them grow to a minute.
    """

    device: str = "cpu"
    memory_limit: int | None = None
    n_threads: int | None = None
    dtype: Literal["float64", "float32"] = "float64"
    cluster: Any = field(default=None, repr=False)
    checkpoint: str | None = None
    checkpoint_every: float | None = None

    @property
    def client(self) -> Any:
        """The client of the cluster; None where everything runs on this machine."""
        return None if self.cluster is None else self.cluster.client

    @property
    def memory_bytes(self) -> int:
        """The memory limit in bytes, at this moment."""
        if self.memory_limit is not None:
            return self.memory_limit
        free = None
        if self.device.startswith("cuda"):
            from mercer.backends.device import free_on_card

            free = free_on_card(self.device)
        return (lately_free_memory() if free is None else free) // 4

    def share(self, part: float, most: int | None = None) -> int:
        """A part of the memory limit in bytes, at this moment, but no more than ``most``."""
        allowed = int(part * self.memory_bytes)
        return allowed if most is None else min(allowed, most)

    @property
    def threads(self) -> int:
        """The number of worker threads, at this moment."""
        return usable_cores() if self.n_threads is None else self.n_threads


def usable_cores() -> int:
    """Cores this process may run on (its affinity mask where the system has one)."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


_current: ContextVar[Config] = ContextVar("mercer_config", default=Config())  # noqa: B039 (frozen)


def get_config() -> Config:
    """Return the configuration in force here.

    Examples
    --------
    >>> import mercer
    >>> mercer.get_config().dtype
    'float64'
    """
    return _current.get()


def require_memory(needed: float, what: str, advice: str) -> None:
    """Refuse work that cannot keep to a memory limit that was set; what takes less than 16 MB is not counted."""
    limit = get_config().memory_limit
    if limit is not None and needed > max(limit, _NOT_COUNTED):
        raise MemoryError(
            f"{what} takes about {size_in_words(needed)} beyond the data, above memory_limit={size_in_words(limit)}: "
            f"{advice}, or raise memory_limit."
        )


def require_free_memory(needed: float, what: str, advice: str, error: type[Exception] = ValueError) -> None:
    """Refuse, as a wrong value, what takes more than the memory limit, or than a quarter of what is free without one.

    For work whose memory follows from a size that the caller chose; ``what`` is a sentence up to its number.
    """
    limit = get_config().memory_bytes
    if needed > limit:
        raise error(
            f"{what} {size_in_words(needed)}, beyond the memory limit of {size_in_words(limit)}: {advice}, or raise "
            "memory_limit."
        )


@contextmanager
def config_context(
    *,
    device: str | None = None,
    memory_limit: int | float | str | None = None,
    n_threads: Any = None,
    dtype: Any = None,
    client: Any = None,
    checkpoint: str | os.PathLike[str] | None = None,
    checkpoint_every: float | str | None = None,
) -> Iterator[Config]:
    """Change the configuration inside a ``with`` block.

    Parameters
    ----------
    device : {"cpu", "cuda", "cuda:1", ..., "torch"}, optional
        Where NumPy arrays are worked on. Points go to the card when a fit begins, and what it finds comes back as NumPy
        arrays; ``"torch"`` goes the same way without a card. Tensors stay on the device that they are on.
    memory_limit : int or str, optional
        Bytes that may be taken beyond the data and the answer, as a number or as text such as ``"2GB"`` or
        ``"500 MiB"``. A fit that cannot keep to it says so before it starts.
    n_threads : int, optional
        Worker threads of a product.
    dtype : {"float64", "float32"}, optional
        The arithmetic of estimators and certificates.
    client : distributed.Client, optional
        Products with large kernel matrices run on its Dask cluster. The workers hold the points until the block ends.
    checkpoint : str or path, optional
        Where the journal of a run is kept: a file for one run, or a folder that exists, for a file each. The same call
        goes on from there after it was killed, to the same answer.
    checkpoint_every : float or str, optional
        Seconds between two writings, as a number or as text such as ``"5min"``. Left out, they begin with a second and
        grow to a minute, and take a twentieth of the time at most.

    Yields
    ------
    Config
        The configuration in force inside the block. Options left out keep the value they had.

    Examples
    --------
    >>> import mercer
    >>> with mercer.config_context(memory_limit="1GB", n_threads=1) as config:
    ...     config.memory_limit
    1000000000
    """
    changes: dict[str, Any] = {}
    if device is not None:
        from mercer.backends.device import checked_device

        changes["device"] = checked_device(device)
    if memory_limit is not None:
        changes["memory_limit"] = _parse_bytes(memory_limit)
    if n_threads is not None:
        if isinstance(n_threads, bool) or not isinstance(n_threads, (int, np.integer)) or n_threads < 1:
            raise ValueError(f"n_threads={n_threads!r} must be a whole number of at least 1.")
        changes["n_threads"] = int(n_threads)
    if dtype is not None:
        changes["dtype"] = _parse_dtype(dtype)
    if client is not None:
        changes["cluster"] = _cluster_of(client)
    if checkpoint is not None:
        changes["checkpoint"] = _parse_path(checkpoint)
    if checkpoint_every is not None:
        changes["checkpoint_every"] = parse_seconds(checkpoint_every, "checkpoint_every")
    token = _current.set(replace(_current.get(), **changes))
    try:
        yield _current.get()
    finally:
        _current.reset(token)
        if client is not None and changes["cluster"] is not _current.get().cluster:
            changes["cluster"].forget()


def _cluster_of(client: Any) -> Any:
    """The cluster of a client: the one that is in use already where it is that of this client."""
    from mercer.backends.dask import Cluster

    current = _current.get()
    return current.cluster if current.client is client else Cluster(client)


def _parse_dtype(dtype: Any) -> str:
    try:
        name = np.dtype(dtype).name
    except TypeError:
        name = ""
    if name not in ("float32", "float64"):
        raise ValueError(f"dtype={dtype!r} must be 'float64' or 'float32'.")
    return name


def _parse_path(path: Any) -> str:
    found = os.fspath(path) if isinstance(path, str | os.PathLike) else ""
    if not isinstance(found, str) or not found:
        raise ValueError(f"checkpoint={path!r} must be the path of a file, or of a folder.")
    return found


def parse_seconds(time: float | str, name: str) -> float:
    """Seconds from a number, or from text such as "30s", "5 min" or "1.5h"."""
    if isinstance(time, str):
        match = re.fullmatch(r"\s*([0-9]+\.?[0-9]*|\.[0-9]+)\s*(s|min|m|h|d)?\s*", time.lower())
        if match is None:
            raise ValueError(f"{name}={time!r} must be seconds or text such as '30s', '5min' or '1h'.")
        return float(match[1]) * _SECONDS[match[2] or "s"]
    if isinstance(time, bool) or not isinstance(time, Real) or not np.isfinite(time) or time < 0:
        raise ValueError(f"{name}={time!r} must be a number of seconds of at least 0.")
    return float(time)


def _parse_bytes(amount: int | float | str) -> int:
    if isinstance(amount, str):
        match = re.fullmatch(r"\s*([0-9]+\.?[0-9]*|\.[0-9]+)\s*([kmgt]i?)?b?\s*", amount.lower())
        if match is None:
            raise ValueError(f"memory_limit={amount!r} must be bytes or text such as '2GB' or '500 MiB'.")
        return int(float(match[1]) * _UNITS[match[2] or ""])
    if isinstance(amount, bool) or not isinstance(amount, Real) or not np.isfinite(amount) or amount < 0:
        raise ValueError(f"memory_limit={amount!r} must be a number of bytes of at least 0.")
    return int(amount)


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
