"""``mercer density``: a probability density of the rows of a file; points drawn from it, or how likely rows are."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from mercer.cli.cluster import cluster_option
from mercer.cli.options import (
    DATA,
    TARGET,
    checkpoint_options,
    estimate_option,
    names,
    picture_options,
    reading_options,
    saying_options,
    seed_option,
)

_FILE = click.Path(dir_okay=False, path_type=Path)


@click.command(short_help="A probability density: draw it, sample it, score rows.")
@click.argument("data", type=DATA, metavar="FILE")
@click.option("--sample", type=click.IntRange(min=1), metavar="N", help="Draw N new rows.")
@click.option("--score", "score_path", type=DATA, metavar="OTHER", help="How likely the rows of another file are.")
@click.option(
    "--output",
    "-o",
    type=TARGET,
    help="Write the rows drawn, or log p(x) of those scored, of FILE if none are named; - is standard output.",
)
@click.option("--model", "model_path", type=_FILE, help="Write the model: a file .mercer.")
@picture_options
@click.option("--axes", **names("Draw the density of these one or two columns. [default: the first two]"))
@click.option("--scale", is_flag=True, help="Standardise for the fit; densities and samples stay in the file's units.")
@click.option(
    "--objective",
    type=click.Choice(["likelihood", "projection", "mmd"]),
    default="likelihood",
    show_default=True,
    help="Fit by likelihood, or by the distance of the means of kernel functions: all of it, or what the support sees.",
)
@click.option(
    "--sigma", metavar="NUMBER", help="One bandwidth for all. [default: each point has a covariance of its own]"
)
@click.option("--support", type=click.IntRange(min=1), help="Points that the density is made of. [default: found]")
@click.option("--regularization", type=click.FloatRange(min=0), help="The larger, the smoother. [default: found]")
@seed_option
@checkpoint_options
@estimate_option
@reading_options
@cluster_option
@saying_options
def density(**options: Any) -> None:
    """Fit a probability density, a sum of squares of kernel functions, to the rows of FILE, and prove that it is best.

    \b
      mercer density data.csv                       a picture and the proof in words
      mercer density data.csv --sample 1000 --output drawn.csv
      mercer density data.csv --score new.csv --output scores.csv

    Ctrl-C keeps the run and says how to go on; with --checkpoint FILE the same call goes on after anything.

    Files: .csv, .tsv and other text, .npy, .npz, .parquet, .h5, .zarr, .h5ad; - is standard input. Exit codes: 0 done,
    1 data that cannot be used, 2 a wrong call, 130 interrupted.
    """  # noqa: D301 (click reads the character \b, which a raw text would not hold)
    from mercer.cli.densities import fitted_density

    fitted_density(options)
