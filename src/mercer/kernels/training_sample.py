"""What a self-tuning kernel learns of its training points when it is resolved."""

from __future__ import annotations

import logging
import math
from typing import TYPE_CHECKING, Any

import numpy as np

from mercer.backends.arrays import Array, distinct_rows, to_numpy
from mercer.kernels.checks import as_points
from mercer.kernels.neighbour_graph import Parts
from mercer.kernels.neighbour_sample import Sample, Setting
from mercer.kernels.neighbours import Table, graph_table, metric_named, neighbour_tables
from mercer.progress import warn_user

if TYPE_CHECKING:
    from mercer.kernels.self_tuning import SelfTuning

_log = logging.getLogger("mercer")
_LARGEST, _LEAST = 2.0**500, 2.0**-400  # coordinates whose squares, and those of their differences, are numbers
_NO_SQUARE = 1e-140  # a scale whose square has lost digits
_NO_DIGITS = {"cosine": 1e-12, "correlation": 1e-12}  # scales of metrics that are one minus a number near one
_NAMED = 5  # rows that a sentence names


def training_sample(kernel: SelfTuning, X: Any, sample_weight: Any) -> Sample:
    """The sample of the distinct rows of X, of those of positive weight if weights are given."""
    metric, points = metric_named(kernel.metric, kernel.neighbors), to_numpy(as_points(X))
    n = points.shape[0]
    rows = np.arange(n) if sample_weight is None else np.flatnonzero(to_numpy(sample_weight) > 0)
    rows = rows[distinct_rows(points if rows.size == n else points[rows])[0]]
    positions, power = points if rows.size == n else np.ascontiguousarray(points[rows]), _power(points)
    positions = positions if power == 0 else np.ldexp(positions, -power)
    most = max(0, rows.size - 1)
    scale = min(kernel.scale_neighbor, most)
    radius = None if kernel.n_neighbors is None else min(kernel.n_neighbors, most)
    if hasattr(kernel.neighbors, "tocsr"):
        _require_own_graph(kernel.neighbors, n, rows)
    tables = _tables(positions, max(scale, radius or 0), metric, kernel.neighbors)
    setting = Setting(positions, power, metric, (scale, radius), kernel.pair_scale == "smaller")
    sample = Sample.of(setting, tables, kernel.connect)
    _require_scales(sample, rows, kernel)
    _report_parts(sample.parts, rows, kernel)
    return sample


def _tables(positions: Array, count: int, metric: str, neighbors: Any) -> list[Table]:
    if hasattr(neighbors, "tocsr"):
        return [graph_table(neighbors.tocsr(), positions, count, metric)]
    return neighbour_tables(positions, count, metric, neighbors)


def _power(points: Array) -> int:
    """The power of two by which points are divided so that squares of their differences are numbers; mostly zero."""
    largest = float(np.abs(points).max(initial=0.0))
    return 0 if largest == 0 or _LEAST < largest < _LARGEST else math.frexp(largest)[1]


def _require_own_graph(graph: Any, n: int, rows: Array) -> None:
    """Refuse a graph that is not one of n rows, each of them a training point of its own."""
    if graph.shape != (n, n):
        raise ValueError(
            f"neighbors is a graph of {graph.shape[0]} × {graph.shape[1]} distances, but there are {n} training "
            "points: give a graph of just these, and no landmarks, rows of weight zero or copies beside it."
        )
    if rows.size < n:
        raise ValueError("neighbors is a graph, and X has rows that are equal or without weight: give each point once.")


def _require_scales(sample: Sample, rows: Array, kernel: SelfTuning) -> None:
    """Refuse a training point whose scale is zero, or has no digits."""
    if (bad := np.flatnonzero(sample.scales < _NO_DIGITS.get(sample.metric, _NO_SQUARE))).size:
        raise ValueError(
            f"Row {int(rows[bad[0]])} of X is at distance zero from {sample.orders[0]} other rows by "
            f"metric={kernel.metric!r}, so it has no scale: give rows that the metric does not tell apart once, or "
            "raise scale_neighbor."
        )


def _report_parts(parts: Parts, rows: Array, kernel: SelfTuning) -> None:
    """Log that the graph falls apart; warn of points that it links to no other."""
    if parts.sizes.size == 1:
        return
    _log.info("The neighbour graph has %d parts, of %s points.", parts.sizes.size, _listed(parts.sizes))
    isolated = np.sort(rows[np.isin(parts.labels, np.flatnonzero(parts.sizes == 1))])
    if isolated.size:
        warn_user(
            f"{isolated.size} of {rows.size} points are isolated under {kernel!r}, for their affinities to neighbours "
            f"vanish: row{'s' * (isolated.size > 1)} {_listed(isolated)}. Remove them if they are outliers, raise "
            "scale_neighbor, or pass connect=True."
        )


def _listed(numbers: Array) -> str:
    shown = ", ".join(str(int(number)) for number in numbers[:_NAMED])
    return shown if numbers.size <= _NAMED else f"{shown} and {numbers.size - _NAMED} more"
