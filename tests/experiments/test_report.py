"""What experiments report, and how they register themselves."""

import subprocess
import sys

import pytest

import mercer.experiments
from mercer.experiments import CATALOGUE, Comparison, Verdict, compare, description, experiment, registry


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
    figures = [name for name in names if name != "psd22-section4"]
    assert figures == [*(f"psd22-fig{i}" for i in range(1, 7)), "psd22-table1", "psd22-fig7", "psd22-fig8"]
    assert "(PSD22 section 4)." in description("psd22-section4")
    for name in figures:
        assert (
            f"(PSD22 {name.removeprefix('psd22-').replace('fig', 'Fig ').replace('table', 'Table ')})."
            in description(name)
        )


def test_the_catalogue_lists_paper_by_paper_in_the_order_of_each():
    papers = [name.partition("-")[0] for name in CATALOGUE]
    assert papers == ["psd22"] * 10 + ["psd17"] * 15 + ["quad"] * 9 + ["sos"] * 4 + ["rkhs"] * 8
    figures = ["1", "3", "4", "5", "6", "7", "8", "section6", "9", "11", "12", "13", "14", "d15", "d16"]
    psd17 = [name.removeprefix("psd17-").removeprefix("fig") for name in CATALOGUE if name.startswith("psd17-")]
    assert psd17 == figures


def test_every_function_and_result_is_found_by_its_name():
    for run in CATALOGUE.values():
        assert getattr(mercer.experiments, run.__name__) is run
    assert issubclass(mercer.experiments.ClustersWithOutliers, mercer.experiments.Experiment)
    assert {run.__name__ for run in CATALOGUE.values()} < set(mercer.experiments.__all__)
    assert set(mercer.experiments.__all__) == set(dir(mercer.experiments))
    with pytest.raises(AttributeError, match="no attribute 'no_such_experiment'"):
        mercer.experiments.no_such_experiment  # noqa: B018


def test_no_two_files_give_one_name_to_two_things():
    names = [
        name
        for module in registry._papers_files()
        for name, value in vars(module).items()
        if not name.startswith("_") and getattr(value, "__module__", None) == module.__name__
    ]
    assert sorted(names) == sorted(set(names))


@pytest.fixture
def registered(monkeypatch):
    """The register, put back after a test has written to it."""
    monkeypatch.setattr(registry, "_registered", dict(registry._registered))
    return registry._registered


@pytest.mark.usefixtures("registered")
def test_one_decorator_is_all_that_a_new_experiment_needs():
    @experiment("psd22-fig1b")
    def added():
        """An experiment of our own (PSD22 Fig 1)."""

    @experiment("ours-appendix", place=3)
    def last():
        """Another paper's, listed behind those that are known."""

    names = list(mercer.experiments.CATALOGUE)
    assert names[names.index("psd22-fig1") + 1] == "psd22-fig1b"
    assert names[-1] == "ours-appendix"
    assert mercer.experiments.CATALOGUE["psd22-fig1b"] is added
    assert description("psd22-fig1b") == "An experiment of our own (PSD22 Fig 1)."


@pytest.mark.usefixtures("registered")
def test_a_name_registers_once_and_has_a_number():
    with pytest.raises(ValueError, match="both register 'psd22-fig1': rename one of them"):
        experiment("psd22-fig1")(test_one_line)
    with pytest.raises(ValueError, match="'ours-appendix' has no number behind a hyphen: give its place"):
        experiment("ours-appendix")
    experiment("psd22-fig1")(CATALOGUE["psd22-fig1"])  # the same function again is no second one


def test_nothing_is_imported_before_an_experiment_is_asked_for():
    code = "import sys, mercer.experiments; from mercer.experiments import compare, experiment; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = set(done.stdout.split())
    assert loaded.isdisjoint({"numpy", "sklearn", "numba", "matplotlib", "mercer.experiments.psd22"})
