"""Products on a Dask cluster of one and two workers of one thread, beside this process, and larger ones computed.

    python benchmarks/dask_scaling.py            # ten minutes on two free cores
    python benchmarks/dask_scaling.py --quick    # two minutes

Writes benchmarks/results/dask_scaling.md. Strong scaling: the same points on more workers. Weak scaling: as many pairs
of points for each worker. All of a round runs one after the other, so that a busy machine is as busy for each.
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
from typing import Any, NamedTuple

import numpy as np

import mercer
from mercer import DiffusionMaps, Gaussian, GramOperator, QuadratureSparsifier
from mercer.backends import config_context

RESULTS = Path(__file__).parent / "results" / "dask_scaling.md"
FEATURES, COLUMNS, SIGMA = 10, 10, 4.0
MACHINES, CORES, POINTS, NETWORK = 64, 16, 10**8, 1.25e9  # the cluster that is computed: bytes a second of a machine
TASKS_A_THREAD = 6  # of mercer.backends.dask.cluster


PAGE = """\
# Products on a Dask cluster

One run of `benchmarks/dask_scaling.py{call}`: Gaussian kernel, float64, {features} features, {columns} columns.
{machine}, {cores} cores that two workers, their scheduler and this process share: the clock says little, and seconds
are those of the processor. NumPy {numpy}, Mercer {version}.

## Strong and weak scaling

What one thread of this process takes, beside what the busiest worker and this process take; the ratio is of the first
two, and is the number of workers where nothing is lost. The clock is in the last column but three, that of one thread
here in brackets. Points are sent once and are not in these bytes.

{table}

Two workers of this machine share one memory and one cache, and the smaller pairs of groups cost each of them more an
entry.

## Whole fits

{whole}

## A hundred million points on {machines} machines of {each} cores, computed

From the rate of one thread here ({rate:.3f} billion entries a second), {overhead:.1f} ms of Dask a task, and machines
of {network:.0f} Gbit a second. Nothing of this was run.

{computed}

What breaks first is time: a fit takes some tens of such products, and with a machine that is lost go the pairs that
its threads had in hand. Then it is the memory of this process: blocks of columns come here after every product, and a
low-rank factor of all rows, which is made here, does not fit one machine. Then it is the scheduler, through which
points and columns go and which keeps them. At this size, fit to landmarks and let `transform` run row by row over the
Dask array, which moves nothing but the landmarks.
"""


@contextmanager
def cluster_of(workers: int) -> Iterator[Any]:
    """A client of so many processes of one thread on this machine."""
    from distributed import Client, LocalCluster

    options = {"n_workers": workers, "threads_per_worker": 1, "processes": True, "dashboard_address": ":0"}
    with LocalCluster(**options) as cluster, Client(cluster) as client:
        yield client


def points(n: int) -> Any:
    return np.random.default_rng(0).standard_normal((n, FEATURES))


class Spent(NamedTuple):
    """Medians over rounds: time on the clock, and the processor time of this process and of the busiest worker."""

    clock: float
    here: float
    worker: float


def spent(job: Callable[[], Any], rounds: int, client: Any | None) -> Spent:
    """What a job takes that has been done once."""
    taken = []
    for _ in range(rounds):
        busy = {} if client is None else client.run(time.process_time)
        clock, here = time.perf_counter(), time.process_time()
        job()
        clock, here = time.perf_counter() - clock, time.process_time() - here
        after = {} if client is None else client.run(time.process_time)
        taken.append((clock, here, max((after[each] - busy[each] for each in busy), default=0.0)))
    return Spent(*(median(each) for each in zip(*taken, strict=True)))


def given_away(client: Any) -> int:
    """Bytes that workers have sent to each other and to this process."""
    return sum(client.run(lambda dask_worker: dask_worker.transfer_outgoing_bytes_total).values())


def product(n: int, client: Any | None, rounds: int) -> tuple[Spent, dict[str, float]]:
    """What K v takes, and the bytes that it moves; without a client on one thread of this process."""
    X, v = points(n), np.random.default_rng(1).standard_normal((n, COLUMNS))
    with config_context(n_threads=1) if client is None else config_context(client=client) as config:
        gram = GramOperator(Gaussian(SIGMA), X)
        gram @ v
        if client is None:
            return spent(lambda: gram @ v, rounds, None), {}
        before, given = config.cluster.traffic, given_away(client)
        taken = spent(lambda: gram @ v, rounds, client)
        moved = config.cluster.traffic - before
        return taken, {
            "sent": moved.sent / rounds,
            "received": moved.received / rounds,
            "between": (given_away(client) - given - moved.received) / rounds,
        }


def scaling(n: int, rounds: int, weak: int) -> list[str]:
    """Strong and weak scaling, in one table."""
    lines = [
        "| points | workers | one thread here | busiest worker | this process | ratio | clock | sent, MB "
        "| received, MB | between workers, MB |",
        "|" + " --- |" * 10,
    ]
    for label, size, workers in (("strong", n, 1), ("strong", n, 2), ("weak", weak, 2)):
        with cluster_of(workers) as client:
            there, moved = product(size, client, rounds)
            here, _ = product(size, None, rounds)
        cells = [
            f"{size} ({label})", str(workers), f"{here.here:.2f}", f"{there.worker:.2f}", f"{there.here:.2f}",
            f"{here.here / there.worker:.2f}", f"{there.clock:.2f} ({here.clock:.2f})",
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
        f"QuadratureSparsifier(n_nodes=100) and its proof, {n} points": lambda: (
            QuadratureSparsifier(Gaussian(SIGMA), n_nodes=100).fit(X).certificate_
        ),
    }
    lines = ["| fit | one thread here | busiest of two workers | this process | clock |", "|" + " --- |" * 5]
    for name, job in jobs.items():
        with cluster_of(2) as client:
            with config_context(client=client, n_threads=1):
                GramOperator(Gaussian(SIGMA), X) @ X[:, :1]  # loads what is compiled
                there = spent(job, 1, client)
            with config_context(n_threads=1):
                here = spent(job, 1, None)
        clock = f"{there.clock:.1f} ({here.clock:.1f})"
        lines.append(f"| {name} | {here.here:.1f} | {there.worker:.1f} | {there.here:.1f} | {clock} |")
        print(lines[-1], flush=True)
    return lines


def small_tasks(client: Any, count: int = 300) -> float:
    """Processor seconds that a task costs this process beside its work; the scheduler's share runs in it too."""
    with config_context(client=client) as config:
        config.cluster.gather(config.cluster.apply(abs, range(count)))
        return spent(lambda: config.cluster.gather(config.cluster.apply(abs, range(count))), 3, None).here / count


def extrapolated(rate: float, overhead: float) -> list[str]:
    """What 10^8 points would take on 64 machines of 16 cores, from a rate a thread and what a task costs."""
    n, r, threads = POINTS, COLUMNS, MACHINES * CORES
    groups = min(256, math.ceil(math.sqrt(2 * TASKS_A_THREAD * threads)))
    tasks = groups * (groups + 1) // 2
    vector, data = 8.0 * n * r, 8.0 * n * FEATURES
    entries, root = n * (n + 1) / 2, math.sqrt(MACHINES)
    partial, spread = (groups + 1) * vector, 2 * root * vector  # products of pairs, and columns for them
    rows = [
        ("Entries of the upper triangle", f"{entries:.2g}"),
        ("Groups of rows, and pairs of them", f"{groups} and {tasks}"),
        ("Seconds a pair on one thread", f"{entries / tasks / rate:.0f}"),
        ("Seconds a product of 10 columns, all threads", f"{entries / rate / threads:.0f}"),
        ("Dask's own work beside it, seconds", f"{tasks * overhead:.0f}"),
        ("Points, sent once", f"{data / 1e9:.0f} GB, {data / NETWORK:.0f} s"),
        ("Points that a machine holds, at least", f"{data * 2 / root / 1e9:.1f} GB"),
        ("Columns sent and received a product", f"{vector / 1e9:.0f} GB each, {2 * vector / NETWORK:.0f} s"),
        ("Points and columns that the scheduler holds", f"{(data + vector) / 1e9:.0f} GB"),
        (
            "Between machines a product",
            f"{(partial + spread) / 1e9:.0f} GB, {(partial + spread) / MACHINES / NETWORK:.0f} s side by side",
        ),
        ("Products of pairs that a machine holds, at most", f"{partial / MACHINES / 1e9:.0f} GB"),
        ("One block of columns here", f"{vector / 1e9:.0f} GB; a factor of rank 300 {2400.0 * n / 1e9:.0f} GB"),
    ]
    return ["| quantity | value |", "| --- | --- |", *(f"| {name} | {value} |" for name, value in rows)]


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--quick", action="store_true")
    quick = parser.parse_args().quick
    n, rounds = (16_000, 3) if quick else (40_000, 5)
    weak = int(n * math.sqrt(2))
    table = scaling(n, rounds, weak)
    whole = fits(16_000)
    with cluster_of(2) as client:
        overhead = small_tasks(client)
    here, _ = product(n, None, rounds)
    rate = n * (n + 1) / 2 / here.here
    text = PAGE.format(
        call=" --quick" * quick, features=FEATURES, columns=COLUMNS, machine=platform.machine(), cores=os.cpu_count(),
        numpy=np.__version__, version=mercer.__version__, table="\n".join(table), whole="\n".join(whole),
        rate=rate / 1e9, overhead=overhead * 1e3, network=NETWORK * 8 / 1e9, machines=MACHINES, each=CORES,
        computed="\n".join(extrapolated(rate, overhead)),
    )  # fmt: skip
    RESULTS.write_text(text)
    print(RESULTS.read_text())


if __name__ == "__main__":
    main()
