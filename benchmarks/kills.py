"""Kill every long fit at random moments by SIGKILL, take it up, and compare the bits of the answer.

    python benchmarks/kills.py            # on this machine alone
    python benchmarks/kills.py --dask     # as a client of a Dask cluster of two workers

Either call writes its table to benchmarks/results/kills.md and leaves the other one there. Each attempt is a process of
its own that is killed after a random part of the time that the whole run takes; the next goes on from the journal. When
a run is finished its digest is compared with that of a run that nobody killed, and the next run begins with a new
journal, until there were so many kills. Processes are forked from one that imported Mercer. The cluster is no child of
theirs: the scheduler and its workers outlive every client, and the next client connects to them again.
"""

from __future__ import annotations

import argparse
import dataclasses
import hashlib
import os
import signal
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any

import numpy as np
import threadpoolctl

import mercer
from mercer import Gaussian
from mercer.journal import JournalWarning

EVERY = 0.02  # seconds between two writings
RESULTS = Path(__file__).parent / "results" / "kills.md"
BEGUN = b"."  # what a process says when its fit begins


def runs():
    """By name: what is run, and on what."""
    rng = np.random.default_rng(0)
    X, small = rng.normal(size=(500, 3)), rng.normal(size=(80, 3))
    X[:150] += 3
    curve = np.c_[np.cos(3 * small[:, 0]), small[:, 1:]]
    Y = rng.normal(size=(900, 3)) + 0.03
    target = X[:, 0] + np.sin(X[:, 1])
    return {
        "SDPEmbedding()": lambda: mercer.SDPEmbedding(random_state=0).fit(X),
        "SDPEmbedding(Gaussian())": lambda: mercer.SDPEmbedding(Gaussian(), random_state=0).fit(X),
        "SDPEmbedding(solver='trust-region')": lambda: mercer.SDPEmbedding(
            Gaussian(), solver="trust-region", random_state=0
        ).fit(X),
        "SDPEmbedding(solver='interior-point')": lambda: mercer.SDPEmbedding(
            Gaussian(), solver="interior-point", random_state=0
        ).fit(X[:200]),
        "QuadratureSparsifier(n_nodes=60)": lambda: mercer.QuadratureSparsifier(n_nodes=60).fit(X),
        "QuadratureSparsifier(trace_fraction=0.9)": lambda: mercer.QuadratureSparsifier(trace_fraction=0.9).fit(X),
        "QuadratureSparsifier(solver='path')": lambda: mercer.QuadratureSparsifier(
            trace_fraction=0.8, solver="path"
        ).fit(X),
        "QuadratureSparsifier(solver='exchange')": lambda: mercer.QuadratureSparsifier(
            trace_fraction=0.9, solver="exchange"
        ).fit(X),
        "SumOfSquaresDensity(support=60)": lambda: mercer.SumOfSquaresDensity(
            Gaussian(), support=60, random_state=0
        ).fit(X),
        "SumOfSquaresDensity(objective='likelihood')": lambda: mercer.SumOfSquaresDensity(
            Gaussian(0.8), support=40, objective="likelihood", random_state=0
        ).fit(X),
        "MaximumVarianceUnfolding()": lambda: mercer.MaximumVarianceUnfolding(n_neighbors=6).fit(curve),
        "KernelizedSDPEmbedding()": lambda: mercer.KernelizedSDPEmbedding(nugget=1e-7, random_state=0).fit(small),
        "RobustKernelRegressor()": lambda: mercer.RobustKernelRegressor(loss="huber", radius=0.05).fit(
            small, curve[:, 0]
        ),
        "RobustKernelRidge()": lambda: mercer.RobustKernelRidge(support=20, radius=0.05, random_state=0).fit(
            small, curve[:, 0]
        ),
        "KernelDimensionReduction()": lambda: mercer.KernelDimensionReduction(n_components=1, random_state=0).fit(
            X, target
        ),
        "mmd_test": lambda: mercer.mmd_test(X, Y, rng=0),
        "hsic_test": lambda: mercer.hsic_test(X, Y[:500], rng=0),
    }


def digest(value, whole=None):
    """The bits of all numbers of a model or a result, seconds left out."""
    top, whole = whole is None, hashlib.sha256() if whole is None else whole
    if isinstance(value, np.ndarray):
        whole.update(f"{value.dtype}{value.shape}".encode() + np.ascontiguousarray(value).tobytes())
    elif isinstance(value, (tuple, list)):
        for each in value:
            digest(each, whole)
    elif dataclasses.is_dataclass(value) or top:
        for name, each in sorted(vars(value).items()):
            if name not in ("seconds", "phases_") and (
                not top or name.endswith("_") or dataclasses.is_dataclass(value)
            ):
                whole.update(name.encode())
                digest(each, whole)
    elif isinstance(value, (int, float, str, type(None))):
        whole.update(repr(value).encode())
    return whole.hexdigest()


@contextmanager
def cluster_elsewhere() -> Iterator[str]:
    """The address of a scheduler with two workers of one thread, in processes that no client is the parent of."""
    command = [sys.executable, __file__, "--serve"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as server:
        yield server.stdout.readline().strip()
        server.communicate()


def serve() -> None:
    """Be the cluster until the standard input ends."""
    from distributed import LocalCluster

    with LocalCluster(n_workers=2, threads_per_worker=1, processes=True, dashboard_address=":0") as cluster:
        print(cluster.scheduler_address, flush=True)
        sys.stdin.read()


def client_of(address: str) -> Any:
    """A client to whose cluster everything goes whatever its size, in groups of a hundred rows or so."""
    from distributed import Client

    from mercer.backends.dask import cluster, matrix
    from mercer.kernels import neighbours

    matrix.LEAST_ENTRIES = neighbours._LEAST_SHARED = 1
    cluster._FEWEST_ROWS = 16
    return Client(address)


def said_by(run, options: dict[str, Any], address: str | None, outlet: int) -> str:
    """The digest of what a run answers, and what of it went through the cluster; or the error."""
    warnings.simplefilter("ignore")
    warnings.simplefilter("error", JournalWarning)
    try:
        if address is not None:
            options["client"] = client_of(address)
        with mercer.config_context(n_threads=1, memory_limit="500MB", **options) as config:
            os.write(outlet, BEGUN)
            answer = digest(run())
            return f"{answer} {'' if config.cluster is None else through(config.cluster.traffic)}"
    except BaseException as error:
        return f"{type(error).__name__}: {error}"


def through(traffic: Any) -> str:
    """Products of kernel matrices on the cluster, and MB of everything that went there and came back."""
    return f"{traffic.products} | {(traffic.points + traffic.sent + traffic.received) / 1e6:.2f}"


def attempt(run, place: Path | None, seconds: float | None, address: str | None) -> tuple[str | None, float]:
    """One process, killed so many seconds after its fit began if it is not done: what it said, and its seconds."""
    inlet, outlet = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(inlet)
        options = {} if place is None else {"checkpoint": place, "checkpoint_every": EVERY}
        os.write(outlet, said_by(run, options, address, outlet).encode()[:4000])
        os._exit(0)
    os.close(outlet)
    first, began = os.read(inlet, 1), time.monotonic()
    killer = began + (1e9 if seconds is None else seconds)
    while os.waitpid(child, os.WNOHANG)[0] == 0:
        if time.monotonic() >= killer:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
            break
        time.sleep(0.001)
    with os.fdopen(inlet, "rb") as pipe:
        return (first + pipe.read()).removeprefix(BEGUN).decode() or None, time.monotonic() - began


def tortured(name: str, run, kills: int, rng: np.random.Generator, address: str | None) -> str:
    """A row of the table."""
    attempt(run, None, None, address)  # compiles
    whole, seconds = attempt(run, None, None, address)
    expected, moved = whole.split(" ", 1)
    if len(expected) != 64:
        raise RuntimeError(f"{name} fails before anything is killed: {whole}")
    made = finished = equal = writing = longest = 0
    while made < kills or finished == 0:
        with tempfile.TemporaryDirectory() as folder:
            place, said, in_a_row = Path(folder) / "run.journal", None, 0
            while said is None:
                more = made < kills
                said, _ = attempt(run, place, rng.uniform(0.1, 0.7) * seconds if more else None, address)
                writing += bool(list(Path(folder).glob(".*.part")))
                made, in_a_row = made + (said is None), in_a_row + (said is None)
                longest = max(longest, in_a_row)
                size = place.stat().st_size if place.exists() else 0
            same = said.split(" ", 1)[0] == expected
            finished, equal = finished + 1, equal + same
            if not same:
                print(name, said, whole, file=sys.stderr)
    cells = [f"`{name}`", f"{seconds:.1f}", made, writing, longest, finished, equal, f"{size / 1e6:.2f}"]
    cells += [moved] if moved else []
    return "| " + " | ".join(map(str, cells)) + " |"


def rows(options: argparse.Namespace, address: str | None) -> Iterator[str]:
    """A row for every run that is asked for."""
    rng = np.random.default_rng(1)
    for name, run in runs().items():
        if any(part in name for part in options.only):
            yield tortured(name, run, options.kills, rng, address)


def write(title: str, table: list[str]) -> None:
    """Put a table in the page, whose other table stays."""
    old = RESULTS.read_text(encoding="utf-8") if RESULTS.exists() else ""
    tables = {part.partition("\n")[0]: part.partition("\n")[2].strip() for part in old.split("\n## ")[1:]}
    tables[title] = "\n".join(table)
    head = HEAD.format(version=mercer.__version__, every=EVERY)
    parts = [f"## {name}\n\n{tables[name]}\n" for name in (HERE, THERE) if name in tables]
    RESULTS.write_text("\n".join([head, *parts]), encoding="utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--only", nargs="*", default=[""])
    parser.add_argument("--dask", action="store_true")
    parser.add_argument("--shown", action="store_true", help="print the rows and leave the page as it is")
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.serve:
        serve()
        return
    threadpoolctl.threadpool_limits(1)  # a fork copies no threads
    names = COLUMNS + MOVED if options.dask else COLUMNS
    table = ["| " + " | ".join(names) + " |", "|" + " --- |" * len(names)]
    with cluster_elsewhere() if options.dask else nullcontext() as address:
        for row in rows(options, address):
            table.append(row)
            print(row, flush=True)
            if not options.shown:
                write(THERE if options.dask else HERE, table)


HERE, THERE = "On one machine", "Through Dask"
COLUMNS = ("run", "seconds", "kills", "in a write", "in a row", "finished", "equal", "MB")
MOVED = ("products", "MB moved")
HEAD = """\
# Kills

Every fit is killed by SIGKILL and taken up from its journal, which is written as often as every {every} s here. A
process is killed after a random part, between a tenth and seven tenths, of the time that the whole run takes; the next
goes on from the journal, and when there were enough kills the last run is left alone. "In a write" are kills that left
a half-written file behind; "in a row" is the longest chain of kills of one run; "equal" are the finished runs whose
numbers, all of them but seconds, have the same bits as those of a run that nobody killed. The size is that of the
journal at the end, in MB.

Runs are of 80 to 1400 rows and take seconds, so that there can be many kills; what takes hours goes through the same
code and has more steps. Seconds are those of two cores with other jobs beside, and say how long a run was and no more.
Mercer {version}, one thread, memory_limit 500 MB. Made by `benchmarks/kills.py` and `benchmarks/kills.py --dask`.

Through Dask the process that is killed is the client: the scheduler and two workers of one thread outlive it, and the
next process connects to them. Everything that can go to the workers does, whatever its size, in groups of a hundred
rows or so; "products" are those of kernel matrices there, and what is moved is counted for one run. A run without
products has its search for neighbours there, and the rest of it in the client. Workers that are killed are another
matter: `tests/cluster/test_cluster_kills.py` does that, amid every phase.
"""


if __name__ == "__main__":
    main()
