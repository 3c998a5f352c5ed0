"""Our own threads over tiles, with BLAS held to one thread a worker.

OpenBLAS' threads and a pool of ours fight over the cores when both are awake; numba's ``parallel=True`` has the same
quarrel and dies in forked children. So every product runs on this pool, and while any product runs BLAS is held to one
thread: the hold is counted, so that products started from several threads at once release it exactly once.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import ContextVar, copy_context
from typing import Any, TypeVar, final

from mercer.backends.arrays import is_tensor
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


def run_workers(step: Callable[[int], int], tasks: int, *, most: int, workers: int, blas: bool) -> None:
    """Let worker threads call ``step(most)``, which takes tasks from a counter of its own, until all are done.

    ``step`` returns how many tasks it did, fewer than ``most`` when none are left; it should run for milliseconds
    without the interpreter's lock. If the caller is interrupted, no worker begins another call.

    Parameters
    ----------
    step : callable
        Does some of the tasks.
    tasks, most : int
        Tasks in all, and tasks a call.
    workers : int
        No more threads than this.
    blas : bool
        Whether tasks call BLAS, which is then held to one thread.
    """
    report = None if getattr(_worker, "busy", False) else _watcher.get()
    lock, finished, stopped = threading.Lock(), 0, False

    def work() -> None:
        nonlocal finished, stopped
        done = most
        try:
            while done == most and not stopped:
                done = step(most)
                if report is not None:
                    with lock:
                        finished += done
                        report(finished / tasks)
        except BaseException:
            stopped = True
            raise

    threads = min(get_config().threads, workers, tasks)
    with _HOLD if blas else nullcontext():
        if threads <= 1 or getattr(_worker, "busy", False):
            return work()
        running = [_pool(get_config().threads).submit(work) for _ in range(threads)]
        try:
            for future in running:
                future.result()
        finally:
            stopped = True
            wait(running)


def run_chunks_of(array: Any, function: Callable[[T], R], chunks: Iterable[T]) -> list[R]:
    """The same for chunks of an array of any library: torch is held to one thread a worker, or works on its device."""
    if not is_tensor(array):
        return run_chunks(function, chunks)
    from mercer.backends.torch.threads import run_on

    return run_on(array.device, function, chunks)


@contextmanager
def one_thread_for(order: int, array: Any) -> Iterator[None]:
    """Hold the library of an array to one thread for many operations on matrices of an order up to 700.

    As :func:`blas_for`, for tensors in this machine's memory too: on two busy cores torch took sixteen times as long on
    two threads. Products with kernel matrices run on our own threads all the same.
    """
    with blas_for(order):
        if order > _SMALL or not is_tensor(array) or array.device.type != "cpu":
            yield
            return
        import torch

        before = torch.get_num_threads()
        torch.set_num_threads(1)
        try:
            yield
        finally:
            torch.set_num_threads(before)


@contextmanager
def watch(report: Callable[[float], None]) -> Iterator[None]:
    """Call report with the fraction done, from any thread, as the chunks of each product inside are finished."""
    token = _watcher.set(report)
    try:
        yield
    finally:
        _watcher.reset(token)


def watcher() -> Callable[[float], None] | None:
    """Who wants to know how far a product is; nobody inside a thread of ours."""
    return None if getattr(_worker, "busy", False) else _watcher.get()


@contextmanager
def unwatched() -> Iterator[None]:
    """Report nothing: for what comes before the chunks that are watched, and takes no time beside them."""
    token = _watcher.set(None)
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
    """BLAS on one thread while any caller is inside. One object for all callers: entering it costs a lock."""

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


@contextmanager
def one_openmp_thread() -> Iterator[None]:
    """Hold OpenMP, on which scikit-learn's k-means runs, to one thread: two took 18 times as long for 1 000 points."""
    from threadpoolctl import threadpool_limits

    with threadpool_limits(limits=1, user_api="openmp"):
        yield


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
