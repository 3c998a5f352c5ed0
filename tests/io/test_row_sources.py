"""Rows from files, a block at a time: what each format gives, and what broken files are told."""

import builtins
import os
import shutil

import numpy as np
import pytest

import mercer

X = np.random.default_rng(3).normal(size=(1000, 5))
X[:, 2] = np.round(X[:, 2] * 10)


def write_npy(path, values):
    np.save(path, values)


def write_fortran(path, values):
    np.save(path, np.asfortranarray(values))


def write_parquet(path, values):
    pa = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    columns = {f"c{k}": values[:, k] for k in range(values.shape[1])}
    parquet.write_table(pa.table(columns), path, row_group_size=300)


def write_hdf5(path, values):
    h5py = pytest.importorskip("h5py")
    with h5py.File(path, "w") as file:
        file.create_dataset("inner/points", data=values, chunks=(64, values.shape[1]))
        file["labels"] = np.arange(values.shape[0])


def write_zarr(path, values):
    zarr = pytest.importorskip("zarr")
    made = zarr.create_array(str(path), shape=values.shape, chunks=(70, values.shape[1]), dtype=values.dtype)
    made[:] = values


WRITERS = {
    "a.npy": write_npy,
    "fortran.npy": write_fortran,
    "a.parquet": write_parquet,
    "a.h5": write_hdf5,
    "a.zarr": write_zarr,
}


@pytest.mark.parametrize("name", WRITERS)
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_all_formats_give_the_same_rows(tmp_path, name, dtype):
    values = X.astype(dtype)
    WRITERS[name](tmp_path / name, values)
    rows = mercer.open_rows(tmp_path / name)
    assert (rows.shape, rows.dtype) == ((1000, 5), dtype)
    where, parts = zip(*rows.blocks(333), strict=True)
    assert [(w.start, w.stop) for w in where] == [(0, 333), (333, 666), (666, 999), (999, 1000)]
    np.testing.assert_array_equal(np.concatenate(parts), values)
    for wanted in ([999, 0, 500, 500, 3], slice(10, 420), np.arange(1000)[::-7], slice(990, 2000), slice(5, 5)):
        np.testing.assert_array_equal(rows[wanted], values[wanted])
    some = mercer.open_rows(tmp_path / name, columns=[4, 2])
    np.testing.assert_array_equal(some[[7, 2]], values[[7, 2]][:, [4, 2]])


def test_parquet_by_names_with_whole_numbers_and_words_beside(tmp_path):
    pa = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    path = tmp_path / "a.parquet"
    parquet.write_table(pa.table({"word": ["a", "b"], "count": [1, 2], "x": [0.5, None]}), path)
    with pytest.raises(ValueError, match=r"column 'word' of .*a\.parquet holds string.*columns="):
        mercer.open_rows(path)
    np.testing.assert_array_equal(mercer.open_rows(path, columns=["count"])[[1]], [[2.0]])
    with pytest.raises(ValueError, match=r"a\.parquet has nan in row 1, column 1"):
        list(mercer.open_rows(path, columns=["count", "x"]).blocks(1))
    with pytest.raises(ValueError, match="no column 'y'"):
        mercer.open_rows(path, columns=["y"])


def test_not_finite_names_the_row_of_the_file(tmp_path):
    values = X.copy()
    values[777, 3] = np.inf
    np.save(tmp_path / "a.npy", values)
    rows = mercer.open_rows(tmp_path / "a.npy")
    assert rows[:777].shape == (777, 5)
    for read in (lambda: list(rows.blocks(100)), lambda: rows[[3, 777]], lambda: rows[700:800]):
        with pytest.raises(ValueError, match=r"a\.npy has inf in row 777, column 3"):
            read()


@pytest.mark.parametrize("name", WRITERS)
def test_a_file_that_changes_amid_a_pass_is_refused(name, tmp_path):
    WRITERS[name](tmp_path / name, X)
    blocks = mercer.open_rows(tmp_path / name).blocks(400)
    assert [next(blocks)[0].stop for _ in range(2)] == [400, 800]
    WRITERS[name](tmp_path / "other", X[::-1].copy())
    written = next((tmp_path).glob("other*"))
    if name == "a.zarr":
        shutil.rmtree(tmp_path / name)
    written.replace(tmp_path / name)
    with pytest.raises(ValueError, match=r"was changed after it was opened"):
        next(blocks)


def test_a_file_that_changes_while_it_is_read_is_refused(tmp_path, monkeypatch):
    np.save(tmp_path / "a.npy", X)
    rows, read = mercer.open_rows(tmp_path / "a.npy"), np.fromfile

    def read_and_changed(*args):
        np.save(tmp_path / "a.npy", X[:900])
        return read(*args)

    monkeypatch.setattr(np, "fromfile", read_and_changed)
    with pytest.raises(ValueError, match=r"was changed after it was opened"):
        rows[:50]


def test_a_chunk_that_changes_is_seen(tmp_path):
    zarr = pytest.importorskip("zarr")
    write_zarr(tmp_path / "a.zarr", X)
    rows = mercer.open_rows(tmp_path / "a.zarr")
    assert sum(block.shape[0] for _, block in rows.blocks(100)) == len(X)
    zarr.open(str(tmp_path / "a.zarr"), mode="r+")[3, 0] = 7.0
    for read in (lambda: list(rows.blocks(100)), lambda: rows[[5, 3]]):
        with pytest.raises(ValueError, match=r"a\.zarr was changed after it was opened"):
            read()


def test_a_file_that_changes_is_not_read_on(tmp_path):
    np.save(tmp_path / "a.npy", X)
    rows = mercer.open_rows(tmp_path / "a.npy")
    blocks = rows.blocks(100)
    next(blocks)
    np.save(tmp_path / "a.npy", X[:900])
    with pytest.raises(ValueError, match=r"was changed after it was opened"):
        next(blocks)
    (tmp_path / "a.npy").unlink()
    with pytest.raises(FileNotFoundError, match="no longer there"):
        rows.take([1])


@pytest.mark.parametrize(
    ("name", "values", "error"),
    [
        ("a.npy", np.arange(3.0), r"shape \(3,\)"),
        ("a.npy", np.array([["a"]]), "numbers"),
        ("a.npy", np.array([[None]]), "cannot be read"),
        ("a.npy", np.empty((0, 3)), "no rows"),
        ("a.csv", None, "names no format of rows"),
        ("b.npy", None, "no file"),
    ],
)
def test_what_holds_no_rows_is_refused(tmp_path, name, values, error):
    if values is not None:
        np.save(tmp_path / name, values)
    with pytest.raises((ValueError, FileNotFoundError), match=error):
        mercer.open_rows(tmp_path / name)


@pytest.mark.parametrize("name", ["a.npy", "a.parquet", "a.h5"])
def test_a_file_that_is_none(tmp_path, name):
    (tmp_path / name).write_bytes(b"no such format")
    with pytest.raises(ValueError, match=f"{name} cannot be read as"):
        mercer.open_rows(tmp_path / name)


def columnar(path, **columns):
    pa = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    parquet.write_table(pa.table(columns), path)


def doubled(path):
    pa = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    parquet.write_table(pa.table([pa.array([1.0]), pa.array([2.0])], names=["a", "a"]), path)


def damaged(path):
    columnar(path, a=np.arange(5000.0))
    content = bytearray(path.read_bytes())
    content[200:4000] = b"\xff" * 3800
    path.write_bytes(content)


def empty_dataset(path):
    h5py = pytest.importorskip("h5py")
    with h5py.File(path, "w") as file:
        file["x"] = h5py.Empty("f8")


def damaged_hdf5(path):
    h5py = pytest.importorskip("h5py")
    with h5py.File(path, "w") as file:
        file.create_dataset("x", data=X, chunks=(100, 5), compression="gzip")
    content = bytearray(path.read_bytes())
    content[-2000:-1000] = b"\xff" * 1000
    path.write_bytes(content)


def cut_chunk(path):
    write_zarr(path, X)
    chunk = max((path / "c").rglob("*"), key=lambda each: each.stat().st_size if each.is_file() else 0)
    chunk.write_bytes(chunk.read_bytes()[:10])


def unreadable_metadata(path):
    write_zarr(path, X)
    (path / "zarr.json").write_text('{"zarr_format": 3')


HOSTILE = {  # name of the file, what makes it, options, and the sentence
    "bytes": ("a.npy", lambda path: path.write_bytes(b"no such format"), {}, "another kind of file"),
    "a pickle": ("a.npy", lambda path: np.save(path, X.astype(object)), {}, "Python objects, which are not read"),
    "nothing": (
        "a.npy",
        lambda path: path.write_bytes(b""),
        {},
        "a.npy cannot be read as a NumPy array: it is cut off",
    ),
    "a head alone": (
        "a.npy",
        lambda path: path.write_bytes(b"\x93NUMPY\x01\0\x09\0{'shape': "),
        {},
        "cannot be read as",
    ),
    "complex": ("a.npy", lambda path: np.save(path, X * 1j), {}, "a.npy holds complex128: rows of points are numbers"),
    "records": ("a.npy", lambda path: np.save(path, np.zeros((5, 2), [("a", "f8")])), {}, "rows of points are numbers"),
    "no columns": ("a.npy", lambda path: np.save(path, X[:, :0]), {}, "a.npy has no rows of numbers"),
    "a folder": ("a.npy", lambda path: path.mkdir(), {}, "a.npy is a folder: name a file in it"),
    "a pipe": ("a.npy", os.mkfifo, {}, "a.npy is no file that can be read again"),
    "a word for columns": ("a.npy", lambda path: np.save(path, X), {"columns": "12"}, "columns='12' must be a list"),
    "a number for columns": ("a.npy", lambda path: np.save(path, X), {"columns": 1}, "columns=1 must be a list"),
    "another array": ("a.npy", lambda path: np.save(path, X), {"array": "x"}, "one table alone: leave array='x' out"),
    "a column twice": ("a.parquet", doubled, {}, "a.parquet has 2 columns named 'a': rename them"),
    "lists": ("a.parquet", lambda path: columnar(path, a=[[1.0]]), {}, "The column 'a' of .* holds list"),
    "no rows": ("a.parquet", lambda path: columnar(path, a=np.empty(0)), {}, "a.parquet has no rows of numbers"),
    "a gap": (
        "a.parquet",
        lambda path: columnar(path, a=[1.0, None]),
        {},
        "nan in row 1, column 0, both counted from 0",
    ),
    "a half column": ("a.parquet", lambda path: columnar(path, a=[1.0]), {"columns": [0.5]}, "has no column '0.5'"),
    "pages": ("a.parquet", damaged, {}, "a.parquet cannot be read to its end, it is damaged"),
    "an empty dataset": ("a.h5", empty_dataset, {}, "a.h5 has no array of two dimensions, which rows of points need"),
    "chunks of HDF5": ("a.h5", damaged_hdf5, {}, "a.h5 cannot be read to its end, it is damaged"),
    "no Zarr": ("a.zarr", lambda path: path.mkdir(), {}, "a.zarr cannot be read as Zarr"),
    "a file": (
        "a.zarr",
        lambda path: path.write_bytes(b"PK"),
        {},
        "a.zarr is a file, and Zarr keeps arrays in folders",
    ),
    "chunks of Zarr": ("a.zarr", cut_chunk, {}, "a.zarr cannot be read to its end, it is damaged"),
    "metadata": ("a.zarr", unreadable_metadata, {}, "a.zarr cannot be read as Zarr"),
}


@pytest.mark.parametrize("case", HOSTILE)
def test_what_holds_no_rows_is_one_sentence(tmp_path, case):
    name, make, options, sentence = HOSTILE[case]
    make(tmp_path / name)
    if name.endswith((".h5", ".zarr")):
        pytest.importorskip("h5py" if name == "a.h5" else "zarr")
    with pytest.raises((ValueError, TypeError, OSError), match=sentence) as raised:
        list(mercer.open_rows(tmp_path / name, **options).blocks(100))
    assert len(str(raised.value).splitlines()) == 1
    assert "pickle" not in str(raised.value)


@pytest.mark.parametrize(
    ("ask", "sentence"),
    [
        (lambda rows: list(rows.blocks(0)), "most=0 must be a whole number"),
        (lambda rows: list(rows.blocks(-1)), "most=-1 must be a whole number"),
        (lambda rows: rows[3], r"rows\[\[3, 7\]\]"),
        (lambda rows: rows[[0.5]], r"rows\[\[3, 7\]\]"),
        (lambda rows: list(rows), r"for where, block in rows.blocks\(10_000\)"),
    ],
)
def test_what_rows_are_not_asked_for(tmp_path, ask, sentence):
    np.save(tmp_path / "a.npy", X)
    rows = mercer.open_rows(tmp_path / "a.npy")
    assert repr(rows).endswith("a.npy: 1000 rows of 5 numbers, float64>")
    with pytest.raises((TypeError, ValueError), match=sentence):
        ask(rows)


def test_what_is_no_file_of_this_machine():
    with pytest.raises(ValueError, match="is no file of this machine: download it"):
        mercer.open_rows("https://example.org/a.npy")
    with pytest.raises(TypeError, match=r"frame\.to_numpy\(\)"):
        mercer.open_rows(pytest.importorskip("pandas").DataFrame(X))


def test_chunks_that_change_are_not_read_on(tmp_path):
    zarr = pytest.importorskip("zarr")
    write_zarr(tmp_path / "a.zarr", X)
    rows = mercer.open_rows(tmp_path / "a.zarr")
    blocks = rows.blocks(100)
    next(blocks)
    zarr.open(str(tmp_path / "a.zarr"), mode="r+")[:] = X + 1
    with pytest.raises(ValueError, match=r"a\.zarr was changed after it was opened"):
        list(blocks)


def test_arrays_in_groups_of_groups(tmp_path):
    zarr = pytest.importorskip("zarr")
    group = zarr.open_group(str(tmp_path / "a.zarr"), mode="w").create_group("inner")
    group.create_array("points", shape=X.shape, chunks=(70, 5), dtype="f8")[:] = X
    for name in (None, "inner/points", "/inner/points"):
        np.testing.assert_array_equal(mercer.open_rows(tmp_path / "a.zarr", array=name)[:], X)


def test_rows_are_not_written_over_themselves(tmp_path):
    np.save(tmp_path / "a.npy", X)
    with pytest.raises(ValueError, match=r"a\.npy holds the rows that are read: write to another file"):
        mercer.io.write_rows(lambda block: block, tmp_path / "a.npy", tmp_path / "a.npy")
    np.testing.assert_array_equal(np.load(tmp_path / "a.npy"), X)


def test_one_number_a_row_is_a_table_of_one_column(tmp_path):
    model = mercer.NoveltyDetector().fit(X)
    for method in (model.score_samples, model.predict):
        found = mercer.io.write_rows(method, X, tmp_path / "out.npy")
        assert found.shape == (1000, 1)
        np.testing.assert_allclose(found[:][:, 0], method(X))


@pytest.mark.parametrize(
    ("function", "sentence"),
    [
        (lambda block: block.astype(object), "gave object, and a file of rows holds real numbers"),
        (lambda block: block + 1j, "gave complex128, and a file of rows holds real numbers"),
        (lambda block: block[:, :0].sum(), r"gave an array of shape \(\) for"),
        (lambda block: None, "gave object"),
        (lambda block: block.astype("f4") if block[0, 0] > 0 else block, "5 numbers of float.. for each of the rows"),
    ],
)
def test_what_is_no_table_of_numbers_leaves_the_earlier_file(tmp_path, monkeypatch, function, sentence):
    monkeypatch.setattr("mercer.backends.chunks._SOURCE_BYTES", 15_000)
    np.save(tmp_path / "out.npy", X)
    with pytest.raises(ValueError, match=sentence):
        mercer.io.write_rows(function, X, tmp_path / "out.npy")
    np.testing.assert_array_equal(np.load(tmp_path / "out.npy"), X)
    assert [each.name for each in tmp_path.iterdir()] == ["out.npy"]


def test_arrays_that_are_no_plain_tables_are_refused():
    sparse = pytest.importorskip("scipy.sparse")
    with pytest.raises(TypeError, match="of a sparse array array.toarray"):
        mercer.open_rows(sparse.csr_array(X))
    with pytest.raises(ValueError, match="values that are masked"):
        mercer.open_rows(np.ma.masked_array(X, X > 2))
    with pytest.raises(TypeError, match="needs all 1000 rows at once"):
        mercer.open_rows(X)[:, 0]


@pytest.mark.parametrize("name", ["a.h5", "a.zarr"])
def test_arrays_of_several_are_tables_too(tmp_path, name):
    WRITERS[name](tmp_path / name, X)
    table = mercer.read_table(tmp_path / name)
    assert table.columns == ["1", "2", "3", "4", "5"]
    np.testing.assert_array_equal(table["3"].values, X[:, 2])


def test_a_file_cut_off(tmp_path):
    np.save(tmp_path / "a.npy", X)
    content = (tmp_path / "a.npy").read_bytes()
    (tmp_path / "a.npy").write_bytes(content[:-400])
    with pytest.raises(ValueError, match="cannot be read as a NumPy array"):
        mercer.open_rows(tmp_path / "a.npy")


def test_several_arrays_in_a_file(tmp_path):
    h5py = pytest.importorskip("h5py")
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file["one"], file["two"] = X, X[:, :2]
    with pytest.raises(ValueError, match="2 arrays of two dimensions .'one', 'two'.*array="):
        mercer.open_rows(tmp_path / "a.h5")
    assert mercer.open_rows(tmp_path / "a.h5", array="two").shape == (1000, 2)


def test_a_missing_reader_is_one_sentence(tmp_path, monkeypatch):
    (tmp_path / "a.h5").write_bytes(b"")
    (tmp_path / "a.zarr").mkdir()
    imported = builtins.__import__

    def without(name, *args, **kwargs):
        if name.partition(".")[0] in ("h5py", "zarr"):
            raise ModuleNotFoundError(name)
        return imported(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", without)
    for name, package in (("a.h5", "h5py"), ("a.zarr", "zarr")):
        with pytest.raises(ModuleNotFoundError, match=f"need {package}: pip install {package}"):
            mercer.open_rows(tmp_path / name)
