"""Kernels as scikit-learn's parameters: clone, grid search, nested names, pickling, repr."""

from __future__ import annotations

import pickle
import re

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import make_moons
from sklearn.gaussian_process import GaussianProcessClassifier
from sklearn.gaussian_process.kernels import RBF
from sklearn.kernel_ridge import KernelRidge
from sklearn.metrics.pairwise import laplacian_kernel, rbf_kernel
from sklearn.model_selection import GridSearchCV
from sklearn.svm import SVC, SVR

import mercer.kernels
from mercer.kernels import Cosine, Gaussian, Kernel, Laplacian, Linear, Matern, Polynomial, Precomputed, algebra
from mercer.kernels.base import spelled

NAMES = {**vars(mercer.kernels), **vars(algebra), "inf": np.inf}


@pytest.fixture(scope="module")
def moons():
    return make_moons(160, noise=0.2, random_state=3)


def test_svc_with_our_gaussian_is_svc_with_rbf(moons):
    X, y = moons
    ours = SVC(kernel=Gaussian(sigma=2.0)).fit(X[:100], y[:100])
    theirs = SVC(kernel="rbf", gamma=0.25).fit(X[:100], y[:100])
    assert np.array_equal(ours.support_, theirs.support_)
    np.testing.assert_allclose(ours.dual_coef_, theirs.dual_coef_, rtol=1e-8)
    np.testing.assert_allclose(
        ours.decision_function(X[100:]), theirs.decision_function(X[100:]), rtol=1e-8, atol=1e-10
    )
    assert np.array_equal(ours.predict(X[100:]), theirs.predict(X[100:]))


def test_svr_takes_a_composite_kernel(moons):
    X, _ = moons
    model = SVR(kernel=Gaussian(0.7) + 0.1 * Linear()).fit(X, np.sin(X[:, 0]))
    assert model.score(X, np.sin(X[:, 0])) > 0.9


def test_grid_search_tries_every_sigma(moons):
    X, y = moons
    kernel = Gaussian(sigma=1.0)
    sigmas = [0.002, 0.5, 300.0]
    search = GridSearchCV(SVC(kernel=kernel), {"kernel__sigma": sigmas}, cv=4).fit(X, y)
    scores = search.cv_results_["mean_test_score"]
    assert len(set(scores)) == 3
    assert scores[1] > max(scores[0], scores[2]) + 0.05
    assert search.best_params_ == {"kernel__sigma": 0.5}
    assert search.best_estimator_.kernel.sigma == 0.5
    assert kernel.sigma == 1.0


def test_grid_search_reaches_into_a_sum(moons):
    X, y = moons
    grid = {"kernel__left__sigma": [0.002, 0.5], "kernel__right__factor": [1e-6, 1.0]}
    search = GridSearchCV(SVC(kernel=Gaussian(1.0) + 1.0 * Linear()), grid, cv=3).fit(X, y)
    assert search.best_params_["kernel__left__sigma"] == 0.5
    assert len(set(search.cv_results_["mean_test_score"])) > 2


def test_clone_is_equal_and_independent(kernel):
    copy = clone(kernel)
    assert copy is not kernel
    assert repr(copy) == repr(kernel)
    inner = [name for name, value in copy.get_params().items() if isinstance(value, Kernel)]
    for name in inner:
        assert copy.get_params()[name] is not kernel.get_params()[name]


def test_clone_of_an_unresolved_kernel_keeps_the_rule():
    assert clone(Gaussian("slope") + Matern(0.5)).get_params()["left__sigma"] == "slope"


def test_get_params_is_nested():
    kernel = 2.0 * Gaussian(3.0) + Polynomial(2) ** 3
    params = kernel.get_params()
    assert params["left__factor"] == 2.0
    assert params["left__kernel__sigma"] == 3.0
    assert params["right__exponent"] == 3
    assert params["right__kernel__degree"] == 2
    assert set(kernel.get_params(deep=False)) == {"left", "right"}


def test_set_params_is_nested_in_place_and_returns_self():
    inner = Gaussian(3.0)
    kernel = 2.0 * inner + Linear()
    before = kernel(np.eye(2))
    assert kernel.set_params(left__kernel__sigma=1.0, left__factor=5.0) is kernel
    assert inner.sigma == 1.0
    assert kernel.left.factor == 5.0
    assert not np.allclose(kernel(np.eye(2)), before)


def test_set_params_replaces_a_kernel_before_it_reaches_inside():
    kernel = (2.0 * Linear()).set_params(kernel__sigma=4.0, kernel=Gaussian(1.0))
    assert kernel.kernel.sigma == 4.0


@pytest.mark.parametrize(
    ("params", "sentence"),
    [
        ({"bandwidth": 1.0}, "Gaussian has no parameter 'bandwidth'; it has sigma."),
        ({"sigma__x": 1.0}, "sigma=1.0 is not a kernel, so it has no parameter 'x'."),
    ],
)
def test_unknown_parameters_are_named(params, sentence):
    with pytest.raises(ValueError, match=f"^{re.escape(sentence)}$"):
        Gaussian(1.0).set_params(**params)


def test_unknown_parameters_of_inner_kernels_are_named():
    with pytest.raises(ValueError, match=r"Linear has no parameter 'sigma'; it has none\."):
        (Gaussian(1.0) + Linear()).set_params(right__sigma=2.0)


def test_pickle_and_repr_give_the_same_kernel(kernel, points):
    X = points(kernel, 7, 3)
    for copy in (pickle.loads(pickle.dumps(kernel)), eval(spelled(kernel), NAMES)):
        assert spelled(copy) == spelled(kernel)
        assert np.array_equal(copy(X), kernel(X))


@pytest.mark.parametrize("kernel", [Gaussian(), Laplacian("slope"), Matern(), Cosine(), Precomputed(2.0)])
def test_repr_of_rules_and_defaults(kernel):
    copy = eval(repr(kernel), NAMES)
    assert type(copy) is type(kernel)
    assert copy.get_params() == kernel.get_params()


def test_constructors_do_nothing():
    assert Gaussian(sigma="nonsense").sigma == "nonsense"
    assert (-1.0 * Linear()).factor == -1.0


def test_operators_refuse_what_is_no_kernel():
    for operation in (
        lambda k: k + 1,
        lambda k: k * [1],
        lambda k: k - k,
        lambda k: k ** np.eye(2),
        lambda k: np.ones(2) * k,
    ):
        with pytest.raises(TypeError, match=r"unsupported operand|can't multiply|does not support ufuncs"):
            operation(Linear())


def test_a_gaussian_process_does_not_take_our_kernels_by_mistake(moons):
    """Its kernels have another interface; the refusal must be scikit-learn's own, not a wrong answer."""
    with pytest.raises((TypeError, ValueError, AttributeError)):
        GaussianProcessClassifier(kernel=Gaussian(1.0)).fit(*moons)


def test_two_single_points_give_a_number():
    x, y = np.array([0.0, 1.0]), np.array([1.0, 3.0])
    value = Gaussian(sigma=2.0)(x, y)
    assert isinstance(value, float)
    assert value == Gaussian(sigma=2.0)(x[None], y[None])[0, 0]


def test_estimators_that_ask_for_one_pair_at_a_time_accept_a_kernel():
    X = np.random.default_rng(0).standard_normal((12, 3))
    ridge = KernelRidge(kernel=Gaussian(sigma=2.0)).fit(X, X[:, 0])
    peer = KernelRidge(kernel="rbf", gamma=0.25).fit(X, X[:, 0])
    np.testing.assert_allclose(ridge.predict(X + 0.1), peer.predict(X + 0.1), rtol=1e-10)


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda: Gaussian(gamma=0.5), "Gaussian has no parameter 'gamma'; it has sigma. Give sigma = 1/sqrt(gamma)."),
        (lambda: Laplacian(gamma=0.5), "Laplacian has no parameter 'gamma'; it has sigma. Give sigma = 1/gamma."),
        (
            lambda: Matern(sigma=1.0),
            "Matern has no parameter 'sigma'; it has nu, length_scale. Give length_scale = sigma.",
        ),
        (lambda: Linear(sigma=1.0), "Linear has no parameter 'sigma'; it has none."),
    ],
)
def test_parameters_of_other_libraries_are_translated(make, sentence):
    with pytest.raises(TypeError) as caught:
        make()
    assert str(caught.value) == sentence


def test_the_translations_are_right():
    x, y = np.array([[0.0, 0.0]]), np.array([[1.0, 2.0]])
    gamma = 0.3
    assert Gaussian(sigma=1 / np.sqrt(gamma))(x, y)[0, 0] == pytest.approx(rbf_kernel(x, y, gamma)[0, 0])
    assert Laplacian(sigma=1 / gamma)(x, y)[0, 0] == pytest.approx(laplacian_kernel(x, y, gamma)[0, 0])
    assert Gaussian(sigma=np.sqrt(2) * 0.7)(x, y)[0, 0] == pytest.approx(RBF(length_scale=0.7)(x, y)[0, 0])
