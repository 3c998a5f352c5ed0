"""Columns kept while they fit: the same values as the matrix, never more of them than allowed."""

from __future__ import annotations

from collections import OrderedDict

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mercer import config_context
from mercer.backends.arrays import to_numpy
from mercer.linalg.column_cache import ColumnCache

SIZE = 12
MATRIX = np.random.default_rng(0).standard_normal((SIZE, SIZE))


class Columns:
    """The callable behind a cache, with a record of what was asked of it."""

    def __init__(self, matrix: np.ndarray = MATRIX) -> None:
        self.matrix = matrix
        self.asked: list[list[int]] = []

    def __call__(self, indices: np.ndarray) -> np.ndarray:
        self.asked.append([int(i) for i in indices])
        return self.matrix[:, indices]


def _cache(columns_that_fit: int, columns: Columns | None = None, reference: object = None) -> ColumnCache:
    return ColumnCache(columns or Columns(), SIZE, 8 * SIZE * columns_that_fit, reference=reference)


def _given(library):
    """What brings a NumPy array to a library."""
    return np.asarray if library == "numpy" else pytest.importorskip("torch").tensor


@given(st.integers(2, 6), st.lists(st.integers(0, SIZE - 1), max_size=60))
@settings(deadline=None, max_examples=60)
def test_single_columns_follow_the_least_recently_used_rule(fit, wanted):
    columns = Columns()
    cache, model = _cache(fit, columns), OrderedDict()
    hits, made = 0, []
    for index in wanted:
        if index in model:
            hits += 1
            model.move_to_end(index)
        else:
            made.append([index])
            if len(model) == fit:
                model.popitem(last=False)
            model[index] = True
        np.testing.assert_array_equal(cache.get(index), MATRIX[:, index])
        assert len(cache) == len(model)
        assert all((k in cache) == (k in model) for k in range(SIZE))
    assert (cache.hits, cache.misses) == (hits, len(wanted) - hits)
    assert columns.asked == made


@pytest.mark.parametrize("library", ["numpy", "torch"])
@given(
    fit=st.integers(0, 6),
    requests=st.lists(
        st.tuples(st.sampled_from(["one", "many", "add"]), st.lists(st.integers(0, SIZE - 1), min_size=1)), max_size=20
    ),
)
@settings(deadline=None, max_examples=60)
def test_any_mixture_of_requests_gives_the_columns_of_the_matrix(library, fit, requests):
    """Repeated indices and more of them than fit included; hits and misses count every column asked for."""
    to = _given(library)
    columns = Columns(to(MATRIX))
    cache = _cache(fit, columns, reference=to(MATRIX))
    total, expected, asked = to(np.zeros(SIZE)), np.zeros(SIZE), 0
    for kind, indices in requests:
        indices = np.array(indices)
        if kind == "one":
            indices = indices[:1]
            np.testing.assert_array_equal(to_numpy(cache.get(int(indices[0]))), MATRIX[:, indices[0]])
        elif kind == "many":
            np.testing.assert_array_equal(to_numpy(cache.get_many(to(indices))), MATRIX[:, indices])
        else:
            coefficients = np.cos(1.0 + np.arange(indices.size))
            cache.add_product(total, to(indices), to(coefficients))
            expected += MATRIX[:, indices] @ coefficients
        asked += indices.size
        assert len(cache) <= cache.capacity == max(2, fit)
    np.testing.assert_allclose(to_numpy(total), expected, atol=1e-11)
    assert cache.hits + cache.misses == asked
    assert cache.misses == sum(map(len, columns.asked))
    assert max(map(len, columns.asked), default=0) <= cache.capacity


def test_at_least_two_columns_and_never_more_than_the_matrix_has():
    assert _cache(0).capacity == 2
    assert _cache(1000).capacity == SIZE


def test_two_columns_asked_for_in_turn_are_both_good():
    cache = _cache(2)
    first, second = cache.get(3), cache.get(5)
    np.testing.assert_array_equal(first, MATRIX[:, 3])
    np.testing.assert_array_equal(second, MATRIX[:, 5])


def test_a_column_cannot_be_written_to():
    column = _cache(2).get(1)
    with pytest.raises(ValueError, match="read-only"):
        column[0] = 1.0


def test_a_cycle_longer_than_the_cache_still_finds_what_it_holds():
    """A sum over all columns again and again: what is there is used before it is given up for what is not."""
    columns = Columns()
    cache = _cache(8, columns)
    for _ in range(3):
        cache.add_product(np.zeros(SIZE), np.arange(SIZE), np.ones(SIZE))
    assert cache.misses == SIZE + 2 * (SIZE - 8)


def test_the_sum_does_not_depend_on_the_number_of_threads():
    matrix = np.random.default_rng(1).standard_normal((40_000, 30))
    sums = []
    for threads in (1, 3):
        with config_context(n_threads=threads):
            cache = ColumnCache(Columns(matrix), 40_000, 10**9)
            sums.append(np.zeros(40_000))
            cache.add_product(sums[-1], np.arange(30), np.arange(30.0))
    np.testing.assert_array_equal(sums[0], sums[1])
    np.testing.assert_allclose(sums[0], matrix @ np.arange(30.0), atol=1e-11)


def test_an_interrupt_while_columns_are_made_leaves_the_cache_as_it_was():
    class Broken(Columns):
        def __call__(self, indices: np.ndarray) -> np.ndarray:
            if 7 in indices:
                raise KeyboardInterrupt
            return super().__call__(indices)

    cache = _cache(3, Broken())
    cache.get_many(np.array([0, 1, 2]))
    with pytest.raises(KeyboardInterrupt):
        cache.get(7)
    assert [k for k in range(SIZE) if k in cache] == [0, 1, 2]
    np.testing.assert_array_equal(cache.get_many(np.array([0, 4, 2])), MATRIX[:, [0, 4, 2]])
