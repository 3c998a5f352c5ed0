"""The squared-kernel discrepancy of two weighted samples (QUAD sections 2.3 and 3.1)."""

import tracemalloc

import numpy as np
import pytest

import mercer
from mercer import (
    Gaussian,
    GramOperator,
    Laplacian,
    Linear,
    Matern,
    Polynomial,
    Precomputed,
    squared_kernel_discrepancy,
)
from mercer.problems import Discrepancy

rng = np.random.default_rng(21)
X = rng.normal(size=(40, 3))
Y = rng.normal(size=(25, 3)) + 0.3
OMEGA = rng.uniform(0.1, 2.0, 40)
V = rng.uniform(0.0, 1.0, 25)
KERNELS = [Gaussian(1.5), Laplacian(2.0), Matern(1.5, 1.0), Linear(), Polynomial(3, 0.5, 1.0)]


def three_terms(kernel, X, Y, x_weights, y_weights):
    def term(A, B, a, b):
        return a @ kernel(A, np.array(B)) ** 2 @ b

    return term(X, X, x_weights, x_weights) + term(Y, Y, y_weights, y_weights) - 2 * term(X, Y, x_weights, y_weights)


@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
def test_it_is_the_definition(kernel):
    value = squared_kernel_discrepancy(X, Y, kernel, x_weights=OMEGA, y_weights=V)
    assert isinstance(value, float)
    np.testing.assert_allclose(value, three_terms(kernel, X, Y, OMEGA, V), rtol=1e-11)
    uniform = three_terms(kernel, X, Y, np.full(40, 1 / 40), np.full(25, 1 / 25))
    np.testing.assert_allclose(squared_kernel_discrepancy(X, Y, kernel), uniform, rtol=1e-11)


def test_it_is_the_norm_of_the_difference_of_two_operators():
    """For the linear kernel T_μ is the matrix of second moments, and its Hilbert-Schmidt norm that of Frobenius."""
    difference = (X.T * OMEGA) @ X - (Y.T * V) @ Y
    value = squared_kernel_discrepancy(X, Y, Linear(), x_weights=OMEGA, y_weights=V)
    np.testing.assert_allclose(value, np.sum(difference**2), rtol=1e-12)


def test_the_norm_of_an_operator_is_the_sum_of_its_squared_eigenvalues():
    """Lemma 2.1: half of a measure is away from it by a quarter of ‖T_μ‖²."""
    root = np.sqrt(OMEGA)
    eigenvalues = np.linalg.eigvalsh(root[:, None] * Gaussian(1.5)(X) * root)
    value = squared_kernel_discrepancy(X, X, Gaussian(1.5), x_weights=OMEGA, y_weights=OMEGA / 2)
    np.testing.assert_allclose(4 * value, np.sum(eigenvalues**2), rtol=1e-12)


def test_the_inner_product_of_two_operators_is_the_norm_of_the_kernel():
    """Lemma 2.1: (T_μ | T_ν) = ‖K‖² in L²(μ ⊗ ν), found by polarisation and as a trace of two matrices."""
    norms = [
        4 * squared_kernel_discrepancy(P, P, Linear(), x_weights=w, y_weights=w / 2) for P, w in ((X, OMEGA), (Y, V))
    ]
    inner = (sum(norms) - squared_kernel_discrepancy(X, Y, Linear(), x_weights=OMEGA, y_weights=V)) / 2
    np.testing.assert_allclose(inner, np.trace((X.T * OMEGA) @ X @ (Y.T * V) @ Y), rtol=1e-11)
    np.testing.assert_allclose(inner, OMEGA @ Linear()(X, Y) ** 2 @ V, rtol=1e-11)


def test_leaving_rows_and_columns_out_is_measured_in_the_frobenius_norm():
    """Lemma 3.1: for ω = 1 and v of zeros and ones, D is the squared Frobenius norm of what no chosen point has a part in.

    The lemma prints ‖K - VKV‖², but its proof sums over pairs of points that are both left out, and that is
    ‖(Id - V)K(Id - V)‖²; the printed norm counts the mixed pairs too and is larger.
    """
    chosen = (rng.random(40) < 0.3).astype(float)
    K = Gaussian(1.5)(X)
    value = squared_kernel_discrepancy(X, X, Gaussian(1.5), x_weights=1.0, y_weights=chosen)
    left_out = 1 - chosen
    np.testing.assert_allclose(value, np.sum((left_out[:, None] * K * left_out) ** 2), rtol=1e-12)
    assert value < 0.9 * np.sum((K - chosen[:, None] * K * chosen) ** 2)


def test_it_is_twice_the_objective_of_the_quadratic_programme():
    nodes = np.array([3, 8, 20, 31])
    problem = Discrepancy(GramOperator(Gaussian(1.5) ** 2, X), OMEGA, np.ones(40))
    value = squared_kernel_discrepancy(X, X[nodes], Gaussian(1.5), x_weights=OMEGA, y_weights=V[:4])
    np.testing.assert_allclose(value, 2 * problem.discrepancy(nodes, V[:4]), rtol=1e-12)


@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
def test_it_is_symmetric(kernel):
    one = squared_kernel_discrepancy(X, Y, kernel, x_weights=OMEGA, y_weights=V)
    assert one == squared_kernel_discrepancy(Y, X, kernel, x_weights=V, y_weights=OMEGA)


@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
def test_equal_samples_are_at_distance_zero_in_any_order(kernel):
    order = rng.permutation(40)
    assert squared_kernel_discrepancy(X, X[order], kernel) == 0.0
    assert squared_kernel_discrepancy(X, X[order], kernel, x_weights=OMEGA, y_weights=OMEGA[order]) == 0.0


def test_a_row_repeated_has_the_sum_of_its_weights():
    twice = np.concatenate([X, X[::-1]])
    assert squared_kernel_discrepancy(X, twice, Gaussian(1.5)) == 0.0
    rows, weights = np.repeat(X[:10], 6, axis=0), rng.random(60)  # whose sums depend on the order by rounding
    order = rng.permutation(60)
    assert (
        squared_kernel_discrepancy(rows, rows[order], Gaussian(1.5), x_weights=weights, y_weights=weights[order]) == 0.0
    )


def test_zero_has_no_sign():
    assert squared_kernel_discrepancy([[0.0], [1.0]], [[1.0], [-0.0]], Gaussian(1.0)) == 0.0


def test_a_point_without_weight_does_not_count():
    far = np.concatenate([Y, 1e6 + Y])
    value = squared_kernel_discrepancy(X, far, Linear(), x_weights=OMEGA, y_weights=np.append(V, np.zeros(25)))
    assert value == squared_kernel_discrepancy(X, Y, Linear(), x_weights=OMEGA, y_weights=V)


def test_what_the_samples_have_in_common_costs_no_digits():
    """One weight moves by 1e-9: D is 1e-18 k²(x, x), far below the rounding error of each of the three terms."""
    moved = OMEGA.copy()
    moved[7] += 2.0**-30
    value = squared_kernel_discrepancy(X, X, Polynomial(3, 0.5, 1.0), x_weights=OMEGA, y_weights=moved)
    change = moved[7] - OMEGA[7]
    np.testing.assert_allclose(value, change**2 * Polynomial(3, 0.5, 1.0).diag(X)[7] ** 2, rtol=1e-12)


def test_it_is_never_negative():
    values = [squared_kernel_discrepancy(X, X + 1e-9 * k, Gaussian(1.5)) for k in range(1, 30)]
    assert min(values) >= 0.0
    assert max(values) < 1e-15


def test_weights_are_used_as_they_are():
    one = squared_kernel_discrepancy(X, Y, Gaussian(1.5), x_weights=OMEGA, y_weights=V)
    np.testing.assert_allclose(
        squared_kernel_discrepancy(X, Y, Gaussian(1.5), x_weights=3 * OMEGA, y_weights=3 * V), 9 * one, rtol=1e-12
    )
    assert squared_kernel_discrepancy(X, Y, Gaussian(1.5), x_weights=2 / 40) > squared_kernel_discrepancy(
        X, Y, Gaussian(1.5)
    )


def test_the_bandwidth_is_that_of_the_first_sample():
    wide = 5 * Y
    fixed = Gaussian().resolve(X)
    assert squared_kernel_discrepancy(X, wide) == squared_kernel_discrepancy(X, wide, fixed)
    assert squared_kernel_discrepancy(wide, X) != squared_kernel_discrepancy(X, wide)
    weights = np.where(np.arange(40) < 20, 1.0, 0.0)
    value = squared_kernel_discrepancy(X, Y, x_weights=weights)
    assert value == squared_kernel_discrepancy(X[:20], Y, Gaussian().resolve(X[:20]), x_weights=1.0)


def test_the_users_kernel_is_not_changed():
    kernel = Gaussian()
    squared_kernel_discrepancy(X, Y, kernel)
    assert kernel.sigma == "median"


def test_single_precision_is_followed():
    exact = squared_kernel_discrepancy(X, Y, Gaussian(1.5))
    with mercer.config_context(dtype="float32"):
        rough = squared_kernel_discrepancy(X, Y, Gaussian(1.5))
    assert rough != exact
    np.testing.assert_allclose(rough, exact, rtol=1e-4)


def test_progress_is_reported():
    seen = []
    points = rng.normal(size=(3000, 2))
    squared_kernel_discrepancy(points[:1500], points[1500:], Gaussian(1.0), progress=seen.append)
    assert len(seen) > 1
    assert max(seen) == 1.0


def test_no_array_between_the_samples_is_made():
    points = rng.normal(size=(8000, 2))
    squared_kernel_discrepancy(points[:10], points[10:20], Gaussian(1.0))  # compiles
    tracemalloc.start()
    squared_kernel_discrepancy(points[:4000], points[4000:], Gaussian(1.0))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 8 * 4000 * 4000 / 4


@pytest.mark.parametrize(
    ("arguments", "options", "sentence"),
    [
        (
            (X, X, Precomputed()),
            {},
            r"^The discrepancy evaluates the kernel at the points of both samples: pass points, not Precomputed\(\)\.$",
        ),
        ((X, Y[:, :2], Gaussian(1.0)), {}, r"^X has 3 features and Y has 2: they must agree\.$"),
        ((X, Y[:0], Gaussian(1.0)), {}, r"^Y has no rows: a sample needs at least one point\.$"),
        ((X, Y, Gaussian(1.0)), {"x_weights": -OMEGA}, r"^x_weights is negative at index \d+"),
        ((X, Y, Gaussian(1.0)), {"y_weights": OMEGA}, r"^y_weights has shape \(40,\)"),
        ((X, np.full((2, 3), np.nan), Gaussian(1.0)), {}, r"^Y has nan in row 0, column 0"),
    ],
)
def test_bad_input_is_refused_in_one_sentence(arguments, options, sentence):
    with pytest.raises(ValueError, match=sentence):
        squared_kernel_discrepancy(*arguments, **options)


@pytest.mark.parametrize("scale", [2.0**-500, 2.0**500])
def test_weights_of_any_size(scale):
    X, Y = np.random.default_rng(0).standard_normal((2, 20, 2))
    plain = squared_kernel_discrepancy(X, Y, Gaussian(1.0), x_weights=1.0, y_weights=0.5)
    scaled = squared_kernel_discrepancy(X, Y, Gaussian(1.0), x_weights=scale, y_weights=0.5 * scale)
    assert scaled == plain * scale * scale


def test_what_cannot_be_written_is_named():
    X, Y = np.random.default_rng(0).standard_normal((2, 20, 2))
    assert squared_kernel_discrepancy(X, Y, Gaussian(1.0), x_weights=1e-200, y_weights=1e-200) == 0
    with pytest.raises(ValueError, match="weights as large as these overflows"):
        squared_kernel_discrepancy(X, Y, Gaussian(1.0), x_weights=1e160)
    with pytest.raises(ValueError, match=r"^Power\(kernel=Linear\(\), exponent=2\) overflows at row 0 of X"):
        squared_kernel_discrepancy(X * 1e200, Y, Linear())
