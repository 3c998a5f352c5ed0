"""The page on papers and code tells the truth: every statement once, and every file, test and experiment exists."""

from __future__ import annotations

import ast
import doctest
import importlib.util
import re
import sys
from collections import Counter
from functools import cache
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).parents[2]
SRC, TESTS, ERRATA = ROOT / "src" / "mercer", ROOT / "tests", ROOT / "docs" / "errata.rst"
SHORT = ("psd22", "psd17", "quad", "sos", "rkhs")


def _statements_module():
    spec = importlib.util.spec_from_file_location("statements", ROOT / "docs" / "statements.py")
    module = sys.modules[spec.name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


statements = _statements_module()
PAPERS = pytest.mark.parametrize("paper", [statements.read(name) for name in statements.names()], ids=lambda p: p.name)


@cache
def functions(file: str) -> dict[str, str]:
    """The source of every test function of a file, its marks included, by name."""
    text = (TESTS / file).read_text(encoding="utf-8")
    lines = text.splitlines()
    found = [node for node in ast.parse(text).body if isinstance(node, ast.FunctionDef)]
    first = {node.name: min([node.lineno, *(mark.lineno for mark in node.decorator_list)]) for node in found}
    return {node.name: "\n".join(lines[first[node.name] - 1 : node.end_lineno]) for node in found}


@cache
def experiments() -> frozenset[str]:
    files = (SRC / "experiments").glob("*/*.py")
    return frozenset(name for file in files for name in re.findall(r'@experiment\("([^"]+)"', file.read_text("utf-8")))


def test_ranges():
    assert statements.expanded("(1)–(3), Lemma 4") == ["(1)", "(2)", "(3)", "Lemma 4"]
    assert statements.expanded("Figure 8.1–8.3, (A.1)–(A.2)") == [
        "Figure 8.1",
        "Figure 8.2",
        "Figure 8.3",
        "(A.1)",
        "(A.2)",
    ]
    assert statements.expanded("(reg-kVP-n)") == ["(reg-kVP-n)"]
    with pytest.raises(ValueError, match=r"^'\(1\.1\)–\(2\.2\)' is no range"):
        statements.expanded("(1.1)–(2.2)")


@PAPERS
def test_every_statement_has_one_row(paper):
    counted = Counter(number for row in paper.rows for number in row.numbers())
    assert not [number for number, count in counted.items() if count > 1]
    assert len(set(paper.statements)) == len(paper.statements)
    assert set(counted) == set(paper.statements)


@PAPERS
def test_what_a_row_must_have(paper):
    for row in paper.rows:
        assert row.kind in ("built", "definition", "not built"), row
        assert row.says, row
        assert bool(row.why) == (row.kind == "not built"), row
        assert row.file or row.kind == "not built", row
        assert row.test or row.kind != "built", row


@PAPERS
def test_everything_that_is_named_exists(paper):
    missing = [file for row in paper.rows for file in row.file if not (SRC / file).is_file()]
    for name in (name for row in paper.rows for name in row.test):
        file, _, function = name.partition("::")
        if not (TESTS / file).is_file() or function not in functions(file):
            missing.append(name)
    missing += [name for row in paper.rows for name in row.experiment if name not in experiments()]
    told = [name for row in paper.rows for name in re.findall(r"(?:benchmarks|docs)/[\w/]+\.\w+", row.note + row.why)]
    missing += [name for name in told if not (ROOT / name).is_file()]
    missing += [
        label for row in paper.rows for label in row.erratum if f".. _{label}:" not in ERRATA.read_text("utf-8")
    ]
    assert not missing


@PAPERS
def test_what_is_built_is_tested_every_day(paper):
    for row in (row for row in paper.rows if row.kind == "built"):
        found = [functions(file)[function] for file, _, function in (name.partition("::") for name in row.test)]
        assert not all(source.startswith("@pytest.mark.slow\n") for source in found), row


def test_every_experiment_stands_somewhere():
    named = {
        name for paper in map(statements.read, statements.names()) for row in paper.rows for name in row.experiment
    }
    assert experiments() == named


def test_every_counter_example_of_the_errata_runs():
    found = doctest.testfile(str(ERRATA), module_relative=False, globs={"np": np})
    assert found.failed == 0
    assert found.attempted > 100


def test_every_erratum_is_led_to_from_a_row():
    text = ERRATA.read_text("utf-8")
    labels = set(re.findall(r"^\.\. _(erratum-[\w-]+):$", text, flags=re.MULTILINE))
    named = {label for paper in map(statements.read, statements.names()) for row in paper.rows for label in row.erratum}
    assert labels == named


STEMS = {"Figure": "Fig", "Proposition": "Prop", "Theorem": "(?:Theorem|Thm)"}  # as they are written for short


def is_named(paper: str, statement: str, text: str) -> bool:
    """Whether a text gives the number of a statement, as (1.2), Lemma 3, Lemmas 2, 3 or QUAD 7.1, and whose it is."""
    paper = "(?:RKHS|survey)" if paper == "RKHS" else paper
    kind, _, number = statement.rpartition(" ")
    number = rf"(?<![\w.]){re.escape(number.strip('()'))}(?!\w|\.\d)"
    near = rf"{paper}\b.{{0,120}}?{number}"
    if kind:
        word = STEMS.get(kind, kind)
        near += rf"|\b{word}\w*\.?\s(?:[\w.]+(?:,|\sand|\sto)?\s)*?{number}"
    elif not statement[1:-1].isdigit():
        near += rf"|\({number}\)"
    return bool(re.search(paper, text) and re.search(near, text, flags=re.DOTALL))


def _texts(row):
    yield from ((SRC / file).read_text("utf-8") for file in row.file)
    for file, _, function in (name.partition("::") for name in row.test):
        title = (TESTS / file).read_text("utf-8").partition("\n")[0]
        yield f"{title} {functions(file)[function]}"


def test_numbers_are_found_as_they_are_written():
    assert is_named("QUAD", "Lemma 5.2", "QUAD: the one-class machine (Lemmas 5.1, 5.2)")
    assert is_named("QUAD", "section 7.1", "vertex exchange (QUAD 7.1)")
    assert is_named("PSD17", "(8)", "complementary (PSD17 (8)).")
    assert not is_named("PSD17", "(8)", "range(8)")
    assert not is_named("PSD17", "(8)", "PSD22 has range(8)")
    assert not is_named("QUAD", "(7.1)", "QUAD section 17.1")


@PAPERS
def test_what_is_built_is_named_where_it_is(paper):
    built = [row for row in paper.rows if row.kind == "built"]
    unnamed = [
        row.statements
        for row in built
        if not any(is_named(paper.name, number, text) for text in _texts(row) for number in row.numbers())
    ]
    assert not unnamed


NAMED = r"\b(PSD22|PSD17|QUAD|SOS|RKHS) (?:\((\w[\w.-]*)\)|(Lemma|Theorem|Proposition|Corollary|Remark|Algorithm|Table|Fig) (\w[\w.]*\w|\w))"


def test_statements_that_docstrings_name_exist():
    known = {paper.name: set(paper.statements) for paper in map(statements.read, statements.names())}
    wrong, count = [], 0
    for file in [*SRC.rglob("*.py"), *TESTS.rglob("*.py")]:
        for name, equation, kind, number in re.findall(NAMED, file.read_text("utf-8")):
            statement = f"({equation})" if equation else f"{kind.replace('Fig', 'Figure')} {number}"
            count += 1
            if statement not in known[name] and re.sub(r"(?<=\d)[abc]$", "", statement) not in known[name]:
                wrong.append(f"{file.relative_to(ROOT)}: {name} {statement}")
    assert not wrong
    assert count > 100
