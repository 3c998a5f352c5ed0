"""How far a point is from the minimum of a strongly convex function: by its gradient, every rounding counted.

F = R̂ + ε‖f²‖ + λ‖f‖² is 2λ-strongly convex in the norm of f, so F(β) - min F ≤ hᵀ(Uᵀ k U)⁻¹h/λ with h half the
gradient in β. R̂, the norm of f² and the gradient are balls with proved radii.
"""

from __future__ import annotations

import numpy as np

from mercer.backends.arrays import Array, to_numpy
from mercer.backends.balls import Ball, ball
from mercer.certificates.certificate import RegressionCertificate
from mercer.certificates.enclosures import least_ratio
from mercer.problems.robust_regression_enclosures import RegressionEnclosures


def certify_strongly_convex(
    enclosed: RegressionEnclosures, beta: Array, *, radius: float, regularization: float
) -> RegressionCertificate:
    """Bound the minimum of the penalised least squares from β.

    Parameters
    ----------
    enclosed : RegressionEnclosures
        The sample and the functions with proved errors.
    beta : array of shape (l,)
        The function in the basis U.
    radius, regularization : float
        ε ≥ 0 and λ > 0.

    Notes
    -----
    Cost: a pass over the sample, and two products of m × m matrices. The proof is NumPy's, which a function of tensors
    is brought to once.
    """
    alpha = enclosed.functions @ ball(to_numpy(beta))
    risk, slope = _penalised_risk(enclosed, alpha, radius)
    kept = enclosed.losses.input_gram @ alpha
    value = risk + (alpha * kept).sum() * regularization
    half = (enclosed.functions.T @ (slope + kept * regularization)).magnitude()
    least = regularization * least_ratio(enclosed.function_gram)
    off = float(half @ half) / least * (1 + 2.0**-40) if least > 0 else np.inf
    upper = float(value.upper())
    if not np.isfinite(upper):
        raise ArithmeticError("The regression is too ill-conditioned for any proof: bring X and y to a scale near one.")
    return RegressionCertificate(
        lower=max(float(value.widened(off).lower()), 0.0) if np.isfinite(off) else 0.0,
        upper=upper,
        failure_probability=0.0,
        method="gradient of a strongly convex function",
        n_products=0,
        minimised=True,
        robust_risk=float(risk.upper()),
        sample_risk=float(enclosed.sample_loss(alpha)[0].hi),
    )


def _penalised_risk(enclosed: RegressionEnclosures, alpha: Ball, radius: float) -> tuple[Ball, Ball]:
    """R̂ + ε‖f²‖, and half its gradient in α.

    ‖f²‖² = αᵀ(P∘P)α with P = E Diag(α) E, see :mod:`mercer.problems.hilbert_ball_regression`, and half its gradient in
    α is 2 (P∘P)α. Where ‖f²‖ is not proved to be positive it is taken for a number between zero and its largest value
    that no gradient belongs to: a bound from below may leave a non-negative term out.
    """
    loss, slope = enclosed.sample_loss(alpha)
    if radius == 0:
        return loss, slope
    E = enclosed.losses.midpoint_gram
    P = (E * alpha) @ E
    pull = P.squared() @ alpha
    norm = (alpha * pull).sum().root()
    if float(norm.lower()) > 0:
        slope = slope + pull * (norm.inverse() * radius)
    return loss + norm * radius, slope
