"""How long a fit of few points takes: what Python, checks and threads cost where there is hardly arithmetic.

    git worktree add --detach /tmp/before 940daca                       # the commit to compare with
    python benchmarks/small_fits.py --before /tmp/before                # writes benchmarks/results/small_fits.md
    python benchmarks/small_fits.py                                     # this checkout alone, printed only

``SDPEmbedding(Gaussian("median")).fit(X)`` on two Gaussian clusters in the plane, and ``DiffusionMaps`` of the same
kernel beside it, the fastest of many fits after a warm-up. Each figure comes from processes of its own, in turns with
those of the other checkout, the least of all rounds, so that what else the machine does hits both alike; seconds are
those of a clock. One process has BLAS held to one thread from the start, the other leaves it as it comes.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
from result_page import write_table

RESULT = Path(__file__).parent / "results" / "small_fits.md"
HERE = Path(__file__).parents[1]
SIZES = (20, 50, 100, 200, 500)
ROUNDS, SECONDS = 2, 1.0


def points(n: int) -> Any:
    X = 0.5 * np.random.default_rng(0).standard_normal((n, 2))
    X[n // 2 :] += 4.0
    return X


def child(n: int) -> dict[str, Any]:
    """The fastest fit of each estimator, in milliseconds, and what the embedding found."""
    from mercer import DiffusionMaps, Gaussian, SDPEmbedding

    X = points(n)
    model, embedding = fastest(lambda: SDPEmbedding(Gaussian("median"), random_state=0).fit(X))
    _, maps = fastest(lambda: DiffusionMaps(Gaussian("median"), random_state=0).fit(X))
    return {
        "embedding": embedding, "maps": maps, "gap": model.certificate_.relative_gap, "status": model.status_.name,
        "columns": model.n_products_, "objective": model.certificate_.lower,
    }  # fmt: skip


def fastest(fit: Any) -> tuple[Any, float]:
    for _ in range(3):
        model = fit()
    best, until = np.inf, time.perf_counter() + SECONDS
    while time.perf_counter() < until:
        began = time.perf_counter()
        model = fit()
        best = min(best, time.perf_counter() - began)
    return model, 1e3 * best


def measured(checkout: Path, n: int, one_thread: bool) -> dict[str, Any]:
    environment = {**os.environ, "PYTHONPATH": str(checkout / "src")}
    if one_thread:
        environment |= {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    command = [sys.executable, str(Path(__file__).resolve()), "--child", str(n)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    if done.returncode:
        raise SystemExit(done.stderr)
    return json.loads(done.stdout.strip().splitlines()[-1])


def best_of(checkouts: list[Path], n: int, one_thread: bool) -> list[dict[str, Any]]:
    """The last answer of every checkout with the least of its times; the checkouts take turns."""
    rounds = [[measured(checkout, n, one_thread) for checkout in checkouts] for _ in range(ROUNDS)]
    return [
        {**runs[-1], **{name: min(run[name] for run in runs) for name in ("embedding", "maps")}}
        for runs in zip(*rounds, strict=True)
    ]


def compared(before: Path) -> list[str]:
    lines = [
        "| n | BLAS threads | embedding before, ms | after | ratio | diffusion map before, ms | after | ratio | status "
        "| columns before | after | certified gap before | after |",
        "|" + " --- |" * 13,
    ]
    for n in SIZES:
        for one_thread in (True, False):
            old, new = best_of([before, HERE], n, one_thread)
            if old["status"] != new["status"] or not np.isclose(old["objective"], new["objective"], rtol=1e-6):
                raise SystemExit(f"The two checkouts disagree on {n} points: {old}, {new}.")
            lines.append(
                f"| {n} | {1 if one_thread else 'as they come'} | {old['embedding']:.1f} | {new['embedding']:.1f} | "
                f"{old['embedding'] / new['embedding']:.1f} | {old['maps']:.2f} | {new['maps']:.2f} | "
                f"{old['maps'] / new['maps']:.1f} | {new['status']} | {old['columns']} | {new['columns']} | "
                f"{old['gap']:.0e} | {new['gap']:.0e} |"
            )
            print(lines[-1], flush=True)
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--child", type=int)
    parser.add_argument("--before", type=Path)
    arguments = parser.parse_args()
    if arguments.child:
        print(json.dumps(child(arguments.child)))
    elif arguments.before:
        write_table(RESULT, "fits", compared(arguments.before.resolve()))
    else:
        for n in SIZES:
            print(n, best_of([HERE], n, True)[0], flush=True)


if __name__ == "__main__":
    main()
