"""``mercer transform``, ``verify``, ``novelty``, ``info``: what is asked of a model file."""

import numpy as np
import pytest
from sklearn.datasets import load_iris

import mercer
from mercer.io import Preparation, describe, read_table, write_table

X = load_iris().data


@pytest.fixture
def model(folder, call):
    """A model of standardised flowers, and every third row of them in another order of columns."""
    made = call("embed", "iris.csv", "--scale", "--model", "iris.mercer", "--output", "a.csv", "--no-picture")
    assert made.exit_code == 0, made.output
    assert made.stdout.splitlines()[-1] == "Next         mercer verify iris.mercer iris.csv"
    table = read_table(folder / "iris.csv").take(np.arange(0, 150, 3))
    mixed = {part.name: part.to_list() for part in reversed(table.parts)} | {"more": list(range(50))}
    write_table(mixed, folder / "new.csv")
    return folder / "iris.mercer"


def test_new_rows_are_standardised_as_those_of_the_fit(model, folder, call, told):
    made = call("transform", "iris.mercer", "new.csv")
    assert made.exit_code == 0, made.output
    assert "4 columns (sepal_length, sepal_width, petal_length, petal_width), standardised" in made.stdout
    found = np.asarray(read_table(folder / "new-coordinates.csv"))
    np.testing.assert_allclose(found, np.asarray(read_table(folder / "a.csv"))[::3], atol=1e-5)  # residual_tol
    scaled = (X - X.mean(axis=0)) / X.std(axis=0)
    expected = mercer.load(model).transform(scaled[::3])
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-12)
    assert told("transform", "iris.mercer", "new.csv", "-o", "b.npy")["standardised"] is True
    np.testing.assert_array_equal(np.load(folder / "b.npy"), found)
    piped = call("transform", "iris.mercer", "-", "--output", "-", input=(folder / "new.csv").read_bytes())
    assert piped.stdout == (folder / "new-coordinates.csv").read_text()


def test_what_was_done_to_the_columns_travels_with_the_model(model, told):
    kept = Preparation.from_dict(describe(model)["notes"]["preparation"])
    assert kept.columns == ("sepal_length", "sepal_width", "petal_length", "petal_width")
    np.testing.assert_allclose(kept.means, X.mean(axis=0))
    np.testing.assert_allclose(kept.scales, X.std(axis=0))
    said = told("info", "iris.mercer")
    assert said["class"] == "SDPEmbedding"
    assert said["preparation"]["columns"] == list(kept.columns)


def test_all_levels_are_told_with_their_proofs(model, call, told):
    levels = mercer.load(model).levels_
    assert len(levels) > 1
    assert [each["words"] for each in told("info", "iris.mercer")["levels"]] == [str(e.certificate) for e in levels]
    assert f"Level {len(levels)}      {levels[-1].certificate}" in call("info", "iris.mercer").stdout


def test_the_certificate_is_proved_again_from_the_file_and_the_data(model, folder, call, told):
    held = call("verify", "iris.mercer", "iris.csv")
    assert held.exit_code == 0, held.output
    assert held.stdout.startswith("The certificate of iris.mercer holds. Certified optimal to within")
    assert told("verify", "iris.mercer", "iris.csv")["certificate"]["relative_gap"] <= 1e-6
    strict = told("verify", "iris.mercer", "iris.csv", "--tol", "1e-14", code=3)
    assert (strict["holds"], strict["why"]) == (False, None)
    lines = (folder / "iris.csv").read_text().splitlines()
    lines[1] = "9" + lines[1][1:]
    (folder / "changed.csv").write_text("\n".join(lines))
    changed = call("verify", "iris.mercer", "changed.csv")
    assert changed.exit_code == 3
    assert changed.stdout.startswith("The certificate of iris.mercer does not hold. ")
    assert told("verify", "iris.mercer", "changed.csv", code=3)["why"]
    assert call("verify", "iris.mercer", "iris.csv", "--quiet").output == ""
    assert "does not hold" in call("verify", "iris.mercer", "changed.csv", "--quiet").output
    fewer = call("verify", "iris.mercer", "new.csv")
    assert fewer.exit_code == 1
    assert "fitted to 150 rows and new.csv has 50" in fewer.output


def test_the_rows_most_unlike_the_data_come_first(model, folder, call, told):
    rows = (folder / "iris.csv").read_text().splitlines()
    rows[8] = "30,30,30,30,unknown"
    (folder / "odd.csv").write_text("\n".join(rows))
    said = told("novelty", "iris.mercer", "odd.csv", "-n", "3", "-o", "scores.tsv")
    assert said["most_novel"][0]["line"] == 9
    assert len(said["most_novel"]) == 3
    scores = read_table(folder / "scores.tsv")["novelty"].values
    assert scores[7] == scores.max() == said["most_novel"][0]["novelty"]
    scaled = (X - X.mean(axis=0)) / X.std(axis=0)
    np.testing.assert_allclose(scores[8:], mercer.load(model).novelty(scaled[8:]), rtol=1e-9)
    assert "line 9 of odd.csv" in call("novelty", "iris.mercer", "odd.csv").stdout.splitlines()[2]


def test_a_table_is_its_own_reference(folder, call, told):
    rows = (folder / "iris.csv").read_text().splitlines()
    rows[8] = "30,30,30,30,unknown"
    (folder / "odd.csv").write_text("\n".join(rows))
    said = told("novelty", "odd.csv", "-n", "2", "-o", "scores.csv")
    assert said["method"] == "NoveltyDetector"
    assert said["most_novel"][0]["line"] == 9
    points = np.asarray(read_table(folder / "odd.csv").without(["species"]))
    detector = mercer.NoveltyDetector().fit(points)
    np.testing.assert_allclose(read_table(folder / "scores.csv")["novelty"].values, detector.novelty(points), rtol=1e-9)
    assert said["novel"] == np.sum(detector.predict(points) == -1) > 0
    assert said["threshold"] == -detector.offset_
    other = told("novelty", "iris.csv", "odd.csv", "-o", "b.csv")
    assert other["most_novel"][0]["line"] == 9
    expected = mercer.NoveltyDetector().fit(X).novelty(points)
    np.testing.assert_allclose(read_table(folder / "b.csv")["novelty"].values, expected, rtol=1e-9)
    assert f"{other['novel']} of the rows are novel" in call("novelty", "iris.csv", "odd.csv").stdout
    mercer.save(detector, "detector.mercer")
    assert told("novelty", "detector.mercer", "odd.csv")["most_novel"] == told("novelty", "odd.csv")["most_novel"]


def test_units_of_a_table_do_not_mislead_a_detector(folder, call):
    values = np.random.default_rng(0).normal(size=(60, 2)) * [1.0, 1e5]
    values[17] = [8.0, 0.0]
    write_table({"a": values[:, 0].tolist(), "b": values[:, 1].tolist()}, folder / "units.csv")
    made = call("novelty", "units.csv", "-n", "1")
    assert "line 19 of units.csv" in made.stdout
    assert "decides alone" not in made.output


def test_models_that_python_saved_take_the_numbers_of_a_file(folder, call, told):
    mercer.save(mercer.SDPEmbedding(n_components=2, random_state=0).fit(X), "plain.mercer")
    assert told("verify", "plain.mercer", "iris.csv")["holds"] is True
    assert told("transform", "plain.mercer", "iris.csv")["coordinates"] == 2
    wrong = call("transform", "plain.mercer", "iris.csv", "--without", "sepal_width")
    assert wrong.exit_code == 1
    assert "plain.mercer was fitted to 4 columns and iris.csv has 3" in wrong.output


def test_installation(told, call):
    said = told("info")
    assert said["version"] == mercer.__version__
    assert said["packages"]["numpy"] == np.__version__
    assert set(said["optional"]) >= {"torch", "pyarrow", "anndata"}
    assert said["processors"] >= 1
    assert f"Mercer {mercer.__version__} on Python" in call("info").stdout


@pytest.mark.parametrize(
    ("arguments", "code", "sentence"),
    [
        (["transform", "none.mercer", "iris.csv"], 2, "does not exist"),
        (["transform", "iris.mercer"], 2, "Missing argument 'FILE'"),
        (["transform", "iris.csv", "iris.csv"], 1, "iris.csv cannot be loaded"),
        (["verify", "cut.mercer", "iris.csv"], 1, "cut.mercer cannot be loaded"),
        (["transform", "iris.mercer", "fewer.csv"], 2, "fewer.csv has no column 'petal_length'"),
        (["transform", "iris.mercer", "words.csv"], 1, "'sepal_length' of words.csv holds words, but held numbers"),
        (["transform", "kernel.mercer", "iris.csv"], 1, "of the class Gaussian, which gives rows no coordinates"),
        (["novelty", "kernel.mercer", "iris.csv"], 1, "which gives no scores"),
        (["novelty", "iris.mercer"], 2, "iris.mercer is a model: name the FILE whose rows are to be scored"),
        (["novelty", "cut.mercer", "iris.csv"], 1, "cut.mercer cannot be loaded"),
        (["novelty", "words.csv"], 1, "a minimum of 2 is required"),
        (["transform", "iris.mercer", "iris.csv", "-o", "a.xlsx"], 2, "names no format to write"),
        (["info", "cut.mercer"], 1, "cut.mercer cannot be loaded"),
    ],
)
def test_what_is_wrong_is_one_sentence_and_an_exit_code(arguments, code, sentence, model, folder, call):
    (folder / "cut.mercer").write_bytes(model.read_bytes()[:5000])
    (folder / "fewer.csv").write_text("sepal_length,sepal_width\n1,2\n")
    (folder / "words.csv").write_text("sepal_length,sepal_width,petal_length,petal_width\nlong,1,2,3\n")
    mercer.save(mercer.Gaussian(sigma=1.0), "kernel.mercer")
    before = sorted(folder.iterdir())
    result = call(*arguments)
    assert result.exit_code == code, result.output
    assert sentence in " ".join(result.output.split())
    assert sum(line.startswith("Error: ") for line in result.stderr.splitlines()) == 1
    assert sorted(folder.iterdir()) == before


@pytest.mark.parametrize(
    ("arguments", "proved"),
    [
        (["embed", "--method", "kernel-pca"], True),
        (["embed", "--method", "diffusion"], False),
        (["embed", "--method", "unfolding", "--landmarks", "40", "--tol", "1e-3"], True),
        (["embed", "--kernel", "mixed", "--scale"], True),
        (["landmarks", "-n", "8", "--scale"], True),
        (["density", "--columns", "petal_length,petal_width", "--support", "20", "--scale"], True),
    ],
    ids=lambda value: "-".join(value[:3]) if isinstance(value, list) else None,
)
def test_every_kind_of_model_is_kept_and_proved_again(arguments, proved, folder, call, told):
    made = call(arguments[0], "iris.csv", *arguments[1:], "--model", "m.mercer", "--no-picture", "--output", "out.csv")
    assert made.exit_code == 0, made.output
    assert told("info", "m.mercer")["class"]
    checked = call("verify", "m.mercer", "iris.csv")
    assert checked.exit_code == (0 if proved else 1), checked.output
    if not proved:
        assert "Error: verify takes a fitted" in checked.stderr
    if arguments[0] == "embed":
        again = call("transform", "m.mercer", "iris.csv", "-o", "again.csv")
        assert again.exit_code == 0, again.output
        first, second = (np.asarray(read_table(folder / f"{name}.csv")) for name in ("out", "again"))
        spread = np.abs(first).max()
        assert np.median(np.abs(first - second)) <= 1e-5 * spread


def test_notes_of_a_file_are_what_json_has(folder):
    kernel = mercer.Gaussian(sigma=1.0)
    mercer.save(kernel, "a.mercer", notes={"by": "me", "numbers": [1, 2.5, None], "more": {"x": True}})
    assert describe("a.mercer")["notes"] == {"by": "me", "numbers": [1, 2.5, None], "more": {"x": True}}
    mercer.save(kernel, "b.mercer")
    assert describe("b.mercer")["notes"] is None
    for wrong in ({"x": {1, 2}}, {"x": float("nan")}):
        with pytest.raises(mercer.io.UnsavableError, match="notes must be what JSON has"):
            mercer.save(kernel, "c.mercer", notes=wrong)
    assert not (folder / "c.mercer").exists()
