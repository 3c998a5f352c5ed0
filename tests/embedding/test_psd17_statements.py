"""Statements of PSD17, made executable: dense NumPy and a conic solver on one side, the package on the other.

The papers' letters: K is our Ā on the sample and ā_e beyond it, ρ* our B, χ or Ξ the embedding. Where the paper slips,
the statement tested is the corrected one, and its docstring says what was printed.
"""

from __future__ import annotations

import numpy as np
import pytest
from scipy.spatial.distance import cdist

from mercer import DiffusionOperator, Gaussian, GramOperator, LowRankOperator, Precomputed, SDPEmbedding
from mercer.certificates import certify_elliptope
from mercer.linalg import least_eigenvalue
from mercer.problems import Elliptope
from mercer.solvers import AcceleratedPower, Goal, ProjectedPower, Status, solve

cvxpy = pytest.importorskip("cvxpy")

_SIGMA = 1.0
_TIGHT = {"tol_gap_abs": 1e-11, "tol_gap_rel": 1e-11, "tol_feas": 1e-11}
_NEW = np.array([[0.3, 0.2], [-1.1, 0.9], [2.0, -1.0], [0.0, 3.0], [2.0, 2.0]])


def _normalised(points, sample) -> tuple[np.ndarray, np.ndarray, float]:
    """ā_e on any points, normalised by a sample (PSD17 (5)), with the degrees m_e and the volume of the sample."""

    def k(a, b):
        return np.exp(-cdist(a, b, "sqeuclidean") / _SIGMA**2)

    m, volume = k(points, sample).sum(axis=1), k(sample, sample).sum()
    return k(points, points) / np.sqrt(np.outer(m, m)) - np.sqrt(np.outer(m, m)) / volume, m, volume


def _elliptope_by_conic(A, d) -> np.ndarray:
    """The B of max ⟨A, B⟩ subject to B ≽ 0, diag B = d, by an interior-point method; solved with unit diagonal."""
    s = np.sqrt(d)
    J = s[:, None] * A * s
    H = cvxpy.Variable(J.shape, PSD=True)
    objective = cvxpy.sum(cvxpy.multiply((J + J.T) / (2 * np.abs(J).sum()), H))
    problem = cvxpy.Problem(cvxpy.Maximize(objective), [cvxpy.diag(H) == 1])
    problem.solve(solver=cvxpy.CLARABEL, **_TIGHT)
    assert problem.status == "optimal"
    return s[:, None] * H.value * s


def _solved(problem, method) -> np.ndarray:
    """A first-order point of our solver from a random start of rank five, as an embedding: B = EEᵀ."""
    start = problem.random_point(5, np.random.default_rng(1))
    result = solve(problem, method, start, goal=Goal(1e-9, residual_tol=1e-10, max_iter=100_000))
    assert result.status is Status.CONVERGED
    return problem.scale[:, None] * result.point.H


def _slack(A, B) -> np.ndarray:
    """L(B) = ddiag(B)⁻¹ ddiag(A B) - A, the dual certificate of PSD17 (7)."""
    return np.diag(np.einsum("ij,ji->i", A, B) / np.diag(B)) - A


@pytest.fixture(scope="module", params=[0, 2], ids="sample {}".format)
def case(request):
    """A sample, its K and ρ* by the conic solver, and the fitted model."""
    X = np.random.default_rng(request.param).standard_normal((16, 2))
    K, _, _ = _normalised(X, X)
    model = SDPEmbedding(
        Gaussian(_SIGMA), tol=1e-10, residual_tol=1e-10, radius="paper", max_iter=50_000, random_state=0
    ).fit(X)
    return X, K, _elliptope_by_conic(K, np.diag(K)), model


@pytest.fixture(scope="module", params=range(len(_NEW)), ids=lambda i: f"new point {i}")
def extended(request, case):
    """K̄ of the sample and one new point (PSD17 (16)), k, κ, and ρ̄ as the model extends it."""
    X, _, _, model = case
    points = np.vstack([X, _NEW[request.param]])
    K_bar, _, _ = _normalised(points, X)
    return X, K_bar, K_bar[:-1, -1], K_bar[-1, -1], model.embedding_, model.transform(points[-1:])[0]


# --- the sample: uniqueness, mean value, conformality -------------------------------------------------------


def test_learned_matrix_is_that_of_the_conic_solver(case):
    """Not the objective alone: ρ* itself, which is unique here."""
    _, K, B, model = case
    np.testing.assert_allclose(model.embedding_ @ model.embedding_.T, B, atol=2e-5 * np.diag(K).max())
    assert model.certificate_.lower == pytest.approx(np.sum(K * B), rel=1e-8)


def test_mean_value_property(case):
    """(11): χ(x) = c(x) Σ_y K(x,y) χ(y), c(x) = K(x,x)/Σ_z K(x,z)ρ*(z,x), with 0 < c(x) ≤ 1/K(x,x) (Lemma 2).

    It follows from complementary slackness (8), where the paper cites (9). For the other matrix with this diagonal that
    is at hand, K itself, it is false: being feasible is not enough.
    """
    _, K, B, model = case
    c = np.diag(K) / np.sum(K * B, axis=1)  # from the conic solution, not from the model's
    E = model.embedding_
    np.testing.assert_allclose(c[:, None] * (K @ E), E, atol=2e-4 * np.abs(E).max())
    assert np.all(c > 0)
    assert np.all(c <= (1 + 1e-6) / np.diag(K))
    wrong = (np.diag(K) / np.sum(K * K, axis=1))[:, None] * (K @ K)
    assert np.abs(wrong - K).max() > 0.05


def _cosines(V) -> np.ndarray:
    unit = V / np.linalg.norm(V, axis=1, keepdims=True)
    return unit @ unit.T


def test_multiplication_by_K_is_conformal(case):
    """Section 2.3: Ξ ↦ KΞ keeps the angle between every pair of rows; of a matrix that is not optimal it does not."""
    _, K, _, model = case
    np.testing.assert_allclose(_cosines(K @ model.embedding_), _cosines(model.embedding_), atol=1e-6)
    factor = np.linalg.cholesky(K + 1e-13 * np.eye(len(K)))
    assert np.abs(_cosines(K @ factor) - _cosines(factor)).max() > 0.1
    shaken = model.embedding_ + 0.1 * np.roll(model.embedding_, 1, axis=0)
    assert np.abs(_cosines(K @ shaken) - _cosines(shaken)).max() > 1e-3


def test_objective_bounds_for_every_feasible_matrix(case):
    """Proposition 1: 0 ≤ ⟨ρ, K⟩ ≤ λ₀ Tr K ≤ ‖K‖_F Tr K for every feasible ρ, and ‖K‖²_F ≤ p* ≤ λ₀ Tr K.

    The printed proof shows the last bound only; the first is ⟨ρ, λ₀I - K⟩ ≥ 0.
    """
    _, K, _, model = case
    problem = Elliptope(GramOperator(Precomputed(), K), np.diag(K))
    top, trace, size = np.linalg.eigvalsh(K)[-1], np.trace(K), np.linalg.norm(K)
    for rank in (1, 2, 5):
        H = problem.random_point(rank, np.random.default_rng(rank))
        value = np.sum(problem.multipliers(H, problem.apply(H)))
        assert 0 <= value <= model.certificate_.upper <= top * trace * (1 + 1e-9)
    assert size**2 <= model.certificate_.lower <= top * trace <= size * trace


def test_bounds_meet_for_a_matrix_of_rank_one():
    """Remark 1: for K = φφᵀ the solution is K itself, and both bounds of Proposition 1 are attained."""
    phi = np.random.default_rng(0).standard_normal(30)
    problem = Elliptope(LowRankOperator(phi[:, None]), phi**2)
    E = _solved(problem, AcceleratedPower())
    np.testing.assert_allclose(E @ E.T, np.outer(phi, phi), atol=1e-8)
    certificate = certify_elliptope(problem, E, rng=np.random.default_rng(2))
    assert certificate.lower == pytest.approx(np.sum(phi**2) ** 2, rel=1e-12)
    assert certificate.holds(1e-10)


# --- one new point: Propositions 3, 4, 5, 8 and Remark 6 ----------------------------------------------------


def test_extended_kernel_is_positive_semidefinite():
    """Remark 6, section 7 and Appendix C call ā_e indefinite beyond the sample. It is psd on all of X.

    Its quadratic form is ‖f‖² - ⟨f, μ⟩²/‖μ‖² with f = Σ cᵢ k(xᵢ,·)/√mᵢ and μ = Σ_Ω k(z,·): Cauchy–Schwarz. The sum that
    Remark 6 takes for negative, Σ √m K √m over Ω ∪ {x̄}, is k(x̄,x̄) - m(x̄)²/vol ≥ 0: the row sums there run over Ω.
    """
    rng = np.random.default_rng(3)
    for n, spread in ((1, 1.0), (5, 2.0), (30, 0.7)):
        X = rng.standard_normal((n, 2))
        new = np.vstack([X[:3], X[0] + 1e-3, spread * rng.standard_normal((25, 2)), [[5.0, 5.0]]])
        points = np.vstack([X, new])
        K_e, m, volume = _normalised(points, X)
        values = np.linalg.eigvalsh(np.sqrt(np.outer(m, m)) * K_e)  # congruent to K_e, without its huge entries
        assert values[0] > -1e-13 * values[-1]
        values = np.linalg.eigvalsh(K_e)
        assert values[0] > -1e-13 * values[-1]
        for i in range(n, len(points)):
            part = np.append(np.arange(n), i)
            remark = np.sqrt(m[part]) @ K_e[np.ix_(part, part)] @ np.sqrt(m[part])
            assert remark == pytest.approx(1 - m[i] ** 2 / volume, rel=1e-9, abs=1e-12)
            assert remark >= -1e-12


def test_no_point_has_more_affinity_than_the_sample_has_volume(case):
    """Propositions 5 and 8: m(x)² ≤ k(x,x) vol for every x, so that d(x) ≥ 0 everywhere: novelty ≥ -½ log vol."""
    X, _, _, model = case
    _, _, volume = _normalised(X, X)
    grid = np.stack(np.meshgrid(np.linspace(-4, 4, 41), np.linspace(-4, 4, 41)), axis=-1).reshape(-1, 2)
    assert model.novelty(np.vstack([grid, X, X.mean(axis=0, keepdims=True)])).min() >= -0.5 * np.log(volume) - 1e-12


def test_extension_of_one_point_is_optimal(extended):
    """Proposition 3: with u = Ξ on the sample, u(x̄) = √κ g/‖g‖, g = Σ K(x̄,y)Ξ(y), maximises Σ K(x,y) u(x)·u(y).

    The conic solver is given more room than the paper: any psd extension of ρ* with the diagonal entry κ at x̄, which is
    [[I, u], [uᵀ, κ]] ≽ 0 for b = Ξu (Proposition 4). It finds the same vector, and the value of Proposition 9 (i).
    """
    _, K_bar, k, kappa, E, found = extended
    u = cvxpy.Variable(E.shape[1])
    g = E.T @ k
    block = cvxpy.bmat([[np.eye(E.shape[1]), u[:, None]], [u[None, :], np.array([[1.0]])]])
    problem = cvxpy.Problem(cvxpy.Maximize((g / np.linalg.norm(g)) @ u), [block >> 0])  # in units of √κ
    problem.solve(solver=cvxpy.CLARABEL, **_TIGHT)
    np.testing.assert_allclose(found / np.sqrt(kappa), u.value, atol=1e-5)
    all_of_it = np.vstack([E, found])
    value = np.sum(K_bar * (all_of_it @ all_of_it.T))
    best = np.sum(K_bar[:-1, :-1] * (E @ E.T)) + 2 * np.sqrt(kappa) * np.linalg.norm(g) * problem.value + kappa**2
    assert value == pytest.approx(best, rel=1e-8)


def test_extension_of_several_points_is_not_optimal_together(case):
    """After Proposition 3: 'this optimality property is lost when the extension is done on several points'."""
    X, _, _, model = case
    new = np.array([[0.2, 0.1], [0.3, -0.4]])
    K_bar, _, _ = _normalised(np.vstack([X, new]), X)
    cross, own = K_bar[-2:, :-2] @ model.embedding_, K_bar[-2:, -2:]
    r = model.rank_
    U, S = cvxpy.Variable((2, r)), cvxpy.Variable((2, 2), symmetric=True)
    joint = cvxpy.Problem(
        cvxpy.Maximize(2 * cvxpy.sum(cvxpy.multiply(cross, U)) + cvxpy.sum(cvxpy.multiply(own, S))),
        [cvxpy.bmat([[np.eye(r), U.T], [U, S]]) >> 0, cvxpy.diag(S) == np.diag(own)],
    )
    joint.solve(solver=cvxpy.CLARABEL, **_TIGHT)
    alone = model.transform(new)
    value = 2 * np.sum(cross * alone) + np.sum(own * (alone @ alone.T))
    assert value < joint.value * (1 - 1e-6)


@pytest.mark.parametrize("rank", [1, 3, 6])
@pytest.mark.parametrize("seed", [0, 1])
def test_psd_extensions_of_a_psd_matrix(rank, seed):
    """Proposition 4: [[ρ, b], [bᵀ, s]] ≽ 0 iff b = Σ b_ℓ χ_ℓ lies in the range of ρ and s ≥ Σ b_ℓ² = bᵀρ⁺b.

    At s = Σ b_ℓ² the extended matrix is that of the extended eigenvectors, so its rank stays. (The printed proof has
    ≤ 0 where the part of b outside the range needs < 0.)
    """
    rng = np.random.default_rng(seed)
    n = 6
    factor = rng.standard_normal((n, rank))
    rho = factor @ factor.T
    values, vectors = np.linalg.eigh(rho)
    chi = vectors[:, -rank:] * np.sqrt(values[-rank:])
    coefficients = rng.standard_normal(rank)
    b, s_min = chi @ coefficients, float(np.sum(coefficients**2))
    assert s_min == pytest.approx(b @ np.linalg.pinv(rho, rcond=1e-10) @ b, rel=1e-9)

    def least(b, s):
        matrix = np.block([[rho, b[:, None]], [b[None, :], np.array([[s]])]])
        return np.linalg.eigvalsh(matrix)[0] / np.trace(matrix)

    assert least(b, s_min) > -1e-14
    assert least(b, s_min * (1 + 1e-6)) > -1e-14
    assert least(b, s_min * (1 - 1e-6)) < -1e-10
    if rank < n:
        outside = b + 0.1 * np.linalg.norm(b) * vectors[:, 0]
        assert all(least(outside, s) < -1e-10 for s in (s_min, 10 * s_min, 1e3 * s_min))
    both = np.vstack([chi, coefficients])
    np.testing.assert_allclose(both @ both.T, np.block([[rho, b[:, None]], [b[None, :], np.array([[s_min]])]]))
    if rank == n:  # the conic solver needs an interior
        s = cvxpy.Variable((1, 1))
        problem = cvxpy.Problem(cvxpy.Minimize(cvxpy.sum(s)), [cvxpy.bmat([[rho, b[:, None]], [b[None, :], s]]) >> 0])
        problem.solve(solver=cvxpy.CLARABEL)
        assert problem.value == pytest.approx(s_min, rel=1e-6)


def test_extension_has_the_least_trace(extended):
    """After Proposition 4: b = √(κ/kᵀρ*k) ρ*k, and κ is the least s for which ρ̄(b, s) is psd: the rank stays."""
    _, _, k, kappa, E, found = extended
    rho = E @ E.T
    b = np.sqrt(kappa / (k @ rho @ k)) * (rho @ k)
    np.testing.assert_allclose(E @ found, b, atol=1e-8 * np.abs(b).max())
    assert found @ found == pytest.approx(kappa, rel=1e-9)
    assert b @ np.linalg.pinv(rho, rcond=1e-8) @ b == pytest.approx(kappa, rel=1e-7)


# --- the extended problem: Proposition 9 --------------------------------------------------------------------


def test_value_and_slack_of_the_extended_problem(extended):
    """Proposition 9, for ρ̄ the extended matrix and L̄ = ddiag(ρ̄)⁻¹ddiag(K̄ρ̄) - K̄.

    (i) ⟨ρ̄, K̄⟩ = ⟨ρ*, K⟩ + 2√κ √(kᵀρ*k) + κ². (ii) ⟨ρ̄, L̄⟩ = 0. (iii) v̄ᵀL̄v̄ ≥ vᵀ(ddiag(ρ*)⁻¹ddiag(K̃ρ*) - K̃)v with
    K̃ = K + √(κ/kᵀρ*k) kkᵀ, equality at v_s = √(κ/kᵀρ*k) kᵀv. (The printed proof of (iii) has ≤ for ≥.)
    """
    _, K_bar, k, kappa, E, found = extended
    K, rho = K_bar[:-1, :-1], E @ E.T
    all_of_it = np.vstack([E, found])
    rho_bar = all_of_it @ all_of_it.T
    size = np.sqrt(k @ rho @ k)
    assert np.sum(rho_bar * K_bar) == pytest.approx(np.sum(rho * K) + 2 * np.sqrt(kappa) * size + kappa**2, rel=1e-9)
    L_bar = _slack(K_bar, rho_bar)
    assert np.sum(rho_bar * L_bar) == pytest.approx(0.0, abs=1e-9 * np.sum(rho_bar * K_bar))
    rounding = 1e-12 * max(kappa, 1.0)  # of κ, which is subtracted
    assert L_bar[-1, -1] == pytest.approx(size / np.sqrt(kappa), abs=rounding)
    reduced = _slack(K + np.sqrt(kappa) / size * np.outer(k, k), rho)
    rng = np.random.default_rng(0)
    for v in rng.standard_normal((20, len(K))):
        bound = v @ reduced @ v
        best = np.append(v, np.sqrt(kappa) / size * (k @ v))
        error = 1e-8 + rounding * best[-1] ** 2
        assert best @ L_bar @ best == pytest.approx(bound, abs=error)
        for step in (-1.0, -1e-2, 1e-2, 1.0):
            other = np.append(v, best[-1] * (1 + step))
            assert other @ L_bar @ other >= bound - (1 + step) ** 2 * error


def _extended_problem(K_bar) -> Elliptope:
    shift = 1.1 * max(0.0, -np.linalg.eigvalsh(K_bar)[0]) * np.diag(K_bar).max()
    return Elliptope(GramOperator(Precomputed(), K_bar), np.diag(K_bar).copy(), shift=shift)


def test_extension_does_not_solve_the_extended_problem_in_general(extended):
    """Appendix C: ρ̄ need not solve the problem on N + 1 points; it does iff ρ* is optimal for K̃ too, by (iii).

    Judged three ways: by the slack, by the conic solver and by our certificate, which must not pass a point that is
    short of the optimum.
    """
    _, K_bar, k, kappa, E, found = extended
    all_of_it = np.vstack([E, found])
    value = np.sum(K_bar * (all_of_it @ all_of_it.T))
    optimum = np.sum(K_bar * _elliptope_by_conic(K_bar, np.diag(K_bar)))
    short = 1 - value / optimum
    assert short > 1e-7  # at all of these points
    K_tilde = K_bar[:-1, :-1] + np.sqrt(kappa / (k @ E @ E.T @ k)) * np.outer(k, k)
    assert np.linalg.eigvalsh(_slack(K_tilde, E @ E.T))[0] < -1e-7
    certificate = certify_elliptope(_extended_problem(K_bar), all_of_it, rng=np.random.default_rng(0))
    assert certificate.lower == pytest.approx(value, rel=1e-9)
    assert certificate.upper >= optimum * (1 - 1e-8)
    assert not certificate.holds(0.99 * short - 1e-8)


@pytest.mark.parametrize("i", [0, 7])
@pytest.mark.parametrize("factor", [0.05, 1.0])
def test_extension_solves_the_extended_problem_where_one_point_alone_is_seen(case, i, factor):
    """Appendix C's academic case: k = c eᵢ makes kkᵀ diagonal, and ρ̄ is the solution on N + 1 points."""
    _, K, _, model = case
    E, n, kappa = model.embedding_, len(K), 0.3
    k = factor * np.eye(n)[i]
    K_bar = np.block([[K, k[:, None]], [k[None, :], np.array([[kappa]])]])
    g = E.T @ k
    all_of_it = np.vstack([E, np.sqrt(kappa) * g / np.linalg.norm(g)])
    assert np.linalg.eigvalsh(_slack(K_bar, all_of_it @ all_of_it.T))[0] > -1e-8
    optimum = np.sum(K_bar * _elliptope_by_conic(K_bar, np.diag(K_bar)))
    assert np.sum(K_bar * (all_of_it @ all_of_it.T)) == pytest.approx(optimum, rel=1e-7)
    assert certify_elliptope(_extended_problem(K_bar), all_of_it, rng=np.random.default_rng(0)).holds(1e-7)


# --- the closed form of Lemma 3 -----------------------------------------------------------------------------


def _nonnegative() -> dict:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((40, 2))
    indefinite = rng.uniform(size=(30, 30))
    indefinite = (indefinite + indefinite.T) / 2
    np.fill_diagonal(indefinite, rng.uniform(0.5, 1.0, 30))
    return {
        "A, before the stationary part is removed": DiffusionOperator(GramOperator(Gaussian(_SIGMA), X), deflate=False),
        "a factor without negative entries": LowRankOperator(rng.uniform(0.1, 1.0, (50, 3))),
        "indefinite": GramOperator(Precomputed(), indefinite),
    }


@pytest.mark.parametrize("name", list(_nonnegative()))
@pytest.mark.parametrize("method", [AcceleratedPower, ProjectedPower])
def test_nonnegative_matrix_has_a_closed_form(name, method):
    """Lemma 3: for K ≥ 0 entrywise, ρ_K = √K(x,x)√K(y,y) is optimal; K need not even be psd.

    The solver, from a random start of rank five, must come to rank one and to that matrix; p* = Σ K(x,y)√K(x,x)√K(y,y).
    """
    operator = _nonnegative()[name]
    K = operator.to_dense()
    assert K.min() >= 0
    d = np.diag(K)
    shift = 1.1 * max(0.0, -least_eigenvalue(operator, rng=np.random.default_rng(0))) * d.max()
    problem = Elliptope(operator, operator.diagonal(), shift=shift)
    closed = np.sqrt(np.outer(d, d))
    ones = certify_elliptope(problem, np.ones((len(K), 1)), rng=np.random.default_rng(0))
    assert ones.holds(1e-9)
    assert ones.lower == pytest.approx(np.sum(K * closed), rel=1e-11)
    np.testing.assert_allclose(_slack(K, closed) @ closed, 0.0, atol=1e-11)
    E = _solved(problem, method())
    np.testing.assert_allclose(E @ E.T, closed, atol=1e-7 * d.max())


def test_closed_form_is_stationary_but_not_optimal_for_the_deflated_matrix(case):
    """Lemma 3 (i) holds for any K, also for Ā, which has entries of both signs: L(ρ_K)ρ_K = 0, and L is not psd.

    Ā annihilates the positive vector v₀, so it is never non-negative. All rows in one place is a first-order point with
    residual zero: only the certificate tells it from a solution.
    """
    X, K, B, _ = case
    assert K.min() < 0
    closed = np.sqrt(np.outer(np.diag(K), np.diag(K)))
    L = _slack(K, closed)
    np.testing.assert_allclose(L @ closed, 0.0, atol=1e-12)
    assert np.linalg.eigvalsh(L)[0] < -1e-2
    operator = DiffusionOperator(GramOperator(Gaussian(_SIGMA), X))
    problem = Elliptope(operator, operator.diagonal(), removed=operator.stationary)
    certificate = certify_elliptope(problem, np.ones((len(X), 1)), rng=np.random.default_rng(0))
    assert certificate.complementarity < 1e-8
    assert certificate.lower == pytest.approx(np.sum(K * closed), rel=1e-9)
    assert certificate.lower < 0.9 * np.sum(K * B) < certificate.upper
    assert not certificate.holds(0.1)


# --- the nuclear norm: Proposition 7 ------------------------------------------------------------------------


@pytest.mark.parametrize("root", ["orthogonal columns", "Cholesky"])
def test_nuclear_norm_minimisation(case, root):
    """Proposition 7, PSD22 Proposition 3.1: with I - K = ΣΣᵀ, X* = ΣᵀBΣ solves min ‖X‖_* s.t. X ≽ 0, diag(Σ⁻ᵀXΣ⁻¹) = d.

    It has the rank of B, and the value Tr K - p*. PSD17 prints 'orthogonal rows', which would make I - K diagonal; PSD22
    has 'orthogonal columns', Σ = UD^½; the proof needs neither, so a triangular Σ is tried too.
    """
    _, K, _, model = case
    n = len(K)
    values, U = np.linalg.eigh(np.eye(n) - K)
    sigma = U * np.sqrt(values) if root == "orthogonal columns" else np.linalg.cholesky(np.eye(n) - K)
    inverse = np.linalg.inv(sigma)
    X = cvxpy.Variable((n, n), PSD=True)
    scale = np.sqrt(np.diag(K))
    constraint = cvxpy.diag((inverse / scale).T @ X @ (inverse / scale)) == 1
    problem = cvxpy.Problem(cvxpy.Minimize(cvxpy.normNuc(X)), [constraint])
    problem.solve(solver=cvxpy.CLARABEL, tol_gap_abs=1e-7, tol_gap_rel=1e-7, tol_feas=1e-7)
    assert problem.status == "optimal"
    assert problem.value == pytest.approx(np.trace(K) - model.certificate_.lower, rel=1e-6)
    E = model.embedding_
    np.testing.assert_allclose(sigma.T @ E @ E.T @ sigma, X.value, atol=1e-3 * np.abs(X.value).max())
    spectrum = np.linalg.eigvalsh(X.value)[::-1] / np.trace(X.value)
    assert np.sum(spectrum > 1e-4) == model.rank_ == np.linalg.matrix_rank(sigma.T @ E)
