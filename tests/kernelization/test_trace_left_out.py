"""What landmarks lose is bounded by the trace that they leave out."""

from __future__ import annotations

from fractions import Fraction
from itertools import product
from math import fsum

import numpy as np
import pytest
from sklearn.cluster import KMeans
from sklearn.decomposition import PCA
from sklearn.kernel_approximation import Nystroem
from sklearn.linear_model import LogisticRegression, Ridge

from mercer import Gaussian, Kernelized, Landmarks, Laplacian, Polynomial, Precomputed
from mercer.kernelization.features import factor_features, landmark_features

KERNELS = [Gaussian(1.5), Laplacian(2.0), Polynomial(3, 0.5, 1.0)]
every_kernel = pytest.mark.parametrize("kernel", KERNELS, ids=repr)
seeds = pytest.mark.parametrize("seed", range(12))


def problem(seed):
    """Points, targets, weights, a kernel, landmarks and a penalty, all drawn."""
    rng = np.random.default_rng(seed)
    n, d = int(rng.integers(20, 70)), int(rng.integers(1, 5))
    X = rng.normal(size=(n, d))
    kernel = [Gaussian(rng.uniform(0.3, 3)), Laplacian(rng.uniform(0.3, 3)), Polynomial(2, 1.0, 1.0)][seed % 3]
    landmarks = rng.choice(n, int(rng.integers(2, n // 2)), replace=False)
    y = np.sin(2 * X[:, 0]) + rng.normal(size=n)
    return X, y, rng.uniform(0.1, 3.0, n), kernel, landmarks, 10 ** rng.uniform(-3, 1)


def completion(kernel, X, landmarks):
    inverse = np.linalg.pinv(kernel(X[landmarks]), hermitian=True, rcond=1e-13)
    return kernel(X, X[landmarks]) @ inverse @ kernel(X[landmarks], X)


def remainder(gram, nodes):
    """What is left of a kernel's diagonal without the nodes, which elimination gives to more digits than an inverse."""
    gram = gram.astype(np.longdouble)
    for node in nodes:
        gram = gram - np.outer(gram[:, node], gram[node]) / gram[node, node]
    return np.diag(gram).astype(float)


@seeds
def test_it_is_the_trace_of_the_kernel_without_its_completion(seed):
    X, y, weights, kernel, landmarks, penalty = problem(seed)
    model = Kernelized(Ridge(penalty), kernel, landmarks=landmarks).fit(X, y, sample_weight=weights)
    assert model.trace_ == pytest.approx(weights @ kernel.diag(X))
    assert set(model.indices_) <= set(landmarks)
    left = weights @ remainder(kernel(X), model.indices_)
    assert model.trace_left_out_ == pytest.approx(left, abs=1e-7 * model.trace_)


@seeds
@pytest.mark.parametrize("intercept", [False, True])
def test_the_objective_of_ridge_regression_grows_by_no_more_than_the_trace_over_the_penalty(seed, intercept):
    X, y, weights, kernel, landmarks, penalty = problem(seed)

    def least(chosen):
        model = Kernelized(Ridge(penalty, fit_intercept=intercept, solver="cholesky"), kernel, landmarks=chosen)
        model.fit(X, y, sample_weight=weights)
        return weights @ (y - model.predict(X)) ** 2 + penalty * np.sum(model.estimator_.coef_**2), model

    (through, model), (best, _) = least(landmarks), least(None)
    assert best * (1 - 1e-7) <= through <= (1 + model.trace_left_out_ / penalty) * best * (1 + 1e-7)


def test_the_bound_of_ridge_regression_is_attained():
    """Points far apart, and a target only where there is no landmark: y²α/(1 + α) on all points, y² through the two."""
    X, y, penalty = np.array([[0.0], [50.0], [100.0]]), np.array([0.0, 0.0, 1.0]), 0.5
    model = Kernelized(Ridge(penalty, fit_intercept=False), Gaussian(1.0), landmarks=[0, 1]).fit(X, y)
    np.testing.assert_allclose(model.predict(X), 0.0, atol=1e-15)
    exact = Kernelized(Ridge(penalty, fit_intercept=False), Gaussian(1.0)).fit(X, y)
    best = np.sum((y - exact.predict(X)) ** 2) + penalty * np.sum(exact.estimator_.coef_**2)
    assert best * (1 + model.trace_left_out_ / penalty) == pytest.approx(1.0)


@seeds
def test_logistic_regression_through_landmarks_is_near_in_objective_and_everywhere_in_value(seed):
    """gap ≤ t Σ wᵢgᵢ²/(2λ), and the functions differ by no more than √(k(x, x) t Σ wᵢgᵢ²)/λ at any point."""
    X, y, weights, kernel, landmarks, penalty = problem(seed)
    penalty, signs = max(penalty, 0.05), np.where(y > 0, 1, -1)
    options = {"C": 1 / penalty, "fit_intercept": False, "tol": 1e-13, "max_iter": 100_000, "solver": "newton-cholesky"}

    def fitted(chosen):
        model = Kernelized(LogisticRegression(**options), kernel, landmarks=chosen)
        model.fit(X, signs, sample_weight=weights)
        margins = signs * model.decision_function(X)
        objective = weights @ np.logaddexp(0, -margins) + penalty / 2 * np.sum(model.estimator_.coef_**2)
        return model, objective, 1 / (1 + np.exp(margins))

    (model, through, slopes), (exact, best, _) = fitted(landmarks), fitted(None)
    amount = model.trace_left_out_ * (weights @ slopes**2)
    scale = 1e-8 * (1 + best)
    assert -scale <= through - best <= amount / (2 * penalty) + scale
    new = np.concatenate([X, np.random.default_rng(seed).normal(size=(50, X.shape[1]))])
    apart = np.abs(model.decision_function(new) - exact.decision_function(new))
    assert np.all(apart <= np.sqrt(kernel.diag(new) * amount) / penalty + 1e-5)


@seeds
def test_no_eigenvalue_of_the_scatter_falls_by_more(seed):
    X, _, _, kernel, landmarks, _ = problem(seed)
    count = min(len(landmarks), 5)
    model, exact = (Kernelized(PCA(), kernel, landmarks=chosen).fit(X) for chosen in (landmarks, None))
    scatter, whole = (
        np.pad(each.estimator_.explained_variance_ * (len(X) - 1), (0, 5))[:count] for each in (model, exact)
    )
    assert np.all(scatter <= whole + 1e-8 * model.trace_)
    assert np.all(whole <= scatter + model.trace_left_out_ + 1e-8 * model.trace_)


def cost_in_the_space_of_the_kernel(gram, labels):
    return np.trace(gram) - sum(gram[np.ix_(labels == c, labels == c)].sum() / np.sum(labels == c) for c in set(labels))


@seeds
def test_a_clustering_costs_at_most_that_more_than_k_means_sees(seed):
    X, _, _, kernel, landmarks, _ = problem(seed)
    model = Kernelized(KMeans(3, n_init=1), kernel, landmarks=landmarks, random_state=seed).fit(X)
    cost, seen = cost_in_the_space_of_the_kernel(kernel(X), model.labels_), model.estimator_.inertia_
    assert seen - 1e-7 * model.trace_ <= cost <= seen + model.trace_left_out_ + 1e-7 * model.trace_


@pytest.mark.parametrize("seed", range(4))
def test_the_best_clustering_through_landmarks_is_within_the_trace_of_the_best(seed):
    X = np.random.default_rng(seed).normal(size=(9, 2))
    gram, through = Gaussian(1.0)(X), completion(Gaussian(1.0), X, [0, 3, 6])
    left = Kernelized(KMeans(2), Gaussian(1.0), landmarks=[0, 3, 6]).fit(X).trace_left_out_
    every = [np.array(labels) for labels in product([0, 1], repeat=9) if 0 < sum(labels) < 9]
    chosen = min(every, key=lambda labels: cost_in_the_space_of_the_kernel(through, labels))
    best = min(cost_in_the_space_of_the_kernel(gram, labels) for labels in every)
    assert best <= cost_in_the_space_of_the_kernel(gram, chosen) <= best + left


def test_more_landmarks_leave_out_less_and_all_of_them_nothing():
    X = np.random.default_rng(0).normal(size=(60, 2))
    left = [Kernelized(PCA(1), Laplacian(1.0), landmarks=np.arange(m)).fit(X).trace_left_out_ for m in (5, 20, 40, 60)]
    assert left[0] > left[1] > left[2] > 1.0
    assert left[3] < 1e-9


# --- rounding -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kernel", [*KERNELS, Precomputed()], ids=repr)
@pytest.mark.parametrize("whole", [True, False], ids=["all points", "landmarks"])
def test_it_is_above_the_exact_value_of_what_is_left_out(kernel, whole):
    """Row by row, in rational arithmetic from the numbers that are stored."""
    X = np.random.default_rng(1).normal(size=(120, 2))
    X = Gaussian(1.0)(X) if isinstance(kernel, Precomputed) else X
    made = factor_features(kernel, X, None, None, 0) if whole else landmark_features(kernel, X, np.arange(7))
    for x, values, bound in zip(X, made.values, made.left_out, strict=True):
        square = sum(Fraction(float(part)) ** 2 for part in x)
        diagonal = (square / 2 + 1) ** 3 if isinstance(kernel, Polynomial) else 1
        assert diagonal - sum(Fraction(float(value)) ** 2 for value in values) <= Fraction(float(bound))


def test_the_sum_is_above_the_sum_of_what_each_point_leaves_out():
    for seed in range(20):
        X = np.random.default_rng(seed).normal(size=(150, 2))
        left = factor_features(Gaussian(0.5), X, 9, None, np.random.default_rng(0)).left_out
        model = Kernelized(PCA(1), Gaussian(0.5), landmarks=9, random_state=0).fit(X)
        assert model.trace_left_out_ >= fsum(left)


# --- which features -----------------------------------------------------------------------------------------------


@every_kernel
def test_features_complete_the_kernel_from_the_landmarks(kernel):
    rng = np.random.default_rng(2)
    X, new, landmarks = rng.normal(size=(60, 3)), rng.normal(size=(10, 3)), np.array([40, 3, 11, 29, 8, 55])
    made = landmark_features(kernel, X, landmarks)
    values = made.map.transform(new) @ made.values.T
    expected = kernel(new, X[landmarks]) @ np.linalg.solve(kernel(X[landmarks]), kernel(X[landmarks], X))
    np.testing.assert_allclose(values, expected, rtol=0, atol=1e-9 * kernel.diag(X).max())
    assert set(made.map.nodes.tolist()) == set(landmarks.tolist())


def test_landmarks_that_depend_on_others_give_no_features():
    X = np.random.default_rng(2).normal(size=(60, 3))
    assert landmark_features(Polynomial(1, 1.0, 1.0), X, np.arange(20)).values.shape == (60, 4)


def test_ridge_on_them_is_ridge_behind_nystroem():
    rng = np.random.default_rng(4)
    X, new = rng.normal(size=(80, 3)), rng.normal(size=(20, 3))
    y = np.sin(X).sum(1)
    peer = Nystroem(gamma=1 / 1.5**2, n_components=15, random_state=1).fit(X)
    theirs = Ridge(0.1).fit(peer.transform(X), y).predict(peer.transform(new))
    ours = Kernelized(Ridge(0.1), Gaussian(1.5), landmarks=peer.component_indices_).fit(X, y)
    np.testing.assert_allclose(ours.predict(new), theirs, rtol=0, atol=1e-8)


def test_a_number_of_landmarks_are_those_that_landmarks_draws():
    X = np.random.default_rng(5).normal(size=(200, 3))
    kernel = Gaussian(1.0)
    model = Kernelized(PCA(2), kernel, landmarks=12, random_state=3).fit(X)
    drawn = Landmarks(12, kernel=kernel, random_state=3).fit(X).indices_
    assert sorted(model.indices_) == sorted(drawn)
    chosen = Kernelized(PCA(2), kernel, landmarks=Landmarks(12, random_state=3)).fit(X)
    assert sorted(chosen.indices_) == sorted(drawn)
    assert chosen.trace_left_out_ == pytest.approx(model.trace_left_out_, rel=1e-9)
    np.testing.assert_allclose(np.abs(chosen.transform(X)), np.abs(model.transform(X)), atol=1e-8)
    assert Kernelized(PCA(2), kernel, landmarks=1000).fit(X).trace_left_out_ < 1e-9
