"""Properties that hold for any data: hypothesis looks for data for which they do not."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from scipy.stats import ortho_group

from mercer import DiffusionMaps, DiffusionOperator, Gaussian, GramOperator, Laplacian, Matern, SDPEmbedding

_SETTINGS = settings(
    max_examples=12, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


@st.composite
def samples(draw):
    """Some points in some dimensions, well inside the range where the kernel says something."""
    n, dimension = draw(st.integers(4, 18)), draw(st.integers(1, 4))
    seed = draw(st.integers(0, 2**20))
    X = np.random.default_rng(seed).standard_normal((n, dimension))
    return X, draw(st.floats(0.8, 4.0)), seed


def _fit(X, sigma, kernel=Gaussian):
    return SDPEmbedding(kernel(sigma), tol=1e-8, residual_tol=1e-8, max_iter=100_000, random_state=0).fit(X)


def _learned(model) -> np.ndarray:
    return model.embedding_ @ model.embedding_.T


def _assert_same(a, b, order=slice(None)):
    """The same optimum; and the same learned matrix where it is unique, that is, the slack has no further zero."""
    assert a.certificate_.lower == pytest.approx(b.certificate_.lower, rel=1e-6)
    least = a.certificate_.least_eigenvalues
    if least.size == a.rank_ or least[a.rank_] > 1e-2 * np.abs(a.diagonal_).max():
        B = _learned(a)[order][:, order]
        np.testing.assert_allclose(_learned(b), B, atol=1e-3 * np.abs(B).max())


@_SETTINGS
@given(samples())
def test_rotation_and_reflection(sample):
    X, sigma, seed = sample
    rotation = ortho_group.rvs(X.shape[1], random_state=seed) if X.shape[1] > 1 else np.array([[-1.0]])
    _assert_same(_fit(X, sigma), _fit(X @ rotation, sigma))


@_SETTINGS
@given(samples(), st.floats(-1e3, 1e3))
def test_translation(sample, offset):
    X, sigma, _ = sample
    _assert_same(_fit(X, sigma, Laplacian), _fit(X + offset, sigma, Laplacian))


@_SETTINGS
@given(samples())
def test_permutation_of_rows(sample):
    X, sigma, seed = sample
    order = np.random.default_rng(seed + 1).permutation(len(X))
    _assert_same(_fit(X, sigma), _fit(X[order], sigma), order)


@_SETTINGS
@given(samples())
def test_permutation_of_columns(sample):
    X, sigma, seed = sample
    order = np.random.default_rng(seed + 1).permutation(X.shape[1])
    _assert_same(_fit(X, sigma, Laplacian), _fit(X[:, order], sigma, Laplacian))


@_SETTINGS
@given(samples(), st.floats(1e-3, 1e3))
def test_units_of_data_and_bandwidth_together(sample, factor):
    X, sigma, _ = sample
    _assert_same(_fit(X, sigma), _fit(factor * X, factor * sigma))


@_SETTINGS
@given(samples(), st.floats(1e-3, 1e3))
def test_multiple_of_the_kernel(sample, factor):
    X, sigma, _ = sample
    multiple = SDPEmbedding(
        factor * Gaussian(sigma), tol=1e-8, residual_tol=1e-8, max_iter=100_000, random_state=0
    ).fit(X)
    _assert_same(_fit(X, sigma), multiple)


@_SETTINGS
@given(samples(), st.sampled_from([Gaussian, Laplacian, lambda s: Matern(1.5, s)]))
def test_rigidity_bounds_and_extension(sample, kernel):
    """‖Ξᵢ‖² = dᵢ; ‖Ā‖²_F ≤ p* ≤ λ₁ Tr Ā (PSD17 Proposition 1); training points keep their places; b is psd."""
    X, sigma, _ = sample
    model = _fit(X, sigma, kernel)
    A = DiffusionOperator(GramOperator(kernel(sigma), X)).to_dense()
    np.testing.assert_allclose(np.sum(model.embedding_**2, axis=1), np.diag(A), rtol=1e-7)
    assert np.sum(A**2) <= model.certificate_.upper * (1 + 1e-9)
    assert model.certificate_.lower <= np.linalg.eigvalsh(A)[-1] * np.trace(A) * (1 + 1e-9)
    assert np.abs(model.transform(X.copy()) - model.embedding_).max() <= 1e-6 * np.abs(model.embedding_).max()
    b = model.learned_kernel(X + 0.1)
    assert np.linalg.eigvalsh(b)[0] >= -1e-12 * max(np.trace(b), 1e-300)


@_SETTINGS
@given(samples())
def test_a_row_repeated_for_all_is_nothing_new(sample):
    """Every point twice: the objective is the same, since the average over points is."""
    X, sigma, _ = sample
    once, twice = _fit(X, sigma), _fit(np.repeat(X, 2, axis=0), sigma)
    assert twice.certificate_.lower == pytest.approx(once.certificate_.lower, rel=1e-6)


@_SETTINGS
@given(samples())
def test_diffusion_maps_rotation_and_permutation(sample):
    X, sigma, seed = sample
    rng = np.random.default_rng(seed)
    order = rng.permutation(len(X))
    rotation, _ = np.linalg.qr(rng.standard_normal((X.shape[1], X.shape[1])))
    a, b = (DiffusionMaps(Gaussian(sigma), n_components=2).fit(data) for data in (X, X[order] @ rotation))
    np.testing.assert_allclose(b.eigenvalues_, a.eigenvalues_, rtol=1e-8)
    gram = (a.embedding_ @ a.embedding_.T)[order][:, order]
    values = DiffusionMaps(Gaussian(sigma), n_components=3).fit(X).eigenvalues_
    if values[1] - values[2] > 1e-3:  # the two-dimensional space is well determined
        np.testing.assert_allclose(b.embedding_ @ b.embedding_.T, gram, atol=1e-7 * np.abs(gram).max())
