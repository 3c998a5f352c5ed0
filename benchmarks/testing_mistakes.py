"""How often a test cries wolf when it is used in the ways that the guide warns of, and when it is used right.

    python benchmarks/testing_mistakes.py --repeats 1000 --jobs 16   # writes benchmarks/results/testing_mistakes.md
    python benchmarks/testing_mistakes.py                            # 40 repeats of each, printed only

In all settings but the last there is nothing to be found, so that a test at the level of 5 % should find something in
5 % of them. "Wrong" is the share in which the mistake finds something, "right" that of the way the guide recommends.
The last setting has a difference: it is the share in which it is found, in a small sample and in a larger one.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

os.environ.setdefault("OMP_NUM_THREADS", "1")  # before NumPy: processes are what runs at once

import numpy as np
from result_page import write_table

from mercer import Gaussian, mmd_test
from mercer.backends import config_context

RESULT = Path(__file__).parent / "results" / "testing_mistakes.md"
LEVEL, RESAMPLES = 0.05, 199


class Mistake(NamedTuple):
    """A pair of ways to ask one question of one draw of data: whether each says that it found something."""

    said: str
    ask: Callable[[Any], tuple[bool, bool]]


def found(X: Any, Y: Any, rng: Any, kernel: Any = None, **options: Any) -> bool:
    return mmd_test(X, Y, kernel, n_resamples=RESAMPLES, rng=rng, **options).pvalue <= LEVEL


def peeking(rng: Any) -> tuple[bool, bool]:
    """Look after every ten rows of each sample, from 20 to 100, and stop when the p-value is small."""
    X, Y = rng.standard_normal((2, 100, 2))
    looks = [found(X[:n], Y[:n], rng) for n in range(20, 101, 10)]
    return any(looks), looks[-1]


def bandwidths(rng: Any) -> tuple[bool, bool]:
    """Try ten bandwidths on the same data and report the one with the smallest p-value; all in one test instead."""
    X, Y = rng.standard_normal((2, 50, 2))
    kernels = [Gaussian(sigma=float(sigma)) for sigma in np.geomspace(0.05, 10, 10)]
    return any(found(X, Y, rng, kernel) for kernel in kernels), found(X, Y, rng, kernels)


def ordered_rows(rng: Any) -> tuple[bool, bool]:
    """Two independent series in which each value is 0.9 of the one before and some noise."""
    noise = rng.standard_normal((2, 600))
    series = np.zeros_like(noise)
    for t in range(1, noise.shape[1]):
        series[:, t] = 0.9 * series[:, t - 1] + noise[:, t]
    X, Y = series[:, 200:, None]
    return found(X, Y, rng), found(X, Y, rng, scheme="blocks")


def many_columns(rng: Any) -> tuple[bool, bool]:
    """Test each of 20 columns by itself and report the one that differs most; all of them in one test instead."""
    X, Y = rng.standard_normal((2, 50, 20))
    return any(found(X[:, [k]], Y[:, [k]], rng) for k in range(20)), found(X, Y, rng)


def small_samples(rng: Any) -> tuple[bool, bool]:
    """A difference of half a standard deviation, seen by 15 rows of each sample and by 150."""
    X, Y = rng.standard_normal((2, 150, 1))
    Y = Y + 0.5
    return found(X[:15], Y[:15], rng), found(X, Y, rng)


MISTAKES = {
    "peeking": Mistake("look nine times, stop at the first small p-value; look once at the end", peeking),
    "bandwidths": Mistake("the smallest p-value of ten bandwidths; one test over all ten", bandwidths),
    "ordered rows": Mistake("a time series taken for independent rows; blocks of rows", ordered_rows),
    "many columns": Mistake("the smallest p-value of 20 columns; one test of all columns", many_columns),
    "small samples": Mistake("a real difference: found by 15 rows; by 150", small_samples),
}


def asked(task: tuple[str, int]) -> tuple[bool, bool]:
    name, seed = task
    with config_context(n_threads=1):
        return MISTAKES[name].ask(np.random.default_rng([seed, len(name)]))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=40, help="data sets of each setting")
    parser.add_argument("--jobs", type=int, default=1, help="processes")
    parser.add_argument("--only", choices=sorted(MISTAKES), nargs="+", default=list(MISTAKES), help="settings")
    parser.add_argument("--write", action="store_true", help="write the table although there are few repeats")
    arguments = parser.parse_args()
    rows = []
    with ProcessPoolExecutor(arguments.jobs) as pool:
        for name in arguments.only:
            answers = list(pool.map(asked, [(name, seed) for seed in range(arguments.repeats)], chunksize=4))
            wrong, right = np.mean(answers, axis=0)
            rows.append((name, MISTAKES[name].said, f"{wrong:.0%}", f"{right:.0%}"))
            print(*rows[-1], sep="  ", flush=True)
    if arguments.write or (arguments.repeats >= 500 and set(arguments.only) == set(MISTAKES)):
        note = f"{arguments.repeats} data sets of each setting, {RESAMPLES} relabellings a test, level {LEVEL:.0%}."
        lines = [("setting", "wrong; right", "wrong", "right"), ("---", "---", "--:", "--:"), *rows]
        write_table(RESULT, "mistakes", [note, "", *("| " + " | ".join(line) + " |" for line in lines)])


if __name__ == "__main__":
    main()
