"""Nodes chosen for a law beside nodes chosen for a sample of it, and beside Halton points.

    python benchmarks/law_quadratures.py           # writes benchmarks/results/law_quadratures.md: some 20 seconds
    python benchmarks/law_quadratures.py --quick   # 10 and 20 nodes, printed only

The law is the uniform one on [-1, 1]², the kernel that of QUAD section 8, exp(-‖x - y‖²/0.16). All figures are D(v) to
the law itself, from the closed forms. Candidates are the paper's 2016 Halton points, or 500 points drawn from the law,
the median of nine draws.
"""

from __future__ import annotations

import argparse
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from result_page import write_table

from mercer import Box, Gaussian, QuadratureSparsifier
from mercer.datasets import halton_square
from mercer.kernels.integrals.law_sections import law_sections

RESULT = Path(__file__).parent / "results" / "law_quadratures.md"
KERNEL, LAW = Gaussian(sigma=0.4), Box(np.full(2, -1.0), np.full(2, 1.0))
HEAD = (
    "nodes", "2016 Halton points: for the law", "for the sample", "500 draws: for the law", "for the sample",
    "first Halton points, equal weights", "best weights",
)  # fmt: skip
DRAWS = 9


def to_the_law(X: Any, weights: Any) -> float:
    sections = law_sections(KERNEL**2, X, LAW)
    quadratic = 0.5 * weights @ (KERNEL(X) ** 2) @ weights
    return float(quadratic - sections.values @ weights + 0.5 * sections.energy)


def chosen(X: Any, n: int, measure: Any = None) -> float:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # of fewer nodes than were asked for
        model = QuadratureSparsifier(KERNEL, n_nodes=n, measure=measure).fit(X)
    return to_the_law(model.components_, model.weights_)


def row(n: int) -> list[str]:
    halton, rng = halton_square(2016), np.random.default_rng(0)
    samples = [rng.uniform(-1, 1, (500, 2)) for _ in range(DRAWS)]
    figures = [
        chosen(halton, n, LAW),
        chosen(halton, n),
        float(np.median([chosen(X, n, LAW) for X in samples])),
        float(np.median([chosen(X, n) for X in samples])),
        to_the_law(halton[:n], np.full(n, 1 / n)),
        chosen(halton[:n], n, LAW),
    ]
    return [str(n), *(f"{figure:.2e}" for figure in figures)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true")
    quick = parser.parse_args().quick
    rows = [row(n) for n in ((10, 20) if quick else (10, 20, 40, 80))]
    print("\n".join(" ".join(each) for each in rows))
    if not quick:
        lines = [HEAD, ["---"] * len(HEAD), *rows]
        write_table(RESULT, "laws", [f"| {' | '.join(line)} |" for line in lines])


if __name__ == "__main__":
    main()
