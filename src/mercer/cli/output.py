"""Where the command writes, asked before the work is done and not after it."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import click

STANDARD_OUTPUT = "-"


def refuse_unknown_format(output: Path) -> None:
    """Say at once that the suffix of a picture names no format."""
    from matplotlib.backend_bases import FigureCanvasBase

    known = FigureCanvasBase.get_supported_filetypes()
    if output.suffix.lstrip(".").lower() not in known:
        raise click.UsageError(f"{output} has a suffix that names no format of pictures: use .png, .svg or .pdf.")


def refuse_missing_folder(output: Path) -> None:
    """Say at once that a file cannot be written, not after the work is done."""
    folder = output.resolve().parent
    if not folder.is_dir():
        raise click.ClickException(f"The folder {folder} does not exist: create it, or choose another.")


def refuse_target(output: Path | None, suffix: str) -> None:
    """Say at once that a model or a page cannot be written there, or is not called as such files are."""
    if output is None:
        return
    refuse_missing_folder(output)
    if output.suffix.lower() != suffix:
        raise click.UsageError(f"{output} must end in {suffix}.")


def refuse_clashes(written: Sequence[Path | None], read: Sequence[Path | None], kept: Path | None = None) -> None:
    """Say at once that a file would be written over that is read, or written twice; ``kept`` is the checkpoint."""
    targets = [path for path in (*written, kept) if path is not None and str(path) != STANDARD_OUTPUT]
    for path in targets:
        if path != kept and path.exists() and any(map(path.samefile, _files(read))):
            raise click.UsageError(f"{path} is read here, and would be written over: name another file.")
    places = [path.resolve() for path in targets]
    twice = [path for path, place in zip(targets, places, strict=True) if places.count(place) > 1]
    if twice:
        raise click.UsageError(f"{twice[0]} is named for two things that are written: name another file for one.")


def _files(read: Sequence[Path | None]) -> list[Path]:
    return [path for path in read if path is not None and str(path) != STANDARD_OUTPUT and path.exists()]


def refuse_table(output: Path | None) -> None:
    """Say at once that a table cannot be written there."""
    if output is None or str(output) == STANDARD_OUTPUT:
        return
    refuse_missing_folder(output)
    from mercer.io.write import writer_for

    try:
        writer_for(output)
    except ValueError as error:
        raise click.UsageError(str(error)) from None
    except ModuleNotFoundError as error:
        raise click.ClickException(str(error)) from None


def chosen_picture(picture: Path | None, no_picture: bool, default: Path | None) -> Path | None:
    """Where a picture goes, if there is to be one and it can be written."""
    found = picture if picture is not None else None if no_picture else default
    if found is not None:
        refuse_missing_folder(found)
        refuse_unknown_format(found)
    return found


def joined(own: Mapping[str, Any], given: Mapping[str, Any]) -> dict[str, Any]:
    """Columns of ours in front of those of a file, under other names where the file has theirs."""
    names = {name: name for name in own}
    for name in own:
        while names[name] in given:
            names[name] += "_"
    return {**{names[name]: values for name, values in own.items()}, **given}


def write_columns(columns: Mapping[str, Any], output: Path) -> None:
    """Write a table to a file by its ending, or as CSV to standard output, whose reader may leave early."""
    from mercer.io import write_table

    if str(output) != STANDARD_OUTPUT:
        write_table(columns, output)
        return
    try:
        write_table(columns, sys.stdout.buffer)
        sys.stdout.buffer.flush()
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # what is left has nowhere to go
