"""The saddle point of a robust regression by a barrier method: optimality, history, refusals."""

import numpy as np
import pytest
from robust_oracle import conic_value, small_game, small_relaxation

from mercer.certificates.game import certify_saddle_point
from mercer.solvers.game.barrier import Barrier
from mercer.solvers.run import Goal, solve
from mercer.solvers.solution import Status


def solved(game, tol=1e-8, max_iter=300, **options):
    def certify(point):
        return certify_saddle_point(game.problem, game.enclosures, point)

    return solve(game.problem, Barrier(), goal=Goal(tol, max_iter=max_iter), certify=certify, **options)


@pytest.mark.parametrize(
    ("seed", "radius", "sample", "d"),
    [
        (0, 0.2, True, 1),
        (1, 0.05, True, 1),
        (2, 0.6, True, 2),
        (3, 0.4, False, 1),
        (4, 1.4, True, 1),
        (5, 0.1, True, 3),
    ],
)
def test_the_value_is_that_of_a_conic_solver(seed, radius, sample, d):
    pytest.importorskip("cvxpy")
    game = small_game(seed, radius=radius, keep_sample=sample, m=5, d=d)
    certificate = solved(game).certificate
    assert certificate.holds(1e-8)
    assert conic_value(game.problem) == pytest.approx(certificate.upper, rel=2e-6)


@pytest.mark.parametrize("sample", [True, False])
def test_the_answer_is_a_saddle_point(sample):
    """The learner answers the adversary, and the adversary pays the prices where it has mass."""
    formulation = small_game(6, radius=0.25, keep_sample=sample)
    game, solution = formulation.problem, solved(formulation, tol=1e-9)
    found, certificate = solution.point, solution.certificate
    assert solution.status is Status.CONVERGED
    assert certificate.holds(1e-9)
    adversary = found.adversary
    answer, value = game.best_response(adversary)
    np.testing.assert_allclose(answer, found.beta, atol=2e-4)
    assert value == pytest.approx(certificate.lower, rel=1e-9)
    priced = game.loss_matrix(found.beta) - game.priced(found.prices)
    top = np.linalg.eigvalsh(priced)[-1]
    paid = np.sum(priced * adversary.matrix)
    assert paid == pytest.approx(top * np.trace(adversary.matrix), abs=1e-6)
    assert np.linalg.norm(game.displacement(adversary)) == pytest.approx(game.radius, rel=1e-4)


def test_a_callback_stops_and_history_narrows():
    game = small_game(9)
    seen = []
    found = solved(game, callbacks=(lambda line: seen.append(line) or len(seen) == 3,))
    assert found.status is Status.STOPPED
    assert len(seen) == 3
    found = solved(game)
    assert {line.phase for line in found.history} == {"barrier"}
    assert np.all(np.diff([line.gap for line in found.history]) <= 0)
    short = solved(game, max_iter=5)
    assert short.status is Status.MAX_ITER
    assert short.n_iter == 5


def test_the_certificate_is_that_of_the_point_wherever_the_run_ends():
    """Of the best learner and the best adversary together, also where no central point was reached."""
    game = small_game(9)
    for options in ({}, {"max_iter": 1}, {"callbacks": (lambda line: True,)}):
        found = solved(game, **options)
        again = certify_saddle_point(game.problem, game.enclosures, found.point)
        assert (found.certificate.lower, found.certificate.upper) == (again.lower, again.upper)
        last = found.history[-1]
        assert found.certificate.upper == pytest.approx(last.objective, rel=1e-9)
        assert found.certificate.lower == pytest.approx(last.lower, rel=1e-9)


def test_an_interrupt_keeps_the_best_point():
    def interrupt(line):
        if line.number > 10:
            raise KeyboardInterrupt

    found = solved(small_game(9), callbacks=(interrupt,))
    assert found.status is Status.INTERRUPTED
    assert found.certificate.upper == pytest.approx(found.history[-1].objective, rel=1e-9)


def test_a_problem_without_an_adversary_is_refused_by_name():
    with pytest.raises(ValueError, match=r"^The method 'barrier' cannot solve .* a penalty in place of an adversary: "):
        solve(small_relaxation(0).problem, Barrier(), goal=Goal(1e-6))
