"""``mercer embed``: a file in, coordinates with a proof and a picture out."""

from contextlib import closing
from pathlib import Path

import click
import numpy as np
import pytest
from sklearn.datasets import load_iris

import mercer
from mercer.cli.checkpoints import KeptRun
from mercer.cli.commands import mercer as command
from mercer.cli.saying import called_again
from mercer.io import read_table

IRIS = load_iris()
NAMES = ("sepal_length", "sepal_width", "petal_length", "petal_width")


@pytest.fixture
def run(call):
    return lambda *arguments, **options: call("embed", *arguments, **options)


@pytest.fixture
def answer(told):
    return lambda *arguments: told("embed", *arguments)


def test_a_file_alone_ends_with_the_proof_the_picture_and_what_to_try_next(folder, run):
    result = run("iris.csv")
    assert result.exit_code == 0, result.output
    lines = result.stdout.splitlines()
    assert lines[0].startswith(f"iris.csv: 150 rows, 4 columns ({', '.join(NAMES)}), embedded in ")
    assert "Certified optimal to within" in next(line for line in lines if line.startswith("Certificate"))
    assert any(line.startswith("Note") and "species holds words and is left out" in line for line in lines)
    assert any(line.split() == ["Picture", "iris-map.png"] for line in lines)
    assert lines[-1].startswith("Next         mercer embed iris.csv --")
    assert (folder / "iris-map.png").read_bytes().startswith(b"\x89PNG")
    assert sorted(path.name for path in folder.iterdir()) == ["iris-map.png", "iris.csv"]
    assert "Solving the semi-definite programme …" in result.stderr.splitlines()


def test_the_coordinates_are_those_of_the_library_to_the_last_digit(folder, answer):
    model = mercer.SDPEmbedding(random_state=0).fit(IRIS.data)
    told = answer("iris.csv", "--output", "a.csv", "--label", "species")
    table = read_table(folder / "a.csv")
    assert table["species"].to_list() == [str(IRIS.target_names[kind]) for kind in IRIS.target]
    np.testing.assert_array_equal(table.without(["species"]), model.embedding_)
    assert told["coordinates"] == model.embedding_.shape[1]
    assert told["certificate"]["upper"] == model.certificate_.upper
    assert [level["rank"] for level in told["levels"]] == [level.rank for level in model.levels_]
    assert told["columns"] == list(NAMES)
    assert told["picture"] is None
    assert list(folder.glob("*.png")) == []


@pytest.mark.parametrize("ending", ["csv", "tsv", "npy", "npz", "parquet"])
def test_the_ending_says_the_format(ending, folder, answer):
    told = answer("iris.csv", "--method", "kernel-pca", "--sigma", "1", "--output", f"a.{ending}")
    expected = mercer.KernelPCA(mercer.Gaussian(sigma=1.0), certify=True, random_state=0).fit(IRIS.data)
    np.testing.assert_array_equal(read_table(folder / f"a.{ending}"), expected.embedding_)
    assert told["certificate"]["words"] == str(expected.certificate_)


def test_standardised_columns(folder, answer):
    X = (IRIS.data - IRIS.data.mean(axis=0)) / IRIS.data.std(axis=0)
    told = answer("iris.csv", "--scale", "--method", "diffusion", "--output", "a.npy")
    np.testing.assert_array_equal(np.load(folder / "a.npy"), mercer.DiffusionMaps(random_state=0).fit_transform(X))
    assert told["standardised"] is True
    assert "standardised" in told["answer"]
    assert told["certificate"] is None


def test_standard_input_and_output(folder, run):
    text = (folder / "iris.csv").read_bytes()
    piped = run("-", "--output", "-", "--method", "diffusion", input=text)
    assert piped.exit_code == 0, piped.output
    again = run("iris.csv", "--output", "-", "--method", "diffusion")
    assert piped.stdout == again.stdout
    assert len(piped.stdout.splitlines()) == 151
    assert "standard input: 150 rows" in piped.stderr
    quiet = run("iris.csv", "--output", "-", "--method", "diffusion", "--quiet")
    assert (quiet.stdout, quiet.stderr) == (again.stdout, "")


def test_other_columns_methods_and_kernels(folder, answer):
    assert answer("iris.csv", "--columns", "petal_length,petal_width", "--method", "diffusion")["columns"] == [
        *NAMES[2:]
    ]
    assert answer("iris.csv", "--without", "sepal_width", "--method", "diffusion")["columns"] == [NAMES[0], *NAMES[2:]]
    mixed = answer("iris.csv", "--kernel", "mixed", "--method", "kernel-pca")
    assert mixed["columns"] == [*NAMES, "species"]
    assert mixed["categories"] == ["species"]
    unfolded = answer("iris.csv", "--method", "unfolding", "--neighbors", "5", "--landmarks", "40", "--tol", "1e-3")
    assert unfolded["method"] == "MaximumVarianceUnfolding"
    assert unfolded["certificate"]["relative_gap"] <= 1e-3
    assert "n_neighbors=9" in answer("iris.csv", "--neighbors", "9", "--landmarks", "60")["kernel"]
    few = answer("iris.csv", "--sigma", "median", "--components", "3", "--tol", "1e-4")
    assert few["coordinates"] == 3
    assert few["kernel"].startswith("Gaussian(")


def test_rows_that_lack_a_value_are_refused_or_left_out_and_the_lines_say_which(folder, run, answer):
    lines = (folder / "iris.csv").read_text().splitlines()
    lines[3] = "," + lines[3].partition(",")[2]
    (folder / "gaps.csv").write_text("\n".join(lines))
    refused = run("gaps.csv")
    assert refused.exit_code == 1
    assert "Line 4 of gaps.csv has no value in the column 'sepal_length'" in refused.output
    told = answer("gaps.csv", "--missing", "drop", "--label", "species", "--method", "diffusion", "--output", "a.csv")
    assert told["rows"] == 149
    table = read_table(folder / "a.csv")
    assert table["line"].to_list()[:3] == [2, 3, 5]
    assert table["species"].to_list().count("setosa") == 49  # labels went with their rows


@pytest.mark.parametrize(
    ("content", "options", "note"),
    [
        ("id,a,b\n" + "".join(f"{k},{k % 7},{k * k % 11}\n" for k in range(30)), [], "'id' counts the rows"),
        ("a,b\n" + "".join(f"{1000 * (k % 7)},{k * k % 11}\n" for k in range(30)), [], "--scale makes columns count"),
        ("a,b,c\n" + "".join(f"{k % 7},{k * k % 11},4\n" for k in range(30)), ["--scale"], "c has the same value"),
        ("".join(f"{k % 7},{k * k % 11}\n" for k in range(30)), [], "read as values, not as the names"),
    ],
)
def test_what_may_mislead_is_noted(content, options, note, folder, answer):
    (folder / "a.csv").write_text(content)
    assert any(note in said for said in answer("a.csv", "--method", "diffusion", "--sigma", "5", *options)["notes"])


def test_three_rows_are_embedded_without_a_picture(folder, run):
    (folder / "a.csv").write_text("a,b\n1,2\n3,5\n4,1\n")
    result = run("a.csv", "--sigma", "3")
    assert result.exit_code == 0, result.output
    assert "There is no picture: it takes four rows" in result.stdout
    assert list(folder.glob("*.png")) == []


def test_numbers_as_labels_are_shades_and_many_words_few_colours(folder, run):
    for label in ("petal_width", "species"):
        result = run("iris.csv", "--label", label, "--method", "diffusion", "--picture", f"{label}.svg")
        assert result.exit_code == 0, result.output
        assert b"<svg" in (folder / f"{label}.svg").read_bytes()
    rows = "".join(f"{k % 7},{k * k % 11},w{k % 25}\n" for k in range(60))
    (folder / "a.csv").write_text("a,b,word\n" + rows)
    result = run("a.csv", "--label", "word", "--method", "diffusion", "--sigma", "5", "--picture", "a.svg")
    assert result.exit_code == 0, result.output
    assert "other" in (folder / "a.svg").read_text()


@pytest.mark.parametrize(
    ("arguments", "code", "sentence"),
    [
        ([], 2, "Missing argument 'FILE'"),
        (["none.csv"], 2, "does not exist"),
        (["iris.csv", "--label", "kind"], 2, "iris.csv has no column 'kind'"),
        (["iris.csv", "--columns", "species"], 1, "no column of numbers: species hold words"),
        (["iris.csv", "--output", "a.xlsx"], 2, "a.xlsx has a suffix that names no format to write"),
        (["iris.csv", "--output", "no/such/a.csv"], 1, "does not exist: create it"),
        (["iris.csv", "--picture", "a.nonsense"], 2, "names no format of pictures"),
        (["iris.csv", "--sigma", "1", "--kernel", "cosine"], 2, "the kernel cosine has not"),
        (["iris.csv", "--sigma", "wide"], 1, "sigma='wide'"),
        (["iris.csv", "--neighbors", "5", "--sigma", "1"], 2, "--neighbors is of the kernel self-tuning"),
        (["iris.csv", "--method", "unfolding", "--kernel", "gaussian"], 2, "--kernel has no meaning"),
        (["iris.csv", "--method", "diffusion", "--tol", "1e-3"], 2, "--tol has no meaning"),
        (["iris.csv", "--method", "diffusion", "--checkpoint", "a.npz"], 2, "--checkpoint has no meaning"),
        (["iris.csv", "--sigma", "1e9"], 1, "All points look alike"),
        (["one.csv"], 1, "minimum of 2 is required"),
    ],
)
def test_what_is_wrong_is_one_sentence_and_an_exit_code(arguments, code, sentence, folder, run):
    (folder / "one.csv").write_text("a,b\n1,2\n")
    before = sorted(folder.iterdir())
    result = run(*arguments)
    assert result.exit_code == code, result.output
    assert sentence in " ".join(result.output.split())
    assert sum(line.startswith("Error: ") for line in result.stderr.splitlines()) == 1
    assert sorted(folder.iterdir()) == before


def test_a_format_that_cannot_be_written_is_refused_before_the_work(folder, call, monkeypatch):
    monkeypatch.setattr("mercer.io.write.find_spec", lambda name: None)
    result = call("embed", "iris.csv", "--output", "a.parquet")
    assert result.exit_code == 1
    assert result.stderr == "Error: Parquet files need pyarrow: pip install pyarrow.\n"


def test_a_checkpoint_takes_the_place_of_no_other(folder):
    for expected in ("a.checkpoint.npz", "a.checkpoint2.npz", "a.checkpoint3.npz"):
        with closing(KeptRun(None, Path("a.csv"))) as kept:
            kept.path.write_text(expected)
            assert str(kept.kept()) == expected
    assert (folder / "a.checkpoint.npz").read_text() == "a.checkpoint.npz"


@pytest.mark.parametrize("given", [["--checkpoint", "old.npz"], ["--checkpoint=old.npz"], []])
def test_the_words_of_a_call_that_goes_on_name_one_checkpoint(given):
    with click.Context(command) as context:
        context.meta["mercer.called"] = ["embed", "a.csv", *given, "--scale"]
        again = called_again(["--checkpoint", "new.npz"], without=["--checkpoint"])
    assert again == ["mercer", "embed", "a.csv", "--scale", "--checkpoint", "new.npz"]
