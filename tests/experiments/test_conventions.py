"""The paper's coordinates and its stopped solver, against dense linear algebra."""

import warnings

import numpy as np
import pytest

from mercer.datasets import three_clusters
from mercer.experiments.conventions import (
    both_embeddings,
    in_the_plane,
    spectrum_text,
    stopped_power_method,
)


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


def test_small_helpers():
    np.testing.assert_array_equal(in_the_plane(np.ones((2, 1))), [[1, 0], [1, 0]])
    np.testing.assert_array_equal(in_the_plane(np.ones((1, 3))), [[1, 1]])
    assert spectrum_text(np.array([0.963, 0.017, 0.007]), 2) == ".9630, .0170"
