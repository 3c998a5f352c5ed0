"""Block Lanczos: an orthonormal Krylov basis whatever the blocks do, and Ritz values that prove what they should."""

from __future__ import annotations

import numpy as np
import pytest

from mercer.linalg.lanczos import BlockLanczos, depth_for, underestimate


def largest_ritz_value(multiply, basis, steps, rng, *, block=1):
    """The largest Ritz value and the columns multiplied; minus infinity where the complement is empty."""
    space = BlockLanczos(multiply, basis, rng, block=block)
    space.extend(steps)
    return (float(space.ritz_values()[0]) if space.n_columns else -np.inf), space.n_columns


def _matrix(values, seed=0):
    n = len(values)
    Q = np.linalg.qr(np.random.default_rng(seed).standard_normal((n, n)))[0]
    return (Q * values) @ Q.T, Q


def _space(M, basis, block, depth, seed=0):
    space = BlockLanczos(lambda V: M @ V, basis, np.random.default_rng(seed), block=block)
    space.extend(depth)
    return space


@pytest.mark.parametrize("block", [1, 2, 8])
@pytest.mark.parametrize("q", [0, 3])
def test_basis_is_that_of_the_krylov_space(block, q):
    M, Q = _matrix(np.linspace(-1, 2, 60))
    basis = Q[:, :q]
    space = _space(M, basis, block, 5)
    V = space.vectors
    assert V.shape == (60, 5 * block) == (60, space.n_columns)
    np.testing.assert_allclose(V.T @ V, np.eye(5 * block), atol=1e-13)
    np.testing.assert_allclose(basis.T @ V, 0, atol=1e-13)
    P = np.eye(60) - basis @ basis.T
    starts = P @ np.random.default_rng(0).standard_normal((60, block))
    power = starts
    for _ in range(5):  # every Mʲ g lies in the span
        power /= np.linalg.norm(power, axis=0)
        np.testing.assert_allclose(V @ (V.T @ power), power, atol=1e-8)
        power = P @ (M @ power)
    np.testing.assert_allclose(space.ritz_values(), np.linalg.eigvalsh(V.T @ M @ V)[::-1], atol=1e-12)


@pytest.mark.parametrize("block", [1, 3])
def test_ritz_pairs_come_with_their_products(block):
    M, Q = _matrix(np.linspace(0, 1, 50) ** 3)
    space = _space(M, Q[:, -2:], block, 6)
    values, X, product = space.ritz_pairs(4)
    P = np.eye(50) - Q[:, -2:] @ Q[:, -2:].T
    np.testing.assert_allclose(product, P @ M @ X, atol=1e-13)
    np.testing.assert_allclose(X.T @ X, np.eye(4), atol=1e-13)
    np.testing.assert_allclose(values, space.ritz_values()[:4])
    residuals = np.linalg.norm(product - X * values, axis=0)
    np.testing.assert_allclose(space.residual_norms()[:4], residuals, atol=1e-13)


@pytest.mark.parametrize("block", [1, 3, 8])
def test_a_block_that_loses_rank_goes_on_with_the_rest(block):
    """Five distinct eigenvalues besides zero: the space closes with them all, however wide the block."""
    values = np.concatenate([[3.0, 2.0, 1.0, 0.5, 0.2], np.zeros(95)])
    M, _ = _matrix(values)
    space = _space(M, np.empty((100, 0)), block, 60)
    assert space.closed
    assert space.n_columns <= 6 + 2 * block
    np.testing.assert_allclose(space.ritz_values()[:5], values[:5], atol=1e-12)
    V = space.vectors
    np.testing.assert_allclose(V.T @ V, np.eye(V.shape[1]), atol=1e-12)


def test_multiple_eigenvalues_are_seen_as_often_as_the_block_is_wide():
    values = np.concatenate([np.full(4, 2.0), np.linspace(0, 1, 56)])
    M, _ = _matrix(values)
    assert np.sum(_space(M, np.empty((60, 0)), 1, 20).ritz_values() > 1.5) == 1
    assert np.sum(_space(M, np.empty((60, 0)), 4, 12).ritz_values() > 1.5) == 4


def test_a_space_as_large_as_the_complement_is_exact():
    M, Q = _matrix(np.linspace(0, 1, 20))
    for block in (1, 3, 7, 30):
        space = _space(M, Q[:, :4], block, 50)
        assert space.closed
        assert space.n_columns == 16
        np.testing.assert_allclose(space.ritz_values(), np.linspace(0, 1, 20)[:3:-1], atol=1e-12)


def test_nothing_is_left_of_a_full_basis():
    assert largest_ritz_value(lambda V: V, np.eye(5), 3, np.random.default_rng(0), block=2) == (-np.inf, 0)


def test_growing_is_the_same_as_starting_deep():
    M, _ = _matrix(np.linspace(0, 1, 80))
    grown = BlockLanczos(lambda V: M @ V, np.empty((80, 0)), np.random.default_rng(3), block=2)
    for depth in (1, 2, 5, 9):
        grown.extend(depth)
    at_once = _space(M, np.empty((80, 0)), 2, 9, seed=3)
    np.testing.assert_allclose(grown.ritz_values(), at_once.ritz_values(), atol=1e-13)
    assert grown.depth == at_once.depth == 9


def test_wider_blocks_see_no_less():
    """The block space contains the space of its first start, so its Ritz value is at least as large."""
    M, _ = _matrix(np.linspace(0, 1, 200))
    rng = np.random.default_rng(0)
    starts = rng.standard_normal((200, 4))

    class Given:
        def __init__(self, columns):
            self.columns = columns

        def standard_normal(self, shape):
            return starts[:, : self.columns]

    one = BlockLanczos(lambda V: M @ V, np.empty((200, 0)), Given(1), block=1)
    four = BlockLanczos(lambda V: M @ V, np.empty((200, 0)), Given(4), block=4)
    for depth in (2, 5, 9):
        one.extend(depth)
        four.extend(depth)
        assert four.ritz_values()[0] >= one.ritz_values()[0] - 1e-14


def test_underestimate_is_the_formula_and_depth_its_inverse():
    epsilon = underestimate(19, 10_000, 1e-9)
    assert 1.648 * 100 * np.exp(-np.sqrt(epsilon) * 37) == pytest.approx(1e-9)
    assert epsilon < 0.5  # one half of relative accuracy for nineteen columns
    each = underestimate(6, 10_000, 1e-9, block=8)
    assert (1.648 * 100 * np.exp(-np.sqrt(each) * 11)) ** 8 == pytest.approx(1e-9)
    assert each < 0.5  # for six products one after another
    for block in (1, 8):
        depth = depth_for(0.1, 500, 1e-9, block)
        assert underestimate(depth, 500, 1e-9, block) <= 0.1 < underestimate(depth - 1, 500, 1e-9, block)
    assert underestimate(1, 500, 1e-9) == 1.0


@pytest.mark.parametrize("block", [1, 3])
@pytest.mark.parametrize("probability", [0.5, 0.1])
def test_the_bound_fails_no_more_often_than_it_says(block, probability):
    """On a spectrum made to be hard: one eigenvalue at the top, the others crowded below the factor that is allowed."""
    n, depth = 400, 4
    epsilon = underestimate(depth, n, probability, block)
    assert epsilon < 1
    values = np.concatenate([[1.0], np.linspace(0, 1 - 1.05 * epsilon, n - 1)])
    rng = np.random.default_rng(0)
    failures = 0
    for _ in range(200):
        ritz, _ = largest_ritz_value(lambda V: values[:, None] * V, np.empty((n, 0)), depth, rng, block=block)
        failures += ritz < 1 - epsilon
    assert failures <= 200 * probability + 3 * np.sqrt(200 * probability)
