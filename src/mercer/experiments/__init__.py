"""The papers' experiments as functions, each returning the paper's numbers beside the measured ones and its picture.

A folder is a paper. Every public function and class of its files is found here by its name; the files register their
experiments themselves, see :func:`mercer.experiments.experiment`, and are imported when one is first asked for.

The defaults are the values that the paper prints. Where it prints none, and where data or a size stand in for the
paper's, as in the tables of QUAD section 9, a docstring says so. These parameters mean the same everywhere: ``sigma``
is the bandwidth of the Gaussian kernel; ``random_state`` decides what is drawn and where solvers start (of several
samples or splits it is that of the first, and the others follow); ``paper_steps`` are the steps of the papers' power
method, which runs beside ours, 0 for none; ``n`` and ``trace_fraction`` are the number of points and ϰ of a quadrature.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mercer.experiments.registry import catalogue, public_names
from mercer.experiments.registry import description as description
from mercer.experiments.registry import experiment as experiment
from mercer.experiments.report import Comparison as Comparison
from mercer.experiments.report import Experiment as Experiment
from mercer.experiments.report import Verdict as Verdict
from mercer.experiments.report import claim as claim
from mercer.experiments.report import compare as compare

CATALOGUE: dict[str, Callable[..., Experiment]]  # all of them by their names; made when it is asked for


def __getattr__(name: str) -> Any:
    if name == "CATALOGUE":
        return catalogue()
    if name == "__all__":
        return __dir__()
    if not name.startswith("__") and name in public_names():
        return public_names()[name]
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    own = ("CATALOGUE", "Comparison", "Experiment", "Verdict", "claim", "compare", "description", "experiment")
    return sorted({*own, *public_names()})
