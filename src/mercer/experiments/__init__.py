"""The papers' experiments as functions, each returning the paper's numbers beside the measured ones and its picture."""

from mercer.experiments.catalogue import CATALOGUE, description
from mercer.experiments.cluster_spectrum import ClusterSpectrum, cluster_spectrum
from mercer.experiments.clusters_extended import ClustersExtended, clusters_extended
from mercer.experiments.clusters_over_bandwidths import ClustersOverBandwidths, clusters_over_bandwidths
from mercer.experiments.clusters_with_outliers import ClustersWithOutliers, clusters_with_outliers
from mercer.experiments.digits_one_and_four import DigitsOneAndFour, digits_one_and_four
from mercer.experiments.handwritten_digits import DigitsExtended, DigitsInSpace, digits_extended, digits_in_space
from mercer.experiments.interval_eigenfunctions import (
    IntervalEigenfunctions,
    IntervalInPlane,
    interval_eigenfunctions,
    interval_in_plane,
    wide_interval_eigenfunctions,
    wide_interval_in_plane,
)
from mercer.experiments.interval_extension import IntervalExtension, interval_extension
from mercer.experiments.interval_kernels import IntervalKernels, interval_kernels
from mercer.experiments.interval_rank_one import IntervalRankOne, interval_rank_one
from mercer.experiments.interval_steepness import IntervalSteepness, interval_kernel_smooth, interval_kernel_steep
from mercer.experiments.iris_and_wine import TableInPlane, iris_in_plane, wine_in_plane
from mercer.experiments.moons_density import (
    MoonsBandwidth,
    MoonsRegularization,
    MoonsSupport,
    moons_bandwidth,
    moons_regularization,
    moons_support,
)
from mercer.experiments.outlier_robustness import OutlierRobustness, outlier_robustness
from mercer.experiments.pulsars import PulsarClassification, PulsarEmbedding, pulsar_classification, pulsar_embedding
from mercer.experiments.quadrature_large import Approximation, LargeQuadrature, covtype_quadrature, skin_quadrature
from mercer.experiments.quadrature_plane import (
    SquareEigenpairs,
    SquareQuadrature,
    SquareSpectrum,
    square_eigenpairs,
    square_quadrature,
    square_spectrum,
)
from mercer.experiments.quadrature_plane_path import SquarePath, SquareUpsilon, square_path, square_upsilon
from mercer.experiments.quadrature_plane_rivals import SquareMerging, SquareRandom, square_merging, square_random
from mercer.experiments.relaxed_adversary import RelaxedAdversary, relaxed_adversary
from mercer.experiments.report import Comparison, Experiment, Verdict, compare
from mercer.experiments.swiss_roll_in_plane import SwissRollInPlane, swiss_roll_in_plane
from mercer.experiments.two_moons_clustering import TwoMoonsClustering, two_moons_clustering
from mercer.experiments.two_moons_embedding import TwoMoonsEmbedding, two_moons_embedding
from mercer.experiments.wine_bandwidths import WineBandwidths, wine_bandwidths

__all__ = [
    "Approximation",
    "CATALOGUE",
    "ClusterSpectrum",
    "ClustersExtended",
    "ClustersOverBandwidths",
    "ClustersWithOutliers",
    "Comparison",
    "DigitsExtended",
    "DigitsInSpace",
    "DigitsOneAndFour",
    "Experiment",
    "IntervalEigenfunctions",
    "IntervalExtension",
    "IntervalInPlane",
    "IntervalKernels",
    "IntervalRankOne",
    "IntervalSteepness",
    "LargeQuadrature",
    "MoonsBandwidth",
    "MoonsRegularization",
    "MoonsSupport",
    "OutlierRobustness",
    "PulsarClassification",
    "PulsarEmbedding",
    "RelaxedAdversary",
    "SquareEigenpairs",
    "SquareMerging",
    "SquarePath",
    "SquareQuadrature",
    "SquareRandom",
    "SquareSpectrum",
    "SquareUpsilon",
    "SwissRollInPlane",
    "TableInPlane",
    "TwoMoonsClustering",
    "TwoMoonsEmbedding",
    "Verdict",
    "WineBandwidths",
    "cluster_spectrum",
    "clusters_extended",
    "clusters_over_bandwidths",
    "clusters_with_outliers",
    "compare",
    "covtype_quadrature",
    "description",
    "digits_extended",
    "digits_in_space",
    "digits_one_and_four",
    "interval_eigenfunctions",
    "interval_extension",
    "interval_in_plane",
    "interval_kernel_smooth",
    "interval_kernel_steep",
    "interval_kernels",
    "interval_rank_one",
    "iris_in_plane",
    "moons_bandwidth",
    "moons_regularization",
    "moons_support",
    "outlier_robustness",
    "pulsar_classification",
    "pulsar_embedding",
    "relaxed_adversary",
    "skin_quadrature",
    "square_eigenpairs",
    "square_merging",
    "square_path",
    "square_quadrature",
    "square_random",
    "square_spectrum",
    "square_upsilon",
    "swiss_roll_in_plane",
    "two_moons_clustering",
    "two_moons_embedding",
    "wide_interval_eigenfunctions",
    "wide_interval_in_plane",
    "wine_bandwidths",
    "wine_in_plane",
]
