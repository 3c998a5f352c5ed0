"""``mercer experiment``: the figures and tables of the papers, measured again."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from mercer.cli.completion import complete_experiments
from mercer.cli.options import saying_options


@click.command(short_help="Figures and tables of the papers, measured again.")
@click.argument("name", required=False, shell_complete=complete_experiments)
@click.option(
    "--output",
    "-o",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Where to save the picture; the suffix decides the format. [default: NAME.png]",
)
@click.option("--full", is_flag=True, help="At the paper's size, where that takes minutes and is not the default.")
@click.option("--list", "listing", is_flag=True, help="List the experiments, and what each takes, and leave.")
@saying_options
def experiment(**options: Any) -> None:
    """Reproduce the figure or table NAME of a paper: its numbers beside the measured ones, and its picture.

    \b
      mercer experiment --list
      mercer experiment psd22-fig1
      mercer experiment psd17-figd15 --full

    Those that take minutes run a smaller version unless --full is said. Those on real data read them from the folder
    that the variable MERCER_DATA names.
    """  # noqa: D301 (click reads the character \b, which a raw text would not hold)
    from mercer.cli.reproducing import listed, reproduced

    if options["listing"]:
        listed(options)
    else:
        reproduced(options)
