"""Levels of an embedding: each a certified optimum on the complement of those before, extended to new points."""

from __future__ import annotations

import copy
import pickle
from dataclasses import replace

import numpy as np
import pytest

import mercer
from mercer import Gaussian, Laplacian, Precomputed, SDPEmbedding, SelfTuning, verify
from mercer.datasets import three_clusters, two_moons
from mercer.embedding.degeneracy import RankWarning
from mercer.embedding.levels import Complement
from mercer.solvers import Status

KERNEL = Gaussian(sigma=1.2)


@pytest.fixture(scope="module")
def X():
    return three_clusters(n_per_cluster=40, n_outliers=10, random_state=1)[0]


@pytest.fixture(scope="module")
def new():
    return 3 * np.random.default_rng(4).standard_normal((25, 2))


@pytest.fixture(scope="module")
def model(X):
    return SDPEmbedding(KERNEL, n_levels=3, radius="paper", random_state=0).fit(X)


def _affinities(kernel, X, new):
    """Ā of the sample, ā between new points and the sample, and ā(x, x) of the new points, as the papers write them."""
    K, cross = kernel(X), kernel(new, X)
    m, m_new = K.sum(axis=1), cross.sum(axis=1)
    A = K / np.sqrt(np.outer(m, m)) - np.sqrt(np.outer(m, m)) / m.sum()
    a = cross / np.sqrt(np.outer(m_new, m)) - np.sqrt(np.outer(m_new, m)) / m.sum()
    return A, a, kernel.diag(new) / m_new - m_new / m.sum()


def _extended(kernel, X, new, levels):
    """Every level at new points, from the kernel of the features φ(x) - Σⱼ (Qq(x))ⱼ φ(xⱼ)."""
    A0, a0, own0 = A, a, own = _affinities(kernel, X, new)
    found = []
    for number, level in enumerate(levels):
        E = level.coordinates
        np.testing.assert_allclose(np.diag(A), level.diagonal, atol=1e-9)
        towards = a @ E
        found.append(np.sqrt(own)[:, None] * towards / np.linalg.norm(towards, axis=1, keepdims=True))
        C = np.linalg.pinv(np.hstack([each.coordinates for each in levels[: number + 1]]))
        p = np.hstack(found) @ C  # the rows of QQᵀ at the new points
        P = np.eye(len(X)) - np.hstack([each.coordinates for each in levels[: number + 1]]) @ C
        own = own0 - 2 * np.sum(a0 * p, axis=1) + np.sum((p @ A0) * p, axis=1)
        a, A = (a0 - p @ A0) @ P, P @ A0 @ P
    return found


def test_every_level_solves_its_programme_and_is_extended_as_the_theory_says(X, new, model):
    expected = _extended(KERNEL, X, new, model.levels_)
    got = model._extension.level_coordinates(new, capped=False)
    for one, other in zip(got, expected, strict=True):
        np.testing.assert_allclose(one, other, atol=1e-7 * np.abs(other).max())
    assert all(level.certificate.holds(1e-6) for level in model.levels_)
    assert [level.status for level in model.levels_] == [Status.CONVERGED] * 3
    side_by_side = [level.weight * part for level, part in zip(model.levels_, expected, strict=True)]
    np.testing.assert_allclose(model.transform(new), np.hstack(side_by_side), atol=1e-6)


def test_optimality_conditions_of_the_second_level(X, model):
    """ÃΞ = Diag(y)Ξ with Diag(y) - Ã psd on the complement, and Diag(y)Ξ is orthogonal to the level before."""
    A, _, _ = _affinities(KERNEL, X, X[:1])
    first, second = model.levels_[0].coordinates, model.levels_[1].coordinates
    P = np.eye(len(X)) - first @ np.linalg.pinv(first)
    A2 = P @ A @ P
    image = A2 @ second
    y = np.sum(image * second, axis=1) / model.levels_[1].diagonal
    np.testing.assert_allclose(image, y[:, None] * second, atol=1e-5 * np.abs(image).max())
    assert np.linalg.eigvalsh(np.diag(y) - A2)[0] > -1e-5
    np.testing.assert_allclose(first.T @ (y[:, None] * second), 0, atol=1e-5)
    assert model.levels_[1].correlation == pytest.approx(np.sum(image * second) / np.sum(second**2), rel=1e-6)


@pytest.mark.parametrize("kernel", [KERNEL, Laplacian(sigma=2.0), SelfTuning()], ids=lambda k: type(k).__name__)
def test_training_points_keep_their_places_and_far_ones_have_one(X, kernel):
    fitted = SDPEmbedding(kernel, n_levels=3, random_state=0).fit(X)
    size = np.abs(fitted.embedding_).max()
    assert np.abs(fitted.transform(X.copy()) - fitted.embedding_).max() < 1e-5 * size
    far = np.array([[1e3, 0.0], [1e8, -1e8]])
    lengths = [np.sqrt(level.diagonal.max()) for level in fitted.levels_]
    for part, longest in zip(fitted._extension.level_coordinates(far, capped=True), lengths, strict=True):
        assert np.isfinite(part).all()
        assert (np.linalg.norm(part, axis=1) <= longest * (1 + 1e-12)).all()
    assert np.isfinite(fitted.novelty(far)).all()
    B = fitted.learned_kernel(X)
    np.testing.assert_allclose(B, fitted.embedding_ @ fitted.embedding_.T, atol=1e-5 * np.abs(B).max())


def test_squared_lengths_go_as_the_steps_that_the_walk_remembers_a_level(X, model):
    ends = np.cumsum([level.rank for level in model.levels_])
    squares = [np.mean(np.sum(part**2, axis=1)) for part in np.split(model.embedding_, ends[:-1], axis=1)]
    lost = np.array([1 - level.correlation for level in model.levels_])
    np.testing.assert_allclose(squares * lost, squares[0] * lost[0], rtol=1e-6)
    assert squares[0] > squares[1] > squares[2]
    np.testing.assert_allclose(model.embedding_[:, : ends[0]], model.coordinates_)
    assert model.rank_ == model.levels_[0].rank
    assert model.n_products_ == sum(level.n_products for level in model.levels_)


def test_as_many_components_as_are_asked_for(X, model):
    ten = SDPEmbedding(KERNEL, n_components=10, random_state=0).fit(X)
    assert ten.embedding_.shape == (len(X), 10)
    assert np.abs(ten.embedding_).max(axis=0).min() > 0
    assert sum(level.rank for level in ten.levels_[:-1]) < 10 <= sum(level.rank for level in ten.levels_)
    assert len(ten.get_feature_names_out()) == 10
    assert verify(ten, X).holds(1e-6)
    two = SDPEmbedding(KERNEL, n_components=2, random_state=0).fit(X)
    assert len(two.levels_) == 1
    with pytest.warns(RankWarning, match="n_components=5 exceeds the number of dimensions, 2"):
        SDPEmbedding(KERNEL, n_components=5, n_levels=1, random_state=0).fit(X)


def test_levels_end_where_the_kernel_has_no_dimension_left():
    """The coordinates of four points span no more than four dimensions: then zeros are what is left."""
    square = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.5], [2.0, 2.0]])
    with pytest.warns(RankWarning, match="n_components=9 exceeds the number of dimensions"):
        model = SDPEmbedding(KERNEL, n_components=9, random_state=0).fit(square)
    found = sum(level.rank for level in model.levels_)
    assert 3 <= np.linalg.matrix_rank(model.embedding_) <= found < 9
    assert np.all(model.embedding_[:, found:] == 0)
    assert np.all(model.transform(square + 0.1)[:, found:] == 0)


def test_a_row_of_weight_two_is_the_row_twice(X):
    weights = np.random.default_rng(0).integers(1, 3, len(X))
    fits = [
        SDPEmbedding(KERNEL, n_levels=2, tol=1e-9, residual_tol=1e-9, random_state=0).fit(data, sample_weight=w)
        for data, w in ((X, weights), (np.repeat(X, weights, axis=0), None))
    ]
    first, second = (np.array([level.certificate.lower for level in fit.levels_]) for fit in fits)
    np.testing.assert_allclose(first, second, rtol=1e-7)
    kernels = [fit.learned_kernel(X) for fit in fits]
    np.testing.assert_allclose(*kernels, atol=1e-5 * np.abs(kernels[0]).max())


def test_landmarks_carry_every_level(X):
    rows = np.arange(0, len(X), 2)
    for kernel in (KERNEL, SelfTuning(n_neighbors=8)):
        model = SDPEmbedding(kernel, landmarks=rows, n_levels=2, random_state=0).fit(X)
        assert model.embedding_.shape == (len(X), sum(level.rank for level in model.levels_))
        assert all(level.coordinates.shape[0] == rows.size for level in model.levels_)
        assert verify(model, X).holds(1e-6)
        np.testing.assert_allclose(model.transform(X), model.embedding_, atol=1e-5 * np.abs(model.embedding_).max())


# --- how many --------------------------------------------------------------------------------------------------------


def test_one_level_for_kernels_that_see_all_and_several_for_neighbours():
    X, _ = two_moons(n_points=120)
    assert len(SDPEmbedding(Gaussian(), random_state=0).fit(X).levels_) == 1
    default = SDPEmbedding(random_state=0).fit(X)
    assert len(default.levels_) > 1
    assert default.embedding_.shape[1] == sum(level.rank for level in default.levels_)
    assert verify(default, X).holds(1e-6)
    assert len(SDPEmbedding(n_levels=1, random_state=0).fit(X).levels_) == 1


def test_a_further_level_that_a_step_forgets_by_half_is_dropped():
    X = np.random.default_rng(0).standard_normal((40, 12))
    asked = SDPEmbedding(n_levels=3, random_state=0).fit(X)
    correlations = [level.correlation for level in asked.levels_]
    kept = 1 + next(number for number, c in enumerate(correlations[1:]) if c < 0.5)
    default = SDPEmbedding(random_state=0).fit(X)
    assert [level.correlation for level in default.levels_] == pytest.approx(correlations[:kept], rel=1e-5)
    assert kept < 3


def test_a_level_that_the_walk_hardly_forgets_leaves_weight_for_the_others():
    """Along a line a step loses less than a hundredth of the first level, and counts as if it lost that much."""
    levels = SDPEmbedding(n_levels=3, random_state=0).fit(np.linspace(0, 1, 250)[:, None]).levels_
    lost = np.array([1 - level.correlation for level in levels])
    assert lost[0] < 0.008
    lengths = np.array([level.weight**2 * np.sum(level.diagonal) for level in levels])
    np.testing.assert_allclose(lengths / lengths[0], 0.01 / np.maximum(lost, 0.01), rtol=1e-6)


def test_no_level_follows_one_that_ran_out_of_steps(X):
    with pytest.warns(UserWarning, match="budget ran out"):
        model = SDPEmbedding(KERNEL, n_levels=3, solver="power", max_iter=2, random_state=0).fit(X)
    assert [level.status for level in model.levels_] == [Status.MAX_ITER]


@pytest.mark.parametrize("n_levels", [0, 1.5, "three"])
def test_bad_numbers_of_levels(X, n_levels):
    with pytest.raises(ValueError, match="n_levels=.* must be a whole number of at least 1"):
        SDPEmbedding(KERNEL, n_levels=n_levels).fit(X)


# --- runs that are broken off ----------------------------------------------------------------------------------------


class _AtLevel:
    """Does something at a step of a level: step numbers begin again with every level."""

    def __init__(self, level, step, act):
        self.level, self.step, self.act, self.seen = level, step, act, 0

    def __call__(self, iteration):
        self.seen += iteration.number == 0
        if self.seen == self.level and iteration.number == self.step:
            return self.act()
        return None


def _interrupt():
    raise KeyboardInterrupt


def test_an_interrupted_level_is_kept_and_taken_up_again(X, tmp_path):
    file = tmp_path / "levels.npz"
    options = {"n_levels": 3, "random_state": 0, "checkpoint": file, "solver": "accelerated"}
    with pytest.warns(UserWarning, match="interrupted"):
        broken = SDPEmbedding(KERNEL, callback=_AtLevel(2, 3, _interrupt), **options).fit(X)
    assert len(broken.levels_) == 2
    assert broken.levels_[0].certificate.holds(1e-6)
    assert broken.status_ is Status.INTERRUPTED
    assert verify(broken, X).relative_gap > 1e-6
    with np.load(file) as stored:
        assert {"H", "history", "H2", "history2"} < set(stored.files)
    resumed = SDPEmbedding(KERNEL, **options).fit(X)
    assert resumed.status_ is Status.CONVERGED
    assert len(resumed.levels_) == 3
    assert resumed.levels_[1].history[: len(broken.levels_[1].history)] == broken.levels_[1].history
    whole = SDPEmbedding(KERNEL, n_levels=3, random_state=0).fit(X)
    for ours, theirs in zip(resumed.levels_, whole.levels_, strict=True):
        assert ours.certificate.lower == pytest.approx(theirs.certificate.lower, rel=1e-5)


def test_a_callback_that_stops_ends_all_levels(X):
    model = SDPEmbedding(KERNEL, n_levels=3, callback=_AtLevel(2, 2, lambda: True), random_state=0).fit(X)
    assert [level.status for level in model.levels_] == [Status.CONVERGED, Status.STOPPED]
    assert model.status_ is Status.STOPPED


def test_warm_starts_begin_every_level_at_the_last_one(X):
    model = SDPEmbedding(KERNEL, n_levels=2, warm_start=True, random_state=0).fit(X)
    cold = [len(level.history) for level in model.levels_]
    again = model.fit(X)
    assert sum(len(level.history) for level in again.levels_) <= sum(cold)
    assert verify(again, X).holds(1e-6)


# --- models that are read again --------------------------------------------------------------------------------------


def _second(**changes):
    def change(model):
        fields = {name: value(getattr(model.levels_[1], name)) for name, value in changes.items()}
        model.levels_ = (model.levels_[0], replace(model.levels_[1], **fields), *model.levels_[2:])

    return change


def _own_extension(**changes):
    def change(model):
        parts = list(model._extension.levels)
        parts[1] = replace(parts[1], **{name: value(getattr(parts[1], name)) for name, value in changes.items()})
        model._extension = replace(model._extension, levels=tuple(parts))

    return change


def _forgotten(level):
    """A level that claims another correlation, with the weight that would follow from it."""
    lost, claimed = 1 - level.correlation, 1 - (level.correlation + 0.01)
    return replace(level, correlation=level.correlation + 0.01, weight=level.weight * (lost / claimed) ** 0.5)


TAMPERING = {
    "rotated": _second(coordinates=lambda c: c @ np.linalg.qr(np.arange(c.shape[1] ** 2.0).reshape(c.shape[1], -1))[0]),
    "rolled": _second(coordinates=lambda c: np.roll(c, 1, axis=0)),
    "turned rows": _second(coordinates=lambda c: np.where(np.arange(len(c))[:, None] == 3, -c, c)),
    "not finite": _second(coordinates=lambda c: np.where(np.arange(len(c))[:, None] == 3, np.nan, c)),
    "eigenvalues": _second(eigenvalues=lambda v: v[::-1]),
    "diagonal": _second(diagonal=lambda d: 1.0001 * d),
    "weight": _second(weight=lambda w: 2 * w),
    "correlation": _second(correlation=lambda c: c - 1e-3),
    "correlation of the last": lambda model: setattr(
        model, "levels_", (*model.levels_[:-1], _forgotten(model.levels_[-1]))
    ),
    "certificate": _second(certificate=lambda c: replace(c, lower=1.01 * c.upper, upper=1.02 * c.upper)),
    "one level less": lambda model: setattr(model, "levels_", model.levels_[:2]),
    "no levels": lambda model: setattr(model, "levels_", ()),
    "levels exchanged": lambda model: setattr(model, "levels_", (model.levels_[0], *model.levels_[:0:-1])),
    "first level exchanged": lambda model: setattr(model, "levels_", model.levels_[1:]),
    "inside of the extension": _own_extension(inside=lambda v: -v),
    "middle of the extension": _own_extension(middle=lambda v: 2 * v),
    "turn of the extension": _own_extension(turn=lambda v: -v),
    "weight of the extension": _own_extension(weight=lambda w: 2 * w),
}


@pytest.mark.parametrize("change", TAMPERING.values(), ids=TAMPERING)
def test_a_level_that_was_changed_is_refused(X, model, change):
    tampered = copy.deepcopy(model)
    change(tampered)
    with pytest.raises(
        ValueError, match=r"^The (model is damaged|model has coordinates|embedding cannot belong)[^\n]*\.$"
    ):
        verify(tampered, X)


def test_the_weakest_level_is_what_verify_reports(X):
    """A second level that was stopped early: the first is certified, and the model is not."""
    model = SDPEmbedding(KERNEL, n_levels=2, callback=_AtLevel(2, 1, lambda: True), random_state=0).fit(X)
    assert model.certificate_.holds(1e-6)
    assert verify(model, X).relative_gap == pytest.approx(model.levels_[1].certificate.relative_gap, rel=1e-2)
    assert not verify(model, X).holds(1e-4)


def test_pickled_models_say_the_same(X, new):
    model = SDPEmbedding(SelfTuning(), n_levels=2, random_state=0).fit(X)
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.transform(new), model.transform(new))
    assert verify(again, X).holds(1e-6)


def test_single_precision(X):
    with mercer.config_context(dtype="float32"):
        model = SDPEmbedding(KERNEL, n_levels=2, tol=1e-4, residual_tol=1e-5, random_state=0).fit(X)
    double = SDPEmbedding(KERNEL, n_levels=2, random_state=0).fit(X)
    for ours, theirs in zip(model.levels_, double.levels_, strict=True):
        assert ours.certificate.lower <= theirs.certificate.upper
        assert theirs.certificate.lower <= ours.certificate.upper
    assert verify(model, X).holds(1e-3)


# --- the basis ----------------------------------------------------------------------------------------------------


def test_the_basis_is_one_whatever_vectors_a_decomposition_picks(monkeypatch):
    """Signs, and mixtures of vectors of equal sizes, are a library's own: no other machine may find another basis."""
    random = np.random.default_rng(0)
    weights, decompose = random.uniform(0.5, 2.0, 12), np.linalg.svd
    F = np.linalg.qr(random.standard_normal((12, 3)))[0] * [2.0, 1.0, 1.0]
    first = Complement.after(None, F / np.sqrt(weights)[:, None], weights)

    def other(left, full_matrices=True):
        U, sizes, V = decompose(left, full_matrices=full_matrices)
        mixed = np.eye(3)
        mixed[1:, 1:] = [[0.6, 0.8], [0.8, -0.6]]
        return -U @ mixed.T, sizes, -mixed @ V

    monkeypatch.setattr(np.linalg, "svd", other)
    again = Complement.after(None, F / np.sqrt(weights)[:, None], weights)
    np.testing.assert_allclose(again.basis, first.basis, atol=1e-14)
    np.testing.assert_allclose(first.basis, F / [2.0, 1.0, 1.0], atol=1e-14)


def test_coordinates_in_the_span_of_earlier_ones_add_nothing():
    random = np.random.default_rng(1)
    first = Complement.after(None, random.standard_normal((12, 2)), np.ones(12))
    inside = first.basis @ random.standard_normal((2, 2))
    for coordinates, rank in ((inside, 2), (np.column_stack([inside, random.standard_normal(12)]), 3)):
        widened = Complement.after(first.basis, coordinates, np.ones(12)).basis
        projection = widened @ widened.T
        np.testing.assert_allclose(projection @ projection, projection, atol=1e-13)
        assert np.trace(projection) == pytest.approx(rank, abs=1e-12)


@pytest.mark.filterwarnings("ignore:.* no room:UserWarning")
def test_a_hub_that_an_indefinite_matrix_leaves_no_room_takes_part_in_the_levels_beyond():
    """The diagonal of a level is that of its matrix, also where the first one is below zero; new points have it too."""
    random = np.random.default_rng(0)
    K = np.where(random.random((14, 14)) < 0.2, random.uniform(0.2, 1.0, (14, 14)), 0.0)
    K = np.maximum(K, K.T)
    K[0] = K[:, 0] = 1.0
    np.fill_diagonal(K, random.uniform(0.3, 1.2, 14))
    model = SDPEmbedding(Precomputed(), n_levels=2, tol=1e-9, random_state=0).fit(K)
    m = K.sum(axis=1)
    A = K / np.sqrt(np.outer(m, m)) - np.sqrt(np.outer(m, m)) / m.sum()
    P = np.eye(14) - (Q := np.linalg.qr(model.coordinates_)[0]) @ Q.T
    assert A[0, 0] < -0.1
    np.testing.assert_allclose(model.levels_[1].diagonal, np.maximum(np.diagonal(P @ A @ P), 0), atol=1e-14)
    np.testing.assert_allclose(model.transform(K), model.embedding_, atol=1e-4)
