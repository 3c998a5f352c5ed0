"""QUAD sections 8 and 9: the printed numbers to every digit, and where they cannot be met the reason."""

import numpy as np
import pytest

from mercer.datasets import data_folder, halton_square
from mercer.experiments import (
    CATALOGUE,
    Verdict,
    covtype_quadrature,
    description,
    skin_quadrature,
    square_eigenpairs,
    square_merging,
    square_path,
    square_quadrature,
    square_random,
    square_spectrum,
    square_upsilon,
)
from mercer.experiments.quadrature_setting import PRINTED, HaltonSquare
from mercer.experiments.report import printed


def _titles(result):
    return [ax.get_title() for ax in result.figure().axes if ax.get_title()]


def _verdicts(result):
    return {c.quantity: c.verdict for c in result.comparisons}


def _kernel(X, sigma=0.4):
    return np.exp(-((X[:, None] - X) ** 2).sum(axis=2) / sigma**2)


@pytest.fixture(scope="module")
def quadrature():
    return square_quadrature()


@pytest.fixture(scope="module")
def merging():
    return square_merging()


def test_half_a_unit_of_the_last_printed_digit():
    assert printed("a", "4.58", 4.5849).verdict is Verdict.AGREES
    assert printed("a", "4.58", 4.5751).measured == "4.58"
    far = printed("a", "1.25e-3", 1.2551e-3)
    assert (far.measured, far.verdict) == ("1.26e-3", Verdict.DIFFERS)
    assert "4e-03, not explained" in far.reason
    assert printed("a", "12", 13, "another count").reason == "another count"


def test_every_number_of_section_8_1_but_two(quadrature):
    verdicts = _verdicts(quadrature)
    differ = [quantity for quantity, verdict in verdicts.items() if verdict is Verdict.DIFFERS]
    assert differ == ["D(e₁)", "Frank-Wolfe bound ε"]
    assert len(verdicts) == 12
    assert quadrature.model.certificate_.holds(2e-10)  # the rounding of entries and sums makes 1.4e-10 of it


def test_the_printed_d_of_one_point_fits_no_point(quadrature):
    """D(e_k) by the definition, for all k at once."""
    X = halton_square()
    S = _kernel(X) ** 2
    w = np.full(len(X), 1 / len(X))
    single = 0.5 * (w @ S @ w) - S @ w + 0.5 * np.diag(S)
    assert np.abs(single - 0.4760566).min() > 1e-6
    comparison = next(c for c in quadrature.comparisons if c.quantity == "D(e₁)")
    assert float(comparison.measured) == pytest.approx(single[0], abs=1e-7)
    assert f"k = {np.argmin(np.abs(single - 0.4760566)) + 1}" in comparison.reason


def test_nodes_are_drawn_over_the_sample(quadrature):
    crosses, nodes = quadrature.figure().axes[0].collections
    assert len(crosses.get_offsets()) == 2016
    np.testing.assert_array_equal(nodes.get_offsets(), quadrature.X[quadrature.model.indices_])
    assert _titles(quadrature) == ["ϰ = 0.81: 160 nodes of 2016 points"]


def test_another_size_is_named_as_the_reason():
    result = square_quadrature(n=200, trace_fraction=0.5)
    alpha = result.comparisons[0]
    assert alpha.verdict is Verdict.DIFFERS
    assert alpha.reason == "N = 200 here and 2016 in the paper; ϰ = 0.5 here and 0.81 in the paper"


def test_spectrum_against_a_dense_routine():
    result = square_spectrum(n=400)
    expected = np.linalg.eigvalsh(_kernel(result.X) / 400)[::-1][:62]
    np.testing.assert_allclose(result.eigenpairs.canonical, expected, atol=1e-12)
    assert result.comparisons == ()
    left, right, _ = result.figure().axes
    np.testing.assert_allclose(left.lines[0].get_ydata(), result.eigenpairs.canonical)
    assert right.get_title() == "Eigenfunction 11 on the square"


def test_upsilon_of_the_first_21_directions():
    result = square_eigenpairs()
    assert set(_verdicts(result).values()) == {Verdict.AGREES}
    assert result.refined.upsilon.min() > 0.99
    assert _titles(result) == ["Eigenvalues of both operators", "Υ-test", "Eigenvalues from the Υ-test"]


def test_ninety_merges(merging):
    assert set(_verdicts(merging).values()) == {Verdict.AGREES}
    nodes, weights = merging.merged
    assert nodes.size == 70
    S = _kernel(merging.X) ** 2
    v = np.full(2016, -1 / 2016)
    v[nodes] += weights
    assert 0.5 * v @ S @ v - merging.sequence.values[0] == pytest.approx(3.494809e-5, abs=5e-12)
    assert weights.sum() == pytest.approx(0.81)


def test_pictures_of_merging(merging):
    left, right, whole, near = merging.figure().axes
    assert len(left.collections[0].get_offsets()) == 160
    assert [text.get_text() for text in right.get_legend().get_texts()] == ["160 nodes", "70 nodes, merged"]
    np.testing.assert_array_equal(whole.lines[0].get_xdata(), np.arange(160, 0, -1))
    assert near.get_xlim()[0] > near.get_xlim()[1]


def test_another_stage_is_named():
    result = square_merging(n=200, n_merges=3, trace_fraction=0.7)
    assert result.merged[0].size == result.sequence.nodes.size - 3
    assert all(c.reason for c in result.comparisons)


def test_a_path_cut_short():
    result = square_path(n=200, alpha=5e-3)
    assert [c.quantity for c in result.comparisons] == ["α₀", "events until precision ends the path"]
    assert "N = 200" in result.comparisons[1].reason
    assert result.path.alphas[-1] <= 5e-3 < result.path.alphas[-2]
    assert _titles(result) == ["Nodes", "Discrepancy D", "Penalty α"]


def test_a_short_path_past_the_papers_last_alpha():
    """Another sample has fewer kinks: no kink 12785 to compare, but a solution at its α."""
    result = square_path(n=60, sigma=0.2, alpha=1e-6)
    quantities = [c.quantity for c in result.comparisons]
    assert quantities[-1] == "ϰ of the solution at α = 1.514626e-5"
    assert not any("12785" in quantity for quantity in quantities)


@pytest.mark.slow
def test_the_whole_path():
    result = square_path()
    _, alpha, kappa, solution = result.comparisons[1:]
    assert len(result.path) >= 12786
    assert result.path.end.lost_precision
    assert solution.verdict is Verdict.AGREES
    assert float(alpha.measured) == pytest.approx(1.514626e-5, rel=5e-3)
    assert float(kappa.measured) == pytest.approx(0.9995426, abs=2e-6)


def test_directions_along_the_trace():
    result = square_upsilon(n=300, n_values=6, largest=0.95)
    assert np.isnan(result.upsilon[0]).all()
    assert result.n_nodes[0] == 0
    assert (np.diff(result.accurate) >= 0).all()
    values = np.linalg.eigvalsh(_kernel(halton_square(300)) / 300)[::-1]
    expected = [int(np.sum(np.cumsum(values) <= kappa)) for kappa in result.kappas]
    np.testing.assert_array_equal(result.within_trace, expected)
    assert result.comparisons[0].verdict is Verdict.AGREES
    mesh = result.figure().axes[0].collections[0]
    assert mesh.get_array().shape == (62, 6)


@pytest.mark.slow
def test_41_values_of_the_trace():
    result = square_upsilon()
    assert result.comparisons[0].verdict is Verdict.AGREES
    assert result.accurate[-1] == 62


def test_random_samples_are_behind():
    result = square_random((100, 200), n=400, repetitions=3)
    assert {size: counts.shape for size, counts in result.counts.items()} == {100: (3, 2), 200: (3, 2)}
    assert result.n_nodes < 200
    assert [c.verdict for c in result.comparisons] == [Verdict.AGREES] * 2
    assert "3 draws of each size" in result.comparisons[0].reason
    assert all(np.all(counts[:, 0] <= counts[:, 1]) for counts in result.counts.values())
    assert _titles(result) == ["Directions with Υ ≥ 0.99", "Directions with Υ ≥ 0.95"]


@pytest.fixture
def table(monkeypatch, tmp_path):
    """A table in the place of the colours: 150 distinct rows, each four times."""
    X = np.repeat(halton_square(150), 4, axis=0)
    np.savez(tmp_path / "skin.npz", X=np.random.default_rng(0).permutation(X))
    monkeypatch.setenv("MERCER_DATA", str(tmp_path))


@pytest.mark.usefixtures("table")
def test_protocol_on_repeated_rows():
    result = skin_quadrature(n=None, sigma=1.0, max_increase=0.05)
    assert (result.n_rows, result.n_points) == (600, 150)
    names = [found.name for found in result.approximations]
    assert names == ["ϰ = 0.3", "ϰ = 0.655", "ϰ = 0.8", "ϰ = 0.8, merged"]
    assert result.large.certificate_.holds(1e-10)
    before, after = result.approximations[2:]
    assert after.n_nodes < before.n_nodes
    assert before.discrepancy < after.discrepancy <= 1.05 * before.discrepancy
    assert sorted(result.path.path_.kappas)[-1] >= 0.655
    assert "600 rows of skin, 150 of them distinct" in result.comparisons[0].reason


@pytest.mark.usefixtures("table")
def test_table_of_partial_traces():
    """A column for every count of accurate directions that two have; the sums are those of the true eigenvalues."""
    result = skin_quadrature(n=None, sigma=1.0)
    true = np.linalg.eigvalsh(_kernel(halton_square(150) / halton_square(150).std(axis=0), 1.0) / 150)[::-1]
    counts = [found.accurate for found in result.approximations]
    assert result.table
    for m, column in result.table.items():
        assert len(column) == sum(count >= m for count in counts) >= 2
        np.testing.assert_allclose(list(column.values()), true[:m].sum(), rtol=0.01)
    assert [c.verdict for c in result.comparisons if c.quantity.startswith("λ̂")] == [Verdict.AGREES] * len(result.table)


@pytest.mark.usefixtures("table")
def test_picture_of_the_protocol():
    figure = skin_quadrature(n=300, sigma=1.0).figure()
    assert figure.get_suptitle().startswith("skin: 300 rows")
    assert [ax.get_title() for ax in figure.axes][3:] == ["Υ-test", "Eigenvalues λ̂ from the Υ-test", "Weak merging"]
    assert len(figure.axes[3].lines) == 4


@pytest.mark.skipif(data_folder() is None, reason="MERCER_DATA names no folder with real data")
@pytest.mark.parametrize("experiment", [pytest.param(covtype_quadrature, marks=pytest.mark.slow), skin_quadrature])
def test_parts_of_the_real_tables(experiment):
    """QUAD sections 9.1 and 9.2, at a size for every day."""
    result = experiment(n=2000)
    assert result.n_rows == 2000
    assert result.large.certificate_.holds(1e-7)  # far outliers cost entries, and so the bounds, some digits
    nodes = [found.n_nodes for found in result.approximations[:3]]
    assert nodes == sorted(nodes)
    assert _verdicts(result)["directions with Υ ≥ 0.99 of the first 62, before and after merging"] is Verdict.AGREES


def test_one_setting_computes_everything_once():
    square = HaltonSquare(150, trace_fraction=0.6)
    assert square.sample is square.sample
    assert square.model is square.model
    assert square.exact is square.exact
    S = _kernel(square.sample.X) ** 2
    np.testing.assert_allclose(square.sample.problem.distortion, S.mean(axis=1), rtol=1e-12)
    assert square.difference == "N = 150 here and 2016 in the paper; ϰ = 0.6 here and 0.81 in the paper"
    assert HaltonSquare().difference == ""
    assert HaltonSquare().printed("nodes", 160).paper == PRINTED["nodes"] == "160"


@pytest.mark.usefixtures("table")
def test_an_option_that_the_protocol_does_not_have_is_named():
    with pytest.raises(TypeError, match="'large_part'"):
        skin_quadrature(n=None, large_part=0.7)


def test_names_on_the_command_line():
    names = [name for name in CATALOGUE if name.startswith("quad-")]
    assert names[:7] == [f"quad-fig8.{i}" for i in range(1, 8)]
    assert all("(QUAD" in description(name) for name in names)
