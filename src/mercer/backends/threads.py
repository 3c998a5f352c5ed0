"""Our own threads over tiles, with BLAS held to one thread a worker.

OpenBLAS' threads and a pool of ours fight over the cores when both are awake; numba's ``parallel=True`` has the same
quarrel and dies in forked children. So every product runs on this pool, and while any product runs BLAS is held to one
thread: the hold is counted, so that products started from several threads at once release it exactly once.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import ContextVar, copy_context
from typing import Any, TypeVar, final

from mercer.backends.config import get_config

T = TypeVar("T")
R = TypeVar("R")

_SMALL = 700
_lock = threading.Lock()
_pools: dict[int, ThreadPoolExecutor] = {}
_holders = 0
_controller: Any = None
_limits: Any = None
_worker = threading.local()
_watcher: ContextVar[Callable[[float], None] | None] = ContextVar("mercer_watcher", default=None)


def run_chunks(function: Callable[[T], R], chunks: Iterable[T]) -> list[R]:
    """Return ``[function(c) for c in chunks]``, computed on the worker threads.

    The order of the results is the order of the chunks, so a reduction over them does not depend on timing. A chunk
    that itself calls this function runs its own chunks in line.
    """
    chunks = list(chunks)
    function = _watched(function, len(chunks))
    with _HOLD:
        if len(chunks) <= 1 or getattr(_worker, "busy", False):
            return [function(chunk) for chunk in chunks]
        threads = get_config().threads
        if threads <= 1:
            return [function(chunk) for chunk in chunks]
        return list(_pool(threads).map(_marked(function), chunks))


@contextmanager
def watch(report: Callable[[float], None]) -> Iterator[None]:
    """Call report with the fraction done, from any thread, as the chunks of each product inside are finished."""
    token = _watcher.set(report)
    try:
        yield
    finally:
        _watcher.reset(token)


def _watched(function: Callable[[T], R], count: int) -> Callable[[T], R]:
    report = _watcher.get()
    if report is None or getattr(_worker, "busy", False):
        return function
    lock, finished = threading.Lock(), 0

    def call(chunk: T) -> R:
        nonlocal finished
        result = function(chunk)
        with lock:
            finished += 1
            report(finished / count)
        return result

    return call


def _marked(function: Callable[[T], R]) -> Callable[[T], R]:
    context = copy_context()  # the caller's configuration, which a worker thread would not see

    def call(chunk: T) -> R:
        _worker.busy = True
        try:
            return context.copy().run(function, chunk)
        finally:
            _worker.busy = False

    return call


def _pool(threads: int) -> ThreadPoolExecutor:
    with _lock:
        if threads not in _pools:
            _pools[threads] = ThreadPoolExecutor(threads, thread_name_prefix="mercer")
        return _pools[threads]


@final
class _Hold:
    """BLAS on one thread for as long as somebody is inside. One object for all: to enter it costs a lock."""

    def __enter__(self) -> None:
        global _holders, _controller, _limits
        with _lock:
            if _holders == 0:
                if _controller is None:
                    import scipy.linalg  # noqa: F401  (loads scipy's own BLAS, so that the controller sees it)
                    from threadpoolctl import ThreadpoolController

                    _controller = ThreadpoolController()
                _disown_blas()
                _limits = _controller.limit(limits=1, user_api="blas")
            _holders += 1

    def __exit__(self, *_: object) -> None:
        global _holders
        with _lock:
            _holders -= 1
            if _holders == 0:
                _disown_blas()
                _limits.restore_original_limits()
                _disown_blas()


_HOLD = _Hold()


def single_threaded_blas() -> AbstractContextManager[None]:
    """Hold BLAS to one thread while any caller is inside."""
    return _HOLD


def blas_for(order: int) -> AbstractContextManager[None]:
    """Hold BLAS to one thread for many operations on matrices of an order up to 700.

    Two threads gain little there (a fifth for a Cholesky factor, nothing for eigenvectors up to 400), and where other
    processes want the cores they wait for each other: ten times as long, measured on two busy cores.
    """
    return _HOLD if order <= _SMALL else nullcontext()


def _disown_blas() -> None:
    """Let this thread set OpenBLAS: threadpoolctl 3.8 heeds only the first thread that did, but callers are many."""
    from threadpoolctl import OpenBLASController

    if hasattr(OpenBLASController, "clear_controlling_thread"):
        OpenBLASController.clear_controlling_thread(force=True)


def _forget_threads_after_fork() -> None:
    """A forked child has none of the parent's threads: it starts with no pool and a free lock."""
    global _lock, _holders
    _lock = threading.Lock()
    _pools.clear()
    _holders = 0


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_threads_after_fork)
