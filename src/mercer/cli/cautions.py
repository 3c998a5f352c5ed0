"""What in the data of a test may make its p-value say something else than a person thinks."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
from scipy.stats import rankdata

from mercer.backends.arrays import Array
from mercer.cli.questions import Dependence, Question, TwoSamples
from mercer.io import DataColumn, DataTable

_LEVEL = 0.05
_ENOUGH = 100  # rows, which can be labelled in more ways than anybody asks for
_ALIKE, _DEVIATIONS = 0.2, 5.0  # correlation of neighbours that is told, and by how much it must exceed chance
_MOST_VALUES = 5_000_000  # beyond which rows are not compared: it would take longer than the test
_IN_COMMON = 0.05  # share of rows that two samples may have in common


def cautions(question: Question, *, time_series: bool) -> list[str]:
    """Sentences for the person who asked, the gravest first."""
    return [
        *(_too_few(question) if isinstance(question, TwoSamples) else ()),
        *(_in_common(question) if isinstance(question, TwoSamples) else ()),
        *(() if time_series else _ordered(question)),
        *_telling_rows_apart(question),
    ]


def _too_few(question: TwoSamples) -> Iterator[str]:
    n, m = (len(table) for table in question.tables)
    if n + m > _ENOUGH:  # and a number of labellings with more digits than any double
        return
    labellings = math.comb(n + m, n)
    if labellings * _LEVEL < 1:
        least = f"{1 / labellings:.2g}"
        yield f"{n} and {m} rows can be labelled in {labellings} ways only, so that p cannot be below {least}."


def _in_common(question: TwoSamples) -> Iterator[str]:
    """Rows that stand in both samples, where rows within each are told apart by their values."""
    if sum(len(table) * len(table.parts) for table in question.tables) > _MOST_VALUES:
        return
    first, second = ([*zip(*(part.to_list() for part in table.parts), strict=True)] for table in question.tables)
    common = set(first) & set(second)
    distinct = min(len(set(rows)) / len(rows) for rows in (first, second))
    if distinct > 1 - _IN_COMMON and len(common) > _IN_COMMON * min(len(first), len(second)):
        yield (
            f"{len(common)} rows stand in both samples: the test takes the samples to be drawn independently of each "
            "other, and shared rows make p too large."
        )


def _ordered(question: Question) -> Iterator[str]:
    """Neighbouring rows that are alike, in numbers of one sample."""
    sides = question.tables[:1] if isinstance(question, Dependence) else question.tables
    found = {part.name: r for table in sides for part in table.parts if (r := _likeness(part)) is not None}
    if isinstance(question, Dependence):  # both sides must be so for the p-value to suffer
        others = [part for part in question.tables[1].parts if _likeness(part) is not None]
        found = found if others else {}
    if found:
        name = max(found, key=lambda name: found[name])
        yield (
            f"Neighbouring rows are alike (column {name!r}, correlation {found[name]:.2f}). If rows are in the order "
            "of time or place, p is too small: add --time-series. If the file is only sorted, nothing is wrong."
        )


def _likeness(part: DataColumn) -> float | None:
    """The rank correlation of neighbouring rows, if it is more than chance makes it."""
    if not part.holds_numbers or len(part.values) < 10 or part.counts_rows:
        return None
    ranks: Array = rankdata(part.values)
    ranks = ranks - ranks.mean()
    spread = float(ranks @ ranks)
    r = float(ranks[1:] @ ranks[:-1]) / spread if spread > 0 else 0.0
    return r if r > max(_ALIKE, _DEVIATIONS / math.sqrt(ranks.size)) else None


def _telling_rows_apart(question: Question) -> Iterator[str]:
    """Columns that number or name the rows."""
    for table in question.tables:
        for part in table.parts:
            if part.counts_rows or _names_rows(part, table):
                yield (
                    f"The column {part.name!r} has another value in every row, as a number or a name of the row has: "
                    "if it is one, leave it out with --without."
                )
                return


def _names_rows(part: DataColumn, table: DataTable) -> bool:
    return not part.holds_numbers and len(table) > 10 and np.unique(part.values.astype(str)).size > 0.9 * len(table)
