"""Kernel matrices that are given."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse
from numpy.testing import assert_allclose

from mercer.kernels import Gaussian, Precomputed
from mercer.operators import GramOperator

rng = np.random.default_rng(0)
POINTS = rng.normal(size=(40, 3))
GRAM = Gaussian(1.0)(POINTS)
BLOCK = Gaussian(1.0)(rng.normal(size=(6, 3)), POINTS)
FORMATS = [np.asarray, scipy.sparse.csr_array, scipy.sparse.csr_matrix, scipy.sparse.csc_array, scipy.sparse.coo_array]


@pytest.mark.parametrize("form", FORMATS)
def test_values_pass_through(form, dtype):
    gram, block = GRAM.astype(dtype), BLOCK.astype(dtype)
    assert np.array_equal(Precomputed()(form(gram)), gram)
    assert np.array_equal(Precomputed()(form(block), form(gram)), block)
    assert np.array_equal(Precomputed().diag(form(gram)), gram.diagonal())
    assert Precomputed()(form(gram)).dtype == dtype
    assert_allclose(Precomputed().log(form(gram)), np.log(gram), rtol=1e-6)


def test_a_sparse_matrix_larger_than_a_tile():
    matrix = scipy.sparse.random_array((400, 400), density=0.02, rng=np.random.default_rng(1), format="csr")
    matrix = matrix + matrix.T
    assert np.array_equal(Precomputed()(matrix), matrix.toarray())


def test_log_of_zeros_and_negative_entries_is_minus_infinity():
    matrix = np.array([[1.0, 0.0, -2.0], [0.0, 2.0, 0.5], [-2.0, 0.5, 0.0]])
    log = Precomputed().log(scipy.sparse.csr_array(matrix))
    assert_allclose(log, [[0, -np.inf, -np.inf], [-np.inf, np.log(2), np.log(0.5)], [-np.inf, np.log(0.5), -np.inf]])


def test_integers_become_float64():
    assert Precomputed()(np.eye(3, dtype=int)).dtype == np.float64
    assert Precomputed()(scipy.sparse.eye_array(3, dtype=int)).dtype == np.float64


@pytest.mark.parametrize("form", FORMATS)
def test_shapes_and_symmetry_are_checked(form):
    with pytest.raises(ValueError, match=r"A precomputed kernel must be square, not 6 × 40\."):
        Precomputed()(form(BLOCK))
    with pytest.raises(ValueError, match=r"a column for each of 40 training points, not 39\."):
        Precomputed()(form(BLOCK[:, :39]), form(GRAM))
    crooked = GRAM.copy()
    crooked[3, 7] += 1e-6
    with pytest.raises(
        ValueError, match=r"must be symmetric: row .* Pass \(K \+ K\.T\) / 2 if rounding made them differ\."
    ):
        Precomputed()(form(crooked))
    crooked = GRAM.copy()
    crooked[3, 7] += 1e-14
    result = Precomputed()(form(crooked))
    assert np.array_equal(result, result.T)


def test_entries_are_checked():
    bad = GRAM.copy()
    bad[2, 5] = bad[5, 2] = np.nan
    with pytest.raises(ValueError, match="X has nan in row 2, column 5"):
        Precomputed()(bad)
    with pytest.raises(ValueError, match="Y has nan in row 2, column 5"):
        Precomputed()(BLOCK, bad)
    with pytest.raises(ValueError, match="A precomputed kernel must be finite"):
        Precomputed()(scipy.sparse.csr_array(bad))
    with pytest.raises(ValueError, match="must be real"):
        Precomputed()(scipy.sparse.csr_array(GRAM * 1j))


def new_diagonal(kernel, block, gram):
    return kernel.matrix(*kernel._checked(block, gram)).diagonal()


@pytest.mark.parametrize("form", FORMATS)
def test_diagonal_of_new_points(form):
    assert np.array_equal(new_diagonal(Precomputed(), form(BLOCK), form(GRAM)), np.ones(6))
    assert np.array_equal(new_diagonal(Precomputed(2.5), form(BLOCK), form(GRAM)), np.full(6, 2.5))
    uneven = GRAM + np.diag(np.arange(40.0))
    with pytest.raises(ValueError, match=r"is not known .* not constant: pass Precomputed\(new_diagonal=\.\.\.\)\."):
        new_diagonal(Precomputed(), form(BLOCK), form(uneven))
    assert np.array_equal(new_diagonal(Precomputed(0.5), form(BLOCK), form(uneven)), np.full(6, 0.5))
    training = Precomputed().matrix(*Precomputed()._checked(form(BLOCK), form(uneven))).diagonal("cols")
    assert np.array_equal(training, uneven.diagonal())


@pytest.mark.parametrize(
    ("value", "sentence"),
    [
        (-1.0, "new_diagonal=-1.0 must be at least 0"),
        ("a", "new_diagonal='a' must be a finite"),
        (np.nan, "must be a finite"),
    ],
)
def test_new_diagonal_is_checked(value, sentence):
    with pytest.raises(ValueError, match=sentence):
        Precomputed(value)(GRAM)


@pytest.mark.parametrize("form", FORMATS)
def test_algebra_with_a_precomputed_kernel(form):
    kernel = 2.0 * Precomputed()
    assert_allclose(kernel(form(GRAM)), 2 * GRAM)
    assert_allclose(kernel(form(BLOCK), form(GRAM)), 2 * BLOCK)
    assert_allclose((Precomputed() ** 2)(form(GRAM)), GRAM**2)
    scaled = 4.0 * GRAM
    assert_allclose(Precomputed().normalized()(form(scaled)), GRAM, rtol=1e-15)
    assert_allclose(Precomputed(4.0).normalized()(form(4.0 * BLOCK), form(scaled)), BLOCK, rtol=1e-15)
    with pytest.raises(ValueError, match="must be square"):
        kernel(form(BLOCK))
    with pytest.raises(ValueError, match="must be symmetric"):
        kernel(form(np.triu(GRAM)))


def test_the_matrix_is_not_changed():
    gram = GRAM.copy()
    kernel = (3.0 * Precomputed() ** 2).normalized()
    kernel(gram), kernel.diag(gram), kernel.log(gram)
    (2.0 * Precomputed()).diag(gram)
    assert np.array_equal(gram, GRAM)


def test_resolve_and_no_new_points():
    assert Precomputed().resolve(GRAM).is_resolved
    assert Precomputed()(np.empty((0, 40)), GRAM).shape == (0, 40)


# --- symmetry, entry by entry -----------------------------------------------------------------------------------


def _spd(n=12, seed=0):
    return Gaussian(1.0)(np.random.default_rng(seed).standard_normal((n, 2)))


@pytest.mark.parametrize("make", [np.asarray, scipy.sparse.csr_array, scipy.sparse.coo_array, scipy.sparse.csr_matrix])
@pytest.mark.parametrize("huge", [(0, 0), (4, 9)])
def test_one_huge_entry_does_not_hide_an_asymmetry(make, huge):
    K = _spd()
    K[huge] = K[huge[::-1]] = 1e14
    assert np.array_equal(GramOperator(Precomputed(), make(K)).to_dense(), K)
    K[2, 7] = 2 * K[7, 2]
    with pytest.raises(ValueError, match=r"must be symmetric: row 2, column 7 holds .*, but row 7, column 2 holds"):
        GramOperator(Precomputed(), make(K))


@pytest.mark.parametrize("make", [np.asarray, scipy.sparse.csr_array])
@pytest.mark.parametrize("scale", [1e-300, 1.0, 1e300, 1.5e308])
def test_asymmetry_is_judged_in_any_unit(make, scale):
    K = scale * _spd()
    K[1, 2] *= 0.999
    with pytest.raises(ValueError, match="row 1, column 2"), np.errstate(all="raise"):
        GramOperator(Precomputed(), make(K))


@pytest.mark.parametrize("make", [np.asarray, scipy.sparse.csr_array])
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_what_rounding_left_is_made_symmetric_once(make, dtype):
    """Every product and every block see one symmetric matrix, the mean of the two triangles."""
    rng = np.random.default_rng(0)
    K = _spd(40).astype(dtype)
    noisy = (K * (1 + 8 * np.finfo(dtype).eps * rng.uniform(-1, 1, K.shape))).astype(dtype)
    assert not np.array_equal(noisy, noisy.T)
    gram = GramOperator(Precomputed(), make(noisy))
    dense = gram.to_dense()
    assert np.array_equal(dense, dense.T)
    np.testing.assert_allclose(dense, (noisy + noisy.T) / 2, rtol=2 * np.finfo(dtype).eps)
    assert np.array_equal(gram.block(slice(3, 9), slice(20, 30)), gram.block(slice(20, 30), slice(3, 9)).T)
    assert np.array_equal(gram @ np.eye(40, dtype=dtype), dense)
    assert not np.array_equal(noisy, noisy.T)  # the user's matrix is left alone


def test_a_symmetric_matrix_is_not_copied():
    K = _spd()
    assert GramOperator(Precomputed(), K)._matrix.entries is K


def test_affinities_without_loops_are_judged_by_themselves():
    K = _spd()
    np.fill_diagonal(K, 0)
    GramOperator(Precomputed(), K)
    K[3, 5] *= 1 + 1e-8
    with pytest.raises(ValueError, match="row 3, column 5"):
        GramOperator(Precomputed(), K)


def test_small_entries_beside_a_diagonal_may_differ_by_rounding():
    """Inner products have errors of the size of the two norms, so a small entry may differ in all its digits."""
    K = np.array([[1.0, 1e-17], [-1e-17, 1.0]])
    assert GramOperator(Precomputed(), K).to_dense()[0, 1] == 0.0
    with pytest.raises(ValueError, match="row 0, column 1"):
        GramOperator(Precomputed(), np.array([[1e-17, 1e-17], [-1e-17, 1.0]]))


def test_a_zero_that_is_stored_on_one_side_only():
    """Places need not be symmetric where the values are: a stored zero is a zero."""
    rows, columns, values = [0, 0, 1, 2], [0, 2, 1, 2], [1.0, 0.0, 2.0, 3.0]
    lopsided = scipy.sparse.csr_array((values, (rows, columns)), shape=(3, 3))
    assert np.array_equal(GramOperator(Precomputed(), lopsided).to_dense(), np.diag([1.0, 2.0, 3.0]))
    lopsided[0, 2] = 0.5
    with pytest.raises(ValueError, match=r"row 0, column 2 holds 0\.5, but row 2, column 0 holds 0\."):
        GramOperator(Precomputed(), lopsided)
