"""What a person is warned of after the choice of landmarks."""

from __future__ import annotations

from typing import Any

from sklearn.exceptions import ConvergenceWarning

from mercer.problems import Discrepancy
from mercer.progress import warn_user
from mercer.quadrature.dense_penalties import warn_of_dense_solution
from mercer.quadrature.request import Choice
from mercer.solvers import Status

_FINE = (Status.CONVERGED, Status.STALLED, Status.STOPPED)
_SENTENCES = {
    Status.STALLED: (
        "The measure no longer moves, at the limit of rounding: accept the gap that the certificate states, or "
        "set dtype='float64' by config_context."
    ),
}
_UNPROVED = 1e-6  # gap of a solver that stalled, beyond which a person is told
_ZERO_OBJECTIVE = 1e-13  # of D(0): an objective below that is zero


def warn_of_fit(model: Any, problem: Discrepancy, choice: Choice) -> None:
    """Say where a solver gave up, and where there are more or fewer nodes than a person would expect."""
    if model.status_ not in _FINE or (model.status_ is Status.STALLED and _is_far(model, problem)):
        warn_user(_SENTENCES.get(model.status_, model.status_.message), ConvergenceWarning)
    wanted, found = model.n_nodes, int(model.indices_.shape[0])
    if wanted is not None and getattr(model.reduction_, "exhausted", False) and found > wanted:
        warn_user(
            f"n_nodes={wanted} were asked for, but max_weight leaves no room to merge {found}: raise max_weight "
            "or n_nodes."
        )
    ended = model.status_ in (Status.CONVERGED, Status.STALLED)  # no fewer for having been cut short
    few = wanted is not None and found < min(wanted, problem.size)
    if few and ended and choice.max_increase is None:
        warn_user(
            f"n_nodes={wanted} were asked for, but {found} do all that can be told apart in this arithmetic "
            f"(discrepancy {model.discrepancy_:.1e}): lower n_nodes, or pass a kernel of a smaller sigma.",
        )
    if model.penalty is not None:
        warn_of_dense_solution(problem, choice, found)


def _is_far(model: Any, problem: Discrepancy) -> bool:
    """Whether the proof leaves a gap that matters."""
    proof = model.certificate_
    return not proof.holds(_UNPROVED) and proof.upper > _ZERO_OBJECTIVE * problem.constant
