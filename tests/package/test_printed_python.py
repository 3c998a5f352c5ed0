"""Every block of Python that a page prints is run: as a doctest, as a script of the gallery, or by a test that is named here."""

from __future__ import annotations

import importlib.util
import re
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
# Blocks that are run elsewhere, or cannot be, by page and first line, with the reason.
ELSEWHERE = {
    ("README.md", "from mercer import SDPEmbedding, plane_map, verify"): "test_readme.py runs it",
}


def _printed_module():
    spec = importlib.util.spec_from_file_location("printed_python", ROOT / "docs" / "printed.py")
    module = sys.modules[spec.name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


printed = _printed_module()
BLOCKS = [block for block in printed.all_blocks() if block.language in ("python", "py", "python3", "pycon", "ipython")]


def test_no_block_of_python_is_left_to_the_reader():
    never = [block for block in BLOCKS if (block.page, block.lines[0]) not in ELSEWHERE and not _is_doctest(block)]
    assert not never, [f"{block.page}:{block.line}" for block in never]


def test_reasons_are_of_blocks_that_are_there():
    assert {(block.page, block.lines[0]) for block in BLOCKS} >= ELSEWHERE.keys()


def _is_doctest(block):
    return all(line.startswith((">>>", "...")) or not line.strip() for line in block.lines[:1])


def test_no_example_of_a_page_is_skipped():
    pages = [path for path in printed.pages() if path.suffix in (".rst", ".md")]
    skipped = [f"{path.name}:{n}" for path in pages for n, line in _numbered(path) if "doctest: +SKIP" in line]
    assert not skipped


def _numbered(path):
    return enumerate(path.read_text(encoding="utf-8").splitlines(), 1)


@pytest.mark.parametrize("page", sorted((ROOT / "docs" / "theory").glob("*.rst")), ids=lambda path: path.stem)
def test_files_that_theory_names_are_there(page):
    named = re.findall(r"``(\w+/[\w/]+\.py)``", page.read_text(encoding="utf-8"))
    assert [name for name in named if not (ROOT / "src" / "mercer" / name).is_file()] == []


@pytest.mark.parametrize("script", sorted((ROOT / "tutorials").glob("*.py")), ids=lambda path: path.stem)
def test_every_script_of_the_tutorials_is_run_by_the_build(script):
    assert script.name.startswith("plot_"), "the build runs what begins with plot_"
