"""Broken files: one sentence that names the file, and the line where there is one, and nothing is written."""

import gzip
import io
import os
import pickle
import subprocess
import sys

import numpy as np
import pyarrow
import pytest
from pyarrow import parquet

HEAD = b"height,weight\n"
ROWS = b"1,2\n3,4\n5,6\n7,9\n"


def saved(array):
    file = io.BytesIO()
    np.save(file, array, allow_pickle=array.dtype == object)
    return file.getvalue()


def archived(**arrays):
    file = io.BytesIO()
    np.savez(file, **arrays)
    return file.getvalue()


def columnar(**columns):
    file = io.BytesIO()
    parquet.write_table(pyarrow.table(columns), file)
    return file.getvalue()


BROKEN = {  # name of the file, what is in it, options, and the sentence
    "a row too short": ("a.csv", HEAD + b"1,2\n3\n5,6\n", [], "Line 3 of a.csv has 1 values, but the first line has 2"),
    "a row too long": ("a.csv", HEAD + b"1,2\n\n3,4,5\n", [], "Line 4 of a.csv has 3 values, but the first line has 2"),
    "thousands": ("a.csv", HEAD + b"1,2\n1,234,5\n", [], "Line 3 of a.csv has 3 values"),
    "decimal commas": ("a.csv", HEAD + b"1,5,2,5\n", [], "Line 2 of a.csv has 4 values"),
    "text in numbers": ("a.csv", HEAD + ROWS + b"tall,8\n", [], "Line 6 of a.csv has 'tall' in the column 'height'"),
    "a unit": ("a.csv", HEAD + ROWS + b"9,8kg\n", [], "Line 6 of a.csv has '8kg' in the column 'weight'"),
    "an underscore": ("a.csv", HEAD + ROWS + b"1_000,8\n", [], "Line 6 of a.csv has '1_000'"),
    "infinity": ("a.csv", HEAD + ROWS + b"8,-inf\n", [], "Line 6 of a.csv has '-inf' in the column 'weight'"),
    "too large": ("a.csv", HEAD + ROWS + b"8,1e999\n", [], "Line 6 of a.csv has '1e999'"),
    "a gap": ("a.csv", HEAD + b"1,2\n,4\n", [], "Line 3 of a.csv has no value in the column 'height'"),
    "gaps everywhere": ("a.csv", HEAD + b"1,\n,4\n", ["--missing", "drop"], "Every row of a.csv lacks a value"),
    "empty": ("a.csv", b"", [], "a.csv is empty"),
    "blank lines": ("a.csv", b"\n \r\n\n", [], "a.csv is empty"),
    "delimiters alone": ("a.csv", b",,\n,,\n", [], "a.csv is empty"),
    "a header alone": ("a.csv", HEAD, [], "a.csv has the names of columns and no rows below them"),
    "one row": ("a.csv", HEAD + b"1,2\n", [], "Found array with 1 sample"),
    "the same row": ("a.csv", HEAD + 9 * b"1,2\n", [], "All points are equal"),
    "words alone": ("a.csv", b"a,b\nx,y\nu,v\n", [], "a.csv has no column of numbers: a, b hold words"),
    "another delimiter": ("a.csv", b"a;b\n1;2\n3;4\n", ["--delimiter", ","], "a.csv has no column of numbers"),
    "a delimiter too long": ("a.csv", HEAD + ROWS, ["--delimiter", "::"], "delimiter='::' must be one character"),
    "names twice": ("a.csv", b"a,a\n1,2\n", [], "a.csv has two columns named 'a'"),
    "latin-1": ("a.csv", HEAD + b"1,2\n3,\xe9\n", [], "Line 3 of a.csv is not UTF-8"),
    "no such encoding": ("a.csv", HEAD + ROWS, ["--encoding", "klingon"], "encoding='klingon' is not known"),
    "ascii": ("a.csv", HEAD + "1,2\n3,é\n".encode(), ["--encoding", "ascii"], "Line 3 of a.csv is not ASCII"),
    "utf-16 unmarked": ("a.csv", "a,b\n1,2\n".encode("utf-16-le"), [], "Line 1 of a.csv holds bytes that are no text"),
    "utf-16 cut": ("a.csv", "a,b\n1,2\n".encode("utf-16")[:-1], [], "a.csv is not UTF-16"),
    "a zero byte": ("a.csv", HEAD + ROWS + b"8,\0\n", [], "Line 6 of a.csv holds bytes that are no text"),
    "a picture": ("a.csv", b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR", [], "Line 3 of a.csv holds bytes that are no text"),
    "an open quote": ("a.csv", HEAD + b'1,2\n3,"4\n5,6\n', [], "opens in or after line 3 of a.csv is not closed"),
    "a quote too many": ("a.csv", HEAD + b'1,"2"3\n', [], "Line 2 of a.csv cannot be read"),
    "a long line": ("a.csv", HEAD + ROWS + 999 * b"1", ["--longest-line", "500"], "Line 6 of a.csv is longer than 500"),
    "gzip that is none": ("a.csv.gz", HEAD + ROWS, [], "a.csv.gz cannot be decompressed"),
    "gzip cut": ("a.csv.gz", gzip.compress(HEAD + 999 * ROWS, mtime=0)[:-20], [], "a.csv.gz cannot be decompressed"),
    "a spreadsheet": ("a.xlsx", b"PK\3\4", [], "a.xlsx has a suffix that names no format of tables"),
    "no suffix": ("data", HEAD + ROWS, [], "data has a suffix that names no format of tables"),
    "no array": ("a.npy", b"not an array", [], "a.npy cannot be read as .npy"),
    "an array cut": ("a.npy", saved(np.ones((9, 2)))[:-5], [], "a.npy cannot be read as .npy"),
    "objects": ("a.npy", saved(np.array([{}, []], dtype=object)), [], "it holds Python objects"),
    "a pickle": ("a.npy", pickle.dumps([1.0, 2.0]), [], "a.npy cannot be read as .npy: it holds Python objects"),
    "complex": ("a.npy", saved(np.ones((3, 2), complex)), [], "of a.npy holds complex128"),
    "no values": ("a.npy", saved(np.ones((0, 2))), [], "a.npy has no rows of values"),
    "a row without": ("a.npy", saved(np.array([[1.0, 2], [np.nan, 4]])), [], "Row 2 of a.npy has no value"),
    "an infinite row": ("a.npy", saved(np.array([[1.0, 2], [3, np.inf]])), [], "Row 2 of a.npy has inf"),
    "unequal arrays": (
        "a.npz",
        archived(x=np.ones(3), y=np.ones(4)),
        [],
        "arrays of a.npz must have equally many rows",
    ),
    "no such array": ("a.npz", archived(x=np.ones(3)), ["--array", "z"], "a.npz has no array 'z'; it has 'x'"),
    "an archive cut": ("a.npz", archived(x=np.ones(3))[:-30], [], "a.npz cannot be read as .npz"),
    "no parquet": ("a.parquet", b"PAR1", [], "a.parquet cannot be read as Parquet"),
    "lists": ("a.parquet", columnar(t=pyarrow.array([[1], [2]])), [], "'t' of a.parquet holds list<"),
    "infinite parquet": ("a.parquet", columnar(x=[1.0, float("inf")]), [], "Row 2 of a.parquet has inf"),
}


@pytest.mark.parametrize("case", BROKEN)
def test_a_broken_file_is_told_what_is_wrong_in_one_sentence(case, tmp_path, monkeypatch, call):
    name, content, options, sentence = BROKEN[case]
    monkeypatch.chdir(tmp_path)
    (tmp_path / name).write_bytes(content)
    result = call("embed", name, "--output", "out.csv", "--quiet", *options)
    assert result.exit_code == 1, result.output
    assert result.stdout == ""
    assert sentence in result.stderr
    assert len(result.stderr.splitlines()) == 1
    assert result.stderr.startswith("Error: ")
    assert [path.name for path in tmp_path.iterdir()] == [name]


def test_there_are_thirty_of_them_and_those_of_text_name_the_line():
    assert len(BROKEN) >= 30
    assert sum("Line " in sentence or "line " in sentence for *_, sentence in BROKEN.values()) >= 15


@pytest.mark.parametrize(
    "content",
    [
        b"\xef\xbb\xbf" + HEAD + ROWS,
        HEAD.replace(b",", b";") + b"1,0;2\n3;4,0\n5;6\n7;9\n",
        (HEAD + ROWS).replace(b"\n", b"\r\n"),
        (HEAD + ROWS).decode().encode("utf-16"),
        b" height , weight\n" + ROWS.replace(b",", b" , "),
        HEAD.replace(b"\n", b",\n") + ROWS.replace(b"\n", b",\n"),
        gzip.compress(HEAD + ROWS, mtime=0),
        saved(np.array([[1.0, 2], [3, 4], [5, 6], [7, 9]])),
        archived(height=np.array([1.0, 3, 5, 7]), weight=np.array([2, 4, 6, 9])),
        columnar(height=[1.0, 3, 5, 7], weight=[2, 4, 6, 9]),
    ],
    ids=["mark", "semicolons", "windows", "utf-16", "spaces", "commas at the end", "gzip", "npy", "npz", "parquet"],
)
def test_what_only_looks_broken_is_read_from_standard_input_all_the_same(content, call, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    found = call("landmarks", "-", "-n", "4", "--no-picture", "-o", "-", "--quiet", input=content)
    assert found.exit_code == 0, found.output
    rows = sorted(tuple(map(float, line.split(",")[2:])) for line in found.stdout.splitlines()[1:])
    assert rows == [(1, 2), (3, 4), (5, 6), (7, 9)]


def test_annotated_matrices_need_their_reader(tmp_path, monkeypatch, call):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setitem(sys.modules, "anndata", None)
    (tmp_path / "cells.h5ad").write_bytes(b"\x89HDF")
    result = call("embed", "cells.h5ad")
    assert result.exit_code == 1
    assert "Files of AnnData (.h5ad) need anndata: pip install anndata." in result.stderr


def mercer(*arguments, **options):
    return subprocess.run(
        [sys.executable, "-m", "mercer", *arguments], capture_output=True, text=True, check=False, **options
    )


def test_lines_of_gigabytes_end_before_memory_does(tmp_path):
    """Four gigabytes of zeros that take no room on the disk, and a line without end through a pipe."""
    path = tmp_path / "huge.csv"
    with path.open("wb") as file:
        file.write(HEAD)
        file.truncate(4 * 2**30)
    limited = f"import resource; resource.setrlimit(resource.RLIMIT_AS, (3 * 2**30,) * 2); {_RUN}"
    done = subprocess.run(
        [sys.executable, "-c", limited, "embed", str(path)],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"},
    )
    assert done.returncode == 1
    assert (
        done.stderr == f"Error: Line 2 of {path} holds bytes that are no text: its suffix may name the wrong format.\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", "while True: print(end=9999 * '1,')"], stdout=subprocess.PIPE
    ) as endless:
        done = mercer("embed", "-", "--longest-line", "5000000", stdin=endless.stdout)
        endless.kill()
    assert done.returncode == 1
    assert "Line 1 of standard input is longer than 5 MB" in done.stderr


_RUN = "import sys; from mercer.cli import main; main()"


def test_a_ragged_file_through_the_real_command(tmp_path):
    (tmp_path / "a.csv").write_bytes(HEAD + b"1,2\n3\n")
    done = mercer("embed", "a.csv", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == (
        "Error: Line 3 of a.csv has 1 values, but the first line has 2: a value is missing, or one that holds the "
        "delimiter needs quotation marks.\n"
    )
