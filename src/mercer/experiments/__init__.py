"""The papers' experiments as functions."""

from mercer.experiments.clusters_with_outliers import ClustersWithOutliers, clusters_with_outliers

__all__ = ["ClustersWithOutliers", "clusters_with_outliers"]
