"""What ``mercer density`` does."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click
import numpy as np

from mercer.backends.arrays import Array
from mercer.cli.checkpoints import kept_run
from mercer.cli.data import FitData, fit_data, new_data
from mercer.cli.errors import INTERRUPTED, one_sentence
from mercer.cli.fitting import tell_estimate, was_interrupted, watched_fit
from mercer.cli.model_files import save_with
from mercer.cli.models import kernel_of
from mercer.cli.options import Reading
from mercer.cli.output import (
    STANDARD_OUTPUT,
    chosen_picture,
    refuse_clashes,
    refuse_table,
    refuse_target,
    write_columns,
)
from mercer.cli.saying import Account, beside, called_again, certified
from mercer.cli.tables import split
from mercer.io import Preparation


def fitted_density(options: dict[str, Any]) -> None:
    """Answer a call of ``mercer density``."""
    reading = Reading.taken(options)
    output = _target(options)
    aside = output is not None and str(output) == STANDARD_OUTPUT
    default = None if options["as_json"] or aside else beside(options["data"], "-density.png")
    picture = chosen_picture(options["picture"], options["no_picture"], default)
    read = [options["data"], options["score_path"]]
    refuse_clashes([output, options["model_path"], picture], read, options["checkpoint"])
    account = Account()
    with one_sentence(), kept_run(options, options["data"]) as kept:
        data = fit_data(options["data"], reading, label=None, scale=options["scale"])
        account.notes += data.notes
        model = _fitted(options, data, account)
        _tell(account, model, data)
        if output is not None:
            write_columns(_columns(options, reading, model, data, account), output)
            account.lines.append(("Written", "standard output" if aside else str(output)))
        if options["model_path"] is not None:
            save_with(model, options["model_path"], data.preparation)
            account.lines.append(("Model", str(options["model_path"])))
        if picture is not None:
            _draw(model, data, split(options["axes"], data.table.columns), picture)
            account.lines.append(("Picture", str(picture)))
        if was_interrupted(model):
            kept.tell(account, "the run so far")
        else:
            kept.discard()
    account.facts |= {
        name: None if path is None else str(path) for name, path in (("output", output), ("picture", picture))
    }
    if options["sample"] is None and options["score_path"] is None:
        account.next_command = called_again(["--sample", "1000"])
    account.say(as_json=options["as_json"], quiet=options["quiet"], aside=aside)
    if was_interrupted(model):
        click.get_current_context().exit(INTERRUPTED)


def _target(options: dict[str, Any]) -> Path | None:
    """Where the table goes, if there is one; refused before the work where it cannot be written."""
    if options["sample"] is not None and options["score_path"] is not None:
        raise click.UsageError("--sample draws rows and --score scores some: ask for one of them at a time.")
    output: Path | None = options["output"]
    if output is None and options["sample"] is not None:
        output = beside(options["data"], "-sample.csv")
    if output is None and options["score_path"] is not None:
        output = beside(options["score_path"], "-scores.csv")
    refuse_table(output)
    refuse_target(options["model_path"], ".mercer")
    return output


def _fitted(options: dict[str, Any], data: FitData, account: Account) -> Any:
    from mercer.density import SumOfSquaresDensity

    model = SumOfSquaresDensity(
        kernel_of(None, options["sigma"]),
        support=options["support"],
        objective=options["objective"],
        regularization=options["regularization"],
        random_state=options["seed"],
    )
    tell_estimate(options, model, data, account)
    return watched_fit(model, data.points, "Fitting the density", account.notes, shown=not options["quiet"])


def _columns(options: dict[str, Any], reading: Reading, model: Any, data: FitData, account: Account) -> dict[str, Any]:
    """The table to write: rows drawn, or log-densities, in the units of the file."""
    if options["sample"] is not None:
        drawn = data.preparation.undone(model.sample(options["sample"], random_state=options["seed"]))
        return dict(zip(data.preparation.columns, drawn.T, strict=True))
    scored = data
    if options["score_path"] is not None:
        scored = new_data(options["score_path"], reading, data.preparation)
        account.notes += scored.notes
    values = log_densities(model, scored.points, data.preparation)
    account.lines.append(("Mean log p", f"{values.mean():.6g} over {values.size} rows of {scored.table.source}"))
    account.facts["mean_log_density"] = float(values.mean())
    return scored.with_places({"log_density": values})


def log_densities(model: Any, points: Any, preparation: Preparation) -> Array:
    """log p(x) in the units of the file: standardised columns are narrower by their scales."""
    return np.asarray(model.score_samples(points), np.float64) - _log_volume(preparation)


def _log_volume(preparation: Preparation) -> float:
    """The logarithm of the volume that standardising makes one."""
    return 0.0 if preparation.scales is None else float(np.log(preparation.scales).sum())


def _tell(account: Account, model: Any, data: FitData) -> None:
    mmd = getattr(model, "mmd_", None)  # a fit by likelihood has none
    if mmd is None:
        near = f"of mean log p {model.log_likelihood_ - _log_volume(data.preparation):.4g}"
    else:
        near = f"at an MMD of {mmd:.3g} from the rows"
    account.sentence = (
        f"{data.table.source}: {data.words()}; a density of {model.rank_} square{'s' if model.rank_ > 1 else ''} on "
        f"{len(model.support_)} points, {near}."
    )
    account.lines.append(("Certificate", str(model.certificate_)))
    account.facts |= data.told() | {
        "method": type(model).__name__,
        "kernel": repr(model.kernel_),
        "squares": model.rank_,
        "objective": model.objective,
        "mmd": mmd,
        "status": model.status_.name,
        "certificate": certified(model.certificate_),
    }


def _draw(model: Any, data: FitData, axes: list[str], path: Path) -> None:
    """The density of one or two columns, in the units in which it was fitted."""
    from mercer.plots import plot_density, save_figure

    columns = list(data.preparation.columns)
    chosen = axes or columns[:2]
    unknown = [name for name in chosen if name not in columns]
    if unknown or len(chosen) > 2:
        raise click.UsageError(f"--axes takes one or two of {', '.join(columns)}, not {', '.join(chosen)}.")
    places = None if chosen == columns else [columns.index(name) for name in chosen]
    figure = plot_density(model, np.asarray(data.points), columns=places)
    standard = " (standardised)" if data.preparation.is_scaled else ""
    figure.axes[0].set_xlabel(chosen[0] + standard)
    figure.axes[0].set_ylabel(chosen[1] + standard if len(chosen) > 1 else "density")
    save_figure(figure, path)
