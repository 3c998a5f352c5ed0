"""Approximate eigenpairs: the statements of QUAD sections 2 and 4, Rayleigh-Ritz, and the numbers of section 8."""

import pickle
import tracemalloc
import warnings

import halton_oracle as halton
import numpy as np
import pytest
from scipy.linalg import eigh
from scipy.sparse import csr_matrix

from mercer import (
    Gaussian,
    Laplacian,
    Linear,
    Polynomial,
    Precomputed,
    QuadratureSparsifier,
    squared_kernel_discrepancy,
)
from mercer.datasets import halton_square
from mercer.operators import GramOperator
from mercer.quadrature import approximate_eigenpairs

N = 70
rng = np.random.default_rng(17)
X = rng.normal(size=(N, 3))
NEW = rng.normal(size=(9, 3))
OMEGA = rng.uniform(0.2, 1.5, N) / N
NODES = rng.permutation(N)[:25]
VALUES = rng.uniform(0.1, 2.0, 25) / 25
KERNELS = [Gaussian(2.0), Laplacian(3.0), Polynomial(3, 0.3, 1.0), Linear() + Gaussian(1.5)]
every_kernel = pytest.mark.parametrize("kernel", KERNELS, ids=repr)
both_ways = pytest.mark.parametrize("refine", [False, True], ids=["canonical", "refined"])


def approximate(kernel, n=8, **options):
    return approximate_eigenpairs(kernel, X, OMEGA, NODES, VALUES, n, **options)


def exact_pairs(kernel, X=X, weights=OMEGA):
    """Eigenvalues of T_μ in falling order, and its eigenfunctions at the sample, orthonormal in L²(μ)."""
    root = np.sqrt(weights)
    values, vectors = np.linalg.eigh(root[:, None] * kernel(X) * root)
    return values[::-1], vectors[:, ::-1] / root[:, None]


def dense_coefficients(pairs, nodes=NODES):
    """φ̂ as Σ cₖ k(·, xₖ) over the whole sample."""
    out = np.zeros((N, pairs.coefficients.shape[1]))
    out[nodes] = pairs.coefficients
    return out


@both_ways
@every_kernel
def test_the_measure_itself_gives_its_eigenpairs(kernel, refine):
    pairs = approximate_eigenpairs(kernel, X, OMEGA, np.arange(N), OMEGA, 8, refine=refine)
    values, functions = exact_pairs(kernel)
    for estimate in (pairs.canonical, pairs.rescaled, pairs.corrected, pairs.eigenvalues_hat, pairs.eigenvalues_tilde):
        np.testing.assert_allclose(estimate, values[:8], rtol=1e-10)
    np.testing.assert_allclose(pairs.upsilon, 1.0, rtol=0, atol=1e-14)
    np.testing.assert_allclose(pairs.orthogonality, np.eye(8), atol=1e-10)
    np.testing.assert_allclose(pairs.residuals, 0.0, atol=1e-10 * values[0])
    agreement = np.abs(functions[:, :8].T @ (OMEGA[:, None] * pairs.functions))
    np.testing.assert_allclose(agreement, np.eye(8), atol=1e-8)


@every_kernel
def test_canonical_functions_are_eigenfunctions_of_the_sparse_operator(kernel):
    """T_ν φ̂ = ϑ φ̂ at every point of the sample, and orthogonal in L²(ν)."""
    pairs = approximate(kernel)
    image = kernel(X, X[NODES]) @ (VALUES[:, None] * pairs.functions[NODES])
    np.testing.assert_allclose(image, pairs.canonical * pairs.functions, atol=1e-10 * pairs.canonical[0])
    gram = pairs.functions[NODES].T @ (VALUES[:, None] * pairs.functions[NODES])
    np.testing.assert_allclose(gram, np.diag(np.diag(gram)), atol=1e-9 * gram.max())
    assert np.all(np.diff(pairs.canonical) < 0)


@both_ways
@every_kernel
def test_fields_are_what_they_say(kernel, refine):
    pairs = approximate(kernel, refine=refine)
    K, W = kernel(X), np.diag(OMEGA)
    phi, c = pairs.functions, dense_coefficients(pairs)
    np.testing.assert_allclose(phi, K @ c, atol=1e-9 * np.abs(phi).max())
    np.testing.assert_allclose(np.diag(phi.T @ W @ phi), 1.0, rtol=1e-12)
    np.testing.assert_allclose(pairs.orthogonality, phi.T @ W @ phi, atol=1e-13)
    np.testing.assert_allclose(pairs.rkhs_norms**2, np.diag(c.T @ K @ c), rtol=1e-8)
    np.testing.assert_allclose(pairs.eigenvalues_tilde, 1 / pairs.rkhs_norms**2, rtol=1e-13)
    image = K @ W @ phi
    hat = np.sqrt(np.diag(image.T @ W @ image))
    np.testing.assert_allclose(pairs.eigenvalues_hat, hat, rtol=1e-12)
    np.testing.assert_allclose(pairs.upsilon, np.diag(phi.T @ W @ image) / hat, rtol=1e-12)
    off = pairs.orthogonality - np.diag(np.diag(pairs.orthogonality))
    assert pairs.largest_overlap == np.abs(off).max()


@both_ways
@every_kernel
def test_residuals_are_those_of_the_lemma(kernel, refine):
    """Lemma 4.1, each residual against the difference of functions itself and against the formula."""
    pairs = approximate(kernel, refine=refine)
    K, W = kernel(X), np.diag(OMEGA)
    hat, upsilon = pairs.eigenvalues_hat, pairs.upsilon
    z = W @ pairs.functions - hat * dense_coefficients(pairs)
    difference = K @ W @ pairs.functions - hat * pairs.functions
    noise = 1e-13 * hat[0] ** 2
    np.testing.assert_allclose(pairs.residuals**2, np.diag(difference.T @ W @ difference), rtol=1e-6, atol=noise)
    np.testing.assert_allclose(pairs.residuals**2, 2 * hat**2 * (1 - upsilon), rtol=1e-6, atol=noise)
    np.testing.assert_allclose(pairs.rkhs_residuals**2, np.diag(z.T @ K @ z), rtol=1e-6, atol=1e-12 * hat[0])
    formula = hat * (upsilon + hat * pairs.rkhs_norms**2 - 2)
    np.testing.assert_allclose(pairs.rkhs_residuals**2, formula, rtol=1e-6, atol=1e-12 * hat[0])


@both_ways
@pytest.mark.parametrize("seed", range(5))
@every_kernel
def test_inequalities_between_the_estimates(kernel, seed, refine):
    """λ̂ ≥ (2 - Υ)λ̃, ‖λ̂^½ φ̂‖² ≥ 2 - Υ, 0 ≤ Υ ≤ 1; and more sharply λ̃ ≤ λ̂Υ ≤ λ₁, a Rayleigh quotient."""
    draw = np.random.default_rng(seed)
    nodes = draw.permutation(N)[:12]
    values = draw.exponential(size=12)
    pairs = approximate_eigenpairs(kernel, X, OMEGA, nodes, values, 10, refine=refine)
    hat, tilde, upsilon = pairs.eigenvalues_hat, pairs.eigenvalues_tilde, pairs.upsilon
    assert np.all((upsilon >= 0) & (upsilon <= 1))
    assert upsilon.min() < 0.999
    assert np.all(hat >= (2 - upsilon) * tilde * (1 - 1e-12))
    assert np.all(hat * pairs.rkhs_norms**2 >= 2 - upsilon - 1e-10)
    assert np.all(tilde <= hat * upsilon * (1 + 1e-12))
    assert np.all(hat <= exact_pairs(kernel)[0][0] * (1 + 1e-12))


@every_kernel
def test_scaling_the_sparse_measure_changes_nothing_but_its_eigenvalues(kernel):
    """Remark 4.2."""
    one = approximate(kernel)
    other = approximate_eigenpairs(kernel, X, OMEGA, NODES, 7.5 * VALUES, 8)
    np.testing.assert_allclose(other.canonical, 7.5 * one.canonical, rtol=1e-12)
    for name in ("rescaled", "corrected", "eigenvalues_hat", "eigenvalues_tilde", "upsilon"):
        np.testing.assert_allclose(getattr(other, name), getattr(one, name), rtol=1e-9, err_msg=name)
    np.testing.assert_allclose(other.functions, one.functions, atol=1e-8)


@every_kernel
def test_rescaled_eigenvalues_have_the_trace_of_the_whole(kernel):
    total = kernel.diag(X) @ OMEGA
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        pairs = approximate(kernel, n=25, upsilon=False)
    np.testing.assert_allclose(pairs.canonical.sum(), kernel.diag(X[NODES]) @ VALUES, rtol=1e-10)
    np.testing.assert_allclose(pairs.rescaled.sum(), total, rtol=1e-10)


def test_a_corrected_factor_counts_the_eigenvalues_that_are_approximated():
    """ρ_c is near Σ ϑ_l / Σ λ_l, which ρ is not, and halves the error that ρ leaves on the paper's example."""
    points = halton_square(800)
    kernel, weights = Gaussian(0.4), np.full(800, 1 / 800)
    model = QuadratureSparsifier(kernel, trace_fraction=0.81).fit(points)
    pairs, exact = model.eigenpairs(10, upsilon=False), exact_pairs(kernel, points, weights)[0][:10]
    assert pairs.correction == pytest.approx(pairs.canonical.sum() / exact.sum(), rel=5e-3)
    np.testing.assert_allclose(pairs.corrected.sum(), pairs.eigenvalues_tilde.sum(), rtol=1e-12)
    errors = [np.abs(found - exact).sum() for found in (pairs.canonical, pairs.rescaled, pairs.corrected)]
    assert errors[2] < errors[1] / 2 < errors[0] / 4
    np.testing.assert_allclose(pairs.rescaled_to(2.0), 2 * pairs.canonical / pairs.canonical[0], rtol=1e-12)
    with pytest.raises(ValueError, match="largest"):
        pairs.rescaled_to(0.0)


@pytest.mark.parametrize("kernel", [Gaussian(1.0), Laplacian(3.0), Linear() + Gaussian(1.0)], ids=repr)
def test_discrepancy_by_eigenpairs(kernel):
    """Theorem 2.1: D as a weighted sum of what T_ν makes of the eigenfunctions of T_μ (2.1), and by both spectra (2.2)."""
    whole = approximate_eigenpairs(kernel, X, OMEGA, np.arange(N), OMEGA, N, upsilon=False)
    sparse = approximate(kernel, n=25, upsilon=False)
    D = squared_kernel_discrepancy(X, X[NODES], kernel, x_weights=OMEGA, y_weights=VALUES)
    K = kernel(X)
    v = np.zeros(N)
    v[NODES] = VALUES
    difference = (OMEGA - v)[:, None] * whole.functions  # (T_μ - T_ν) φ by its coefficients
    in_H = np.einsum("kl,kj,jl->l", difference, K, difference)
    np.testing.assert_allclose(whole.canonical @ in_H, D, rtol=1e-9)
    in_L2 = OMEGA @ (K @ difference) ** 2
    assert whole.canonical @ in_L2 <= (kernel.diag(X) @ OMEGA) * D
    inner = (whole.coefficients / whole.rkhs_norms).T @ K @ (dense_coefficients(sparse) / sparse.rkhs_norms)
    lam, theta = whole.canonical[:, None], sparse.canonical
    total = np.sum(whole.canonical**2) + np.sum((theta**2 - 2 * lam * theta) * inner**2)
    np.testing.assert_allclose(total, D, rtol=1e-9)


@every_kernel
def test_refined_pairs_solve_the_generalised_eigenproblem(kernel):
    """M a = λ K_II a, against LAPACK; the functions are orthonormal in L²(μ) whatever the values of the nodes."""
    pairs = approximate(kernel, refine=True)
    K = kernel(X)
    M = K[NODES] @ (OMEGA[:, None] * K[:, NODES])
    oracle = eigh(M, K[np.ix_(NODES, NODES)] + 1e-15 * np.eye(25), eigvals_only=True) if _regular(kernel) else None
    nystrom = np.sqrt(OMEGA)[:, None] * K[:, NODES]
    completed = nystrom @ np.linalg.pinv(K[np.ix_(NODES, NODES)], hermitian=True, rcond=1e-13) @ nystrom.T
    for expected in (oracle, np.linalg.eigvalsh(completed)):
        if expected is not None:
            np.testing.assert_allclose(pairs.canonical, expected[::-1][:8], rtol=1e-8)
    np.testing.assert_allclose(pairs.orthogonality, np.eye(8), atol=1e-9)
    np.testing.assert_allclose(pairs.eigenvalues_tilde, pairs.canonical, rtol=1e-9)
    assert np.all(pairs.canonical <= exact_pairs(kernel)[0][:8] * (1 + 1e-12))
    other = approximate_eigenpairs(kernel, X, OMEGA, NODES, np.ones(25), 8, refine=True)
    np.testing.assert_array_equal(other.functions, pairs.functions)


def _regular(kernel):
    return not isinstance(kernel, Polynomial)


@every_kernel
def test_refining_helps(kernel):
    plain, refined = approximate(kernel), approximate(kernel, refine=True)
    assert np.mean(1 - refined.upsilon) < 0.5 * np.mean(1 - plain.upsilon)
    assert np.all(refined.residuals[:3] < plain.residuals[:3])


def test_nearly_dependent_nodes_do_not_spoil_refined_pairs():
    """K_II is singular to working precision: no spurious eigenvalue appears, and the leading ones keep their digits.

    Where M is formed and divided by small eigenvalues of K_II, the fifth is ten times too large here.
    """
    kernel = Gaussian(20.0)
    nodes = np.arange(60)
    assert np.linalg.cond(kernel(X[nodes])) > 1e16
    pairs = approximate_eigenpairs(kernel, X, OMEGA, nodes, OMEGA[:60], 20, refine=True)
    exact = exact_pairs(kernel)[0][:20]
    np.testing.assert_allclose(pairs.canonical, exact, rtol=1e-4)
    np.testing.assert_allclose(pairs.canonical[:4], exact[:4], rtol=1e-9)
    assert np.all(pairs.canonical <= exact * (1 + 1e-9))
    np.testing.assert_allclose(pairs.upsilon[:10], 1.0, atol=1e-8)
    assert pairs.largest_overlap < 1e-2


@both_ways
def test_functions_extend_to_new_points(refine):
    pairs = approximate(Gaussian(2.0), refine=refine)
    np.testing.assert_allclose(pairs.extend(X), pairs.functions, atol=1e-12)
    expected = Gaussian(2.0)(NEW, X[NODES]) @ pairs.coefficients
    np.testing.assert_allclose(pairs.extend(NEW), expected, atol=1e-11)
    assert pairs.extend(NEW).shape == (9, 8)


@both_ways
@pytest.mark.parametrize("form", [np.asarray, csr_matrix])
def test_a_precomputed_kernel_gives_the_same(form, refine):
    plain = approximate(Gaussian(2.0), refine=refine)
    K = form(Gaussian(2.0)(X))
    given = approximate_eigenpairs(Precomputed(), K, OMEGA, NODES, VALUES, 8, refine=refine)
    np.testing.assert_allclose(given.functions, plain.functions, atol=1e-9)
    np.testing.assert_allclose(given.upsilon, plain.upsilon, rtol=1e-12)
    np.testing.assert_allclose(given.extend(form(Gaussian(2.0)(NEW, X))), plain.extend(NEW), atol=1e-9)


@both_ways
def test_pairs_at_rounding_level_are_dropped_with_a_warning(refine):
    """The linear kernel in three dimensions has three eigenpairs; the nodes span them, so refined they are exact."""
    with pytest.warns(
        UserWarning,
        match=r"^n=8 exceeds the 3 eigenpairs above rounding level that 25 nodes give: only these are returned\. Lower n, or fit with more n_nodes\.$",
    ):
        pairs = approximate(Linear(), refine=refine)
    assert pairs.functions.shape == (N, 3)
    assert all(np.all(np.isfinite(value)) for value in vars(pairs).values() if isinstance(value, np.ndarray))
    if refine:
        np.testing.assert_allclose(pairs.eigenvalues_hat, exact_pairs(Linear())[0][:3], rtol=1e-12)
        np.testing.assert_allclose(pairs.upsilon, 1.0, atol=1e-14)


def test_no_more_pairs_than_nodes():
    with pytest.warns(UserWarning, match=r"^n=30 exceeds the 25 eigenpairs above rounding level that 25 nodes give"):
        pairs = approximate(Laplacian(1.0), n=30)
    assert pairs.canonical.size == 25


def test_one_node():
    pairs = approximate_eigenpairs(Gaussian(2.0), X, OMEGA, [4], [0.3], 1)
    section = Gaussian(2.0)(X, X[4:5])[:, 0]
    np.testing.assert_allclose(pairs.functions[:, 0], section / np.sqrt(OMEGA @ section**2), rtol=1e-12)
    np.testing.assert_allclose(pairs.canonical, [0.3], rtol=1e-15)
    assert pairs.largest_overlap == 0.0


def test_without_the_test_its_fields_are_empty():
    plain, quick = approximate(Gaussian(2.0)), approximate(Gaussian(2.0), upsilon=False)
    for name in ("upsilon", "eigenvalues_hat", "residuals", "rkhs_residuals"):
        assert getattr(quick, name) is None
    for name in ("functions", "canonical", "rescaled", "eigenvalues_tilde", "rkhs_norms", "orthogonality"):
        np.testing.assert_array_equal(getattr(quick, name), getattr(plain, name))


def test_all_functions_are_tested_in_one_product(monkeypatch):
    seen = []
    multiply = GramOperator._multiply

    def watched(self, v):
        if self.shape == (N, N):
            seen.append(v.shape)
        return multiply(self, v)

    monkeypatch.setattr(GramOperator, "_multiply", watched)
    approximate(Gaussian(2.0), upsilon=False)
    assert seen == []
    approximate(Gaussian(2.0))
    assert seen == [(N, 8)]


def test_many_nodes_are_left_to_lanczos():
    """Above 1500 nodes only the leading eigenpairs of the nodes' matrix are computed."""
    points = np.random.default_rng(2).normal(size=(1600, 2))
    weights = np.full(1600, 1 / 1600)
    pairs = approximate_eigenpairs(Gaussian(2.0), points, weights, np.arange(1600), weights, 5, upsilon=False)
    values = eigh(Gaussian(2.0)(points) / 1600, eigvals_only=True, subset_by_index=[1595, 1599])[::-1]
    np.testing.assert_allclose(pairs.canonical, values, rtol=1e-12)
    np.testing.assert_allclose(pairs.eigenvalues_tilde, values, rtol=1e-10)


def test_results_are_the_same_each_time_and_can_be_stored():
    one, two = approximate(Gaussian(2.0)), approximate(Gaussian(2.0))
    np.testing.assert_array_equal(one.functions, two.functions)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(one)).extend(NEW), one.extend(NEW))


def test_progress_is_reported():
    for options in ({}, {"upsilon": False}, {"upsilon": False, "refine": True}):
        seen = []
        approximate(Gaussian(2.0), progress=seen.append, **options)
        assert seen[-1] == 1.0


@both_ways
def test_no_array_of_the_whole_sample_is_made(refine):
    size = 5000
    points = np.random.default_rng(2).normal(size=(size, 2))
    approximate(Gaussian(2.0), n=2, refine=refine)  # compiles
    tracemalloc.start()
    approximate_eigenpairs(Gaussian(2.0), points, 1 / size, np.arange(40), np.ones(40), 4, refine=refine)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 8 * size**2 / 10


def test_the_two_dimensional_example():
    """QUAD 8.1: 0.9876064 ≤ Υ ≤ 0.9999785 for the first 21 directions."""
    nodes, values = halton.solution()
    pairs = approximate_eigenpairs(halton.KERNEL, halton.points(), halton.WEIGHTS, nodes, values, 62)
    assert f"{pairs.upsilon[:21].min():.7f}" == "0.9876064"
    assert f"{pairs.upsilon[:21].max():.7f}" == "0.9999785"
    assert np.sum(pairs.upsilon >= 0.99) == 18
    np.testing.assert_allclose(pairs.canonical.sum(), 0.81, rtol=0.05)


def test_refining_the_two_dimensional_example():
    """All of the first 62 directions have Υ ≥ 0.99, with the same nodes."""
    nodes, values = halton.solution()
    pairs = approximate_eigenpairs(halton.KERNEL, halton.points(), halton.WEIGHTS, nodes, values, 62, refine=True)
    assert pairs.upsilon.min() >= 0.99
    exact = eigh(
        halton.KERNEL(halton.points()) / halton.SIZE,
        eigvals_only=True,
        subset_by_index=[halton.SIZE - 62, halton.SIZE - 1],
    )
    np.testing.assert_allclose(pairs.eigenvalues_hat, exact[::-1], rtol=5e-3)
    assert pairs.largest_overlap < 1e-10


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"n": 0}, r"^n=0 must be a whole number of at least 1\.$"),
        ({"values": -VALUES}, r"^values is negative at index \d+"),
        ({"values": VALUES[:3]}, r"^values has shape \(3,\)"),
        ({"nodes": [N]}, r"^nodes must lie between 0 and 69\.$"),
        ({"weights": OMEGA[:3]}, r"^weights has shape \(3,\)"),
        ({"X": X[0]}, r"^X must be 2-dimensional, not 1-dimensional"),
        (
            {"kernel": Gaussian()},
            r"depends on the data: call kernel = kernel\.resolve\(X\) with the training points first\.$",
        ),
        ({"X": np.zeros((N, 3)), "kernel": Linear()}, r"^The kernel vanishes on every node: choose others\.$"),
    ],
)
@both_ways
def test_bad_input_is_refused_in_one_sentence(change, sentence, refine):
    arguments = {"kernel": Gaussian(2.0), "X": X, "weights": OMEGA, "nodes": NODES, "values": VALUES, "n": 3} | change
    with pytest.raises(ValueError, match=sentence):
        approximate_eigenpairs(**arguments, refine=refine)


@pytest.mark.parametrize("refine", [False, True])
@pytest.mark.parametrize(("sample", "nodes"), [(-664, 0), (510, 0), (0, -664), (532, 900), (-900, 532)])
def test_weights_of_any_size(sample, nodes, refine):
    """T_μ and T_ν are linear in their measures: powers of two come out again as they went in."""
    rng = np.random.default_rng(0)
    X, weights = rng.uniform(-1, 1, (50, 2)), rng.uniform(0.5, 2, 50)
    chosen, values = np.arange(9), rng.uniform(0.5, 2, 9)
    plain = approximate_eigenpairs(Gaussian(0.7), X, weights, chosen, values, 4, refine=refine)
    of_sample, of_nodes = np.ldexp(weights, sample), np.ldexp(values, nodes)
    other = approximate_eigenpairs(Gaussian(0.7), X, of_sample, chosen, of_nodes, 4, refine=refine)
    np.testing.assert_allclose(other.upsilon, plain.upsilon, rtol=1e-12)
    powers = {"functions": -sample // 2, "coefficients": -sample // 2, "rkhs_residuals": sample // 2}
    powers |= dict.fromkeys(["rescaled", "eigenvalues_tilde", "eigenvalues_hat", "residuals"], sample)
    powers["canonical"] = sample if refine else nodes
    for name, power in powers.items():
        np.testing.assert_allclose(np.ldexp(getattr(other, name), -power), getattr(plain, name), rtol=1e-9, atol=1e-9)


def test_weights_too_large_for_their_eigenvalues():
    X = np.random.default_rng(0).uniform(-1, 1, (50, 2))
    with pytest.raises(ValueError, match="weights as large as these overflow"):
        approximate_eigenpairs(Gaussian(0.7), X, 1e308, np.arange(9), np.ones(9), 4)
