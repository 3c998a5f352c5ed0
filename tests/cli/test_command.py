"""The command ``mercer``."""

import subprocess
import sys

import click
import pytest
from click.testing import CliRunner

import mercer
from mercer.cli.commands import mercer as command


def test_demo_prints_the_certificate_and_saves_the_picture(tmp_path):
    target = tmp_path / "picture.png"
    result = CliRunner().invoke(command, ["demo", "--output", str(target)])
    assert result.exit_code == 0, result.output
    assert "Certified optimal to within" in result.output
    assert "rank 2" in result.output
    assert str(target) in result.output
    assert target.read_bytes().startswith(b"\x89PNG")
    assert [p.name for p in tmp_path.iterdir()] == ["picture.png"]


def test_demo_without_outliers(tmp_path):
    result = CliRunner().invoke(command, ["demo", "--outliers", "0", "--output", str(tmp_path / "a.svg")])
    assert result.exit_code == 0, result.output
    assert "three clusters and 0 outliers" in result.output


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--sigma", "-1"], "not in the range"),
        (["--sigma", "1e12"], "All points look alike"),
        (["--sigma", "1e-9"], "Every point is isolated"),
        (["--output", "no/such/folder/a.png"], "does not exist"),
        (["--output", "a.nonsense"], "nonsense"),
    ],
)
def test_demo_says_what_is_wrong_in_one_sentence(arguments, sentence, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    result = CliRunner().invoke(command, ["demo", *arguments])
    assert result.exit_code != 0
    assert sentence in result.output
    assert "Traceback" not in result.output
    assert list(tmp_path.iterdir()) == []


def test_version_and_help():
    assert mercer.__version__ in CliRunner().invoke(command, ["--version"]).output
    assert "demo" in CliRunner().invoke(command, ["--help"]).output


@pytest.mark.parametrize("missing", ["click", "rich", "matplotlib"])
def test_without_its_extra_the_command_says_what_to_install(missing):
    code = f"import sys; sys.modules[{missing!r}] = None; sys.argv = ['mercer', 'demo']; import mercer.cli; mercer.cli.main()"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode != 0
    assert "pip install 'mercer[app]'" in done.stderr
    assert "Traceback" not in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1


def test_help_loads_nothing_heavy():
    code = "import sys, mercer.cli.commands; print('\\n'.join(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert set(done.stdout.split()).isdisjoint({"numpy", "sklearn", "numba", "matplotlib"})
    assert isinstance(command, click.Group)


def test_experiment_prints_comparisons_and_saves_the_picture(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    result = CliRunner().invoke(command, ["experiment", "psd22-fig1"])
    assert result.exit_code == 0, result.output
    assert "rank of B: paper 2, here 2, agrees" in result.output
    assert (tmp_path / "psd22-fig1.png").read_bytes().startswith(b"\x89PNG")
    assert [p.name for p in tmp_path.iterdir()] == ["psd22-fig1.png"]


def test_experiments_are_listed_with_their_descriptions():
    result = CliRunner().invoke(command, ["experiment", "--list"])
    assert result.exit_code == 0
    lines = result.output.splitlines()
    assert len(lines) >= 9
    assert all(any(paper in line for paper in ("(PSD", "(QUAD", "(SOS", "(RKHS")) for line in lines)
    assert any(line.startswith("psd22-fig1 ") for line in lines)


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ([], "Name an experiment"),
        (["psd22-fig99"], "There is no experiment 'psd22-fig99'"),
        (["psd22-fig1", "--output", "no/such/folder/a.png"], "does not exist"),
        (["psd22-fig6"], "MERCER_DATA"),
    ],
)
def test_experiment_says_what_is_wrong(arguments, sentence, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("MERCER_DATA", raising=False)
    result = CliRunner().invoke(command, ["experiment", *arguments])
    assert result.exit_code != 0
    assert sentence in result.output
    assert "Traceback" not in result.output
    assert list(tmp_path.iterdir()) == []
