"""Every kernel on tensors: the values of NumPy to rounding, tensors out, no way through NumPy."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import scipy.sparse
from numpy.testing import assert_allclose

from mercer.kernels import ChiSquared, Gaussian, Kernel, Laplacian, Linear, Matern, Precomputed, Sobolev
from mercer.operators import GramOperator

torch = pytest.importorskip("torch")

# Entries of either library are within their entry_error of the exact ones: some tens of roundings of profiles, and in
# single precision up to 2e-6 in the exponent, of kernels whose powers and polynomials enlarge it.
CLOSE = {np.float64: {"rtol": 1e-11, "atol": 1e-13}, np.float32: {"rtol": 2e-4, "atol": 2e-5}}


def close(ours, theirs, dtype):
    assert isinstance(ours, torch.Tensor)
    assert ours.dtype == (torch.float32 if dtype == np.float32 else torch.float64)
    assert_allclose(ours.numpy(), theirs, **CLOSE[dtype])


def test_values_are_those_of_numpy(kernel: Kernel, points, dtype):
    X, Y = points(kernel, 23, 6, dtype), points(kernel, 9, 6, dtype, seed=1)
    x, y = torch.tensor(X), torch.tensor(Y)
    close(kernel(x), kernel(X), dtype)
    close(kernel(x, y), kernel(X, Y), dtype)
    close(kernel.diag(x), kernel.diag(X), dtype)
    with np.errstate(all="ignore"):
        ours, theirs = kernel.log(x, y), kernel.log(X, Y)
    finite = np.isfinite(theirs)
    assert np.array_equal(np.isfinite(ours.numpy()), finite)
    assert_allclose(ours.numpy()[finite], theirs[finite], rtol=1e-9 if dtype == np.float64 else 1e-3, atol=1e-3)


def test_blocks_are_made_without_numpy(kernel: Kernel, points, refuse_numpy):
    x = torch.tensor(points(kernel, 20, 5))
    gram, diagonal = kernel(x), kernel.diag(x)
    assert torch.equal(gram, gram.T)
    assert torch.equal(gram.diagonal(), diagonal)
    kernel(x, x[:3] + 1)
    kernel.log(x)


def test_libraries_may_be_mixed_and_the_tensor_decides():
    X, Y = np.random.default_rng(0).normal(size=(2, 5, 3))
    kernel = Gaussian(1.0)
    for block in (kernel(torch.tensor(X), Y), kernel(X, torch.tensor(Y)), kernel(torch.tensor(X), Y.tolist())):
        close(block, kernel(X, Y), np.float64)
    assert kernel(torch.tensor(X, dtype=torch.float32), Y).dtype == torch.float64
    grown = torch.tensor(X, requires_grad=True)
    assert not kernel(grown).requires_grad


def test_two_single_points_give_a_number():
    x, y = torch.tensor([0.0, 1.0]), torch.tensor([1.0, 1.0])
    assert Gaussian(1.0)(x, y) == pytest.approx(np.exp(-1), rel=1e-6)
    assert isinstance(Gaussian(1.0)(x, y), float)


def test_no_points_give_an_empty_block(kernel: Kernel):
    none, some = torch.empty(0, 3), torch.ones(4, 3)
    assert kernel(none).shape == (0, 0)
    assert kernel(none, some).shape == (0, 4)
    assert kernel(some, none).shape == (4, 0)
    assert kernel.diag(none).shape == (0,)


def test_what_is_not_finite_is_named():
    with pytest.raises(ValueError, match=r"is not a finite number of float32 at 4 of 4 pairs of these points"):
        Linear()(torch.full((2, 1), 1e30))


def test_negative_data_are_named():
    with pytest.raises(ValueError, match=r"X is negative in row 1, column 0: the chi-squared kernel"):
        ChiSquared()(torch.tensor([[1.0, 1.0], [-1.0, -1.0]]))


# --- bandwidths ---------------------------------------------------------------------------------------------------

RULED = [Gaussian, Laplacian, lambda rule: Matern(0.5, rule), lambda rule: Sobolev(4.0, rule)]


def length(kernel):
    return kernel.sigma if hasattr(kernel, "sigma") else kernel.length_scale


@pytest.mark.parametrize(
    ("make", "n"),
    [*itertools.product(RULED, [2, 150]), (Gaussian, 2500)],  # all points, or a sample of them
)
@pytest.mark.parametrize("rule", ["median", "slope"])
@pytest.mark.parametrize("weighted", [False, True])
def test_bandwidths_are_those_of_numpy(make, rule, weighted, n):
    rng = np.random.default_rng(3)
    X, w = rng.normal(size=(n, 5)), (rng.integers(0, 3, n) + (np.arange(n) < 2) if weighted else None)
    ours = make(rule).resolve(torch.tensor(X), None if w is None else torch.tensor(w))
    assert isinstance(length(ours), float)
    assert length(ours) == pytest.approx(length(make(rule).resolve(X, w)), rel=1e-12)


def test_the_median_is_found_without_numpy(refuse_numpy):
    x = torch.linspace(0, 1, 1500, dtype=torch.float64)[:, None]
    assert (Gaussian() + Matern()).resolve(x).left.sigma == pytest.approx(0.293, abs=0.01)  # 1 - 1/√2
    apart = torch.zeros(3000, 2)
    apart[2999] = 1.0  # most likely not in the sample of 1 000
    assert Gaussian().resolve(apart).sigma == pytest.approx(np.sqrt(2))


def test_bad_points_have_no_bandwidth():
    for bad, sentence in ((torch.ones(5, 2), "All points are equal"), (torch.ones(1, 2), "there is one")):
        with pytest.raises(ValueError, match=sentence):
            Gaussian().resolve(bad)


# --- matrices that are given ----------------------------------------------------------------------------------------

POINTS = np.random.default_rng(0).normal(size=(40, 3))
GRAM = Gaussian(1.0)(POINTS)
BLOCK = Gaussian(1.0)(POINTS[:6] + 0.1, POINTS)


def coo(matrix):
    return torch.tensor(matrix).to_sparse_coo()


def csr(matrix):
    return torch.tensor(matrix).to_sparse_csr()


FORMS = [torch.tensor, coo, csr]


@pytest.mark.filterwarnings("ignore:Sparse CSR tensor support")
class TestPrecomputed:
    @pytest.mark.parametrize("form", FORMS)
    def test_values_pass_through(self, form, dtype):
        gram, block = GRAM.astype(dtype), BLOCK.astype(dtype)
        assert np.array_equal(Precomputed()(form(gram)).numpy(), gram)
        assert np.array_equal(Precomputed()(form(block), form(gram)).numpy(), block)
        assert np.array_equal(Precomputed().diag(form(gram)).numpy(), gram.diagonal())
        assert Precomputed()(form(gram)).dtype == torch.tensor(gram).dtype
        assert_allclose(Precomputed().log(form(gram)).numpy(), np.log(gram), rtol=1e-5)

    @pytest.mark.parametrize("form", FORMS)
    def test_algebra(self, form):
        kernel = (2.0 * Precomputed() ** 2 + Precomputed()).normalized()
        assert_allclose(kernel(form(4 * GRAM)).numpy(), kernel(4 * GRAM), rtol=1e-13)

    @pytest.mark.parametrize("form", FORMS)
    @pytest.mark.parametrize("scale", [1e-300, 1.0, 1.5e308])
    def test_symmetry_is_judged_as_numpy_does(self, form, scale):
        crooked = scale * GRAM
        crooked[3, 7] *= 0.999
        with pytest.raises(ValueError, match="row 3, column 7") as ours:
            Precomputed()(form(crooked))
        with pytest.raises(ValueError, match="row 3, column 7") as theirs:
            Precomputed()(crooked)
        assert str(ours.value) == str(theirs.value)

    @pytest.mark.parametrize("form", FORMS)
    def test_what_rounding_left_is_made_symmetric(self, form):
        crooked = GRAM.copy()
        crooked[3, 7] += 1e-14
        result = Precomputed()(form(crooked)).numpy()
        assert np.array_equal(result, result.T)
        assert np.array_equal(result, Precomputed()(crooked))

    def test_an_entry_whose_mirror_is_not_stored(self):
        crooked = torch.sparse_coo_tensor([[0, 1, 0], [0, 1, 1]], [1.0, 1.0, 0.5], (2, 2), check_invariants=True)
        with pytest.raises(ValueError, match=r"row 0, column 1 holds 0\.5, but row 1, column 0 holds 0\."):
            Precomputed()(crooked)

    @pytest.mark.parametrize("form", FORMS)
    def test_bad_matrices(self, form):
        bad = GRAM.copy()
        bad[2, 5] = bad[5, 2] = np.nan
        with pytest.raises(ValueError, match=r"must be finite|has nan in row 2, column 5"):
            Precomputed()(form(bad))
        with pytest.raises(ValueError, match=r"must be square, not 6 × 40"):
            Precomputed()(form(BLOCK))
        with pytest.raises(ValueError, match=r"a column for each of 40 training points, not 39"):
            Precomputed()(form(BLOCK[:, :39]), form(GRAM))
        with pytest.raises(ValueError, match="Complex data not supported"):
            Precomputed()(form(GRAM * 1j))

    def test_duplicates_of_a_sparse_tensor_are_added(self):
        twice = torch.sparse_coo_tensor([[0, 0, 1], [0, 0, 1]], [1.0, 2.0, 5.0], (2, 2), check_invariants=True)
        assert torch.equal(Precomputed()(twice), torch.tensor([[3.0, 0.0], [0.0, 5.0]]))

    def test_integers_become_float64(self):
        assert Precomputed()(torch.eye(3, dtype=torch.int32)).dtype == torch.float64

    def test_sparse_matrices_of_two_libraries_do_not_meet(self):
        with pytest.raises(TypeError, match="do not meet: pass X and Y of one library"):
            Precomputed()(scipy.sparse.csr_array(BLOCK), torch.tensor(GRAM))
        assert np.array_equal(Precomputed()(BLOCK, torch.tensor(GRAM)).numpy(), BLOCK)

    def test_a_symmetric_matrix_is_judged_without_numpy(self, refuse_numpy):
        for form in (torch.clone, torch.Tensor.to_sparse_csr):
            matrix = form(torch.eye(300, dtype=torch.float64))
            assert torch.equal(Precomputed()(matrix), torch.eye(300, dtype=torch.float64))

    @pytest.mark.parametrize(
        "kernel", [Precomputed(2.0), (2.0 * Precomputed(2.0) ** 2 + Precomputed(2.0)).normalized()], ids=repr
    )
    def test_a_sparse_tensor_stays_sparse(self, kernel, refuse_numpy):
        dense = torch.eye(60, dtype=torch.float64) * 3
        dense[torch.arange(59), torch.arange(1, 60)] = dense[torch.arange(1, 60), torch.arange(59)] = -0.7
        dense[4] = dense[:, 4] = 0  # an empty row
        v = torch.linspace(-1, 1, 120, dtype=torch.float64).reshape(60, 2)
        for rows, cols in ((dense, None), (dense[:9], dense)):
            training = None if cols is None else cols.to_sparse_csr()
            ours, theirs = GramOperator(kernel, rows.to_sparse_csr(), training), GramOperator(kernel, rows, cols)
            assert ours.row_entries < 3
            assert torch.equal(ours.to_dense(), theirs.to_dense())
            assert torch.allclose(ours @ v, theirs @ v, rtol=1e-13, atol=1e-14)
            assert torch.allclose(ours.T @ v[: rows.shape[0]], theirs.T @ v[: rows.shape[0]], rtol=1e-13, atol=1e-14)
            assert torch.equal(ours.block([4, 2], slice(1, 7)), theirs.block([4, 2], slice(1, 7)))
            assert torch.equal(ours.kernel_diagonal(), theirs.kernel_diagonal())
            assert ours.entry_error == theirs.entry_error
