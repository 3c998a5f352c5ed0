"""Fits of streams beside the fit of all rows at once: landmarks, mean embeddings, and a detector that watches.

    MERCER_DATA=... python benchmarks/streams.py

Rows of HTRU2 and of Covtype (ten quantities), standardised, in random order, handed over 4000 at a time. *Landmarks*:
``QuadratureSparsifier(n_nodes=100).partial_fit`` beside ``fit`` of all rows, both with their proof; the true
discrepancy D of both from all rows, and the bound that the stream proves without them; the stream again in calls of 100
rows. *Mean embedding*: ``MeanEmbedding(kernel, first).partial_fit``
from the first rows on, its true distance from the embedding of all rows and its bound. *Drift*: the rows after which
``DriftDetector`` notices that half of the columns have moved by 0.3 standard deviations.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import numpy as np
from result_page import write_table

PAGE = Path(__file__).parent / "results" / "streams.md"
ROWS, PORTION, SMALL_PORTION, NODES, FIRST = 40_000, 4000, 100, 100, 500
Table = list[str]


def samples() -> dict[str, Any]:
    from mercer import datasets

    rng = np.random.default_rng(0)
    covtype = datasets.load_real("covtype")["X"][:, :10].astype(float)
    found = {"HTRU2": datasets.htru2()[0], "Covtype": covtype[rng.permutation(len(covtype))[:ROWS]]}
    scaled = {name: (X - X.mean(axis=0)) / X.std(axis=0) for name, X in found.items()}
    return {name: X[rng.permutation(len(X))] for name, X in scaled.items()}


def timed(function: Any) -> tuple[Any, float]:
    began = time.process_time()  # of all threads: other jobs beside do not count
    return function(), time.process_time() - began


def streamed(X: Any, kernel: Any, discrepancy: str, portion: int = PORTION) -> Any:
    import mercer

    model = mercer.QuadratureSparsifier(kernel, n_nodes=NODES, discrepancy=discrepancy)
    for lo in range(0, len(X), portion):
        model.partial_fit(X[lo : lo + portion])
    return proved(model)


def proved(model: Any) -> Any:
    """The model, whose nodes and proof are made by now."""
    return model if model.certificate_ is not None else None


def landmarks(name: str, X: Any) -> Table:
    import mercer

    kernel, lines = mercer.Gaussian("median").resolve(X), []
    streamed(X[:PORTION], kernel, "squared")  # what is compiled and imported on the way
    for discrepancy in ("squared", "mmd"):
        options = {"n_nodes": NODES, "discrepancy": discrepancy}
        stream, slow = timed(lambda d=discrepancy: streamed(X, kernel, d))
        few = timed(lambda d=discrepancy: streamed(X, kernel, d, SMALL_PORTION))[1]
        batch, quick = timed(lambda o=options: proved(mercer.QuadratureSparsifier(kernel, **o).fit(X)))
        true = mercer.verify(stream, X).discrepancy
        cells = [name, len(X), discrepancy, f"{batch.discrepancy_:.2e}", f"{true:.2e}", f"{stream.discrepancy_:.2e}"]
        cells += [
            f"{true / batch.discrepancy_:.2f}",
            f"{stream.discrepancy_ / true:.1f}",
            f"{quick:.2f}",
            f"{slow:.2f}",
            f"{few:.2f}",
        ]
        lines.append(row(cells))
    return lines


def means(name: str, X: Any) -> Table:
    import mercer

    kernel = mercer.Gaussian("median").resolve(X)
    grown, seconds = timed(lambda: mercer.MeanEmbedding(kernel, X[:FIRST]).partial_fit(X[FIRST:]))
    whole = mercer.MeanEmbedding(kernel, X)
    off = (grown - whole).norm()
    first = (mercer.MeanEmbedding(kernel, X[:FIRST]) - whole).norm()
    cells = [name, len(X), f"{first:.2e}", f"{off:.2e}", f"{grown.projection_error:.2e}", f"{seconds:.1f}"]
    return [row(cells)]


def drift(name: str, X: Any) -> Table:
    import mercer

    half = len(X) // 2
    detector = mercer.DriftDetector(false_alarms=1e-4, random_state=0).fit(X[:half])
    quiet = detector.update(X[half : half + 5000])
    detector.reset()
    moved = X[half + 5000 :] + 0.3 * (np.arange(X.shape[1]) % 2)
    _, seconds = timed(lambda: detector.update(moved))
    return [row([name, "yes" if quiet else "no", detector.alarm_at_, f"{len(moved) / seconds:.0f}"])]


def row(cells: list[Any]) -> str:
    return "| " + " | ".join(map(str, cells)) + " |"


HEADS = {
    "landmarks": "data, rows, discrepancy, D of all rows at once, D of the stream, bound of the stream, "
    "stream / batch, bound / D, batch CPU s, stream CPU s, in calls of 100 CPU s",
    "means": "data, rows, distance of the first 500 rows alone, of the stream, its bound, CPU s",
    "drift": "data, alarm in 5000 rows without drift, rows until the alarm, rows a CPU second",
}


def main() -> None:
    for table, make in {"landmarks": landmarks, "means": means, "drift": drift}.items():
        head = HEADS[table].split(", ")
        lines = [row(head), "| --- " * len(head) + "|"]
        for name, X in samples().items():
            lines += make(name, X)
            print(lines[-1])
        write_table(PAGE, table, lines)


if __name__ == "__main__":
    main()
