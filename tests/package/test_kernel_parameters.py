"""The parameters of a kernel that was left out, or given by name, are those of an object: a grid search reaches them."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline

from mercer import DiffusionMaps, Gaussian, Laplacian, QuadratureSparsifier, SDPEmbedding

ESTIMATORS = [SDPEmbedding, DiffusionMaps, QuadratureSparsifier]


@pytest.fixture(scope="module")
def iris():
    X, y = load_iris(return_X_y=True)
    chosen = np.random.default_rng(0).permutation(150)[:60]
    return X[chosen], y[chosen]


@pytest.mark.parametrize("kind", ESTIMATORS)
def test_a_kernel_left_out_stays_none_and_lists_its_parameters(kind):
    model = kind()
    assert model.get_params(deep=False)["kernel"] is None
    assert model.get_params()["kernel"] is None
    assert model.get_params()["kernel__sigma"] == "median"
    assert "kernel__sigma" not in model.get_params(deep=False)
    assert clone(model).kernel is None
    assert "kernel" not in repr(model)
    assert "sigma" in model._repr_html_()


@pytest.mark.parametrize("kind", ESTIMATORS)
def test_setting_a_bandwidth_puts_a_new_kernel_in_place(kind):
    model, other = kind(), kind()
    assert model.set_params(kernel__sigma=0.5) is model
    assert model.kernel.sigma == 0.5
    assert other.kernel is None
    assert clone(model).kernel is not model.kernel
    kernel = model.kernel
    model.set_params(kernel__sigma=2.0)
    assert model.kernel is kernel
    assert kernel.sigma == 2.0


def test_a_kernel_set_together_with_its_parameter():
    model = SDPEmbedding().set_params(kernel__sigma=3.0, kernel="laplacian")
    assert isinstance(model.kernel, Laplacian)
    assert model.kernel.sigma == 3.0
    model.set_params(kernel=None, kernel__sigma=4.0, tol=1e-3)
    assert isinstance(model.kernel, Gaussian)
    assert model.kernel.sigma == 4.0
    assert model.tol == 1e-3
    assert SDPEmbedding("laplacian").set_params(kernel__sigma=2.0).kernel.sigma == 2.0


def test_an_unknown_parameter_is_named_and_changes_nothing():
    model = SDPEmbedding()
    with pytest.raises(ValueError, match="Gaussian has no parameter 'gamma'; it has sigma."):
        model.set_params(kernel__gamma=1.0)
    assert model.kernel is None


@pytest.mark.parametrize("kind", ESTIMATORS)
@pytest.mark.parametrize("kernel", [None, "rbf"])
def test_a_grid_search_finds_the_bandwidth_in_a_pipeline(kind, kernel, iris):
    X, y = iris
    extra = {"n_nodes": 8} if kind is QuadratureSparsifier else {"random_state": 0}
    pipeline = make_pipeline(kind(kernel, **extra), KNeighborsClassifier(1))
    name = f"{kind.__name__.lower()}__kernel__sigma"
    search = GridSearchCV(pipeline, {name: [2.0, 4.0]}, cv=2).fit(X, y)
    by_hand = cross_val_score(make_pipeline(kind(Gaussian(4.0), **extra), KNeighborsClassifier(1)), X, y, cv=2)
    assert search.cv_results_["mean_test_score"][1] == pytest.approx(by_hand.mean())
    assert search.best_estimator_[0].kernel_.sigma == search.best_params_[name]
    assert pipeline[0].kernel == kernel


def test_a_grid_search_of_an_embedding_alone(iris):
    X, _ = iris

    def signal(model, X, y=None):
        return float(model.eigenvalues_[0])

    search = GridSearchCV(SDPEmbedding(random_state=0), {"kernel__sigma": [2.0, 4.0]}, cv=2, scoring=signal).fit(X)
    assert search.best_estimator_.kernel_.sigma in (2.0, 4.0)
    assert not np.any(np.isnan(search.cv_results_["mean_test_score"]))
