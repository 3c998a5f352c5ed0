"""Products with a tall matrix: as NumPy has them, and the same bits for any number of threads."""

from __future__ import annotations

import numpy as np
import pytest

from mercer import config_context
from mercer.backends.arrays import to_numpy
from mercer.linalg.dense_products import add_product, inner_products, over_rows, product

RNG = np.random.default_rng(0)
TALL = RNG.standard_normal((3000, 7))
OTHER = RNG.standard_normal((3000, 3))


@pytest.fixture(params=["numpy", "torch"])
def to(request):
    return np.asarray if request.param == "numpy" else pytest.importorskip("torch").tensor


@pytest.mark.parametrize("shape", [(7,), (7, 2), (7, 0)])
def test_products(to, shape, monkeypatch):
    monkeypatch.setattr("mercer.backends.chunks._CALL_ENTRIES", 2000)
    right = RNG.standard_normal(shape)
    np.testing.assert_allclose(to_numpy(product(to(TALL), to(right))), TALL @ right, atol=1e-13)
    total = to(np.ones((3000, *shape[1:])))
    add_product(total, to(TALL), to(right))
    np.testing.assert_allclose(to_numpy(total), 1.0 + TALL @ right, atol=1e-13)
    np.testing.assert_allclose(to_numpy(inner_products(to(TALL), to(OTHER))), TALL.T @ OTHER, atol=1e-11)


def test_no_rows_and_no_columns(to):
    assert tuple(product(to(TALL[:0]), to(np.ones(7))).shape) == (0,)
    np.testing.assert_array_equal(to_numpy(product(to(TALL[:, :0]), to(np.ones(0)))), np.zeros(3000))
    np.testing.assert_array_equal(to_numpy(inner_products(to(TALL[:0]), to(OTHER[:0]))), np.zeros((7, 3)))


def test_the_same_bits_for_any_number_of_threads(monkeypatch):
    monkeypatch.setattr("mercer.backends.chunks._CALL_ENTRIES", 2000)
    found = []
    for threads in (1, 2, 5):
        with config_context(n_threads=threads):
            found.append((product(TALL, TALL[0]), inner_products(TALL, OTHER)))
    for other in found[1:]:
        for ours, theirs in zip(found[0], other, strict=True):
            np.testing.assert_array_equal(ours, theirs)


def test_chunks_cover_every_row_once(monkeypatch):
    monkeypatch.setattr("mercer.backends.chunks._CALL_ENTRIES", 1000)
    slices = over_rows(lambda rows: rows, 1001, 9, 16)
    assert len(slices) > 5
    assert np.concatenate([np.arange(1001)[rows] for rows in slices]).tolist() == list(range(1001))
    assert {(rows.stop - rows.start) % 16 for rows in slices[:-1]} == {0}
