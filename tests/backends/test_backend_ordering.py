"""Places in arrays and sums of them: what NumPy says, in either library."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mercer.backends import ordering
from mercer.backends.arrays import is_tensor, to_numpy
from mercer.backends.rounding import exact_sum, times_power_of_two

VALUES = np.array([3.0, -1.0, 0.0, 7.0, -1.0, 3.0, 0.5])


@pytest.fixture(params=["numpy", "torch"])
def to(request):
    return np.array if request.param == "numpy" else pytest.importorskip("torch").tensor


@pytest.mark.parametrize("second", [[5, 1, 9, 4], [5, 1, 5, 4], []], ids=["distinct", "repeated", "none"])
@pytest.mark.parametrize("first", [[4, 9, 9, 2], [7], []], ids=["some", "no equal", "none"])
def test_pairs_of_equal_entries(to, first, second):
    first, second = np.array(first, np.int64), np.array(second, np.int64)
    found = ordering.equal_pairs(to(first), to(second))
    pairs = set(zip(*(to_numpy(side).tolist() for side in found), strict=True))
    assert pairs == set(zip(*(side.tolist() for side in np.nonzero(first[:, None] == second)), strict=True))


def test_places(to):
    x = to(VALUES)
    for found, expected in (
        (ordering.flatnonzero(x), np.flatnonzero(VALUES)),
        (ordering.flatnonzero(x < 0), [1, 4]),
        (ordering.stable_order(x), np.argsort(VALUES, kind="stable")),
        (ordering.lexicographic_order((to(np.arange(7)[::-1].copy()), x)), np.lexsort((np.arange(7)[::-1], VALUES))),
        (ordering.places(3, x), [0, 1, 2]),
        (ordering.as_indices([], x), []),
        (ordering.appended(ordering.as_indices([4], x), ordering.as_indices([2, 2], x)), [4, 2, 2]),
        (ordering.without(x, 0), VALUES[1:]),
        (ordering.without(x, 6), VALUES[:-1]),
        (ordering.among(x, to(np.array([7.0, 3.0]))), np.isin(VALUES, [7.0, 3.0])),
        (ordering.place_of(to(np.array([2, 9])), to(np.array([0, 2, 5, 9]))), [1, 3]),
        (ordering.totals(to(np.array([0, 2, 2]))), [1, 0, 2]),
        (ordering.totals(to(np.array([0, 2, 2])), to(np.array([0.5, 0.25, 2.0]))), [0.5, 0.0, 2.25]),
    ):
        assert is_tensor(found) == is_tensor(x)
        np.testing.assert_array_equal(to_numpy(found), expected)
    assert ordering.as_integers(ordering.as_indices([5, 0], x)) == [5, 0]


@pytest.mark.parametrize("count", [0, 1, 3, 6, 7, 9])
def test_the_least_entries(to, count):
    found = to_numpy(ordering.least(to(VALUES), count))
    assert len(set(found.tolist())) == min(count, 7)
    np.testing.assert_array_equal(np.sort(VALUES[found]), np.sort(VALUES)[:count])


@pytest.mark.parametrize("library", ["numpy", "torch"])
@settings(deadline=None, max_examples=60)
@given(terms=st.lists(st.floats(-1e100, 1e100), max_size=40))
def test_a_sum_keeps_its_digits_where_terms_cancel(library, terms):
    """Against rational numbers: wrong by its last rounding and by a part of 2⁻¹⁰⁰ or so of the terms."""
    to = np.array if library == "numpy" else pytest.importorskip("torch").tensor
    terms = [*terms, *(-t for t in terms), 1.0]
    terms = [*terms[::3], *terms[1::3], *terms[2::3]]  # what cancels is not added to each other first
    exact = sum((Fraction(t) for t in terms), Fraction(0))
    size = sum((abs(Fraction(t)) for t in terms), Fraction(0))
    unit = Fraction(1, 2**53)
    levels = math.ceil(math.log2(len(terms))) if len(terms) > 1 else 0
    found = Fraction(exact_sum(to(np.array(terms))))
    assert abs(found - exact) <= unit * abs(exact) + unit**2 * (2 + levels) ** 2 * size


def test_the_sum_of_nothing(to):
    assert exact_sum(to(np.zeros(0))) == 0.0


@pytest.mark.parametrize("power", [-1500, -1030, -3, 0, 5, 1500, 2000])
def test_powers_of_two(to, power):
    values = np.array([1.0, 0.75, 2.0**-1000, 0.0, 2.0**900])
    with np.errstate(over="ignore", under="ignore"):
        expected = np.ldexp(values, power)
        np.testing.assert_array_equal(to_numpy(times_power_of_two(to(values), power)), expected)
