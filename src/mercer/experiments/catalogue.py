"""The experiments by the names under which the command runs them."""

from __future__ import annotations

import inspect
from collections.abc import Callable

from mercer.experiments.clusters_with_outliers import clusters_with_outliers
from mercer.experiments.digits_one_and_four import digits_one_and_four
from mercer.experiments.interval_extension import interval_extension
from mercer.experiments.interval_kernels import interval_kernels
from mercer.experiments.pulsars import pulsar_classification, pulsar_embedding
from mercer.experiments.report import Experiment
from mercer.experiments.two_moons_clustering import two_moons_clustering
from mercer.experiments.two_moons_embedding import two_moons_embedding
from mercer.experiments.wine_bandwidths import wine_bandwidths

# Name on the command line → function whose defaults are the paper's values. PSD22 and PSD17 are the two papers on the
# SDP embedding; the name says which figure or table is reproduced.
CATALOGUE: dict[str, Callable[..., Experiment]] = {
    "psd22-fig1": clusters_with_outliers,
    "psd22-fig2": interval_kernels,
    "psd22-fig3": interval_extension,
    "psd22-fig4": digits_one_and_four,
    "psd22-fig5": wine_bandwidths,
    "psd22-fig6": pulsar_embedding,
    "psd22-table1": pulsar_classification,
    "psd22-fig7": two_moons_embedding,
    "psd22-fig8": two_moons_clustering,
}


def description(name: str) -> str:
    """The first line of the docstring of an experiment."""
    return (inspect.getdoc(CATALOGUE[name]) or "").partition("\n")[0]
