"""``mercer report``: a page of a model and its data, to be opened, explored and sent on."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from mercer.cli.completion import complete_columns
from mercer.cli.options import DATA, reading_options, saying_options
from mercer.cli.using import MODEL


@click.command(short_help="A page of a model and its data, to explore in a browser.")
@click.argument("model", type=MODEL)
@click.argument("data", type=DATA, metavar="FILE")
@click.option(
    "--output",
    "-o",
    type=click.Path(dir_okay=False, path_type=Path),
    help="The page, .html. [default: named after FILE]",
)
@click.option("--label", metavar="COLUMN", shell_complete=complete_columns, help="Colour by this column.")
@click.option("--title", help="Of the page. [default: the name of FILE]")
@click.option(
    "--rank-path", is_flag=True, help="Show how the rank of a Gaussian kernel's embedding changes with its bandwidth."
)
@click.option("--plane-map", is_flag=True, help="Show all coordinates of the rows as one map in the plane besides.")
@reading_options
@saying_options
def report(**options: Any) -> None:
    """Make a page of MODEL and its data FILE that can be opened, explored and sent on.

    \b
      mercer report data.mercer data.csv --label species

    Exit codes: 0 done, 1 data or a model that cannot be used, 2 a wrong call.
    """  # noqa: D301 (click reads the character \b, which a raw text would not hold)
    from mercer.cli.pages import reported

    reported(options)
