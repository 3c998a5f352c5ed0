"""The map in the plane keeps the neighbours it says it keeps, places points where their like are, and refuses."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.datasets import load_iris
from sklearn.exceptions import NotFittedError
from sklearn.manifold import trustworthiness

from mercer import DiffusionMaps, Gaussian, SDPEmbedding, plane_map
from mercer.embedding import PlaneMap


@pytest.fixture(scope="module")
def islands():
    """Six groups in five dimensions that no plane holds, and the group of each point."""
    rng = np.random.default_rng(0)
    centres = 10 * np.vstack([np.eye(5), np.zeros(5)])
    groups = np.repeat(np.arange(6), 40)
    return centres[groups] + rng.normal(size=(240, 5)), groups


@pytest.fixture(scope="module")
def plane(islands):
    return plane_map(islands[0])


def _brute(points, count):
    squares = np.sum((points[:, None] - points) ** 2, axis=2)
    np.fill_diagonal(squares, np.inf)
    return np.argsort(squares, axis=1)[:, :count]


def test_kept_is_the_share_of_neighbours_in_both(islands, plane):
    first, second = _brute(islands[0], 15), _brute(plane.coordinates, 15)
    expected = [len({*a} & {*b}) / 15 for a, b in zip(first, second, strict=True)]
    np.testing.assert_allclose(plane.kept, expected)
    assert plane.kept.mean() > 0.6
    assert plane.kept.mean() > 1.5 * _first_two(islands[0])


def _first_two(points):
    pairs = zip(_brute(points, 15), _brute(points[:, :2], 15), strict=True)
    return np.mean([len({*a} & {*b}) / 15 for a, b in pairs])


def test_islands_stay_apart_and_trustworthy(islands, plane):
    X, groups = islands
    nearest = groups[_brute(plane.coordinates, 5)]
    assert (nearest == groups[:, None]).mean() > 0.99
    assert trustworthiness(X, plane.coordinates, n_neighbors=10) > 0.95


def test_nothing_is_random_and_the_unit_does_not_matter(islands, plane):
    again, scaled = plane_map(islands[0], random_state=5), plane_map(1e-12 * islands[0] + 1e-12)
    np.testing.assert_array_equal(again.coordinates, plane.coordinates)
    assert scaled.kept.mean() == pytest.approx(plane.kept.mean(), abs=0.05)


def test_summary_counts_what_is_misplaced(islands):
    X = islands[0]
    kept = np.full(len(X), 0.9)
    kept[:7] = 0.1
    plane = PlaneMap(X[:, :2], kept, X, np.arange(len(X)), 15)
    assert plane.misplaced.sum() == 7
    assert str(plane) == "The map keeps 88% of the 15 nearest neighbours; 7 of 240 points keep fewer than 20%."


def test_points_of_the_map_are_placed_where_they_are(islands, plane):
    spread = np.ptp(plane.coordinates)
    np.testing.assert_allclose(plane.place(islands[0]), plane.coordinates, atol=1e-9 * spread)
    nearly = islands[0] + 1e-7
    assert np.abs(plane.place(nearly) - plane.coordinates).max() < 1e-3 * spread


def test_a_new_point_goes_to_one_island_and_not_between_two():
    """Three neighbours on one island and two on another: their mean lies in the sea."""
    E = np.array([[1.0, 0, 0], [-1.0, 0, 0], [0, 1.0, 0], [0, -1.0, 0], [0, 0, 1.0], [9.0, 9, 9]])
    positions = np.array([[0.0, 0], [1, 0], [0, 1], [100, 0], [100, 1], [50, 50]])
    plane = PlaneMap(positions, np.ones(6), E, np.arange(6), 5)
    (x, y) = plane.place(np.zeros((1, 3)))[0]
    assert -0.1 <= x <= 1.1
    assert -0.1 <= y <= 1.1


def test_many_points_are_placed_among_some(islands):
    X, groups = islands
    plane = plane_map(X, max_points=120, random_state=0)
    assert plane.fitted.size == 120
    others = np.setdiff1d(np.arange(240), plane.fitted)
    np.testing.assert_allclose(plane.coordinates[others], plane.place(X[others]))
    assert (groups[_brute(plane.coordinates, 5)] == groups[:, None]).mean() > 0.98
    same = plane_map(X, max_points=120, random_state=0)
    np.testing.assert_array_equal(same.coordinates, plane.coordinates)


def test_models_and_new_points_through_them():
    X = load_iris().data
    model = SDPEmbedding(n_components=3, random_state=0).fit(X[::2])
    plane = plane_map(model)
    np.testing.assert_array_equal(plane.embedding, model.embedding_)
    placed = plane.place(model.transform(X[1::2]))
    assert placed.shape == (75, 2)
    species = load_iris().target
    near = species[::2][np.argmin(np.sum((placed[:, None] - plane.coordinates) ** 2, axis=2), axis=1)]
    assert (near == species[1::2]).mean() > 0.85
    assert plane_map(DiffusionMaps(Gaussian(), n_components=3).fit(X)).coordinates.shape == (150, 2)


@pytest.mark.parametrize("r", [1, 2])
def test_two_coordinates_are_their_own_map(islands, r):
    E = islands[0][:, :r]
    plane = plane_map(E)
    np.testing.assert_array_equal(plane.coordinates[:, :r], E)
    np.testing.assert_array_equal(plane.place(E + 1.0)[:, :r], E + 1.0)
    assert (plane.kept == 1).all()
    assert str(plane) == "The map shows all coordinates as they are."


def test_few_points_and_equal_points(islands):
    for E in (islands[0][:4], np.repeat(islands[0][:5], 3, axis=0), np.column_stack([np.zeros((9, 2)), np.eye(9)])):
        plane = plane_map(E)
        assert np.isfinite(plane.coordinates).all()
        assert np.isfinite(plane.place(E)).all()
        assert ((plane.kept >= 0) & (plane.kept <= 1)).all()


def test_bad_input(islands, plane):
    X = islands[0]
    with pytest.raises(NotFittedError):
        plane_map(SDPEmbedding())
    with pytest.raises(ValueError, match="All points have the same coordinates: there is nothing to draw"):
        plane_map(np.ones((9, 3)))
    with pytest.raises(ValueError, match="contains NaN"):
        plane_map(np.where(X[0, 0] == X, np.nan, X))
    with pytest.raises(ValueError, match="perplexity=0 must be a number of at least 1"):
        plane_map(X, perplexity=0)
    with pytest.raises(ValueError, match="n_neighbors=0 must be a whole number of at least 1"):
        plane_map(X, n_neighbors=0)
    with pytest.raises(ValueError, match="max_points=3 must be a whole number of at least 10"):
        plane_map(X, max_points=3)
    with pytest.raises(ValueError, match=r"Y has 3 columns, but the map is of 5 coordinates: pass model.transform"):
        plane.place(X[:, :3])
