"""PSD17 section 3 and 5 on diffusion maps, made executable: Remark 4, (18), (21), with the slips put right."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.spatial.distance import cdist

from mercer import DiffusionMaps, DiffusionOperator, Gaussian, GramOperator


@pytest.fixture(scope="module")
def walk():
    """A Markov chain on 12 points, and all the eigenfunctions ψ of its transition matrix but the constant one."""
    X = np.random.default_rng(5).standard_normal((12, 2))
    k = np.exp(-cdist(X, X, "sqeuclidean") / 0.49)
    model = DiffusionMaps(Gaussian(0.7), n_components=11, time=0).fit(X)
    return X, k / k.sum(axis=1, keepdims=True), k.sum(axis=1) / k.sum(), model


@pytest.mark.parametrize("time", [1, 2, 5])
def test_expansion_of_the_transition_matrix(walk, time):
    """(18): p_t(x,y) = Σ λᵗ ψ(x) φ(y), with φ = φ₀^½ u and ψ = φ₀^-½ u; Remark 4 prints them the other way round.

    Swapped, the sum is the transposed matrix, which is no transition matrix.
    """
    _, P, phi0, model = walk
    psi = np.column_stack([np.ones(12), model.embedding_])
    phi = model.stationary_[:, None] * psi
    values = np.append(1.0, model.eigenvalues_)
    np.testing.assert_allclose(model.stationary_, phi0, rtol=1e-12)
    np.testing.assert_allclose(phi.T @ psi, np.eye(12), atol=1e-10)
    expected = np.linalg.matrix_power(P, time)
    np.testing.assert_allclose((psi * values**time) @ phi.T, expected, atol=1e-10)
    swapped = (phi * values**time) @ psi.T
    assert np.abs(swapped - expected).max() > 1e-3
    u = np.sqrt(phi0)[:, None] * psi  # the orthonormal basis between the two
    np.testing.assert_allclose(u.T @ u, np.eye(12), atol=1e-10)


def test_orthogonality_of_the_two_bases(walk):
    """φ is orthonormal with the weight 1/φ₀ and ψ with φ₀. After (19) the paper gives ψ the weight of φ."""
    _, _, phi0, model = walk
    psi = model.embedding_
    np.testing.assert_allclose(psi.T @ (phi0[:, None] * psi), np.eye(11), atol=1e-10)
    wrong = psi.T @ (psi / phi0[:, None])
    assert np.abs(wrong - np.diag(np.diag(wrong))).max() > 1.0


@pytest.mark.parametrize("time", [0.5, 1.0, 2.0])
def test_inner_products_of_diffusion_coordinates(walk, time):
    """(21): Ψ_t(x)·Ψ_t(y) = p_2t(x,y)/φ₀(y) - 1."""
    X, P, phi0, _ = walk
    E = DiffusionMaps(Gaussian(0.7), n_components=11, time=time).fit_transform(X)
    expected = np.linalg.matrix_power(P, round(2 * time)) / phi0 - 1
    np.testing.assert_allclose(E @ E.T, expected, atol=1e-9)


def test_kernel_of_the_programme_is_that_of_half_a_step(walk):
    """Section 5 calls (5) the kernel (21) at t = ½; they differ by the stationary weights: K = φ₀^½ K_½ φ₀^½.

    So ‖Ψ_½(x)‖² = (k(x,x) vol - m²)/m² = d(x)/φ₀(x), while the length of the SDP embedding is d(x) itself.
    """
    X, _, phi0, _ = walk
    E = DiffusionMaps(Gaussian(0.7), n_components=11, time=0.5).fit_transform(X)
    operator = DiffusionOperator(GramOperator(Gaussian(0.7), X))
    np.testing.assert_allclose(np.sqrt(np.outer(phi0, phi0)) * (E @ E.T), operator.to_dense(), atol=1e-10)
    m, volume = operator.degrees, operator.volume
    np.testing.assert_allclose(np.sum(E**2, axis=1), (volume - m**2) / m**2, rtol=1e-9)
    assert np.abs(np.sum(E**2, axis=1) - operator.diagonal()).min() > 0.1
