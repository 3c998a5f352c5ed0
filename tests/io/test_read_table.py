"""Tables from files: what real files hold, and what broken ones are told."""

import csv
import datetime
import gzip
import io
import json
import pickle
import sys
import types

import numpy as np
import pytest

import mercer
from mercer.io import DataTable, Preparation, UnknownColumnError, read_table, write_table
from mercer.kernels.tables import Table, is_frame


@pytest.fixture
def written(tmp_path):
    def write(content, name="a.csv"):
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    return write


def listed(table: DataTable) -> dict:
    return {part.name: part.to_list() for part in table.parts}


PLANTS = {"height": [1.5, 2.0, -0.25], "colour": ["red", "blue", "red"]}


@pytest.mark.parametrize(
    ("content", "name"),
    [
        ("height,colour\n1.5,red\n2,blue\n-2.5e-1,red\n", "a.csv"),
        ("height;colour\r\n1,5;red\r\n2;blue\r\n-0,25;red\r\n", "a.csv"),  # of a spreadsheet in Europe
        ("height\tcolour\n1.5\tred\n2\tblue\n-.25\tred", "a.tsv"),
        ("height|colour\n1.5|red\n2|blue\n-.25|red\n", "a.txt"),
        ("\ufeffheight,colour\n1.5,red\n2,blue\n-.25,red\n", "a.csv"),
        ("\n height , colour\n\n1.5, red\n 2 ,blue \n-.25,red\n\n", "a.csv"),
        ('"height","colour"\n"1.5","red"\n"2","blue"\n"-.25","red"\n', "a.CSV"),
        ("height,colour,\n1.5,red,\n2,blue,\n-.25,red,\n", "a.csv"),  # a comma at the end of each line
        (",height,colour\n0,1.5,red\n1,2,blue\n2,-.25,red\n", "a.csv"),  # row numbers, as pandas writes them
        ("height,colour\n1.5,red\n2,blue\n-.25,red\n".encode("utf-16"), "a.csv"),
        (gzip.compress(b"height,colour\n1.5,red\n2,blue\n-.25,red\n", mtime=0), "a.csv.gz"),
    ],
)
def test_one_table_in_the_ways_that_programs_write_it(content, name, written):
    table = read_table(written(content, name))
    assert listed(table) == PLANTS
    assert table.shape == (3, 2)
    assert table.dtypes == ["float64", "str"]


def test_comments_above_the_table_are_passed_over_and_counted_as_lines(written):
    table = read_table(written("# a field, of plants; dried\n#\nheight;colour\r\n1,5;red\r\n2;blue\r\n-0,25;red\r\n"))
    assert listed(table) == PLANTS
    assert table.notes == (f"The first 2 lines of {table.source}, which begin with #, are passed over.",)
    np.testing.assert_array_equal(table.lines, [4, 5, 6])
    named = read_table(written("# once\n#CHROM\tPOS\n1\t7\n2\t8\n", "a.tsv"))  # names may begin so, as in biology
    assert named.columns == ["#CHROM", "POS"]
    assert "The first line of" in named.notes[0]
    with pytest.raises(ValueError, match="Line 4 of .* has 3 values, but the first line has 2"):
        read_table(written("# once\nx,y\n1,2\n1,2,3\n"))


def test_words_with_delimiters_quotes_and_line_ends(written):
    table = read_table(written('name,n\n"Smith, ""J""",1\n"two\nlines",2\n,3\n'))
    assert table["name"].to_list() == ['Smith, "J"', "two\nlines", None]
    np.testing.assert_array_equal(table.lines, [2, 4, 5])


def test_numbers_alone_have_no_header_and_a_note_says_so(written):
    table = read_table(written("1,2\n3,4\n"))
    assert listed(table) == {"1": [1, 3], "2": [2, 4]}
    assert "read as values" in table.notes[0]
    assert listed(read_table(written("1,2\n3,4\n"), header=True)) == {"1": [3], "2": [4]}
    assert read_table(written("a,b\nc,d\n")).columns == ["a", "b"]  # no numbers: the first line names
    assert read_table(written("a,b\nc,d\n"), header=False).shape == (2, 2)
    spaced = read_table(written("  1.0   2.0\n-3e2 4.0\n", "a.dat"))
    np.testing.assert_array_equal(spaced, [[1, 2], [-300, 4]])


def test_what_stands_for_a_missing_value_and_what_does_not(written):
    table = read_table(written("x,word\n1,NA\n?,none\nNone,-\nnan,\n,b\n2,c\n"))
    np.testing.assert_array_equal(table["x"].values, [1, np.nan, np.nan, np.nan, np.nan, 2])
    assert table["word"].to_list() == [None, "none", "-", None, "b", "c"]
    with pytest.raises(ValueError, match="Line 2 of .*a.csv has no value in the column 'word', and 5 of 6 rows"):
        table.complete()
    assert listed(table.complete(drop=True)) == {"x": [2], "word": ["c"]}
    assert table.select(["x"]).complete(drop=True).shape == (2, 1)
    np.testing.assert_array_equal(table.complete(drop=True).lines, [7])


def test_codes_are_categories_where_that_is_said(written):
    path = written("code,x\n01,1\n1,2\n2,3\n")
    assert read_table(path)["code"].to_list() == [1, 1, 2]
    assert read_table(path, categories=["code"])["code"].to_list() == ["01", "1", "2"]
    mostly = written("chromosome\n1\n2\nX\n3\n")
    with pytest.raises(ValueError, match="Line 4 .* has 'X' in the column 'chromosome', where most values are numbers"):
        read_table(mostly)
    assert read_table(mostly, categories=["chromosome"]).dtypes == ["str"]
    assert read_table(written("ward\nA\n12\nB\n")).dtypes == ["str"]


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        ("", "is empty"),
        ("  \n\n", "is empty"),
        ("|", "is empty"),
        (",,\n,,\n", "is empty"),
        ("a,b\n", "no rows below"),
        ("a,b\n1,2\n\n3\n", "Line 4 of .*a.csv has 1 values, but the first line has 2"),
        ("a,b\n1,2\n3,4,5\n", "Line 3 of .*a.csv has 3 values"),
        ("a,b\n1,2\n3,inf\n", "Line 3 .* 'inf' in the column 'b', which is no finite number"),
        ("a,b\n1,2\n3,1e999\n", "Line 3 .* '1e999'"),
        ("a,b\n1,2\n3,1_000\n4,5\n", "Line 3 .* '1_000'"),
        ('a,b\n1,2\n3,"x\n4,5\n', "opens in or after line 3 .* is not closed"),
        ('a,b\n1,"x"y\n', "Line 2 .* cannot be read"),
        ("a,a\n1,2\n", "two columns named 'a'"),
        (b"a,b\n1,\xe9t\xe9\n", "Line 2 .* is not UTF-8"),
        (b"a,b\n1,\0\n", "no text"),
    ],
)
def test_a_broken_file_is_told_what_is_wrong_and_where(content, sentence, written):
    with pytest.raises(ValueError, match=sentence) as caught:
        read_table(written(content))
    assert "\n" not in str(caught.value)


def test_other_wrong_calls(written, tmp_path):
    with pytest.raises(FileNotFoundError, match="no file"):
        read_table(tmp_path / "none.csv")
    with pytest.raises(IsADirectoryError, match="folder"):
        read_table(tmp_path)
    with pytest.raises(ValueError, match="names no format"):
        read_table(written("x", "a.xlsx"))
    with pytest.raises(ValueError, match="encoding='klingon'"):
        read_table(written("x\n1\n"), encoding="klingon")
    with pytest.raises(ValueError, match="one character"):
        read_table(written("x\n1\n"), delimiter=", ")
    assert read_table(written(b"x\n\xe9\n"), encoding="cp1252")["x"].to_list() == ["é"]
    for name, content in (("a.csv", b"x\n1\n"), ("a.npy", None)):
        path = written(content, name) if content else tmp_path / name
        if content is None:
            np.save(path, np.ones((2, 2)))
        with pytest.raises(UnknownColumnError, match="has no column 'z'"):
            read_table(path, categories=["z"])
        with pytest.raises(UnknownColumnError, match="has no column 'z'"):
            read_table(path).select(["z"])


def test_arrays_of_numpy(tmp_path):
    X, y = np.arange(12.0).reshape(2, 3, 2), np.array(["a", "b"])
    np.savez(tmp_path / "a.npz", X=X, y=y, n=np.array([True, False]))
    table = read_table(tmp_path / "a.npz")
    assert table.columns == [*(f"X[{k}]" for k in range(6)), "y", "n"]
    np.testing.assert_array_equal(table.select(["X"]), X.reshape(2, 6))
    assert table.without(["X"]).dtypes == ["str", "float64"]
    np.save(tmp_path / "a.npy", X[:, :, 0].astype(np.float32))
    np.testing.assert_array_equal(read_table(tmp_path / "a.npy"), X[:, :, 0])
    assert read_table(tmp_path / "a.npy", categories=["1"]).dtypes == ["str", "float64", "float64"]
    np.save(tmp_path / "s.npy", np.array([(1, "u"), (2, "v")], dtype=[("k", int), ("w", "U1")]))
    assert listed(read_table(tmp_path / "s.npy")) == {"k": [1, 2], "w": ["u", "v"]}


@pytest.mark.parametrize(
    ("arrays", "sentence"),
    [
        ({"X": np.ones((3, 2)), "y": np.ones(2)}, "equally many rows, but X has 3, y has 2"),
        ({"X": np.array([{}, 1], dtype=object)}, "Python objects"),
        ({"X": np.array([1j])}, "holds complex128"),
        ({"X": np.array([1.0, np.inf])}, "Row 2 .* has inf in the column 'X'"),
        ({"X": np.ones((0, 2))}, "no rows"),
        ({"X": np.float64(1)}, "no rows"),
    ],
)
def test_arrays_that_are_no_table(arrays, sentence, tmp_path):
    np.savez(tmp_path / "a.npz", **arrays)
    with pytest.raises(ValueError, match=sentence):
        read_table(tmp_path / "a.npz")


def test_a_damaged_file_of_numpy(written):
    for name in ("a.npy", "a.npz"):
        for content in (b"PK\x03\x04nonsense", b"", b"nonsense", b"\x93NUMPY\x01\x00v\x00{"):
            with pytest.raises(ValueError, match="cannot be read"):
                read_table(written(content, name))
    with pytest.raises(ValueError, match="cannot be decompressed"):
        read_table(written(gzip.compress(b"x\n1\n2\n", mtime=0)[:-9], "a.csv.gz"))


def test_parquet(tmp_path, written):
    pandas = pytest.importorskip("pandas")
    pytest.importorskip("pyarrow")
    frame = pandas.DataFrame({"x": [1.0, None, 3.0], "w": ["a", None, "b"], "b": [True, False, True]})
    frame["c"] = pandas.Categorical(["u", "v", "u"])
    frame.index = [5, 7, 9]
    frame.to_parquet(tmp_path / "a.parquet")
    table = read_table(tmp_path / "a.parquet")
    np.testing.assert_array_equal(table["x"].values, [1, np.nan, 3])
    assert listed(table.without(["x"])) == {"w": ["a", None, "b"], "b": ["True", "False", "True"], "c": ["u", "v", "u"]}
    frame.assign(d=[[1], [2], [3]]).to_parquet(tmp_path / "d.parquet")
    with pytest.raises(ValueError, match="column 'd' .* holds list"):
        read_table(tmp_path / "d.parquet")
    with pytest.raises(ValueError, match="cannot be read as Parquet"):
        read_table(written(b"no", "n.parquet"))


def test_the_library_takes_a_table_as_it_takes_a_data_frame(written):
    pandas = pytest.importorskip("pandas")
    path = written("size,colour\n1,red\n2,blue\n4,red\n7,green\n")
    table, frame = read_table(path), pandas.read_csv(path)
    assert is_frame(table)
    np.testing.assert_array_equal(Table.of(table).coded(table), Table.of(frame).coded(frame))
    assert mercer.mmd(table, table.take(np.array([0, 3])), mercer.Mixed()) == mercer.mmd(
        frame, frame.iloc[[0, 3]], mercer.Mixed()
    )
    numbers = table.select(["size"])
    assert isinstance(numbers.as_points(), np.ndarray)
    assert table.as_points() is table
    np.testing.assert_array_equal(mercer.KernelPCA().fit(numbers).embedding_.shape, [4, 2])
    with pytest.raises(ValueError, match="'colour' .* holds categories"):
        np.asarray(table)
    assert listed(pickle.loads(pickle.dumps(table))) == listed(table)


def test_a_file_that_a_table_is_written_to_reads_back(written):
    """Values of every size come back bit for bit, whatever the delimiter."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((50, 3)) * 10.0 ** rng.integers(-300, 300, (50, 3))
    for delimiter, name in ((",", "a.csv"), (";", "b.csv"), ("\t", "c.tsv"), (" ", "d.txt")):
        lines = [delimiter.join(["u", "v", "w"]), *(delimiter.join(map(repr, row)) for row in X.tolist())]
        np.testing.assert_array_equal(np.asarray(read_table(written("\n".join(lines), name))), X)


@pytest.mark.parametrize("quoting", [csv.QUOTE_MINIMAL, csv.QUOTE_ALL, csv.QUOTE_NONNUMERIC])
@pytest.mark.parametrize("delimiter", list(",;\t|"))
def test_words_that_hold_delimiters_do_not_mislead(delimiter, quoting, written):
    words = ["a,b", "c;d;e", 'say "hi"', "two\nlines", "x\ty", "p|q|r", "1,2,3", "plain"]
    text = io.StringIO(newline="")
    writer = csv.writer(text, delimiter=delimiter, quoting=quoting)
    writer.writerow(["number", "word", "more"])
    writer.writerows((k / 8, word, -k) for k, word in enumerate(words))
    table = read_table(written(text.getvalue()))
    assert table["word"].to_list() == words
    np.testing.assert_array_equal(table.select(["number", "more"]), [[k / 8, -k] for k in range(8)])


def test_streams_tell_their_format_by_their_first_bytes(tmp_path):
    X = np.array([[1.0, 2.0], [3.0, 4.0]])
    np.save(tmp_path / "a.npy", X)
    for data in (b"x,y\n1,2\n3,4\n", gzip.compress(b"x,y\n1,2\n3,4\n", mtime=0), (tmp_path / "a.npy").read_bytes()):
        table = read_table(io.BytesIO(data))
        np.testing.assert_array_equal(table, X)
        assert table.source == "standard input"
    with pytest.raises(ValueError, match="standard input is empty"):
        read_table(io.BytesIO(b""))


def test_one_array_of_several_and_lines_that_are_too_long(tmp_path, written):
    np.savez(tmp_path / "a.npz", X=np.eye(3), y=np.ones(4))
    np.testing.assert_array_equal(read_table(tmp_path / "a.npz", array="X"), np.eye(3))
    with pytest.raises(ValueError, match="has no array 'z'; it has 'X', 'y'"):
        read_table(tmp_path / "a.npz", array="z")
    with pytest.raises(ValueError, match="is text, which holds no arrays"):
        read_table(written("x\n1\n"), array="X")
    long = written("x\n1\n" + "2" * 99)
    with pytest.raises(ValueError, match="Line 3 of .* is longer than 50 bytes"):
        read_table(long, longest_line=50)
    assert read_table(long, longest_line=99).shape == (2, 1)


@pytest.mark.parametrize("ending", ["csv", "tsv", "parquet", "npz", "npy"])
def test_what_is_written_is_read_back_exactly(ending, tmp_path):
    x = np.array([0.1, 1 / 3, -1e-300, 12345678.9])
    write_table({"x, y": x, "n": np.arange(4), "word": ["a", 'b "c"', "d,e", "é"]}, tmp_path / f"a.{ending}")
    table = read_table(tmp_path / f"a.{ending}")
    np.testing.assert_array_equal(table.parts[0].values, x)
    np.testing.assert_array_equal(table.parts[1].values, np.arange(4))
    if ending != "npy":  # which has no names and no words
        assert table.columns == ["x, y", "n", "word"]
        assert table["word"].to_list() == ["a", 'b "c"', "d,e", "é"]
    assert [path.name for path in tmp_path.iterdir()] == [f"a.{ending}"]


def test_columns_of_an_archive_may_have_any_name(tmp_path):
    write_table({"file": [1.0, 2.0], "allow_pickle": [3.0, 4.0]}, tmp_path / "a.npz")
    assert read_table(tmp_path / "a.npz").columns == ["file", "allow_pickle"]


def test_a_table_is_written_whole_or_not_at_all(tmp_path):
    target = tmp_path / "a.csv"
    target.write_text("before\n")
    with pytest.raises(ValueError, match="zip"):
        write_table({"x": [1.0, 2.0], "y": [1.0]}, target)
    assert target.read_text() == "before\n"
    assert [path.name for path in tmp_path.iterdir()] == ["a.csv"]
    with pytest.raises(ValueError, match="names no format to write"):
        write_table({"x": [1.0]}, tmp_path / "a.doc")
    with pytest.raises(FileNotFoundError, match="does not exist"):
        write_table({"x": [1.0]}, tmp_path / "no" / "a.csv")


def test_preparations_treat_new_tables_as_the_first(written):
    table = read_table(written("a,b,word\n1,5,x\n2,5,y\n3,5,x\n"))
    prepared = Preparation.of(table, scale=True)
    assert prepared.categories == ("word",)
    first = prepared.table(table)
    np.testing.assert_allclose(first["a"].values, [-np.sqrt(1.5), 0, np.sqrt(1.5)])
    np.testing.assert_array_equal(first["b"].values, 0)  # the same everywhere: moved, not divided
    assert first["word"].to_list() == ["x", "y", "x"]
    again = Preparation.from_dict(json.loads(json.dumps(prepared.as_dict())))
    assert again == prepared
    numbers = Preparation.of(table.select(["a", "b"]), scale=True)
    np.testing.assert_allclose(numbers.undone(numbers.points(table)), table.select(["a", "b"]))
    with pytest.raises(ValueError, match="'word' of .* holds numbers, but held words"):
        prepared.table(read_table(written("a,b,word\n1,5,7\n")))
    for broken in ({}, {**prepared.as_dict(), "means": [1.0]}, {**prepared.as_dict(), "scales": None}):
        with pytest.raises(ValueError, match="damaged"):
            Preparation.from_dict(broken)


def test_annotated_matrices(tmp_path, monkeypatch):
    """The parts of anndata's interface that are used, by an object that has them; the package is tested where it is."""
    import pandas
    from scipy import sparse

    obs = pandas.DataFrame({"kind": pandas.Categorical(["a", None, "b"]), "depth": [3, 4, 5]})
    held = types.SimpleNamespace(
        X=sparse.csr_array(np.eye(3)[:, :2]),
        layers={"counts": np.ones((3, 2))},
        obsm={"X_pca": np.arange(9.0).reshape(3, 3)},
        obs=obs,
        var_names=["gene 1", "gene 2"],
    )
    monkeypatch.setitem(sys.modules, "anndata", types.SimpleNamespace(read_h5ad=lambda path: held))
    path = tmp_path / "cells.h5ad"
    path.write_bytes(b"\x89HDF")
    table = read_table(path)
    assert table.columns == ["gene 1", "gene 2", "kind"]
    np.testing.assert_array_equal(table.select(["gene 1", "gene 2"]), np.eye(3)[:, :2])
    assert table["kind"].to_list() == ["a", None, "b"]
    assert table.notes == ("Annotations of rows that are numbers are left out: depth.",)
    assert read_table(path, array="X_pca").columns == ["X_pca[0]", "X_pca[1]", "X_pca[2]", "kind"]
    np.testing.assert_array_equal(read_table(path, array="counts").select(["gene 2"]), np.ones((3, 1)))
    assert read_table(path, categories=["depth"])["depth"].to_list() == ["3", "4", "5"]
    with pytest.raises(ValueError, match="no layer and no obsm 'X_umap'; it has 'counts', 'X_pca'"):
        read_table(path, array="X_umap")


def test_days_and_times_are_words_in_parquet_as_in_text(tmp_path):
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    days = [datetime.date(2024, 1, 1), None, datetime.date(2024, 1, 3)]
    times = [datetime.datetime(2024, 1, 1, 12, 30)] * 3
    parquet.write_table(pyarrow.table({"day": days, "time": times, "x": [1.0, 2.0, 3.0]}), tmp_path / "a.parquet")
    table = read_table(tmp_path / "a.parquet")
    assert table["day"].to_list() == ["2024-01-01", None, "2024-01-03"]
    assert table["time"].to_list() == ["2024-01-01 12:30:00"] * 3
    assert table.dtypes == ["str", "str", "float64"]


def test_a_table_may_be_read_by_whom_the_system_lets(tmp_path):
    (tmp_path / "usual").touch()
    write_table({"x": [1.0]}, tmp_path / "a.csv")
    assert (tmp_path / "a.csv").stat().st_mode == (tmp_path / "usual").stat().st_mode
