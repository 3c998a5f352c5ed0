"""What scikit-learn expects of an estimator."""

from __future__ import annotations

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from mercer import Gaussian, QuadratureSparsifier


@parametrize_with_checks(
    [
        QuadratureSparsifier(),
        QuadratureSparsifier(Gaussian(sigma=2.0), trace_fraction=0.7),
        QuadratureSparsifier(Gaussian(sigma=2.0), n_nodes=5, merge="strong"),
    ]
)
@pytest.mark.filterwarnings("ignore:n_nodes=5 were asked for:UserWarning")
def test_scikit_learn_checks(estimator, check):
    check(estimator)
