"""Kernel matrices on the workers of a cluster: the numbers of one machine, and nothing sent twice."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.spatial.distance import cdist

from mercer import Gaussian, GramOperator, Laplacian, Polynomial, config_context
from mercer.backends.dask import ClusterMatrix
from mercer.backends.rounding import UNIT, gamma

N, M, R = 333, 190, 3
_rng = np.random.default_rng(7)
X, Y, V = _rng.normal(size=(N, 6)), _rng.normal(size=(M, 6)), _rng.normal(size=(N, R))
KERNELS = {
    "gaussian": (Gaussian(1.5), lambda x, y: np.exp(-cdist(x, y, "sqeuclidean") / 1.5**2)),
    "polynomial": (Polynomial(2, 0.5, 1.0), lambda x, y: (0.5 * x @ y.T + 1.0) ** 2),
    "sum": (
        Laplacian(2.0) + 0.5 * Gaussian(3.0),
        lambda x, y: np.exp(-cdist(x, y, "cityblock") / 2.0) + 0.5 * np.exp(-cdist(x, y, "sqeuclidean") / 9.0),
    ),
}


@pytest.fixture(params=KERNELS)
def case(request: Any, cluster: Any) -> Any:
    kernel, matrix = KERNELS[request.param]
    return kernel, matrix, cluster


def test_products_are_those_of_the_matrix(case: Any) -> None:
    kernel, matrix, _ = case
    K, L = matrix(X, X), matrix(X, Y)
    square, tall = GramOperator(kernel, X), GramOperator(kernel, X, Y)
    assert isinstance(square._matrix, ClusterMatrix)
    assert isinstance(tall._matrix, ClusterMatrix)
    for found, expected in (
        (square @ V, K @ V),
        (square.row_sums(), K.sum(axis=1)),
        (tall @ V[:M], L @ V[:M]),
        (tall.T @ V, L.T @ V),
        (tall.row_sums(), L.sum(axis=1)),
        (square.absolute_product(V[:, 0]), abs(K) @ V[:, 0]),
        (square.diagonal(), np.diag(K)),
        (square.block(slice(3, 300), np.array([5, 1])), K[3:300][:, [5, 1]]),
    ):
        assert found == pytest.approx(expected, rel=1e-12, abs=1e-12 * abs(K).sum(axis=1).max())


def test_products_of_underflowing_entries_keep_their_scale(cluster: Any) -> None:
    far = X + 60.0
    far[:40] = X[:40]  # groups of rows near and far
    scale, product = GramOperator(Gaussian(1.0), far, Y).scaled_product(V[:M])
    logs = -cdist(far, Y, "sqeuclidean")
    top = logs.max(axis=1)
    assert top.min() < -745  # exp of it is zero
    assert scale == pytest.approx(top, rel=1e-12, abs=1e-12)
    assert product == pytest.approx(np.exp(logs - top[:, None]) @ V[:M], rel=1e-9, abs=1e-9)


def test_points_and_kernels_are_sent_once(cluster: Any) -> None:
    before = cluster.traffic
    first, second = GramOperator(Gaussian(1.5), X), GramOperator(Gaussian(1.5), X.copy(), Y)
    for _ in range(3):
        first @ V
        second @ V[:M]
    moved = cluster.traffic - before
    assert moved.points == X.nbytes + Y.nbytes
    assert moved.products == 6
    assert moved.received == 6 * V.nbytes
    kernels = moved.sent - 3 * (V.nbytes + V[:M].nbytes)
    assert 0 < kernels < 2000  # bytes, of one form


def test_points_that_change_in_place_are_other_points(cluster: Any) -> None:
    points = X.copy()
    GramOperator(Gaussian(1.5), points) @ V
    points[7] += 1.0
    K = np.exp(-cdist(points, points, "sqeuclidean") / 1.5**2)
    assert GramOperator(Gaussian(1.5), points) @ V == pytest.approx(K @ V, rel=1e-12, abs=1e-11)


def test_a_product_errs_by_no_more_than_is_said_of_it(cluster: Any) -> None:
    """In single precision, against sums in double: of entries, of the sums of the blocks and of the sum over them."""
    points = X.astype(np.float32)
    gram = GramOperator(Gaussian(1.5), points)
    exact = np.exp(-cdist(points.astype(float), points.astype(float), "sqeuclidean") / 1.5**2)
    off = abs((gram @ np.ones(N, np.float32)).astype(float) - exact.sum(axis=1))
    allowed = (gram.entry_error.relative + gamma(gram.summation_depth, 2.0**-24)) * exact.sum(axis=1)
    assert (off <= allowed).all()
    assert off.max() > 100 * UNIT * exact.sum(axis=1).max()  # it was single precision


def test_what_is_said_of_rounding_holds_of_every_block(cluster: Any) -> None:
    """A group of points may choose another arithmetic than all points: the whole has inner products, or none."""
    mixed = X * np.sqrt(700) * 1.5 / np.sqrt((X**2).sum(axis=1).max())  # the last place where inner products will do
    mixed[-1] = 3e5  # and not for all points, but for the groups without this one
    gram = GramOperator(Gaussian(1.5), mixed)
    alone = Gaussian(1.5).matrix(mixed[:60])._here.entry_error
    whole = gram._matrix._here.entry_error
    assert alone.relative > whole.relative
    assert gram.entry_error.relative >= alone.relative
    groups = len(gram._matrix._sides[0].slices)
    assert groups > 1
    assert gram.summation_depth > gram._matrix._here.summation_depth + groups - 1


def test_small_matrices_and_given_ones_stay_here(client: Any) -> None:
    from mercer import Precomputed

    with config_context(client=client):
        assert not isinstance(GramOperator(Gaussian(1.5), X)._matrix, ClusterMatrix)
        large = np.broadcast_to(np.ones(1), (5000, 5000))
        assert not isinstance(Precomputed().matrix(large), ClusterMatrix)
        assert isinstance(Gaussian(1.5).matrix(large), ClusterMatrix)


def test_the_end_of_the_context_frees_the_workers(client: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    from mercer.backends.dask import matrix

    monkeypatch.setattr(matrix, "LEAST_ENTRIES", 1)
    with config_context(client=client) as outer:
        GramOperator(Gaussian(1.5), X) @ V
        with config_context(client=client) as inner:
            assert inner.cluster is outer.cluster
        assert outer.cluster._rows
    assert not outer.cluster._rows
    assert not isinstance(GramOperator(Gaussian(1.5), X)._matrix, ClusterMatrix)


def test_what_is_no_client_is_refused() -> None:
    with pytest.raises(TypeError, match="must be a distributed.Client, such as"), config_context(client="tcp://host"):
        pass
