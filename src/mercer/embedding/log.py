"""The progress of a fit, in the logger ``mercer``."""

from __future__ import annotations

import logging

from mercer.solvers import Iteration

_log = logging.getLogger("mercer")


def log_iteration(iteration: Iteration) -> None:
    """One line at level INFO."""
    gap = "" if iteration.relative_gap is None else f", certified gap {iteration.relative_gap:.1e}"
    _log.info(
        "step %d: objective %.9g, row residual %.1e%s",
        iteration.number,
        iteration.objective,
        iteration.row_residual,
        gap,
    )
