"""PSD17 section 6.2: the interval at σ = 0.1, 0.7 and 1."""

import numpy as np
import pytest

from mercer.experiments import (
    Verdict,
    interval_eigenfunctions,
    interval_in_plane,
    interval_kernel_smooth,
    interval_kernel_steep,
    interval_rank_one,
    wide_interval_eigenfunctions,
    wide_interval_in_plane,
)
from mercer.experiments.psd17.interval import _largest_step, _parity
from mercer.operators import DiffusionOperator, GramOperator


@pytest.fixture(scope="module")
def narrow():
    return interval_eigenfunctions(n_points=201)


@pytest.fixture(scope="module")
def wide():
    return wide_interval_eigenfunctions(n_points=201)


@pytest.fixture(scope="module")
def rank_one():
    return interval_rank_one(n_points=201)


def _dense(result):
    """Ā on the points of the interval, by the formulas."""
    x = result.x
    K = np.exp(-((x[:, None] - x) ** 2) / result.sdp.kernel_.sigma**2)
    m = K.sum(axis=1)
    return K / np.sqrt(np.outer(m, m)) - np.sqrt(np.outer(m, m)) / m.sum()


@pytest.mark.parametrize("name", ["narrow", "wide"])
def test_two_dimensions_an_odd_and_an_even_function(name, request):
    result = request.getfixturevalue(name)
    assert [c.verdict for c in result.comparisons] == [Verdict.AGREES] * 5
    assert [_parity(f) for f in result.learned.T] == pytest.approx([-1, 1], abs=1e-6)
    assert [_parity(f) for f in result.spectral.T] == pytest.approx([-1, 1], abs=1e-6)


@pytest.mark.parametrize("name", ["narrow", "wide"])
def test_spectral_functions_are_orthonormal_eigenfunctions(name, request):
    result = request.getfixturevalue(name)
    spacing = 2 / (len(result.x) - 1)
    np.testing.assert_allclose(spacing * result.spectral.T @ result.spectral, np.eye(2), atol=1e-8)
    values = np.linalg.eigvalsh(_dense(result))[::-1][:2]
    np.testing.assert_allclose(_dense(result) @ result.spectral, values * result.spectral, atol=1e-6)


@pytest.mark.parametrize("name", ["narrow", "wide"])
def test_learned_functions_have_the_mean_value_property(name, request):
    """PSD17 (11): χ(x) = K(x,x) / (Kρ)(x,x) · Σ K(x,y) χ(y), with a factor of at most 1/K(x,x) (Lemma 2)."""
    result = request.getfixturevalue(name)
    K = _dense(result)
    scale = np.sqrt(2 / (len(result.x) - 1))
    chi = result.learned * scale
    factor = np.diag(K) / np.einsum("ij,ij->i", K @ chi, chi)
    np.testing.assert_allclose(factor[:, None] * (K @ chi), chi, atol=1e-5 * np.abs(chi).max())
    assert np.all(factor > 0)
    assert np.all(factor <= (1 + 1e-6) / np.diag(K))


def test_functions_are_drawn_upright(narrow):
    assert narrow.spectral[-1, 0] > 0
    assert narrow.learned[-1, 0] > 0
    middle = len(narrow.x) // 2
    assert narrow.spectral[middle, 1] > 0
    assert narrow.learned[middle, 1] > 0


def test_curves_of_the_functions(narrow):
    left, right = narrow.figure().axes
    assert [line.get_label() for line in left.lines[:2]] == ["$e_0$", "$e_1$"]
    assert [line.get_label() for line in right.lines[:2]] == ["$χ_1$", "$χ_2$"]
    np.testing.assert_array_equal(right.lines[1].get_ydata(), narrow.learned[:, 1])


@pytest.mark.parametrize(("draw", "sigma"), [(interval_in_plane, 0.1), (wide_interval_in_plane, 0.7)])
def test_curves_in_the_plane(draw, sigma):
    result = draw(n_points=101)
    assert result.functions.sdp.kernel_.sigma == sigma
    assert result.comparisons == result.functions.comparisons
    left, right = result.figure().axes[:2]
    assert sum(len(c.get_offsets()) for c in left.collections) == 101
    radii = np.linalg.norm(right.collections[0].get_offsets(), axis=1)
    diagonal = result.functions.sdp.diagonal_ * 50  # in the scale of the integral operator
    np.testing.assert_allclose(np.sort(radii**2), np.sort(diagonal), rtol=1e-8)


def test_narrow_kernel_is_continuous():
    result = interval_kernel_smooth(n_points=201)
    assert [c.verdict for c in result.comparisons] == [Verdict.AGREES] * 2
    fine, coarse = result.steps
    assert coarse == pytest.approx(2 * fine, rel=0.15)


def test_steep_kernel_is_no_discontinuity_but_far_steeper_than_its_diffusion_kernel():
    result = interval_kernel_steep(n_points=401)
    assert [c.verdict for c in result.comparisons] == [Verdict.AGREES] * 2
    assert "shrinks with the spacing" in result.comparisons[1].reason
    learned, diffusion = result.kernels.learned_kernel, result.kernels.diffusion_kernel
    row = len(learned) // 4
    assert _largest_step(learned[row]) > 5 * _largest_step(diffusion[row])
    assert len(result.figure().axes) == 4


def test_discontinuity_is_called_one():
    """At σ = 1 the step across zero stays when the grid is refined."""
    result = interval_kernel_steep(1.0, n_points=201)
    assert result.comparisons[1].verdict is Verdict.DIFFERS
    assert result.steps[0] == pytest.approx(result.steps[1], rel=0.1)


def test_wide_bandwidth_has_a_closed_form_of_rank_one_but_for_the_middle_point(rank_one):
    verdicts = {c.quantity: c.verdict for c in rank_one.comparisons}
    assert verdicts["rank of ρ, 201 points"] is Verdict.DIFFERS
    assert verdicts["rank of ρ, 200 points"] is Verdict.AGREES
    assert verdicts["eigenvalues of ρ / Tr ρ, 201 points"] is Verdict.DIFFERS
    assert rank_one.distance < 1e-6
    assert rank_one.odd.rank_ == 2
    assert rank_one.even.rank_ == 1
    middle = rank_one.odd.embedding_[100]
    assert abs(middle[0]) < 1e-5 * abs(middle[1])


def test_closed_form_is_optimal_by_its_multipliers(rank_one):
    """An independent proof: L = Diag(Kρ / K) - K of the closed form is positive semi-definite (PSD17 (9))."""
    operator = DiffusionOperator(GramOperator(rank_one.even.kernel_, np.linspace(-1, 1, 200)[:, None]))
    K = operator.to_dense()
    closed = np.sign(np.linspace(-1, 1, 200)) * np.sqrt(np.diag(K))
    L = np.diag((K @ closed) * closed / np.diag(K)) - K
    assert np.linalg.eigvalsh(L)[0] > -1e-12
    np.testing.assert_allclose(L @ closed, 0, atol=1e-14)


def test_narrower_bandwidth_has_no_closed_form():
    result = interval_rank_one(0.5, n_points=101)
    closed = result.comparisons[-1]
    assert closed.verdict is Verdict.DIFFERS
    assert "too narrow" in closed.reason
    assert result.distance > 0.1


def test_middle_is_enlarged(rank_one):
    axes = rank_one.figure().axes
    assert [ax.get_title() for ax in axes] == ["201 points: rank 2", "The middle, enlarged", "200 points: rank 1"]
    assert axes[1].get_xlim()[1] < 0.5


def test_even_number_of_points_is_refused():
    with pytest.raises(ValueError, match="n_points=200 must be odd"):
        interval_rank_one(n_points=200)


@pytest.mark.slow
def test_paper_size():
    """The converged numbers of the paper's grid of 2001 points."""
    result = interval_rank_one()
    np.testing.assert_allclose(result.odd.eigenvalues_, [0.999855, 1.446e-4], atol=1e-6)
    wide = wide_interval_eigenfunctions()
    np.testing.assert_allclose(wide.sdp.eigenvalues_, [0.991575, 0.008425], atol=1e-6)
