"""How often tests reject where there is nothing to be found: rejection rates beside the 99 % band of chance.

    python benchmarks/testing_levels.py                                # 200 data sets a cell, small samples: minutes
    python benchmarks/testing_levels.py --datasets 2000 --jobs 16 --minutes 8 --scores levels.json   # another machine
    python benchmarks/testing_levels.py --from levels.json             # the page of those scores
    python benchmarks/testing_levels.py --from levels.json more.json   # several runs, of other cells or --first, as one
    python benchmarks/testing_levels.py --tests mmd_test --kinds discrete --sizes 10x10 --print

Writes benchmarks/results/testing_levels.md. The null samples and the tests are those of tests/dependence
(level_samples.py, level_harness.py), which the slow tests use too. Cells above the band are run again on five times as
many data sets that were not seen before.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "tests" / "dependence"))

from level_harness import LEVELS, RESAMPLES, SUBJECTS, Found, Rate, band, rates, study  # noqa: E402
from level_samples import SOURCES  # noqa: E402
from testing_runner import gathered, store, stored  # noqa: E402

import mercer  # noqa: E402

RESULT = HERE / "results" / "testing_levels.md"
QUICK_SIZES = ("10x10", "20x50")
SIZES = ("10x10", "10x20", "50x30", "100x200", "500x500")
AGAIN = 5  # times as many data sets for cells above the band
Cells = dict[str, list[Found]]
MARKS = {"in": "", "above": " ▲", "below": " ▽"}

HEAD = f"""# How often tests reject where there is nothing to be found

Written by `benchmarks/testing_levels.py`, whose first lines say how. Each entry has the shares of data sets with a
p-value of at most 0.01, 0.05 and 0.1, in per cent. With 2 000 data sets 99 % of all correct tests lie between
{{bands}} of them. ▲ is above that band, ▽ below it. Resamples: {RESAMPLES}, so that all three levels can be attained
exactly. Sizes are those of X and Y; independence tests have the first number of pairs.

Two samples of one law, or pairs of independent columns: normal (d = 2); Cauchy (d = 2); binomial (3, 0.4); normal
rounded to whole numbers (d = 2); normal with d = 100; an autoregression of which each row correlates by 0.5 with the
row before it. Where statistics tie, as on discrete data, a p-value that counts ties against rejection rejects too
seldom. Then the *sharp* p-value tells whether ties are the only reason: ties broken at random, it is uniform for every
exact test. An asterisk * says that the sharp p-value leaves the band at one of the levels. *three kernels* have fixed
bandwidths, far too narrow for d = 100: all statistics tie there, and the test never rejects. There are n - 1 shifts
of n rows, so that small samples cannot attain small levels by them.
"""


def cells_of(options: argparse.Namespace) -> list[str]:
    """Names of cells: test | kind | size."""
    names = [name for name in SUBJECTS if not options.tests or name in options.tests]
    names = [name for name in names if hasattr(mercer, SUBJECTS[name].function)]
    kinds = options.kinds or list(SOURCES)
    return [f"{name}|{kind}|{size}" for name in names for kind in SUBJECTS[name].kinds(kinds) for size in options.sizes]


def study_cell(cell: str, seeds: Sequence[int]) -> list[Found]:
    name, kind, size = cell.split("|")
    n, m = map(int, size.split("x"))
    try:
        return study(name, kind, n, m, seeds)
    except (ValueError, NotImplementedError) as problem:  # too small for this test: said in the table
        print(f"{cell}: {problem}", file=sys.stderr)
        return []


def computed(options: argparse.Namespace) -> dict[str, Cells]:
    """The p-values of all cells; those of cells above the band anew, on other data sets."""
    began, cells = time.monotonic(), cells_of(options)
    seeds = range(options.first, options.first + options.datasets)
    first = gathered(study_cell, cells, seeds, options.jobs, options.minutes, options.block)
    first = {cell: found for cell, found in first.items() if found}
    left = options.minutes - (time.monotonic() - began) / 60
    above = [
        c
        for c, found in first.items()
        if c.split("|")[0] in EXACT and any(r.verdict == "above" for r in rates(found)[0])
    ]
    seeds = range(10**6, 10**6 + AGAIN * options.datasets)
    again = gathered(study_cell, above, seeds, options.jobs, left, options.block) if above else {}
    return {"first": first, "again": {cell: found for cell, found in again.items() if found}}


EXACT = {name for name, subject in SUBJECTS.items() if subject.exact}


def entry(found: list[Found] | None) -> str:
    """One cell of a table."""
    if not found:
        return "–"
    own, sharp = rates(found)
    text = " ".join(f"{100 * one.share:.1f}{MARKS[one.verdict]}" for one in own)
    return text + ("*" if any(one.verdict != "in" for one in sharp) else "")


def table(name: str, cells: Cells) -> list[str]:
    """The table of one test: sizes by kinds."""
    mine = [cell.split("|")[1:] for cell in cells if cell.startswith(name + "|")]
    kinds, sizes = (list(dict.fromkeys(column)) for column in zip(*mine, strict=True))
    lines = [f"| sizes | {' | '.join(kinds)} |", "|" + " --- |" * (1 + len(kinds))]
    for size in sizes:
        lines.append(f"| {size} | " + " | ".join(entry(cells.get(f"{name}|{kind}|{size}")) for kind in kinds) + " |")
    return lines


def outside(cells: Cells) -> tuple[int, int, int]:
    """Over all cells and levels: entries, those above the band, and those whose sharp p-value is outside."""
    own: list[Rate] = []
    sharp: list[Rate] = []
    for found in cells.values():
        mine, its = rates(found)
        own, sharp = own + mine, sharp + its
    return len(own), sum(r.verdict == "above" for r in own), sum(r.verdict != "in" for r in sharp)


def summary(cells: Cells, again: Cells) -> list[str]:
    exact = {cell: found for cell, found in cells.items() if cell.split("|")[0] in EXACT}
    if not exact:
        return []
    total, above, sharp = outside(exact)
    lines = [
        f"**Tests whose level is exact: {above} of {total} entries above the band** (chance puts up to "
        f"{0.005 * total:.1f} there), {sharp} of the sharp p-values outside it on either side (chance: "
        f"{0.01 * total:.1f}).",
    ]
    for cell, found in again.items():
        lines.append(f"Again, {cell.replace('|', ', ')} on {len(found)} other data sets: {entry(found)}.")
    return [*lines, ""]


def page(found: dict[str, Cells], machine: str) -> str:
    cells, again = found["first"], found["again"]
    counts = sorted(len(values) for values in cells.values())
    bands = ", ".join("{}-{}".format(*(f"{100 * count / 2000:.2f}" for count in band(level, 2000))) for level in LEVELS)
    parts = [
        HEAD.format(bands=bands + " per cent"),
        f"Run: {machine}; {counts[0]} to {counts[-1]} data sets a cell.",
        "",
    ]
    parts += summary(cells, again)
    for name in SUBJECTS:
        if any(cell.startswith(name + "|") for cell in cells):
            claim = "exact level" if SUBJECTS[name].exact else "level that holds for large samples only"
            parts += [f"## {name}: {claim}", "", *table(name, cells), ""]
    return "\n".join(parts)


def read(paths: Sequence[Path]) -> tuple[dict[str, Cells], str]:
    """Cells of several runs together: their data sets differ where they have another --first."""
    together: dict[str, Cells] = {"first": {}, "again": {}}
    machines = []
    for path in paths:
        results, machine = stored(path)
        machines.append(machine)
        for part, cells in results.items():
            for cell, found in cells.items():
                together[part].setdefault(cell, []).extend(Found(*one) for one in found)
    return together, " and ".join(machines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--datasets", type=int, default=200, help="data sets a cell")
    parser.add_argument("--first", type=int, default=0, help="number of the first data set, to go on from another run")
    parser.add_argument("--jobs", type=int, default=2, help="processes side by side")
    parser.add_argument("--minutes", type=float, default=1e9, help="start no further data sets after so long")
    parser.add_argument("--block", type=int, default=50, help="data sets that a process takes at once")
    parser.add_argument("--tests", nargs="*", default=[], help="names of tests; all without it")
    parser.add_argument("--kinds", nargs="*", default=[], help="kinds of data; all without it")
    parser.add_argument("--sizes", nargs="*", default=list(QUICK_SIZES), help=f"such as {' '.join(SIZES)}")
    parser.add_argument("--scores", type=Path, help="write the p-values to this file and no page")
    parser.add_argument("--from", dest="sources", nargs="*", type=Path, default=[], help="p-values of earlier runs")
    parser.add_argument("--print", action="store_true", help="print the page, write nothing")
    options = parser.parse_args()
    began = time.monotonic()
    found, machine = read(options.sources) if options.sources else (computed(options), "this machine")
    if options.scores:
        store(options.scores, found, f"{options.jobs} processes of one thread", time.monotonic() - began)
    elif options.print:
        print(page(found, machine))
    else:
        RESULT.write_text(page(found, machine), encoding="utf-8")


if __name__ == "__main__":
    main()
