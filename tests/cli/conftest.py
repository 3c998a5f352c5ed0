"""A person's folder, and the command called in it."""

import json

import pytest
from click.testing import CliRunner
from sklearn.datasets import load_iris

from mercer.cli.commands import mercer as command

IRIS = load_iris()
NAMES = ("sepal_length", "sepal_width", "petal_length", "petal_width")


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder with a file of flowers in it, where the command runs."""
    monkeypatch.chdir(tmp_path)
    rows = [
        ",".join([*map(repr, row.tolist()), str(IRIS.target_names[kind])])
        for row, kind in zip(IRIS.data, IRIS.target, strict=True)
    ]
    (tmp_path / "iris.csv").write_text("\n".join([",".join([*NAMES, "species"]), *rows]) + "\n")
    return tmp_path


@pytest.fixture
def call():
    """Call the command with these words; whatever happens, nobody sees a traceback."""

    def run(*arguments, **options):
        result = CliRunner().invoke(command, [*map(str, arguments)], **options)
        assert "Traceback" not in result.output
        assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
        return result

    return run


@pytest.fixture
def told(call):
    """What the command says with ``--json``."""

    def run(*arguments, code=0):
        result = call(*arguments, "--json")
        assert result.exit_code == code, result.output
        return json.loads(result.stdout)

    return run
