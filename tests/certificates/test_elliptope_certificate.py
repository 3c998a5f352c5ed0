"""The parts of a certificate against dense recomputation: multipliers, λmax(M), slack, complementarity, rounding."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

import mercer
import mercer.certificates.elliptope as elliptope_certificate
import mercer.certificates.matrix_free as matrix_free
from mercer import DiffusionOperator, Gaussian, GramOperator, Laplacian, Linear, Precomputed, SDPEmbedding
from mercer.certificates import Certificate, CrossedBoundsError, certify_elliptope
from mercer.certificates.allowances import Allowances
from mercer.certificates.scaled_matrix import ScaledMatrix
from mercer.datasets import three_clusters, two_moons
from mercer.problems import Elliptope
from mercer.solvers import AcceleratedPower, Goal, solve


def _problem(kernel, X, **kwargs) -> Elliptope:
    operator = DiffusionOperator(GramOperator(kernel, X))
    return Elliptope(operator, operator.diagonal(), removed=operator.stationary, **kwargs)


def _dense_J(kernel, X, scale, dtype=np.float64) -> np.ndarray:
    """J in a wider arithmetic from the kernel's values in float64."""
    K = kernel(X).astype(dtype)
    m = K.sum(axis=1)
    A = K / np.sqrt(np.outer(m, m)) - np.sqrt(np.outer(m, m)) / m.sum()
    return np.outer(scale.astype(dtype), scale.astype(dtype)) * A


@pytest.fixture(scope="module")
def clusters():
    X, _ = three_clusters(n_per_cluster=90, n_outliers=30)  # 300 points: above the size for dense eigenvalues
    return X, SDPEmbedding(Gaussian(sigma=1.2), random_state=0).fit(X)


def test_lower_bound_is_the_objective(clusters):
    X, model = clusters
    J = _dense_J(Gaussian(sigma=1.2), X, np.sqrt(model.diagonal_))
    H = model.embedding_ / np.sqrt(model.diagonal_)[:, None]
    assert model.certificate_.lower == pytest.approx(np.sum((J @ H) * H), rel=1e-10)


def test_upper_bound_is_the_largest_eigenvalue_of_M(clusters, method):
    """Upper = λmax(Diag(z)^-½ J Diag(z)^-½) Σz, tight to a factor, at points good and less good."""
    X, model = clusters
    problem = _problem(Gaussian(sigma=1.2), X)
    J = _dense_J(Gaussian(sigma=1.2), X, problem.scale)
    H = model.embedding_
    for shake in (0.0, 1e-3):
        point = H + shake * np.abs(H).max() * np.random.default_rng(0).standard_normal(H.shape)
        unit = point / np.linalg.norm(point, axis=1)[:, None]
        z = np.sum((J @ unit) * unit, axis=1)
        assert z.min() > 0
        top = np.linalg.eigvalsh(J / np.sqrt(np.outer(z, z)))[-1]
        certificate = certify_elliptope(problem, point, rng=np.random.default_rng(1))
        assert certificate.upper >= model.certificate_.lower  # no point is better than that
        assert certificate.upper <= (1 + 10 * (top - 1) + 1e-10) * z.sum()  # the gap that there is, but for a factor


def test_least_eigenvalues_are_those_of_the_slack(clusters):
    X, model = clusters
    A = DiffusionOperator(GramOperator(Gaussian(sigma=1.2), X)).to_dense()
    E, d = model.embedding_, model.diagonal_
    z = np.sum(E * (A @ E), axis=1)
    expected = np.linalg.eigvalsh(np.diag(z / d) - A)[:6]
    problem = _problem(Gaussian(sigma=1.2), X)
    found = certify_elliptope(problem, E, rng=np.random.default_rng(0), method="factorisation").least_eigenvalues
    np.testing.assert_allclose(found, expected, atol=1e-10)
    assert np.all(np.abs(expected[: model.rank_]) < 1e-6)  # zero as often as the solution has rank
    assert expected[model.rank_] > 1e-3  # and not more often: the solution is unique
    assert expected[0] > -1e-6  # the slack is positive semi-definite


@pytest.mark.parametrize("way", ["pivoted-cholesky", "residual-lanczos", "deflated-lanczos"])
def test_least_eigenvalues_without_the_matrix_are_estimates_from_above(way, clusters):
    X, model = clusters
    problem = _problem(Gaussian(sigma=1.2), X)
    E, A = model.embedding_, problem.operator.to_dense()
    expected = np.linalg.eigvalsh(np.diag(np.sum(E * (A @ E), axis=1) / model.diagonal_) - A)[:6]
    found = certify_elliptope(problem, E, rng=np.random.default_rng(0), method=way, tol=1e-6).least_eigenvalues
    assert found.shape == (6,)
    assert np.all(found >= expected - 1e-10)
    np.testing.assert_allclose(found[: model.rank_], expected[: model.rank_], atol=1e-8)
    np.testing.assert_allclose(found[model.rank_ :], expected[model.rank_ :], rtol=0.3)


def test_least_eigenvalues_of_a_poor_point_are_negative(clusters):
    X, _ = clusters
    problem = _problem(Gaussian(sigma=1.2), X)
    H = problem.random_point(4, np.random.default_rng(0))
    certificate = certify_elliptope(problem, H, rng=np.random.default_rng(0))
    A = problem.operator.to_dense()
    z = np.sum(H * problem.apply(H), axis=1)
    np.testing.assert_allclose(
        certificate.least_eigenvalues, np.linalg.eigvalsh(np.diag(z / problem.diagonal) - A)[:6], atol=1e-9
    )
    assert certificate.least_eigenvalues[0] < -0.1


@pytest.mark.parametrize("n", [100, 300])
def test_least_eigenvalues_with_multiplicity(n):
    """Points of a circle: the symmetry makes eigenvalues double, which Lanczos from one vector may overlook."""
    angle = 2 * np.pi * np.arange(n) / n
    X = np.stack([np.cos(angle), np.sin(angle)], axis=1)
    model = SDPEmbedding(Gaussian(sigma=1.0), random_state=0).fit(X)
    A = DiffusionOperator(GramOperator(Gaussian(sigma=1.0), X)).to_dense()
    z = np.sum(model.embedding_ * (A @ model.embedding_), axis=1)
    expected = np.linalg.eigvalsh(np.diag(z / model.diagonal_) - A)[:6]
    assert model.rank_ == 2
    assert expected[3] - expected[2] < 1e-6  # double
    problem = _problem(Gaussian(sigma=1.0), X)
    for way in ("factorisation", "pivoted-cholesky", "deflated-lanczos"):
        found = certify_elliptope(problem, model.embedding_, rng=np.random.default_rng(0), method=way, block=8)
        np.testing.assert_allclose(found.least_eigenvalues, expected, atol=1e-9 if way == "factorisation" else 1e-4)


def test_complementarity(clusters, method):
    X, model = clusters
    problem = _problem(Gaussian(sigma=1.2), X)
    A = problem.operator.to_dense()
    for H, least, most in (
        (model.embedding_, 0.0, 1e-5),
        (problem.random_point(4, np.random.default_rng(0)), 0.1, 100.0),
    ):
        certificate = certify_elliptope(problem, H, rng=np.random.default_rng(0))
        unit = H / np.linalg.norm(H, axis=1)[:, None]
        E = problem.scale[:, None] * unit
        z = np.sum(E * (A @ E), axis=1)
        expected = np.linalg.norm((z / problem.diagonal)[:, None] * E - A @ E) / np.linalg.norm(A @ E)
        assert certificate.complementarity == pytest.approx(expected, rel=1e-6, abs=1e-9)
        assert least <= certificate.complementarity <= most


def test_small_matrix_gives_all_its_eigenvalues():
    certificate = SDPEmbedding(Gaussian(sigma=1.0), random_state=0).fit([[0.0], [1.0], [3.0]]).certificate_
    assert certificate.least_eigenvalues.shape == (3,)


def test_bounds_hold_before_scaling_of_rows(clusters):
    X, model = clusters
    problem = _problem(Gaussian(sigma=1.2), X)
    lengths = np.random.default_rng(0).uniform(0.1, 10, len(X))[:, None]
    plain = certify_elliptope(problem, model.embedding_, rng=np.random.default_rng(0))
    scaled = certify_elliptope(problem, lengths * model.embedding_, rng=np.random.default_rng(0))
    assert scaled.lower == pytest.approx(plain.lower, rel=1e-13)
    assert scaled.upper == pytest.approx(plain.upper, rel=1e-10)


@pytest.mark.parametrize("sigma", [1.0, 1e2, 1e3, 1e4])
def test_bounds_hold_where_the_subtraction_cancels(sigma, method):
    """A wide kernel loses digits in A - vvᵀ: the bounds must say so. Judged in extended precision from the same kernel values."""
    X = np.random.default_rng(0).standard_normal((60, 2))
    kernel = Gaussian(sigma=sigma)
    problem = _problem(kernel, X)
    J = _dense_J(kernel, X, problem.scale, np.longdouble)
    size = np.abs(J).max()
    exact = Elliptope(_map((J / size).astype(np.float64)), np.ones(60))
    for seed in range(3):
        rng = np.random.default_rng(seed)
        result = solve(
            exact,
            AcceleratedPower(),
            exact.random_point(6, rng),
            goal=Goal(1e-11, residual_tol=1e-11, max_iter=3000),
            certify=lambda at, rng=rng: certify_elliptope(exact, at.H, rng=rng, spectrum=False),
        )
        unit = (result.point.H / np.linalg.norm(result.point.H, axis=1)[:, None]).astype(np.longdouble)
        objective = float(np.sum((J @ unit) * unit))
        certificate = certify_elliptope(problem, result.point.H, rng=rng)
        assert certificate.lower <= objective
        assert certificate.upper >= objective
        digits_lost = (sigma**2) * 4e-13
        assert certificate.relative_gap < 1e-9 + digits_lost


def _map(A: np.ndarray):
    return GramOperator(Precomputed(), A)


@pytest.mark.parametrize("each_row", [False, True])
def test_lanczos_is_told_how_indefinite_the_matrix_is(lanczos, monkeypatch, each_row):
    """Its bound holds for psd matrices, so the lift t must make M + tI psd, at any point."""
    K = Gaussian(sigma=1.5)(np.random.default_rng(0).standard_normal((50, 2)))
    operator = DiffusionOperator(GramOperator(Precomputed(), np.where(K > 0.3, K, 0.0)))
    s = np.sqrt(operator.diagonal())
    J = s[:, None] * operator.to_dense() * s
    least = np.linalg.eigvalsh(J)[0]
    assert least < 0
    shift = -np.linalg.eigvalsh(operator.to_dense())[0] * operator.diagonal() if each_row else -least
    problem = Elliptope(operator, operator.diagonal(), shift=shift, removed=operator.stationary)
    seen = []
    original = matrix_free.bound_by_lanczos

    def spy(deflated, starts, *, lift, **kwargs):
        M = deflated.multiply(np.eye(50))
        seen.append((lift, np.linalg.eigvalsh((M + M.T) / 2)[0]))
        return original(deflated, starts, lift=lift, **kwargs)

    monkeypatch.setattr(matrix_free, "bound_by_lanczos", spy)
    for seed in range(3):
        rng = np.random.default_rng(seed)
        certify_elliptope(problem, problem.random_point(3, rng), rng=rng)
    assert len(seen) >= 3
    assert all(-smallest <= lift * (1 + 1e-12) for lift, smallest in seen)
    assert all(smallest < 0 for _, smallest in seen)


@pytest.mark.parametrize("additive", [False, True])
def test_the_lift_of_shifts_of_single_rows_is_reached(additive, monkeypatch):
    """Rows weigh between one and 10⁻⁶, and multipliers as much: the lift is that of the operator, and no less."""
    rng = np.random.default_rng(3)
    A = rng.standard_normal((40, 40))
    A, d = (A + A.T) / 8, 10.0 ** -rng.uniform(0, 6, 40)
    c = -np.linalg.eigvalsh(A)[0]
    problem = Elliptope(_map(A), d, shift=c * d)
    H = problem.random_point(3, rng)
    J = np.sqrt(d)[:, None] * A * np.sqrt(d)
    if additive:
        seen = []
        monkeypatch.setattr(
            matrix_free, "bound_by_lanczos", lambda *args, lift, **kwargs: seen.append(lift) or (1.0, args[0])
        )
        certify_elliptope(problem, H, rng=rng, method="deflated-lanczos", spectrum=False)
        z = np.sum(H * (J @ H), axis=1)
        assert -np.linalg.eigvalsh(J - np.diag(z))[0] <= seen[-1] <= c * d.max() + abs(z).max()
        return
    scaled = ScaledMatrix(problem, Allowances(problem), d, H, J @ H)
    least = np.linalg.eigvalsh(scaled.multiply(np.eye(40)))[0]
    assert least == pytest.approx(-c, rel=1e-9)
    assert c <= scaled.lift <= c * (1 + 1e-9)
    too_small = ScaledMatrix(Elliptope(_map(A), d, shift=0.99 * c * d), Allowances(problem), d, H, J @ H)
    assert too_small.lift < -least  # so that a shift that is too small shows here


def test_lanczos_states_its_probability_and_its_products(clusters, lanczos):
    X, model = clusters
    problem = _problem(Gaussian(sigma=1.2), X)
    certificate = certify_elliptope(problem, model.embedding_, rng=np.random.default_rng(0), failure_probability=1e-6)
    assert 1e-7 < certificate.failure_probability <= 1e-6
    assert certificate.n_products == problem.n_columns
    assert 16 < certificate.n_products < 200
    assert "wrong with probability 3e-07" in str(certificate)


def test_factorisation_involves_no_chance(clusters):
    X, model = clusters
    problem = _problem(Gaussian(sigma=1.2), X)
    a, b = (certify_elliptope(problem, model.embedding_, rng=np.random.default_rng(seed)) for seed in (0, 1))
    assert a.failure_probability == 0
    assert "no chance involved" in str(a)
    assert a.lower == b.lower
    assert a.upper == pytest.approx(b.upper, rel=1e-11)


@pytest.mark.parametrize(
    ("kernel", "X"),
    [
        (Gaussian(sigma=1.0), np.repeat([[0.0, 0.0], [1.0, 0.0], [0.0, 2.0], [3.0, 1.0]], 60, axis=0)),
        (Gaussian(sigma=1.0), np.repeat([[0.0], [1.0]], 100, axis=0)),
        (Linear(), np.random.default_rng(0).uniform(0.5, 2.0, (200, 2))),
    ],
    ids=["four places", "two places", "rank two"],
)
def test_lanczos_on_matrices_of_few_eigenvalues(kernel, X, lanczos):
    """The Krylov space closes after a few steps; that is an answer, not a failure."""
    model = SDPEmbedding(kernel, random_state=0).fit(X)
    problem = _problem(kernel, X)
    J = _dense_J(kernel, X, problem.scale)
    E = model.embedding_ / np.linalg.norm(model.embedding_, axis=1)[:, None]
    z = np.sum((J @ E) * E, axis=1)
    top = np.linalg.eigvalsh(J / np.sqrt(np.outer(z, z)))[-1]
    assert model.certificate_.method.startswith("deflated Lanczos")
    assert model.certificate_.upper >= top * z.sum() * (1 - 1e-12)
    assert model.certificate_.holds(1e-6)


def test_points_without_room_take_no_part(method):
    """d(x) = 0 for some rows: a linear kernel and a point on the mean direction. B vanishes there, the rest is certified."""
    X = np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0], [2.0, 1.0], [1.0, 2.0]])
    problem = _problem(Linear(), X)
    assert problem.active.sum() == 4
    model = SDPEmbedding(Linear(), random_state=0).fit(X)
    assert np.all(model.embedding_[2] == 0)
    assert model.certificate_.holds(1e-6)
    np.testing.assert_allclose(np.sum(model.embedding_**2, axis=1), model.diagonal_, atol=1e-15)


def test_memory_limit_switches_to_products():
    X, _ = two_moons(n_points=120)
    with mercer.config_context(memory_limit="200 kB"):  # half of it would leave too few vectors to prove much
        model = SDPEmbedding(Gaussian(sigma=0.5), random_state=0).fit(X)
    assert model.certificate_.method != "factorisation proof"
    dense = SDPEmbedding(Gaussian(sigma=0.5), random_state=0).fit(X)
    assert model.certificate_.upper >= dense.certificate_.lower
    assert dense.certificate_.upper >= model.certificate_.lower


def test_single_precision_claims_no_more_than_it_can_know(method):
    """Rounding of float32 products is part of the Lanczos bound; both brackets hold the optimum of the float32 matrix."""
    X, _ = three_clusters(n_per_cluster=40)
    with mercer.config_context(dtype="float32"):
        operator = DiffusionOperator(GramOperator(Gaussian(sigma=3.0), X.astype(np.float32)))
        problem = Elliptope(operator, operator.diagonal(), removed=operator.stationary)
        A = operator.to_dense().astype(np.float64)
        s = problem.scale.astype(np.float64)
        exact = Elliptope(_map(s[:, None] * (A + A.T) / 2 * s), np.ones(len(X)))
        result = solve(
            exact,
            AcceleratedPower(),
            exact.random_point(6, np.random.default_rng(0)),
            goal=Goal(1e-12, residual_tol=1e-11, max_iter=20_000),
        )
        optimum = result.history[-1].objective
        certificate = certify_elliptope(problem, result.point.H, rng=np.random.default_rng(1))
    assert certificate.lower <= optimum * (1 + 1e-10)
    assert certificate.upper >= optimum * (1 - 1e-10)
    if method == "lanczos":
        assert certificate.relative_gap > 1e-7  # a product in float32 cannot know more
    assert certificate.relative_gap < 5e-3


def test_certificates_do_not_import_solvers():
    code = "import sys, mercer.certificates; sys.exit(any(m.startswith('mercer.solvers') for m in sys.modules))"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


# --- the record itself ------------------------------------------------------------------------------------------


def test_relative_gap_and_holds():
    certificate = Certificate(lower=2.0, upper=2.002, failure_probability=0.0, method="by hand", n_products=0)
    assert certificate.relative_gap == pytest.approx(1e-3)
    assert certificate.holds(1.1e-3)
    assert not certificate.holds(0.9e-3)
    assert str(certificate).startswith("Certified optimal to within 1.0e-03: objective 2, best possible at most 2.002")


@pytest.mark.parametrize(
    ("lower", "upper", "gap"),
    [(0.0, 1.0, np.inf), (-1.0, 0.0, 1.0), (-1.0, 1.0, 2.0), (0.0, 0.0, 0.0), (1.0, 1.0, 0.0)],
)
def test_relative_gap_at_the_edges(lower, upper, gap):
    certificate = Certificate(lower=lower, upper=upper, failure_probability=0.0, method="by hand", n_products=0)
    assert certificate.relative_gap == gap


@pytest.mark.parametrize(
    ("lower", "upper"), [(1.0, float("nan")), (float("nan"), 1.0), (1.0, np.nextafter(1.0, 0.0)), (np.inf, 1.0)]
)
def test_bounds_that_contradict_each_other_are_an_error(lower, upper):
    with pytest.raises(CrossedBoundsError, match="by hand gave .* as lower and .* as upper bound, which cannot be"):
        Certificate(lower, upper, failure_probability=0.0, method="by hand", n_products=0)


@pytest.mark.parametrize(
    ("lower", "upper", "words"),
    [
        (1.0, 1.0 + 1e-7, "Certified optimal to within 1.0e-07"),
        (1.0, 3.0, "Far from certified"),
        (0.0, 3.0, "Not certified"),
    ],
)
def test_text(lower, upper, words):
    text = str(Certificate(lower, upper, failure_probability=0.0, method="by hand", n_products=0))
    assert text.startswith(words)
    assert "\n" not in text


def test_a_certificate_cannot_be_changed(clusters):
    with pytest.raises(AttributeError):
        clusters[1].certificate_.upper = 0.0


def test_laplacian_agrees_between_methods(monkeypatch):
    X, _ = two_moons(n_points=200)
    problem = _problem(Laplacian(sigma=1.0), X)
    model = SDPEmbedding(Laplacian(sigma=1.0), random_state=0).fit(X)
    dense = certify_elliptope(problem, model.embedding_, rng=np.random.default_rng(0))
    monkeypatch.setattr(elliptope_certificate, "_DENSE_UP_TO", 0)
    free = certify_elliptope(problem, model.embedding_, rng=np.random.default_rng(0))
    assert free.lower == pytest.approx(dense.lower, rel=1e-10)
    assert free.upper == pytest.approx(dense.upper, rel=1e-7)
    assert free.complementarity == pytest.approx(dense.complementarity, rel=1e-6)
