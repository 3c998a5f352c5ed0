"""What a person is warned of after the fit of a density."""

from __future__ import annotations

from typing import Any

from sklearn.exceptions import ConvergenceWarning

from mercer.density.squares import SquaresProblem
from mercer.problems import SquaresLikelihood
from mercer.progress import warn_user
from mercer.solvers.solution import Status
from mercer.validation import warn_if_not

_STALLED = 1e-6  # of the objective: proofs at the limit of rounding that are closer need no warning
_INTEGRATION = 1e-6
_UNEXPLAINED = 0.9
_UNSEEN, _BLIND = 0.1, 15.0  # the unseen part of MMD², of that of the sample and of the part that is seen: a warning


def warn_of_fit(model: Any, problem: SquaresProblem) -> None:
    """Say where a fitted density was not proved to its tolerance, not integrated well, or is far from the sample."""
    warn_if_not("universal", model.kernel_, "squares of its functions come near few densities, whatever the support.")
    proof = model.certificate_
    likely = isinstance(problem, SquaresLikelihood)
    part = (proof.upper - proof.lower) / (problem.scale if likely else max(problem.scale, proof.upper))
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
            "mass of the density: pass kernel=Gaussian(), or fewer columns of X.",
        )
    if likely:
        return
    unseen = model.mmd_**2 - model.projected_mmd_**2
    if model.objective == "projection" and unseen > max(
        _BLIND * model.projected_mmd_**2, _UNSEEN * model.sample_norm_**2
    ):
        warn_user(
            f"The MMD between density and sample is {model.mmd_:.2g}, of which the support sees "
            f"{model.projected_mmd_:.2g}: there is mass where there are no data. Pass more points as support, or "
            "objective='likelihood' or 'mmd'.",
        )
    if model.projected_mmd_**2 > _UNEXPLAINED * model.sample_norm_**2:
        nothing = model.projected_mmd_ >= model.sample_norm_
        explained = "nothing" if nothing else f"{1 - (model.projected_mmd_ / model.sample_norm_) ** 2:.0%}"
        warn_user(
            f"The density accounts for {explained} of the sample's mean embedding under {model.kernel_!r}: "
            f"the points are too far apart for it in {model.support_.shape[1]} dimensions. Pass a kernel of a "
            "larger sigma, more points as support, or fewer columns of X.",
        )
