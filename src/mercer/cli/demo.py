"""``mercer demo``: what Mercer does, on data of its own."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from mercer.cli.options import saying_options
from mercer.cli.output import refuse_missing_folder, refuse_unknown_format


@click.command(short_help="Three clusters with outliers, embedded with a proof.")
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
@saying_options
def demo(output: Path, sigma: float, outliers: int, seed: int, as_json: bool, quiet: bool) -> None:
    """Embed three clusters with outliers and prove that the embedding is optimal.

    The same data is embedded by the semi-definite programme and by diffusion maps; the picture shows both.
    """
    refuse_missing_folder(output)
    refuse_unknown_format(output)
    from mercer.cli.errors import one_sentence
    from mercer.cli.progress import residual_bar
    from mercer.experiments.psd22.clusters_with_outliers import clusters_with_outliers
    from mercer.plots import save_figure

    bar = residual_bar("Solving the semi-definite programme", target=1e-6, shown=not quiet)
    with one_sentence():
        with bar as callback:
            result = clusters_with_outliers(sigma, n_outliers=outliers, random_state=seed, callback=callback)
        save_figure(result.figure(), output)
    _account(result, outliers, output).say(as_json=as_json, quiet=quiet)


def _account(result: Any, outliers: int, output: Path) -> Any:
    """What was done, in words and for machines."""
    from mercer.cli.saying import Account, certified

    sdp = result.sdp
    account = Account(sentence=f"{len(result.X)} points in the plane: three clusters and {outliers} outliers.")
    products, seconds = sdp.n_products_, sdp.history_[-1].seconds
    account.lines = [
        ("Embedding", f"rank {sdp.rank_} after {products} matrix-vector products in {seconds:.1f} s"),
        ("Certificate", str(sdp.certificate_)),
    ]
    models = sdp, result.diffusion_maps, result.markov_maps
    reach = [result.outlier_reach(model.embedding_) for model in models] if outliers else []
    if reach:
        far = f"set apart, {reach[0]:.1f} times as far out as the clusters reach; in diffusion maps"
        account.lines.append(("Outliers", f"{far} {reach[1]:.1f} times (λu) and {reach[2]:.1f} times (λψ)"))
    account.lines.append(("Picture", str(output)))
    account.facts = {
        "points": len(result.X),
        "rank": sdp.rank_,
        "certificate": certified(sdp.certificate_),
        "outlier_reach": dict(zip(("sdp", "diffusion", "markov"), reach, strict=False)),
        "picture": str(output),
    }
    account.next_command = ["mercer", "embed", "your-file.csv"]
    return account
