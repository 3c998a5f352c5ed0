"""Landmarks without the pass Sω: what is exact, what is estimated, and what is proved of it."""

from __future__ import annotations

import pickle
from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import nnls

from mercer import Gaussian, GramOperator, QuadratureSparsifier, load, save, verify
from mercer.certificates import sampled_level
from mercer.certificates.sampled_level import level_of
from mercer.quadrature import sampled

KERNEL = Gaussian(sigma=1.2)


@pytest.fixture
def few_rows(monkeypatch):
    """So few rows that samples of a test are worth sampling."""
    monkeypatch.setattr(sampled, "_LEAST_POOL", 250)
    monkeypatch.setattr(sampled, "ROWS_OF_PROOF", 100)


def _points(n=900, seed=0):
    rng = np.random.default_rng(seed)
    return rng.standard_normal((n, 3)) * rng.choice([0.5, 1.5], (n, 1))


def _truth(model, X, weights=None):
    """D of a model by dense products."""
    omega = np.full(len(X), 1 / len(X)) if weights is None else weights / weights.sum()
    difference = -omega
    difference[model.indices_] += model.weights_
    return 0.5 * difference @ (KERNEL(X) ** 2) @ difference


@pytest.mark.parametrize("weighted", [False, True])
def test_weights_are_the_best_on_the_nodes(few_rows, weighted):
    X = _points()
    weights = np.random.default_rng(1).uniform(0.2, 2.0, 900) if weighted else None
    model = QuadratureSparsifier(KERNEL, n_nodes=20, potential="sampled").fit(X, sample_weight=weights)
    omega = np.full(900, 1 / 900) if weights is None else weights / weights.sum()
    S = KERNEL(X) ** 2
    root = np.linalg.cholesky(S[np.ix_(model.indices_, model.indices_)]).T
    best, _ = nnls(root, np.linalg.solve(root.T, (S @ omega)[model.indices_]))
    np.testing.assert_allclose(model.weights_, best, rtol=1e-7)
    proof = model.certificate_
    assert proof.level_width > 0
    assert 0 < proof.upper - proof.lower - proof.level_width < 1e-9
    assert proof.failure_probability == sampled_level.ODDS
    assert "level of D by sampling" in str(proof)
    assert "Far" not in str(proof)


@pytest.mark.parametrize("seed", range(5))
def test_the_bounds_hold_the_true_discrepancy(few_rows, seed):
    X = _points(seed=seed)
    model = QuadratureSparsifier(KERNEL, n_nodes=15, potential="sampled").fit(X)
    truth = _truth(model, X)
    assert model.certificate_.lower <= truth <= model.certificate_.upper
    assert 0.5 * truth < model.discrepancy_ < 2 * truth
    exact = QuadratureSparsifier(KERNEL, n_nodes=15, potential="exact").fit(X)
    assert truth < 1.6 * exact.discrepancy_


def test_points_that_no_draw_meets_are_counted():
    """Few points of large residual, none of them drawn: the range of what was not seen is part of the bound.

    With r = κ x at a share p of the points and zero elsewhere, a draw of n misses them with probability (1 - p)ⁿ, which
    is not small for p = 1/n; then the mean and the variance drawn are zero, and the whole bound is its last term.
    """
    n, p = 1000, 1 / 1000
    x = p  # x² = E[r] = p κ x, with κ = 1
    missed = level_of(np.zeros(n), 0.0, 0.0, 1.0)
    assert missed.low == 0
    assert missed.high >= x**2
    assert missed.estimate == 0


def test_the_interval_is_right_far_more_often_than_said(monkeypatch):
    """Residuals of a known mean, drawn 2000 times at odds of one in ten."""
    monkeypatch.setattr(sampled_level, "ODDS", 0.1)
    rng, n = np.random.default_rng(0), 60
    x = 0.05
    wrong = 0
    for _ in range(2000):
        r = rng.choice([0.0, x], n, p=[1 - x, x])  # of mean x², at most κ x with κ = 1
        level = level_of(r, 0.0, 0.0, 1.0)
        wrong += not level.low <= x**2 <= level.high
    assert wrong <= 0.1 * 2000


def test_a_model_is_verified_and_saved(few_rows, tmp_path):
    X = _points()
    model = QuadratureSparsifier(KERNEL, n_nodes=12, potential="sampled").fit(X)
    save(model, tmp_path / "m.safetensors")
    again = verify(load(tmp_path / "m.safetensors"), X)
    assert again.upper == pytest.approx(model.certificate_.upper, rel=1e-9)
    model.weights_[0] *= 1.01
    with pytest.raises(ValueError, match="changed after its fit"):
        verify(model, X)


def test_a_claim_of_a_wider_level_is_refused(few_rows):
    X = _points()
    model = QuadratureSparsifier(KERNEL, n_nodes=12, potential="sampled").fit(X)
    model.certificate_ = replace(model.certificate_, upper=0.5 * model.certificate_.upper)
    with pytest.raises(ValueError, match="changed after its fit"):
        verify(model, X)


def test_fits_repeat_themselves_and_small_samples_take_the_pass(few_rows):
    X = _points()
    first, second = (QuadratureSparsifier(KERNEL, n_nodes=12, potential="sampled").fit(X) for _ in range(2))
    np.testing.assert_array_equal(first.indices_, second.indices_)
    np.testing.assert_array_equal(first.weights_, second.weights_)
    few = QuadratureSparsifier(KERNEL, n_nodes=12, potential="sampled").fit(X[:300])
    assert few.certificate_.failure_probability == 0
    exact = QuadratureSparsifier(KERNEL, n_nodes=12).fit(X[:300])
    np.testing.assert_array_equal(few.indices_, exact.indices_)


def test_no_product_with_the_whole_matrix_is_made(few_rows, monkeypatch):
    def multiply(self, v):
        assert self.shape[0] * self.shape[1] < 900 * 900 // 2, "the pass was made"
        return original(self, v)

    original = GramOperator._multiply
    monkeypatch.setattr(GramOperator, "_multiply", multiply)
    QuadratureSparsifier(KERNEL, n_nodes=12, potential="sampled").fit(_points())
    with pytest.raises(AssertionError, match="the pass"):
        QuadratureSparsifier(KERNEL, n_nodes=12, potential="exact").fit(_points())
    monkeypatch.setattr(sampled, "_WORTH", 0.0)
    model = QuadratureSparsifier(KERNEL, n_nodes=12).fit(_points())
    with pytest.raises(AssertionError, match="the pass"):
        model.certificate_  # noqa: B018  (the proof is made now)


@pytest.mark.parametrize("weighted", [False, True])
def test_a_call_without_arguments_is_proved_by_the_pass_when_that_is_asked_for(few_rows, monkeypatch, weighted):
    """The proof is that of a fit with the pass, of the fit's own points and kernel, whatever became of them since."""
    monkeypatch.setattr(sampled, "_WORTH", 0.0)
    X = _points()
    weights = np.random.default_rng(1).uniform(0.2, 2.0, 900) if weighted else None
    model = QuadratureSparsifier(KERNEL, n_nodes=20).fit(X, sample_weight=weights)
    assert not {"certificate_", "discrepancy_", "kappa_", "alpha_"} & set(vars(model))
    truth, given = _truth(model, X, weights), X.copy()
    sent = pickle.loads(pickle.dumps(model))
    X[:] = 0.0
    model.set_params(discrepancy="mmd", potential="sampled")
    for each in (model, sent):
        proof = each.certificate_
        assert (proof.failure_probability, proof.level_width) == (0.0, 0.0)
        assert proof.lower <= truth <= proof.upper
        assert proof.relative_gap < 1e-8
        assert each.discrepancy_ == pytest.approx(truth, rel=1e-9)
        assert each.kappa_ == pytest.approx(model.weights_.sum())
    exact = QuadratureSparsifier(KERNEL, n_nodes=20, potential="exact").fit(given, sample_weight=weights)
    assert truth < 1.6 * exact.discrepancy_
    assert "certificate_" in vars(sent.set_params(potential="exact").fit(given))  # and of a new fit anew
    assert "certificate_" not in vars(sent.set_params(potential="auto").fit(given))
    with pytest.raises(AttributeError, match="no attribute 'certificate_'"):
        QuadratureSparsifier().certificate_  # noqa: B018


def test_a_model_that_was_not_proved_yet_is_proved_before_it_is_saved(few_rows, monkeypatch, tmp_path):
    monkeypatch.setattr(sampled, "_WORTH", 0.0)
    X = _points()
    model = QuadratureSparsifier(KERNEL, n_nodes=12).fit(X)
    save(model, tmp_path / "m.safetensors")
    again = load(tmp_path / "m.safetensors")
    assert again.certificate_.upper == model.certificate_.upper
    assert verify(again, X).upper == pytest.approx(model.certificate_.upper, rel=1e-9)


def test_few_points_of_nearly_all_weight_are_left_to_the_pass(few_rows, monkeypatch):
    """Points drawn by their weights are then the same again and again: there is no pool to choose from."""
    monkeypatch.setattr(sampled, "_WORTH", 0.0)
    weights = np.full(900, 1e-9)
    weights[:30] = 1.0
    model = QuadratureSparsifier(KERNEL, n_nodes=20).fit(_points(), sample_weight=weights)
    assert "certificate_" in vars(model)
    assert model.indices_.size == 20


def test_ridge_caps_single_precision_and_other_discrepancies(few_rows):
    X = _points()
    S, omega = KERNEL(X) ** 2, np.full(900, 1 / 900)
    ridge = QuadratureSparsifier(KERNEL, n_nodes=12, potential="sampled", ridge=0.05).fit(X)
    A = S[np.ix_(ridge.indices_, ridge.indices_)] + 0.05 * np.eye(ridge.indices_.size)
    np.testing.assert_allclose(A @ ridge.weights_, (S @ omega)[ridge.indices_], rtol=1e-8)
    capped = QuadratureSparsifier(KERNEL, n_nodes=12, potential="sampled", max_weight=0.12).fit(X)
    assert capped.weights_.max() <= 0.12
    mmd = QuadratureSparsifier(KERNEL, n_nodes=12, potential="sampled", discrepancy="mmd").fit(X)
    assert mmd.certificate_.level_width > 0
    single = QuadratureSparsifier(KERNEL, n_nodes=12, potential="sampled").fit(X.astype(np.float32))
    assert single.weights_.dtype == np.float64
    assert single.certificate_.upper - single.certificate_.lower - single.certificate_.level_width < 1e-6


@pytest.mark.parametrize(
    "options", [{"trace_fraction": 0.5}, {"alpha": 0.01}, {"n_nodes": 5, "solver": "path"}, {"ridge": np.eye(40)}]
)
def test_what_needs_the_whole_potential_is_refused(options):
    with pytest.raises(ValueError, match="potential='sampled'"):
        QuadratureSparsifier(KERNEL, potential="sampled", **options).fit(_points(40))


def test_a_discrepancy_at_rounding_level_is_told_in_words():
    X = np.random.default_rng(0).uniform(-1, 1, (400, 1))
    with pytest.warns(UserWarning, match="do all that can be told apart"):
        model = QuadratureSparsifier(Gaussian(sigma=1.0), n_nodes=20).fit(X)
    proof = model.certificate_
    assert proof.relative_gap > 0.1  # the number is what it is
    assert "zero to rounding" in str(proof)
    assert "gap" not in str(proof)
    assert "zero to rounding" in proof._repr_html_()
    assert proof.gap_beyond_rounding < proof.relative_gap
    coarse = QuadratureSparsifier(Gaussian(sigma=1.0), n_nodes=3).fit(X).certificate_
    assert "Certified optimal to within" in str(coarse)
    lost = replace(coarse, lower=-coarse.upper)  # a gap that rounding does not explain stays one
    assert "Far from certified" in str(lost)
