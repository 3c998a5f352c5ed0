"""Densities that are sums of squares beside kernel density estimates and mixtures of Gaussians.

    MERCER_DATA=... python benchmarks/density_comparison.py           # all, some minutes on two cores
    MERCER_DATA=... python benchmarks/density_comparison.py --quick   # small; writes to a temporary folder
    python benchmarks/density_comparison.py --only known --rows a.json   # known densities alone; or real, unseen
    python benchmarks/density_comparison.py --rows a.json                # the rest, and the page of both

Known densities: the integrated squared error ∫ (p̂ - p)² on a grid, and the mean of log p - log p̂ on fresh points, in
nats. Real data: the mean log-density of points held out. The peers are tuned by a cross-validated mean log-density; the
sums of squares are calls without tuning, which choose by themselves. Also counted: the numbers a model stores and the
seconds of processor time for choosing and fitting (tasks run side by side, each on one thread).
"""

from __future__ import annotations

import argparse
import json
import os
import tempfile
import time
import warnings
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
from density_comparison_page import DISTANCE, KDE, MIXTURE, OURS, Row, document, picture
from scipy.stats import multivariate_normal, norm
from sklearn.datasets import load_breast_cancer, load_diabetes, load_wine
from sklearn.mixture import GaussianMixture
from sklearn.model_selection import GridSearchCV, KFold
from sklearn.neighbors import KernelDensity

from mercer import SumOfSquaresDensity
from mercer.datasets import data_folder, htru2, iris, marrow, wine
from mercer.plots import save_figure

Array = np.ndarray[Any, Any]
RESULTS = Path(__file__).parent / "results"
FOLDS = 3
SEEDS = range(5, 10)  # the first five were looked at when constants were chosen
TOL = 1e-7
BANDWIDTHS = np.geomspace(0.03, 1.5, 20)  # of the mean deviation
COMPONENTS = range(1, 11)
FRESH = 5000
GRID = {1: 4001, 2: 201}


# --- samples ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Known:
    """A density one can draw from, and the box that holds all of it."""

    density: Callable[[Array], Array]
    draw: Callable[[int, np.random.Generator], Array]
    box: tuple[tuple[float, float], ...]


def mixture(weights: Any, means: Any, deviations: Any, box: tuple[float, float]) -> Known:
    """A mixture of normal densities on the line, as those of Marron and Wand (1992)."""
    weights, means, deviations = (np.asarray(v, float) for v in (weights, means, deviations))

    def draw(n: int, rng: np.random.Generator) -> Array:
        chosen = rng.choice(weights.size, n, p=weights)
        return rng.normal(means[chosen], deviations[chosen])[:, None]

    return Known(lambda X: norm.pdf(X, means, deviations) @ weights, draw, (box,))


def plane_mixture() -> Known:
    weights = np.array([0.4, 0.35, 0.25])
    means = np.array([[-1.5, 0.0], [1.0, 1.0], [1.0, -1.5]])
    covariances = np.array([[[0.3, 0.2], [0.2, 0.5]], [[0.6, -0.4], [-0.4, 0.5]], [[0.1, 0.0], [0.0, 0.3]]])
    parts = [multivariate_normal(mean, covariance) for mean, covariance in zip(means, covariances, strict=True)]

    def draw(n: int, rng: np.random.Generator) -> Array:
        counts = rng.multinomial(n, weights)
        X = np.concatenate([p.rvs(c, random_state=rng).reshape(-1, 2) for p, c in zip(parts, counts, strict=True) if c])
        return rng.permutation(X)

    def density(X: Array) -> Array:
        return np.sum([w * p.pdf(X) for w, p in zip(weights, parts, strict=True)], axis=0)

    return Known(density, draw, ((-6.0, 6.0), (-6.0, 6.0)))


def ring(radius: float = 2.0, deviation: float = 0.25) -> Known:
    def draw(n: int, rng: np.random.Generator) -> Array:
        angle, r = rng.uniform(0, 2 * np.pi, n), rng.normal(radius, deviation, n)
        return np.stack([r * np.cos(angle), r * np.sin(angle)], axis=1)

    def density(X: Array) -> Array:
        r = np.maximum(np.linalg.norm(X, axis=1), 1e-12)
        return norm.pdf(r, radius, deviation) / (2 * np.pi * r)

    return Known(density, draw, ((-5.0, 5.0), (-5.0, 5.0)))


KNOWN: dict[str, Known] = {
    "skewed": mixture([0.2, 0.2, 0.6], [0, 0.5, 13 / 12], [1, 2 / 3, 5 / 9], (-7.0, 7.0)),
    "strongly skewed": mixture(
        np.full(8, 1 / 8), 3 * ((2 / 3) ** np.arange(8) - 1), (2 / 3) ** np.arange(8), (-7.0, 7.0)
    ),
    "bimodal": mixture([0.5, 0.5], [-1, 1], [2 / 3, 2 / 3], (-7.0, 7.0)),
    "claw": mixture([0.5, *[0.1] * 5], [0, *(np.arange(5) / 2 - 1)], [1, *[0.1] * 5], (-7.0, 7.0)),
    "mixture, 2-D": plane_mixture(),
    "ring, 2-D": ring(),
}

REAL: dict[str, tuple[Callable[[], Array], int, int]] = {  # the table, rows to fit, rows to hold out
    "iris, 4": (lambda: iris()[0], 100, 50),
    "iris, 4, sphered": (lambda: iris()[0], 100, 50),
    "wine, 3": (lambda: wine()[0][:, [0, 6, 9]], 120, 58),
    "marrow, 2": (lambda: marrow()[:, :2], 1000, 2000),
    "marrow, 5": (lambda: marrow()[:, :5], 1000, 2000),
    "HTRU2, 8": (lambda: htru2(4000)[0], 1000, 2000),
    "HTRU2, 8, sphered": (lambda: htru2(4000)[0], 1000, 2000),
}

UNSEEN: dict[str, tuple[Callable[[], Array], int, int]] = {  # on which no constant of the library was chosen
    "cancer, 4": (lambda: load_breast_cancer().data[:, :4], 380, 189),
    "wine, 5": (lambda: load_wine().data[:, :5], 120, 58),
    "diabetes, 5": (lambda: load_diabetes().data[:, [2, 3, 4, 8, 9]], 300, 142),
    "covtype, 3": (lambda: stored_table("covtype.npz", "X")[:6000, :3], 1000, 2000),
    "marrow, 3": (lambda: marrow()[:, 2:5], 1000, 2000),
    "HTRU2, 4": (lambda: htru2(4000)[0][:, 4:], 1000, 2000),
}


def stored_table(name: str, key: str) -> Array:
    folder = data_folder()
    assert folder is not None
    with np.load(Path(folder) / name) as archive:
        return np.asarray(archive[key], np.float64)


# --- methods ----------------------------------------------------------------------------------------------------


def search(estimator: Any, grid: Any, X: Array, seed: int) -> dict[str, Any]:
    folds = KFold(FOLDS, shuffle=True, random_state=seed)
    return dict(GridSearchCV(estimator, grid, cv=folds, refit=False, error_score=-1e6).fit(X).best_params_)


def squares_likelihood(X: Array, seed: int) -> Any:
    return SumOfSquaresDensity(objective="likelihood", random_state=seed, tol=TOL).fit(X)


def squares_distance(X: Array, seed: int) -> Any:
    return SumOfSquaresDensity(random_state=seed, tol=TOL).fit(X)


def kernel_density(X: Array, seed: int) -> Any:
    deviation = float(np.sqrt(X.var(axis=0).mean()))
    return KernelDensity(**search(KernelDensity(), {"bandwidth": deviation * BANDWIDTHS}, X, seed)).fit(X)


def gaussian_mixture(X: Array, seed: int) -> Any:
    model = GaussianMixture(random_state=seed)
    return model.set_params(**search(model, {"n_components": list(COMPONENTS)}, X, seed), n_init=3).fit(X)


METHODS = {OURS: squares_likelihood, DISTANCE: squares_distance, KDE: kernel_density, MIXTURE: gaussian_mixture}


def stored(model: Any) -> int:
    """The numbers a model needs to evaluate its density."""
    if isinstance(model, SumOfSquaresDensity):
        sections = model.support_.size + 1 if model.sections_ is None else model.sections_.n_numbers
        return int(sections + model.factor_.size)
    if isinstance(model, KernelDensity):
        return int(np.asarray(model.tree_.data).size + 1)
    d = model.means_.shape[1]
    return int(model.n_components * (1 + d + d * (d + 1) // 2) - 1)


def chosen(model: Any) -> str:
    if isinstance(model, SumOfSquaresDensity):
        if model.sections_ is None:
            return f"σ {model.kernel_.sigma:.2g}, rank {model.rank_}"
        kind = "bumps" if model.sections_.roots.shape[0] < model.sections_.means.shape[0] else "parts"
        return f"{model.sections_.means.shape[0]} {kind}, rank {model.rank_}"
    return f"h {model.bandwidth:.2g}" if isinstance(model, KernelDensity) else f"{model.n_components} parts"


# --- runs -------------------------------------------------------------------------------------------------------


def fitted(method: str, X: Array, seed: int) -> tuple[Any, Row]:
    began = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # searches stop early on purpose; the gap of the last fit is in its row
        model = METHODS[method](X, seed)
    row = {"seconds": time.process_time() - began, "stored": stored(model), "chosen": chosen(model)}
    if isinstance(model, SumOfSquaresDensity):
        gap = model.certificate_.upper - model.certificate_.lower
        row["gap"] = gap if model.objective == "likelihood" else gap / model.sample_norm_**2
    return model, row


def known_task(name: str, n: int, seed: int) -> list[Row]:
    known, rng = KNOWN[name], np.random.default_rng([seed, n])
    X, fresh = known.draw(n, rng), known.draw(FRESH, rng)
    axes = [np.linspace(low, high, GRID[len(known.box)]) for low, high in known.box]
    grid = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, len(axes))
    cell, truth = np.prod([axis[1] - axis[0] for axis in axes]), known.density(grid)
    rows = []
    for method in METHODS:
        model, row = fitted(method, X, seed)
        values = np.exp(model.score_samples(grid))
        row["ise"] = float(np.sum((values - truth) ** 2) * cell)
        row["loss"] = float(np.mean(np.log(known.density(fresh)) - model.score_samples(fresh)))
        if seed in (0, SEEDS[0]) and len(axes) == 1:
            row["curve"] = [float(f"{value:.4g}") for value in values]
        rows.append({"kind": "known", "name": name, "n": n, "seed": seed, "method": method} | row)
    return rows


def real_task(name: str, n: int, seed: int) -> list[Row]:
    load, rows_to_fit, rows_held_out = (REAL | UNSEEN)[name]
    table = load()
    order = np.random.default_rng(seed).permutation(len(table))
    X, fresh = table[order[: min(n, rows_to_fit)]], table[order[-rows_held_out:]]
    centre, scale = X.mean(axis=0), X.std(axis=0)
    X, fresh = (X - centre) / scale, (fresh - centre) / scale
    shift = 0.0
    if name.endswith("sphered"):
        root = np.linalg.cholesky(np.linalg.inv(np.cov(X.T)))
        X, fresh, shift = X @ root, fresh @ root, float(np.linalg.slogdet(root)[1])
    rows = []
    for method in METHODS:
        model, row = fitted(method, X, seed)
        scores = model.score_samples(fresh) + shift  # per unit of the standardised columns
        row |= {"score": float(np.mean(scores)), "median": float(np.median(scores)), "worst": float(np.min(scores))}
        rows.append(
            {"kind": "real" if name in REAL else "unseen", "name": name, "n": len(X), "seed": seed, "method": method}
            | row
        )
    return rows


def tasks(only: str | None, quick: bool) -> list[tuple[Callable[[str, int, int], list[Row]], str, int, int]]:
    seeds, sizes = (range(2), (100,)) if quick else (SEEDS, (200, 1000))
    out: list[tuple[Callable[[str, int, int], list[Row]], str, int, int]] = []
    if only in (None, "known"):
        out += [(known_task, name, n, seed) for name in KNOWN for n in sizes for seed in seeds]
    chosen_tables = {"real": list(REAL), "unseen": list(UNSEEN), "known": []}
    for name in [*REAL, *UNSEEN] if only is None else chosen_tables[only]:
        if data_folder() is None and name.split(",")[0] in ("marrow", "HTRU2", "covtype"):
            print(f"{name} is left out: MERCER_DATA names no folder with real data.")
            continue
        out += [(real_task, name, 150 if quick else 10**6, seed) for seed in seeds]
    return out


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--only", choices=("known", "real", "unseen"))
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--rows", type=Path, help="a file that keeps the rows of runs, for a page of several")
    parser.add_argument("--output", type=Path, help="a folder for the page and the picture")
    options = parser.parse_args()
    partial = options.quick or options.only is not None
    earlier = json.loads(options.rows.read_text()) if options.rows is not None and options.rows.exists() else None
    kept: list[Row] = [] if earlier is None else earlier["rows"]
    done_before = {(row["name"], row["seed"]) for row in kept}
    folder = options.output or (Path(tempfile.gettempdir()) / "mercer_density" if partial else RESULTS)
    folder.mkdir(parents=True, exist_ok=True)
    for variable in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS"):  # of the processes, which must not fight
        os.environ[variable] = "1"
    began, rows, spent = time.perf_counter(), kept, 0.0 if earlier is None else earlier["seconds"]
    todo = [task for task in tasks(options.only, options.quick) if (task[1], task[3]) not in done_before]
    with ProcessPoolExecutor(options.processes, mp_context=get_context("spawn")) as pool:
        for done in [pool.submit(*task) for task in todo]:
            rows += done.result()
            last = rows[-1]
            print(
                f"{time.perf_counter() - began:.0f} s: {last['name']}, n = {last['n']}, seed {last['seed']}", flush=True
            )
    spent += time.perf_counter() - began
    if options.rows is not None:
        options.rows.write_text(json.dumps({"rows": rows, "seconds": spent}))
    settings = {"folds": FOLDS, "processes": options.processes, "quick": options.quick, "seconds": spent}
    text = document(rows, settings)
    (folder / "density_comparison.md").write_text(text, encoding="utf-8")
    if any(row["kind"] == "known" for row in rows):
        lines = {name: known for name, known in KNOWN.items() if len(known.box) == 1}
        save_figure(picture(rows, lines, GRID[1]), folder / "density_comparison.png")
    print(f"written to {folder}")


if __name__ == "__main__":
    main()
