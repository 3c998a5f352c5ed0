"""A matrix given by a factor."""

import numpy as np
import pytest

from mercer import LowRankOperator

rng = np.random.default_rng(6)
F, G = rng.normal(size=(30, 4)), rng.normal(size=(12, 4))


def test_rank_and_shape_follow_the_factors():
    operator = LowRankOperator(F, G)
    assert operator.shape == (30, 12)
    assert operator.rank == 4
    assert not operator.symmetric
    assert LowRankOperator(F).symmetric
    assert LowRankOperator(F).landmarks is None
    assert LowRankOperator(F).residual_diagonal is None


def test_an_empty_factor_is_the_zero_matrix():
    operator = LowRankOperator(np.empty((5, 0)))
    assert operator.rank == 0
    np.testing.assert_array_equal(operator.to_dense(), np.zeros((5, 5)))
    np.testing.assert_array_equal(operator @ np.ones(5), np.zeros(5))
    np.testing.assert_array_equal(operator.diagonal(), np.zeros(5))


def test_mixed_precision_is_computed_in_the_finer_one():
    operator = LowRankOperator(F.astype(np.float32), G)
    assert operator.dtype == np.float64
    assert operator.to_dense().dtype == np.float64
    assert (operator.T @ np.ones(30)).dtype == np.float64


def test_factors_that_do_not_fit_are_refused():
    with pytest.raises(ValueError, match=r"^The factors have 4 and 3 columns: they must agree\.$"):
        LowRankOperator(F, G[:, :3])
    with pytest.raises(ValueError, match="factor must be 2-dimensional"):
        LowRankOperator(F[:, 0])
    with pytest.raises(ValueError, match="factor has nan in row 0, column 0"):
        LowRankOperator(np.full((2, 2), np.nan))
