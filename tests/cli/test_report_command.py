"""``mercer report`` and ``mercer embed --report``: a page of a model and its data."""

import json
import re

import pytest

from mercer.cli import pages


@pytest.fixture
def model(folder, call):
    options = ["--model", "iris.mercer", "--report", "first.html", "--label", "species", "--no-picture", "--scale"]
    made = call("embed", "iris.csv", *options)
    assert made.exit_code == 0, made.output
    assert "Page         first.html" in made.stdout.splitlines()
    return folder / "iris.mercer"


def test_a_page_has_the_columns_of_the_file_and_its_title(model, folder, call, told):
    made = call("report", "iris.mercer", "iris.csv", "--label", "species", "--title", "Flowers <of> 1936")
    assert made.exit_code == 0, made.output
    assert made.stdout.startswith("iris.html shows iris.csv: 150 rows, 4 columns")
    page = (folder / "iris.html").read_text()
    for words in ("Flowers &lt;of&gt; 1936", "petal_width", "versicolor"):
        assert words in page
    first = (folder / "first.html").read_text()
    assert "versicolor" in first
    assert "iris.csv" in first
    assert told("report", "iris.mercer", "iris.csv", "-o", "plain.html")["output"] == "plain.html"
    assert (folder / "plain.html").exists()


def test_a_page_shows_the_rank_path_where_it_is_asked_for(model, folder, call, monkeypatch):
    monkeypatch.setattr(pages, "_MOST_OF_A_PATH", 60)
    made = call("report", "iris.mercer", "iris.csv", "--rank-path")
    assert made.exit_code == 0, made.output
    assert "The rank path is that of 60 rows drawn at random." in made.output
    assert "Rank path" in made.stdout  # what it suggests, in words
    assert '"Rank path"' in (folder / "iris.html").read_text()
    assert '"Rank path"' not in (folder / "first.html").read_text()


def test_a_page_shows_the_map_in_the_plane_where_it_is_asked_for(model, folder, call):
    assert '"Plane map"' not in (folder / "first.html").read_text()
    made = call("report", "iris.mercer", "iris.csv", "--plane-map")
    assert made.exit_code == 0, made.output
    said = next(line for line in made.stdout.splitlines() if line.startswith("Map "))
    page = (folder / "iris.html").read_text()
    assert '"Plane map"' in page
    assert said.removeprefix("Map").strip() in page
    call("embed", "iris.csv", "--scale", "--picture", "map.png", "--report", "both.html")
    assert '"Plane map"' in (folder / "both.html").read_text()


@pytest.mark.parametrize(
    ("arguments", "code", "sentence"),
    [
        (["iris.mercer", "iris.csv", "-o", "a.pdf"], 2, "a.pdf must end in .html"),
        (["iris.mercer", "iris.csv", "--label", "kind"], 2, "iris.csv has no column 'kind'"),
        (["l.mercer", "iris.csv"], 1, "QuadratureSparsifier has no embedding_ to show"),
    ],
)
def test_what_is_wrong_is_one_sentence_and_an_exit_code(arguments, code, sentence, model, folder, call):
    call("landmarks", "iris.csv", "-n", "4", "--model", "l.mercer", "--no-picture")
    before = sorted(folder.iterdir())
    result = call("report", *arguments)
    assert result.exit_code == code, result.output
    assert sentence in " ".join(result.output.split())
    assert sorted(folder.iterdir()) == before


def test_a_page_shows_all_columns_of_the_rows_that_are_kept_and_their_lines(folder, call):
    rows = [f"{k},{'' if k == 3 else k % 7},{k * k % 11},name {k}" for k in range(30)]
    (folder / "a.csv").write_text("\n".join(["id,x,y,who", *rows]))
    made = call("embed", "a.csv", "--missing", "drop", "--without", "id", "--report", "a.html", "--no-picture")
    assert made.exit_code == 0, made.output
    described = re.search(r'id="description"[^>]*>(.*?)</script>', (folder / "a.html").read_text(), re.DOTALL)[1]
    page = json.loads(described)
    assert [column["name"] for column in page["columns"]][:5] == ["line of the file", "id", "x", "y", "who"]
    assert page["n"] == 29
    assert page["place"] == "line of the file"
    assert page["colour"] != "who"  # another word in every row
