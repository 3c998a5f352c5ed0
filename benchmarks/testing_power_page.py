"""The page of benchmarks/testing_power.py: tables, verdicts, and the numbers that papers print at the same settings."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

Rejected = dict[str, dict[str, list[bool]]]
DEFAULT = {"two samples": "mmd_test", "independence": "hsic_test"}
INDEPENDENCE_SINGLE = ("hyppo Hsic", "hyppo Hsic, χ²", "HSIC, both medians", "hyppo Dcorr")
NO_DEPENDENCE = "independent clusters (level)"

HEAD = """# How often tests find what is there

Written by `benchmarks/testing_power.py`, whose first lines say how. Shares of data sets in which a test rejects at
level 0.05; all tests see the same data sets. *mmd_test* and *hsic_test* are the calls without arguments.

- *hyppo MMD*, *energy*, *hyppo Hsic*, *hyppo Dcorr*: the statistics of hyppo 0.5.2 with 299 permutations, computed in
  one go (`benchmarks/testing_peers.py` shows that they agree with hyppo's to twelve digits). *χ²* is what hyppo does
  unless it is told otherwise. hyppo gives the kernel of y the bandwidth of x; *HSIC, both medians* does not.
- *logistic*, *k neighbours*: classifier two-sample tests with scikit-learn on a random half, judged on the other.
- *compress then test*: goodpoints, with the median bandwidth, compression level 2 and 199 permutations of its bins.
- *MMD-FUSE (our code)*: written after the paper, 199 permutations, since the authors' package is on no package index.

*Level with the best single-kernel peer* means: no worse than the best of them, whichever that is in a setting, by more
than two standard errors of the difference on the same data sets.
"""

PAPERS = """## Beside the numbers that papers print

The authors' own results at the same settings, from the notebooks and tables in their repositories (200 data sets each;
100 of HSICAggInc, 500 of MMDAgg on MNIST), level 0.05: antoninschrab/mmdfuse-paper (experiment_perturbations.ipynb,
experiment_mixture.ipynb), antoninschrab/mmdagg-paper (paper/raw/results.csv), antoninschrab/agginc-paper
(experiments.ipynb), GuangyaoRen/HSICFUSE (experiment_gclusters.ipynb). Their data sets are drawn anew here from the
same laws, so that a difference of 0.07 between two columns is chance.
"""
# Setting, then what is printed there.
PRINTED: dict[str, dict[str, str]] = {
    "two samples: perturbed uniform, d = 1": {
        "MMD-FUSE": "0.505",
        "MMDAgg": "0.605",
        "median": "0.290",
        "CTT": "0.355",
    },
    "two samples: perturbed uniform, d = 2": {
        "MMD-FUSE": "0.485",
        "MMDAgg": "0.395",
        "median": "0.050",
        "CTT": "0.055",
    },
    "two samples: four normals": {"MMD-FUSE": "0.510", "MMDAgg": "0.460", "median": "0.030", "CTT": "0.055"},
    "two samples: MNIST without 6 and 8": {"MMDAgg": "0.34 to 0.62", "median": "0.08 to 0.09"},
    "independence: perturbed square": {"HSICAggInc, all pairs": "0.23"},
    "independence: three clusters": {"HSICFuse": "0.93", "HSICAgg": "0.49", "median": "0.21"},
}


def level_with(ours: Sequence[bool], peer: Sequence[bool]) -> tuple[float, bool]:
    """The difference of two shares on the same data sets, and whether chance explains that it is negative."""
    difference = np.subtract(np.asarray(ours, float), np.asarray(peer, float))
    error = difference.std(ddof=1) / np.sqrt(difference.size) if difference.size > 1 else np.inf
    return float(difference.mean()), bool(difference.mean() >= -2 * error)


def settings_of(problem: str, rejected: Rejected) -> list[str]:
    return [key for key in rejected if key.startswith(problem)]


def verdict(problem: str, row: dict[str, list[bool]], single: Sequence[str]) -> tuple[str, bool] | None:
    """Against the best single-kernel peer of a setting."""
    peers = [name for name in (*single, *INDEPENDENCE_SINGLE) if name in row]
    if not peers or DEFAULT[problem] not in row:
        return None
    best = max(peers, key=lambda name: np.mean(row[name]))
    difference, level = level_with(row[DEFAULT[problem]], row[best])
    return f"{difference:+.2f} ({best})", level


def table(problem: str, rejected: Rejected, single: Sequence[str]) -> list[str]:
    keys = settings_of(problem, rejected)
    if not keys:
        return []
    names = list(dict.fromkeys(name for key in keys for name in rejected[key]))
    lines = [f"| setting | data sets | {' | '.join(names)} | to the best single kernel | level with it |"]
    lines += ["|" + " --- |" * (len(names) + 4)]
    for key in keys:
        row = rejected[key]
        shares = {name: float(np.mean(row[name])) if name in row else None for name in names}
        best = max(share for share in shares.values() if share is not None)
        cells = [mark(shares[name], best) for name in names]
        found = None if NO_DEPENDENCE in key else verdict(problem, row, single)
        last = "|  |" if found is None else f"{found[0]} | {'yes' if found[1] else '**no**'} |"
        count = len(next(iter(row.values())))
        lines.append(f"| {key.split(': ', 1)[1]} | {count} | {' | '.join(cells)} | {last}")
    return lines


def mark(share: float | None, best: float) -> str:
    if share is None:
        return ""
    return f"**{share:.3f}**" if share == best else f"{share:.3f}"


def summary(problem: str, rejected: Rejected, single: Sequence[str]) -> str:
    rows = {key: verdict(problem, rejected[key], single) for key in settings_of(problem, rejected)}
    judged = {key: found for key, found in rows.items() if found is not None and NO_DEPENDENCE not in key}
    lost = [f"{key.split(': ', 1)[1]} {found[0]}" for key, found in judged.items() if not found[1]]
    text = f"Level with or above the best single-kernel peer in {len(judged) - len(lost)} of {len(judged)} settings"
    each = "; ".join(against(problem, peer, [rejected[key] for key in judged]) for peer in peers_in(rejected, judged))
    return f"**{text}.**" + (f" We lose: {'; '.join(lost)}." if lost else "") + f" Against each of the others: {each}."


def peers_in(rejected: Rejected, keys: Iterable[str]) -> list[str]:
    """The tests of others, in the order of the table."""
    names = dict.fromkeys(name for key in keys for name in rejected[key])
    return [name for name in names if "_test" not in name]


def against(problem: str, peer: str, rows: list[dict[str, list[bool]]]) -> str:
    """In how many settings the call without arguments is level with one peer."""
    rows = [row for row in rows if peer in row]
    count = sum(level_with(row[DEFAULT[problem]], row[peer])[1] for row in rows)
    return f"{peer} {count} of {len(rows)}"


def printed(rejected: Rejected) -> list[str]:
    lines = ["| setting | ours, default | printed |", "| --- | --- | --- |"]
    for key, numbers in PRINTED.items():
        if key in rejected:
            problem = key.split(": ")[0]
            ours: Any = rejected[key].get(DEFAULT[problem])
            own = "" if ours is None else f"{np.mean(ours):.3f}"
            lines.append(f"| {key} | {own} | {', '.join(f'{name} {value}' for name, value in numbers.items())} |")
    return lines


def page(rejected: Rejected, machine: str, single: Sequence[str]) -> str:
    parts = [HEAD, f"Run: {machine}.", ""]
    for problem in DEFAULT:
        if settings_of(problem, rejected):
            parts += [f"## {problem.capitalize()}", "", summary(problem, rejected, single), ""]
            parts += [*table(problem, rejected, single), ""]
    return "\n".join([*parts, PAPERS, *printed(rejected)]) + "\n"
