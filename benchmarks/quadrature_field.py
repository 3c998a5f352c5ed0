"""Our landmarks beside those of the field, at the same numbers of nodes, on four data sets.

    MERCER_DATA=... python benchmarks/quadrature_field.py                # all four, some twelve minutes on two cores
    MERCER_DATA=... python benchmarks/quadrature_field.py --data halton  # one; what is known of the others stays
    MERCER_DATA=... python benchmarks/quadrature_field.py --quick        # small samples; writes to a temporary folder

Every measured row is kept at once in a temporary folder (--state), so that a run that was stopped goes on where it was;
--fresh forgets the rows of the data sets that are run, --redo METHOD those of one method. The page, tables and the text
above them, is written anew from the rows each time: benchmarks/results/quadrature_field.md. The text is counted from
the rows (quadrature_field_page.py), so that no later run can make it false.

For every choice of nodes I with weights v:
    D_{K²}     (ω - v)ᵀ(K∘K)(ω - v), with the weights of the method and with the best weights v ≥ 0 on the same nodes
    directions how many of the first min(m, 100) approximate eigendirections have Υ ≥ 0.99 (0.95): of the canonical
               extension with either weights, and of Rayleigh-Ritz on the span of the nodes' kernel sections
    ‖K-K̂‖/‖K‖  of the completion K_·I K_II⁺ K_I· in Frobenius norm, over all rows or over 1000 random ones
    test error of ridge regression on the Nyström features
    seconds    to choose; with --retime taken anew at the end, side by side and the least of three
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from landmark_choices import METHODS, OURS, SAMPLED, Landmarks, Unavailable, optimal_weights, selections
from quadrature_field_page import document

from mercer import Gaussian, GramOperator, nystrom
from mercer.datasets import data_folder, load_real
from mercer.datasets.tables import htru2, marrow
from mercer.kernels.base import Kernel
from mercer.problems import Discrepancy

Array = np.ndarray[Any, Any]
Row = dict[str, Any]
RESULTS = Path(__file__).parent / "results" / "quadrature_field.md"
COUNTS = (20, 50, 100, 200, 500)
QUICK_COUNTS, QUICK_POINTS = (20, 50), 1000
MOST_DIRECTIONS = 100
ROWS_COMPARED = 1000  # of K, where N is above ALL_ROWS
ALL_ROWS = 5000
SHORT = 2.0  # seconds, below which a time is taken three times
RIDGES = 10.0 ** np.arange(-10, 0)


@dataclass(frozen=True)
class Sample:
    """A data set with its kernel, what is predicted on it, and how often random methods are repeated."""

    name: str
    title: str
    X: Array
    kernel: Kernel
    target: Array  # N × c, what is fitted: the columns of a regression, or one-hot classes
    truth: Array  # N × c, what it is judged by
    classes: bool
    error: str
    seeds: int
    seeds_of_directions: int

    @cached_property
    def weights(self) -> Array:
        return np.full(len(self.X), 1 / len(self.X))

    @cached_property
    def gram(self) -> GramOperator:
        return GramOperator(self.kernel, self.X)

    @cached_property
    def problem(self) -> Discrepancy:
        squared = GramOperator(self.kernel**2, self.X)
        return Discrepancy(squared, self.weights, np.ones(len(self.X)))

    @cached_property
    def compared(self) -> tuple[Array, Array]:
        """Rows of K, and which."""
        n = len(self.X)
        rows = np.arange(n) if n <= ALL_ROWS else np.random.default_rng(0).choice(n, ROWS_COMPARED, replace=False)
        return rows, self.gram.block(rows, slice(None))

    @cached_property
    def parts(self) -> tuple[Array, Array, Array]:
        """Half of the points to fit, a fifth to choose the ridge, the rest to judge."""
        order = np.random.default_rng(1).permutation(len(self.X))
        return tuple(np.split(order, [len(order) // 2, (7 * len(order)) // 10]))


# --- data -------------------------------------------------------------------------------------------------------


def halton(n: int | None) -> Sample:
    from scipy.stats import qmc

    X = qmc.Halton(2, scramble=False).random(2017)[1:][:n] * 2 - 1
    smooth = np.sin(4 * X[:, 0]) * np.cos(3 * X[:, 1]) + np.exp(-8 * np.sum((X - 0.3) ** 2, axis=1))
    noisy = smooth + 0.3 * np.random.default_rng(2).standard_normal(len(X))
    title = "Halton points in the square, the example of the paper"
    error = "root mean square error of a smooth function that is seen with noise 0.3, over its deviation"
    return Sample("halton", title, X, Gaussian(sigma=0.4), noisy[:, None], smooth[:, None], False, error, 2, 1)


def pulsars(n: int | None) -> Sample:
    X, y = htru2(n)
    label, error = np.eye(2)[y], "share of candidates misclassified"
    return Sample("htru2", "HTRU2, pulsar candidates", X, _median(X), label, label, True, error, 1, 1)


def digits(n: int | None) -> Sample:
    data = load_real("mnist")
    rows = np.random.default_rng(0).choice(len(data["y_train"]), n or 10_000, replace=False)
    X, y = data["x_train"][rows].reshape(len(rows), -1) / 255.0, data["y_train"][rows]
    label, error = np.eye(10)[y], "share of digits misread"
    return Sample("mnist", "MNIST, images of digits", X, _median(X), label, label, True, error, 1, 1)


def cells(n: int | None) -> Sample:
    data, X = load_real("marrow_pca"), marrow()[:n]
    gene = list(data["marker_names"]).index("MPO")
    target = data["markers"][:n, gene : gene + 1].astype(np.float64)
    error = "root mean square error of the expression of the marker gene MPO, over its deviation"
    title = "Bone marrow, cells by 100 components"
    return Sample("marrow", title, X, _median(X), target, target, False, error, 2, 1)


def _median(X: Array) -> Kernel:
    return Gaussian("median").resolve(X)


SAMPLES: dict[str, Callable[[int | None], Sample]] = {
    "halton": halton,
    "htru2": pulsars,
    "mnist": digits,
    "marrow": cells,
}


# --- measures ---------------------------------------------------------------------------------------------------


def measured(sample: Sample, chosen: Landmarks, m: int, *, directions: bool) -> Row:
    """All columns of one choice."""
    problem, nodes = sample.problem, chosen.indices
    best = optimal_weights(problem.squared, nodes, problem.distortion)
    kept = best > 0
    factor = nystrom(sample.gram, nodes).factor
    row = {
        "nodes": len(nodes),
        "mass": float(chosen.weights.sum()),
        "own": 2 * problem.discrepancy(nodes, chosen.weights),
        "optimal": 2 * problem.discrepancy(nodes[kept], best[kept]),
        "frobenius": frobenius_error(sample, factor),
        "test": test_error(sample, factor),
        "seconds": chosen.seconds,
    }
    return row | (counted_directions(sample, chosen, nodes[kept], best[kept], m) if directions else {})


def counted_directions(sample: Sample, chosen: Landmarks, positive: Array, best: Array, m: int) -> Row:
    from mercer.quadrature.eigenpairs import approximate_eigenpairs

    kinds = {
        "canonical": (chosen.indices, chosen.weights, False),
        "reweighted": (positive, best, False),
        "ritz": (chosen.indices, chosen.weights, True),
    }
    row = {}
    for kind, (nodes, values, refine) in kinds.items():
        if kind == "reweighted" and np.array_equal(nodes, chosen.indices) and np.allclose(values, chosen.weights, 1e-6):
            row |= {f"reweighted{level}": row[f"canonical{level}"] for level in (99, 95)}
            continue
        n = min(m, MOST_DIRECTIONS, len(nodes))
        with warnings.catch_warnings():
            warnings.simplefilter(
                "ignore", UserWarning
            )  # fewer than n above rounding level: the others count as missed
            pairs = approximate_eigenpairs(sample.kernel, sample.X, sample.weights, nodes, values, n, refine=refine)
        for level in (99, 95):
            row[f"{kind}{level}"] = int(np.sum(np.asarray(pairs.upsilon)[:n] >= level / 100))
    return row


def frobenius_error(sample: Sample, factor: Array) -> float:
    """‖K - FFᵀ‖/‖K‖ over the rows compared, a panel at a time."""
    rows, exact = sample.compared
    total = 0.0
    for lo in range(0, len(rows), 256):
        total += float(np.sum((exact[lo : lo + 256] - factor[rows[lo : lo + 256]] @ factor.T) ** 2))
    return float(np.sqrt(total) / np.linalg.norm(exact))


def test_error(sample: Sample, factor: Array) -> float:
    """Ridge regression on the features F: the ridge that is best on the validation part, judged on the test part."""
    fit, choose, judge = sample.parts
    mean = sample.target[fit].mean(axis=0)
    values, vectors = np.linalg.eigh(factor[fit].T @ factor[fit])
    inner = vectors.T @ (factor[fit].T @ (sample.target[fit] - mean))
    slopes = [vectors @ (inner / (np.maximum(values, 0) + ridge * len(fit))[:, None]) for ridge in RIDGES]
    errors = [_error(sample, factor[choose] @ slope + mean, sample.target[choose]) for slope in slopes]
    return _error(sample, factor[judge] @ slopes[int(np.argmin(errors))] + mean, sample.truth[judge])


def _error(sample: Sample, predicted: Array, truth: Array) -> float:
    if sample.classes:
        return float(np.mean(predicted.argmax(axis=1) != truth.argmax(axis=1)))
    return float(np.sqrt(np.mean((predicted - truth) ** 2)) / truth.std())


# --- runs -------------------------------------------------------------------------------------------------------


def run(sample: Sample, counts: tuple[int, ...], state: Row, save: Callable[[], None]) -> None:
    """Fill in the rows that are missing, keeping each at once."""
    for name, method in METHODS.items():
        for seed in range(sample.seeds if method.random else 1):
            have = {row["m"] for row in state["rows"] if row["method"] == name and row["seed"] == seed}
            missing = tuple(m for m in counts if m not in have)
            if not missing:
                continue
            try:
                for m, chosen in selections(name, sample.kernel, sample.X, missing, seed):
                    directions = seed < sample.seeds_of_directions
                    row = {"method": name, "seed": seed, "m": m}
                    row |= {"pass": seconds_of_pass(sample)} if name == OURS else {}
                    state["rows"].append(row | measured(sample, chosen, m, directions=directions))
                    save()
                    print(sample.name, state["rows"][-1], flush=True)
                state["left_out"].pop(name, None)
            except Unavailable as reason:
                state["left_out"][name] = str(reason)
                save()


def retimed(sample: Sample, state: Row, save: Callable[[], None]) -> None:
    """Take the seconds anew, method after method in every cell, so that a busy hour does not fall on one of them alone.

    The least of three where one takes less than SHORT seconds. Herding keeps those that its own process took.
    """
    for row in sorted(state["rows"], key=lambda row: row["m"]):
        if METHODS[row["method"]].choose is None:
            continue
        for repeat in range(3):
            [(_, chosen)] = selections(row["method"], sample.kernel, sample.X, (row["m"],), row["seed"])
            passed = seconds_of_pass(sample) if row["method"] == OURS else None
            if repeat == 0 or chosen.seconds < row["seconds"]:
                row["seconds"] = chosen.seconds
            if passed is not None and (repeat == 0 or passed < row["pass"]):
                row["pass"] = passed
            if chosen.seconds > SHORT:
                break
        save()


def seconds_of_pass(sample: Sample) -> float:
    """Of one product Sω, beside the fit that needs it."""
    began = time.perf_counter()
    GramOperator(sample.kernel**2, sample.X) @ sample.weights
    return time.perf_counter() - began


def warm_up() -> None:
    """Load compiled code on a few points, as in a session that has run before; the first row is not to pay for it."""
    X = np.random.default_rng(0).random((300, 2))
    kernel = Gaussian(sigma=0.5)
    for name, method in METHODS.items():
        if method.choose is not None:
            list(selections(name, kernel, X, (10,)))
    list(selections(SAMPLED, kernel, np.random.default_rng(0).random((7000, 2)), (10,)))


def about(sample: Sample) -> str:
    rows = "all rows" if len(sample.X) <= ALL_ROWS else f"{ROWS_COMPARED} random rows, the same for all"
    by = "" if sample.name == "halton" else ", the median distance"
    return (
        f"N = {len(sample.X)}, {sample.X.shape[1]} columns, Gaussian kernel with σ = {sample.kernel.sigma:.4g}{by}; K "
        f"compared in {rows}. Test error: {sample.error}. Random methods: {sample.seeds} seeds, directions counted in "
        f"{sample.seeds_of_directions or 'none'} of them."
    )


def load(path: Path, settings: Row, options: argparse.Namespace) -> Row:
    state = json.loads(path.read_text()) if path.exists() and not options.fresh else {}
    if state.get("settings") != settings:
        state = {"settings": settings, "rows": [], "left_out": {}}
    state["rows"] = [row for row in state["rows"] if row["method"] not in options.redo]
    return state


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", choices=tuple(SAMPLES), action="append")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument(
        "--without-directions", choices=tuple(SAMPLES), action="append", default=[], help="on a data set"
    )
    parser.add_argument("--fresh", action="store_true")
    parser.add_argument("--redo", choices=tuple(METHODS), action="append", default=[])
    parser.add_argument("--retime", action="store_true", help="take the seconds of all rows anew, side by side")
    parser.add_argument("--report", action="store_true", help="measure nothing, write the page from the kept rows")
    parser.add_argument("--state", type=Path, default=Path(tempfile.gettempdir()) / "mercer_quadrature_field")
    parser.add_argument("--output", type=Path)
    options = parser.parse_args()
    folder = options.state / ("quick" if options.quick else "full")
    folder.mkdir(parents=True, exist_ok=True)
    wanted = [] if options.report else options.data or list(SAMPLES)
    if wanted:
        warm_up()
    for name in wanted:
        if name != "halton" and data_folder() is None:
            print(f"{name} is left out: MERCER_DATA names no folder with real data.")
            continue
        sample = SAMPLES[name](QUICK_POINTS if options.quick else None)
        if name in options.without_directions:
            sample = replace(sample, seeds_of_directions=0)
        path = folder / f"{name}.json"
        counts = QUICK_COUNTS if options.quick else COUNTS
        settings = {"points": list(sample.X.shape), "kernel": str(sample.kernel), "counts": list(counts)}
        state = load(path, settings, options)
        state |= {"title": sample.title, "about": about(sample)}
        save = lambda state=state, path=path: path.write_text(json.dumps(state))  # noqa: E731
        run(sample, counts, state, save)
        if options.retime:
            retimed(sample, state, save)
        path.write_text(json.dumps(state))
    states = {name: json.loads(path.read_text()) for name in SAMPLES if (path := folder / f"{name}.json").exists()}
    output = options.output or (folder / "quadrature_field.md" if options.quick else RESULTS)
    output.write_text(document(states, list(SAMPLES), options.quick))
    print(f"written to {output}")


if __name__ == "__main__":
    main()
