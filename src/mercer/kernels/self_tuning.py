"""The Gaussian kernel whose scale follows the density of the training points, on their neighbour graph or on all pairs.

Cost: to resolve it, a search for the neighbours of n points (n log n in few dimensions, n² features in many, nearly
linear by the approximate search); a product takes some twenty entries a row. A new point is compared with all of them.
"""

from __future__ import annotations

import math
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, final

import numpy as np

from mercer.backends import forms
from mercer.backends.arrays import is_tensor, like, namespace, to_numpy
from mercer.backends.rounding import UNIT, EntryError
from mercer.kernels.checks import whole_number
from mercer.kernels.properties import Properties
from mercer.kernels.trained import TrainedKernel

if TYPE_CHECKING:
    from mercer.kernels.neighbour_graph import Parts
    from mercer.kernels.neighbour_sample import Sample

_SEARCHES = ("auto", "exact", "approximate")
_PAIR_SCALES = ("mean", "smaller")
_FAR = 20.0  # t = -log k beyond which an error of t is counted as one of k(x, x): t·exp(-t) falls
_EXPONENTIAL = 4.0  # roundings of exp itself


@final
class SelfTuning(TrainedKernel):
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
        A metric of scikit-learn's that needs no parameters, as ``"manhattan"`` or ``"cosine"``; ``"precomputed"`` means
        the distances of a graph that is passed as ``neighbors``, of which new points have none.
    neighbors : {"auto", "exact", "approximate"}, transformer or sparse matrix, default="auto"
        How neighbours are found: ``"auto"`` is exact up to 50 000 points or 15 features, and approximate beyond (99 of
        100 neighbours of MNIST). Or a transformer such as scikit-learn's ``KNeighborsTransformer``, or a sparse graph
        of distances between the rows of X, as ``kneighbors_graph`` makes it.
    connect : bool, default=False
        Join the parts of a graph that falls apart by their shortest edges.
    pair_scale : {"mean", "smaller"}, default="mean"
        Divide by s(x) s(y), or by the square of the smaller of the two: then an outlier, whose own scale is large, is
        tied to no more of the data than the data are to it. ``SDPEmbedding`` without a kernel takes the smaller.

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

    def _learned(self, X: Any, sample_weight: Any) -> Sample:
        from mercer.kernels.training_sample import training_sample  # which loads scikit-learn and numba

        return training_sample(self, X, sample_weight)

    def _check_parameters(self) -> None:
        """Refuse parameters that are none; the metric is read where it is used."""
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
        sample, sides = self._known, self._require_features((X, Y))
        if sample.graph is None:
            return _with_scales(sample, X), None if Y is None else _with_scales(sample, Y)
        logs = sample.log_affinities(*sides)
        own = None if Y is None else sample.log_diagonal(Y.shape[0])
        if not is_tensor(X):
            return logs, own
        from mercer.backends.torch.stored import csr_tensor

        return csr_tensor(logs, X.device), None if own is None else csr_tensor(own, X.device)


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
    return like(sample.log_tile(to_numpy(rows), to_numpy(cols)), rows, dtype=rows.dtype)


def _tile(sample: Sample, rows: Any, cols: Any) -> Any:
    return namespace(rows).exp(_log_tile(sample, rows, cols))


def _with_scales(sample: Sample, points: Any) -> Any:
    """The points with their scales as one more column, in double precision and the unit of the sample."""
    return like(np.column_stack(sample.with_scales(to_numpy(points))), points)
