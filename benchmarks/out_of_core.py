"""Rows in a file with a memory limit of 1 GB: seconds of the processor and peak memory, beside NumPy arrays.

    MERCER_DATA=... python benchmarks/out_of_core.py                     # all sizes and jobs, then the page
    MERCER_DATA=... python benchmarks/out_of_core.py --size 1000000x54 --jobs "row sums" "mmd"
    python benchmarks/out_of_core.py --page                               # the page from the rows at hand

Points: rows of Covtype (54 columns, standardised) drawn at random and moved by 0.02, and the same with their first 18
columns; double precision, in a file .npy that lies in ``--folder`` and is deleted in the end. Each job is a process of
its own; peak memory is that of the process less what it took before the job, libraries imported. The file is read
before, so that it comes from the system's cache as far as that goes. What was done is a line of the file of rows, and
is not done again.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from result_page import write_table

RESULTS = Path(__file__).parent / "results"
ROWS, PAGE = RESULTS / "out_of_core.jsonl", RESULTS / "out_of_core.md"
SIZES = {"1000000x54": (1_000_000, 54), "10000000x18": (10_000_000, 18)}
LIMIT, SIGMA = "1GB", {54: 6.0, 18: 3.5}
POINTS, LANDMARKS = {54: 1000, 18: 100}, {54: 500, 18: 100}
NYSTROM, WRITTEN = 100, 1_000_000


def make_file(path: Path, n: int, d: int) -> None:
    from mercer import datasets

    X = datasets.load_real("covtype")["X"][:, :d].astype(float)
    X = (X - X.mean(axis=0)) / np.maximum(X.std(axis=0), 1e-9)
    rng = np.random.default_rng(0)
    file = np.lib.format.open_memmap(path, mode="w+", dtype=np.float64, shape=(n, d))
    for lo in range(0, n, 100_000):
        size = min(100_000, n - lo)
        file[lo : lo + size] = X[rng.integers(0, len(X), size)] + 0.02 * rng.standard_normal((size, d))
    file.flush()


# --- jobs: of points, which are rows of a file or an array, each with a line of what it found ----------------------


def kernel_of(X: Any) -> Any:
    import mercer

    return mercer.Gaussian(SIGMA[X.shape[1]])


def some(X: Any) -> Any:
    count = POINTS[X.shape[1]]
    return X[np.arange(0, len(X), len(X) // count)[:count]]


def row_sums(X: Any, folder: Path) -> str:
    import mercer

    return f"mean {mercer.GramOperator(kernel_of(X), X, some(X)).row_sums().mean():.6g}"


def column_sums(X: Any, folder: Path) -> str:
    import mercer

    return f"mean {mercer.GramOperator(kernel_of(X), some(X), X).row_sums().mean():.6g}"


def neighbours(X: Any, folder: Path) -> str:
    from mercer.kernels.neighbours import nearest_to

    _, squares = nearest_to(X, some(X) + 0.01, 15)
    return f"mean distance {np.sqrt(squares).mean():.6g}"


def landmarks(X: Any, folder: Path) -> str:
    import mercer

    count = LANDMARKS[X.shape[1]]
    chosen = mercer.Landmarks(count, strategy="k-means", kernel=kernel_of(X), random_state=0).fit(X)
    return f"{chosen.share_left_out_:.3f} of the trace left out"


def nystrom(X: Any, folder: Path) -> str:
    import mercer
    from mercer.quadrature.features import NystromFeatures

    nodes = np.arange(0, len(X), len(X) // NYSTROM)[:NYSTROM]
    features = NystromFeatures(kernel_of(X), X, nodes)
    part = X if len(X) <= WRITTEN else X[:WRITTEN]
    written = mercer.io.write_rows(features.transform, part, folder / "features.npy")
    return f"{written.shape[0]} × {written.shape[1]} written"


def embedding(X: Any, folder: Path) -> str:
    import mercer

    model = mercer.SDPEmbedding(kernel_of(X), landmarks=LANDMARKS[X.shape[1]], random_state=0).fit(X)
    return f"rank {model.rank_}, gap {model.certificate_.relative_gap:.0e}"


def transform(X: Any, folder: Path) -> str:
    import mercer

    model = mercer.SDPEmbedding(kernel_of(X), landmarks=LANDMARKS[X.shape[1]], random_state=0).fit(X[:5000])
    written = mercer.io.write_rows(model.transform, X, folder / "coordinates.npy")
    return f"{written.shape[0]} × {written.shape[1]} written"


def mmd(X: Any, folder: Path) -> str:
    import mercer

    half = len(X) // 2
    first, second = (X[:half], X[half:]) if isinstance(X, np.ndarray) else halves(folder)
    result = mercer.mmd_test(first, second, kernel_of(X), compress=128, rng=0)
    return f"p = {result.pvalue:.3f}"


def halves(folder: Path) -> Any:
    import mercer

    return (mercer.open_rows(folder / name) for name in ("first.npy", "second.npy"))


JOBS: dict[str, Callable[[Any, Path], str]] = {
    "row sums": row_sums,
    "column sums": column_sums,
    "neighbours": neighbours,
    "landmarks": landmarks,
    "Nyström features": nystrom,
    "embedding": embedding,
    "transform": transform,
    "mmd": mmd,
}


def resident(name: str) -> int:
    """Resident memory of this process now (VmRSS), or at its peak (VmHWM), in KiB."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(f"{name}:"))


def child(job: str, folder: Path, where: str) -> None:
    """Do one job and print its line."""
    import mercer

    mercer.Gaussian(1.0)(np.zeros((10, 3)))
    Path("/proc/self/clear_refs").write_text("5")  # the peak counts from here
    base = resident("VmRSS")
    began = time.process_time()  # of both threads: other jobs beside do not count
    with mercer.config_context(memory_limit=LIMIT, n_threads=2):
        X = np.load(folder / "points.npy") if where == "array" else mercer.open_rows(folder / "points.npy")
        found = JOBS[job](X, folder)
    seconds = time.process_time() - began
    peak = (resident("VmHWM") - base) / 1e6 * 1.024
    print(json.dumps({"job": job, "where": where, "seconds": seconds, "peak_gb": peak, "found": found}))


def run(size: str, jobs: list[str], folder: Path, arrays: bool) -> None:
    done = {(row["size"], row["job"], row["where"]) for row in read_rows()}
    wanted = [(job, where) for job in jobs for where in (("file", "array") if arrays else ("file",))]
    wanted = [each for each in wanted if (size, *each) not in done]
    if not wanted:
        return
    n, d = SIZES[size]
    with tempfile.TemporaryDirectory(dir=folder) as own:
        place = Path(own)
        make_file(place / "points.npy", n, d)
        if any(job == "mmd" for job, _ in wanted):
            points = np.load(place / "points.npy", mmap_mode="r")
            np.save(place / "first.npy", points[: n // 2])
            np.save(place / "second.npy", points[n // 2 :])
        for job, where in wanted:
            command = [sys.executable, __file__, "--child", job, "--folder", own, "--where", where]
            answer = subprocess.run(command, capture_output=True, text=True, env=os.environ, timeout=3600)
            if answer.returncode:
                print(size, job, where, answer.stderr.strip().splitlines()[-1:], file=sys.stderr)
                continue
            row = {"size": size, **json.loads(answer.stdout.strip().splitlines()[-1])}
            with ROWS.open("a") as file:
                file.write(json.dumps(row) + "\n")
            print(row)


def read_rows() -> list[dict[str, Any]]:
    return [json.loads(line) for line in ROWS.read_text().splitlines()] if ROWS.exists() else []


def page() -> None:
    """The table of all rows at hand."""
    rows = read_rows()
    lines = [
        "| points | job | file: processor s | file: peak GB | array: processor s | array: peak GB | found |",
        "| --- " * 7 + "|",
    ]
    for size, (n, d) in SIZES.items():
        for job in JOBS:
            found = {row["where"]: row for row in rows if (row["size"], row["job"]) == (size, job)}
            if "file" not in found:
                continue
            cells = [f"{n} × {d}", job]
            for where in ("file", "array"):
                row = found.get(where)
                cells += ["–", "–"] if row is None else [f"{row['seconds']:.1f}", f"{row['peak_gb']:.2f}"]
            lines.append("| " + " | ".join([*cells, found["file"]["found"]]) + " |")
    write_table(PAGE, "jobs", lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--size", choices=SIZES, nargs="*", default=[*SIZES])
    parser.add_argument("--jobs", choices=JOBS, nargs="*", default=[*JOBS])
    parser.add_argument("--folder", type=Path, default=Path(tempfile.gettempdir()))
    parser.add_argument("--where", default="file")
    parser.add_argument("--no-arrays", action="store_true")
    parser.add_argument("--page", action="store_true")
    parser.add_argument("--child", choices=JOBS)
    options = parser.parse_args()
    if options.child:
        child(options.child, options.folder, options.where)
        return
    for size in [] if options.page else options.size:
        run(size, options.jobs, options.folder, not options.no_arrays)
    page()


if __name__ == "__main__":
    main()
