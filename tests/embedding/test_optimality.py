"""What an optimal embedding must satisfy, recomputed densely; and the attributes that report it."""

from __future__ import annotations

import itertools
import logging
import warnings

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

import mercer
from mercer import DiffusionOperator, Gaussian, GramOperator, Laplacian, Matern, SDPEmbedding
from mercer.datasets import three_clusters, two_moons
from mercer.solvers import Status


def _dense(kernel, X) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Ā, its diagonal and the stationary vector v₀, by the formulas of the papers."""
    K = kernel(X)
    m = K.sum(axis=1)
    A = K / np.sqrt(np.outer(m, m)) - np.sqrt(np.outer(m, m)) / m.sum()
    return A, np.diag(A).copy(), np.sqrt(m / m.sum())


_CASES = {
    "clusters": (Gaussian(sigma=1.2), three_clusters(n_per_cluster=40)[0]),
    "moons": (Gaussian(sigma=0.6), two_moons(n_points=150)[0]),
    "laplacian": (Laplacian(sigma=1.0), three_clusters(n_per_cluster=40)[0]),
    "matern": (Matern(nu=2.5, length_scale=1.0), np.random.default_rng(0).standard_normal((120, 4))),
    "composite": (Gaussian(sigma=2.0) * Laplacian(sigma=9.0) + 0.1 * Gaussian(sigma=0.5), two_moons(n_points=100)[0]),
    "wide": (Gaussian(sigma=30.0), np.random.default_rng(1).standard_normal((80, 2))),
}


@pytest.fixture(scope="module", params=list(_CASES))
def case(request):
    kernel, X = _CASES[request.param]
    model = SDPEmbedding(kernel, random_state=0, tol=1e-7, residual_tol=1e-8, max_iter=50_000).fit(X)
    return model, X, *_dense(kernel, X)


def test_prescribed_diagonal(case):
    """PSD17 (10): the length of every row of the embedding is prescribed."""
    model, _, _, d, v = case
    np.testing.assert_allclose(model.diagonal_, d, rtol=1e-8, atol=1e-15)
    np.testing.assert_allclose(np.sum(model.embedding_**2, axis=1), model.diagonal_, rtol=1e-10)
    np.testing.assert_allclose(model.stationary_, v**2, rtol=1e-12)
    assert model.stationary_.sum() == pytest.approx(1.0)


def test_lower_bound_is_the_objective_and_upper_bound_the_dual(case):
    """Recomputed by a full eigen-decomposition: λmax(M) with M = Diag(z)^-½ J Diag(z)^-½."""
    model, _, A, d, _ = case
    E = model.embedding_
    z = np.sum(E * (A @ E), axis=1)
    digits = 1e-7 if d.max() < 1e-4 else 1e-10
    assert model.certificate_.lower == pytest.approx(z.sum(), rel=digits)
    J = np.sqrt(np.outer(d, d)) * A
    top = np.linalg.eigvalsh(J / np.sqrt(np.outer(z, z)))[-1]
    assert model.certificate_.upper >= top * z.sum() * (1 - digits)
    assert model.certificate_.relative_gap <= 1e-7


def test_dual_slack_is_positive_and_complementary(case):
    model, _, A, d, _ = case
    E = model.embedding_
    y = np.sum(E * (A @ E), axis=1) / d
    L = np.diag(y) - A
    values = np.linalg.eigvalsh(L)
    size = np.linalg.norm(A, 2)
    assert values[0] > -1e-6 * size
    assert np.linalg.norm(L @ E @ E.T) <= 1e-5 * np.linalg.norm(A @ E @ E.T)
    assert np.all(np.abs(values[: model.rank_]) < 1e-5 * size)
    assert np.all(model.certificate_.least_eigenvalues >= values[: model.certificate_.least_eigenvalues.size] - 1e-8)
    np.testing.assert_allclose(model.certificate_.least_eigenvalues[: model.rank_], values[: model.rank_], atol=1e-6)
    assert model.certificate_.complementarity < 1e-5


def test_least_eigenvalues_of_a_factorisation_are_those_of_the_slack():
    kernel, X = _CASES["clusters"]
    model = SDPEmbedding(kernel, certify="factorisation", random_state=0).fit(X)
    A, d, _ = _dense(kernel, X)
    E = model.embedding_
    values = np.linalg.eigvalsh(np.diag(np.sum(E * (A @ E), axis=1) / d) - A)
    np.testing.assert_allclose(model.certificate_.least_eigenvalues, values[:6], atol=1e-8)


def test_mean_value_property(case):
    """PSD17 (11): Ξᵢ = dᵢ / (Σ_z Ā(i,z)B(z,i)) Σ_y Ā(i,y) Ξ_y."""
    model, _, A, d, _ = case
    E = model.embedding_
    B = E @ E.T
    factor = d / np.sum(A * B, axis=1)
    np.testing.assert_allclose(factor[:, None] * (A @ E), E, atol=1e-6 * np.abs(E).max())


def test_multipliers_exceed_the_diagonal(case):
    """zᵢ ≥ Jᵢᵢ at a row-wise maximiser (PSD17 Lemma 2): the factor above is at most 1/Ā(i,i)."""
    model, _, A, d, _ = case
    z = np.sum(model.embedding_ * (A @ model.embedding_), axis=1)
    assert np.all(z >= d**2 * (1 - 1e-6))


def test_elementary_bounds(case):
    """PSD17 Proposition 1: ‖Ā‖²_F ≤ p* ≤ λ₁ Tr Ā."""
    model, _, A, d, _ = case
    assert np.sum(A**2) <= model.certificate_.upper * (1 + 1e-12)
    assert model.certificate_.lower <= np.linalg.eigvalsh(A)[-1] * d.sum() * (1 + 1e-12)


def test_spectrum_and_axes(case):
    """Columns are the eigenvectors of B, in falling order, with a deterministic sign."""
    model, _, _, _, _ = case
    E = model.embedding_
    np.testing.assert_allclose(E.T @ E, np.diag(model.eigenvalues_) * model.diagonal_.sum(), atol=1e-12)
    assert np.all(np.diff(model.eigenvalues_) <= 0)
    assert model.eigenvalues_.shape == (model.rank_,)
    assert model.rank_ * (model.rank_ + 1) / 2 <= len(E)  # Barvinok–Pataki
    for column in E.T:
        assert column[np.argmax(np.abs(column))] > 0


def test_two_points():
    """Ā of two points is a multiple of (1, -1)(1, -1)ᵀ: they sit opposite each other."""
    model = SDPEmbedding(Gaussian(sigma=1.0), random_state=0).fit([[0.0], [0.7]])
    k = np.exp(-0.49)
    d = 1 / (1 + k) - 0.5
    np.testing.assert_allclose(np.sort(model.embedding_[:, 0]), [-np.sqrt(d), np.sqrt(d)], rtol=1e-12)
    assert model.certificate_.lower == pytest.approx(4 * d**2, rel=1e-12)
    assert model.certificate_.holds(1e-10)
    np.testing.assert_allclose(model.transform([[0.0], [0.7]]), model.embedding_, rtol=1e-12)


def test_repeated_rows_lie_on_each_other():
    X = np.random.default_rng(0).standard_normal((8, 2))
    model = SDPEmbedding(Gaussian(sigma=1.0), random_state=0).fit(np.repeat(X, 5, axis=0))
    E = model.embedding_.reshape(8, 5, -1)
    assert np.abs(E - E[:, :1]).max() < 1e-5 * np.abs(E).max()
    assert model.certificate_.holds(1e-6)


# --- how the fit went ---------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def points():
    return three_clusters(n_per_cluster=30)[0]


@pytest.mark.parametrize("solver", ["auto", "accelerated", "power"])
def test_solvers_agree(solver, points):
    model = SDPEmbedding(Gaussian(sigma=2.0), solver=solver, random_state=0, max_iter=50_000).fit(points)
    reference = SDPEmbedding(Gaussian(sigma=2.0), tol=1e-9, residual_tol=1e-9, random_state=1).fit(points)
    assert model.certificate_.lower == pytest.approx(reference.certificate_.lower, rel=1e-6)
    np.testing.assert_allclose(model.embedding_, reference.embedding_, atol=1e-4)


def test_products_are_counted(monkeypatch):
    points = three_clusters(n_per_cluster=85)[0]  # enough of them for a stand-in
    columns = []
    original = DiffusionOperator._multiply

    def counting(self, v):
        columns.append(v.shape[1])
        return original(self, v)

    monkeypatch.setattr(DiffusionOperator, "_multiply", counting)
    for solver, certify, last in (
        ("accelerated", "factorisation", 0),
        ("auto", "deflated-lanczos", 20),
        ("auto", True, 2),
    ):
        columns.clear()
        model = SDPEmbedding(Gaussian(sigma=2.0), solver=solver, certify=certify, random_state=0).fit(points)
        assert model.n_products_ == sum(columns)
        assert model.n_products_ >= model.history_[-1].n_columns + last  # the last certificate


def test_history_runs_on_through_the_reduction_of_the_rank(points):
    seen = []
    model = SDPEmbedding(
        Gaussian(sigma=2.0), solver="accelerated", certify="factorisation", random_state=0, callback=seen.append
    ).fit(points)
    assert model.rank_ < 10
    assert tuple(seen) == model.history_
    for name in ("number", "n_columns", "seconds"):
        values = [getattr(iteration, name) for iteration in model.history_]
        assert all(a <= b for a, b in itertools.pairwise(values)), name
    assert model.n_iter_ == model.history_[-1].number
    widths = {b.n_columns - a.n_columns for a, b in itertools.pairwise(model.history_)}
    assert widths == {10, model.rank_}
    assert model.history_[-1].row_residual <= 1e-6
    assert model.history_[-1].relative_gap <= 1e-6


def test_budget_that_runs_out_says_so(points):
    with pytest.warns(ConvergenceWarning) as caught:
        model = SDPEmbedding(Gaussian(sigma=1.2), solver="accelerated", max_iter=3, random_state=0).fit(points)
    assert len(caught) == 1
    text = str(caught[0].message)
    assert text.startswith("The iteration budget ran out: raise max_iter")
    assert str(model.certificate_) in text
    assert text.endswith(".")
    assert model.status_ is Status.MAX_ITER
    assert model.n_iter_ == 3
    optimum = SDPEmbedding(Gaussian(sigma=1.2), random_state=0).fit(points).certificate_
    assert model.certificate_.lower <= optimum.upper
    assert model.certificate_.upper >= optimum.lower
    assert model.certificate_.relative_gap > 1e-3
    assert model.certificate_.relative_gap >= optimum.lower / model.certificate_.lower - 1
    assert np.isfinite(model.transform(points)).all()
    assert caught[0].filename == __file__


def test_callback_may_stop(points):
    model = SDPEmbedding(
        Gaussian(sigma=1.2), solver="accelerated", random_state=0, callback=lambda i: i.number >= 4
    ).fit(points)
    assert model.status_ is Status.STOPPED
    assert model.n_iter_ == 4
    assert not model.certificate_.holds(1e-6)


def test_interrupt_keeps_what_there_is(points):
    def interrupt(iteration):
        if iteration.number == 6:
            raise KeyboardInterrupt

    with pytest.warns(ConvergenceWarning, match="interrupted: this is the best iterate so far"):
        model = SDPEmbedding(
            Gaussian(sigma=1.2), solver="accelerated", rank_tol=1e-12, random_state=0, callback=interrupt
        ).fit(points)
    assert model.status_ is Status.INTERRUPTED
    best = max(iteration.objective for iteration in model.history_)
    assert model.certificate_.lower == pytest.approx(best, rel=1e-10)
    assert np.isfinite(model.transform(points)).all()


def test_interrupt_after_convergence_keeps_the_converged(points):
    """Ctrl-C while the rank is being reduced: the solution before it meets the tolerances, and is returned."""
    first = SDPEmbedding(Gaussian(sigma=2.0), solver="accelerated", random_state=0).fit(points)
    switch = next(b.n_columns for a, b in itertools.pairwise(first.history_) if b.number == a.number)

    def interrupt(iteration):
        if iteration.n_columns >= switch:
            raise KeyboardInterrupt

    model = SDPEmbedding(Gaussian(sigma=2.0), solver="accelerated", random_state=0, callback=interrupt).fit(points)
    assert model.status_ is Status.CONVERGED
    assert model.certificate_.holds(1e-6)
    np.testing.assert_allclose(model.embedding_, first.embedding_, atol=1e-5)


def test_without_certificate(points):
    seen = []
    model = SDPEmbedding(Gaussian(sigma=2.0), certify=False, random_state=0, callback=seen.append).fit(points)
    assert model.certificate_ is None
    assert model.status_ is Status.CONVERGED
    assert all(iteration.relative_gap is None for iteration in seen)
    reference = SDPEmbedding(Gaussian(sigma=2.0), random_state=0).fit(points)
    np.testing.assert_allclose(model.embedding_, reference.embedding_, atol=1e-4)
    with pytest.warns(ConvergenceWarning) as caught:
        SDPEmbedding(Gaussian(sigma=2.0), solver="power", certify=False, max_iter=2, random_state=0).fit(points)
    assert str(caught[0].message) == Status.MAX_ITER.message


def test_tighter_tolerance_is_met(points):
    model = SDPEmbedding(Gaussian(sigma=2.0), tol=1e-10, residual_tol=1e-10, random_state=0).fit(points)
    assert model.certificate_.holds(1e-10)
    assert model.history_[-1].row_residual <= 1e-10
    assert np.abs(model.transform(points) - model.embedding_).max() < 1e-9


def test_looser_residual_saves_steps_but_not_the_proof(points):
    loose = SDPEmbedding(Gaussian(sigma=1.2), residual_tol=1e-2, random_state=0).fit(points)
    tight = SDPEmbedding(Gaussian(sigma=1.2), residual_tol=1e-8, random_state=0).fit(points)
    assert loose.certificate_.holds(1e-6)
    assert tight.certificate_.holds(1e-6)
    assert loose.n_iter_ < tight.n_iter_


def test_rank_tolerance(points):
    strict = SDPEmbedding(Gaussian(sigma=1.2), rank_tol=1e-5, random_state=0).fit(points)
    assert strict.rank_ == 2
    with pytest.warns(ConvergenceWarning, match="lower rank_tol"):
        coarse = SDPEmbedding(Gaussian(sigma=1.2), rank_tol=0.6, random_state=0).fit(points)
    assert coarse.rank_ == 1  # as asked for, although no point of rank one is optimal
    assert coarse.status_ is Status.CUT_SHORT
    assert not coarse.certificate_.holds(1e-6)
    assert coarse.eigenvalues_.shape == (1,)


@pytest.mark.parametrize("rank", [2, 3, 5, 30, 500])
def test_initial_rank(rank, points):
    model = SDPEmbedding(Gaussian(sigma=2.0), initial_rank=rank, random_state=0).fit(points)
    assert model.certificate_.holds(1e-6)
    assert model.rank_ == 2


def test_verbose_logs(points, caplog, capsys):
    with caplog.at_level(logging.INFO, logger="mercer"):
        model = SDPEmbedding(Gaussian(sigma=2.0), verbose=True, random_state=0).fit(points)
    lines = [record.getMessage() for record in caplog.records if record.name.startswith("mercer")]
    steps = [line for line in lines if ", step " in line]
    assert len(steps) == len(model.history_)
    assert steps[0].startswith("climb, step 0: objective")
    assert "certified gap" in steps[-1]
    assert capsys.readouterr().out == ""
    caplog.clear()
    with caplog.at_level(logging.INFO, logger="mercer"):
        SDPEmbedding(Gaussian(sigma=2.0), random_state=0).fit(points)
    assert not caplog.records


def test_thread_count_does_not_change_the_result(points):
    with mercer.config_context(n_threads=1):
        one = SDPEmbedding(Gaussian(sigma=1.2), random_state=0).fit(points)
    with mercer.config_context(n_threads=2):
        two = SDPEmbedding(Gaussian(sigma=1.2), random_state=0).fit(points)
    np.testing.assert_allclose(two.embedding_, one.embedding_, atol=1e-9)


@pytest.mark.parametrize("solver", ["accelerated", "power"])
def test_single_precision(solver, points):
    reference = SDPEmbedding(Gaussian(sigma=2.0), random_state=0).fit(points)
    with mercer.config_context(dtype="float32"), warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # 1e-6 is at the edge of what float32 can reach
        model = SDPEmbedding(Gaussian(sigma=2.0), solver=solver, random_state=0).fit(points)
        extended = model.transform(points.copy())
    assert model.status_ in (Status.CONVERGED, Status.STALLED)
    assert model.n_iter_ < 2000
    scale = np.abs(reference.embedding_).max()
    np.testing.assert_allclose(model.embedding_, reference.embedding_, atol=1e-3 * scale)
    np.testing.assert_allclose(extended, model.embedding_, atol=1e-4 * scale)
    assert model.certificate_.lower == pytest.approx(reference.certificate_.lower, rel=1e-5)
    assert model.certificate_.lower <= reference.certificate_.upper  # its allowances are those of float32
    assert model.certificate_.upper >= reference.certificate_.lower
    assert model.certificate_.relative_gap < 1e-4


def test_what_rounding_denies_is_said(points):
    with (
        mercer.config_context(dtype="float32"),
        pytest.warns(ConvergenceWarning, match="Rounding alone keeps the bounds apart: set dtype='float64'"),
    ):
        model = SDPEmbedding(Gaussian(sigma=2.0), random_state=0).fit(points)
    assert model.status_ is Status.STALLED
    assert model.certificate_.gap_beyond_rounding <= 1e-6 < model.certificate_.relative_gap


def test_operator_is_not_kept(points):
    """A fitted model holds the training points and arrays of n × r, no operator that could hold n × n."""
    model = SDPEmbedding(Gaussian(sigma=2.0), random_state=0).fit(points)
    assert not any(isinstance(value, (DiffusionOperator, GramOperator)) for value in vars(model).values())


def test_verbose_logs_every_step(caplog):
    X, _ = three_clusters(90, 4)
    with caplog.at_level("INFO", logger="mercer"):
        model = SDPEmbedding(Gaussian(sigma=1.2), random_state=0, verbose=True).fit(X)
    lines = [record.getMessage() for record in caplog.records if record.name == "mercer"]
    steps = [line for line in lines if line.startswith("climb, step ")]
    assert len(steps) == len(model.history_)
    assert all("row residual" in line and line.endswith(" s") for line in steps)
    assert "certified gap" in steps[-1]
    phases = {line.partition(" …, after ")[0] for line in lines}
    assert {"factoring a stand-in", "solving with the stand-in", "proving the bound"} <= phases
