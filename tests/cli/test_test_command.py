"""``mercer test``: real files and broken ones, through the whole command."""

import json
import warnings

import numpy as np
import pytest
from click.testing import CliRunner
from scipy.signal import lfilter

from mercer import hsic_test, mmd_test
from mercer.cli.commands import mercer as command
from mercer.cli.questions import TwoSamples


@pytest.fixture
def files(tmp_path, monkeypatch):
    """Files of a person's folder, where the command runs."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    colours = np.array(["red", "blue", "green"])
    for name, n, shift in (("before", 40, 0.0), ("after", 35, 1.5), ("again", 30, 0.0)):
        rows = [f"{170 + 8 * (z + shift):.6f},{60 + 5 * u:.6f},{colours[c]}" for z, u, c in draws(rng, n)]
        (tmp_path / f"{name}.csv").write_text("\n".join(["height,weight,colour", *rows]))
    x = rng.uniform(-1, 1, 60)
    rows = [
        f"{a:.6f};{a * a + 0.05 * b:.6f};{c:.6f};{'pq'[int(abs(a) > 0.5)]}"
        for a, b, c in zip(x, *rng.standard_normal((2, 60)), strict=True)
    ]
    (tmp_path / "plants.csv").write_text("\n".join(["light;growth;noise;kind", *rows]).replace(".", ","))
    return tmp_path


def draws(rng, n):
    return zip(*rng.standard_normal((2, n)), rng.integers(0, 3, n), strict=True)


def run(*arguments: str):
    result = CliRunner().invoke(command, ["test", *map(str, arguments)])
    assert "Traceback" not in result.output
    return result


def answer(*arguments: str) -> dict:
    result = run(*arguments, "--json", "--resamples", "99")
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


def test_two_files_give_the_sentence_the_pvalue_and_the_picture(files):
    result = run("before.csv", "after.csv", "--resamples", "99")
    assert result.exit_code == 0, result.output
    lines = result.stdout.splitlines()
    assert lines[0].startswith("before.csv and after.csv differ: ")
    assert "p = 0.01" in lines[0]
    assert "before.csv (40 rows) and after.csv (35 rows)" in result.stdout
    assert "height, weight, colour (categories)" in result.stdout
    assert (files / "mercer-test.png").read_bytes().startswith(b"\x89PNG")
    same = run("before.csv", "again.csv", "--columns", "weight", "--no-picture", "--resamples", "99")
    assert same.exit_code == 0
    assert same.stdout.startswith("No sign that before.csv and again.csv differ: ")
    assert "Picture" not in same.stdout


def test_the_answer_is_that_of_the_library(files):
    table = np.loadtxt(files / "before.csv", delimiter=",", skiprows=1, usecols=(0, 1))
    other = np.loadtxt(files / "again.csv", delimiter=",", skiprows=1, usecols=(0, 1))
    expected = mmd_test(table, other, n_resamples=99, rng=3)
    found = answer("before.csv", "again.csv", "--without", "colour", "--seed", "3")
    assert (found["pvalue"], found["statistic"]) == (expected.pvalue, expected.statistic)
    assert found["null"] == "permutation"
    assert found["n_resamples"] == 99
    assert len(found["parts"]) == len(expected.parts)
    assert found["picture"] is None
    assert [side["rows"] for side in found["compared"]] == [40, 30]
    assert found["compared"][0]["columns"] == {"height": "numbers", "weight": "numbers"}
    assert list(files.glob("*.png")) == []


def test_many_rows_are_compressed(files):
    table, other = (
        np.loadtxt(files / f"{name}.csv", delimiter=",", skiprows=1, usecols=0)[:, None] for name in ("before", "after")
    )
    for way in ("landmarks", "thinning"):
        expected = mmd_test(table, other, n_resamples=99, compress=way, rng=0)
        found = answer("before.csv", "after.csv", "--columns", "height", "--compress", way)
        assert (found["pvalue"], found["compress"]) == (expected.pvalue, way)
    plants = answer("plants.csv", "--depends", "growth", "--on", "light", "--compress", "landmarks")
    assert plants["pvalue"] <= 0.02


def test_dependence_of_columns(files):
    found = answer("plants.csv", "--depends", "growth", "--on", "light")
    text = np.loadtxt(
        (files / "plants.csv").read_text().replace(",", ".").splitlines(), delimiter=";", skiprows=1, usecols=(0, 1)
    )
    expected = hsic_test(text[:, :1], text[:, 1:], n_resamples=99, rng=0)
    assert found["pvalue"] == expected.pvalue == 0.01
    assert found["answer"].startswith("growth depends on light: ")
    assert [side["name"] for side in found["compared"]] == ["light", "growth"]
    noise = run("plants.csv", "--depends", "noise", "--on", "light,growth", "--resamples", "99", "--output", "a.svg")
    assert noise.exit_code == 0, noise.output
    assert noise.stdout.startswith("No sign that noise depends on light, growth: ")
    assert b"<svg" in (files / "a.svg").read_bytes()
    words = answer("plants.csv", "--depends", "kind", "--on", "light")
    assert words["pvalue"] == 0.01
    everything = answer("plants.csv", "--depends", "light")
    assert list(everything["compared"][0]["columns"]) == ["growth", "noise", "kind"]


def test_groups_inside_one_file(files):
    found = answer("plants.csv", "--by", "kind", "--columns", "growth")
    assert found["pvalue"] == 0.01
    assert [side["name"] for side in found["compared"]] == ["kind p", "kind q"]
    assert found["answer"].startswith("kind p and kind q differ")
    x = np.random.default_rng(2).random(60)
    (files / "g.csv").write_text("g,x\n" + "".join(f"{k % 3},{value:.6f}\n" for k, value in enumerate(x)))
    with_three = run("g.csv", "--by", "g", "--resamples", "99")
    assert with_three.exit_code == 0, with_three.output
    assert with_three.stdout.startswith("No sign that the 3 samples differ")
    assert "g 0 (20 rows), g 1 (20 rows) and g 2 (20 rows)" in with_three.stdout
    assert (files / "mercer-test.png").read_bytes().startswith(b"\x89PNG")
    (files / "codes.csv").write_text("g,x\n" + "".join(f"{1234567 + k % 2},{value:.6f}\n" for k, value in enumerate(x)))
    assert [side["name"] for side in answer("codes.csv", "--by", "g")["compared"]] == ["g 1234567", "g 1234568"]
    two = answer("g.csv", "--by", "g", "--groups", "0,2")
    assert [(side["name"], side["rows"]) for side in two["compared"]] == [("g 0", 20), ("g 2", 20)]


def test_which_columns_carry_the_difference(files):
    found = answer("before.csv", "after.csv", "--explain")
    best = found["columns"][0]
    assert (best["name"], best["pvalue"]) == ("height", 0.01)
    assert all(column["pvalue"] > 0.05 for column in found["columns"][1:])
    text = run("before.csv", "after.csv", "--explain", "--resamples", "99", "--no-picture").stdout
    assert "Explained 1 of 3 columns differ: 'height' (p = 0.01)." in text
    assert answer("before.csv", "after.csv")["columns"] == []
    assert run("plants.csv", "--depends", "growth", "--on", "light", "--explain").exit_code == 2


def test_three_files(files):
    found = answer("before.csv", "after.csv", "again.csv", "--columns", "height")
    assert found["pvalue"] == 0.01
    differing = "(before.csv and after.csv, after.csv and again.csv differ)"
    assert found["answer"].startswith(f"The 3 samples are not all alike {differing}: ")
    assert [pair["corrected_pvalue"] <= 0.05 for pair in found["pairs"]] == [True, False, True]
    assert found["pairs"][1]["names"] == ["before.csv", "again.csv"]
    assert run("before.csv", "after.csv", "again.csv", "--time-series").exit_code == 2


def test_time_series_use_schemes_that_keep_neighbours_together(files):
    rng = np.random.default_rng(1)
    walks = {name: lfilter([1.0], [1.0, -0.95], rng.standard_normal(200)) for name in ("u", "v")}
    np.savez(files / "walks.npz", **walks)
    plain = answer("walks.npz", "--depends", "u", "--on", "v")
    assert plain["pvalue"] <= 0.05  # two series look dependent to a test that takes their rows for independent
    assert any("--time-series" in note for note in plain["notes"])
    right = answer("walks.npz", "--depends", "u", "--on", "v", "--time-series")
    expected = hsic_test(walks["v"], walks["u"], scheme="shifts", n_resamples=99, rng=0)
    assert right["pvalue"] == expected.pvalue
    assert right["pvalue"] > plain["pvalue"]
    assert not any("--time-series" in note for note in right["notes"])
    for name, walk in walks.items():
        np.save(files / f"{name}.npy", walk)
    expected = mmd_test(walks["u"][:, None], walks["v"][:, None], scheme="blocks", n_resamples=99, rng=0)
    assert answer("u.npy", "v.npy", "--time-series")["pvalue"] == expected.pvalue


def test_missing_values_are_refused_by_line_or_left_out(files):
    (files / "gaps.csv").write_text("height,weight,colour\n1,2,red\n,3,blue\n4,5,\n6,7,red\n2,2,blue\n")
    refused = run("gaps.csv", "before.csv")
    assert refused.exit_code == 1
    assert "Line 3 of gaps.csv has no value in the column 'height', and 2 of 5 rows lack one" in refused.output
    assert "--missing drop" in refused.output
    found = answer("gaps.csv", "before.csv", "--missing", "drop")
    assert found["compared"][0]["rows"] == 3
    assert any("2 of 5 rows of gaps.csv lack a value and are left out" in note for note in found["notes"])
    assert (
        answer("gaps.csv", "before.csv", "--columns", "weight")["compared"][0]["rows"] == 5
    )  # gaps elsewhere do not matter


@pytest.mark.parametrize(
    ("first", "second", "note"),
    [
        (
            [[k, v] for k, v in enumerate(np.random.default_rng(0).random(20))],
            None,
            "'a' has another value in every row",
        ),
        (
            np.ones((2, 2)),
            np.zeros((2, 2)),
            "2 and 2 rows can be labelled in 6 ways only, so that p cannot be below 0.17",
        ),
        (np.random.default_rng(0).random((20, 2)), "same", "20 rows stand in both samples"),
        (np.sort(np.random.default_rng(0).random((90, 2)), axis=0), None, "Neighbouring rows are alike (column 'a'"),
    ],
)
def test_what_may_mislead_is_noted(first, second, note, files):
    second = (
        first if isinstance(second, str) else np.random.default_rng(1).random((20, 2)) if second is None else second
    )
    for name, rows in (("a.csv", first), ("b.csv", second)):
        np.savetxt(files / name, rows, delimiter=",", header="a,b", comments="")
    assert any(note in said for said in answer("a.csv", "b.csv")["notes"])


@pytest.mark.parametrize(
    ("arguments", "code", "sentence"),
    [
        ([], 2, "Missing argument"),
        (["before.csv"], 2, "One file alone asks nothing"),
        (["before.csv", "none.csv"], 2, "does not exist"),
        (["before.csv", "after.csv", "--depends", "height"], 2, "--depends takes one file, not 2"),
        (["before.csv", "--by", "colour", "--depends", "height"], 2, "use one of them"),
        (["before.csv", "--on", "height"], 2, "--on needs --depends"),
        (["before.csv", "after.csv", "--groups", "a"], 2, "--groups needs --by"),
        (["before.csv", "after.csv", "--columns", "hight"], 2, "before.csv has no column 'hight'; it has 'height'"),
        (["before.csv", "--depends", "height", "--on", "height"], 2, "stands on both sides"),
        (["before.csv", "--by", "colour", "--groups", "red,pink"], 2, "no group 'pink'"),
        (["before.csv", "--by", "colour", "--groups", "red"], 2, "two or more, each once, not red"),
        (["before.csv", "--by", "height"], 1, "40 different values"),
        (["before.csv", "after.csv", "--resamples", "3"], 2, "not in the range"),
        (["before.csv", "after.csv", "--output", "no/such/a.png"], 1, "does not exist"),
        (["before.csv", "after.csv", "--without", "height,weight,colour"], 2, "No column of before.csv is left"),
        (["before.csv", "plants.csv"], 1, "'light' that before.csv has not"),
        (["before.csv", "ragged.csv"], 1, "Line 3 of ragged.csv has 2 values"),
        (["before.csv", "words.csv"], 1, "Line 5 of words.csv has 'tall' in the column 'height'"),
        (["before.csv", "texts.csv"], 1, "'height' holds numbers in one file and texts, such as 'tall', in texts.csv"),
        (["before.csv", "latin.csv"], 1, "Line 2 of latin.csv is not UTF-8"),
        (["before.csv", "empty.csv"], 1, "empty.csv is empty"),
        (["before.csv", "single.csv"], 1, "single.csv has one row: a comparison needs two or more"),
        (["before.csv", "after.csv", "single.csv"], 1, "single.csv has one row"),
        (["before.csv", "book.xlsx"], 1, "names no format"),
        (["before.csv", "after.csv", "--output", "a.nonsense"], 2, "a.nonsense has a suffix that names no format"),
    ],
)
def test_what_is_wrong_is_one_sentence_and_an_exit_code(arguments, code, sentence, files):
    head = "height,weight,colour\n"
    (files / "ragged.csv").write_text(head + "1,2,red\n3,4\n")
    (files / "words.csv").write_text(head + "1,2,red\n3,4,red\n5,6,red\ntall,7,red\n")
    (files / "texts.csv").write_text(head + "tall,2,red\nsmall,4,blue\n")
    (files / "latin.csv").write_bytes((head + "1,2,gr\xfcn\n").encode("latin-1"))
    (files / "empty.csv").write_text("")
    (files / "single.csv").write_text(head + "1,2,red\n")
    (files / "book.xlsx").write_bytes(b"PK")
    result = run(*arguments)
    assert result.exit_code == code, result.output
    assert sentence in " ".join(result.output.split())
    assert list(files.glob("*.png")) == []


def test_the_help_shows_one_example_a_line():
    shown = run("--help").output
    assert "  mercer test plants.csv --by species " in shown
    assert "\\b" not in shown


def test_samples_of_few_values_may_have_rows_in_common(files):
    for name in ("one", "two"):
        (files / f"{name}.csv").write_text("a,b\n" + "1,x\n2,y\n3,x\n" * 8)
    said = CliRunner().invoke(command, ["test", "one.csv", "two.csv", "--no-picture"])
    assert said.exit_code == 0, said.output
    assert "stand in both samples" not in said.stdout


def test_samples_that_can_be_labelled_in_more_ways_than_a_double_holds(files):
    rng = np.random.default_rng(0)
    for name in ("one", "two"):
        np.savetxt(files / f"{name}.csv", rng.normal(size=(600, 1)), header="a", comments="")
    said = CliRunner().invoke(command, ["test", "one.csv", "two.csv", "--no-picture", "--resamples", "19"])
    assert said.exit_code == 0, said.output
    assert "labelled" not in said.stdout


def test_a_warning_of_the_library_is_a_note(files, monkeypatch):
    ask = TwoSamples.ask

    def warning(*arguments):
        warnings.warn("Take more resamples.", UserWarning, stacklevel=1)
        return ask(*arguments)

    monkeypatch.setattr(TwoSamples, "ask", warning)
    said = CliRunner().invoke(command, ["test", "before.csv", "after.csv", "--no-picture"])
    assert said.exit_code == 0, said.output
    assert "Note      Take more resamples." in said.stdout
