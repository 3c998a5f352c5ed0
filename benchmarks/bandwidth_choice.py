"""The bandwidth that ``rank_path`` suggests, beside the best of the grid, the median and kernels that need none.

    MERCER_DATA=... python benchmarks/bandwidth_choice.py               # writes benchmarks/results/bandwidth_choice.md
    MERCER_DATA=... python benchmarks/bandwidth_choice.py --only wine   # one sample, printed only

Samples are those of embedding_samples.py, 400 rows of them at most. The grid is the default one: 13 bandwidths of a
Gaussian from 1/16 of the median distance to 4 times it. "Best" knows the labels: it is the highest score of any
bandwidth that has an embedding, of each column by itself. The default is ``SDPEmbedding()``,
whose kernel has no bandwidth, with all its levels; before it stands its first level alone, which compares with the
others.
"""

from __future__ import annotations

import argparse
import time
import warnings
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from embedding_samples import SAMPLES
from embedding_scores import clusters_found, neighbours_right
from result_page import write_table
from sklearn.exceptions import ConvergenceWarning

from mercer import Gaussian, RankPath, SDPEmbedding, rank_path

RESULT = Path(__file__).parent / "results" / "bandwidth_choice.md"
CHOSEN = (
    "moons", "roll", "clusters", "clusters+10", "wine", "wine+10", "iris", "cancer", "digits", "mnist3000", "marrow",
    "htru2", "covtype", "skin",
)  # fmt: skip
MOST_ROWS, MOST_PRODUCTS = 400, 5000
HEAD = (
    "data", "σ / median", "neighbours kept", "5-NN: suggested", "best", "median", "one level", "default",
    "NMI: suggested", "best", "median", "one level", "default",
)  # fmt: skip


class Score(NamedTuple):
    """How well an embedding tells classes apart."""

    neighbours: float
    clusters: float


def drawn(name: str) -> tuple[Any, Any]:
    X, labels = SAMPLES[name].draw(0)
    rows = np.sort(np.random.default_rng(0).permutation(len(X))[:MOST_ROWS])
    X, labels = X[rows], labels[rows]
    rare = [label for label in np.unique(labels) if label >= 0 and (labels == label).sum() < 5]
    kept = ~np.isin(labels, rare)  # a class needs a member in every fold
    return X[kept], labels[kept]


def score(model: SDPEmbedding, X: Any, labels: Any) -> Score:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        Z = model.fit_transform(X)
    inlier = labels >= 0
    return Score(neighbours_right(Z[inlier], labels[inlier]), clusters_found(Z, labels))


def along(path: RankPath, X: Any, labels: Any) -> dict[float, Score]:
    """The score of every bandwidth that has an embedding worth the name."""
    found = {}
    for entry in path.entries:
        if entry.diagnosis.value in ("informative", "flat", "nearly constant"):
            model = SDPEmbedding(Gaussian(entry.sigma), random_state=0, max_products=MOST_PRODUCTS)
            found[entry.sigma] = score(model, X, labels)
    return found


def measured(name: str) -> list[Any]:
    X, labels = drawn(name)
    path = rank_path(X, random_state=0, max_products=MOST_PRODUCTS)
    scores = along(path, X, labels)
    median = Gaussian().resolve(X).sigma
    best = Score(*(max(column) for column in zip(*scores.values(), strict=True)))
    chosen = path.suggested
    suggested = Score(np.nan, np.nan) if chosen is None else scores[chosen.sigma]
    at_median = scores[min(scores, key=lambda sigma: abs(np.log(sigma / median)))]
    tuned = score(SDPEmbedding(n_levels=1, random_state=0), X, labels)
    default = score(SDPEmbedding(random_state=0), X, labels)
    where = (np.nan, np.nan) if chosen is None else (chosen.sigma / median, chosen.kept)
    table = zip(suggested, best, at_median, tuned, default, strict=True)
    return [name, *where, *(value for column in table for value in column)]


def cells(row: list[Any]) -> list[str]:
    return [str(row[0]), *("none" if np.isnan(value) else f"{value:.3f}" for value in row[1:])]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", choices=CHOSEN)
    only = parser.parse_args().only
    rows = []
    for name in CHOSEN if only is None else (only,):
        start = time.perf_counter()
        rows.append(measured(name))
        print(*cells(rows[-1]), f"{time.perf_counter() - start:.0f} s", flush=True)
    if only is None:
        means = ["mean where one is suggested", *np.mean([row[1:] for row in rows if row[1] > 0], axis=0)]
        lines = [HEAD, ["---"] * len(HEAD), *(cells(row) for row in [*rows, means])]
        write_table(RESULT, "choices", ["| " + " | ".join(line) + " |" for line in lines])


if __name__ == "__main__":
    main()
