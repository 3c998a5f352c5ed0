"""Many data sets over many processes until the time is up, for benchmarks/testing_levels.py and testing_power.py."""

from __future__ import annotations

import json
import os
import platform
import sys
import time
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

Study = Callable[[str, Sequence[int]], list[Any]]


def one_thread() -> None:
    """A worker is one thread: its neighbours have the other cores."""
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ[name] = "1"
    threadpool_limits(1)


def gathered(
    study: Study, keys: Sequence[str], seeds: Sequence[int], jobs: int = 1, minutes: float = 1e9, block: int = 25
) -> dict[str, list[Any]]:
    """The results of each key over the seeds, as many as there was time for.

    All keys get their first seeds before any gets more, so that a run that is stopped has a bit of everything.
    """
    began, out = time.monotonic(), {key: [] for key in keys}
    tasks = [(key, seeds[i : i + block]) for i in range(0, len(seeds), block) for key in keys]
    one_thread()
    with ProcessPoolExecutor(jobs, mp_context=get_context("spawn"), initializer=one_thread) as pool:
        running: dict[Future[list[Any]], str] = {}
        while tasks or running:
            while tasks and len(running) < 2 * jobs and time.monotonic() - began < 60 * minutes:
                key, part = tasks.pop(0)
                running[pool.submit(study, key, part)] = key
            if not running:
                break
            for done in wait(running, return_when=FIRST_COMPLETED).done:
                key = running.pop(done)
                try:
                    out[key] += done.result()
                except (ValueError, OSError) as problem:  # one setting without its data must not cost the others
                    print(f"{key}: {problem}", file=sys.stderr)
            if time.monotonic() - began >= 60 * minutes and tasks:
                print(f"the time is up: {len(tasks)} blocks of {block} data sets are left out", file=sys.stderr)
                tasks = []
    return out


def store(path: Path, results: dict[str, Any], how: str, seconds: float) -> None:
    """Write results and where they come from."""
    machine = (
        f"{how} on {os.cpu_count()} cores, {platform.machine()}, Python "
        f"{platform.python_version()}, NumPy {np.__version__}; {seconds:.0f} s"
    )
    path.write_text(json.dumps({"machine": machine, "results": results}))


def stored(path: Path) -> tuple[dict[str, Any], str]:
    """What :func:`store` wrote: the results and the machine."""
    found = json.loads(path.read_text())
    return found["results"], found["machine"]
