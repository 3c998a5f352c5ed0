"""How well a sample stands for a domain: the fill distance, and the constant of the objective's discretisation."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from scipy.spatial import cKDTree

from mercer.backends.arrays import Array, to_numpy
from mercer.kernels import Kernel
from mercer.kernels.checks import as_points
from mercer.linalg import leading_eigenpairs
from mercer.operators import GramOperator
from mercer.validation import fraction, positive_number, whole_number

_MOST_DIMENSIONS = 4
_MOST_CELLS = 4_000_000


def fill_distance(X: Any, domain: Any, *, tol: float = 1e-3) -> float:
    """The fill distance h = sup over the domain of the distance to the nearest point of X (PSD22 (1.7)).

    Parameters
    ----------
    X : array of shape (n, d)
        The sample.
    domain : array of shape (N, d), ("box", lower, upper) or ("ball", centre, radius)
        Points, of which the supremum is the maximum; or a box or a ball of up to four dimensions.
    tol : float, default=1e-3
        Of a box or a ball in more than one dimension, how far above h the answer may lie, relative to it.

    Returns
    -------
    float
        h itself, to rounding, for points and for an interval; elsewhere a number between h and (1 + tol) h, found by
        dividing cells in which the distance, which has the slope one at most, may still exceed the largest one seen.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.embedding import fill_distance
    >>> fill_distance(np.array([[0.0], [0.5], [2.0]]), ("box", -1.0, 2.0))
    1.0
    """
    points = to_numpy(as_points(X)).astype(np.float64)
    if not points.shape[0]:
        raise ValueError("X has no rows: a fill distance needs at least one point.")
    if not isinstance(domain, tuple):
        places = _same_columns(to_numpy(as_points(domain, "domain")), points)
        return float(np.max(cKDTree(points).query(places)[0]))
    lower, upper, ball = _shape(domain, points.shape[1])
    if points.shape[1] == 1:
        return _on_interval(points[:, 0], float(lower[0]), float(upper[0]))
    return _by_cells(cKDTree(points), lower, upper, ball, fraction(tol, "tol"))


def _same_columns(places: Array, points: Array) -> Array:
    if places.shape[1] != points.shape[1] or not places.shape[0]:
        raise ValueError(f"domain has shape {places.shape}: give points with {points.shape[1]} features, as X has.")
    return places.astype(np.float64)


def _shape(domain: Any, n_features: int) -> tuple[Array, Array, tuple[Array, float] | None]:
    """The corners of the smallest box around a box or a ball, and the ball."""
    kind = domain[0] if len(domain) == 3 else None
    if kind not in ("box", "ball"):
        raise ValueError("domain must be an array of points, ('box', lower, upper) or ('ball', centre, radius).")
    if n_features > _MOST_DIMENSIONS:
        raise ValueError(
            f"A {kind} of {n_features} dimensions is too large to be searched: pass points of the domain instead."
        )
    first = np.broadcast_to(np.asarray(domain[1], np.float64), (n_features,))
    if kind == "ball":
        radius = positive_number(domain[2], "the radius of domain")
        return first - radius, first + radius, (first, radius)
    second = np.broadcast_to(np.asarray(domain[2], np.float64), (n_features,))
    if not np.all(np.isfinite(first) & np.isfinite(second) & (first < second)):
        raise ValueError(f"domain has the corners {first} and {second}: the first must be below the second.")
    return first, second, None


def _on_interval(points: Array, lower: float, upper: float) -> float:
    """The largest of the gaps at both ends and of half the gaps inside; points outside the interval count too."""
    ordered = np.sort(points)
    middles = (ordered[:-1] + ordered[1:]) / 2
    places = np.concatenate([[lower, upper], middles[(middles > lower) & (middles < upper)]])
    return float(np.max(np.min(np.abs(places[:, None] - ordered), axis=1)))


def _by_cells(tree: Any, lower: Array, upper: Array, ball: tuple[Array, float] | None, tol: float) -> float:
    """Branch and bound: in a cell with centre c and half diagonal r no distance exceeds that of c by more than r."""
    centres, half = ((lower + upper) / 2)[None], (upper - lower) / 2
    signs = np.array(np.meshgrid(*[[-0.5, 0.5]] * lower.size)).reshape(lower.size, -1).T
    seen = 0.0
    while True:
        reach = float(np.linalg.norm(half))
        if ball is not None:
            away = np.linalg.norm(np.maximum(np.abs(centres - ball[0]) - half, 0.0), axis=1)
            centres = centres[away <= ball[1]]
        seen = max(seen, float(np.max(tree.query(_inside(centres, ball))[0])))
        most = tree.query(centres)[0] + reach
        if float(most.max()) <= (1 + tol) * seen:
            return float(most.max())
        centres = centres[most > (1 + tol) * seen]
        if centres.shape[0] * signs.shape[0] > _MOST_CELLS:
            raise ValueError(f"The fill distance is not found to tol={tol:g} within reason: loosen tol.")
        centres = (centres[:, None, :] + signs * half).reshape(-1, lower.size)
        half = half / 2


def _inside(centres: Array, ball: tuple[Array, float] | None) -> Array:
    """Points of the domain in the cells: their centres, drawn into the ball where they lie outside."""
    if ball is None:
        return centres
    offsets = centres - ball[0]
    lengths = np.linalg.norm(offsets, axis=1)
    return np.asarray(ball[0] + offsets * np.minimum(1.0, ball[1] / np.maximum(lengths, 1e-300))[:, None])


def discretization_constant(
    n_samples: int,
    delta: float = 0.05,
    *,
    kappa: float = 1.0,
    top_eigenvalue: float | None = None,
    kernel: Kernel | None = None,
    X: Any = None,
) -> float:
    """C_{n,δ} of PSD22 Proposition 4.1: the objectives of n points and of the domain differ by C Tr 𝔹 at most.

    With probability 1 - 2δ over n points drawn independently and uniformly from the domain, C = 2κ²c + c² with

        c = 4κ²β/(3n) + √(2κ²λβ/n),        β = log(2κ²/(λδ)).

    Parameters
    ----------
    n_samples : int
        n.
    delta : float, default=0.05
        δ, between 0 and 1/2.
    kappa : float, default=1
        κ, with k(x, x) ≤ κ².
    top_eigenvalue : float, optional
        λ, the largest eigenvalue of the kernel's integral operator on the domain, of mean one.
    kernel, X : Kernel and array of shape (m, d), optional
        In place of ``top_eigenvalue`` and ``kappa``: a resolved kernel and points of the domain, on which both are
        estimated. The proposition is then as good as that estimate.

    Returns
    -------
    float
        C, which falls like 1/√n.
    """
    n = whole_number(n_samples, "n_samples", 1)
    if not 0 < positive_number(delta, "delta") < 0.5:
        raise ValueError(f"delta={delta!r} must lie between 0 and 1/2.")
    square = positive_number(kappa, "kappa") ** 2
    if top_eigenvalue is None:
        if kernel is None or X is None:
            raise ValueError("Give top_eigenvalue, or kernel and X to estimate it from.")
        gram = GramOperator(kernel, X)
        values, _ = leading_eigenpairs(gram, 1, rng=np.random.default_rng(0))
        top_eigenvalue, square = float(values[0]) / gram.shape[0], float(gram.diagonal().max())
    top = positive_number(top_eigenvalue, "top_eigenvalue")
    if top > square * (1 + 1e-12):
        raise ValueError(f"top_eigenvalue={top:g} exceeds κ²={square:g}, which no kernel below κ² has.")
    beta = math.log(2 * square / (top * delta))
    c = 4 * square * beta / (3 * n) + math.sqrt(2 * square * top * beta / n)
    return 2 * square * c + c * c
