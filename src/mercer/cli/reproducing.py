"""What ``mercer experiment`` does: run, compare, draw; or list."""

from __future__ import annotations

import json
import shutil
from collections.abc import Sequence
from itertools import zip_longest
from pathlib import Path
from textwrap import wrap
from typing import Any

import click

from mercer.cli.errors import collected_warnings, one_sentence
from mercer.cli.output import refuse_missing_folder, refuse_unknown_format
from mercer.cli.progress import clock
from mercer.cli.saying import Account, called_again
from mercer.experiments import CATALOGUE, Comparison, description
from mercer.experiments.registry import PAPERS, Registered, registered
from mercer.experiments.report import shown
from mercer.wording import time_in_words

_HEAD = ("quantity", "paper", "here", "")
_QUICK = 30.0  # seconds that a quick version takes at most, on two cores under load
_LEAST_WIDTH = 60


def listed(options: dict[str, Any]) -> None:
    """Answer ``mercer experiment --list``."""
    if options["as_json"]:
        told = [{"name": name, "description": description(name), **_needs(registered(name))} for name in CATALOGUE]
        click.echo(json.dumps(told, indent=2))
        return
    width = max(map(len, CATALOGUE))
    for paper, title in PAPERS.items():
        click.echo(f"{paper.upper()}: {title}")
        for name in CATALOGUE:
            if name.partition("-")[0] == paper:
                click.echo(f"  {name:{width}}  {_takes(registered(name)):>7}  {description(name)}")
        click.echo()
    click.echo("Times are of two cores under load. * A smaller version runs in seconds unless --full is said.")
    click.echo("† Needs real data in the folder that the variable MERCER_DATA names.")


def reproduced(options: dict[str, Any]) -> None:
    """Answer ``mercer experiment NAME``."""
    name = options["name"]
    if name not in CATALOGUE:
        wrong = "Name an experiment" if name is None else f"There is no experiment {name!r}"
        raise click.UsageError(f"{wrong}; mercer experiment --list shows them.")
    output = options["output"] or Path(f"{name}.png")
    refuse_missing_folder(output)
    refuse_unknown_format(output)
    from mercer.plots import save_figure

    known, account = registered(name), Account()
    quick = bool(known.quick) and not options["full"]
    expected = min(_QUICK, known.seconds or _QUICK) if quick else known.seconds
    shows = clock(name, expected=expected, shown=not options["quiet"])
    with one_sentence(), collected_warnings(account.notes), shows:
        result = known.run(**(known.quick if quick else {}))
        save_figure(result.figure(), output)
    _tell(account, name, result.comparisons)
    account.lines.append(("Picture", str(output)))
    account.facts |= {"picture": str(output), "quick": quick}
    if quick:
        changed = ", ".join(f"{key} = {value!r}" for key, value in known.quick.items())
        account.notes.append(f"A smaller version ({changed}): numbers may differ from the paper's for that reason.")
        account.next_command = called_again(["--full"])
    account.say(as_json=options["as_json"], quiet=options["quiet"])


def _tell(account: Account, name: str, comparisons: Sequence[Comparison]) -> None:
    """The table, and below it the reasons."""
    agree = sum(each.verdict.value == "agrees" for each in comparisons)
    told = f"{agree} of {len(comparisons)} values agree with the paper's." if comparisons else "It prints no number."
    account.sentence = f"{description(name)} {told}" + (f"\n\n{_table(comparisons)}" if comparisons else "")
    account.facts |= {
        "answer": told,
        "name": name,
        "description": description(name),
        "comparisons": [
            {
                "quantity": each.quantity,
                "paper": each.paper,
                "here": each.measured,
                "agrees": each.verdict.value == "agrees",
                "reason": each.reason or None,
            }
            for each in comparisons
        ],
    }
    account.lines += [(f"[{k}]", each.reason) for k, each in enumerate(_explained(comparisons), 1)]


def _table(comparisons: Sequence[Comparison]) -> str:
    """Numbers of the paper and ours side by side."""
    numbers = {id(each): k for k, each in enumerate(_explained(comparisons), 1)}
    rows = [
        (each.quantity, shown(each.paper), shown(each.measured), f"{each.verdict.value}{_mark(numbers, each)}")
        for each in comparisons
    ]
    most = max(shutil.get_terminal_size((160, 24)).columns, _LEAST_WIDTH) // 3
    widths = [min(most, max(len(row[k]) for row in (_HEAD, *rows))) for k in range(3)]
    rule = [*("─" * width for width in widths), ""]
    return "\n".join(line for row in (_HEAD, rule, *rows) for line in _lines(row, widths))


def _lines(row: Sequence[str], widths: Sequence[int]) -> list[str]:
    """A row in lines: cells that are wider than their column go on below."""
    cells = [wrap(cell, width) or [""] for cell, width in zip(row, widths, strict=False)]
    below = zip_longest(*cells, [row[-1]], fillvalue="")
    return [
        "  ".join(part.ljust(width) for part, width in zip(line, [*widths, 0], strict=True)).rstrip() for line in below
    ]


def _explained(comparisons: Sequence[Comparison]) -> list[Comparison]:
    """Those with a reason."""
    return [each for each in comparisons if each.reason]


def _mark(numbers: dict[int, int], comparison: Comparison) -> str:
    return f" [{numbers[id(comparison)]}]" if id(comparison) in numbers else ""


def _takes(known: Registered) -> str:
    """Time, and marks for what else is needed."""
    return f"{time_in_words(known.seconds or 0.0)}{'*' if known.quick else ' '}{'†' if known.data else ' '}"


def _needs(known: Registered) -> dict[str, Any]:
    return {"seconds": known.seconds, "data": known.data, "quick": known.quick or None}
