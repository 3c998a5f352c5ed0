"""Landmarks: what each strategy chooses, the weights with which its choice stands for the sample, and what is left out."""

from __future__ import annotations

import pickle
import tracemalloc

import numpy as np
import pytest
from scipy.sparse import csr_array
from scipy.stats import chi2
from sklearn.base import clone
from sklearn.datasets import load_iris

import mercer
from mercer import (
    Gaussian,
    Geodesic,
    GramOperator,
    Landmarks,
    Laplacian,
    Linear,
    Polynomial,
    Precomputed,
    Sigmoid,
    SumOfSquaresDensity,
    config_context,
    nystrom,
    rp_cholesky,
)
from mercer.datasets import three_clusters
from mercer.landmarks import STRATEGIES, chooser

KERNEL = Gaussian(sigma=1.0)
every = pytest.mark.parametrize("strategy", STRATEGIES)
WITH_KERNEL = ["rpcholesky", "leverage", "greedy"]


@pytest.fixture(scope="module")
def X():
    return three_clusters(n_per_cluster=60, n_outliers=6)[0]


def fit(strategy, X, m=25, kernel=KERNEL, seed=0, **parameters):
    return Landmarks(m, strategy=strategy, kernel=kernel, random_state=seed).fit(X, **parameters)


def left_out(K, index, w):
    """The share of the weighted trace, from dense matrices."""
    block = K[:, index] @ np.linalg.pinv(K[np.ix_(index, index)], hermitian=True, rcond=1e-13) @ K[index]
    return w @ np.diag(K - block) / (w @ np.diag(K))


# --- what every choice promises -----------------------------------------------------------------------------------


@every
@pytest.mark.parametrize("weighted", [False, True])
def test_weights_are_the_masses_that_are_nearest_and_the_trace_is_what_completion_leaves_out(strategy, weighted, X):
    w = np.random.default_rng(1).uniform(0.2, 3.0, len(X)) if weighted else np.ones(len(X))
    model = fit(strategy, X, sample_weight=w)
    K, chosen = KERNEL(X), model.indices_
    assert chosen.size == np.unique(chosen).size == 25
    assert np.all(np.diff(chosen) > 0)
    nearest = np.argmin(np.linalg.norm(X[:, None] - X[chosen], axis=2), axis=1)  # as far as in the feature space
    np.testing.assert_allclose(model.weights_, np.bincount(nearest, w, 25), rtol=1e-12)
    assert model.weights_.sum() == pytest.approx(w.sum(), rel=1e-12)
    assert model.share_left_out_ == pytest.approx(left_out(K, chosen, w), abs=1e-10)


@every
def test_the_trace_left_out_bounds_the_completion_in_every_norm(strategy, X):
    model, K = fit(strategy, X), KERNEL(X)
    residual = K - nystrom(GramOperator(KERNEL, X), model.indices_).to_dense()
    bound = model.share_left_out_ * np.trace(K)
    assert np.linalg.eigvalsh(residual)[0] > -1e-10
    for order in (2, "fro", "nuc"):
        assert np.linalg.norm(residual, order) <= bound * (1 + 1e-9)
    assert np.linalg.norm(residual, "nuc") == pytest.approx(bound, rel=1e-9)  # the residual is psd


@every
def test_more_landmarks_leave_less(strategy, X):
    left = [np.mean([fit(strategy, X, m, seed=seed).share_left_out_ for seed in range(4)]) for m in (10, 30, 90)]
    assert left[0] > left[1] > left[2]


@every
def test_all_rows_leave_nothing_and_keep_their_weights(strategy, X):
    w = np.linspace(1, 2, len(X))
    model = fit(strategy, X, 10_000, sample_weight=w)
    np.testing.assert_array_equal(model.indices_, np.arange(len(X)))
    np.testing.assert_allclose(model.weights_, w, rtol=1e-14)
    assert model.share_left_out_ < 1e-12


@every
def test_rows_of_weight_zero_are_never_chosen_and_units_do_not_matter(strategy, X):
    w = np.where(np.arange(len(X)) % 3, 1.0 + np.arange(len(X)) % 2, 0.0)
    model = fit(strategy, X, sample_weight=w)
    assert np.all(w[model.indices_] > 0)
    for unit in (4.0, 2.0**-600):
        other = fit(strategy, X, sample_weight=unit * w)
        np.testing.assert_array_equal(other.indices_, model.indices_)
        np.testing.assert_allclose(other.weights_, unit * model.weights_, rtol=1e-12)
        assert other.share_left_out_ == pytest.approx(model.share_left_out_)
    alone = fit(strategy, X[w > 0], sample_weight=w[w > 0])
    np.testing.assert_array_equal(np.flatnonzero(w > 0)[alone.indices_], model.indices_)


@every
def test_seeds_decide(strategy, X):
    first, again, other = (fit(strategy, X, seed=seed) for seed in (0, 0, 5))
    np.testing.assert_array_equal(first.indices_, again.indices_)
    assert np.array_equal(first.indices_, other.indices_) == (strategy == "greedy")


@every
def test_a_rank_below_the_number_is_filled_up(strategy, X):
    """Three features explain everything: the landmarks are as many as asked for all the same."""
    model = fit(strategy, X, 20, Polynomial(degree=1, gamma=1.0))
    assert np.unique(model.indices_).size == 20
    assert model.share_left_out_ < 1e-12
    nothing = (
        fit(strategy, X, 20, Linear())
        if strategy == "k-means"
        else fit(strategy, np.zeros((30, 30)), 20, Precomputed())
    )
    assert nothing.indices_.size == 20
    assert nothing.weights_.sum() == pytest.approx(len(X) if strategy == "k-means" else 30)


@pytest.mark.parametrize("strategy", ["uniform", *WITH_KERNEL])
def test_a_precomputed_kernel_is_its_matrix(strategy, X):
    stored = fit(strategy, KERNEL(X), kernel=Precomputed())
    direct = fit(strategy, X)
    np.testing.assert_array_equal(stored.indices_, direct.indices_)
    np.testing.assert_allclose(stored.weights_, direct.weights_)
    w = np.arange(len(X)) % 2 + 0.0
    np.testing.assert_array_equal(
        fit(strategy, KERNEL(X), kernel=Precomputed(), sample_weight=w).indices_,
        fit(strategy, X, sample_weight=w).indices_,
    )


@every
def test_copies_share_what_is_nearest(strategy):
    """Rows that are equal count as one row of their weight, whoever of them is chosen."""
    X = np.repeat(np.arange(6.0)[:, None] * 3, 5, axis=0)
    model = fit(strategy, X, 6)
    assert model.weights_.sum() == pytest.approx(30)
    if strategy not in ("uniform", "leverage"):  # which draw a copy of a row as they draw the row
        np.testing.assert_allclose(model.weights_, 5.0)
        assert model.share_left_out_ < 1e-12


@every
def test_single_precision_and_tensors_choose_alike(strategy, X):
    torch = pytest.importorskip("torch")
    ours, theirs = fit(strategy, X), fit(strategy, torch.asarray(X))
    np.testing.assert_array_equal(theirs.indices_.numpy(), ours.indices_)
    np.testing.assert_allclose(theirs.weights_.numpy(), ours.weights_)
    with config_context(dtype="float32"):
        single = fit(strategy, X)
    assert single.share_left_out_ == pytest.approx(ours.share_left_out_, abs=0.1)
    assert single.weights_.sum() == pytest.approx(len(X))


# --- what the strategies are --------------------------------------------------------------------------------------


def test_greedy_is_cholesky_with_complete_pivoting_one_pivot_at_a_time(X):
    K = Laplacian(sigma=2.0)(X)
    residual, F, pivots = np.diag(K).copy(), np.zeros((len(X), 0)), []
    for _ in range(100):
        pivots.append(int(np.argmax(residual)) if pivots else None)
        if pivots[0] is None:
            pivots = [
                int(STRATEGIES["greedy"](GramOperator(Laplacian(sigma=2.0), X), 1, np.ones(len(X)), None)[0])
            ]  # all tie
        column = K[:, pivots[-1]] - F @ F[pivots[-1]]
        F = np.column_stack([F, column / np.sqrt(column[pivots[-1]])])
        residual = residual - F[:, -1] ** 2
    found = STRATEGIES["greedy"](GramOperator(Laplacian(sigma=2.0), X), 100, np.ones(len(X)), None)
    np.testing.assert_array_equal(found, pivots)


def test_greedy_takes_the_farthest_points_of_a_line():
    X = np.array([0.0, 0.1, 0.2, 5.0, 9.9, 10.0])[:, None]
    model = fit("greedy", X, 3, Gaussian(sigma=3.0))
    assert {3} < set(model.indices_)
    assert len({0, 1, 2} & set(model.indices_)) == len({4, 5} & set(model.indices_)) == 1


def test_rpcholesky_takes_the_pivots_of_the_factorisation(X):
    pivots = rp_cholesky(GramOperator(KERNEL, X), 25, np.random.default_rng(0)).landmarks
    np.testing.assert_array_equal(fit("rpcholesky", X).indices_, np.sort(pivots))


def test_a_weighted_draw_is_that_of_repeated_rows():
    """First pivots of 600 draws with weights 1, 2, 3, 0: their frequencies, by a chi-squared test."""
    gram = GramOperator(Precomputed(), np.eye(4))
    rng = np.random.default_rng(0)
    first = [int(rp_cholesky(gram, 1, rng, weights=[1.0, 2.0, 3.0, 0.0]).landmarks[0]) for _ in range(600)]
    counts = np.bincount(first, minlength=4)
    assert counts[3] == 0
    expected = 600 * np.array([1, 2, 3]) / 6
    assert np.sum((counts[:3] - expected) ** 2 / expected) < chi2.ppf(0.999, 2)
    assert rp_cholesky(gram, 4, 0, weights=[1.0, 2.0, 3.0, 0.0]).rank == 3  # it ends where no row is left


def test_leverage_scores_are_the_exact_ones_where_the_sample_is_everything(X):
    """With all rows as the sample the scores are w [K(WK + λ)⁻¹]ᵢᵢ."""
    from mercer.landmarks.leverage import _scores

    K, w = KERNEL(X), np.random.default_rng(2).uniform(0.5, 2, len(X))
    everything = np.arange(len(X))
    scores, rank = _scores(GramOperator(KERNEL, X), everything, w, everything, np.sqrt(w), 40)
    scaled = np.sqrt(w)[:, None] * K * np.sqrt(w)
    values = np.linalg.eigvalsh(scaled)
    ridge = values[:-rank].sum() / rank
    exact = np.diag(scaled @ np.linalg.inv(scaled + ridge * np.eye(len(X))))
    np.testing.assert_allclose(scores, exact, rtol=1e-6)


def test_leverage_finds_the_lonely_points(X):
    """Six points far from 2000 others: uniform draws miss them, scores and pivots do not."""
    rng = np.random.default_rng(0)
    far = 20.0 * np.arange(1, 7)[:, None] * [1.0, -1.0]
    data = np.vstack([rng.standard_normal((2000, 2)) * 0.3, far])
    found = {name: np.sum([fit(name, data, 30, seed=k).indices_ >= 2000 for k in range(5)]) for name in STRATEGIES}
    assert found["rpcholesky"] == found["greedy"] == 30
    assert found["leverage"] >= 10
    assert found["uniform"] <= 3


def test_k_means_takes_points_near_the_centres_and_the_weights_of_clusters():
    rng = np.random.default_rng(3)
    centres = np.array([[0.0, 0.0], [50.0, 0.0], [0.0, 50.0]])
    X = np.vstack([c + rng.standard_normal((size, 2)) for c, size in zip(centres, (50, 100, 150), strict=True)])
    model = fit("k-means", X, 3, Gaussian(sigma=5.0))
    assert sorted(model.weights_) == [50, 100, 150]
    for c in centres:
        assert np.linalg.norm(X[model.indices_] - c, axis=1).min() < 0.5
    heavy = np.where(np.arange(300) < 50, 1000.0, 1.0)
    assert np.sum(fit("k-means", X, 12, sample_weight=heavy).indices_ < 50) >= 6


@every
def test_nearest_is_meant_in_the_feature_space(strategy, X):
    """Under a kernel whose k(x, x) differs, the largest affinity is not the nearest landmark (RKHS (112))."""
    data, kernel = X + 3.0, Polynomial(degree=2, gamma=1.0)
    model, K = fit(strategy, data, 15, kernel), Polynomial(degree=2, gamma=1.0)(data)
    own = np.diag(K)
    distances = own[:, None] + own[model.indices_] - 2 * K[:, model.indices_]
    np.testing.assert_allclose(model.weights_, np.bincount(np.argmin(distances, axis=1), minlength=15))
    assert not np.array_equal(np.argmin(distances, axis=1), np.argmax(K[:, model.indices_], axis=1))


def test_kernels_that_are_not_positive_semi_definite(X):
    """Rows and weights are given all the same; of the trace nothing is claimed."""
    for strategy in ("uniform", "k-means", "rpcholesky", "greedy"):
        for kernel in (Sigmoid(gamma=1.0, coef0=-1.0), Geodesic(8, connect=True)):
            model = fit(strategy, X, 20, kernel)
            assert model.share_left_out_ is None
            assert np.unique(model.indices_).size == 20
            assert model.weights_.sum() == pytest.approx(len(X))
    with pytest.raises(
        ValueError,
        match=r"^strategy='leverage' needs a positive semi-definite kernel, which Geodesic\(.*\) .* is not on these points: choose another strategy\.$",
    ):
        fit("leverage", X, 20, Geodesic(8, connect=True))


def test_sparse_affinities_share_rows_that_no_landmark_knows(X):
    K = KERNEL(X)
    sparse = csr_array(np.where(K > 0.6, K, 0.0))
    for strategy in ("uniform", *WITH_KERNEL):
        model = fit(strategy, sparse, 20, Precomputed())
        assert model.indices_.size == 20
        assert model.weights_.sum() == pytest.approx(len(X))
        assert model.weights_.min() > 0


def test_large_samples_are_clustered_in_batches(monkeypatch, X):
    from mercer.landmarks import strategies

    monkeypatch.setattr(strategies, "_ALL_AT_ONCE", 0)
    model = fit("k-means", X, 20)
    assert model.indices_.size == 20
    assert model.share_left_out_ < 3 * fit("k-means", X, 20).share_left_out_ + 0.05


@pytest.mark.parametrize("strategy", ["rpcholesky", "greedy"])
def test_a_factor_that_does_not_fit_is_that_of_a_part(strategy):
    """20 000 × 50 numbers take 8 MB; half of 4 MB holds the factor of 5000 rows, drawn by their weights."""
    data = np.random.default_rng(0).normal(size=(20_000, 2))
    w = np.where(np.arange(20_000) < 15_000, 0.0, 1.0) + 1e-9
    with config_context(memory_limit="4MB"):
        tracemalloc.start()
        model = fit(strategy, data, 50, sample_weight=w)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    assert peak < 6e6
    assert model.indices_.size == 50
    assert np.mean(model.indices_ >= 15_000) > 0.9
    assert model.weights_.sum() == pytest.approx(w.sum())
    assert model.share_left_out_ < 2 * fit(strategy, data, 50, sample_weight=w).share_left_out_ + 0.01


# --- the estimator ------------------------------------------------------------------------------------------------


def test_a_strategy_of_ones_own(X):
    seen = {}

    def heaviest(gram, n_landmarks, weights, rng):
        seen.update(gram=gram, weights=weights, rng=rng)
        return np.argsort(-weights)[:n_landmarks]

    w = np.arange(len(X)) + 1.0
    model = fit(heaviest, X, 9, sample_weight=w)
    np.testing.assert_array_equal(model.indices_, np.arange(len(X))[-9:])
    assert seen["weights"].sum() == pytest.approx(1.0)
    np.testing.assert_array_equal(seen["gram"].points, X)
    assert isinstance(seen["rng"], np.random.Generator)


def test_parameters_copies_and_pickles(X):
    model = Landmarks(7, strategy="greedy", kernel=Gaussian(sigma=2.0))
    assert model.get_params()["kernel__sigma"] == 2.0
    copy = clone(model).set_params(kernel__sigma=1.0)
    assert model.kernel.sigma == 2.0
    again = pickle.loads(pickle.dumps(copy.fit(X)))
    np.testing.assert_array_equal(again.indices_, fit("greedy", X, 7).indices_)
    assert len(pickle.dumps(again)) < X.nbytes + 5000
    assert Landmarks(7).fit(X).kernel_.sigma == pytest.approx(Gaussian().resolve(X).sigma)


def test_data_frames():
    frames = pytest.importorskip("pandas")
    data = load_iris().data
    model = Landmarks(9, random_state=0).fit(frames.DataFrame(data, columns=list("abcd")))
    np.testing.assert_array_equal(model.indices_, Landmarks(9, random_state=0).fit(data).indices_)
    assert list(model.feature_names_in_) == list("abcd")


@pytest.mark.parametrize(
    ("parameters", "sentence"),
    [
        ({"n_landmarks": 0}, r"^n_landmarks=0 must be a whole number of at least 1\.$"),
        ({"n_landmarks": 2.5}, r"^n_landmarks=2.5 must be a whole number of at least 1\.$"),
        (
            {"strategy": "random"},
            r"^strategy='random' must be one of 'rpcholesky', 'uniform', 'k-means', 'leverage', 'greedy', or a function that chooses rows\.$",
        ),
        ({"strategy": lambda *_: [0, 0]}, r"^The strategy must return at most 5 row numbers, each once\.$"),
        ({"strategy": lambda *_: np.arange(6)}, r"^The strategy must return at most 5 row numbers, each once\.$"),
        (
            {"strategy": lambda *_: [0, 999]},
            r"^The strategy must return row numbers between 0 and 185 in one dimension\.$",
        ),
        (
            {"strategy": lambda *_: [0.5]},
            r"^The strategy must return row numbers between 0 and 185 in one dimension\.$",
        ),
        ({"random_state": "x"}, r"^random_state='x' must be None"),
    ],
)
def test_what_cannot_be_is_refused_in_one_sentence(parameters, sentence, X):
    with pytest.raises(ValueError, match=sentence):
        Landmarks(**{"n_landmarks": 5, **parameters}).fit(X)


def test_numbers_beyond_the_largest_are_named(X):
    with pytest.raises(
        ValueError, match=r"^Polynomial\(.*\) overflows at row 0 of X: bring the points, or its parameters"
    ):
        Landmarks(5, kernel=Polynomial(degree=40, gamma=1.0)).fit(X * 1e4 + 1e4)
    with pytest.raises(
        ValueError, match=r"^A landmark stands for more weight than the largest number: divide sample_weight"
    ):
        fit("greedy", X, 3, sample_weight=np.full(len(X), 1e308))
    light = fit("greedy", X, 3, sample_weight=np.full(len(X), 5e-324))
    assert light.weights_.sum() == pytest.approx(len(X) * 5e-324)


def test_k_means_of_a_matrix_is_refused(X):
    with pytest.raises(
        ValueError,
        match=r"^strategy='k-means' needs points, not a precomputed kernel matrix: choose another strategy\.$",
    ):
        fit("k-means", KERNEL(X), kernel=Precomputed())


def test_densities_take_landmarks_for_their_support(X):
    chooser = Landmarks(12, strategy="greedy", kernel=KERNEL)
    model = SumOfSquaresDensity(Gaussian(2.0), support=chooser, random_state=0, tol=1e-3).fit(X)
    expected = X[chooser.fit(X).indices_]
    np.testing.assert_array_equal(np.sort(model.support_, axis=0), np.sort(expected, axis=0))


@pytest.mark.parametrize("strategy", ["rpcholesky", "k-means", "uniform", "greedy", "leverage"])
def test_rows_of_a_file_are_chosen_by_their_weights(strategy, monkeypatch):
    rng = np.random.default_rng(3)
    X, weights = rng.normal(size=(150, 3)), 10.0 ** rng.uniform(-6, 6, 150)
    chosen = Landmarks(20, kernel=Gaussian(1.5), strategy=strategy, random_state=0)
    plain = chosen.fit(X, sample_weight=weights).share_left_out_
    of_file = Landmarks(20, kernel=Gaussian(1.5), strategy=strategy, random_state=0)
    of_file.fit(mercer.open_rows(X), sample_weight=weights)
    np.testing.assert_array_equal(of_file.indices_, chosen.indices_)
    monkeypatch.setattr("mercer.landmarks.chooser._MOST_OF_A_SOURCE", 60)  # of 150, drawn by weight
    assert of_file.fit(mercer.open_rows(X), sample_weight=weights).share_left_out_ < 10 * plain


def test_weights_of_a_part_that_is_drawn_are_those_of_all_rows():
    weights = np.concatenate([10.0 ** np.random.default_rng(1).uniform(-6, 6, 200), np.zeros(3)])
    for count in (1, 2, 50, 150, 199):
        sure = chooser._certain(weights, count)
        assert np.minimum(weights / sure, 1.0).sum() == pytest.approx(count, rel=1e-9)
