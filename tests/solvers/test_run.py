"""The driver: what it counts, and what it refuses."""

import pytest

from mercer.problems.problem import Problem
from mercer.solvers.run import Goal, Method, Report, solve
from mercer.solvers.solution import Status


class Halving(Method):
    """Halves a number, several times a step; the whole way at once if asked to."""

    name = "halving"

    def __init__(self, at_once=None, together=None):
        self._at_once, self._together = at_once, together

    def start(self, problem, point):
        self._x = float(point)
        return Report(self._x, self._x, self._x, steps=self._at_once, status=self._at_once and Status.CONVERGED)

    def step(self, problem, most):
        taken = 1 if self._together is None else min(most, self._together)
        self._x /= 2.0**taken
        return Report(self._x, self._x, self._x, steps=self._together and taken)


def test_a_first_point_takes_no_steps_and_others_one():
    solution = solve(Problem(), Halving(), 1.0, goal=Goal(0.0, absolute=0.2))
    assert [line.number for line in solution.history] == [0, 1, 2, 3]
    assert solution.status is Status.CONVERGED


def test_steps_taken_together_are_counted_and_kept_within_the_budget():
    solution = solve(Problem(), Halving(together=4), 1.0, goal=Goal(0.0, max_iter=6))
    assert [line.number for line in solution.history] == [0, 4, 6]
    assert solution.status is Status.MAX_ITER
    assert solution.point == 2.0**-6


def test_an_answer_that_is_there_at_once_may_count_as_steps():
    solution = solve(Problem(), Halving(at_once=1), 1.0, goal=Goal(0.0, absolute=0.2))
    assert [line.number for line in solution.history] == [1]
    assert solution.n_iter == 1
    assert solution.status is Status.CONVERGED


def test_a_method_that_does_not_fit_fails_by_name():
    class Capped(Problem):
        needs = frozenset({"caps"})

    with pytest.raises(ValueError, match=r"^The method 'halving' cannot solve this problem, which has caps: choose"):
        solve(Capped(), Halving(), 1.0, goal=Goal(0.0))
