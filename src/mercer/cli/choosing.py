"""What ``mercer landmarks`` does."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click
import numpy as np

from mercer.cli.checkpoints import kept_run
from mercer.cli.data import FitData, fit_data
from mercer.cli.errors import INTERRUPTED, one_sentence
from mercer.cli.fitting import tell_estimate, was_interrupted, watched_fit
from mercer.cli.model_files import save_with
from mercer.cli.models import kernel_of
from mercer.cli.options import Reading
from mercer.cli.output import (
    STANDARD_OUTPUT,
    chosen_picture,
    joined,
    refuse_clashes,
    refuse_table,
    refuse_target,
    write_columns,
)
from mercer.cli.saying import Account, beside, certified


def chosen_landmarks(options: dict[str, Any]) -> None:
    """Answer a call of ``mercer landmarks``."""
    reading = Reading.taken(options)
    path, quiet, as_json = options["data"], options["quiet"], options["as_json"]
    if options["number"] is not None and options["trace_fraction"] is not None:
        raise click.UsageError("--number and --trace-fraction both say how many landmarks there are: use one of them.")
    output = options["output"] or beside(path, "-landmarks.csv")
    refuse_table(output)
    refuse_target(options["model_path"], ".mercer")
    aside = str(output) == STANDARD_OUTPUT
    default = None if as_json or aside else beside(path, "-landmarks.png")
    picture = chosen_picture(options["picture"], options["no_picture"], default)
    refuse_clashes([output, options["model_path"], picture], [path], options["checkpoint"])
    account = Account()
    with one_sentence(), kept_run(options, path) as kept:
        mixed, otherwise = options["kernel"] == "mixed", "--kernel mixed takes all columns into account"
        data = fit_data(path, reading, label=None, scale=options["scale"], mixed=mixed, otherwise=otherwise)
        account.notes += data.notes
        model = _fitted(options, data, account)
        write_columns(_table(model, data), output)
        _tell(account, model, data)
        account.lines.append(("Landmarks", "standard output" if aside else str(output)))
        if options["model_path"] is not None:
            save_with(model, options["model_path"], data.preparation)
            account.lines.append(("Model", str(options["model_path"])))
        if picture is not None:
            _draw(model, data, picture)
            account.lines.append(("Picture", str(picture)))
        if was_interrupted(model):
            kept.tell(account, "the run so far")
        else:
            kept.discard()
    account.facts |= {"output": str(output), "picture": None if picture is None else str(picture)}
    account.next_command = _next(options, reading, model)
    account.say(as_json=as_json, quiet=quiet, aside=aside)
    if was_interrupted(model):
        click.get_current_context().exit(INTERRUPTED)


def _next(options: dict[str, Any], reading: Reading, model: Any) -> list[str]:
    """An embedding of the same columns through as many landmarks, where there are enough of them."""
    landmarks = ["--landmarks", str(model.indices_.size)] if model.indices_.size > 1 else []
    scaled = ["--scale"] if options["scale"] else []
    mixed = ["--kernel", "mixed"] if options["kernel"] == "mixed" else []
    return ["mercer", "embed", str(options["data"]), *reading.words(), *scaled, *mixed, *landmarks]


def _fitted(options: dict[str, Any], data: FitData, account: Account) -> Any:
    from mercer.quadrature import QuadratureSparsifier

    kernel = kernel_of(options["kernel"], options["sigma"])
    model = QuadratureSparsifier(kernel, n_nodes=options["number"], trace_fraction=options["trace_fraction"])
    tell_estimate(options, model, data, account)
    return watched_fit(model, data.points, "Choosing landmarks", account.notes, shown=not options["quiet"])


def _table(model: Any, data: FitData) -> dict[str, Any]:
    """Where each landmark stands in the file, its weight, and its values there."""
    place = {data.unit: data.places[model.indices_]}
    values = {part.name: part.values[model.indices_] for part in data.table.parts}
    return joined({**place, "weight": np.asarray(model.weights_)}, values)


def _tell(account: Account, model: Any, data: FitData) -> None:
    count = int(model.indices_.size)
    account.sentence = (
        f"{data.table.source}: {data.words()}; {count} of them stand for all, with {model.trace_fraction_:.1%} of the "
        "trace of the kernel."
    )
    account.lines.append(("Certificate", str(model.certificate_)))
    account.facts |= data.told() | {
        "method": type(model).__name__,
        "kernel": repr(model.kernel_),
        f"{data.unit}s_of_landmarks": [int(data.places[index]) for index in model.indices_],
        "weights": [float(weight) for weight in model.weights_],
        "discrepancy": model.discrepancy_,
        "trace_fraction": model.trace_fraction_,
        "certificate": certified(model.certificate_),
    }


def _draw(model: Any, data: FitData, path: Path) -> None:
    """The landmarks over the rows, in the first two columns of numbers that do not count the rows."""
    from mercer.plots import plot_quadrature, save_figure

    numbers = sorted((part for part in data.table.parts if part.holds_numbers), key=lambda part: part.counts_rows)[:2]
    if not numbers:
        raise ValueError(f"{data.table.source} has no column of numbers to draw: add --no-picture.")
    figure = plot_quadrature(model, np.stack([part.values for part in numbers], axis=1))
    figure.axes[0].set_xlabel(numbers[0].name)
    figure.axes[0].set_ylabel(numbers[-1].name if len(numbers) > 1 else "")
    save_figure(figure, path)
