"""``mercer … --dask ADDRESS``: the same files, by the workers of a cluster."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

from mercer.cli.commands import mercer as command


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    np.save("rows.npy", np.random.default_rng(5).normal(size=(200, 3)))
    return tmp_path


@pytest.fixture
def address(client: Any, monkeypatch: pytest.MonkeyPatch) -> str:
    """Of a cluster to which matrices go whatever their size, if it is named."""
    from mercer.backends.dask import cluster, matrix

    monkeypatch.setattr(matrix, "LEAST_ENTRIES", 1)
    monkeypatch.setattr(cluster, "_FEWEST_ROWS", 64)
    return str(client.scheduler.address)


def run(*words: str) -> Any:
    result = CliRunner().invoke(command, [*words])
    assert "Traceback" not in result.output
    return result


def test_landmarks_on_a_cluster_are_those_of_one_machine(folder: Path, address: str) -> None:
    words = ("landmarks", "rows.npy", "-n", "10", "--no-picture", "--json")
    alone = run(*words, "--output", "alone.csv")
    there = run(*words, "--output", "there.csv", "--dask", address)
    assert there.exit_code == alone.exit_code == 0, there.output
    assert np.loadtxt("there.csv", delimiter=",", skiprows=1) == pytest.approx(
        np.loadtxt("alone.csv", delimiter=",", skiprows=1), rel=1e-6
    )
    assert json.loads(there.stdout)["certificate"]["relative_gap"] < 1e-6
    assert "Dask" not in alone.stderr
    assert f"Dask at {address}: 1 product, 4.8 kB of points once, " in there.stderr


def test_a_model_is_proved_again_on_a_cluster(folder: Path, address: str) -> None:
    made = run("embed", "rows.npy", "--kernel", "gaussian", "--model", "a.mercer", "--no-picture", "--dask", address)
    assert made.exit_code == 0, made.output
    proved = run("verify", "a.mercer", "rows.npy", "--dask", address)
    assert proved.exit_code == 0, proved.output
    assert "The certificate of a.mercer holds." in proved.stdout
    assert "of points once" in proved.stderr


def test_a_scheduler_that_is_not_there_is_named(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from mercer.cli import cluster

    monkeypatch.setattr(cluster, "_TIMEOUT", 0.5)
    result = run("landmarks", "rows.npy", "--dask", "tcp://127.0.0.1:9")
    assert result.exit_code == 1
    assert "No Dask scheduler answers at tcp://127.0.0.1:9" in result.stderr
    assert "start one with 'dask scheduler'" in " ".join(result.stderr.split())
    wrong = run("landmarks", "rows.npy", "--dask", "nonsense://x")
    assert wrong.exit_code == 1
    assert "No Dask scheduler answers at nonsense://x" in wrong.stderr
    monkeypatch.setattr("distributed.Client", None)  # which outlives an address that is none by a minute
    assert "No Dask scheduler answers at foo (missing port" in " ".join(
        run("landmarks", "rows.npy", "--dask", "foo").stderr.split()
    )
    assert [each.name for each in folder.iterdir()] == ["rows.npy"]
