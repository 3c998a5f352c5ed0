"""The interior-point method for unfolding: its points meet the conditions of optimality, whatever the graph."""

from __future__ import annotations

import numpy as np
import pytest

from mercer.problems import Unfolding
from mercer.problems.unfolding import InfeasibleDistancesError
from mercer.solvers.run import Goal, solve
from mercer.solvers.solution import Status
from mercer.solvers.unfolding.interior_point import UnfoldingInteriorPoint


def ring(n, *, kept, wide=1e-2):
    """A closed chain: its optimum is a regular polygon where all lengths are one."""
    pairs = np.stack([np.arange(n), (np.arange(n) + 1) % n], axis=1)
    squares = np.ones(n)
    lower = squares * (1 - wide) ** 2 if kept else np.zeros(n)
    return Unfolding(np.sort(pairs, axis=1), lower, squares * ((1 + wide) ** 2 if kept else 1), np.ones(n))


@pytest.mark.parametrize("kept", [True, False])
@pytest.mark.parametrize("n", [3, 8, 70])
def test_a_ring_becomes_a_regular_polygon(n, kept):
    problem = ring(n, kept=kept)
    solution = solve(problem, UnfoldingInteriorPoint(), goal=Goal(1e-7, max_iter=60))
    radius = np.sqrt(problem.upper[0]) / (2 * np.sin(np.pi / n))
    assert solution.status is Status.CONVERGED
    assert solution.history[-1].objective == pytest.approx(n * radius**2, rel=1e-6)
    points = problem.of_fewer_coordinates(problem.principal_points(solution.point.gram), 1e-5)
    assert points.shape[1] == 2
    assert np.allclose(np.linalg.norm(points, axis=1), radius, rtol=1e-3)


@pytest.mark.parametrize("kept", [True, False])
@pytest.mark.parametrize("seed", range(4))
def test_conditions_of_optimality(seed, kept):
    rng = np.random.default_rng(seed)
    n = 14
    X = rng.standard_normal((n, 3))
    pairs = np.array([(i, j) for i in range(n) for j in range(i + 1, n) if j == i + 1 or rng.random() < 0.25])
    squares = ((X[pairs[:, 0]] - X[pairs[:, 1]]) ** 2).sum(axis=1)
    lower = 0.98 * squares if kept else 0 * squares
    problem = Unfolding(pairs, lower, 1.02 * squares, rng.uniform(0.5, 2, n))
    B, w = solve(problem, UnfoldingInteriorPoint(), goal=Goal(1e-8, max_iter=60)).point
    found, slack = problem.squares_of_gram(B), problem.laplacian(w).toarray() - problem.pull
    value = float(np.vdot(problem.pull, B))
    assert np.linalg.eigvalsh(B)[0] > -1e-9 * value
    assert np.linalg.eigvalsh(slack)[0] > -1e-9 * np.abs(w).max()
    assert abs(np.vdot(B, slack)) < 1e-7 * value
    assert np.all(found <= problem.upper * (1 + 1e-8))
    assert np.all(found >= problem.lower * (1 - 1e-8))
    loose = (found < problem.upper * (1 - 1e-3)) & (found > problem.lower * (1 + 1e-3))
    assert np.all(np.abs(w[loose] * squares[loose]) < 1e-4 * value)
    if not kept:
        assert np.all(w > 0)


def test_distances_that_no_points_have_are_proved_to_be_so():
    """Four corners of a tetrahedron, and a centre nearer to all of them than there is one."""
    pairs = np.array([(i, j) for i in range(5) for j in range(i + 1, 5)])
    squares = np.where(pairs[:, 1] == 4, 0.5**2, 1.0)
    problem = Unfolding(pairs, 0.999 * squares, 1.001 * squares, np.ones(5))
    with pytest.raises(InfeasibleDistancesError) as caught:
        solve(problem, UnfoldingInteriorPoint(), goal=Goal(1e-7, max_iter=100))
    assert pairs[caught.value.pair, 1] < 4  # an edge of the tetrahedron is too long
