"""The diagonal of the learned kernel as a user prescribes it: squared lengths of coordinates, on the sample and beyond.

PSD22 (SDP) has any positive function d(x) for the diagonal, and takes d(x) = ā(x, x) for want of another. A function is
asked at new points (PSD22 footnote 3 leaves that open); numbers for the points of the sample are averaged there by
affinity, p(x, xⱼ)dⱼ, which is constant where they are, and they stand as given at the points of the sample.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, final

import numpy as np

from mercer.backends import get_config
from mercer.backends.arrays import Array, dtype_name, is_sparse_tensor, is_tensor, namespace, to_numpy
from mercer.kernels.checks import checked_weights
from mercer.support import Support

_RANGE = {"float64": 1e100, "float32": 1e12}  # largest values: products of a few of them must be finite
_LEAST = 1e-12  # of the largest: shorter rows have no digits beside the others


@final
@dataclass(frozen=True, eq=False)
class Prescribed:
    """d at the points that carry a problem, and what makes it elsewhere.

    Attributes
    ----------
    values : array of shape (m,)
        d ≥ 0 of the points that carry the problem, in double precision and in the user's unit.
    function : callable or None
        Of points, where the user gave one.
    at_most : bool
        Whether rows of B may be shorter.
    """

    values: Array
    function: Callable[[Any], Any] | None
    at_most: bool

    @classmethod
    def read(cls, diagonal: Any, constraint: str, X: Any, support: Support) -> Prescribed | None:
        """The user's ``diagonal`` for the rows of X, of which the support carries the problem; None where none is."""
        if diagonal is None:
            return None
        function = diagonal if callable(diagonal) else None
        values = _checked(diagonal if function is None else function(X), X)
        if support.indices is not None:
            values = values[support.indices]
        _refuse_range(values, get_config().dtype)
        return cls(values, function, constraint == "at most")

    def on(self, values: Array) -> Prescribed:
        """The same prescription for other points, of these values."""
        return Prescribed(values, self.function, self.at_most)

    def elsewhere(self, X: Any, averages: Array) -> Array:
        """d of new points: that of the function, or the averages of the sample's values, within their range."""
        if self.function is not None:
            return _checked(self.function(X), X)
        xp = namespace(averages)
        return xp.clip(averages, float(self.values.min()), float(self.values.max()))


def _checked(values: Any, X: Any) -> Array:
    """Finite non-negative numbers, one for each row of X, where X lies; some of them positive."""
    library = X if is_tensor(X) else np.empty(0)
    checked = checked_weights(values, int(X.shape[0]), "diagonal", signed=True, reference=library)
    if (checked < 0).any():
        row = int(namespace(checked).argmin(checked))
        raise ValueError(f"diagonal is {float(checked[row]):.3g} at index {row}: squared lengths are not negative.")
    return checked


def _refuse_range(values: Array, dtype: str) -> None:
    """Refuse lengths that are too few, or too large or too small for the arithmetic."""
    positive = values[values > 0]
    if positive.shape[0] < 2:
        raise ValueError(
            f"diagonal is positive at {positive.shape[0]} of the points that carry the embedding: it needs at least 2."
        )
    largest, least, most = float(positive.max()), float(positive.min()), _RANGE[dtype]
    if not 1 / most <= largest <= most:
        raise ValueError(f"diagonal reaches {largest:.3g}: multiply it by a constant, to a size near one.")
    if least < _LEAST * largest:
        raise ValueError(
            f"diagonal has {least:.3g} beside {largest:.3g}, too little for the arithmetic: write zero for points that "
            "shall lie at the origin."
        )


def rows_among(X: Any, training: Any) -> tuple[Array, Array]:
    """Which rows of X are rows of the training points, to the last bit, and which of these they are."""
    known = {row: number for number, row in reversed(list(enumerate(_rows(training, training))))}
    found = [(at, known[row]) for at, row in enumerate(_rows(X, training)) if row in known]
    pairs = np.array(found, np.int64).reshape(-1, 2)
    return pairs[:, 0], pairs[:, 1]


def _rows(X: Any, reference: Any) -> list[bytes]:
    """Every row as bytes, in the precision of other points: equal for equal rows."""
    if not hasattr(X, "indptr"):
        X = X.to_dense() if is_sparse_tensor(X) else X
        dense = np.ascontiguousarray(to_numpy(X), dtype_name(reference.dtype)) + 0.0  # which makes -0.0 zero
        return [row.tobytes() for row in dense]
    X = X.astype(reference.dtype, copy=True)
    X.sum_duplicates()
    X.eliminate_zeros()
    parts = zip(X.indptr[:-1], X.indptr[1:], strict=True)
    return [X.indices[lo:hi].astype(np.int64).tobytes() + X.data[lo:hi].tobytes() for lo, hi in parts]
