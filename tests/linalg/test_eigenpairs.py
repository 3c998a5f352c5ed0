"""Leading and least eigenvalues against dense decompositions, for both roads: dense and Lanczos."""

import numpy as np
import pytest
import scipy.sparse
from scipy.sparse.linalg import ArpackNoConvergence

from mercer import DiffusionOperator, Gaussian, GramOperator, LowRankOperator, Precomputed
from mercer.linalg import leading_eigenpairs, least_eigenvalue
from mercer.linalg.eigen import EigenvalueWarning, deterministic_signs
from mercer.linalg.lanczos import BlockLanczos

LANCZOS_FROM = 1501
rng = np.random.default_rng(12)
X = rng.normal(size=(120, 2))


def largest_ritz_value(multiply, basis, steps, rng, *, block=1):
    """The largest Ritz value and the columns multiplied; minus infinity where the complement is empty."""
    space = BlockLanczos(multiply, basis, rng, block=block)
    space.extend(steps)
    return (float(space.ritz_values()[0]) if space.n_columns else -np.inf), space.n_columns


def source(seed=0):
    return np.random.default_rng(seed)


def known_spectrum(n, values, dtype=np.float64):
    """A low-rank map with these eigenvalues, and its eigenvectors."""
    basis = np.linalg.qr(rng.normal(size=(n, len(values))))[0]
    return LowRankOperator((basis * np.sqrt(values)).astype(dtype)), basis * deterministic_signs(basis)


@pytest.mark.parametrize("count", [1, 4, 120])
def test_small_maps_against_numpy(count):
    operator = DiffusionOperator(GramOperator(Gaussian(sigma=0.7), X))
    values, vectors = leading_eigenpairs(operator, count, rng=source())
    exact, basis = np.linalg.eigh(operator.to_dense())
    np.testing.assert_allclose(values, exact[::-1][:count], atol=1e-13)
    assert vectors.shape == (120, count)
    np.testing.assert_allclose(vectors.T @ vectors, np.eye(count), atol=1e-12)
    np.testing.assert_allclose(operator @ vectors, vectors * values, atol=1e-13)
    for k in range(min(count, 4)):  # the leading ones are well apart
        assert abs(vectors[:, k] @ basis[:, -1 - k]) == pytest.approx(1, abs=1e-10)


def test_largest_means_largest_and_not_largest_in_modulus():
    operator = GramOperator(Precomputed(), np.diag([1.0, -5.0, 3.0, 2.0]))
    values, vectors = leading_eigenpairs(operator, 2, rng=source())
    np.testing.assert_allclose(values, [3.0, 2.0])
    np.testing.assert_allclose(vectors, np.eye(4)[:, [2, 3]], atol=1e-14)


def indefinite_map(n):
    """A symmetric map with eigenvalues 4, 1, 0 and -9, and the eigenvectors of the first two."""
    basis = np.linalg.qr(rng.normal(size=(n, 3)))[0]
    operator = LowRankOperator(basis * [4.0, 1.0, -9.0], basis)
    operator.symmetric = True
    return operator, basis[:, :2] * deterministic_signs(basis[:, :2])


def test_lanczos_too_takes_largest_for_largest():
    operator, basis = indefinite_map(LANCZOS_FROM)
    values, vectors = leading_eigenpairs(operator, 2, rng=source())
    np.testing.assert_allclose(values, [4.0, 1.0], rtol=1e-10)
    np.testing.assert_allclose(vectors, basis, atol=1e-9)


def test_lanczos_against_a_dense_decomposition():
    points = rng.normal(size=(LANCZOS_FROM + 40, 2))
    operator = DiffusionOperator(GramOperator(Gaussian(sigma=1.5), points))
    values, vectors = leading_eigenpairs(operator, 4, rng=source())
    exact = np.linalg.eigvalsh(operator.to_dense())[::-1][:4]
    np.testing.assert_allclose(values, exact, rtol=1e-10)
    np.testing.assert_allclose(operator @ vectors, vectors * values, atol=1e-10)
    np.testing.assert_allclose(vectors.T @ vectors, np.eye(4), atol=1e-11)


@pytest.mark.parametrize("n", [LANCZOS_FROM - 1, LANCZOS_FROM, 3000])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_known_spectrum_on_both_roads(n, dtype):
    spectrum = np.array([9.0, 5.0, 4.0, 1.0, 0.5])
    operator, basis = known_spectrum(n, spectrum, dtype)
    values, vectors = leading_eigenpairs(operator, 3, rng=source())
    tolerance = 200 * np.finfo(dtype).eps
    assert values.dtype == vectors.dtype == dtype
    np.testing.assert_allclose(values, spectrum[:3], rtol=tolerance)
    np.testing.assert_allclose(vectors, basis[:, :3], atol=10 * tolerance)


def test_more_than_a_quarter_of_a_large_spectrum_is_found_densely(monkeypatch):
    monkeypatch.setattr("mercer.linalg.eigen._DENSE_UP_TO", 10)
    operator = GramOperator(Gaussian(sigma=0.7), X)
    values, vectors = leading_eigenpairs(operator, 60, rng=source())
    np.testing.assert_allclose(values, np.linalg.eigvalsh(operator.to_dense())[::-1][:60], atol=1e-12)
    np.testing.assert_allclose(vectors.T @ vectors, np.eye(60), atol=1e-12)


@pytest.mark.parametrize("n", [200, LANCZOS_FROM])
def test_signs_do_not_depend_on_the_start(n):
    operator, _ = known_spectrum(n, [5.0, 3.0, 2.0])
    answers = [leading_eigenpairs(operator, 3, rng=source(seed))[1] for seed in range(4)]
    for vectors in answers:
        np.testing.assert_allclose(vectors, answers[0], atol=1e-10)
        assert np.all(vectors[np.abs(vectors).argmax(axis=0), np.arange(3)] > 0)


def test_the_same_seed_gives_the_same_bits():
    operator, _ = known_spectrum(LANCZOS_FROM, [5.0, 3.0, 2.0])
    one, two = (leading_eigenpairs(operator, 3, rng=source(5)) for _ in range(2))
    np.testing.assert_array_equal(one[0], two[0])
    np.testing.assert_array_equal(one[1], two[1])


def test_signs_of_columns():
    vectors = np.array([[1.0, 0.5, 0.0], [-2.0, 0.4, 0.0]])
    np.testing.assert_array_equal(deterministic_signs(vectors), [-1.0, 1.0, 1.0])
    np.testing.assert_array_equal(deterministic_signs(np.empty((0, 2))), [1.0, 1.0])
    np.testing.assert_array_equal(deterministic_signs(np.empty((2, 0))), [])


def test_least_eigenvalue_small_and_large():
    matrix = rng.normal(size=(50, 50))
    matrix = (matrix + matrix.T) / 2
    found = least_eigenvalue(GramOperator(Precomputed(), matrix), rng=source())
    assert found == pytest.approx(np.linalg.eigvalsh(matrix)[0], rel=1e-12)
    assert least_eigenvalue(indefinite_map(LANCZOS_FROM)[0], rng=source()) == pytest.approx(-9.0, rel=1e-2)


def test_ritz_value_on_the_complement_of_a_subspace():
    operator, basis = known_spectrum(300, [9.0, 5.0, 4.0, 1.0])
    none, two = basis[:, :0], basis[:, :2]
    value, steps = largest_ritz_value(operator.__matmul__, none, 20, source())
    assert value == pytest.approx(9.0, rel=1e-10)
    assert steps <= 20
    value, _ = largest_ritz_value(operator.__matmul__, two, 20, source())
    assert value == pytest.approx(4.0, rel=1e-10)
    assert largest_ritz_value(operator.__matmul__, np.eye(300), 5, source()) == (-np.inf, 0)


def test_ritz_value_on_the_complement_of_any_subspace():
    operator = GramOperator(Gaussian(sigma=0.7), X)
    basis = np.linalg.qr(rng.normal(size=(120, 6)))[0]
    outside = np.eye(120) - basis @ basis.T
    value, _ = largest_ritz_value(operator.__matmul__, basis, 60, source())
    assert value == pytest.approx(np.linalg.eigvalsh(outside @ operator.to_dense() @ outside)[-1], rel=1e-10)


def test_ritz_value_lies_inside_the_spectrum_and_grows_with_the_steps():
    operator = GramOperator(Gaussian(sigma=0.3), X)
    top = np.linalg.eigvalsh(operator.to_dense())[-1]
    values = [
        largest_ritz_value(operator.__matmul__, np.empty((120, 0)), steps, source())[0] for steps in (1, 3, 8, 30)
    ]
    assert np.all(np.diff(values) >= -1e-12)
    assert values[0] < top
    assert values[-1] <= top * (1 + 1e-13)
    assert values[-1] == pytest.approx(top, rel=1e-8)


def test_krylov_space_that_closes_stops_early():
    value, steps = largest_ritz_value(lambda v: 2.0 * v, np.empty((40, 0)), 10, source())
    assert value == pytest.approx(2.0)
    assert steps == 1


def _refuse(*args, **kwargs):
    raise ArpackNoConvergence("none", np.empty(0), np.empty((0, 0)))


@pytest.mark.parametrize("dense", [True, False])
def test_where_arpack_does_not_converge_another_way_is_found(dense, monkeypatch):
    values = np.r_[2.0, 1.5, np.linspace(1.0, 0.0, LANCZOS_FROM - 2)]
    operator = GramOperator(Precomputed(), scipy.sparse.diags_array(values).tocsr())
    monkeypatch.setattr("mercer.linalg.eigen.eigsh", _refuse)
    if not dense:
        monkeypatch.setattr("mercer.linalg.eigen._DENSE_AT_LAST", 0)
    found, vectors = leading_eigenpairs(operator, 2, rng=source())
    np.testing.assert_allclose(found, [2.0, 1.5], rtol=1e-9)
    np.testing.assert_allclose(np.abs(vectors[[0, 1], [0, 1]]), 1.0, rtol=1e-6)


def test_eigenvalues_that_products_cannot_tell_apart_are_named(monkeypatch):
    values = 1 - 1e-5 * np.linspace(0, 1, LANCZOS_FROM) ** 0.1
    values[: LANCZOS_FROM // 2] = -1
    operator = GramOperator(Precomputed(), scipy.sparse.diags_array(values).tocsr())
    monkeypatch.setattr("mercer.linalg.eigen.eigsh", _refuse)
    monkeypatch.setattr("mercer.linalg.eigen._DENSE_AT_LAST", 0)
    monkeypatch.setattr("mercer.linalg.eigen._CLOSE", 1e-12)
    with pytest.warns(EigenvalueWarning, match="lie so close together that .* products tell them apart to"):
        found, _ = leading_eigenpairs(operator, 2, rng=source())
    np.testing.assert_allclose(found, values.max(), rtol=1e-5)
