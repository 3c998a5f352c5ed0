"""The Gaussian kernel whose scale follows the density of the training points, on their neighbour graph or on all pairs.

Cost: to resolve it, a search for the neighbours of n points (n log n in few dimensions, n² features in many, nearly
linear by the approximate search); a product takes some twenty entries a row. A new point is compared with all of them.
"""

from __future__ import annotations

import logging
import math
import warnings
from collections.abc import Iterable
from functools import partial
from typing import Any, ClassVar, final

import numpy as np
from scipy.sparse import csr_array

from mercer.backends import forms
from mercer.backends.arrays import Array, as_double, distinct_rows, is_tensor, like, namespace, to_numpy
from mercer.backends.rounding import UNIT, EntryError
from mercer.kernels.base import Kernel
from mercer.kernels.checks import as_points, whole_number
from mercer.kernels.neighbour_graph import Parts, log_affinity
from mercer.kernels.neighbour_sample import Sample, Setting
from mercer.kernels.neighbours import graph_table, metric_named, neighbour_tables
from mercer.kernels.properties import Properties
from mercer.progress import warn_user

_log = logging.getLogger("mercer")
_SEARCHES = ("auto", "exact", "approximate")
_PAIR_SCALES = ("mean", "smaller")
_FAR = 20.0  # t = -log k beyond which an error of t is counted as one of k(x, x): t·exp(-t) falls
_EXPONENTIAL = 4.0  # roundings of exp itself
_LARGEST, _LEAST = 2.0**500, 2.0**-400  # coordinates whose squares, and those of their differences, are numbers
_NO_SQUARE = 1e-140  # a scale whose square has lost digits
_NO_DIGITS = {"cosine": 1e-12, "correlation": 1e-12}  # scales of metrics that are one minus a number near one
_NAMED = 5  # rows that a sentence names


@final
class SelfTuning(Kernel):
    """exp(-d(x, y)² / (s(x) s(y))) between neighbours, zero elsewhere: every point has a scale of its own.

    s(x) is the distance from x to its 7th neighbour among the training points, so that the kernel is as wide where
    these are sparse as it is narrow where they are dense (Zelnik-Manor and Perona 2004). x and y are neighbours if one
    is among the 15 nearest training points of the other, or as near. Equal rows are one training point, of which the
    scales are the same however often it occurs. The kernel is not positive semi-definite. The user guide says more.

    Parameters
    ----------
    n_neighbors : int or None, default=15
        Training points to which each is linked, itself not counted; None links all pairs.
    scale_neighbor : int, default=7
        The training point whose distance is the scale.
    metric : str, default="euclidean"
        A metric of scikit-learn's that needs no parameters, as ``"manhattan"`` or ``"cosine"``.
    neighbors : {"auto", "exact", "approximate"}, transformer or sparse matrix, default="auto"
        How neighbours are found: ``"auto"`` is exact up to 50 000 points or 15 features, and approximate beyond (99 of
        100 neighbours of MNIST). Or a transformer such as scikit-learn's ``KNeighborsTransformer``, or a sparse graph
        of distances between the rows of X, as ``kneighbors_graph`` makes it.
    connect : bool, default=False
        Join the parts of a graph that falls apart by their shortest edges.
    pair_scale : {"mean", "smaller"}, default="mean"
        Divide by s(x) s(y), or by the square of the smaller of the two: then an outlier, whose own scale is large, is
        tied to no more of the data than the data are to it. Embeddings without a kernel take the smaller.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer import SelfTuning
    >>> X = np.array([[0.0], [1.0], [2.0], [100.0], [110.0]])
    >>> kernel = SelfTuning(n_neighbors=1, scale_neighbor=1).resolve(X)
    >>> kernel(X).round(3)
    array([[1.   , 0.368, 0.   , 0.   , 0.   ],
           [0.368, 1.   , 0.368, 0.   , 0.   ],
           [0.   , 0.368, 1.   , 0.   , 0.   ],
           [0.   , 0.   , 0.   , 1.   , 0.368],
           [0.   , 0.   , 0.   , 0.368, 1.   ]])
    """

    _elsewhere: ClassVar[dict[str, str]] = {
        "sigma": "kernel=Gaussian(), which has one bandwidth: here every point has a scale of its own"
    }

    def __init__(
        self,
        n_neighbors: int | None = 15,
        scale_neighbor: int = 7,
        metric: str = "euclidean",
        neighbors: Any = "auto",
        connect: bool = False,
        pair_scale: str = "mean",
    ) -> None:
        self.n_neighbors = n_neighbors
        self.scale_neighbor = scale_neighbor
        self.metric = metric
        self.neighbors = neighbors
        self.connect = connect
        self.pair_scale = pair_scale
        self._sample: Sample | None = None

    @property
    def is_resolved(self) -> bool:
        """Whether the training points are known."""
        return self._sample is not None

    @property
    def is_local(self) -> bool:
        """Whether k is zero but between neighbours."""
        return self.n_neighbors is not None

    @property
    def properties(self) -> Properties:
        """Bounded and not negative; a matrix of it can have negative eigenvalues."""
        return Properties(bounded=True, stationary=False, positive=True)

    @property
    def parts_(self) -> Parts:
        """The connected parts of the graph of the distinct training points, in the order in which these first occur."""
        return self._known.parts

    def resolve(self, X: Any, sample_weight: Any = None) -> SelfTuning:
        """Return the kernel of the training points X, or of those of positive weight; a resolved one stays as it is."""
        if self.is_resolved:
            return self
        metric = self._check_parameters()
        points = to_numpy(as_points(X))
        rows = np.arange(points.shape[0]) if sample_weight is None else np.flatnonzero(to_numpy(sample_weight) > 0)
        first, _ = distinct_rows(points if rows.size == points.shape[0] else points[rows])
        rows, power = rows[first], _power(points)
        positions = points if rows.size == points.shape[0] else np.ascontiguousarray(points[rows])
        positions = positions if power == 0 else np.ldexp(positions, -power)
        most = max(0, rows.size - 1)
        scale = min(self.scale_neighbor, most)
        radius = None if self.n_neighbors is None else min(self.n_neighbors, most)
        count = max(scale, radius or 0)
        if hasattr(self.neighbors, "tocsr"):
            graph = _graph_of(self.neighbors.tocsr(), points.shape[0], rows)
            tables = [graph_table(graph, positions, count, metric)]
        else:
            tables = neighbour_tables(positions, count, metric, self.neighbors)
        resolved = self.__sklearn_clone__()
        setting = Setting(positions, power, metric, (scale, radius), self.pair_scale == "smaller")
        resolved._sample = Sample.of(setting, tables, self.connect)
        _require_scales(resolved._sample, rows, self)
        _report_parts(resolved._sample.parts, rows, self)
        return resolved

    def set_params(self, **params: Any) -> SelfTuning:
        """Set parameters in place and return self, which then awaits training points."""
        super().set_params(**params)
        self._sample = None
        return self

    def __sklearn_clone__(self) -> SelfTuning:
        """Return a copy, of the same training points if they are known."""
        copy = type(self)(**self._own_params())
        copy._sample = self._sample
        return copy

    def __repr__(self) -> str:
        """Return the constructor call, and what tells one set of training points from another."""
        shown = {name: repr(value) for name, value in self._own_params().items()}
        if hasattr(self.neighbors, "tocsr"):
            shown["neighbors"] = f"<graph of {self.neighbors.shape[0]} points>"
        call, sample = f"SelfTuning({', '.join(f'{name}={text}' for name, text in shown.items())})", self._sample
        return call if sample is None else f"{call} of {sample.positions.shape[0]} points [{sample.digest}]"

    def _check_parameters(self) -> str:
        """The metric, if all parameters are sound."""
        whole_number(self.scale_neighbor, "scale_neighbor", 1)
        if self.n_neighbors is not None:
            whole_number(self.n_neighbors, "n_neighbors", 1)
        if self.pair_scale not in _PAIR_SCALES:
            raise ValueError(f"pair_scale={self.pair_scale!r} must be one of {', '.join(map(repr, _PAIR_SCALES))}.")
        if not isinstance(self.connect, bool | np.bool_):
            raise ValueError(f"connect={self.connect!r} must be True or False.")
        search = self.neighbors
        sound = search in _SEARCHES if isinstance(search, str) else hasattr(search, "fit_transform")
        if not (sound or hasattr(search, "tocsr")):
            raise ValueError(
                f"neighbors={search!r} must be one of {', '.join(map(repr, _SEARCHES))}, a transformer such as "
                "KNeighborsTransformer(), or a sparse matrix of distances between neighbours."
            )
        return metric_named(self.metric)

    @property
    def _known(self) -> Sample:
        self.form(1)  # which refuses a kernel without training points
        assert self._sample is not None
        return self._sample

    @property
    def _reader(self) -> Kernel | None:
        return self

    def _form(self, n_features: int) -> forms.Form:
        assert self._sample is not None
        roundings = _roundings(self._sample.metric, n_features)
        if self._sample.graph is not None:
            return forms.Stored(new_diagonal=1.0, error=roundings.in_units(UNIT), logarithms=True)
        return forms.TileFunction(
            function=partial(_tile, self._sample),
            diagonal=lambda points: namespace(points).ones_like(points[:, 0]),
            roundings=roundings,
            logarithm=partial(_log_tile, self._sample),
            nonnegative=True,
            cost=float(n_features + 50),
        )

    def _points(self, X: Any, Y: Any) -> tuple[Any, Any]:
        """log k of the pairs that count, or points with their scales as one more column."""
        sample, sides = self._known, [to_numpy(X), None if Y is None else to_numpy(Y)]
        _require_features(sample, sides)
        if sample.graph is None:
            return _with_scales(sample, X), None if Y is None else _with_scales(sample, Y)
        logs = sample.log_affinities(*sides)
        own = None if Y is None else _zero_diagonal(Y.shape[0])
        return (logs, own) if not is_tensor(X) else (_as_tensor(logs, X), None if own is None else _as_tensor(own, X))


def _roundings(metric: str, n_features: int) -> EntryError:
    """How far an entry can be from exp(-t), t = d²/(s s'), in roundings.

    A sum of f terms that are not negative errs by f + 2 roundings, its square root by half of that and one; so t errs
    by 2f + 8 roundings of itself for Euclidean distances and 4f + 8 for sums of absolute values. Distances of other
    metrics are those that scikit-learn computes. An error of t by a part ε of it is one of t·ε of exp(-t), and of no
    more than T·exp(-T)·ε where t is above T ≥ 1.
    """
    terms = {"euclidean": 2.0, "manhattan": 4.0}.get(metric, 0.0) * n_features + 8.0
    return EntryError(_FAR * terms + _EXPONENTIAL, _FAR * math.exp(-_FAR) * terms)


def _log_tile(sample: Sample, rows: Any, cols: Any) -> Any:
    """log k of points whose last column is their scale."""
    x, y = to_numpy(rows), to_numpy(cols)
    unit = max(1.0, float(np.abs(x).max(initial=0.0)), float(np.abs(y).max(initial=0.0)))
    unit = math.ldexp(1.0, math.frexp(unit)[1]) if unit > _LARGEST else 1.0
    x, y = as_double(x) / unit, as_double(y) / unit
    return like(
        log_affinity(sample.squares(x[:, :-1], y[:, :-1]), x[:, -1:], y[:, -1], sample.smaller), rows, dtype=rows.dtype
    )


def _tile(sample: Sample, rows: Any, cols: Any) -> Any:
    return namespace(rows).exp(_log_tile(sample, rows, cols))


def _with_scales(sample: Sample, points: Any) -> Any:
    """The points with their scales as one more column, in double precision and the unit of the sample."""
    return like(np.column_stack(sample.with_scales(to_numpy(points))), points)


def _power(points: Array) -> int:
    """The power of two by which points are divided so that squares of their differences are numbers; mostly zero."""
    largest = float(np.abs(points).max(initial=0.0))
    return 0 if largest == 0 or _LEAST < largest < _LARGEST else math.frexp(largest)[1]


def _graph_of(graph: Any, n: int, rows: Array) -> Any:
    """A graph of distances between n rows, if each of them is a training point of its own."""
    if graph.shape != (n, n):
        raise ValueError(
            f"neighbors is a graph of {graph.shape[0]} × {graph.shape[1]} distances, but X has {n} rows: give X's own."
        )
    if rows.size < n:
        raise ValueError("neighbors is a graph, and X has rows that are equal or without weight: give each point once.")
    return graph


def _require_features(sample: Sample, sides: Iterable[Array | None]) -> None:
    expected = sample.positions.shape[1]
    for points in sides:
        if points is not None and points.shape[1] != expected:
            raise ValueError(f"X has {points.shape[1]} features, but the training points of the kernel {expected}.")


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


def _zero_diagonal(n: int) -> Any:
    """log k of points with themselves."""
    return csr_array((np.zeros(n), np.arange(n), np.arange(n + 1)), shape=(n, n))


def _as_tensor(matrix: Any, reference: Any) -> Any:
    import torch

    starts, columns, values = (like(part, reference) for part in (matrix.indptr, matrix.indices, matrix.data))
    with warnings.catch_warnings():  # torch calls the layout a beta
        warnings.filterwarnings("ignore", "Sparse CSR tensor support", UserWarning)
        return torch.sparse_csr_tensor(starts, columns, values, matrix.shape, check_invariants=False)
