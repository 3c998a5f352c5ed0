"""What compression costs a two-sample test in power, and what tests of large samples cost in seconds and memory.

    python benchmarks/compressed_tests.py                              # a quick look: some minutes on two cores
    python benchmarks/compressed_tests.py --part power --datasets 400 --jobs 16 --write
    python benchmarks/compressed_tests.py --part scale --sizes 10000 100000 1000000 --write
    python benchmarks/compressed_tests.py --part drift --references 100 --jobs 16 --write

Writes tables into benchmarks/results/compressed_tests.md with --write, and prints them otherwise.

*power*: two samples of 2 048 rows, one Gaussian kernel of the median bandwidth for all methods, level 0.05, 199
relabellings, as a share of data sets. *random rows* is the full test on so many rows drawn at random that it evaluates
the kernel as often as the test by landmarks does. *goodpoints* is compress-then-test of its authors with g = 3 and 16
bins of each sample, and their test by random Fourier features with as many features as there are landmarks; both are
left out where the package is not installed. The standard error of a share is at most 0.5/√(data sets).

*scale*: samples of n rows each in five dimensions, ``mmd_test`` with its default collection of kernels and 999
relabellings, ``hsic_test`` likewise on n pairs. Every number comes from a process of its own. Memory is the resident
size above that at the start of the call.

*drift*: the mean number of rows up to the first alarm where nothing changes, beside the one that was asked for, and
the rows from a change to its alarm.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from peak_memory import PeakMemory
from result_page import exponent, write_table

from mercer import DriftDetector, Gaussian, config_context, hsic_test, mmd_test

RESULT = Path(__file__).parent / "results" / "compressed_tests.md"
ROWS, LANDMARKS, RESAMPLES, LEVEL = 2048, 128, 199, 0.05
Array = np.ndarray[Any, Any]
Pair = tuple[Array, Array]


# --- power ----------------------------------------------------------------------------------------------------------


def mean_shift(rng: np.random.Generator) -> Pair:
    X, Y = rng.standard_normal((2, ROWS, 10))
    Y[:, 0] += 0.12
    return X, Y


def wider(rng: np.random.Generator) -> Pair:
    X, Y = rng.standard_normal((2, ROWS, 5))
    return X, 1.04 * Y


def correlated(rng: np.random.Generator) -> Pair:
    X, Y = rng.standard_normal((2, ROWS, 4))
    Y[:, 1] = 0.17 * Y[:, 0] + np.sqrt(1 - 0.17**2) * Y[:, 1]
    return X, Y


def blobs(rng: np.random.Generator) -> Pair:
    """Nine clusters on a grid; those of Y are longer along the diagonal, which a wide kernel hardly sees."""
    X, Y = (4.0 * rng.integers(0, 3, (ROWS, 2)) + rng.standard_normal((ROWS, 2)) for _ in range(2))
    centres = np.round(Y / 4.0) * 4.0
    turned = (Y - centres) @ np.array([[1.0, 0.8], [0.8, 1.0]]) / np.sqrt(1 + 0.8**2)
    return X, centres + turned


def same(rng: np.random.Generator) -> Pair:
    return tuple(rng.standard_normal((2, ROWS, 5)))


SETTINGS: dict[str, Callable[[np.random.Generator], Pair]] = {
    "mean, d = 10": mean_shift,
    "variance, d = 5": wider,
    "correlation, d = 4": correlated,
    "blobs, d = 2": blobs,
    "no difference": same,
}


def ours(X: Array, Y: Array, kernel: Gaussian, seed: int, compress: Any = None) -> float:
    return mmd_test(X, Y, kernel, n_resamples=RESAMPLES, compress=compress, rng=seed).pvalue


def random_rows(X: Array, Y: Array, kernel: Gaussian, seed: int) -> float:
    """As many kernel evaluations as N · LANDMARKS: n² / 2 of them for n rows."""
    rng, count = np.random.default_rng(seed + 10**6), int(np.sqrt(2 * (len(X) + len(Y)) * LANDMARKS) / 2)
    return ours(rng.permutation(X)[:count], rng.permutation(Y)[:count], kernel, seed)


def compress_then_test(X: Array, Y: Array, kernel: Gaussian, seed: int) -> float:
    from goodpoints import ctt

    found = ctt.ctt(X, Y, 3, B=RESAMPLES, s=16, lam=float(kernel.sigma), null_seed=seed, statistic_seed=seed)
    return 0.0 if found.rejects else 1.0


def fourier(X: Array, Y: Array, kernel: Gaussian, seed: int) -> float:
    from goodpoints import ctt

    found = ctt.rff(X, Y, LANDMARKS, B=RESAMPLES, lam=float(kernel.sigma), null_seed=seed, statistic_seed=seed)
    return 0.0 if found.rejects else 1.0


def methods() -> dict[str, Callable[[Array, Array, Gaussian, int], float]]:
    found: dict[str, Callable[[Array, Array, Gaussian, int], float]] = {
        "full": ours,
        "landmarks": partial(ours, compress=LANDMARKS),
        "thinning": partial(ours, compress="thinning"),
        "random rows": random_rows,
    }
    try:
        import goodpoints  # noqa: F401
    except ImportError:
        return found
    return {**found, "goodpoints ctt": compress_then_test, "goodpoints rff": fourier}


def one_data_set(task: tuple[str, int, list[str]]) -> dict[str, tuple[bool, float]]:
    """Whether each method tells the samples apart, and its seconds."""
    name, seed, chosen = task
    X, Y = SETTINGS[name](np.random.default_rng(seed))
    seed += 10**6  # the tests draw other numbers than the data
    kernel = Gaussian().resolve(np.random.default_rng(seed).permutation(np.concatenate([X, Y])))
    out = {}
    with config_context(n_threads=1):
        for method in chosen:
            began = time.perf_counter()
            out[method] = (methods()[method](X, Y, kernel, seed) <= LEVEL, time.perf_counter() - began)
    return out


def power(datasets: int, jobs: int, chosen: list[str]) -> list[str]:
    names = chosen or list(methods())
    lines = [f"| {datasets} data sets | " + " | ".join(names) + " |", "| --- |" + " --- |" * len(names)]
    seconds: dict[str, list[float]] = {name: [] for name in names}
    with ProcessPoolExecutor(jobs) as pool:
        for setting in SETTINGS:
            found = list(pool.map(one_data_set, [(setting, seed, names) for seed in range(datasets)]))
            shares = [np.mean([each[name][0] for each in found]) for name in names]
            lines.append(f"| {setting} | " + " | ".join(f"{share:.3f}" for share in shares) + " |")
            for name in names:
                seconds[name] += [each[name][1] for each in found]
    typical = [float(np.median(seconds[name])) for name in names]
    return [*lines, "| median seconds, one thread | " + " | ".join(f"{each:.2f}" for each in typical) + " |"]


# --- scale ----------------------------------------------------------------------------------------------------------


def two_samples(n: int) -> Pair:
    rng = np.random.default_rng(0)
    X, Y = rng.standard_normal((2, n, 5))
    Y[:, 0] *= 1 + 5 / np.sqrt(n)
    return X, Y


def pairs(n: int) -> Pair:
    rng = np.random.default_rng(0)
    x = rng.standard_normal((n, 1))
    return x, (3 / n**0.25) * x**2 + rng.standard_normal((n, 1))


SCALE: dict[str, tuple[Callable[[int], Pair], Callable[[Array, Array], Any], int]] = {
    "mmd_test": (two_samples, lambda X, Y: mmd_test(X, Y, rng=0), 5_000),
    'mmd_test, compress="landmarks"': (two_samples, lambda X, Y: mmd_test(X, Y, compress="landmarks", rng=0), 10**9),
    'mmd_test, compress="thinning"': (two_samples, lambda X, Y: mmd_test(X, Y, compress="thinning", rng=0), 300_000),
    "hsic_test": (pairs, lambda X, Y: hsic_test(X, Y, rng=0), 10_000),
    'hsic_test, compress="landmarks"': (pairs, lambda X, Y: hsic_test(X, Y, compress="landmarks", rng=0), 10**9),
}


def one_size(name: str, n: int) -> None:
    """One test on n rows, in this process."""
    data, run, _ = SCALE[name]
    run(*data(500))  # compiles, and starts the threads
    X, Y = data(n)
    with PeakMemory() as memory:
        began = time.perf_counter()
        result = run(X, Y)
        seconds = time.perf_counter() - began
    print(json.dumps({"seconds": seconds, "MB": memory.peak / 1e6, "pvalue": result.pvalue}))


def scale(sizes: list[int], everything: bool) -> list[str]:
    lines = ["| test | n | s | MB | p |", "| --- | --- | --- | --- | --- |"]
    for name, (_, _, most) in SCALE.items():
        rows = []
        for n in [n for n in sizes if n <= most or everything]:
            call = [sys.executable, __file__, "--one", name, str(n)]
            answer = subprocess.run(call, capture_output=True, text=True, check=True, env=os.environ)
            row = json.loads(answer.stdout.splitlines()[-1])
            rows.append((n, row["seconds"]))
            lines.append(f"| {name} | {n} | {row['seconds']:.2f} | {row['MB']:.0f} | {row['pvalue']:.3f} |")
        if len(rows) > 2:
            lines.append(f"| {name}, exponent of n | | {exponent(*map(list, zip(*rows, strict=True)))} | | |")
    return lines


# --- drift ----------------------------------------------------------------------------------------------------------

LAWS: dict[str, Callable[[np.random.Generator, int], Array]] = {
    "normal, d = 5": lambda rng, n: rng.standard_normal((n, 5)),
    "exponential, d = 2": lambda rng, n: rng.exponential(size=(n, 2)),
    "Student t, 3 degrees, d = 3": lambda rng, n: rng.standard_t(3, (n, 3)),
}
RATE, REFERENCE, STREAMS = 1e-3, 1000, 4


def one_reference(task: tuple[str, int]) -> tuple[list[int], list[int]]:
    """Rows to a false alarm, and rows from a shift by half a standard deviation to its alarm."""
    law, seed = LAWS[task[0]], task[1]
    rng, runs, delays = np.random.default_rng(seed), [], []
    with config_context(n_threads=1):
        detector = DriftDetector(false_alarms=RATE, random_state=seed).fit(law(rng, REFERENCE))
        for _ in range(STREAMS):
            detector.reset()
            while detector.alarm_at_ is None:
                detector.update(law(rng, 1000))
            runs.append(detector.alarm_at_)
            detector.reset()
            detector.update(law(rng, 200))
            before = detector.alarm_at_
            while detector.alarm_at_ is None:
                detector.update(law(rng, 100) + 0.5 * np.eye(1, law(rng, 1).shape[1])[0])
            delays += [detector.alarm_at_ - 200] if before is None else []
    return runs, delays


def drift(references: int, jobs: int) -> list[str]:
    lines = [
        "| law | rows to a false alarm asked for | found | standard error | rows from a shift of 0.5 to its alarm |",
        "| --- | --- | --- | --- | --- |",
    ]
    with ProcessPoolExecutor(jobs) as pool:
        for name in LAWS:
            found = list(pool.map(one_reference, [(name, seed) for seed in range(references)]))
            means = [np.mean(runs) for runs, _ in found]
            error = np.std(means) / np.sqrt(references)
            delay = np.median([each for _, delays in found for each in delays])
            lines.append(f"| {name} | {1 / RATE:.0f} | {np.mean(means):.0f} | {error:.0f} | {delay:.0f} |")
    return lines


# --------------------------------------------------------------------------------------------------------------------


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--part", choices=("power", "scale", "drift", "all"), default="all")
    parser.add_argument("--datasets", type=int, default=20, help="data sets of each setting of the power")
    parser.add_argument(
        "--methods", nargs="+", default=[], help="of the power, by the names in its table; all if left out"
    )
    parser.add_argument("--table", help="the name of the table in the page, that of the part if left out")
    parser.add_argument("--references", type=int, default=6, help="references of each law of the drift")
    parser.add_argument("--sizes", type=int, nargs="+", default=[1_000, 4_000, 16_000])
    parser.add_argument("--everything", action="store_true", help="full tests of large samples, too")
    parser.add_argument("--jobs", type=int, default=1, help="processes of the power and the drift")
    parser.add_argument("--write", action="store_true", help=f"write {RESULT.name}")
    parser.add_argument("--one", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        one_size(options.one[0], int(options.one[1]))
        return
    parts: dict[str, Callable[[], list[str]]] = {
        "power": lambda: power(options.datasets, options.jobs, options.methods),
        "scale": lambda: scale(options.sizes, options.everything),
        "drift": lambda: drift(options.references, options.jobs),
    }
    machine = (
        f"{os.cpu_count()} cores, {platform.machine()}, Python {platform.python_version()}, NumPy {np.__version__}"
    )
    for name, run in parts.items():
        if options.part in (name, "all"):
            lines = [f"`{' '.join(['python', 'benchmarks/compressed_tests.py', *sys.argv[1:]])}` on {machine}.", ""]
            lines += run()
            print("\n".join(lines), flush=True)
            if options.write:
                write_table(RESULT, options.table or name, lines)


if __name__ == "__main__":
    main()
