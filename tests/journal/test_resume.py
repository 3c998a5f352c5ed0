"""A run that is killed and taken up from its journal gives the same bits as one that was not."""

from __future__ import annotations

import errno
import json
import os
import shutil
import signal
import subprocess
import sys

import numpy as np
import pytest
from exact_bits import told

from mercer import (
    Gaussian,
    KernelDimensionReduction,
    MaximumVarianceUnfolding,
    QuadratureSparsifier,
    RobustKernelRegressor,
    SDPEmbedding,
    SumOfSquaresDensity,
    config_context,
    hsic_test,
    k_sample_test,
    mmd_test,
)
from mercer.datasets import two_moons
from mercer.dependence import shift_sums
from mercer.embedding import diffusion_problem
from mercer.journal import Journal, JournalError, JournalWarning
from mercer.journal.anchors import Anchors, UnknownWayError
from mercer.journal.file import read, write

RUNS = {
    "embedding": lambda: SDPEmbedding(Gaussian(0.5), random_state=0),
    "levels": lambda: SDPEmbedding(n_levels=2, random_state=0),
    "interior point": lambda: SDPEmbedding(Gaussian(0.5), solver="interior-point", random_state=0),
    "trust region": lambda: SDPEmbedding(Gaussian(0.5), solver="trust-region", random_state=0),
    "landmarks": lambda: QuadratureSparsifier(n_nodes=10),
    "path": lambda: QuadratureSparsifier(trace_fraction=0.9, solver="path"),
    "exchange": lambda: QuadratureSparsifier(trace_fraction=0.9, solver="exchange"),
    "density": lambda: SumOfSquaresDensity(Gaussian(0.8), support=25, random_state=0),
    "unfolding": lambda: MaximumVarianceUnfolding(n_neighbors=5),
    "robust regression": lambda: RobustKernelRegressor(loss="huber", radius=0.05, tol=1e-4),
    "dimension reduction": lambda: KernelDimensionReduction(n_components=1, random_state=0),
}


class Killed(BaseException):
    """What no code catches."""


@pytest.fixture(autouse=True)
def quick_disk(monkeypatch):
    """Files in memory are as good for processes that are killed; a test of disks puts its own in the place."""
    monkeypatch.setattr(os, "fsync", lambda handle: None)


@pytest.fixture(scope="module")
def data():
    X = two_moons(n_points=90)[0]
    return X, X[:, 0] + X[:, 1] ** 2


def killed_at(model, line):
    """The model with a callback that ends the process, as far as a test can, at a line of the history."""
    seen = []

    def callback(iteration):
        seen.append(iteration)
        if len(seen) == line:
            raise Killed

    return model.set_params(callback=callback)


def counted(model):
    """The model, and the list that its lines go to."""
    lines = []

    def callback(iteration):
        lines.append(iteration)

    return model.set_params(callback=callback), lines


@pytest.mark.parametrize("name", RUNS)
def test_a_killed_run_goes_on_to_the_same_bits(name, data, tmp_path, monkeypatch):
    monkeypatch.setattr(
        diffusion_problem, "_AT_ONCE", 0
    )  # matrices come to be stored on the way, as those of many rows
    model, lines = counted(RUNS[name]())
    whole = told(model.fit(*data))
    for at in sorted({len(lines) // 2 + 1, len(lines)}):
        with config_context(checkpoint=tmp_path / f"{at}.journal", checkpoint_every=0):
            with pytest.raises(Killed):
                killed_at(RUNS[name](), at).fit(*data)
            again, more = counted(RUNS[name]())
            assert told(again.fit(*data)) == whole
        assert len(more) <= len(lines) - at + 1  # what was done is not done again


TESTS = {
    "two samples": lambda X, Y: mmd_test(X, Y, rng=0, n_resamples=99),
    "two samples, of any seed": lambda X, Y: mmd_test(X, Y, Gaussian(0.3), n_resamples=99),
    "several samples": lambda X, Y: k_sample_test(X[:300], Y[:300], X[:200] + 0.1, rng=0, n_resamples=49),
    "independence": lambda X, Y: hsic_test(X[:300], Y[:300], rng=0, n_resamples=99),
}


@pytest.mark.parametrize("name", TESTS)
def test_a_killed_test_goes_on_to_the_same_bits(name, tmp_path, monkeypatch):
    rng = np.random.default_rng(3)
    X, Y = rng.normal(size=(700, 2)), rng.normal(size=(900, 2)) + 0.05
    monkeypatch.setattr(shift_sums, "_PANEL_BYTES", 2**20)
    written, flush = [], Journal.flush

    def flush_and_die(journal):
        flush(journal)
        written.append(journal.path)
        if len(written) == 3:
            raise Killed

    with config_context(checkpoint=tmp_path / "run.journal", checkpoint_every=0, n_threads=1):
        monkeypatch.setattr(Journal, "flush", flush_and_die)
        with pytest.raises(Killed):
            TESTS[name](X, Y)
        monkeypatch.setattr(Journal, "flush", flush)
        shutil.copy(tmp_path / "run.journal", tmp_path / "killed.journal")
        again = TESTS[name](X, Y)
        finished = TESTS[name](X, Y)
    if "any seed" in name:
        with config_context(checkpoint=tmp_path / "killed.journal", checkpoint_every=0):
            whole = TESTS[name](X, Y)
    else:
        whole = TESTS[name](X, Y)
    assert again.null_distribution.tobytes() == whole.null_distribution.tobytes()
    assert (again.statistic, again.pvalue) == (whole.statistic, whole.pvalue)
    assert finished.null_distribution.tobytes() == whole.null_distribution.tobytes()


KILLED = """
import os, signal, sys
import numpy as np
from mercer import QuadratureSparsifier, SDPEmbedding, Gaussian, config_context

written = []

def half_a_file(name, target, replace=os.replace):
    written.append(name)
    if len(written) == {number}:
        os.truncate(name, os.path.getsize(name) // 2)  # what was still on its way to the disk
        os.kill(os.getpid(), signal.SIGKILL)
    replace(name, target)

os.replace, os.fsync = half_a_file, lambda handle: None
X = np.load(sys.argv[1])
with config_context(checkpoint=sys.argv[2], checkpoint_every=0):
    {model}.fit(X)
"""


@pytest.mark.skipif(os.name != "posix", reason="SIGKILL is of POSIX")
@pytest.mark.parametrize(
    ("model", "number"), [("QuadratureSparsifier(n_nodes=10)", 14), ("SDPEmbedding(Gaussian(0.5), random_state=0)", 1)]
)
def test_a_process_killed_in_the_middle_of_a_write(model, number, data, tmp_path):
    np.save(tmp_path / "X.npy", data[0])
    place = tmp_path / "journals" / "run.journal"
    place.parent.mkdir()
    script = KILLED.format(model=model, number=number)
    done = subprocess.run([sys.executable, "-c", script, tmp_path / "X.npy", place], capture_output=True, text=True)
    assert done.returncode == -signal.SIGKILL, done.stderr
    assert len(list(place.parent.glob(".*.part"))) == 1
    whole = eval(model).fit(data[0])
    with config_context(checkpoint=place):
        again, lines = counted(eval(model))
        assert told(again.fit(data[0])) == told(whole)
    assert len(lines) == len(whole.history_) - (number - 1)
    assert not list(place.parent.glob(".*.part"))


def test_a_run_without_a_seed_keeps_the_one_it_drew(data, tmp_path):
    with config_context(checkpoint=tmp_path / "run.journal", checkpoint_every=0):
        with pytest.raises(Killed):
            killed_at(SDPEmbedding(Gaussian(0.5), solver="trust-region"), 4).fit(data[0])
        shutil.copy(tmp_path / "run.journal", tmp_path / "other.journal")
        one = SDPEmbedding(Gaussian(0.5), solver="trust-region").fit(data[0])
    with config_context(checkpoint=tmp_path / "other.journal", checkpoint_every=0):
        other = SDPEmbedding(Gaussian(0.5), solver="trust-region").fit(data[0])
    assert told(one) == told(other)


def test_a_finished_run_is_read_and_not_run(data, tmp_path):
    with config_context(checkpoint=tmp_path, checkpoint_every=0):  # a folder: each run has a file
        first = QuadratureSparsifier(n_nodes=10).fit(data[0])
        QuadratureSparsifier(n_nodes=9).fit(data[0])
        model, lines = counted(QuadratureSparsifier(n_nodes=10))
        assert told(model.fit(data[0])) == told(first)
    assert not lines
    assert len(list(tmp_path.glob("QuadratureSparsifier-*.journal"))) == 2


@pytest.fixture
def left(data, tmp_path):
    """The journal that a killed run left behind."""
    place = tmp_path / "run.journal"
    with config_context(checkpoint=place, checkpoint_every=0), pytest.raises(Killed):
        killed_at(QuadratureSparsifier(n_nodes=10), 9).fit(data[0])
    return place


@pytest.mark.parametrize(
    ("model", "shift", "words"),
    [
        (QuadratureSparsifier(n_nodes=10), 1e-9, "other data"),
        (QuadratureSparsifier(n_nodes=11), 0.0, "other parameters"),
        (QuadratureSparsifier(Gaussian(0.25), n_nodes=10), 0.0, "other parameters"),
        (SDPEmbedding(), 0.0, "a run of QuadratureSparsifier, not of SDPEmbedding"),
    ],
)
def test_a_journal_of_another_run_is_refused(model, shift, words, left, data):
    kept = left.read_bytes()
    with config_context(checkpoint=left), pytest.raises(JournalError) as refusal:
        model.fit(data[0] + shift)
    assert str(refusal.value) == f"The journal {left} is of {words}: delete it, or name another file."
    assert left.read_bytes() == kept


def test_a_journal_in_another_arithmetic_is_refused(left, data):
    with config_context(checkpoint=left, dtype="float32"), pytest.raises(JournalError, match="other data"):
        QuadratureSparsifier(n_nodes=10).fit(data[0])


@pytest.mark.parametrize("part", [0.0, 0.001, 0.3, 0.999])
def test_a_journal_that_is_cut_off_is_refused(part, left, data):
    whole = left.read_bytes()
    left.write_bytes(whole[: int(part * len(whole))])
    with config_context(checkpoint=left), pytest.raises(JournalError, match="is cut off"):
        QuadratureSparsifier(n_nodes=10).fit(data[0])


def test_a_journal_with_a_byte_changed_is_refused(left, data):
    whole = bytearray(left.read_bytes())
    whole[-5] ^= 1
    left.write_bytes(whole)
    with config_context(checkpoint=left), pytest.raises(JournalError, match="is damaged"):
        QuadratureSparsifier(n_nodes=10).fit(data[0])


@pytest.mark.parametrize(
    ("part", "root"),
    [
        *((part, None) for part in ("left", "phase", "history", "method", "_number")),
        *(("left", root) for root in (3, {"at": ["problem"]}, {"at": ["problem", "__class__", "__init__"]})),
    ],
)
def test_a_journal_that_is_forged_is_refused(part, root, left, data):
    """With a digest that is right; what such a file refers to leads to no code."""
    content, arrays = read(left)
    told = json.loads(json.dumps(content).replace(f'"{part}"', f'"{part} once"'))
    if root is not None:
        (state,) = (told["parts"][name] for name in told["parts"])
        state["objects"] = [{**each, "of": [root]} if each["is"] == "tuple" else each for each in state["objects"]]
    write(left, told, arrays)
    with config_context(checkpoint=left), pytest.raises(JournalError, match="damaged"):
        QuadratureSparsifier(n_nodes=10).fit(data[0])


def test_ways_do_not_lead_out_of_what_is_calculated_with():
    class Problem:
        __module__ = "mercer.problems.problem"

        def step(self):
            return 1

    problem = Problem()
    anchors = Anchors({"problem": problem})
    assert anchors.at(("problem", "step", "__self__")) is problem
    for way in (("problem", "__class__", "__init__", "__globals__"), ("problem", "step", "__func__", "__builtins__")):
        with pytest.raises(UnknownWayError):
            anchors.at(way)


def test_a_full_disk_costs_the_journal_and_not_the_run(data, tmp_path, monkeypatch):
    def full(handle):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    whole = told(QuadratureSparsifier(n_nodes=10).fit(data[0]))
    monkeypatch.setattr(os, "fsync", full)
    with (
        config_context(checkpoint=tmp_path / "run.journal", checkpoint_every=0),
        pytest.warns(JournalWarning, match="No space left on device") as warned,
    ):
        model = QuadratureSparsifier(n_nodes=10).fit(data[0])
    assert told(model) == whole
    assert len(warned) == 1
    assert not list(tmp_path.iterdir())


def test_what_a_killed_writer_left_is_swept(left, data):
    dead = left.parent / f".{left.name}-{2**22 + 1}-0123abcd.part"  # beyond the largest process number
    dead.write_bytes(b"half")
    with config_context(checkpoint=left):
        QuadratureSparsifier(n_nodes=10).fit(data[0])
    assert list(left.parent.iterdir()) == [left]


def test_a_folder_that_is_not_there_is_named(data, tmp_path):
    with (
        config_context(checkpoint=tmp_path / "none" / "run"),
        pytest.raises(FileNotFoundError, match="create it first"),
    ):
        QuadratureSparsifier(n_nodes=10).fit(data[0])


@pytest.mark.parametrize("every", ["soon", "5 weeks", -1, True, float("nan")])
def test_times_that_are_none_are_refused(every):
    with pytest.raises(ValueError, match="checkpoint_every"), config_context(checkpoint_every=every):
        pass


@pytest.mark.parametrize("place", ["", 3, b"run.journal"])
def test_places_that_are_none_are_refused(place):
    with (
        pytest.raises(ValueError, match="must be the path of a file, or of a folder"),
        config_context(checkpoint=place),
    ):
        pass


def test_times_are_read():
    with config_context(checkpoint_every="5min") as config:
        assert config.checkpoint_every == 300.0
    with config_context(checkpoint_every=" 1.5 h") as config:
        assert config.checkpoint_every == 5400.0
