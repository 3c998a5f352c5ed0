"""The experiments by the names under which the command runs them."""

from __future__ import annotations

import inspect
from collections.abc import Callable

from mercer.experiments.cluster_spectrum import cluster_spectrum
from mercer.experiments.clusters_extended import clusters_extended
from mercer.experiments.clusters_over_bandwidths import clusters_over_bandwidths
from mercer.experiments.clusters_with_outliers import clusters_with_outliers
from mercer.experiments.digits_one_and_four import digits_one_and_four
from mercer.experiments.handwritten_digits import digits_extended, digits_in_space
from mercer.experiments.interval_eigenfunctions import (
    interval_eigenfunctions,
    interval_in_plane,
    wide_interval_eigenfunctions,
    wide_interval_in_plane,
)
from mercer.experiments.interval_extension import interval_extension
from mercer.experiments.interval_kernels import interval_kernels
from mercer.experiments.interval_rank_one import interval_rank_one
from mercer.experiments.interval_steepness import interval_kernel_smooth, interval_kernel_steep
from mercer.experiments.iris_and_wine import iris_in_plane, wine_in_plane
from mercer.experiments.moons_density import moons_bandwidth, moons_regularization, moons_support
from mercer.experiments.pulsars import pulsar_classification, pulsar_embedding
from mercer.experiments.quadrature_large import covtype_quadrature, skin_quadrature
from mercer.experiments.quadrature_plane import square_eigenpairs, square_quadrature, square_spectrum
from mercer.experiments.quadrature_plane_path import square_path, square_upsilon
from mercer.experiments.quadrature_plane_rivals import square_merging, square_random
from mercer.experiments.relaxed_adversary import relaxed_adversary
from mercer.experiments.report import Experiment
from mercer.experiments.swiss_roll_in_plane import swiss_roll_in_plane
from mercer.experiments.two_moons_clustering import two_moons_clustering
from mercer.experiments.two_moons_embedding import two_moons_embedding
from mercer.experiments.wine_bandwidths import wine_bandwidths

# Name on the command line → function whose defaults are the paper's values. PSD22 and PSD17 are the two papers on the
# SDP embedding, QUAD the one on quadrature sparsification; the name says which figure or table is reproduced.
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
    "psd17-fig1": cluster_spectrum,
    "psd17-fig3": interval_kernel_smooth,
    "psd17-fig4": interval_eigenfunctions,
    "psd17-fig5": interval_in_plane,
    "psd17-fig6": interval_kernel_steep,
    "psd17-fig7": wide_interval_eigenfunctions,
    "psd17-fig8": wide_interval_in_plane,
    "psd17-section6": interval_rank_one,
    "psd17-fig9": clusters_over_bandwidths,
    "psd17-fig11": iris_in_plane,
    "psd17-fig12": wine_in_plane,
    "psd17-fig13": clusters_extended,
    "psd17-fig14": digits_extended,
    "psd17-figd15": digits_in_space,
    "psd17-figd16": swiss_roll_in_plane,
    "quad-fig8.1": square_spectrum,
    "quad-fig8.2": square_quadrature,
    "quad-fig8.3": square_eigenpairs,
    "quad-fig8.4": square_path,
    "quad-fig8.5": square_upsilon,
    "quad-fig8.6": square_merging,
    "quad-fig8.7": square_random,
    "quad-section9-covtype": covtype_quadrature,
    "quad-section9-skin": skin_quadrature,
    "sos-fig1": relaxed_adversary,
    "sos-fig2a": moons_regularization,
    "sos-fig2b": moons_bandwidth,
    "sos-fig2c": moons_support,
}


def description(name: str) -> str:
    """The first line of the docstring of an experiment."""
    return (inspect.getdoc(CATALOGUE[name]) or "").partition("\n")[0]
