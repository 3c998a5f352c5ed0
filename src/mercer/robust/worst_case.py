"""The worst expectation of a function over the distributions of an MMD ball around a sample (SOS 2-5)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, final

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from mercer.backends import config_context
from mercer.backends.arrays import Array, to_numpy
from mercer.backends.rounding import exact_sum
from mercer.certificates import Certificate
from mercer.certificates.kernel_sums import KernelSum
from mercer.certificates.worst_case import BallAround, normalised, relaxed_bounds
from mercer.dependence import MeanEmbedding
from mercer.kernels import Gaussian, Kernel
from mercer.kernels.checks import as_points
from mercer.progress import warn_user
from mercer.robust.worst_case_function import Integrand, KernelIntegrand, PlainIntegrand
from mercer.robust.worst_case_solve import Answer, Request, sample_alone, worst_on_box, worst_on_points
from mercer.validation import (
    checked_kernel,
    distinct_rows,
    non_negative,
    one_of,
    optional,
    positive_number,
    require_points,
    resolved_kernel,
    weighted_sample,
    whole_number,
)
from mercer.wording import brief

_ON_GRID = 200
_ROUNDING = 1e-12  # of the value: gaps that no person needs to be warned of


@final
@dataclass(frozen=True)
class WorstCase:
    """What :func:`mercer.worst_case_expectation` found.

    Attributes
    ----------
    value : float
        The expectation under the worst distribution found, which is proved to lie in the ball.
    certificate : Certificate
        Bounds of the worst expectation; ``covers`` says over which distributions.
    covers : {"points", "box", "ball"}
        All distributions of the ball on ``candidates``, all on the box, or all vectors of the Hilbert ball.
    embedding : MeanEmbedding
        Of the worst distribution; for the relaxation, the worst vector.
    dual : MeanEmbedding
        The h of the proof: f ≤ h + max (f - h), and E h ≤ ⟨h, v⟩ + ε‖h‖ in the whole ball.
    candidates, weights : arrays of shape (N, d) and (N,), or None for the relaxation
        The points that the sample and the candidates make, and the worst distribution on them.
    mmd : float
        A proved upper bound of the distance of ``embedding`` from the sample, never above the radius.
    """

    value: float
    certificate: Certificate
    covers: str
    embedding: MeanEmbedding
    dual: MeanEmbedding
    candidates: Array | None
    weights: Array | None
    mmd: float

    def __repr__(self) -> str:
        return brief(self, "value", "covers", "mmd", "certificate")


def worst_case_expectation(
    function: Callable[[Array], Any] | MeanEmbedding,
    X: Any,
    radius: float,
    *,
    kernel: Any = None,
    box: Any = None,
    candidates: Any = None,
    relaxation: str | None = None,
    sense: str = "max",
    sample_weight: Any = None,
    lipschitz: float | None = None,
    tol: float = 1e-4,
) -> WorstCase:
    """The largest, or least, expectation of a function over distributions within an MMD of a sample (SOS 3, 5).

        sup E_μ[f]   over distributions μ with MMD(μ, sample) ≤ ε

    On the sample's points and the candidates this is a finite convex programme, bounded from above by a function of the
    kernel's space. On a box the proof covers *every* distribution where it is known how fast f changes: for a
    :class:`mercer.MeanEmbedding`, or given a Lipschitz constant; else it is of the candidates, and ``covers`` says so.

    Parameters
    ----------
    function : callable or MeanEmbedding
        f: from points of shape (n, d) to n numbers, taken as exact; or a function Σ c k(·, x) of the kernel's space.
    X : array of shape (n, d)
        The sample.
    radius : float
        ε ≥ 0.
    kernel : Kernel, default=None
        Positive semi-definite; None means the function's own, or ``Gaussian(sigma="median")``.
    box : (lower, upper), default=None
        Where distributions may live: two numbers or two corners, around the sample. None means on the points alone.
    candidates : int or array of shape (N, d), default=None
        Points where distributions may live beside the sample's own; on a box, the points that the search begins with,
        or about how many of a grid (None means 200).
    relaxation : {"rkhs"}, default=None
        ``"rkhs"``: over all vectors of the Hilbert ball instead of distributions, E_sample[f] + ε‖f‖ (SOS 5). For a
        MeanEmbedding alone, and without box and candidates, which it does not see.
    sense : {"max", "min"}, default="max"
        Whether the worst is the largest expectation, as of a loss, or the least, as of a return.
    sample_weight : array of shape (n,), default=None
        Weights of the sample.
    lipschitz : float, default=None
        A constant L with abs(f(x) - f(y)) ≤ L‖x - y‖ on the box. It is believed.
    tol : float, default=1e-4
        The proved gap to stop at, relative to the spread of f on the points.

    Returns
    -------
    WorstCase

    Notes
    -----
    Cost on N points: N r² operations a step, some thirty steps, r ≤ 400 the rank of the kernel matrix. On a box
    the proof halves cells: for a few dimensions.

    Examples
    --------
    >>> import numpy as np, mercer
    >>> returns = mercer.MeanEmbedding(mercer.Gaussian(sigma=1.0), [[0.4]])
    >>> true = mercer.worst_case_expectation(returns, [[0.0]], 1.2, box=(-2, 2), sense="min")
    >>> relaxed = mercer.worst_case_expectation(returns, [[0.0]], 1.2, relaxation="rkhs", sense="min")
    >>> round(true.value, 3), round(relaxed.value, 3), true.covers
    (0.032, -0.348, 'box')
    """
    one_of("max", "min")(sense, "sense")
    one_of(None, "rkhs")(relaxation, "relaxation")
    request = Request(non_negative(radius, "radius"), positive_number(tol, "tol"), 1.0 if sense == "max" else -1.0)
    optional(non_negative)(lipschitz, "lipschitz")
    with config_context(dtype="float64"):
        points, weights = _sample(X, sample_weight)
        chosen = _kernel(kernel, function, points, weights)
        integrand = _integrand(function, chosen, request.sign, lipschitz)
        if relaxation is not None:
            if box is not None or candidates is not None:
                raise ValueError("relaxation='rkhs' is over vectors, not distributions: leave box and candidates out.")
            return _relaxed(integrand, chosen, points, weights, request)
        answer = _true(integrand, BallAround(chosen, points, weights, request.radius), box, candidates, request)
        return _result(answer, chosen, request)


def _sample(X: Any, sample_weight: Any) -> tuple[Array, Array]:
    """Distinct points and their weights, normalised by an exact sum."""
    points, weights = (to_numpy(part) for part in weighted_sample(X, sample_weight, "X", "sample_weight"))
    if not np.any(weights > 0):
        raise ValueError("sample_weight vanishes everywhere: a sample needs a point of positive weight.")
    points, weights = points[weights > 0] + 0.0, weights[weights > 0]
    first, place = distinct_rows(points)
    groups = np.split(weights[np.argsort(place, kind="stable")], np.cumsum(np.bincount(place))[:-1])
    return np.ascontiguousarray(points[first]), normalised(np.array([exact_sum(group) for group in groups]))


def _kernel(kernel: Any, function: Any, points: Array, weights: Array) -> Kernel:
    require_points(kernel, "Worst-case expectations evaluate the kernel at candidates")
    if isinstance(function, MeanEmbedding):
        if kernel is not None:
            function @ MeanEmbedding(kernel, points, weights)  # raises where the kernels differ
        return function.kernel
    if points.shape[0] == 1 and (kernel is None or not checked_kernel(kernel).is_resolved):
        raise ValueError("A bandwidth cannot be found from a single point: give a kernel with a number.")
    chosen = resolved_kernel(Gaussian() if kernel is None else kernel, points, weights)
    if chosen.properties.positive_definite is False:
        raise ValueError(f"{chosen!r} is not positive semi-definite: there is no MMD of it.")
    return chosen


def _integrand(function: Any, kernel: Kernel, sign: float, lipschitz: float | None) -> Integrand:
    if not isinstance(function, MeanEmbedding):
        if not callable(function):
            raise TypeError(f"function={function!r} must be a function of points, or a MeanEmbedding.")
        return PlainIntegrand(function, kernel, sign, lipschitz)
    if any(part.variance != 0 for part in function.parts):
        raise ValueError("The function must be a MeanEmbedding of points, not of a density.")
    if lipschitz is not None:
        raise ValueError("lipschitz goes with a plain function: how fast a MeanEmbedding changes is known.")
    points = np.concatenate([to_numpy(part.means) for part in function.parts])
    coefficients = sign * np.concatenate([to_numpy(part.weights) for part in function.parts])
    return KernelIntegrand(KernelSum(kernel, np.asarray(points, np.float64), coefficients))


def _true(integrand: Integrand, ball: BallAround, box: Any, candidates: Any, request: Request) -> Answer:
    """Over distributions: on the box, or on the points."""
    d = ball.points.shape[1]
    if request.radius == 0:
        if not ball.kernel.properties.characteristic:
            raise ValueError(
                f"At radius=0 distributions that {ball.kernel!r} cannot tell from the sample are left, of which little "
                "is known: give a positive radius, or a characteristic kernel."
            )
        return sample_alone(integrand, ball, "points" if box is None else "box")
    if box is None:
        if candidates is None:
            return worst_on_points(integrand, ball, np.empty((0, d)), request)
        return worst_on_points(integrand, ball, _given(candidates, d), request)
    corners = _corners(box, ball.points)
    first = _grid(*corners, _ON_GRID if candidates is None else candidates)
    if np.any((first < corners[0]) | (first > corners[1])):
        raise ValueError("Some candidates lie outside the box: leave them out, or enlarge it.")
    if not integrand.has_modulus:
        return worst_on_points(integrand, ball, first, request)
    return worst_on_box(integrand, ball, first, corners, request)


def _given(candidates: Any, d: int) -> Array:
    points = np.asarray(to_numpy(as_points(candidates, "candidates")), np.float64)
    if points.shape[1] != d:
        raise ValueError(f"candidates have {points.shape[1]} features where X has {d}.")
    return points


def _corners(box: Any, points: Array) -> tuple[Array, Array]:
    d = points.shape[1]
    try:
        lower, upper = (np.broadcast_to(np.asarray(side, np.float64), (d,)).copy() for side in box)
    except (TypeError, ValueError):
        raise ValueError(
            f"box={box!r} must be a pair (lower, upper) of numbers, or of corners with {d} entries."
        ) from None
    if not (np.all(np.isfinite(lower)) and np.all(np.isfinite(upper)) and np.all(lower < upper)):
        raise ValueError(f"box={box!r} must be finite, its lower corner below its upper one.")
    if np.any((points < lower) | (points > upper)):
        raise ValueError("Some points of X lie outside the box: enlarge it, or remove them.")
    return lower, upper


def _grid(lower: Array, upper: Array, candidates: Any) -> Array:
    """The candidates given, or a grid of about so many points."""
    if not isinstance(candidates, int | np.integer) or isinstance(candidates, bool):
        return _given(candidates, lower.size)
    count = max(2, int(whole_number(candidates, "candidates", 2) ** (1 / lower.size) + 1e-9))
    axes = [np.linspace(a, b, count) for a, b in zip(lower, upper, strict=True)]
    return np.stack([axis.reshape(-1) for axis in np.meshgrid(*axes, indexing="ij")], axis=1)


def _relaxed(integrand: Integrand, kernel: Kernel, points: Array, weights: Array, request: Request) -> WorstCase:
    """The closed form SOS (5): v + ε f/‖f‖."""
    if not isinstance(integrand, KernelIntegrand):
        raise ValueError(
            "relaxation='rkhs' takes the norm of the function in the kernel's space: give a MeanEmbedding, "
            "Σ c k(·, x), or leave it out."
        )
    f = integrand.sum
    lower, upper = relaxed_bounds(BallAround(kernel, points, weights, request.radius), f)
    sample, size = MeanEmbedding(kernel, points, weights), f.norm_below
    vector = _vector(f)
    worst = sample + (request.radius / size) * vector if size > 0 else sample
    middle = (lower + upper) / 2
    proof = _certificate(lower, upper, request, "closed form of the Hilbert ball")
    return WorstCase(request.sign * middle, proof, "ball", worst, request.sign * vector, None, None, request.radius)


def _vector(h: KernelSum) -> MeanEmbedding:
    """A function of the kernel's space as one that a person can ask."""
    return MeanEmbedding(h.kernel, h.points, h.coefficients)


def _certificate(lower: float, upper: float, request: Request, method: str) -> Certificate:
    bounds = (lower, upper) if request.sign > 0 else (-upper, -lower)
    return Certificate(*bounds, 0.0, method, 0, minimised=request.sign < 0)


def _result(answer: Answer, kernel: Kernel, request: Request) -> WorstCase:
    method = "a function of the kernel's space above the other"
    proof = _certificate(answer.lower, answer.upper, request, method)
    if answer.upper - answer.lower > request.tol * answer.spread + _ROUNDING * abs(answer.value):
        if answer.covers == "box":
            advice = "the proof on the box ran out of cells; give more candidates, a smaller lipschitz, or loosen tol."
        else:
            advice = "loosen tol, or pass a kernel that is less ill-conditioned on these points, as of a smaller sigma."
        warn_user(
            f"The worst expectation is proved to {answer.upper - answer.lower:.1e} only, not to {request.tol:g} of the "
            f"function's spread: {advice}",
            ConvergenceWarning,
        )
    worst = MeanEmbedding(kernel, answer.points, answer.weights)
    dual = request.sign * _vector(answer.dual)
    value = request.sign * answer.value
    return WorstCase(value, proof, answer.covers, worst, dual, answer.points, answer.weights, answer.mmd)
