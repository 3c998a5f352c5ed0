"""Weighted points: a weight is a number of repetitions, in the optimum, the embedding, the extension and the novelty.

With m = Kw, vol = wᵀm, Ā = Diag(m)^-½ K Diag(m)^-½ - √m√mᵀ/vol and d = diag Ā, the programme is max Σ wᵢwⱼĀᵢⱼBᵢⱼ over
B ≽ 0 with diag B = d. Everything is checked against repeated rows, against dense formulas, or against a conic solver.
"""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_matrix

from mercer import Gaussian, Laplacian, Precomputed, SDPEmbedding
from mercer.datasets import three_clusters
from mercer.embedding.diffusion_problem import DiffusionProblem

_SETTINGS = settings(max_examples=10, deadline=None, derandomize=True, database=None)
_KERNELS = [Gaussian(sigma=1.2), Laplacian(sigma=2.0)]
_KERNEL = _KERNELS[0]


def _fit(X, sample_weight=None, kernel=_KERNEL, **options) -> SDPEmbedding:
    options = {"tol": 1e-9, "residual_tol": 1e-9, "max_iter": 100_000, "random_state": 0} | options
    return SDPEmbedding(kernel, **options).fit(X, sample_weight=sample_weight)


def _learned(model) -> np.ndarray:
    return model.embedding_ @ model.embedding_.T


def _assert_same(is_unique, weighted, repeated, rows, new):
    """The same optimum, matrix, spectrum, extension and novelty; ``rows`` finds the distinct points in the long sample."""
    assert weighted.certificate_.lower == pytest.approx(repeated.certificate_.lower, rel=1e-8)
    assert weighted.certificate_.upper == pytest.approx(repeated.certificate_.upper, rel=1e-8)
    np.testing.assert_allclose(weighted.novelty(new), repeated.novelty(new), rtol=1e-10, atol=1e-10)
    np.testing.assert_allclose(weighted.diagonal_, repeated.diagonal_[rows], rtol=1e-9)
    if not is_unique(weighted):
        return
    B = _learned(weighted)
    size = np.abs(B).max()
    np.testing.assert_allclose(B, _learned(repeated)[np.ix_(rows, rows)], atol=1e-4 * size)
    np.testing.assert_allclose(weighted.learned_kernel(new), repeated.learned_kernel(new), atol=1e-4 * size)
    assert weighted.rank_ == repeated.rank_
    np.testing.assert_allclose(weighted.eigenvalues_, repeated.eigenvalues_, atol=1e-4)


@pytest.fixture(scope="module")
def X():
    """Enough points for the low-rank stand-in of the automatic solver."""
    return three_clusters(n_per_cluster=12, n_outliers=4)[0]


@pytest.fixture(scope="module")
def new():
    return np.random.default_rng(5).uniform([-1.0, -1.0], [5.0, 4.5], (15, 2))


@pytest.fixture(scope="module")
def weights(X):
    return np.random.default_rng(1).uniform(0.2, 5.0, len(X))


# --- weights are repetitions --------------------------------------------------------------------------------


@pytest.mark.parametrize("kernel", _KERNELS, ids=repr)
@pytest.mark.parametrize("solver", ["auto", "accelerated"])
def test_a_row_twice_is_a_row_of_weight_two(is_unique, kernel, solver, X, new):
    w = np.ones(len(X))
    w[[3, 25]] = 2.0
    weighted = _fit(X, w, kernel, solver=solver)
    repeated = _fit(np.vstack([X, X[[3, 25]]]), kernel=kernel, solver=solver)
    _assert_same(is_unique, weighted, repeated, np.arange(len(X)), new)
    assert is_unique(weighted)
    assert weighted.embedding_.shape[0] == len(X)
    other = _fit(X, kernel=kernel)
    assert abs(other.certificate_.lower / weighted.certificate_.lower - 1) > 1e-4  # the weights matter


@_SETTINGS
@given(
    seed=st.integers(0, 2**20),
    counts=st.lists(st.integers(1, 5), min_size=4, max_size=14),
    sigma=st.floats(0.8, 3.0),
    gaussian=st.booleans(),
)
def test_integer_weights_are_repetitions(is_unique, seed, counts, sigma, gaussian):
    draw = np.random.default_rng(seed)
    X, new = draw.standard_normal((len(counts), 2)), draw.standard_normal((6, 2))
    kernel = Gaussian(sigma) if gaussian else Laplacian(sigma)
    weighted = _fit(X, counts, kernel)
    repeated = _fit(np.repeat(X, counts, axis=0), kernel=kernel)
    _assert_same(is_unique, weighted, repeated, np.cumsum(counts) - 1, new)
    place = np.repeat(np.arange(len(counts)), counts)
    np.testing.assert_allclose(np.bincount(place, repeated.stationary_), weighted.stationary_, rtol=1e-10)


@_SETTINGS
@given(seed=st.integers(0, 2**20), parts=st.integers(2, 4))
def test_weights_of_coinciding_rows_add_up(is_unique, seed, parts):
    """Splitting a row into copies that share its weight, in unequal parts, changes nothing."""
    draw = np.random.default_rng(seed)
    X, new = draw.standard_normal((9, 2)), draw.standard_normal((6, 2))
    w = draw.uniform(0.3, 3.0, 9)
    shares = w[4] * draw.dirichlet(np.ones(parts))
    whole = _fit(X, w)
    split = _fit(
        np.vstack([X, np.repeat(X[4:5], parts - 1, axis=0)]), np.concatenate([w[:4], shares[:1], w[5:], shares[1:]])
    )
    _assert_same(is_unique, whole, split, np.arange(9), new)


@pytest.mark.parametrize("row", [0, 18, 36])
def test_signs_of_the_axes_are_those_of_repeated_rows(row, X, new):
    """The sign of an axis comes from the coordinates, not from their weighted form, so that it is the same for both."""
    counts = np.ones(len(X), int)
    counts[row] = 8
    weighted, repeated = _fit(X, counts), _fit(np.repeat(X, counts, axis=0))
    assert np.min(-np.diff(weighted.eigenvalues_)) > 1e-2  # the axes are well determined
    rows, size = np.cumsum(counts) - 1, np.abs(weighted.embedding_).max()
    np.testing.assert_allclose(weighted.embedding_, repeated.embedding_[rows], atol=1e-5 * size)
    np.testing.assert_allclose(weighted.transform(new), repeated.transform(new), atol=1e-5 * size)


def test_training_rows_keep_their_places(X, weights):
    model = _fit(X, weights)
    np.testing.assert_allclose(model.transform(X.copy()), model.embedding_, atol=1e-6 * np.abs(model.embedding_).max())
    np.testing.assert_allclose(np.sum(model.embedding_**2, axis=1), model.diagonal_, rtol=1e-9)
    B = _learned(model)
    np.testing.assert_allclose(model.learned_kernel(X.copy()), B, atol=1e-6 * np.abs(B).max())


@pytest.mark.parametrize("certify", [True, False])
def test_precomputed_kernel(certify, X, new, weights):
    kernel = _KERNEL
    reference = _fit(X, weights, certify=certify)
    for form in (np.asarray, csr_matrix):
        model = _fit(form(kernel(X)), weights, Precomputed(), certify=certify)
        np.testing.assert_allclose(_learned(model), _learned(reference), atol=1e-6)
        np.testing.assert_allclose(model.learned_kernel(form(kernel(new, X))), reference.learned_kernel(new), atol=1e-5)
        np.testing.assert_allclose(model.novelty(form(kernel(new, X))), reference.novelty(new), rtol=1e-9)


def _indefinite(X) -> np.ndarray:
    K = Gaussian(sigma=3.0)(X)
    return np.where(K > 0.1, K, 0.0)


def test_indefinite_affinities(is_unique, X):
    """The shift and the check for room know of weights: an indefinite matrix, repeated and weighted."""
    counts = np.random.default_rng(2).integers(1, 4, len(X))
    K = _indefinite(X)
    assert np.linalg.eigvalsh(K)[0] < -1e-2
    place = np.repeat(np.arange(len(X)), counts)
    weighted, repeated = _fit(K, counts, Precomputed()), _fit(K[np.ix_(place, place)], kernel=Precomputed())
    assert weighted.certificate_.lower == pytest.approx(repeated.certificate_.lower, rel=1e-6)
    assert is_unique(weighted)
    rows = np.cumsum(counts) - 1
    np.testing.assert_allclose(_learned(weighted), _learned(repeated)[np.ix_(rows, rows)], atol=1e-4)


# --- against formulas and a conic solver --------------------------------------------------------------------


def _dense(K, w) -> tuple[np.ndarray, np.ndarray, float]:
    """Ā, m and vol of a weighted sample, entry by entry."""
    m = np.array([sum(w[j] * K[i, j] for j in range(len(w))) for i in range(len(w))])
    volume = float(w @ m)
    return K / np.sqrt(np.outer(m, m)) - np.sqrt(np.outer(m, m)) / volume, m, volume


def test_diagonal_spectrum_and_objective(X, weights):
    """d = k/m - m/vol; the objective Σ wᵢwⱼĀᵢⱼBᵢⱼ; the spectrum and the axes are those of Diag(w)^½ Ξ."""
    model = _fit(X, weights)
    A, m, volume = _dense(_KERNEL(X), weights)
    np.testing.assert_allclose(model.diagonal_, 1 / m - m / volume, rtol=1e-9)
    np.testing.assert_allclose(model.stationary_, weights * m / volume, rtol=1e-11)
    E = model.embedding_
    assert model.certificate_.lower == pytest.approx(np.sum(np.outer(weights, weights) * A * (E @ E.T)), rel=1e-9)
    weighted = E.T @ (weights[:, None] * E)
    np.testing.assert_allclose(weighted, np.diag(model.eigenvalues_) * (weights @ model.diagonal_), atol=1e-10)
    assert np.all(np.diff(model.eigenvalues_) <= 0)
    assert model.eigenvalues_.sum() == pytest.approx(1.0, abs=1e-4)


def test_extension_and_novelty_by_their_formulas(X, new, weights):
    """g = Σⱼ wⱼ ā_e(x,xⱼ)Ξⱼ, Ξ_e(x) = √d(x) g/‖g‖, novelty = -log Σⱼ wⱼk(x,xⱼ)."""
    model = _fit(X, weights, radius="paper")
    cross, (_, m, volume) = _KERNEL(new, X), _dense(_KERNEL(X), weights)
    m_new = cross @ weights
    extended = cross / np.sqrt(np.outer(m_new, m)) - np.sqrt(np.outer(m_new, m)) / volume
    g = (extended * weights) @ model.embedding_
    expected = np.sqrt(1 / m_new - m_new / volume)[:, None] * g / np.linalg.norm(g, axis=1, keepdims=True)
    np.testing.assert_allclose(model.transform(new), expected, atol=1e-9 * np.abs(expected).max())
    np.testing.assert_allclose(model.novelty(new), -np.log(m_new), rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("seed", [0, 1, 2])
@pytest.mark.parametrize("spread", [1.0, 100.0])
def test_agreement_with_a_conic_solver(is_unique, seed, spread):
    """max Σ wᵢwⱼĀᵢⱼBᵢⱼ subject to B ≽ 0, diag B = d: the optimum, and B itself where it is unique."""
    cvxpy = pytest.importorskip("cvxpy")
    draw = np.random.default_rng(seed)
    X, w = draw.standard_normal((14, 2)), spread ** draw.uniform(-0.5, 0.5, 14)
    model = _fit(X, w, Gaussian(sigma=1.0))
    A, _, _ = _dense(Gaussian(sigma=1.0)(X), w)
    s = np.sqrt(np.diag(A))
    J = np.outer(w * s, w * s) * A
    H = cvxpy.Variable(A.shape, PSD=True)
    objective = cvxpy.sum(cvxpy.multiply((J + J.T) / (2 * np.abs(J).sum()), H))
    problem = cvxpy.Problem(cvxpy.Maximize(objective), [cvxpy.diag(H) == 1])
    problem.solve(solver=cvxpy.CLARABEL, tol_gap_abs=1e-11, tol_gap_rel=1e-11, tol_feas=1e-11)
    optimum = np.abs(J).sum() * problem.value
    assert model.certificate_.lower <= optimum * (1 + 1e-7)
    assert model.certificate_.upper >= optimum * (1 - 1e-7)
    assert model.certificate_.holds(1e-8)
    if is_unique(model):
        np.testing.assert_allclose(_learned(model) / np.outer(s, s), H.value, atol=2e-3)


# --- all weights times a constant ---------------------------------------------------------------------------


@_SETTINGS
@given(seed=st.integers(0, 2**20), exponent=st.floats(-6, 6))
def test_a_common_factor(is_unique, seed, exponent):
    """w → cw: m → cm, vol → c²vol, so Ā and d → 1/c, B → B/c, Ξ → Ξ/√c, J and p* stay, and novelty falls by log c."""
    draw = np.random.default_rng(seed)
    X, new, w = draw.standard_normal((10, 2)), draw.standard_normal((5, 2)), draw.uniform(0.3, 3.0, 10)
    _assert_scaled(is_unique, X, w, new, 10.0**exponent)


@pytest.mark.parametrize("factor", [1e-150, 1e-100, 1e-12, 1e-3, 0.1, 1e3, 1e12, 1e100, 1e150])
def test_a_common_factor_near_and_far(is_unique, factor, X, new, weights):
    _assert_scaled(is_unique, X, weights, new, factor)


def _assert_scaled(is_unique, X, w, new, factor):
    once, scaled = _fit(X, w), _fit(X, factor * w)
    assert scaled.certificate_.lower == pytest.approx(once.certificate_.lower, rel=1e-8)
    np.testing.assert_allclose(factor * scaled.diagonal_, once.diagonal_, rtol=1e-9)
    np.testing.assert_allclose(scaled.stationary_, once.stationary_, rtol=1e-10)
    np.testing.assert_allclose(scaled.novelty(new), once.novelty(new) - np.log(factor), rtol=1e-9, atol=1e-9)
    if is_unique(once):
        size = np.abs(once.embedding_).max()
        np.testing.assert_allclose(np.sqrt(factor) * scaled.embedding_, once.embedding_, atol=1e-4 * size)
        np.testing.assert_allclose(np.sqrt(factor) * scaled.transform(new), once.transform(new), atol=1e-4 * size)
        np.testing.assert_allclose(scaled.eigenvalues_, once.eigenvalues_, atol=1e-6)


def test_equal_weights_are_no_weights(X, new):
    plain, ones = _fit(X), _fit(X, np.ones(len(X)))
    np.testing.assert_allclose(ones.embedding_, plain.embedding_, atol=1e-12)
    np.testing.assert_allclose(ones.transform(new), plain.transform(new), atol=1e-12)
    half = _fit(X, np.full(len(X), 0.5))
    assert half.certificate_.lower == pytest.approx(plain.certificate_.lower, rel=1e-8)
    np.testing.assert_allclose(half.embedding_, np.sqrt(2) * plain.embedding_, atol=1e-6)


# --- weight zero, and nearly ---------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def some_zero(weights):
    w = weights.copy()
    w[[0, 7, 13, 26]] = 0.0
    return w


@pytest.mark.parametrize("radius", ["capped", "paper"])
def test_weight_zero_is_leaving_the_row_out(radius, X, new, some_zero):
    kept = some_zero > 0
    with_zeros, without = _fit(X, some_zero, radius=radius), _fit(X[kept], some_zero[kept], radius=radius)
    assert with_zeros.certificate_.lower == pytest.approx(without.certificate_.lower, rel=1e-9)
    size = np.abs(without.embedding_).max()
    np.testing.assert_allclose(with_zeros.embedding_[kept], without.embedding_, atol=1e-7 * size)
    np.testing.assert_allclose(with_zeros.embedding_[~kept], without.transform(X[~kept]), atol=1e-7 * size)
    np.testing.assert_allclose(with_zeros.transform(new), without.transform(new), atol=1e-7 * size)
    np.testing.assert_allclose(with_zeros.novelty(new), without.novelty(new), rtol=1e-12)
    assert with_zeros.embedding_.shape[0] == len(X)
    np.testing.assert_array_equal(with_zeros.embedding_[kept], with_zeros.coordinates_)


def test_weight_zero_of_a_point_far_away(X):
    """It is embedded as a new point, wherever it lies, and takes no part in anything else."""
    far = np.vstack([X, [[1e6, -1e6]]])
    model = _fit(far, np.append(np.ones(len(X)), 0.0))
    np.testing.assert_allclose(model.embedding_[:-1], _fit(X).embedding_, atol=1e-7)
    assert np.linalg.norm(model.embedding_[-1]) == pytest.approx(np.sqrt(model.diagonal_.max()), rel=1e-9)
    np.testing.assert_allclose(model.embedding_[-1:], model.transform(far[-1:]), atol=1e-12)


@pytest.mark.parametrize("kernel", [Gaussian(sigma="median"), Laplacian(sigma="slope")], ids=repr)
def test_bandwidth_of_the_data_counts_weights(kernel, X):
    """A row of weight two counts twice in the choice of the bandwidth, and one of weight zero does not."""
    counts = np.append(np.random.default_rng(6).integers(1, 5, len(X)), np.zeros(30, int))
    far = np.vstack([X, np.full((30, 2), 1e3)])
    model = SDPEmbedding(kernel, random_state=0).fit(far, sample_weight=counts)
    repeated = SDPEmbedding(kernel, random_state=0).fit(np.repeat(far, counts, axis=0))
    assert model.kernel_.sigma == pytest.approx(repeated.kernel_.sigma, rel=1e-12)


def test_weight_zero_of_precomputed_affinities(X, new, some_zero):
    """New points bring affinities to all rows of the matrix fitted, also to those of weight zero: n_features_in_ says so."""
    reference = _fit(X, some_zero)
    model = _fit(_KERNEL(X), some_zero, Precomputed())
    size = np.abs(reference.embedding_).max()
    np.testing.assert_allclose(model.embedding_, reference.embedding_, atol=1e-6 * size)
    assert model.n_features_in_ == len(X)
    np.testing.assert_allclose(model.transform(_KERNEL(new, X)), reference.transform(new), atol=1e-6 * size)
    np.testing.assert_allclose(model.novelty(_KERNEL(new, X)), reference.novelty(new), rtol=1e-9)


@pytest.mark.parametrize("light", [1e-6, 1e-9, 1e-12])
def test_a_light_row_is_nearly_left_out(light, X, some_zero):
    """Continuity at zero: the others do not notice a light row, and it lies where the extension puts it."""
    w = np.where(some_zero == 0, light, some_zero)
    model, without = _fit(X, w, radius="paper"), _fit(X, some_zero, radius="paper")
    assert model.certificate_.lower == pytest.approx(without.certificate_.lower, rel=100 * light + 1e-8)
    size = np.abs(without.embedding_).max()
    np.testing.assert_allclose(_learned(model), _learned(without), atol=(1e3 * light + 1e-5) * size**2)
    np.testing.assert_allclose(np.sum(model.embedding_**2, axis=1), model.diagonal_, rtol=1e-6)
    np.testing.assert_allclose(model.transform(X.copy()), model.embedding_, atol=1e-5 * size)


def test_light_rows_at_the_default_tolerances(X, some_zero):
    w = np.where(some_zero == 0, 1e-8, some_zero)
    model = SDPEmbedding(_KERNEL, random_state=0).fit(X, sample_weight=w)
    np.testing.assert_allclose(model.transform(X.copy()), model.embedding_, atol=1e-4 * np.abs(model.embedding_).max())
    np.testing.assert_allclose(np.sum(model.embedding_**2, axis=1), model.diagonal_, rtol=1e-6)


def test_a_heavy_row(X, new):
    """One row as heavy as a million others: as far as repetition can be computed, the same by formula."""
    w = np.ones(len(X))
    w[4] = 1e6
    model = _fit(X, w, solver="accelerated")
    assert model.certificate_.holds(1e-6)
    _, m, volume = _dense(_KERNEL(X), w)
    np.testing.assert_allclose(model.diagonal_, 1 / m - m / volume, rtol=1e-5)
    np.testing.assert_allclose(model.transform(X.copy()), model.embedding_, atol=1e-5 * np.abs(model.embedding_).max())
    assert np.isfinite(model.transform(new)).all()


# --- what is said of weights that are none ------------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda w: np.where(np.arange(len(w)) == 5, -1.0, w), "negative"),
        (lambda w: np.where(np.arange(len(w)) == 5, -1e-300, w), "negative"),
        (lambda w: np.where(np.arange(len(w)) == 5, np.nan, w), "NaN"),
        (lambda w: np.where(np.arange(len(w)) == 5, np.inf, w), "infinit"),
        (lambda w: w[:-1], r"(39,).*40 points"),
        (lambda w: np.append(w, 1.0), r"(41,).*40 points"),
        (lambda w: w[:, None], r"(40, 1)"),
        (lambda w: [], r"(0,)"),
        (lambda w: np.zeros(len(w)), "zero"),
        (lambda w: np.eye(1, len(w))[0], "at least 2"),
        (lambda w: ["heavy"] * len(w), "numbers"),
        (lambda w: w + 1j, "."),
    ],
    ids=["negative", "barely negative", "nan", "infinite", "short", "long", "column", "empty", "zero", "one", "text", "complex"],
)  # fmt: skip
def test_weights_that_are_none(change, message, X, weights):
    with pytest.raises(ValueError, match=message) as caught:
        SDPEmbedding(_KERNEL).fit(X, sample_weight=change(weights))
    text = str(caught.value)
    assert "\n" not in text
    assert text.endswith(".")
    assert text.count(". ") == 0  # one sentence


def test_one_place_of_positive_weight_is_nothing_to_embed(X):
    points = np.vstack([X, X[:1]])
    w = np.zeros(len(points))
    w[[0, -1]] = 1.0
    with pytest.raises(ValueError, match="All points are equal"):
        SDPEmbedding(_KERNEL).fit(points, sample_weight=w)


@pytest.mark.parametrize("factor", [1e-3, 1.0, 1e3])
def test_isolated_points_are_named_whatever_the_weights(factor, X, weights):
    with pytest.raises(ValueError, match="Every point is isolated"):
        SDPEmbedding(Gaussian(sigma=1e-4)).fit(X, sample_weight=factor * weights)


@pytest.mark.parametrize("factor", [1e-3, 1.0, 1e3])
def test_points_that_look_alike_are_named_whatever_the_weights(factor, X, weights):
    with pytest.raises(ValueError, match="All points look alike"):
        SDPEmbedding(Gaussian(sigma=1e8)).fit(X, sample_weight=factor * weights)


def test_points_without_room_are_those_of_the_repeated_matrix():
    """A star with loops, its leaves in pairs: the hub has k/m < m/vol, and no other point."""
    n = 16
    K = np.eye(n)
    K[0, :] = K[:, 0] = 1.0
    w = np.append(1.0, np.full(n - 1, 2.0))
    place = np.append(0, np.repeat(np.arange(1, n), 2))
    L = K[np.ix_(place, place)]
    with pytest.warns(UserWarning, match=f"^1 of {len(place)} points have no room"):
        repeated = _fit(L, kernel=Precomputed(), tol=1e-6, residual_tol=1e-6)
    with pytest.warns(UserWarning, match=f"^1 of {n} points have no room"):
        weighted = _fit(K, w, Precomputed(), tol=1e-6, residual_tol=1e-6)
    assert weighted.certificate_.lower == pytest.approx(repeated.certificate_.lower, rel=1e-5)


def test_rounding_is_no_lack_of_room():
    """A psd matrix with d = 0 at many points, to rounding on either side of it: nothing to warn of."""
    mean = np.outer(np.geomspace(0.1, 10.0, 40), [1.0, 1.0])
    X = np.vstack([mean, [[1.0, 0.3], [0.3, 1.0], [2.0, 0.1], [0.1, 2.0]]])
    for w in (None, np.random.default_rng(0).uniform(0.5, 2.0, 42)[[*range(40), 40, 40, 41, 41]]):
        model = _fit(X @ X.T, w, Precomputed(), tol=1e-6, residual_tol=1e-6)
        assert np.abs(model.embedding_[:40]).max() < 1e-6 * np.abs(model.embedding_).max()


@pytest.mark.parametrize("weight", [1e-6, 50.0, 1e6])
def test_room_is_not_lost_by_weight(weight, X):
    """A psd matrix gives every point room, whatever its weight: no warning, and the answer of the kernel itself."""
    w = np.ones(len(X))
    w[[0, 20]] = weight
    model, reference = _fit(_KERNEL(X), w, Precomputed(), tol=1e-7), _fit(X, w, tol=1e-7)
    assert model.certificate_.lower == pytest.approx(reference.certificate_.lower, rel=1e-6)


# --- how they are given -------------------------------------------------------------------------------------


def test_forms_of_weights(X):
    counts = np.random.default_rng(3).integers(1, 4, len(X))
    reference = _fit(X, counts.astype(float))
    frozen = counts.astype(float)
    frozen.flags.writeable = False
    for form in (counts, counts.tolist(), counts.astype(np.float32), frozen, np.repeat(counts, 2)[::2]):
        np.testing.assert_array_equal(_fit(X, form).embedding_, reference.embedding_)
    np.testing.assert_array_equal(frozen, counts)
    booleans = counts > 1
    np.testing.assert_array_equal(_fit(X, booleans).embedding_, _fit(X, booleans.astype(float)).embedding_)


def test_fit_transform_takes_weights(X, weights):
    model = SDPEmbedding(_KERNEL, random_state=0)
    np.testing.assert_array_equal(model.fit_transform(X, sample_weight=weights), model.embedding_)
    np.testing.assert_array_equal(
        model.embedding_, SDPEmbedding(_KERNEL, random_state=0).fit(X, None, weights).embedding_
    )


def test_weights_are_forgotten_by_the_next_fit(X, weights):
    model = SDPEmbedding(_KERNEL, random_state=0).fit(X, sample_weight=weights)
    np.testing.assert_array_equal(model.fit(X).embedding_, SDPEmbedding(_KERNEL, random_state=0).fit(X).embedding_)


def test_permuting_rows_and_weights_together(X, new, weights):
    order = np.random.default_rng(4).permutation(len(X))
    a, b = _fit(X, weights), _fit(X[order], weights[order])
    np.testing.assert_allclose(_learned(b), _learned(a)[np.ix_(order, order)], atol=1e-6 * np.abs(_learned(a)).max())
    np.testing.assert_allclose(b.learned_kernel(new), a.learned_kernel(new), atol=1e-6 * np.abs(_learned(a)).max())
    wrong = _fit(X[order], weights)
    assert abs(wrong.certificate_.lower / a.certificate_.lower - 1) > 1e-4


def test_light_rows_are_extended_as_well_as_heavy_ones():
    X = np.random.default_rng(0).standard_normal((40, 2))
    weights = np.ones(40)
    weights[:5] = 1e-4
    model = SDPEmbedding(Gaussian(sigma=1.0), random_state=0).fit(X, sample_weight=weights)
    scale = np.sqrt(model.diagonal_.max())
    assert np.abs(model.transform(X) - model.embedding_).max() <= 1.01e-6 * scale


def test_row_residuals_are_weighed_by_lengths_in_the_embedding_not_by_weights():
    """A light row is as long in the embedding as a heavy one, so its error counts as much."""
    X = np.random.default_rng(0).standard_normal((40, 2))
    weights = np.ones(40)
    weights[:5] = 1e-4
    programme = DiffusionProblem.of(Gaussian(sigma=1.0), X, weights, np.random.default_rng(0))
    model = SDPEmbedding(Gaussian(sigma=1.0), random_state=0).fit(X, sample_weight=weights)
    np.testing.assert_allclose(programme.working.lengths, np.sqrt(model.diagonal_), rtol=1e-9)
