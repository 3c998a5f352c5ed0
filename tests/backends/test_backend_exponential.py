"""The compiled exponential and the sweeps built on it."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose

from mercer.backends.cpu import exponential, row_sums, rows


def relative_errors(dtype, t):
    t = t.astype(dtype)
    values = t.reshape(1, -1).copy()
    rows.exponential(values, values.shape[1], 1, False)
    want = np.exp(-t.astype(np.longdouble))
    return ((values[0].astype(np.longdouble) - want) / want).astype(np.float64)


@pytest.mark.parametrize(("dtype", "cut", "most"), [(np.float32, 87.0, 1.5e-7), (np.float64, 708.0, 5e-16)])
def test_accuracy_everywhere(dtype, cut, most):
    rng = np.random.default_rng(0)
    near, far = rng.uniform(0, 2, 100_000), rng.uniform(0, cut * (1 - 1e-6), 100_000)
    tiny, breaks = 10 ** rng.uniform(-30, 0, 20_000), (np.arange(1, int(cut)) + 0.5) * np.log(2)
    errors = relative_errors(dtype, np.concatenate([near, far, tiny, breaks[breaks < cut * (1 - 1e-6)], [0.0]]))
    assert abs(errors).max() < most
    for part in (errors[:100_000], errors[100_000:200_000]):
        assert abs(part.mean()) < most / 20  # unbiased: sums over many entries do not drift


@pytest.mark.parametrize(("dtype", "cut"), [(np.float32, 87.0), (np.float64, 708.0)])
def test_exactly_one_at_zero_and_zero_beyond_the_cut(dtype, cut):
    values = np.array(
        [[0.0, cut, np.nextafter(dtype(cut), dtype(0)), cut + 1, 1e5, np.finfo(dtype).max, np.inf]], dtype
    )
    rows.exponential(values, values.shape[1], 1, False)
    assert values[0, 0] == 1
    assert not values[0, [1, 3, 4, 5, 6]].any()
    assert values[0, 2] > 0


def test_it_never_exceeds_one_and_falls():
    for dtype in (np.float32, np.float64):
        t = np.sort(np.concatenate([np.geomspace(1e-40, 1, 20_000), np.linspace(0, 80, 50_000)])).astype(dtype)
        values = t.reshape(1, -1).copy()
        rows.exponential(values, values.shape[1], 1, False)
        assert values.max() == 1
        assert np.diff(values[0]).max() <= 4 * np.finfo(dtype).eps


def test_the_python_twin_says_the_same():
    assert exponential.exp_negative(1.5) == pytest.approx(np.exp(-1.5))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_sums_of_a_block_of_rows(dtype):
    e = np.random.default_rng(3).normal(size=(4, 11)).astype(dtype)
    vt, v = np.random.default_rng(4).normal(size=(3, 11)).astype(dtype), np.ones((4, 3), dtype)
    total, total_t = np.ones((4, 3), dtype), np.ones((3, 11), dtype)
    row_sums.add_rows(e, 11, vt, 0, total)
    row_sums.add_columns(e, 11, v, 0, total_t)
    rtol = 1e-5 if dtype == np.float32 else 1e-13
    assert_allclose(total, 1 + e @ vt.T, rtol=rtol, atol=rtol)
    assert_allclose(total_t, 1 + np.tile(e.sum(axis=0), (3, 1)), rtol=rtol, atol=rtol)
