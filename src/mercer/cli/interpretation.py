"""From the options and files of ``mercer test`` to the question that they ask."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click
import numpy as np

from mercer.cli.questions import Dependence, ManySamples, Question, TwoSamples
from mercer.cli.request import Request
from mercer.cli.tables import chosen, complete, listed, read, split
from mercer.io import DataTable

_MOST_GROUPS = 30


def question_of(request: Request) -> tuple[Question, list[str]]:
    """The question, and notes on how the files were read. Calls that mean nothing are usage errors."""
    _require_one_meaning(request)
    _require_explicable(request)
    tables = [read(path, request.reading) for path in request.files]
    notes = [note for table in tables for note in table.notes]
    if request.depends:
        question: Question = _dependence(tables[0], request, notes)
    elif request.by is not None:
        question = _groups(tables[0], request, notes)
    else:
        question = _files(tables, request, notes)
    return question, notes


def _require_one_meaning(request: Request) -> None:
    """Refuse options that contradict each other."""
    count, alone = len(request.files), request.depends or request.by is not None
    if request.depends and request.by is not None:
        raise click.UsageError("--depends asks for a dependence and --by compares groups: use one of them.")
    if request.on and not request.depends:
        raise click.UsageError("--on needs --depends: which column depends on it?")
    if request.groups and request.by is None:
        raise click.UsageError("--groups needs --by: which column names the groups?")
    if alone and count != 1:
        raise click.UsageError(f"--{'depends' if request.depends else 'by'} takes one file, not {count}.")
    if not alone and count == 1:
        raise click.UsageError(
            "One file alone asks nothing: name a second file, a column of groups with --by, or two columns with "
            "--depends and --on."
        )


def _require_explicable(request: Request) -> None:
    """Refuse to explain what is no difference of two samples of independent rows."""
    if request.explain and (request.depends or request.time_series or len(request.files) > 2):
        raise click.UsageError("--explain is about the difference of two samples of independent rows: leave it out.")


def _files(tables: Sequence[DataTable], request: Request, notes: list[str]) -> Question:
    """Two files or more with the same columns, in any order."""
    first = chosen(tables[0], request.reading)
    for other in tables[1:]:
        extra = [name for name in chosen(other, request.reading).columns if name not in first.columns]
        if extra:
            raise ValueError(
                f"{other.source} has a column {extra[0]!r} that {first.source} has not: leave it out with --without, "
                "or name those to compare with --columns."
            )
    kept = [complete(table.select(first.columns), request.reading, notes) for table in tables]
    for name in first.columns:
        if len({table[name].dtype for table in kept}) > 1:
            words = next(table for table in kept if not table[name].holds_numbers)
            raise ValueError(
                f"The column {name!r} holds numbers in one file and texts, such as {words[name].values[0]!r}, in "
                f"{words.source}: correct it, or add --categories {name!r}."
            )
    return _samples(kept, _short_names([Path(table.source) for table in kept]))


def _samples(tables: Sequence[DataTable], names: Sequence[str]) -> Question:
    return (TwoSamples if len(tables) == 2 else ManySamples)(tuple(tables), tuple(names))


def _groups(table: DataTable, request: Request, notes: list[str]) -> Question:
    """Rows of one file, by what a column says."""
    (by,) = table.select([str(request.by)]).parts[:1]
    rest = complete(chosen(table.without([by.name]), request.reading, also=by), request.reading, notes)
    labels = np.array([_label(value) for value in rest[by.name].to_list()])
    found = list(dict.fromkeys(labels.tolist()))
    if len(found) > _MOST_GROUPS:
        raise ValueError(f"The column {by.name!r} has {len(found)} different values: it names no groups to compare.")
    wanted = split(request.groups, found) or found
    unknown = [name for name in wanted if name not in found]
    if unknown:
        raise click.UsageError(f"The column {by.name!r} has no group {unknown[0]!r}; it has {', '.join(found)}.")
    if request.explain and len(wanted) > 2:
        raise click.UsageError(f"--explain compares two groups, not {', '.join(wanted)}: name them with --groups.")
    if len(set(wanted)) < max(2, len(wanted)):
        raise click.UsageError(f"Groups to compare must be two or more, each once, not {', '.join(wanted)}.")
    samples = [rest.without([by.name]).take(labels == name) for name in wanted]
    return _samples(samples, [f"{by.name} {name}" for name in wanted])


def _dependence(table: DataTable, request: Request, notes: list[str]) -> Question:
    """Two sets of columns of one file."""
    usable = chosen(table, request.reading)
    y = usable.select(split(request.depends, usable.columns))
    others = [name for name in usable.columns if name not in y.columns]
    x = usable.select(split(request.on, usable.columns) or others)
    both = [name for name in x.columns if name in y.columns]
    if both:
        raise click.UsageError(f"The column {both[0]!r} stands on both sides: it depends on itself.")
    if not x.parts:
        raise click.UsageError(f"{table.source} has no other column to depend on.")
    kept = complete(usable.select([*x.columns, *y.columns]), request.reading, notes)
    sides = kept.select(x.columns), kept.select(y.columns)
    return Dependence(sides, tuple(listed(side.columns, 4) for side in sides))


def _label(value: Any) -> str:
    """The name of a group; 1.0 is 1."""
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)


def _short_names(paths: Sequence[Path]) -> tuple[str, ...]:
    """The names of files without their folders, if that tells them apart."""
    short = tuple(path.name for path in paths)
    return short if len(set(short)) == len(short) else tuple(map(str, paths))
