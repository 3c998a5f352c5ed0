"""What ``mercer report`` does."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from mercer.cli.asking import opened
from mercer.cli.data import FitData
from mercer.cli.errors import collected_warnings, one_sentence
from mercer.cli.options import Reading
from mercer.cli.output import joined, refuse_target
from mercer.cli.progress import clock
from mercer.cli.saying import Account, beside

_MOST_OF_A_PATH = 1000  # rows: a path is a dozen fits and more


def reported(options: dict[str, Any]) -> None:
    """Answer a call of ``mercer report``."""
    reading, account = Reading.taken(options), Account()
    output = options["output"] or beside(options["data"], ".html")
    refuse_target(output, ".html")
    with one_sentence(), collected_warnings(account.notes):
        model, data = opened(options, reading, account, label=options["label"])
        shown = not options["quiet"]
        path = _path_of_ranks(data, account, shown=shown) if options["rank_path"] else None
        plane = _map_in_the_plane(model, data, account, shown=shown) if options["plane_map"] else None
        with clock("Making the page", shown=shown):
            write_report(model, data, output, title=options["title"], path=path, plane=plane)
    account.sentence = (
        f"{output} shows {data.table.source}: {data.words()}. Open it with a browser; it needs no network."
    )
    account.facts |= {"output": str(output)}
    account.say(as_json=options["as_json"], quiet=options["quiet"])


def _path_of_ranks(data: FitData, account: Account, *, shown: bool) -> Any:
    """The path of the data, or of rows drawn from them; what it suggests is said."""
    from mercer import rank_path

    points, count = data.points, len(data.table)
    if count > _MOST_OF_A_PATH:
        points = points[np.sort(np.random.default_rng(0).choice(count, _MOST_OF_A_PATH, replace=False))]
        account.notes.append(f"The rank path is that of {_MOST_OF_A_PATH} rows drawn at random.")
    with clock("Following the rank over the bandwidth", shown=shown):
        path = rank_path(points, random_state=0)
    account.lines.append(("Rank path", path.reason))
    return path


def _map_in_the_plane(model: Any, data: FitData, account: Account, *, shown: bool) -> Any:
    """The map of the coordinates that the model gives the rows; what it keeps of them is said."""
    from mercer import plane_map

    with clock("Drawing the map", shown=shown):
        plane = plane_map(np.asarray(model.transform(data.points)), random_state=0)
    account.lines.append(("Map", str(plane)))
    return plane


def write_report(model: Any, data: FitData, output: Path, *, title: str | None = None, **pictures: Any) -> None:
    """The page of a model and its data, which shows all columns as they stand in the file, and where.

    ``pictures`` are those that :func:`mercer.plots.report` has besides, of a rank path or of a map in the plane.
    """
    from mercer.plots import report

    columns = {part.name: part.values for part in data.file.parts}
    shown = columns if data.whole and data.unit == "row" else joined({f"{data.unit} of the file": data.places}, columns)
    place = None if shown is columns else next(iter(shown))
    label = None if data.label is None else data.label.name
    title = title or Path(data.table.source).name
    report(model, data.points, table=shown, label=label, title=title, place=place, **pictures).save(output)
