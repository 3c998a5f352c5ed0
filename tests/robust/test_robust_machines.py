"""Losses and kernels against a conic solver and scikit-learn, and what every robust machine obeys."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from candidate_oracle import conic_value
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import LogisticRegression
from sklearn.svm import SVC

from mercer import (
    Gaussian,
    Laplacian,
    Matern,
    RobustKernelClassifier,
    RobustKernelRegressor,
    verify,
    worst_case_expectation,
)
from mercer.kernels import Linear

LOSSES = ["squared", "huber", "absolute", "logistic", "hinge"]
KERNELS = [Gaussian(1.5), Laplacian(1.0), Matern(1.5, 1.0), Matern(0.5, 1.0)]
every_loss = pytest.mark.parametrize("loss", LOSSES)


def sample(seed=0, n=30, d=2):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    return X, np.sin(2 * X[:, 0]) + 0.3 * rng.normal(size=n), rng.uniform(0.5, 2.0, n)


def make(loss, kernel=None, **parameters):
    if loss in ("logistic", "hinge"):
        return RobustKernelClassifier(kernel, loss=loss, **parameters)
    return RobustKernelRegressor(kernel, loss=loss, threshold=0.3, **parameters)


def targets_for(loss, y):
    return np.where(y > 0, "yes", "no") if loss in ("logistic", "hinge") else y


def pair_kernel(model, X, y, X2, y2):
    similar = (y[:, None] == y2) if y.dtype.kind == "U" else Gaussian(model.target_sigma_)(y[:, None], y2[:, None])
    return model.kernel_(X, X2) * similar


def losses(model, X, y):
    f = model.decision_function(X) if hasattr(model, "decision_function") else model.predict(X)
    sign = np.where(y == "yes", 1.0, -1.0) if y.dtype.kind == "U" else None
    return {
        "squared": lambda: (f - y) ** 2,
        "huber": lambda: np.where(abs(f - y) < 0.3, (f - y) ** 2, 0.6 * abs(f - y) - 0.09),
        "absolute": lambda: abs(f - y),
        "logistic": lambda: np.logaddexp(0, -sign * f),
        "hinge": lambda: np.maximum(0, 1 - sign * f),
    }[model.loss]()


# --- against other solvers ----------------------------------------------------------------------------------------


@every_loss
@pytest.mark.parametrize("seed", range(4))
def test_the_bounds_hold_the_value_that_a_conic_solver_finds(loss, seed):
    X, y, weights = sample(seed, n=14)
    y, kernel = targets_for(loss, y), KERNELS[seed]
    radius, strength = [0.0, 0.02, 0.2, 3.0][seed], [1e-2, 1e-3, 1e-1, 1e-2][seed]
    more = (X[:5] + 0.4, y[:5][::-1])
    model = make(loss, kernel, radius=radius, regularization=strength, candidates=more).fit(X, y, weights)
    if radius:
        X, y, weights = np.vstack([X, more[0]]), np.concatenate([y, more[1]]), np.append(weights, np.zeros(5))
    coded = np.where(y == "yes", 1.0, -1.0) if y.dtype.kind == "U" else y
    pairs = pair_kernel(model, X, y, X, y)
    value = conic_value(
        kernel(X), pairs, coded, weights / weights.sum(), loss, radius=radius, regularization=strength, threshold=0.3
    )
    proof = model.certificate_
    assert proof.holds(1e-6)
    assert proof.lower - 1e-6 * value <= value <= proof.upper + 1e-6 * value


def test_without_a_ball_the_squared_loss_is_kernel_ridge():
    X, y, weights = sample()
    model = RobustKernelRegressor(Laplacian(2.0), radius=0, regularization=1e-2, tol=1e-12).fit(X, y, weights)
    ridge = KernelRidge(alpha=1e-2 * weights.sum(), kernel="laplacian", gamma=0.5).fit(X, y, weights)
    np.testing.assert_allclose(model.predict(X + 0.1), ridge.predict(X + 0.1), rtol=1e-6, atol=1e-8)


def test_without_a_ball_the_logistic_loss_is_logistic_regression():
    X, y, weights = sample(n=60)
    labels = targets_for("logistic", y)
    model = RobustKernelClassifier(Linear(), radius=0, regularization=1e-2, tol=1e-11).fit(X, labels, weights)
    logistic = LogisticRegression(C=1 / (2e-2 * weights.sum()), fit_intercept=False, tol=1e-10)
    logistic.fit(X, labels, weights)
    np.testing.assert_allclose(model.predict_proba(X), logistic.predict_proba(X), atol=1e-6)
    np.testing.assert_array_equal(model.classes_, logistic.classes_)


def test_without_a_ball_the_hinge_loss_is_a_support_vector_machine():
    """Of a sample that its reflection turns into the other class, where the intercept of scikit-learn's vanishes."""
    half = np.random.default_rng(0).normal(size=(25, 2)) + 0.4
    X, y = np.vstack([half, -half]), np.repeat([1, 0], 25)
    model = RobustKernelClassifier(Gaussian(1.5), loss="hinge", radius=0, regularization=1e-2, tol=1e-9).fit(X, y)
    machine = SVC(C=1 / (2e-2 * 50), gamma=1 / 1.5**2, tol=1e-8).fit(X, y)
    new = X + 0.3
    np.testing.assert_allclose(model.decision_function(new), machine.decision_function(new), atol=1e-4)
    assert not hasattr(model, "predict_proba")


# --- what the proof says ------------------------------------------------------------------------------------------


@every_loss
def test_no_distribution_of_the_ball_has_a_larger_mean_loss(loss):
    """The model's own worst one comes near; random ones, the shifted sample and mixtures of them never pass."""
    X, y, _ = sample(1)
    y = targets_for(loss, y)
    model = make(loss, Laplacian(1.5), radius=0.15, candidates=(X + 0.5, y)).fit(X, y)
    inputs = np.asarray(model.inputs_)[model.candidate_index_]
    K = pair_kernel(model, inputs, model.candidate_targets_, inputs, model.candidate_targets_)
    shares = np.zeros(len(inputs))
    shares[:30] = 1 / 30
    each = losses(model, inputs, model.candidate_targets_)
    worst = float(model.adversary_weights_ @ each)
    assert worst <= model.robust_risk_ <= worst + 1e-3
    assert shares @ each == pytest.approx(model.sample_risk_)
    rng = np.random.default_rng(0)
    for _ in range(50):
        chosen = rng.dirichlet(np.full(len(inputs), 0.2))
        away = np.sqrt((chosen - shares) @ K @ (chosen - shares))
        mixed = shares + min(1.0, 0.15 / away) * (chosen - shares)
        assert mixed @ each <= model.robust_risk_ + 1e-12


@pytest.mark.parametrize("loss", LOSSES[:3])
def test_the_worst_case_of_a_fitted_function_is_that_of_its_loss(loss):
    """Which the search for a worst distribution of a given function finds by another method."""
    X, y, _ = sample(7)
    model = make(loss, Gaussian(1.5), radius=0.1, target_sigma=0.75, tol=1e-8).fit(X, y)
    pairs = np.column_stack([X, 2 * y])  # one Gaussian kernel of pairs: 1.5/0.75 = 2

    def loss_of(points):
        return losses(model, points[:, :-1], points[:, -1] / 2)

    found = worst_case_expectation(loss_of, pairs, 0.1, kernel=Gaussian(1.5), tol=1e-6)
    assert found.certificate.lower <= model.robust_risk_ * (1 + 1e-6)
    assert found.value == pytest.approx(model.robust_risk_, rel=1e-4)


@every_loss
def test_a_bound_for_pairs_that_are_no_candidates(loss):
    X, y, _ = sample(2)
    new, targets, _ = sample(3, n=200)
    y, targets = targets_for(loss, y), targets_for(loss, targets)
    model = make(loss, Gaussian(1.5), radius=0.3).fit(X, y)
    bound = model.risk_bound(new, targets)
    assert bound >= model.robust_risk_
    assert model.risk_bound(X, y) == pytest.approx(model.robust_risk_, rel=1e-9)
    inputs, known, c = model.inputs_[model.candidate_index_], model.candidate_targets_, model.price_coef_
    g, g_new, here = (pair_kernel(model, *at, inputs, known) @ c for at in ((X, y), (new, targets), (inputs, known)))
    top = max((losses(model, X, y) - g).max(), (losses(model, new, targets) - g_new).max())
    assert bound == pytest.approx(top + g.mean() + 0.3 * np.sqrt(c @ here), rel=1e-7)
    K = [pair_kernel(model, *one, *other) for one in ((X, y), (new, targets)) for other in ((X, y), (new, targets))]
    rng = np.random.default_rng(0)
    for _ in range(20):
        weights = rng.dirichlet(np.full(200, 0.3))
        square = K[0].mean() - 2 * K[1].mean(axis=0) @ weights + weights @ K[3] @ weights
        share = min(1.0, 0.3 / np.sqrt(square))
        mean = (1 - share) * losses(model, X, y).mean() + share * weights @ losses(model, new, targets)
        assert mean <= bound
    with pytest.raises(ValueError, match=r"^radius=0 admits the sample alone"):
        make(loss, radius=0).fit(X, y).risk_bound(X, y)


def test_a_radius_that_was_cut_at_the_candidates_says_nothing_of_points_farther_apart():
    """Distributions on the candidates are 2√(max k(x, x)) apart at most; those on a point with a larger k(x, x) more."""
    X, y, _ = sample(2)
    model = RobustKernelRegressor(Linear(), radius=100.0).fit(X, y)
    assert model.risk_bound(X / 2, y) >= model.robust_risk_
    with pytest.raises(
        ValueError, match=r"^radius=100 exceeds the distance of any two distributions on the candidates"
    ):
        model.risk_bound(2 * X, y)


@every_loss
def test_risks_grow_with_the_radius_and_with_the_candidates(loss):
    X, y, _ = sample(4)
    y = targets_for(loss, y)
    fits = [make(loss, Matern(1.5, 1.0), radius=radius).fit(X, y) for radius in (0, 0.01, 0.1, 1.0, 5.0)]
    for less, more in pairwise(fits):
        assert less.certificate_.lower <= more.certificate_.upper
        assert more.sample_risk_ + more.certificate_.upper - more.robust_risk_ >= fits[0].certificate_.lower
    more = {"label_flips": True} if loss in ("logistic", "hinge") else {"target_grid": 3}
    wider = make(loss, Matern(1.5, 1.0), radius=0.1, **more).fit(X, y)
    assert wider.certificate_.upper >= fits[2].certificate_.lower
    assert fits[3].distance_ <= np.sqrt(2)
    assert fits[0].distance_ == 0


@every_loss
def test_weights_are_repetitions_and_rows_without_weight_are_none(loss):
    X, y, _ = sample(5, n=20)
    y = targets_for(loss, y)
    counts = np.arange(20) % 3
    kind = {"kernel": Gaussian(1.5), "radius": 0.1, "tol": 1e-8}
    more = {"label_flips": True} if loss in ("logistic", "hinge") else {"target_grid": 4, "target_sigma": 1.0}
    weighted = make(loss, **kind, **more).fit(X, y, sample_weight=counts)
    repeated = make(loss, **kind, **more).fit(np.repeat(X, counts, axis=0), np.repeat(y, counts))
    assert weighted.robust_risk_ == pytest.approx(repeated.robust_risk_, rel=1e-7)
    np.testing.assert_array_equal(weighted.inputs_, repeated.inputs_)
    assert verify(weighted, X, y).holds(1e-7)


def test_kernels_too_large_for_exact_products_are_refused():
    X, y = np.random.default_rng(0).normal(size=(2, 12, 2))
    with pytest.raises(ValueError, match=r"^Linear\(\) is too large on these points: bring them"):
        RobustKernelRegressor(Linear()).fit(1e150 * X, y[:, 0])


@pytest.mark.parametrize("loss", LOSSES[:3])
def test_units_of_the_targets(loss):
    X, y, _ = sample(6)
    scale = 1000.0
    powers = {"squared": 2, "huber": 2, "absolute": 1}
    small = make(loss, Gaussian(1.5)).fit(X, y)
    strength = 1e-3 if loss != "absolute" else 1e-3 / scale
    large = make(loss, Gaussian(1.5), regularization=strength).set_params(threshold=0.3 * scale).fit(X, scale * y)
    assert large.robust_risk_ == pytest.approx(scale ** powers[loss] * small.robust_risk_, rel=1e-5)
    np.testing.assert_allclose(large.predict(X), scale * small.predict(X), rtol=1e-2, atol=scale * 1e-3)
    assert verify(large, X, scale * y).holds(1e-6)
