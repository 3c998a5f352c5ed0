"""Without arguments: what a newcomer's data meets, hostile data included. A proved answer, or one sentence."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from scipy import sparse
from sklearn.datasets import load_digits, load_iris, make_moons
from sklearn.neighbors import NearestNeighbors
from sklearn.svm import SVC

import mercer.support as support
from mercer import (
    DiffusionMaps,
    Gaussian,
    Precomputed,
    QuadratureSparsifier,
    SDPEmbedding,
    SelfTuning,
    config_context,
    verify,
)
from mercer.embedding.default_kernel import default_kernel
from mercer.operators.diffusion import DegenerateKernelError

_BOTH = pytest.mark.parametrize("Estimator", [SDPEmbedding, DiffusionMaps])


def cloud(n=120, d=3, seed=0):
    return np.random.default_rng(seed).standard_normal((n, d))


def draws(high, shape, seed=0):
    return np.random.default_rng(seed).integers(0, high, shape)


X = cloud()

SAMPLES = {
    "two points": X[:2],
    "three points": X[:3],
    "five points": X[:5],
    "as many as neighbours": X[:15],
    "one more": X[:16],
    "two more": X[:17],
    "iris, with a row twice": load_iris().data,
    "moons": make_moons(200, noise=0.05, random_state=0)[0],
    "digits": load_digits().data[:150],
    "lists": X[:40].tolist(),
    "whole numbers": draws(10, (100, 3)),
    "truth values": draws(2, (100, 3)).astype(bool),
    "single precision": X.astype(np.float32),
    "a regular line, all distances tied": np.arange(100.0)[:, None],
    "a circle": np.exp(2j * np.pi * np.arange(60) / 60).view(float).reshape(-1, 2),
    "a regular grid": np.stack(np.meshgrid(*2 * [np.arange(12.0)]), -1).reshape(-1, 2),
    "categories, one column each": np.eye(5)[draws(5, 60)],
    "answers to eight questions": draws(2, (150, 8)).astype(float),
    "all corners of a simplex": np.eye(30),
    "a thousand copies of one row": np.vstack([X, np.repeat(X[:1], 1000, axis=0)]),
    "five places": np.repeat(X[:5], 40, axis=0),
    "two places": np.repeat(X[:2], 30, axis=0),
    "nearly twins": np.vstack([X, X + 1e-9]),
    "a column that is constant": np.column_stack([X, np.full(120, 1e9)]),
    "far from zero": X + 1e12,
    "an absurd unit": 1e300 * X,
    "another": 1e-300 * X,
    "outliers a million away": np.vstack([X, 1e6 * cloud(12, seed=1)]),
    "one point far from all": np.vstack([X, [[1e6, 0.0, 0.0]]]),
    "one point farther than squares reach": np.vstack([X, [[1e150, 0.0, 0.0]]]),
    "two far clusters": np.vstack([X, X + 1e6]),
    "two far clusters of three": np.vstack([X[:3], X[:3] + 1e6]),
    "many far clusters": np.vstack([0.1 * cloud(20, 2, k) + 100 * k for k in range(8)]),
    "heavy tails": np.random.default_rng(0).standard_cauchy((100, 3)),
    "mostly zero": np.where(draws(10, (120, 3), 1) < 9, 0.0, X),
    "more columns than rows": cloud(40, 2000),
}


@pytest.mark.filterwarnings(
    "ignore:n_components=2 exceeds the number of dimensions",  # two places have one
    r"ignore:1 of 1\d\d points are isolated",  # the point far from all
)
@pytest.mark.parametrize("name", SAMPLES)
def test_every_sample_has_finite_coordinates_and_proofs(name):
    data = SAMPLES[name]
    model, maps = SDPEmbedding(random_state=0).fit(data), DiffusionMaps().fit(data)
    for each in (model, maps):
        assert np.isfinite(each.embedding_).all()
        assert len(each.embedding_) == len(data)
    size = np.abs(model.embedding_).max()
    assert np.abs(model.transform(np.array(data)) - model.embedding_).max() <= 1e-5 * size
    assert np.isfinite(model.novelty(data)).all()
    assert all(level.certificate.holds(1e-6) for level in model.levels_)
    assert verify(model, data, random_state=1).holds(2e-6)


@pytest.mark.filterwarnings(r"ignore:\d+ of \d+ points are isolated")
def test_no_sample_is_isolated_or_alike_as_a_whole():
    """The neighbour at whose distance the least scale is found has an affinity of 1/e: not zero, and not one."""
    for name, data in SAMPLES.items():
        places = np.unique(np.array(data, float), axis=0)
        affinities = default_kernel().resolve(places)(places)
        assert np.isclose(affinities, np.exp(-1), rtol=1e-12).any(), name


@_BOTH
@pytest.mark.parametrize(
    ("data", "error", "sentence"),
    [
        (np.ones((50, 2)), DegenerateKernelError, r"^All points are equal: there is nothing to embed\.$"),
        (np.ones((100_000, 1)), DegenerateKernelError, r"^All points are equal: there is nothing to embed\.$"),
        (X[:1], ValueError, "1 sample.* minimum of 2 is required"),
        (np.where(X[3, 1] == X, np.nan, X), ValueError, "contains NaN"),
        (sparse.csr_matrix(X), TypeError, "Sparse data was passed.* dense data is required"),
    ],
    ids=["equal", "many equal", "one", "nan", "sparse"],
)
def test_what_cannot_be_embedded_is_refused_in_one_sentence(Estimator, data, error, sentence):
    with pytest.raises(error, match=sentence):
        Estimator().fit(data)


@_BOTH
def test_a_point_that_no_other_sees_is_named(Estimator):
    data = SAMPLES["one point far from all"]
    with pytest.warns(UserWarning, match=r"^1 of 121 points are isolated under .*: row 120\. Remove them") as caught:
        model = Estimator(random_state=0).fit(data)
    assert [warning.filename for warning in caught] == [__file__]
    alone = Estimator(random_state=0).fit(X)
    if Estimator is SDPEmbedding:  # the others lie as they do without it
        assert model.certificate_.lower == pytest.approx(alone.certificate_.lower + model.diagonal_[-1], rel=0.02)


# --- what None means ----------------------------------------------------------------------------------------------


MEANT = {SDPEmbedding: default_kernel, DiffusionMaps: SelfTuning}


def graph_by_hand(X, kernel):
    """The self-tuned neighbour graph, by scikit-learn and a formula; of distinct points without ties."""
    distances, neighbours = NearestNeighbors(n_neighbors=kernel.n_neighbors + 1).fit(X).kneighbors(X)
    s, rows = distances[:, kernel.scale_neighbor], np.repeat(np.arange(len(X)), kernel.n_neighbors + 1)
    own, other = s[rows], s[neighbours.ravel()]
    scales = np.minimum(own, other) if kernel.pair_scale == "smaller" else np.sqrt(own * other)
    values = np.exp(-((distances.ravel() / scales) ** 2))
    A = sparse.csr_array((values, (rows, neighbours.ravel())), shape=2 * (len(X),))
    return A.maximum(A.T)


def test_the_embedding_is_that_of_the_neighbour_graph():
    model = SDPEmbedding(random_state=0).fit(X)
    assert len(model.levels_) > 1
    given = SDPEmbedding(Precomputed(), n_levels=len(model.levels_), random_state=0)
    given.fit(graph_by_hand(X, default_kernel()))
    for ours, theirs in zip(model.levels_, given.levels_, strict=True):
        assert ours.certificate.lower <= theirs.certificate.upper * (1 + 1e-12)
        assert theirs.certificate.lower <= ours.certificate.upper * (1 + 1e-12)
        np.testing.assert_allclose(ours.eigenvalues, theirs.eigenvalues, atol=1e-4)
    maps, theirs = DiffusionMaps(n_components=4).fit(X), DiffusionMaps(Precomputed(), n_components=4)
    np.testing.assert_allclose(maps.embedding_, theirs.fit(graph_by_hand(X, SelfTuning())).embedding_, atol=1e-9)


@_BOTH
def test_none_is_the_self_tuning_kernel_and_the_papers_setting_is_a_word_away(Estimator):
    given, left_out = (Estimator(kernel, random_state=0).fit(X) for kernel in (MEANT[Estimator](), None))
    assert isinstance(left_out.kernel_, SelfTuning)
    np.testing.assert_array_equal(given.embedding_, left_out.embedding_)
    papers = Estimator(Gaussian("median"), random_state=0).fit(X)
    assert papers.kernel_.sigma == Gaussian().resolve(X).sigma
    assert Estimator is DiffusionMaps or len(papers.levels_) == 1


@_BOTH
def test_the_docstring_says_what_none_means(Estimator):
    plain = SelfTuning().get_params()
    special = {name: value for name, value in MEANT[Estimator]().get_params().items() if value != plain[name]}
    call = ", ".join(f"{name}={value!r}" for name, value in special.items()).replace("'", '"')
    assert f"``SelfTuning({call})``" in Estimator.__doc__


def test_two_far_clusters_are_two_signs():
    data = SAMPLES["two far clusters"]
    first = SDPEmbedding(random_state=0).fit(data).coordinates_
    assert first.shape == (240, 1)
    signs = np.sign(first[:, 0])
    assert set(signs[:120]) == {-signs[-1]}
    assert set(signs[120:]) == {signs[-1]}


# --- invariance ---------------------------------------------------------------------------------------------------


@_BOTH
def test_motions_units_and_the_order_of_rows_do_not_matter(Estimator):
    turn, order = np.linalg.qr(cloud(3, seed=2))[0], np.random.default_rng(3).permutation(120)
    parameters = {"random_state": 0} | ({"residual_tol": 1e-8} if Estimator is SDPEmbedding else {})
    reference = Estimator(**parameters).fit(X).embedding_
    for moved in (X @ turn + 3.0, 1e6 * X, 1e-6 * X):
        np.testing.assert_allclose(Estimator(**parameters).fit(moved).embedding_, reference, atol=1e-5)
    np.testing.assert_allclose(Estimator(**parameters).fit(X[order]).embedding_, reference[order], atol=1e-5)


# --- copies and weights -------------------------------------------------------------------------------------------


@pytest.fixture
def keep_copies(monkeypatch):
    """Solve on every copy of a row."""
    return lambda: monkeypatch.setattr(support, "_COPIES", np.inf)


def test_copies_are_solved_once_and_the_solution_is_that_of_all(keep_copies):
    data = np.repeat(X[:50], draws(12, 50) + 1, axis=0)
    once, maps = SDPEmbedding(random_state=0, residual_tol=1e-8).fit(data), DiffusionMaps(alpha=0.5).fit(data)
    assert len(once.landmarks_) == 50
    assert once.sample_weight_.sum() == len(data)
    keep_copies()
    every, all_maps = SDPEmbedding(random_state=0, residual_tol=1e-8).fit(data), DiffusionMaps(alpha=0.5).fit(data)
    assert every.landmarks_ is None
    assert once.certificate_.lower <= every.certificate_.upper
    assert every.certificate_.lower <= once.certificate_.upper
    np.testing.assert_allclose(once.embedding_, every.embedding_, atol=1e-5 * np.abs(every.embedding_).max())
    np.testing.assert_allclose(once.novelty(X + 0.1), every.novelty(X + 0.1), rtol=1e-12)
    np.testing.assert_allclose(abs(maps.embedding_), abs(all_maps.embedding_), atol=1e-9)  # signs may turn
    shares = np.add.reduceat(all_maps.stationary_, maps.landmarks_)  # copies lie together here
    np.testing.assert_allclose(maps.stationary_, shares, rtol=1e-12)
    np.testing.assert_allclose(abs(maps.transform(X)), abs(all_maps.transform(X)), atol=1e-9)
    assert maps.stationary_.sum() == pytest.approx(1.0)


@_BOTH
def test_a_table_of_categories_needs_no_square_of_its_length(Estimator):
    """100 000 rows of nine kinds: every pair of them would be 9 GB."""
    data = draws(3, (100_000, 2)).astype(float)
    with config_context(memory_limit="64 MB"):
        model = Estimator(random_state=0).fit(data)
    assert len(np.unique(model.embedding_.round(6), axis=0)) == 9


def test_a_few_copies_are_left_as_they_are():
    assert SDPEmbedding(random_state=0).fit(SAMPLES["iris, with a row twice"]).landmarks_ is None


def test_weights_are_copies_and_rows_of_no_weight_are_not_there():
    w = draws(4, 120, seed=4)
    model = SDPEmbedding(random_state=0, residual_tol=1e-9).fit(X, sample_weight=w)
    repeated = SDPEmbedding(random_state=0, residual_tol=1e-9).fit(np.repeat(X, w, axis=0))
    np.testing.assert_allclose(np.repeat(model.embedding_, w, axis=0), repeated.embedding_, atol=1e-5)
    without = SDPEmbedding(random_state=0, residual_tol=1e-9).fit(X[w > 0], sample_weight=w[w > 0])
    np.testing.assert_array_equal(model.embedding_[w > 0], without.embedding_)
    np.testing.assert_array_equal(model.embedding_[w == 0], without.transform(X[w == 0]))
    assert verify(model, X).holds(2e-6)


# --- what else a person asks for ----------------------------------------------------------------------------------


@pytest.mark.parametrize("landmarks", [np.arange(0, 120, 2), QuadratureSparsifier(n_nodes=40)], ids=["rows", "nodes"])
def test_landmarks(landmarks):
    model = SDPEmbedding(landmarks=landmarks, random_state=0).fit(X)
    assert model.certificate_.holds(1e-6)
    np.testing.assert_allclose(model.transform(X), model.embedding_, atol=1e-5 * np.abs(model.embedding_).max())
    assert verify(model, X).holds(2e-6)


def test_warm_starts_and_checkpoints_go_on(tmp_path):
    kept = tmp_path / "kept.npz"
    model = SDPEmbedding(warm_start=True, checkpoint=kept, random_state=0).fit(X)
    again = SDPEmbedding(checkpoint=kept, random_state=5).fit(X)
    np.testing.assert_allclose(again.embedding_, model.embedding_, atol=1e-6)
    steps = model.n_iter_
    assert model.set_params(checkpoint=None).fit(X).n_iter_ < steps
    with pytest.raises(ValueError, match="is of other data, weights, kernel or diagonal: delete it"):
        SDPEmbedding(checkpoint=kept).fit(X + 0.1 * cloud(seed=9))


def test_budgets_are_kept_and_say_so():
    with pytest.warns(UserWarning, match="The product budget ran out") as caught:
        model = SDPEmbedding(max_products=50, random_state=0).fit(X)
    assert len(caught) == 1
    assert model.certificate_.relative_gap > 1e-6
    assert SDPEmbedding(certify=False, random_state=0).fit(X).certificate_ is None


@_BOTH
def test_a_pickled_model_is_the_same_everywhere(Estimator):
    model, new = Estimator(random_state=0).fit(X), np.vstack([X[:5], X[:5] + 0.3, X[:5] + 30.0])
    copy = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(copy.transform(new), model.transform(new))
    assert repr(copy.kernel_) == repr(model.kernel_)


def test_the_learned_kernel_is_one_for_a_classifier():
    data, labels = make_moons(160, noise=0.05, random_state=0)
    model = SDPEmbedding(random_state=0).fit(data[::2])
    machine = SVC(kernel=model.learned_kernel).fit(data[::2], labels[::2])
    assert machine.score(data[1::2], labels[1::2]) > 0.97


def test_the_farther_a_point_the_more_novel():
    model = SDPEmbedding(random_state=0).fit(X)
    steps = [model.novelty(X[:1] + distance)[0] for distance in (0.0, 3.0, 1e2, 1e4, 1e6, 1e100, 1e200)]
    assert np.all(np.diff(steps) > 0)
    assert np.isfinite(steps).all()
    assert np.isfinite(model.transform(X[:1] + np.array([[3.0], [1e6], [1e200]]))).all()


def test_tensors_in_tensors_out():
    torch = pytest.importorskip("torch")
    T, new = torch.asarray(X), X[:9] + 0.3
    ours, theirs = (SDPEmbedding(random_state=0, residual_tol=1e-8).fit(data) for data in (X, T))
    assert isinstance(theirs.embedding_, torch.Tensor)
    np.testing.assert_allclose(theirs.embedding_, ours.embedding_, atol=1e-5)
    np.testing.assert_allclose(theirs.transform(torch.asarray(new)), ours.transform(new), atol=1e-5)
    assert verify(theirs, T).holds(2e-6)
    maps = DiffusionMaps().fit(torch.asarray(SAMPLES["five places"]))
    np.testing.assert_allclose(maps.embedding_, DiffusionMaps().fit(SAMPLES["five places"]).embedding_, atol=1e-9)
    model = SDPEmbedding(random_state=0).fit(torch.asarray(SAMPLES["five places"]))
    assert isinstance(model.landmarks_, torch.Tensor)
    assert verify(model, torch.asarray(SAMPLES["five places"])).holds(1e-6)
