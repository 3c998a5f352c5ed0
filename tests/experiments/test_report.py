"""What experiments report, and the catalogue of them."""

import pytest

from mercer.experiments import CATALOGUE, Comparison, Verdict, compare, description


def test_a_difference_needs_a_reason():
    with pytest.raises(ValueError, match="say why"):
        Comparison("rank", 2, 3, Verdict.DIFFERS)
    with pytest.raises(ValueError, match="say why"):
        compare("rank", 2, 3, within=0.5)
    assert compare("rank", 2, 2.4, within=0.5).verdict is Verdict.AGREES


def test_one_line():
    line = str(compare("error, %", 1.0, 1.23456789, within=0.1, reason="another draw"))
    assert line == "error, %: paper 1, here 1.23457, differs (another draw)"


def test_catalogue_names_every_figure_and_the_table_of_psd22():
    names = [name for name in CATALOGUE if name.startswith("psd22-")]
    assert names == [*(f"psd22-fig{i}" for i in range(1, 7)), "psd22-table1", "psd22-fig7", "psd22-fig8"]
    for name in names:
        assert (
            f"(PSD22 {name.removeprefix('psd22-').replace('fig', 'Fig ').replace('table', 'Table ')})."
            in description(name)
        )
