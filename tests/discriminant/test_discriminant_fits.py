"""Fits of discriminants: ways to the same answer, targets of every kind, weights, penalties, and what is refused."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from sklearn.covariance import ledoit_wolf_shrinkage
from sklearn.datasets import load_digits, load_wine
from sklearn.model_selection import GridSearchCV, StratifiedKFold
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline

from mercer import (
    Categories,
    FisherDiscriminant,
    Gaussian,
    Linear,
    Mixed,
    Precomputed,
    RoweisDiscriminant,
    SupervisedPCA,
    config_context,
)
from mercer.discriminant import fitting
from mercer.kernels import Sigmoid
from mercer.linalg.conjugate_gradients import ConjugateGradientWarning, conjugate_gradients

rng = np.random.default_rng(5)
LABELS = np.repeat(["ash", "elm", "oak"], [40, 50, 30])
X = rng.normal(size=(120, 4)) + 1.2 * np.stack([LABELS == "elm", LABELS == "oak", LABELS == "oak", LABELS == ""], 1)
NEW = rng.normal(size=(15, 4))
BY_PRODUCTS = [
    (1.0, 0.0),
    (0.3, 0.0),
    (0.0, 0.0),
    (0.0, 1.0),
    (0.6, 1.0),
    (1.0, 0.4),
    (1.0, 1.0),
    (0.4, 0.6),
    (0.0, 0.9),
]


@pytest.fixture
def products(monkeypatch):
    """Go by products with the kernel matrix, however few points there are."""
    return lambda: monkeypatch.setattr(fitting, "_FEATURES_UP_TO", 0)


# --- ways to the same answer ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("mixture", BY_PRODUCTS)
@pytest.mark.parametrize("kernel", [Gaussian(2.0), Precomputed()], ids=repr)
def test_products_and_features_agree(mixture, kernel, products):
    weights = rng.integers(0, 3, 120).astype(float)
    given = isinstance(kernel, Precomputed)
    data, new = (Gaussian(2.0)(X), Gaussian(2.0)(NEW, X)) if given else (X, NEW)
    model = RoweisDiscriminant(*mixture, kernel, n_components=2, regularization=1e-3, random_state=0)
    by_features = model.fit(data, LABELS, weights)
    there, values, shares = by_features.transform(new), by_features.eigenvalues_, by_features.predict_proba(new)
    products()
    model.fit(data, LABELS, weights)
    np.testing.assert_allclose(model.transform(new), there, atol=1e-8 * np.abs(there).max())
    np.testing.assert_allclose(model.eigenvalues_, values, rtol=1e-9)
    np.testing.assert_allclose(model.predict_proba(new), shares, atol=1e-7)


@pytest.mark.parametrize("mixture", [(1.0, 0.0), (0.4, 0.6), (0.0, 1.0), (0.0, 0.0)])
def test_wide_data_are_a_problem_of_as_many_rows(mixture, products):
    """The same points in 300 dimensions, of which they span four, far from the origin."""
    turned = np.linalg.qr(rng.normal(size=(300, 4)))[0].T
    wide = X @ turned + 1e4 * rng.normal(size=300)
    model = RoweisDiscriminant(*mixture, n_components=2, regularization=0.01)
    narrow = model.fit(X, LABELS).transform(X)
    there = model.fit(wide, LABELS)
    np.testing.assert_allclose(there.transform(wide), narrow, atol=1e-8)
    assert there.components_.shape == (2, 300)
    products()
    np.testing.assert_allclose(model.fit(wide, LABELS).transform(wide), narrow, atol=1e-8)


def test_all_points_as_landmarks_are_none():
    exact = FisherDiscriminant(Gaussian(2.0)).fit(X, LABELS)
    every = FisherDiscriminant(Gaussian(2.0), landmarks=np.arange(120)).fit(X, LABELS)
    np.testing.assert_allclose(every.transform(NEW), exact.transform(NEW), atol=1e-6)
    some = FisherDiscriminant(Gaussian(2.0), landmarks=60, random_state=0).fit(X, LABELS)
    assert np.mean(some.predict(X) == exact.predict(X)) > 0.9


def test_columns_that_are_constant_or_copies_change_nothing():
    expected = FisherDiscriminant().fit(X, LABELS)
    more = np.concatenate([X, np.full((120, 1), 0.1), X[:, :1] + X[:, 1:2]], axis=1)
    model = FisherDiscriminant().fit(more, LABELS)
    assert model.regularization_ == 0.0
    np.testing.assert_allclose(model.transform(more), expected.transform(X), atol=1e-9)
    np.testing.assert_allclose(model.eigenvalues_, expected.eigenvalues_, rtol=1e-10)


@pytest.mark.parametrize("seed", range(8))
def test_a_scatter_that_is_singular_is_seen(seed):
    """Whichever column the direction in which it vanishes lies along."""
    labels, own = np.arange(40) % 2, np.random.default_rng(seed)
    model = FisherDiscriminant().fit(own.normal(size=(40, 300)) + labels[:, None] * (np.arange(300) < 9), labels)
    assert model.regularization_ == 1e-3
    alone = FisherDiscriminant().fit(X[: seed + 2], np.arange(seed + 2))  # every row a class of its own
    assert alone.regularization_ == 1e-3
    assert np.abs(alone.transform(X)).max() < 1e3


def test_twenty_thousand_columns():
    labels = np.arange(100) % 2
    wide = rng.normal(size=(100, 20_000)).astype(np.float32)
    wide[:, :40] += 2.0 * labels[:, None]
    model = FisherDiscriminant().fit(wide[:60], labels[:60])
    assert model.regularization_ == 1e-3
    assert model.score(wide[60:], labels[60:]) > 0.85
    assert SupervisedPCA().fit(wide[:60], labels[:60]).score(wide[60:], labels[60:]) > 0.85


# --- targets --------------------------------------------------------------------------------------------------------


def curve(n=400, d=6):
    points = rng.normal(size=(n, d))
    direction = np.array([2.0, -1.0, 0.5, 0.0, 0.0, 0.0])
    direction /= np.linalg.norm(direction)
    along = points @ direction
    return points, np.exp(along) + 0.1 * rng.normal(size=n), direction


def test_numbers_show_the_direction_that_they_depend_on():
    points, y, direction = curve()
    stretched = points * np.array([1.0, 1, 1, 5, 5, 5])  # what does not matter varies most
    inverse = RoweisDiscriminant(0, 1, n_components=1).fit(stretched, y)
    found = inverse.components_[0] / np.linalg.norm(inverse.components_[0])
    assert abs(found @ direction) > 0.99
    pca = RoweisDiscriminant(0, 0, n_components=1).fit(stretched)
    assert abs(pca.components_[0] @ direction) < 0.2
    assert inverse.score(stretched, y) > 0.6
    assert inverse.predict(stretched).shape == (400,)
    assert not hasattr(inverse, "predict_proba")
    assert not hasattr(pca, "predict")


def test_the_scatter_within_follows_the_smoother():
    points, y, _ = curve(80)
    K = Gaussian(1.0)(y[:, None])
    H = np.eye(80) - 1 / 80
    K = H @ K @ H
    smooth = K @ np.linalg.inv(K + 0.05 * np.trace(K) * np.eye(80))
    centred = H @ points
    within = centred.T @ (np.eye(80) - smooth) @ centred / 80
    model = RoweisDiscriminant(0, 1, n_components=2, y_kernel=Gaussian(1.0), smoothing=0.05, regularization=0.0)
    model.fit(points, y)
    U = model.components_.T
    np.testing.assert_allclose(U.T @ within @ U, np.eye(2), atol=1e-8)
    total = centred.T @ centred / 80
    np.testing.assert_allclose(total @ U, within @ U * model.eigenvalues_, atol=1e-8)


def test_several_labels_a_row():
    points = rng.normal(size=(300, 5))
    labels = np.stack([points[:, 0] > 0, points[:, 1] > 0.5, rng.random(300) > 0.5], 1).astype(int)
    model = RoweisDiscriminant(0, 1, n_components=2).fit(points, labels)
    U = np.linalg.qr(model.components_.T)[0]
    assert np.linalg.norm(U[:2]) > 1.38  # of √2
    assert model.predict(points).shape == (300, 3)
    assert np.mean(model.predict(points)[:, :2] == labels[:, :2]) > 0.9
    assert SupervisedPCA().fit(points, labels).transform(points).shape == (300, 3)


def test_two_classes_as_labels_numbers_or_a_matrix_of_kernel_values_are_the_same():
    two = LABELS[:90]
    expected = RoweisDiscriminant(0.5, 1.0).fit(X[:90], two).transform(NEW)
    as_categories = RoweisDiscriminant(0.5, 1.0, n_components=1, y_kernel=Categories(1e-3), smoothing=0.0)
    np.testing.assert_allclose(as_categories.fit(X[:90], two).transform(NEW), expected, atol=1e-9)
    K_y = (two[:, None] == two).astype(float)
    given = RoweisDiscriminant(0.5, 1.0, n_components=1, y_kernel=Precomputed(), smoothing=0.0).fit(X[:90], K_y)
    np.testing.assert_allclose(given.transform(NEW), expected, atol=1e-9)
    assert not hasattr(given, "predict")
    indicators = RoweisDiscriminant(0.5, 1.0, n_components=1).fit(X[:90], np.stack([two == "ash", two == "elm"], 1) * 1)
    np.testing.assert_allclose(indicators.transform(NEW), expected, atol=1e-9)


def test_several_numbers_a_row():
    points = rng.normal(size=(200, 5))
    targets = points[:, :2] @ rng.normal(size=(2, 2))
    model = SupervisedPCA(n_components=2, y_kernel=Linear()).fit(points, targets)
    assert model.predict(points).shape == (200, 2)
    assert model.score(points, targets) > 0.9


# --- weights, arithmetic, tables ------------------------------------------------------------------------------------


@pytest.mark.parametrize("kernel", [None, Gaussian(2.0)], ids=repr)
@pytest.mark.parametrize("mixture", [(0.4, 0.6), (1.0, 0.0), (0.0, 1.0)])
def test_weights_are_repetitions(kernel, mixture):
    weights = rng.integers(0, 4, 120)
    weights[LABELS == "oak"] = 0  # a class that no row of the fit has
    targets = X[:, 0] + X[:, 1] ** 2 if mixture == (0.4, 0.6) else LABELS
    model = RoweisDiscriminant(*mixture, kernel, n_components=1, regularization=0.01, y_kernel=None)
    weighted = model.fit(X, targets, weights).transform(NEW)
    predicted, classes = model.predict(NEW), getattr(model, "classes_", None)
    model.fit(np.repeat(X, weights, axis=0), np.repeat(targets, weights))
    tolerance = 1e-5 if mixture == (0.4, 0.6) else 1e-9  # the kernel of numbers is factored to 1e-10 of its trace
    np.testing.assert_allclose(weighted, model.transform(NEW), atol=tolerance)
    if mixture != (0.4, 0.6):
        np.testing.assert_array_equal(predicted, model.predict(NEW))
        assert list(classes) == list(model.classes_) == ["ash", "elm"]


@pytest.mark.parametrize("kernel", [None, Gaussian(2.0)], ids=repr)
def test_single_precision_and_tensors(kernel, products):
    torch = pytest.importorskip("torch")
    model = FisherDiscriminant(kernel, regularization=0.01).fit(X, LABELS)
    there = model.transform(NEW)
    with config_context(dtype="float32"):
        np.testing.assert_allclose(model.fit(X, LABELS).transform(NEW), there, atol=2e-3)
    for _ in range(2):
        found = model.fit(torch.tensor(X), LABELS).transform(torch.tensor(NEW))
        assert isinstance(found, torch.Tensor)
        np.testing.assert_allclose(found.numpy(), there, atol=1e-7)
        products()


def test_a_data_frame_of_numbers_and_categories():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"a": X[:, 0], "colour": np.where(LABELS == "oak", "red", "blue"), "b": X[:, 1]})
    model = FisherDiscriminant(Mixed()).fit(frame, pandas.Series(LABELS))
    assert model.score(frame, LABELS) > 0.8
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(model)).transform(frame), model.transform(frame))
    with pytest.raises(ValueError, match="'colour' of X holds categories"):
        FisherDiscriminant().fit(frame, LABELS)
    targets = pandas.DataFrame({"tree": LABELS, "x": X[:, 0]})
    assert SupervisedPCA(n_components=2, y_kernel=Mixed()).fit(X, targets).transform(X).shape == (120, 2)


# --- penalties ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("d", [4, 200])
def test_shrinkage_is_that_of_ledoit_and_wolf(d):
    points = np.concatenate([X, rng.normal(size=(120, d - 4))], axis=1) * np.geomspace(1, 5, d)
    model = FisherDiscriminant(regularization="shrinkage").fit(points, LABELS)
    names, place = np.unique(LABELS, return_inverse=True)
    left = points - np.stack([points[place == k].mean(0) for k in range(names.size)])[place]
    delta = ledoit_wolf_shrinkage(left, assume_centered=True)
    expected = delta / (1 - delta) * np.mean(left**2) / np.sum(points.var(axis=0))
    assert model.regularization_ == pytest.approx(expected, rel=1e-8)
    with pytest.raises(ValueError, match="^regularization='shrinkage' is for the linear kernel"):
        FisherDiscriminant(Gaussian(), regularization="shrinkage").fit(X, LABELS)


def test_cross_validation_penalises_what_is_noise():
    noisy = np.concatenate([X, rng.normal(size=(120, 100))], axis=1)
    searched = FisherDiscriminant(regularization="cv", random_state=0)
    assert searched.fit(noisy, LABELS).regularization_ > 1e-3
    assert searched.fit(X, LABELS).regularization_ < 0.1
    train = np.arange(120) % 3 > 0
    plain, penalised = (
        FisherDiscriminant(regularization=part, random_state=0)
        .fit(noisy[train], LABELS[train])
        .score(noisy[~train], LABELS[~train])
        for part in (1e-6, "cv")
    )
    assert penalised > plain + 0.1


def test_cross_validation_of_numbers_and_of_a_kernel(products):
    points, y, _ = curve(150)
    model = RoweisDiscriminant(0, 1, Gaussian(3.0), n_components=2, regularization="cv", random_state=0).fit(points, y)
    assert 1e-6 <= model.regularization_ <= 10
    here = FisherDiscriminant(Gaussian(2.0), regularization="cv", random_state=0).fit(X, LABELS).regularization_
    products()
    assert (
        0.1
        < FisherDiscriminant(Gaussian(2.0), regularization="cv", random_state=0).fit(X, LABELS).regularization_ / here
        < 10
    )


def test_before_nearest_neighbours_in_a_pipeline():
    points, y = load_digits(return_X_y=True)
    model = make_pipeline(FisherDiscriminant(Gaussian(), regularization=1e-4), KNeighborsClassifier(5))
    assert model.fit(points[:400], y[:400]).score(points[400:], y[400:]) > 0.92
    search = GridSearchCV(RoweisDiscriminant(), {"r1": [0.0, 1.0], "r2": [0.0, 1.0]}, cv=StratifiedKFold(3))
    wine = load_wine(return_X_y=True)
    assert search.fit(*wine).best_params_["r2"] == 1.0


# --- what is refused ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("model", "targets", "sentence"),
    [
        (FisherDiscriminant(n_components=3), LABELS, "^n_components=3, but these points and labels have 2 directions"),
        (SupervisedPCA(n_components=9), LABELS, "^n_components=9, but these points and labels have 2 directions"),
        (FisherDiscriminant(), np.full(120, "oak"), "^y has one class, 'oak': discriminants need at least two"),
        (FisherDiscriminant(), X[:, 0], "Unknown label type: continuous"),
        (SupervisedPCA(), None, "^This SupervisedPCA estimator requires y to be passed"),
        (SupervisedPCA(), LABELS[:-1], "inconsistent numbers of samples"),
        (SupervisedPCA(y_kernel=Gaussian()), LABELS, "^y holds words, and y_kernel=Gaussian"),
        (SupervisedPCA(y_kernel=Precomputed()), X, "^A precomputed y_kernel must be square, not 120 × 4"),
        (SupervisedPCA(y_kernel=Linear()), np.ones(120), "^y is the same in every row"),
        (SupervisedPCA(), np.where(LABELS == "oak", np.nan, 1.0), "Input y contains NaN"),
        (RoweisDiscriminant(r1=1.5), LABELS, r"^r1=1\.5 must be a number from 0 to 1\.$"),
        (RoweisDiscriminant(r2=-1), LABELS, "^r2=-1 "),
        (RoweisDiscriminant(regularization="none"), LABELS, "^regularization='none' must be a number, 'cv'"),
        (FisherDiscriminant(regularization=-1.0), LABELS, r"^regularization=-1\.0 "),
        (FisherDiscriminant(Sigmoid()), LABELS, "is not positive semi-definite"),
        (FisherDiscriminant(landmarks="many"), LABELS, "says no number"),
    ],
    ids=lambda value: repr(value)[:40],
)
def test_what_cannot_be_fitted_is_named(model, targets, sentence):
    with pytest.raises(ValueError, match=sentence):
        model.fit(X, targets)


def test_points_that_cannot_be_used_are_named():
    with pytest.raises(ValueError, match="exceed the largest number: divide X"):
        FisherDiscriminant().fit(1e200 * X, LABELS)
    for model in (FisherDiscriminant(), SupervisedPCA(), RoweisDiscriminant(), FisherDiscriminant(Gaussian(1.0))):
        with pytest.raises(ValueError, match="^No direction tells the labels apart"):
            model.fit(np.full((120, 3), 0.1), LABELS)
    separated = np.concatenate([X, (LABELS == "oak")[:, None]], axis=1)
    with pytest.raises(ValueError, match="^The within-class scatter vanishes in a direction"):
        FisherDiscriminant(regularization=0.0).fit(separated, LABELS)
    assert FisherDiscriminant().fit(separated, LABELS).regularization_ == 1e-3


def test_conjugate_gradients_say_when_they_are_not_done():
    matrix = np.diag(np.logspace(-8, 0, 200))
    right = np.ones((200, 2))
    with pytest.warns(ConjugateGradientWarning, match="^5 products solve a linear system to"):
        conjugate_gradients(lambda V: matrix @ V, right, precondition=lambda V: V, max_products=5)
    exact = conjugate_gradients(lambda V: matrix @ V, right, precondition=lambda V: np.linalg.solve(matrix, V))
    np.testing.assert_allclose(exact, np.linalg.solve(matrix, right))
