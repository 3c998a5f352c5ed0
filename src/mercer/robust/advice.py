"""Warnings of regressions that ended short of what was asked for, each with what to do."""

from __future__ import annotations

from typing import Any

from sklearn.exceptions import ConvergenceWarning

from mercer.progress import warn_user
from mercer.solvers.solution import Status

_LEAST_RADIUS = 1e-6  # below, the prices of the ball cost less than rounding


def warn_of_regression(model: Any, advice: str) -> None:
    """Say where a robust fit was interrupted, or not proved to its tolerance, and what to do."""
    if model.status_ is Status.INTERRUPTED:
        warn_user(model.status_.message, ConvergenceWarning)
    elif not model.certificate_.holds(model.tol) and model.status_ is not Status.STOPPED:
        if model.status_ is Status.MAX_ITER:
            advice = "raise max_iter"
        elif 0 < getattr(model, "radius_", model.radius) < _LEAST_RADIUS:
            advice = "take radius=0"
        warn_user(
            f"The certified relative gap is {model.certificate_.relative_gap:.1e}, not {model.tol:.1e}: {advice}, "
            "or accept the gap.",
            ConvergenceWarning,
        )
