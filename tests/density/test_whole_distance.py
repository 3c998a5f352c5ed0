"""Densities fitted by the whole squared MMD (SOS 9, 16): against 60 digits, quadrature and a conic solver."""

import pickle
import warnings
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from exact_distance import ExactDistance
from exact_programme import mpf
from sklearn.datasets import make_moons

import mercer.certificates.spectrahedron as spectrahedron
import mercer.density.comparison as comparison
import mercer.kernels.integrals.integral_enclosures as enclosures
from mercer import Gaussian, Laplacian, Matern, SumOfSquaresDensity, verify
from mercer.backends.arrays import to_numpy
from mercer.backends.balls import Ball
from mercer.certificates import certify_spectrahedron
from mercer.density.fitting_problem import make_programme
from mercer.density.setting import Setting
from mercer.kernels.integrals import kernel_integrals
from mercer.kernels.integrals.measures import Box, GaussianMeasure, Lebesgue
from mercer.kernels.integrals.probes import SectionProbes
from mercer.problems.sum_of_squares_enclosures import Sample


def fitted(X, weights=None, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return SumOfSquaresDensity(objective="mmd", **options).fit(X, sample_weight=weights)


def drawn(seed):
    """In one and two dimensions, λ zero and positive, with both references, with and without weights."""
    rng = np.random.default_rng(seed)
    n, d = int(rng.integers(6, 14)), 1 + seed % 2
    X = rng.standard_normal((n, d)) * [0.01, 1.0, 300.0][seed % 3]
    options = {
        "kernel": Gaussian([0.3, 1.0, 3.0][seed % 3] * float(np.std(X))),
        "support": int(rng.integers(2, 6)),
        "regularization": [None, 0.0][seed // 2 % 2],
        "reference": ["lebesgue", "gaussian"][seed % 2],
        "random_state": seed,
    }
    return X, rng.uniform(0.1, 1, n) if seed % 3 == 0 else None, options


def exact_of(model, X, weights):
    normal = (model.measure_.mean, model.measure_.std) if model.reference == "gaussian" else None
    arguments = (X, weights, model.support_, model.kernel_.sigma, model.regularization_, model._spans.basis)
    return ExactDistance(*arguments, normal=normal)


def solution(model, exact):
    basis = model._spans.basis
    F = (basis.T @ model._factor) / np.sum(basis**2, axis=0)[:, None]
    return exact.density(F / np.linalg.norm(F))


@pytest.mark.parametrize("seed", range(6))
def test_the_bounds_hold_the_truth_and_are_near_to_it(seed):
    X, weights, options = drawn(seed)
    model = fitted(X, weights, **options)
    exact = exact_of(model, X, weights)
    B = solution(model, exact)
    value, bound, proof = exact.value(B), exact.dual_bound(B), model.certificate_
    assert value <= mpf(proof.upper)
    assert mpf(proof.lower) <= max(bound, 0)
    assert proof.upper - float(value) <= 1e-12
    assert float(bound) - proof.lower <= 1e-11
    assert proof.upper - proof.lower <= 2e-8
    assert float(exact.value(B) - exact.strength * exact.trace(B, exact.K)) == pytest.approx(model.mmd_**2, abs=1e-11)


def test_any_point_of_an_ill_conditioned_programme_is_judged_truly():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((9, 1))
    setting = Setting(Gaussian(4.0), X[:5], Lebesgue())
    problem = make_programme(setting, Sample(X, None), regularization=0.0, truncation=1e-10, objective="mmd")
    exact = ExactDistance(X, None, X[:5], 4.0, 0.0, problem.basis)
    F = rng.standard_normal((problem.dimension, 2))
    certificate, B = certify_spectrahedron(problem, F), exact.density(F / np.linalg.norm(F))
    assert exact.value(B) <= mpf(certificate.upper)
    assert mpf(certificate.lower) <= max(exact.dual_bound(B), 0)
    assert certificate.upper == pytest.approx(float(exact.value(B)), rel=1e-8)


def test_rounding_of_the_objective_is_counted(monkeypatch):
    monkeypatch.setattr(spectrahedron.Ball, "upper", lambda self: self.hi)
    below = []
    for seed in (1, 2, 3):
        X, weights, options = drawn(seed)
        model = fitted(X, weights, **options)
        exact = exact_of(model, X, weights)
        below.append(exact.value(solution(model, exact)) > mpf(model.certificate_.upper))
    assert any(below)


@pytest.mark.parametrize("part", ["squared_norm", "potential", "energy"])
def test_what_is_not_known_of_a_part_widens_both_bounds(part):
    X = np.random.default_rng(0).standard_normal((9, 1))
    setting = Setting(Gaussian(1.0), X[:3], Lebesgue())
    problem = make_programme(setting, Sample(X, None), regularization=0.1, truncation=1e-10, objective="mmd")
    model = fitted(X, kernel=Gaussian(1.0), support=X[:3], regularization=0.1)
    F = problem.coordinates(model._factor)
    sharp, proofs = certify_spectrahedron(problem, F), problem.enclosures
    if part == "energy":
        proofs.energy = lambda factor, own=proofs.energy: own(factor).widened(1e-3)
    else:
        setattr(proofs, part, getattr(proofs, part).widened(1e-3))
    wide = certify_spectrahedron(problem, F)
    assert wide.upper >= sharp.upper + 0.99e-3
    assert wide.lower <= sharp.lower - 0.99e-3


def summed(n=60, seed=0):
    """The ball of a quadratic form in doubles, and its value as a fraction."""
    rng = np.random.default_rng(seed)
    K, w = rng.uniform(-1, 1, (n, n)), rng.standard_normal(n)
    K = (K + K.T) / 2
    ball = enclosures.quadratic_form(lambda rows, columns: Ball(K[rows, columns]), Ball(w))
    parts = [Fraction(float(v)) for v in w]
    rows = (sum(Fraction(float(k)) * p for k, p in zip(row, parts, strict=True)) for row in K)
    return ball, sum(p * r for p, r in zip(parts, rows, strict=True))


def is_inside(ball, value):
    return abs(value - Fraction(float(ball.hi)) - Fraction(float(ball.lo))) <= Fraction(float(ball.radius))


def test_rounding_of_the_samples_norm_is_counted(monkeypatch):
    monkeypatch.setattr(enclosures, "_NORM_ROWS", 16)
    ball, value = summed()
    assert is_inside(ball, value)
    assert ball.radius < 1e-10
    monkeypatch.setattr(enclosures, "gamma", lambda count, unit: 0.0)
    assert not is_inside(summed()[0], value)


def test_errors_of_entries_and_weights_reach_the_samples_norm():
    K, w = np.ones((3, 3)), np.ones(3)
    form = enclosures.quadratic_form
    assert form(lambda r, c: Ball(K[r, c], 0.0, 0.5 + 0 * K[r, c]), Ball(w)).radius >= 9 * 0.5
    assert form(lambda r, c: Ball(K[r, c]), Ball(w, 0.0, 0.5 + 0 * w)).radius >= 9 * (1.5**2 - 1)


def on_grid(model, step, reach):
    """Nodes and the masses of the density there, by the trapezoidal rule of SciPy's users."""
    axes = [np.arange(low - reach, high + reach, step) for low, high in zip(*reach_of(model), strict=True)]
    nodes = np.stack([a.ravel() for a in np.meshgrid(*axes)], axis=1)
    return nodes, model.density(nodes) * step ** nodes.shape[1]


def reach_of(model):
    return model.support_.min(axis=0), model.support_.max(axis=0)


def plain_mmd2(kernel, nodes, masses, X, shares):
    seen = kernel(nodes, X) @ shares
    return shares @ kernel(X) @ shares - 2 * masses @ seen + masses @ kernel(nodes) @ masses


@pytest.mark.parametrize("reference", ["lebesgue", "gaussian"])
def test_the_distance_is_that_of_a_numerical_integral(reference):
    X = np.random.default_rng(1).standard_normal((20, 2))
    weights = np.linspace(1, 2, 20)
    model = fitted(X, weights, kernel=Gaussian(1.2), support=6, reference=reference, random_state=0)
    nodes, masses = on_grid(model, 0.18, 3.5)
    assert masses.sum() == pytest.approx(1, abs=1e-9)
    integral = plain_mmd2(model.kernel_, nodes, masses, X, weights / weights.sum())
    assert model.mmd_**2 == pytest.approx(integral, abs=1e-9)
    penalty = model.regularization_ * np.sum(model.coefficients_ * model.kernel_(model.support_))
    assert model.certificate_.upper == pytest.approx(integral + penalty, abs=1e-9)
    assert model.mmd_error_ == 0


@pytest.mark.parametrize(
    ("kernel", "options"),
    [(Matern(1.5, 0.7), {}), (Gaussian(0.6), {"box": (-3, 3)}), (Matern(2.5, 0.7), {"reference": "gaussian"})],
    ids=["Matern", "box", "normal"],
)
def test_kernels_with_a_quadrature_are_compared_at_its_nodes(kernel, options):
    X = np.random.default_rng(2).uniform(-2, 2, (15, 1))
    model = fitted(X, kernel=kernel, support=6, random_state=0, **options)
    edges = np.linspace(-3, 3, 1501) if "box" in options else np.linspace(-12, 12, 3001)
    nodes = (edges[1:] + edges[:-1])[:, None] / 2
    masses = model.density(nodes) * (edges[1] - edges[0])
    integral = plain_mmd2(kernel, nodes, masses, X, np.full(15, 1 / 15))
    assert model.mmd_**2 == pytest.approx(integral, abs=3e-6)
    assert model.certificate_.upper - model.certificate_.lower < 1e-8
    assert "box" not in options or verify(model, X).holds(1e-5)


def conic_optimum(X, support, sigma, regularization):
    """The least of SOS (16), squared, over B: all integrals are sums over a grid, and B itself is the variable."""
    cvxpy = pytest.importorskip("cvxpy")
    step = sigma / 6
    line = np.arange(min(X.min(), support.min()) - 4 * sigma, max(X.max(), support.max()) + 4 * sigma, step)[:, None]
    kernel = Gaussian(sigma)
    K, m = kernel(line, support), len(support)
    products = step * (K[:, :, None] * K[:, None, :]).reshape(len(line), m * m)
    W = products.sum(axis=0).reshape(m, m)
    values, vectors = np.linalg.eigh(kernel(line))
    root = (vectors * np.sqrt(np.clip(values, 0, None))).T @ products
    V = products.T @ kernel(line, X).mean(axis=1)
    inverse = np.linalg.inv(np.linalg.cholesky(W))
    turn = np.kron(inverse, inverse).T  # B = L⁻ᵀ C L⁻¹
    C = cvxpy.Variable((m, m), PSD=True)
    c = cvxpy.vec(C, order="C")
    linear = regularization * kernel(support).ravel() - 2 * V
    programme = cvxpy.Problem(
        cvxpy.Minimize(cvxpy.sum_squares(root @ turn @ c) + (linear @ turn) @ c), [cvxpy.trace(C) == 1]
    )
    return programme.solve(solver=cvxpy.CLARABEL) + kernel(X).mean()


@pytest.mark.parametrize("regularization", [0.0, 1e-2])
def test_a_conic_solver_finds_the_same_optimum(regularization):
    X = np.random.default_rng(3).standard_normal((12, 1)) * 2
    support = np.linspace(-3, 3, 6)[:, None]
    best = conic_optimum(X, support, 1.0, regularization)
    for solver in ("auto", "accelerated", "conic"):
        model = fitted(X, kernel=Gaussian(1.0), support=support, regularization=regularization, solver=solver)
        assert model.certificate_.lower <= best + 1e-7
        assert model.certificate_.upper == pytest.approx(best, abs=2e-7)


def unlucky(objective):
    """Two moons of 100 points, the first ten of them the support, as in SOS Fig 2c."""
    X, _ = make_moons(100, noise=0.1, random_state=2)
    X = 2 * X + np.array([-1.0, -0.2])
    return SumOfSquaresDensity(Gaussian(1.0), support=X[:10], regularization=1e-3, objective=objective).fit(X)


@pytest.mark.filterwarnings("ignore:The MMD between density and sample")  # few points, on purpose
def test_ten_support_points_in_an_unlucky_place_are_no_trap():
    projected, whole = unlucky("projection"), unlucky("mmd")
    assert projected.mmd_ == pytest.approx(0.186, abs=1e-3)
    assert projected.projected_mmd_ == pytest.approx(0.020, abs=1e-3)
    assert whole.mmd_ == pytest.approx(0.138, abs=1e-3)
    assert whole.certificate_.upper - whole.certificate_.lower < 1e-9

    def objective(model):
        return model.mmd_**2 + 1e-3 * np.sum(model.coefficients_ * model.kernel_(model.support_))

    assert whole.certificate_.upper == pytest.approx(objective(whole), abs=1e-10)
    assert whole.certificate_.lower < objective(projected) - 0.01
    assert projected.certificate_.lower <= whole.certificate_.lower  # a projection is shorter


def test_densities_come_near_any_law_as_the_support_fills_its_space():
    """SOS Theorem 1 on a compact set: two atoms and a third of uniform mass, on nested supports of [0, 1]."""
    X = np.concatenate([[0.25, 0.7], np.linspace(0, 1, 40)])[:, None]
    weights = np.concatenate([[1 / 3, 1 / 3], np.full(40, 1 / 120)])
    distances = []
    for count in (3, 5, 9, 17):
        support = np.linspace(0, 1, count)[:, None]
        model = fitted(
            X,
            weights,
            kernel=Gaussian(0.2),
            support=support,
            regularization=0.0,
            box=(0, 1),
        )
        assert model.certificate_.upper == pytest.approx(model.mmd_**2, abs=1e-9)
        distances.append(model.mmd_)
        near = model.cdf(np.array([0.475])) - model.cdf(np.array([0.1]))
    assert all(after < before for before, after in pairwise(distances))
    assert distances[-1] < 0.02 * distances[0]
    assert near[0] == pytest.approx(1 / 3 + 0.375 / 3, abs=0.03)  # mass between points that carry none


def test_beyond_the_largest_support_a_wide_span_is_nearly_all(monkeypatch):
    X = np.random.default_rng(8).standard_normal((30, 2))
    options = {"kernel": Gaussian(1.0), "support": X[:6], "regularization": 1e-2}
    narrow, whole = SumOfSquaresDensity(**options).fit(X), fitted(X, **options)
    monkeypatch.setattr(comparison, "_MOST_SUPPORT", 5)
    wide = fitted(X, **options)
    conic = fitted(X, **options, solver="conic")
    assert narrow.certificate_.upper < wide.certificate_.lower <= whole.certificate_.upper
    assert (
        whole.certificate_.lower - wide.certificate_.upper < 1e-4 < whole.certificate_.lower - narrow.certificate_.upper
    )
    assert wide.mmd_ == pytest.approx(whole.mmd_, abs=1e-4)
    assert conic.certificate_.upper == pytest.approx(wide.certificate_.upper, abs=1e-7)
    assert verify(wide, X).upper == pytest.approx(wide.certificate_.upper, abs=1e-10)
    wide._probes = wide._probes[::3]
    with pytest.raises(ValueError, match="sees less"):
        verify(wide, X)


COVARIANCE = np.array([[2.0, 0.5], [0.5, 1.0]])


@pytest.mark.parametrize(
    ("kernel", "measure"),
    [
        (Gaussian(1.0), Lebesgue()),
        (Gaussian(1.0), GaussianMeasure(np.zeros(2), None, COVARIANCE)),
        (Laplacian(1.0), Lebesgue()),
        (Laplacian(1.0), GaussianMeasure(np.zeros(2), 1.5)),
        (Matern(2.5, 1.0), Box(np.full(2, -2.0), np.full(2, 2.0))),
    ],
    ids=["Gaussian", "covariance", "Laplacian", "Laplacian normal", "quadrature"],
)
def test_sections_at_other_points_are_compared_as_integrals_say(kernel, measure):
    """Of shape and adjointness, against the integrals at the points, and the balls hold the numbers."""
    rng = np.random.default_rng(9)
    Z, Y = rng.uniform(-1, 1, (4, 2)), rng.uniform(-1, 1, (3, 2))
    integrals = kernel_integrals(kernel, Z, measure)
    probes, F, c, y = SectionProbes(integrals, Y), rng.standard_normal((4, 2)), rng.standard_normal(4), np.arange(3.0)
    B = F @ F.T
    assert np.sum(probes.weighted_mass(y) * B) == pytest.approx(y @ probes.embed(B))
    parts = [probes.contracted(column) @ column for column in F.T]
    np.testing.assert_allclose(sum(parts), probes.embed(B), rtol=1e-9)
    first = probes.contracted(c)[:, 0]
    half = np.outer(c, np.eye(4)[0])
    np.testing.assert_allclose(first, probes.embed((half + half.T) / 2), rtol=1e-9)
    proved = probes.enclosures()
    for ball, number in (
        (proved.embed(Ball(F)), probes.embed(B)),
        (proved.weighted_mass(Ball(y)), probes.weighted_mass(y)),
        (proved.gram(), probes.gram()),
        (next(proved.sections(Z))[1], kernel(Z, Y)),
    ):
        assert ball.shape == number.shape
        np.testing.assert_allclose(ball.hi, number, rtol=1e-9, atol=1e-12)
        assert ball.radius.max() < 1e-12


def test_verify_pickles_and_damage():
    X = np.random.default_rng(4).standard_normal((25, 2))
    model = pickle.loads(pickle.dumps(fitted(X, support=8, random_state=0)))
    again = verify(model, X)
    assert again.lower == pytest.approx(model.certificate_.lower, abs=1e-12)
    assert again.upper == pytest.approx(model.certificate_.upper, abs=1e-12)
    for name, value in {"mmd_": model.mmd_ * 1.01, "objective": "projection"}.items():
        damaged = pickle.loads(pickle.dumps(model))
        setattr(damaged, name, value)
        with pytest.raises(ValueError, match="damaged|certificate"):
            verify(damaged, X)


def test_weights_are_repeated_rows_and_float32_is_float64():
    X = np.random.default_rng(5).standard_normal((12, 2)).astype(np.float32)
    counts = np.arange(12) % 3 + 1
    options = {"kernel": Gaussian(1.0), "support": X[:6], "regularization": 1e-2}
    weighted = fitted(X, counts, **options)
    repeated = fitted(np.repeat(X, counts, axis=0), **options)
    double = fitted(X.astype(np.float64), counts, **options)
    assert weighted.certificate_.upper == pytest.approx(repeated.certificate_.upper, abs=1e-12)
    assert weighted.mmd_ == pytest.approx(repeated.mmd_, abs=1e-6)
    assert weighted.mmd_ == pytest.approx(double.mmd_, abs=1e-6)
    np.testing.assert_allclose(weighted.density(X), repeated.density(X), atol=1e-3)


def test_signed_targets_are_compared_whole():
    X = np.random.default_rng(0).standard_normal((20, 1)) * 1.5
    weights = np.where(np.arange(20) < 4, -0.5, 1.0)
    model = fitted(X, weights, kernel=Gaussian(1.0), support=6, signed=True, random_state=0)
    nodes = np.linspace(-9, 9, 901)[:, None]
    integral = plain_mmd2(model.kernel_, nodes, model.density(nodes) * 0.02, X, weights / weights.sum())
    assert model.mmd_**2 == pytest.approx(integral, abs=1e-11)
    penalty = model.regularization_ * np.sum(model.coefficients_ * model.kernel_(model.support_))
    assert model.certificate_.upper == pytest.approx(integral + penalty, abs=1e-11)
    assert verify(model, X).holds(1e-8)


def test_tensors_give_the_same_density():
    torch = pytest.importorskip("torch")
    X = np.random.default_rng(6).standard_normal((15, 2))
    options = {"kernel": Gaussian(1.0), "support": X[:5], "regularization": 1e-2}
    model = fitted(X, **options)
    tensors = fitted(torch.asarray(X), **{**options, "support": torch.asarray(X[:5])})
    assert isinstance(tensors.factor_, torch.Tensor)
    assert tensors.certificate_.upper == pytest.approx(model.certificate_.upper, abs=1e-12)
    np.testing.assert_allclose(to_numpy(tensors.density(torch.asarray(X))), model.density(X), rtol=1e-3, atol=1e-6)


def test_what_cannot_be_compared_is_refused(monkeypatch):
    X = np.random.default_rng(7).standard_normal((10, 4))
    with pytest.raises(ValueError, match="objective"):
        SumOfSquaresDensity(objective="entropy").fit(X)
    monkeypatch.setattr(comparison, "_MOST_ROWS", 9)
    with pytest.raises(ValueError, match="all pairs of rows, for 9 at most, not 10"):
        SumOfSquaresDensity(Gaussian(1.0), support=4, objective="mmd").fit(X)
