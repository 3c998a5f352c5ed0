"""A Cholesky factor that follows its matrix, and columns that come and go, in NumPy arrays and in tensors."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mercer import config_context
from mercer.backends.arrays import to_numpy
from mercer.linalg.cholesky_update import SingularUpdateError, UpdatedCholesky
from mercer.linalg.column_store import FreeColumns

LIBRARIES = ["numpy", "torch"]


def _given(library):
    """What brings a NumPy array to a library."""
    return np.asarray if library == "numpy" else pytest.importorskip("torch").tensor


def _matrix(n, seed):
    rng = np.random.default_rng(seed)
    root = rng.standard_normal((n, n + 5))
    return root @ root.T, rng.standard_normal((2, n))


@pytest.mark.parametrize("library", LIBRARIES)
@settings(max_examples=40, deadline=None)
@given(moves=st.lists(st.integers(0, 10**6), min_size=1, max_size=120), seed=st.integers(0, 100))
def test_any_sequence_of_rows_against_lapack(library, moves, seed):
    A, sides = _matrix(40, seed)
    to = _given(library)
    factor, columns, rows = UpdatedCholesky(2, reference=to(A)), FreeColumns(40, reference=to(A)), []
    for move in moves:
        absent = [i for i in range(40) if i not in rows]
        if rows and (move % 3 == 0 or not absent):
            place = move % len(rows)
            factor.remove(place)
            columns.remove(place)
            rows.pop(place)
        else:
            new = absent[move % len(absent)]
            factor.append(to(A[new, rows]), A[new, new], to(sides[:, new]))
            columns.append(new, to(A[new]))
            rows.append(new)
    inner = A[np.ix_(rows, rows)]
    assert factor.size == len(rows)
    np.testing.assert_array_equal(to_numpy(columns.nodes), rows)
    np.testing.assert_array_equal(to_numpy(columns.square()), inner)
    if rows:
        L = np.tril(to_numpy(factor.factor))
        np.testing.assert_allclose(L @ L.T, inner, atol=1e-9)
        np.testing.assert_allclose(
            to_numpy(factor.solve_sides()), np.linalg.solve(inner, sides[:, rows].T).T, rtol=1e-5, atol=1e-8
        )
        a, b = np.random.default_rng(seed).standard_normal((2, len(rows)))
        first, second = columns.combine(to(a), to(b))
        np.testing.assert_allclose(to_numpy(first), A[:, rows] @ a, atol=1e-10)
        np.testing.assert_allclose(to_numpy(second), A[:, rows] @ b, atol=1e-10)


@pytest.mark.parametrize("library", LIBRARIES)
def test_growing_past_the_first_capacity_and_other_right_hand_sides(library):
    A, sides = _matrix(150, 0)
    to = _given(library)
    factor = UpdatedCholesky(2, reference=to(A))
    for i in range(150):
        factor.append(to(A[i, :i]), A[i, i], to(sides[:, i]))
    other = np.random.default_rng(1).standard_normal((3, 150))
    np.testing.assert_allclose(to_numpy(factor.solve(to(other))), np.linalg.solve(A, other.T).T, rtol=1e-6)
    factor.set_sides(to(other[:2]))
    np.testing.assert_allclose(to_numpy(factor.solve_sides()), np.linalg.solve(A, other[:2].T).T, rtol=1e-6)
    factor.refactor(to(A[:100, :100]), to(sides[:, :100]))
    expected = np.linalg.solve(A[:100, :100], sides[:, :100].T).T
    np.testing.assert_allclose(to_numpy(factor.solve_sides()), expected, rtol=1e-6)


@pytest.mark.parametrize("library", LIBRARIES)
def test_rows_taken_out_of_an_ill_conditioned_matrix_leave_a_factor_of_the_rest(library):
    x = np.sort(np.random.default_rng(0).uniform(0, 6, 60))
    A, to = np.exp(-9 * (x[:, None] - x) ** 2) + 1e-9 * np.eye(60), _given(library)  # condition 1e10
    factor, rows = UpdatedCholesky(1, reference=to(A)), list(range(60))
    factor.refactor(to(A), to(x[None]))
    for place in np.random.default_rng(1).integers(0, 20, 40).tolist():
        factor.remove(place)
        rows.pop(place)
    L = np.tril(to_numpy(factor.factor))
    np.testing.assert_allclose(L @ L.T, A[np.ix_(rows, rows)], atol=1e-12)


def test_columns_are_enlarged_and_summed_alike_on_any_number_of_threads(monkeypatch):
    monkeypatch.setattr("mercer.backends.chunks._CALL_ENTRIES", 4000)
    values = np.random.default_rng(0).standard_normal((3000, 150))
    weights = np.random.default_rng(1).standard_normal((2, 150))
    sums = []
    for threads in (1, 3):
        with config_context(n_threads=threads):
            columns = FreeColumns(3000)
            for lo in range(0, 150, 50):
                columns.extend(np.arange(lo, lo + 50), values[:, lo : lo + 50])
            sums.append(columns.combine(*weights))
    np.testing.assert_array_equal(sums[0], sums[1])
    np.testing.assert_allclose(sums[0], weights @ values.T, atol=1e-11)


def test_columns_are_summed_on_threads_too(monkeypatch):
    monkeypatch.setattr("mercer.backends.chunks._CALL_ENTRIES", 1)
    values = np.random.default_rng(0).standard_normal((70, 9000))
    columns = FreeColumns(9000)
    for i in range(70):
        columns.append(i, values[i])
    weights = np.random.default_rng(1).standard_normal((2, 70))
    np.testing.assert_allclose(columns.combine(*weights), weights @ values, atol=1e-11)


@pytest.mark.parametrize("library", LIBRARIES)
def test_dependent_rows_are_refused_and_leave_the_factor_as_it_was(library):
    A, sides = _matrix(5, 0)
    to = _given(library)
    factor = UpdatedCholesky(2, reference=to(A))
    for i in range(5):
        factor.append(to(A[i, :i]), A[i, i], to(sides[:, i]))
    before = to_numpy(factor.solve_sides())
    with pytest.raises(SingularUpdateError, match="depends on 5 others"):
        factor.append(to(A[2]), A[2, 2], to(sides[:, 2]))
    assert factor.size == 5
    np.testing.assert_array_equal(to_numpy(factor.solve_sides()), before)
    with pytest.raises(SingularUpdateError, match="singular to working precision"):
        factor.refactor(to(np.ones((3, 3))), to(np.ones((2, 3))))


@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.parametrize("distance", [0.0, 1e-9, 1e-8])
def test_rounding_is_no_pivot(distance, library):
    """Two rows of a Gaussian matrix next to each other: LAPACK may find a factor, which would be rounding."""
    x = np.array([0.0, 1.0, 1.0 + distance])
    A, to = np.exp(-((x[:, None] - x) ** 2)), _given(library)
    factor = UpdatedCholesky(1, reference=to(A))
    with pytest.raises(SingularUpdateError, match="singular to working precision"):
        factor.refactor(to(A), to(np.ones((1, 3))))
    assert factor.size == 0
    factor.refactor(to(A[:2, :2]), to(np.ones((1, 2))))
    with pytest.raises(SingularUpdateError, match="depends on 2 others"):
        factor.append(to(A[2, :2]), A[2, 2], to(np.ones(1)))
    found = to_numpy(factor.solve_sides())[0]
    np.testing.assert_allclose(found, np.linalg.solve(A[:2, :2], np.ones(2)), rtol=1e-13)


@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.parametrize("diagonal", [0.0, np.nan])
def test_a_row_of_nothing_is_refused(diagonal, library):
    to = _given(library)
    factor = UpdatedCholesky(1, reference=to(np.ones(1)))
    with pytest.raises(SingularUpdateError, match="depends on 0 others"):
        factor.append(to(np.empty(0)), diagonal, to(np.ones(1)))
    assert factor.size == 0
