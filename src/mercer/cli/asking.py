"""What ``mercer transform``, ``novelty`` and ``verify`` do."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click
import numpy as np

from mercer.backends import config_context
from mercer.cli.by_blocks import large_file, transformed_by_blocks
from mercer.cli.data import FitData, new_data
from mercer.cli.errors import NOT_CERTIFIED, collected_warnings, one_sentence
from mercer.cli.model_files import is_model, load_with
from mercer.cli.novelties import detector_and_rows, tell_novel
from mercer.cli.options import Reading
from mercer.cli.output import STANDARD_OUTPUT, refuse_clashes, refuse_table, write_columns
from mercer.cli.progress import clock
from mercer.cli.saying import Account, beside, certified
from mercer.io import Preparation

_STATE_A_GAP = ("SDPEmbedding", "KernelizedSDPEmbedding", "MaximumVarianceUnfolding")  # by their parameter tol
_TOL = 1e-6  # of the others


def transformed(options: dict[str, Any]) -> None:
    """Answer a call of ``mercer transform``."""
    reading, account = Reading.taken(options), Account()
    limit = options.pop("memory_limit")
    refuse_clashes([options["output"]], [options["data"], options["model"]])
    with one_sentence(), config_context(memory_limit=limit), collected_warnings(account.notes):
        output = _transformed_large(options, reading, account)
    if output is not None:
        _say(account, options, output)
        return
    output = options["output"] or beside(options["data"], "-coordinates.csv")
    refuse_table(output)
    with one_sentence(), config_context(memory_limit=limit), collected_warnings(account.notes):
        model, data = opened(options, reading, account)
        _require(model, "transform", options["model"], "gives rows no coordinates")
        coordinates = np.asarray(model.transform(data.points))
        columns = dict(zip(map(str, model.get_feature_names_out()), coordinates.T, strict=True))
        write_columns(data.with_places(columns), output)
    count = coordinates.shape[1]
    account.sentence = f"{data.table.source}: {data.words()}; {count} coordinate{'s' if count > 1 else ''} each."
    account.lines.append(("Coordinates", _shown(output)))
    account.facts |= {"coordinates": count, "output": str(output)}
    again = reading.words(columns=bool(reading.columns))
    account.next_command = ["mercer", "novelty", str(options["model"]), str(options["data"]), *again]
    _say(account, options, output)


def _transformed_large(options: dict[str, Any], reading: Reading, account: Account) -> Path | None:
    """Where the coordinates of a file were written that is larger than the memory limit; None of a smaller one."""
    if large_file(options["data"], reading) is None:
        return None
    model, preparation = load_with(options["model"])
    _require(model, "transform", options["model"], "gives rows no coordinates")
    named = () if preparation is None or reading.columns else preparation.columns
    large = large_file(options["data"], reading, named)
    if large is None:
        return None
    account.notes += large.notes
    account.facts |= {"model": str(options["model"]), "method": type(model).__name__}
    preparation = preparation or Preparation(large.columns)
    return transformed_by_blocks(model, preparation, large, options["output"], account, shown=not options["quiet"])


def scored(options: dict[str, Any]) -> None:
    """Answer a call of ``mercer novelty``."""
    reading, account = Reading.taken(options), Account()
    refuse_table(options["output"])
    refuse_clashes([options["output"]], [options["data"], options["model"]])
    with one_sentence(), collected_warnings(account.notes):
        if is_model(options["model"]):
            model, data = _model_and_rows(options, reading, account)
        else:
            model, data = detector_and_rows(options, reading, account)
        scores = np.asarray(model.novelty(data.points), np.float64)
        if options["output"] is not None:
            write_columns(data.with_places({"novelty": scores}), options["output"])
    order = np.argsort(-scores, kind="stable")[: options["number"]]
    account.sentence = f"{data.table.source}: {data.words()}; scores from {scores.min():.4g} to {scores.max():.4g}."
    account.lines += [(f"{scores[row]:.4g}", f"{data.unit} {data.places[row]} of {data.table.source}") for row in order]
    if options["output"] is not None:
        account.lines.append(("Scores", _shown(options["output"])))
    account.facts |= {
        "most_novel": [{data.unit: int(data.places[row]), "novelty": float(scores[row])} for row in order],
        "output": None if options["output"] is None else str(options["output"]),
    }
    tell_novel(model, scores, account)
    _say(account, options, options["output"])


def _model_and_rows(options: dict[str, Any], reading: Reading, account: Account) -> tuple[Any, FitData]:
    """A model of a file that gives scores of novelty, and the rows to be scored."""
    if options["data"] is None:
        raise click.UsageError(f"{options['model']} is a model: name the FILE whose rows are to be scored.")
    model, data = opened(options, reading, account)
    _require(model, "novelty", options["model"], "gives no scores of novelty")
    return model, data


def verified(options: dict[str, Any]) -> None:
    """Answer a call of ``mercer verify``."""
    from mercer.verification import verify

    reading, account = Reading.taken(options), Account()
    limit, extended = options.pop("memory_limit"), options["extended"]
    with one_sentence(), config_context(memory_limit=limit), collected_warnings(account.notes):
        model, points, y = _proved_on(options, reading, account)
        tol = options["tol"] or (model.tol if type(model).__name__ in _STATE_A_GAP else _TOL)
        with clock("Proving the bound", shown=not options["quiet"]):
            try:
                proof, denied = verify(model, points, y, extended=extended, random_state=options["seed"]), ""
            except (ValueError, ArithmeticError) as error:
                proof, denied = None, str(error)
    holds = proof is not None and proof.holds(tol)
    account.sentence = (
        f"The certificate of {options['model']} {'holds' if holds else 'does not hold'}. {denied or proof}"
    )
    if proof is not None:
        account.lines.append(("Asked for", f"a gap of {tol:.0e}"))
    account.facts |= {"holds": holds, "tol": tol, "certificate": certified(proof), "why": denied or None}
    account.say(as_json=options["as_json"], quiet=options["quiet"] and holds)
    if not holds:
        click.get_current_context().exit(NOT_CERTIFIED)


def _proved_on(options: dict[str, Any], reading: Reading, account: Account) -> tuple[Any, Any, Any]:
    """The model, the rows of its data, by blocks where they are many, and of a regression the column it predicts."""
    if large_file(options["data"], reading) is None:
        model, data, y = _with_target(options, reading, account)
        if not options["extended"]:
            _require_rows(model, data)
        return model, data.points, y
    model, preparation = load_with(options["model"])
    large = large_file(options["data"], reading, () if preparation is None else preparation.columns)
    if large is None or options["target"] is not None or (preparation is not None and preparation.is_scaled):
        raise ValueError(f"{options['data']} is larger than --memory-limit, and this needs all its rows: raise it.")
    account.facts |= {"model": str(options["model"]), "method": type(model).__name__, **large.told()}
    return model, large.rows, None


def opened(
    options: dict[str, Any], reading: Reading, account: Account, label: str | None = None
) -> tuple[Any, FitData]:
    """The model, and the rows of the file as it takes them."""
    model, preparation = load_with(options["model"])
    data = new_data(options["data"], reading, preparation, label=label)
    account.notes += data.notes
    account.facts |= {"model": str(options["model"]), "method": type(model).__name__, **data.told()}
    _require_columns(model, data, options["model"])
    return model, data


def _with_target(options: dict[str, Any], reading: Reading, account: Account) -> tuple[Any, FitData, Any]:
    """The model, its data, and of a regression the column that it predicts."""
    model, data = opened(options, reading, account, label=options["target"])
    if data.label is None:
        return model, data, None
    return model, data, data.label.values if data.label.holds_numbers else np.array(data.label.to_list())


def _require_columns(model: Any, data: FitData, path: Path) -> None:
    found, meant = len(data.table.parts), getattr(model, "n_features_in_", None)
    if meant is not None and found != meant:
        raise ValueError(
            f"{path} was fitted to {meant} columns and {data.table.source} has {found}: name them with --columns."
        )


def _require_rows(model: Any, data: FitData) -> None:
    coordinates = getattr(model, "embedding_", None)
    if coordinates is not None and len(coordinates) != len(data.table):
        raise ValueError(
            f"The model was fitted to {len(coordinates)} rows and {data.table.source} has {len(data.table)}: pass the "
            "data of the fit, with the same --missing."
        )


def _require(model: Any, method: str, path: Path, otherwise: str) -> None:
    if not hasattr(model, method):
        raise ValueError(f"{path} is a model of the class {type(model).__name__}, which {otherwise}.")


def _shown(output: Path) -> str:
    return "standard output" if str(output) == STANDARD_OUTPUT else str(output)


def _say(account: Account, options: dict[str, Any], output: Path | None) -> None:
    account.say(
        as_json=options["as_json"], quiet=options["quiet"], aside=output is not None and str(output) == STANDARD_OUTPUT
    )
