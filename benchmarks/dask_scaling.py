"""Products on a Dask cluster of one and two workers of one thread, beside this process, and what that says of larger ones.

    python benchmarks/dask_scaling.py            # ten minutes on two free cores
    python benchmarks/dask_scaling.py --quick    # two minutes

Writes benchmarks/results/dask_scaling.md. Strong scaling: the same points on more workers. Weak scaling: as many pairs of
points for each worker. All of a round runs one after the other, so that a busy machine is as busy for each.
"""

from __future__ import annotations

import argparse
import math
import os
import platform
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

import mercer
from mercer import DiffusionMaps, Gaussian, GramOperator, QuadratureSparsifier
from mercer.backends import config_context

RESULTS = Path(__file__).parent / "results" / "dask_scaling.md"
FEATURES, COLUMNS, SIGMA = 10, 10, 4.0
MACHINES, CORES, POINTS, NETWORK = 64, 16, 10**8, 1.25e9  # the cluster that is computed: bytes a second of a machine
TASKS_A_THREAD = 6  # of mercer.backends.dask.cluster


@contextmanager
def cluster_of(workers: int) -> Iterator[Any]:
    """A client of so many processes of one thread on this machine."""
    from distributed import Client, LocalCluster

    options = {"n_workers": workers, "threads_per_worker": 1, "processes": True, "dashboard_address": ":0"}
    with LocalCluster(**options) as cluster, Client(cluster) as client:
        yield client


def points(n: int) -> Any:
    return np.random.default_rng(0).standard_normal((n, FEATURES))


def seconds(job: Callable[[], Any], rounds: int) -> float:
    """The median time of a job that has been done once."""
    taken = []
    for _ in range(rounds):
        began = time.perf_counter()
        job()
        taken.append(time.perf_counter() - began)
    return median(taken)


def between_workers(client: Any) -> int:
    """Bytes that workers have fetched from each other."""
    return sum(client.run(lambda dask_worker: dask_worker.transfer_incoming_bytes_total).values())


def product(n: int, client: Any | None, rounds: int) -> tuple[float, dict[str, float]]:
    """Seconds of K v, and the bytes that it moves; without a client on one thread of this process."""
    X, v = points(n), np.random.default_rng(1).standard_normal((n, COLUMNS))
    with config_context(n_threads=1) if client is None else config_context(client=client) as config:
        gram = GramOperator(Gaussian(SIGMA), X)
        gram @ v
        if client is None:
            return seconds(lambda: gram @ v, rounds), {}
        before, fetched = config.cluster.traffic, between_workers(client)
        taken = seconds(lambda: gram @ v, rounds)
        moved = config.cluster.traffic - before
        return taken, {
            "points": config.cluster.traffic.points,
            "sent": moved.sent / rounds,
            "received": moved.received / rounds,
            "between": (between_workers(client) - fetched) / rounds,
        }


def scaling(n: int, rounds: int, sizes: dict[str, int]) -> list[str]:
    """Strong and weak scaling, in one table."""
    lines = [
        "| points | workers | seconds a product | one thread here, seconds | ratio | sent, MB | received, MB | between workers, MB |",
        "|" + " --- |" * 8,
    ]  # fmt: skip
    for label, size, workers in (("strong", n, 1), ("strong", n, 2), ("weak", sizes["weak"], 2)):
        with cluster_of(workers) as client:
            taken, moved = product(size, client, rounds)
            here, _ = product(size, None, rounds)
        cells = [
            f"{size} ({label})", str(workers), f"{taken:.2f}", f"{here:.2f}", f"{here / taken:.2f}",
            *(f"{moved[name] / 1e6:.2f}" for name in ("sent", "received", "between")),
        ]  # fmt: skip
        lines.append("| " + " | ".join(cells) + " |")
        print(lines[-1], flush=True)
    return lines


def fits(n: int) -> list[str]:
    """Whole fits, once each."""
    X = points(n)
    jobs = {
        f"DiffusionMaps, {n} points": lambda: DiffusionMaps(Gaussian(SIGMA)).fit(X),
        f"QuadratureSparsifier(n_nodes=100), {n} points": lambda: QuadratureSparsifier(
            Gaussian(SIGMA), n_nodes=100
        ).fit(X),
    }
    lines = ["| fit | one thread here, seconds | two workers, seconds | ratio |", "|" + " --- |" * 4]
    for name, job in jobs.items():
        with cluster_of(2) as client:
            with config_context(client=client):
                GramOperator(Gaussian(SIGMA), X) @ X[:, :1]  # loads what is compiled
                there = seconds(job, 1)
            with config_context(n_threads=1):
                here = seconds(job, 1)
        lines.append(f"| {name} | {here:.1f} | {there:.1f} | {here / there:.2f} |")
        print(lines[-1], flush=True)
    return lines


def small_tasks(client: Any, count: int = 300) -> float:
    """Seconds that a task costs beside its work."""
    with config_context(client=client) as config:
        config.cluster.gather(config.cluster.apply(abs, range(count)))
        return seconds(lambda: config.cluster.gather(config.cluster.apply(abs, range(count))), 3) / count


def extrapolated(rate: float, overhead: float) -> list[str]:
    """What 10^8 points would take on 64 machines of 16 cores, from a rate a thread and what a task costs."""
    n, r, threads = POINTS, COLUMNS, MACHINES * CORES
    groups = min(256, math.ceil(math.sqrt(2 * TASKS_A_THREAD * threads)))
    tasks = groups * (groups + 1) // 2
    vector, data = 8.0 * n * r, 8.0 * n * FEATURES
    entries = n * (n + 1) / 2
    grid = math.sqrt(2 * MACHINES)  # a machine needs the groups of its share of the triangle
    rows = [
        ("Entries of the upper triangle", f"{entries:.2g}"),
        ("Groups of rows, and pairs of them", f"{groups} and {tasks}"),
        ("Seconds a pair on one thread", f"{entries / tasks / rate:.0f}"),
        ("Seconds a product of 10 columns, all threads", f"{entries / rate / threads:.0f}"),
        ("Of these for Dask's own work", f"{tasks * overhead:.0f}"),
        ("Points, sent once", f"{data / 1e9:.0f} GB, {data / NETWORK:.0f} s"),
        ("Points a machine holds in the end, at least", f"{data * 2 / grid / 1e9:.1f} GB"),
        ("Columns sent and received a product", f"{vector / 1e9:.0f} GB each, {2 * vector / NETWORK:.0f} s"),
        (
            "Between machines a product",
            f"{(groups + 1) * vector / 1e9:.0f} GB, {(groups + 1) * vector / MACHINES / NETWORK:.0f} s side by side",
        ),
        ("One block of columns here", f"{vector / 1e9:.0f} GB; a factor of rank 300 {2400.0 * n / 1e9:.0f} GB"),
    ]
    return ["| quantity | value |", "| --- | --- |", *(f"| {name} | {value} |" for name, value in rows)]


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--quick", action="store_true")
    quick = parser.parse_args().quick
    n, rounds = (8_000, 3) if quick else (20_000, 5)
    weak = int(n * math.sqrt(2))
    table = scaling(n, rounds, {"weak": weak})
    whole = fits(n)
    with cluster_of(2) as client:
        overhead = small_tasks(client)
    here, _ = product(n, None, rounds)
    rate = n * (n + 1) / 2 / here
    text = [
        "# Products on a Dask cluster",
        "",
        f"One run of `benchmarks/dask_scaling.py{' --quick' * quick}`: Gaussian kernel, float64, {FEATURES} features, {COLUMNS} columns. "
        f"{platform.machine()}, {os.cpu_count()} cores that two workers, their scheduler and this process share, other jobs beside; NumPy {np.__version__}, Mercer {mercer.__version__}. "
        "Ratios are of times taken one after the other; absolute times are those of a busy machine.",
        "",
        "## Strong and weak scaling",
        "",
        "The ratio is to one thread of this process at the same number of points. Points are sent once and are not in these bytes.",
        "",
        *table,
        "",
        "## Whole fits",
        "",
        *whole,
        "",
        f"## {POINTS:.0e} points on {MACHINES} machines of {CORES} cores, computed",
        "",
        f"From the rate of one thread here ({rate / 1e9:.3f} billion entries a second), {overhead * 1e3:.1f} ms of Dask a task, and machines of "
        f"{NETWORK * 8 / 1e9:.0f} Gbit a second. Nothing of this was run.",
        "",
        *extrapolated(rate, overhead),
        "",
        "What breaks first is this process: blocks of columns come here after every product, and a low-rank factor of all rows "
        "does not fit one machine. Before that the time of a product forbids more than a few of them: at this size, fit to landmarks and "
        "let `transform` run row by row over the Dask array, which moves nothing but the landmarks.",
        "",
    ]  # fmt: skip
    RESULTS.write_text("\n".join(text))
    print(RESULTS.read_text())


if __name__ == "__main__":
    main()
