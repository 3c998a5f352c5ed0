"""Chunks on our threads, with BLAS held to one thread while any of them runs."""

from __future__ import annotations

import multiprocessing
import threading
import time
import warnings

import numpy as np
import pytest
from threadpoolctl import threadpool_info, threadpool_limits

from mercer.backends import config_context, get_config, threads
from mercer.backends.threads import blas_for, run_chunks, run_workers, single_threaded_blas, watch
from mercer.kernels import Gaussian


def blas_threads():
    return {library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"}


@pytest.mark.parametrize("n_threads", [1, 2, 5])
@pytest.mark.parametrize("n_chunks", [0, 1, 2, 40])
def test_results_come_in_order(n_threads, n_chunks):
    def slow_first(i):
        time.sleep(0.001 * (n_chunks - i) / 10)
        return i * i

    with config_context(n_threads=n_threads):
        assert run_chunks(slow_first, iter(range(n_chunks))) == [i * i for i in range(n_chunks)]


def test_chunks_run_on_other_threads_at_once():
    barrier = threading.Barrier(2, timeout=30)  # passes only if two chunks are inside together
    with config_context(n_threads=2):
        names = run_chunks(lambda _: (barrier.wait(), threading.current_thread().name)[1], range(2))
    assert len(set(names)) == 2
    assert all(name.startswith("mercer") for name in names)


def test_one_thread_means_the_callers():
    with config_context(n_threads=1):
        assert set(run_chunks(lambda _: threading.current_thread(), range(3))) == {threading.current_thread()}


def test_inner_chunks_run_in_line():
    """A pool whose workers wait for the same pool would wait for ever."""

    def outer(i):
        here = threading.current_thread()
        inner = run_chunks(lambda j: (threading.current_thread() is here, 10 * i + j), range(3))
        return all(same for same, _ in inner), [value for _, value in inner]

    with config_context(n_threads=2):
        results = run_chunks(outer, range(6))
    assert results == [(True, [10 * i + j for j in range(3)]) for i in range(6)]


def test_workers_see_the_configuration_of_the_caller():
    with config_context(n_threads=2, dtype="float32", memory_limit=77):
        config = get_config()
        assert run_chunks(lambda _: get_config(), range(4)) == [config] * 4


class Counter:
    """Tasks that several threads take from one counter."""

    def __init__(self, tasks, fails_at=None):
        self.left, self.tasks, self.fails_at, self.calls, self.lock = tasks, tasks, fails_at, 0, threading.Lock()

    def __call__(self, most):
        with self.lock:
            self.calls += 1
            if self.calls == self.fails_at:
                raise ArithmeticError("here")
            done = min(most, self.left)
            self.left -= done
        time.sleep(0.001)
        return done


@pytest.mark.parametrize("n_threads", [1, 2, 7])
@pytest.mark.parametrize("tasks", [1, 5, 40])
def test_workers_do_all_tasks_and_tell_how_far_they_are(n_threads, tasks):
    counter, told = Counter(tasks), []
    with config_context(n_threads=n_threads), watch(told.append):
        run_workers(counter, tasks, most=3, workers=tasks, blas=False)
    assert counter.left == 0
    assert told[-1] == max(told) == 1.0
    assert told == sorted(told)


@pytest.mark.parametrize("n_threads", [1, 4])
def test_workers_stop_when_one_of_them_fails(n_threads):
    counter = Counter(10_000, fails_at=6)
    with config_context(n_threads=n_threads), pytest.raises(ArithmeticError, match="here"):
        run_workers(counter, 10_000, most=1, workers=8, blas=True)
    calls = counter.calls
    time.sleep(0.02)
    assert counter.calls == calls
    assert counter.left > 0


@pytest.mark.parametrize("n_threads", [1, 3])
def test_an_exception_reaches_the_caller(n_threads):
    def fail(i):
        if i in (2, 5):
            raise ArithmeticError(f"chunk {i}")
        return i

    with config_context(n_threads=n_threads):
        before = blas_threads()
        with pytest.raises(ArithmeticError, match="chunk 2"):
            run_chunks(fail, range(8))
        assert blas_threads() == before
        assert run_chunks(str, range(3)) == ["0", "1", "2"]  # the pool is not broken


def test_blas_has_one_thread_inside_and_what_it_had_afterwards():
    np.ones((2, 2)) @ np.ones((2, 2))
    with single_threaded_blas():
        pass  # loads every BLAS the controller will see
    for n in (1, 2):
        with threadpool_limits(n, user_api="blas"):
            before = blas_threads()  # {n}, and 1 for a library built for one thread
            inside = run_chunks(lambda _: blas_threads(), range(3))
            assert inside == [{1}] * 3
            assert blas_threads() == before >= {n}
            with single_threaded_blas(), single_threaded_blas():
                assert blas_threads() == {1}
            assert blas_threads() == before


def test_small_matrices_get_one_thread_and_large_ones_all():
    with single_threaded_blas():
        pass
    with threadpool_limits(2, user_api="blas"):
        before = blas_threads()
        with blas_for(100):
            assert blas_threads() == {1}
        with blas_for(2000):
            assert blas_threads() == before
        assert blas_threads() == before


def test_two_callers_release_blas_once():
    first_in, second_in, first_out, second_out = (threading.Event() for _ in range(4))
    seen = {}

    def first():
        with single_threaded_blas():
            first_in.set()
            second_in.wait(30)
        first_out.set()
        second_out.wait(30)  # stays alive: OpenBLAS must heed the other thread all the same

    def second():
        first_in.wait(30)
        with single_threaded_blas():
            second_in.set()
            first_out.wait(30)
            seen["second alone"] = blas_threads()
        seen["nobody"] = blas_threads()
        second_out.set()

    with single_threaded_blas():
        pass
    with threadpool_limits(2, user_api="blas"):
        before = blas_threads()
        callers = [threading.Thread(target=target) for target in (first, second)]
        for caller in callers:
            caller.start()
        for caller in callers:
            caller.join(60)
        assert seen == {"second alone": {1}, "nobody": before}
        assert before >= {2}
        assert blas_threads() == before


def test_several_users_at_once_get_their_own_answers():
    rng = np.random.default_rng(0)
    sets = [rng.normal(size=(350, 3)) for _ in range(4)]
    want = [Gaussian(1.0)(X) for X in sets]
    got = [None] * 4

    def use(i):
        with config_context(n_threads=1 + i % 3):
            got[i] = Gaussian(1.0)(sets[i])

    users = [threading.Thread(target=use, args=(i,)) for i in range(4)]
    for user in users:
        user.start()
    for user in users:
        user.join(60)
    assert all(np.array_equal(a, b) for a, b in zip(want, got, strict=True))


def _kernel_in_a_child(X, connection):
    with config_context(n_threads=2):
        connection.send((Gaussian(1.0)(X), threads._holders))
    connection.close()


@pytest.mark.skipif("fork" not in multiprocessing.get_all_start_methods(), reason="this system does not fork")
@pytest.mark.parametrize("while_held", [False, True])
def test_a_forked_child_works(while_held):
    X = np.random.default_rng(1).normal(size=(700, 6))
    with config_context(n_threads=2):
        want = Gaussian(1.0)(X)  # our threads exist now, and the child will not have them
    context = multiprocessing.get_context("fork")
    receiver, sender = context.Pipe(duplex=False)
    child = context.Process(target=_kernel_in_a_child, args=(X, sender))
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "This process .* is multi-threaded", DeprecationWarning)
        if while_held:
            with single_threaded_blas():
                child.start()
        else:
            child.start()
    try:
        assert receiver.poll(60), "the child did not answer"
        got, holders = receiver.recv()
        child.join(60)
    finally:
        child.kill()
        child.join()
        receiver.close()
        sender.close()
    assert np.array_equal(got, want)
    assert holders == 0
    assert threads._holders == 0
