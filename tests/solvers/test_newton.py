"""Newton's method on penalised least squares: optimality, history, refusals."""

import numpy as np
import pytest
from robust_oracle import small_game, small_relaxation
from scipy.optimize import minimize

from mercer.solvers.game.newton import Newton
from mercer.solvers.run import Goal, solve
from mercer.solvers.solution import Status


def test_newton_finds_what_a_general_method_finds():
    problem = small_relaxation(3, d=3).problem
    found = solve(problem, Newton(), goal=Goal(1e-14))
    assert found.status is Status.CONVERGED
    assert np.all(np.diff([line.objective for line in found.history]) < 0)
    other = minimize(problem.value, problem.start(), jac=problem.gradient, method="BFGS", options={"gtol": 1e-9})
    np.testing.assert_allclose(found.point, other.x, atol=1e-5)
    short = solve(problem, Newton(), problem.start() + 5, goal=Goal(1e-14, max_iter=1))
    assert short.status is Status.MAX_ITER
    assert short.n_iter == 1


def test_the_gap_of_every_line_is_one():
    """By strong convexity: no point is lower than a line's objective by more than its gap."""
    problem = small_relaxation(3, d=3).problem
    found = solve(problem, Newton(), problem.start() + 5, goal=Goal(1e-14))
    least = found.history[-1].objective
    assert all(line.lower <= least * (1 + 1e-13) for line in found.history)


def test_where_rounding_hides_the_descent_it_says_so():
    found = solve(small_relaxation(3, d=3).problem, Newton(), goal=Goal(0.0))
    assert found.status is Status.STALLED


def test_a_problem_with_an_adversary_is_refused_by_name():
    with pytest.raises(ValueError, match=r"^The method 'newton' cannot solve this problem, which has an adversary: "):
        solve(small_game(0).problem, Newton(), goal=Goal(1e-6))
