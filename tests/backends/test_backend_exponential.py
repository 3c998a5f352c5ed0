"""The compiled exponential and the sweeps built on it."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose

from mercer.backends.cpu import compiled


def relative_errors(dtype, t):
    t = t.astype(dtype)
    values = t.reshape(1, -1).copy()
    compiled.exponential(values)
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
    compiled.exponential(values)
    assert values[0, 0] == 1
    assert not values[0, [1, 3, 4, 5, 6]].any()
    assert values[0, 2] > 0


def test_it_never_exceeds_one_and_falls():
    for dtype in (np.float32, np.float64):
        t = np.sort(np.concatenate([np.geomspace(1e-40, 1, 20_000), np.linspace(0, 80, 50_000)])).astype(dtype)
        values = t.reshape(1, -1).copy()
        compiled.exponential(values)
        assert values.max() == 1
        assert np.diff(values[0]).max() <= 4 * np.finfo(dtype).eps


def test_the_python_twin_says_the_same():
    assert compiled.exp_negative(1.5) == pytest.approx(np.exp(-1.5))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(("linear", "quadratic"), [(0.0, 0.0), (1.0, 0.0), (1.0, 1 / 3)])
def test_root_exponential_sweeps_agree_with_the_profile(dtype, linear, quadratic):
    rng = np.random.default_rng(1)
    t = rng.uniform(0, 50, (30, 40)).astype(dtype)
    s = np.sqrt(t.astype(np.float64))
    want = (1 + linear * s + quadratic * s**2) * np.exp(-s)
    got = t.copy()
    compiled.root_exponential(got, dtype(linear), dtype(quadratic))
    assert_allclose(got, want, rtol=2e-6 if dtype == np.float32 else 1e-14)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_sweeps_over_inner_products(dtype):
    rng = np.random.default_rng(2)
    x, y = rng.normal(size=(7, 5)).astype(dtype), rng.normal(size=(9, 5)).astype(dtype)
    norms = (x * x).sum(axis=1), (y * y).sum(axis=1)
    t = ((x[:, None].astype(np.float64) - y) ** 2).sum(axis=2)
    rtol = 1e-5 if dtype == np.float32 else 1e-13
    out = np.ascontiguousarray(x @ y.T)
    compiled.exponential_of_products(out, *norms)
    assert_allclose(out, np.exp(-t), rtol=rtol)
    out = np.ascontiguousarray(x @ y.T)
    compiled.root_exponential_of_products(out, *norms, dtype(1), dtype(0))
    assert_allclose(out, (1 + np.sqrt(t)) * np.exp(-np.sqrt(t)), rtol=rtol)
    out = np.empty((7, 7), dtype)
    compiled.squared_distances_from_products(x @ x.T, norms[0], norms[0], out)
    assert out.min() >= 0


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_sums_of_a_tile(dtype):
    tile = np.random.default_rng(3).normal(size=(6, 11)).astype(dtype)
    rows, cols = np.ones(6), np.ones(11)
    compiled.add_sums(tile, rows, cols, True)
    assert_allclose(rows, 1 + tile.sum(axis=1), rtol=1e-5 if dtype == np.float32 else 1e-13)
    assert_allclose(cols, 1 + tile.sum(axis=0), rtol=1e-5 if dtype == np.float32 else 1e-13)
    compiled.add_sums(tile, rows, cols, False)
    assert_allclose(cols, 1 + tile.sum(axis=0), rtol=1e-5 if dtype == np.float32 else 1e-13)
