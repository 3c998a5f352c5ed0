"""What calls without arguments give: embeddings at their defaults, ours and the peers', on thirteen data sets and more.

    MERCER_DATA=... python benchmarks/embedding_defaults.py --cache rows.jsonl                # all cells, then the page
    MERCER_DATA=... python benchmarks/embedding_defaults.py --cache rows.jsonl --workers 16 --minutes 9 --no-page
    MERCER_DATA=... python benchmarks/embedding_defaults.py --cache rows.jsonl --samples wine iris --methods umap sdp
    MERCER_DATA=... python benchmarks/embedding_defaults.py --cache rows.jsonl --redo sdp sdp10  # measure these anew
    MERCER_DATA=... python benchmarks/embedding_defaults.py --cache rows.jsonl --merge other.jsonl --page

A cell is one method on one sample with one seed. Its row is added to the cache at once, so that a run that was stopped
goes on where it was, and rows of several machines can be merged; of two rows of a cell the later one counts. Cells are
run from the cheap to the dear, every worker on one thread. A page and two pictures are written from the rows:
benchmarks/results/embedding_defaults.md; their text is counted from the rows (embedding_defaults_page.py). Nothing is
fetched from a network. umap-learn and pacmap are in the extra ``bench``.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import platform
import tempfile
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from embedding_peers import METHODS
from embedding_samples import SAMPLES
from embedding_scores import packed_plane, probed_neighbours, scores

Row = dict[str, Any]
Cell = tuple[str, str, int]  # sample, method, seed
RESULTS = Path(__file__).parent / "results"
SEEDS = 3
WARM_UP = 300
_warm: set[tuple[str, bool]] = set()


# --- one cell -------------------------------------------------------------------------------------------------------


def measured(cell: Cell) -> Row:
    """The row of a cell; where the method fails, its sentence."""
    sample, name, seed = cell
    method = METHODS[name]
    X, labels = SAMPLES[sample].draw(seed)
    row: Row = {"sample": sample, "method": name, "seed": seed, "machine": f"{os.cpu_count()} cores"}
    try:
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            warm_up(name, len(X))
            del said[:]
            start = time.perf_counter()
            Z, notes = method.embed(X, seed)
            row["seconds"] = time.perf_counter() - start
        Z = np.asarray(Z, dtype=np.float64)
        row |= {**notes, "warnings": sorted({w.category.__name__ for w in said}), **scores(X, labels, Z)}
        row["neighbours"] = probed_neighbours(Z, labels)
        if seed == 0:
            row["plane"] = packed_plane(Z)
    except Exception as reason:  # a peer that fails on a sample is a result
        row["failed"] = f"{type(reason).__name__}: {reason}"[:300]
    return row


def warm_up(name: str, n: int) -> None:
    """Load and compile on a few points, as in a session that has run before: the first row is not to pay for it."""
    large = METHODS[name].large
    other = large is not None and n >= large
    if (name, other) not in _warm:
        few = np.random.default_rng(0).standard_normal((large if large is not None and other else WARM_UP, 12))
        METHODS[name].embed(few, 0)
        _warm.add((name, other))


def measured_alone(cell: Cell) -> Row:
    """In a worker: mercer's own threads are held to one as well."""
    from mercer import config_context

    with config_context(n_threads=1):
        return measured(cell)


# --- which cells ----------------------------------------------------------------------------------------------------


def wanted(options: argparse.Namespace) -> list[Cell]:
    """The cells asked for, from the cheap to the dear."""
    cells = [
        (sample.name, name, seed)
        for sample in SAMPLES.values()
        if sample.name in (options.samples or SAMPLES) and sample.n_points <= options.most_points
        for name, method in METHODS.items()
        if name in (options.methods or METHODS)
        for seed in range(options.seeds if method.random or sample.share else 1)
    ]
    return sorted(cells, key=expected_cost)


def expected_cost(cell: Cell) -> tuple[float, int]:
    sample, name, seed = cell
    return METHODS[name].cost * (SAMPLES[sample].n_points / 3000) ** 1.5, seed


# --- the cache ------------------------------------------------------------------------------------------------------


def load(path: Path) -> dict[Cell, Row]:
    """Rows by cell, the last of each; a line that was cut off is left out."""
    rows: dict[Cell, Row] = {}
    for line in path.read_text().splitlines() if path.exists() else ():
        try:
            row = json.loads(line)
        except json.JSONDecodeError:
            continue
        rows[row["sample"], row["method"], row["seed"]] = row
    return rows


def store(path: Path, rows: list[Row], mode: str = "a") -> None:
    with path.open(mode) as file:
        file.writelines(json.dumps(row) + "\n" for row in rows)


# --- runs -----------------------------------------------------------------------------------------------------------


def run(cells: list[Cell], path: Path, workers: int, minutes: float) -> None:
    """Measure the cells on workers of one thread each, until all are done or the time is up."""
    start = time.monotonic()
    for done, row in enumerate(finished(cells, workers, start + 60 * minutes), 1):
        store(path, [row])
        print(f"{time.monotonic() - start:6.0f} s {done:4d}/{len(cells)} {told(row)}", flush=True)


def finished(cells: list[Cell], workers: int, end: float) -> Iterator[Row]:
    for library in ("OMP", "OPENBLAS", "MKL", "NUMBA"):  # the workers, which start anew, inherit it
        os.environ[f"{library}_NUM_THREADS"] = "1"
    with multiprocessing.get_context("spawn").Pool(workers) as pool:  # leaving it ends what still runs
        rows = pool.imap_unordered(measured_alone, cells)
        for _ in cells:
            try:
                yield rows.next(timeout=max(0.0, end - time.monotonic()))
            except multiprocessing.TimeoutError:
                print("The time is up: the rest is left for the next run.", flush=True)
                return


def told(row: Row) -> str:
    head = f"{row['sample']:16s} {row['method']:11s} {row['seed']}"
    if "failed" in row:
        return f"{head} {row['failed']}"
    figures = " ".join(f"{key} {row[key]:.3f}" for key in ("nmi", "knn2", "knn", "trust2"))
    return f"{head} {figures} dim {row['dimensions']} {row['seconds']:.2f} s {row.get('ranks', '')}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cache", type=Path, default=Path(tempfile.gettempdir()) / "mercer_embedding_defaults.jsonl")
    parser.add_argument("--merge", type=Path, nargs="+", default=[], help="add the rows of these files to the cache")
    parser.add_argument("--samples", choices=tuple(SAMPLES), nargs="+", metavar="SAMPLE")
    parser.add_argument("--methods", choices=tuple(METHODS), nargs="+", metavar="METHOD")
    parser.add_argument("--redo", choices=tuple(METHODS), nargs="+", default=[], metavar="METHOD")
    parser.add_argument("--most-points", type=int, default=20_000, help="leave larger samples out")
    parser.add_argument("--seeds", type=int, default=SEEDS)
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--minutes", type=float, default=600)
    pages = parser.add_mutually_exclusive_group()
    pages.add_argument("--page", action="store_true", help="measure nothing, write the page from the rows")
    pages.add_argument("--no-page", action="store_true", help="measure only")
    parser.add_argument("--output", type=Path, default=RESULTS, help="a folder")
    options = parser.parse_args()

    rows = load(options.cache)
    for file in options.merge:
        rows |= load(file)
    rows = {cell: row for cell, row in rows.items() if options.page or cell[1] not in options.redo}
    store(options.cache, list(rows.values()), "w")
    if not options.page:
        missing = [cell for cell in wanted(options) if cell not in rows or "failed" in rows[cell]]
        print(f"{len(missing)} cells to measure on {platform.machine()}, {options.workers} workers", flush=True)
        run(missing, options.cache, options.workers, options.minutes)
    if not options.no_page:
        from embedding_defaults_page import write

        write(load(options.cache), options.output)


if __name__ == "__main__":
    main()
