"""Diffusion maps against a dense decomposition of the Markov matrix."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.linalg import eigh

import mercer
from mercer import DiffusionMaps, Gaussian, Laplacian, Matern, SDPEmbedding
from mercer.datasets import interval, three_clusters, two_moons
from mercer.embedding.degeneracy import RankWarning

_KERNELS = [Gaussian(sigma=1.0), Laplacian(sigma=2.0), Matern(nu=1.5, length_scale=1.0)]


@pytest.fixture(scope="module")
def X():
    return np.random.default_rng(0).standard_normal((70, 2)) * [2.0, 1.0]


def _naive(kernel, X, count, time, alpha) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Eigenvalues, eigenfunctions ψ and coordinates λᵗψ of the density-corrected Markov matrix, λ₀ = 1 dropped."""
    K = kernel(X)
    q = K.sum(axis=1)
    K = K / np.outer(q, q) ** alpha
    m = K.sum(axis=1)
    values, U = eigh(K / np.sqrt(np.outer(m, m)))
    values, U = values[::-1], U[:, ::-1]
    assert values[0] == pytest.approx(1.0, abs=1e-12)
    psi = U[:, 1 : count + 1] / np.sqrt(m / m.sum())[:, None]
    return values[1 : count + 1], psi, values[1 : count + 1] ** time * psi


def _signs(A, B) -> np.ndarray:
    return np.sign(np.sum(A * B, axis=0))


@pytest.mark.parametrize("kernel", _KERNELS, ids=repr)
@pytest.mark.parametrize("alpha", [0, 0.5, 1])
@pytest.mark.parametrize("time", [0, 1, 2.5])
def test_coordinates(kernel, alpha, time, X):
    model = DiffusionMaps(kernel, n_components=3, time=time, alpha=alpha).fit(X)
    values, _, expected = _naive(kernel, X, 3, time, alpha)
    np.testing.assert_allclose(model.eigenvalues_, values, rtol=1e-10)
    np.testing.assert_allclose(model.embedding_ * _signs(model.embedding_, expected), expected, atol=1e-8)


@pytest.mark.parametrize("alpha", [0, 0.5, 1])
def test_symmetric_coordinates(alpha, X):
    """λᵗu with the eigenvectors u of the symmetric matrix (PSD22 1.2): unit vectors; u(x) = √(m(x)/vol) ψ(x) beyond."""
    kernel, new = Gaussian(sigma=1.0), np.random.default_rng(3).standard_normal((20, 2))
    model = DiffusionMaps(kernel, n_components=3, time=2, alpha=alpha, normalization="symmetric").fit(X)
    maps = DiffusionMaps(kernel, n_components=3, time=2, alpha=alpha).fit(X)
    np.testing.assert_allclose(np.linalg.norm(model.embedding_, axis=0), model.eigenvalues_**2, rtol=1e-10)
    np.testing.assert_allclose(model.embedding_, maps.embedding_ * maps.stationary_[:, None] ** 0.5, atol=1e-12)
    np.testing.assert_allclose(model.transform(X.copy()), model.embedding_, atol=1e-10)
    q, cross = kernel(X).sum(axis=1), kernel(new, X)
    volume = np.sum(kernel(X) / np.outer(q, q) ** alpha)
    degrees = np.sum(cross / np.outer(cross.sum(axis=1), q) ** alpha, axis=1)
    expected = maps.transform(new) * np.sqrt(degrees / volume)[:, None]
    np.testing.assert_allclose(model.transform(new), expected, atol=1e-10)
    assert np.all(model.transform([[1e6, 0.0]]) == 0) or alpha > 0.5  # far from the data there is no density


@pytest.mark.parametrize("alpha", [0, 1])
def test_symmetric_coordinates_of_weighted_rows_are_those_of_repeated_ones(alpha, X):
    counts = np.random.default_rng(1).integers(1, 4, len(X))
    options = {"alpha": alpha, "normalization": "symmetric"}
    repeated = DiffusionMaps(Gaussian(sigma=1.0), **options).fit(np.repeat(X, counts, axis=0))
    for unit in (1.0, 4e4):
        model = DiffusionMaps(Gaussian(sigma=1.0), **options).fit(X, sample_weight=unit * counts)
        found = model.embedding_ * unit**0.5
        np.testing.assert_allclose(np.repeat(found, counts, axis=0), repeated.embedding_, atol=1e-9)
        np.testing.assert_allclose(model.transform(X[:9] + 0.1) * unit**0.5, repeated.transform(X[:9] + 0.1), atol=1e-9)
    with pytest.raises(ValueError, match="normalization='row' must be one of 'markov', 'symmetric'"):
        DiffusionMaps(normalization="row").fit(X)


@pytest.mark.parametrize("alpha", [0, 0.5, 1])
def test_stationary_distribution(alpha, X):
    """It is what a long walk forgets towards: πP = π."""
    model = DiffusionMaps(Gaussian(sigma=1.0), alpha=alpha).fit(X)
    K = Gaussian(sigma=1.0)(X)
    q = K.sum(axis=1)
    K = K / np.outer(q, q) ** alpha
    P = K / K.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(model.stationary_ @ P, model.stationary_, rtol=1e-10)
    assert model.stationary_.sum() == pytest.approx(1.0)


def test_eigenfunctions_are_orthonormal_under_the_stationary_distribution(X):
    model = DiffusionMaps(Gaussian(sigma=1.0), n_components=5, time=0).fit(X)
    psi, pi = model.embedding_, model.stationary_
    np.testing.assert_allclose(psi.T @ (pi[:, None] * psi), np.eye(5), atol=1e-10)
    np.testing.assert_allclose(pi @ psi, 0.0, atol=1e-10)


def test_distances_are_diffusion_distances(X):
    """With every component, ‖Ψ(x) - Ψ(y)‖² = Σ_z (pᵗ(x,z) - pᵗ(y,z))² / π(z), for t = 1 (Coifman, Lafon 2006)."""
    points = X[:12]
    kernel = Gaussian(sigma=0.7)
    model = DiffusionMaps(kernel, n_components=11).fit(points)
    K = kernel(points)
    P = K / K.sum(axis=1, keepdims=True)
    expected = np.sum((P[:, None] - P) ** 2 / model.stationary_, axis=2)
    found = np.sum((model.embedding_[:, None] - model.embedding_) ** 2, axis=2)
    np.testing.assert_allclose(found, expected, rtol=1e-8, atol=1e-12)


@pytest.mark.parametrize("kernel", _KERNELS, ids=repr)
@pytest.mark.parametrize("alpha", [0, 0.5, 1])
@pytest.mark.parametrize("time", [0, 1, 3])
def test_training_points_keep_their_places(kernel, alpha, time, X):
    model = DiffusionMaps(kernel, time=time, alpha=alpha).fit(X)
    np.testing.assert_allclose(model.transform(X.copy()), model.embedding_, atol=1e-10)


@pytest.mark.parametrize("alpha", [0, 0.5, 1])
def test_extension_is_nystroem(alpha, X):
    """ψ(x) = λ⁻¹ Σⱼ p(x, xⱼ) ψ(xⱼ), the density of x corrected too."""
    kernel = Gaussian(sigma=1.0)
    new = np.random.default_rng(3).standard_normal((20, 2))
    model = DiffusionMaps(kernel, n_components=3, time=2, alpha=alpha).fit(X)
    values, psi, expected_training = _naive(kernel, X, 3, 2, alpha)
    q = kernel(X).sum(axis=1)
    cross = kernel(new, X)
    cross = cross / np.outer(cross.sum(axis=1), q) ** alpha
    P = cross / cross.sum(axis=1, keepdims=True)
    expected = values**2 * (P @ psi / values)
    signs = _signs(model.embedding_, expected_training)
    np.testing.assert_allclose(model.transform(new) * signs, expected, atol=1e-8)


@pytest.mark.parametrize("kernel", _KERNELS, ids=repr)
@pytest.mark.parametrize("distance", [1e6, 1e150, 1e300])
def test_far_away_is_finite(kernel, distance, X):
    """p(x, ·) is a probability however far x lies: coordinates stay within those of the training points over λ."""
    model = DiffusionMaps(kernel).fit(X)
    out = model.transform([[distance, 0.0], [0.0, -distance]])
    assert np.isfinite(out).all()
    assert np.all(np.abs(out) <= np.abs(model.embedding_).max(axis=0) / model.eigenvalues_ * (1 + 1e-9))


def test_many_points_by_lanczos_agree_with_the_dense_answer():
    X, _ = three_clusters(n_per_cluster=530)
    assert len(X) > 1500
    kernel = Gaussian(sigma=2.0)
    model = DiffusionMaps(kernel, n_components=3, random_state=0).fit(X)
    K = kernel(X)
    m = K.sum(axis=1)
    n = len(X)
    values, U = eigh(K / np.sqrt(np.outer(m, m)), subset_by_index=[n - 4, n - 2])
    values, U = values[::-1], U[:, ::-1]
    expected = values * U / np.sqrt(m / m.sum())[:, None]
    np.testing.assert_allclose(model.eigenvalues_, values, rtol=1e-9)
    np.testing.assert_allclose(model.embedding_ * _signs(model.embedding_, expected), expected, atol=1e-7)
    other = DiffusionMaps(kernel, n_components=3, random_state=1).fit(X)
    np.testing.assert_allclose(other.embedding_, model.embedding_, atol=1e-7)  # signs included
    np.testing.assert_allclose(model.transform(X[:50].copy()), model.embedding_[:50], atol=1e-8)


def test_more_components_than_points():
    X = np.random.default_rng(0).standard_normal((6, 2))
    with pytest.warns(RankWarning, match="n_components=9 exceeds the number of dimensions, 5"):
        model = DiffusionMaps(Gaussian(sigma=1.0), n_components=9).fit(X)
    assert model.embedding_.shape == model.transform(X).shape == (6, 9)
    assert np.all(model.embedding_[:, 5:] == 0)
    assert np.all(model.transform(X.copy())[:, 5:] == 0)
    assert np.all(model.eigenvalues_[5:] == 0)
    assert np.all(model.eigenvalues_[:5] > 0)
    assert len(model.get_feature_names_out()) == 9


def test_more_components_than_rank():
    """Three places, many points: the Markov matrix has rank three, so there are two coordinates and no noise."""
    X = np.repeat([[0.0, 0.0], [1.0, 0.0], [0.0, 2.0]], 10, axis=0)
    with pytest.warns(RankWarning, match="the number of dimensions, 2"):
        model = DiffusionMaps(Gaussian(sigma=1.0), n_components=4).fit(X)
    assert np.all(model.embedding_[:, 2:] == 0)
    np.testing.assert_allclose(model.transform(X.copy()), model.embedding_, atol=1e-10)
    first = DiffusionMaps(Gaussian(sigma=1.0), n_components=2).fit(X)
    np.testing.assert_allclose(model.embedding_[:, :2], first.embedding_, atol=1e-12)


def test_density_correction_recovers_the_geometry():
    """Unevenly sampled interval: with α = 1 the first coordinate is cos(πx), whatever the density (Coifman, Lafon)."""
    x = np.linspace(0, 1, 800) ** 2
    model = DiffusionMaps(Gaussian(sigma=0.05), n_components=1, alpha=1).fit(x[:, None])
    plain = DiffusionMaps(Gaussian(sigma=0.05), n_components=1, alpha=0).fit(x[:, None])
    cosine = np.cos(np.pi * x)
    agreement = [abs(np.corrcoef(m.embedding_[:, 0], cosine)[0, 1]) for m in (model, plain)]
    assert agreement[0] > 0.999
    assert agreement[0] > agreement[1]


def test_outliers_take_dimensions_which_they_cannot_in_the_sdp():
    """The point of the SDP embedding: far outliers own the first diffusion coordinates and no length of the other's."""
    X, labels = three_clusters(n_per_cluster=60, n_outliers=0)
    X = np.vstack([X, [[30.0, 30.0], [-30.0, 30.0]]])
    kernel = Gaussian(sigma=2.0)
    diffusion = DiffusionMaps(kernel).fit(X).embedding_
    spread = np.std(diffusion[:-2], axis=0) / np.abs(diffusion).max(axis=0)
    assert spread.max() < 0.05
    sdp = SDPEmbedding(kernel, random_state=0, max_iter=50_000).fit(X).embedding_
    centers = np.array([sdp[:-2][labels == k].mean(axis=0) for k in range(3)])
    closest = min(np.linalg.norm(centers[i] - centers[j]) for i, j in ((0, 1), (0, 2), (1, 2)))
    assert closest > 3 * max(np.linalg.norm(sdp[:-2][labels == k].std(axis=0)) for k in range(3))


def test_single_precision(X):
    reference = DiffusionMaps(Gaussian(sigma=1.0)).fit(X)
    with mercer.config_context(dtype="float32"):
        model = DiffusionMaps(Gaussian(sigma=1.0)).fit(X)
        out = model.transform(X.copy())
    np.testing.assert_allclose(model.eigenvalues_, reference.eigenvalues_, rtol=1e-5)
    np.testing.assert_allclose(model.embedding_, reference.embedding_, atol=1e-3)
    np.testing.assert_allclose(out, model.embedding_, atol=1e-4)


def test_interval_is_ordered():
    X = interval(101)
    first = DiffusionMaps(Gaussian(sigma=0.5), n_components=1).fit_transform(X)[:, 0]
    steps = np.diff(first)
    assert np.all(steps > 0) or np.all(steps < 0)


@pytest.mark.parametrize("sigma", [0.0005, 0.00056, 0.001])
def test_nearly_isolated_points_have_all_their_coordinates(sigma):
    """Hundreds of eigenvalues next to one: LAPACK's selected ones may come back fewer than asked for."""
    X, _ = two_moons()
    model = DiffusionMaps(Gaussian(sigma=sigma), n_components=3).fit(X)
    assert model.embedding_.shape == (400, 3)
    assert np.all(np.abs(model.eigenvalues_ - 1) < 1e-6)
