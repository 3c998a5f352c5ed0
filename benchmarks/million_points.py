"""A certified embedding of up to a million points on their neighbour graph, on two cores, beside UMAP on that graph.

    MERCER_DATA=... python benchmarks/million_points.py                               # all sizes, then the page
    MERCER_DATA=... python benchmarks/million_points.py --data covtype --sizes 1000000 --stages neighbours
    MERCER_DATA=... python benchmarks/million_points.py --data covtype --sizes 1000000 --stages embedding
    python benchmarks/million_points.py --page                                         # the page from the rows at hand

MNIST: 50 principal components. Covtype: its ten quantities, standardised, each position once; beyond those that there
are, copies moved at random by .02. The graph is that of an embedding without a kernel: 15 neighbours, found exactly in
ten dimensions, and in 50 by the library's approximate search where the points are many. Stages: ``neighbours`` finds
them and keeps the kernel in a folder, ``embedding`` solves and proves, ``umap`` runs UMAP from the same neighbours.
Every stage is a process of its own, and what it found a line of the file of rows: a stage that is there is not run
again, so that a run which is cut short goes on where it was. Memory is the peak of the process, data and libraries
included.
"""

from __future__ import annotations

import argparse
import json
import os
import pickle
import resource
import subprocess
import sys
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from result_page import exponent, write_table

RESULTS = Path(__file__).parent / "results"
ROWS, PAGE = RESULTS / "million_points.jsonl", RESULTS / "million_points.md"
SIZES = {"mnist": (10_000, 60_000), "covtype": (10_000, 100_000, 1_000_000)}
STAGES = ("neighbours", "embedding", "umap")
COMPONENTS, JITTER = 50, 0.02


def points(name: str, n: int) -> Any:
    from mercer import datasets
    from mercer.datasets.tables import standardized

    rng = np.random.default_rng(0)
    if name == "mnist":
        data = datasets.load_real("mnist")
        X = data["x_train"].reshape(60_000, -1).astype(np.float32) / 255
        X -= X.mean(axis=0)
        X = (X @ np.linalg.eigh(X.T @ X)[1][:, -COMPONENTS:]).astype(float)
    else:
        X = np.unique(standardized(datasets.load_real("covtype")["X"][:, :10].astype(float)), axis=0)
    X = X[rng.permutation(len(X))]
    moved = X[rng.integers(0, len(X), max(0, n - len(X)))]
    return np.concatenate([X[:n], moved + JITTER * rng.standard_normal(moved.shape)])


def peak_gb() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024**2


# --- stages, each in a process of its own ------------------------------------------------------------------------


def neighbours(name: str, n: int, options: dict[str, Any]) -> dict[str, Any]:
    from mercer import config_context
    from mercer.embedding.default_kernel import default_kernel

    X = points(name, n)
    with config_context(n_threads=options["threads"]):
        default_kernel().resolve(X[:500])  # compiled code is loaded, as in a session
        began = time.perf_counter()
        kernel = default_kernel().resolve(X)
        seconds = time.perf_counter() - began
    kernel_file(name, n, options).write_bytes(pickle.dumps(kernel, protocol=5))
    return {"seconds": seconds, "GB": peak_gb(), "parts": len(kernel.parts_.sizes)}


def embedding(name: str, n: int, options: dict[str, Any]) -> dict[str, Any]:
    from mercer import SDPEmbedding, config_context

    X, tol = points(name, n), options["tol"]
    kernel = pickle.loads(kernel_file(name, n, options).read_bytes())
    settings: dict[str, Any] = {"n_levels": 1, "tol": tol, "residual_tol": tol / 2, "random_state": 0}
    with config_context(n_threads=options["threads"]):
        SDPEmbedding(**settings).fit(X[:3000])  # compiled code is loaded
        began = time.perf_counter()
        model = SDPEmbedding(kernel, verbose=True, **settings).fit(X)
        seconds = time.perf_counter() - began
    c, phases = model.certificate_, model.phase_seconds_
    proof = phases.get("proving the bound", 0.0)
    climb = sum(spent for phase, spent in phases.items() if phase.startswith(("climbing", "solving")))
    return {
        "seconds": seconds, "climb": climb, "proof": proof, "GB": peak_gb(), "gap": c.relative_gap, "by": c.method,
        "chance": c.failure_probability, "rank": model.rank_, "status": model.status_.name,
        "columns": model.n_products_, "proof_columns": c.n_products, "steps": len(model.history_), "phases": phases,
    }  # fmt: skip


def umap(name: str, n: int, options: dict[str, Any]) -> dict[str, Any]:
    try:
        from umap import UMAP
    except ImportError:
        return {"seconds": None, "why": "umap-learn is not installed"}
    X = points(name, n)
    sample = pickle.loads(kernel_file(name, n, options).read_bytes())._sample
    warnings.simplefilter("ignore")
    UMAP(n_neighbors=15).fit(X[:1000])  # compiled code is loaded
    table = nearest(sample, 15)
    began = time.perf_counter()
    UMAP(n_neighbors=15, precomputed_knn=table, n_jobs=options["threads"]).fit(X)
    return {"seconds": time.perf_counter() - began, "GB": peak_gb()}


def nearest(sample: Any, count: int) -> tuple[Any, Any]:
    """Numbers and distances of the nearest points to each, itself first, out of the graph of a kernel."""
    graph, n = sample.graph, sample.graph.shape[0]
    rows = np.repeat(np.arange(n), np.diff(graph.indptr))
    distances = np.sqrt(-graph.data) * np.minimum(sample.scales[rows], sample.scales[graph.indices])
    order = np.lexsort((graph.indices != rows, distances, rows))
    chosen = order[graph.indptr[:-1, None] + np.arange(count)]
    return graph.indices[chosen].astype(np.int32), distances[chosen].astype(np.float32)


def kernel_file(name: str, n: int, options: dict[str, Any]) -> Path:
    folder = Path(options["folder"])
    folder.mkdir(parents=True, exist_ok=True)
    return folder / f"million_points_{name}_{n}.pickle"


# --- rows and the page -------------------------------------------------------------------------------------------


def read_rows(path: Path) -> dict[tuple[str, int, str], dict[str, Any]]:
    """The rows at hand, the last of each stage."""
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    rows = [json.loads(line) for line in lines]
    return {(row["data"], row["n"], row["stage"]): row for row in rows}


def run(name: str, n: int, stage: str, options: dict[str, Any]) -> dict[str, Any]:
    threads = str(options["threads"])
    environment = {**os.environ, "OMP_NUM_THREADS": threads, "NUMBA_NUM_THREADS": threads}
    command = [sys.executable, __file__, "--child", json.dumps([name, n, stage, options])]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False, env=environment)
    if done.returncode:
        raise SystemExit(f"{name} {n} {stage} failed.")
    return {"data": name, "n": n, "stage": stage, **json.loads(done.stdout.strip().splitlines()[-1])}


def table(name: str, rows: dict[tuple[str, int, str], dict[str, Any]]) -> list[str]:
    lines = [
        "| n | neighbours, s | climb, s | proof, s | fit in all, s | GB: neighbours, fit | certified gap | chance | "
        "rank | status | columns, of the last proof | UMAP on the graph, s | UMAP, GB |",
        "|" + " --- |" * 13,
    ]
    sizes = [n for n in SIZES[name] if (name, n, "embedding") in rows]
    for n in sizes:
        near, run, other = (rows.get((name, n, stage), {}) for stage in STAGES)
        lines.append(
            f"| {n} | {near.get('seconds', 0):.1f} | {run['climb']:.1f} | {run['proof']:.1f} | {run['seconds']:.1f} | "
            f"{near.get('GB', 0):.2f}, {run['GB']:.2f} | {run['gap']:.1e} | {run['chance']:.0e} | {run['rank']} | "
            f"{run['status'].lower()} | {run['columns']}, {run['proof_columns']} | {shown(other, 'seconds')} | "
            f"{shown(other, 'GB')} |"
        )
    if len(sizes) < 3:
        return lines
    found = [[rows[name, n, "neighbours"]["seconds"] for n in sizes]]
    found += [[rows[name, n, "embedding"][part] for n in sizes] for part in ("climb", "proof", "seconds", "GB")]
    near, climb, proof, whole, memory = (exponent(sizes, values) for values in found)
    return [*lines, f"| exponent of n | {near} | {climb} | {proof} | {whole} | {memory} of the fit | | | | | | | |"]


def shown(row: dict[str, Any], what: str) -> str:
    return f"{row[what]:.1f}" if row.get(what) is not None else "–"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--child")
    parser.add_argument("--data", choices=tuple(SIZES), nargs="+", default=list(SIZES))
    parser.add_argument("--sizes", type=int, nargs="+")
    parser.add_argument("--stages", choices=STAGES, nargs="+", default=list(STAGES))
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--tol", type=float, default=1e-3)
    parser.add_argument("--folder", default="/tmp/mercer_million_points", help="where kernels are kept between stages")
    parser.add_argument("--rows", type=Path, default=ROWS)
    parser.add_argument("--again", action="store_true", help="run stages whose rows are at hand, too")
    parser.add_argument("--page", action="store_true", help="write the page and run nothing")
    given = parser.parse_args()
    if given.child:
        name, n, stage, options = json.loads(given.child)
        print(json.dumps({"neighbours": neighbours, "embedding": embedding, "umap": umap}[stage](name, n, options)))
        return
    options = {"threads": given.threads, "tol": given.tol, "folder": given.folder}
    for name in () if given.page else given.data:
        for n in given.sizes or SIZES[name]:
            for stage in given.stages:
                if given.again or (name, n, stage) not in read_rows(given.rows):
                    row = run(name, n, stage, options)
                    with given.rows.open("a", encoding="utf-8") as file:
                        file.write(json.dumps(row) + "\n")
                    print(row, flush=True)
    rows = read_rows(given.rows)
    for name in given.data:
        lines = table(name, rows)
        print("\n".join(lines), flush=True)
        if given.rows == ROWS:
            write_table(PAGE, name, lines)


if __name__ == "__main__":
    main()
