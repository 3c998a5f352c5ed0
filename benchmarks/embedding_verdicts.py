"""Rows of embedding_defaults.py by sample and method, and two methods beside one another."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from typing import Any

import numpy as np
from embedding_peers import METHODS
from embedding_samples import SAMPLES
from embedding_scores import overlap

Row = dict[str, Any]
LEVEL = 0.02  # scores that differ by less are called level
MEASURES = {
    "nmi": "NMI of k-means, all coordinates",
    "knn": "5-NN accuracy, all coordinates",
    "nmi_inliers": "NMI of k-means without the outliers, all coordinates",
    "knn2": "5-NN accuracy, first two coordinates",
    "nmi2": "NMI of k-means, first two coordinates",
    "trust": "trustworthiness, all coordinates",
    "trust2": "trustworthiness, first two coordinates",
}


@dataclass(frozen=True)
class Measured:
    """The rows by sample and method."""

    rows: dict[tuple[str, str, int], Row]

    @cached_property
    def cells(self) -> dict[tuple[str, str], list[Row]]:
        grouped = defaultdict(list)
        for (sample, method, _), row in sorted(self.rows.items()):
            grouped[sample, method].append(row)
        return dict(grouped)

    @property
    def samples(self) -> list[str]:
        return [name for name in SAMPLES if any(sample == name for sample, _ in self.cells)]

    def methods(self, *, ten: bool) -> list[str]:
        return [name for name, m in METHODS.items() if m.ten == ten and any(name == of for _, of in self.cells)]

    def values(self, sample: str, method: str, measure: str) -> list[float]:
        """A score over the seeds, zero where the method failed; empty where it was not run."""
        return [0.0 if "failed" in row else row[measure] for row in self.cells.get((sample, method), ())]

    def mean(self, sample: str, method: str, measure: str) -> float:
        values = self.values(sample, method, measure)
        return float(np.mean(values)) if values else float("nan")

    def stability(self, sample: str, method: str) -> float:
        """The share of ten nearest neighbours that two seeds have in common, the mean over pairs of seeds."""
        kept = [row["neighbours"] for row in self.cells.get((sample, method), ()) if "failed" not in row]
        if len(kept) == 1 and not METHODS[method].random and not SAMPLES[sample].share:
            return 1.0
        return float(np.mean([overlap(*pair) for pair in combinations(kept, 2)])) if len(kept) > 1 else float("nan")


@dataclass(frozen=True)
class Verdict:
    """Two methods beside one another in one cell: the difference of their means over the seeds."""

    sample: str
    measure: str
    difference: float  # above zero where the first is better
    peer: str

    @property
    def word(self) -> str:
        return "ahead" if self.difference > LEVEL else "behind" if self.difference < -LEVEL else "level"

    def __str__(self) -> str:
        return f"{self.sample} {MEASURES[self.measure].split(',')[0]} {self.difference:+.2f}"


def verdicts(
    measured: Measured, ours: str, peers: Iterable[str], measures: Iterable[str], samples: Iterable[str]
) -> list[Verdict]:
    """Ours beside the best of the peers in every cell that both have."""
    found = []
    for sample in samples:
        for measure in measures:
            mine = measured.mean(sample, ours, measure)
            theirs = {peer: measured.mean(sample, peer, measure) for peer in peers}
            theirs = {peer: value for peer, value in theirs.items() if not np.isnan(value)}
            if theirs and not np.isnan(mine):
                best = max(theirs, key=lambda peer: theirs[peer])
                found.append(Verdict(sample, measure, mine - theirs[best], best))
    return found
