"""The command ``mercer``."""

import json
import subprocess
import sys
import time

import click
import pytest
from click.testing import CliRunner

import mercer
from mercer.cli import progress
from mercer.cli.commands import mercer as command
from mercer.experiments import registry


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
    shown = CliRunner().invoke(command, ["--help"]).output
    for name in (
        "demo",
        "embed",
        "transform",
        "verify",
        "landmarks",
        "density",
        "test",
        "novelty",
        "report",
        "experiment",
        "info",
        "completion",
    ):
        assert f"\n  {name} " in shown


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


def test_experiment_prints_a_table_and_saves_the_picture(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    result = CliRunner().invoke(command, ["experiment", "psd22-fig1"])
    assert result.exit_code == 0, result.output
    lines = result.stdout.splitlines()
    head = next(k for k, line in enumerate(lines) if line.split() == ["quantity", "paper", "here"])
    row = next(line for line in lines[head + 2 :] if line.startswith("rank of B"))
    assert row.split()[3:6] == ["2", "2", "agrees"]
    assert row.index(" 2 ") + 1 == lines[head].index("paper")  # columns stand below each other
    below = lines[head + 1 : lines.index("", head)]
    rules = below[0].split()
    assert max(map(len, below)) <= sum(map(len, rules)) + 6 + len("agrees [3]")  # cells too wide go on in lines below
    assert "values agree with the paper's." in lines[0]
    assert (tmp_path / "psd22-fig1.png").read_bytes().startswith(b"\x89PNG")
    assert [p.name for p in tmp_path.iterdir()] == ["psd22-fig1.png"]


def test_an_experiment_of_minutes_runs_in_a_smaller_version_unless_all_of_it_is_asked_for(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    asked = []

    def run(**arguments):
        asked.append(arguments)
        return mercer.experiments.clusters_with_outliers(n_outliers=1)

    known = registry.registered("psd17-figd16")
    monkeypatch.setitem(registry._registered, "psd17-figd16", known._replace(run=run))
    quick = CliRunner().invoke(command, ["experiment", "psd17-figd16"])
    assert quick.exit_code == 0, quick.output
    assert "A smaller version (n_points = 800)" in quick.stdout
    assert quick.stdout.splitlines()[-1] == "Next         mercer experiment psd17-figd16 --full"
    full = CliRunner().invoke(command, ["experiment", "psd17-figd16", "--full", "--json"])
    assert full.exit_code == 0, full.output
    assert json.loads(full.stdout)["quick"] is False
    assert asked == [{"n_points": 800}, {}]


def test_a_long_experiment_says_how_long_it_has_been_and_will_be(monkeypatch, capsys):
    monkeypatch.setattr(progress, "_SECONDS_BETWEEN", 0.01)
    with progress.clock("psd17-figd15", expected=1080):
        while "1080" not in (said := capsys.readouterr().err):
            time.sleep(0.01)
    assert "psd17-figd15: 0%, 0 of about 1080 s" in said.splitlines()


def test_experiments_are_listed_with_their_papers_and_what_they_take():
    result = CliRunner().invoke(command, ["experiment", "--list"])
    assert result.exit_code == 0
    for paper in ("PSD22: Fanuel", "PSD17: the same", "QUAD: Gauthier", "SOS: Muzellec", "RKHS: Ghojogh"):
        assert f"\n{paper}" in f"\n{result.output}"
    rows = {line.split()[0]: line for line in result.output.splitlines() if line.startswith("  ")}
    told = json.loads(CliRunner().invoke(command, ["experiment", "--list", "--json"]).stdout)
    assert [each["name"] for each in told] == list(rows) == list(mercer.experiments.CATALOGUE)
    assert " 18 min*† " in rows["psd17-figd15"]
    assert all(each["seconds"] > 0 and each["description"] in rows[each["name"]] for each in told)
    assert all((each["quick"] is not None) == (each["seconds"] > 60) for each in told)  # minutes are never a surprise


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
