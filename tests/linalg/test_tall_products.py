"""Products with tall arrays: what they are, and the same bits for any number of threads."""

from __future__ import annotations

import numpy as np
import pytest

from mercer import config_context
from mercer.linalg.tall import inner_products, square_row_lengths, tall_product, weighted_gram

SHAPES = [(5, 3), (4096, 7), (9000, 1), (9000, 300)]


@pytest.fixture(params=SHAPES, ids=str)
def arrays(request):
    rng = np.random.default_rng(0)
    F = np.asfortranarray(rng.standard_normal(request.param))
    return F, rng.standard_normal((request.param[0], 2)), rng.standard_normal((request.param[1], 2)), F[:, 0] ** 2


def _answers(F, X, M, s):
    return inner_products(F, X), tall_product(F, M), square_row_lengths(F), weighted_gram(F, s)


def test_values(arrays):
    F, X, M, s = arrays
    want = F.T @ X, F @ M, np.sum(F**2, axis=1), (s[:, None] * F).T @ (s[:, None] * F)
    for got, expected in zip(_answers(*arrays), want, strict=True):
        np.testing.assert_allclose(got, expected, rtol=1e-12, atol=1e-10 * np.abs(expected).max())


def test_any_number_of_threads_gives_the_same_bits(arrays):
    with config_context(n_threads=1):
        want = _answers(*arrays)
    for n_threads in (2, 5):
        with config_context(n_threads=n_threads):
            got = _answers(*arrays)
        assert all(np.array_equal(a, b) for a, b in zip(want, got, strict=True))


def test_a_gram_matrix_is_symmetric_to_the_last_bit(arrays):
    F, _, _, s = arrays
    gram = weighted_gram(F, s)
    assert np.array_equal(gram, gram.T)


def test_tensors(arrays):
    torch = pytest.importorskip("torch")
    tensors = [torch.asarray(np.ascontiguousarray(array)) for array in arrays]
    for got, want in zip(_answers(*tensors), _answers(*arrays), strict=True):
        assert isinstance(got, torch.Tensor)
        np.testing.assert_allclose(got.numpy(), want, rtol=1e-12, atol=1e-10 * np.abs(want).max())
