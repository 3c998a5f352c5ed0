"""Points never seen: the normalised extension, its radius, novelty and the learned kernel, near the data and far away."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from sklearn.svm import SVC

from mercer import ChiSquared, Gaussian, Laplacian, Linear, Matern, Polynomial, SDPEmbedding
from mercer.backends.cpu import tasks
from mercer.datasets import three_clusters, two_moons

_KERNELS = {
    "gaussian": Gaussian(sigma=1.2),
    "laplacian": Laplacian(sigma=1.0),
    "matern": Matern(nu=1.5, length_scale=1.0),
    "composite": Gaussian(sigma=2.0) * Laplacian(sigma=9.0) + 0.1 * Gaussian(sigma=0.5),
}


@pytest.fixture(scope="module")
def X():
    return three_clusters(n_per_cluster=40)[0]


@pytest.fixture(scope="module")
def new():
    return np.random.default_rng(5).uniform([-2.0, -2.0], [6.0, 5.5], (40, 2))


@pytest.fixture(scope="module")
def fitted(X):
    """Models by kernel, fitted once; radius may be changed on a copy, since it is read when transforming."""
    cache = {}

    def fit(name, **kwargs):
        key = name, *sorted(kwargs.items())
        if key not in cache:
            cache[key] = SDPEmbedding(_KERNELS[name], random_state=0, max_iter=50_000, **kwargs).fit(X)
        return cache[key]

    return fit


def _naive(kernel, X, E, new) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """PSD22 (1.5), written out: g = ā_e(x)ᵀ Ξ, Ξ_e(x) = √d(x) g/‖g‖; with d(x) and m_e(x)."""
    K, cross = kernel(X), kernel(new, X)
    m, m_new = K.sum(axis=1), cross.sum(axis=1)
    vol = m.sum()
    extended = cross / np.sqrt(np.outer(m_new, m)) - np.sqrt(np.outer(m_new, m)) / vol
    d = kernel.diag(new) / m_new - m_new / vol
    g = extended @ E
    return np.sqrt(d)[:, None] * g / np.linalg.norm(g, axis=1, keepdims=True), d, m_new


@pytest.mark.parametrize("name", list(_KERNELS))
def test_extension_is_the_formula_of_the_paper(name, X, new, fitted):
    model = fitted(name, radius="paper")
    expected, d, _ = _naive(_KERNELS[name], X, model.embedding_, new)
    np.testing.assert_allclose(model.transform(new), expected, rtol=1e-9, atol=1e-9 * np.sqrt(d.max()))
    np.testing.assert_allclose(np.linalg.norm(model.transform(new), axis=1), np.sqrt(d), rtol=1e-9)


@pytest.mark.parametrize("name", list(_KERNELS))
def test_cap(name, X, new, fitted):
    """The same directions; lengths as in the paper up to the largest in training, and never beyond."""
    paper, capped = fitted(name, radius="paper").transform(new), fitted(name).transform(new)
    limit = np.sqrt(fitted(name).diagonal_.max())
    lengths = np.linalg.norm(paper, axis=1)
    np.testing.assert_allclose(np.linalg.norm(capped, axis=1), np.minimum(lengths, limit), rtol=1e-9)
    np.testing.assert_allclose(capped / np.linalg.norm(capped, axis=1)[:, None], paper / lengths[:, None], atol=1e-9)


def test_the_cap_bites(fitted):
    far = np.array([[30.0, 0.0], [0.0, -30.0]])
    lengths = np.linalg.norm(fitted("laplacian", radius="paper").transform(far), axis=1)
    limit = np.sqrt(fitted("laplacian").diagonal_.max())
    assert np.all(lengths > 10 * limit)
    np.testing.assert_allclose(np.linalg.norm(fitted("laplacian").transform(far), axis=1), limit, rtol=1e-12)


@pytest.mark.parametrize("name", list(_KERNELS))
@pytest.mark.parametrize("radius", ["capped", "paper"])
def test_training_points_keep_their_places(name, radius, X, fitted):
    model = fitted(name, radius=radius)
    error = np.abs(model.transform(X.copy()) - model.embedding_).max()
    assert error < 1e-5 * np.abs(model.embedding_).max()
    one_by_one = np.vstack([model.transform(row[None]) for row in X[:5]])
    np.testing.assert_allclose(one_by_one, model.transform(X)[:5], atol=1e-12)


def test_extension_is_continuous(X, fitted):
    model = fitted("gaussian")
    step = 1e-7 * np.random.default_rng(0).standard_normal(X.shape)
    assert np.abs(model.transform(X + step) - model.transform(X.copy())).max() < 1e-4


def test_extension_is_optimal_for_its_point(X, new, fitted):
    """PSD17 Proposition 3: no vector of the same length is better aligned with Σ ā(x, xⱼ) Ξⱼ."""
    model = fitted("gaussian", radius="paper")
    _, d, _ = _naive(_KERNELS["gaussian"], X, model.embedding_, new)
    K, cross = _KERNELS["gaussian"](X), _KERNELS["gaussian"](new, X)
    m, m_new = K.sum(axis=1), cross.sum(axis=1)
    g = (cross / np.sqrt(np.outer(m_new, m)) - np.sqrt(np.outer(m_new, m)) / m.sum()) @ model.embedding_
    best = np.sum(g * model.transform(new), axis=1)
    others = np.random.default_rng(0).standard_normal((200, *g.shape))
    others *= np.sqrt(d)[:, None] / np.linalg.norm(others, axis=2, keepdims=True)
    assert np.all(best >= np.einsum("kij,ij->ki", others, g).max(axis=0) * (1 - 1e-9))


def test_truncation_comes_after_extension(X, new):
    """With fewer components than the solution has, the coordinates are the first ones of the full extension."""
    kernel = Gaussian(sigma=1.0)
    points = np.random.default_rng(0).standard_normal((120, 3))
    other = np.random.default_rng(1).standard_normal((30, 3))
    full = SDPEmbedding(kernel, random_state=0).fit(points)
    assert full.rank_ == 3
    for count in (1, 2):
        cut = SDPEmbedding(kernel, n_components=count, random_state=0).fit(points)
        np.testing.assert_array_equal(cut.embedding_, full.embedding_[:, :count])
        np.testing.assert_allclose(cut.transform(other), full.transform(other)[:, :count], atol=1e-14)
        assert np.abs(cut.transform(points.copy()) - cut.embedding_).max() < 1e-5
        wrong, _, _ = _naive(kernel, points, full.embedding_[:, :count], points)
        assert np.abs(wrong - cut.embedding_).max() > 1e-2  # what extending after the cut would give
        assert cut.rank_ == 3
        assert cut.eigenvalues_.shape == (3,)


# --- far away -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", list(_KERNELS))
@pytest.mark.parametrize("distance", [1e2, 1e6, 1e20, 1e150, 1e300, 1.7e308])
def test_everything_is_finite_however_far(name, distance, fitted):
    model = fitted(name)
    points = distance * np.array([[1.0, 0.0], [-1.0, 0.0], [0.0, 1.0], [0.7, -0.7]])
    with np.errstate(all="raise", under="ignore"):
        coordinates, novelty, learned = model.transform(points), model.novelty(points), model.learned_kernel(points)
    assert np.isfinite(coordinates).all()
    assert np.isfinite(novelty).all()
    assert np.isfinite(learned).all()
    np.testing.assert_allclose(np.linalg.norm(coordinates, axis=1), np.sqrt(model.diagonal_.max()), rtol=1e-9)


@pytest.mark.parametrize("name", ["gaussian", "laplacian", "matern"])
def test_far_direction_is_that_of_the_nearest_points(name, X, fitted):
    """A million bandwidths to the left, only the leftmost points count."""
    model = fitted(name)
    point = np.array([[-1e6, 0.0]])
    log = _KERNELS[name].log(point, X)[0]
    weights = np.exp(log - log.max())
    m = _KERNELS[name](X).sum(axis=1)
    E = model.embedding_
    g = weights / weights.sum() @ (E / np.sqrt(m)[:, None]) - np.sqrt(m) @ E / m.sum()
    expected = g / np.linalg.norm(g)
    found = model.transform(point)[0]
    np.testing.assert_allclose(found / np.linalg.norm(found), expected, atol=1e-6)


@pytest.mark.parametrize("name", ["gaussian", "laplacian", "matern"])
def test_radius_of_the_paper_overflows_with_one_sentence(name, fitted):
    model = fitted(name, radius="paper")
    points = np.array([[0.0, 0.0], [1e6, 0.0]])
    message = "^Row 1 of X is so far from the data that its radius overflows: use radius='capped'[^.]*.$"
    for call in (model.transform, model.learned_kernel):
        with pytest.raises(ValueError, match=message):
            call(points)
    assert np.isfinite(model.novelty(points)).all()


def test_radius_of_the_paper_grows_until_then(fitted):
    """√d(x) = exp(distance²/2σ²) or so: large, finite, and right up to the edge of floating point."""
    model = fitted("gaussian", radius="paper")
    point = np.array([[-20.0, 0.0]])
    length = np.linalg.norm(model.transform(point))
    assert np.log(length) == pytest.approx(float(model.novelty(point)[0]) / 2, rel=1e-9)
    assert length > 1e45


# --- novelty ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", list(_KERNELS))
def test_novelty_is_minus_log_degree(name, X, new, fitted):
    _, _, m_new = _naive(_KERNELS[name], X, fitted(name).embedding_, new)
    np.testing.assert_allclose(fitted(name).novelty(new), -np.log(m_new), rtol=1e-10, atol=1e-10)


def test_novelty_grows_with_distance_and_finds_outliers(fitted):
    model = fitted("gaussian")
    X, labels = three_clusters(n_per_cluster=40)
    novelty = model.novelty(X)
    assert np.median(novelty[labels == -1]) > novelty[labels != -1].max()
    ray = np.outer([5, 10, 100, 1e3, 1e6], [1.0, 1.0]) + 5.0
    assert np.all(np.diff(model.novelty(ray)) > 0)


def test_novelty_far_away_is_the_squared_distance(fitted):
    assert fitted("gaussian").novelty([[1e6, 0.0]])[0] == pytest.approx((1e6 / 1.2) ** 2, rel=1e-4)
    assert fitted("laplacian").novelty([[1e6, 0.0]])[0] == pytest.approx(1e6, rel=1e-4)


# --- learned kernel -----------------------------------------------------------------------------------------


def test_learned_kernel(X, new, fitted):
    model = fitted("gaussian", radius="paper")
    near = new[np.min(np.linalg.norm(new[:, None] - X, axis=2), axis=1) < 0.8]
    assert len(near) > 10
    b = model.learned_kernel(near)
    np.testing.assert_allclose(b, b.T, rtol=1e-12)
    assert np.linalg.eigvalsh(b)[0] > -1e-12 * np.trace(b)
    Z = model.transform(near)
    np.testing.assert_allclose(b, Z @ Z.T, atol=1e-10 * np.abs(b).max())
    _, d, _ = _naive(_KERNELS["gaussian"], X, model.embedding_, near)
    np.testing.assert_allclose(np.diag(b), d, rtol=1e-8)
    np.testing.assert_allclose(model.learned_kernel(near, X), Z @ model.transform(X).T, atol=1e-10 * np.abs(b).max())
    assert model.learned_kernel(near, X[:3]).shape == (len(near), 3)


def test_learned_kernel_of_training_points_is_B(X, fitted):
    model = fitted("gaussian")
    B = model.embedding_ @ model.embedding_.T
    np.testing.assert_allclose(model.learned_kernel(X.copy()), B, atol=1e-5 * np.abs(B).max())


def test_learned_kernel_keeps_all_dimensions(fitted, new):
    full, cut = fitted("gaussian"), fitted("gaussian", n_components=1)
    np.testing.assert_allclose(cut.learned_kernel(new), full.learned_kernel(new), atol=1e-12)


def test_learned_kernel_in_a_support_vector_machine():
    X, labels = two_moons(n_points=160, noise=0.1)
    train, test = slice(None, None, 2), slice(1, None, 2)
    model = SDPEmbedding(Gaussian(sigma=0.5), random_state=0, max_iter=50_000).fit(X[train])
    classifier = SVC(kernel=model.learned_kernel).fit(X[train], labels[train])
    assert classifier.score(X[test], labels[test]) > 0.8


# --- kernels that are not positive everywhere, and points without a place -------------------------------------


@pytest.mark.parametrize("kernel", [Linear(), Polynomial(degree=2, coef0=0.0), Polynomial(degree=3), ChiSquared(0.5)])
def test_other_kernels_reproduce_their_training_points(kernel):
    X = np.random.default_rng(0).uniform(0.5, 2.0, (60, 3))
    model = SDPEmbedding(kernel, random_state=0, max_iter=50_000).fit(X)
    assert np.abs(model.transform(X.copy()) - model.embedding_).max() < 1e-5 * np.abs(model.embedding_).max()


@pytest.mark.parametrize("kernel", [Linear(), Polynomial(degree=2, coef0=0.0)])
def test_point_without_affinity_is_named(kernel):
    """k(0, x) = 0 for all x: no direction, no degree. One sentence, no warning from NumPy."""
    X = np.random.default_rng(0).uniform(0.5, 2.0, (60, 3))
    model = SDPEmbedding(kernel, random_state=0).fit(X)
    points = np.array([[1.0, 1.0, 1.0], [0.0, 0.0, 0.0]])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for call in (model.transform, model.novelty):
            with pytest.raises(ValueError, match="Row 1 of X has no positive affinity to the training points"):
                call(points)


def test_many_rows_are_done_in_pieces(X, fitted, monkeypatch):
    model = fitted("gaussian")
    whole = model.transform(np.tile(X, (3, 1)))
    monkeypatch.setattr(tasks, "SIDES", {"float64": 8})
    np.testing.assert_allclose(model.transform(np.tile(X, (3, 1))), whole, atol=1e-13)


def test_a_point_without_a_direction_has_a_row_of_zeros():
    """Symmetric training points: the middle has g = 0, no direction. Its row is zero; any step aside has a length."""
    model = SDPEmbedding(Gaussian(sigma=1.0), random_state=0).fit([[-1.0], [1.0]])
    np.testing.assert_array_equal(model.transform([[0.0]]), [[0.0]])
    aside = model.transform([[-1e-9], [1e-9]])
    np.testing.assert_allclose(aside, np.sign(aside) * np.sqrt(model.diagonal_.max()), rtol=1e-9)
    np.testing.assert_array_equal(np.sign(aside), np.sign(model.embedding_))
