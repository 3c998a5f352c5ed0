"""A worker that dies amid any phase of any job changes no bit of the answer."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest
from exact_bits import bits, told
from killing import BLOCKS, IDLE, Killer

import mercer.certificates.elliptope as elliptope_certificate
from mercer import (
    DiffusionMaps,
    Gaussian,
    GramOperator,
    KernelPCA,
    QuadratureSparsifier,
    SDPEmbedding,
    get_config,
    hsic_test,
    mmd,
    mmd_test,
)
from mercer.backends.dask import ClusterMatrix, collections, tasks
from mercer.backends.dask.collections import DaskRows
from mercer.certificates import measure_rounding
from mercer.certificates.matrix_free import MatrixFreeProof
from mercer.dependence import mmd_statistics
from mercer.dependence.centred_gram import CentredGram
from mercer.embedding import solve
from mercer.kernels import neighbours
from mercer.linalg import pivoted_cholesky
from mercer.linalg.lanczos import BlockLanczos
from mercer.operators import DiffusionOperator
from mercer.solvers.elliptope.minorise import Minorise

da = pytest.importorskip("dask.array")
_rng = np.random.default_rng(11)
X = np.concatenate([_rng.normal(size=(150, 5)), _rng.normal(size=(150, 5)) + 3])
Y = _rng.normal(size=(120, 5)) + 0.3
V = _rng.normal(size=(300, 3))
KERNEL = Gaussian(2.0)


def embedding(X: Any = X, **parameters: Any) -> Any:
    return SDPEmbedding(KERNEL, random_state=0, **parameters).fit(X)


def embedding_by_lanczos() -> Any:
    """With a certificate that neither a factorisation nor a stand-in gives."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(elliptope_certificate, "_DENSE_UP_TO", 0)
        patch.setattr(MatrixFreeProof, "_candidates", lambda *args, **kwargs: iter(()))
        return embedding()


def landmarks_of_blocks() -> Any:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(collections, "_bytes", lambda _: float("inf"))
        return embedding(da.from_array(X, chunks=(70, 5)), landmarks=40)


def quadrature(**parameters: Any) -> Any:
    return QuadratureSparsifier(KERNEL, **parameters).fit(X)


def principal_components() -> Any:
    return KernelPCA(KERNEL, n_components=3, random_state=0).fit(X)


def maps_of_a_dask_array() -> Any:
    return DiffusionMaps(KERNEL).fit(da.from_array(X, chunks=(70, 2)))


def independence() -> Any:
    return hsic_test(X, X[:, :2] + V[:, :2], rng=0)


def neighbour_tables() -> Any:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(neighbours, "_LEAST_SHARED", 1)
        return neighbours.neighbour_tables(X, 7, "euclidean", "exact")


def lazy_transform() -> Any:
    return computed(embedding().transform(da.from_array(Y, chunks=30)))


def computed(lazy: Any) -> Any:
    return get_config().client.compute(lazy).result()


class Case(NamedTuple):
    """A job, the function amid whose work a worker dies, and the task that it then has in hand."""

    job: Callable[[], Any]
    owner: Any
    name: str
    task: Any = tasks.products


def product() -> Any:
    return GramOperator(KERNEL, X) @ V


CASES = {
    "product": Case(product, ClusterMatrix, "multiply"),
    "columns on their way": Case(product, ClusterMatrix, "multiply", tasks.same),
    "sums of a product": Case(product, ClusterMatrix, "multiply", tasks.summed),
    "row sums": Case(embedding, DiffusionOperator, "_sums"),
    "partial Cholesky": Case(embedding, pivoted_cholesky, "_add_columns", IDLE),
    "solve": Case(embedding, Minorise, "moved"),
    "proof of an embedding": Case(embedding, solve, "certify_elliptope"),
    "Lanczos": Case(embedding_by_lanczos, BlockLanczos, "_step"),
    "principal components": Case(principal_components, ClusterMatrix, "multiply"),
    "landmarks": Case(lambda: embedding(landmarks=40), DiffusionOperator, "_sums"),
    "landmarks by blocks": Case(landmarks_of_blocks, DaskRows, "_computed", BLOCKS),
    "pass of a quadrature": Case(quadrature, QuadratureSparsifier, "_problem"),
    "rounding of a quadrature": Case(
        lambda: quadrature(n_nodes=12), measure_rounding, "entry_error_of", tasks.accuracy
    ),
    "points of a Dask array": Case(maps_of_a_dask_array, DiffusionOperator, "_sums"),
    "mmd": Case(lambda: mmd(X, Y, KERNEL), ClusterMatrix, "multiply"),
    "sums of mmd_test": Case(lambda: mmd_test(X, Y, rng=0), mmd_statistics, "quadratic_forms", tasks.asked),
    "means of hsic_test": Case(independence, CentredGram, "__init__"),
    "neighbour graph": Case(neighbour_tables, neighbours, "_exact", tasks.asked),
    "lazy transform": Case(lazy_transform, sys.modules[__name__], "computed", BLOCKS),
}
QUICK = ("product",)


@pytest.fixture
def client(mortal_client: Any) -> Any:
    return mortal_client


@pytest.mark.parametrize("name", [pytest.param(each, marks=[pytest.mark.slow] * (each not in QUICK)) for each in CASES])
def test_a_worker_that_dies_changes_no_bit(name: str, cluster: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    case = CASES[name]
    killer = Killer(cluster.client, monkeypatch, case.owner, case.name, case.task)
    expected = all_bits(case.job())
    cluster.forget()  # so that points are on their way again
    killer.again()
    assert all_bits(case.job()) == expected
    (lost,) = killer.lost
    assert (case.task is IDLE) == (not lost)


def all_bits(answer: Any) -> Any:
    """Of arrays and of whatever a fit or a test gives."""
    return told(answer) if hasattr(answer, "get_params") else bits(answer)
