"""Conditional mean embeddings beside kernel ridge regression and a Gaussian process: error, coverage, cost as n grows.

And herding beside random points. ``python benchmarks/conditional_mean.py --write`` writes results/conditional_mean.md.
"""

from __future__ import annotations

import argparse
import time
import tracemalloc
import warnings
from pathlib import Path

import numpy as np
from scipy.stats import norm
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel
from sklearn.kernel_ridge import KernelRidge
from sklearn.model_selection import GridSearchCV

from mercer import ConditionalMeanEmbedding, Gaussian, kernel_herding, mmd

PAGE = Path(__file__).parent / "results" / "conditional_mean.md"
GRID = np.linspace(-1.8, 1.8, 37)[:, None]


def spread(x):
    return 0.1 + 0.2 / (1 + np.exp(-4 * x[:, 0]))


def draw(n, rng):
    x = rng.uniform(-2, 2, size=(n, 1))
    return x, np.sin(2 * x[:, 0]) + spread(x) * rng.normal(size=n)


def ours(x, y):
    return ConditionalMeanEmbedding().fit(x, y).predict(GRID, return_std=True)


def ridge(x, y):
    sigma = Gaussian().resolve(x).sigma
    grid = {"alpha": 10.0 ** np.arange(-5, 2), "gamma": [1 / (part * sigma) ** 2 for part in (1, 0.5, 0.25, 0.125)]}
    return GridSearchCV(KernelRidge(kernel="rbf"), grid, cv=5).fit(x, y).predict(GRID), None


def process(x, y):
    kernel = ConstantKernel() * RBF() + WhiteKernel()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = GaussianProcessRegressor(kernel, normalize_y=True).fit(x, y)
    mean, std = model.predict(GRID, return_std=True)
    noise = model.kernel_.k2.noise_level * model._y_train_std**2
    return mean, np.sqrt(np.maximum(std**2 - noise, 0))  # of the mean, not of a new y


PEERS = {"ConditionalMeanEmbedding()": ours, "KernelRidge, 5-fold search": ridge, "GaussianProcessRegressor": process}


def accuracy(n, repeats):
    truth = np.sin(2 * GRID[:, 0])
    found = {name: [] for name in PEERS}
    for seed in range(repeats):
        x, y = draw(n, np.random.default_rng(seed))
        for name, fit in PEERS.items():
            start = time.perf_counter()
            mean, error = fit(x, y)
            seconds = time.perf_counter() - start
            inside = np.nan if error is None else np.mean(abs(mean - truth) < 1.96 * error)
            found[name].append((np.sqrt(np.mean((mean - truth) ** 2)), inside, seconds))
    for name, rows in found.items():
        error, inside, seconds = np.mean(rows, axis=0)
        yield f"| {n} | {name} | {error:.4f} | {'–' if np.isnan(inside) else f'{inside:.2f}'} | {seconds:.2f} |"


def probabilities(n, repeats):
    rows = []
    for seed in range(repeats):
        x, y = draw(n, np.random.default_rng(seed))
        found, error = ConditionalMeanEmbedding().fit(x, y).expectation(lambda y: y[:, 0] > 0.5, GRID, return_std=True)
        truth = norm.sf((0.5 - np.sin(2 * GRID[:, 0])) / spread(GRID))
        rows.append((np.sqrt(np.mean((found - truth) ** 2)), np.mean(abs(found - truth) < 1.96 * error)))
    error, inside = np.mean(rows, axis=0)
    return f"| {n} | {error:.4f} | {inside:.2f} |"


def cost(n):
    x, y = draw(n, np.random.default_rng(0))
    tracemalloc.start()
    start = time.perf_counter()
    model = ConditionalMeanEmbedding().fit(x, y)
    seconds, peak = time.perf_counter() - start, tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return f"| {n} | {seconds:.2f} | {peak / 2**20:.0f} | {model.features_.shape[1]} |"


def herding(n):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 2))
    kernel = Gaussian().resolve(X)
    start = time.perf_counter()
    plain = kernel_herding(X, 400, kernel=kernel)
    seconds = time.perf_counter() - start
    moved = kernel_herding(X, 100, kernel=kernel, refine=True)
    for t in (10, 50, 100, 400):
        random = np.mean([mmd(X, X[rng.integers(0, n, t)], kernel, squared=False) for _ in range(10)])
        refined = f"{moved.distances[t - 1]:.4f}" if t <= 100 else "–"
        yield f"| {t} | {random:.4f} | {plain.distances[t - 1]:.4f} | {refined} |"
    yield f"\n400 points of {n}: {seconds:.2f} s."


def page(repeats):
    yield "# Conditional mean embeddings and herding\n"
    yield "`python benchmarks/conditional_mean.py --write`, two cores. y = sin 2x + noise that grows from 0.1 to 0.3.\n"
    yield "| n | model | RMS error of the mean | inside 1.96 errors | seconds |\n|---|---|---|---|---|"
    for n in (100, 400, 1600):
        yield from accuracy(n, repeats if n < 1000 else max(2, repeats // 5))
    yield "\nP(y > 0.5 given x) by `expectation`:\n\n| n | RMS error | inside 1.96 errors |\n|---|---|---|"
    yield from (probabilities(n, repeats) for n in (100, 400, 1600))
    yield "\nCost of a fit with its search:\n\n| n | seconds | peak MiB | rank |\n|---|---|---|---|"
    yield from (cost(n) for n in (1000, 4000, 16000, 64000))
    yield "\nDistance (MMD) of t points from a normal sample in the plane:\n"
    yield "| t | random | herding | refined |\n|---|---|---|---|"
    yield from herding(5000)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true", help="write the page under results/")
    parser.add_argument("--repeats", type=int, default=20, help="samples a row")
    arguments = parser.parse_args()
    lines = []
    for line in page(arguments.repeats):
        print(line, flush=True)
        lines.append(line)
    if arguments.write:
        PAGE.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
