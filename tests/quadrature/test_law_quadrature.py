"""Quadratures of a law: against non-negative least squares, fine rules, samples, and with every allowance taken away."""

from __future__ import annotations

import itertools
import pickle
from dataclasses import replace

import mpmath
import numpy as np
import pandas as pd
import pytest
from halton_oracle import KERNEL, points
from scipy.optimize import nnls

import mercer
from mercer import Box, DiscreteMeasure, Gaussian, GaussianMeasure, Laplacian, Precomputed, QuadratureSparsifier
from mercer.backends.balls import Ball
from mercer.certificates import certify_measure
from mercer.certificates.measure_rounding import MeasureFacts
from mercer.kernels.integrals.law_sections import _error_function, law_sections
from mercer.operators import GramOperator
from mercer.problems import Discrepancy
from mercer.problems.discrepancy import TargetLaw
from mercer.quadrature import squared_kernel_discrepancy
from mercer.solvers.measure.active_set import solve_exactly

COVARIANCE = np.array([[0.2, 0.1], [0.1, 0.15]])
LAWS = {
    "box": Box([-1.0, -1.0], [1.0, 1.0]),
    "normal": GaussianMeasure([0.0, 0.1], 0.4),
    "covariance": GaussianMeasure([0.0, 0.1], covariance=COVARIANCE),
}


def fine_rule(law):
    """Nodes and weights of a law, whose integrals of these kernels are exact to many digits."""
    if isinstance(law, Box):
        x, w = np.polynomial.legendre.leggauss(36)
        root, centre = np.eye(2), np.zeros(2)
        w = w / 2
    else:
        x = np.linspace(-7, 7, 45)
        w = np.exp(-(x**2) / 2) * (x[1] - x[0]) / np.sqrt(2 * np.pi)
        root = 0.4 * np.eye(2) if law.covariance is None else np.linalg.cholesky(COVARIANCE)
        centre = np.array([0.0, 0.1])
    nodes = np.stack(np.meshgrid(x, x, indexing="ij"), -1).reshape(-1, 2) @ root.T + centre
    return nodes, np.outer(w, w).reshape(-1)


@pytest.mark.parametrize("name", LAWS)
@pytest.mark.parametrize("discrepancy", ["squared", "mmd"])
def test_the_best_weights_are_those_of_non_negative_least_squares(name, discrepancy):
    """At α = 0 the programme is ½ vᵀSv - qᵀv over v ≥ 0, with q and the constant from a fine rule."""
    X, law = np.random.default_rng(0).uniform(-1, 1, (40, 2)), LAWS[name]
    nodes, weights = fine_rule(law)
    kernel = Gaussian(sigma=0.6) ** 2 if discrepancy == "squared" else Gaussian(sigma=0.6)
    S, q = kernel(X), kernel(X, nodes) @ weights
    constant = 0.5 * weights @ (GramOperator(kernel, nodes) @ weights)
    root = np.linalg.cholesky(S + 1e-13 * np.eye(40))
    v, _ = nnls(root.T, np.linalg.solve(root, q), maxiter=4000)
    model = QuadratureSparsifier(Gaussian(sigma=0.6), alpha=0.0, measure=law, discrepancy=discrepancy).fit(X)
    best = 0.5 * v @ S @ v - q @ v + constant
    assert model.discrepancy_ == pytest.approx(best, rel=1e-6)
    proof = mercer.verify(model, X)
    assert proof.lower <= best * (1 + 1e-9)
    assert proof.upper >= model.discrepancy_
    assert proof.upper - proof.lower < 1e-11


@pytest.mark.parametrize("name", LAWS)
def test_the_discrepancy_is_the_true_one_to_the_law(name):
    X, law = np.random.default_rng(1).uniform(-1, 1, (150, 2)), LAWS[name]
    model = QuadratureSparsifier(Gaussian(sigma=0.7), n_nodes=12, measure=law).fit(X)
    nodes, weights = fine_rule(law)
    whole = squared_kernel_discrepancy(
        nodes, X[model.indices_], Gaussian(sigma=0.7), x_weights=weights, y_weights=model.weights_
    )
    assert model.discrepancy_ == pytest.approx(0.5 * whole, rel=1e-7)
    witness = (
        Gaussian(sigma=0.7)(X, X[model.indices_]) ** 2 @ model.weights_ - Gaussian(sigma=0.7)(X, nodes) ** 2 @ weights
    )
    assert np.allclose(model.witness(X), witness, atol=1e-10)


def test_the_witness_is_that_of_a_one_class_machine():
    model = QuadratureSparsifier(KERNEL, alpha=0.01, measure=LAWS["box"]).fit(points()[:400])
    witness = model.witness(points()[:400])
    assert np.allclose(witness[model.indices_], -0.01, atol=1e-12)
    assert witness.min() > -0.01 - 1e-12


@pytest.mark.parametrize("wish", [{"alpha": 0.004}, {"trace_fraction": 0.8}, {"n_nodes": 15}], ids=str)
def test_points_of_a_law_as_candidates_are_the_sample_itself(wish):
    rng = np.random.default_rng(2)
    X, weights = rng.normal(size=(80, 2)), rng.uniform(0.5, 2.0, 80)
    sample = QuadratureSparsifier(Gaussian(sigma=1.0), **wish).fit(X, sample_weight=weights)
    law = QuadratureSparsifier(Gaussian(sigma=1.0), **wish, measure=DiscreteMeasure(X, weights)).fit(X)
    assert np.array_equal(np.sort(law.indices_), np.sort(sample.indices_))
    assert law.discrepancy_ == pytest.approx(sample.discrepancy_, rel=1e-7)
    assert law.trace_fraction_ == pytest.approx(sample.trace_fraction_, rel=1e-10)


def test_quadratures_of_samples_come_near_that_of_the_law_and_halton_points_do_not_reach_it():
    """A dense sample stands for the law better and better; what is best for the law is best for the law."""
    law, candidates = LAWS["box"], points()[:600]
    best = QuadratureSparsifier(KERNEL, n_nodes=25, measure=law).fit(candidates)

    def to_the_law(X, weights):
        sections = law_sections(KERNEL**2, X, Box(np.array([-1.0, -1.0]), np.array([1.0, 1.0])))
        return 0.5 * weights @ KERNEL(X) ** 2 @ weights - sections.values @ weights + 0.5 * sections.energy

    halton = to_the_law(points()[:25], np.full(25, 1 / 25))
    assert best.discrepancy_ < 0.5 * halton
    assert best.discrepancy_ == pytest.approx(to_the_law(best.components_, best.weights_), rel=1e-9)
    apart = [to_the_law(points()[:n], np.full(n, 1 / n)) for n in (50, 200, 800, 2016)]
    assert all(later < 0.5 * earlier for earlier, later in itertools.pairwise(apart))
    sampled = QuadratureSparsifier(KERNEL, n_nodes=25).fit(candidates)
    assert best.discrepancy_ <= 1.03 * to_the_law(sampled.components_, sampled.weights_)  # nodes by a local search


def programme(slip=0.0, energy_slip=0.0, stated=None):
    """Forty candidates for the uniform law on a square, with integrals that are wrong by some amount."""
    X = np.random.default_rng(3).uniform(-1, 1, (40, 2))
    exact = law_sections(KERNEL**2, X, Box(np.full(2, -1.0), np.full(2, 1.0)))
    stated = (np.abs(slip) * np.ones(40), abs(energy_slip)) if stated is None else stated
    wrong = replace(
        exact, values=exact.values + slip, energy=exact.energy + energy_slip, errors=stated[0], energy_error=stated[1]
    )
    return Discrepancy(GramOperator(KERNEL**2, X), np.full(40, 1 / 40), np.ones(40), law=TargetLaw(wrong, 1.0))


def objective(problem, nodes, values, alpha):
    return problem.value(nodes, values) + alpha * problem.trace(nodes, values)


ALPHA = 0.005


def solved(problem):
    point = solve_exactly(problem.regularised(ALPHA)).point
    return point.nodes, point.values


@pytest.mark.parametrize("errors", [{"slip": -1e-6}, {"energy_slip": 1e-6}], ids=str)
def test_the_lower_bound_counts_the_errors_of_the_integrals(errors):
    """Integrals that make the law seem further away than it is have an optimum above that of the exact ones."""
    exact, wrong = programme(), solved(programme(**errors))
    best = objective(exact, *solved(exact), ALPHA)
    assert certify_measure(programme(**errors), *wrong, alpha=ALPHA).lower <= best
    assert certify_measure(programme(**errors, stated=(np.zeros(40), 0.0)), *wrong, alpha=ALPHA).lower > best


@pytest.mark.parametrize("errors", [{"slip": 1e-6}, {"energy_slip": -1e-6}], ids=str)
def test_the_upper_bound_counts_the_errors_of_the_integrals(errors):
    """Integrals that make the law seem nearer than it is give a measure less than its objective."""
    exact, wrong = programme(), solved(programme(**errors))
    value = objective(exact, *wrong, ALPHA)
    assert certify_measure(programme(**errors), *wrong, alpha=ALPHA).upper >= value
    assert certify_measure(programme(**errors, stated=(np.zeros(40), 0.0)), *wrong, alpha=ALPHA).upper < value


def test_what_the_bounds_take_of_a_law_is_taken_from_above():
    problem = programme(stated=(np.full(40, 1e-3), 1e-2))
    facts, energy = MeasureFacts(problem, *solved(problem), 0.0), problem.law.sections.energy + 1e-2
    assert facts.constant >= 0.5 * energy
    assert facts.weight_of_sample**2 >= energy
    assert np.all(facts.error >= 1e-3)
    assert np.all(facts.most_distortion >= problem.distortion + 1e-3)


def test_a_law_is_no_measure_on_the_candidates():
    """dᵀu ≤ dᵀω at an optimum holds where ω is feasible: candidates far away may need more weight than the law has."""
    X = np.array([[0.9, 0.0], [-0.9, 0.0], [0.0, 0.9], [0.0, -0.9]])
    law = GaussianMeasure([0.0, 0.0], 0.05)
    model = QuadratureSparsifier(Gaussian(sigma=1.5), alpha=1e-5, measure=law).fit(X)
    assert model.kappa_ > 1.05
    assert model.certificate_.holds(1e-6)
    sections = law_sections(Gaussian(sigma=1.5) ** 2, X, GaussianMeasure(np.zeros(2), 0.05))
    problem = Discrepancy(
        GramOperator(Gaussian(sigma=1.5) ** 2, X), np.ones(4), np.ones(4), law=TargetLaw(sections, 1.0)
    )
    lighter = certify_measure(problem, model.indices_, 0.999 * model.weights_, alpha=1e-5)  # all four want to grow
    assert lighter.lower <= model.certificate_.upper


def test_verification_refuses_another_law_and_copies_are_the_same():
    X = points()[:150]
    model = QuadratureSparsifier(KERNEL, n_nodes=10, measure=Box(-1.0, 1.0)).fit(X)
    copy = pickle.loads(pickle.dumps(model))
    assert mercer.verify(copy, X).lower == mercer.verify(model, X).lower
    copy.measure = Box(-1.0, 1.1)
    with pytest.raises(ValueError, match="measure_ is another"):  # which witness integrates against
        mercer.verify(copy, X)
    copy.measure_ = Box(np.full(2, -1.0), np.full(2, 1.1))
    with pytest.raises(ValueError, match="discrepancy_ is .* the model was changed after its fit"):
        mercer.verify(copy, X)
    framed = QuadratureSparsifier(KERNEL, n_nodes=10, measure=Box(-1.0, 1.0)).fit(pd.DataFrame(X, columns=["a", "b"]))
    assert np.array_equal(framed.indices_, model.indices_)


def test_tensors_and_single_precision_give_the_same_quadrature():
    torch = pytest.importorskip("torch")
    X = points()[:120]
    law = GaussianMeasure([0.0, 0.0], covariance=COVARIANCE)
    model = QuadratureSparsifier(KERNEL, alpha=0.01, measure=law).fit(X)
    tensors = QuadratureSparsifier(KERNEL, alpha=0.01, measure=law).fit(torch.as_tensor(X))
    assert isinstance(tensors.weights_, torch.Tensor)
    assert np.array_equal(np.sort(tensors.indices_.numpy()), np.sort(model.indices_))
    assert tensors.discrepancy_ == pytest.approx(model.discrepancy_, rel=1e-9)
    assert mercer.verify(tensors, torch.as_tensor(X)).holds(1e-6)
    with mercer.config_context(dtype="float32"):
        single = QuadratureSparsifier(KERNEL, alpha=0.01, measure=law).fit(X.astype(np.float32))
    assert single.discrepancy_ == pytest.approx(model.discrepancy_, rel=1e-3)
    assert single.certificate_.lower <= model.certificate_.upper * (1 + 1e-5)


@pytest.mark.parametrize("unit", [2.0**-480, 2.0**480])
def test_any_unit_of_length_gives_the_same_quadrature(unit):
    X = points()[:60]
    for law, scaled in [
        (Box(-1.0, 1.0), Box(-unit, unit)),
        (GaussianMeasure([0, 0], 0.5), GaussianMeasure([0, 0], 0.5 * unit)),
        (GaussianMeasure([0, 0], covariance=COVARIANCE), GaussianMeasure([0, 0], covariance=unit**2 * COVARIANCE)),
    ]:
        one = QuadratureSparsifier(Gaussian(sigma=0.5), alpha=0.01, measure=law).fit(X)
        other = QuadratureSparsifier(Gaussian(sigma=0.5 * unit), alpha=0.01, measure=scaled).fit(unit * X)
        assert np.array_equal(one.indices_, other.indices_)
        assert one.certificate_.lower == pytest.approx(other.certificate_.lower, rel=1e-9)


@pytest.mark.parametrize(
    ("options", "fit", "sentence"),
    [
        ({"measure": "uniform"}, {}, "measure='uniform' must be a Box, a GaussianMeasure or a DiscreteMeasure"),
        ({"measure": mercer.Lebesgue()}, {}, "its mass is infinite"),
        ({"measure": Box(0, 1), "penalty": np.ones(30)}, {}, "penalty goes with a sample"),
        ({"measure": Box(0, 1)}, {"sample_weight": np.ones(30)}, "sample_weight has no effect with measure"),
        ({"measure": Box(0, 1), "kernel": Laplacian(1.0)}, {}, "have no closed form here"),
        ({"measure": Box([0, 0, 0], [1, 1, 1])}, {}, "must have 2 entries each"),
        ({"measure": Box(90.0, 91.0)}, {}, "No point has any weight"),
        ({"measure": Box(90.0, 91.0), "alpha": 1e-9}, {}, "the best measure is the empty one"),
    ],
    ids=range(8),
)
def test_what_makes_no_sense_is_refused(options, fit, sentence):
    with pytest.raises(ValueError, match=sentence):
        QuadratureSparsifier(**({"kernel": Gaussian(sigma=1.0)} | options)).fit(
            np.random.default_rng(0).normal(size=(30, 2)), **fit
        )


def test_a_matrix_has_no_integrals_and_a_law_no_sample():
    with pytest.raises(ValueError, match="are taken at points: pass points, not Precomputed"):
        QuadratureSparsifier(Precomputed(), n_nodes=2, measure=Box(0, 1)).fit(np.eye(4))
    model = QuadratureSparsifier(KERNEL, n_nodes=5, measure=Box(-1, 1)).fit(points()[:60])
    with pytest.raises(ValueError, match="draw points of the law"):
        model.eigenpairs(3)


def test_the_error_function_is_within_its_ball():
    """SciPy's is a unit in the last place or two away from the truth, which the ball must hold."""
    z = np.random.default_rng(0).uniform(0.05, 5.0, 400) * np.resize([1.0, -1.0], 400)
    found = _error_function(Ball(z))
    with mpmath.workdps(40):
        exact = [mpmath.erf(mpmath.mpf(x)) for x in z]
        away = [abs(mpmath.mpf(v) - e) for v, e in zip(found.hi, exact, strict=True)]
        assert all(a <= mpmath.mpf(r) for a, r in zip(away, found.radius, strict=True))
