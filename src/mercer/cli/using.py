"""``mercer transform``, ``verify``, ``novelty`` and ``info``: what can be asked of a model file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from mercer.cli.cluster import cluster_option
from mercer.cli.completion import complete_columns
from mercer.cli.options import DATA, TARGET, memory_option, reading_options, saying_options, seed_option

MODEL = click.Path(exists=True, dir_okay=False, path_type=Path)
_OUTPUT = "Where to write them: .csv, .tsv, .parquet, .npy or .npz; - is standard output. [default: named after FILE]"


@click.command(short_help="Coordinates of rows that a model has never seen.")
@click.argument("model", type=MODEL)
@click.argument("data", type=DATA, metavar="FILE")
@click.option("--output", "-o", type=TARGET, help=_OUTPUT)
@memory_option
@reading_options
@cluster_option
@saying_options
def transform(**options: Any) -> None:
    """Give the rows of FILE, which MODEL has never seen, their coordinates.

    \b
      mercer embed data.csv --model data.mercer
      mercer transform data.mercer new.csv --output coordinates.csv

    A file that is larger than --memory-limit is read a block at a time, and coordinates are written as .npy.
    The columns are found by their names, and standardised as those of the fit were. Exit codes: 0 done, 1 data or a
    model that cannot be used, 2 a wrong call.
    """  # noqa: D301 (click reads the character \b, which a raw text would not hold)
    from mercer.cli.asking import transformed

    transformed(options)


@click.command(short_help="Rows that are most unlike the others, or the data of a model.")
@click.argument("model", type=MODEL, metavar="REFERENCE")
@click.argument("data", type=DATA, metavar="FILE", required=False)
@click.option("--output", "-o", type=TARGET, help="Write the scores of all rows; - is standard output.")
@click.option("--number", "-n", type=click.IntRange(min=1), default=10, show_default=True, help="Rows to show.")
@reading_options
@saying_options
def novelty(**options: Any) -> None:
    """Say which rows of FILE are most unlike those of REFERENCE, a table or a model.

    \b
      mercer novelty data.csv                       rows unlike the others of the table
      mercer novelty data.csv new.csv               new rows unlike those of the table
      mercer novelty data.mercer new.csv --output scores.csv

    Of a table, a score says how empty it is around a row, or how much emptier than around its neighbours, whichever is
    more unusual; a row of the table itself is not counted (NoveltyDetector). Of a model scores are its own: of an
    embedding -log of the affinity of a row with the data of the fit, which is a poor detector among many outliers. The
    higher, the farther away. Exit codes: 0 done, 1 data or a model that cannot be used, 2 a wrong call.
    """  # noqa: D301 (click reads the character \b, which a raw text would not hold)
    from mercer.cli.asking import scored

    scored(options)


@click.command(short_help="Prove again, from model and data, that the model is optimal.")
@click.argument("model", type=MODEL)
@click.argument("data", type=DATA, metavar="FILE")
@click.option("--tol", type=click.FloatRange(min=0, min_open=True), help="The gap to hold. [default: that of the fit]")
@click.option("--target", metavar="COLUMN", shell_complete=complete_columns, help="Of a regression: the column of y.")
@click.option("--extended", is_flag=True, help="Of an embedding: prove how good its extension to all rows of FILE is.")
@seed_option
@memory_option
@reading_options
@cluster_option
@saying_options
def verify(**options: Any) -> None:
    """Prove again, from MODEL and its data FILE alone, that the model is optimal; no solver is believed.

    \b
      mercer verify data.mercer data.csv && echo proved
      mercer verify data.mercer data.parquet --memory-limit 1GB --extended --tol 0.01

    Exit codes: 0 the certificate holds, 3 it does not, 1 data or a model that cannot be used, 2 a wrong call.
    """  # noqa: D301 (click reads the character \b, which a raw text would not hold)
    from mercer.cli.asking import verified

    verified(options)


@click.command(short_help="What a model file says, or what is installed.")
@click.argument("model", type=MODEL, required=False)
@saying_options
def info(**options: Any) -> None:
    """Say what MODEL is, without running it; without a model, what this installation has.

    \b
      mercer info data.mercer
      mercer info
    """  # noqa: D301 (click reads the character \b, which a raw text would not hold)
    from mercer.cli.describing import described

    described(options)
