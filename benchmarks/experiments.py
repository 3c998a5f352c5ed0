"""The experiments of a paper at full size, their numbers beside the paper's, as one table.

    python benchmarks/experiments.py psd22                       # every experiment whose name begins so
    python benchmarks/experiments.py psd22 --figures /tmp/psd22  # and their pictures
    python benchmarks/experiments.py psd22-table1                # one alone; the rest of the table stays

Writes benchmarks/results/experiments_PAPER.md. Experiments on MNIST and HTRU2 need the variable MERCER_DATA.
"""

from __future__ import annotations

import argparse
import os
import platform
import time
from pathlib import Path

import numpy as np

import mercer
from mercer.experiments import CATALOGUE, Comparison, description
from mercer.experiments.report import shown
from mercer.plots import save_figure

RESULTS = Path(__file__).parent / "results"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("prefix", help="what the names begin with, such as psd22 or psd17-fig1")
    parser.add_argument("--figures", type=Path, help="a folder for the pictures")
    arguments = parser.parse_args()
    names = [name for name in CATALOGUE if name.startswith(arguments.prefix)]
    if not names:
        parser.error(f"no experiment begins with {arguments.prefix!r}; there are {', '.join(CATALOGUE)}")
    paper = arguments.prefix.partition("-")[0]
    path = RESULTS / f"experiments_{paper}.md"
    sections = written(path)
    for name in names:
        sections[name] = section(name, arguments.figures)
        ordered = [sections[known] for known in CATALOGUE if known in sections]
        path.write_text(
            "\n".join([header(paper), *ordered]), encoding="utf-8"
        )  # each, so that a failure loses one alone
    print(f"wrote {path}")


def written(path: Path) -> dict[str, str]:
    """The sections of an earlier run by their names."""
    parts = path.read_text(encoding="utf-8").split("\n## ")[1:] if path.exists() else []
    return {part.partition("\n")[0]: f"## {part.rstrip()}\n" for part in parts}


def header(paper: str) -> str:
    machine = f"{platform.machine()}, {os.cpu_count()} cores; NumPy {np.__version__}, mercer {mercer.__version__}"
    return (
        f"# Experiments {paper.upper()}\n\n"
        f"Each experiment with its defaults, by `benchmarks/experiments.py {paper}`; seconds of one run. {machine}.\n"
    )


def section(name: str, figures: Path | None) -> str:
    began = time.perf_counter()
    result = CATALOGUE[name]()
    seconds = time.perf_counter() - began
    if figures is not None:
        figures.mkdir(parents=True, exist_ok=True)
        save_figure(result.figure(), figures / f"{name}.png")
    print(f"{name}: {seconds:.0f} s", *result.comparisons, sep="\n  ", flush=True)
    rows = [row(comparison) for comparison in result.comparisons] or ["| (the paper prints no number) | | | | |"]
    title = [f"## {name}", "", f"{description(name)} {seconds:.0f} s.", ""]
    head = ["| quantity | paper | here | verdict | reason |", "|---|---|---|---|---|"]
    return "\n".join([*title, *head, *rows, ""])


def row(comparison: Comparison) -> str:
    cells = (comparison.quantity, shown(comparison.paper), shown(comparison.measured), comparison.verdict.value)
    return "| " + " | ".join(cell.replace("|", r"\|") for cell in (*cells, comparison.reason)) + " |"


if __name__ == "__main__":
    main()
