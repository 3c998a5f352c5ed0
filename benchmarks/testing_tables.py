"""Statistics of many kernels under relabelling, for every setting of testing_settings.py: to choose a collection by.

    python benchmarks/testing_tables.py --datasets 3 --jobs 2 --out tables.npz      # a minute
    python benchmarks/testing_tables.py --datasets 200 --jobs 16 --out tables.npz

Writes one array a setting, of shape (data sets, kernels, 1 + resamples): nine Gaussians and nine Laplacians with
bandwidths from half the 5 % quantile of the distances to twice the 95 % quantile, and the distance itself (energy).
"""

from __future__ import annotations

import argparse
import time
from concurrent.futures import ProcessPoolExecutor
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from scipy.spatial.distance import pdist, squareform
from testing_settings import TWO_SAMPLES

RESAMPLES, WIDTHS = 199, 9
Array = np.ndarray[Any, Any]


def grams(points: Array) -> list[Array]:
    """The kernel matrices, without their diagonals."""
    found = []
    for metric, power in (("euclidean", 2), ("cityblock", 1)):
        distances = pdist(points, metric)
        low, high = np.quantile(distances[distances > 0], [0.05, 0.95])
        for width in np.geomspace(low / 2, 2 * high, WIDTHS):
            found.append(squareform(np.exp(-((distances / width) ** power)).astype(np.float32)))
    return [*found, squareform(-pdist(points).astype(np.float32))]


def table(key: tuple[str, int]) -> Array:
    """Unbiased MMD² of the data and of all relabellings, up to a constant factor and a constant term."""
    setting, seed = key
    rng = np.random.default_rng([seed, 7])
    X, Y = TWO_SAMPLES[setting](rng)
    labels = np.full(len(X) + len(Y), -1.0 / len(Y), dtype=np.float32)
    labels[: len(X)] = 1.0 / len(X)
    signs = np.stack([labels, *rng.permuted(np.tile(labels, (RESAMPLES, 1)), axis=1)])
    return np.stack([np.einsum("ci,ci->c", signs @ gram, signs) for gram in grams(np.concatenate([X, Y]))])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--datasets", type=int, default=3, help="data sets a setting")
    parser.add_argument("--jobs", type=int, default=2, help="processes side by side")
    parser.add_argument("--minutes", type=float, default=1e9, help="stop after so long")
    parser.add_argument("--out", type=Path, required=True, help="where the arrays go")
    options = parser.parse_args()
    began, found = time.monotonic(), {setting: [] for setting in TWO_SAMPLES}
    keys = [(setting, seed) for seed, setting in product(range(options.datasets), TWO_SAMPLES)]
    with ProcessPoolExecutor(options.jobs) as pool:
        for key, values in zip(keys, pool.map(table, keys), strict=True):
            found[key[0]].append(values)
            if time.monotonic() - began > 60 * options.minutes:
                pool.shutdown(cancel_futures=True)
                break
    np.savez_compressed(options.out, **{setting: np.array(values) for setting, values in found.items()})


if __name__ == "__main__":
    main()
