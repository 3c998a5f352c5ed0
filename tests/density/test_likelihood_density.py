"""Densities fitted by likelihood, against cvxpy, dense NumPy and exact arithmetic."""

import numpy as np
import pytest
from scipy.linalg import eigh

import mercer
from mercer import DiscreteMeasure, Gaussian, Laplacian, SumOfSquaresDensity
from mercer.certificates import LikelihoodCertificate
from mercer.solvers.solution import Status
from mercer.solvers.spectrahedron import interior_point
from mercer.solvers.spectrahedron.interior_point import Likelihood, minimise_likelihood

SIGMA = 0.6
LOOSE = {"tol_gap_abs": 1e-7, "tol_gap_rel": 1e-7, "tol_feas": 1e-7}


@pytest.fixture(scope="module")
def X():
    rng = np.random.default_rng(0)
    angle = rng.uniform(0, np.pi, 80)
    return np.stack([np.cos(angle), np.sin(angle)], axis=1) + 0.15 * rng.standard_normal((80, 2))


def likelihood(X, **options):
    options = {"support": X[::8], "regularization": 0.0} | options
    return SumOfSquaresDensity(Gaussian(sigma=SIGMA), objective="likelihood", **options)


def dense(X, support, sigma=SIGMA):
    """Sections and W, written out."""
    squares = np.sum((X[:, None] - support) ** 2, axis=2)
    apart = np.sum((support[:, None] - support) ** 2, axis=2)
    volume = (np.pi * sigma**2 / 2) ** (X.shape[1] / 2)
    return np.exp(-squares / sigma**2), volume * np.exp(-apart / (2 * sigma**2))


@pytest.mark.parametrize("penalty", [0.0, 0.05])
def test_the_optimum_is_that_of_cvxpy(X, penalty):
    cvxpy = pytest.importorskip("cvxpy")
    weights = np.random.default_rng(1).uniform(0.5, 2.0, len(X))
    model = likelihood(X, regularization=penalty).fit(X, sample_weight=weights)
    K, W = dense(X, model.support_)
    gram = dense(model.support_, model.support_)[0]
    root = np.linalg.cholesky(W)
    G = np.linalg.solve(root, K.T).T
    inverse = np.linalg.inv(root)
    C = cvxpy.Variable((len(W), len(W)), PSD=True)
    shares = weights / weights.sum()
    objective = penalty * cvxpy.trace(inverse @ gram @ inverse.T @ C)
    objective -= cvxpy.sum(cvxpy.multiply(shares, cvxpy.log(cvxpy.sum(cvxpy.multiply(G @ C, G), axis=1))))
    best = cvxpy.Problem(cvxpy.Minimize(objective), [cvxpy.trace(C) == 1]).solve(solver=cvxpy.CLARABEL, **LOOSE)
    proof = model.certificate_
    assert abs(proof.upper - best) < 1e-5
    assert proof.upper - proof.lower < 1e-8
    assert model.log_likelihood_ == pytest.approx(float(shares @ model.score_samples(X)), abs=1e-10)


def test_one_eigenvalue_says_how_far_from_optimal(X):
    model = likelihood(X).fit(X)
    K, W = dense(X, model.support_)
    p = np.einsum("ij,jk,ik->i", K, model.coefficients_, K)
    gamma = (K / (len(X) * p)[:, None]).T @ K
    levels = eigh(gamma, W, eigvals_only=True)
    assert np.sum(gamma * model.coefficients_) == pytest.approx(1.0, abs=1e-9)
    assert np.trace(model.coefficients_ @ W) == pytest.approx(1.0, abs=1e-9)
    assert 1.0 - 1e-9 < levels[-1] < 1.0 + 1e-7
    assert np.allclose(model.density(X), p, rtol=1e-9)
    assert isinstance(model.certificate_, LikelihoodCertificate)
    assert model.certificate_.gap == pytest.approx(model.certificate_.relative_gap, rel=1e-3)


def test_no_density_of_the_form_has_a_larger_likelihood(X):
    model = likelihood(X, regularization=0.01).fit(X)
    K, W = dense(X, model.support_)
    rng = np.random.default_rng(2)
    gram = dense(model.support_, model.support_)[0]
    for part in (1.0, 0.1, 1e-3):
        for _ in range(20):
            F = rng.standard_normal(W.shape)
            B = F @ F.T
            B = (1 - part) * model.coefficients_ + part * B / np.trace(B @ W)
            value = -np.mean(np.log(np.einsum("ij,jk,ik->i", K, B, K))) + 0.01 * np.sum(B * gram)
            assert value >= model.certificate_.lower


def test_bounds_hold_from_any_point(X):
    """One step leaves a wide gap, which holds the optimum."""
    best = likelihood(X, support=60).set_params(random_state=0).fit(X).certificate_
    with pytest.warns(Warning, match="max_iter"):
        rough = likelihood(X, support=60, max_iter=1, tol=1e-13).set_params(random_state=0).fit(X).certificate_
    assert rough.lower <= best.upper
    assert best.lower <= rough.upper


@pytest.mark.parametrize("solver", ["low-rank", "conic"])
def test_solvers_agree(X, solver):
    if solver == "conic":
        pytest.importorskip("cvxpy")
    model = likelihood(X, solver=solver, tol=1e-4).fit(X)
    assert model.score(X) == pytest.approx(likelihood(X).fit(X).score(X), abs=2e-4)
    assert mercer.verify(model, X).gap < 1e-4


def test_methods_that_need_a_quadratic_say_so(X):
    with pytest.raises(ValueError, match="logarithms"):
        likelihood(X, solver="accelerated").fit(X)
    with pytest.raises(ValueError, match="signed"):
        likelihood(X, signed=True).fit(X)


def test_all_ways_to_solve_the_equations_find_the_same_matrix(monkeypatch):
    rng = np.random.default_rng(3)
    rows, shares = rng.standard_normal((40, 9)), rng.uniform(1, 2, 40)
    objective = Likelihood(rows, shares / shares.sum(), np.diag(rng.uniform(0, 0.1, 9)))
    found = []
    for way in ("_by_points", "_by_entries"):
        way_of = getattr(interior_point, way)
        monkeypatch.setattr(
            interior_point, "_solver", lambda *given, way_of=way_of: way_of(_rows(*given[:2]), given[2])
        )
        found.append(minimise_likelihood(objective, tol=1e-9))
    gaps = [interior_point._gap(objective, C) for C in found]
    assert max(gaps) < 1e-7, gaps


def test_equations_of_a_part_of_many_points_find_the_optimum_of_all(monkeypatch):
    """Three thousand points, two of which lie far out: the direction is that of the equations of all, and so the end."""
    rng = np.random.default_rng(5)
    rows = rng.standard_normal((3000, 8))
    rows[[7, 1501]] *= 30.0
    objective = Likelihood(rows, np.full(3000, 1 / 3000), np.diag(rng.uniform(0, 0.1, 8)))
    C = np.diag(rng.dirichlet(np.ones(8)))
    values = objective.values_of(C)
    G, weighted = objective.gradient(values), _rows(objective, values)
    scaling = interior_point._scaling(C, interior_point._slack(G))
    for name, value in (("_MANY_ROWS", 1000), ("_FEW_ENTRIES", 20), ("_PART_ROWS", 200), ("_SHARE", 1000)):
        monkeypatch.setattr(interior_point, name, value)
    exact = interior_point._by_entries(weighted, scaling)(G)
    near = interior_point._by_part(weighted, scaling)(G)
    np.testing.assert_allclose(near, exact, atol=2e-3 * np.abs(exact).max())
    assert interior_point._gap(objective, minimise_likelihood(objective, tol=1e-9)) < 1e-8


def _rows(objective, values):
    return objective.rows * np.sqrt(np.sqrt(objective.shares) / values)[:, None]


def test_weights_are_rows_that_repeat_and_zero_is_no_row(X):
    weights = np.ones(len(X))
    weights[3], weights[5] = 2.0, 0.0
    given = likelihood(X).fit(X, sample_weight=weights)
    rows = np.concatenate([np.delete(X, 5, axis=0), X[3:4]])
    again = likelihood(X).fit(rows)
    assert given.log_likelihood_ == pytest.approx(again.log_likelihood_, abs=1e-8)
    assert mercer.verify(given, X).gap < 1e-8


def test_the_mass_is_one_and_samples_follow_the_density(X):
    model = likelihood(X, regularization=None).fit(X)
    axis = np.linspace(-4, 4, 161)
    grid = np.stack(np.meshgrid(axis, axis, indexing="ij"), axis=-1).reshape(-1, 2)
    assert model.density(grid).sum() * 0.05**2 == pytest.approx(1.0, abs=1e-6)
    drawn = model.sample(4000, random_state=0)
    assert np.allclose(drawn.mean(axis=0), model.mean(), atol=0.05)


@pytest.mark.parametrize(
    "options",
    [
        {"kernel": Gaussian(0.5), "box": (-2.0, 2.0)},
        {"kernel": Gaussian(0.5), "reference": "gaussian"},
        {"kernel": Laplacian(0.5)},
        {"kernel": Gaussian(0.5), "reference": DiscreteMeasure(np.linspace(-2, 2, 60)[:, None])},
    ],
    ids=["box", "normal reference", "Laplacian", "nodes"],
)
def test_other_kernels_and_measures_are_certified_too(X, options):
    x = X[:, :1]
    model = SumOfSquaresDensity(objective="likelihood", support=12, random_state=0, **options).fit(x)
    assert model.certificate_.gap < 1e-7
    assert mercer.verify(model, x).gap < 1e-7


def test_a_point_out_of_reach_is_named(X):
    far = np.concatenate([X, [[1e3, 0.0]]])
    with pytest.raises(ValueError, match="1 of 81 points are so far"):
        likelihood(X).fit(far)


def test_model_files_history_callbacks_and_warm_starts(X, tmp_path):
    seen = []
    model = likelihood(X, support=60, random_state=0, callback=seen.append).fit(X)
    assert len(seen) == len(model.history_) >= 1
    model.callback = None
    mercer.save(model, tmp_path / "density.mercer")
    again = mercer.load(tmp_path / "density.mercer")
    assert np.array_equal(again.score_samples(X), model.score_samples(X))
    assert mercer.verify(again, X).gap < 1e-7
    warm = model.set_params(warm_start=True).fit(X)
    assert warm.log_likelihood_ == pytest.approx(again.log_likelihood_, abs=1e-7)
    distance = model.set_params(objective="projection", warm_start=False).fit(X)
    assert not hasattr(distance, "log_likelihood_")
    assert distance.mmd_ > 0


def test_ctrl_c_keeps_the_best_density_so_far(X):
    def press(line):
        raise KeyboardInterrupt

    with pytest.warns(Warning, match="[Ii]nterrupt"):
        model = likelihood(X, support=60, random_state=0, tol=1e-13, callback=press).fit(X)
    assert model.status_ is Status.INTERRUPTED
    assert np.isfinite(model.certificate_.gap)


@pytest.mark.parametrize("name", ["log_likelihood_", "coefficients_", "eigenvalues_", "regularization_", "log_scale_"])
def test_whatever_is_changed_is_refused(X, name):
    model = likelihood(X, regularization=None).fit(X)
    setattr(model, name, getattr(model, name) * 1.01 + 0.01)
    with pytest.raises(ValueError, match="damaged"):
        mercer.verify(model, X)


def test_other_data_are_refused(X):
    model = likelihood(X).fit(X)
    with pytest.raises(ValueError, match="damaged|data"):
        mercer.verify(model, X + 0.01)


def test_tensors_give_the_same_density(X):
    torch = pytest.importorskip("torch")
    model = likelihood(X, support=torch.as_tensor(X[::8])).fit(torch.as_tensor(X))
    assert isinstance(model.factor_, torch.Tensor)
    assert model.log_likelihood_ == pytest.approx(likelihood(X).fit(X).log_likelihood_, abs=1e-8)


def test_a_density_with_a_section_for_a_far_row_is_verified():
    sample = np.r_[np.random.default_rng(0).normal(size=(15, 1)), [[1000.0]]]
    model = SumOfSquaresDensity(objective="likelihood", support=("mixture", 1), random_state=0).fit(sample)
    assert model.sections_.means.shape[0] == 2  # the part that was asked for, and a wide one
    assert mercer.verify(model, sample).upper == pytest.approx(model.certificate_.upper, abs=1e-9)


@pytest.mark.parametrize(
    "options",
    [
        {"support": ("mixture", 3)},
        {"kernel": Gaussian(1.0), "support": 20},
        {"kernel": Gaussian(1.0), "support": 20, "reference": "gaussian"},
        {
            "kernel": Gaussian(1.0),
            "support": 20,
            "reference": mercer.GaussianMeasure([0.0, 0.0], covariance=[[1.0, 0.5], [0.5, 1.0]]),
        },
    ],
)
def test_the_logarithm_falls_to_the_end_of_what_numbers_can_be(options):
    X = np.random.default_rng(0).normal(size=(120, 2))
    model = SumOfSquaresDensity(objective="likelihood", random_state=0, **options).fit(X)
    far = np.array([[0.0, 0.0], [1e10, 0.0], [1e100, 1e100], [1e200, 0.0], [1e308, -1e308]])
    logs = model.score_samples(far)
    assert np.isfinite(logs).all()
    assert (np.diff(logs[:4]) < 0).all()
    assert logs[4] < logs[2]
    assert (model.density(far)[1:] == 0).all()


@pytest.mark.parametrize("support", ["auto", ("mixture", 2)])
def test_one_row_far_out_is_fitted_or_told_in_a_sentence(support):
    X = np.concatenate([np.random.default_rng(0).normal(size=(120, 2)), [[1e24, 0.0]]])
    model = SumOfSquaresDensity(objective="likelihood", support=support, random_state=0)
    assert model.fit(X).certificate_.gap < 1e-7
    X[-1] *= 1e95
    with pytest.raises(ArithmeticError, match="bring the features to a scale near one"):
        model.fit(X)
