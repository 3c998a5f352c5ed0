"""The README's example runs as it is printed, its links lead somewhere, and its numbers are those of demo and tables."""

import re
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from PIL import Image

README = Path(__file__).parents[2] / "README.md"
NUMBER = re.compile(r"(?<![\w.])\d[\d ]*(?:[.,]\d+)*(?:e-?\d+)?(?![\w])")

pytestmark = pytest.mark.skipif(not README.is_file(), reason="installed without the repository's README")


@pytest.fixture(scope="module")
def text():
    return README.read_text()


def test_example_runs(text, capsys):
    blocks = re.findall(r"```python\n(.*?)```", text, flags=re.DOTALL)
    assert len(blocks) == 1
    names: dict[str, object] = {}
    exec(blocks[0], names)
    assert "Certified optimal" in capsys.readouterr().out
    assert names["coordinates"].shape[0] == names["scores"].shape[0] == names["kernel"].shape[0]


def test_two_commands(text):
    commands = re.findall(r"```bash\n(.*?)```", text, flags=re.DOTALL)
    assert [command.strip().rpartition(" ")[2] for command in commands] == ["demo", ".venv/bin/pytest"]
    assert all(command.count("\n") == 1 for command in commands)


def test_links_lead_to_files(text):
    targets = re.findall(r"\]\(([^)#]+)\)", text)
    assert len(targets) > 15
    assert [target for target in targets if not (README.parent / target).is_file()] == []


def rows(text):
    """The rows of the table: what is said, and the page that says it."""
    lines = [line for line in text.splitlines() if line.startswith("| ") and "](benchmarks/results/" in line]
    for line in lines:
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        yield " ".join(cells[:-1]), README.parent / re.search(r"\(([^)]*)\)", cells[-1])[1]


def spelled(number):
    """The same number as pages spell it."""
    plain = number.strip().replace(" ", "").replace(",", "")
    return {number.strip(), plain, f"{float(plain):,.0f}"} if plain.isdigit() else {number.strip(), plain}


def test_the_tables_say_what_the_readme_says(text):
    found = list(rows(text))
    assert len(found) > 8
    for said, page in found:
        source = page.read_text()
        for number in NUMBER.findall(said):
            wanted = "|".join(map(re.escape, spelled(number)))
            assert re.search(rf"(?<![\d.])(?:{wanted})(?![\d])", source), f"{page.name} has no {number!r}: {said}"


# Small numbers stand in any page: these rows are compared with the page's own sentence, made of the row's numbers.
SENTENCES = {
    "classes found at defaults": "ahead in {1}, level in {2}, behind in {3} of {0}",
    "classes among outliers": "ahead in 0, level in {1}, behind in {2} of {0}",
    "novel rows at defaults": "ahead in {1}, level in {2}, behind in {3} of {0}",
    "two samples told apart": "in {1} of {0} settings",
    "dependence found": "in {1} of {0} settings",
    "densities, held-out": "in {0} cells: sum of squares, likelihood {1}, kernel density {2}, Gaussian mixture {3}",
}


def test_rows_of_small_numbers_are_sentences_of_their_page(text):
    told = dict(rows(text))
    for start, sentence in SENTENCES.items():
        (said,) = (each for each in told if each.startswith(start))
        source = " ".join(told[said].read_text().split())
        assert sentence.format(*(number.strip() for number in NUMBER.findall(said))) in source, said


def test_the_readme_says_where_we_lose(text):
    assert sum("**" in said for said, _ in rows(text)) >= 5
    assert "(docs/where_we_lose.rst)" in text


def test_picture_and_numbers_are_those_of_the_demo(text, tmp_path):
    from mercer.cli.commands import mercer

    path = tmp_path / "demo.png"
    run = CliRunner().invoke(mercer, ["demo", "--output", str(path)])
    assert run.exit_code == 0, run.output
    paragraph = re.search(r"The demo draws this: (.*?)\n\n", text, flags=re.DOTALL)[1].replace("\n", " ")
    printed = run.output
    assert re.match(r"(\d+) points", paragraph)[0] in printed
    assert re.search(r"rank (\d+)", paragraph)[0] in printed
    gap = float(re.search(r"to within ([\d.e-]+):", printed)[1])
    assert gap <= float(re.search(r"to within ([\d.e-]+),", paragraph)[1])
    assert paragraph[paragraph.index("set apart") :].rstrip(".") in printed
    drawn, shown = (
        Image.open(each).convert("RGB") for each in (path, README.parent / "docs/_static/three_clusters.png")
    )
    assert drawn.size == shown.size
    small = [np.asarray(each.resize((252, 68)), dtype=float) for each in (drawn, shown)]
    assert np.sqrt(((small[0] - small[1]) ** 2).mean()) < 8  # of 255: letters may differ, points may not
