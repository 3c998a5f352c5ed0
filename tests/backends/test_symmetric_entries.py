"""Symmetric matrices as vectors: inner products, round trips and congruences, alone and in stacks."""

import numpy as np
import pytest

from mercer.backends.symmetric_entries import SymmetricEntries


@pytest.fixture(params=["numpy", "torch"])
def matrices(request):
    """Three symmetric matrices of order 5, and a function that brings answers to NumPy."""
    stack = np.random.default_rng(1).standard_normal((3, 5, 5))
    stack = stack + stack.transpose(0, 2, 1)
    return stack if request.param == "numpy" else pytest.importorskip("torch").from_numpy(stack)


def test_inner_products_and_round_trips(matrices):
    entries = SymmetricEntries(5, matrices)
    vectors = entries.pack(matrices)
    plain = np.asarray(matrices)
    np.testing.assert_allclose(np.asarray(vectors @ vectors.T), np.einsum("aij,bij->ab", plain, plain), rtol=1e-13)
    np.testing.assert_allclose(np.asarray(entries.unpack(vectors)), plain, rtol=1e-15)
    np.testing.assert_array_equal(np.asarray(entries.pack(matrices[0])), np.asarray(vectors)[0])


def test_a_congruence_is_a_matrix(matrices):
    A, _, P = matrices
    entries = SymmetricEntries(5, A)
    np.testing.assert_allclose(
        np.asarray(entries.unpack(entries.congruence(P) @ entries.pack(A))), np.asarray(P @ A @ P), rtol=1e-12
    )


def test_of_a_matrix_that_is_not_symmetric_the_symmetric_part_is_packed():
    M, entries = np.random.default_rng(0).standard_normal((4, 4)), SymmetricEntries(4)
    np.testing.assert_allclose(entries.unpack(entries.pack(M)), (M + M.T) / 2, rtol=1e-15)
    assert entries.pack(M.astype(np.longdouble)).dtype == np.longdouble
