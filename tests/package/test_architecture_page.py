"""The architecture page names files that exist, and its walks are those that fits go."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "architecture.rst"
SHARED = ("On every walk", "A product")
MORE_OF = {"A neighbour graph": "An embedding"}  # a walk that is told as what it passes besides another
WALKS = {
    "SDPEmbedding(Gaussian()).fit, 300 points": "An embedding",
    "SDPEmbedding().fit, 300 points": "A neighbour graph",
    "QuadratureSparsifier(n_nodes=20).fit, 300 points": "Landmarks",
    "SumOfSquaresDensity().fit, 300 points": "A density",
}
UNSEEN = ("sweeps", "blocks", "rows", "row_sums", "native")  # compiled


def named_files(text: str) -> set[str]:
    return set(re.findall(r"``([\w./]+\.py)``", text))


@pytest.fixture(scope="module")
def sections():
    """The text below each heading, by the words of the heading before its colon."""
    parts = re.split(r"^(.+)\n[=-]{4,}$", PAGE.read_text(), flags=re.MULTILINE)
    return {heading.partition(":")[0]: text for heading, text in zip(parts[1::2], parts[2::2], strict=True)}


@pytest.fixture(scope="module")
def passed():
    """The files that each main job passes, by its name."""
    spec = importlib.util.spec_from_file_location("house", ROOT / "benchmarks" / "house.py")
    house = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(house)
    return {job: set(files) for job, files in house.main_jobs().items()}


def test_every_file_on_the_page_exists():
    named = named_files(PAGE.read_text())
    assert len(named) > 100
    missing = {name for name in named if not any((place / name).is_file() for place in (ROOT / "src" / "mercer", ROOT))}
    assert not missing


@pytest.mark.parametrize("job", WALKS)
def test_a_walk_is_that_of_the_fit(job, sections, passed):
    name = WALKS[job]
    walk = named_files(sections[name])
    others = (*SHARED, MORE_OF[name]) if name in MORE_OF else SHARED
    shared = set().union(*(named_files(sections[other]) for other in others))
    named_but_not_passed, passed_but_not_named = walk - passed[job], passed[job] - walk - shared
    assert not named_but_not_passed
    assert not passed_but_not_named


def test_what_is_shared_is_passed(sections, passed):
    shared = set().union(*(named_files(sections[name]) for name in SHARED))
    compiled = {f"backends/cpu/{name}.py" for name in UNSEEN}
    assert shared - set().union(*passed.values()) == compiled
