"""What a test costs, in seconds and memory, as samples grow; and how many times as long hyppo takes.

    python benchmarks/testing_speed.py                       # n = 500, 1 000, 2 000: a minute
    python benchmarks/testing_speed.py --sizes 1000 3000 10000 30000 100000 --minutes 8 --scores speed.json
    python benchmarks/testing_speed.py --from speed.json     # the page of those scores

Writes benchmarks/results/testing_speed.md: normal samples in ten dimensions, 999 resamples. Every statistic and
size has a process of its own, in which hyppo (one worker, 1 000 permutations) takes its turn on the same arrays. The
time of hyppo is 1 001 times that of one call of its statistic on kernel matrices at hand, as its test makes it for each
permutation: making and reordering the matrices would come on top. It is left out where its matrices would take more
than a third of the memory of the machine. Memory is the resident size above that at the start of a call, sampled every
millisecond. A test is left out once a smaller size took a tenth of the minutes that are given.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from peak_memory import PeakMemory
from result_page import exponent
from testing_runner import store, stored

import mercer
from mercer import Gaussian

RESULT = Path(__file__).parent / "results" / "testing_speed.md"
QUICK_SIZES = (500, 1_000, 2_000)
FEATURES, RESAMPLES, REPS = 10, 999, 1000
MATRICES = 8  # of the size of the pooled sample, that hyppo holds at once
STAND_INS = (
    "pandas",
    "patsy",
    *("future", "future.utils", "past", "past.utils"),
    *("autograd", "autograd.numpy", "autograd.scipy", "autograd.scipy.stats"),
    *("statsmodels", "statsmodels.discrete", "statsmodels.discrete.discrete_model"),
)
Array = np.ndarray[Any, Any]

OURS: dict[str, tuple[str, dict[str, Any]]] = {
    "mmd_test, one kernel": ("mmd_test", {"kernel": Gaussian("median")}),
    "mmd_test": ("mmd_test", {}),
    "mmd_test, linear": ("mmd_test", {"kernel": Gaussian("median"), "estimator": "linear"}),
    "mmd_test, landmarks": ("mmd_test", {"compress": "landmarks"}),
    "mmd_test, thinning": ("mmd_test", {"compress": "thinning"}),
    "hsic_test, one kernel each": ("hsic_test", {"x_kernel": Gaussian("median"), "y_kernel": Gaussian("median")}),
    "hsic_test": ("hsic_test", {}),
    "hsic_test, landmarks": ("hsic_test", {"compress": "landmarks"}),
}
PEERS = {"mmd_test": "MMD", "hsic_test": "Hsic"}
LARGEST_WHOLE = 30_000  # rows beyond which tests over all pairs are not tried


def samples(group: str, n: int) -> tuple[Array, Array]:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, FEATURES))
    if group == "mmd_test":
        return X, 1.02 * rng.standard_normal((n, FEATURES))
    return X, rng.standard_normal((n, FEATURES)) + 0.05 * X


def ours(name: str) -> Callable[[Array, Array], Any]:
    function, options = OURS[name]
    return lambda X, Y: getattr(mercer, function)(X, Y, n_resamples=RESAMPLES, rng=0, **options)


def measured(call: Callable[[], Any]) -> tuple[Any, float, float]:
    """What a call gives, its seconds and its megabytes."""
    with PeakMemory() as memory:
        began = time.perf_counter()
        out = call()
        seconds = time.perf_counter() - began
    return out, seconds, memory.peak / 1e6


def hyppo_parts() -> tuple[Any, Any]:
    """hyppo's Hsic, of which its MMD is made, and its kernels.

    Its other rooms import packages that take no part here; where they are missing, stand-ins do.
    """
    from unittest.mock import MagicMock

    for name in STAND_INS:
        try:
            __import__(name)
        except ImportError:
            frames = {kind: type(kind, (), {}) for kind in ("DataFrame", "Series", "Categorical")}  # asked for by type
            sys.modules[name] = MagicMock(__path__=[], __spec__=None, __name__=name, **frames)
    from hyppo.independence import Hsic
    from hyppo.tools import compute_kern

    return Hsic, compute_kern


def hyppo_seconds(peer: str, X: Array, Y: Array) -> float | None:
    """1 000 permutations by hyppo, from one; None where it is not installed or has no room.

    A permutation of its test is one call of its statistic on matrices at hand; reordering them comes on top.
    """
    rows = len(X) + (len(Y) if peer == "MMD" else 0)
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    if MATRICES * 8 * rows**2 > memory / 3:
        return None
    try:
        hsic, compute_kern = hyppo_parts()
    except ImportError:
        return None
    if peer == "MMD":
        X, Y = np.concatenate([X, Y]), np.repeat([0.0, 1.0], [len(X), len(Y)])[:, None]
    statistic = hsic(compute_kernel=None).statistic
    statistic(*compute_kern(X[:50], Y[-50:]))  # compiles
    matrices = compute_kern(X, Y)
    return (1 + REPS) * measured(lambda: statistic(*matrices))[1]


def one(group: str, n: int, chosen: list[str]) -> None:
    """Time the tests of one statistic at one size, and hyppo beside them; print what was found."""
    X, Y = samples(group, n)
    rows: dict[str, Any] = {}
    for name in chosen:
        ours(name)(X[:300], Y[:300])  # compiles, and starts the threads
        result, seconds, megabytes = measured(lambda: ours(name)(X, Y))  # noqa: B023
        rows[name] = {"seconds": seconds, "MB": megabytes, "resamples": result.n_resamples, "p": result.pvalue}
        print(name, n, rows[name], file=sys.stderr, flush=True)
    print(json.dumps(rows), flush=True)  # kept should the time end before hyppo does
    if any(whole(name) for name in chosen):
        rows["hyppo"] = hyppo_seconds(PEERS[group], X, Y)
    print(json.dumps(rows))


def whole(name: str) -> bool:
    """Whether a test looks at all pairs of rows."""
    return not any(word in name for word in ("landmarks", "thinning", "linear"))


def all_of(options: argparse.Namespace) -> dict[str, dict[str, Any]]:
    """Rows of all tests by size, as many as there was time for."""
    began = time.monotonic()
    names = [name for name, (function, _) in OURS.items() if hasattr(mercer, function)]
    found: dict[str, dict[str, Any]] = {name: {} for name in names if not options.tests or name in options.tests}
    for n in options.sizes:
        for group in PEERS:
            left = 60 * options.minutes - (time.monotonic() - began)
            chosen = [name for name, rows in found.items() if name.startswith(group) and fits(name, rows, n, options)]
            if left < 5 or not chosen:
                continue
            command = [sys.executable, __file__, "--one", group, str(n), *chosen]
            try:
                said = subprocess.run(command, stdout=subprocess.PIPE, timeout=left, check=True).stdout
            except (subprocess.TimeoutExpired, subprocess.CalledProcessError) as problem:
                print(f"{group}, n = {n}: {problem}", file=sys.stderr)
                said = problem.stdout
            if not said:
                continue
            rows = json.loads(said.splitlines()[-1])
            peer = rows.pop("hyppo", None)
            for name, row in rows.items():
                found[name][str(n)] = {**row, "hyppo": peer if whole(name) else None}
    return found


def fits(name: str, rows: dict[str, Any], n: int, options: argparse.Namespace) -> bool:
    """Whether a test is worth trying at a size."""
    slow = any(row["seconds"] > 6 * options.minutes for row in rows.values())
    return not slow and (n <= LARGEST_WHOLE or not whole(name))


def lines_of(name: str, rows: dict[str, Any]) -> list[str]:
    lines = []
    for n, row in rows.items():
        peer = row.get("hyppo")
        ratio = f"{peer:.0f} | {peer / row['seconds']:.0f}" if peer else " | "
        lines.append(f"| {name} | {int(n):,} | {row['seconds']:.2f} | {row['MB']:.0f} | {row['resamples']} | {ratio} |")
    sizes = [int(n) for n in rows]
    slopes = [exponent(sizes, [row[key] for row in rows.values()]) for key in ("seconds", "MB")]
    return [*lines, f"| {name}, exponent of n | | {slopes[0]} | {slopes[1]} | | | |"]


def page(found: dict[str, dict[str, Any]], machine: str) -> str:
    head = [
        "# The cost of a test",
        "",
        "Written by `benchmarks/testing_speed.py`, whose first lines say how: normal samples of n rows each in ten",
        "dimensions (n pairs for independence), 999 resamples. *hyppo* is 0.5.2 with one worker and 1 000 permutations",
        "of its one kernel: 1 001 times what one call of its statistic takes on matrices at hand; the last column is",
        "how many times as long it takes. The calls without arguments aggregate a whole collection of kernels.",
        "",
        f"Run: {machine}.",
        "",
        "| test | n | s | MB | resamples | hyppo, s | hyppo / ours |",
        "| --- | --- | --- | --- | --- | --- | --- |",
    ]
    return "\n".join([*head, *(line for name, rows in found.items() if rows for line in lines_of(name, rows))]) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", nargs="*", type=int, default=list(QUICK_SIZES), help="rows of each sample")
    parser.add_argument("--minutes", type=float, default=60.0, help="start nothing further after so long")
    parser.add_argument("--tests", nargs="*", default=[], help="names of tests; all without it")
    parser.add_argument("--scores", type=Path, help="write what was measured to this file and no page")
    parser.add_argument("--from", dest="source", type=Path, help="measurements of an earlier run")
    parser.add_argument("--one", nargs="*", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        one(options.one[0], int(options.one[1]), options.one[2:])
        return
    began = time.monotonic()
    found, machine = stored(options.source) if options.source else (all_of(options), f"{os.cpu_count()} cores")
    if options.scores:
        store(options.scores, found, "all threads", time.monotonic() - began)
    else:
        RESULT.write_text(page(found, machine), encoding="utf-8")


if __name__ == "__main__":
    main()
