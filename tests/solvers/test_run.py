"""The driver on methods made for it: what ends a run, what it returns, what it tells whom, and which proof it keeps."""

from __future__ import annotations

import itertools
import logging

import pytest

from mercer.certificates import Certificate
from mercer.problems import Problem
from mercer.solvers import Goal, Iteration, Limits, Method, Report, Run, Status, solve


class Halving(Method[Problem, float]):
    """From x towards zero, half the way a step; the objective is 1 - x, so that 1 is the optimum."""

    name = "halving"
    phase = "halves"

    def __init__(self, *, proves=False, stop_at=0.0, several=False, worse_at=None):
        self.proves, self.stop_at, self.several, self.worse_at = proves, stop_at, several, worse_at

    def start(self, problem, point):
        problem.spend(1)
        self.x = 0.5 if point is None else point
        return self._report(0)

    def step(self, problem, most):
        steps = min(most, 3) if self.several else 1
        problem.spend(steps)
        self.x /= 2**steps
        return None if self.x < self.stop_at else self._report(steps)

    def _report(self, steps):
        objective = 1 - self.x - (0.5 if self.x == self.worse_at else 0.0)
        gap = self.x if self.proves else None
        residual = None if self.proves else self.x
        return Report(self.x, objective, gap=gap, residual=residual, size=7, merit=objective, steps=steps)


def proof(x, slack=1.0):
    return Certificate(1 - x, 1 - x + slack * x, 0.0, "test", 0)


def goal(**changes):
    return Goal(**({"tol": 1e-3, "residual_tol": 1e-3, "max_iter": 100} | changes))


# --- what ends a run ------------------------------------------------------------------------------------------


def test_a_residual_alone_decides_without_a_certificate():
    found = solve(Problem(), Halving(), goal=goal())
    assert found.status is Status.CONVERGED
    assert 0.5e-3 < found.point <= 1e-3
    assert found.certificate is None
    assert all(line.gap is None for line in found.history)


def test_a_gap_that_the_steps_prove_decides_and_the_certificate_is_made_of_the_point():
    asked = []

    def certify(x):
        asked.append(x)
        return proof(x)

    found = solve(Problem(), Halving(proves=True), goal=goal(), certify=certify)
    assert found.status is Status.CONVERGED
    assert asked == [found.point]
    assert found.certificate.upper - found.certificate.lower == pytest.approx(found.point)
    assert found.history[-1].gap == found.point


def test_certificate_travels_with_its_point():
    """Asked for when the residual has passed, and again when it has fallen to a quarter: the last one comes back."""
    made = {}

    def certify(x):
        made[x] = proof(x, slack=8.0)
        return made[x]

    found = solve(Problem(), Halving(), goal=goal(residual_tol=1e-2), certify=certify)
    assert found.status is Status.CONVERGED
    assert found.certificate is made[found.point]
    assert found.certificate.relative_gap <= 1e-3
    for earlier, later in itertools.pairwise(made):
        assert later < 0.25 * earlier
    assert [line.gap is not None for line in found.history] == [1 - line.objective in made for line in found.history]


def test_no_certificate_of_another_point():
    """The proof was of a later point than the one that is returned: it does not come back with it."""
    method = Halving(worse_at=2.0**-10)  # the first whose residual passes

    def stop(line):
        return line.gap is not None

    found = solve(Problem(), method, goal=goal(tol=1e-9), certify=lambda x: proof(x, 1e3), callbacks=(stop,))
    assert found.status is Status.STOPPED
    assert found.point == 2.0**-9
    assert found.certificate is None


def test_another_point_has_no_certificate():
    found = solve(Problem(), Halving(proves=True), goal=goal(), certify=proof)
    other = found.at(0.25)
    assert found.certificate is not None
    assert (other.point, other.certificate) == (0.25, None)
    assert (other.status, other.history) == (found.status, found.history)
    assert other.ended(Status.FLAT).certificate is None


def test_stationary_and_not_proved_is_trapped():
    found = solve(Problem(), Halving(), goal=goal(residual_tol=1e-6), certify=lambda x: proof(x, slack=1e5))
    assert found.status is Status.TRAPPED
    assert found.certificate is not None


def test_a_method_that_cannot_move_stalls_with_its_best_point():
    found = solve(Problem(), Halving(stop_at=0.1), goal=goal())
    assert found.status is Status.STALLED
    assert found.point == 0.125
    assert found.n_iter == 2


@pytest.mark.parametrize("several", [False, True])
@pytest.mark.parametrize("steps", [0, 1, 4])
def test_steps_at_most(steps, several):
    found = solve(Problem(), Halving(several=several), goal=goal(max_iter=steps))
    assert found.status is Status.MAX_ITER
    assert found.n_iter == steps
    assert found.point == 0.5 / 2**steps


def test_budget_of_columns_of_the_run_and_of_a_phase():
    problem = Problem()
    run = Run(goal(max_products=6))
    assert run.phase(problem, Halving(), limits=Limits(max_columns=3)).status is Status.CRAWLING
    assert problem.n_columns == 3
    found = run.phase(problem, Halving())
    assert found.status is Status.MAX_PRODUCTS
    assert problem.n_columns == 6
    assert problem.max_columns is None


def test_a_budget_that_allows_nothing_still_evaluates_the_first_point():
    problem = Problem()
    found = solve(problem, Halving(), 0.25, goal=goal(max_products=0))
    assert (found.status, found.point, len(found.history)) == (Status.MAX_PRODUCTS, 0.25, 1)


def test_a_method_behind_its_pace_is_slow():
    found = Run(goal()).phase(Problem(), Halving(), limits=Limits(is_slow=lambda residuals: len(residuals) == 4))
    assert found.status is Status.SLOW
    assert len(found.history) == 4


def test_an_answer_that_is_there_at_once_may_count_as_steps():
    class AtOnce(Halving):
        def _report(self, steps):
            return Report(self.x, 1 - self.x, steps=4, status=Status.CONVERGED)

    found = solve(Problem(), AtOnce(), goal=goal())
    assert (found.status, found.n_iter, len(found.history)) == (Status.CONVERGED, 4, 1)


# --- the best point, phases, and who is told ---------------------------------------------------------------------


def test_a_step_that_loses_ground_is_not_returned():
    found = solve(Problem(), Halving(worse_at=2.0**-4), goal=goal(max_iter=3))
    assert found.point == 2.0**-3


def test_phases_share_one_history():
    problem, told = Problem(), []
    run = Run(goal(max_iter=10), callbacks=(told.append,))
    run.phase(problem, Halving(), limits=Limits(max_iter=3))
    found = run.phase(problem, Halving(), 0.25)
    assert [line.number for line in found.history] == [0, 1, 2, 3, 3, 4, 5, 6, 7, 8, 9, 10]
    assert found.status is Status.MAX_ITER
    assert list(found.history) == told == run.history
    assert [line.n_columns for line in told] == list(range(1, 13))
    assert all(b.seconds >= a.seconds for a, b in itertools.pairwise(told))
    assert {(line.phase, line.size) for line in told} == {("halves", 7)}


def test_a_run_goes_on_after_an_earlier_one():
    earlier = [Iteration(5, 0.1, seconds=100.0, n_columns=40)]
    run = Run(goal(max_iter=7)).after(earlier)
    found = run.phase(Problem(), Halving())
    assert [line.number for line in found.history] == [5, 5, 6, 7]
    assert [line.n_columns for line in found.history] == [40, 41, 42, 43]
    assert found.history[1].seconds >= 100.0
    assert len(earlier) == 1


def test_all_callbacks_are_told_before_one_of_them_stops_the_run():
    seen = []
    found = solve(Problem(), Halving(), goal=goal(), callbacks=(lambda line: line.number == 2, seen.append))
    assert found.status is Status.STOPPED
    assert [line.number for line in seen] == [0, 1, 2]


@pytest.mark.parametrize("at", [0, 3])
def test_interruption_returns_the_best_point_so_far(at):
    def press(line):
        if line.number == at:
            raise KeyboardInterrupt

    found = solve(Problem(), Halving(), goal=goal(), callbacks=(press,))
    assert found.status is Status.INTERRUPTED
    assert found.point == 0.5 / 2**at
    assert found.n_iter == at


def test_interruption_before_anything_was_reported_evaluates_the_first_point():
    class Pressed(Problem):
        times = 0

        def spend(self, columns):
            self.times += 1
            if self.times == 1:
                raise KeyboardInterrupt
            super().spend(columns)

    found = solve(Pressed(), Halving(), 0.25, goal=goal())
    assert (found.status, found.point, len(found.history)) == (Status.INTERRUPTED, 0.25, 1)


def test_what_is_saved_is_the_best_point_with_the_history_up_to_it():
    kept = []
    solve(
        Problem(),
        Halving(worse_at=2.0**-4),
        goal=goal(max_iter=4),
        save=lambda point, history: kept.append((point, len(history))),
    )
    assert kept == [(0.5, 1), (0.25, 2), (0.125, 3), (0.125, 4), (2.0**-5, 5)]


def test_lines_are_logged_where_that_is_asked_for(caplog):
    with caplog.at_level(logging.INFO, logger="mercer"):
        solve(Problem(), Halving(), goal=goal(max_iter=1))
        assert not caplog.records
        solve(Problem(), Halving(), goal=goal(max_iter=1), shown=True)
    assert [record.message.partition(", 0.0 s")[0] for record in caplog.records] == [
        "halves, step 0: objective 0.5, row residual 5.0e-01",
        "halves, step 1: objective 0.75, row residual 2.5e-01",
    ]


# --- methods and problems that do not fit ------------------------------------------------------------------------


def test_a_method_that_does_not_fit_fails_before_any_work():
    class Capped(Problem):
        needs = frozenset({"caps", "a ridge"})

    problem = Capped()
    with pytest.raises(ValueError, match="The method 'halving' cannot solve this problem, which has a ridge and caps"):
        solve(problem, Halving(), goal=goal())
    assert problem.n_columns == 0


# --- lines --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("gap", "objective", "relative"), [(None, 2.0, None), (0.0, 0.0, 0.0), (1.0, -4.0, 0.25)])
def test_relative_gap_of_a_line(gap, objective, relative):
    assert Iteration(1, objective, gap=gap).relative_gap == relative


def test_relative_gap_of_nothing_is_infinite():
    assert Iteration(1, 0.0, gap=1.0).relative_gap == float("inf")


def test_a_line_has_the_names_of_every_family():
    line = Iteration(3, 2.0, gap=0.5, size=9)
    assert (line.value, line.lower, line.rank, line.n_nodes) == (2.0, 1.5, 9, 9)


@pytest.mark.parametrize("status", list(Status))
def test_every_status_is_a_sentence(status):
    assert status.message[0].isupper()
    assert status.message.endswith(".")
