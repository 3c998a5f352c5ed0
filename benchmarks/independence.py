"""Ways to the p-value of HSIC: seconds beside hyppo, and what reorderings of a group do to the power.

    python benchmarks/independence.py                       # 1 000 and 2 000 rows, a minute; printed
    python benchmarks/independence.py --rows 1000 10000     # other sizes
    python benchmarks/independence.py --power 400           # data sets a shape, instead of 50
    python benchmarks/independence.py --write               # writes benchmarks/results/independence.md

Seconds are those of the processor, all threads together, for 999 resamples. Of hyppo's ``Hsic`` (workers=1) three
reorderings are run, and the cost of one is multiplied by 1 000. "One by one" are independent reorderings of stored
matrices, as far as they fit. The second table has the share of data sets with p ≤ .05, of the same data sets and
kernels, when Y is reordered by random members of the affine group and by independent permutations, and by two formulas.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from result_page import write_table

from mercer import Gaussian, hsic_test
from mercer.dependence.centred_gram import CentredGram
from mercer.dependence.hsic_nulls import one_by_one
from mercer.dependence.resampling import permutation_pvalue

RESULT = Path(__file__).parent / "results" / "independence.md"
MOST_STORED = 2000
SHAPES: dict[str, Callable[[Any, Any], Any]] = {
    "independent": lambda x, e: e,
    "line": lambda x, e: 0.25 * x + e,
    "parabola": lambda x, e: 0.3 * x**2 + e,
    "wave": lambda x, e: np.sin(3 * x) + 2 * e,
    "spread": lambda x, e: e * (1 + 0.6 * abs(x)),
}


def drawn(shape: str, n: int, seed: int) -> tuple[Any, Any]:
    rng = np.random.default_rng(seed)
    x, noise = rng.normal(size=(2, n))
    return x, SHAPES[shape](x, noise)


def seconds(call: Callable[[], Any]) -> float:
    start = time.process_time()
    call()
    return time.process_time() - start


def independent(x: Any, y: Any, count: int = 999) -> float:
    """The p-value by independent reorderings."""
    grams = [CentredGram(Gaussian().resolve(values[:, None]), values[:, None]) for values in (x, y)]
    orders = np.random.default_rng(0).permuted(np.tile(np.arange(len(x)), (count, 1)), axis=1)
    found = one_by_one(grams[:1], grams[1:], orders)
    return permutation_pvalue(found.values[0, 0], found.values[0, 1:], float(found.roundings[0]))


def hyppo_seconds(x: Any, y: Any) -> float | None:
    """Of 1 000 reorderings, from the difference of two runs."""
    try:
        from hyppo.independence import Hsic
    except ImportError:
        return None

    def run(rows: int, reps: int) -> float:
        return seconds(lambda: Hsic().test(x[:rows, None], y[:rows, None], reps=reps, workers=1, auto=False))

    run(50, 1)  # compiles
    return 1000 * (run(len(x), 4) - run(len(x), 1)) / 3


def speed_row(n: int) -> list[str]:
    x, y = drawn("parabola", n, 0)
    default = seconds(lambda: hsic_test(x, y, rng=0))
    alone = seconds(lambda: hsic_test(x, y, Gaussian(), Gaussian(), rng=0))
    slow = seconds(lambda: independent(x, y)) if n <= MOST_STORED else None
    peer = hyppo_seconds(x, y)
    ratio = "" if peer is None else f"{peer / alone:.0f}"
    return [f"{n:,}", *(f"{t:.2f}" if t is not None else "" for t in (default, alone, slow, peer)), ratio]


def power_row(shape: str, count: int) -> list[str]:
    ways: list[Callable[[Any, Any], float]] = [
        lambda x, y: hsic_test(x, y, Gaussian(), Gaussian(), rng=0).pvalue,
        independent,
        lambda x, y: hsic_test(x, y, null="gamma").pvalue,
        lambda x, y: hsic_test(x, y, null="spectral", rng=0).pvalue,
        lambda x, y: hsic_test(x, y, rng=0).pvalue,
    ]
    found = np.array([[way(*drawn(shape, 100, seed)) <= 0.05 for way in ways] for seed in range(count)])
    return [shape, *(f"{share:.3f}" for share in found.mean(axis=0))]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, nargs="+", default=[1000, 2000])
    parser.add_argument("--power", type=int, default=50, help="data sets a shape")
    parser.add_argument("--write", action="store_true")
    options = parser.parse_args()
    hsic_test(*drawn("line", 50, 0), rng=0)  # compiles
    speed = [speed_row(n) for n in options.rows]
    power = [power_row(shape, options.power) for shape in SHAPES]
    heads = (
        ("rows", "default (12 pairs)", "one pair", "one by one", "hyppo", "hyppo / one pair"),
        ("shape, n = 100", "group", "independent", "gamma", "spectral", "default"),
    )
    for name, head, rows in zip(("seconds", "power"), heads, (speed, power), strict=True):
        print("\n".join(_lines(head, rows)), end="\n\n")
        if options.write:
            write_table(RESULT, name, _lines(head, rows))


def _lines(head: tuple[str, ...], rows: list[list[str]]) -> list[str]:
    return ["| " + " | ".join(row) + " |" for row in (head, ["---"] * len(head), *rows)]


if __name__ == "__main__":
    main()
