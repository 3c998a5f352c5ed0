"""The papers' experiments as functions, each returning the paper's numbers beside the measured ones and its picture."""

from mercer.experiments.catalogue import CATALOGUE, description
from mercer.experiments.clusters_with_outliers import ClustersWithOutliers, clusters_with_outliers
from mercer.experiments.digits_one_and_four import DigitsOneAndFour, digits_one_and_four
from mercer.experiments.interval_extension import IntervalExtension, interval_extension
from mercer.experiments.interval_kernels import IntervalKernels, interval_kernels
from mercer.experiments.pulsars import PulsarClassification, PulsarEmbedding, pulsar_classification, pulsar_embedding
from mercer.experiments.report import Comparison, Experiment, Verdict, compare
from mercer.experiments.two_moons_clustering import TwoMoonsClustering, two_moons_clustering
from mercer.experiments.two_moons_embedding import TwoMoonsEmbedding, two_moons_embedding
from mercer.experiments.wine_bandwidths import WineBandwidths, wine_bandwidths

__all__ = [
    "CATALOGUE",
    "ClustersWithOutliers",
    "Comparison",
    "DigitsOneAndFour",
    "Experiment",
    "IntervalExtension",
    "IntervalKernels",
    "PulsarClassification",
    "PulsarEmbedding",
    "TwoMoonsClustering",
    "TwoMoonsEmbedding",
    "Verdict",
    "WineBandwidths",
    "clusters_with_outliers",
    "compare",
    "description",
    "digits_one_and_four",
    "interval_extension",
    "interval_kernels",
    "pulsar_classification",
    "pulsar_embedding",
    "two_moons_clustering",
    "two_moons_embedding",
    "wine_bandwidths",
]
