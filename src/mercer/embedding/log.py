"""The progress of a fit, in the logger ``mercer``."""

from __future__ import annotations

import logging

from mercer.solvers import Iteration

_log = logging.getLogger("mercer")


def log_iteration(iteration: Iteration) -> None:
    """One line at level INFO."""
    kind = "certified gap" if iteration.phase == "climb" else "gap"
    gap = "" if iteration.relative_gap is None else f", {kind} {iteration.relative_gap:.1e}"
    _log.info(
        "%s, step %d: objective %.9g, row residual %.1e%s, %.1f s",
        iteration.phase,
        iteration.number,
        iteration.objective,
        iteration.row_residual,
        gap,
        iteration.seconds,
    )


def log_phase(phase: str) -> None:
    """A line at level INFO when a phase without steps of its own begins."""
    _log.info("%s …", phase)
