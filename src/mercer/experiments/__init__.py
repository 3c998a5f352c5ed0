"""The papers' experiments as functions, each returning the paper's numbers beside the measured ones and its picture."""

from mercer.experiments.catalogue import CATALOGUE, description
from mercer.experiments.clusters_with_outliers import ClustersWithOutliers, clusters_with_outliers
from mercer.experiments.report import Comparison, Experiment, Verdict, compare

__all__ = [
    "CATALOGUE",
    "ClustersWithOutliers",
    "Comparison",
    "Experiment",
    "Verdict",
    "clusters_with_outliers",
    "compare",
    "description",
]
