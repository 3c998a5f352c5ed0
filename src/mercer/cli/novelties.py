"""What ``mercer novelty`` does where it is given a table in place of a model: a detector of its rows."""

from __future__ import annotations

from typing import Any

import numpy as np

from mercer.backends.arrays import Array
from mercer.cli.data import FitData, fit_data, new_data
from mercer.cli.options import Reading
from mercer.cli.progress import clock
from mercer.cli.saying import Account


def detector_and_rows(options: dict[str, Any], reading: Reading, account: Account) -> tuple[Any, FitData]:
    """A detector of the rows of the first file, and the rows to be scored: those of the other, or its own."""
    from mercer.novelty import NoveltyDetector

    data = fit_data(options["model"], reading, label=None, scale=False, any_unit=True)
    account.notes += data.notes
    with clock("Finding neighbours", shown=not options["quiet"]):
        model = NoveltyDetector().fit(data.points)
    if options["data"] is not None:
        data = new_data(options["data"], reading, data.preparation)
        account.notes += data.notes
    account.facts |= {"model": str(options["model"]), "method": type(model).__name__, **data.told()}
    return model, data


def tell_novel(model: Any, scores: Array, account: Account) -> None:
    """How many rows a detector calls novel; models that draw no line say nothing."""
    offset = getattr(model, "offset_", None)
    if offset is None:
        return
    count = int(np.sum(-scores < offset))
    account.sentence += f" {count} of the rows {'is' if count == 1 else 'are'} novel: above {-offset:.4g}."
    account.facts |= {"novel": count, "threshold": -float(offset)}
