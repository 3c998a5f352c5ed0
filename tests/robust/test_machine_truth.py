"""The bounds of robust machines against sixty digits, and that no allowance can be left out."""

from __future__ import annotations

import mpmath
import numpy as np
import pytest
from mpmath import mpf

import mercer.problems.candidate_enclosures as enclosures
from mercer import Gaussian, Laplacian, Matern, RobustKernelClassifier, RobustKernelRegressor
from mercer.backends.balls import Ball, ball, logarithm
from mercer.certificates import candidate_game
from mercer.certificates.candidate_game import Strategy, certify_candidate_game
from mercer.problems.losses import AbsoluteLoss, HingeLoss, HuberLoss, LogisticLoss, SquaredLoss

mpmath.mp.dps = 60
LOSSES = {
    "squared": SquaredLoss(),
    "huber": HuberLoss(0.3),
    "absolute": AbsoluteLoss(),
    "logistic": LogisticLoss(),
    "hinge": HingeLoss(),
}
TRUE_LOSS = {
    "squared": lambda f, y: (f - y) ** 2,
    "huber": lambda f, y: (f - y) ** 2 if abs(f - y) <= mpf(0.3) else 2 * mpf(0.3) * abs(f - y) - mpf(0.3) ** 2,
    "absolute": lambda f, y: abs(f - y),
    "logistic": lambda f, y: mpmath.log1p(mpmath.exp(-y * f)),
    "hinge": lambda f, y: max(mpf(0), 1 - y * f),
}
every_loss = pytest.mark.parametrize("loss", LOSSES)


def entropy(q):
    return sum(-t * mpmath.log(t) for t in (q, 1 - q) if t > 0)


TRUE_INTERCEPT = {
    "squared": lambda p, y: -p * y - p**2 / 4,
    "huber": lambda p, y: -p * y - p**2 / 4,
    "absolute": lambda p, y: -p * y,
    "logistic": lambda p, y: entropy(-y * p),
    "hinge": lambda p, y: -y * p,
}


def exact(values):
    return [mpf(float(value)) for value in values]


def true_kernel(kernel, a, b):
    if isinstance(kernel, Laplacian):
        return mpmath.exp(-sum(abs(s - t) for s, t in zip(a, b, strict=True)) / mpf(float(kernel.sigma)))
    square = sum((s - t) ** 2 for s, t in zip(a, b, strict=True))
    if isinstance(kernel, Gaussian):
        return mpmath.exp(-square / mpf(float(kernel.sigma)) ** 2)
    r = mpmath.sqrt(3 * square) / mpf(float(kernel.length_scale))
    return (1 + r) * mpmath.exp(-r)


def matrix(kernel, X):
    rows = [exact(x) for x in X]
    return np.array([[true_kernel(kernel, a, b) for b in rows] for a in rows], object)


class Hostile:
    """A small game, as the user has it, whose players' coefficients nobody optimised."""

    def __init__(self, loss, seed, *, size=1.0, cancelling=False):
        rng = np.random.default_rng(seed)
        self.loss = loss
        self.kernel = [Gaussian(1.5), Laplacian(1.0), Matern(1.5, 1.0)][seed % 3]
        X = np.repeat(rng.normal(size=(4, 2)), 2, axis=0) + 1e-4 * rng.normal(size=(8, 2))
        labels = loss in ("logistic", "hinge")
        y = rng.choice([-1.0, 1.0], 8) if labels else rng.normal(size=8)
        y[:2] = [-1.0, 1.0]
        common = {"kernel": self.kernel, "loss": loss, "radius": 0.1, "regularization": 1e-3, "max_iter": 1}
        self.model = (
            RobustKernelClassifier(**common)
            if labels
            else RobustKernelRegressor(**common, threshold=0.3, target_sigma=1.0)
        )
        self.model.kernel_, self.model.classes_, self.model.target_sigma_ = self.kernel, np.array([-1.0, 1.0]), 1.0
        self.model._unit = lambda *_: 1.0
        self.problem, _ = self.model._posed(X, y, None)
        dual, price = size * rng.normal(size=8), size * rng.normal(size=8)
        if cancelling:  # between near copies
            dual, price = (np.kron(part[:4], [1.0, -1.0]) for part in (dual, price))
        weights = rng.dirichlet(np.ones(8))
        slopes = LOSSES[loss].admissible(rng.normal(size=8), y)
        self.strategy, self.X, self.y = Strategy(dual, price, weights, slopes), X, y

    def bounds(self):
        proof = certify_candidate_game(self.problem.enclosures, self.strategy, radius=0.1, regularization=1e-3)
        return proof.robust_risk, proof.upper

    def lower(self, radius=0.1):
        return candidate_game.response_bound(self.problem.enclosures, self.strategy, radius, 1e-3)

    def true_matrices(self):
        K = matrix(self.kernel, self.X)
        y = exact(self.y)
        if self.loss in ("logistic", "hinge"):
            similar = np.array([[mpf(a == b) for b in y] for a in y], object)
        else:
            similar = np.array([[mpmath.exp(-((a - b) ** 2)) for b in y] for a in y], object)
        return K, K * similar

    def truth(self):
        """The worst case by the prices, the objective, and the tangents' bound as a function of the weights."""
        K, pairs = self.true_matrices()
        dual, price, weights, slopes = (np.array(exact(part), object) for part in self.strategy)
        f, g, y = K.dot(dual), pairs.dot(price), exact(self.y)
        losses = np.array([TRUE_LOSS[self.loss](a, b) for a, b in zip(f, y, strict=True)], object)
        risk = max(losses - g) + sum(g) / 8 + mpf(0.1) * mpmath.sqrt(price.dot(g))
        moved = weights / sum(weights) - mpf(1) / 8
        away = mpmath.sqrt(moved.dot(pairs).dot(moved))

        def tangents(part):
            chosen = mpf(1) / 8 + part * moved
            pull = chosen * slopes
            gains = [m * TRUE_INTERCEPT[self.loss](p, t) for m, p, t in zip(chosen, slopes, y, strict=True)]
            return sum(gains) - pull.dot(K).dot(pull) / (4 * mpf(1e-3))

        return risk, risk + mpf(1e-3) * dual.dot(f), away, tangents


@every_loss
@pytest.mark.parametrize("size", [1.0, 1e6])
def test_bounds_are_true_and_near_for_any_coefficients(loss, size):
    for seed in range(3):
        game = Hostile(loss, seed, size=size)
        risk, upper, away, tangents = game.truth()
        found = game.bounds()
        for proved, true in zip(found, (risk, upper), strict=True):
            assert true <= mpf(proved) <= true + mpf(1e-12) * size**2
        part = min(mpf(1), mpf(0.1) / away)
        assert abs(tangents(part) - mpf(game.lower())) <= mpf(1e-10)  # drawn to the sample by a little more
        assert tangents(1) - mpf(1e-10) <= mpf(game.lower(10.0)) <= tangents(1)


def test_an_upper_bound_without_the_errors_of_entries_is_false(monkeypatch):
    def without(kernel, X, Y=None):
        return Ball(kernel(X, Y))

    def false_ones():
        games = [Hostile("squared", seed, size=1e6, cancelling=True) for seed in range(6)]
        return [mpf(game.bounds()[1]) < game.truth()[1] for game in games]

    assert not any(false_ones())
    monkeypatch.setattr(enclosures, "kernel_ball", without)
    monkeypatch.setattr("mercer.robust.candidates.kernel_ball", without)
    monkeypatch.setattr("mercer.robust.regressor.kernel_ball", without)
    assert any(false_ones())


@every_loss
def test_a_lower_bound_outside_the_ball_or_off_the_tangents_is_none(loss):
    """Weights that are not drawn to the sample bound a larger game; a slope that no tangent has bounds nothing."""
    game = Hostile(loss, 1)
    _, _, away, tangents = game.truth()
    assert away > 0.01
    part = mpf(0.01) / away
    near = mpf(candidate_game.response_bound(game.problem.enclosures, game.strategy, 0.01, 1e-3))
    assert abs(near - tangents(part)) <= mpf(1e-9)
    assert abs(tangents(1) - tangents(part)) > 1e-6
    for weights in (-game.strategy.weights, 0 * game.strategy.weights, game.strategy.weights * np.nan):
        damaged = game.strategy._replace(weights=weights)  # the sample itself stands in
        found = candidate_game.response_bound(game.problem.enclosures, damaged, 0.1, 1e-3)
        assert abs(mpf(found) - tangents(0)) <= mpf(1e-10)
    if loss != "squared":
        steep = game.strategy._replace(slopes=1.5 + np.abs(game.strategy.slopes))
        assert candidate_game.response_bound(game.problem.enclosures, steep, 0.1, 1e-3) == -np.inf


@every_loss
def test_losses_their_tangents_and_their_balls(loss):
    rng = np.random.default_rng(0)
    ours, labels = LOSSES[loss], loss in ("logistic", "hinge")
    f = np.concatenate([rng.normal(size=20) * 3, [0.0, 700.0, -700.0, 1e-20, 1.0, -1.0]])
    y = rng.choice([-1.0, 1.0], f.size) if labels else rng.normal(size=f.size)
    values, slopes = ours.values(f, y), ours.admissible(rng.normal(size=f.size), y)
    true = [TRUE_LOSS[loss](a, b) for a, b in zip(exact(f), exact(y), strict=True)]
    np.testing.assert_allclose(values, [float(t) for t in true], rtol=1e-14, atol=1e-300)
    enclosed = ours.enclosed(ball(f), y)
    assert all(mpf(lo) <= t <= mpf(hi) for lo, t, hi in zip(enclosed.lower(), true, enclosed.upper(), strict=True))
    assert np.all(enclosed.radius <= 1e-25 * (1 + abs(f) ** 2))
    moved = ours.enclosed(Ball(f, 0.0, 0.1), y)  # balls that hold a whole interval of predictions
    for shift in (-0.1, 0.05, 0.1):
        inside = [TRUE_LOSS[loss](a + mpf(shift), b) for a, b in zip(exact(f), exact(y), strict=True)]
        assert all(mpf(lo) <= t <= mpf(hi) for lo, t, hi in zip(moved.lower(), inside, moved.upper(), strict=True))
    intercepts = ours.enclosed_intercepts(slopes, y)
    true = [TRUE_INTERCEPT[loss](p, t) for p, t in zip(exact(slopes), exact(y), strict=True)]
    assert all(mpf(lo) <= t <= mpf(hi) for lo, t, hi in zip(intercepts.lower(), true, intercepts.upper(), strict=True))
    np.testing.assert_allclose(ours.intercepts(slopes, y), [float(t) for t in true], rtol=1e-12, atol=1e-15)
    assert np.all(values[:, None] >= np.outer(f, slopes) * (y[:, None] == y) + (y[:, None] == y) * ours.intercepts(slopes, y) - (y[:, None] != y) * 1e9 - 1e-9)  # fmt: skip
    pieces, step = ours.pieces(f[:20], y[:20]), 1e-6
    ahead, behind = (ours.pieces(f[:20] + sign * step, y[:20]) for sign in (1, -1))
    np.testing.assert_allclose(pieces.slopes, (ahead.values - behind.values) / (2 * step), atol=1e-5)
    touching = ours.admissible(pieces.slopes[np.argmax(pieces.values, axis=0), np.arange(20)], y[:20])
    np.testing.assert_allclose(touching * f[:20] + ours.intercepts(touching, y[:20]), values[:20], atol=1e-12)


def test_logarithms_of_balls():
    x = np.array([1e-110, 1e-5, 0.3, 1.0, 1.0 + 1e-15, 2.0, 1e100])
    for radius in (0.0, 1e-8):
        found = logarithm(Ball(x, 0.0, radius * x))
        for edge in (-1, 0, 1):
            true = [mpmath.log(mpf(float(v)) * (1 + edge * mpf(radius))) for v in x]
            assert all(mpf(lo) <= t <= mpf(hi) for lo, t, hi in zip(found.lower(), true, found.upper(), strict=True))
        assert np.all(found.radius <= 1e-26 + 2 * radius)
    assert np.all(np.isinf(logarithm(Ball(np.array([0.0, -1.0, 1e-200]))).radius))
    assert np.isinf(logarithm(Ball(np.array([1.0]), 0.0, 1.5)).radius)[0]
