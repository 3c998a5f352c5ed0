"""The estimator: programmes, the one-class machine, weights, reductions, features."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from scipy.optimize import minimize, nnls
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.kernel_approximation import Nystroem
from sklearn.linear_model import Ridge
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline

from mercer import (
    Gaussian,
    Polynomial,
    Precomputed,
    QuadratureSparsifier,
    config_context,
    squared_kernel_discrepancy,
    verify,
)
from mercer.solvers import Status

KERNEL = Gaussian(sigma=0.7)


@pytest.fixture(scope="module")
def X():
    return np.random.default_rng(0).uniform(-1, 1, (80, 2))


def _dense(model, n):
    v = np.zeros(n)
    v[model.indices_] = model.weights_
    return v


def _regularised(S, omega, alpha_d):
    """min ½(ω - v)ᵀS(ω - v) + αdᵀv over v ≥ 0 as non-negative least squares on a factor of S."""
    R = np.linalg.cholesky(S + 1e-13 * np.eye(len(S))).T
    return nnls(R, R @ omega - np.linalg.solve(R.T, alpha_d), maxiter=10_000)[0]


@pytest.mark.parametrize("kernel", [KERNEL, Polynomial(degree=4, gamma=1.0, coef0=1.0) + 0.3 * KERNEL])
@pytest.mark.parametrize("share", [0.3, 0.03, 0.003])
def test_the_regularised_programme_against_non_negative_least_squares(X, kernel, share):
    S, d = kernel(X) ** 2, kernel.diag(X)
    omega = np.full(80, 1 / 80)
    alpha = share * np.max(S @ omega / d)
    model = QuadratureSparsifier(kernel, alpha=alpha).fit(X)
    v = _dense(model, 80)
    oracle = _regularised(S, omega, alpha * d)
    value = [0.5 * (omega - w) @ S @ (omega - w) + alpha * d @ w for w in (v, oracle)]
    assert value[0] == pytest.approx(value[1], rel=1e-9)
    assert model.certificate_.holds(1e-9)
    assert model.discrepancy_ == pytest.approx(0.5 * (omega - v) @ S @ (omega - v), rel=1e-8)
    assert 2 * model.discrepancy_ == pytest.approx(
        squared_kernel_discrepancy(X, X[model.indices_], kernel, y_weights=model.weights_), rel=1e-8
    )


@pytest.mark.parametrize("fraction", [0.2, 0.6, 0.95])
def test_both_programmes_are_exchanged_by_the_multiplier(X, fraction):
    """Lemma 3.3, both ways."""
    constrained = QuadratureSparsifier(KERNEL, trace_fraction=fraction).fit(X)
    assert constrained.kappa_ == pytest.approx(fraction, rel=1e-12)
    regularised = QuadratureSparsifier(KERNEL, alpha=constrained.alpha_).fit(X)
    np.testing.assert_array_equal(np.sort(regularised.indices_), np.sort(constrained.indices_))
    assert regularised.kappa_ == pytest.approx(fraction, rel=1e-6)
    v, omega = _dense(constrained, 80), np.full(80, 1 / 80)
    assert constrained.alpha_ == pytest.approx(v @ KERNEL(X) ** 2 @ (omega - v) / fraction, rel=1e-9)


@pytest.mark.parametrize("penalised", [False, True])
def test_the_witness_is_the_solution_of_a_one_class_machine(X, penalised):
    """Lemmas 5.1 and 5.2: g ≥ -αd with equality on the nodes, g minimises (5.1), and γ is the margin of (5.3)."""
    d = np.random.default_rng(1).uniform(0.5, 2, 80) if penalised else np.ones(80)
    model = QuadratureSparsifier(KERNEL, trace_fraction=0.6, penalty=d).fit(X)
    S, omega, v = KERNEL(X) ** 2, np.full(80, 1 / 80), _dense(model, 80)
    g = model.witness(X)
    np.testing.assert_allclose(g, S @ (v - omega), atol=1e-13)
    assert np.all(g >= -model.alpha_ * d - 1e-10)
    np.testing.assert_allclose(g[model.indices_], -model.alpha_ * d[model.indices_], atol=1e-10)
    assert model.margin_ == pytest.approx(v @ S @ (v - omega), rel=1e-9)
    assert model.margin_ == pytest.approx(-model.alpha_ * model.kappa_, rel=1e-8)
    best = _machine(S, omega, v - omega)
    rng = np.random.default_rng(2)
    for _ in range(200):  # feasible g + s h of (5.1): no direction lowers its objective
        h = rng.standard_normal(80) * rng.uniform(0, 1e-3)
        shift = np.max(-model.alpha_ * d - (g + S @ h), initial=0.0) / np.min(S.sum(axis=1))
        other = v - omega + h + shift
        assert np.all(S @ other >= -model.alpha_ * d - 1e-12)
        assert _machine(S, omega, other) >= best - 1e-12


def test_the_margin_of_the_constrained_machine(X):
    """Lemma 5.2: (g, γ) minimises ½‖g‖² + ⟨g, g_ω⟩ - γ over g ≥ γ d/ϰ on the sample, (5.3)."""
    d = np.random.default_rng(1).uniform(0.5, 2, 80)
    model = QuadratureSparsifier(KERNEL, trace_fraction=0.4, penalty=d).fit(X)
    S, omega, v = KERNEL(X) ** 2, np.full(80, 1 / 80), _dense(model, 80)
    best = _machine(S, omega, v - omega) - model.margin_
    assert np.all(S @ (v - omega) >= model.margin_ * d / model.kappa_ - 1e-10)
    rng = np.random.default_rng(2)
    for size in np.repeat([1e-5, 1e-3, 0.1], 100):
        beta = v - omega + size * rng.standard_normal(80)
        margin = float(np.min(S @ beta / d)) * model.kappa_  # the largest that g allows
        assert _machine(S, omega, beta) - margin >= best - 1e-12


def _machine(S, omega, beta):
    return 0.5 * beta @ S @ beta + beta @ S @ omega


def test_box_and_ridge_against_a_general_solver(X):
    """(5.5) and (5.7) on a few points."""
    X = X[:12]
    S, omega = KERNEL(X) ** 2, np.full(12, 1 / 12)
    for options, cap, ridge in (({"max_weight": 0.12}, 0.12, 0.0), ({"ridge": 0.05}, np.inf, 0.05)):
        model = QuadratureSparsifier(KERNEL, trace_fraction=0.6, **options).fit(X)
        result = minimize(
            lambda v, r=ridge: 0.5 * (omega - v) @ S @ (omega - v) + 0.5 * r * v @ v,
            np.full(12, 0.05),
            bounds=[(0, cap)] * 12,
            constraints={"type": "eq", "fun": lambda v: v.sum() - 0.6},
            options={"ftol": 1e-15, "maxiter": 1000},
        )
        v = _dense(model, 12)
        assert np.all(v <= cap * (1 + 1e-12))
        assert model.certificate_.upper <= result.fun * (1 + 1e-6)
        assert model.certificate_.lower >= result.fun * (1 - 1e-6)


def test_weight_two_is_a_row_twice_and_weight_zero_is_no_row(X):
    weights = np.random.default_rng(0).integers(0, 3, 80)
    for options in ({"trace_fraction": 0.7}, {"n_nodes": 9}):
        weighted = QuadratureSparsifier(KERNEL, **options).fit(X, sample_weight=weights)
        repeated = QuadratureSparsifier(KERNEL, **options).fit(np.repeat(X, weights, axis=0))
        np.testing.assert_allclose(weighted.components_, repeated.components_)
        np.testing.assert_allclose(weighted.weights_, repeated.weights_, rtol=1e-7)
        assert np.all(weights[weighted.indices_] > 0)


def test_penalty_as_array_and_as_function(X):
    """QUAD section 3.4: d is the user's."""
    d = 1 + np.sum(X**2, axis=1)
    by_array = QuadratureSparsifier(KERNEL, trace_fraction=0.5, penalty=d).fit(X)
    by_function = QuadratureSparsifier(KERNEL, trace_fraction=0.5, penalty=lambda Z: 1 + np.sum(Z**2, axis=1)).fit(X)
    np.testing.assert_array_equal(by_array.indices_, by_function.indices_)
    assert d[by_array.indices_] @ by_array.weights_ == pytest.approx(0.5 * d.mean())


@pytest.mark.parametrize("solver", ["path", "active-set", "exchange", "exchange-second-order", "exchange-plain"])
def test_solvers_agree(X, solver):
    auto = QuadratureSparsifier(KERNEL, trace_fraction=0.8).fit(X)
    other = QuadratureSparsifier(KERNEL, trace_fraction=0.8, solver=solver, max_iter=5000).fit(X)
    np.testing.assert_array_equal(np.sort(other.indices_), np.sort(auto.indices_))
    assert other.discrepancy_ == pytest.approx(auto.discrepancy_, rel=1e-9)
    assert hasattr(other, "path_") == (solver == "path")


@pytest.mark.parametrize("options", [{"trace_fraction": 0.7}, {"n_nodes": 10}, {"n_nodes": 10, "merge": "weak"}])
def test_a_precomputed_kernel_gives_the_same(X, options):
    direct = QuadratureSparsifier(KERNEL, **options).fit(X)
    stored = QuadratureSparsifier(Precomputed(), **options).fit(KERNEL(X))
    np.testing.assert_array_equal(np.sort(stored.indices_), np.sort(direct.indices_))
    new = np.random.default_rng(1).uniform(-1, 1, (5, 2))
    at = [np.argsort(m.indices_) for m in (stored, direct)]
    np.testing.assert_allclose(stored.transform(KERNEL(new, X))[:, at[0]], direct.transform(new)[:, at[1]], atol=1e-6)
    np.testing.assert_allclose(stored.witness(KERNEL(new, X)), direct.witness(new), atol=1e-9)


def test_features_are_those_of_nystroem(X):
    model = QuadratureSparsifier(KERNEL, n_nodes=12).fit(X)
    new = np.random.default_rng(1).uniform(-1, 1, (20, 2))
    rival = Nystroem(kernel=lambda a, b: float(KERNEL(a[None], b[None])[0, 0]), n_components=12)
    rival.fit(X[model.indices_])
    ours, theirs = model.transform(new), rival.transform(new)
    np.testing.assert_allclose(ours @ ours.T, theirs @ theirs.T, atol=1e-8)
    assert model.get_feature_names_out().tolist()[:2] == ["quadraturesparsifier0", "quadraturesparsifier1"]


def test_in_a_pipeline_with_a_search(X):
    y = np.sin(3 * X[:, 0]) * X[:, 1]
    search = GridSearchCV(
        make_pipeline(QuadratureSparsifier(Gaussian(sigma=1.0), n_nodes=15), Ridge(alpha=1e-6)),
        {"quadraturesparsifier__kernel__sigma": [0.05, 0.8]},
        cv=3,
    ).fit(X, y)
    assert search.best_params_["quadraturesparsifier__kernel__sigma"] == 0.8
    assert search.best_score_ > 0.8


def test_eigenpairs_of_the_model(X):
    model = QuadratureSparsifier(KERNEL, n_nodes=25).fit(X)
    exact = np.linalg.eigvalsh(KERNEL(X) / 80)[::-1]
    for refine in (False, True):
        found = model.eigenpairs(6, refine=refine)
        np.testing.assert_allclose(found.eigenvalues_hat, exact[:6], rtol=0.02)
        assert np.all(found.upsilon > 0.99)
    assert model.eigenpairs(3, upsilon=False).upsilon is None


def test_numbers_of_nodes_and_reweighting(X):
    for count in (1, 2, 7, 30):
        model = QuadratureSparsifier(KERNEL, n_nodes=count).fit(X)
        assert model.indices_.size == count
        assert model.alpha_ == 0
        assert model.certificate_.holds(1e-6)
    plain = QuadratureSparsifier(KERNEL, trace_fraction=0.6).fit(X)
    settled = QuadratureSparsifier(KERNEL, trace_fraction=0.6, reweight=True).fit(X)
    assert set(settled.indices_) <= set(plain.indices_)
    assert settled.discrepancy_ < plain.discrepancy_


def test_float32_works_loosely(X):
    with config_context(dtype="float32"):
        model = QuadratureSparsifier(KERNEL, trace_fraction=0.6).fit(X)
    exact = QuadratureSparsifier(KERNEL, trace_fraction=0.6).fit(X)
    assert model.discrepancy_ == pytest.approx(exact.discrepancy_, rel=1e-3)


def test_a_callback_stops_and_is_told(X):
    """A stop of one's own is no reason for a warning."""
    for last, options in (
        (1, {"trace_fraction": 0.9}),
        (3, {"trace_fraction": 0.9, "solver": "exchange"}),
        (3, {"alpha": 1e-3, "solver": "path"}),
        (2, {"n_nodes": 20, "reweight": True}),
        (4, {"n_nodes": 3, "solver": "path"}),
        (4, {"n_nodes": 3, "merge": "weak", "solver": "path"}),
    ):
        lines = []

        def stop(line, lines=lines, last=last):
            return lines.append(line) or len(lines) == last

        model = QuadratureSparsifier(KERNEL, callback=stop, **options).fit(X)
        assert model.status_ is Status.STOPPED
        assert len(lines) == last
        assert lines[-1].number in [line.number for line in model.history_]


def test_an_interruption_warns(X):
    def interrupt(line):
        if line.number == 3:
            raise KeyboardInterrupt

    for options in ({"solver": "path", "alpha": 1e-3}, {"solver": "exchange", "trace_fraction": 0.9}):
        with pytest.warns(ConvergenceWarning, match="interrupted"):
            model = QuadratureSparsifier(KERNEL, callback=interrupt, **options).fit(X)
        assert model.status_ is Status.INTERRUPTED


def test_no_parameter_is_idle(X):
    """What could have no effect is refused in one sentence, or has one."""
    for options, sentence in (
        ({"n_nodes": 5, "solver": "exchange"}, "give trace_fraction, not n_nodes alone"),
        ({"n_nodes": 500, "solver": "exchange-plain"}, "give trace_fraction, not n_nodes alone"),
        ({"alpha": 1e-3, "solver": "exchange"}, "give trace_fraction, not alpha"),
        ({"n_nodes": 5, "tol": 1e-3}, "tol has no effect with n_nodes alone"),
        ({"trace_fraction": 0.5, "solver": "path", "tol": 1e-3}, "tol has no effect with solver='path'"),
        ({"n_nodes": 5, "reweight": False}, "reweight=False has no effect with n_nodes alone"),
    ):
        with pytest.raises(ValueError, match=sentence):
            QuadratureSparsifier(KERNEL, **options).fit(X)
    with pytest.raises(TypeError, match="callback=3 must be a function"):
        QuadratureSparsifier(KERNEL, callback=3).fit(X)


def test_limits_of_the_active_set_are_kept(X, monkeypatch):
    exact = QuadratureSparsifier(KERNEL, trace_fraction=0.9).fit(X)
    loose = QuadratureSparsifier(KERNEL, trace_fraction=0.9, tol=1e4).fit(X)
    assert loose.certificate_.upper > exact.certificate_.upper * (1 + 1e-6)
    assert loose.status_ is Status.CONVERGED
    once = QuadratureSparsifier(KERNEL, trace_fraction=0.9, max_iter=1).fit(X)  # a pool that holds all points
    assert once.status_ is Status.CONVERGED
    np.testing.assert_array_equal(once.weights_, exact.weights_)
    monkeypatch.setattr("mercer.solvers.measure.active_set._LEAST_POOL", 3)
    monkeypatch.setattr("mercer.solvers.measure.active_set._POOL_PER_NODE", 0)
    with pytest.warns(ConvergenceWarning, match="raise max_iter"):
        cut = QuadratureSparsifier(KERNEL, trace_fraction=0.9, max_iter=1).fit(X)
    monkeypatch.undo()
    assert cut.status_ is Status.MAX_ITER
    whole = QuadratureSparsifier(KERNEL, n_nodes=20).fit(X)
    with pytest.warns(ConvergenceWarning, match="raise max_iter"):
        few = QuadratureSparsifier(KERNEL, n_nodes=20, max_iter=2).fit(X)
    assert few.discrepancy_ > whole.discrepancy_


def test_as_many_nodes_as_points_honour_path_and_merge(X):
    model = QuadratureSparsifier(KERNEL, n_nodes=80, solver="path").fit(X)
    assert len(model.path_) > 50
    assert model.discrepancy_ < 1e-9
    for merge in ("eliminate", "strong", "weak"):
        model = QuadratureSparsifier(KERNEL, n_nodes=100, merge=merge).fit(X)
        assert model.reduction_.n_nodes.tolist() == [80]
        np.testing.assert_allclose(model.weights_, 1 / 80)
        assert "same nodes" not in model.certificate_.method


def test_nothing_of_the_user_is_touched(X):
    kernel, before = Gaussian(), X.copy()
    weights = np.ones(80)
    model = QuadratureSparsifier(kernel, n_nodes=5)
    twin = clone(model).fit(X, sample_weight=weights)
    np.testing.assert_array_equal(X, before)
    assert kernel.sigma == "median"
    assert np.isfinite(twin.kernel_.sigma)
    again = pickle.loads(pickle.dumps(twin))
    np.testing.assert_array_equal(again.transform(X), twin.transform(X))


@pytest.mark.parametrize("programme", [{"alpha": 0.004}, {"trace_fraction": 0.5}])
def test_caps_and_ridge_for_each_row(X, programme):
    """(5.5) and (5.7) with numbers of their own for each row: the conditions of Karush, Kuhn and Tucker."""
    rng = np.random.default_rng(3)
    caps, ridge = rng.uniform(0.005, 0.05, 80), rng.uniform(0, 0.05, 80)
    model = QuadratureSparsifier(KERNEL, max_weight=caps, ridge=ridge, **programme).fit(X)
    S, omega, v = KERNEL(X) ** 2, np.full(80, 1 / 80), _dense(model, 80)
    assert np.all(v <= caps)
    slack = S @ (v - omega) + ridge * v + model.alpha_
    full, free = v == caps, (v > 0) & (v < caps)
    assert full.any()
    assert free.any()
    np.testing.assert_allclose(slack[free], 0, atol=1e-10)
    assert np.all(slack[full] <= 1e-10)
    assert np.all(slack[v == 0] >= -1e-10)
    assert model.margin_ == pytest.approx(v @ S @ (v - omega), rel=1e-9)
    assert model.certificate_.holds(1e-9)
    assert model.discrepancy_ == pytest.approx(0.5 * (omega - v) @ S @ (omega - v), rel=1e-9)


@pytest.mark.parametrize("merge", ["strong", "weak"])
def test_merging_keeps_the_trace_and_lowers_the_number(X, merge):
    plain = QuadratureSparsifier(KERNEL, trace_fraction=0.8).fit(X)
    model = QuadratureSparsifier(KERNEL, trace_fraction=0.8, merge=merge, n_nodes=10).fit(X)
    assert model.indices_.size == 10
    assert set(model.indices_) <= set(plain.indices_)
    assert model.kappa_ == pytest.approx(0.8, rel=1e-10)
    assert model.reduction_.values[0] == pytest.approx(plain.discrepancy_, rel=1e-8)
    assert model.reduction_.values[-1] == pytest.approx(model.discrepancy_, rel=1e-8)
    rows, values = model.reduction_.at()
    np.testing.assert_allclose(_dense(model, 80)[rows], values, rtol=1e-12)
    assert model.discrepancy_ > plain.discrepancy_


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_data_frames_in_and_out(X, library):
    frames = pytest.importorskip(library)
    frame = frames.DataFrame({"first": X[:, 0], "second": X[:, 1]})
    model = QuadratureSparsifier(KERNEL, n_nodes=3).set_output(transform=library)
    out = model.fit_transform(frame)
    assert isinstance(out, frames.DataFrame)
    assert list(out.columns) == [f"quadraturesparsifier{k}" for k in range(3)]
    assert list(model.feature_names_in_) == ["first", "second"]
    np.testing.assert_array_equal(np.asarray(out), QuadratureSparsifier(KERNEL, n_nodes=3).fit(X).transform(X))


def test_progress_is_logged(X, caplog):
    with caplog.at_level("INFO", logger="mercer"):
        QuadratureSparsifier(KERNEL, n_nodes=5, verbose=True).fit(X)
    assert any("nodes where" in line for line in caplog.messages)
    caplog.clear()
    QuadratureSparsifier(KERNEL, n_nodes=5).fit(X)
    assert not caplog.messages


def test_an_interrupt_keeps_what_there_is(X):
    def interrupt(line):
        raise KeyboardInterrupt

    with pytest.warns(UserWarning, match="interrupted: this is the best iterate so far"):
        model = QuadratureSparsifier(KERNEL, trace_fraction=0.7, callback=interrupt).fit(X)
    assert model.kappa_ == pytest.approx(0.7, rel=1e-10)
    assert model.certificate_.relative_gap > 0.1
    assert model.transform(X).shape == (80, model.indices_.size)


@pytest.mark.parametrize("phase", ["elimination", "swapping", "merging"])
def test_an_interrupt_while_nodes_are_taken_out_keeps_what_there_is(X, phase):
    """Nodes that did not go in time stay, and the certificate is that of the weights on them."""

    def interrupt(line):
        if line.phase == phase and line.n_nodes <= 8:
            raise KeyboardInterrupt

    options = {"merge": "strong", "trace_fraction": 0.7} if phase == "merging" else {}
    with pytest.warns(UserWarning, match="interrupted: this is the best iterate so far"):
        model = QuadratureSparsifier(KERNEL, n_nodes=5, callback=interrupt, **options).fit(X)
    assert model.status_ is Status.INTERRUPTED
    assert model.history_[-1].phase == phase
    assert model.indices_.size == model.history_[-1].n_nodes >= 5
    assert model.certificate_.method.endswith("on the same nodes")
    verify(model, X)


def test_a_solver_that_stalls_far_from_the_optimum_is_told(X, monkeypatch):
    """Were no point to enter the pool, the first measure would stay; the certificate says what it is worth."""
    monkeypatch.setattr("mercer.solvers.measure.active_set.ActiveSetPool.solve", lambda self: None)
    with pytest.warns(UserWarning, match="no longer moves"):
        model = QuadratureSparsifier(KERNEL, trace_fraction=0.7).fit(X)
    assert not model.certificate_.holds(1e-3)
