"""Which collection of kernels, and which way to make one p-value of them, finds most: what the defaults rest on.

    python benchmarks/testing_aggregation.py --datasets 10                      # minutes
    python benchmarks/testing_aggregation.py --datasets 200 --jobs 16 --minutes 6 --scores aggregation.json
    python benchmarks/testing_aggregation.py --from aggregation.json            # the page; several files too

Writes benchmarks/results/testing_aggregation.md. For every data set of testing_settings.py and testing_shapes.py the
statistics of many kernels are computed on the data and on the same relabellings; all ways to combine them see the same
table. Every way treats the columns of that table alike, so that every one of them has an exact level.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from scipy.spatial.distance import pdist, squareform
from scipy.special import logsumexp
from scipy.stats import norm, rankdata
from testing_peers import share_above, signs_of, u_centred
from testing_runner import gathered, store, stored
from testing_settings import TWO_SAMPLES
from testing_shapes import INDEPENDENCE

from mercer.dependence.aggregation import aggregated

RESULT = Path(__file__).parent / "results" / "testing_aggregation.md"
RESAMPLES = 199
LEVEL = 0.05
Array = np.ndarray[Any, Any]
SETTINGS = {"two samples": TWO_SAMPLES, "independence": INDEPENDENCE}
KINDS = {"G": ("euclidean", 2), "L": ("cityblock", 1)}
READING = """
G are Gaussians and L Laplacians, *a + a* of each as many, from half the 5 % quantile of the distances to twice the 95 %
quantile, geometrically unless said; *a × a* all pairs of them of one kind; E is minus the distance (energy distance,
distance correlation). What the stored run says:

- Of two samples the largest score with the skewness of its null removed finds most, at 5 + 5 kernels (0.509) hardly
  less than at 9 + 9 (0.516); without that removal 0.497. Soft maxima and means find what wide kernels find and lose
  fine structure. The best single kernel has 0.303. The distance as one more kernel changes nothing.
- Of dependence, wide kernels must be among them: monotone shapes are found by them alone. With skewness removed narrow
  kernels count for more (spiral, circle), without it wide ones (linear, joint normal, step).
"""


# --- statistics -----------------------------------------------------------------------------------------------


def kernels_of(X: Array, widths: int, linear: int) -> dict[str, Array]:
    """Kernel matrices by name: G or L, geometric widths G0 … from narrow to wide, or linear ones; and distances E."""
    out: dict[str, Array] = {}
    for kind, (metric, power) in KINDS.items():
        flat = pdist(X, metric)
        low, high = np.quantile(flat[flat > 0], [0.05, 0.95])
        D = squareform(flat)
        named = {f"{kind}{i}": w for i, w in enumerate(np.geomspace(low / 2, 2 * high, widths))}
        named |= {f"{kind}lin{i}": w for i, w in enumerate(np.linspace(low / 2, 2 * high, linear))}
        named[f"{kind}median"] = float(np.median(flat))
        out |= {name: np.exp(-((D / w) ** power) / power) for name, w in named.items()}
        if kind == "G":
            out["E"] = -D
    return out


def two_sample_table(X: Array, Y: Array, rng: np.random.Generator) -> dict[str, Array]:
    """Statistics of the data and of all relabellings, in the units of MMD-FUSE, by the name of the kernel."""
    n, m = len(X), len(Y)
    labels = signs_of(n, m, RESAMPLES, rng).astype(np.float32)
    out = {}
    for name, K in kernels_of(np.concatenate([X, Y]), 9, 10).items():
        np.fill_diagonal(K, 0.0)
        values = np.einsum("ib,ib->b", labels, u_centred(K).astype(np.float32) @ labels).astype(float)
        out[name] = values / np.sqrt((K**2).mean()) / np.sqrt(n * m)
    return out


def independence_table(X: Array, Y: Array, rng: np.random.Generator) -> dict[str, Array]:
    """Statistics of the data and of all reorderings, over their own deviation, by the names of both kernels."""
    first, second = ({name: u_centred(K) for name, K in kernels_of(Z, 5, 0).items()} for Z in (X, Y))
    rows = np.stack([K.ravel() for K in first.values()]).astype(np.float32)
    orders = [np.arange(len(X)), *rng.permuted(np.tile(np.arange(len(X)), (RESAMPLES, 1)), axis=1)]
    out = {}
    for name, L in second.items():
        small = L.astype(np.float32)
        products = np.stack([rows @ small[np.ix_(order, order)].ravel() for order in orders], axis=1).astype(float)
        for other, values in zip(first, products, strict=True):
            if other[0] == name[0]:  # both Gaussian, both Laplacian, both distances
                out[f"{other} {name}"] = values / np.sqrt((first[other] ** 2).sum() * (L**2).sum()) * len(X)
    return out


# --- ways to combine ------------------------------------------------------------------------------------------


def scores(S: Array) -> Array:
    """Each row in units of its own deviation."""
    middle, spread = S.mean(axis=1, keepdims=True), S.std(axis=1, keepdims=True)
    return (S - middle) / spread


def rank_scores(S: Array) -> Array:
    return norm.isf((rankdata(-S, axis=1) - 0.5) / S.shape[1])


WAYS: dict[str, Callable[[Array], float]] = {
    "largest score, skewness removed": lambda S: aggregated(S).pvalue,
    "MMD-FUSE": lambda S: share_above(logsumexp(S, axis=0)),
    "mean score": lambda S: share_above(scores(S).mean(axis=0)),
    "largest score": lambda S: share_above(scores(S).max(axis=0)),
    "soft maximum of scores": lambda S: share_above(logsumexp(scores(S), axis=0)),
    "soft maximum of scores, twice": lambda S: share_above(logsumexp(2 * scores(S), axis=0)),
    "mean square of ranks": lambda S: share_above((np.maximum(rank_scores(S), 0) ** 2).mean(axis=0)),
    "smallest rank": lambda S: share_above(rank_scores(S).max(axis=0) + 1e-6 * scores(S).max(axis=0)),
    "soft maximum of ranks": lambda S: share_above(logsumexp(2 * rank_scores(S), axis=0)),
}


def collections(names: Sequence[str]) -> dict[str, list[str]]:
    """Sets of kernels by name, of those at hand."""

    def pick(*wanted: str) -> list[str]:
        return [name for name in names if all(part in wanted for part in name.split(" "))]

    geometric = {k: [f"{kind}{i}" for kind in "GL" for i in range(0, 9, 8 // (k - 1))] for k in (3, 5, 9)}
    five = [f"{kind}{i}" for kind in "GL" for i in range(5)]
    if " " in names[0]:
        return {
            "G median": ["Gmedian Gmedian"],
            "E": ["E E"],
            "medians and E": ["Gmedian Gmedian", "Lmedian Lmedian", "E E"],
            "3 × 3": pick(*five[::2], "L0", "L2", "L4"),
            "3 × 3 and E": pick(*five[::2], "L0", "L2", "L4", "E"),
            "5 × 5": pick(*five),
            "5 × 5 and E": pick(*five, "E"),
            "3 × 3, wider": pick("G1", "G2", "G3", "L1", "L2", "L3", "E"),
        }
    return {
        "G median": ["Gmedian"],
        "E": ["E"],
        "5 + 5": pick(*geometric[5]),
        "5 + 5 and E": pick(*geometric[5], "E"),
        "9 + 9": pick(*geometric[9]),
        "3 + 3 and E": pick(*geometric[3], "E"),
        "10 + 10, linear": [name for name in names if "lin" in name],
        "middle 5 + 5": [f"{kind}{i}" for kind in "GL" for i in range(2, 7)],
        "middle 5 + 5 and E": [f"{kind}{i}" for kind in "GL" for i in range(2, 7)] + ["E"],
    }


def study(key: str, seeds: Sequence[int]) -> list[dict[str, bool]]:
    """Which ways reject some data sets of one setting."""
    problem, setting = key.split(": ", 1)
    table_of = two_sample_table if problem == "two samples" else independence_table
    out = []
    for seed in seeds:
        X, Y = SETTINGS[problem][setting](np.random.default_rng([seed, 1]))
        table = table_of(X, Y, np.random.default_rng([seed, 2]))
        row = {}
        for name, kernels in collections(list(table)).items():
            S = np.stack([table[kernel] for kernel in kernels])
            ways = WAYS if len(kernels) > 1 else {"alone": lambda S: share_above(S[0])}
            row |= {f"{name}: {way}": bool(combine(S) <= LEVEL + 1e-12) for way, combine in ways.items()}
        out.append(row)
    return out


def tables(found: dict[str, list[dict[str, bool]]]) -> list[str]:
    """A line a way, a column a setting, the mean over the settings last; the best mean first."""
    lines: list[str] = []
    for problem in SETTINGS:
        keys = [key for key in found if key.startswith(problem) and "(level)" not in key and found[key]]
        if not keys:
            continue
        means = {way: [np.mean([row[way] for row in found[key]]) for key in keys] for way in found[keys[0]][0]}
        lines += [f"## {problem.capitalize()}", "", f"{min(len(found[key]) for key in keys)} data sets and more.", ""]
        lines += ["| collection: way | mean | " + " | ".join(key.split(": ", 1)[1] for key in keys) + " |"]
        lines += ["|" + " --- |" * (len(keys) + 2)]
        for way, shares in sorted(means.items(), key=lambda item: -np.mean(item[1])):
            lines.append(f"| {way} | {np.mean(shares):.3f} | " + " | ".join(f"{share:.2f}" for share in shares) + " |")
        lines.append("")
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--datasets", type=int, default=10, help="data sets a setting")
    parser.add_argument("--jobs", type=int, default=2, help="processes side by side")
    parser.add_argument("--minutes", type=float, default=1e9, help="start no further data sets after so long")
    parser.add_argument("--settings", nargs="*", default=[], help="parts of the names of settings; all without it")
    parser.add_argument("--scores", type=Path, help="write the scores to this file and no page")
    parser.add_argument("--from", dest="sources", nargs="*", type=Path, default=[], help="scores of earlier runs")
    parser.add_argument("--print", action="store_true", help="print the tables, write nothing")
    options = parser.parse_args()
    began = time.monotonic()
    if options.sources:
        runs = [stored(source) for source in options.sources]
        found = {key: rows for results, _ in runs for key, rows in results.items()}
        machine = " and ".join(how for _, how in runs)
    else:
        keys = [f"{problem}: {setting}" for problem, settings in SETTINGS.items() for setting in settings]
        keys = [key for key in keys if not options.settings or any(part in key for part in options.settings)]
        found = gathered(study, keys, range(options.datasets), options.jobs, options.minutes, 5)
        machine = "this machine"
    if options.scores:
        store(options.scores, found, f"{options.jobs} processes of one thread", time.monotonic() - began)
        return
    head = ["# Collections of kernels, and ways to make one p-value of them", "", f"Run: {machine}.", ""]
    head += [
        "Written by `benchmarks/testing_aggregation.py`, whose first lines say how; shares rejected at 0.05.",
        READING,
    ]
    text = "\n".join([*head, *tables(found)])
    if options.print:
        print(text)
    else:
        RESULT.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
