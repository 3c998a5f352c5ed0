"""Maps in the plane: of all certified coordinates, by several methods, and of the data themselves.

    MERCER_DATA=... python benchmarks/plane_maps.py                 # writes benchmarks/results/plane_maps.md
    MERCER_DATA=... python benchmarks/plane_maps.py --only digits   # one sample, printed only

Samples are those of embedding_samples.py, 3000 rows of them at most. Labels are told by five neighbours on the map in
cross-validation; trustworthiness is of ten neighbours, by the data; neighbours kept are the fifteen nearest by all
coordinates of ``SDPEmbedding()``, the share of them that are nearest on the map, and the share of points that keep
fewer than a fifth. umap-learn is in the extra ``bench``.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from embedding_samples import SAMPLES
from embedding_scores import neighbours_right, trusted
from result_page import write_table
from sklearn.decomposition import PCA
from sklearn.manifold import TSNE
from umap import UMAP

from mercer import SDPEmbedding, plane_map
from mercer.embedding.neighbourhoods import N_NEIGHBORS, nearest_points, shared
from mercer.embedding.plane import MISPLACED

RESULT = Path(__file__).parent / "results" / "plane_maps.md"
CHOSEN = ("digits", "mnist3000", "marrow")
MOST_ROWS = 3000
HEAD = ("data", "map", "5-NN", "trustworthiness", "neighbours kept", "points that keep fewer than 20 %", "seconds")


def drawn(name: str) -> tuple[Any, Any]:
    X, labels = SAMPLES[name].draw(0)
    rows = np.sort(np.random.default_rng(0).permutation(len(X))[:MOST_ROWS])
    return X[rows], labels[rows]


def maps(X: Any, E: Any) -> dict[str, Callable[[], Any]]:
    """The maps by name; E has all coordinates of X."""
    return {
        "all coordinates": lambda: E,
        "the first two": lambda: E[:, :2],
        "PCA of all coordinates": lambda: PCA(2).fit_transform(E),
        "plane_map of all coordinates": lambda: plane_map(E).coordinates,
        "UMAP of all coordinates": lambda: UMAP(random_state=0).fit_transform(E),
        "UMAP of the data": lambda: UMAP(random_state=0).fit_transform(X),
        "t-SNE of the data": lambda: TSNE(random_state=0).fit_transform(X),
    }


def measured(name: str) -> list[list[str]]:
    X, labels = drawn(name)
    start = time.perf_counter()
    E = SDPEmbedding(random_state=0).fit_transform(X)
    print(f"{name}: {E.shape[1]} coordinates, {time.perf_counter() - start:.0f} s", flush=True)
    rows = np.arange(len(X))
    near = nearest_points(E, rows, N_NEIGHBORS)
    lines = []
    for kind, draw in maps(X, E).items():
        start = time.perf_counter()
        Z = np.asarray(draw(), dtype=np.float64)
        seconds = time.perf_counter() - start
        kept = shared(near, nearest_points(Z, rows, N_NEIGHBORS))
        figures = (neighbours_right(Z, labels), trusted(X, Z), kept.mean(), (kept < MISPLACED).mean())
        lines.append([name, kind, *(f"{value:.3f}" for value in figures), f"{seconds:.0f}"])
        print(*lines[-1], flush=True)
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", choices=CHOSEN)
    only = parser.parse_args().only
    lines = [line for name in (CHOSEN if only is None else (only,)) for line in measured(name)]
    if only is None:
        table = [HEAD, ["---"] * len(HEAD), *lines]
        write_table(RESULT, "maps", ["| " + " | ".join(line) + " |" for line in table])


if __name__ == "__main__":
    main()
