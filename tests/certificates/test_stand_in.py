"""Bounds from a partial Cholesky factor: against the dense λmax(M), and against factors that are not what they claim."""

from __future__ import annotations

import numpy as np
import pytest

import mercer.certificates.elliptope as elliptope_certificate
from mercer import (
    DiffusionOperator,
    Gaussian,
    GramOperator,
    LowRankOperator,
    Matern,
    SDPEmbedding,
    config_context,
    rp_cholesky,
)
from mercer.certificates import certify_elliptope
from mercer.certificates import low_rank_bound as stand_in_module
from mercer.certificates.krylov import deflate
from mercer.certificates.low_rank_bound import StandIn, bound_by_leftover_lanczos, bound_by_trace
from mercer.certificates.scaled_matrix import _least_divisor, raised_on_isolated_rows
from mercer.datasets import three_clusters
from mercer.embedding.diffusion_problem import DiffusionProblem
from mercer.linalg.lanczos import RandomStarts
from mercer.problems import Elliptope
from mercer.solvers import AcceleratedPower, Goal, solve

rng = np.random.default_rng(5)
KERNEL = Gaussian(sigma=1.2)


def _problem(kernel, X, weights=None) -> Elliptope:
    operator = DiffusionOperator(GramOperator(kernel, X, weights=weights))
    return Elliptope(operator, operator.diagonal(), removed=operator.stationary)


def _factor(kernel, X, rank, weights=None, seed=0) -> LowRankOperator:
    operator = DiffusionOperator(GramOperator(kernel, X, weights=weights), deflate=False)
    return rp_cholesky(operator, rank, seed)


def _solution(problem, residual=1e-8):
    start = problem.random_point(6, np.random.default_rng(0))
    return solve(
        problem, AcceleratedPower(), start, goal=Goal(1e-9, residual_tol=residual, max_iter=5000)
    ).point.H.astype(np.float64)


@pytest.fixture(scope="module")
def clusters():
    X, _ = three_clusters(n_per_cluster=60, n_outliers=20)
    problem = _problem(KERNEL, X)
    return X, _solution(problem)


def _pieces(n=90, rank=20, seed=0):
    """A psd A, a vector v with A - vvᵀ ≽ 0, a partial Cholesky factor of A, and a deflated M = D(A - vvᵀ)D."""
    random = np.random.default_rng(seed)
    G = random.standard_normal((n, n)) * np.exp(-np.arange(n) / 8)
    A = G @ G.T
    e = np.linalg.eigh(A)[1][:, -1]
    v = 0.99 * e * np.sqrt(e @ A @ e)
    D = random.uniform(0.5, 2.0, n)
    M = D[:, None] * (A - np.outer(v, v)) * D
    directions = np.linalg.eigh(M)[1][:, -3:] + 1e-3 * random.standard_normal((n, 3))
    pivots = random.permutation(n)[:rank]
    L = np.linalg.cholesky(A[np.ix_(pivots, pivots)])
    F = np.linalg.solve(L, A[pivots]).T
    deflated = deflate(lambda V: M @ V, directions)
    leftover = D**2 * np.maximum(np.diag(A - F @ F.T), 0)
    return M, StandIn(F, D, leftover, D * v, deflated, 1.1e-16), D[:, None] * F, D * v


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("rank", [1, 5, 20, 60])
def test_both_bounds_against_the_dense_eigenvalue(rank, seed):
    M, stand_in, F, w = _pieces(rank=rank, seed=seed)
    top = np.linalg.eigvalsh(M)[-1]
    P = np.eye(len(M)) - stand_in.deflated.Q @ stand_in.deflated.Q.T
    N = P @ (F @ F.T - np.outer(w, w)) @ P
    assert stand_in.bound() >= np.linalg.eigvalsh(N)[-1] * (1 - 1e-13)
    assert stand_in.bound() == pytest.approx(max(np.linalg.eigvalsh(N)[-1], 0.0), rel=1e-5, abs=1e-9)
    by_trace, _ = bound_by_trace(stand_in, goal=0.0)
    assert by_trace >= top
    for block in (1, 8):
        by_lanczos, _ = bound_by_leftover_lanczos(
            stand_in, RandomStarts(np.random.default_rng(seed), 1e-9, block), goal=0.0
        )
        assert top <= by_lanczos <= by_trace * (1 + 1e-10)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("rank", [20, 60])
def test_factors_of_many_columns_take_no_dense_decomposition(rank, seed, monkeypatch):
    """By Lanczos and a Cholesky factor the bound is that of the dense decompositions, to what is asked of it."""
    M, dense, *_ = _pieces(rank=rank, seed=seed)
    bound = dense.bound()
    monkeypatch.setattr(stand_in_module, "_DENSE_UP_TO", 0)
    monkeypatch.setattr(stand_in_module, "largest_of", None)
    _, many, F, w = _pieces(rank=rank, seed=seed)
    P = np.eye(len(M)) - many.deflated.Q @ many.deflated.Q.T
    exact = np.linalg.eigvalsh(P @ (F @ F.T - np.outer(w, w)) @ P)[-1]
    assert exact * (1 - 1e-13) <= many.bound() <= exact * (1 + 2e-5)
    assert many.bound() == pytest.approx(bound, rel=2e-5)
    np.testing.assert_allclose(many._values[:4], dense._values[:4], rtol=1e-6)
    assert bound_by_trace(many, goal=0.0)[0] >= np.linalg.eigvalsh(M)[-1]
    X = many.vectors(4)
    Q = np.hstack([many.deflated.Q, X])
    rest = np.eye(len(F)) - Q @ Q.T
    exact = np.linalg.eigvalsh(rest @ (F @ F.T - np.outer(w, w)) @ rest)[-1]
    assert exact * (1 - 1e-12) <= many.bound(X) <= exact * (1 + 1e-3)


@pytest.mark.parametrize("block", [1, 8])
def test_a_leftover_that_is_all_there_is(block):
    """A factor of a matrix's least entry: M is all leftover, and its norm must not be underrated."""
    values = np.concatenate([np.linspace(0.1, 1.0, 199), [4.0]])
    A = np.diag(values)
    F = np.zeros((200, 1))
    F[0] = np.sqrt(values[0])
    deflated = deflate(lambda V: A @ V, np.eye(200)[:, 50:51])
    stand_in = StandIn(F, np.ones(200), values - F[:, 0] ** 2, np.zeros(200), deflated, 1.1e-16)
    for seed in range(5):
        found, _ = bound_by_leftover_lanczos(stand_in, RandomStarts(np.random.default_rng(seed), 1e-9, block), goal=0.0)
        assert 4.0 <= found <= 9.0
    assert bound_by_trace(stand_in, goal=0.0)[0] >= 4.0


@pytest.mark.parametrize("count", [1, 4])
def test_bound_with_vectors_taken_out(count):
    _, stand_in, F, w = _pieces()
    X = stand_in.vectors(count)
    Q = np.hstack([stand_in.deflated.Q, X])
    np.testing.assert_allclose(Q.T @ Q, np.eye(3 + count), atol=1e-10)
    P = np.eye(len(F)) - Q @ Q.T
    exact = np.linalg.eigvalsh(P @ (F @ F.T - np.outer(w, w)) @ P)[-1]
    assert exact * (1 - 1e-12) <= stand_in.bound(X) <= exact * (1 + 1e-4)
    assert stand_in.next_value(count) == pytest.approx(exact, rel=1e-6)


def test_a_factor_of_high_rank_is_a_proof(clusters):
    X, H = clusters
    certificate = certify_elliptope(
        _problem(KERNEL, X), H, rng=rng, method="pivoted-cholesky", stand_in=_factor(KERNEL, X, 120), tol=1e-6
    )
    assert certificate.holds(1e-6)
    assert certificate.failure_probability == 0
    assert certificate.method == "pivoted Cholesky proof"
    assert certificate.stand_in_rank == _factor(KERNEL, X, 120).rank
    assert "no chance involved" in str(certificate)


def test_lanczos_needs_a_lower_rank_than_the_trace():
    """A slow spectrum: the trace of what is left out is many times its norm."""
    X = np.random.default_rng(0).standard_normal((400, 4))
    kernel = Matern(nu=1.5, length_scale=2.0)
    problem = _problem(kernel, X)
    H = _solution(problem)
    stand_in = _factor(kernel, X, 40)
    gaps = {
        method: certify_elliptope(problem, H, rng=rng, method=method, stand_in=stand_in, tol=1e-6)
        for method in ("pivoted-cholesky", "residual-lanczos")
    }
    assert not gaps["pivoted-cholesky"].holds(1e-6)
    assert gaps["residual-lanczos"].holds(1e-6)
    assert 0 < gaps["residual-lanczos"].failure_probability <= 1e-9


def test_columns_are_those_of_exact_products(clusters):
    X, H = clusters
    problem = _problem(KERNEL, X)
    certificate = certify_elliptope(
        problem, H, rng=rng, stand_in=_factor(KERNEL, X, 120), tol=1e-6, method="pivoted-cholesky", spectrum=False
    )
    assert certificate.n_products == problem.n_columns
    assert certificate.n_products <= H.shape[1] + 8  # the product with H, and a few vectors at most
    own = certify_elliptope(problem, H, rng=rng, tol=1e-6, method="pivoted-cholesky", spectrum=False)
    assert own.n_products >= own.stand_in_rank  # entries that it formed itself count


def test_auto_takes_the_given_stand_in_where_it_suffices(clusters, monkeypatch):
    X, H = clusters
    problem = _problem(KERNEL, X)
    certificate = certify_elliptope(problem, H, rng=rng, stand_in=_factor(KERNEL, X, 120), tol=1e-6)
    assert certificate.method == "pivoted Cholesky proof"
    poor = certify_elliptope(problem, H, rng=rng, stand_in=_factor(KERNEL, X, 3), tol=1e-6)
    assert poor.method == "factorisation proof"  # three columns prove nothing here, the matrix is small
    assert poor.holds(1e-6)
    monkeypatch.setattr(elliptope_certificate, "_DENSE_UP_TO", 0)
    without = certify_elliptope(problem, H, rng=rng, stand_in=_factor(KERNEL, X, 3), tol=1e-6)
    assert without.holds(1e-6)
    assert "Lanczos" in without.method


def test_auto_builds_its_own_where_there_is_no_matrix(clusters, no_factorisation):
    X = np.random.default_rng(0).standard_normal((400, 2))
    problem = _problem(Gaussian(sigma=2.0), X)
    certificate = certify_elliptope(problem, _solution(problem), rng=rng, tol=1e-6)
    assert certificate.method == "pivoted Cholesky proof"
    assert 0 < certificate.stand_in_rank <= 100
    assert certificate.holds(1e-6)


def test_weights(clusters):
    X, _ = clusters
    weights = np.random.default_rng(1).uniform(0.5, 3.0, len(X))
    problem = _problem(KERNEL, X, weights)
    H = _solution(problem)
    dense = certify_elliptope(problem, H, rng=rng, method="factorisation")
    for method in ("pivoted-cholesky", "residual-lanczos"):
        factored = _factor(KERNEL, X, 120, weights)
        certificate = certify_elliptope(problem, H, rng=rng, method=method, stand_in=factored, tol=1e-6)
        assert certificate.holds(1e-6)
        assert certificate.upper >= dense.lower
        assert certificate.lower <= dense.upper


@pytest.mark.parametrize("method", ["pivoted-cholesky", "residual-lanczos", "deflated-lanczos"])
def test_single_precision_is_bracketed(method):
    X, _ = three_clusters(n_per_cluster=40)
    with config_context(dtype="float32"):
        problem = _problem(Gaussian(sigma=3.0), X.astype(np.float32))
        A = problem.operator.to_dense().astype(np.float64)
        s = problem.scale.astype(np.float64)
        J = s[:, None] * (A + A.T) / 2 * s
        H = _solution(problem, 1e-5)
        unit = H / np.linalg.norm(H, axis=1)[:, None]
        objective = float(np.sum((J @ unit) * unit))
        certificate = certify_elliptope(problem, H, rng=rng, method=method, tol=1e-6)
    assert certificate.lower <= objective <= certificate.upper
    assert 1e-7 < certificate.relative_gap < 0.1


def test_factors_of_something_else_are_refused(clusters):
    X, H = clusters
    problem = _problem(KERNEL, X)

    def attempt(factored, match):
        with pytest.raises(ValueError, match=match):
            certify_elliptope(problem, H, rng=rng, stand_in=factored, tol=1e-6)

    good = _factor(KERNEL, X, 50)
    attempt(_factor(Gaussian(sigma=1.0), X, 50), "does not agree")
    attempt(_factor(KERNEL, X[::-1], 50), "does not agree")
    attempt(rp_cholesky(GramOperator(KERNEL, X), 50, 0), "does not agree")
    attempt(LowRankOperator(1.001 * good.factor, landmarks=good.landmarks), "does not agree")
    attempt(LowRankOperator(good.factor), "as rp_cholesky returns it")
    attempt(LowRankOperator(good.factor[:-1], landmarks=good.landmarks), "as rp_cholesky returns it")
    deflated = rp_cholesky(problem.operator, 50, 0)  # of Ã, not of A
    attempt(deflated, "does not agree")


def test_indefinite_problems_need_another_method(clusters):
    X, H = clusters
    operator = DiffusionOperator(GramOperator(KERNEL, X))
    problem = Elliptope(operator, operator.diagonal(), shift=1e-3, removed=operator.stationary)
    with pytest.raises(ValueError, match="positive semi-definite"):
        certify_elliptope(problem, H, rng=rng, method="pivoted-cholesky")
    assert certify_elliptope(problem, H, rng=rng, stand_in=_factor(KERNEL, X, 50), tol=1e-6).holds(1e-6)


def test_unknown_method_is_named(clusters):
    X, H = clusters
    with pytest.raises(ValueError, match="method='guess' must be one of 'auto', 'factorisation'"):
        certify_elliptope(_problem(KERNEL, X), H, rng=rng, method="guess")


@pytest.mark.parametrize("allowance", [1e-6, 1e-2, 0.5])
def test_isolated_rows_are_raised_within_the_allowance(allowance):
    rng = np.random.default_rng(0)
    y = rng.uniform(0.5, 2.0, 200)
    diagonal = y * np.where(rng.random(200) < 0.05, rng.uniform(0.97, 1.0, 200), 0.2)
    raised = raised_on_isolated_rows(y, diagonal, allowance)
    assert np.all(raised >= y)
    assert allowance / 2 < np.sum(raised - y) <= allowance * (1 + 1e-9)
    assert np.max(diagonal / raised) < np.max(diagonal / y)
    assert np.all((raised == y) | np.isclose(diagonal / raised, np.max(diagonal / raised)))  # one level for all raised


def test_every_proof_of_a_further_level_agrees():
    """On a complement, with a stand-in of PAP and without: all bounds hold the same optimum, all but one are sharp."""
    random = np.random.default_rng(0)
    X = np.concatenate([random.standard_normal((150, 3)), 3 + random.standard_normal((150, 3))])
    model = SDPEmbedding(Gaussian(1.5), n_levels=2, random_state=0).fit(X)
    Q = np.linalg.qr(model.coordinates_)[0]
    posed = DiffusionProblem.of(Gaussian(1.5), X, None, random).complement(Q)
    given = posed.cholesky()
    found = [
        certify_elliptope(posed.exact, model.levels_[1].coordinates, rng=random, method=method, stand_in=stand_in)
        for method in ("factorisation", "pivoted-cholesky", "residual-lanczos", "deflated-lanczos")
        for stand_in in (None, given)
    ]
    assert given.rank == posed.stand_in_rank > 64
    assert max(each.lower for each in found) <= min(each.upper for each in found)
    assert sorted(each.relative_gap for each in found)[-2] < 1e-6


@pytest.mark.parametrize("allowance", [0.0, 1e-3, 0.5, 30.0, 1e9])
@pytest.mark.parametrize("library", ["numpy", "torch"])
def test_the_divisor_is_the_root_of_the_sum(library, allowance):
    rng = np.random.default_rng(3)
    y, diagonal = rng.uniform(0.1, 2.0, 500), rng.uniform(-0.5, 1.0, 500)
    given = y, diagonal
    if library == "torch":
        torch = pytest.importorskip("torch")
        given = torch.as_tensor(y), torch.as_tensor(diagonal)

    def grown(c):
        return float(np.maximum(diagonal / c - y, 0).sum())

    found = _least_divisor(*given, allowance)
    if grown(1.0) > allowance:
        assert found == 1.0
    elif grown(1e-3) <= allowance:
        assert found == 1e-3
    else:
        assert grown(found) == pytest.approx(allowance, rel=1e-9, abs=0)
    assert _least_divisor(given[0], -abs(given[1]), allowance) == 1e-3
