"""Robust machines: bad input, labels, candidates, forged models, tensors, interruption."""

from __future__ import annotations

import pickle
from dataclasses import replace
from functools import cache
from itertools import pairwise

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning
from sklearn.multiclass import OneVsRestClassifier

from mercer import (
    Gaussian,
    Laplacian,
    Precomputed,
    RobustKernelClassifier,
    RobustKernelRegressor,
    SelfTuning,
    config_context,
    verify,
)
from mercer.solvers.run import Status


def sample(n=30):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 2))
    return X, np.sin(2 * X[:, 0]) + 0.3 * rng.normal(size=n)


X, Y = sample()
LABELS = np.where(Y > 0, "yes", "no")


# --- what cannot be used ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"loss": "cubic"}, r"^loss='cubic' must be one of 'squared', 'huber', 'absolute'\.$"),
        ({"radius": -1}, r"^radius"),
        ({"radius": 1e-200}, r"^radius=1e-200 is no ball in double precision: take radius=0\.$"),
        ({"regularization": 0}, r"^regularization"),
        ({"threshold": 0}, r"^threshold"),
        ({"target_sigma": "mean"}, r"^target_sigma"),
        ({"target_grid": 1}, r"^target_grid"),
        ({"target_grid": [0.0, np.inf]}, r"^target_grid must be finite real numbers\.$"),
        ({"target_grid": [[0.0]]}, r"^target_grid has shape \(1, 1\)"),
        ({"candidates": X}, r"^candidates has inputs alone: give a pair \(inputs, targets\), or a target_grid\.$"),
        ({"candidates": (X, Y, Y)}, r"^candidates has 3 parts: give inputs, or a pair \(inputs, targets\)\.$"),
        ({"candidates": (X[:, :1], Y)}, r"^candidates has 1 features and X has 2: they must agree\.$"),
        ({"candidates": (X, Y[:3])}, r"^the targets of candidates has shape \(3,\)"),
        ({"candidates": (X, np.full(30, np.nan))}, r"^the targets of candidates must be finite real numbers\.$"),
        ({"kernel": SelfTuning()}, r"is not known to be positive semi-definite, which the proof rests on"),
        ({"kernel": Precomputed()}, r"square|positive semi-definite"),
        ({"callback": 3}, r"^callback"),
        ({"max_iter": 0}, r"^max_iter"),
    ],
    ids=str,
)
def test_what_a_regressor_cannot_use_is_refused_in_one_sentence(options, sentence):
    with pytest.raises(ValueError, match=sentence):
        RobustKernelRegressor(**options).fit(X, Y)


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"loss": "squared"}, r"^loss='squared' must be one of 'logistic', 'hinge'\.$"),
        ({"label_similarity": 1.0}, r"^label_similarity=1.0 must be a number of at least 0 and below 1\.$"),
        ({"label_flips": "yes"}, r"^label_flips"),
        ({"candidates": (X, np.full(30, "maybe"))}, r"^'maybe' is not one of the classes \['no', 'yes'\]\.$"),
        ({"candidates": (X, LABELS[:4])}, r"^candidates has 30 inputs and labels of shape \(4,\)\.$"),
    ],
    ids=str,
)
def test_what_a_classifier_cannot_use_is_refused_in_one_sentence(options, sentence):
    with pytest.raises(ValueError, match=sentence):
        RobustKernelClassifier(**options).fit(X, LABELS)


def test_labels_of_other_kinds_are_refused():
    with pytest.raises(ValueError, match=r"^y has one class, 1: a classifier needs two\.$"):
        RobustKernelClassifier().fit(X, np.ones(30, int))
    with pytest.raises(ValueError, match=r"^Only binary classification is supported.*OneVsRestClassifier\.$"):
        RobustKernelClassifier().fit(X, np.arange(30) % 3)
    with pytest.raises(ValueError, match="continuous"):
        RobustKernelClassifier().fit(X, Y)
    with pytest.raises(AttributeError, match="predict_proba"):
        RobustKernelClassifier(loss="hinge").fit(X, LABELS).predict_proba(X)


def test_candidates_beyond_the_memory_limit_are_refused():
    with config_context(memory_limit="1MB"), pytest.raises(ValueError, match="fit to fewer rows"):
        RobustKernelRegressor(target_grid=20).fit(X, Y)


# --- candidates and labels ----------------------------------------------------------------------------------------


def test_candidates_are_the_distinct_pairs_of_the_sample_and_the_others():
    flips = RobustKernelClassifier(label_flips=True, tol=1e-3).fit(X, LABELS)
    assert len(flips.inputs_) == 30
    assert len(flips.candidate_targets_) == 60
    free = RobustKernelClassifier(candidates=X[:7] + 1.0, tol=1e-3).fit(X, LABELS)
    assert len(free.candidate_targets_) == 44
    assert set(free.candidate_targets_[30:32]) == {"yes", "no"}
    same = RobustKernelClassifier(candidates=(X, LABELS), tol=1e-3).fit(X, LABELS)
    assert len(same.candidate_targets_) == 30
    grid = RobustKernelRegressor(target_grid=[-1.0, 0.0, 1.0], candidates=X[:2] + 1.0, tol=1e-3).fit(X, Y)
    assert len(grid.candidate_targets_) == 30 + 3 * 32
    spread = RobustKernelRegressor(target_grid=5, tol=1e-3).fit(X, Y)
    assert len(spread.candidate_targets_) == 30 + 5 * 30 - 2
    assert spread.candidate_targets_.min() == pytest.approx(Y.min())
    assert grid.adversary_weights_.sum() == pytest.approx(1.0)


def test_flips_cost_less_of_similar_labels():
    risks = [
        RobustKernelClassifier(label_flips=True, label_similarity=share).fit(X, LABELS).robust_risk_
        for share in (0.0, 0.5, 0.9)
    ]
    assert risks[0] < risks[1] < risks[2]


def test_a_wide_kernel_cannot_tell_flipped_labels_from_the_sample():
    """A reweighting is cheap where inputs look alike: the risk of a constant function is the best that is left."""
    model = RobustKernelClassifier(Gaussian(100.0), label_flips=True, radius=2.0, regularization=1.0).fit(X, LABELS)
    assert model.robust_risk_ == pytest.approx(np.log(2), abs=1e-3)


def test_probabilities_and_labels_agree():
    model = RobustKernelClassifier(Laplacian(2.0), radius=0.05).fit(X, LABELS)
    shares = model.predict_proba(X)
    np.testing.assert_allclose(shares.sum(axis=1), 1.0)
    np.testing.assert_array_equal(model.predict(X), model.classes_[(shares[:, 1] > 0.5).astype(int)])
    np.testing.assert_array_equal(model.classes_, ["no", "yes"])
    swapped = RobustKernelClassifier(Laplacian(2.0), radius=0.05).fit(X, np.where(Y > 0, "a", "b"))
    np.testing.assert_allclose(swapped.decision_function(X), -model.decision_function(X), atol=1e-3)


def test_more_classes_one_against_the_rest():
    three = np.digitize(Y, [-0.5, 0.5])
    model = OneVsRestClassifier(RobustKernelClassifier(Laplacian(1.0), radius=0.01, tol=1e-4)).fit(X, three)
    assert model.score(X, three) > 0.9
    assert all(each.certificate_.holds(1e-4) for each in model.estimators_)


# --- models that were changed -------------------------------------------------------------------------------------


@cache
def fitted_once(kind):
    if kind == "classifier":
        return pickle.dumps(RobustKernelClassifier(Gaussian(1.5), loss="hinge", label_flips=True).fit(X, LABELS))
    return pickle.dumps(RobustKernelRegressor(Gaussian(1.5), loss="huber", threshold=0.3).fit(X, 1e-3 * Y))


OTHER = {
    "dual_coef_": lambda v: 1.01 * v,
    "price_coef_": lambda v: 0.5 * v,
    "adversary_weights_": lambda v: v[::-1],
    "slopes_": lambda v: 100 * v + 100,
    "robust_risk_": lambda v: 0.9 * v,
    "sample_risk_": lambda v: 0.9 * v,
    "level_": lambda v: v + 0.1,
    "distance_": lambda v: 0.5 * v,
    "inputs_": lambda v: v + 0.1,
    "candidate_index_": lambda v: v[::-1],
    "candidate_targets_": lambda v: v[::-1],
    "certificate_": lambda v: replace(v, lower=2 * v.upper, upper=3 * v.upper),
    "kernel_": lambda v: Gaussian(1.6),
    "_units": lambda v: v._replace(target=2 * v.target),
}


@pytest.mark.parametrize("kind", ["classifier", "regressor"])
@pytest.mark.parametrize("name", OTHER)
def test_a_model_that_was_changed_is_refused(kind, name):
    model, y = pickle.loads(fitted_once(kind)), LABELS if kind == "classifier" else 1e-3 * Y
    assert verify(model, X, y).holds(1e-6)
    setattr(model, name, OTHER[name](getattr(model, name)))
    with pytest.raises(ValueError, match="damaged|adversary"):
        verify(model, X, y)
    delattr(model, name)
    with pytest.raises((ValueError, AttributeError)):
        verify(model, X, y)


def test_verify_wants_the_pairs_of_the_fit():
    model = pickle.loads(fitted_once("classifier"))
    with pytest.raises(ValueError, match=r"^A regression or a classifier is certified on its pairs: pass y as well\.$"):
        verify(model, X)
    with pytest.raises(ValueError, match="damaged|another"):
        verify(model, X, LABELS[::-1])
    with pytest.raises(ValueError, match="is not one of the classes|differs"):
        verify(model, X, np.where(LABELS == "yes", "a", "b"))
    with pytest.raises(ValueError, match="damaged|another"):
        verify(model, X + 0.1, LABELS)


# --- runs ---------------------------------------------------------------------------------------------------------


def test_an_interrupted_fit_is_certified_as_far_as_it_came():
    def stop(line):
        raise KeyboardInterrupt

    with pytest.warns(ConvergenceWarning, match="interrupted"):
        model = RobustKernelRegressor(callback=stop).fit(X, Y)
    assert model.status_ is Status.INTERRUPTED
    assert model.certificate_.lower <= RobustKernelRegressor().fit(X, Y).certificate_.upper <= model.certificate_.upper
    assert verify(model, X, Y).relative_gap > 1e-6
    seen = []
    stopped = RobustKernelRegressor(callback=lambda line: seen.append(line) or len(seen) == 3).fit(X, Y)
    assert stopped.status_ is Status.STOPPED
    assert tuple(seen) == stopped.history_
    assert all(late.objective <= early.objective for early, late in pairwise(seen))


@pytest.mark.parametrize("kind", [RobustKernelRegressor, RobustKernelClassifier])
def test_tensors_fit_as_arrays_do(kind):
    torch = pytest.importorskip("torch")
    labels = kind is RobustKernelClassifier
    y = (Y > 0).astype(int) if labels else Y
    model = kind(Laplacian(1.5), candidates=(X[:5] + 1, y[:5]), tol=1e-8).fit(X, y)
    tensors = kind(Laplacian(1.5), candidates=(torch.tensor(X[:5] + 1), y[:5]), tol=1e-8)
    tensors.fit(torch.tensor(X), torch.tensor(y))
    for name in ("dual_coef_", "inputs_", "adversary_weights_", "price_coef_", "slopes_", "candidate_index_"):
        assert isinstance(getattr(tensors, name), torch.Tensor)
    answer = tensors.decision_function(torch.tensor(X)) if labels else tensors.predict(torch.tensor(X))
    expected = model.decision_function(X) if labels else model.predict(X)
    assert isinstance(answer, torch.Tensor)
    np.testing.assert_allclose(answer.numpy(), expected, atol=1e-3)
    assert tensors.robust_risk_ == pytest.approx(model.robust_risk_, rel=1e-6)
    assert tensors.risk_bound(torch.tensor(X + 0.2), y) == pytest.approx(model.risk_bound(X + 0.2, y), rel=1e-3)
    assert verify(tensors, torch.tensor(X), y).holds(1e-8)
    if labels:
        np.testing.assert_array_equal(tensors.predict(torch.tensor(X)), model.predict(X))
        assert isinstance(tensors.predict_proba(torch.tensor(X)), torch.Tensor)
    single = kind(Laplacian(1.5), tol=1e-4).fit(X.astype(np.float32), y)
    double = kind(Laplacian(1.5), tol=1e-4).fit(X.astype(np.float32).astype(float), y)
    np.testing.assert_array_equal(single.dual_coef_, double.dual_coef_)
