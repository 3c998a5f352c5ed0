"""NoveltyDetector beside isolation forests, local outlier factors and the novelty of an embedding.

    MERCER_DATA=... python benchmarks/novelty.py --write                 # every part, some ten minutes on two cores
    MERCER_DATA=... python benchmarks/novelty.py --part tasks --seeds 1  # one part, one seed, printed alone

Parts: tasks, fresh (data on which nothing was chosen), digits (the ten classes of MNIST and of the 8 × 8 digits),
alarms, times. Their tables stand between marks in benchmarks/results/novelty.md.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from novelty_tasks import FRESH, REAL, SYNTHETIC, TEN, Array, Make, Task, real
from quadrature_field_page import machine
from result_page import write_table
from sklearn.ensemble import IsolationForest
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import roc_auc_score
from sklearn.neighbors import LocalOutlierFactor

from mercer import NoveltyDetector, SDPEmbedding
from mercer.novelty.threshold import offset_of

RESULTS = Path(__file__).parent / "results" / "novelty.md"
RATES = (0.01, 0.05, 0.1)
LEVEL = 0.02  # of ROC AUC: what counts as level with the better peer
# Fits to the first rows, scores the second, or the first where there are none; the higher, the more novel.
Scorer = Callable[[Array, Array | None, int], Array]


def detector(learned: Array, new: Array | None, seed: int) -> Array:
    model = NoveltyDetector().fit(learned)
    return model.novelty(learned if new is None else new)


def forest(learned: Array, new: Array | None, seed: int) -> Array:
    return -IsolationForest(random_state=seed).fit(learned).score_samples(learned if new is None else new)


def local_factor(learned: Array, new: Array | None, seed: int) -> Array:
    if new is None:
        return -LocalOutlierFactor().fit(learned).negative_outlier_factor_
    return -LocalOutlierFactor(novelty=True).fit(learned).score_samples(new)


def embedded(learned: Array, new: Array | None, seed: int) -> Array:
    """The score needs the kernel and the training points, not the solution of the programme: one step is enough."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        warnings.filterwarnings("ignore", ".* isolated under", UserWarning)
        model = SDPEmbedding(n_levels=1, solver="power", max_iter=1, certify=False, random_state=0).fit(learned)
    return model.novelty(learned if new is None else new)


METHODS: dict[str, Scorer] = {
    "`NoveltyDetector`": detector,
    "isolation forest": forest,
    "local outlier factor": local_factor,
    "`SDPEmbedding.novelty`": embedded,
}
PEERS = ("isolation forest", "local outlier factor")


def areas(task: Task, seed: int, scorers: dict[str, Scorer]) -> dict[str, tuple[float, float]]:
    """ROC AUC of every method on the rows it learned from, NaN where none of them is odd, and on new ones."""
    found = {}
    for name, scorer in scorers.items():
        old = roc_auc_score(task.odd, scorer(task.learned, None, seed)) if task.odd.any() else np.nan
        found[name] = (old, roc_auc_score(task.odd_new, scorer(task.learned, task.new, seed)))
    return found


def over_seeds(makes: list[Make], seeds: range, scorers: dict[str, Scorer]) -> dict[str, Array]:
    """Of every method an array of shape (makes, seeds, 2)."""
    all_areas = [[areas(make(seed), seed, scorers) for seed in seeds] for make in makes]
    return {name: np.array([[one[name] for one in row] for row in all_areas]) for name in scorers}


def rows_of(task: str, found: dict[str, Array]) -> list[str]:
    """A row of a table for the rows learned from, and one for new rows: means over samples, deviations of seeds."""
    lines = []
    for place, judged in enumerate(("training", "new")):
        values = {name: each[..., place].mean(axis=0) for name, each in found.items()}
        if np.isnan(values["`NoveltyDetector`"]).any():
            continue
        means = {name: float(each.mean()) for name, each in values.items()}
        ahead = means["`NoveltyDetector`"] - max(means[name] for name in PEERS)
        spread = [
            f"{means[name]:.3f} ± {each.std(ddof=1) if each.size > 1 else 0:.3f}" for name, each in values.items()
        ]
        mark = f"**{ahead:+.3f}**" if ahead < -LEVEL else f"{ahead:+.3f}"
        lines.append(f"| {task} | {judged} | {' | '.join(spread)} | {mark} |")
        print(lines[-1], flush=True)
    return lines


def header(first: str) -> list[str]:
    columns = [first, "rows judged", *METHODS, "beside the better peer"]
    return [f"| {' | '.join(columns)} |", "|---" * 2 + "|---:" * (len(columns) - 2) + "|"]


def tasks(seeds: range) -> list[str]:
    lines = header("task")
    for name, make in {**SYNTHETIC, **REAL}.items():
        lines += rows_of(name, over_seeds([make], seeds, METHODS))
    return [*lines, "", verdict(lines[2:])]


def fresh(seeds: range) -> list[str]:
    lines = header("task")
    for name, makes in FRESH.items():
        lines += rows_of(name, over_seeds(makes, seeds, METHODS))
    return [*lines, "", verdict(lines[2:])]


def verdict(rows: list[str]) -> str:
    """How many rows of a table are ahead of the better peer, level with it, and behind."""
    gaps = [float(row.rstrip(" |").rpartition("|")[2].strip(" *")) for row in rows]
    ahead, behind = sum(gap > LEVEL for gap in gaps), sum(gap < -LEVEL for gap in gaps)
    return (
        f"Beside the better of the two peers, row by row: ahead in {ahead}, level in {len(gaps) - ahead - behind}, "
        f"behind in {behind} of {len(gaps)} (level: within {LEVEL:g})."
    )


def ten_classes(seeds: range) -> list[str]:
    lines, least = header("task"), []
    for name, makes in TEN.items():
        found = over_seeds(makes, seeds, METHODS)
        lines += rows_of(name, found)
        ours, peers = (
            found["`NoveltyDetector`"].mean(axis=1),
            np.max([found[peer].mean(axis=1) for peer in PEERS], axis=0),
        )
        gaps = np.nanmin(ours - peers, axis=1)
        least.append(f"- {name.partition(' (')[0]}: digit {int(np.argmin(gaps))}, {gaps.min():+.3f}.")
    return [*lines, "", "The digit on which the detector is least beside the better peer:", "", *least]


def laws() -> dict[str, Array]:
    """Samples of one law each."""
    rng, sides = np.random.default_rng(0), {name: real(name) for name in ("htru2", "mnist", "skin")}
    return {
        "normal, 5 columns": rng.normal(size=(20_000, 5)),
        "exponential, 2 columns": rng.exponential(size=(20_000, 2)),
        "candidates that are no pulsars": sides["htru2"][0][sides["htru2"][1] == 0].astype(np.float64),
        "MNIST, digit 4": sides["mnist"][0][sides["mnist"][1] == 4].astype(np.float64),
        "no skin (many equal rows)": sides["skin"][0][sides["skin"][1] == 0].astype(np.float64),
    }


def alarms(seeds: range) -> list[str]:
    """How many new rows of the law of the training rows are called novel, at a stated rate or a share of the rows."""
    columns = [f"`{name}={value:g}`" for name in ("false_alarms", "contamination") for value in RATES]
    lines = [f"| law | rows | {' | '.join(columns)} |", "|---|---:" + "|---:" * len(columns) + "|"]
    for name, everything in laws().items():
        for size, repeats in ((30, 40), (100, 20), (300, 8), (1000, 4)):  # the fewer rows, the more their rates vary
            rates = np.array([alarm_rates(everything, size, seed) for seed in range(len(seeds) * repeats)])
            errors = rates.std(axis=0, ddof=1) / np.sqrt(len(rates))
            cells = [
                "refused" if np.isnan(mean) else f"{mean:.4f} ± {error:.4f}"
                for mean, error in zip(rates.mean(axis=0), errors, strict=True)
            ]
            lines.append(f"| {name} | {size} | {' | '.join(cells)} |")
            print(lines[-1], flush=True)
    return lines


def alarm_rates(everything: Array, size: int, seed: int) -> list[float]:
    """The share of 1 000 other rows that is called novel, for every setting; NaN where it is refused."""
    rows = everything[np.random.default_rng(seed).permutation(len(everything))[: size + 1000]]
    model = NoveltyDetector().fit(rows[:size])
    known, new, once = model.score_samples(rows[:size]), model.score_samples(rows[size:]), np.ones(size)
    found = []
    for rate in RATES:  # as predict would with false_alarms=rate, and with contamination=rate: the scores are the same
        possible = rate * (size + 1) >= 1
        found.append(float(np.mean(new < offset_of(known, once, None, rate))) if possible else np.nan)
    return found + [float(np.mean(new < offset_of(known, once, share, None))) for share in RATES]


def times() -> list[str]:
    """Seconds of a fit with the scores of its rows, and of 1 000 new rows, the methods one after the other."""
    spent = ["s to fit and score", "of processors", "s for 1 000 new rows", "of processors"]
    lines = [f"| rows × columns | method | {' | '.join(spent)} |", "|---|---" + "|---:" * len(spent) + "|"]
    fits: dict[str, Callable[[Array], Any]] = {
        "`NoveltyDetector`": lambda X: NoveltyDetector().fit(X),
        "isolation forest": lambda X: IsolationForest(random_state=0).fit(X),
        "local outlier factor": lambda X: LocalOutlierFactor(novelty=True).fit(X),
    }
    for n, d in ((1_000, 8), (10_000, 8), (100_000, 8), (10_000, 50)):
        rng = np.random.default_rng(0)
        points, new = (rng.normal(size=(size, d)) * np.linspace(1, 0.2, d) for size in (n, 1000))
        for name, fit in fits.items():
            began = clocks()
            model = fit(points)
            if name == "isolation forest":  # the others have the scores of their rows from the fit
                model.score_samples(points)
            between = clocks()
            model.score_samples(new)
            wall, busy, wall_new, busy_new = (*(between - began), *(clocks() - between))
            lines.append(f"| {n} × {d} | {name} | {wall:.2f} | {busy:.2f} | {wall_new:.3f} | {busy_new:.3f} |")
            print(lines[-1], flush=True)
    return lines


def clocks() -> Array:
    """Seconds on the clock, and those of processors for this process, which say what it costs where others work too."""
    return np.array([time.perf_counter(), time.process_time()])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--part", choices=["all", "tasks", "fresh", "digits", "alarms", "times"], default="all")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--write", action="store_true", help=f"write the tables to {RESULTS.name}")
    options = parser.parse_args()
    seeds = range(options.seeds)
    NoveltyDetector().fit_predict(np.random.default_rng(0).normal(size=(300, 2)))  # compiled code is loaded
    parts: dict[str, Callable[[], list[str]]] = {
        "tasks": lambda: tasks(seeds),
        "fresh": lambda: fresh(seeds),
        "digits": lambda: ten_classes(seeds),
        "alarms": lambda: alarms(seeds),
        "times": times,
    }
    for name in parts if options.part == "all" else [options.part]:
        lines = parts[name]()
        if options.write:
            said = f"`benchmarks/novelty.py --part {name} --seeds {options.seeds} --write` on {machine()}"
            write_table(RESULTS, name, [f"Written by {said}.", "", *lines])


if __name__ == "__main__":
    main()
