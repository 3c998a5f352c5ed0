"""Files that are cut off, altered, too new or made to harm: one sentence each, and nothing runs."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import signal
import struct
import subprocess
import sys
from pathlib import Path
from typing import Literal

import numpy as np
import pytest

import mercer
from mercer.datasets import three_clusters
from mercer.io import ModelFileError, container, describe
from mercer.io.fitting_values import Numbers, fits

X = three_clusters(n_per_cluster=15, n_outliers=0)[0]
FORMATS = Path(__file__).parent / "formats"


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """The bytes of a sound file, with the most kinds of parts."""
    path = tmp_path_factory.mktemp("sound") / "model.mercer"
    mercer.save(mercer.SDPEmbedding(random_state=np.random.default_rng(0)).fit(X), path)
    return path.read_bytes()


@pytest.fixture(scope="module")
def content(whole, tmp_path_factory):
    """The texts and arrays of that file."""
    path = tmp_path_factory.mktemp("opened") / "model.mercer"
    path.write_bytes(whole)
    with container.opened(path) as found:
        return dict(found.texts), {name: found.read(name) for name in found.stored}


def refused(path):
    """The sentence by which a file is refused."""
    with pytest.raises(ModelFileError) as caught:
        mercer.load(path)
    sentence = str(caught.value)
    assert sentence.startswith(f"{path} cannot be loaded: ")
    assert sentence.endswith(".")
    assert "\n" not in sentence
    return sentence.removeprefix(f"{path} cannot be loaded: ")


def forged(path, content, *, parts=None, header=None, arrays=None, texts=()):
    """A file whose digest fits what a forger put into it."""
    old, stored = content
    found = {name: text for name, text in old.items() if name != "digest"}
    for name, change in (("parts", parts), ("header", header)):
        if change is not None:
            value = json.loads(found[name])
            change(value)
            found[name] = json.dumps(value)
    found = {name: text for name, text in {**found, **dict(texts)}.items() if text is not None}
    stored = dict(stored)
    if arrays is not None:
        arrays(stored)
    container.write(path, found, stored)
    return path


def sealed(head, data=b""):
    """A safetensors file of this JSON and these bytes, with a digest that fits."""
    text = json.dumps(head, separators=(",", ":")).encode()
    raw = struct.pack("<Q", len(text)) + text + data
    return raw.replace(b"0" * 64, hashlib.blake2b(raw, digest_size=32).hexdigest().encode())


# --- accidents --------------------------------------------------------------------------------------------------------


def corrupted(whole, rng):
    """The bytes after one accident."""
    raw, kind = bytearray(whole), rng.integers(8)
    place, length = int(rng.integers(len(raw))), int(rng.integers(1, 200))
    if kind == 0:
        raw[place] ^= 1 << int(rng.integers(8))
    elif kind == 1:
        del raw[place:]
    elif kind == 2:
        del raw[place : place + length]
    elif kind == 3:
        raw[place:place] = rng.bytes(length)
    elif kind == 4:
        raw[place : place + length] = rng.bytes(len(raw[place : place + length]))
    elif kind == 5:
        raw[place : place + length] = bytes(len(raw[place : place + length]))
    elif kind == 6:
        raw += rng.bytes(length)
    else:
        other = int(rng.integers(len(raw)))
        raw[place : place + length], raw[other : other + length] = (
            raw[other : other + length],
            raw[place : place + length],
        )
    return bytes(raw)


def test_a_thousand_accidents_are_refused(whole, tmp_path):
    rng, path, tried = np.random.default_rng(0), tmp_path / "m.mercer", 0
    while tried < 1000:
        raw = corrupted(whole, rng)
        if raw == whole:
            continue
        path.write_bytes(raw)
        refused(path)
        tried += 1


def test_every_byte_counts(whole, tmp_path):
    path = tmp_path / "m.mercer"
    path.write_bytes(whole)
    mercer.load(path)  # untouched, it is sound
    for place in np.linspace(0, len(whole) - 1, 150).astype(int):
        raw = bytearray(whole)
        raw[place] ^= 0x10
        path.write_bytes(raw)
        refused(path)


@pytest.mark.parametrize("size", [0, 1, 7, 8, 9, 100])
def test_stumps_and_other_files_are_refused(size, whole, tmp_path):
    path = tmp_path / "m.mercer"
    path.write_bytes(whole[:size])
    refused(path)
    path.write_bytes(b"a,b\n1,2\n" * size)
    refused(path)
    with pytest.raises(ModelFileError):
        describe(path)


# --- writing ----------------------------------------------------------------------------------------------------------

KILLER = """
import os, random, signal, sys, time
import numpy as np
import mercer
from mercer import Gaussian, MeanEmbedding
path, kernel = sys.argv[1], Gaussian(1.0)
models = [MeanEmbedding(kernel, np.full((100000, 2), float(k))) for k in range(2)]
for model in models:
    begin = time.perf_counter()
    mercer.save(model, path)
once = time.perf_counter() - begin  # on a busy machine everything takes longer
random.seed(0)
cut, values = 0, set()
for number in range(50):
    child = os.fork()
    if child == 0:
        for k in range(10**6):
            mercer.save(models[k % 2], path)
    time.sleep(4 * once * random.random())
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    found = mercer.load(path).parts[0].means
    assert found.shape == (100000, 2) and (found == found[0, 0]).all()
    values.add(float(found[0, 0]))
    left = [name for name in os.listdir(os.path.dirname(path)) if name.startswith(".")]
    cut += bool(left)
    for name in left:
        os.unlink(os.path.join(os.path.dirname(path), name))
print(cut, len(values))
"""


@pytest.mark.skipif(os.name != "posix", reason="processes are forked")
def test_a_writer_that_is_killed_fifty_times_leaves_a_whole_file(tmp_path):
    done = subprocess.run(
        [sys.executable, "-c", KILLER, str(tmp_path / "m.mercer")], check=True, capture_output=True, text=True
    )
    cut, values = map(int, done.stdout.split())
    assert cut >= 5  # so many were killed while they wrote
    assert values == 2


@pytest.mark.parametrize("where", ["fsync", "replace", "chmod"])
def test_what_fails_on_the_way_changes_nothing(where, tmp_path, monkeypatch):
    path = tmp_path / "m.mercer"
    mercer.save(mercer.Gaussian(1.0), path)

    def full(*_):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(container.os, where, full)
        with pytest.raises(OSError, match=r"cannot be written \(No space left on device\): nothing was changed\."):
            mercer.save(mercer.Gaussian(2.0), path)
    assert mercer.load(path).sigma == 1.0
    assert [each.name for each in tmp_path.iterdir()] == ["m.mercer"]


def test_where_a_file_goes(tmp_path):
    with pytest.raises(FileNotFoundError, match="does not exist: create it first"):
        mercer.save(mercer.Gaussian(1.0), tmp_path / "none" / "m.mercer")
    with pytest.raises(IsADirectoryError, match="is a folder: name a file in it"):
        mercer.save(mercer.Gaussian(1.0), tmp_path)
    real, link = tmp_path / "real.mercer", tmp_path / "link.mercer"
    mercer.save(mercer.Gaussian(1.0), real)
    (tmp_path / "plain").touch()
    assert real.stat().st_mode == (tmp_path / "plain").stat().st_mode  # as any file of this user
    real.chmod(0o640)
    link.symlink_to(real)
    mercer.save(mercer.Gaussian(2.0), str(link))
    assert link.is_symlink()
    assert mercer.load(real).sigma == 2.0
    assert real.stat().st_mode & 0o777 == 0o640


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no pipes")
def test_what_is_no_file_is_neither_read_nor_replaced(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    refused(tmp_path / "pipe")
    with pytest.raises(OSError, match="is no file that can be replaced"):
        mercer.save(mercer.Gaussian(1.0), tmp_path / "pipe")


# --- versions ---------------------------------------------------------------------------------------------------------


def test_newer_format_is_refused_with_what_to_do(content, tmp_path):
    path = forged(tmp_path / "m.mercer", content, texts={"format": "2"})
    assert refused(path) == "it has format 2, and this version of Mercer reads up to 1: update Mercer to load it."


@pytest.mark.parametrize("version", ["0", "-1", "one", "", None])
def test_no_format_is_refused(version, content, tmp_path):
    assert "format" in refused(forged(tmp_path / "m.mercer", content, texts={"format": version})) or version != "0"


def test_a_file_of_every_format_is_kept():
    assert {int(path.name.split("-")[0]) for path in FORMATS.glob("*.mercer")} == set(range(1, container.FORMAT + 1))


@pytest.mark.parametrize("path", sorted(FORMATS.glob("*.mercer")), ids=lambda path: path.stem)
def test_files_of_earlier_formats_are_read(path):
    model = mercer.load(path)
    assert describe(path)["class"] == type(model).__name__
    targets = (np.where(X[:, 0] > 3, "right", "left"),) if hasattr(model, "classes_") else ()
    assert mercer.verify(model, X, *targets).holds(1e-3)
    if hasattr(model, "embedding_"):
        np.testing.assert_allclose(model.transform(X), model.embedding_, rtol=0, atol=1e-6)
    if hasattr(model, "path_"):
        assert model.path_.at(n_nodes=3).weights.size == 3


def test_another_program_can_read_a_file(whole):
    """With what the page on saving says of the format, and no library but those of JSON and of numbers."""
    count = int.from_bytes(whole[:8], "little")
    head, data = json.loads(whole[8 : 8 + count]), whole[8 + count :]
    texts = head.pop("__metadata__")
    parts = json.loads(texts["mercer.parts"])
    assert (parts[-1]["class"], json.loads(texts["mercer.header"])["class"]) == ("SDPEmbedding", "SDPEmbedding")
    part = parts[parts[-1]["attributes"]["embedding_"]["part"]]
    first, last = head[part["array"]]["data_offsets"]
    numbers = np.frombuffer(data[first:last], part["dtype"])
    numbers = numbers.reshape(part["shape"], order=part["order"])
    np.testing.assert_array_equal(numbers, mercer.SDPEmbedding(random_state=np.random.default_rng(0)).fit(X).embedding_)
    blank = whole.replace(texts["mercer.digest"].encode(), b"0" * 64)
    assert hashlib.blake2b(blank, digest_size=32).hexdigest() == texts["mercer.digest"]


def test_the_page_has_every_word_of_the_format():
    page = (Path(__file__).parents[2] / "docs" / "user_guide" / "saving.rst").read_text()
    words = "part tuple list set frozenset dict float int dtype path array objects sparse class rows member generator"
    for word in words.split():
        assert f'"{word}"' in page or f"``{word}``" in page


# --- forgeries --------------------------------------------------------------------------------------------------------


def _named(parts, name):
    return next(part for part in parts if part.get("class") == name)


def _first(parts, word):
    return next(part for part in parts if word in part)


FORGERIES = {
    "a class that is none": lambda p: _named(p, "Level").update({"class": "os.system"}),
    "a class of another library": lambda p: _named(p, "Level").update({"class": "Pipeline"}),
    "a class by its module": lambda p: _named(p, "Level").update({"class": "mercer.embedding.levels.Level"}),
    "a function in place of a class": lambda p: _named(p, "Level").update({"class": "verify"}),
    "a class that is a list": lambda p: _named(p, "Level").update({"class": ["Level"]}),
    "an attribute that overrides a method": lambda p: _named(p, "SDPEmbedding")["attributes"].update(transform=1),
    "an attribute of the machinery": lambda p: _named(p, "SDPEmbedding")["attributes"].update(__class__="Gaussian"),
    "an attribute that is left out": lambda p: _named(p, "SDPEmbedding")["attributes"].update(_fitted_like=1),
    "a parameter that there is none of": lambda p: _named(p, "SelfTuning")["parameters"].update(exec="x"),
    "a record that lacks a field": lambda p: _named(p, "Level")["parameters"].pop("coordinates"),
    "a model that lacks an attribute": lambda p: _named(p, "SDPEmbedding")["attributes"].pop("coordinates_"),
    "a text in place of coordinates": lambda p: _named(p, "Level")["parameters"].update(coordinates="x"),
    "a number in place of a kernel": lambda p: _named(p, "SDPEmbedding")["attributes"].update(kernel_=3),
    "a parameter out of its range": lambda p: _named(p, "SDPEmbedding")["parameters"].update(radius="x"),
    "bounds that cross": lambda p: _named(p, "EmbeddingCertificate")["parameters"].update(lower=1e9),
    "a type of objects": lambda p: _first(p, "array").update(dtype="|O"),
    "another type": lambda p: _first(p, "array").update(dtype="<i8"),
    "another precision": lambda p: _first(p, "array").update(dtype="<f4"),
    "a type with fields": lambda p: _first(p, "array").update(dtype="<f8,<f8"),
    "a time": lambda p: _first(p, "array").update(dtype="<M8[s]"),
    "a huge text": lambda p: _first(p, "array").update(dtype="<U999999999"),
    "a huge shape": lambda p: _first(p, "array").update(shape=[2**62, 2**62]),
    "a negative shape": lambda p: _first(p, "array").update(shape=[-1]),
    "a shape of texts": lambda p: _first(p, "array").update(shape=["1"]),
    "another order": lambda p: _first(p, "array").update(order="A"),
    "an array that is not there": lambda p: _first(p, "array").update(array="../../etc/passwd"),
    "an entry more": lambda p: _first(p, "array").update(run="x"),
    "a sparse matrix of no kind": lambda p: _first(p, "sparse").update(sparse="linalg"),
    "a sparse matrix of another shape": lambda p: _first(p, "sparse").update(shape=[3, 3]),
    "numbers of a sparse matrix out of place": lambda p: _first(p, "sparse").update(
        indices=_first(p, "sparse")["data"]
    ),
    "a generator of no kind": lambda p: _first(p, "generator").update(bits="BitGenerator"),
    "a generator without state": lambda p: _first(p, "generator").update(state={"dict": []}),
    "a member of no list": lambda p: _first(p, "member").update(member="__init__"),
    "a member of a class": lambda p: _first(p, "member").update(of="SDPEmbedding"),
    "a part that refers to itself": lambda p: _named(p, "Level")["parameters"].update(diagonal={"part": len(p) - 2}),
    "a part that refers beyond": lambda p: _named(p, "Level")["parameters"].update(diagonal={"part": 10**9}),
    "a part that refers before the first": lambda p: _named(p, "Level")["parameters"].update(diagonal={"part": -1}),
    "a part of no kind": lambda p: p.insert(0, {"import": "os"}),
    "a part that is a text": lambda p: p.insert(0, "os"),
    "a table of no class": lambda p: _first(p, "rows").update(rows="Popen"),
    "a table of columns of other lengths": lambda p: _first(p, "rows")["columns"].update(gap={"list": [1.0]}),
    "a table with a column of no field": lambda p: _first(p, "rows")["columns"].update(run={"list": []}),
    "a value of no kind": lambda p: _named(p, "SDPEmbedding")["parameters"].update(tol={"eval": "1"}),
    "a value of two kinds": lambda p: _named(p, "SDPEmbedding")["parameters"].update(tol={"list": [], "tuple": []}),
    "a list that is none": lambda p: _named(p, "SDPEmbedding")["parameters"].update(tol={"list": 3}),
    "a bare list": lambda p: _named(p, "SDPEmbedding")["parameters"].update(tol=[1]),
    "a dict with a key that cannot be one": lambda p: _named(p, "SDPEmbedding")["parameters"].update(
        tol={"dict": [[{"list": []}, 1]]}
    ),
    "a number with ten thousand digits": lambda p: _named(p, "SDPEmbedding")["parameters"].update(
        tol={"int": "9" * 9999}
    ),
    "no attributes": lambda p: _named(p, "SDPEmbedding").update(attributes=None),
    "no model": lambda p: p.pop(),
    "no parts": lambda p: p.clear(),
}


@pytest.mark.parametrize("name", FORGERIES)
def test_forged_parts_are_refused(name, content, tmp_path):
    path = forged(tmp_path / "m.mercer", content, parts=FORGERIES[name])
    refused(path)


def test_the_forger_who_changes_nothing_is_believed(content, tmp_path):
    """The forgeries above are refused for what they say and not for how they are made."""
    path = forged(tmp_path / "m.mercer", content, parts=lambda parts: None, header=lambda header: None)
    np.testing.assert_array_equal(mercer.load(path).fit(X).embedding_.shape, (45, mercer.load(path)._n_features_out))


def test_random_forgeries_are_refused_or_harmless(content, tmp_path):
    """Values of the table of parts that are exchanged, dropped or replaced: no exception but the one of model files."""
    rng, path = np.random.default_rng(1), tmp_path / "m.mercer"
    spare = [None, True, -1, 1e308, "x", "0", [], {}, {"part": 0}, {"tuple": []}, {"float": "nan"}, 2**64, [[[]]]]
    count = 0

    def stir(parts):
        for _ in range(int(rng.integers(1, 4))):
            here = parts
            while isinstance(here, list | dict) and here:
                keys = range(len(here)) if isinstance(here, list) else sorted(here)
                key = keys[int(rng.integers(len(keys)))]
                if not isinstance(here[key], list | dict) or not here[key] or rng.random() < 0.2:
                    here[key] = spare[int(rng.integers(len(spare)))]
                    break
                here = here[key]

    for _ in range(300):
        forged(path, content, parts=stir)
        sentence = ""
        try:
            mercer.load(path)
        except ModelFileError as error:
            sentence = str(error)
        assert not sentence or (sentence.endswith(".") and "\n" not in sentence)
        count += bool(sentence)
    assert count > 200


@pytest.mark.parametrize(
    ("texts", "reason"),
    [
        ({"parts": "[" * 100000 + "]" * 100000}, "its JSON cannot be read"),
        (
            {
                "parts": '[{"class":"Gaussian","attributes":{},"parameters":{"sigma":'
                + '{"tuple":[' * 90
                + "]}" * 90
                + "}}]"
            },
            "deep",
        ),
        ({"parts": "[1, NaN"}, "its JSON cannot be read"),
        ({"parts": "[" + "9" * 5000 + "]"}, "its JSON cannot be read"),
        ({"parts": '[{"class":"Gaussian","attributes":{},"parameters":{"sigma":NaN}}]'}, "its JSON cannot be read"),
        ({"header": '{"class":"SDPEmbedding","class":"SDPEmbedding"}'}, "its JSON cannot be read"),
        ({"parts": None}, "it is no model file"),
        ({"header": None}, "it is no model file"),
        ({"header": "[]"}, "its header names no class"),
        ({"header": '{"class":"eval"}'}, "its header names no class"),
        ({"header": '{"class":"SDPEmbedding","notes":["x"]}'}, "its header is none"),
        ({"header": '{"class":"Gaussian"}'}, "its header says Gaussian, and it holds a SDPEmbedding"),
        ({"header": '{"class":"SDPEmbedding","certificate":null}'}, "its header states another certificate"),
    ],
)
def test_forged_texts_are_refused(texts, reason, content, tmp_path):
    assert reason in refused(forged(tmp_path / "m.mercer", content, texts=texts))


def doubled(first, following, times=60):
    """Parts each of which refers twice to the one before: few bytes, of which a ``repr`` would have no end."""
    return [first, *(json.loads(json.dumps(following).replace('"before"', str(k))) for k in range(times))]


def test_parts_that_double_at_each_step_are_refused_before_they_are_built(content, tmp_path):
    sums = {"class": "Sum", "attributes": {}, "parameters": {side: {"part": "before"} for side in ("left", "right")}}
    bomb = doubled({"class": "Gaussian", "attributes": {}, "parameters": {"sigma": 1.0}}, sums)
    texts = {"header": '{"class":"Sum"}', "parts": json.dumps(bomb)}
    assert "more often than those of any model" in refused(forged(tmp_path / "m.mercer", content, texts=texts))
    lists = {"objects": [{"list": [{"part": "before"}, {"part": "before"}]}], "shape": [1]}
    texts = {"parts": json.dumps(doubled({"objects": [1], "shape": [1]}, lists))}
    assert "more often than those of any model" in refused(forged(tmp_path / "m.mercer", content, texts=texts))


def test_no_model_is_saved_that_could_not_be_loaded(tmp_path, monkeypatch):
    kernel = mercer.Gaussian(sigma=1.0)
    for _ in range(8):
        kernel = kernel + kernel
    mercer.save(kernel, tmp_path / "m.mercer")
    assert repr(mercer.load(tmp_path / "m.mercer")) == repr(kernel)
    monkeypatch.setattr("mercer.io.model_file.MOST_REFERENCES", 500)
    with pytest.raises(TypeError, match="parts inside parts"):
        mercer.save(kernel, tmp_path / "m.mercer")
    assert "more often" in refused(tmp_path / "m.mercer")
    monkeypatch.setattr("mercer.io.model_file.MOST_BRACKETS", 20)
    with pytest.raises(TypeError, match="more lists and mappings than a model file can"):
        mercer.save(kernel, tmp_path / "m.mercer")


@pytest.mark.parametrize("name", ["parts", "header"])
def test_a_file_of_more_lists_than_any_model_is_refused_before_they_are_made(name, content, tmp_path, monkeypatch):
    texts = {name: "[" + ",".join(["[]"] * 2**21) + "]"}
    path, loads = forged(tmp_path / "m.mercer", content, texts=texts), json.loads
    short = lambda text, **how: loads(text, **how) if len(text) < 2**21 else pytest.fail("it was read")  # noqa: E731
    monkeypatch.setattr("json.loads", short)
    assert "more lists and mappings than any model" in refused(path)


def test_a_format_that_is_stated_twice_is_refused(whole, tmp_path):
    head = json.loads(whole[8 : 8 + int.from_bytes(whole[:8], "little")])
    meta = {**head.pop("__metadata__"), "mercer.digest": "0" * 64}
    data = whole[8 + int.from_bytes(whole[:8], "little") :]
    path, text = tmp_path / "m.mercer", json.dumps({"__metadata__": meta, **head}, separators=(",", ":"))
    twice = text.replace('"mercer.format":"1"', '"mercer.format":"1","mercer.format":"9"').encode()
    for written in (text.encode(), twice):
        raw = struct.pack("<Q", len(written)) + written + data
        path.write_bytes(raw.replace(b"0" * 64, hashlib.blake2b(raw, digest_size=32).hexdigest().encode()))
        if written is twice:
            assert refused(path) == "it is no model file."
        else:
            mercer.load(path)


def test_forged_arrays_are_refused(content, tmp_path):
    path = tmp_path / "m.mercer"
    assert "no part refers to" in refused(forged(path, content, arrays=lambda a: a.update(extra=np.zeros(3))))
    assert "has no array" in refused(forged(path, content, arrays=lambda a: a.pop("0")))
    assert "another type or shape" in refused(forged(path, content, arrays=lambda a: a.update({"0": np.zeros((1, 1))})))


def test_headers_of_safetensors_that_promise_too_much_are_refused(tmp_path):
    path, meta = tmp_path / "m.mercer", {"mercer.format": "1", "mercer.digest": "0" * 64}
    sound = {"dtype": "F64", "shape": [1], "data_offsets": [0, 8]}
    for wrong in (
        {"shape": [2**62]},
        {"shape": [2**32, 2**32]},
        {"data_offsets": [0, 2**62]},
        {"data_offsets": [8, 0]},
        {"data_offsets": [4, 12]},
        {"dtype": "OBJECT"},
        {"shape": [-1]},
        {"shape": "1"},
    ):
        path.write_bytes(sealed({"__metadata__": meta, "0": {**sound, **wrong}}, bytes(8)))
        assert refused(path) == "it is no safetensors file."
    path.write_bytes(sealed({"__metadata__": meta, "0": sound}, bytes(8)))
    assert refused(path) == "it is no model file."  # for it has no parts
    path.write_bytes(struct.pack("<Q", 2**63) + b"{}")
    assert "cut off" in refused(path)
    path.write_bytes(sealed({"__metadata__": {**meta, "mercer.twice": '"mercer.digest":"' + "1" * 64}}))
    refused(path)


def test_a_header_larger_than_any_is_not_read(tmp_path, monkeypatch):
    monkeypatch.setattr(container, "MOST_TEXT", 1000)
    with pytest.raises(TypeError, match="more texts and single numbers than a model file can"):
        mercer.save(mercer.Linear().on([str(k) for k in range(1000)]), tmp_path / "m.mercer")
    monkeypatch.undo()
    mercer.save(mercer.Linear().on([str(k) for k in range(1000)]), tmp_path / "m.mercer")
    monkeypatch.setattr(container, "MOST_TEXT", 1000)
    assert "larger than that of any model" in refused(tmp_path / "m.mercer")


def test_file_that_changes_while_it_is_read_is_refused(whole, tmp_path, monkeypatch):
    path = tmp_path / "m.mercer"
    path.write_bytes(whole)
    checked = container._checked_bytes

    def then_replaced(source):
        found = checked(source)
        mercer.save(mercer.Gaussian(1.0), path)
        return found

    monkeypatch.setattr(container, "_checked_bytes", then_replaced)
    assert refused(path) == "it was changed while it was read: load it again."


def test_loading_imports_and_calls_nothing_of_a_file(content, tmp_path, monkeypatch):
    """A class of a name that a module of this process has is not found, and no constructor of it runs."""
    ran = []

    class Harm:
        def __init__(self, *args, **kwargs):
            ran.append(args)

    monkeypatch.setattr(mercer.embedding.levels, "Harm", Harm, raising=False)
    sys.modules["Harm"] = sys.modules[__name__]
    with contextlib.ExitStack() as stack:
        stack.callback(sys.modules.pop, "Harm")
        path = forged(
            tmp_path / "m.mercer", content, parts=lambda parts: _named(parts, "Level").update({"class": "Harm"})
        )
        assert "names the class 'Harm'" in refused(path)
    assert ran == []
    assert signal.SIGKILL


@pytest.mark.parametrize(
    ("value", "kind", "expected"),
    [
        (1.0, float, True),
        (1, float, True),
        (True, float, False),
        (True, int, False),
        (1, bool, False),
        (1.0, int, False),
        ("1", float, False),
        (None, float | None, True),
        ("a", Literal["a", "b"], True),
        ("c", Literal["a", "b"], False),
        ((1, 2), tuple[int, ...], True),
        ((1, "2"), tuple[int, ...], False),
        ((1,), tuple[int, int], False),
        ({"a": 1}, dict[str, int], True),
        ({"a": "b"}, dict[str, int], False),
        ([1, None], list[int], False),
        (np.zeros(2), Numbers, True),
        (np.array(["a"]), Numbers, False),
    ],
)
def test_values_are_of_the_kind_that_a_class_declares(value, kind, expected):
    assert fits(value, kind) is expected
