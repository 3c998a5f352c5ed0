"""What a kernelised estimator promises to scikit-learn, pandas, polars and pickle."""

from __future__ import annotations

from sklearn.cluster import KMeans
from sklearn.decomposition import PCA
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.utils import estimator_checks

from mercer import Kernelized


@estimator_checks.parametrize_with_checks(
    [
        Kernelized(Ridge()),
        Kernelized(LogisticRegression()),
        Kernelized(KMeans(n_clusters=3, n_init=2)),
        Kernelized(PCA(2)),
    ]
)
def test_scikit_learn_checks(estimator, check):
    check(estimator)
