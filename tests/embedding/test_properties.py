"""Properties of the extension, the novelty and the learned kernel that hold for any data, looked for by hypothesis.

The optimum and the matrix B on the sample are in ``test_invariance.py``; here is what a fitted model says of any point.
"""

from __future__ import annotations

import re
import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import ortho_group
from sklearn.exceptions import ConvergenceWarning
from sklearn.svm import SVC

import mercer
from mercer import (
    DiffusionMaps,
    DiffusionOperator,
    Gaussian,
    GramOperator,
    Laplacian,
    Linear,
    Matern,
    Polynomial,
    SDPEmbedding,
)
from mercer.backends.cpu import tasks
from mercer.datasets import three_clusters, two_moons
from mercer.embedding.degeneracy import RankWarning
from mercer.solvers import Status

_SETTINGS = settings(max_examples=12, deadline=None, derandomize=True, database=None)
_FAMILIES = {"gaussian": Gaussian, "laplacian": Laplacian, "matern": lambda length: Matern(1.5, length)}


@st.composite
def samples(draw):
    """Points of any kind: a cloud, clusters, a lattice; some rows repeated, an outlier; and points to extend to."""
    n, dimension, seed = draw(st.integers(4, 16)), draw(st.integers(1, 3)), draw(st.integers(0, 2**20))
    rng = np.random.default_rng(seed)
    kind = draw(st.sampled_from(["cloud", "clusters", "lattice"]))
    X = rng.standard_normal((n, dimension))
    if kind == "clusters":
        X = 0.3 * X + 3.0 * rng.standard_normal((3, dimension))[rng.integers(0, 3, n)]
    if kind == "lattice":
        X = np.unique(np.round(1.5 * X), axis=0)
        X = X if len(X) > 2 else np.arange(3.0)[:, None] * np.ones(dimension)
    if draw(st.booleans()):
        X = np.vstack([X, X[:2], X[:1]])
    if draw(st.booleans()):
        X = np.vstack([X, X[0] + draw(st.floats(2.0, 20.0))])
    return X, draw(st.floats(0.8, 3.0)), rng.standard_normal((7, dimension)), seed


def _fit(X, kernel, **options) -> SDPEmbedding:
    options = {"tol": 1e-9, "residual_tol": 1e-9, "max_iter": 100_000, "random_state": 0} | options
    return SDPEmbedding(kernel, **options).fit(X)


# --- motions of the data ------------------------------------------------------------------------------------


@_SETTINGS
@given(samples(), st.sampled_from(["gaussian", "matern"]), st.floats(-2, 2), st.floats(-20, 20))
def test_a_similarity_moves_nothing(is_unique, sample, family, exponent, offset):
    """Turned, mirrored, shifted, shuffled, and in other units with the bandwidth: all that a model says stays."""
    X, sigma, new, seed = sample
    factor, order = 10.0**exponent, np.random.default_rng(seed + 1).permutation(len(X))
    turn = ortho_group.rvs(X.shape[1], random_state=seed) if X.shape[1] > 1 else np.array([[-1.0]])
    a = _fit(X, _FAMILIES[family](sigma), radius="paper")
    b = _fit((factor * (X @ turn + offset))[order], _FAMILIES[family](factor * sigma), radius="paper")
    moved = factor * (new @ turn + offset)
    assert b.certificate_.lower == pytest.approx(a.certificate_.lower, rel=1e-7)
    np.testing.assert_allclose(b.diagonal_, a.diagonal_[order], rtol=1e-6, atol=1e-10)
    np.testing.assert_allclose(b.stationary_, a.stationary_[order], rtol=1e-8)
    np.testing.assert_allclose(b.novelty(moved), a.novelty(new), rtol=1e-6, atol=1e-7)
    if is_unique(a):
        assert b.rank_ == a.rank_
        np.testing.assert_allclose(b.eigenvalues_, a.eigenvalues_, atol=1e-4)
        everywhere, there = a.learned_kernel(np.vstack([X[order], new])), np.vstack([X @ turn + offset])[order] * factor
        found = b.learned_kernel(np.vstack([there, moved]))
        size = np.sqrt(np.outer(np.diag(everywhere), np.diag(everywhere)))
        np.testing.assert_allclose(found / size, everywhere / size, atol=1e-3)


@settings(_SETTINGS, max_examples=6)
@given(samples(), st.integers(1, 5))
def test_start_and_solver_do_not_matter(is_unique, sample, seed):
    X, sigma, new, _ = sample
    reference, again = _fit(X, Gaussian(sigma)), _fit(X, Gaussian(sigma), random_state=seed)
    power = _fit(X, Gaussian(sigma), random_state=seed, solver="power", tol=1e-7, residual_tol=1e-7)
    for other in (again, power):
        assert other.certificate_.lower == pytest.approx(reference.certificate_.lower, rel=1e-7)
        if is_unique(reference):
            b = reference.learned_kernel(new)
            np.testing.assert_allclose(other.learned_kernel(new), b, atol=1e-2 * np.diag(b).max())


@pytest.mark.parametrize("seed", [155, 178])
@pytest.mark.parametrize("solver", ["auto", "accelerated", "trust-region"])
def test_solutions_of_rank_one_and_nearly(solver, seed):
    """At rank one every row is a sign, which no small step turns round: a solver must not go down to it too early."""
    X = np.random.default_rng(seed).standard_normal((32, 1)) + 3.0 * (np.arange(32) < 16)[:, None]
    model = SDPEmbedding(Laplacian(sigma=3.0), solver=solver, random_state=0).fit(X)
    assert model.certificate_.holds(1e-6)


@_SETTINGS
@given(samples())
def test_diffusion_maps_move_with_the_data(sample):
    """The Gram matrix of extended coordinates, where the next eigenvalue lies apart."""
    X, sigma, new, seed = sample
    order = np.random.default_rng(seed).permutation(len(X))
    turn = ortho_group.rvs(X.shape[1], random_state=seed) if X.shape[1] > 1 else np.array([[-1.0]])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RankWarning)
        a = DiffusionMaps(Gaussian(sigma), n_components=2).fit(X)
        b = DiffusionMaps(Gaussian(sigma), n_components=2).fit(X[order] @ turn)
        values = DiffusionMaps(Gaussian(sigma), n_components=3).fit(X).eigenvalues_
    np.testing.assert_allclose(b.eigenvalues_, a.eigenvalues_, rtol=1e-8, atol=1e-12)
    if values[1] - values[2] > 1e-2:
        gram = a.transform(new) @ a.transform(new).T
        np.testing.assert_allclose(
            b.transform(new @ turn) @ b.transform(new @ turn).T, gram, atol=1e-7 * np.abs(gram).max()
        )


# --- the sample ---------------------------------------------------------------------------------------------


@_SETTINGS
@given(samples(), st.sampled_from(list(_FAMILIES)))
def test_rigidity_and_bounds_of_the_objective(sample, family):
    """‖Ξᵢ‖² = dᵢ = Āᵢᵢ, and ‖Ā‖²_F ≤ p* ≤ λ₁ Tr Ā with p* held from both sides by the certificate."""
    X, sigma, _, _ = sample
    model = _fit(X, _FAMILIES[family](sigma))
    A = DiffusionOperator(GramOperator(_FAMILIES[family](sigma), X)).to_dense()
    np.testing.assert_allclose(np.sum(model.embedding_**2, axis=1), model.diagonal_, rtol=1e-8, atol=1e-14)
    np.testing.assert_allclose(model.diagonal_, np.diag(A), rtol=1e-7, atol=1e-13)
    assert model.certificate_.holds(1e-8)
    assert np.sum(A**2) <= model.certificate_.lower * (1 + 1e-8)
    assert model.certificate_.upper <= np.linalg.eigvalsh(A)[-1] * np.trace(A) * (1 + 1e-8)
    E = model.embedding_
    assert model.certificate_.lower == pytest.approx(np.sum(A * (E @ E.T)), rel=1e-8)
    mean = np.sqrt(model.stationary_) @ E  # Ā v₀ = 0, so that nothing prescribes the mean; it is bounded by rigidity
    assert np.linalg.norm(mean) <= np.sqrt(model.diagonal_.sum())


@_SETTINGS
@given(samples(), st.sampled_from(list(_FAMILIES)), st.integers(1, 4))
def test_training_points_are_reproduced_and_cut_only_after(sample, family, count):
    """Extension uses all rank(B) components; fewer are the first of these, and more of one level are zeros."""
    X, sigma, new, _ = sample
    kernel = _FAMILIES[family](sigma)
    full = _fit(X, kernel)
    scale = np.abs(full.embedding_).max()
    np.testing.assert_allclose(full.transform(X.copy()), full.embedding_, atol=1e-7 * scale)
    with warnings.catch_warnings():
        warnings.simplefilter("error" if count <= full.rank_ else "ignore", RankWarning)
        cut = _fit(X, kernel, n_components=count, n_levels=1)
    kept = min(count, full.rank_)
    assert cut.rank_ == full.rank_
    assert cut.transform(new).shape == (len(new), count)
    np.testing.assert_array_equal(cut.embedding_[:, :kept], full.embedding_[:, :kept])
    np.testing.assert_allclose(cut.transform(new)[:, :kept], full.transform(new)[:, :kept], atol=1e-12 * scale)
    np.testing.assert_allclose(cut.transform(X.copy())[:, :kept], full.embedding_[:, :kept], atol=1e-7 * scale)
    assert np.all(cut.transform(new)[:, kept:] == 0)
    np.testing.assert_allclose(cut.learned_kernel(new), full.learned_kernel(new), atol=1e-12 * scale**2)


@pytest.fixture(scope="module")
def coarse():
    """A solution of two dimensions of which a coarse ``rank_tol`` counts one, and its points."""
    X = three_clusters(n_per_cluster=20, n_outliers=2)[0]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return SDPEmbedding(Gaussian(sigma=1.2), rank_tol=0.6, n_components=2, n_levels=1, random_state=0).fit(X), X


def test_dimensions_that_are_not_counted_are_zero_everywhere(coarse):
    model, X = coarse
    assert model.rank_ == 1
    assert np.all(model.embedding_[:, 1] == 0)
    assert np.all(model.transform(X + 0.1)[:, 1] == 0)
    assert np.all(model.transform(X + 0.1)[:, 0] != 0)


def test_converged_means_certified(coarse):
    """The solver converged, but what is stored is less than it found: neither the status nor the proof hides it."""
    model, _ = coarse
    assert model.status_ is Status.CUT_SHORT
    assert not model.certificate_.holds(model.tol)


# --- far away -----------------------------------------------------------------------------------------------


def _directions(dimension, seed) -> np.ndarray:
    """Unit vectors: both ways along every axis, and some at random."""
    axes = np.eye(dimension)
    other = np.random.default_rng(seed).standard_normal((4, dimension))
    return np.vstack([axes, -axes, other / np.linalg.norm(other, axis=1, keepdims=True)])


@_SETTINGS
@given(samples(), st.sampled_from(list(_FAMILIES)))
def test_a_million_bandwidths_away(sample, family):
    """Capped: finite, of the largest length in training. As in the paper: one sentence that names the first such row."""
    X, sigma, new, seed = sample
    kernel = _FAMILIES[family](sigma)
    model = _fit(X, kernel)
    far = X.mean(axis=0) + 1e6 * sigma * _directions(X.shape[1], seed)
    with np.errstate(all="raise", under="ignore"):
        coordinates, novelty, learned = model.transform(far), model.novelty(far), model.learned_kernel(far, X)
    assert np.isfinite(coordinates).all()
    assert np.isfinite(learned).all()
    limit = np.sqrt(model.diagonal_.max())
    np.testing.assert_allclose(np.linalg.norm(coordinates, axis=1), limit, rtol=1e-9)
    assert np.all(np.linalg.norm(model.transform(new), axis=1) <= limit * (1 + 1e-9))
    assert np.all(novelty > 1e5)
    assert np.all(model.novelty(2 * far) > novelty)
    paper = SDPEmbedding(kernel, radius="paper", random_state=0, max_iter=100_000).fit(X)
    with pytest.raises(ValueError, match=r"^Row \d+ of X is so far from the data that its radius overflows") as caught:
        paper.transform(np.vstack([X, far]))
    text = str(caught.value)
    assert int(re.findall(r"\d+", text)[0]) >= len(X)
    assert "use radius='capped'" in text
    assert text.endswith(".")
    assert "\n" not in text
    assert text.count(". ") == 0


@_SETTINGS
@given(samples(), st.floats(0.0, 8.0))
def test_radius_of_the_paper_is_the_diagonal_of_the_diffusion(sample, distance):
    """‖Ξ(x)‖² = d(x) = k(x,x)/m(x) - m(x)/vol at any x, as long as it is a number; capped, never above training."""
    X, sigma, new, _ = sample
    points = np.vstack([new, X[:1] + distance, X[-1:] - distance])
    cross = Gaussian(sigma)(points, X)
    m, volume = cross.sum(axis=1), Gaussian(sigma)(X).sum()
    d = 1 / m - m / volume
    lengths = np.sum(_fit(X, Gaussian(sigma), radius="paper").transform(points) ** 2, axis=1)
    np.testing.assert_allclose(lengths, d, rtol=1e-6, atol=1e-12)
    capped = _fit(X, Gaussian(sigma))
    lengths = np.sum(capped.transform(points) ** 2, axis=1)
    np.testing.assert_allclose(lengths, np.minimum(d, capped.diagonal_.max()), rtol=1e-6, atol=1e-12)


def test_points_without_room_lie_at_the_origin():
    """Where k(x,·) is a multiple of Σ k(xⱼ,·), d(x) = 0: rounding on either side of it must not become NaN."""
    X = np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0], [2.0, 1.0], [1.0, 2.0]])
    for radius in ("capped", "paper"):
        model = SDPEmbedding(Linear(), random_state=0, radius=radius).fit(X)
        points = np.outer(np.geomspace(1e-3, 1e3, 300), [1.0, 1.0])
        lengths = np.linalg.norm(model.transform(points), axis=1)
        assert np.isfinite(lengths).all()
        assert np.all(lengths < 1e-6)
        assert np.all(model.embedding_[2] == 0)


@pytest.mark.parametrize("kernel", [Linear(), Polynomial(degree=3, coef0=0.0)], ids=repr)
def test_affinities_of_both_signs(kernel):
    """A new point may be averse to some training points as long as its row sum is positive: no logarithm then."""
    rng = np.random.default_rng(0)
    X = rng.uniform(0.1, 2.0, (30, 2))
    new = np.array([[2.0, -0.4], [-0.4, 2.0], [1.0, 1.1]])
    model = SDPEmbedding(kernel, radius="paper", random_state=0).fit(X)
    K, cross = kernel(X), kernel(new, X)
    assert cross[:2].min() < -1e-3
    m, m_new, volume = K.sum(axis=1), cross.sum(axis=1), K.sum()
    g = (cross / np.sqrt(np.outer(m_new, m)) - np.sqrt(np.outer(m_new, m)) / volume) @ model.embedding_
    d = kernel.diag(new) / m_new - m_new / volume
    expected = np.sqrt(d)[:, None] * g / np.linalg.norm(g, axis=1, keepdims=True)
    np.testing.assert_allclose(model.transform(new), expected, atol=1e-8 * np.abs(expected).max())
    np.testing.assert_allclose(model.novelty(new), -np.log(m_new), rtol=1e-10)


@pytest.mark.parametrize("side", [1, 4, 7, 24, 1000])
def test_rows_are_done_in_pieces_of_any_size(side, monkeypatch):
    """One row a piece, a last piece that is short, one piece for all; and an error names the row of X, not of its piece."""
    X = np.random.default_rng(0).uniform(0.5, 2.0, (25, 2))
    points = np.random.default_rng(1).uniform(0.5, 2.0, (17, 2))
    sdp, maps = SDPEmbedding(Linear(), random_state=0).fit(X), DiffusionMaps(Gaussian(sigma=1.0)).fit(X)
    calls = sdp.transform, sdp.novelty, sdp.learned_kernel, maps.transform
    whole = [call(points) for call in calls]
    monkeypatch.setattr(tasks, "SIDES", {"float64": side})
    for call, expected in zip(calls, whole, strict=True):
        np.testing.assert_allclose(call(points), expected, rtol=1e-12, atol=1e-13)
    points[13] = 0.0
    with pytest.raises(ValueError, match="^Row 13 of X has no positive affinity"):
        sdp.transform(points)


@pytest.mark.parametrize("Estimator", [SDPEmbedding, DiffusionMaps])
def test_arithmetic_of_the_configuration_is_used(Estimator):
    """Single precision shows: results differ from those in double precision, and by no more than it explains."""
    X = three_clusters(n_per_cluster=10, n_outliers=2)[0]
    double = Estimator(Gaussian(sigma=2.0), random_state=0).fit(X)
    with mercer.config_context(dtype="float32"), warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        single = Estimator(Gaussian(sigma=2.0), random_state=0).fit(X)
    error = np.abs(single.stationary_ / double.stationary_ - 1).max()
    assert 1e-10 < error < 1e-5


# --- the learned kernel -------------------------------------------------------------------------------------


@_SETTINGS
@given(samples(), st.sampled_from(list(_FAMILIES)))
def test_learned_kernel_is_a_kernel(sample, family):
    """Symmetric, psd, of the same values in any block, Ξ(x)·Ξ(y); on the sample it is B."""
    X, sigma, new, seed = sample
    model = _fit(X, _FAMILIES[family](sigma))
    far = X.mean(axis=0) + 50 * sigma * _directions(X.shape[1], seed)
    points = np.vstack([X, new, far])
    b = model.learned_kernel(points)
    size = np.abs(b).max()
    np.testing.assert_allclose(b, b.T, atol=1e-15 * size)
    assert np.linalg.eigvalsh((b + b.T) / 2)[0] >= -1e-10 * np.trace(b)
    B = model.embedding_ @ model.embedding_.T
    np.testing.assert_allclose(b[: len(X), : len(X)], B, atol=1e-7 * np.abs(B).max())
    np.testing.assert_allclose(np.diag(b)[: len(X)], model.diagonal_, rtol=1e-6, atol=1e-12)
    np.testing.assert_allclose(model.learned_kernel(new, points), b[len(X) : len(X) + len(new)], atol=1e-12 * size)
    np.testing.assert_allclose(model.learned_kernel(points, new), b[:, len(X) : len(X) + len(new)], atol=1e-12 * size)
    np.testing.assert_allclose(b, model.transform(points) @ model.transform(points).T, atol=1e-12 * size)


@pytest.mark.parametrize("seed", [0, 1])
def test_learned_kernel_in_a_support_vector_machine(seed):
    """As a callable and as a precomputed matrix the same machine, and a better one than chance on two moons."""
    X, labels = two_moons(n_points=120, noise=0.12, random_state=seed)
    train, test = slice(None, None, 2), slice(1, None, 2)
    model = SDPEmbedding(Gaussian(sigma=0.5), random_state=0, max_iter=50_000).fit(X[train])
    classifier = SVC(kernel=model.learned_kernel).fit(X[train], labels[train])
    assert classifier.score(X[test], labels[test]) > 0.8
    given = SVC(kernel="precomputed").fit(model.learned_kernel(X[train]), labels[train])
    np.testing.assert_array_equal(given.predict(model.learned_kernel(X[test], X[train])), classifier.predict(X[test]))
