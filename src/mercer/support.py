"""The points that the embedding is solved on: all of them, those of positive weight, or landmarks."""

from __future__ import annotations

import math
from numbers import Integral
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import clone

from mercer.backends import get_config
from mercer.backends.arrays import (
    Array,
    as_double,
    distinct_rows,
    is_source,
    is_tensor,
    like,
    namespace,
    taken,
    to_numpy,
)
from mercer.kernels import Kernel, Linear, Precomputed
from mercer.landmarks import Landmarks
from mercer.operators.diffusion import DegenerateKernelError
from mercer.validation import checked_kernel, checked_weights, fitted_chooser, normalised, whole_number

_COPIES = 4  # that a row has on average before equal rows are made one


class Support(NamedTuple):
    """Which rows carry the problem, and with which weights; None means all of them, and ones."""

    indices: Array | None
    weights: Array | None

    @property
    def unit(self) -> float:
        """A power of two u; the weights are u² times :attr:`scaled`."""
        return 1.0 if self.weights is None else _unit(self.weights)

    @property
    def scaled(self) -> Array | None:
        """The weights divided by u², exactly: the largest lies between 1 and 4, so no sum and no square overflows."""
        return None if self.weights is None else self.weights / self.unit / self.unit

    def lengths(self, values: Array, power: int = 1) -> Array:
        """Lengths (or their squares, power 2) found in the scaled weights, as the weights themselves have them."""
        unit = self.unit
        if unit == 1:
            return values
        with np.errstate(over="ignore"):
            restored = as_double(values) / unit**power
        if not namespace(restored).isfinite(restored).all():
            raise ValueError(
                "The squared lengths of the embedding go as one over the weights, and exceed the largest number: "
                "multiply the weights by a constant."
            )
        return restored

    def points(self, X: Any, kernel: Kernel) -> Any:
        """The rows of X that carry the problem; of a precomputed kernel matrix, their columns too."""
        if self.indices is None:
            return X
        rows = taken(X, self.indices)
        return taken(rows, self.indices, axis=1) if isinstance(kernel, Precomputed) else rows

    def columns(self, X: Any, kernel: Kernel) -> Any:
        """What :meth:`points` has to be compared with X: X itself, or its precomputed columns."""
        return taken(X, self.indices, axis=1) if isinstance(kernel, Precomputed) and self.indices is not None else X


class Copies(NamedTuple):
    """Equal rows: where each distinct one is first, which of them every row is, how often each occurs; NumPy's."""

    first: Array
    place: Array
    counts: Array


def many_copies(X: Any) -> Copies | None:
    """The equal rows of X, if rows have many copies on average: a neighbour graph would store every pair of them."""
    first, place = distinct_rows(to_numpy(X))
    counts = np.bincount(place)
    if first.size < 2:
        raise DegenerateKernelError("All points are equal: there is nothing to embed.")
    return Copies(first, place, counts) if float(counts @ counts) > _COPIES * place.size else None


def without_copies(support: Support, X: Any) -> Support:
    """The support with one of each set of equal rows, of the sum of their weights, where rows have many copies.

    The programme is the same: a row of weight two counts as the same row twice.
    """
    rows = X if support.indices is None else taken(X, support.indices)
    copies = many_copies(rows)
    if copies is None:
        return support
    weights = np.bincount(copies.place, None if support.weights is None else to_numpy(support.weights))
    indices = copies.first if support.indices is None else to_numpy(support.indices)[copies.first]
    chosen = indices, weights.astype(np.float64)
    return Support(*(like(part, X) if is_tensor(X) else part for part in chosen))


def stored_support(model: Any, X: Any) -> Support:
    """The rows and weights that a fitted model states, checked as those of a user are, where X lies."""
    n, indices, weights = int(X.shape[0]), model.landmarks_, model.sample_weight_
    if indices is not None:
        indices = to_numpy(indices)
        sound = indices.ndim == 1 and indices.dtype.kind in "iu" and indices.size >= 2
        if not sound or indices.min() < 0 or indices.max() >= n or np.unique(indices).size != indices.size:
            raise ValueError(
                f"The model's landmarks_ does not name different rows of {n}: it is damaged, or X is not the data of "
                "the fit."
            )
    if weights is not None:
        count, library = n if indices is None else indices.size, X if is_tensor(X) else np.empty(0)
        weights = checked_weights(weights, count, "sample_weight_ of the model", reference=library)
        if not (weights > 0).all():
            raise ValueError("The model's sample_weight_ is not positive: it is damaged.")
    return Support(like(indices, X) if is_tensor(X) and indices is not None else indices, weights)


def choose_support(
    landmarks: Any,
    weights: Array | None,
    X: Any,
    kernel: Any = None,
    random_state: Any = None,
    *,
    strategy: str = "k-means",
) -> Support:
    """Read ``landmarks`` and checked sample weights as :class:`mercer.SDPEmbedding` documents them.

    Rows are chosen by NumPy, before anything is computed; indices and weights then lie where X does. A number of
    landmarks is chosen with the kernel of the estimator, resolved or not, and drawn from its random state; None where
    it has no kernel. They are chosen by ``strategy``, with the masses of the nearest points; k-means is, of all that
    are as quick, the measure that is nearest to the sample's (benchmarks/results/landmark_strategies.md). Of a kernel
    that is given as a matrix, or compares categories, there are no positions, and they are the pivots of
    ``Landmarks(number)``.
    """
    if is_source(X) and landmarks is None:
        X.refuse_without_landmarks()
    landmarks = _with_kernel(landmarks, kernel, random_state, strategy, int(X.shape[1]))
    if is_tensor(X):
        chosen = _chosen_support(landmarks, None if weights is None else to_numpy(weights), X)
        return Support(*(None if part is None else like(part, X) for part in chosen))
    return _chosen_support(landmarks, weights, X)


def _with_kernel(landmarks: Any, kernel: Any, random_state: Any, strategy: str, n_features: int) -> Any:
    """A number of landmarks as what chooses them; a choice of rows without a kernel of its own is given one."""
    if isinstance(landmarks, str):
        raise ValueError(
            f"landmarks={landmarks!r} says no number: write landmarks=300, or Landmarks(300, strategy={landmarks!r})."
        )
    number = isinstance(landmarks, Integral) and not isinstance(landmarks, bool)
    if not number and not (isinstance(landmarks, Landmarks) and landmarks.kernel is None):
        return landmarks
    own = None if kernel is None else checked_kernel(kernel)
    if own is not None and not own.properties.positive_definite and not isinstance(own, Precomputed):
        own = None
    if number:
        positions = own is None or len(own.read_as_numbers(n_features)) == n_features
        strategy = strategy if positions and not isinstance(own, Precomputed) else "rpcholesky"
        count = whole_number(landmarks, "landmarks", 2)
        return Landmarks(count, strategy=strategy, kernel=own or Linear(), random_state=random_state)
    return landmarks if hasattr(landmarks, "indices_") else clone(landmarks).set_params(kernel=own)


def _chosen_support(landmarks: Any, weights: Array | None, X: Any) -> Support:
    if landmarks is not None:
        return _from_landmarks(landmarks, weights, X)
    if weights is None or np.all(weights == 1):
        return Support(None, None)
    heavy = _counts(weights)
    if np.all(heavy):
        return Support(None, weights)
    return Support(_enough(np.flatnonzero(heavy), _which("points", weights, heavy)), weights[heavy])


def _unit(weights: Array) -> float:
    """The power of two u for which the largest weight is between u² and 4u²."""
    return math.ldexp(1.0, (math.frexp(float(weights.max()))[1] - 1) // 2)


def _counts(weights: Array) -> Array:
    """Which weights are positive, and not so small beside the largest that this arithmetic has no digits for them."""
    unit = _unit(weights)
    return weights / unit / unit >= _least_part()


def _least_part() -> float:
    arithmetic = np.finfo(get_config().dtype)
    return float(arithmetic.tiny) / float(arithmetic.eps)


def _which(what: str, weights: Array, heavy: Array) -> str:
    """How the rows that take part are called: by what set them apart from the others."""
    if np.array_equal(weights > 0, heavy):
        return f"{what} of positive weight"
    return f"{what} of more than {_least_part():.0e} of the largest weight"


def _from_landmarks(landmarks: Any, sample_weight: Array | None, X: Any) -> Support:
    n = X.shape[0]
    indices, weights = _indices_and_weights(landmarks, X, sample_weight)
    chosen, weights = to_numpy(indices), weights if weights is None else to_numpy(weights)
    if chosen.dtype == bool and chosen.shape == (n,):
        chosen = np.flatnonzero(chosen)
    if chosen.ndim != 1 or chosen.dtype.kind not in "iu":
        raise ValueError("landmarks must be row numbers: a one-dimensional array of integers, or (indices, weights).")
    if chosen.size and (chosen.min() < -n or chosen.max() >= n):
        raise ValueError(f"landmarks has the row {int(chosen[np.argmax(np.abs(chosen))])}, but X has {n} rows.")
    chosen = chosen % n
    if np.unique(chosen).size != chosen.size:
        raise ValueError("landmarks names a row twice: give it once, with the sum of its weights.")
    if weights is None:
        values = np.full(chosen.size, n / max(chosen.size, 1)) if sample_weight is None else sample_weight[chosen]
    else:
        values = checked_weights(weights, chosen.size, "the weights of landmarks")
    heavy = _counts(values) if np.any(values > 0) else values > 0
    return Support(_enough(chosen[heavy], _which("landmarks", values, heavy)), values[heavy])


def _indices_and_weights(landmarks: Any, X: Any, sample_weight: Array | None) -> tuple[Any, Any]:
    """The rows and weights that an estimator chose, a pair states, or an array of rows leaves to us.

    Those of an estimator are brought to the total weight of the sample for which its landmarks stand.
    """
    if hasattr(landmarks, "fit") or hasattr(landmarks, "indices_"):
        chosen = fitted_chooser(landmarks, "landmarks", X, sample_weight)
        weights = getattr(chosen, "weights_", None)
        return chosen.indices_, None if weights is None else _standing_for(weights, X.shape[0], sample_weight)
    if isinstance(landmarks, tuple):
        if len(landmarks) != 2:
            raise ValueError(f"landmarks has {len(landmarks)} parts: give an index array, or (indices, weights).")
        return landmarks
    return landmarks, None


def _standing_for(weights: Any, n: int, sample_weight: Array | None) -> Array:
    """The weights that an estimator chose, brought to the total weight of the sample."""
    weights = to_numpy(weights)
    values = checked_weights(weights, np.size(weights), "the weights of landmarks")
    unit = 1.0 if sample_weight is None else _unit(sample_weight)
    total = float(n) if sample_weight is None else float(np.sum(sample_weight / unit / unit))
    with np.errstate(over="ignore"):
        standing = normalised(values, values.size) * total * unit * unit
    if not np.all(np.isfinite(standing)):
        raise ValueError("A landmark stands for more weight than the largest number: divide sample_weight by 1000.")
    return standing


def _enough(indices: Array, what: str) -> Array:
    if indices.size < 2:
        raise ValueError(f"Found {indices.size} {what}, but the embedding needs at least 2.")
    return indices
