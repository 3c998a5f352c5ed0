"""``mercer landmarks``: a few rows of a file, with weights, that stand for all of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from mercer.cli.cluster import cluster_option
from mercer.cli.models import KERNELS
from mercer.cli.options import (
    DATA,
    TARGET,
    checkpoint_options,
    estimate_option,
    picture_options,
    reading_options,
    saying_options,
)

_FILE = click.Path(dir_okay=False, path_type=Path)


@click.command(short_help="A few rows with weights that stand for all.")
@click.argument("data", type=DATA, metavar="FILE")
@click.option("--number", "-n", type=click.IntRange(min=1), help="Landmarks, at most. [default: 100]")
@click.option(
    "--trace-fraction",
    type=click.FloatRange(0, 1, min_open=True),
    help="The part of the kernel's trace that they carry, in the place of their number.",
)
@click.option(
    "--output",
    "-o",
    type=TARGET,
    help="Write them: row, weight and columns; - is standard output. [default: named after the file]",
)
@click.option("--model", "model_path", type=_FILE, help="Write the model: a file .mercer.")
@picture_options
@click.option("--scale", is_flag=True, help="Standardise: every column gets mean 0 and standard deviation 1.")
@click.option(
    "--kernel", type=click.Choice([name for name in KERNELS if name != "self-tuning"]), help="[default: gaussian]"
)
@click.option("--sigma", metavar="NUMBER", help="Bandwidth of the kernel. [default: median]")
@checkpoint_options
@estimate_option
@reading_options
@cluster_option
@saying_options
def landmarks(**options: Any) -> None:
    """Choose rows of FILE, with weights, that stand for all of them, and prove how well.

    \b
      mercer landmarks data.csv -n 20
      mercer landmarks data.csv -n 20 --output - | head -4

    Ctrl-C keeps the run and says how to go on; with --checkpoint FILE the same call goes on after anything.

    Files: .csv, .tsv and other text, .npy, .npz, .parquet, .h5, .zarr, .h5ad; - is standard input. Exit codes: 0 done,
    1 data that cannot be used, 2 a wrong call, 130 interrupted.
    """  # noqa: D301 (click reads the character \b, which a raw text would not hold)
    from mercer.cli.choosing import chosen_landmarks

    chosen_landmarks(options)
