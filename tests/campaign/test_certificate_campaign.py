"""No certificate is false: a campaign against a truth in higher precision, and proofs that the campaign can see.

The default run takes a sample; ``-m slow`` runs all of it, twenty thousand certificates and more.
"""

from __future__ import annotations

from dataclasses import replace

import campaign_known as known
import mpmath
import numpy as np
import pytest
from campaign_arithmetic import LONG, exact, kernel_matrix, to_long
from campaign_elliptope import embedding_matrix, optimum
from campaign_game import Game, value
from campaign_likelihoods import optimum as maximum_likelihood
from campaign_measures import Programme
from campaign_runner import WHOLE, Trial, run_all
from campaign_spectrahedron import minimum

from mercer import Gaussian, SDPEmbedding

SAMPLE = {
    "embeddings": range(12),
    "levels": range(6),
    "diagonals": range(6),
    "kernelized": range(4),
    "unfoldings": range(8),
    "measures": range(14),
    "densities": range(6),
    "regressions": range(4),
    "adversaries": range(10),
    "whole_densities": range(2),
    "likelihoods": range(3),
    "mixtures": range(4),
    "streams": range(10),
    "levels_by_draws": range(4),
    "blocks": range(4),
}


@pytest.mark.parametrize("name", known.CASES)
def test_certificates_that_were_false_once(name):
    verdicts = known.CASES[name]()
    assert verdicts
    assert not [str(verdict) for verdict in verdicts if verdict.wrong]


def test_problems_that_were_false_once():
    count = run_all(known.SEEDS)
    assert not count.wrong, count.report()


def test_a_sample_of_the_campaign_has_no_false_certificate():
    count = run_all(SAMPLE)
    assert count.total >= 300, count.report()
    assert not count.wrong, count.report()


@pytest.mark.slow
def test_twenty_thousand_certificates_are_true():
    count = run_all(WHOLE, workers=2)
    assert count.total >= 20_000, count.report()
    assert not count.wrong, count.report()


# --- the campaign can fail, and its truth is one ----------------------------------------------------------------


def test_a_certificate_moved_by_a_part_in_1e12_is_seen():
    X = np.array([[0.0], [1.0], [2.5]])
    model = SDPEmbedding(Gaussian(1.5), random_state=0).fit(X)
    J, _ = embedding_matrix(kernel_matrix(Gaussian(1.5), X), exact(np.ones(3)))
    bracket = ("the exact kernel", optimum(J))
    low, high = float(bracket[1].low), float(bracket[1].high)
    assert high - low <= 1e-15 * high
    trial = Trial("embeddings", 0, "float64")
    trial.judge("low", replace(model.certificate_, lower=low / 2, upper=low * (1 - 1e-12)), bracket)
    trial.judge("high", replace(model.certificate_, lower=high * (1 + 1e-12), upper=2 * high), bracket)
    trial.judge("right", replace(model.certificate_, lower=low * (1 - 1e-12), upper=high * (1 + 1e-12)), bracket)
    assert [verdict.wrong is not None for verdict in trial.verdicts] == [True, True, False]


def test_two_points_have_a_closed_form():
    rng = np.random.default_rng(0)
    for _ in range(20):
        X, w = rng.normal(size=(2, 2)), 10 ** rng.uniform(-12, 0, 2)
        J, _ = embedding_matrix(kernel_matrix(Gaussian(10 ** rng.uniform(-0.3, 2)), X), exact(w))
        closed = to_long(np.array([J[0, 0] + J[1, 1] + 2 * abs(J[0, 1])], object))[0]
        low, high = optimum(J)
        assert low <= closed <= high
        assert high - low <= 1e-16 * high


def test_the_optimum_of_an_embedding_is_that_of_a_conic_solver():
    cvxpy = pytest.importorskip("cvxpy")
    rng = np.random.default_rng(1)
    F = rng.normal(size=(5, 3))
    J = F @ F.T
    X = cvxpy.Variable((5, 5), PSD=True)
    problem = cvxpy.Problem(cvxpy.Maximize(cvxpy.trace(J @ X)), [cvxpy.diag(X) == 1])
    problem.solve(solver="CLARABEL")
    low, high = optimum(exact(J))
    assert abs(float(low) - problem.value) <= 1e-6 * problem.value
    assert high - low <= 1e-15 * high


def test_pivots_and_all_faces_give_the_same_measure():
    rng = np.random.default_rng(2)
    with mpmath.workdps(60):
        for _ in range(10):
            K = exact(rng.normal(size=(4, 6)))
            K = K.dot(K.T)
            omega, d = exact(rng.uniform(0.1, 1, 4)), exact(rng.uniform(0.5, 2, 4))
            form = {"alpha": None, "kappa": exact([0.4])[0]} if rng.random() < 0.5 else {"alpha": 0.3}
            data = (K * K, omega, d, [None] * 4, exact(np.zeros(4)))
            one, every = Programme(*data, **form), Programme(*data, **form, convex=False)
            assert abs(one.optimum() - every.optimum()) <= mpmath.mpf(10) ** -40 * (1 + abs(every.optimum()))


def test_a_spectrahedron_of_one_direction_has_a_closed_form():
    """min (tᵀCt - b)² + ⟨R, C⟩ with R = 0 and b between the eigenvalues: zero; with b above them: attained at the top."""
    t = np.array([1.0, 2.0, 2.0]).astype(LONG) / 3
    A = np.outer(t, t)[None]
    low, high = minimum(A, np.array([LONG(0.25)]), np.zeros((3, 3), LONG))
    assert low <= 0 <= high <= 1e-16
    low, high = minimum(A, np.array([LONG(3)]), np.zeros((3, 3), LONG))
    assert low <= 4 <= high
    assert high - low <= 1e-15


def test_the_likelihood_of_two_sections_that_do_not_meet_has_a_closed_form():
    """Each point sees one direction: the masses are the shares, and the value their entropy."""
    with mpmath.workdps(50):
        rows, shares = exact(np.eye(2)), [mpmath.mpf(3) / 4, mpmath.mpf(1) / 4]
        low, high = maximum_likelihood(rows, shares, exact(np.zeros((2, 2))))
        entropy = -sum(a * mpmath.log(a) for a in shares)
        assert low <= entropy <= high <= low + mpmath.mpf(10) ** -20
        low, high = maximum_likelihood(rows, shares, exact(np.diag([5.0, 5.0])))  # a constant on Tr C = 1
        assert low <= entropy + 5 <= high <= low + mpmath.mpf(10) ** -20


def test_a_game_without_room_is_ridge_regression():
    """One function, one density that is the sample: the value is c₀ - r₀²/(H₀ + λ) whatever the radius."""
    one = np.ones((1, 1), LONG)
    H0, r0, c0, lam = LONG(0.7), LONG(0.4), LONG(1), LONG(0.1)
    game = Game(
        H0 * one[None, None], r0 * one[None], c0 * one, H0 * one, r0 * one[0], c0, one[None], one[0], LONG(0.3), lam
    )
    low, high = value(game)
    assert low <= c0 - r0**2 / (H0 + lam) <= high
    assert high - low <= 1e-15
