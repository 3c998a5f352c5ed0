"""The commands. Heavy imports happen inside them, so that ``mercer --help`` answers at once."""

from __future__ import annotations

from pathlib import Path

import click

import mercer as package


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package.__version__, prog_name="mercer")
def mercer() -> None:
    """Learn positive semi-definite kernels from data, with a proof that what was learned is optimal."""


@mercer.command()
@click.option(
    "--output",
    type=click.Path(dir_okay=False, path_type=Path),
    default=Path("mercer-demo.png"),
    show_default=True,
    help="Where to save the picture; the suffix (.png, .svg, .pdf) decides the format.",
)
@click.option(
    "--sigma",
    type=click.FloatRange(min=0, min_open=True),
    default=1.2,
    show_default=True,
    help="Bandwidth of the Gaussian kernel.",
)
@click.option("--outliers", type=click.IntRange(min=0), default=10, show_default=True, help="Number of outliers.")
@click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True, help="Seed of data and solver.")
def demo(output: Path, sigma: float, outliers: int, seed: int) -> None:
    """Embed three clusters with outliers and prove that the embedding is optimal.

    The same data is embedded by the semi-definite programme and by diffusion maps; the picture shows both.
    """
    _refuse_missing_folder(output)
    from mercer.cli.progress import residual_bar
    from mercer.experiments.psd22.clusters_with_outliers import clusters_with_outliers
    from mercer.plots import save_figure

    try:
        with residual_bar("Solving the semi-definite programme", target=1e-6) as callback:
            result = clusters_with_outliers(sigma, n_outliers=outliers, random_state=seed, callback=callback)
        path = save_figure(result.figure(), output)
    except (ValueError, ModuleNotFoundError, OSError) as error:
        raise click.ClickException(str(error)) from None
    sdp = result.sdp
    click.echo(f"Data            {len(result.X)} points in the plane: three clusters and {outliers} outliers")
    seconds = sdp.history_[-1].seconds
    click.echo(f"SDP embedding   rank {sdp.rank_} after {sdp.n_products_} matrix-vector products in {seconds:.1f} s")
    click.echo(f"Certificate     {sdp.certificate_}")
    if outliers:
        models = sdp, result.diffusion_maps, result.markov_maps
        reach = [result.outlier_reach(model.embedding_) for model in models]
        click.echo(
            f"Outliers        set apart, {reach[0]:.1f} times as far out as the clusters reach; in diffusion maps "
            f"{reach[1]:.1f} times (λu) and {reach[2]:.1f} times (λψ)"
        )
    click.echo(f"Picture         {path}")


@mercer.command()
@click.argument("name", required=False)
@click.option(
    "--output",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Where to save the picture; the suffix decides the format.  [default: NAME.png]",
)
@click.option("--list", "listing", is_flag=True, help="List the experiments and leave.")
def experiment(name: str | None, output: Path | None, listing: bool) -> None:
    """Reproduce the figure or table NAME of a paper: its numbers beside the measured ones, and its picture."""
    from mercer.experiments import CATALOGUE, description

    if listing:
        width = max(map(len, CATALOGUE))
        for known in CATALOGUE:
            click.echo(f"{known:{width}}  {description(known)}")
        return
    if name not in CATALOGUE:
        wrong = "Name an experiment" if name is None else f"There is no experiment {name!r}"
        raise click.UsageError(f"{wrong}; mercer experiment --list shows them.")
    output = output or Path(f"{name}.png")
    _refuse_missing_folder(output)
    from mercer.cli.progress import clock
    from mercer.plots import save_figure

    try:
        with clock(description(name)):
            result = CATALOGUE[name]()
            path = save_figure(result.figure(), output)
    except (ValueError, ModuleNotFoundError, OSError) as error:
        raise click.ClickException(str(error)) from None
    for comparison in result.comparisons:
        click.echo(str(comparison))
    click.echo(f"Picture: {path}")


def _refuse_missing_folder(output: Path) -> None:
    folder = output.resolve().parent
    if not folder.is_dir():
        raise click.ClickException(f"The folder {folder} does not exist: create it, or choose another.")
