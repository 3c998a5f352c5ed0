"""``mercer test``, which answers whether samples differ and whether one column depends on another."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from mercer.cli.cluster import cluster_option
from mercer.cli.options import DATA, Reading, checkpoint_options, names, reading_options, saying_options
from mercer.cli.output import refuse_missing_folder, refuse_unknown_format


@click.command(short_help="Do samples differ, does a column depend on another?")
@click.argument("files", nargs=-1, required=True, type=DATA)
@click.option("--by", metavar="COLUMN", help="One file: compare the groups of rows that this column names.")
@click.option("--groups", multiple=True, metavar="GROUP", help="With --by: only these groups.")
@click.option("--depends", **names("One file: do these columns depend on those of --on?"))
@click.option("--on", **names("With --depends: on these columns; all others if left out."))
@click.option("--explain", is_flag=True, help="Two samples: which columns carry the difference.")
@click.option("--time-series", is_flag=True, help="Rows are in the order of time, and neighbours may be alike.")
@reading_options
@click.option(
    "--compress",
    type=click.Choice(["landmarks", "thinning"]),
    help="Many rows: calculate with few that stand for all. The p-value stays valid, small differences may be missed.",
)
@click.option("--resamples", type=click.IntRange(min=19), default=999, show_default=True, help="Random relabellings.")
@click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True, help="Of the random relabellings.")
@click.option(
    "--output",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Where to save the picture; the suffix decides the format.  [default: mercer-test.png; none with --json]",
)
@click.option("--no-picture", is_flag=True, help="Save no picture.")
@checkpoint_options
@cluster_option
@saying_options
def test(**options: Any) -> None:
    """Say whether the samples in two FILES differ, or whether a column of one FILE depends on another.

    \b
      mercer test before.csv after.csv              two files, the same columns
      mercer test plants.csv --by species           one file, groups of rows
      mercer test plants.csv --depends height --on light

    The answer is a sentence with a p-value: how often chance alone does as much. It is valid for any kind of
    difference or dependence, in numbers and in categories, if rows are independent of each other (else --time-series)
    and the question was chosen before the data were seen.

    Ctrl-C keeps the test so far and says how to go on.

    Files: .csv, .tsv and other text, .npy, .npz, .parquet, .h5, .zarr, .h5ad; - is standard input. The exit code is 0
    whatever the answer, 1 for data that cannot be used, 2 for a wrong call.
    """  # noqa: D301 (click reads the character \b, which a raw text would not hold)
    from mercer.cli.request import Request

    long_run = {name: options.pop(name) for name in ("checkpoint", "checkpoint_every")}
    request = Request(reading=Reading.taken(options), **options)
    picture = request.picture
    if picture is not None:
        refuse_missing_folder(picture)
        refuse_unknown_format(picture)
    from mercer.cli.answers import answered
    from mercer.cli.checkpoints import kept_run

    with kept_run(long_run | options, request.files[0]) as kept:
        answer = answered(request)
        kept.discard()
    if request.as_json or not request.quiet:
        click.echo(answer.as_json() if request.as_json else answer.as_text())
