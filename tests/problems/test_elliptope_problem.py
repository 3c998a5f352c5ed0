"""The problem: objective, multipliers, residual, projection, counting."""

from __future__ import annotations

import numpy as np
import pytest

from mercer import DiffusionOperator, Gaussian, GramOperator, Linear
from mercer.problems import Elliptope


@pytest.fixture
def problem():
    X = np.random.default_rng(0).standard_normal((30, 2))
    operator = DiffusionOperator(GramOperator(Gaussian(sigma=1.0), X))
    return Elliptope(operator, operator.diagonal())


@pytest.fixture
def J(problem):
    return problem.scale[:, None] * problem.operator.to_dense() * problem.scale


def test_scaled_matrix(problem, J):
    H = np.random.default_rng(1).standard_normal((30, 4))
    np.testing.assert_allclose(problem.apply(H), J @ H, rtol=1e-11, atol=1e-15)
    assert problem.size == 30


def test_objective_is_the_sum_of_the_multipliers(problem, J):
    """Both forms of the problem: ⟨J, HHᵀ⟩ = ⟨Ā, B⟩ with B = Diag(s) HHᵀ Diag(s), diag B = d."""
    H = problem.random_point(4, np.random.default_rng(1))
    z = problem.multipliers(H, problem.apply(H))
    np.testing.assert_allclose(z, np.diag(J @ H @ H.T), rtol=1e-11, atol=1e-15)
    B = np.outer(problem.scale, problem.scale) * (H @ H.T)
    assert z.sum() == pytest.approx(np.sum(problem.operator.to_dense() * B), rel=1e-12)
    np.testing.assert_allclose(np.diag(B), problem.diagonal, rtol=1e-13)


def test_gradient_by_differences(problem, J):
    """2 J H is the gradient of the objective: what power steps follow."""
    H = problem.random_point(3, np.random.default_rng(1))
    V = np.random.default_rng(2).standard_normal(H.shape)
    h = 1e-6

    def value(H):
        return float(np.sum(problem.multipliers(H, problem.apply(H))))

    slope = (value(H + h * V) - value(H - h * V)) / (2 * h)
    assert slope == pytest.approx(2 * np.sum(problem.apply(H) * V), rel=1e-7)


def test_columns_are_counted(problem):
    assert problem.n_columns == 0
    problem.apply(np.ones((30, 4)))
    problem.apply(np.ones((30, 3)))
    assert problem.n_columns == 7


def test_row_residual_is_zero_at_a_fixed_point(problem):
    H = np.tile([[0.6, 0.8]], (30, 1))
    assert problem.row_residual(H, 5.0 * H) == pytest.approx(0.0, abs=1e-15)
    assert problem.row_residual(H, -H) == pytest.approx(2.0)


def test_row_residual_weighs_rows_as_the_embedding_does(problem):
    H = np.tile([[1.0, 0.0]], (30, 1))
    G = H.copy()
    row = int(np.argmin(problem.scale))
    G[row] = [0.0, 1.0]
    expected = problem.scale[row] * np.sqrt(2) / problem.scale.max()
    assert problem.row_residual(H, G) == pytest.approx(expected)


def test_projection_gives_unit_rows_and_keeps_the_fallback_of_zero_rows(problem):
    rng = np.random.default_rng(0)
    M = 10.0 ** rng.uniform(-100, 100, (30, 1)) * rng.standard_normal((30, 3))
    M[4] = 0
    fallback = np.tile([[0.0, 0.0, 1.0]], (30, 1))
    H = problem.project(M, fallback)
    np.testing.assert_allclose(np.linalg.norm(H, axis=1), 1.0, rtol=1e-14)
    np.testing.assert_array_equal(H[4], [0.0, 0.0, 1.0])
    np.testing.assert_allclose(H[5], M[5] / np.linalg.norm(M[5]), rtol=1e-14)


def test_random_point_is_feasible_and_repeatable(problem):
    H = problem.random_point(5, np.random.default_rng(3))
    assert H.shape == (30, 5)
    np.testing.assert_allclose(np.linalg.norm(H, axis=1), 1.0, rtol=1e-14)
    np.testing.assert_array_equal(H, problem.random_point(5, np.random.default_rng(3)))


def test_shift_leaves_objective_and_multipliers_alone(problem):
    shifted = Elliptope(problem.operator, problem.diagonal, shift=3.0)
    H = problem.random_point(4, np.random.default_rng(1))
    np.testing.assert_allclose(shifted.apply(H), problem.apply(H), rtol=0, atol=1e-15)  # the second from storage


def test_a_shift_is_a_number_or_one_for_every_row(problem):
    assert not problem.indefinite
    assert problem.shift.shape == (30,)
    same = Elliptope(problem.operator, problem.diagonal, shift=2.0)
    np.testing.assert_array_equal(same.shift, np.full(30, 2.0))
    of_one_row = Elliptope(problem.operator, problem.diagonal, shift=np.eye(30)[3])
    assert same.indefinite
    assert of_one_row.indefinite
    assert of_one_row.needs == same.needs != problem.needs


def test_rows_without_room_take_no_part():
    X = np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])  # the third is the mean direction: d = 0 for a linear kernel
    operator = DiffusionOperator(GramOperator(Linear(), X))
    problem = Elliptope(operator, operator.diagonal())
    np.testing.assert_array_equal(problem.active, [True, True, False])
    H = problem.random_point(2, np.random.default_rng(0))
    assert np.all(problem.apply(H)[2] == 0)
