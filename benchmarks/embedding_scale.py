"""Time, exact columns and memory of a certified embedding as the sample grows, each run in a process of its own.

    MERCER_DATA=... python benchmarks/embedding_scale.py                  # writes benchmarks/results/embedding_scale.md
    MERCER_DATA=... python benchmarks/embedding_scale.py --most 10000     # a part of it, printed only
    MERCER_DATA=... python benchmarks/embedding_scale.py --only 4 --least 30000 --most 30000   # one row, printed only

1. HTRU2, 12 528 points, σ = 10, to a certified gap of 1e-6, beside the papers' power method in plain dense NumPy. That
   one is told beforehand how many steps it needs for the same gap, and computes no certificate.
2. Covtype, its ten quantities standardised, σ = median and median/4, to 1e-3, for n up to 100 000.

Memory is the peak of the process less what it held after imports and reading the data.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
from result_page import write_table

RESULT = Path(__file__).parent / "results" / "embedding_scale.md"
SIZES = (1_000, 3_000, 10_000, 30_000, 100_000)
PULSARS = 12_528


def resident_mb() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def data(name: str, n: int) -> Any:
    from mercer import datasets
    from mercer.datasets.tables import standardized

    if name == "htru2":
        return datasets.htru2(n=n)[0]
    X = datasets.load_real("covtype")["X"][:, :10]
    chosen = np.sort(np.random.default_rng(0).permutation(len(X))[:n])
    return standardized(X)[chosen]


# --- children ---------------------------------------------------------------------------------------------------


def ours(name: str, n: int, sigma: str, tol: float, residual_tol: float) -> dict[str, Any]:
    from mercer import Gaussian, SDPEmbedding

    X = data(name, n)
    SDPEmbedding(Gaussian(sigma=1.0), max_iter=3, certify=False).fit(X[:60])  # compiled code is loaded, as in a session
    width = float(sigma) if name == "htru2" else Gaussian().resolve(X).sigma / float(sigma)
    before, began = resident_mb(), time.perf_counter()
    model = SDPEmbedding(Gaussian(sigma=width), tol=tol, residual_tol=residual_tol, random_state=0).fit(X)
    seconds = time.perf_counter() - began
    c = model.certificate_
    return {
        "n": n, "sigma": width, "seconds": seconds, "MB": resident_mb() - before, "columns": model.n_products_,
        "entries": c.n_products if c.method == "factorisation proof" else 0, "stand_in": c.stand_in_rank,
        "stand_in_columns": model.n_stand_in_products_, "gap": c.relative_gap, "chance": c.failure_probability,
        "method": c.method, "rank": model.rank_, "status": model.status_.name, "lower": c.lower, "upper": c.upper,
        "phases": model.phase_seconds_,
    }  # fmt: skip


def plain_matrix(X: Any, sigma: float) -> Any:
    squares = np.sum(X**2, axis=1)
    K = np.exp(-(squares[:, None] + squares - 2 * X @ X.T) / sigma**2)
    m = K.sum(axis=1)
    A = K / np.sqrt(m[:, None] * m) - np.sqrt(m[:, None] * m) / m.sum()
    s = np.sqrt(np.diagonal(A))
    return s[:, None] * A * s


def plain(n: int, sigma: float, steps: int) -> dict[str, Any]:
    """The papers' Algorithm 1 in NumPy; with steps = 0 the steps needed for a true gap of 1e-6 are counted."""
    from scipy.sparse.linalg import eigsh

    X = data("htru2", n)
    before, began = resident_mb(), time.perf_counter()
    J = plain_matrix(X, sigma)
    H = np.random.default_rng(0).standard_normal((n, 10))
    H /= np.linalg.norm(H, axis=1, keepdims=True)
    for step in range(1, (steps or 500) + 1):
        G = J @ H
        if not steps and step > 10:
            z = np.sum(G * H, axis=1)
            root = 1 / np.sqrt(z)
            top = eigsh(J * root[:, None] * root, k=2, which="LA", v0=np.sqrt(z) * H[:, 0] + 1e-3, tol=1e-10)[0].max()
            if top - 1 <= 1e-6:
                return {"steps": step}
        H = G / np.linalg.norm(G, axis=1, keepdims=True)
    return {"seconds": time.perf_counter() - began, "MB": resident_mb() - before, "steps": step}


def child(*arguments: Any) -> dict[str, Any]:
    command = [sys.executable, __file__, "--child", json.dumps(arguments)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(done.stderr)
    return json.loads(done.stdout.strip().splitlines()[-1])


# --- tables -----------------------------------------------------------------------------------------------------


def chance(run: dict[str, Any]) -> str:
    return "none" if run["chance"] == 0 else f"{run['chance']:.0e}"


def pulsars() -> list[str]:
    steps = child("plain", PULSARS, 10.0, 0)["steps"]
    rival = child("plain", PULSARS, 10.0, steps)
    run = child("ours", "htru2", PULSARS, "10", 1e-6, 1e-4)
    return [
        "| | seconds | MB | steps or exact columns | certified gap | failure probability |",
        "| --- | --- | --- | --- | --- | --- |",
        f"| dense NumPy power method | {rival['seconds']:.1f} | {rival['MB']:.0f} | {steps} steps of 10 | no | |",
        f"| mercer | {run['seconds']:.1f} | {run['MB']:.0f} | {run['columns']} columns, stand-in of rank "
        f"{run['stand_in']} | {run['gap']:.0e} | {chance(run)} |",
        f"| mercer / NumPy | {run['seconds'] / rival['seconds']:.2f} | {run['MB'] / rival['MB']:.3f} | | | |",
    ]


def growth(part: str, least: int, most: int) -> list[str]:
    lines = [
        "| n | σ | seconds | MB | exact columns | entries read by a proof, in columns | stand-in rank | "
        "stand-in columns | rank of B | status | certified gap | by | failure probability |",
        "|" + " --- |" * 13,
    ]
    runs = []
    for n in (size for size in SIZES if least <= size <= most):
        run = child("ours", "covtype", n, part, 1e-3, 2e-3)
        runs.append(run)
        lines.append(
            f"| {n} | {run['sigma']:.3g} | {run['seconds']:.1f} | {run['MB']:.0f} | {run['columns']} | "
            f"{run['entries']} | {run['stand_in']} | {run['stand_in_columns']} | {run['rank']} | "
            f"{run['status']} | {run['gap']:.1e} | "
            f"{run['method']} | {chance(run)} |"
        )
        print(lines[-1], flush=True)
    fitted = f"Fitted exponents of n: {exponents(runs)} (memory where it is above 100 MB)."
    return [*lines, "", *phases(runs), "", fitted]


def phases(runs: list[dict[str, Any]]) -> list[str]:
    """The seconds of every phase that took a hundredth of some run, by the phases' names."""
    names = [name for name in dict.fromkeys(name for run in runs for name in run["phases"])
             if any(run["phases"].get(name, 0.0) > 0.01 * run["seconds"] for run in runs)]  # fmt: skip
    lines = [f"| n | {' | '.join(f'{name}, s' for name in names)} |", "|" + " --- |" * (1 + len(names))]
    for run in runs:
        seconds = [f"{run['phases'].get(name, 0.0):.2f}" for name in names]
        lines.append(f"| {run['n']} | {' | '.join(seconds)} |")
    return lines


def exponents(runs: list[dict[str, Any]]) -> str:
    """The slopes of time, memory and columns on logarithmic axes."""
    parts = []
    for name, least in (("seconds", 0.0), ("MB", 100.0), ("columns", 0.0)):
        kept = [run for run in runs if run[name] > least]
        if len(kept) < 2:
            continue
        slope = np.polyfit(*np.log([[run["n"] for run in kept], [run[name] for run in kept]]), 1)[0]
        parts.append(f"{name} {slope:.2f}")
    return ", ".join(parts)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--child")
    parser.add_argument("--least", type=int, default=SIZES[0])
    parser.add_argument("--most", type=int, default=SIZES[-1])
    parser.add_argument("--only", choices=("htru2", "1", "4"))
    arguments = parser.parse_args()
    if arguments.child:
        name, *rest = json.loads(arguments.child)
        print(json.dumps({"plain": plain, "ours": ours}[name](*rest)))
        return
    sections = {
        "htru2": pulsars,
        "1": lambda: growth("1", arguments.least, arguments.most),
        "4": lambda: growth("4", arguments.least, arguments.most),
    }
    for name, section in sections.items():
        if arguments.only in (None, name):
            lines = section()
            print("\n".join(lines), flush=True)
            if (arguments.least, arguments.most) == (SIZES[0], SIZES[-1]):
                write_table(RESULT, name, lines)


if __name__ == "__main__":
    main()
