"""The programme of a density's likelihood, from its sections and the data: the same for fitting and for certifying."""

from __future__ import annotations

import numpy as np

from mercer.backends.arrays import Array, namespace, norm
from mercer.backends.rounding import EPS
from mercer.kernels.integrals.sections import SquareSections
from mercer.problems import SquaresLikelihood
from mercer.problems.squares_likelihood import ObservedSections
from mercer.problems.sum_of_squares import orthonormal_basis
from mercer.problems.sum_of_squares_enclosures import Sample
from mercer.validation import normalised

_FARTHEST = -600.0  # of the logarithm of the largest section at a point: beyond, squares underflow


def make_likelihood(
    sections: SquareSections,
    sample: Sample,
    *,
    regularization: float,
    truncation: float,
    basis: Array | None = None,
) -> SquaresLikelihood:
    """The likelihood of Σ a_i δ(x_i), the weights a over their sum; equal ones where they are None.

    ``basis`` is that of a programme before with the same sections.

    Raises
    ------
    ValueError
        If a point is so far from all sections that no density of theirs is positive there.
    """
    basis = orthonormal_basis(sections.mass(), truncation) if basis is None else basis
    shares = normalised(sample.weights, sample.points.shape[0], reference=sample.points)
    points = sample.points[shares > 0]
    log_scales, rows = sections.scaled_product(points, basis)
    lost = (log_scales < _FARTHEST) | ~(rows != 0).any(axis=1)
    if bool(lost.any()):
        raise ValueError(
            f"{int(lost.sum())} of {points.shape[0]} points are so far from all support points that no density of this "
            "kernel is positive there: pass a kernel of a larger sigma, or more points as support."
        )
    observed = ObservedSections(rows, log_scales, shares[shares > 0])
    return SquaresLikelihood(sections, basis, sections.gram(), observed, sample, regularization=regularization)


def log_density(sections: SquareSections, X: Array, factor: Array) -> tuple[Array, Array]:
    """log ‖Fᵀk_x‖² with the sections' scale at the rows of X, and log (ε² ‖F‖² max_p k_p(x)²), which is rounding."""
    xp = namespace(X)
    scales, product = sections.scaled_product(X, factor)
    with np.errstate(divide="ignore"):
        logs = 2.0 * scales + xp.log(xp.sum(product**2, axis=1)) - sections.log_scale
    return logs, 2.0 * (scales + float(np.log(EPS) + np.log(norm(factor)))) - sections.log_scale
