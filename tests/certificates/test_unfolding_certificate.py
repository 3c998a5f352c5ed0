"""The certificate of an unfolding: true for any multipliers and any points, with every allowance it makes."""

from __future__ import annotations

from fractions import Fraction

import mpmath
import numpy as np
import pytest
from unfolding_oracle import largest_variance

from mercer.certificates import CrossedBoundsError, certify_unfolding
from mercer.certificates import unfolding as module
from mercer.problems import Unfolding
from mercer.solvers.run import Goal, solve
from mercer.solvers.unfolding.interior_point import UnfoldingInteriorPoint


def random_problem(seed, *, kept, weighted=True, n=None):
    """A connected random graph on random points: a path through all of them and some more pairs."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(5, 15)) if n is None else n
    X = rng.standard_normal((n, int(rng.integers(1, 4))))
    path = np.sort(np.stack([np.arange(n - 1), np.arange(1, n)], axis=1), axis=1)
    more = np.sort(rng.integers(0, n, (2 * n, 2)), axis=1)
    pairs = np.unique(np.concatenate([path, more[more[:, 0] < more[:, 1]]]), axis=0)
    squares = ((X[pairs[:, 0]] - X[pairs[:, 1]]) ** 2).sum(axis=1)
    masses = rng.uniform(0.2, 3.0, n) if weighted else np.ones(n)
    wide = 10.0 ** rng.uniform(-3, -1)
    lower, upper = (squares * (1 - wide) ** 2, squares * (1 + wide) ** 2) if kept else (0 * squares, squares)
    return Unfolding(pairs, lower, upper, masses)


def solved(problem, tol=1e-8):
    return solve(problem, UnfoldingInteriorPoint(), goal=Goal(tol, max_iter=100))


def stored(problem, point):
    """The points of a solution in all coordinates that matter."""
    return problem.of_fewer_coordinates(problem.principal_points(point.gram), 1e-12)


@pytest.mark.parametrize("kept", [True, False])
@pytest.mark.parametrize("seed", range(15))
def test_agrees_with_a_conic_solver(seed, kept):
    problem = random_problem(seed, kept=kept)
    point = solved(problem).point
    proof = certify_unfolding(problem, stored(problem, point), point.multipliers)
    truth = largest_variance(problem.pairs, problem.lower, problem.upper, problem.masses)
    assert proof.holds(1e-6)
    assert truth == pytest.approx(proof.lower, rel=1e-5)
    assert proof.failure_probability == 0


@pytest.mark.slow
@pytest.mark.parametrize("kept", [True, False])
@pytest.mark.parametrize("seed", range(100, 115))
def test_agrees_with_a_conic_solver_on_larger_graphs(seed, kept):
    problem = random_problem(seed, kept=kept, n=20 + 4 * (seed % 11))
    point = solved(problem).point
    proof = certify_unfolding(problem, stored(problem, point), point.multipliers)
    truth = largest_variance(problem.pairs, problem.lower, problem.upper, problem.masses)
    assert proof.holds(1e-6)
    assert truth == pytest.approx(proof.lower, rel=1e-4)


@pytest.mark.parametrize("kept", [True, False])
@pytest.mark.parametrize("seed", range(3))
def test_any_multipliers_bound_the_optimum(seed, kept):
    """Wrong ones bound it from farther away, or not at all; never from the wrong side."""
    problem = random_problem(seed, kept=kept)
    point, rng = solved(problem).point, np.random.default_rng(seed)
    points = stored(problem, point)
    best = certify_unfolding(problem, points, point.multipliers)
    for size in (1e-6, 1e-3, 0.1, 1.0):
        w = point.multipliers * rng.uniform(1 - size, 1 + size, point.multipliers.shape)
        assert certify_unfolding(problem, points, w).upper >= best.lower
    if not kept:  # springs that push hold nothing where distances may shrink: they count as they are
        assert certify_unfolding(problem, points, -point.multipliers).upper == np.inf


def exact_variance(masses, points):
    m, Y = [Fraction(v) for v in masses], [[Fraction(v) for v in row] for row in points]
    total = sum(m)
    means = [sum(a * row[k] for a, row in zip(m, Y, strict=True)) / total for k in range(len(Y[0]))]
    return sum(a * sum((v - c) ** 2 for v, c in zip(row, means, strict=True)) for a, row in zip(m, Y, strict=True))


@pytest.mark.parametrize("offset", [0.0, 1e6, 1e12])
def test_the_lower_bound_is_below_the_exact_variance(offset):
    problem = random_problem(3, kept=False)
    points = np.random.default_rng(0).standard_normal((problem.size, 3)) + offset
    found = module._variance_below(problem, points)
    truth = exact_variance(problem.masses, points)
    assert 0 <= truth - Fraction(found) <= truth * Fraction(1, 10**13) + Fraction(1, 10**20)


@pytest.mark.parametrize("kept", [True, False])
def test_no_exact_distance_passes_its_bounds_by_more_than_the_violation(kept):
    problem = random_problem(4, kept=kept)
    rng = np.random.default_rng(1)
    Y = stored(problem, solved(problem).point)
    for factor in (1.0, 1 + 1e-15, 1 + 1e-9, 0.99):
        points = factor * Y * (1 + 1e-12 * rng.standard_normal(Y.shape))
        violation = Fraction(module.largest_violation(problem, points))
        for (i, j), lo, hi in zip(problem.pairs, problem.lower, problem.upper, strict=True):
            square = sum((Fraction(a) - Fraction(b)) ** 2 for a, b in zip(points[i], points[j], strict=True))
            assert square <= Fraction(hi) * (1 + violation)
            assert square >= Fraction(lo) * (1 - violation)


def test_stored_points_exceed_no_distance_at_all():
    problem = random_problem(5, kept=False)
    point = solved(problem).point
    assert certify_unfolding(problem, stored(problem, point), point.multipliers).violation == 0


def exact_connectivity(problem, w):
    """λ₂ of Diag(m)^-½ L_w Diag(m)^-½ in forty digits."""
    with mpmath.workdps(40):
        n, root = problem.size, [mpmath.sqrt(mpmath.mpf(m)) for m in problem.masses]
        L = mpmath.zeros(n)
        for (i, j), value in zip(problem.pairs.tolist(), w, strict=True):
            for a, b, sign in ((i, i, 1), (j, j, 1), (i, j, -1), (j, i, -1)):
                L[a, b] += sign * mpmath.mpf(value)
        scaled = mpmath.matrix(n, n)
        for a in range(n):
            for b in range(n):
                scaled[a, b] = L[a, b] / root[a] / root[b]
        return sorted(mpmath.eigsy(scaled, eigvals_only=True))[1]


def small_graph(seed):
    rng = np.random.default_rng(seed)
    pairs = np.array([[0, 1], [0, 2], [1, 2], [1, 3], [2, 3]])
    problem = Unfolding(pairs, np.zeros(5), np.ones(5), rng.uniform(0.1, 3.0, 4))
    w = 10.0 ** rng.uniform(-1, 4, 5)
    return problem, w / (2 * float(exact_connectivity(problem, w)))


@pytest.mark.parametrize("seed", range(4))
def test_connectivity_is_below_the_exact_one_and_near(seed):
    problem, w = small_graph(seed)
    w = 2.2 * w  # λ = 1.1, at which the first factorisation succeeds
    assert 0.9 <= module.connectivity(problem, w) <= exact_connectivity(problem, w)
    assert 0.2 <= module.connectivity(problem, 0.5 * w) <= exact_connectivity(problem, 0.5 * w)


def test_connectivity_counts_the_rounding_of_its_matrix(monkeypatch):
    """With the exact eigenvalue of the rounded matrix in place of a bound, only that allowance is left."""

    def exact(matrix, guess):
        with mpmath.workdps(40):
            return float(max(mpmath.eigsy(mpmath.matrix(matrix.tolist()), eigvals_only=True)) * (1 - 1e-30))

    monkeypatch.setattr(module, "bound_largest_eigenvalue", exact)
    for seed in range(20):
        problem, w = small_graph(seed)
        assert module.connectivity(problem, w) <= exact_connectivity(problem, w)


@pytest.mark.parametrize("light", [1e-4, 1e-9, 1e-15])
def test_points_of_hardly_any_mass_cost_no_digits(light):
    plain = random_problem(9, kept=False)
    masses = np.where(np.arange(plain.size) % 3 == 0, light, 1.0)
    problem = Unfolding(plain.pairs, plain.lower, plain.upper, masses)
    point = solved(problem.raised).point
    proof = certify_unfolding(problem, stored(problem, point), point.multipliers)
    assert proof.holds(1e-4)
    heavy = Unfolding(plain.pairs, plain.lower, plain.upper, np.maximum(masses, 1e-3))
    assert proof.lower <= certify_unfolding(heavy, stored(problem, point), solved(heavy).point.multipliers).upper


@pytest.mark.parametrize("violation", [0.0, 1e-3])
def test_the_dual_value_is_above_the_exact_one(violation):
    rng = np.random.default_rng(0)
    pairs = np.stack([np.arange(20), np.arange(1, 21)], axis=1)
    for _ in range(20):
        upper = 10.0 ** rng.uniform(-3, 3, 20)
        lower, w = upper * rng.uniform(0.9, 1, 20), rng.standard_normal(20) * 10.0 ** rng.uniform(-3, 6, 20)
        problem = Unfolding(pairs, lower, upper, np.ones(21), rounding=1e-15)
        value, _ = module._dual_value(problem, w, violation, 1.0)
        wider = (1 + Fraction(violation)) * (1 + Fraction(1e-15)), (1 - Fraction(violation)) * (1 - Fraction(1e-15))
        terms = [
            Fraction(v) * (Fraction(hi) * wider[0] if v > 0 else Fraction(lo) * wider[1])
            for v, lo, hi in zip(w, lower, upper, strict=True)
        ]
        assert Fraction(value) >= sum(terms)


def test_a_distance_that_rounding_made_too_short_is_allowed_for():
    """Distances known to a part ε of themselves: the bound grows by that part of the tension."""
    plain = random_problem(6, kept=True)
    rough = Unfolding(plain.pairs, plain.lower, plain.upper, plain.masses, rounding=1e-6)
    point = solved(plain).point
    points = 0.99999 * stored(plain, point)
    first, second = (certify_unfolding(problem, points, point.multipliers) for problem in (plain, rough))
    widened = second.upper - first.upper
    assert widened >= 1e-6 * first.multiplier_sum * (1 - 1e-6)


def test_masses_that_are_rounded_sums_are_allowed_for():
    plain = random_problem(6, kept=False)
    rough = Unfolding(plain.pairs, plain.lower, plain.upper, plain.masses, mass_rounding=1e-6)
    point = solved(plain).point
    first, second = (certify_unfolding(problem, stored(plain, point), point.multipliers) for problem in (plain, rough))
    assert second.upper >= (1 + 1e-6) * first.upper
    assert second.lower <= (1 - 1e-6) * first.lower * (1 + 1e-15)


def test_violated_distances_widen_the_bound():
    problem = random_problem(7, kept=True)
    point = solved(problem).point
    points = stored(problem, point)
    proof = certify_unfolding(problem, 1.05 * points, point.multipliers)
    assert proof.violation > 0.05
    assert not proof.holds(0.05)
    assert proof.lower <= proof.upper
    wide = largest_variance(
        problem.pairs, problem.lower * (1 - proof.violation), problem.upper * (1 + proof.violation), problem.masses
    )
    assert proof.lower <= wide * (1 + 1e-7)
    assert wide <= proof.upper * (1 + 1e-7)


def test_a_false_eigenvalue_bound_is_caught(monkeypatch):
    problem = random_problem(8, kept=False)
    point = solved(problem).point
    monkeypatch.setattr(module, "connectivity", lambda *_: 1.1)
    with pytest.raises(CrossedBoundsError):
        certify_unfolding(problem, stored(problem, point), point.multipliers)


def test_lengths_that_rounding_shortens_are_counted():
    """Squares just too small to change the sum that they are added to: fifteen of them are lost, and all are there."""
    difference = np.zeros(128)
    difference[0], difference[8::8] = 1.0, np.sqrt(0.99 * 2.0**-53)
    points = np.stack([np.zeros(128), difference])
    problem = Unfolding(np.array([[0, 1]]), np.zeros(1), np.ones(1), np.ones(2))
    assert problem.squares(points)[0] == 1
    passed = sum(Fraction(float(x)) ** 2 for x in difference) - 1
    assert passed > 6 * np.finfo(float).eps
    assert module.largest_violation(problem, points) >= passed


@pytest.mark.parametrize(("lower", "upper"), [(0.0, 1.0), (1.0, 4.0)])
def test_bounds_that_are_known_to_some_digits_may_be_passed_by_the_others(lower, upper):
    """A square of one, and a bound of one that may be smaller, or larger, by a millionth."""
    points, pairs = np.array([[0.0], [1.0]]), np.array([[0, 1]])
    problem = Unfolding(pairs, np.array([lower]), np.array([upper]), np.ones(2), rounding=1e-6)
    passed = Fraction(1) / (1 - Fraction(1e-6)) - 1 if lower == 0 else 1 - Fraction(1) / (1 + Fraction(1e-6))
    assert passed <= module.largest_violation(problem, points) < 1.001e-6
