"""Estimators on a cluster: the answers of one machine, from arrays, Dask arrays and data frames; models stay lazy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from mercer import (
    DiffusionMaps,
    Gaussian,
    KernelPCA,
    Laplacian,
    NoveltyDetector,
    QuadratureSparsifier,
    SDPEmbedding,
    config_context,
    mmd,
    mmd_test,
    verify,
)
from mercer.backends.dask.collections import DaskRows
from mercer.backends.row_source import ArrayRows
from mercer.dependence.mmd_statistics import quadratic_forms

da = pytest.importorskip("dask.array")
_rng = np.random.default_rng(3)
X = np.concatenate([_rng.normal(size=(150, 5)), _rng.normal(size=(150, 5)) + 3])
Y = _rng.normal(size=(120, 5))
NEW = _rng.normal(size=(70, 5)) + 1
KERNEL = Gaussian(2.0)


FITS = {
    "embedding": lambda X: SDPEmbedding(KERNEL, random_state=0).fit(X),
    "diffusion": lambda X: DiffusionMaps(KERNEL).fit(X),
    "principal": lambda X: KernelPCA(KERNEL, n_components=3, random_state=0).fit(X),
    "landmarks": lambda X: QuadratureSparsifier(KERNEL, n_nodes=12).fit(X),
}


@pytest.fixture(scope="module")
def models() -> dict[str, Any]:
    return {name: fit(X) for name, fit in FITS.items()}


@pytest.mark.parametrize("name", FITS)
def test_a_fit_is_that_of_one_machine(name: str, cluster: Any, models: dict[str, Any]) -> None:
    one, before = models[name], cluster.traffic
    many = FITS[name](X)
    moved = cluster.traffic - before
    assert moved.products > 0
    assert moved.points == X.nbytes
    found, expected = many.transform(NEW), one.transform(NEW)
    assert found @ found.T == pytest.approx(expected @ expected.T, rel=1e-6, abs=1e-8)
    if name == "landmarks":
        assert (many.indices_ == one.indices_).all()
        assert many.weights_ == pytest.approx(one.weights_, rel=1e-6, abs=1e-12)
    if getattr(one, "certificate_", None) is not None:
        assert many.certificate_.lower <= one.certificate_.upper
        assert one.certificate_.lower <= many.certificate_.upper
        assert many.certificate_.relative_gap < 1e-6


def test_what_was_fitted_on_a_cluster_is_proved_again_without_it(cluster: Any) -> None:
    model = SDPEmbedding(KERNEL, random_state=0).fit(X)
    with pytest.MonkeyPatch.context() as patch:
        from mercer.backends.dask import matrix

        patch.setattr(matrix, "LEAST_ENTRIES", 2**60)  # nothing goes to the cluster
        again = verify(model, X)
    assert again.relative_gap < 1e-6
    assert verify(model, X).relative_gap < 1e-6


def test_discrepancies_are_those_of_one_machine(client: Any, cluster: Any) -> None:
    before = cluster.traffic
    value = mmd(X, Y, KERNEL)
    tested = mmd_test(X, Y, KERNEL, rng=0)
    assert (cluster.traffic - before).products > 0
    assert (cluster.traffic - before).points <= X.nbytes + Y.nbytes + np.concatenate([X, Y]).nbytes
    with pytest.MonkeyPatch.context() as patch:
        from mercer.backends.dask import matrix

        patch.setattr(matrix, "LEAST_ENTRIES", 2**60)
        assert value == pytest.approx(mmd(X, Y, KERNEL), rel=1e-12, abs=0)
        other = mmd_test(X, Y, KERNEL, rng=0)
    assert tested.pvalue == other.pvalue
    assert tested.statistic == pytest.approx(other.statistic, rel=1e-10, abs=0)


def test_the_sums_of_a_test_are_those_of_one_machine_to_the_last_bit(cluster: Any) -> None:
    pooled, signs = np.concatenate([X, Y]), _rng.choice([-1.0, 1.0], size=(20, len(X) + len(Y)))

    def forms() -> Any:
        matrices = [kernel.matrix(pooled) for kernel in (KERNEL, Laplacian(3.0))]
        return quadratic_forms(matrices, lambda rows: signs[:, rows], len(signs))

    before = cluster.traffic
    shared = forms()
    moved = cluster.traffic - before
    assert moved.points == pooled.nbytes
    assert moved.received > 0
    with pytest.MonkeyPatch.context() as patch:
        from mercer.backends.dask import matrix

        patch.setattr(matrix, "LEAST_ENTRIES", 2**60)
        assert (forms() == shared).all()


def test_rows_of_a_dask_array_are_not_sent_to_the_workers_that_hold_them(cluster: Any, models: Any) -> None:
    before = cluster.traffic
    model = FITS["diffusion"](da.from_array(X, chunks=(70, 2)))
    moved = cluster.traffic - before
    assert moved.points == 0
    assert moved.received >= X.nbytes  # once, for what needs them here
    assert model.transform(NEW) == pytest.approx(models["diffusion"].transform(NEW), rel=1e-8, abs=1e-10)


def test_discrepancies_of_dask_arrays(cluster: Any) -> None:
    found = mmd(da.from_array(X, chunks=(70, 5)), da.from_array(Y, chunks=50), KERNEL)
    assert found == pytest.approx(mmd(X, Y, KERNEL), rel=1e-12, abs=0)


@pytest.mark.parametrize("chunks", [(30, 5), (70, 2)])
def test_a_transform_of_a_dask_array_is_one(chunks: tuple[int, int], models: dict[str, Any], client: Any) -> None:
    lazy = models["embedding"].transform(da.from_array(NEW, chunks=chunks))
    expected = models["embedding"].transform(NEW)
    assert isinstance(lazy, da.Array)
    assert lazy.shape == expected.shape
    assert lazy.dtype == expected.dtype
    assert lazy.compute() == pytest.approx(expected, rel=1e-12, abs=1e-14)
    novelty = models["embedding"].novelty(da.from_array(NEW, chunks=chunks))
    assert novelty.shape == (NEW.shape[0],)
    assert novelty.compute() == pytest.approx(models["embedding"].novelty(NEW), rel=1e-12, abs=1e-14)


@pytest.mark.parametrize("metric", ["euclidean", "cosine"])
def test_a_neighbour_graph_is_that_of_one_machine_to_the_last_bit(
    metric: str, cluster: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    from mercer.kernels import neighbours

    tied = np.concatenate([X, np.round(Y)])  # with neighbours that are equally far
    tied = np.unique(tied, axis=0)
    alone = neighbours.neighbour_tables(tied, 7, metric, "exact")
    monkeypatch.setattr(neighbours, "_LEAST_SHARED", 1)
    before = cluster.traffic
    shared = neighbours.neighbour_tables(tied, 7, metric, "exact")
    assert (cluster.traffic - before).received > 0
    assert len(shared) == len(alone)
    for one, other in zip(alone, shared, strict=True):
        for a, b in zip(one, other, strict=True):
            assert (a == b).all()


def test_without_a_cluster_dask_arrays_are_computed_by_this_process(models: dict[str, Any]) -> None:
    from dask import config

    with config.set(scheduler="synchronous"):
        lazy = models["principal"].transform(da.from_array(NEW, chunks=30))
        assert lazy.compute(scheduler="synchronous") == pytest.approx(models["principal"].transform(NEW), abs=1e-12)


def test_data_frames_keep_names_and_index(cluster: Any) -> None:
    pandas = pytest.importorskip("pandas")
    dd = pytest.importorskip("dask.dataframe")
    frame = pandas.DataFrame(X, columns=list("abcde"), index=np.arange(300) + 1000)
    lazy = dd.from_pandas(frame, npartitions=3)
    before = cluster.traffic
    model = KernelPCA(KERNEL, n_components=2, random_state=0).fit(lazy)
    assert (cluster.traffic - before).points == 0
    assert list(model.feature_names_in_) == list("abcde")
    found = model.transform(lazy)
    assert isinstance(found, dd.DataFrame)
    result = found.compute()
    assert list(result.index) == list(frame.index)
    assert list(result.columns) == list(model.get_feature_names_out())
    assert result.to_numpy() == pytest.approx(model.transform(frame), rel=1e-10, abs=1e-12)


def test_rows_beyond_the_memory_are_fitted_through_landmarks_by_blocks(
    cluster: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    from mercer.backends.dask import collections

    estimator = SDPEmbedding(KERNEL, landmarks=40, random_state=0)
    again = estimator.fit(ArrayRows(X)).transform(NEW)
    monkeypatch.setattr(collections, "_bytes", lambda _: float("inf"))
    model = estimator.fit(da.from_array(X, chunks=(130, 5)))
    assert model.certificate_.relative_gap < 1e-5
    assert model.transform(NEW) == pytest.approx(again, rel=1e-9, abs=1e-12)
    taken = DaskRows(da.from_array(X, chunks=(130, 5))).take(np.array([290, 3, 3, 170]))
    assert (taken == X[[290, 3, 3, 170]]).all()


def test_rows_that_this_process_cannot_hold_are_refused(cluster: Any) -> None:
    large = da.zeros((10**9, 1000), chunks=(10**6, 1000))
    with config_context(memory_limit="1GB"), pytest.raises(ValueError, match="8000.0 GB.*fit to a part of them"):
        NoveltyDetector().fit(large)


def test_rows_that_need_landmarks_are_refused_before_any_is_fetched(monkeypatch: pytest.MonkeyPatch) -> None:
    fetched = []

    def unseen(block: Any) -> Any:
        fetched.append(block.shape)
        return block

    rows = da.from_array(X, chunks=(50, 5)).map_blocks(unseen, meta=X[:0])
    with config_context(memory_limit="1KB"), pytest.raises(ValueError, match="pass landmarks=1000"):
        DiffusionMaps(KERNEL).fit(rows)
    assert not fetched
