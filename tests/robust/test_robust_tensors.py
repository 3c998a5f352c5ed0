"""Robust regressions of tensors: fits equal to NumPy's, answers that stay tensors."""

from __future__ import annotations

import numpy as np
import pytest
from robust_oracle import small_game, small_pairs, small_relaxation

import mercer
from mercer import RobustKernelRidge
from mercer.certificates.game import certify_saddle_point
from mercer.robust.game import Game
from mercer.robust.relaxation import Relaxation
from mercer.solvers.game.barrier import Barrier
from mercer.solvers.game.newton import Newton
from mercer.solvers.run import Goal, solve

torch = pytest.importorskip("torch")

ROOT = 1e-4  # of a tolerance of the objective, what the solutions may differ by


def sample(n):
    rng = np.random.default_rng(5)
    return rng.standard_normal((n, 1)) + 2 * rng.integers(0, 2, (n, 1)), rng.uniform(0.5, 1.5, n)


def close(ours, expected, tolerance):
    assert isinstance(ours, torch.Tensor)
    np.testing.assert_allclose(ours.numpy(), expected, rtol=0, atol=tolerance * float(np.max(np.abs(expected))))


def tensors(parts):
    """The same tuple, arrays in it and in tuples within as tensors."""

    def made(part):
        if isinstance(part, tuple):
            return tensors(part)
        return torch.from_numpy(part) if isinstance(part, np.ndarray) else part

    return type(parts)(*map(made, parts))


@pytest.mark.parametrize("keep_sample", [True, False])
def test_no_step_of_the_game_leaves_the_library(keep_sample, request):
    plain = small_game(3, radius=0.4, keep_sample=keep_sample)
    ours = Game(tensors(small_pairs(3)), plain.terms)
    expected, problem, enclosures = solve(plain.problem, Barrier(), goal=Goal(1e-8)), ours.problem, ours.enclosures
    refused = request.getfixturevalue("refuse_numpy")
    found = solve(problem, Barrier(), goal=Goal(1e-8))
    assert isinstance(found.point.beta, refused.Tensor)
    assert found.status is expected.status
    assert found.history[-1].objective == pytest.approx(expected.history[-1].objective, rel=1e-8)
    request.getfixturevalue("monkeypatch").undo()
    assert certify_saddle_point(problem, enclosures, found.point).holds(1e-7)


def test_no_step_of_the_relaxation_leaves_the_library(request):
    plain = small_relaxation(2)
    ours = Relaxation(tensors(small_pairs(2)), plain.terms)
    expected = solve(plain.problem, Newton(), goal=Goal(1e-12))
    request.getfixturevalue("refuse_numpy")
    found = solve(ours.problem, Newton(), goal=Goal(1e-12))
    assert found.history[-1].objective == pytest.approx(expected.history[-1].objective, rel=1e-12)
    dual, theirs = ours.functions @ found.point, torch.from_numpy(plain.functions @ expected.point)
    assert bool((dual - theirs).abs().max() <= 1e-6 * theirs.abs().max())


@pytest.mark.parametrize(
    "options", [{}, {"radius": 0.0}, {"relaxation": "rkhs"}, {"keep_sample": False, "radius": 0.5}], ids=str
)
def test_a_robust_regression_of_tensors_is_that_of_arrays(options):
    X, weights = sample(40)
    X = X.astype(np.float32) if options.get("radius") == 0.0 else X
    y = np.sin(2 * X[:, 0])
    T, t, w = (torch.from_numpy(part) for part in (X, y, weights))
    options = {"support": 8, "random_state": 0, "tol": 1e-7} | options
    plain = RobustKernelRidge(**options).fit(X, y, weights)
    ours = RobustKernelRidge(**options).fit(T, t, w)
    for name in ("robust_risk_", "sample_risk_"):
        assert getattr(ours, name) == pytest.approx(getattr(plain, name), rel=1e-5)
    for name in ("dual_coef_", "price_coef_", "adversary_coef_", "support_"):
        assert isinstance(getattr(ours, name), torch.Tensor)
    close(ours.predict(T), plain.predict(X), ROOT)
    close(ours.predict(X), plain.predict(X), ROOT)
    assert isinstance(ours.adversary_density(T, t), torch.Tensor)
    again = mercer.verify(ours, T, t)
    assert again.lower <= plain.certificate_.upper
    assert plain.certificate_.lower <= again.upper


@pytest.mark.parametrize(
    ("spoilt", "sentence"), [(float("nan"), "Input y contains NaN"), (None, "inconsistent numbers of samples")]
)
def test_targets_that_cannot_be_used_are_refused_in_the_words_of_scikit_learn(spoilt, sentence):
    X, _ = sample(20)
    y = torch.from_numpy(X[:, 0].copy())
    if spoilt is None:
        y = y[:-1]
    else:
        y[3] = spoilt
    with pytest.raises(ValueError, match=sentence):
        RobustKernelRidge().fit(torch.from_numpy(X), y)
