"""The tables of docs/papers.rst: which file, test and experiment stands for which statement of a paper.

A paper is a file ``papers/*.toml``: a table ``[paper]`` that lists its numbered statements, and a table for each row of
the page, whose name is the statements it is about. ``.. statements:: psd22`` shows it. Tests read the same files.
"""

from __future__ import annotations

import re
import tomllib
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent / "papers"
_RANGE = re.compile(r"(?P<stem>.*?)(?P<first>\d+)–(?P<stem2>.*?)(?P<last>\d+)")
_LISTS = ("file", "test", "experiment", "erratum")
_KINDS = {"built": "built", "definition": "background", "not built": "not built"}


@dataclass(frozen=True)
class Row:
    """One row: the statements, what they say, and where they are.

    A row is built, with a file and a test; a definition, or a fact that is used, with the file that uses it; or not
    built, with the reason.
    """

    statements: str
    says: str
    kind: str = "built"
    file: tuple[str, ...] = ()  #: below src/mercer
    test: tuple[str, ...] = ()  #: below tests: the file, two colons, the function
    experiment: tuple[str, ...] = ()  #: names of ``mercer experiment``
    note: str = ""  #: what differs, and what stands in its place
    why: str = ""  #: the reason why it is not built
    erratum: tuple[str, ...] = ()  #: labels of errata.rst

    def numbers(self) -> list[str]:
        """Every statement of the row by itself."""
        return expanded(self.statements)


@dataclass(frozen=True)
class Paper:
    """A paper, its numbered statements, and the rows about them."""

    name: str
    title: str
    statements: tuple[str, ...]
    rows: tuple[Row, ...]


def expanded(statements: str) -> list[str]:
    """Every statement by itself: ``"(1)–(3), Lemma 4"`` becomes ``["(1)", "(2)", "(3)", "Lemma 4"]``."""
    return [single for part in statements.split(", ") for single in _single(part.strip())]


def _single(part: str) -> list[str]:
    kind, space, numbers = part.rpartition(" ")
    bare = numbers.replace("(", "").replace(")", "")
    if (found := _RANGE.fullmatch(bare)) is None:
        return [part]
    if found["stem2"] not in ("", found["stem"]):
        raise ValueError(f"{part!r} is no range: both ends must have the same beginning.")
    single = [f"{found['stem']}{number}" for number in range(int(found["first"]), int(found["last"]) + 1)]
    return [f"{kind}{space}{number}" if kind else f"({number})" for number in single]


def _listed(value: str | list[str]) -> tuple[str, ...]:
    return (value,) if isinstance(value, str) else tuple(value)


def read(name: str) -> Paper:
    """The paper of a file of the folder, by its name without an ending."""
    data = tomllib.loads((FOLDER / f"{name}.toml").read_text(encoding="utf-8"))
    about: dict[str, Any] = data.pop("paper")
    rows = []
    for statements, fields in data.items():
        lists = {field: _listed(fields.pop(field)) for field in _LISTS if field in fields}
        rows.append(Row(statements, **fields, **lists))
    return Paper(about["name"], about["title"], tuple(expanded(", ".join(about["statements"]))), tuple(rows))


def names() -> list[str]:
    """The names of all files of the folder."""
    return sorted(path.stem for path in FOLDER.glob("*.toml"))


# --- the page -----------------------------------------------------------------------------------------------


def as_text(paper: Paper) -> list[str]:
    """The lines of reStructuredText that show a paper: a sentence that counts, and a table."""
    counts = Counter(row.kind for row in paper.rows for _ in row.numbers())
    told = ", ".join(f"{counts[kind]} {word}" for kind, word in _KINDS.items() if counts[kind])
    head = [f"By {paper.title}. {len(paper.statements)} statements: {told}.", "", ".. list-table::"]
    head += ["   :header-rows: 1", "   :widths: 12 38 50", "   :class: statements", ""]
    rows = [_cells("statement", ["what it says"], ["where: file, test, experiment"])]
    return head + [line for row in [*rows, *map(_row, paper.rows)] for line in row]


def _row(row: Row) -> list[str]:
    words = {"built": "", "definition": "*Background.*", "not built": f"**Not built:** {row.why}"}[row.kind]
    errata = [f":ref:`Erratum <{label}>`." for label in row.erratum]
    said = [row.says, *filter(None, [row.note, words]), *errata]
    where = [*row.file, *row.test, *(f"mercer experiment {name}" for name in row.experiment)]
    return _cells(row.statements, said, [f"``{name}``" for name in where])


def _cells(first: str, said: list[str], where: list[str]) -> list[str]:
    """A row of a list-table; the paragraphs of the second cell are joined, the lines of the third kept apart."""
    lines = [f"   * - {first}", f"     - {' '.join(said)}"]
    return [*lines, f"     - | {where[0]}" if where else "     -", *(f"       | {name}" for name in where[1:])]


def setup(app: Any) -> dict[str, bool]:
    """Give Sphinx the directive."""
    from docutils import nodes
    from docutils.statemachine import StringList
    from sphinx.util.docutils import SphinxDirective

    class Statements(SphinxDirective):
        required_arguments = 1

        def run(self) -> list[nodes.Node]:
            name = self.arguments[0]
            self.env.note_dependency(str(FOLDER / f"{name}.toml"))
            shown = nodes.container()
            self.state.nested_parse(StringList(as_text(read(name)), source=f"{name}.toml"), 0, shown)
            return shown.children

    app.add_directive("statements", Statements)
    return {"parallel_read_safe": True}
