"""The density as scikit-learn, pandas and pickle see it."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, KFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from mercer import Gaussian, SumOfSquaresDensity


@parametrize_with_checks(
    [
        SumOfSquaresDensity(),
        SumOfSquaresDensity(Gaussian(sigma="median"), support=10, regularization=1e-2),
        SumOfSquaresDensity(Gaussian(sigma=3.0), reference="gaussian", solver="accelerated", tol=1e-3),
    ]
)
@pytest.mark.filterwarnings("ignore:The density accounts for:UserWarning")
def test_scikit_learn_checks(estimator, check):
    check(estimator)


@pytest.fixture(scope="module")
def X():
    rng = np.random.default_rng(0)
    return np.concatenate([rng.standard_normal((40, 2)), rng.standard_normal((40, 2)) + 3])


def test_a_grid_search_over_the_bandwidth_maximises_the_held_out_likelihood(X):
    search = GridSearchCV(
        SumOfSquaresDensity(Gaussian(1.0), support=20, random_state=0, tol=1e-5),
        {"kernel__sigma": [0.1, 1.5, 30.0]},
        cv=KFold(2, shuffle=True, random_state=0),
    ).fit(X)
    assert search.best_params_ == {"kernel__sigma": 1.5}
    assert np.all(np.isfinite(search.cv_results_["mean_test_score"]))


def test_a_pipeline_scores_and_the_users_kernel_is_not_touched(X):
    kernel = Gaussian("median")
    model = make_pipeline(StandardScaler(), SumOfSquaresDensity(kernel, support=20, random_state=0)).fit(X)
    assert np.isfinite(model.score(X))
    assert kernel.sigma == "median"


def test_clone_and_pickle_give_the_same_density(X):
    model = SumOfSquaresDensity(support=20, random_state=0).fit(X)
    again = pickle.loads(pickle.dumps(model))
    assert np.array_equal(again.score_samples(X), model.score_samples(X))
    twin = clone(model).fit(X)
    assert np.allclose(twin.score_samples(X), model.score_samples(X), rtol=1e-6)


def test_a_data_frame_is_taken(X):
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(X, columns=["a", "b"])
    model = SumOfSquaresDensity(support=20, random_state=0).fit(frame)
    assert list(model.feature_names_in_) == ["a", "b"]
    assert model.density(frame).shape == (80,)
