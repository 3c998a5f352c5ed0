"""Landmarks in the embedding: ours beside random ones and others, as the number of nodes grows.

    MERCER_DATA=... python benchmarks/quadrature_embedding.py               # all data sets, some minutes on two cores
    MERCER_DATA=... python benchmarks/quadrature_embedding.py --data marrow # one; what is known of the others stays
    MERCER_DATA=... python benchmarks/quadrature_embedding.py --quick       # small; writes to a temporary folder

The embedding is solved on all points, then on m weighted landmarks and extended to all. Judged are

    error    ‖Ξ - Ξ'R‖ / ‖Ξ‖ over all points, each weighted by its share of the stationary measure, Ξ of the full solve,
             Ξ' the extension from the landmarks, R the best rotation; the shorter coordinates are padded by zeros
    loss     1 - objective / optimum of the extended directions *on all points*, the optimum from the full solve
    gap      the certified relative gap of the same (verify(..., extended=True)): what one would know without the full
             solve. It costs far more than everything else, so that it is computed for ours and for one random draw
    seconds  to choose the landmarks, to solve on them and to extend, beside those of the full solve

Weights are scaled to sum to the number of points, since the length of coordinates goes with 1/√mass; directions, and so
the certificate, do not depend on it. Rows are kept in a temporary folder as they come; the page is written from them.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from landmark_choices import OURS, Landmarks, optimal_weights, selections
from quadrature_field_page import item, machine
from sklearn.exceptions import ConvergenceWarning

from mercer import DiffusionOperator, Gaussian, GramOperator, SDPEmbedding, verify
from mercer.datasets import data_folder, three_clusters
from mercer.datasets.tables import htru2, marrow, mnist_pair
from mercer.kernels.base import Kernel

Array = np.ndarray[Any, Any]
Row = dict[str, Any]
RESULTS = Path(__file__).parent / "results" / "quadrature_embedding.md"
COUNTS = (20, 50, 100, 200, 500)
QUICK_COUNTS, QUICK_POINTS = (20, 50), 500
REWEIGHTED = "uniform, best weights"
METHODS = {  # and whether they are random
    OURS: False,
    "uniform": True,
    REWEIGHTED: True,
    "k-means, snapped": True,
    "RPCholesky": True,
    "kernel thinning": True,
}
RANDOM = "uniform"
CERTIFIED = (OURS, RANDOM)


@dataclass(frozen=True)
class Sample:
    name: str
    title: str
    X: Array
    kernel: Kernel


def clusters(n: int | None) -> Sample:
    size = 400 if n is None else n // 3
    X, _ = three_clusters(size, size // 10)
    return Sample("clusters", "Three clusters in the plane with outliers", X, Gaussian(sigma=1.2))


def pulsars(n: int | None) -> Sample:
    return Sample("htru2", "HTRU2, a random part", htru2(n or 4000)[0], Gaussian(sigma=5.0))


def digits(n: int | None) -> Sample:
    return Sample("mnist", "MNIST, digits 1 and 4", mnist_pair(n=n or 2000)[0], Gaussian(sigma=10.0))


def cells(n: int | None) -> Sample:
    X = marrow()[:n]
    return Sample("marrow", "Bone marrow", X, Gaussian("median").resolve(X))


SAMPLES: dict[str, Callable[[int | None], Sample]] = {
    "clusters": clusters,
    "htru2": pulsars,
    "mnist": digits,
    "marrow": cells,
}


# --- runs -------------------------------------------------------------------------------------------------------


def fitted(kernel: Kernel, X: Array, landmarks: Any = None) -> tuple[SDPEmbedding, float]:
    began = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # what it reached is in the certificate
        model = SDPEmbedding(kernel, landmarks=landmarks, random_state=0).fit(X)
    return model, time.perf_counter() - began


def chosen(name: str, sample: Sample, counts: tuple[int, ...], seed: int) -> Iterator[tuple[int, Landmarks]]:
    if name != REWEIGHTED:
        yield from selections(name, sample.kernel, sample.X, counts, seed)
        return
    squared = GramOperator(sample.kernel**2, sample.X)
    for m, found in selections("uniform", sample.kernel, sample.X, counts, seed):
        began = time.perf_counter()
        weights = optimal_weights(squared, found.indices, squared @ np.full(len(sample.X), 1 / len(sample.X)))
        seconds = found.seconds + time.perf_counter() - began
        yield m, Landmarks(found.indices[weights > 0], weights[weights > 0], seconds)


def rotated_error(full: SDPEmbedding, other: SDPEmbedding) -> float:
    """The distance of two embeddings of the same points after the best rotation, in the stationary measure."""
    wide = max(full.rank_, other.rank_)
    Xi, Eta = (np.pad(one.embedding_, ((0, 0), (0, wide - one.embedding_.shape[1]))) for one in (full, other))
    weight = full.stationary_[:, None]
    left, _, right = np.linalg.svd(Eta.T @ (weight * Xi))
    return float(np.sqrt(np.sum(weight * (Xi - Eta @ left @ right) ** 2) / np.sum(weight * Xi**2)))


def loss(sample: Sample, full: SDPEmbedding, other: SDPEmbedding) -> float:
    """How far the directions of the extension fall short of the optimum on all points."""
    operator = DiffusionOperator(GramOperator(full.kernel_, sample.X))
    lengths = np.linalg.norm(other.embedding_, axis=1, keepdims=True)
    point = np.sqrt(full.diagonal_)[:, None] * other.embedding_ / np.where(lengths > 0, lengths, 1.0)
    return 1 - float(np.sum(point * (operator @ point))) / full.certificate_.lower


def row_of(sample: Sample, full: SDPEmbedding, found: Landmarks, *, certified: bool) -> Row:
    scale = len(sample.X) / found.weights.sum()
    model, seconds = fitted(sample.kernel, sample.X, (found.indices, found.weights * scale))
    row = {
        "nodes": len(found.indices),
        "error": rotated_error(full, model),
        "loss": loss(sample, full, model),
        "rank": int(model.rank_),
        "choosing": found.seconds,
        "solving": seconds,
    }
    if certified:
        began = time.perf_counter()
        row["gap"] = float(verify(model, sample.X, extended=True, random_state=0).relative_gap)
        row["certifying"] = time.perf_counter() - began
    return row


def run(sample: Sample, counts: tuple[int, ...], seeds: int, state: Row, save: Callable[[], None]) -> None:
    full, seconds = fitted(sample.kernel, sample.X)
    state["full"] = {"seconds": seconds, "rank": int(full.rank_), "gap": float(full.certificate_.relative_gap)}
    for name, random in METHODS.items():
        for seed in range(seeds if random else 1):
            have = {row["m"] for row in state["rows"] if row["method"] == name and row["seed"] == seed}
            missing = tuple(m for m in counts if m not in have and m < len(sample.X) // 2)
            for m, found in chosen(name, sample, missing, seed):
                row = row_of(sample, full, found, certified=name in CERTIFIED and seed == 0)
                state["rows"].append({"method": name, "seed": seed, "m": m} | row)
                save()
                print(sample.name, state["rows"][-1], flush=True)


# --- page -------------------------------------------------------------------------------------------------------


def values(state: Row, name: str, m: int, key: str) -> Array:
    return np.array([row[key] for row in state["rows"] if row["method"] == name and row["m"] == m and key in row])


def counts_of(state: Row) -> list[int]:
    return sorted({row["m"] for row in state["rows"]})


def table(state: Row) -> Iterator[str]:
    yield "| m | landmarks | error | worst seed | loss | worst seed | certified gap | rank | s, choosing | s, solving |"
    yield "|" + " --- |" * 10
    for m in counts_of(state):
        for name in METHODS:
            error, short = values(state, name, m, "error"), values(state, name, m, "loss")
            if error.size:
                gap, several = values(state, name, m, "gap"), error.size > 1
                cells = [
                    f"{error.mean():.3g}",
                    f"{error.max():.3g}" if several else "",
                    f"{short.mean():.2e}",
                    f"{short.max():.2e}" if several else "",
                    f"{gap[0]:.1e}" if gap.size else "",
                    ", ".join(map(str, sorted(set(values(state, name, m, "rank").tolist())))),
                    f"{values(state, name, m, 'choosing').mean():.2g}",
                    f"{values(state, name, m, 'solving').mean():.2g}",
                ]
                yield f"| {m} | {f'**{name}**' if name == OURS else name} | {' | '.join(cells)} |"


def reading(states: dict[str, Row]) -> Iterator[str]:
    """Ours beside random landmarks, counted from the rows."""
    for name, state in states.items():
        for key in ("error", "loss"):
            text = compared(state, key)
            if text:
                yield item(f"{name}, {key}: {text}")
        yield item(f"{name}, time: {times(state)}")


def compared(state: Row, key: str) -> str:
    counts = [m for m in counts_of(state) if values(state, OURS, m, key).size and values(state, RANDOM, m, key).size]
    if not counts:
        return ""
    ours = {m: float(values(state, OURS, m, key).mean()) for m in counts}
    mean = {m: float(values(state, RANDOM, m, key).mean()) for m in counts}
    least = {m: float(values(state, RANDOM, m, key).min()) for m in counts}
    better = [m for m in counts if ours[m] < mean[m]]
    parts = [f"{verb(better, counts)} the mean of random landmarks"]
    parts.append(f"{verb([m for m in counts if ours[m] < least[m]], counts)} the best of their seeds")
    factors = ", ".join(f"{mean[m] / ours[m]:.3g}" if ours[m] > 0 else "∞" for m in counts)
    parts.append(f"mean random / ours {factors} at m = {', '.join(map(str, counts))}")
    others = [other for other in METHODS if other not in (OURS, RANDOM)]
    winners = {
        m: min((values(state, o, m, key).mean(), o) for o in others if values(state, o, m, key).size) for m in counts
    }
    beaten = [f"m = {m} by {winner} (×{ours[m] / best:.3g})" for m, (best, winner) in winners.items() if best < ours[m]]
    parts.append(f"behind another way to choose at {'; '.join(beaten)}" if beaten else "behind no other way to choose")
    return "; ".join(parts) + "."


def verb(where: list[int], counts: list[int]) -> str:
    """At which counts ours is better, said as a range where it is one."""
    if not where:
        return "at no m better than"
    if where == counts:
        return "at every m better than"
    if where == counts[counts.index(where[0]) :]:
        return f"from m = {where[0]} on better than"
    return f"at m = {', '.join(map(str, where))} only better than"


def times(state: Row) -> str:
    parts = []
    for m in counts_of(state):
        ours = values(state, OURS, m, "choosing") + values(state, OURS, m, "solving")
        if ours.size:
            parts.append(f"{ours.mean():.2g} s at m = {m}")
    proofs = [row["certifying"] for row in state["rows"] if "certifying" in row]
    proof = f"; a certificate of the extension {np.median(proofs):.2g} s" if proofs else ""
    return f"all points {state['full']['seconds']:.2g} s; ours, choosing and solving, {', '.join(parts)}{proof}."


HEAD = """The error is the distance to the embedding of the full solve after the best rotation, over all points in the
stationary measure, as a share of its size. The loss is how far the objective of the extension *on all points* falls
short of the optimum, a share of it; the certified gap bounds the loss without the full solve, for ours and for the
first random draw (it costs more than all the rest). "uniform" are random landmarks of equal weight; "uniform, best
weights" are the same rows with the weights v ≥ 0 that minimise the squared-kernel discrepancy, so that nodes and
weights are judged apart. Weights are scaled to sum to N."""


def document(states: dict[str, Row], quick: bool) -> str:
    lines = ["# Landmarks in the embedding", ""]
    if quick:
        lines += ["**A quick run on small samples, to see that everything works: not to be quoted.**", ""]
    lines += [f"Written by `benchmarks/quadrature_embedding.py` on {machine()}.", "", *HEAD.splitlines(), ""]
    lines += ["## What the tables say", "", "Counted from the rows below.", "", *reading(states), ""]
    for name in SAMPLES:
        state = states.get(name)
        if state is None:
            lines += [f"## {name}", "", "Not run.", ""]
            continue
        full = state["full"]
        lines += [f"## {state['title']}", "", state["about"]]
        lines += [f"The full solve: rank {full['rank']}, certified gap {full['gap']:.1e}, {full['seconds']:.2g} s.", ""]
        lines += [*table(state), ""]
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", choices=tuple(SAMPLES), action="append")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--fresh", action="store_true", help="forget the rows of the data sets that are run")
    parser.add_argument("--redo", choices=tuple(METHODS), action="append", default=[], help="forget a method's rows")
    parser.add_argument("--report", action="store_true", help="measure nothing, write the page from the kept rows")
    parser.add_argument("--state", type=Path, default=Path(tempfile.gettempdir()) / "mercer_quadrature_embedding")
    parser.add_argument("--output", type=Path)
    options = parser.parse_args()
    folder = options.state / ("quick" if options.quick else "full")
    folder.mkdir(parents=True, exist_ok=True)
    for name in [] if options.report else options.data or list(SAMPLES):
        if name != "clusters" and data_folder() is None:
            print(f"{name} is left out: MERCER_DATA names no folder with real data.")
            continue
        measure(name, folder / f"{name}.json", options)
    states = {name: json.loads(path.read_text()) for name in SAMPLES if (path := folder / f"{name}.json").exists()}
    output = options.output or (folder / "quadrature_embedding.md" if options.quick else RESULTS)
    output.write_text(document(states, options.quick))
    print(f"written to {output}")


def measure(name: str, path: Path, options: argparse.Namespace) -> None:
    sample = SAMPLES[name](QUICK_POINTS if options.quick else None)
    counts, seeds = (QUICK_COUNTS, 3) if options.quick else (COUNTS, 5)
    settings = {"points": list(sample.X.shape), "kernel": str(sample.kernel), "counts": list(counts)}
    state = json.loads(path.read_text()) if path.exists() and not options.fresh else {}
    if state.get("settings") != settings:
        state = {"settings": settings, "rows": []}
    state["rows"] = [row for row in state["rows"] if row["method"] not in options.redo]
    state["title"] = sample.title
    state["about"] = (
        f"N = {len(sample.X)}, {sample.X.shape[1]} columns, Gaussian kernel with σ = {sample.kernel.sigma:.4g}; "
        f"{seeds} seeds of the random ways to choose."
    )
    fitted(sample.kernel, sample.X[:60])  # compiled code is loaded, as in a session that has run before
    run(sample, counts, seeds, state, lambda: path.write_text(json.dumps(state)))
    path.write_text(json.dumps(state))


if __name__ == "__main__":
    main()
