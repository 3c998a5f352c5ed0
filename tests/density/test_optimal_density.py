"""Densities that minimise a convex function of linear functionals: optima, proofs, and what is refused."""

import pickle

import numpy as np
import pytest
from scipy.optimize import brentq
from scipy.special import xlogy

import mercer
from mercer.certificates.convex_squares import certify_convex_squares
from mercer.density import CellMasses, ConvexFunctional, EmbeddingValues, Expectations, Moments
from mercer.density.optimal_problem import pose
from mercer.density.setting import Setting
from mercer.kernels.integrals.measures import Box, DiscreteMeasure, GaussianMeasure, Lebesgue
from mercer.problems.convex_squares import PricedFactor

Z = np.linspace(0.0, 1.0, 10)[:, None]
KERNEL = mercer.Gaussian(sigma=0.3)
EDGES = np.linspace(0.0, 1.0, 13)
X = np.linspace(0.0, 1.0, 20_001)


def entropy(q, extra=0):
    """Σ u log u of the first q functionals; the others are left alone."""
    return (
        lambda u: float(np.sum(xlogy(u[:q], u[:q]))),
        lambda u: np.append(np.log(u[:q]) + 1.0, np.zeros(extra)),
    )


def cells_and_mean(lower, upper):
    value, gradient = entropy(12, 1)
    free = np.full(12, np.inf)
    return ConvexFunctional(
        [CellMasses.between(EDGES), Moments()],
        value,
        gradient,
        lower=np.append(-free, lower),
        upper=np.append(free, upper),
    )


def by_cvxpy(problem, objective):
    """The optimum over C by a conic solver, from the matrices of the problem and cvxpy's own expression of F."""
    cvxpy = pytest.importorskip("cvxpy")
    C = cvxpy.Variable((problem.dimension, problem.dimension), PSD=True)
    u = cvxpy.hstack([cvxpy.sum(cvxpy.multiply(N, C)) for N in problem.matrices])
    kept = [cvxpy.trace(C) == 1]
    kept += [u[j] >= b for j, b in enumerate(problem.lower) if np.isfinite(b)]
    kept += [u[j] <= b for j, b in enumerate(problem.upper) if np.isfinite(b)]
    total = objective(cvxpy, u) + cvxpy.sum(cvxpy.multiply(problem.penalty, C))
    return float(cvxpy.Problem(cvxpy.Minimize(total), kept).solve(solver="CLARABEL"))


def quadratic(target):
    return lambda u: float((u - target) @ (u - target)), lambda u: 2.0 * (u - target)


def test_entropy_of_a_discretisation_is_that_of_a_conic_solver():
    functional = cells_and_mean(0.299, 0.301)
    found = mercer.optimal_density(functional, Z, KERNEL, box=(0, 1), tol=1e-7)
    problem = pose(functional, Setting(KERNEL, Z, Box(np.zeros(1), np.ones(1))), 0.0, 1e-8)
    expected = by_cvxpy(problem, lambda cvxpy, u: -cvxpy.sum(cvxpy.entr(u[:12])))
    assert found.certificate_.holds(1e-7)
    assert found.certificate_.lower - 1e-6 <= expected <= found.certificate_.upper + 1e-6
    assert 0.299 <= found.mean()[0] <= 0.301
    assert found.prices_[-1] > 0.1  # the mean presses against its upper bound


def test_greatest_entropy_with_a_mean_of_cells_is_exponential():
    """Where the mean is one of cells, the best masses are q ∝ exp(-θ m), and no density can be better."""
    middles, q = (EDGES[1:] + EDGES[:-1]) / 2, 12
    value, gradient = entropy(q)

    def masses(theta):
        shares = np.exp(-theta * middles)
        return shares / shares.sum()

    theta = brentq(lambda t: masses(t) @ middles - 0.35, 0.0, 20.0)
    best = float(np.sum(masses(theta) * np.log(masses(theta))))
    penalised = ConvexFunctional(
        CellMasses.between(EDGES),
        lambda u: value(u) + 1e4 * float(middles @ u - 0.35) ** 2,
        lambda u: gradient(u) + 2e4 * (middles @ u - 0.35) * middles,
    )
    found = mercer.optimal_density(penalised, Z, KERNEL, box=(0, 1))
    assert best - 1e-3 <= found.certificate_.upper <= best + 1e-3
    np.testing.assert_allclose(found.functionals_, masses(theta), atol=2e-3)


def test_moments_with_a_tolerance_are_those_of_a_conic_solver():
    functional = ConvexFunctional(Moments(2), lower=[0.6, 0.44], upper=[0.62, 0.45])
    found = mercer.optimal_density(functional, Z, KERNEL, box=(0, 1), regularization=1e-2, tol=1e-7)
    problem = pose(functional, Setting(KERNEL, Z, Box(np.zeros(1), np.ones(1))), 1e-2, 1e-8)
    expected = by_cvxpy(problem, lambda cvxpy, u: 0.0 * u[0])
    assert found.certificate_.holds(1e-7)
    np.testing.assert_allclose(found.certificate_.upper, expected, rtol=1e-5)
    p = found.density(X[:, None])
    moments = [np.trapezoid(p * X**power, X) for power in (0, 1, 2)]
    np.testing.assert_allclose(moments, [1.0, *found.functionals_], atol=1e-8)
    assert 0.6 <= moments[1] <= 0.62
    assert 0.44 <= moments[2] <= 0.45


TILTED = GaussianMeasure(np.array([0.2, 0.1]), covariance=np.array([[2.0, 0.7], [0.7, 1.0]]))


@pytest.mark.parametrize("measure", [Lebesgue(), GaussianMeasure(np.array([0.2, 0.1]), 1.5), TILTED])
def test_projected_distance_to_a_sample_is_that_of_the_estimator(measure):
    """F(u) = (u - v)ᵀK̃⁻¹(u - v) of the embedding's values at the support is SOS (12): two solvers, two certificates."""
    rng = np.random.default_rng(0)
    data, kernel = rng.standard_normal((60, 2)), mercer.Gaussian(sigma=1.0)
    support = data[:14]
    K, v = kernel(support), kernel(support, data).mean(axis=1)

    def value(u):
        return float((u - v) @ np.linalg.solve(K, u - v))

    functional = ConvexFunctional(EmbeddingValues(support), value, lambda u: 2.0 * np.linalg.solve(K, u - v))
    options = {"support": support, "regularization": 1e-2, "reference": measure, "tol": 1e-6}
    fitted = mercer.SumOfSquaresDensity(kernel, **options).fit(data)
    found = mercer.optimal_density(functional, support, kernel, reference=measure, regularization=1e-2, tol=1e-6)
    assert found.certificate_.lower <= fitted.certificate_.upper
    assert fitted.certificate_.lower <= found.certificate_.upper
    np.testing.assert_allclose(found.certificate_.upper, fitted.certificate_.upper, rtol=1e-6)
    np.testing.assert_allclose(found.density(data), fitted.density(data), atol=1e-3)


def test_transport_of_a_mean():
    """Of the densities whose mean is moved by a half, the nearest to the data; without the bounds it is nearer."""
    rng = np.random.default_rng(1)
    data, kernel = rng.standard_normal((80, 1)), mercer.Gaussian(sigma=1.2)
    at = np.linspace(-2.5, 3.0, 9)[:, None]
    K, v = kernel(at), kernel(at, data).mean(axis=1)
    to, value = data.mean() + 0.5, lambda u: float((u[:-1] - v) @ np.linalg.solve(K, u[:-1] - v))
    gradient = lambda u: np.append(2.0 * np.linalg.solve(K, u[:-1] - v), 0.0)  # noqa: E731
    free = np.full(9, np.inf)
    bounds = {"lower": np.append(-free, to - 1e-3), "upper": np.append(free, to + 1e-3)}
    of = [EmbeddingValues(at), Moments()]
    moved = mercer.optimal_density(ConvexFunctional(of, value, gradient, **bounds), at, kernel, tol=1e-5)
    near = mercer.optimal_density(ConvexFunctional(of, value, gradient), at, kernel, tol=1e-5)
    assert moved.certificate_.holds(1e-4)
    assert near.certificate_.upper < moved.certificate_.lower
    np.testing.assert_allclose(moved.mean(), to, atol=1.1e-3)
    assert abs(near.mean()[0] - data.mean()) < 0.1


def test_functionals_are_the_integrals_of_the_density():
    step = Expectations(lambda x: np.concatenate([np.sin(5 * x), x**3], axis=1))
    of = [EmbeddingValues([[0.3], [0.9]]), Moments(2), CellMasses.between([0.1, 0.25, 0.7]), step]
    target = np.array([0.5, 0.3, 0.4, 0.2, 0.3, 0.5, 0.2, 0.1])
    for options in ({"box": (0, 1)}, {}):
        found = mercer.optimal_density(ConvexFunctional(of, *quadratic(target)), Z, KERNEL, **options, tol=1e-4)
        x = X if options else 6.0 * X - 2.5
        p = found.density(x[:, None])
        expected = [np.trapezoid(p * KERNEL(x[:, None], [[t]])[:, 0], x) for t in (0.3, 0.9)]
        expected += [np.trapezoid(p * x**power, x) for power in (1, 2)]
        for a, b in ((0.1, 0.25), (0.25, 0.7)):
            inside = np.linspace(a, b, 20_001)
            expected.append(np.trapezoid(found.density(inside[:, None]), inside))
        expected += [np.trapezoid(p * g, x) for g in (np.sin(5 * x), x**3)]
        np.testing.assert_allclose(found.functionals_, expected, atol=1e-7)


def test_functionals_of_other_kernels():
    kernel, target = mercer.Matern(1.5, 0.3), np.array([0.3, 0.2])
    of = [Moments(), CellMasses([[0.2]], [[0.4]])]
    found = mercer.optimal_density(ConvexFunctional(of, *quadratic(target)), Z, kernel, box=(0, 1), tol=1e-4)
    p, inside = found.density(X[:, None]), np.linspace(0.2, 0.4, 20_001)
    expected = [np.trapezoid(p * X, X), np.trapezoid(found.density(inside[:, None]), inside)]
    np.testing.assert_allclose(found.functionals_, expected, atol=1e-6)


@pytest.mark.parametrize("measure", [GaussianMeasure(np.array([0.2, 0.1]), 1.5), TILTED])
def test_moments_under_a_normal_law_are_those_of_the_density(measure):
    support = np.random.default_rng(0).standard_normal((8, 2))
    functional = ConvexFunctional(Moments(2), *quadratic(np.array([0.1, 0.2, 1.0, 0.3, 0.8])))
    found = mercer.optimal_density(functional, support, mercer.Gaussian(sigma=1.5), reference=measure, tol=1e-5)
    mean, second = found.mean(), found.covariance() + np.outer(found.mean(), found.mean())
    np.testing.assert_allclose(found.functionals_, [*mean, *second[np.triu_indices(2)]], atol=1e-9)


def test_a_density_on_the_nodes_of_a_quadrature():
    """With respect to a sum over nodes every functional is a sum: expectations are exact, in any dimension."""
    rng = np.random.default_rng(0)
    nodes, weights = rng.standard_normal((40, 4)), rng.uniform(0.5, 1.5, 40)
    functional = ConvexFunctional(Expectations(lambda x: x), *quadratic(np.full(4, 0.2)))
    found = mercer.optimal_density(
        functional,
        nodes[:8],
        mercer.Gaussian(sigma=2.0),
        reference=DiscreteMeasure(nodes, weights),
        regularization=1e-3,
    )
    masses = found.density(nodes) * weights
    assert masses.sum() == pytest.approx(1.0, abs=1e-9)
    np.testing.assert_allclose(found.functionals_, masses @ nodes, atol=1e-9)
    assert found.certificate_.holds(1e-5)


def test_five_dimensions():
    rng = np.random.default_rng(0)
    support = rng.standard_normal((12, 5))
    target = np.full(5, 0.1)
    functional = ConvexFunctional(
        [Moments(), EmbeddingValues(support[:3])], *quadratic(np.append(target, [0.1, 0.2, 0.1]))
    )
    found = mercer.optimal_density(functional, support, mercer.Gaussian(sigma=2.0), regularization=1e-4, tol=1e-6)
    assert found.certificate_.holds(1e-6)
    np.testing.assert_allclose(found.mean(), found.functionals_[:5], atol=1e-9)


def test_no_density_is_below_the_proved_bound():
    """Random ones of low rank, which reach the corners of the spectrahedron."""
    rng, functional = np.random.default_rng(3), ConvexFunctional(Moments(2), *quadratic(np.array([0.7, 0.3])))
    found = mercer.optimal_density(functional, Z, KERNEL, box=(0, 1), regularization=1e-3)
    problem = pose(functional, Setting(KERNEL, Z, Box(np.zeros(1), np.ones(1))), 1e-3, 1e-8)
    best = np.inf
    for _ in range(500):
        F = (
            rng.standard_normal((problem.dimension, int(rng.integers(1, 3))))
            * np.geomspace(1, 1e-3, problem.dimension)[:, None]
        )
        F /= np.linalg.norm(F)
        best = min(
            best, problem.function.value(problem.functional_values(F)) + float((F * (problem.penalty @ F)).sum())
        )
    assert found.certificate_.lower <= best


def certified(functional, factor=None, below=0.0, above=0.0, accuracy=1e-13):
    problem = pose(functional, Setting(KERNEL, Z, Lebesgue()), 0.0, 1e-8)
    F = np.eye(problem.dimension) if factor is None else factor
    prices = (np.full(problem.count, float(price)) for price in (below, above))
    return certify_convex_squares(problem, PricedFactor(F, *prices), accuracy)


def mean_on_the_line():
    return pose(ConvexFunctional(Moments()), Setting(KERNEL, Z, Lebesgue()), 0.0, 1e-8)


def dimension():
    return mean_on_the_line().dimension


def certified_value(factor):
    """The mean of a density as a ball."""
    problem = mean_on_the_line()
    programme = problem.squares.enclosures
    L = programme.basis @ (factor / np.linalg.norm(factor))
    return (problem.functionals.values(L) * (L * (programme.mass @ L)).sum().inverse())[0]


def test_a_density_beyond_its_bounds_is_no_upper_bound():
    inside = certified(ConvexFunctional(Moments(), lower=0.0, upper=1.0))
    outside = certified(ConvexFunctional(Moments(), lower=0.7, upper=1.0))
    assert -1e-12 < inside.lower <= 0.0 <= inside.upper < 1e-12
    assert outside.upper == np.inf


def test_prices_are_not_believed():
    """Negative ones of bounds that no density reaches would raise the bound above the optimum, which is 0 here."""
    functional = ConvexFunctional(Moments(), lower=-5.0, upper=5.0)
    for below, above in ((-10.0, 0.0), (0.0, -10.0), (5.0, 0.0), (0.0, 5.0), (np.pi, 3.0)):
        assert -100.0 < certified(functional, below=below, above=above).lower <= 0.0


def test_prices_of_bounds_that_are_not_there_are_left_out():
    functional = ConvexFunctional(Moments(), lambda u: float(u[0]), np.ones_like)
    plain, priced = certified(functional), certified(functional, below=1.0, above=3.0)
    assert priced.lower == plain.lower


def test_the_accuracy_of_a_function_is_allowed_for():
    """A constant of 1e9 takes digits of a square away: the value is off by some 1e-7, and so may the bound be."""
    shifted = ConvexFunctional(
        Moments(),
        lambda u: np.float64(1e9) + float((u[0] - 0.5) ** 2) - 6e-8,
        lambda u: 2.0 * (u - 0.5),
    )
    loose = certified(shifted, accuracy=1e-15)
    assert loose.upper - loose.lower > 1e-6
    assert certified(shifted, accuracy=1e-13).lower < loose.lower


def test_what_rounding_of_the_argument_does_to_a_gradient_is_allowed_for():
    """At its minimum a steep quadratic has neither value nor slope, and what floating point says of both is rounding."""
    near = float(certified_value(np.eye(dimension())).hi)
    steep = ConvexFunctional(
        Moments(),
        lambda u: 1e12 * float((u[0] - near) ** 2),
        lambda u: 2e12 * (u - near),
        hessian=lambda u: np.full((1, 1), 2e12),
    )
    proof = certified(steep)
    assert -1e3 < proof.lower <= -1e-13 * 2e12 * near * near


def test_functionals_between_two_doubles_are_allowed_for():
    """F = 1e6 (u - û) vanishes at the double û next to u, and is what lies between the two at the density itself."""
    for column in range(4):
        factor = np.eye(dimension())[:, column : column + 1]
        u = certified_value(factor)
        near = float(u.hi)
        between = ConvexFunctional(Moments(), lambda u, near=near: 1e6 * (u[0] - near), lambda u: np.full(1, 1e6))
        proof = certified(between, factor, accuracy=1e-300)
        assert proof.upper >= 1e6 * abs(float(u.lo)) > 0.0


def test_a_kink_is_named():
    kinked = ConvexFunctional(Moments(), lambda u: abs(float(u[0]) - 0.4), lambda u: np.sign(u - 0.4))
    with pytest.warns(UserWarning, match="kinks"):
        found = mercer.optimal_density(kinked, Z, KERNEL, box=(0, 1))
    assert found.certificate_.lower <= 0.0 <= found.certificate_.upper


def test_wrong_functions_are_refused():
    def solve(value, gradient, **more):
        return mercer.optimal_density(ConvexFunctional(Moments(), value, gradient, **more), Z, KERNEL, box=(0, 1))

    with pytest.raises(ValueError, match="gradient does not fit value"):
        solve(lambda u: float(u[0] ** 2), lambda u: 3.0 * u)
    with pytest.raises(ValueError, match="not convex"):
        solve(lambda u: -float(u[0] ** 2), lambda u: -2.0 * u)
    with pytest.raises(ValueError, match="gradient must return 1 numbers"):
        solve(lambda u: 0.0, lambda u: np.zeros(3))
    with pytest.raises(ValueError, match="value must return one number"):
        solve(lambda u: np.ones(3), lambda u: u)
    with pytest.raises(ValueError, match="gradient returns nan in entry 0"):
        solve(lambda u: 0.0, lambda u: u * np.nan)
    with pytest.raises(ValueError, match="hessian must return"):
        solve(lambda u: 0.0, lambda u: 0.0 * u, hessian=lambda u: np.zeros(3))


def test_a_function_that_bends_the_wrong_way_on_the_path_alone_is_refused():
    """Convex where it is sampled first, concave near its minimum."""

    def value(u):
        return float(np.abs(u[0] - 0.1) ** 1.5 if u[0] > 0.2 else 0.1**1.5 - (0.2 - u[0]) * 3)

    def gradient(u):
        return np.array([1.5 * np.abs(u[0] - 0.1) ** 0.5 if u[0] > 0.2 else 3.0])

    with pytest.raises(ValueError, match="not convex"):
        mercer.optimal_density(ConvexFunctional(Moments(), value, gradient), Z, KERNEL, box=(0, 1))


def test_bounds_that_no_density_keeps_are_refused_with_a_proof():
    with pytest.raises(ValueError, match="No density on this support keeps the bounds"):
        mercer.optimal_density(ConvexFunctional(Moments(2), lower=[0.9, 0.0], upper=[1.0, 0.5]), Z, KERNEL, box=(0, 1))
    with pytest.raises(ValueError, match="leave a tolerance"):
        mercer.optimal_density(ConvexFunctional(Moments(), lower=0.5, upper=0.5), Z, KERNEL, box=(0, 1))


def test_bounds_that_the_first_density_does_not_keep_are_reached():
    functional = ConvexFunctional(Moments(2), lower=[0.85, -np.inf], upper=[0.9, 0.78])
    found = mercer.optimal_density(functional, Z, KERNEL, box=(0, 1), regularization=1e-3)
    assert found.certificate_.holds(1e-5)
    assert 0.85 <= found.functionals_[0] <= 0.9
    assert found.functionals_[1] <= 0.78


@pytest.mark.parametrize(
    ("call", "match"),
    [
        (lambda: ConvexFunctional([]), "of must be linear functionals"),
        (lambda: ConvexFunctional(Moments(), lambda u: 0.0), "value and gradient go together"),
        (lambda: ConvexFunctional(Moments(), 3, 4), "value=3 must be a function"),
        (lambda: ConvexFunctional(Moments(), accuracy=0), "accuracy"),
        (lambda: Moments(3), "must be 1 or 2"),
        (lambda: CellMasses.between([1.0]), "at least two"),
        (lambda: CellMasses([[1.0]], [[0.0]]), "lower ones below"),
        (lambda: Expectations(3), "function of points"),
        (lambda: mercer.optimal_density(3, Z), "must be a mercer.density.ConvexFunctional"),
        (lambda: _solve(Moments(), kernel=mercer.Precomputed()), "not Precomputed"),
        (lambda: _solve(Moments(), tol=0.0), "tol"),
        (lambda: _solve(EmbeddingValues([[1.0, 2.0]])), "have 2 features where the support has 1"),
        (lambda: _solve(CellMasses.between([0.5, 1.5])), "reach out of the box"),
        (lambda: _solve(CellMasses.between([0.5, 0.7]), box=None, reference=(0.0, 1.0)), "Expectations instead"),
        (lambda: _solve(Expectations(lambda x: x[:3])), "a row for each of"),
        (lambda: _solve(Moments(), lower=[0.0, 1.0]), "one for each of the 1 functionals"),
    ],
)
def test_bad_input(call, match):
    with pytest.raises((TypeError, ValueError), match=match):
        call()


def _solve(of, *, kernel=KERNEL, lower=None, **options):
    return mercer.optimal_density(ConvexFunctional(of, lower=lower), Z, kernel, **{"box": (0, 1), **options})


def test_a_density_answers_keeps_and_is_proved_again():
    pandas = pytest.importorskip("pandas")
    functional = cells_and_mean(0.2, 0.6)
    found = mercer.optimal_density(functional, pandas.DataFrame(Z.astype(np.float32)), KERNEL, box=(0, 1), tol=1e-5)
    again = pickle.loads(pickle.dumps(found))
    proof = mercer.verify(again, functional)
    assert proof.holds(1e-5)
    assert proof.lower <= found.certificate_.upper
    np.testing.assert_allclose(found.quantile(found.cdf([0.3, 0.8])), [0.3, 0.8], atol=1e-6)
    assert found.sample(5, random_state=0).shape == (5, 1)
    assert np.isclose(found.score_samples([[0.3]])[0], np.log(found.density([[0.3]])[0]))
    np.testing.assert_allclose(found.coefficients_, found.factor_ @ found.factor_.T)
    with pytest.raises(ValueError, match="2 features where the density has 1"):
        found.density([[0.1, 0.2]])
    with pytest.raises(TypeError, match="ConvexFunctional that it minimises"):
        mercer.verify(again, Z)
    for name, changed in (("functionals_", 1.01), ("coefficients_", 2.0), ("_factor", 1.5), ("prices_", np.inf)):
        damaged = pickle.loads(pickle.dumps(found))
        with np.errstate(invalid="ignore"):
            setattr(damaged, name, getattr(damaged, name) * changed)
        with pytest.raises(ValueError, match="damaged"):
            mercer.verify(damaged, functional)
    narrower = pickle.loads(pickle.dumps(found))
    narrower._spans = narrower._spans._replace(basis=narrower._spans.basis[:, :-1])
    with pytest.raises(ValueError, match="span of densities leaves out"):
        mercer.verify(narrower, functional)
    embedded = mercer.MeanEmbedding.of_density(found)
    np.testing.assert_allclose(
        embedded([[0.5]]), np.trapezoid(found.density(X[:, None]) * KERNEL(X[:, None], [[0.5]])[:, 0], X), rtol=1e-6
    )


def test_an_interrupted_run_returns_its_best_density():
    functional, calls = cells_and_mean(0.2, 0.6), []
    value = functional.value

    def interrupted(u):
        calls.append(None)
        if len(calls) == 25:
            raise KeyboardInterrupt
        return value(u)

    functional.value = interrupted
    with pytest.warns(UserWarning, match="interrupted"):
        found = mercer.optimal_density(functional, Z, KERNEL, box=(0, 1), tol=1e-9)
    assert found.status_.name == "INTERRUPTED"
    assert found.certificate_.lower < found.certificate_.upper < 0


def test_a_run_can_be_stopped():
    lines = []

    def stop(line):
        lines.append(line)
        return len(lines) > 2

    with pytest.warns(UserWarning, match="certified gap"):
        found = mercer.optimal_density(cells_and_mean(0.2, 0.6), Z, KERNEL, box=(0, 1), tol=1e-9, callback=stop)
    assert found.status_.name == "STOPPED"
    assert len(found.history_) == 3
    assert found.certificate_.lower <= found.certificate_.upper
