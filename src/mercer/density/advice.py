"""Warnings of fits that ended short of what was asked for, each with what to do."""

from __future__ import annotations

from typing import Any

from sklearn.exceptions import ConvergenceWarning

from mercer.problems import SumOfSquares
from mercer.progress import warn_user
from mercer.solvers.solution import Status

_STALLED = 1e-6
_INTEGRATION = 1e-6
_UNEXPLAINED = 0.9
_LEAST_RADIUS = 1e-6  # below, the prices of the ball cost less than rounding


def warn_of_density(model: Any, problem: SumOfSquares) -> None:
    """Say where a fitted density was not proved to its tolerance, not integrated well, or explains next to nothing."""
    part = (model.certificate_.upper - model.certificate_.lower) / max(problem.scale, model.certificate_.upper)
    if model.status_ is Status.STALLED and part > _STALLED:
        warn_user(
            f"The solver stopped at the limit of rounding: the objective is proved to {part:.0e} of its size, not "
            f"to tol={model.tol:g}. Raise regularization or truncation, or loosen tol.",
            ConvergenceWarning,
        )
    if model.status_ not in (Status.CONVERGED, Status.STALLED, Status.STOPPED):
        warn_user(model.status_.message, ConvergenceWarning)
    if model.integration_error_ > _INTEGRATION:
        warn_user(
            f"The integrals of {model.kernel_!r} are accurate to {model.integration_error_:.0e} only, and so is the "
            "mass of the density: use Gaussian(), or fewer dimensions.",
        )
    if model.projected_mmd_**2 > _UNEXPLAINED * model.sample_norm_**2:
        warn_user(
            f"The density accounts for {_explained(model)} of the sample's mean embedding under {model.kernel_!r}: "
            f"the points are too far apart for it in {model.support_.shape[1]} dimensions. Widen the kernel, add "
            "support points, or reduce the dimension.",
        )


def _explained(model: Any) -> str:
    """1 - ‖P_m(v - w_p)‖²/‖P_m v‖² in words; a density that is no better than none explains nothing."""
    if model.projected_mmd_ >= model.sample_norm_:
        return "nothing"
    return f"{1 - (model.projected_mmd_ / model.sample_norm_) ** 2:.0%}"


def warn_of_regression(model: Any) -> None:
    """Say where a robust regression was interrupted, or not proved to its tolerance, and what to do."""
    if model.status_ is Status.INTERRUPTED:
        warn_user(model.status_.message, ConvergenceWarning)
    elif not model.certificate_.holds(model.tol) and model.status_ is not Status.STOPPED:
        advice = "centre y, raise regularization or truncation"
        if model.status_ is Status.MAX_ITER:
            advice = "raise max_iter"
        elif model.radius < _LEAST_RADIUS:
            advice = "take radius=0"
        warn_user(
            f"The certified relative gap is {model.certificate_.relative_gap:.1e}, not {model.tol:.1e}: {advice}, "
            "or accept the gap.",
            ConvergenceWarning,
        )
