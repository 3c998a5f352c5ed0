"""A disk that is full: one sentence, and everything is as it was; a run goes on without its journal."""

import resource

import numpy as np
import pytest

import mercer
from mercer import Gaussian, KernelPCA, SDPEmbedding, config_context
from mercer.io import write_table
from mercer.journal import JournalWarning
from mercer.plots import report, save_figure
from mercer.plots.figures import new_figure

X = np.random.default_rng(0).normal(size=(600, 3))


@pytest.fixture
def full():
    """No file beyond 2000 bytes, as the system sees to it."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (2000, hard))
    yield
    resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


MODEL = KernelPCA(Gaussian(1.0), n_components=2).fit(X)
WRITES = {
    "a.mercer": lambda path: mercer.save(MODEL, path),
    "a.npy": lambda path: mercer.io.write_rows(lambda block: block, X, path),
    "b.npy": lambda path: write_table({"x": X.ravel()}, path),
    "b.csv": lambda path: write_table({"x": X.ravel()}, path),
    "b.npz": lambda path: write_table({"x": X.ravel()}, path),
    "b.parquet": lambda path: write_table({"x": X.ravel()}, path),
    "a.html": lambda path: report(MODEL, X).save(path),
    "a.png": lambda path: save_figure(new_figure(2)[0], path),
}


@pytest.mark.parametrize("name", WRITES)
def test_what_a_full_disk_does_not_take_changes_nothing(tmp_path, name, full):
    (tmp_path / name).write_text("before")
    with pytest.raises(OSError, match=rf"{name} cannot be written \(File too large\): nothing was changed"):
        WRITES[name](tmp_path / name)
    assert [path.name for path in tmp_path.iterdir()] == [name]
    assert (tmp_path / name).read_text() == "before"


def test_a_folder_is_no_file(tmp_path):
    (tmp_path / "a.csv").mkdir()
    with pytest.raises(IsADirectoryError, match="is a folder: name a file in it"):
        write_table({"x": [1.0]}, tmp_path / "a.csv")


def test_a_run_outlives_its_journal(tmp_path, full):
    with (
        config_context(checkpoint=tmp_path / "run.journal", checkpoint_every=0),
        pytest.warns(JournalWarning, match=r"cannot be written \(File too large\): the run goes on"),
    ):
        model = SDPEmbedding(Gaussian(1.0), landmarks=60, random_state=0).fit(X)
    assert model.certificate_.holds(1e-6)
    assert not list(tmp_path.iterdir())
