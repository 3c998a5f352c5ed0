"""What ``mercer embed`` does: read, fit, write, draw, and tell."""

from __future__ import annotations

import time
from contextlib import closing
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, NoReturn, final

import click
import numpy as np

from mercer.backends import config_context
from mercer.cli.by_blocks import embedded_by_blocks, large_file
from mercer.cli.checkpoints import KeptRun
from mercer.cli.data import FitData, fit_data
from mercer.cli.errors import INTERRUPTED, collected_warnings, one_sentence
from mercer.cli.fitting import tell_estimate, was_interrupted, watched_fit
from mercer.cli.model_files import save_with
from mercer.cli.models import ModelOptions
from mercer.cli.options import Reading
from mercer.cli.output import (
    STANDARD_OUTPUT,
    chosen_picture,
    refuse_clashes,
    refuse_table,
    refuse_target,
    write_columns,
)
from mercer.cli.pages import write_report
from mercer.cli.pictures import draw_map
from mercer.cli.progress import clock
from mercer.cli.saying import Account, beside, called_again, certified
from mercer.solvers import Status

_FEWEST = 4  # rows of a map
_DESCRIPTIONS = {
    "sdp": "Solving the semi-definite programme",
    "diffusion": "Finding the diffusion maps",
    "kernel-pca": "Finding the principal components",
    "unfolding": "Unfolding",
}


@final
@dataclass(frozen=True)
class EmbedRequest:
    """The options of the command; :func:`mercer.cli.embed.embed` says what they mean."""

    data: Path
    output: Path | None
    model_path: Path | None
    report_path: Path | None
    picture: Path | None
    picture_asked: bool
    label: str | None
    scale: bool
    checkpoint: Path | None
    checkpoint_every: str | None
    estimate: bool
    as_json: bool
    quiet: bool
    reading: Reading
    model: ModelOptions

    @classmethod
    def of(cls, options: dict[str, Any]) -> EmbedRequest:
        """The request, if all that it asks for can be written."""
        reading = Reading.taken(options)
        model = ModelOptions(**{field.name: options.pop(field.name) for field in fields(ModelOptions)})
        kept = options["checkpoint"]
        if kept is not None and model.method not in (("sdp",) if kept.suffix == ".npz" else ("sdp", "unfolding")):
            raise click.UsageError(f"--checkpoint has no meaning with --method {model.method}: leave it out.")
        refuse_table(options["output"])
        refuse_target(options["model_path"], ".mercer")
        refuse_target(options["report_path"], ".html")
        silent = options["as_json"] or str(options["output"]) == STANDARD_OUTPUT
        default = None if silent else beside(options["data"], "-map.png")
        asked = options["picture"] is not None
        options["picture"] = chosen_picture(options["picture"], options.pop("no_picture"), default)
        written = [options[name] for name in ("output", "model_path", "report_path", "picture")]
        refuse_clashes(written, [options["data"]], kept)
        options["picture_asked"] = asked
        return cls(reading=reading, model=model, **options)

    @property
    def journal(self) -> Path | None:
        """Where all of the run is kept, where that is asked for."""
        return None if self.checkpoint is None or self.checkpoint.suffix == ".npz" else self.checkpoint

    @property
    def aside(self) -> bool:
        """Whether standard output is taken by the coordinates."""
        return self.output is not None and str(self.output) == STANDARD_OUTPUT


def embedded(options: dict[str, Any]) -> None:
    """Answer a call of ``mercer embed``."""
    limit = options.pop("memory_limit")
    request = EmbedRequest.of(options)
    account = Account()
    with one_sentence(), config_context(memory_limit=limit):
        large = large_file(request.data, request.reading)
        if large is not None:
            finished = embedded_by_blocks(request, large, account)
            account.say(as_json=request.as_json, quiet=request.quiet)
            if not finished:
                raise click.exceptions.Exit(INTERRUPTED)
            return
    with one_sentence(), config_context(memory_limit=limit), closing(KeptRun(request.checkpoint, request.data)) as kept:
        data = fit_data(
            request.data,
            request.reading,
            label=request.label,
            scale=request.scale,
            mixed=request.model.mixed,
            otherwise="--label colours by such a column, --kernel mixed takes all columns into account",
        )
        account.notes += data.notes
        began = time.perf_counter()
        model = _fitted(request, data, account, kept)
        _tell_of_fit(account, model, data, time.perf_counter() - began)
        _write(request, account, model, data)
        if was_interrupted(model):
            _leave(request, account, kept)
        _draw(request, account, model, data)
        if request.journal is not None:
            kept.discard()
    account.next_command = _next(request)
    account.say(as_json=request.as_json, quiet=request.quiet, aside=request.aside)


def _fitted(request: EmbedRequest, data: FitData, account: Account, kept: KeptRun) -> Any:
    """The model; Ctrl-C before there is one to return ends the command."""
    model, shown = request.model.estimator(len(data.table)), not request.quiet
    description = _DESCRIPTIONS[request.model.method]
    tell_estimate(vars(request), model, data, account)
    path = kept.path if request.journal is None else None
    try:
        with config_context(checkpoint=request.journal, checkpoint_every=request.checkpoint_every):
            return watched_fit(model, data.points, description, account.notes, shown=shown, checkpoint=path)
    except KeyboardInterrupt:
        _leave(request, Account(sentence="Interrupted."), kept)


def _tell_of_fit(account: Account, model: Any, data: FitData, seconds: float) -> None:
    """The sentence, and the proof in words."""
    count, name = model.embedding_.shape[1], type(model).__name__
    account.sentence = (
        f"{data.table.source}: {data.words()}, embedded in {count} coordinate{'s' if count > 1 else ''} by {name} in "
        f"{seconds:.1f} s{', interrupted' if was_interrupted(model) else ''}."
    )
    levels = getattr(model, "levels_", ())
    proofs = [level.certificate for level in levels] or [getattr(model, "certificate_", None)]
    account.lines += [
        ("Certificate" if k == 0 else f"Level {k + 1}", str(proof))
        for k, proof in enumerate(proofs)
        if proof is not None
    ]
    if proofs[0] is None:
        account.lines.append(("Certificate", f"None: {name} proves nothing here; --method sdp does."))
    account.facts |= data.told() | {
        "method": name,
        "kernel": repr(getattr(model, "kernel_", None)),
        "coordinates": count,
        "seconds": seconds,
        "status": getattr(getattr(model, "status_", None), "name", None),
        "certificate": certified(proofs[0]),
        "levels": [{"rank": each.rank, "certificate": certified(each.certificate)} for each in levels],
    }


def _write(request: EmbedRequest, account: Account, model: Any, data: FitData) -> None:
    """The coordinates and the model, where they are asked for."""
    if request.output is not None:
        coordinates = np.asarray(model.embedding_)
        columns = dict(zip(map(str, model.get_feature_names_out()), coordinates.T, strict=True))
        write_columns(data.with_places(columns), request.output)
        account.lines.append(("Coordinates", "standard output" if request.aside else str(request.output)))
    if request.model_path is not None:
        save_with(model, request.model_path, data.preparation)
        account.lines.append(("Model", str(request.model_path)))
    account.facts |= {"output": _text(request.output), "model": _text(request.model_path)}


def _draw(request: EmbedRequest, account: Account, model: Any, data: FitData) -> None:
    """The picture and the page, which has the map of the picture too."""
    plane = None
    if request.picture is not None:
        with clock("Drawing the map", shown=not request.quiet), collected_warnings(account.notes):
            plane = _drawn_map(request.picture, account, model, data)
    if request.report_path is not None:
        with clock("Making the page", shown=not request.quiet):
            write_report(model, data, request.report_path, plane=plane)
        account.lines.append(("Page", str(request.report_path)))
    account.facts |= {"picture": _text(request.picture), "report": _text(request.report_path)}


def _drawn_map(path: Path, account: Account, model: Any, data: FitData) -> Any:
    """The map in the plane, drawn; the fit is worth telling of where it cannot be."""
    from mercer import plane_map

    if len(data.table) < _FEWEST or not np.ptp(np.asarray(model.embedding_), axis=0).any():
        account.notes.append("There is no picture: it takes four rows at least, with different coordinates.")
        return None
    plane = plane_map(np.asarray(model.embedding_), random_state=0)
    draw_map(plane, data, path)
    account.lines += [("Map", str(plane)), ("Picture", str(path))]
    return plane


def _leave(request: EmbedRequest, account: Account, kept: KeptRun) -> NoReturn:
    """End after Ctrl-C: say what is kept and how to go on."""
    account.notes = [note for note in account.notes if not note.startswith(Status.INTERRUPTED.message)]
    kept.tell(account, "the best iterate so far" if request.journal is None else "the run so far")
    account.say(as_json=request.as_json, quiet=request.quiet, aside=request.aside or not account.facts.get("rows"))
    raise click.exceptions.Exit(INTERRUPTED)


def _next(request: EmbedRequest) -> list[str]:
    """What to try next."""
    if request.model_path is not None:
        return ["mercer", "verify", str(request.model_path), str(request.data), *request.reading.words(columns=False)]
    model, coordinates = beside(request.data, ".mercer"), beside(request.data, "-coordinates.csv")
    more = [] if request.output is not None else ["--output", str(coordinates)]
    return called_again(["--model", str(model), *more], without=["--checkpoint"])


def _text(path: Path | None) -> str | None:
    return None if path is None else str(path)
