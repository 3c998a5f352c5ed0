"""What a command says at its end: a sentence, named lines, notes and what to try next; or the same as JSON."""

from __future__ import annotations

import json
import shlex
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, final

import click

import mercer

_WIDTH = 12


@final
@dataclass
class Account:
    """An account of what was done.

    Attributes
    ----------
    facts : dict
        For machines; beside them stand the notes and the version.
    sentence : str
        What was done, for a person.
    lines : list of (str, str)
        What else there is to know, each line with a word in front.
    notes : list of str
        What a person should know of the data and the fit.
    next_command : sequence of str
        What to try next; nothing if empty.
    """

    facts: dict[str, Any] = field(default_factory=dict)
    sentence: str = ""
    lines: list[tuple[str, str]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    next_command: Sequence[str] = ()

    def as_text(self) -> str:
        """The sentence, an empty line, and the lines."""
        named = [*self.lines, *(("Note", note) for note in dict.fromkeys(self.notes))]
        if self.next_command:
            named.append(("Next", shlex.join(self.next_command)))
        return "\n".join([self.sentence, "", *(f"{word:{_WIDTH}} {text}" for word, text in named)])

    def as_json(self) -> str:
        """The facts, the sentence and the notes."""
        told = {"answer": self.sentence, **self.facts, "notes": list(dict.fromkeys(self.notes))}
        return json.dumps({**told, "version": mercer.__version__}, indent=2, default=str)

    def say(self, *, as_json: bool, quiet: bool, aside: bool = False) -> None:
        """Print it; ``aside``, on standard error, where standard output is taken by a table."""
        if as_json:
            click.echo(self.as_json(), err=aside)
        elif not quiet:
            click.echo(self.as_text(), err=aside)


def certified(proof: Any) -> dict[str, Any] | None:
    """A certificate as JSON has it; None where there is none."""
    if proof is None:
        return None
    names = ("lower", "upper", "relative_gap", "failure_probability", "method")
    told = {name: getattr(proof, name) for name in names}
    return {**{name: None if _is_infinite(value) else value for name, value in told.items()}, "words": str(proof)}


def called_again(
    extra: Sequence[str] = (), without: Sequence[str] = (), without_flags: Sequence[str] = ()
) -> list[str]:
    """The words of this call, without some options and their values and some that have none, and with others."""
    given = [word for word in click.get_current_context().meta.get("mercer.called", []) if word not in without_flags]
    kept = [word for k, word in enumerate(given) if not _belongs(given, k, without)]
    return ["mercer", *kept, *extra]


def beside(data: Path, ending: str) -> Path:
    """A file in the current folder whose name begins as that of the data does; .csv.gz and the like are taken off."""
    stem = "mercer" if str(data) == "-" else data.name.removesuffix(".gz")
    return Path(f"{Path(stem).stem}{ending}")


def _belongs(given: Sequence[str], k: int, options: Sequence[str]) -> bool:
    """Whether a word is one of the options or its value."""
    word, before = given[k], given[k - 1] if k else ""
    return word in options or before in options or any(word.startswith(f"{option}=") for option in options)


def _is_infinite(value: Any) -> bool:
    return isinstance(value, float) and value - value != 0
