"""The paper's coordinates and its stopped solver, against dense linear algebra."""

import warnings

import numpy as np
import pytest

from mercer import Gaussian, GramOperator, Precomputed, SDPEmbedding
from mercer.datasets import three_clusters
from mercer.experiments.conventions import (
    PapersPower,
    both_embeddings,
    in_the_plane,
    spectrum_text,
    stopped_power_method,
    uniform_rows,
)
from mercer.problems import Elliptope
from mercer.solvers import Status
from mercer.solvers.elliptope.method import evaluated


@pytest.fixture(scope="module")
def sample():
    X, _ = three_clusters(20, 4, random_state=1)
    return X


def _dense(X, sigma):
    K = np.exp(-((X[:, None] - X) ** 2).sum(axis=2) / sigma**2)
    m = K.sum(axis=1)
    values, vectors = np.linalg.eigh(K / np.sqrt(np.outer(m, m)))
    return m, values[::-1][1:3], vectors[:, ::-1][:, 1:3]


def test_coordinates_are_eigenvectors_of_the_symmetric_matrix(sample):
    _, values, vectors = _dense(sample, 1.2)
    ours = both_embeddings(sample, 1.2)[1].embedding_
    np.testing.assert_allclose(np.abs(ours), np.abs(values * vectors), atol=1e-8)


def test_extension_agrees_with_the_nystrom_formula(sample):
    m, _, vectors = _dense(sample, 1.2)
    new = sample[:7] + 0.3
    k = np.exp(-((new[:, None] - sample) ** 2).sum(axis=2) / 1.2**2)
    expected = k / np.sqrt(np.outer(k.sum(axis=1), m)) @ vectors  # λ · (1/λ) a(x)ᵀ u
    found = both_embeddings(sample, 1.2)[1].transform(new)
    np.testing.assert_allclose(np.abs(found), np.abs(expected), atol=1e-8)


def test_stopped_run_is_quiet_and_says_how_far_it_is(sample):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = stopped_power_method(sample, 1.2, max_iter=20)
    assert model.n_iter_ == 20
    assert model.certificate_.relative_gap > 1e-9


def test_the_papers_start_from_uniform_entries():
    """Appendix C: entries in [-1, 1] chosen uniformly, then rows of unit length: not directions drawn evenly."""
    rows = uniform_rows((200_000, 2), np.random.default_rng(0))
    np.testing.assert_allclose(np.linalg.norm(rows, axis=1), 1, rtol=1e-14)
    diagonal = np.abs(np.abs(rows[:, 0]) - np.abs(rows[:, 1])) < 0.2  # towards the corners of the square lie more
    even = 8 / (2 * np.pi) * np.arcsin(0.2 / np.sqrt(2))  # the part of the circle
    assert np.mean(diagonal) > 1.2 * even


def test_the_papers_replace_rows_of_zeros_at_random():
    """A matrix with an empty row, which the method of the library would leave where it is."""
    problem = Elliptope(GramOperator(Precomputed(), np.diag([1.0, 1.0, 0.0])), np.ones(3))
    H = np.eye(3)[:, :2] + [[0, 0], [0, 0], [1, 0]]
    moved = PapersPower(np.random.default_rng(0)).moved(problem, evaluated(problem, H)).H
    np.testing.assert_array_equal(moved[:2], H[:2])
    assert np.linalg.norm(moved[2]) == pytest.approx(1)
    assert abs(moved[2] @ H[2]) < 0.99


def test_the_papers_method_reaches_the_optimum_where_it_is_given_time(sample):
    model = stopped_power_method(sample, 2.0, tol=1e-8, max_iter=50_000)
    assert model.status_ is Status.CONVERGED
    exact = SDPEmbedding(Gaussian(2.0), random_state=0, tol=1e-8).fit(sample)
    assert model.rank_ == exact.rank_
    assert model.certificate_.lower == pytest.approx(exact.certificate_.lower, rel=1e-7)
    np.testing.assert_allclose(model.embedding_ @ model.embedding_.T, exact.embedding_ @ exact.embedding_.T, atol=1e-4)


def test_small_helpers():
    np.testing.assert_array_equal(in_the_plane(np.ones((2, 1))), [[1, 0], [1, 0]])
    np.testing.assert_array_equal(in_the_plane(np.ones((1, 3))), [[1, 1]])
    assert spectrum_text(np.array([0.963, 0.017, 0.007]), 2) == ".9630, .0170"
