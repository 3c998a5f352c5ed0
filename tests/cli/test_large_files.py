"""Files that are larger than ``--memory-limit``: read by blocks, solved on landmarks, written whole."""

import numpy as np
import pytest

import mercer
from mercer.journal import Journal

X = np.random.default_rng(0).normal(size=(600, 3))


@pytest.fixture(params=["data.npy", "data.parquet"])
def file(request, folder):
    if request.param == "data.npy":
        np.save(folder / "data.npy", X)
        return "data.npy"
    pa = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    columns = {"x": X[:, 0], "word": np.array(["a", "b"] * 300), "y": X[:, 1], "z": X[:, 2]}
    parquet.write_table(pa.table(columns), folder / "data.parquet", row_group_size=170)
    return "data.parquet"


LIMITED = ("--memory-limit", "12kB")


def test_embed_and_transform_by_blocks(file, folder, told):
    options = (
        *LIMITED,
        "--landmarks",
        40,
        "--kernel",
        "gaussian",
        "--sigma",
        2,
        "--output",
        "c.npy",
        "--model",
        "m.mercer",
    )
    answer = told("embed", file, *options)
    assert (answer["rows"], answer["by_blocks"], answer["picture"]) == (600, True, None)
    assert answer["columns"] == (["1", "2", "3"] if file == "data.npy" else ["x", "y", "z"])
    assert (file == "data.npy") or any("word left out" in note for note in answer["notes"])
    model = mercer.SDPEmbedding(mercer.Gaussian(2.0), landmarks=40, random_state=0)
    with mercer.config_context(memory_limit="12kB"):
        model.fit(mercer.open_rows(X))
    np.testing.assert_allclose(np.load("c.npy"), model.embedding_, atol=1e-9)
    again = told("transform", "m.mercer", file, *LIMITED)
    assert again["output"] == "data-coordinates.npy"
    np.testing.assert_allclose(np.load("data-coordinates.npy"), model.embedding_, atol=1e-6)
    whole = told("transform", "m.mercer", file, "--memory-limit", "1GB", "--output", "whole.npy")
    assert "by_blocks" not in whole
    np.testing.assert_allclose(np.load("whole.npy"), np.load("data-coordinates.npy"), atol=1e-12)


def _as_hdf5(folder):
    h5py = pytest.importorskip("h5py")
    with h5py.File(folder / "data.h5", "w") as file:
        file["points"], file["others"] = X, X[:9]
    return "data.h5", "--array", "points"


def _as_zarr(folder):
    zarr = pytest.importorskip("zarr")
    zarr.open(str(folder / "data.zarr"), mode="w", shape=X.shape, dtype="float64")[:] = X
    return ("data.zarr",)


@pytest.mark.parametrize("made", [_as_hdf5, _as_zarr])
def test_formats_of_arrays_are_read_by_blocks_and_whole(made, folder, told, call):
    data = made(folder)
    options = ("--landmarks", 40, "--kernel", "gaussian", "--sigma", 2, "--output", "c.npy")
    assert told("embed", *data, *LIMITED, *options)["rows"] == 600
    with mercer.config_context(memory_limit="12kB"):
        model = mercer.SDPEmbedding(mercer.Gaussian(2.0), landmarks=40, random_state=0).fit(mercer.open_rows(X))
    np.testing.assert_allclose(np.load("c.npy"), model.embedding_, atol=1e-9)
    assert told("landmarks", *data, "--number", 5)["rows"] == 600


def test_columns_are_chosen_and_what_needs_all_rows_is_refused(file, told, call):
    name = "2" if file == "data.npy" else "y"
    answer = told("embed", file, *LIMITED, "--memory-limit", "9kB", "--landmarks", 20, "--without", name)
    assert name not in answer["columns"]
    assert len(answer["columns"]) == 2
    for more, said in {
        (): "say by --landmarks 1000 on how many rows",
        ("--landmarks", 20, "--scale"): "--scale needs all rows at once",
        ("--landmarks", 20, "--output", "a.csv"): "written as .npy, not to a.csv",
    }.items():
        result = call("embed", file, *LIMITED, *more)
        assert result.exit_code == 2
        assert said in " ".join(result.output.split())
    result = call("embed", file, *LIMITED, "--landmarks", 20, "--columns", "nothing")
    assert (result.exit_code, "no column 'nothing'" in result.output) == (1, True)
    result = call("embed", file, "--memory-limit", "some")
    assert (result.exit_code, "memory_limit='some' must be bytes" in result.output) == (1, True)


SMALL = (*LIMITED, "--landmarks", 40, "--kernel", "gaussian", "--sigma", 2)


def test_what_is_computed_is_not_thrown_away_and_says_how_long_it_takes(file, folder, told, call):
    answer = told("embed", file, *SMALL, "--estimate")
    assert answer["from_seconds"] <= answer["seconds"] <= answer["to_seconds"]
    assert not (folder / "data-coordinates.npy").exists()
    assert told("embed", file, *SMALL)["output"] == "data-coordinates.npy"
    assert np.load("data-coordinates.npy").shape[0] == 600
    result = call("embed", file, *SMALL, "--picture", "a.png")
    assert (result.exit_code, "--picture needs all rows at once" in " ".join(result.output.split())) == (2, True)
    told("embed", file, *SMALL, "--model", "m.mercer")
    assert "Computing coordinates" in call("transform", "m.mercer", file, *LIMITED).output


def test_coordinates_that_cannot_fit_are_refused_before_the_work(folder, call, monkeypatch):
    np.save(folder / "data.npy", np.zeros((300_000, 2), np.float32))
    monkeypatch.setattr(mercer.SDPEmbedding, "fit", None)
    result = call("embed", "data.npy", "--memory-limit", "1MB", "--landmarks", 40, "--components", 8)
    assert result.exit_code == 1
    said = " ".join(result.output.split())
    assert "What the fit says of 300000 rows takes about 19 MB beyond the data, above memory_limit=1 MB" in said
    assert "let mercer transform write the coordinates of all" in said


def test_a_large_run_goes_on_where_it_was_killed(file, folder, told, call, monkeypatch):
    whole = told("embed", file, *SMALL)
    kept = ("--checkpoint", "run.journal", "--checkpoint-every", "0")
    flush, written = Journal.flush, []

    def flush_and_die(journal):
        flush(journal)
        written.append(journal)
        if len(written) == 2:
            raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(Journal, "flush", flush_and_die)
        assert call("embed", file, *SMALL, *kept).exit_code == 130
    assert (folder / "run.journal").exists()
    answer = told("embed", file, *SMALL, *kept)
    assert answer["certificate"] == whole["certificate"]
    assert not (folder / "run.journal").exists()  # the answer is written


def test_a_large_file_is_proved_by_blocks(file, told):
    told("embed", file, *SMALL, "--model", "m.mercer")
    assert told("verify", "m.mercer", file)["holds"] is True
    proof = told("verify", "m.mercer", file, *LIMITED, "--extended", "--tol", "0.9")
    assert (proof["holds"], proof["by_blocks"]) == (True, True)
    whole = told("verify", "m.mercer", file, "--extended", "--tol", "0.9")
    assert proof["certificate"]["lower"] == pytest.approx(whole["certificate"]["lower"], rel=1e-9)


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("embed", "data.npy", *SMALL, "--output", "data.npy"), "data.npy is read here, and would be written over"),
        (("embed", "iris.csv", "--output", "iris.csv"), "iris.csv is read here"),
        (("landmarks", "iris.csv", "--output", "./iris.csv"), "iris.csv is read here"),
        (("density", "iris.csv", "--sample", 9, "--output", "iris.csv"), "iris.csv is read here"),
        (("novelty", "iris.csv", "--output", "iris.csv"), "iris.csv is read here"),
        (("transform", "m.mercer", "data.npy", "--output", "data.npy"), "data.npy is read here"),
        (("landmarks", "iris.csv", "-o", "a.csv", "--checkpoint", "a.csv"), "a.csv is named for two things"),
        (("embed", "folder", *SMALL), "folder is a folder: name a file in it"),
    ],
)
def test_what_is_read_is_not_written_over(words, sentence, folder, call):
    np.save(folder / "data.npy", X)
    (folder / "m.mercer").write_bytes(b"")
    (folder / "folder").mkdir()
    before = {path.name: path.stat().st_mtime_ns for path in folder.iterdir()}
    result = call(*words)
    assert result.exit_code == 2
    assert sentence in " ".join(result.output.split())
    assert {path.name: path.stat().st_mtime_ns for path in folder.iterdir()} == before


@pytest.mark.parametrize("kind", ["h5", "zarr"])
def test_arrays_of_other_formats_are_read_whole_or_by_blocks(kind, folder, told):
    library = pytest.importorskip("h5py" if kind == "h5" else "zarr")
    if kind == "h5":
        with library.File(folder / "data.h5", "w") as opened:
            opened["points"] = X
    else:
        library.create_array(str(folder / "data.zarr"), shape=X.shape, chunks=(70, 3), dtype="f8")[:] = X
    assert "by_blocks" not in told("landmarks", f"data.{kind}", "-n", 5)
    assert told("embed", f"data.{kind}", *SMALL)["by_blocks"] is True
