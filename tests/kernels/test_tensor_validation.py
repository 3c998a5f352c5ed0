"""Tensors are checked as arrays are: the same sentences for what cannot be used, and a tensor for what can."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose

from mercer import config_context
from mercer.embedding import SDPEmbedding
from mercer.kernels import Precomputed
from mercer.kernels.checks import as_points, checked_weights, same_library, scale_free
from mercer.validation import checked_points, distinct_rows, normalised, two_samples, weighted_sample

torch = pytest.importorskip("torch")

X = np.array([[0.0, 1.0], [2.0, -1.0], [1.0, 1.0]])
NAN, INF = X.copy(), X.copy()
NAN[1, 0], INF[2, 1] = np.nan, -np.inf
BAD = [
    NAN,
    INF,
    INF.astype(np.float32),
    X + 1j,
    np.ones((2, 2, 2)),
    np.ones(2),
    np.array(3.0),
    np.empty((3, 0)),
]


def sentence_of(call):
    with pytest.raises((TypeError, ValueError)) as caught:
        call()
    return str(caught.value)


@pytest.mark.parametrize("bad", BAD, ids=range(len(BAD)))
def test_the_same_sentences_for_points(bad):
    assert sentence_of(lambda: as_points(torch.tensor(bad), "Y")) == sentence_of(lambda: as_points(bad, "Y"))


@pytest.mark.parametrize("bad", [*BAD, np.empty((0, 2)), X[:1]], ids=range(len(BAD) + 2))
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_the_same_sentences_of_an_estimator(bad, dtype):
    with config_context(dtype=dtype):
        ours = sentence_of(lambda: checked_points(SDPEmbedding(), torch.tensor(bad), fitting=True))
        assert ours == sentence_of(lambda: checked_points(SDPEmbedding(), bad, fitting=True))


@pytest.mark.parametrize("size", [1e-40, 1e300])
def test_points_out_of_the_range_of_single_precision(size):
    with config_context(dtype="float32"):
        ours = sentence_of(lambda: checked_points(SDPEmbedding(), torch.tensor(size * X), fitting=True))
        assert ours == sentence_of(lambda: checked_points(SDPEmbedding(), size * X, fitting=True))


@pytest.mark.parametrize("kind", ["float32", "float64", "float16", "bfloat16", "int64", "int8", "bool"])
def test_points_keep_single_precision_and_all_else_is_double(kind, refuse_numpy):
    tensor = torch.tensor([[0, 1], [1, 1]]).to(getattr(torch, kind))
    points = as_points(tensor)
    assert points.dtype == (torch.float32 if kind == "float32" else torch.float64)
    assert torch.equal(points, tensor.to(points.dtype))


def test_points_that_need_nothing_are_not_copied(refuse_numpy):
    tensor = torch.ones(3, 2, requires_grad=True)
    points = as_points(tensor)
    assert points.data_ptr() == tensor.data_ptr()
    assert not points.requires_grad
    assert as_points(torch.ones(2, 3).T).is_contiguous()


@pytest.mark.parametrize("layout", ["to_sparse_coo", "to_sparse_csr"])
@pytest.mark.filterwarnings("ignore:Sparse CSR tensor support is in beta")
def test_sparse_tensors_are_no_points(layout):
    sparse = getattr(torch.eye(3), layout)()
    for use in (as_points, lambda t: checked_points(SDPEmbedding(), t, fitting=True)):
        assert sentence_of(lambda use=use: use(sparse)) == (
            "X is a sparse tensor: pass a dense one, or sparse affinities with Precomputed()."
        )


@pytest.mark.parametrize(("dtype", "kind"), [("float64", torch.float64), ("float32", torch.float32)])
def test_an_estimator_follows_the_configuration(dtype, kind, refuse_numpy):
    model = SDPEmbedding()
    with config_context(dtype=dtype):
        for given in (torch.tensor(X), torch.tensor(X, dtype=torch.float32), torch.tensor(X).to(torch.int32)):
            points = checked_points(model, given, fitting=True)
            assert points.dtype == kind
            assert torch.equal(points, torch.tensor(X, dtype=kind))
    assert model.n_features_in_ == 2


def test_later_points_are_brought_to_the_library_of_the_fit():
    model, tensor = SDPEmbedding(), torch.tensor(X)
    checked_points(model, tensor, fitting=True)
    assert torch.equal(checked_points(model, X[:1], fitting=False), tensor[:1])
    checked_points(model, X, fitting=True)
    assert np.array_equal(checked_points(model, tensor.requires_grad_(), fitting=False), X)


def test_later_points_have_the_features_of_the_fit():
    model, twin = SDPEmbedding(), SDPEmbedding()
    checked_points(model, torch.tensor(X), fitting=True)
    checked_points(twin, X, fitting=True)
    wide = np.ones((2, 3))
    ours = sentence_of(lambda: checked_points(model, torch.tensor(wide), fitting=False))
    assert ours == sentence_of(lambda: checked_points(twin, wide, fitting=False))


def test_a_fit_on_tensors_forgets_the_names_of_an_earlier_table():
    pandas = pytest.importorskip("pandas")
    model = SDPEmbedding()
    checked_points(model, pandas.DataFrame(X, columns=["a", "b"]), fitting=True)
    assert list(model.feature_names_in_) == ["a", "b"]
    checked_points(model, torch.tensor(X), fitting=True)
    assert not hasattr(model, "feature_names_in_")


def test_a_precomputed_tensor_is_square():
    assert sentence_of(lambda: checked_points(SDPEmbedding(Precomputed()), torch.tensor(X), fitting=True)) == (
        "A precomputed kernel must be square, not 3 × 2."
    )


BAD_WEIGHTS = [
    np.array([1.0, np.nan, 1.0]),
    np.array([1.0, 1.0, np.inf]),
    np.array([1.0, -1.0, -2.0]),
    np.zeros(3),
    np.ones(4),
    np.ones((3, 1)),
]


@pytest.mark.parametrize("bad", BAD_WEIGHTS, ids=range(len(BAD_WEIGHTS)))
def test_the_same_sentences_for_weights(bad):
    assert sentence_of(lambda: checked_weights(torch.tensor(bad), 3, "w")) == sentence_of(
        lambda: checked_weights(bad, 3, "w")
    )


def test_weights_are_of_the_library_of_their_points():
    points = torch.tensor(X)
    for given in (2, [2, 2, 2], np.full(3, 2, np.float32), torch.tensor([2, 2, 2])):
        assert torch.equal(checked_weights(given, 3, "w", reference=points), torch.full((3,), 2.0, dtype=torch.float64))
        assert np.array_equal(checked_weights(given, 3, "w", reference=X), np.full(3, 2.0))
    own = torch.ones(3, dtype=torch.float64)
    checked_weights(own, 3, "w").mul_(2)
    assert torch.equal(own, torch.ones(3, dtype=torch.float64))


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("size", [1.0, 1e-30, 1e30, 3.7])
def test_a_unit_of_weights_is_taken_out_exactly(dtype, size, refuse_numpy):
    weights = (size * np.array([0.3, 1e-5, 7.1, 0.0])).astype(dtype)
    ours = scale_free(torch.tensor(weights))
    assert ours.dtype == torch.tensor(weights).dtype
    assert [float(w) for w in ours] == [float(w) for w in scale_free(weights)]


@pytest.mark.parametrize("size", [5e-324, 1e-310, 1e308])
def test_a_unit_at_either_end_of_the_numbers(size):
    weights = size * np.array([1.0, 0.5, 0.0])
    assert np.array_equal(scale_free(torch.tensor(weights)).numpy(), scale_free(weights))


def test_shares(refuse_numpy):
    weights = torch.tensor([1.0, 3.0], dtype=torch.float64)
    assert torch.equal(normalised(weights, 2), weights / 4)
    assert torch.equal(normalised(None, 4, reference=weights), torch.full((4,), 0.25, dtype=torch.float64))


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("size", [1.0, 1e300])  # keys of the latter overflow
def test_distinct_rows(dtype, size):
    rng = np.random.default_rng(0)
    points = rng.integers(0, 4, size=(200, 3)).astype(dtype)
    points = points if dtype == np.float32 else points * size
    ours, theirs = distinct_rows(torch.tensor(points)), distinct_rows(points)
    for a, b in zip(ours, theirs, strict=True):
        assert np.array_equal(a.numpy(), b)
    assert np.array_equal(points[theirs[0]][theirs[1]], points)


def test_samples_meet_in_one_library():
    tensor = torch.tensor(X, dtype=torch.float32)
    for a, b in ((X, tensor), (tensor, X), (tensor, tensor)):
        parts = two_samples(a, b, None, np.ones(3))
        assert all(isinstance(part, torch.Tensor) and part.dtype == torch.float64 for part in parts)
    assert all(isinstance(part, np.ndarray) for part in two_samples(X, X, None, torch.ones(3)))
    assert same_library(X, X)[0] is X
    _, weights = weighted_sample(tensor, None, "X", "w")
    assert_allclose(weights.numpy(), 1 / 3)
    with pytest.raises(ValueError, match="X has no rows"):
        weighted_sample(tensor[:0], None, "X", "w")
