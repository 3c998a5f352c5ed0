"""Operators on tensors: what they share with NumPy's beyond the conformance suite."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

from mercer import DiffusionOperator, Gaussian, GramOperator, Linear, LowRankOperator, Matern, Polynomial
from mercer.operators.diffusion import DegenerateKernelError
from mercer.operators.signed_measure import difference, energy

torch = pytest.importorskip("torch")
RNG = np.random.default_rng(3)
X = RNG.normal(size=(90, 6))
W = RNG.uniform(0.2, 2.0, 90)


def tensor(array, dtype="float64"):
    return torch.as_tensor(np.asarray(array, dtype))


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("kernel", [Gaussian(2.0), Polynomial(2, gamma=0.1, coef0=1.0), Matern(1.7, 2.0)], ids=repr)
def test_the_rounding_of_a_diffusion_is_stated_alike(kernel, dtype, refuse_numpy):
    ours, theirs = (
        DiffusionOperator(GramOperator(kernel, points, weights=W)).rounding()
        for points in (X.astype(dtype), tensor(X, dtype))
    )
    assert theirs.norm == pytest.approx(ours.norm, rel=1e-4)
    assert theirs.nonnegative is ours.nonnegative
    assert theirs.semidefinite is ours.semidefinite
    for name in ("product", "entries"):  # tiles and sums differ by no more than a factor
        assert 0.5 < getattr(theirs, name) / getattr(ours, name) < 2
    assert theirs.diagonal.dtype == torch.float64
    assert bool((theirs.diagonal <= 2 * torch.as_tensor(ours.diagonal)).all())
    assert bool((theirs.diagonal >= 0.5 * torch.as_tensor(ours.diagonal)).all())


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_products_diagonals_and_entries_lie_within_the_stated_rounding(dtype):
    points = tensor(RNG.normal(size=(700, 6)), dtype)
    operator = DiffusionOperator(GramOperator(Gaussian(2.0), points))
    exact = np.longdouble(points.numpy())
    K = np.exp(-(((exact[:, None] - exact[None]) ** 2).sum(axis=2)) / np.longdouble(4))
    m = K.sum(axis=1)
    M = K / np.sqrt(np.outer(m, m)) - np.sqrt(np.outer(m, m)) / m.sum()
    stated = operator.rounding()
    v = tensor(RNG.normal(size=700), dtype)
    own = operator.to_dense().numpy().astype(np.longdouble)
    assert np.linalg.norm((own - M).astype(float), 2) <= stated.entries
    size = stated.norm * float(torch.linalg.vector_norm(v.double()))
    error = np.asarray((operator @ v).numpy() - own @ np.longdouble(v.numpy()), float)
    assert np.linalg.norm(error) <= 2 * (stated.product + stated.entries) * size
    assert np.all(np.abs(operator.diagonal().numpy() - np.diagonal(M)) <= stated.diagonal.numpy())


def test_points_in_single_precision_multiplied_in_double_know_what_that_changes(refuse_numpy):
    narrow = [
        GramOperator(Gaussian(2.0), points, dtype=np.float64).narrow_error(W)
        for points in (X.astype(np.float32), tensor(X, "float32"))
    ]
    assert narrow[1].rows.dtype == torch.float64
    for name in ("relative", "scaled"):
        assert getattr(narrow[1].entries, name) == pytest.approx(getattr(narrow[0].entries, name), rel=0.5, abs=0)
    assert GramOperator(Gaussian(2.0), tensor(X)).narrow_error(W) is None


def test_what_is_multiplied_with_is_brought_to_the_library_of_the_map():
    ours, theirs = GramOperator(Gaussian(2.0), X), GramOperator(Gaussian(2.0), tensor(X))
    v = RNG.normal(size=90)
    np.testing.assert_allclose(theirs @ v, ours @ v, rtol=1e-12)
    assert isinstance(theirs @ v, torch.Tensor)
    assert isinstance(ours @ tensor(v), np.ndarray)
    np.testing.assert_allclose(theirs @ v.tolist(), ours @ v, rtol=1e-12)


def test_one_side_of_new_points_may_be_numpy():
    new = RNG.normal(size=(4, 6))
    expected = GramOperator(Gaussian(2.0), new, X).to_dense()
    for pair in ((tensor(new), X), (new, tensor(X)), (tensor(new), tensor(X))):
        block = GramOperator(Gaussian(2.0), *pair).to_dense()
        assert isinstance(block, torch.Tensor)
        np.testing.assert_allclose(block, expected, rtol=1e-12)


def test_factors_of_two_libraries_meet_where_the_first_lies():
    F, G = RNG.normal(size=(5, 2)), RNG.normal(size=(7, 2)).astype(np.float32)
    mixed = LowRankOperator(tensor(F), G)
    assert mixed.dtype == torch.float64
    np.testing.assert_allclose(mixed.to_dense(), F @ G.T, rtol=1e-12)
    np.testing.assert_allclose(mixed @ np.ones(7), F @ G.T @ np.ones(7), rtol=1e-12)
    assert LowRankOperator(torch.zeros((4, 0))).to_dense().shape == (4, 4)


def test_bad_weights_and_degenerate_kernels_are_refused_in_the_same_words():
    for weights in (np.ones(3), -np.ones(90), np.zeros(90)):
        sentences = []
        for points, given in ((X, weights), (tensor(X), tensor(weights))):
            with pytest.raises(ValueError, match="weights") as error:
                GramOperator(Gaussian(2.0), points, weights=given)
            sentences.append(str(error.value))
        assert sentences[0] == sentences[1]
    sentences = []
    for points in (X, tensor(X)):
        with pytest.raises(DegenerateKernelError, match="diffusion needs positive row sums") as error:
            DiffusionOperator(GramOperator(Linear(), points))
        sentences.append(str(error.value))
    assert sentences[0] == sentences[1]


def test_signed_measures(refuse_numpy):
    Y = np.concatenate([X[:30], RNG.normal(size=(20, 6))])
    given = X, W / W.sum(), Y, np.full(50, 1 / 50)
    ours = difference(*given)
    theirs = difference(*(tensor(part) for part in given))
    torch.testing.assert_close(theirs[0], torch.as_tensor(ours[0]), rtol=0, atol=0)
    torch.testing.assert_close(theirs[1], torch.as_tensor(ours[1]), rtol=0, atol=0)
    assert energy(Gaussian(2.0), *theirs) == pytest.approx(energy(Gaussian(2.0), *ours), rel=1e-12)
    assert energy(Gaussian(2.0), *difference(*(tensor(part) for part in given[:2] * 2))) == 0.0


def test_tensors_index_as_arrays_do():
    ours, theirs = GramOperator(Gaussian(2.0), X), GramOperator(Gaussian(2.0), tensor(X))
    mask = np.arange(90) % 7 == 2
    for rows in (np.array([3, -1, 3]), mask):
        expected = ours.block(rows, slice(5))
        for index in (rows, torch.as_tensor(rows)):
            np.testing.assert_allclose(theirs.block(index, slice(5)), expected, rtol=1e-12)
    for wrong in (torch.tensor([90]), torch.tensor([-91]), torch.ones(89, dtype=torch.bool)):
        with pytest.raises(IndexError):
            theirs.block(wrong, slice(5))


def test_numpy_work_does_not_import_torch():
    code = (
        "import sys, numpy as np, mercer; gram = mercer.GramOperator(mercer.Gaussian(1.0), np.eye(9)); "
        "mercer.DiffusionOperator(gram) @ np.ones(9); mercer.rp_cholesky(gram, 3, 0); assert 'torch' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
