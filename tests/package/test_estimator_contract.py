"""What all five estimators promise alike: to scikit-learn, pandas, polars and pickle, and to the person who fits them."""

from __future__ import annotations

import inspect
import pickle
import subprocess
import sys
import warnings

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.model_selection import GridSearchCV, KFold, cross_val_score
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC
from sklearn.utils import estimator_checks
from sklearn.utils.validation import has_fit_parameter

from mercer import (
    ConditionalMeanEmbedding,
    DiffusionMaps,
    FisherDiscriminant,
    Gaussian,
    KernelizedSDPEmbedding,
    KernelPCA,
    Laplacian,
    Linear,
    Matern,
    Precomputed,
    QuadratureSparsifier,
    RobustKernelClassifier,
    RobustKernelRegressor,
    RobustKernelRidge,
    SDPEmbedding,
    SelfTuning,
    SumOfSquaresDensity,
    SupervisedPCA,
    verify,
)
from mercer.datasets import three_clusters, two_moons
from mercer.embedding.default_kernel import default_kernel
from mercer.embedding.kernelized import default_matern
from mercer.kernels import Cosine, Polynomial, Sigmoid
from mercer.validation import checked_kernel

# Parameters with which a fit takes a fraction of a second.
QUICK = {
    SDPEmbedding: {"random_state": 0},
    DiffusionMaps: {"random_state": 0},
    KernelPCA: {"certify": True, "random_state": 0},
    QuadratureSparsifier: {"n_nodes": 8},
    SumOfSquaresDensity: {"support": 15, "random_state": 0},
    RobustKernelRidge: {"support": 5, "radius": 0.05, "tol": 1e-3, "random_state": 0},
    RobustKernelRegressor: {"loss": "huber", "radius": 0.05, "tol": 1e-4},
    RobustKernelClassifier: {"radius": 0.05, "tol": 1e-4},
    SupervisedPCA: {},
    FisherDiscriminant: {},
    KernelizedSDPEmbedding: {"nugget": 1e-7, "tol": 1e-5, "random_state": 0},
    ConditionalMeanEmbedding: {"regularization": 1e-3},
}
# What a kernel left out stands for, and a parameter of it that a person would search.
DEFAULT_KERNEL = dict.fromkeys(QUICK, Gaussian) | {
    SDPEmbedding: default_kernel,
    DiffusionMaps: SelfTuning,
    KernelizedSDPEmbedding: default_matern,
    SupervisedPCA: Linear,
    FisherDiscriminant: Linear,
}
SEARCHED = {Gaussian: "sigma", SelfTuning: "n_neighbors", Matern: "length_scale"}
TRANSFORMERS = [SDPEmbedding, DiffusionMaps, KernelPCA, KernelizedSDPEmbedding, QuadratureSparsifier]
CERTIFIED = [
    kind for kind in QUICK if kind not in (DiffusionMaps, ConditionalMeanEmbedding, SupervisedPCA, FisherDiscriminant)
]
WEIGHTED = [kind for kind in QUICK if has_fit_parameter(kind(), "sample_weight")]
every = pytest.mark.parametrize("kind", QUICK)
SEARCHABLE = [kind for kind in QUICK if DEFAULT_KERNEL[kind] is not Linear]  # which has no parameter
every_searchable = pytest.mark.parametrize("kind", SEARCHABLE)
every_transformer = pytest.mark.parametrize("kind", TRANSFORMERS)


def make(kind, kernel=None, **parameters):
    return kind(kernel, **{**QUICK[kind], **parameters})


def answers(model, X):
    """What a model says of points."""
    return next(getattr(model, name)(X) for name in ("transform", "score_samples", "predict") if hasattr(model, name))


@pytest.fixture(scope="module")
def clusters():
    return three_clusters(n_per_cluster=30, n_outliers=0)


@pytest.fixture(scope="module")
def X(clusters):
    return clusters[0]


@pytest.fixture(scope="module")
def y(X):
    """Two values: targets of a regression, and labels."""
    return np.where(np.sin(X[:, 0]) + 0.1 * X[:, 1] > 0, 1.0, 0.0)


@pytest.fixture(scope="module")
def fitted(X, y):
    """A model of each kind, which no test changes."""
    return {kind: make(kind, Gaussian(1.5)).fit(X, y) for kind in QUICK}


@pytest.fixture(scope="module")
def iris():
    X, y = load_iris(return_X_y=True)
    chosen = np.random.default_rng(0).permutation(150)[:60]
    return X[chosen], (y[chosen] == 1).astype(int)


# --- scikit-learn's own checks, with other parameters than those of test_conformance.py ---------------------------


# Checks of values: those of the interface are the same code for all parameters.
ON_VALUES = (
    estimator_checks.check_dict_unchanged,
    estimator_checks.check_estimators_dtypes,
    estimator_checks.check_estimators_nan_inf,
    estimator_checks.check_estimators_overwrite_params,
    estimator_checks.check_estimators_pickle,
    estimator_checks.check_fit2d_1feature,
    estimator_checks.check_fit2d_1sample,
    estimator_checks.check_fit_check_is_fitted,
    estimator_checks.check_fit_idempotent,
    estimator_checks.check_methods_sample_order_invariance,
    estimator_checks.check_methods_subset_invariance,
    estimator_checks.check_readonly_memmap_input,
)
ON_TRANSFORMERS = (
    estimator_checks.check_transformer_data_not_an_array,
    estimator_checks.check_transformer_general,
    estimator_checks.check_transformer_preserve_dtypes,
)
VARIANTS = [
    SDPEmbedding(residual_tol=1e-9),
    SDPEmbedding(Gaussian(), residual_tol=1e-9),
    SDPEmbedding(Laplacian(sigma=2.0), n_components=1, solver="power", radius="paper", max_iter=100_000),
    SDPEmbedding(Gaussian(sigma="slope"), initial_rank=4, certify=False, tol=1e-3, residual_tol=1e-10, random_state=3),
    DiffusionMaps(Matern(nu=2.5), n_components=1, time=0.5, alpha=1.0),
    DiffusionMaps(Gaussian(sigma=1.0) + Laplacian(sigma=2.0), n_components=3, time=3),
    KernelizedSDPEmbedding(Matern(nu=1.5), n_components=1, regularization=1e-3, nugget=1e-6),
    KernelPCA(Matern(nu=2.5), n_components=3, indefinite="refuse", certify=True),
    KernelPCA(Polynomial(degree=2), n_components=1),
    QuadratureSparsifier(Gaussian(sigma=2.0), trace_fraction=0.7),
    QuadratureSparsifier(Gaussian(sigma=2.0), n_nodes=5, merge="strong"),
    SumOfSquaresDensity(Gaussian(sigma="median"), support=10, regularization=1e-2),
    SumOfSquaresDensity(Gaussian(sigma=3.0), reference="gaussian", solver="accelerated", tol=1e-3),
    RobustKernelRidge(relaxation="rkhs", radius=0.01),
    RobustKernelRegressor(Laplacian(), loss="absolute"),
    RobustKernelClassifier(Matern(nu=1.5), loss="hinge"),
]


@pytest.fixture
def tolerant():
    """Warnings that say nothing of the interface: of few nodes, of a density in many dimensions, of unproved games."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "n_nodes=5 were asked for", UserWarning)
        warnings.filterwarnings("ignore", "The density accounts for", UserWarning)
        warnings.filterwarnings("ignore", "The certified relative gap is", ConvergenceWarning)
        yield


@pytest.mark.parametrize("check", ON_VALUES, ids=lambda check: check.__name__)
@pytest.mark.parametrize("estimator", VARIANTS, ids=repr)
def test_scikit_learn_checks_of_values(estimator, check, tolerant):
    check(type(estimator).__name__, estimator)


@pytest.mark.parametrize("check", ON_TRANSFORMERS, ids=lambda check: check.__name__)
@pytest.mark.parametrize("estimator", [each for each in VARIANTS if type(each) in TRANSFORMERS], ids=repr)
def test_scikit_learn_checks_of_transformers(estimator, check, tolerant):
    check(type(estimator).__name__, estimator)


@pytest.mark.parametrize("estimator", [each for each in VARIANTS if type(each) in WEIGHTED], ids=repr)
def test_weights_are_repetitions(estimator, tolerant):
    if isinstance(estimator, SDPEmbedding):
        estimator = clone(estimator).set_params(residual_tol=1e-10)
    estimator_checks.check_sample_weight_equivalence_on_dense_data(type(estimator).__name__, estimator)


# --- parameters ---------------------------------------------------------------------------------------------------


@every
def test_constructor_does_nothing(kind):
    names = [name for name in inspect.signature(kind).parameters if name != "kernel"]
    model = kind("no kernel", **dict.fromkeys(names, -3))
    assert model.get_params(deep=False) == {"kernel": "no kernel"} | dict.fromkeys(names, -3)
    assert not [name for name in vars(model) if name.endswith("_")]


@every
def test_clone_and_repr(kind):
    model = make(kind, Gaussian(sigma=0.3))
    copy = clone(model)
    assert copy is not model
    assert copy.kernel is not model.kernel
    assert copy.get_params()["kernel__sigma"] == 0.3
    assert repr(copy) == repr(model)
    assert "Gaussian(sigma=0.3)" in repr(model)


@every_searchable
def test_a_kernel_left_out_stays_none_and_lists_its_parameters(kind):
    model, meant = kind(), DEFAULT_KERNEL[kind]()
    assert model.get_params(deep=False)["kernel"] is None
    listed = {name: value for name, value in model.get_params().items() if name.startswith("kernel")}
    assert listed == {"kernel": None} | {f"kernel__{name}": value for name, value in meant.get_params().items()}
    assert not any(name.startswith("kernel__") for name in model.get_params(deep=False))
    assert clone(model).kernel is None
    assert "kernel" not in repr(model)
    assert SEARCHED[type(meant)] in model._repr_html_()


@every_searchable
def test_setting_a_parameter_puts_a_new_kernel_in_place(kind):
    meant = DEFAULT_KERNEL[kind]()
    name = SEARCHED[type(meant)]
    model, other = kind(), kind()
    assert model.set_params(**{f"kernel__{name}": 5}) is model
    assert repr(model.kernel) == repr(meant.set_params(**{name: 5}))
    assert getattr(model.kernel, name) == 5
    assert other.kernel is None
    assert clone(model).kernel is not model.kernel
    kernel = model.kernel
    model.set_params(**{f"kernel__{name}": 20})
    assert model.kernel is kernel
    assert getattr(kernel, name) == 20


@every_searchable
def test_a_kernel_set_together_with_its_parameter(kind):
    meant = DEFAULT_KERNEL[kind]()
    name = SEARCHED[type(meant)]
    model = kind().set_params(kernel__sigma=3.0, kernel="laplacian")
    assert isinstance(model.kernel, Laplacian)
    assert model.kernel.sigma == 3.0
    other = next(name for name in model.get_params(deep=False) if name != "kernel")
    model.set_params(**{"kernel": None, f"kernel__{name}": 4, other: 1e-3})
    assert repr(model.kernel) == repr(meant.set_params(**{name: 4}))
    assert getattr(model.kernel, name) == 4
    assert getattr(model, other) == 1e-3
    assert kind("laplacian").set_params(kernel__sigma=2.0).kernel.sigma == 2.0


@every_searchable
def test_an_unknown_parameter_is_named_and_changes_nothing(kind):
    model, meant = kind(), DEFAULT_KERNEL[kind]()
    has = ", ".join(meant.get_params(deep=False))
    with pytest.raises(ValueError, match=rf"^{type(meant).__name__} has no parameter 'gamma'; it has {has}\."):
        model.set_params(kernel__gamma=1.0)
    assert model.kernel is None


@every
def test_what_is_no_kernel_is_refused_in_one_sentence(kind, X, y):
    with pytest.raises(ValueError, match=r"^kernel='rbff' is no kernel's name: use one of 'rbf', 'gaussian'"):
        make(kind, "rbff").fit(X, y)
    with pytest.raises(TypeError, match=r"^kernel=Gaussian is a class: it must be a kernel, Gaussian\(\)\.$"):
        make(kind, Gaussian).fit(X, y)
    with pytest.raises(TypeError, match=r"^kernel=3 must be a kernel of mercer.kernels, such as"):
        make(kind, 3).fit(X, y)


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


@every_transformer
def test_precomputed_by_name_is_pairwise(kind, X):
    K = Gaussian(2.0)(X)
    by_name, by_object = (make(kind, kernel).fit(K) for kernel in ("precomputed", Precomputed()))
    assert np.array_equal(by_name.transform(K), by_object.transform(K))
    assert by_name.__sklearn_tags__().input_tags.pairwise
    with pytest.raises(ValueError, match="must be square"):
        make(kind, "precomputed").fit(K[:10])


# --- grid searches and pipelines ----------------------------------------------------------------------------------


@pytest.mark.parametrize(("kind", "kernel"), [*((kind, None) for kind in SEARCHABLE), (SDPEmbedding, "rbf")])
def test_a_grid_search_finds_the_parameter_of_the_kernel(kind, kernel, iris):
    X, y = iris
    meant = Gaussian() if kernel == "rbf" else DEFAULT_KERNEL[kind]()
    searched, cv = SEARCHED[type(meant)], KFold(2)
    model, by_hand, name = make(kind, kernel), make(kind, meant.set_params(**{searched: 4})), f"kernel__{searched}"
    if kind in TRANSFORMERS:
        model, by_hand = (make_pipeline(each, KNeighborsClassifier(1)) for each in (model, by_hand))
        name = f"{kind.__name__.lower()}__{name}"
    search = GridSearchCV(model, {name: [2, 4]}, cv=cv).fit(X, y)
    by_hand = cross_val_score(by_hand, X, y, cv=cv)
    assert search.cv_results_["mean_test_score"][1] == pytest.approx(by_hand.mean())
    best = search.best_estimator_
    found = (best[0] if kind in TRANSFORMERS else best).kernel_
    assert getattr(found, searched) == search.best_params_[name]
    assert (model[0] if kind in TRANSFORMERS else model).kernel == kernel


def test_a_grid_search_of_an_embedding_alone(iris):
    X, _ = iris

    def signal(model, X, y=None):
        return float(model.eigenvalues_[0])

    model = SDPEmbedding("rbf", random_state=0)
    search = GridSearchCV(model, {"kernel__sigma": [2.0, 4.0]}, cv=2, scoring=signal).fit(X)
    assert search.best_estimator_.kernel_.sigma in (2.0, 4.0)
    assert not np.any(np.isnan(search.cv_results_["mean_test_score"]))


def test_a_grid_search_shows_every_bandwidth_and_leaves_the_users_model():
    X, labels = two_moons(n_points=90, noise=0.2)
    order = np.random.default_rng(0).permutation(90)
    X, labels = X[order], labels[order]
    model = make_pipeline(StandardScaler(), SDPEmbedding(Gaussian(), random_state=0), SVC())
    grid, seen = [0.5, 1.0, 3.0], []

    def score(estimator, X, y):
        seen.append(estimator.named_steps["sdpembedding"].kernel_.sigma)
        return estimator.score(X, y)

    search = GridSearchCV(model, {"sdpembedding__kernel__sigma": grid}, scoring=score, cv=2).fit(X, labels)
    assert sorted(seen) == sorted(2 * grid)
    assert len(set(search.cv_results_["mean_test_score"])) > 1
    assert model.named_steps["sdpembedding"].kernel.sigma == "median"


def test_a_grid_search_may_swap_whole_kernels(clusters):
    X, labels = clusters
    model = make_pipeline(SDPEmbedding(Gaussian(), random_state=0), KNeighborsClassifier())
    kernels = [Gaussian(sigma=1.0), Laplacian(sigma=1.0)]
    search = GridSearchCV(model, {"sdpembedding__kernel": kernels}, cv=2).fit(X, labels)
    assert len(search.cv_results_["params"]) == 2


def test_a_grid_search_of_a_density_maximises_the_held_out_likelihood():
    rng = np.random.default_rng(0)
    X = np.concatenate([rng.standard_normal((40, 2)), rng.standard_normal((40, 2)) + 3])
    search = GridSearchCV(
        SumOfSquaresDensity(Gaussian(1.0), support=20, random_state=0, tol=1e-5),
        {"kernel__sigma": [0.1, 1.5, 30.0]},
        cv=KFold(2, shuffle=True, random_state=0),
    ).fit(X)
    assert search.best_params_ == {"kernel__sigma": 1.5}
    assert np.all(np.isfinite(search.cv_results_["mean_test_score"]))


def test_a_grid_search_of_a_regression_finds_that_robustness_costs_without_a_shift():
    X = np.random.default_rng(0).uniform(-2, 2, (40, 1))
    search = GridSearchCV(
        make(RobustKernelRidge, Gaussian(1.0)),
        {"radius": [0.0, 0.2], "kernel__sigma": [0.5, 1.0]},
        cv=2,
    ).fit(X, np.sin(2 * X[:, 0]))
    assert search.best_params_["radius"] == 0.0


@every_transformer
def test_a_pipeline_classifies(kind, clusters):
    X, labels = clusters
    model = make_pipeline(StandardScaler(), make(kind), KNeighborsClassifier()).fit(X[::2], labels[::2])
    assert model.score(X[1::2], labels[1::2]) > 0.95
    assert model.predict(X[1::2]).shape == labels[1::2].shape


@pytest.mark.parametrize("kind", [kind for kind in QUICK if kind not in TRANSFORMERS])
def test_a_pipeline_scores(kind, X, y):
    assert np.isfinite(make_pipeline(StandardScaler(), make(kind)).fit(X, y).score(X, y))


# --- data: how it comes in, and that it stays as it is ------------------------------------------------------------


@pytest.mark.parametrize("kind", [SDPEmbedding, DiffusionMaps])
def test_no_arguments_at_all(kind, X):
    model = kind().fit(X)
    assert model.embedding_.shape == model.transform(X).shape
    assert model.embedding_.shape[1] >= 2
    assert model.kernel is None
    assert isinstance(model.kernel_, SelfTuning)
    assert model.kernel_.is_resolved


@every
@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_data_frames_in(kind, library, fitted, X, y):
    frames = pytest.importorskip(library)
    frame = frames.DataFrame({"first": X[:, 0], "second": X[:, 1]})
    model = make(kind, Gaussian(1.5)).fit(frame, y)
    assert list(model.feature_names_in_) == ["first", "second"]
    np.testing.assert_array_equal(answers(model, frame), answers(fitted[kind], X))
    with pytest.raises(ValueError, match="feature names"):
        answers(model, frames.DataFrame({"second": X[:, 1], "first": X[:, 0]}))


def test_names_of_columns_are_as_many_as_asked_for(X):
    model = SDPEmbedding(n_components=1).fit(X)
    assert list(model.get_feature_names_out()) == ["sdpembedding0"]
    model = DiffusionMaps(n_components=3).fit(X)
    assert list(model.get_feature_names_out()) == ["diffusionmaps0", "diffusionmaps1", "diffusionmaps2"]


@every
def test_lists_and_integers(kind):
    X, y = [[0, 0], [0, 1], [5, 5], [5, 6], [9, 0]], [0, 1, 1, 0, 1]
    parameters = {"n_nodes": 2} if kind is QuadratureSparsifier else {}
    model = make(kind, **parameters).fit(X, y)
    twin = make(kind, **parameters).fit(np.array(X, float), np.array(y, float))
    np.testing.assert_array_equal(answers(model, X), answers(twin, np.array(X, float)))
    if hasattr(model, "embedding_"):
        np.testing.assert_allclose(model.transform(X), model.embedding_, atol=1e-6)


@every
def test_memory_layout_does_not_matter(kind, fitted, X, y):
    for other in (np.repeat(np.asfortranarray(X), 2, axis=1)[:, ::2], np.asfortranarray(X).astype(">f8")):
        np.testing.assert_array_equal(answers(make(kind, Gaussian(1.5)).fit(other, y), X), answers(fitted[kind], X))


@every
def test_data_of_the_user_are_never_changed(kind, X, y):
    given = {"X": X.copy(), "y": y.copy()} | ({"sample_weight": np.linspace(1, 2, 90)} if kind in WEIGHTED else {})
    before = {name: value.copy() for name, value in given.items()}
    for value in given.values():
        value.flags.writeable = False
    answers(make(kind).fit(**given), given["X"])
    for name, value in given.items():
        np.testing.assert_array_equal(value, before[name])


@every
def test_the_kernel_of_the_user_is_never_changed(kind, X, y):
    kernel = Gaussian() if kind is RobustKernelRidge else Gaussian() + 2.0 * Laplacian(sigma="slope")
    if kind is SumOfSquaresDensity:
        kernel = Laplacian()
    before = repr(kernel)
    model = make(kind, kernel).fit(X, y)
    answers(model, X)
    assert repr(kernel) == before
    assert model.kernel is kernel
    assert not kernel.is_resolved
    assert model.kernel_.is_resolved


CHANGES = [
    (Gaussian(sigma=1.5), {"sigma": 9.0}),
    (2.0 * Gaussian(sigma=1.0) + Laplacian(sigma=1.0), {"left__kernel__sigma": 9.0, "right__sigma": 0.1}),
    (Precomputed(new_diagonal=1.0), {"new_diagonal": 3.0}),
]


@pytest.mark.parametrize(
    ("kind", "kernel", "changes"),
    # densities and regressions of other kernels have no closed form
    [(kind, *change) for kind in QUICK for change in CHANGES[: 3 if kind in TRANSFORMERS else 1]],
)
def test_what_the_user_does_to_the_kernel_later_does_not_matter(kind, kernel, changes, X, y):
    data = Gaussian(sigma=1.0)(X) if isinstance(kernel, Precomputed) else X
    kernel = clone(kernel)
    model = make(kind, kernel).fit(data, y)
    before = answers(model, data[:9] * 0.9)
    kernel.set_params(**changes)
    np.testing.assert_array_equal(answers(model, data[:9] * 0.9), before)
    assert model.kernel_ is not kernel


@pytest.mark.parametrize("kind", WEIGHTED)
def test_the_unit_of_weights_does_not_matter(kind, X, y):
    weights = 1.0 + np.arange(90) % 3
    once, fourfold = (make(kind, "rbf").fit(X, y, sample_weight=unit * weights) for unit in (1.0, 4.0))
    lengths = 2.0 if kind is SDPEmbedding else 1.0  # of its vectors, which go as one over the root of a weight
    np.testing.assert_array_equal(lengths * answers(fourfold, X), answers(once, X))
    assert fourfold.kernel_.sigma == once.kernel_.sigma
    np.testing.assert_array_equal(fourfold.sample_weight_, 4 * weights)


@pytest.mark.parametrize("kind", WEIGHTED)
def test_equal_weights_are_none(kind, fitted, X, y):
    np.testing.assert_allclose(
        answers(make(kind, Gaussian(1.5)).fit(X, y, sample_weight=np.ones(90)), X), answers(fitted[kind], X), rtol=1e-6
    )


@pytest.mark.parametrize("kind", WEIGHTED)
@pytest.mark.parametrize(
    ("weights", "sentence"),
    [
        (np.ones(89), r"^sample_weight has shape \(89,\): it must have one entry for each of the 90 points\.$"),
        (
            -np.ones(90),
            r"^sample_weight is negative at index 0: weights must not be negative(, unless signed=True .*)?\.$",
        ),
        (np.zeros(90), r"^sample_weight is zero everywhere: at least one weight must be positive\.$"),
        (np.full(90, np.nan), r"^sample_weight has a NaN or an infinity at index 0\.$"),
        (["a"] * 90, r"^sample_weight must be real numbers, not of type "),
    ],
    ids=["short", "negative", "zero", "nan", "words"],
)
def test_weights_that_cannot_be_used_are_refused_in_one_sentence(kind, weights, sentence, X, y):
    with pytest.raises(ValueError, match=sentence):
        make(kind).fit(X, y, sample_weight=weights)


# --- fitted models ------------------------------------------------------------------------------------------------


@every
def test_every_fitted_attribute_has_a_type_and_a_line_in_the_docstring(kind, fitted):
    names = {name for name in vars(fitted[kind]) if name.endswith("_") and not name.startswith("_")}
    typed = {name for base in kind.__mro__ for name in vars(base).get("__annotations__", {})}
    assert names <= typed
    assert not {name for name in names if name not in kind.__doc__} - {"n_features_in_"}


@every
def test_refit_forgets(kind, X, y):
    model, fresh = make(kind).fit(X, y), make(kind)
    np.testing.assert_array_equal(answers(model.fit(X[:40, :1], y[:40]), X[:, :1]), answers(fresh.fit(X[:40, :1], y[:40]), X[:, :1]))  # fmt: skip
    assert model.n_features_in_ == 1
    assert vars(model).keys() == vars(fresh).keys()


@every
def test_a_fit_that_fails_leaves_the_model_as_it_was(kind, X, y):
    def stop(_):
        raise RuntimeError("the user's own")

    model = make(kind, Gaussian(1.5)).fit(X, y)
    wrong = {"kernel": Gaussian} | ({"callback": stop} if hasattr(kind(), "callback") else {})
    for name, value in wrong.items():
        earlier = getattr(model, name)
        before = dict(vars(model.set_params(**{name: value})))
        with pytest.raises((TypeError, RuntimeError), match="is a class|the user's own"):
            model.fit(X[:50, :1] + 1.0, y[:50])
        assert vars(model).keys() == before.keys()
        assert all(vars(model)[each] is before[each] for each in before)
        model.set_params(**{name: earlier})


@every
def test_same_seed_same_result(kind, fitted, X, y):
    np.testing.assert_array_equal(answers(make(kind, Gaussian(1.5)).fit(X, y), X), answers(fitted[kind], X))


@pytest.mark.parametrize("state", [0, 7, np.random.RandomState(3), np.random.default_rng(3), None])
def test_random_states(state, X):
    model = SDPEmbedding(Gaussian(sigma=1.0), random_state=state).fit(X)
    reference = SDPEmbedding(Gaussian(sigma=1.0), random_state=99).fit(X)
    np.testing.assert_allclose(model.embedding_, reference.embedding_, atol=1e-4)  # signs included


@every
def test_pickle(kind, fitted, X):
    copy = pickle.loads(pickle.dumps(fitted[kind]))
    np.testing.assert_array_equal(answers(copy, X[:7] + 0.1), answers(fitted[kind], X[:7] + 0.1))


def test_pickles_are_read_by_another_process_without_heavy_imports(fitted, X, tmp_path):
    path, new = tmp_path / "models.pickle", X[:7] + 0.1
    path.write_bytes(pickle.dumps([(model, answers(model, new)) for model in fitted.values()]))
    code = (
        "import pickle, sys\nimport numpy as np\n"
        f"new = np.array({new.tolist()!r})\n"
        f"for model, expected in pickle.load(open({str(path)!r}, 'rb')):\n"
        "    ways = [name for name in ('transform', 'score_samples', 'predict') if hasattr(model, name)]\n"
        "    np.testing.assert_allclose(getattr(model, ways[0])(new), expected, rtol=1e-12, atol=1e-15)\n"
        "heavy = {'cvxpy', 'matplotlib', 'torch', 'dask', 'plotly', 'click'} & set(sys.modules)\n"
        "sys.exit(f'unpickling imported {heavy}' if heavy else 0)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


@every
def test_a_pickled_model_holds_no_square_matrix(kind):
    X, _ = two_moons(n_points=600)
    assert len(pickle.dumps(make(kind, Gaussian(sigma=1.0)).fit(X, X[:, 0] > 0))) < 600 * 600 * 8 / 10


@every
def test_an_unfitted_model_says_so(kind, X):
    with pytest.raises(NotFittedError, match=f"This {kind.__name__} instance is not fitted yet"):
        answers(make(kind), X)


# --- certificates -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", CERTIFIED)
def test_verify_certifies_a_fit_again(kind, fitted, X, y):
    model = fitted[kind]
    proof = verify(model, X, y)
    assert proof.holds(1e-3)
    assert proof.lower <= model.certificate_.upper
    assert model.certificate_.lower <= proof.upper
    with pytest.raises(ValueError, match="90 points"):
        verify(model, X[:-1], y[:-1])


@pytest.mark.parametrize("kind", CERTIFIED)
def test_verify_certifies_fitted_models_only(kind, X, y):
    with pytest.raises(NotFittedError):
        verify(make(kind), X, y)
    with pytest.raises(TypeError, match=r"^verify takes a fitted SDPEmbedding, .*, not type\.$"):
        verify(kind, X, y)


def test_verify_refuses_a_model_without_certificate(fitted, X):
    sentence = (
        "verify takes a fitted SDPEmbedding, KernelizedSDPEmbedding, MaximumVarianceUnfolding, KernelPCA, "
        "QuadratureSparsifier, SumOfSquaresDensity, RobustKernelRidge, RobustKernelRegressor or "
        "RobustKernelClassifier, not DiffusionMaps."
    )
    with pytest.raises(TypeError) as caught:
        verify(fitted[DiffusionMaps], X)
    assert str(caught.value) == sentence


@pytest.mark.parametrize(
    ("kind", "what"),
    [
        (KernelPCA, "KernelPCA"),
        (QuadratureSparsifier, "a quadrature"),
        (SumOfSquaresDensity, "a density"),
        (RobustKernelRidge, "a regression"),
        (RobustKernelRegressor, "a robust machine"),
        (RobustKernelClassifier, "a robust machine"),
    ],
)
def test_only_an_embedding_has_an_extension_to_certify(kind, what, fitted, X, y):
    sentence = rf"^extended=True certifies the extension of an embedding: {what} has none\.$"
    with pytest.raises(ValueError, match=sentence):
        verify(fitted[kind], X, y, extended=True)


@pytest.mark.parametrize(
    ("kind", "parameters"),
    [
        (SDPEmbedding, {"max_iter": 1, "solver": "power"}),
        (DiffusionMaps, {"n_components": 95}),
        (KernelPCA, {"kernel": Gaussian(20.0), "n_components": 80}),
        (QuadratureSparsifier, {"kernel": Gaussian(100.0), "n_nodes": 60}),
        (KernelizedSDPEmbedding, {"max_iter": 1}),
        (SumOfSquaresDensity, {"solver": "accelerated", "max_iter": 1}),
        (RobustKernelRidge, {"max_iter": 1}),
        (RobustKernelRegressor, {"max_iter": 1}),
        (RobustKernelClassifier, {"max_iter": 1}),
    ],
)
def test_a_warning_points_at_the_line_of_the_user(kind, parameters, X, y):
    with pytest.warns(UserWarning, match=r"\.$") as caught:
        make(kind, **{"kernel": Gaussian(1.5), **parameters}).fit(X, y)
    assert {warning.filename for warning in caught} == {__file__}
