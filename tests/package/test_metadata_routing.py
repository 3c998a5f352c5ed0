"""Weights find their way: through pipelines, searches and cross-validation, where scikit-learn routes them."""

from __future__ import annotations

import inspect

import numpy as np
import pytest
import sklearn
from sklearn.base import clone
from sklearn.decomposition import PCA
from sklearn.exceptions import UnsetMetadataPassedError
from sklearn.linear_model import Ridge
from sklearn.model_selection import GridSearchCV, KFold, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import mercer
from mercer import Gaussian, Kernelized

PARAMETERS = {
    "ConditionalMeanEmbedding": {"regularization": 1e-3},
    "DiffusionMaps": {"kernel": Gaussian(1.0)},
    "FisherDiscriminant": {"kernel": Gaussian(1.0), "regularization": 1e-2},
    "KernelDimensionReduction": {"n_components": 1, "n_restarts": 0, "random_state": 0},
    "KernelPCA": {"random_state": 0},
    "KernelizedSDPEmbedding": {"nugget": 1e-6, "tol": 1e-4, "random_state": 0},
    "Landmarks": {"n_landmarks": 5, "random_state": 0},
    "MaximumVarianceUnfolding": {"connect": True, "tol": 1e-2},
    "NoveltyDetector": {},
    "QuadratureSparsifier": {"n_nodes": 6},
    "RobustKernelClassifier": {"radius": 0.0},
    "RobustKernelRegressor": {"radius": 0.0},
    "RobustKernelRidge": {"support": 6, "radius": 0.01, "tol": 1e-4, "random_state": 0},
    "RoweisDiscriminant": {"r1": 0.5, "r2": 0.5},
    "SDPEmbedding": {"kernel": Gaussian(1.0), "random_state": 0},
    "SumOfSquaresDensity": {"support": 8, "random_state": 0},
    "SupervisedPCA": {},
}
rng = np.random.default_rng(1)
X = np.concatenate([rng.normal(size=(24, 2)), rng.normal(size=(24, 2)) + 2.5])
Y = np.repeat([0.0, 1.0], 24)
WEIGHTS = rng.uniform(0.2, 4.0, 48)
REGRESSION = mercer.RobustKernelRidge(Gaussian(1.0), support=6, radius=0.01, tol=1e-4, random_state=0)
FOLDS = KFold(3, shuffle=True, random_state=0)
every = pytest.mark.parametrize("name", PARAMETERS)


@pytest.fixture(autouse=True)
def routing():
    with sklearn.config_context(enable_metadata_routing=True):
        yield


def make(name):
    return getattr(mercer, name)(**PARAMETERS[name])


def learned(model):
    """What a fit left behind that depends on weights: answers, or the weights of landmarks."""
    ways = [name for name in ("transform", "predict", "score_samples") if hasattr(model, name)]
    return getattr(model, ways[0])(X) if ways else model.weights_


def test_every_estimator_that_takes_weights_is_here():
    public = [getattr(mercer, name) for name in mercer.__all__]
    weighted = {
        each.__name__
        for each in public
        if inspect.isclass(each) and hasattr(each, "fit") and "sample_weight" in inspect.signature(each.fit).parameters
    }
    assert weighted == set(PARAMETERS)


@every
def test_a_pipeline_hands_weights_to_whoever_asks_for_them(name):
    scaler = StandardScaler().set_fit_request(sample_weight=False)
    chain = make_pipeline(scaler, make(name).set_fit_request(sample_weight=True))
    chain.fit(X, Y, sample_weight=WEIGHTS)
    points = StandardScaler().fit_transform(X)
    direct, without = make(name).fit(points, Y, sample_weight=WEIGHTS), make(name).fit(points, Y)
    np.testing.assert_array_equal(learned(chain[-1]), learned(direct))
    assert not np.array_equal(learned(direct), learned(without))


@every
def test_before_a_last_step_too(name):
    model = make(name)
    if not hasattr(model, "transform"):
        assert not hasattr(model, "fit_transform")
        return
    chain = make_pipeline(model.set_fit_request(sample_weight=True), Ridge().set_fit_request(sample_weight=False))
    chain.fit(X, Y, sample_weight=WEIGHTS)
    np.testing.assert_array_equal(learned(chain[0]), learned(make(name).fit(X, Y, sample_weight=WEIGHTS)))


@every
def test_weights_that_nobody_asked_for_are_an_error(name):
    chain = make_pipeline(StandardScaler().set_fit_request(sample_weight=False), make(name))
    with pytest.raises(
        UnsetMetadataPassedError, match=r"sample_weight.* passed but are not explicitly set as requested"
    ):
        chain.fit(X, Y, sample_weight=WEIGHTS)


def test_cross_validation_hands_every_fold_its_own_weights():
    model = clone(REGRESSION).set_fit_request(sample_weight=True).set_score_request(sample_weight=True)
    found = cross_validate(model, X, Y, cv=FOLDS, params={"sample_weight": WEIGHTS}, return_estimator=True)
    for (train, test), fitted, score in zip(FOLDS.split(X), found["estimator"], found["test_score"], strict=True):
        np.testing.assert_array_equal(fitted.sample_weight_, WEIGHTS[train])
        assert score == fitted.score(X[test], Y[test], sample_weight=WEIGHTS[test])
        assert score != fitted.score(X[test], Y[test])


def test_a_search_hands_weights_to_its_fits_and_to_the_last_one():
    model = clone(REGRESSION).set_fit_request(sample_weight=True).set_score_request(sample_weight=False)
    search = GridSearchCV(model, {"kernel__sigma": [0.5, 1.0]}, cv=FOLDS).fit(X, Y, sample_weight=WEIGHTS)
    direct = clone(REGRESSION).set_params(**search.best_params_).fit(X, Y, sample_weight=WEIGHTS)
    np.testing.assert_array_equal(search.predict(X), direct.predict(X))
    without = GridSearchCV(clone(REGRESSION), {"kernel__sigma": [0.5, 1.0]}, cv=FOLDS).fit(X, Y)
    assert not np.array_equal(search.cv_results_["mean_test_score"], without.cv_results_["mean_test_score"])


def test_a_kernelised_estimator_asks_for_what_the_linear_one_asks_for():
    model = Kernelized(Ridge().set_fit_request(sample_weight=True), Gaussian(1.0))
    chain = make_pipeline(PCA(2), model).fit(X, Y, sample_weight=WEIGHTS)
    points = PCA(2).fit_transform(X)
    direct = Kernelized(Ridge().set_fit_request(sample_weight=True), Gaussian(1.0))
    np.testing.assert_allclose(chain.predict(X), direct.fit(points, Y, sample_weight=WEIGHTS).predict(points))
    with pytest.raises(UnsetMetadataPassedError):
        make_pipeline(PCA(2), Kernelized(Ridge(), Gaussian(1.0))).fit(X, Y, sample_weight=WEIGHTS)
