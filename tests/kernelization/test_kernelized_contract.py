"""What a kernelised estimator promises to scikit-learn, pandas, polars and pickle, and to the person who fits it."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
import sklearn
from scipy.sparse import csr_matrix
from sklearn.base import clone, is_classifier, is_clusterer, is_regressor
from sklearn.cluster import KMeans
from sklearn.cross_decomposition import CCA
from sklearn.decomposition import PCA
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression, Ridge, SGDOneClassSVM
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC
from sklearn.utils import get_tags

from mercer import (
    Gaussian,
    Kernelized,
    Landmarks,
    Laplacian,
    Precomputed,
    QuadratureSparsifier,
    SelfTuning,
    config_context,
)
from mercer.kernels import Sigmoid

rng = np.random.default_rng(8)
X = rng.normal(size=(80, 2))
y = np.sin(2 * X[:, 0]) + X[:, 1] ** 2
LABELS = np.where(y > 0.8, "high", "low")
NEW = rng.normal(size=(15, 2))
KERNEL = Gaussian(1.5)


# --- what is delegated --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("estimator", "methods"),
    [
        (Ridge(), {"predict", "score"}),
        (LogisticRegression(), {"predict", "predict_proba", "predict_log_proba", "decision_function", "score"}),
        (LinearSVC(), {"predict", "decision_function", "score"}),
        (KMeans(2), {"predict", "transform", "fit_transform", "fit_predict", "score"}),
        (PCA(1), {"transform", "fit_transform", "score", "score_samples"}),
        (SGDOneClassSVM(), {"predict", "fit_predict", "decision_function", "score_samples"}),
    ],
    ids=lambda value: type(value).__name__,
)
def test_methods_are_those_of_the_estimator(estimator, methods):
    model = Kernelized(estimator, KERNEL, random_state=0)
    every = {"predict", "predict_proba", "predict_log_proba", "decision_function", "score", "score_samples"}
    every |= {"transform", "fit_transform", "fit_predict"}
    for state in (model, clone(model).fit(X, LABELS if is_classifier(estimator) else y)):
        assert {name for name in every if hasattr(state, name)} == methods
    assert hasattr(model, "set_output") == ("transform" in methods)


@pytest.mark.parametrize("estimator", [Ridge(), LogisticRegression(), KMeans(), PCA(), CCA()], ids=repr)
def test_the_kind_and_the_targets_are_those_of_the_estimator(estimator):
    model, tags, inner = Kernelized(estimator), get_tags(Kernelized(estimator)), get_tags(estimator)
    for question in (is_classifier, is_regressor, is_clusterer):
        assert question(model) == question(estimator)
    assert (tags.estimator_type, tags.target_tags) == (inner.estimator_type, inner.target_tags)
    assert not tags.input_tags.pairwise
    assert get_tags(Kernelized(estimator, "precomputed")).input_tags.pairwise


def test_the_estimator_of_the_user_is_never_fitted():
    inner = LogisticRegression()
    model = Kernelized(inner, KERNEL).fit(X, LABELS)
    assert not hasattr(inner, "coef_")
    assert model.estimator is inner
    np.testing.assert_array_equal(model.classes_, ["high", "low"])
    assert model.estimator_.coef_.shape == (1, model.indices_.size)
    assert not hasattr(model, "labels_")


def test_fit_predict_and_fit_transform_are_those_of_one_fit():
    model = Kernelized(KMeans(3, n_init=1), KERNEL, random_state=0)
    np.testing.assert_array_equal(model.fit_predict(X), model.labels_)
    np.testing.assert_allclose(model.fit_transform(X), model.transform(X), atol=1e-6)
    alone = Kernelized(CCA(1), KERNEL, landmarks=6, random_state=0).fit(X, y)
    assert alone.predict(NEW).shape == (15,)


# --- parameters, searches, pipelines ------------------------------------------------------------------------------


def test_a_grid_search_reaches_the_kernel_and_the_estimator():
    grid = {"kernel__sigma": [0.3, 1.5], "estimator__alpha": [1e-3, 1.0], "landmarks": [10, None]}
    search = GridSearchCV(Kernelized(Ridge(), random_state=0), grid, cv=3).fit(X, y)
    assert search.best_params_ == {"kernel__sigma": 1.5, "estimator__alpha": 1e-3, "landmarks": None}
    by_hand = cross_val_score(Kernelized(Ridge(alpha=1e-3), KERNEL), X, y, cv=3).mean()
    assert search.best_score_ == pytest.approx(by_hand, rel=1e-6)
    assert search.best_estimator_.kernel_.sigma == 1.5
    whole = GridSearchCV(Kernelized(Ridge()), {"kernel": [Gaussian(1.0), Laplacian(1.0)]}, cv=2).fit(X, y)
    assert len(whole.cv_results_["params"]) == 2


def test_clone_repr_and_parameters():
    model = Kernelized(Ridge(alpha=2.0), Gaussian(0.3), landmarks=7)
    copy = clone(model)
    assert (
        repr(copy) == repr(model) == "Kernelized(estimator=Ridge(alpha=2.0), kernel=Gaussian(sigma=0.3), landmarks=7)"
    )
    assert copy.estimator is not model.estimator
    assert copy.get_params()["estimator__alpha"] == 2.0
    assert Kernelized(Ridge()).get_params()["kernel__sigma"] == "median"
    assert Kernelized(Ridge(), "laplacian").fit(X, y).kernel_.sigma > 0


def test_pipelines_before_behind_and_inside():
    before = make_pipeline(StandardScaler(), Kernelized(LogisticRegression(C=10.0), KERNEL)).fit(X, LABELS)
    assert before.score(X, LABELS) > 0.9
    behind = make_pipeline(Kernelized(PCA(5), KERNEL), KNeighborsClassifier()).fit(X, LABELS)
    assert behind.score(X, LABELS) > 0.9
    inside = Kernelized(make_pipeline(PCA(20), LogisticRegression(C=100.0)), KERNEL).fit(X, LABELS)
    assert inside.score(X, LABELS) > 0.9
    assert inside.predict_proba(NEW).shape == (15, 2)
    weighted = Kernelized(make_pipeline(PCA(20), Ridge()), KERNEL).fit(X, y, ridge__sample_weight=np.ones(80))
    assert weighted.predict(NEW).shape == (15,)


# --- weights ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kernel", [None, KERNEL], ids=repr)
@pytest.mark.parametrize(
    "estimator", [Ridge(), LogisticRegression(tol=1e-12, max_iter=5000)], ids=lambda e: type(e).__name__
)
def test_weights_are_repeated_rows(estimator, kernel):
    counts = rng.integers(0, 4, 80)
    targets = LABELS if is_classifier(estimator) else y
    weighted = Kernelized(estimator, kernel).fit(X, targets, sample_weight=counts)
    repeated = Kernelized(estimator, kernel).fit(np.repeat(X, counts, axis=0), np.repeat(targets, counts))
    answer = "decision_function" if is_classifier(estimator) else "predict"
    np.testing.assert_allclose(getattr(weighted, answer)(NEW), getattr(repeated, answer)(NEW), rtol=0, atol=1e-6)
    assert weighted.kernel_.sigma == pytest.approx(repeated.kernel_.sigma)
    assert weighted.trace_ == pytest.approx(repeated.trace_)
    assert np.all(counts[weighted.indices_] > 0)


def test_weights_that_cannot_be_used_are_refused_in_one_sentence():
    with pytest.raises(TypeError, match=r"^PCA takes no sample_weight: leave it out\.$"):
        Kernelized(PCA()).fit(X, sample_weight=np.ones(80))
    with pytest.raises(ValueError, match=r"^sample_weight is negative at index 0: weights must not be negative\.$"):
        Kernelized(Ridge()).fit(X, y, sample_weight=-np.ones(80))


def test_scikit_learn_routes_metadata():
    weights = rng.uniform(size=80)
    plain = Kernelized(Ridge(), KERNEL).fit(X, y, sample_weight=weights)
    with sklearn.config_context(enable_metadata_routing=True):
        inner = Ridge().set_fit_request(sample_weight=True).set_score_request(sample_weight=True)
        routed = Kernelized(inner, KERNEL).fit(X, y, sample_weight=weights)
        search = GridSearchCV(clone(routed), {"estimator__alpha": [0.1, 1.0]}, cv=2).fit(X, y, sample_weight=weights)
        with pytest.raises(sklearn.exceptions.UnsetMetadataPassedError, match="sample_weight"):
            Kernelized(Ridge(), KERNEL).fit(X, y, sample_weight=weights)
    np.testing.assert_array_equal(routed.predict(NEW), plain.predict(NEW))
    assert search.best_score_ < 1


# --- how data come in and go out ----------------------------------------------------------------------------------


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_data_frames(library):
    frames = pytest.importorskip(library)
    frame = frames.DataFrame({"first": X[:, 0], "second": X[:, 1]})
    model = Kernelized(Ridge(), KERNEL).fit(frame, y)
    assert list(model.feature_names_in_) == ["first", "second"]
    assert model.n_features_in_ == 2
    np.testing.assert_array_equal(model.predict(frame), Kernelized(Ridge(), KERNEL).fit(X, y).predict(X))
    with pytest.raises(ValueError, match="feature names"):
        model.predict(frame[["second", "first"]])
    outer = Kernelized(PCA(2), KERNEL).set_output(transform=library)
    table = outer.fit_transform(frame)
    assert isinstance(table, frames.DataFrame)
    assert list(table.columns) == ["pca0", "pca1"] == list(outer.get_feature_names_out())
    np.testing.assert_allclose(np.asarray(outer.transform(frame)), np.asarray(table), atol=1e-7)


def test_a_table_keeps_its_index():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(X, columns=["a", "b"], index=[f"row {i}" for i in range(80)])
    model = Kernelized(PCA(2), KERNEL).set_output(transform="pandas").fit(frame)
    assert list(model.transform(frame[::2]).index) == list(frame.index[::2])


@pytest.mark.parametrize("form", [np.asarray, csr_matrix], ids=["dense", "sparse"])
@pytest.mark.parametrize("landmarks", [None, 9, [3, 50, 7, 20]], ids=repr)
def test_a_precomputed_kernel(form, landmarks):
    plain = Kernelized(Ridge(), KERNEL, landmarks=landmarks, random_state=0).fit(X, y)
    given = Kernelized(Ridge(), "precomputed", landmarks=landmarks, random_state=0).fit(form(KERNEL(X)), y)
    np.testing.assert_allclose(given.predict(form(KERNEL(NEW, X))), plain.predict(NEW), rtol=0, atol=1e-7)
    assert given.trace_left_out_ == pytest.approx(plain.trace_left_out_, abs=1e-8)
    if landmarks is None:
        scores = (cross_val_score(each, data, y, cv=3) for each, data in ((plain, X), (given, KERNEL(X))))
        np.testing.assert_allclose(*scores, atol=1e-6)


def test_tensors():
    torch = pytest.importorskip("torch")
    plain = Kernelized(Ridge(), KERNEL).fit(X, y)
    weights = torch.ones(80, dtype=torch.float64)
    model = Kernelized(Ridge(), KERNEL).fit(torch.asarray(X), torch.asarray(y), sample_weight=weights)
    assert model.score(torch.asarray(X), torch.asarray(y)) == pytest.approx(plain.score(X, y))
    np.testing.assert_allclose(model.predict(torch.asarray(NEW)), plain.predict(NEW), rtol=0, atol=1e-7)
    through = Kernelized(KMeans(2), KERNEL, landmarks=9, random_state=0).fit(torch.asarray(X))
    assert isinstance(through.predict(torch.asarray(NEW)), np.ndarray)


@pytest.mark.parametrize("landmarks", [None, 20, np.arange(20)], ids=["all", "drawn", "rows"])
def test_single_precision(landmarks):
    double = Kernelized(Ridge(), KERNEL, landmarks=landmarks, random_state=0).fit(X, y)
    with config_context(dtype="float32"):
        single = Kernelized(Ridge(), KERNEL, landmarks=landmarks, random_state=0).fit(X, y)
        answer = single.predict(NEW)
    assert single.estimator_.coef_.dtype == np.float32
    np.testing.assert_allclose(answer, double.predict(NEW), atol=1e-3)
    assert single.trace_left_out_ >= 0


def test_pickle_and_the_size_of_it():
    points = rng.normal(size=(600, 2))
    model = Kernelized(PCA(2), KERNEL, landmarks=10, random_state=0).fit(points)
    stored = pickle.dumps(model)
    assert len(stored) < 600 * 2 * 8
    np.testing.assert_array_equal(pickle.loads(stored).transform(NEW), model.transform(NEW))


@pytest.mark.parametrize("chooser", [Landmarks(10, random_state=0), QuadratureSparsifier(KERNEL, n_nodes=10)], ids=repr)
def test_landmarks_that_an_estimator_chooses(chooser):
    model = Kernelized(Ridge(alpha=1e-3), KERNEL, landmarks=chooser).fit(X, y)
    assert model.indices_.size == 10
    assert model.score(X, y) > 0.8
    assert model.trace_left_out_ < 0.2 * model.trace_


# --- what is refused ----------------------------------------------------------------------------------------------


def test_what_is_no_estimator_or_no_kernel():
    with pytest.raises(TypeError, match=r"^estimator=3 must be an estimator of scikit-learn, such as Ridge\(\)\.$"):
        Kernelized(3).fit(X, y)
    with pytest.raises(TypeError, match=r"must be an estimator of scikit-learn, such as Ridge\(\)\.$"):
        Kernelized(Ridge).fit(X, y)
    with pytest.raises(TypeError, match=r"^kernel=Gaussian is a class"):
        Kernelized(Ridge(), Gaussian).fit(X, y)
    with pytest.raises(NotFittedError, match="This Kernelized instance is not fitted yet"):
        Kernelized(Ridge()).predict(X)
    with pytest.raises(ValueError, match=r"^landmarks=0 must be a whole number"):
        Kernelized(Ridge(), landmarks=0).fit(X, y)
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        Kernelized(Ridge()).fit(X, y[:-1])


INDEFINITE = r" is not positive semi-definite on these points, so that they have no features in its space: choose "


@pytest.mark.parametrize("landmarks", [None, 10, np.arange(10)], ids=["all", "drawn", "rows"])
@pytest.mark.parametrize("kernel", [Sigmoid(0.5, 0.1), SelfTuning(), Precomputed()], ids=lambda k: type(k).__name__)
def test_a_kernel_that_is_indefinite(kernel, landmarks):
    data = X
    if isinstance(kernel, Precomputed):
        data = X @ np.diag([1.0, -1.0]) @ X.T
    with pytest.raises(ValueError, match=INDEFINITE):
        Kernelized(Ridge(), kernel, landmarks=landmarks).fit(data, y)


@pytest.mark.parametrize("noise", [1e-15, 1e-12, 1e-9])
def test_entries_that_are_known_to_some_digits_give_features_to_as_many(noise):
    matrix = KERNEL(X)
    error = noise * rng.normal(size=matrix.shape)
    model = Kernelized(Ridge(), Precomputed()).fit(matrix + error + error.T, y)
    np.testing.assert_allclose(
        model.predict(KERNEL(NEW, X)), Kernelized(Ridge(), KERNEL).fit(X, y).predict(NEW), atol=1e-4
    )
    assert model.trace_left_out_ < 2e-6 * model.trace_


def test_a_kernel_that_vanishes():
    with pytest.raises(ValueError, match=r"^The kernel vanishes on every point that features are made from"):
        Kernelized(Ridge(), "precomputed").fit(np.zeros((5, 5)), np.arange(5.0))


def test_memory_is_counted_before_it_is_taken():
    points = rng.normal(size=(3000, 2))
    with config_context(memory_limit="2MB"):
        with pytest.raises(
            MemoryError, match=r"^200 features of 3000 points take 9.6 MB, beyond the memory limit of 2 MB"
        ):
            Kernelized(PCA(2), KERNEL, landmarks=200).fit(points)
        with pytest.raises(
            MemoryError, match=r"^3000 points span more than the 41 dimensions .* memory limit: pass landmarks"
        ):
            Kernelized(PCA(2), Laplacian(1.0)).fit(points)
        model = Kernelized(PCA(2), Gaussian(20.0)).fit(points)
        assert model.indices_.size < 41  # of a rank that fits
        with pytest.raises(MemoryError, match=r"pass fewer points, or raise memory_limit\.$"):
            model.transform(np.tile(points, (20, 1)))


def test_a_fit_that_fails_leaves_the_model_as_it_was():
    model = Kernelized(Ridge(), KERNEL).fit(X, y)
    before = dict(vars(model))
    with pytest.raises(ValueError, match="NaN"):
        model.fit(X[:40, :1], np.full(40, np.nan))
    assert vars(model) == before
    fresh = Kernelized(Ridge(), KERNEL).fit(X[:40, :1], y[:40])
    model.fit(X[:40, :1], y[:40])
    np.testing.assert_array_equal(model.predict(X[:, :1]), fresh.predict(X[:, :1]))
    assert vars(model).keys() == vars(fresh).keys()
