"""From which score on a row is called novel: by a share of the training rows, by a rate of false alarms, or by a fence.

Rows whose score lies *below* the offset are novel. Among scores that each row has among all others a new row of the
same law is as likely to have any rank (Vovk, Gammerman, Shafer 2005). The scores of the training rows are those among
the others without the new one, which is a change of one neighbour: rates are close to the stated ones, not proved.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from mercer.backends.arrays import Array
from mercer.novelty.columns import quantiles
from mercer.validation import fraction

_WHISKER = 1.5  # distances of the quartiles beyond them, Tukey's
_ROUNDING = 1e-9  # of a count of rows: 0.1 × 300 is 30


def checked_contamination(value: Any, name: str) -> float | None:
    """A share of the rows up to a half, None for ``"auto"``."""
    if isinstance(value, str) and value == "auto":
        return None
    if isinstance(value, bool | str) or not isinstance(value, float | int | np.number) or not 0 < value <= 0.5:
        raise ValueError(f"{name}={value!r} must be 'auto' or a share of the rows above 0 and up to 0.5.")
    return float(value)


def checked_rate(value: Any, name: str) -> float | None:
    """A rate between 0 and 1, or None."""
    return None if value is None else fraction(value, name)


def offset_of(scores: Array, counts: Array, share: float | None, rate: float | None) -> float:
    """The offset of scores of which each counts so many times.

    Parameters
    ----------
    scores : array of shape (m,)
        The higher, the more normal.
    counts : array of shape (m,)
        How many rows each stands for.
    share, rate : float or None
        The share of the training rows below the offset; that of new rows of the same law. Both None: a fence.
    """
    order = np.argsort(scores, kind="stable")
    ranked, below = scores[order], np.cumsum(counts[order])
    if rate is not None:
        return float(ranked[np.searchsorted(below, _alarms(rate, float(below[-1])) - _ROUNDING)])
    if share is not None:
        return float(ranked[np.searchsorted(below, share * below[-1] + _ROUNDING, side="right")])
    low, high = quantiles(scores, (0.25, 0.75), counts)
    return float(low - _WHISKER * (high - low))


def _alarms(rate: float, total: float) -> int:
    """Which of the lowest scores a new row lies below with at most this probability: (N + 1) times the rate."""
    rank = math.floor(rate * (total + 1) + _ROUNDING)
    if rank < 1:
        raise ValueError(
            f"false_alarms={rate:g} is rarer than {total:g} rows can tell: pass {math.ceil(1 / rate) - 1} rows, or "
            f"false_alarms={math.ceil(1000 / (total + 1)) / 1000:g}."
        )
    return rank
