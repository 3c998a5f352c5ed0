"""The survey's statements: which hold, which do not, and by how much."""

import numpy as np
import pytest
from scipy.integrate import quad
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.svm import LinearSVC

from mercer.datasets import digits, standardized, swiss_roll, wine
from mercer.experiments import (
    Verdict,
    centred_cloud,
    distance_spectra,
    interval_operator,
    kernel_completion,
    linear_kernel_methods,
    separated_rings,
    strictly_definite,
    unrolled_sheet,
)
from mercer.experiments.rkhs.eigenfunctions import ExponentialOperator
from mercer.experiments.rkhs.linear_kernel import discriminants
from mercer.experiments.rkhs.separation import separating_hyperplane
from mercer.experiments.rkhs.strictly_definite import _distance_of_x, _powers
from mercer.experiments.rkhs.unfolding import _sheet

AGREES, DIFFERS = Verdict.AGREES, Verdict.DIFFERS


def verdicts(result):
    return [comparison.verdict for comparison in result.comparisons]


# --- the operator of an interval ------------------------------------------------------------------------------


@pytest.mark.parametrize("sigma", [0.3, 1.0, 4.0])
def test_the_operator_has_these_eigenfunctions(sigma):
    operator, count = ExponentialOperator(sigma), 6
    values = operator.eigenvalues(count)
    assert np.all(np.diff(values) < 0)
    for x in (-0.9, 0.1, 0.77):
        for k in range(count):
            found = quad(
                lambda y, k=k, x=x: np.exp(-abs(x - y) / sigma) * operator.eigenfunctions(np.array([y]), count)[0, k] / 2,
                -1, 1, points=[x],
            )[0]  # fmt: skip
            assert found == pytest.approx(values[k] * operator.eigenfunctions(np.array([x]), count)[0, k], abs=1e-9)
    nodes, weights = np.polynomial.legendre.leggauss(80)
    functions = operator.eigenfunctions(nodes, count)
    np.testing.assert_allclose(functions.T * (weights / 2) @ functions, np.eye(count), atol=1e-10)


def test_the_trace_is_that_of_the_kernel():
    """Σλ = k(x, x) = 1, and the tail falls as k⁻²."""
    values = ExponentialOperator(0.5).eigenvalues(3000)
    assert values.sum() == pytest.approx(1, abs=1e-3)


def test_eigenvalues_of_samples_are_near_those_of_their_law():
    result = interval_operator(sizes=(40, 160), draws=6)
    assert verdicts(result) == [AGREES, DIFFERS, AGREES, AGREES]
    assert -0.9 < result.slope < -0.2
    assert len(result.figure().axes) == 2


# --- kernels made of distances --------------------------------------------------------------------------------


def test_distances_that_are_no_distances_of_a_hilbert_space():
    result = distance_spectra(120)
    np.testing.assert_allclose(result.corners, [2, 2, 0, -1], atol=1e-12)
    assert verdicts(result) == [DIFFERS, AGREES, AGREES, DIFFERS, DIFFERS, DIFFERS]
    assert result.negative_share("digits, SSIM") == 0
    images = digits()[0][np.random.default_rng(0).choice(1797, 120, replace=False)]
    D = np.abs(images[:, None] - images).sum(axis=2) ** 2
    values = np.linalg.eigvalsh(-0.5 * (D - D.mean(axis=0) - D.mean(axis=1)[:, None] + D.mean()))
    np.testing.assert_allclose(result.spectra["digits, Manhattan"], values[::-1] / values[-1], atol=1e-10)
    assert len(result.figure().axes) == 2


# --- completion -----------------------------------------------------------------------------------------------


def test_completion_by_landmarks():
    result = kernel_completion((5, 20, 60), n_per_cluster=60, draws=2)
    assert verdicts(result)[:3] == [AGREES, AGREES, DIFFERS]
    assert all(np.all(errors >= result.best - 1e-9) for errors in result.errors.values())
    assert result.low_rank[0] < 1e-12 < 1e-3 < result.low_rank[1]
    assert len(result.figure().axes) == 3


# --- strictly positive definite, not universal ----------------------------------------------------------------


def test_strict_definiteness_is_not_universality():
    result = strictly_definite(8)
    assert verdicts(result) == [AGREES, DIFFERS]
    assert 0.04 < result.below < result.distance < 0.2
    assert len(result.figure().axes) == 2


def test_the_distance_from_powers_is_that_of_least_squares():
    """Müntz's formula for finitely many powers is the distance from their span, here by their Gram matrix."""
    powers = _powers(5).astype(float)
    gram = 1 / (powers[:, None] + powers + 1)
    side = 1 / (powers + 2)
    squared = 1 / 3 - side @ np.linalg.solve(gram, side)
    formula = np.sqrt(1 / 3) * np.prod(np.abs(powers - 1) / (powers + 2))
    assert formula == pytest.approx(np.sqrt(squared), rel=1e-4)
    assert 0 < _distance_of_x() < formula
    assert _distance_of_x(1000) < _distance_of_x() * 1.004  # a bound at any number of terms


# --- centring and separation ----------------------------------------------------------------------------------


def test_centring():
    result = centred_cloud(n_per_cluster=30)
    assert verdicts(result) == [AGREES] * 5
    assert result.towards_mean > 0.99
    np.testing.assert_allclose(result.after.mean(axis=0), 0, atol=1e-12)
    assert len(result.figure().axes) == 3


def test_rings_are_separated_in_the_feature_space():
    result = separated_rings(n_per_ring=60, components=(1, 2, 4, 8))
    assert verdicts(result) == [AGREES] * 3
    assert result.errors["plane"][0] > 0.3
    assert result.errors["features"] == (0.0, 0.0)
    assert result.by_components[8][0] == 0 < result.by_components[2][0]
    assert len(result.figure().axes) == 3


def test_a_hyperplane_is_found_where_there_is_one():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 3))
    labels = (X @ [1.0, -2.0, 0.5] > 0.3).astype(int)
    normal, offset = separating_hyperplane(X, labels)
    assert np.all((X @ normal + offset > 0) == (labels == 1))
    turned = np.where(np.arange(60) < 3, 1 - labels, labels)
    normal, offset = separating_hyperplane(X, turned)
    wrong = np.sum((X @ normal + offset > 0) != (turned == 1))
    assert wrong <= np.sum(LinearSVC(C=1e3, max_iter=100_000).fit(X, turned).predict(X) != turned) + 1


def test_a_linear_kernel_changes_no_method_but_by_its_penalty():
    result = linear_kernel_methods()
    assert verdicts(result) == [AGREES, DIFFERS, DIFFERS, AGREES]
    assert result.apart("FDA", "kernel FDA") < 1e-9
    assert result.apart("penalised FDA", "kernel FDA, penalty on the coefficients") > 1e-4
    assert len(result.figure().axes) == 5


def test_discriminants_are_those_of_scikit_learn():
    X, labels = wine()
    X = standardized(X)
    ours = discriminants(X.T, labels, 1e-9 * np.eye(X.shape[1]))
    theirs = LinearDiscriminantAnalysis().fit(X, labels).transform(X)
    for x, y in zip(ours.T, theirs.T, strict=True):
        assert abs(np.corrcoef(x, y)[0, 1]) == pytest.approx(1, abs=1e-9)


# --- unfolding ------------------------------------------------------------------------------------------------


def test_a_roll_is_drawn_apart_by_distances_of_neighbours_and_not_of_all_pairs():
    result = unrolled_sheet(80, n_neighbors=3, n_all_pairs=15)
    assert verdicts(result)[:2] == [DIFFERS, AGREES]
    kept, every = result.growth
    assert every == pytest.approx(1, abs=5e-3)
    assert kept > 1.2
    assert result.unfolded.certificate_.holds(1e-4)
    assert result.fit(result.sheet @ [[1.0, 2.0], [0.5, -1.0]]) == pytest.approx(1)
    assert len(result.figure().axes) == 4


def test_the_sheet_is_isometric_to_the_roll():
    """Points a small step apart on the sheet are as far apart on the roll."""
    roll, angle = swiss_roll(400)
    X, flat = (np.linalg.norm(points[:, None] - points, axis=2) for points in (roll, _sheet(roll, angle)))
    near = (flat > 0) & (flat < 0.25)
    assert near.sum() > 100
    np.testing.assert_allclose(X[near], flat[near], rtol=0.02)
    assert np.all(flat > X - 1e-6)
