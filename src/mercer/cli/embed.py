"""``mercer embed``: coordinates of the rows of a file, with a proof, a picture and a model for new rows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from mercer.cli.cluster import cluster_option
from mercer.cli.completion import complete_columns
from mercer.cli.models import KERNELS, METHODS
from mercer.cli.options import (
    DATA,
    TARGET,
    checkpoint_options,
    estimate_option,
    memory_option,
    picture_options,
    reading_options,
    saying_options,
    seed_option,
)

_FILE = click.Path(dir_okay=False, path_type=Path)


@click.command(short_help="Coordinates of the rows of a file, proved optimal, and a picture.")
@click.argument("data", type=DATA, metavar="FILE")
@click.option(
    "--output",
    "-o",
    type=TARGET,
    help="Write the coordinates: .csv, .tsv, .parquet, .npy or .npz by the ending; - is standard output.",
)
@click.option("--model", "model_path", type=_FILE, help="Write the model, for mercer transform: a file .mercer.")
@click.option("--report", "report_path", type=_FILE, help="Write a page to explore: a file .html.")
@picture_options
@click.option("--label", metavar="COLUMN", shell_complete=complete_columns, help="Colour by this column.")
@click.option("--scale", is_flag=True, help="Standardise: every column gets mean 0 and standard deviation 1.")
@click.option("--method", type=click.Choice(METHODS), default="sdp", show_default=True, help="The embedding.")
@click.option("--kernel", type=click.Choice(KERNELS), help="How alike two rows are. [default: that of the method]")
@click.option("--sigma", metavar="NUMBER", help="Bandwidth, or median; of the Gaussian kernel if none is named.")
@click.option("--neighbors", type=click.IntRange(min=2), help="Neighbours of every row, where they make a graph.")
@click.option("--components", type=click.IntRange(min=1), help="Coordinates. [default: as many as say something]")
@click.option("--landmarks", type=click.IntRange(min=2), help="Solve on so many rows, and extend to the others.")
@click.option("--tol", type=click.FloatRange(0, 1, min_open=True, max_open=True), help="The gap to be proved.")
@seed_option
@memory_option
@checkpoint_options
@estimate_option
@reading_options
@cluster_option
@saying_options
def embed(**options: Any) -> None:
    """Give the rows of FILE coordinates that are proved optimal, and draw them.

    \b
      mercer embed data.csv                         a picture and the proof in words
      mercer embed data.csv --label species --scale
      mercer embed data.csv --output coordinates.csv --model data.mercer
      cat data.csv | mercer embed - --output - > coordinates.csv

    A file that is larger than --memory-limit is read a block at a time: it is solved on --landmarks and extended to
    all rows, and coordinates are written as .npy.

    \b
      mercer embed data.parquet --memory-limit 1GB --landmarks 1000 -o map.npy

    The columns that hold numbers are used, the others are left out and named. Ctrl-C keeps the best so far and says
    how to go on. --checkpoint keeps it too: in a file .npz the best iterate, from which other options may go on, and in
    any other all of the run, to the same answer.

    Files: .csv, .tsv and other text, .npy, .npz, .parquet, .h5, .zarr, .h5ad; - is standard input. Exit codes: 0 done,
    1 data that cannot be used, 2 a wrong call, 130 interrupted.
    """  # noqa: D301 (click reads the character \b, which a raw text would not hold)
    from mercer.cli.embedding import embedded

    embedded(options)
