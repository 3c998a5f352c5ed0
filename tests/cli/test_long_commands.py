"""Long commands keep what they did where Ctrl-C ends them, and go on from there to the same answer."""

from __future__ import annotations

import shlex

import pytest

from mercer.dependence import mmd_statistics
from mercer.solvers.measure.elimination import Elimination
from mercer.solvers.spectrahedron.low_rank import LowRank
from mercer.solvers.unfolding.interior_point import UnfoldingInteriorPoint

LANDMARKS = ("landmarks", "iris.csv", "-n", "12", "--output", "chosen.csv")
DENSITY = ("density", "iris.csv", "--objective", "projection", "--support", "40", "--sigma", "0.5")
UNFOLDING = ("embed", "iris.csv", "--method", "unfolding", "--neighbors", "6", "--landmarks", "60")


def interrupt(patch, method, at):
    """Let Ctrl-C be pressed while a method takes a step."""
    step, taken = method.step, []

    def pressed(self, problem, most):
        taken.append(most)
        if len(taken) == at:
            raise KeyboardInterrupt
        return step(self, problem, most)

    patch.setattr(method, "step", pressed)


@pytest.mark.parametrize(
    ("words", "method", "at"),
    [(LANDMARKS, Elimination, 3), (DENSITY, LowRank, 3), (UNFOLDING, UnfoldingInteriorPoint, 3)],
)
def test_a_command_goes_on_where_it_was_interrupted(words, method, at, folder, call, told, monkeypatch):
    whole = told(*words)
    kept = ("--checkpoint", "run.journal", "--checkpoint-every", "0s")
    with monkeypatch.context() as patch:
        interrupt(patch, method, at)
        result = call(*words, *kept, "--no-picture")
    assert result.exit_code == 130
    assert "run.journal, the run so far" in result.output
    again = shlex.split(next(line for line in result.output.splitlines() if line.startswith("Go on"))[13:])
    assert again[0] == "mercer"
    assert again[-2:] == ["--checkpoint", "run.journal"]
    assert (folder / "run.journal").exists()
    steps = []
    monkeypatch.setattr(method, "start", lambda *given: steps.append("started anew"))
    answer = told(*(word for word in again[1:] if word != "--no-picture"))
    assert not steps
    same = answer.keys() - {"seconds", "answer", "notes"}
    assert {name: answer[name] for name in same} == {name: whole[name] for name in same}
    assert not (folder / "run.journal").exists()  # the answer is written


def test_a_test_goes_on_where_it_was_interrupted(folder, call, told, monkeypatch):
    lines = (folder / "iris.csv").read_text().splitlines()
    (folder / "a.csv").write_text("\n".join(lines[:90]))
    (folder / "b.csv").write_text("\n".join([lines[0], *lines[80:]]))
    whole = told("test", "a.csv", "b.csv")
    made, of_row = [], mmd_statistics._of_tile_row

    def pressed(matrices, block, chunks, k):
        made.append(k)
        if len(made) == 7:
            raise KeyboardInterrupt
        return of_row(matrices, block, chunks, k)

    monkeypatch.setattr(mmd_statistics, "_ROWS_A_THREAD", 1)
    monkeypatch.setattr(mmd_statistics, "_LEAST_TILE", 16)
    monkeypatch.setattr(mmd_statistics, "_of_tile_row", pressed)
    result = call("test", "a.csv", "b.csv", "--checkpoint", "run.journal", "--checkpoint-every", "0", "--no-picture")
    assert result.exit_code == 130
    assert "Go on        mercer test a.csv b.csv" in result.output
    answer = told("test", "a.csv", "b.csv", "--checkpoint", "run.journal")
    assert answer["pvalue"] == whole["pvalue"]
    assert not (folder / "run.journal").exists()


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ((*LANDMARKS, "--checkpoint-every", "soon"), "checkpoint_every='soon' must be seconds or text such as '30s'"),
        ((*LANDMARKS, "--checkpoint", "iris.csv"), "iris.csv is no journal of a run"),
        ((*LANDMARKS, "--checkpoint", "none/run.journal"), "does not exist: create it first"),
    ],
)
def test_what_is_no_checkpoint_is_refused(words, sentence, folder, call):
    result = call(*words)
    assert result.exit_code == 1
    assert sentence in " ".join(result.output.split())
    assert [path.name for path in folder.iterdir()] == ["iris.csv"]
