"""What ``mercer test`` answers: a sentence, a p-value, a picture; or the same as JSON."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, final

import mercer
from mercer.cli.cautions import cautions
from mercer.cli.errors import collected_warnings, one_sentence
from mercer.cli.interpretation import question_of
from mercer.cli.progress import fraction_bar
from mercer.cli.questions import Question, TwoSamples
from mercer.cli.request import Request

_SHOWN = 8  # names of columns in the text


@final
@dataclass(frozen=True)
class Answer:
    """The result of a test, with what a person should know of it."""

    request: Request
    question: Question
    result: Any
    explanation: Any
    notes: tuple[str, ...]
    picture: Path | None

    def as_text(self) -> str:
        """The sentence first, then what was compared."""
        lines = [self.question.sentence(self.result), ""]
        lines.append(f"Compared  {self.question.compared()}")
        lines.append(f"Columns   {self._columns()}")
        lines.append(f"p-value   {self.result.pvalue:.4g}")
        if self.explanation is not None:
            lines.append(f"Explained {self.explanation}")
        if self.picture is not None:
            lines.append(f"Picture   {self.picture}")
        return "\n".join([*lines, *(f"Note      {note}" for note in self.notes)])

    def as_json(self) -> str:
        """Everything but the null distribution."""
        result, tables = self.result, self.question.tables
        described = {
            "question": type(self.question).__name__,
            "answer": self.question.sentence(result),
            "pvalue": result.pvalue,
            "statistic": result.statistic,
            "null": result.null,
            "n_resamples": result.n_resamples,
            "seed": self.request.seed,
            "time_series": self.request.time_series,
            "compress": self.request.compress,
            "kernel": repr(result.kernel),
            "parts": [
                {"kernel": repr(part.kernel), "statistic": part.statistic, "pvalue": part.pvalue}
                for part in result.parts
            ],
            "columns": [_feature(feature) for feature in getattr(self.explanation, "ranking", ())],
            "pairs": [_pair(pair, self.question.names) for pair in getattr(result, "pairs", ())],
            "compared": [
                {"name": name, "source": table.source, "rows": len(table), "columns": _kinds(table)}
                for name, table in zip(self.question.names, tables, strict=True)
            ],
            "picture": None if self.picture is None else str(self.picture),
            "notes": list(self.notes),
            "version": mercer.__version__,
        }
        return json.dumps(described, indent=2)

    def _columns(self) -> str:
        kinds = {name: kind for table in self.question.tables for name, kind in _kinds(table).items()}
        shown = [name if kind == "numbers" else f"{name} ({kind})" for name, kind in kinds.items()]
        return ", ".join(shown[:_SHOWN]) + (f" and {len(shown) - _SHOWN} more" if len(shown) > _SHOWN else "")


def answered(request: Request) -> Answer:
    """Read, test and draw; what is wrong with the data is one sentence and exit code 1, with the call 2."""
    warned: list[str] = []
    with one_sentence(), collected_warnings(warned):
        question, notes = question_of(request)
        notes += cautions(question, time_series=request.time_series)
        with fraction_bar(f"Comparing {question.compared()}", shown=not request.quiet) as progress:
            result = question.ask(request, progress)
        explained = request.explain and isinstance(question, TwoSamples) and question.explanation(request)
        path = _drawn(question, result, request.picture)
    return Answer(request, question, result, explained or None, tuple(dict.fromkeys([*notes, *warned])), path)


def _drawn(question: Question, result: Any, output: Path | None) -> Path | None:
    if output is None:
        return None
    from mercer.plots import save_figure

    save_figure(question.figure(result), output)
    return output


def _kinds(table: Any) -> dict[str, str]:
    return {part.name: "numbers" if part.holds_numbers else "categories" for part in table.parts}


def _feature(feature: Any) -> dict[str, Any]:
    """One column of an explanation, as JSON has it."""
    names = ("name", "statistic", "pvalue", "pvalue_without")
    return {name: getattr(feature, name) for name in names}


def _pair(pair: Any, names: Sequence[str]) -> dict[str, Any]:
    """Two of many samples, as JSON has them."""
    return {
        "names": [names[pair.first], names[pair.second]],
        "statistic": pair.statistic,
        "pvalue": pair.pvalue,
        "corrected_pvalue": pair.corrected,
    }
