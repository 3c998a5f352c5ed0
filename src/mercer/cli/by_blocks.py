"""Files that are larger than ``--memory-limit``: rows a block at a time, coordinates written whole or not at all."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, final

import click
import numpy as np

from mercer.backends import config_context, get_config
from mercer.backends.arrays import Array
from mercer.backends.config import require_memory
from mercer.backends.row_source import RowSource
from mercer.cli.options import Reading
from mercer.cli.progress import fraction_bar
from mercer.cli.saying import Account, beside, certified
from mercer.cli.tables import listed, split
from mercer.io import Preparation, open_rows, write_rows
from mercer.io.parquet_rows import columns_of_numbers
from mercer.io.row_sources import SUFFIXES


@final
@dataclass(frozen=True)
class LargeFile:
    """A file whose numbers take more than the memory limit, and which of its columns are meant."""

    path: Path
    rows: RowSource
    columns: tuple[str, ...]
    notes: tuple[str, ...]

    @property
    def points(self) -> RowSource:
        """What a model takes."""
        return self.rows

    @property
    def source(self) -> str:
        """The name of the file."""
        return str(self.path)

    def told(self) -> dict[str, Any]:
        """For machines."""
        return {"data": str(self.path), "rows": self.rows.shape[0], "columns": list(self.columns), "by_blocks": True}

    def words(self) -> str:
        """Rows and columns in a few words."""
        return f"{self.rows.shape[0]} rows, {len(self.columns)} columns ({listed(self.columns)}), read by blocks"


def large_file(path: Path, reading: Reading, wanted: Sequence[str] = ()) -> LargeFile | None:
    """The rows of a file, if a memory limit was given that its numbers exceed; ``wanted`` are columns of a model."""
    limit = get_config().memory_limit
    if limit is None or path.suffix.lower() not in SUFFIXES:
        return None
    names, words = _names(path, reading.array)
    chosen = list(wanted) or split(reading.columns, [*names, *words]) or names
    gone = split(reading.without, [*names, *words])
    for name in [*chosen, *gone]:
        if name not in names and name not in words:
            raise ValueError(f"{path} has no column {name!r}; it has {listed(names)}.")
    kept = tuple(name for name in chosen if name not in gone)
    numbers: Any = kept if _is_parquet(path) else [names.index(name) for name in kept]
    rows = open_rows(path, columns=numbers, array=reading.array)
    if 8 * rows.shape[0] * rows.shape[1] <= limit:
        return None
    left_out = [name for name in words if not reading.columns and not wanted and name not in gone]
    notes = (f"{listed(left_out)} left out: no numbers.",) if left_out else ()
    return LargeFile(path, rows, kept, notes)


def _names(path: Path, array: str | None) -> tuple[list[str], list[str]]:
    """The columns that hold numbers, by name or counted from 1, and those that do not."""
    if _is_parquet(path):
        return columns_of_numbers(path)
    return [str(k + 1) for k in range(open_rows(path, array=array).shape[1])], []


def _is_parquet(path: Path) -> bool:
    return path.suffix.lower() in (".parquet", ".pq")


def embedded_by_blocks(request: Any, large: LargeFile, account: Account) -> bool:
    """Fit through landmarks, write what is asked for, and tell; returns whether nobody interrupted the fit."""
    from mercer.cli.fitting import tell_estimate, was_interrupted, watched_fit
    from mercer.cli.model_files import save_with

    _refuse_options(request, large)
    account.notes += large.notes
    began = time.perf_counter()
    model = request.model.estimator(large.rows.shape[0])
    tell_estimate(vars(request), model, large, account)
    with config_context(checkpoint=request.checkpoint, checkpoint_every=request.checkpoint_every):
        model = watched_fit(model, large.rows, "Solving on landmarks", account.notes, shown=not request.quiet)
    count, seconds = model.embedding_.shape[1], time.perf_counter() - began
    proof, name = getattr(model, "certificate_", None), type(model).__name__
    account.sentence = f"{large.path}: {large.words()}, embedded in {count} coordinates by {name} in {seconds:.1f} s."
    account.lines.append(("Certificate", f"of the {request.model.landmarks} landmarks: {proof}"))
    path, output = request.model_path, request.output
    if output is None and path is None:
        output = beside(large.path, "-coordinates.npy")  # what was computed is not thrown away
    if output is not None:
        write_rows(lambda block: block, model.embedding_, output)
        account.lines.append(("Coordinates", str(output)))
    if path is not None:
        save_with(model, path, Preparation(large.columns))
        account.lines.append(("Model", str(path)))
    account.facts |= large.told() | {
        "method": name,
        "kernel": repr(model.kernel_),
        "coordinates": count,
        "seconds": seconds,
        "certificate": certified(proof),
        "output": None if output is None else str(output),
        "model": None if path is None else str(path),
        "picture": None,
        "report": None,
    }
    if was_interrupted(model):
        account.facts["interrupted"] = True
        return False
    if request.checkpoint is not None:
        request.checkpoint.unlink(missing_ok=True)  # what was asked is written
    return True


def _refuse_options(request: Any, large: LargeFile) -> None:
    """Refuse what needs all rows at once."""
    size = f"{large.path} has {large.rows.shape[0]} × {len(large.columns)} numbers, more than --memory-limit"
    if request.model.landmarks is None:
        raise click.UsageError(f"{size}: say by --landmarks 1000 on how many rows it is solved, or raise the limit.")
    for name, given in {
        "--label": request.label,
        "--scale": request.scale,
        "--report": request.report_path,
        "--picture": request.picture_asked,
        "--checkpoint with a file .npz": request.checkpoint is not None and request.journal is None,
        "--method unfolding": request.model.method == "unfolding",
        "--kernel mixed": request.model.mixed,
        "--missing drop": request.reading.missing == "drop",
    }.items():
        if given:
            raise click.UsageError(f"{size}: {name} needs all rows at once. Leave it out, or raise the limit.")
    _require_npy(request.output)
    least = 8 * large.rows.shape[0] * (request.model.components or 1)
    advice = "embed some of the rows with --model, and let mercer transform write the coordinates of all"
    require_memory(least, f"What the fit says of {large.rows.shape[0]} rows", advice)


def _require_npy(output: Path | None) -> None:
    """Refuse to write coordinates of many rows in another format."""
    if output is not None and output.suffix != ".npy":
        raise click.UsageError(f"Coordinates of rows that are read by blocks are written as .npy, not to {output}.")


def transformed_by_blocks(
    model: Any, preparation: Preparation, large: LargeFile, output: Path | None, account: Account, *, shown: bool
) -> Path:
    """Write the coordinates of all rows, and tell."""
    output = beside(large.path, "-coordinates.npy") if output is None else output
    _require_npy(output)
    means = np.zeros(len(large.columns)) if preparation.means is None else np.array(preparation.means)
    scales = np.ones(len(large.columns)) if preparation.scales is None else np.array(preparation.scales)
    with fraction_bar("Computing coordinates", shown=shown) as progress:
        done = 0

        def coordinates(block: Array) -> Array:
            nonlocal done
            found = model.transform((block - means) / scales)
            done += int(block.shape[0])
            progress(done / large.rows.shape[0])
            return found

        written = write_rows(coordinates, large.rows, output)
    account.sentence = f"{large.path}: {large.words()}; {written.shape[1]} coordinates each."
    account.lines.append(("Coordinates", str(output)))
    account.facts |= large.told() | {"coordinates": written.shape[1], "output": str(output)}
    return output
