"""The parameters of a kernel that was left out, or given by name, are those of an object: a grid search reaches them."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.gaussian_process.kernels import RBF
from sklearn.metrics.pairwise import laplacian_kernel, rbf_kernel
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline

from mercer import DiffusionMaps, Gaussian, Laplacian, Matern, QuadratureSparsifier, SDPEmbedding
from mercer.kernels import Cosine, Linear, Polynomial, Precomputed, Sigmoid
from mercer.validation import checked_kernel

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


@pytest.mark.parametrize(
    ("name", "kernel"),
    [
        ("rbf", Gaussian()),
        ("gaussian", Gaussian()),
        ("laplacian", Laplacian()),
        ("poly", Polynomial()),
        ("cosine", Cosine()),
        ("sigmoid", Sigmoid()),
    ],
)
def test_well_known_names_are_kernels(name, kernel, iris):
    X = 0.1 * np.abs(iris[0])
    assert repr(checked_kernel(name)) == repr(kernel)
    by_name, by_object = (QuadratureSparsifier(k, n_nodes=5) for k in (name, kernel))
    if name == "sigmoid":
        by_name, by_object = (DiffusionMaps(k, n_components=1) for k in (name, kernel))
    assert np.array_equal(by_name.fit(X).transform(X), by_object.fit(X).transform(X))
    assert by_name.kernel == name


def test_precomputed_by_name_is_pairwise(iris):
    K = Gaussian(2.0)(iris[0])
    by_name, by_object = (SDPEmbedding(k, random_state=0).fit(K) for k in ("precomputed", Precomputed()))
    assert np.array_equal(by_name.embedding_, by_object.embedding_)
    assert by_name.__sklearn_tags__().input_tags.pairwise
    with pytest.raises(ValueError, match="must be square"):
        QuadratureSparsifier("precomputed").fit(K[:10])


@pytest.mark.parametrize("kind", ESTIMATORS)
def test_other_names_are_refused_with_those_that_work(kind, iris):
    with pytest.raises(ValueError, match="kernel='rbff' is no kernel's name: use one of 'rbf', 'gaussian'"):
        kind("rbff").fit(iris[0])
    with pytest.raises(TypeError, match=r"kernel=Gaussian is a class: it must be a kernel, Gaussian\(\)\.$"):
        kind(Gaussian).fit(iris[0])


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


def test_a_number_of_landmarks_is_refused_with_the_line_that_works(iris):
    X, _ = iris
    line = r"landmarks=20 .* write landmarks=QuadratureSparsifier\(kernel, n_nodes=20\)\.$"
    with pytest.raises(TypeError, match=line):
        SDPEmbedding(Gaussian(2.0), landmarks=20).fit(X)
    kernel = Gaussian(2.0)
    model = SDPEmbedding(kernel, landmarks=QuadratureSparsifier(kernel, n_nodes=20), random_state=0).fit(X)
    assert model.landmarks_.size == 20
