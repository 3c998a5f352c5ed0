"""Level and power of the tests of conditional independence, of goodness of fit, and of single columns.

    python benchmarks/testing_more.py                                   # 40 data sets a cell, printed: some minutes
    python benchmarks/testing_more.py --datasets 1000 --jobs 16 --minutes 6 --write   # another machine

Rates of p-values of at most 0.05, from 199 resamples. ``--write`` makes benchmarks/results/testing_more.md. Partial
correlation is the correlation of what linear regressions on Z leave, against Student's law.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from scipy import stats
from testing_runner import gathered

from mercer import SumOfSquaresDensity, conditional_independence_test, explain_difference, stein_test

RESULT = Path(__file__).parent / "results" / "testing_more.md"
LEVEL, RESAMPLES = 0.05, 199
Pair = tuple[Any, Any]

# What Z does to X and Y, and what noise e of X goes into Y beside its own noise f.
SHAPES: dict[str, Callable[[Any, Any, Any, float], Pair]] = {
    "straight lines": lambda z, e, f, effect: (z + e, z + f + effect * e),
    "curves": lambda z, e, f, effect: (np.tanh(2 * z) + 0.5 * e, z**2 + 0.5 * f + 0.5 * effect * e),
    "sharp curves": lambda z, e, f, effect: (np.sin(3 * z) + 0.3 * e, np.sin(3 * z) + 0.3 * f + 0.3 * effect * e),
    "noise grows with Z": lambda z, e, f, effect: (z + abs(z) * e, z**2 + abs(z) * f + effect * abs(z) * e),
    "a square": lambda z, e, f, effect: (z + e, z + f + effect * (e**2 - 1)),
    "the sign of Z decides": lambda z, e, f, effect: (z + e, z + f + effect * e * np.sign(z)),
}


def partial_correlation(x: Any, y: Any, Z: Any) -> float:
    basis = np.linalg.qr(np.column_stack([np.ones(len(x)), Z]))[0]
    r = float(np.corrcoef(*(v - basis @ (basis.T @ v) for v in (x, y)))[0, 1])
    freedom = len(x) - 2 - Z.shape[1]
    return float(2 * stats.t.sf(abs(r) * np.sqrt(freedom / (1 - r**2)), freedom))


def conditional(shape: str, columns: int, n: int, effect: float, seed: int) -> list[float]:
    rng = np.random.default_rng([seed, n, columns])
    Z, (e, f) = rng.normal(size=(n, columns)), rng.normal(size=(2, n))
    x, y = SHAPES[shape](Z.sum(axis=1) / np.sqrt(columns), e, f, effect)
    options = {"n_resamples": RESAMPLES, "rng": seed}
    ours = [conditional_independence_test(x, y, Z, method=way, **options).pvalue for way in ("neighbours", "residuals")]
    return [*ours, partial_correlation(x, y, Z)]


def fit(case: str, n: int, seed: int) -> list[float]:
    """P-values by signs and by samples: of a normal law, and of a density fitted to other rows or to the same."""
    rng = np.random.default_rng([seed, n])
    options: dict[str, Any] = {"n_resamples": RESAMPLES, "rng": seed}
    if case in ("normal", "a shift of 0.3", "Student's law, 5 degrees of freedom"):
        X = rng.normal(size=(n, 2)) if case == "normal" else rng.normal(0.3, size=(n, 2))
        X = rng.standard_t(5, size=(n, 2)) * np.sqrt(3 / 5) if case.startswith("Student") else X
        density: Any = lambda x: -x  # noqa: E731
        options["sampler"] = lambda count, draws: draws.normal(size=(count, 2))
    else:
        first = rng.normal(size=(2 * n, 1)) + 2.0 * rng.integers(0, 2, (2 * n, 1))
        density = SumOfSquaresDensity(support=15, random_state=seed).fit(first[:n])
        X = {"its own sample": density.sample(n, random_state=seed), "the rows of the fit": first[:n]}.get(case)
        X = first[n:] if X is None else X
    return [stein_test(density, X, null=way, **options).pvalue for way in ("wild bootstrap", "parametric bootstrap")]


def columns(case: str, n: int, seed: int) -> list[float]:
    """The least corrected p-value of columns that do not differ, and the p-value of the one that does."""
    rng, d = np.random.default_rng([seed, n]), 10
    pooled = 0.7 * rng.normal(size=(2 * n, 1)) + rng.normal(size=(2 * n, d))
    if case == "rounded":
        pooled = np.round(pooled)
    pooled[:n, 0] += 0.8
    found = explain_difference(pooled[:n], pooled[n:], n_resamples=RESAMPLES, rng=seed, leave_out=False).features
    return [min(feature.pvalue for feature in found[1:]), found[0].pvalue]


def cells() -> list[str]:
    """Names of cells: question | setting | numbers."""
    out = [f"conditional|{shape}|1|{n}|0" for shape in list(SHAPES)[:4] for n in (50, 100, 400)]
    out += [f"conditional|{shape}|4|{n}|0" for shape in list(SHAPES)[:2] for n in (100, 400)]
    out += [f"conditional|{shape}|1|{n}|0.4" for shape in SHAPES for n in (100, 400)]
    out += [f"conditional|{shape}|4|400|0.4" for shape in list(SHAPES)[:2]]
    normal = ("normal", "a shift of 0.3", "Student's law, 5 degrees of freedom")
    fitted = ("its own sample", "rows beside the fit", "the rows of the fit")
    out += [f"fit|{case}|{n}" for case in normal for n in (20, 50, 200)] + [f"fit|{case}|100" for case in fitted]
    return out + [f"columns|{case}|{n}" for case in ("normal", "rounded") for n in (20, 60)]


def study(cell: str, seeds: Sequence[int]) -> list[list[float]]:
    question, case, *numbers = cell.split("|")
    if question == "conditional":
        d, n, effect = int(numbers[0]), int(numbers[1]), float(numbers[2])
        return [conditional(case, d, n, effect, seed) for seed in seeds]
    return [(fit if question == "fit" else columns)(case, int(numbers[0]), seed) for seed in seeds]


HEADS = {
    "conditional": (
        "Conditional independence",
        "| Z does | columns of Z | n | effect | neighbours | residuals | partial correlation |",
    ),
    "fit": ("Goodness of fit", "| sample | n | signs | samples of the density |"),
    "columns": ("Ten columns, of which one differs", "| columns | n of each sample | any false name | the true one |"),
}


def page(found: dict[str, list[list[float]]]) -> str:
    """The tables: rates in per cent."""
    lines: list[str] = []
    for question, (title, head) in HEADS.items():
        rows = [(cell, values) for cell, values in found.items() if cell.startswith(question + "|") and values]
        lines += [f"## {title}", "", head, "|" + " --- |" * (head.count("|") - 1)]
        for cell, values in rows:
            rates = 100 * np.mean(np.array(values) <= LEVEL, axis=0)
            lines.append("| " + " | ".join([*cell.split("|")[1:], *(f"{rate:.1f}" for rate in rates)]) + " |")
        lines += ["", f"{min((len(values) for _, values in rows), default=0)} data sets a row or more.", ""]
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--datasets", type=int, default=40, help="data sets a cell")
    parser.add_argument("--jobs", type=int, default=1, help="processes")
    parser.add_argument("--minutes", type=float, default=1e9, help="begin no more data sets after so long")
    parser.add_argument("--only", help="cells whose name holds this text")
    parser.add_argument("--write", action="store_true", help=f"write {RESULT.name}")
    options = parser.parse_args()
    names = [cell for cell in cells() if options.only is None or options.only in cell]
    text = page(gathered(study, names, range(options.datasets), options.jobs, options.minutes, 10))
    print(text)
    if options.write:
        how = f"python benchmarks/testing_more.py --datasets {options.datasets}"
        RESULT.write_text(
            f"# More tests: level and power\n\nShares of p-values of at most 0.05, in per cent. `{how}`\n\n{text}"
        )


if __name__ == "__main__":
    main()
