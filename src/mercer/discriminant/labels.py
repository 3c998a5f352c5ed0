"""What the targets of a fit say of its rows: an orthonormal basis of their features."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple, final

import numpy as np
from scipy.linalg import svd
from sklearn.utils.multiclass import type_of_target
from sklearn.utils.validation import check_array, check_consistent_length, column_or_1d

from mercer.backends.arrays import Array, is_tensor, to_numpy
from mercer.backends.rounding import EPS
from mercer.kernels import Categories, Gaussian, Kernel, Linear, Precomputed
from mercer.kernels.tables import Table, is_frame
from mercer.linalg import rp_cholesky
from mercer.operators import GramOperator
from mercer.validation import checked_kernel, of_labels, resolved_kernel

_MOST_FEATURES = 1000  # of the labels
_TRACE_LEFT = 1e-10  # of a kernel of the labels, at which its factorisation ends


class LabelBasis(NamedTuple):
    """The labels of n rows, whose shares are the squares of a unit vector ``root``.

    Attributes
    ----------
    basis : array of shape (n, c)
        Q: orthonormal columns that span the features of the labels, centred and scaled by ``root``.
    strengths : array of shape (c,)
        s: eigenvalues of their centred kernel matrix, with Q; a mean over the rows.
    explained : array of shape (c,)
        t, from 0 to 1: the part of what lies along Q that the labels account for. 1 without smoothing.
    """

    basis: Array
    strengths: Array
    explained: Array

    @classmethod
    def of(cls, features: Array, root: Array, smoothing: float) -> LabelBasis:
        """The basis of some features, one row for every point; t = s / (s + smoothing · Σs)."""
        centred = root[:, None] * (features - (root**2) @ features)
        vectors, roots, _ = svd(centred, full_matrices=False, lapack_driver="gesvd")
        largest = float(np.max(roots, initial=0.0))
        kept = roots > max(features.shape) * EPS * max(largest, float(np.max(np.abs(features), initial=0.0)))
        strengths = roots[kept] ** 2
        return cls(vectors[:, kept], strengths, strengths / (strengths + smoothing * float(strengths.sum())))


@final
@dataclass(frozen=True, eq=False)
class Targets:
    """The targets of a fit, read.

    Attributes
    ----------
    classes : array of shape (c,) or None
        Where they are classes, which.
    values : array of shape (n, o) or None
        What is to be predicted: which class a row has, zeros and ones; labels; or numbers. None where nothing is.
    kind : {"none", "classes", "labels", "numbers", "objects"}
        What the targets are. Of objects nothing is known but the kernel.
    kernel : Kernel or None
        The kernel that compares targets, resolved; None for that of classes, one where they are equal and else zero.
    features : array of shape (n, c)
        Of the targets: their inner products are the kernel.
    wide : bool
        Whether the targets have columns, be it one.
    """

    kind: str
    features: Array
    values: Array | None
    classes: Array | None = None
    kernel: Kernel | None = None
    wide: bool = False

    def basis(self, root: Array, smoothing: float, rows: Array | None = None) -> LabelBasis:
        """The basis of all rows or of some; what is known by class or label is not smoothed."""
        features = self.features if rows is None else self.features[rows]
        return LabelBasis.of(features, root, 0.0 if self.kind in ("classes", "labels") else smoothing)


def no_targets(n: int) -> Targets:
    """Of a fit without targets."""
    return Targets("none", np.zeros((n, 0)), values=None)


def read_targets(y: Any, y_kernel: Any, weights: Array, rng: np.random.Generator) -> Targets:
    """Read targets: classes, several labels a row, one or several numbers, or what a kernel given for them compares.

    ``weights``, one a row, say which rows take part: their classes are known, others are none.
    """
    y = to_numpy(y) if is_tensor(y) else y
    check_consistent_length(weights, y)
    if y_kernel is not None:
        return _by_kernel(y, y_kernel, weights, rng)
    values = np.asarray(y)
    if values.ndim == 2 and values.shape[1] == 1:
        values = column_or_1d(values, warn=True)
    values = check_array(values, ensure_2d=False, dtype=None, input_name="y")
    kind = of_labels(type_of_target, values)
    if kind in ("binary", "multiclass"):
        return _of_classes(values, weights)
    if kind == "multilabel-indicator":
        labels = np.asarray(values, np.float64)
        return Targets("labels", labels, values=labels, kernel=Linear(), wide=True)
    if kind.startswith("continuous"):
        return _by_kernel(values, Gaussian(), weights, rng)
    if kind == "multiclass-multioutput":
        return _by_kernel(values, Categories(), weights, rng)
    raise ValueError(f"Unknown label type: {kind}. Pass classes, a matrix of labels, numbers, or a y_kernel.")


def _of_classes(values: Array, weights: Array) -> Targets:
    classes = np.unique(values[weights > 0])
    if classes.size < 2:
        raise ValueError(f"y has one class, {str(classes[0])!r}: discriminants need at least two classes.")
    indicators = (values[:, None] == classes).astype(np.float64)
    return Targets("classes", indicators, values=indicators, classes=classes)


def _by_kernel(y: Any, y_kernel: Any, weights: Array, rng: np.random.Generator) -> Targets:
    kernel, points, numbers = _compared(y, checked_kernel(y_kernel))
    kernel = resolved_kernel(kernel, points, weights)
    gram = GramOperator(kernel, points)
    rank = min(gram.shape[0], _MOST_FEATURES)
    features = np.asarray(rp_cholesky(gram, rank, rng, weights=weights, tolerance=_TRACE_LEFT).factor, np.float64)
    values, wide = points if numbers else None, np.ndim(y) == 2
    return Targets("numbers" if numbers else "objects", features, values=values, kernel=kernel, wide=wide)


def _compared(y: Any, kernel: Kernel) -> tuple[Kernel, Array, bool]:
    """The kernel, what it compares, one row a point, and whether these are numbers to be predicted."""
    if is_frame(y):
        table = Table.of(y)
        bound = kernel.bound(table)
        table.require_numbers(bound)
        return bound, table.coded(y), not table.categories
    values = np.asarray(y)
    values = values[:, None] if values.ndim == 1 else values
    if values.dtype.kind in "OUS":
        codes = [np.unique(column.astype(str), return_inverse=True)[1] for column in values.T]
        if kernel.read_as_numbers(len(codes)):
            raise ValueError(f"y holds words, and y_kernel={kernel!r} calculates with numbers: pass Categories().")
        return kernel, np.stack(codes, axis=1).astype(np.float64), False
    points = check_array(values, dtype=np.float64, input_name="y")
    if isinstance(kernel, Precomputed) and points.shape[0] != points.shape[1]:
        raise ValueError(f"A precomputed y_kernel must be square, not {points.shape[0]} × {points.shape[1]}.")
    return kernel, points, not isinstance(kernel, Precomputed)
