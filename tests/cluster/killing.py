"""A worker that is killed while it has work in hand, at a moment that a test names."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable
from functools import wraps
from typing import Any

import pytest

IDLE = "the worker has nothing to do"
BLOCKS = "the worker computes blocks of a Dask collection"
_PATIENCE = 10.0  # seconds until work is in the hands of a worker


class Killer:
    """Kills a worker, as the system does where memory is short, amid the work of a function of Mercer.

    The worker is stopped before it is given work and killed when it has some: so there is always work that is lost.

    Parameters
    ----------
    client : Client
        Of a cluster of processes.
    patch : MonkeyPatch
        What puts all back.
    owner, name : object and str
        A function or a method, calls of which are counted.
    task : callable, IDLE or BLOCKS
        What the worker shall be busy with.

    Attributes
    ----------
    chances : list of int
        Numbers of the calls in which there was such work.
    deadly_call : int
        The one in which a worker is killed.
    lost : list of list of str
        What each worker that was killed had in hand.
    """

    def __init__(self, client: Any, patch: pytest.MonkeyPatch, owner: Any, name: str, task: Any) -> None:
        self.chances: list[int] = []
        self.deadly_call, self.lost = 0, []
        self._client, self._task, self._calls, self._inside = client, task, 0, False
        self._killing: threading.Thread | None = None
        patch.setattr(owner, name, self._counted(getattr(owner, name)))
        for way in ("map", "compute"):
            patch.setattr(type(client), way, self._deadly(getattr(type(client), way)))

    def again(self) -> None:
        """Kill a worker in the middle of the calls to come."""
        self.deadly_call, self._calls = self.chances[len(self.chances) // 2], 0

    def _counted(self, function: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(function)
        def counted(*args: Any, **kwargs: Any) -> Any:
            self._calls += 1
            self._inside = True
            if self._task is IDLE:
                self._chance(sorted(self._client.nthreads()))
            try:
                return function(*args, **kwargs)
            finally:
                self._inside = False

        return counted

    def _deadly(self, call: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(call)
        def deadly(client: Any, what: Any, *args: Any, **options: Any) -> Any:
            if self._inside and (what is self._task or (self._task is BLOCKS and not callable(what))):
                self._chance(options.get("workers") or sorted(client.nthreads()))
            return call(client, what, *args, **options)

        return deadly

    def _chance(self, workers: list[str]) -> None:
        """Stop the first of the workers now, and kill it from another thread as soon as it has work in hand."""
        self.chances.append(self._calls)
        if self._calls != self.deadly_call or self._killing is not None:
            return
        process = self._client.run(os.getpid, workers=workers[:1])[workers[0]]
        os.kill(process, signal.SIGSTOP)
        self._killing = threading.Thread(target=self._kill, args=(workers[0], process))
        self._killing.start()
        if self._task is IDLE:
            self._killing.join()

    def _kill(self, worker: str, process: int) -> None:
        end, held = time.monotonic() + _PATIENCE, []
        while not held and self._task is not IDLE and time.monotonic() < end:
            held = self._client.run_on_scheduler(_in_hand, worker=worker)
        os.kill(process, signal.SIGKILL)
        self.lost.append(held)


async def _in_hand(dask_scheduler: Any, worker: str) -> list[str]:
    return [str(task.key) for task in dask_scheduler.workers[worker].processing]
