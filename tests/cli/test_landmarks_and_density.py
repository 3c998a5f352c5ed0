"""``mercer landmarks`` and ``mercer density``: rows that stand for all, and a density to draw from."""

import shlex

import numpy as np
import pytest
from sklearn.datasets import load_iris

import mercer
from mercer.io import read_table

X = load_iris().data
Z = (X - X.mean(axis=0)) / X.std(axis=0)


def test_landmarks_are_those_of_the_library_with_their_lines(folder, call, told):
    model = mercer.QuadratureSparsifier(n_nodes=6).fit(Z)
    said = told("landmarks", "iris.csv", "-n", "6", "--scale")
    assert said["lines_of_landmarks"] == (model.indices_ + 2).tolist()
    assert said["weights"] == model.weights_.tolist()
    assert said["certificate"]["upper"] == model.certificate_.upper
    table = read_table(folder / "iris-landmarks.csv")
    np.testing.assert_array_equal(table["line"].values, model.indices_ + 2)
    np.testing.assert_array_equal(table["weight"].values, model.weights_)
    np.testing.assert_array_equal(table.select(list(read_table("iris.csv").columns[:4])), X[model.indices_])
    text = call("landmarks", "iris.csv", "--trace-fraction", "0.9").stdout
    assert "stand for all, with 90.0% of the trace" in text
    assert (folder / "iris-landmarks.png").read_bytes().startswith(b"\x89PNG")


def test_a_column_of_the_file_keeps_its_name(folder, told):
    (folder / "a.csv").write_text("weight,line\n" + "".join(f"{k},{k % 3}\n" for k in range(12)))
    told("landmarks", "a.csv", "-n", "3", "-o", "b.csv")
    assert read_table(folder / "b.csv").columns == ["line_", "weight_", "weight", "line"]


@pytest.mark.parametrize(
    ("words", "parameters"),
    [
        ((), {"objective": "likelihood"}),
        (("--support", "20", "--objective", "projection"), {"support": 20}),
    ],
)
def test_rows_are_drawn_from_the_density_in_the_units_of_the_file(words, parameters, folder, told):
    options = ("--columns", "petal_length,petal_width", "--scale", *words)
    told("density", "iris.csv", *options, "--sample", "400")
    drawn = np.asarray(read_table(folder / "iris-sample.csv"))
    model = mercer.SumOfSquaresDensity(random_state=0, **parameters).fit(Z[:, 2:])
    expected = model.sample(400, random_state=0) * X[:, 2:].std(axis=0) + X[:, 2:].mean(axis=0)
    np.testing.assert_allclose(drawn, expected, rtol=1e-12)
    said = told("density", "iris.csv", *options, "--output", "scores.csv")
    scores = read_table(folder / "scores.csv")["log_density"].values
    np.testing.assert_allclose(scores, model.score_samples(Z[:, 2:]) - np.log(X[:, 2:].std(axis=0)).sum())
    assert said["mean_log_density"] == pytest.approx(scores.mean())
    nearness = "at an MMD of" if words else f"of mean log p {scores.mean():.4g}"
    assert nearness in said["answer"]
    plain = told("density", "iris.csv", *options, "--score", "iris.csv")
    assert (plain["mean_log_density"], plain["output"]) == (said["mean_log_density"], "iris-scores.csv")


def test_a_density_integrates_to_one_in_the_units_of_the_file(folder, told):
    grid = np.linspace(-3, 12, 1501)
    (folder / "grid.csv").write_text("petal_length\n" + "\n".join(map(str, grid)))
    told("density", "iris.csv", "--columns", "petal_length", "--scale", "--score", "grid.csv", "-o", "g.csv")
    p = np.exp(read_table(folder / "g.csv")["log_density"].values)
    assert np.trapezoid(p, grid) == pytest.approx(1, abs=1e-3)


def test_pictures_of_one_two_and_chosen_columns(folder, call):
    for options in (["--columns", "petal_width"], [], ["--axes", "petal_length,petal_width"]):
        result = call("density", "iris.csv", "--support", "20", "--picture", "a.svg", *options)
        assert result.exit_code == 0, result.output
        drawn = (folder / "a.svg").read_text()
        assert "<svg" in drawn
        (folder / "a.svg").unlink()
    assert "Certified optimal to within" in result.stdout
    assert result.stdout.splitlines()[-1].endswith("--sample 1000")


@pytest.mark.parametrize(
    ("arguments", "code", "sentence"),
    [
        (["landmarks", "iris.csv", "-n", "5", "--trace-fraction", "0.5"], 2, "use one of them"),
        (["landmarks", "iris.csv", "-n", "0"], 2, "not in the range"),
        (["landmarks", "iris.csv", "--model", "a.npz"], 2, "a.npz must end in .mercer"),
        (["density", "iris.csv", "--sample", "5", "--score", "iris.csv"], 2, "one of them at a time"),
        (["density", "iris.csv", "--axes", "species"], 2, "--axes takes one or two of sepal_length"),
        (["density", "iris.csv", "--sigma", "-1"], 1, "sigma"),
        (["density", "iris.csv", "--output", "a.doc"], 2, "names no format to write"),
    ],
)
def test_what_is_wrong_is_one_sentence_and_an_exit_code(arguments, code, sentence, folder, call):
    result = call(*arguments)
    assert result.exit_code == code, result.output
    assert sentence in " ".join(result.output.split())
    assert sum(line.startswith("Error: ") for line in result.stderr.splitlines()) == 1
    assert [path.name for path in folder.iterdir()] == ["iris.csv"]


def test_the_next_command_reads_the_same_rows_and_columns_and_works(folder, call):
    rows = [f"{k};{'' if k == 3 else k % 7};{100 * (k * k % 11)};w" for k in range(30)]
    (folder / "a.csv").write_text("\n".join(["id;x;y;word", *rows]))
    made = call("landmarks", "a.csv", "-n", "5", "--missing", "drop", "--scale", "--without", "id", "--delimiter", ";")
    following = made.stdout.splitlines()[-1].removeprefix("Next").strip()
    assert following == "mercer embed a.csv --missing drop --delimiter ';' --without id --scale --landmarks 5"
    assert call(*shlex.split(following)[1:], "--no-picture").exit_code == 0


def test_a_column_that_counts_rows_is_told_although_some_were_left_out(folder, call):
    rows = [f"{k},{'' if k == 3 else k % 7},{k * k % 11}" for k in range(300)]
    (folder / "a.csv").write_text("\n".join(["id,x,y", *rows]))
    said = call("landmarks", "a.csv", "-n", "5", "--missing", "drop", "--no-picture").stdout
    assert "The column 'id' counts the rows: if it is their number, leave it out with --without." in said
    assert "decides alone" not in said  # --scale would not mend that
    (folder / "b.csv").write_text("\n".join(["income,x,y", *(f"{k * k},{k % 7},{k % 5}" for k in range(300))]))
    said = call("landmarks", "b.csv", "-n", "5", "--no-picture").stdout
    assert "counts the rows" not in said
    assert "income spreads" in said
