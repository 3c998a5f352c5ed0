"""Kernel dimension reduction: its objective against dense formulas, and subspaces that are known."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from scipy.linalg import subspace_angles
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.model_selection import GridSearchCV
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline

from mercer import Gaussian, KernelDimensionReduction, Landmarks, Matern, Polynomial
from mercer.dependence.gkdr import gradient_directions
from mercer.dependence.kdr_objective import DimensionReduction, slope_of
from mercer.dependence.landmark_regression import NUGGET, Targets, fit_regression
from mercer.dependence.response import learn_response
from mercer.kernels import Categories, Laplacian, Linear
from mercer.solvers.solution import Status
from mercer.solvers.stiefel.quasi_newton import retracted

KERNELS = [Gaussian(1.7), Matern(2.5, 1.3), Matern(1.5, 2.0), Matern(1.8, 1.5), Matern(np.inf, 1.0)]


def angle(A, B):
    """The largest angle between two subspaces, in degrees."""
    return float(np.degrees(subspace_angles(A, B).max()))


def li_1991(rng, n=200):
    """Li's rational function: two directions, X normal."""
    X = rng.standard_normal((n, 4))
    noise = 0.4 * rng.standard_normal(n)
    return X, X[:, 0] / (0.5 + (X[:, 1] + 1.5) ** 2) + (1 + X[:, 1]) ** 2 + noise, np.eye(4)[:, :2]


def in_the_variance(rng, n=400):
    """Only the spread of y depends on x."""
    X = rng.standard_normal((n, 6))
    return X, 0.5 * (X[:, 0] - 0.5) ** 2 * rng.standard_normal(n), np.eye(6)[:, :1]


@pytest.fixture
def rng():
    return np.random.default_rng(0)


@pytest.fixture
def problem_data(rng):
    X = rng.standard_normal((60, 4))
    shares = rng.random(60)
    shares /= shares.sum()
    F = rng.standard_normal((60, 3)) + np.column_stack([X[:, 0] ** 2, np.sin(X[:, 1]), X[:, 2]])
    return X, Targets(F - shares @ F, shares)


# --- the objective ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
@pytest.mark.parametrize("nodes", [12, 60])
def test_gradients_are_those_of_finite_differences(kernel, nodes, problem_data, rng):
    X, targets = problem_data
    problem = DimensionReduction(X, X[:nodes], targets, kernel, 1e-2)
    U, V, h = retracted(rng.standard_normal((4, 2))), rng.standard_normal((4, 2)), 1e-4
    numeric = (problem.evaluate(U + h * V).value - problem.evaluate(U - h * V).value) / (2 * h)
    assert np.vdot(problem.evaluate(U).gradient, V) == pytest.approx(numeric, rel=1e-5)


def test_the_objective_is_the_trace_of_the_paper(rng):
    """Tr[G_Y (G_XU + nεI)⁻¹] of dense centred matrices, for points that are all landmarks."""
    X = rng.standard_normal((80, 3))
    y = np.sin(2 * X[:, 0]) + 0.1 * rng.standard_normal(80)
    model = KernelDimensionReduction(1, regularization=0.01, scaling=None, random_state=0).fit(X, y)
    H = np.eye(80) - 1 / 80
    G_y, G_x = (
        H @ kernel(points) @ H
        for kernel, points in ((model.y_kernel_, y[:, None]), (model.x_kernel_, model.transform(X)))
    )
    dense = np.trace(G_y @ np.linalg.inv(G_x + 80 * 0.01 * np.eye(80)))
    assert model.objective_ == pytest.approx(dense, rel=1e-4)  # the least directions of y are left out
    assert model.unexplained_ == pytest.approx(dense * 0.01 / (np.trace(G_y) / 80), rel=1e-4)


def test_landmarks_stand_for_the_nystrom_matrix(problem_data):
    X, targets = problem_data
    kernel, nodes, p = Gaussian(1.5), X[:9], targets.shares
    fitted = fit_regression(kernel, X, nodes, targets, 0.05)
    K = kernel(X, nodes)
    low = K @ np.linalg.inv(kernel(nodes) + NUGGET * np.eye(9)) @ K.T
    H = np.eye(60) - p
    root = np.sqrt(p)[:, None]
    dense = np.linalg.inv(root * (H @ low @ H.T) * root.T + 0.05 * np.eye(60))
    rF = root * targets.features
    assert fitted.loss == pytest.approx(0.05 * np.trace(rF.T @ dense @ rF), rel=1e-8)
    assert fitted(X).T @ p == pytest.approx(0, abs=1e-12)


def test_mean_gradients_are_those_of_finite_differences(problem_data):
    X, targets = problem_data
    fitted = fit_regression(Gaussian(2.0), X, X[:20], targets, 1e-2)
    h, total = 1e-5, np.zeros((4, 4))
    steps = [(fitted(X + h * e) - fitted(X - h * e)) / (2 * h) for e in np.eye(4)]
    for share, gradient in zip(targets.shares, np.stack(steps).transpose(1, 0, 2), strict=True):
        total += share * gradient @ gradient.T
    values, vectors = gradient_directions(X, X[:20], targets, Gaussian(2.0), 1e-2)
    np.testing.assert_allclose((vectors * values) @ vectors.T, total, rtol=1e-6, atol=1e-9)


def test_the_slope_of_a_kernel_is_refused_where_it_is_not_known():
    for kernel in (Laplacian(1.0), Matern(0.5, 1.0), Gaussian((1.0, 2.0)), Linear()):
        with pytest.raises(ValueError, match="has no gradient"):
            slope_of(kernel)


# --- known subspaces ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("data", "count", "most"), [(li_1991, 2, 7.0), (in_the_variance, 1, 7.0)])
def test_known_directions_are_found(data, count, most, rng):
    X, y, truth = data(rng)
    model = KernelDimensionReduction(count, landmarks=70, n_restarts=1, random_state=0).fit(X, y)
    start = KernelDimensionReduction(count, landmarks=70, method="gkdr", random_state=0).fit(X, y)
    assert angle(model.subspace_, truth) < most
    assert model.unexplained_ < start.unexplained_
    assert model.status_ in (Status.CONVERGED, Status.STALLED)


@pytest.mark.parametrize("unit", [1e-200, 1e150])
def test_the_unit_of_x_does_not_matter(unit, rng):
    X, y, _ = li_1991(rng, n=50)
    plain, other = (KernelDimensionReduction(1, n_restarts=0).fit(u * X, y) for u in (1.0, unit))
    np.testing.assert_allclose(other.transform(unit * X), plain.transform(X), atol=1e-6)


def test_directions_of_correlated_columns_in_any_units(rng):
    X, y, truth = li_1991(rng)
    mixing = np.diag([1.0, 100.0, 1e-3, 5.0]) @ (np.eye(4) + 0.3 * rng.standard_normal((4, 4)))
    model = KernelDimensionReduction(2, scaling="whiten", landmarks=np.arange(60), n_restarts=0).fit(X @ mixing + 3, y)
    plain = KernelDimensionReduction(2, scaling="whiten", landmarks=np.arange(60), n_restarts=0).fit(X, y)
    assert angle(mixing @ model.components_.T, truth) < 7
    assert angle(mixing @ model.components_.T, plain.components_.T) < 1e-3
    np.testing.assert_allclose(np.cov(model.transform(X @ mixing + 3).T, bias=True), np.eye(2), atol=1e-8)


def test_the_test_finds_the_number_of_directions(rng):
    X, y, _ = in_the_variance(rng)
    model = KernelDimensionReduction("test", n_restarts=0, landmarks=70, n_resamples=99, random_state=0).fit(X, y)
    assert model.components_.shape == (1, 6)
    assert [test.n_components for test in model.dimension_tests_] == [0, 1]
    assert model.dimension_tests_[0].pvalue == 0.01
    assert model.dimension_tests_[1].pvalue > 0.05
    with pytest.warns(UserWarning, match="no sign that y depends on X"):
        none = KernelDimensionReduction("test", n_restarts=0, landmarks=50, n_resamples=99, random_state=0).fit(
            X[:100], rng.random(100)
        )
    assert none.transform(X).shape == (400, 1)


def test_starts_are_compared_on_a_part_of_many_rows(rng):
    X, y, truth = li_1991(rng, n=2500)
    model = KernelDimensionReduction(2, landmarks=25, tol=1e-3, n_restarts=1, random_state=0).fit(X, y)
    assert angle(model.subspace_, truth) < 3


# --- kinds of y ---------------------------------------------------------------------------------------------------


@pytest.fixture
def classes(rng):
    """Three classes that depend on two columns of five, as exclusive or does."""
    X = rng.standard_normal((150, 5))
    return X, (X[:, 0] * X[:, 1] > 0).astype(int) + 2 * (X[:, 0] > 1)


QUICK = {"n_restarts": 0, "tol": 1e-3, "landmarks": 50, "random_state": 0}


def test_classes_by_any_name(classes):
    X, y = classes
    names = np.array(["north", "south", "east", "west"])[y]
    by_number = KernelDimensionReduction(2, **QUICK).fit(X, y)
    assert angle(by_number.subspace_, np.eye(5)[:, :2]) < 12
    assert isinstance(by_number.y_kernel_, Categories)
    for labels in (names, names.astype(object), list(names)):
        named = KernelDimensionReduction(2, **QUICK).fit(X, labels)
        assert angle(named.subspace_, by_number.subspace_) < 0.1
        assert named.score(X, labels) == pytest.approx(by_number.score(X, y), abs=1e-4)
    unknown = np.where(names == "west", "nowhere", names)
    assert named.score(X, unknown) < named.score(X, names)
    numbers = KernelDimensionReduction(2, y_kernel=Gaussian(), **QUICK).fit(X, y)
    assert isinstance(numbers.y_kernel_, Gaussian)
    assert angle(numbers.subspace_, np.eye(5)[:, :2]) < 20


def test_several_outputs_and_data_frames(rng):
    pandas = pytest.importorskip("pandas")
    X = rng.standard_normal((150, 5))
    numbers = np.abs(X[:, 0]) + 0.1 * rng.standard_normal(150)
    colours = np.where(X[:, 1] > 0, "red", "blue")
    frame = pandas.DataFrame({"size": numbers, "colour": colours})
    names = list("abcde")
    model = KernelDimensionReduction(2, **QUICK).fit(pandas.DataFrame(X, columns=names), frame)
    assert angle(model.subspace_, np.eye(5)[:, :2]) < 12
    assert list(model.feature_names_in_) == names
    assert list(model.get_feature_names_out()) == ["kerneldimensionreduction0", "kerneldimensionreduction1"]
    again = KernelDimensionReduction(2, **QUICK).fit(X, np.column_stack([numbers, 1000 * (X[:, 1] > 0)]))
    assert angle(again.subspace_, np.eye(5)[:, :2]) < 12
    assert 0.5 < model.score(pandas.DataFrame(X, columns=names), frame) <= 1
    weighted = KernelDimensionReduction(2, **QUICK).fit(X, frame, sample_weight=np.arange(150) % 2)
    halved = KernelDimensionReduction(2, **QUICK).fit(X[1::2], frame[1::2])
    assert angle(weighted.subspace_, halved.subspace_) < 1e-4


def test_weights_are_repetitions(rng):
    X, y, _ = li_1991(rng, n=60)
    counts = rng.integers(0, 4, 60)
    order = rng.permutation(counts.sum())
    repeated = np.repeat(X, counts, axis=0)[order], np.repeat(y, counts)[order]
    options = {"n_restarts": 0, "tol": 1e-7, "scaling": "whiten"}
    weighted = KernelDimensionReduction(1, **options).fit(X, y, sample_weight=7.0 * counts)
    plain = KernelDimensionReduction(1, **options).fit(*repeated)
    assert weighted.unexplained_ == pytest.approx(plain.unexplained_, rel=1e-8)
    np.testing.assert_allclose(weighted.transform(X), plain.transform(X), atol=1e-4)


def test_features_of_y_are_those_of_its_kernel(rng):
    y = rng.standard_normal((300, 1))
    shares = np.full(300, 1 / 300)
    response, F = learn_response(y, None, shares, rng)
    H = np.eye(300) - 1 / 300
    G = H @ response.kernel(y) @ H
    assert np.abs(F @ F.T - G).max() < 1e-3
    assert F.shape[1] < 20
    np.testing.assert_allclose(response(y), F, atol=1e-9)


# --- the interface ------------------------------------------------------------------------------------------------


def test_before_a_classifier_in_a_grid_search(classes):
    X, y = classes
    chain = make_pipeline(KernelDimensionReduction(random_state=0, tol=1e-2, n_restarts=0), KNeighborsClassifier())
    search = GridSearchCV(chain, {"kerneldimensionreduction__n_components": [1, 2]}, cv=2).fit(X, y)
    assert search.best_params_ == {"kerneldimensionreduction__n_components": 2}


def test_landmarks_and_kernels_of_ones_own(classes):
    X, y = classes
    rows = KernelDimensionReduction(2, **{**QUICK, "landmarks": np.arange(40)}).fit(X, y)
    np.testing.assert_array_equal(rows.landmarks_, np.arange(40))
    drawn = KernelDimensionReduction(
        2, x_kernel=Matern(2.5), **{**QUICK, "landmarks": Landmarks(40, random_state=1)}
    ).fit(X, y)
    assert drawn.landmarks_.size == 40
    for model in (rows, drawn):
        assert angle(model.subspace_, np.eye(5)[:, :2]) < 20
    again = pickle.loads(pickle.dumps(drawn))
    np.testing.assert_array_equal(again.transform(X), drawn.transform(X))
    assert again.score(X, y) == drawn.score(X, y)


def test_more_columns_than_rows(rng):
    """Points that lie in a subspace are moved by an isometry, and so is what is found."""
    X, y, _ = li_1991(rng, n=50)
    isometry = np.linalg.qr(rng.standard_normal((60, 4)))[0].T
    options = {"scaling": None, "n_restarts": 0, "tol": 1e-7}
    wide = KernelDimensionReduction(1, **options).fit(X @ isometry, y)
    plain = KernelDimensionReduction(1, **options).fit(X, y)
    assert angle(wide.components_.T, isometry.T @ plain.components_.T) < 1e-2
    assert wide.unexplained_ == pytest.approx(plain.unexplained_, rel=1e-9)


def test_a_person_ends_the_run(classes):
    X, y = classes
    seen = []

    def enough(line):
        seen.append(line)
        return len(seen) == 3

    stopped = KernelDimensionReduction(2, callback=enough, random_state=0).fit(X, y)
    assert stopped.status_ is Status.STOPPED
    assert len(seen) == 3

    def interrupt(line):
        raise KeyboardInterrupt

    broken = KernelDimensionReduction(2, callback=interrupt, random_state=0).fit(X, y)
    assert broken.status_ is Status.INTERRUPTED
    assert broken.transform(X).shape == (150, 2)
    with pytest.warns(ConvergenceWarning, match="raise max_iter"):
        KernelDimensionReduction(2, max_iter=2, n_restarts=0).fit(X, y)


def test_tensors_are_taken(classes):
    torch = pytest.importorskip("torch")
    X, y = classes
    plain = KernelDimensionReduction(2, **QUICK).fit(X, y)
    model = KernelDimensionReduction(2, **QUICK).fit(torch.as_tensor(X), torch.as_tensor(y))
    np.testing.assert_array_equal(model.transform(torch.as_tensor(X)), plain.transform(X))


@pytest.mark.parametrize(
    ("parameters", "data", "said"),
    [
        ({"n_components": 0}, {}, "n_components=0"),
        ({"n_components": "all"}, {}, "n_components='all' must be a whole number of at least 1, or 'test'"),
        ({"n_components": 6}, {}, "n_components=6 directions were asked for"),
        ({"regularization": 0.0}, {}, "regularization=0.0"),
        ({"x_kernel": Laplacian()}, {}, "has no gradient that is known"),
        ({"y_kernel": Polynomial()}, {"y": ["a", "b"] * 75}, "Column 0 of y holds classes"),
        ({}, {"y": None}, "requires y to be passed"),
        ({}, {"y": np.ones(150)}, "y is the same in every row"),
        ({}, {"y": np.ones(3)}, "inconsistent numbers of samples"),
        ({}, {"y": np.full(150, np.nan)}, "y has nan in row 0"),
        ({}, {"y": np.array(["a", None] * 75, dtype=object)}, "y has no value in row 1"),
        ({}, {"y": np.array([1.0, {}] * 75, dtype=object)}, "y has {} in row 1"),
        ({}, {"y": np.arange(150).astype("datetime64[D]")}, "y holds datetime64"),
        (
            {},
            {"X": np.finfo(float).max * np.where(np.arange(750).reshape(150, 5) < 600, 1.0, -1.0)},
            "exceed the largest",
        ),
        ({}, {"X": np.ones((150, 5))}, "All rows of X are equal"),
        ({"level": 2.0, "n_components": "test"}, {}, "level=2.0"),
    ],
)
def test_one_sentence_for_what_cannot_be(parameters, data, said, classes):
    X, y = classes
    model = KernelDimensionReduction(**{"n_components": 2, **parameters})
    with pytest.raises(ValueError, match=said):
        model.fit(data.get("X", X), data.get("y", y))
    with pytest.raises(NotFittedError):
        model.transform(X)
