"""A Cholesky factor that follows its matrix, and columns that come and go."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mercer.linalg.cholesky_update import SingularUpdateError, UpdatedCholesky
from mercer.linalg.free_columns import FreeColumns


def _matrix(n, seed):
    rng = np.random.default_rng(seed)
    root = rng.standard_normal((n, n + 5))
    return root @ root.T, rng.standard_normal((2, n))


@settings(max_examples=40, deadline=None)
@given(st.lists(st.integers(0, 10**6), min_size=1, max_size=120), st.integers(0, 100))
def test_any_sequence_of_rows_against_lapack(moves, seed):
    A, sides = _matrix(40, seed)
    factor, columns, rows = UpdatedCholesky(n_sides=2), FreeColumns(40), []
    for move in moves:
        absent = [i for i in range(40) if i not in rows]
        if rows and (move % 3 == 0 or not absent):
            place = move % len(rows)
            factor.remove(place)
            columns.remove(place)
            rows.pop(place)
        else:
            new = absent[move % len(absent)]
            factor.append(A[new, rows], A[new, new], sides[:, new])
            columns.append(new, A[new])
            rows.append(new)
    inner = A[np.ix_(rows, rows)]
    assert factor.size == len(rows)
    np.testing.assert_array_equal(columns.nodes, rows)
    np.testing.assert_array_equal(columns.square(), inner)
    if rows:
        L = np.tril(factor.factor)
        np.testing.assert_allclose(L @ L.T, inner, atol=1e-9)
        np.testing.assert_allclose(
            factor.solve_sides(), np.linalg.solve(inner, sides[:, rows].T).T, rtol=1e-5, atol=1e-8
        )
        a, b = np.random.default_rng(seed).standard_normal((2, len(rows)))
        first, second = columns.combine(a, b)
        np.testing.assert_allclose(first, A[:, rows] @ a, atol=1e-10)
        np.testing.assert_allclose(second, A[:, rows] @ b, atol=1e-10)


def test_growing_past_the_first_capacity_and_other_right_hand_sides():
    A, sides = _matrix(150, 0)
    factor = UpdatedCholesky(n_sides=2)
    for i in range(150):
        factor.append(A[i, :i], A[i, i], sides[:, i])
    other = np.random.default_rng(1).standard_normal((3, 150))
    np.testing.assert_allclose(factor.solve(other), np.linalg.solve(A, other.T).T, rtol=1e-6)
    factor.set_sides(other[:2])
    np.testing.assert_allclose(factor.solve_sides(), np.linalg.solve(A, other[:2].T).T, rtol=1e-6)
    factor.refactor(A[:100, :100], sides[:, :100])
    np.testing.assert_allclose(factor.solve_sides(), np.linalg.solve(A[:100, :100], sides[:, :100].T).T, rtol=1e-6)


def test_columns_are_summed_on_threads_too(monkeypatch):
    monkeypatch.setattr("mercer.backends.chunks._CALL_ENTRIES", 1)
    values = np.random.default_rng(0).standard_normal((70, 9000))
    columns = FreeColumns(9000)
    for i in range(70):
        columns.append(i, values[i])
    weights = np.random.default_rng(1).standard_normal((2, 70))
    np.testing.assert_allclose(columns.combine(*weights), weights @ values, atol=1e-11)


def test_dependent_rows_are_refused_and_leave_the_factor_as_it_was():
    A, sides = _matrix(5, 0)
    factor = UpdatedCholesky(n_sides=2)
    for i in range(5):
        factor.append(A[i, :i], A[i, i], sides[:, i])
    before = factor.solve_sides()
    with pytest.raises(SingularUpdateError, match="depends on 5 others"):
        factor.append(A[2], A[2, 2], sides[:, 2])
    assert factor.size == 5
    np.testing.assert_array_equal(factor.solve_sides(), before)
    with pytest.raises(SingularUpdateError, match="singular to working precision"):
        factor.refactor(np.ones((3, 3)), np.ones((2, 3)))


@pytest.mark.parametrize("distance", [0.0, 1e-9, 1e-8])
def test_rounding_is_no_pivot(distance):
    """Two rows of a Gaussian matrix next to each other: LAPACK may find a factor, which would be rounding."""
    x = np.array([0.0, 1.0, 1.0 + distance])
    A = np.exp(-((x[:, None] - x) ** 2))
    factor = UpdatedCholesky(n_sides=1)
    with pytest.raises(SingularUpdateError, match="singular to working precision"):
        factor.refactor(A, np.ones((1, 3)))
    assert factor.size == 0
    factor.refactor(A[:2, :2], np.ones((1, 2)))
    with pytest.raises(SingularUpdateError, match="depends on 2 others"):
        factor.append(A[2, :2], A[2, 2], np.ones(1))
    np.testing.assert_allclose(factor.solve_sides()[0], np.linalg.solve(A[:2, :2], np.ones(2)), rtol=1e-13)


@pytest.mark.parametrize("diagonal", [0.0, np.nan])
def test_a_row_of_nothing_is_refused(diagonal):
    factor = UpdatedCholesky(n_sides=1)
    with pytest.raises(SingularUpdateError, match="depends on 0 others"):
        factor.append(np.empty(0), diagonal, np.ones(1))
    assert factor.size == 0
