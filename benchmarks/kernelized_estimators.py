"""Kernelised ridge regression beside scikit-learn's Nystroem and RBFSampler: error and time as the sample grows.

    MERCER_DATA=... python benchmarks/kernelized_estimators.py --quick          # small: a minute on two cores
    MERCER_DATA=... python benchmarks/kernelized_estimators.py                  # n up to 50 000, some minutes
    MERCER_DATA=... python benchmarks/kernelized_estimators.py --sizes 10000 100000 500000 --features 1000

Forest cover types (54 columns, standardised): a classification into seven, and a regression of the elevation on the
other columns. The linear estimator is the same behind all features, ``RidgeClassifier`` or ``Ridge``, and so are
kernel, bandwidth (the median distance) and penalty. Features and estimators work in double precision.

    error    share of 20 000 points held out that are put into the wrong class; 1 - R² of the elevation
    left out share of the trace of the kernel matrix that the features leave out, for those that are a projection
    seconds  to make the features of the training points, and all of the fit; of the quickest of the seeds
    memory   at the peak of the fit, beyond the data

Where all points fit (up to ``--exact``, 5000), the kernel method itself stands below: ours on all points and, for the
regression, scikit-learn's ``KernelRidge``, which has no intercept where ``Ridge`` has one.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from peak_memory import PeakMemory
from quadrature_field_page import machine
from sklearn.base import BaseEstimator, clone
from sklearn.kernel_approximation import Nystroem, RBFSampler
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import Ridge, RidgeClassifier
from sklearn.pipeline import make_pipeline

from mercer import Gaussian, Kernelized, config_context
from mercer.datasets import load_real

Array = np.ndarray[Any, Any]
RESULTS = Path(__file__).parent / "results" / "kernelized_estimators.md"
HELD_OUT = 20_000
PENALTY = 0.1
DRAWN, UNIFORM = "Kernelized, drawn", "Kernelized, uniform"


class Task(NamedTuple):
    """A sample cut in two, and the linear estimator that learns it."""

    title: str
    X: Array
    y: Array
    new: Array
    truth: Array
    estimator: BaseEstimator
    sigma: float


class Row(NamedTuple):
    """What one way costs and how well it does; None where that has no meaning."""

    task: str
    n: int
    way: str
    features: int
    error: float
    left_out: float | None
    feature_seconds: float | None
    seconds: float
    gigabytes: float


def tasks(n: int) -> list[Task]:
    """Both tasks on n training points."""
    data = load_real("covtype")
    order = np.random.default_rng(0).permutation(len(data["y"]))
    X, y = data["X"].astype(np.float64)[order], data["y"][order].astype(np.int64)
    spread = X.std(axis=0)
    X = (X - X.mean(axis=0)) / np.where(spread > 0, spread, 1.0)
    X[:, 10:] *= 0.5  # indicators: a rare soil would otherwise be as far from all others as the moon
    return [
        _task("cover type", X, y, n, RidgeClassifier(alpha=PENALTY, solver="cholesky")),
        _task("elevation", X[:, 1:], X[:, 0], n, Ridge(alpha=PENALTY, solver="cholesky")),
    ]


def _task(title: str, X: Array, y: Array, n: int, estimator: BaseEstimator) -> Task:
    sigma = float(Gaussian("median").resolve(np.ascontiguousarray(X[:2000])).sigma)
    data, new = np.ascontiguousarray(X[HELD_OUT : HELD_OUT + n]), np.ascontiguousarray(X[:HELD_OUT])
    return Task(title, data, y[HELD_OUT : HELD_OUT + n], new, y[:HELD_OUT], estimator, sigma)


def ways(task: Task, m: int, seed: int) -> dict[str, tuple[BaseEstimator, int]]:
    """The estimators that are compared, by name, with their numbers of features."""
    n, gamma = len(task.X), 1 / task.sigma**2
    rows = np.random.default_rng(seed).choice(n, min(m, n), replace=False)

    def behind(features: BaseEstimator) -> BaseEstimator:
        return make_pipeline(features, clone(task.estimator))

    def ours(landmarks: Any) -> BaseEstimator:
        return Kernelized(clone(task.estimator), Gaussian(task.sigma), landmarks=landmarks, random_state=seed)

    many = 4 * m
    return {
        DRAWN: (ours(m), m),
        UNIFORM: (ours(rows), m),
        "Nystroem": (behind(Nystroem(gamma=gamma, n_components=m, random_state=seed)), m),
        "RBFSampler": (behind(RBFSampler(gamma=gamma, n_components=m, random_state=seed)), m),
        f"RBFSampler, {many}": (behind(RBFSampler(gamma=gamma, n_components=many, random_state=seed)), many),
        "linear": (clone(task.estimator), task.X.shape[1]),
    }


def exact_ways(task: Task) -> dict[str, tuple[BaseEstimator, int]]:
    """The kernel method on all points: ours, and scikit-learn's where it has one."""
    n, gamma = len(task.X), 1 / task.sigma**2
    found: dict[str, tuple[BaseEstimator, int]] = {
        "Kernelized, all points": (Kernelized(clone(task.estimator), Gaussian(task.sigma)), n)
    }
    if isinstance(task.estimator, Ridge):
        found["KernelRidge"] = (KernelRidge(alpha=PENALTY, kernel="rbf", gamma=gamma), n)
    return found


def measured(task: Task, way: str, model: BaseEstimator, features: int) -> Row:
    """Fit once, and judge on the points held out."""
    with PeakMemory() as memory:
        start = time.perf_counter()
        model.fit(task.X, task.y)
        seconds = time.perf_counter() - start
    error = 1 - float(model.score(task.new, task.truth))
    left_out, count = None, features
    if isinstance(model, Kernelized):
        left_out, count = model.trace_left_out_ / model.trace_, model.indices_.size
    return Row(
        task.title, len(task.X), way, count, error, left_out, feature_seconds(task, model), seconds, memory.peak / 1e9
    )


def feature_seconds(task: Task, model: BaseEstimator) -> float | None:
    """Seconds that the features of the training points take, without the estimator behind them."""
    if isinstance(model, Kernelized):
        made = clone(model).set_params(estimator=Nothing())
    elif hasattr(model, "steps"):
        made = clone(model[0])
    else:
        return None
    start = time.perf_counter()
    made.fit_transform(task.X, task.y)
    return time.perf_counter() - start


class Nothing(BaseEstimator):
    """An estimator that hands its features back."""

    def fit(self, X: Array, y: Any = None) -> Nothing:
        """Learn nothing."""
        return self

    def transform(self, X: Array) -> Array:
        """Return X."""
        return X


def best_of(rows: Sequence[Row]) -> Row:
    """The mean error and share over the seeds, the quickest times, the largest memory."""
    first = rows[0]
    shares = [row.left_out for row in rows if row.left_out is not None]
    times = [row.feature_seconds for row in rows if row.feature_seconds is not None]
    return first._replace(
        error=float(np.mean([row.error for row in rows])),
        left_out=float(np.mean(shares)) if shares else None,
        feature_seconds=min(times) if times else None,
        seconds=min(row.seconds for row in rows),
        gigabytes=max(row.gigabytes for row in rows),
    )


def run(sizes: Sequence[int], m: int, seeds: int, exact: int, most: int, say: Callable[[str], None]) -> list[Row]:
    """Every way on every size; more seeds where they are cheap."""
    rows = []
    for n in sizes:
        for task in tasks(n):
            found: dict[str, list[Row]] = {}
            for seed in range(seeds if n <= 50_000 else 1):
                for way, (model, features) in ways(task, m, seed).items():
                    if 8e-9 * n * features > most:
                        say(f"{task.title}, n = {n}, {way}: skipped, its features take more than {most} GB")
                        continue
                    found.setdefault(way, []).append(measured(task, way, model, features))
            if n <= exact:
                for way, (model, features) in exact_ways(task).items():
                    found[way] = [measured(task, way, model, features)]
            for each in found.values():
                rows.append(best_of(each))
                say(" | ".join(cells(rows[-1])))
    return rows


def cells(row: Row) -> list[str]:
    """A row of the table as text."""

    def number(value: float | None, form: str) -> str:
        return "–" if value is None else format(value, form)

    return [
        row.task,
        f"{row.n:,}".replace(",", " "),
        row.way,
        str(row.features),
        f"{row.error:.4f}",
        number(row.left_out, ".3f") if row.left_out is None or row.left_out > 1e-3 else f"{row.left_out:.0e}",
        number(row.feature_seconds, ".2f"),
        f"{row.seconds:.2f}",
        f"{row.gigabytes:.2f}",
    ]


def verdicts(rows: Sequence[Row]) -> list[str]:
    """Counted from the rows: where ours is behind a peer in error or in time."""
    lines = []
    for task, n in dict.fromkeys((row.task, row.n) for row in rows):
        group = {row.way: row for row in rows if (row.task, row.n) == (task, n)}
        ours = group[DRAWN]
        for way in ("Nystroem", "RBFSampler", *(name for name in group if name.startswith("RBFSampler,"))):
            if way not in group:
                continue
            other = group[way]
            lines.append(
                f"- {task}, n = {n}: error {ours.error / other.error:.2f} times that of {way}, "
                f"seconds of the fit {ours.seconds / other.seconds:.2f} times, of the features "
                f"{(ours.feature_seconds or 0) / (other.feature_seconds or 1):.2f} times."
            )
    return lines


def page(rows: Sequence[Row], command: str) -> str:
    """The whole page."""
    head = ["task", "n", "way", "features", "error", "left out", "s features", "s fit", "GB"]
    table = [head, ["---"] * len(head), *(cells(row) for row in rows)]
    return "\n".join(
        [
            "# Kernelised estimators beside Nystroem and RBFSampler",
            "",
            f"Written by `{command}` on {machine()}.",
            "",
            __doc__.split("\n\n", 2)[2]
            .strip()
            .replace("    error", "```\n    error", 1)
            .replace("\n\nWhere", "\n```\n\nWhere"),
            "",
            '"Kernelized, drawn" is `landmarks=m`: the pivots of a randomly pivoted Cholesky factorisation of the',
            'whole kernel matrix. "uniform" are rows drawn uniformly, as `Nystroem` draws them.',
            "",
            *("| " + " | ".join(row) + " |" for row in table),
            "",
            "## Ours beside the others",
            "",
            *verdicts(rows),
            "",
        ]
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", type=int, nargs="+", default=[2000, 10_000, 50_000])
    parser.add_argument("--features", type=int, default=300)
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--exact", type=int, default=5000, help="largest n for the method on all points")
    parser.add_argument("--most", type=float, default=8.0, help="gigabytes that the features of a way may take")
    parser.add_argument("--quick", action="store_true", help="two small sizes, nothing written")
    parser.add_argument("--output", type=Path, default=RESULTS)
    options = parser.parse_args()
    sizes, seeds = ([1000, 4000], 1) if options.quick else (options.sizes, options.seeds)
    with config_context(memory_limit=f"{4 * options.most}GB"):
        run([500], 50, 1, 500, options.most, lambda line: None)  # compiled code is loaded
        rows = run(sizes, options.features, seeds, options.exact, options.most, print)
    if not options.quick:
        command = (
            f"benchmarks/kernelized_estimators.py --sizes {' '.join(map(str, sizes))} --features {options.features} "
            f"--seeds {seeds} --exact {options.exact} --most {options.most:g}"
        )
        options.output.write_text(page(rows, command), encoding="utf-8")


if __name__ == "__main__":
    main()
