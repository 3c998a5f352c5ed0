"""Maximum variance unfolding: facts known in closed form, the graph, weights, landmarks, new points, bad input."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from scipy.sparse import csr_array
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import pairwise_distances
from sklearn.neighbors import kneighbors_graph

import mercer
from mercer import MaximumVarianceUnfolding, verify
from mercer.datasets import swiss_roll
from mercer.embedding.spread_landmarks import spread_landmarks
from mercer.solvers.solution import Status

KINDS = ("kept", "not exceeded")
every_kind = pytest.mark.parametrize("distances", KINDS)


@pytest.fixture(scope="module")
def roll():
    return swiss_roll(60)


@pytest.fixture(scope="module")
def fitted(roll):
    """A model of each kind, which no test changes."""
    return {kind: MaximumVarianceUnfolding(5, distances=kind).fit(roll[0]) for kind in KINDS}


def pair_lengths(model, X):
    i, j = model.pairs_.T
    embedded = np.linalg.norm(model.coordinates_[i] - model.coordinates_[j], axis=1)
    return embedded, np.linalg.norm(X[i] - X[j], axis=1)


# --- known answers ----------------------------------------------------------------------------------------------------


@every_kind
def test_a_bent_wire_is_straightened(distances):
    """Points on a spiral, each linked to the next: the optimum is a straight line of the same steps."""
    t = np.linspace(0, 12, 40)
    X = np.stack([t * np.cos(t), t * np.sin(t)], axis=1)
    steps = np.linalg.norm(np.diff(X, axis=0), axis=1)
    graph = csr_array((steps, (np.arange(39), np.arange(1, 40))), shape=(40, 40))
    model = MaximumVarianceUnfolding(
        metric="precomputed", distances=distances, tol=1e-6, distance_tol=1e-4, n_components=1
    ).fit(graph)
    line = np.concatenate([[0.0], np.cumsum(steps)])
    longest = 1.0 if distances == "not exceeded" else 1 + 1e-4
    truth = longest**2 * ((line - line.mean()) ** 2).sum()
    assert model.certificate_.lower <= truth * (1 + 1e-12)
    assert truth <= model.certificate_.upper
    assert model.certificate_.holds(1e-6)
    assert model.explained_variance_ratio_[0] > 1 - 1e-5
    assert MaximumVarianceUnfolding(metric="precomputed", n_components=None).fit(graph).embedding_.shape == (40, 1)
    assert abs(np.corrcoef(model.embedding_[:, 0], line)[0, 1]) > 1 - 1e-9


def test_a_star_and_a_triangle():
    """Three leaves of a star lie at 120°, and an equilateral triangle stays one: variances 3 and 1."""
    star = csr_array((np.ones(3), ([0, 0, 0], [1, 2, 3])), shape=(4, 4))
    triangle = csr_array((np.ones(3), ([0, 0, 1], [1, 2, 2])), shape=(3, 3))
    for graph, truth in ((star, 3.0), (triangle, 1.0)):
        model = MaximumVarianceUnfolding(metric="precomputed", distances="not exceeded", tol=1e-8).fit(graph)
        assert model.certificate_.lower <= truth <= model.certificate_.upper
        assert model.certificate_.holds(1e-8)


def test_points_of_a_plane_that_are_held_by_all_pairs_stay():
    X = np.random.default_rng(0).standard_normal((12, 2))
    model = MaximumVarianceUnfolding(11, distance_tol=1e-4).fit(X)
    assert model.certificate_.objective == pytest.approx(((X - X.mean(axis=0)) ** 2).sum(), rel=1e-3)
    assert np.allclose(pairwise_distances(model.embedding_), pairwise_distances(X), atol=1e-2)


@every_kind
def test_distances_of_neighbours_are_what_was_asked_for(fitted, roll, distances):
    model = fitted[distances]
    embedded, given = pair_lengths(model, roll[0])
    assert np.all(embedded <= given * (1 + (1e-3 if distances == "kept" else 0)) * (1 + 1e-12) * (1 + model.violation_))
    if distances == "kept":
        assert np.all(embedded >= given * (1 - 1e-3) * (1 - model.violation_))
        assert model.violation_ < 1e-4
    else:
        assert model.violation_ == 0
    assert model.certificate_.holds(1e-4)
    assert model.status_ is Status.CONVERGED


@pytest.mark.slow
def test_the_swiss_roll_is_unrolled_in_two_dimensions():
    X, angle = swiss_roll(800)
    model = MaximumVarianceUnfolding(6, tol=1e-3).fit(X)
    assert model.explained_variance_ratio_[:2].sum() > 0.99
    arc = 0.5 * (angle * np.sqrt(1 + angle**2) + np.arcsinh(angle))
    assert abs(np.corrcoef(model.embedding_[:, 0], arc)[0, 1]) > 0.99
    assert model.certificate_.holds(1e-3)


def test_a_small_roll_of_one_turn_is_unrolled_in_two_dimensions():
    rng = np.random.default_rng(0)
    t, h = 1.5 * np.pi * rng.random(120), 2 * rng.random(120)
    model = MaximumVarianceUnfolding(5, tol=1e-3).fit(np.stack([np.cos(t), h, np.sin(t)], axis=1))
    assert model.explained_variance_ratio_[:2].sum() > 0.99
    assert abs(np.corrcoef(model.embedding_[:, 0], t)[0, 1]) > 0.99


# --- weights, copies, landmarks ---------------------------------------------------------------------------------------


@every_kind
def test_a_weight_of_two_is_the_same_row_twice(roll, distances):
    X = roll[0][:40]
    twice = np.concatenate([X, X[:10]])
    weights = np.where(np.arange(40) < 10, 2.0, 1.0)
    options = {"distances": distances, "connect": True, "tol": 1e-7}
    one = MaximumVarianceUnfolding(4, **options).fit(X, sample_weight=weights)
    other = MaximumVarianceUnfolding(4, **options).fit(twice)
    scaled = MaximumVarianceUnfolding(4, **options).fit(X, sample_weight=3.7e9 * weights)
    assert one.certificate_.lower == pytest.approx(other.certificate_.lower, rel=1e-6)
    assert scaled.certificate_.lower == pytest.approx(3.7e9 * one.certificate_.lower, rel=1e-6)
    assert scaled.multipliers_.max() == pytest.approx(3.7e9 * one.multipliers_.max(), rel=0.1)
    assert verify(scaled, X).holds(1e-6)
    between = [pairwise_distances(model.coordinates_[:40]) for model in (one, other)]
    assert np.allclose(*between, atol=2e-2 * between[0].max())
    assert np.array_equal(other.embedding_[:10], other.embedding_[40:])
    verify(other, twice)


@every_kind
@pytest.mark.parametrize("weights", ["many sizes", "one light", "one heavy"])
def test_weights_of_any_sizes_are_certified(distances, weights):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((40, 3))
    given = {"many sizes": 10.0 ** rng.uniform(-10, 0, 40), "one light": 1e-12, "one heavy": 1e9}[weights]
    given = given if weights == "many sizes" else np.r_[given, np.ones(39)]
    model = MaximumVarianceUnfolding(5, distances=distances, connect=True).fit(X, sample_weight=given)
    assert verify(model, X).holds(1e-4)


def test_sums_of_weights_of_equal_rows_are_known_to_be_rounded(roll):
    from mercer.embedding.unfolding_problem import PosedUnfolding

    X, model = np.repeat(roll[0][:10], 3, axis=0), MaximumVarianceUnfolding(3, connect=True)
    assert PosedUnfolding.of(model, X, None).problem.mass_rounding == 0
    weights = np.random.default_rng(0).random(30)
    assert PosedUnfolding.of(model, X, weights).problem.mass_rounding >= 3 * 2.0**-53


def test_rows_of_weight_zero_are_new_points(roll):
    X = roll[0][:60]
    weights = np.r_[np.ones(50), np.zeros(10)]
    model = MaximumVarianceUnfolding(5, connect=True).fit(X, sample_weight=weights)
    alone = MaximumVarianceUnfolding(5, connect=True).fit(X[:50])
    assert np.allclose(model.embedding_[:50], alone.embedding_)
    assert np.array_equal(model.embedding_, model.transform(X))
    verify(model, X)


@pytest.mark.parametrize("factor", [2.0**600, 2.0**-600])
def test_landmarks_do_not_depend_on_the_unit(factor):
    X, weights = np.random.default_rng(0).normal(size=(40, 2)), np.ones(40)
    for here, plain in zip(spread_landmarks(factor * X, weights, 7), spread_landmarks(X, weights, 7), strict=True):
        np.testing.assert_array_equal(here, plain)


def test_landmarks_have_the_weight_of_the_points_around_them():
    X, _ = swiss_roll(600)
    model = MaximumVarianceUnfolding(5, landmarks=60, tol=1e-3).fit(X)
    assert model.landmarks_.shape == (60,)
    assert model.sample_weight_.sum() == pytest.approx(600)
    assert model.embedding_.shape == (600, 2)
    assert np.array_equal(model.embedding_, model.transform(X))
    owners = np.bincount(pairwise_distances(X, X[model.landmarks_]).argmin(axis=1), minlength=60)
    assert np.allclose(owners, model.sample_weight_)
    verify(model, X)
    again = MaximumVarianceUnfolding(5, landmarks=(model.landmarks_, model.sample_weight_), tol=1e-3).fit(X)
    assert np.allclose(again.embedding_, model.embedding_)


# --- new points -------------------------------------------------------------------------------------------------------


def test_new_points_lie_between_their_neighbours(fitted, roll):
    model, X = fitted["kept"], roll[0]
    assert np.array_equal(model.transform(X), model.embedding_)
    near = X + 1e-7 * np.random.default_rng(0).standard_normal(X.shape)
    assert np.allclose(model.transform(near), model.embedding_, atol=1e-3)
    far = model.transform(np.array([[1e8, 0.0, 0.0]]))
    assert np.all(np.isfinite(far))


def test_a_linear_map_is_extended_linearly():
    X = np.random.default_rng(0).standard_normal((25, 2))
    model = MaximumVarianceUnfolding(24, distance_tol=1e-5).fit(X)
    new = np.array([[0.1, 0.2], [0.0, -0.3], [0.4, 0.0]])
    expected = pairwise_distances(new, X)
    assert np.allclose(pairwise_distances(model.transform(new), model.embedding_), expected, atol=0.05)


# --- verification -----------------------------------------------------------------------------------------------------


@every_kind
def test_verify_proves_it_again(fitted, roll, distances):
    model = fitted[distances]
    proof = verify(pickle.loads(pickle.dumps(model)), roll[0])
    assert proof.lower == model.certificate_.lower
    assert proof.holds(1e-4)
    assert proof.upper == pytest.approx(model.certificate_.upper, rel=1e-12)


def changed(model, **attributes):
    copy = pickle.loads(pickle.dumps(model))
    for name, value in attributes.items():
        setattr(copy, name, value)
    return copy


@pytest.mark.parametrize(
    "name", ["embedding_", "coordinates_", "eigenvalues_", "explained_variance_ratio_", "pairs_", "rank_"]
)
def test_a_model_that_was_changed_is_refused(fitted, roll, name):
    model = fitted["not exceeded"]
    value = np.array(getattr(model, name), dtype=float)
    value.flat[0] += 0.5
    with pytest.raises(ValueError, match="damaged"):
        verify(changed(model, **{name: value}), roll[0])


def test_a_forged_proof_is_refused(fitted, roll):
    from dataclasses import replace

    model, X = fitted["not exceeded"], roll[0]
    better = replace(model.certificate_, lower=1.1 * model.certificate_.upper, upper=1.2 * model.certificate_.upper)
    with pytest.raises(ValueError, match="excludes"):
        verify(changed(model, certificate_=better), X)
    with pytest.raises(ValueError, match="damaged"):
        verify(changed(model, violation_=0.5), X)
    with pytest.raises(ValueError, match="damaged"):
        verify(changed(model, multipliers_=model.multipliers_[1:]), X)
    with pytest.raises(ValueError, match="60 points"):
        verify(model, X[1:])
    with pytest.raises(ValueError, match="damaged"):
        verify(model, X[::-1])
    with pytest.raises(ValueError, match="extended=True"):
        verify(model, X, extended=True)


def test_multipliers_that_were_changed_prove_less_and_nothing_false(fitted, roll):
    model = fitted["not exceeded"]
    worse = changed(model, multipliers_=1.5 * model.multipliers_ * np.linspace(0.8, 1, model.multipliers_.size))
    proof = verify(worse, roll[0])
    assert proof.upper >= model.certificate_.lower
    assert not proof.holds(1e-2)


def test_larger_points_are_not_believed(fitted, roll):
    """All coordinates and what follows from them stretched by 5 %: distances are then exceeded, and that is said."""
    model = fitted["not exceeded"]
    forged = changed(
        model,
        embedding_=1.05 * model.embedding_,
        coordinates_=1.05 * model.coordinates_,
        eigenvalues_=1.05**2 * model.eigenvalues_,
        violation_=1.05**2 - 1,
    )
    object.__setattr__(forged._extension, "coordinates", 1.05 * model._extension.coordinates)
    with pytest.raises(ValueError, match="damaged"):
        verify(forged, roll[0])


# --- graphs that are given, and those that cannot be ------------------------------------------------------------------


def test_a_graph_of_distances_is_the_same_programme(fitted, roll):
    X, model = roll[0], fitted["kept"]
    assert model.certificate_.holds(1e-4)
    graph = kneighbors_graph(X, 5, mode="distance")
    for given in (csr_array(graph), pairwise_distances(X)):
        other = MaximumVarianceUnfolding(5, metric="precomputed").fit(given)
        assert np.array_equal(np.sort(other.pairs_, axis=1), np.sort(model.pairs_, axis=1))
        assert other.certificate_.lower == pytest.approx(model.certificate_.lower, rel=1e-4)
    verify(other, given)
    with pytest.raises(ValueError, match="knows no points"):
        other.transform(given)


def test_zero_distances_make_points_one():
    rows, cols = [0, 1, 2, 0], [1, 2, 3, 3]
    graph = csr_array((np.array([1.0, 0.0, 1.0, 1.5]), (rows, cols)), shape=(4, 4))
    model = MaximumVarianceUnfolding(metric="precomputed", distances="not exceeded", tol=1e-7).fit(graph)
    assert np.array_equal(model.embedding_[1], model.embedding_[2])
    verify(model, graph)


@pytest.mark.parametrize(
    ("entries", "options", "sentence"),
    [
        ([(0, 1, 1.0), (2, 3, 1.0)], {}, "falls into 2 parts.*rows 0, 1 are linked to no others.*add pairs"),
        ([(0, 1, 1.0), (1, 2, 1.0)], {}, "row 3 has no neighbours"),
        ([(0, 1, 1.0), (1, 2, 1.0), (2, 3, 1.0), (0, 3, 5.0)], {}, "Rows 0 and 3 are 5 apart, but only 3 by way"),
        ([(0, 1, 1.0), (1, 2, 1.0), (2, 3, -1.0)], {}, "distance of rows 2 and 3 is -1"),
        ([(0, 1, 1.0), (1, 0, 2.0), (1, 2, 1.0), (2, 3, 1.0)], {}, "two distances for rows 0 and 1, 1 and 2"),
        # four points at distance 1 from one another and 0.58 from a fifth: any three distances pass the triangle test
        (
            [(i, j, 1.0) for i in range(4) for j in range(i + 1, 4)] + [(i, 4, 0.55) for i in range(4)],
            {},
            "No points have all the distances of the graph.*distances='not exceeded'",
        ),
    ],
)
def test_graphs_that_cannot_be_get_one_sentence(entries, options, sentence):
    i, j, d = zip(*entries, strict=True)
    n = max(4, max(j) + 1)
    graph = csr_array((np.array(d), (i, j)), shape=(n, n))
    with pytest.raises(ValueError, match=sentence):
        MaximumVarianceUnfolding(metric="precomputed", **options).fit(graph)


def test_distances_that_no_points_have_can_still_be_not_exceeded():
    entries = [(0, 1, 1.0), (1, 2, 1.0), (2, 3, 1.0), (0, 3, 5.0)]
    i, j, d = zip(*entries, strict=True)
    graph = csr_array((np.array(d), (i, j)), shape=(4, 4))
    model = MaximumVarianceUnfolding(metric="precomputed", distances="not exceeded", n_components=1).fit(graph)
    assert model.certificate_.lower <= 5.0 <= model.certificate_.upper  # a straight line: 2 (1.5² + 0.5²)


def test_parts_are_joined_if_asked_for(roll):
    X = np.concatenate([roll[0][:30], roll[0][:30] + 20])
    with pytest.raises(ValueError, match="falls into .* parts.*connect=True"):
        MaximumVarianceUnfolding(5).fit(X)
    model = MaximumVarianceUnfolding(5, connect=True).fit(X)
    assert model.certificate_.holds(1e-4)
    verify(model, X)


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"n_neighbors": 0}, "n_neighbors=0"),
        ({"distances": "all"}, "distances='all' must be one of 'kept', 'not exceeded'"),
        ({"distance_tol": 0.0}, "distance_tol"),
        ({"distance_tol": 1.5}, "distance_tol=1.5"),
        ({"tol": -1}, "tol"),
        ({"n_components": 0}, "n_components"),
        ({"metric": "cosine"}, "metric"),
        ({"connect": 1}, "connect"),
        ({"landmarks": 1}, "landmarks=1 must be at least 2"),
        ({"metric": "precomputed", "landmarks": [0, 1, 2]}, "knows no points"),
    ],
)
def test_parameters_that_are_none(options, sentence):
    with pytest.raises(ValueError, match=sentence):
        MaximumVarianceUnfolding(**options).fit(np.eye(5))


def test_points_that_are_none():
    with pytest.raises(ValueError, match="All points are equal"):
        MaximumVarianceUnfolding().fit(np.ones((5, 2)))
    with pytest.raises(ValueError, match="must be square"):
        MaximumVarianceUnfolding(metric="precomputed").fit(np.ones((5, 4)))


@pytest.mark.parametrize("factor", [2.0**-440])
def test_units_do_not_matter(fitted, roll, factor):
    model = MaximumVarianceUnfolding(5).fit(factor * roll[0])
    assert model.certificate_.holds(1e-4)
    again = pairwise_distances(model.embedding_ / factor)
    assert np.allclose(again, pairwise_distances(fitted["kept"].embedding_), atol=1e-2)
    assert model.certificate_.lower / factor / factor == pytest.approx(fitted["kept"].certificate_.lower, rel=1e-4)


# --- the run ----------------------------------------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_a_gap_that_is_proved_when_the_budget_ends_is_convergence():
    X = swiss_roll(60)[0]
    fits = (MaximumVarianceUnfolding(5, connect=True, tol=0.05, max_iter=count).fit(X) for count in range(1, 60))
    model = next(model for model in fits if model.certificate_.holds(0.05))
    assert model.history_[-1].gap is None or model.history_[-1].gap > 0.3 * 0.05  # the solver itself was not done
    assert model.status_ is Status.CONVERGED


def test_budgets_and_callbacks_end_a_run_with_what_there_is(roll):
    X = roll[0][:60]
    with pytest.warns(ConvergenceWarning, match="iteration budget"):
        model = MaximumVarianceUnfolding(5, connect=True, max_iter=8, distances="not exceeded").fit(X)
    assert model.n_iter_ == 8
    assert model.violation_ == 0
    assert model.certificate_.relative_gap > 1e-4
    lines = []
    model = MaximumVarianceUnfolding(5, connect=True, callback=lambda line: lines.append(line) or len(lines) > 4).fit(X)
    assert model.status_ is Status.STOPPED
    assert len(model.history_) == 5
    verify(model, X)

    def interrupt(line):
        if line.number == 6:
            raise KeyboardInterrupt

    with pytest.warns(ConvergenceWarning, match="interrupted"):
        model = MaximumVarianceUnfolding(5, connect=True, distances="not exceeded", callback=interrupt).fit(X)
    assert verify(model, X).lower == model.certificate_.lower


def test_rows_too_near_for_the_arithmetic_are_named():
    X = np.concatenate([np.random.default_rng(0).standard_normal((20, 2)), [[0.0, 0.0], [1e-9, 0.0]]])
    with pytest.warns(ConvergenceWarning, match="Rows 20 and 21 are neighbours .* times as near as rows"):
        model = MaximumVarianceUnfolding(5, connect=True).fit(X)
    assert not model.certificate_.holds(1e-4)
    assert verify(model, X).violation == model.violation_


def test_a_fit_that_fails_leaves_the_model_as_it_was(fitted, roll):
    model = pickle.loads(pickle.dumps(fitted["kept"]))
    model.set_params(n_neighbors=1)
    with pytest.raises(ValueError, match="falls into"):
        model.fit(roll[0])
    assert np.array_equal(model.embedding_, fitted["kept"].embedding_)


def test_memory_is_refused_before_it_is_taken(roll):
    with mercer.config_context(memory_limit="17MB"), pytest.raises(MemoryError, match="pass landmarks"):
        MaximumVarianceUnfolding(12).fit(swiss_roll(400)[0])


def test_frames_and_tensors_and_single_precision(fitted, roll):
    pandas, torch = pytest.importorskip("pandas"), pytest.importorskip("torch")
    X = roll[0][:40]
    model = MaximumVarianceUnfolding(5, connect=True).fit(X)
    frame = pandas.DataFrame(X, columns=["x", "y", "z"])
    named = clone(model).set_output(transform="pandas").fit_transform(frame)
    assert list(named.columns) == ["maximumvarianceunfolding0", "maximumvarianceunfolding1"]
    assert np.allclose(named, model.embedding_)
    assert np.allclose(clone(model).fit(torch.as_tensor(X)).embedding_, model.embedding_)
    single = clone(model).fit(X.astype(np.float32))
    assert single.certificate_.holds(1e-4)
    assert np.allclose(np.abs(single.embedding_), np.abs(model.embedding_), atol=1e-2)


def test_more_components_than_dimensions_are_zero():
    from mercer.embedding.degeneracy import RankWarning

    with pytest.warns(RankWarning, match="n_components=3 exceeds"):
        model = MaximumVarianceUnfolding(1, n_components=3, distances="not exceeded").fit([[0.0], [1.0]])
    assert model.embedding_.shape == (2, 3)
    assert np.all(model.embedding_[:, 1:] == 0)
