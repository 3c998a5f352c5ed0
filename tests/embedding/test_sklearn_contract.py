"""The estimators as scikit-learn, pandas, polars and pickle see them."""

from __future__ import annotations

import pickle
import subprocess
import sys

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC
from sklearn.utils.estimator_checks import parametrize_with_checks

from mercer import DiffusionMaps, Gaussian, Laplacian, Matern, Precomputed, SDPEmbedding
from mercer.datasets import three_clusters, two_moons

_BOTH = pytest.mark.parametrize("Estimator", [SDPEmbedding, DiffusionMaps])


_WEIGHTS = "check_sample_weight_equivalence_on_dense_data"


def _expected_to_fail(estimator):
    if isinstance(estimator, SDPEmbedding) and estimator.residual_tol > 1e-9:
        return {_WEIGHTS: "compares to 1e-7 two solves that stop at a residual of 1e-6; to 1e-9 they pass, see below"}
    return {}


@parametrize_with_checks(
    [
        SDPEmbedding(),
        SDPEmbedding(residual_tol=1e-9),
        DiffusionMaps(),
        SDPEmbedding(Laplacian(sigma=2.0), n_components=1, solver="power", radius="paper", max_iter=100_000),
        SDPEmbedding(
            Gaussian(sigma="slope"), initial_rank=4, certify=False, tol=1e-3, residual_tol=1e-10, random_state=3
        ),
        DiffusionMaps(Matern(nu=2.5), n_components=1, time=0.5, alpha=1.0),
        DiffusionMaps(Gaussian(sigma=1.0) + Laplacian(sigma=2.0), n_components=3, time=3),
    ],
    expected_failed_checks=_expected_to_fail,
)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


@pytest.fixture(scope="module")
def clusters():
    X, labels = three_clusters(n_per_cluster=30, n_outliers=0)
    return X, labels


def test_pipeline_classifies(clusters):
    X, labels = clusters
    train, test = np.arange(len(X)) % 3 != 0, np.arange(len(X)) % 3 == 0
    model = make_pipeline(StandardScaler(), SDPEmbedding(random_state=0), KNeighborsClassifier())
    model.fit(X[train], labels[train])
    assert model.score(X[test], labels[test]) > 0.95
    assert model.predict(X[test]).shape == labels[test].shape


def test_diffusion_maps_in_a_pipeline(clusters):
    X, labels = clusters
    model = make_pipeline(StandardScaler(), DiffusionMaps(), KNeighborsClassifier()).fit(X[::2], labels[::2])
    assert model.score(X[1::2], labels[1::2]) > 0.95


@_BOTH
def test_no_arguments_at_all(Estimator, clusters):
    X, _ = clusters
    model = Estimator().fit(X)
    assert model.embedding_.shape == (90, 2)
    assert model.transform(X).shape == (90, 2)
    assert model.kernel is None
    assert isinstance(model.kernel_, Gaussian)
    assert model.kernel_.sigma > 0


@_BOTH
@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_data_frames_in_and_out(Estimator, library, clusters):
    frames = pytest.importorskip(library)
    X, _ = clusters
    frame = frames.DataFrame({"first": X[:, 0], "second": X[:, 1]})
    model = Estimator(random_state=0).set_output(transform=library)
    fitted, out = model.fit_transform(frame), model.transform(frame)
    for table in (fitted, out):
        assert isinstance(table, frames.DataFrame)
        assert list(table.columns) == [f"{Estimator.__name__.lower()}{k}" for k in range(2)]
        assert len(table) == 90
    assert list(model.feature_names_in_) == ["first", "second"]
    np.testing.assert_allclose(np.asarray(out), Estimator(random_state=0).fit(X).transform(X), rtol=1e-12, atol=1e-15)


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_data_frames_through_a_pipeline(library, clusters):
    pytest.importorskip(library)
    X, _ = clusters
    model = make_pipeline(StandardScaler(), SDPEmbedding(random_state=0)).set_output(transform=library)
    assert list(model.fit_transform(X).columns) == ["sdpembedding0", "sdpembedding1"]


def test_names_of_columns(clusters):
    X, _ = clusters
    model = SDPEmbedding(n_components=1).fit(X)
    assert list(model.get_feature_names_out()) == ["sdpembedding0"]
    model = DiffusionMaps(n_components=3).fit(X)
    assert list(model.get_feature_names_out()) == ["diffusionmaps0", "diffusionmaps1", "diffusionmaps2"]


def test_renamed_columns_are_noticed(clusters):
    pandas = pytest.importorskip("pandas")
    X, _ = clusters
    model = SDPEmbedding().fit(pandas.DataFrame(X, columns=["a", "b"]))
    with pytest.raises(ValueError, match="feature names"):
        model.transform(pandas.DataFrame(X, columns=["b", "a"]))


@_BOTH
def test_clone_and_repr(Estimator):
    model = Estimator(Gaussian(sigma=0.3), n_components=1, random_state=5)
    copy = clone(model)
    assert copy is not model
    assert copy.kernel is not model.kernel
    assert copy.get_params()["kernel__sigma"] == 0.3
    assert repr(copy) == repr(model)
    assert "Gaussian(sigma=0.3)" in repr(model)


def test_constructor_does_nothing():
    model = SDPEmbedding("no kernel", n_components=-1, tol="x", solver=3)
    assert model.get_params()["tol"] == "x"
    assert not [name for name in vars(model) if name.endswith("_")]


@_BOTH
def test_kernel_of_the_user_is_never_changed(Estimator, clusters):
    X, _ = clusters
    kernel = Gaussian() + 2.0 * Laplacian(sigma="slope")
    before = repr(kernel)
    model = Estimator(kernel).fit(X)
    model.transform(X)
    assert repr(kernel) == before
    assert model.kernel is kernel
    assert not kernel.is_resolved
    assert model.kernel_.is_resolved


@_BOTH
@pytest.mark.parametrize(
    ("kernel", "changes"),
    [
        (Gaussian(sigma=1.0), {"sigma": 9.0}),
        (2.0 * Gaussian(sigma=1.0) + Laplacian(sigma=1.0), {"left__kernel__sigma": 9.0, "right__sigma": 0.1}),
        (Precomputed(new_diagonal=1.0), {"new_diagonal": 3.0}),
    ],
    ids=repr,
)
def test_what_the_user_does_to_the_kernel_later_does_not_matter(Estimator, kernel, changes, clusters):
    X, _ = clusters
    data = Gaussian(sigma=1.0)(X) if isinstance(kernel, Precomputed) else X
    kernel = clone(kernel)
    model = Estimator(kernel, random_state=0).fit(data)
    before = model.transform(data[:9] * 0.9)
    kernel.set_params(**changes)
    np.testing.assert_array_equal(model.transform(data[:9] * 0.9), before)
    assert model.kernel_ is not kernel


@_BOTH
def test_data_of_the_user_is_never_changed(Estimator, clusters):
    X, _ = clusters
    copy = X.copy()
    copy.flags.writeable = False
    model = Estimator().fit(copy)
    model.transform(copy)
    np.testing.assert_array_equal(copy, X)


@_BOTH
def test_pickle(Estimator, clusters, tmp_path):
    X, _ = clusters
    model = Estimator(Gaussian(sigma=1.0), random_state=0).fit(X)
    new = X[:7] + 0.1
    copy = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(copy.transform(new), model.transform(new))
    path = tmp_path / "model.pickle"
    path.write_bytes(pickle.dumps(model))
    code = (
        "import pickle, sys\n"
        f"model = pickle.load(open({str(path)!r}, 'rb'))\n"
        f"print(repr(model.transform({new.tolist()!r}).tolist()))\n"
        "heavy = {'cvxpy', 'matplotlib', 'torch', 'dask', 'plotly', 'click'} & set(sys.modules)\n"
        "sys.exit(f'unpickling imported {heavy}' if heavy else 0)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    np.testing.assert_allclose(eval(done.stdout), model.transform(new), rtol=1e-12, atol=1e-15)


def test_pickled_model_holds_no_square_matrix():
    X, _ = two_moons(n_points=600)
    model = SDPEmbedding(Gaussian(sigma=1.0), random_state=0).fit(X)
    assert len(pickle.dumps(model)) < 600 * 600 * 8 / 10


class _Scores:
    """A scorer that notes which bandwidth it was shown."""

    def __init__(self) -> None:
        self.seen: list[float] = []

    def __call__(self, estimator, X, y) -> float:
        self.seen.append(estimator.named_steps["sdpembedding"].kernel_.sigma)
        return estimator.score(X, y)


def test_grid_search_reaches_the_bandwidth():
    X, labels = two_moons(n_points=90, noise=0.2)
    order = np.random.default_rng(0).permutation(90)
    X, labels = X[order], labels[order]
    model = make_pipeline(StandardScaler(), SDPEmbedding(Gaussian(), random_state=0), SVC())
    scores = _Scores()
    grid = [0.5, 1.0, 3.0]
    search = GridSearchCV(model, {"sdpembedding__kernel__sigma": grid}, scoring=scores, cv=2)
    search.fit(X, labels)
    assert sorted(scores.seen) == sorted(2 * grid)
    assert len(set(search.cv_results_["mean_test_score"])) > 1
    assert (
        search.best_estimator_.named_steps["sdpembedding"].kernel_.sigma
        == search.best_params_["sdpembedding__kernel__sigma"]
    )
    assert model.named_steps["sdpembedding"].kernel.sigma == "median"


def test_grid_search_may_swap_whole_kernels(clusters):
    X, labels = clusters
    model = Pipeline([("embed", SDPEmbedding(Gaussian(), random_state=0)), ("knn", KNeighborsClassifier())])
    search = GridSearchCV(model, {"embed__kernel": [Gaussian(sigma=1.0), Laplacian(sigma=1.0)]}, cv=2)
    search.fit(X, labels)
    assert len(search.cv_results_["params"]) == 2


@_BOTH
def test_refit_forgets(Estimator, clusters):
    X, _ = clusters
    model = Estimator(random_state=0).fit(X)
    model.fit(X[:40])
    np.testing.assert_array_equal(model.embedding_, Estimator(random_state=0).fit(X[:40]).embedding_)


@pytest.mark.parametrize("state", [0, 7, np.random.RandomState(3), np.random.default_rng(3), None])
def test_random_states(state, clusters):
    X, _ = clusters
    model = SDPEmbedding(Gaussian(sigma=1.0), random_state=state).fit(X)
    reference = SDPEmbedding(Gaussian(sigma=1.0), random_state=99).fit(X)
    np.testing.assert_allclose(model.embedding_, reference.embedding_, atol=1e-4)  # signs included


@_BOTH
def test_same_seed_same_result(Estimator, clusters):
    X, _ = clusters
    a, b = (Estimator(random_state=4).fit(X) for _ in range(2))
    np.testing.assert_array_equal(a.embedding_, b.embedding_)


@_BOTH
def test_lists_and_integers(Estimator):
    X = [[0, 0], [0, 1], [5, 5], [5, 6], [9, 0]]
    model = Estimator(random_state=0).fit(X)
    np.testing.assert_allclose(model.transform(X), model.embedding_, atol=1e-6)


@_BOTH
def test_memory_layout_does_not_matter(Estimator, clusters):
    X, _ = clusters
    reference = Estimator(random_state=0).fit(X).embedding_
    for other in (np.asfortranarray(X), np.repeat(X, 2, axis=1)[:, ::2], X.astype(">f8")):
        np.testing.assert_array_equal(Estimator(random_state=0).fit(other).embedding_, reference)
