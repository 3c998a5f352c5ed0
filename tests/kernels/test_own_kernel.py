"""A kernel of one's own, given by a function of two blocks of points, goes wherever ours go."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from numpy.testing import assert_allclose
from own_kernels import HistogramIntersection, SharedWords
from sklearn.svm import SVC

from mercer import config_context, rp_cholesky, verify
from mercer.embedding import DiffusionMaps, SDPEmbedding
from mercer.kernels import EntryError, Gaussian, Kernel, Linear, Properties, TileFunction
from mercer.operators import DiffusionOperator, GramOperator
from mercer.quadrature import QuadratureSparsifier

KERNEL = HistogramIntersection()


def histograms(n=90, d=8, seed=0):
    rng = np.random.default_rng(seed)
    profiles = rng.dirichlet(np.ones(d), 3)
    return rng.multinomial(60, profiles[rng.integers(0, 3, n)]).astype(float)


def truth(X, Y):
    return np.minimum(X[:, None], Y[None]).sum(axis=2)


X = histograms()
NEW = histograms(7, seed=1)


def test_values():
    assert np.array_equal(KERNEL(X), truth(X, X))
    assert np.array_equal(KERNEL(X, NEW), truth(X, NEW))
    assert np.array_equal(KERNEL.diag(X), X.sum(axis=1))
    assert_allclose(KERNEL.log(X), np.log(truth(X, X)))
    assert KERNEL(X.astype(np.float32)).dtype == np.float32


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_the_matrix_as_a_map(dtype):
    many = histograms(700).astype(dtype)  # several tiles
    K, v = truth(many, many), np.random.default_rng(0).normal(size=(700, 3)).astype(dtype)
    gram = GramOperator(KERNEL, many)
    close = {"rtol": 1e-12, "atol": 1e-10} if dtype == np.float64 else {"rtol": 1e-5, "atol": 1e-1}
    for _ in range(3):  # made tile by tile, then stored
        assert_allclose(gram @ v, K @ v, **close)
    assert np.array_equal(gram.diagonal(), K.diagonal())
    assert np.array_equal(gram.block(slice(3, 9), [5, 600]), K[3:9][:, [5, 600]])
    assert_allclose(gram.row_sums(), K.sum(axis=1), **close)
    assert gram.entry_error.relative == pytest.approx(8 * np.finfo(dtype).eps / 2, rel=1e-5, abs=0)
    assert gram.nonnegative
    with config_context(n_threads=1):
        one = GramOperator(KERNEL, many) @ v
    with config_context(n_threads=3):
        assert np.array_equal(GramOperator(KERNEL, many) @ v, one)


def test_algebra():
    kernel = (2.0 * KERNEL + Linear() ** 2).normalized() * Gaussian(30.0)
    K = 2 * truth(X, X) + (X @ X.T) ** 2
    scale = np.sqrt(np.outer(K.diagonal(), K.diagonal()))
    assert_allclose(kernel(X), K / scale * Gaussian(30.0)(X), rtol=1e-12)


def test_a_low_rank_factor():
    low = rp_cholesky(GramOperator(KERNEL, X), 60, 0)
    assert np.abs(low.to_dense() - truth(X, X)).max() < 0.3 * truth(X, X).max()
    chosen = low.landmarks
    assert_allclose(low.to_dense()[chosen], truth(X, X)[chosen], atol=1e-8)


def test_a_whole_fit_with_its_proof():
    model = SDPEmbedding(KERNEL, tol=1e-6, random_state=0).fit(X)
    assert model.certificate_.holds(1e-6)
    again = pickle.loads(pickle.dumps(model))
    assert verify(again, X).holds(1e-5)
    assert np.array_equal(again.transform(NEW), model.transform(NEW))
    assert_allclose(model.transform(X), model.embedding_, atol=1e-6)
    assert model.novelty(NEW).shape == (7,)
    dense = np.linalg.eigvalsh(DiffusionOperator(GramOperator(KERNEL, X)).to_dense())
    maps = DiffusionMaps(KERNEL, n_components=2).fit(X)
    assert_allclose(maps.eigenvalues_[:2], dense[::-1][:2], rtol=1e-10)
    assert QuadratureSparsifier(KERNEL, n_nodes=6).fit(X).certificate_.holds(1e-6)


def test_scikit_learn_takes_it():
    labels = X[:, 0] > np.median(X[:, 0])
    assert SVC(kernel=KERNEL).fit(X, labels).score(X, labels) > 0.8


def test_points_that_stand_for_texts():
    rng = np.random.default_rng(0)
    texts = ["".join(rng.choice(list(letters), 12)) for letters in ("abc", "cde") for _ in range(20)]
    kernel, numbers = SharedWords(texts), np.arange(40.0)[:, None]
    shared = sum(texts[0][i : i + 2] == texts[1][j : j + 2] for i in range(11) for j in range(11))
    assert kernel(numbers[:1], numbers[1:2]) == shared
    model = SDPEmbedding(kernel.normalized(), random_state=0).fit(numbers)
    assert model.certificate_.holds(1e-6)
    first = model.embedding_[:, 0]
    assert np.sign(first[:20]).sum() * np.sign(first[20:]).sum() < 0
    assert np.allclose(pickle.loads(pickle.dumps(model)).transform(numbers), model.embedding_, atol=1e-5)


class Crooked(Kernel):
    """A kernel whose function returns too little."""

    def __init__(self, broken: str = "function") -> None:
        self.broken = broken

    def _form(self, n_features: int) -> TileFunction:
        def block(rows, cols):
            return (rows @ cols.T)[:1] if self.broken == "function" else rows @ cols.T

        def diagonal(points):
            return 1.0 if self.broken == "diagonal" else (points**2).sum(axis=1)

        return TileFunction(block, diagonal, EntryError(0, n_features))

    @property
    def properties(self) -> Properties:
        return Properties()


@pytest.mark.parametrize(
    ("broken", "shape"), [("function", r"\(1, 5\) for a block of shape \(5, 5\)"), ("diagonal", r"\(\)")]
)
def test_a_block_of_another_shape_is_refused(broken, shape):
    with pytest.raises(ValueError, match=rf"The function of a kernel returned an array of shape {shape}"):
        Crooked(broken)(np.ones((5, 2)))


def test_on_tensors(refuse_numpy):
    torch = refuse_numpy
    points = torch.tensor(histograms(40))
    gram = GramOperator(KERNEL, points)
    want = torch.minimum(points[:, None], points[None]).sum(dim=2)
    assert torch.equal(KERNEL(points), want)
    v = torch.ones(40, 2, dtype=torch.float64)
    assert torch.allclose(gram @ v, want @ v, rtol=1e-13)
    assert torch.equal(gram.diagonal(), points.sum(dim=1))
    with pytest.raises(ValueError, match=r"returned an array of shape \(1, 40\)"):
        Crooked()(points)


def test_a_whole_fit_on_tensors():
    torch = pytest.importorskip("torch")
    ours = SDPEmbedding(KERNEL, tol=1e-7, random_state=0).fit(torch.tensor(X))
    theirs = SDPEmbedding(KERNEL, tol=1e-7, random_state=0).fit(X)
    assert isinstance(ours.embedding_, torch.Tensor)
    assert ours.certificate_.upper == pytest.approx(theirs.certificate_.upper, rel=1e-6)  # the gap that either proves
    assert verify(ours, torch.tensor(X)).holds(1e-6)
    assert torch.equal(ours.transform(NEW), ours.transform(torch.tensor(NEW)))  # brought to where the model lies
    assert_allclose(ours.novelty(torch.tensor(NEW)).numpy(), theirs.novelty(NEW), rtol=1e-10)
