"""The pages on where we lose and on the race quote figures that stand on the pages of results they name."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "where_we_lose.rst").read_text(encoding="utf-8")
RACE = (ROOT / "docs" / "race.rst").read_text(encoding="utf-8")
NUMBER = re.compile(r"(?<![\w.])(?:\d{1,3}(?: \d{3})+|\d*\.\d+|\d+)(?:e[-+]?\d+)?")


def _rows():
    """The first words of each row of a table, and the rest of it in one line."""
    for row in re.split(r"\n   \* - ", PAGE)[1:]:
        first, *cells = re.split(r"\n     - ", row)
        if first.startswith("**"):
            yield first.strip("*."), " ".join(" ".join(cells).split("\n\n")[0].split())


def _numbers(text):
    return [token.replace(" ", "") for token in NUMBER.findall(text.replace("−", "-"))]


def _stands_in(token, values):
    """Whether one of the values is the number, rounded to as many digits."""
    if "e" in token:
        return any(abs(value - float(token)) <= 0.05 * float(token) for value in values)
    half = 0.5 * 10.0 ** -len(token.partition(".")[2])
    return any(abs(value - float(token)) <= half + 1e-9 for value in values)


def _sections():
    """The titles of the race's page that name a page of results, and what stands below each."""
    _, *parts = re.split(r"\n(.+)\n=+\n", RACE)
    found = zip(parts[::2], parts[1::2], strict=True)
    return [(title, " ".join(text.split())) for title, text in found if "benchmarks/results/" in text]


@pytest.mark.parametrize(("first", "rest"), [*_rows(), *_sections()])
def test_figures_stand_on_the_pages_that_are_named(first, rest):
    pages = re.findall(r"benchmarks/results/(\w+)\.md", rest)
    assert pages, "a row names the page that it was measured on"
    there = "\n".join((ROOT / "benchmarks" / "results" / f"{page}.md").read_text(encoding="utf-8") for page in pages)
    values = [float(token) for token in _numbers(there.replace(",", ""))]
    said = re.sub(r"``[^`]*``|:\w+:`[^`]*`", "", rest)
    assert [token for token in _numbers(said) if not _stands_in(token, values)] == []


def test_a_figure_that_is_not_there_is_found():
    assert not _stands_in(".53", [0.54, 5.3])
    assert _stands_in(".53", [0.534])
    assert _stands_in("1.2e-3", [1.2e-3])
    assert not _stands_in("1.2e-3", [1.4e-3])
