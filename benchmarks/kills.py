"""Kill every long fit at random moments by SIGKILL, take it up, and compare the bits of the answer.

    python benchmarks/kills.py --kills 20 --out benchmarks/results/kills.md

Each attempt is a process of its own that is killed after a random part of the time that the whole run takes; the next
goes on from the journal. When a run is finished its digest is compared with that of a run that nobody killed, and the
next run begins with a new journal, until there were so many kills. Processes are forked from one that imported Mercer.
"""

from __future__ import annotations

import argparse
import dataclasses
import hashlib
import os
import signal
import sys
import tempfile
import time
import warnings
from pathlib import Path

import numpy as np
import threadpoolctl

import mercer
from mercer import Gaussian
from mercer.journal import JournalWarning

EVERY = 0.02  # seconds between two writings


def runs():
    """By name: what is run, and on what."""
    rng = np.random.default_rng(0)
    X, small = rng.normal(size=(3000, 3)), rng.normal(size=(160, 3))
    X[:1000] += 3
    curve = np.c_[np.cos(3 * small[:, 0]), small[:, 1:]]
    Y = rng.normal(size=(4000, 3)) + 0.03
    target = X[:, 0] + np.sin(X[:, 1])
    return {
        "SDPEmbedding()": lambda: mercer.SDPEmbedding(random_state=0).fit(X),
        "SDPEmbedding(Gaussian())": lambda: mercer.SDPEmbedding(Gaussian(), random_state=0).fit(X),
        "SDPEmbedding(solver='trust-region')": lambda: mercer.SDPEmbedding(
            Gaussian(), solver="trust-region", random_state=0
        ).fit(X[:1500]),
        "SDPEmbedding(solver='interior-point')": lambda: mercer.SDPEmbedding(
            Gaussian(), solver="interior-point", random_state=0
        ).fit(X[:400]),
        "QuadratureSparsifier(n_nodes=200)": lambda: mercer.QuadratureSparsifier(n_nodes=200).fit(X),
        "QuadratureSparsifier(trace_fraction=0.9)": lambda: mercer.QuadratureSparsifier(trace_fraction=0.9).fit(X),
        "QuadratureSparsifier(solver='path')": lambda: mercer.QuadratureSparsifier(
            trace_fraction=0.8, solver="path"
        ).fit(X),
        "QuadratureSparsifier(solver='exchange')": lambda: mercer.QuadratureSparsifier(
            trace_fraction=0.9, solver="exchange"
        ).fit(X),
        "SumOfSquaresDensity(support=150)": lambda: mercer.SumOfSquaresDensity(
            Gaussian(), support=150, random_state=0
        ).fit(X),
        "SumOfSquaresDensity(objective='likelihood')": lambda: mercer.SumOfSquaresDensity(
            Gaussian(0.8), support=100, objective="likelihood", random_state=0
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
            X[:1500], target[:1500]
        ),
        "mmd_test": lambda: mercer.mmd_test(X, Y, rng=0),
        "hsic_test": lambda: mercer.hsic_test(X[:1500], Y[:1500], rng=0),
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


def attempt(run, place: Path | None, seconds: float | None) -> tuple[str | None, float]:
    """One process, killed after some seconds if it is not done before: the digest of what it said, and its seconds."""
    inlet, outlet = os.pipe()
    began = time.monotonic()
    child = os.fork()
    if child == 0:
        os.close(inlet)
        warnings.simplefilter("ignore")
        warnings.simplefilter("error", JournalWarning)
        options = {} if place is None else {"checkpoint": place, "checkpoint_every": EVERY}
        try:
            with mercer.config_context(n_threads=1, memory_limit="500MB", **options):
                said = digest(run())
        except BaseException as error:
            said = f"{type(error).__name__}: {error}"
        os.write(outlet, said.encode()[:4000])
        os._exit(0)
    os.close(outlet)
    killer = time.monotonic() + (1e9 if seconds is None else seconds)
    while os.waitpid(child, os.WNOHANG)[0] == 0:
        if time.monotonic() >= killer:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
            break
        time.sleep(0.001)
    with os.fdopen(inlet) as pipe:
        return pipe.read() or None, time.monotonic() - began


def tortured(name: str, run, kills: int, rng: np.random.Generator) -> str:
    """A row of the table."""
    attempt(run, None, None)  # compiles
    whole, seconds = attempt(run, None, None)
    made = finished = equal = writing = longest = 0
    while made < kills or finished == 0:
        with tempfile.TemporaryDirectory() as folder:
            place, said, in_a_row = Path(folder) / "run.journal", None, 0
            while said is None:
                more = made < kills
                said, _ = attempt(run, place, rng.uniform(0.1, 0.7) * seconds if more else None)
                writing += bool(list(Path(folder).glob(".*.part")))
                made, in_a_row = made + (said is None), in_a_row + (said is None)
                longest = max(longest, in_a_row)
                size = place.stat().st_size if place.exists() else 0
            finished, equal = finished + 1, equal + (said == whole)
            if said != whole:
                print(name, said, whole, file=sys.stderr)
    print(name, made, finished, equal, file=sys.stderr, flush=True)
    return f"| `{name}` | {seconds:.1f} | {made} | {writing} | {longest} | {finished} | {equal} | {size / 1e6:.2f} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--only", default="")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    rng = np.random.default_rng(1)
    threadpoolctl.threadpool_limits(1)  # a fork copies no threads
    rows = [tortured(name, run, options.kills, rng) for name, run in runs().items() if options.only in name]
    table = "\n".join([HEAD.format(version=mercer.__version__, every=EVERY), *rows, ""])
    print(table)
    if options.out is not None:
        options.out.write_text(table)


HEAD = """# Kills

Every fit is killed by SIGKILL at random moments and taken up from its journal, which is written as often as every
{every} s here. "In a write" are kills that left a half-written file behind; "in a row" is the longest chain of kills of
one run; "equal" are the finished runs whose numbers, all of them but seconds, have the same bits as those of a run that
nobody killed. The size is that of the journal at the end, in MB. Mercer {version}, one thread, memory_limit 500 MB,
two cores with other jobs beside. Made by `python benchmarks/kills.py --kills 20`.

| run | seconds | kills | in a write | in a row | finished | equal | MB |
| --- | --- | --- | --- | --- | --- | --- | --- |"""


if __name__ == "__main__":
    main()
