"""The search for neighbours: all of them exactly, nearly all by descent, and those that a user brings."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.sparse import csr_array
from sklearn.datasets import load_digits
from sklearn.neighbors import KNeighborsTransformer, NearestNeighbors, kneighbors_graph

from mercer import SelfTuning, config_context
from mercer.backends.cpu.neighbour_descent import descended_neighbours
from mercer.backends.cpu.neighbours import find_rows, row_keys
from mercer.kernels import neighbours
from mercer.kernels.neighbours import neighbour_tables

DIGITS = load_digits().data
X = np.random.default_rng(0).normal(size=(200, 5))


def nearest(points, count, metric="euclidean"):
    return NearestNeighbors(n_neighbors=count + 1, algorithm="brute", metric=metric).fit(points).kneighbors(points)


def tabled(tables, n):
    """The tables as lists of neighbours without the point itself, which must come first, and of squares."""
    numbers, squares = [None] * n, [None] * n
    for table in tables:
        assert np.array_equal(table.numbers[:, 0], table.rows)
        assert np.all(table.squares[:, 0] == 0)
        for row, others, lengths in zip(table.rows, table.numbers, table.squares, strict=True):
            assert numbers[row] is None
            assert np.all(np.diff(lengths) >= 0)
            numbers[row], squares[row] = others[1:], lengths[1:]
    return numbers, squares


@pytest.mark.parametrize("metric", ["euclidean", "manhattan", "chebyshev", "cosine"])
@pytest.mark.parametrize("features", [2, 20])
def test_an_exact_search_has_all_that_are_as_near(metric, features):
    points = np.unique(np.random.default_rng(1).integers(1, 5, (120, features)).astype(float), axis=0)
    if metric == "cosine":
        points = points[
            np.unique(np.round(points / np.linalg.norm(points, axis=1)[:, None], 9), axis=0, return_index=True)[1]
        ]
    count = min(5, len(points) - 1)
    found, squares = tabled(neighbour_tables(points, count, metric, "exact"), len(points))
    for others, lengths in zip(found, squares, strict=True):
        assert np.all((np.diff(others) > 0) | (np.diff(lengths) > 0))
    exact = NearestNeighbors(n_neighbors=len(points), algorithm="brute", metric=metric).fit(points)
    for row, distances in enumerate(exact.kneighbors(points)[0]):
        near = int(np.sum(distances <= distances[count] * (1 - 1e-12)))
        as_near = int(np.sum(distances <= distances[count] * (1 + 1e-12) + 1e-12)) - 1
        np.testing.assert_allclose(np.sqrt(squares[row][: near - 1]), distances[1:near], atol=1e-12)
        assert np.sum(np.sqrt(squares[row]) <= distances[count] + 1e-9) >= min(as_near, len(squares[row]))


@pytest.mark.parametrize("metric", ["euclidean", "manhattan", "cosine"])
def test_descent_finds_nearly_all(metric):
    found, squares = tabled(neighbour_tables(DIGITS, 15, metric, "approximate"), len(DIGITS))
    distances, exact = nearest(DIGITS, 15, metric)
    recall = np.mean([np.isin(there[1:], here).mean() for there, here in zip(exact, found, strict=True)])
    assert recall > 0.97
    radii = np.sqrt([lengths[14] for lengths in squares])
    assert np.all(radii > distances[:, 15] * (1 - 1e-12))
    assert np.mean(radii / distances[:, 15]) < 1.003


def test_descent_is_the_same_on_any_number_of_threads():
    points = DIGITS.astype(np.float32)
    with config_context(n_threads=1):
        alone = descended_neighbours(points, 10)
    with config_context(n_threads=3):
        assert np.array_equal(descended_neighbours(points, 10), alone)
    assert not np.any(alone == np.arange(len(points))[:, None])
    assert all(np.unique(row).size == 10 for row in alone)


@pytest.mark.parametrize("points", [np.zeros((100, 3)), np.arange(30.0)[:, None], np.eye(70)])
def test_descent_on_points_that_no_plane_splits(points):
    found = descended_neighbours(points.astype(np.float32), 5)
    assert found.shape == (len(points), 5)
    assert np.all(found < len(points))


def test_a_search_left_short_is_finished_exactly(monkeypatch):
    def lazy(points, count, *, absolute):
        found = nearest(points, count)[1][:, 1:].astype(np.int32)
        found[::3, 4:] = -1
        return found

    monkeypatch.setattr(neighbours, "descended_neighbours", lazy)
    found, _ = tabled(neighbour_tables(X, 15, "euclidean", "approximate"), len(X))
    assert all(np.array_equal(a[:15], b[1:]) for a, b in zip(found, nearest(X, 15)[1], strict=True))


def test_many_points_of_many_features_are_not_all_compared(monkeypatch):
    asked = []
    monkeypatch.setattr(neighbours, "_MOST_COMPARED", 100)
    monkeypatch.setattr(neighbours, "_approximate", lambda *given: asked.append("approximate") or [])
    monkeypatch.setattr(neighbours, "_exact", lambda *given: asked.append("exact") or [])
    wide = np.random.default_rng(0).normal(size=(200, 20))
    for points, metric in ((wide, "euclidean"), (wide[:90], "euclidean"), (X, "euclidean"), (wide, "canberra")):
        neighbour_tables(points, 5, metric, "auto")
    assert asked == ["approximate", "exact", "exact", "exact"]


@pytest.mark.parametrize(
    "given",
    [
        KNeighborsTransformer(n_neighbors=16),
        KNeighborsTransformer(n_neighbors=20, mode="connectivity"),
        kneighbors_graph(X, 15, mode="distance"),
        kneighbors_graph(X, 16, mode="distance", include_self=True),
        csr_array(kneighbors_graph(X, 30, mode="distance")).tocoo(),
    ],
)
def test_neighbours_that_are_brought(given):
    kernel = SelfTuning(neighbors=given).resolve(X)
    assert np.array_equal(kernel(X), SelfTuning().resolve(X)(X))
    assert np.array_equal(kernel(X + 0.1, X), SelfTuning().resolve(X)(X + 0.1, X))


def test_a_graph_of_distances_by_a_metric_of_scikit_learn():
    graph = kneighbors_graph(X, 15, mode="distance", metric="cosine")
    np.testing.assert_allclose(
        SelfTuning(metric="cosine", neighbors=graph).resolve(X)(X),
        SelfTuning(metric="cosine").resolve(X)(X),
        atol=1e-12,
    )


@pytest.mark.parametrize("brought", ["graph", "transformer"])
def test_distances_of_any_kind(brought):
    def odd(x, y):
        return float(np.abs(x - y).max() + np.abs(x - y).sum())

    graph = kneighbors_graph(X, 15, mode="distance", metric=odd)
    given = graph if brought == "graph" else KNeighborsTransformer(n_neighbors=15, metric=odd)
    names = np.arange(200.0)[:, None] if brought == "graph" else X
    kernel = SelfTuning(metric="precomputed", neighbors=given).resolve(names)
    distances = np.array([[odd(x, y) for y in X] for x in X])
    ordered = np.sort(distances, axis=1)
    linked = distances <= np.maximum.outer(ordered[:, 15], ordered[:, 15])
    expected = np.where(linked, np.exp(-(distances**2) / np.outer(ordered[:, 7], ordered[:, 7])), 0.0)
    np.testing.assert_allclose(kernel(names), expected, rtol=1e-12)
    np.testing.assert_allclose(kernel(names[20:30], names), expected[20:30], rtol=1e-12)
    with pytest.raises(ValueError, match=r"metric='precomputed' knows the distances of its graph alone"):
        kernel(names[:1] + 0.5, names)
    with pytest.raises(ValueError, match=r"metric='precomputed' knows the distances of its graph alone"):
        SelfTuning(None, metric="precomputed", neighbors=given).resolve(names)(names)
    with pytest.raises(ValueError, match=r"takes distances from neighbors: .*, not 'auto'\."):
        SelfTuning(metric="precomputed").resolve(X)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (
            KNeighborsTransformer(n_neighbors=9),
            r"has 9 neighbours of row 0, but the kernel asks for 15: give it more\.",
        ),
        (KNeighborsTransformer(metric="manhattan"), r"measures by metric='manhattan', the kernel by 'euclidean'"),
        (
            kneighbors_graph(X[:50], 15, mode="distance"),
            r"graph of 50 × 50 distances, but there are 200 training points",
        ),
        (kneighbors_graph(X, 3, mode="distance"), r"has 3 neighbours of row 0, but the kernel asks for 15"),
    ],
)
def test_neighbours_that_cannot_be_used(given, message):
    with pytest.raises(ValueError, match=message):
        SelfTuning(neighbors=given).resolve(X)


def test_a_graph_is_of_distinct_rows():
    twice = np.concatenate([X, X[:1]])
    with pytest.raises(ValueError, match=r"rows that are equal or without weight: give each point once\."):
        SelfTuning(neighbors=kneighbors_graph(twice, 15, mode="distance")).resolve(twice)


def test_rows_are_told_apart_where_their_keys_are_not():
    known = np.random.default_rng(2).integers(0, 3, (40, 4)).astype(float)
    known = known[np.unique(known, axis=0, return_index=True)[1]]
    asked = np.concatenate([known[::-1], known[:3] + 0.5, -known[:2] * 0.0])
    expected = [next((i for i, row in enumerate(known) if np.array_equal(row, point)), -1) for point in asked]
    same = np.zeros(len(known), np.uint64)
    for keys, known_keys in ((row_keys(asked), row_keys(known)), (np.zeros(len(asked), np.uint64), same)):
        order = np.argsort(known_keys, kind="stable")
        assert find_rows(asked, keys, known, known_keys, order).tolist() == expected
