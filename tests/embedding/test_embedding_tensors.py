"""Whole fits on tensors: what NumPy finds, to rounding, with no tensor made a NumPy array on the way."""

from __future__ import annotations

import pickle
import warnings

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from mercer import DiffusionMaps, Gaussian, Laplacian, Precomputed, SDPEmbedding, config_context, rank_path, verify
from mercer.datasets import three_clusters
from mercer.solvers import Status

torch = pytest.importorskip("torch")
X = three_clusters(n_per_cluster=90)[0]  # enough for a stand-in
FEW = X[::5]
NEW = X[:9] + np.linspace(-1, 1, 18).reshape(9, 2)
ARRAYS = ("embedding_", "coordinates_", "eigenvalues_", "diagonal_", "stationary_")
ROUNDING = 1e-9  # of solutions found by the same steps, whose roundings differ
RESIDUAL = 1e-5  # of solutions found by other steps that stop at a residual of 1e-6


def _host(tensor):
    """The values of a tensor that refuses to give them: through its memory."""
    assert isinstance(tensor, torch.Tensor)
    memory = bytes(tensor.clone().contiguous().untyped_storage())
    return np.frombuffer(memory, str(tensor.dtype).rpartition(".")[2]).reshape(tuple(tensor.shape))


def _assert_same(theirs, ours):
    """All that a fit leaves behind. Where a stand-in is drawn at random, a rounding may draw another: as good a road."""
    strict = ours.n_stand_in_products_ == 0
    for name in ARRAYS:
        found, expected = _host(getattr(theirs, name)), getattr(ours, name)
        atol = (ROUNDING if strict else RESIDUAL) * np.abs(expected).max()
        np.testing.assert_allclose(found, expected, rtol=0, atol=atol, err_msg=name)
    assert theirs.status_ is ours.status_
    assert theirs.rank_ == ours.rank_
    one, other = ours.certificate_, theirs.certificate_
    assert other.lower == pytest.approx(one.lower, rel=1e-12 if strict else 1e-9)
    assert other.upper == pytest.approx(one.upper, rel=1e-9 if strict else 2e-6)
    if strict:
        assert (theirs.n_iter_, theirs.n_products_) == (ours.n_iter_, ours.n_products_)
        assert (other.method, other.n_products) == (one.method, one.n_products)


@pytest.mark.parametrize(
    ("points", "options"),
    [
        (X, {"kernel": Gaussian()}),
        (FEW, {"kernel": Gaussian()}),
        (X, {"kernel": Laplacian(sigma=2.0), "n_components": 1}),
        (X, {"kernel": Gaussian(sigma=1.2), "certify": "residual-lanczos"}),
        (X, {"kernel": Gaussian(sigma=1.2), "certify": "deflated-lanczos"}),
        (X, {"kernel": Gaussian(sigma=1.2), "certify": "factorisation"}),
        (FEW, {"kernel": Gaussian(), "solver": "power"}),
        (FEW, {"kernel": Gaussian(), "solver": "accelerated"}),
        (FEW, {"kernel": Gaussian(), "solver": "trust-region"}),
    ],
    ids=lambda part: None if isinstance(part, np.ndarray) else "-".join(map(str, part.values())) or "defaults",
)
def test_fits_are_those_of_numpy(points, options, refuse_numpy):
    ours = SDPEmbedding(**options, random_state=0).fit(points)
    T, new = torch.asarray(points), torch.asarray(NEW)
    theirs = SDPEmbedding(**options, random_state=0).fit(T)
    _assert_same(theirs, ours)
    for name in ("transform", "novelty", "learned_kernel"):
        expected = getattr(ours, name)(NEW)
        found = _host(getattr(theirs, name)(new))
        np.testing.assert_allclose(found, expected, rtol=0, atol=RESIDUAL * np.abs(expected).max(), err_msg=name)
    assert verify(theirs, T).holds(1e-5)


def test_interior_points(refuse_numpy):
    ours = SDPEmbedding(Gaussian(), solver="interior-point", random_state=0).fit(FEW)
    theirs = SDPEmbedding(Gaussian(), solver="interior-point", random_state=0).fit(torch.asarray(FEW))
    assert theirs.certificate_.holds(1e-6)
    assert theirs.certificate_.lower == pytest.approx(ours.certificate_.lower, rel=1e-9)
    assert isinstance(theirs.multipliers_, torch.Tensor)
    assert verify(theirs, torch.asarray(FEW)).holds(1e-6)


def test_nearly_flat_optima_are_proved_on_tensors_too(refuse_numpy):
    """A narrow kernel: the climb hands over to the interior-point method, and the bounds are as good."""
    kernel = Gaussian(sigma=0.15)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        ours = SDPEmbedding(kernel, random_state=0).fit(FEW)
        theirs = SDPEmbedding(kernel, random_state=0).fit(torch.asarray(FEW))
    assert theirs.certificate_.holds(1e-6) == ours.certificate_.holds(1e-6)
    assert theirs.certificate_.lower == pytest.approx(ours.certificate_.lower, rel=1e-6)


def test_weights_and_rows_of_no_weight():
    w = np.random.default_rng(0).uniform(0.5, 2.0, len(FEW))
    w[3] = 0
    ours = SDPEmbedding(Gaussian(), random_state=0).fit(FEW, sample_weight=w)
    T = torch.asarray(FEW)
    theirs = SDPEmbedding(Gaussian(), random_state=0).fit(T, sample_weight=torch.asarray(w))
    _assert_same(theirs, ours)
    assert isinstance(theirs.landmarks_, torch.Tensor)
    assert isinstance(theirs.sample_weight_, torch.Tensor)
    assert verify(theirs, T).holds(1e-5)
    np.testing.assert_array_equal(
        _host(SDPEmbedding(Gaussian(), random_state=0).fit(T, sample_weight=w).embedding_), theirs.embedding_
    )


@pytest.mark.parametrize("as_array", [np.asarray, torch.as_tensor], ids=["numpy", "torch"])
def test_landmarks(as_array):
    rows = np.arange(0, len(X), 4)
    ours = SDPEmbedding(Gaussian(), random_state=0, landmarks=rows).fit(X)
    theirs = SDPEmbedding(Gaussian(), random_state=0, landmarks=as_array(rows)).fit(torch.asarray(X))
    _assert_same(theirs, ours)
    assert verify(theirs, torch.asarray(X)).holds(1e-5)
    assert verify(theirs, torch.asarray(X), extended=True).lower > 0


def test_precomputed_affinities(refuse_numpy):
    K = Gaussian(sigma=1.2)(X)
    ours = SDPEmbedding(Precomputed(), random_state=0).fit(K)
    theirs = SDPEmbedding(Precomputed(), random_state=0).fit(torch.asarray(K))
    _assert_same(theirs, ours)


def test_single_precision(refuse_numpy):
    """Iterates in single precision, proofs in double: six digits, and certificates that hold."""
    options = {"kernel": Gaussian(sigma=1.2), "tol": 1e-3, "residual_tol": 1e-4, "random_state": 0}
    with config_context(dtype="float32"):
        for points in (X, FEW):
            ours, theirs = SDPEmbedding(**options).fit(points), SDPEmbedding(**options).fit(torch.asarray(points))
            assert theirs.status_ is ours.status_ is Status.CONVERGED
            assert theirs.stationary_.dtype == torch.float32
            error = np.abs(_host(theirs.embedding_) - ours.embedding_).max()
            assert error <= 1e-3 * np.abs(ours.embedding_).max()  # of a residual of 1e-4
            assert theirs.certificate_.lower == pytest.approx(ours.certificate_.lower, rel=1e-5)
            assert theirs.transform(torch.asarray(NEW)).shape == (9, theirs.rank_)
            assert verify(theirs, torch.asarray(points)).holds(1e-2)
        maps = DiffusionMaps(Gaussian(sigma=1.2)).fit(torch.asarray(X))
        assert maps.embedding_.dtype == torch.float32
        expected = DiffusionMaps(Gaussian(sigma=1.2)).fit(X).embedding_
        np.testing.assert_allclose(_host(maps.embedding_), expected, atol=1e-3 * np.abs(expected).max())


@pytest.mark.parametrize("alpha", [0.0, 1.0])
def test_diffusion_maps(alpha, refuse_numpy):
    ours = DiffusionMaps(Gaussian(), alpha=alpha, time=2.0, n_components=3).fit(X)
    theirs = DiffusionMaps(Gaussian(), alpha=alpha, time=2.0, n_components=3).fit(torch.asarray(X))
    for found, expected in (
        (theirs.embedding_, ours.embedding_),
        (theirs.eigenvalues_, ours.eigenvalues_),
        (theirs.stationary_, ours.stationary_),
        (theirs.transform(torch.asarray(NEW)), ours.transform(NEW)),
    ):
        np.testing.assert_allclose(_host(found), expected, atol=1e-10 * np.abs(expected).max())


def test_paths_over_bandwidths():
    ours, theirs = (rank_path(points, [0.6, 1.2, 1e9], random_state=0) for points in (FEW, torch.asarray(FEW)))
    assert theirs.diagnoses == ours.diagnoses
    np.testing.assert_array_equal(theirs.ranks, ours.ranks)
    np.testing.assert_allclose(theirs.objectives, ours.objectives, rtol=1e-9)
    for one, other in zip(ours.entries, theirs.entries, strict=True):
        np.testing.assert_allclose(other.eigenvalues, one.eigenvalues, atol=1e-7)
        np.testing.assert_allclose(other.diffusion_eigenvalues, one.diffusion_eigenvalues, atol=1e-12)


def test_new_points_of_the_other_library_are_brought_over():
    theirs, ours = (
        SDPEmbedding(Gaussian(), random_state=0).fit(torch.asarray(FEW)),
        SDPEmbedding(Gaussian(), random_state=0).fit(FEW),
    )
    for model, kind in ((theirs, torch.Tensor), (ours, np.ndarray)):
        for new in (NEW, torch.asarray(NEW)):
            assert isinstance(model.transform(new), kind)
            assert isinstance(model.novelty(new), kind)


def test_checkpoints_and_copies(tmp_path):
    T = torch.asarray(FEW)
    path = tmp_path / "kept.npz"
    kernel = Gaussian(sigma=1.2)
    first = SDPEmbedding(kernel, random_state=0, checkpoint=path).fit(T)
    again = SDPEmbedding(kernel, random_state=1, checkpoint=path).fit(T)
    assert again.certificate_.lower == pytest.approx(first.certificate_.lower, rel=1e-9)
    assert (
        SDPEmbedding(kernel, random_state=0, checkpoint=path).fit(FEW).n_iter_ >= first.n_iter_
    )  # of the other library
    copy = pickle.loads(pickle.dumps(first))
    assert torch.equal(copy.transform(T), first.transform(T))
    warm = SDPEmbedding(kernel, random_state=0, warm_start=True).fit(T)
    assert warm.fit(T).n_iter_ <= first.n_iter_


def test_a_model_that_was_changed_is_refused():
    model = SDPEmbedding(Gaussian(), random_state=0).fit(torch.asarray(FEW))
    model.diagonal_ = model.diagonal_ * 1.01
    with pytest.raises(ValueError, match="diagonal_ is not what"):
        verify(model, torch.asarray(FEW))
    with pytest.raises(ValueError, match="cannot belong to this X"):
        verify(model, torch.asarray(FEW[::-1].copy()))
