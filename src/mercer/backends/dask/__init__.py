"""Kernel matrices on a Dask cluster. Imported only where a client is given or a Dask collection comes in."""

from mercer.backends.dask.cluster import Cluster
from mercer.backends.dask.matrix import ClusterMatrix

__all__ = ["Cluster", "ClusterMatrix"]
