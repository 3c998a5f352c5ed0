"""Statements of PSD17 and PSD22 that are numbers of a fitted model: purity, slopes, sums of distances, unit lengths.

And the truncated transition matrix of a diffusion map: Theorem 2.
"""

from __future__ import annotations

import numpy as np
import pytest

import mercer
from mercer import DiffusionMaps, DiffusionOperator, Gaussian, GramOperator, Precomputed, SDPEmbedding
from mercer.embedding import TruncatedTransitions, distance_objective, lipschitz_constant, truncated_transitions


@pytest.fixture(scope="module")
def X():
    return np.random.default_rng(0).normal(size=(24, 2))


@pytest.fixture(scope="module")
def model(X):
    return SDPEmbedding(Gaussian(1.0), random_state=0).fit(X)


def diffusion(X, w=None):
    """Ā with its weights taken off, and the operator's own."""
    w = np.ones(len(X)) if w is None else w
    M = DiffusionOperator(GramOperator(Gaussian(1.0), X, weights=w)).to_dense()
    return M / np.sqrt(np.outer(w, w))


def test_purity(X, model):
    """Remark 5: Tr ϱ² of ϱ = B/Tr B, and ⟨Ā, B⟩ ≤ √Tr B² √Tr Ā² = Tr B √purity ‖Ā‖."""
    B = model.coordinates_ @ model.coordinates_.T
    assert model.purity_ == pytest.approx(np.sum((B / np.trace(B)) ** 2), rel=1e-12)
    assert 1 / model.rank_ <= model.purity_ <= 1
    bound = np.trace(B) * np.sqrt(model.purity_) * np.linalg.norm(diffusion(X))
    assert model.certificate_.lower <= bound
    line = SDPEmbedding(Gaussian(2.0), random_state=0).fit(np.linspace(-1, 1, 10)[:, None])
    assert line.rank_ == 1
    assert line.purity_ == pytest.approx(1, rel=1e-9)  # a pure state
    several = SDPEmbedding(Gaussian(1.0), n_levels=2, random_state=0).fit(X)
    assert several.purity_ == several.levels_[0].purity != several.levels_[1].purity


def test_lipschitz_constant(X, model):
    """Remark 3: the largest slope between the points, and what it says of the learned kernel."""
    new = np.vstack([X[:10], X[:4] + 0.2, X[:3]])
    E = model.transform(new)
    slopes = [
        np.linalg.norm(E[i] - E[j]) / np.linalg.norm(new[i] - new[j])
        for i in range(len(new))
        for j in range(i)
        if not np.array_equal(new[i], new[j])
    ]
    L = lipschitz_constant(model, new)
    assert max(slopes) == pytest.approx(L, rel=1e-12)
    b = model.learned_kernel(new)
    apart = np.linalg.norm(new[:, None] - new, axis=2)
    steps = abs(b[:, None] - b)
    assert np.all(steps <= L * np.sqrt(np.diag(b)) * apart[:, :, None] * (1 + 1e-9) + 1e-12)
    short = SDPEmbedding(Gaussian(1.0), n_components=1, unit_length=True, random_state=0).fit(X)
    assert lipschitz_constant(short, new) == pytest.approx(L, rel=1e-6)  # of the programme, not of what is shown


def test_lipschitz_constant_in_blocks(X, model, monkeypatch):
    whole = lipschitz_constant(model, X)
    monkeypatch.setattr("mercer.embedding.quantities._ENTRIES", 100)
    assert lipschitz_constant(model, X) == whole


def test_lipschitz_constant_needs_points(X, model):
    with pytest.raises(ValueError, match="two distinct"):
        lipschitz_constant(model, X[:1])
    K = Gaussian(1.0)(X)
    with pytest.raises(ValueError, match="fit the model to points"):
        lipschitz_constant(SDPEmbedding(Precomputed(), random_state=0).fit(K), K)


@pytest.mark.parametrize("weighted", [False, True, "unit"])
def test_sum_of_distances(X, weighted):
    """The introduction's Σ K d²: that of the rows themselves, and 2 Σ wᵢ(Āw)ᵢdᵢ - 2⟨Ā, B⟩, so least at the optimum."""
    rng = np.random.default_rng(1)
    w = rng.uniform(0.5, 3, 24) * (2.0**30 if weighted == "unit" else 1) if weighted else np.ones(24)
    for options in ({}, {"diagonal": rng.uniform(0.5, 2, 24)}):
        model = SDPEmbedding(Gaussian(1.0), random_state=0, **options).fit(X, sample_weight=w)
        A, E = diffusion(X, w), model.coordinates_
        squares = np.sum((E[:, None] - E) ** 2, axis=2)
        assert distance_objective(model, X) == pytest.approx(np.sum(np.outer(w, w) * A * squares), rel=1e-10)
        constant = 2 * np.sum(w * (A @ w) * model.diagonal_)
        value = constant - 2 * model.certificate_.lower
        assert distance_objective(model, X) == pytest.approx(value, rel=1e-8, abs=1e-8 * abs(constant))
        turned = rng.normal(size=E.shape)
        turned *= np.sqrt(model.diagonal_ / np.sum(turned**2, axis=1))[:, None]
        other = np.sum(np.outer(w, w) * A * np.sum((turned[:, None] - turned) ** 2, axis=2))
        assert distance_objective(model, X) < other


def test_sum_of_distances_is_of_the_data_of_the_fit(X, model):
    with pytest.raises(ValueError, match="pass the data of the fit"):
        distance_objective(model, X[:5])


# --- unit lengths -------------------------------------------------------------------------------------------------


def test_unit_lengths(X):
    """5.2: rows on the unit sphere of the coordinates that are kept; the programme and its kernel are as they were."""
    for kept in (None, 3, 1):
        options = {"n_levels": 2, "n_components": kept, "random_state": 0}
        plain = SDPEmbedding(Gaussian(1.0), **options).fit(X)
        model = SDPEmbedding(Gaussian(1.0), unit_length=True, **options).fit(X)
        rows = plain.embedding_
        np.testing.assert_allclose(model.embedding_, rows / np.linalg.norm(rows, axis=1, keepdims=True), atol=1e-9)
        new = X + 0.1
        np.testing.assert_allclose(np.linalg.norm(model.transform(new), axis=1), 1, rtol=1e-12)
        np.testing.assert_allclose(model.transform(X), model.embedding_, atol=1e-4)
        np.testing.assert_allclose(model.learned_kernel(new), plain.learned_kernel(new), atol=1e-9)
        assert mercer.verify(model, X).holds(1e-6)
        model.embedding_ = 2 * model.embedding_
        with pytest.raises(ValueError, match="embedding_ is not what"):
            mercer.verify(model, X)


def test_rows_at_the_origin_stay_there(X):
    d = np.ones(24)
    d[0] = 0
    model = SDPEmbedding(Gaussian(1.0), diagonal=d, unit_length=True, random_state=0).fit(X)
    np.testing.assert_allclose(np.linalg.norm(model.embedding_, axis=1), d, atol=1e-12)


# --- spectral truncation ------------------------------------------------------------------------------------------


def _error(P, approximation, phi):
    """E_x ‖p(x, ·) - p̂(x, ·)‖² in the weight 1/φ₀, x by φ₀."""
    return np.sum(phi[:, None] * (P - approximation) ** 2 / phi)


@pytest.mark.parametrize("time", [1.0, 3.0])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("normalization", ["markov", "symmetric"])
def test_truncation_is_the_best_of_its_rank(X, time, weighted, normalization):
    """Theorem 2: the least error is the sum of the squares that are left out, and no matrix of rank m has less."""
    w = np.random.default_rng(2).uniform(0.5, 2, 24) if weighted else np.ones(24)
    k = Gaussian(1.0)(X) * w
    P = np.linalg.matrix_power(k / k.sum(axis=1, keepdims=True), int(time))
    maps = DiffusionMaps(Gaussian(1.0), n_components=3, time=time, normalization=normalization, random_state=0)
    truncated = truncated_transitions(maps.fit(X, sample_weight=w))
    p, phi = truncated.matrix(), maps.stationary_
    np.testing.assert_allclose(p.sum(axis=1), 1, rtol=1e-10)
    assert np.linalg.matrix_rank(p) == 4
    symmetric = np.sqrt(phi)[:, None] * P / np.sqrt(phi)
    values = np.sort(np.linalg.eigvalsh((symmetric + symmetric.T) / 2))[::-1]
    assert _error(P, p, phi) == pytest.approx(np.sum(values[4:] ** 2), rel=1e-6)
    rng = np.random.default_rng(3)
    for size in (1e-3, 1e-1, 10.0):
        left, right = (part + size * rng.normal(size=part.shape) for part in truncated)
        right = np.linalg.lstsq(left * np.sqrt(phi)[:, None], np.sqrt(phi)[:, None] * P, rcond=None)[0]
        assert _error(P, left @ right, phi) >= _error(P, p, phi) * (1 - 1e-9)  # the best right side of another left one
    if normalization == "markov":
        np.testing.assert_allclose(truncated.left[:, 1:], maps.embedding_, atol=1e-12)
    errors = np.sum((P - p) ** 2 / phi, axis=1)  # of a row: large where φ₀ is small
    assert np.corrcoef(np.log(errors), np.log(phi))[0, 1] < -0.5


def test_truncation_keeps_to_the_memory_allowed():
    parts = TruncatedTransitions(np.ones((1500, 2)), np.ones((1500, 2)))
    with mercer.config_context(memory_limit="16MB"), pytest.raises(MemoryError, match="transition matrix"):
        parts.matrix()
