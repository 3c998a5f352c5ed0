"""The experiments by the names under which the command runs them."""

from __future__ import annotations

import inspect
from collections.abc import Callable

from mercer.experiments.clusters_with_outliers import clusters_with_outliers
from mercer.experiments.report import Experiment

# Name on the command line → function whose defaults are the paper's values. PSD22 and PSD17 are the two papers on the
# SDP embedding; the name says which figure or table is reproduced.
CATALOGUE: dict[str, Callable[..., Experiment]] = {
    "psd22-fig1": clusters_with_outliers,
}


def description(name: str) -> str:
    """The first line of the docstring of an experiment."""
    return (inspect.getdoc(CATALOGUE[name]) or "").partition("\n")[0]
