"""How large a discrepancy can be where ωᵀSω is not known: by the residual at points that are drawn for the proof.

With h = Sv known wherever it is asked for, and q = (Sω)_I on the nodes,

    2 D(v) = E[r(x)] + vᵀS_II v - vᵀq,   r = Sω - h,

the mean over x drawn by the weights ω. r(x) is an inner product with the difference of the two measures, so that
|r(x)| ≤ κ √(2D): the range of the mean is bounded by what the mean is to bound. The inequality of Maurer and Pontil
(2009, Theorem 4) with the sample's own variance V, at n points that v does not depend on, gives for x = √(2D), but for
the probability δ,

    |x² - mean - vᵀS_II v + vᵀq| ≤ √(2 V ln(4/δ)/n) + 7 · 2 κ x ln(4/δ) / (3 (n - 1)),

which is a quadratic inequality for x. Rounding is far below its last term, which is taken two per cent larger for it.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import NamedTuple

from mercer.backends.arrays import Array
from mercer.certificates.measure import MeasureCertificate

ODDS = 1e-6  # that the bound on the level is wrong
_MORE = 1.02


class Level(NamedTuple):
    """ωᵀSω: what the points drawn say, and the interval in which it lies but for the probability :data:`ODDS`."""

    estimate: float
    low: float
    high: float


def level_of(residuals: Array, surplus: float, explained: float, largest: float) -> Level:
    """The interval of ωᵀSω.

    Parameters
    ----------
    residuals : array of shape (n,)
        r at points drawn independently by the weights ω, after the nodes and their weights were fixed.
    surplus : float
        vᵀS_II v - vᵀq: zero where the weights are the best ones of any sign.
    explained : float
        2 vᵀq - vᵀS_II v, so that ωᵀSω is this and 2 D.
    largest : float
        κ, the largest root of an entry of the diagonal of S.
    """
    count = int(residuals.shape[0])
    mean = float(residuals.sum()) / count
    variance = float(((residuals - mean) ** 2).sum()) / (count - 1)
    logarithm = math.log(4 / ODDS)
    spread = _MORE * math.sqrt(2 * variance * logarithm / count)
    slope = _MORE * 14 * largest * logarithm / (3 * (count - 1))
    twice = mean + surplus
    high = (slope + math.sqrt(slope**2 + 4 * max(twice + spread, 0.0))) / 2
    low = (math.sqrt(slope**2 + 4 * max(twice - spread, 0.0)) - slope) / 2
    return Level(explained + max(twice, 0.0), explained + max(low, 0.0) ** 2, explained + high**2)


def widened(proof: MeasureCertificate, level: Level) -> MeasureCertificate:
    """The certificate of a programme whose ωᵀSω is known by an interval, from a proof with its upper end.

    That proof is of the objective plus a constant between 0 and half the width of the interval, which no choice of
    weights changes: what it says of the weights holds with certainty, what it says of the level but for a chance.
    """
    width = 0.5 * (level.high - level.low)
    return replace(
        proof,
        lower=proof.lower - width,
        failure_probability=ODDS,
        method=f"{proof.method}, the level of D by points drawn for the proof",
        discrepancy=max(proof.discrepancy - 0.5 * (level.high - level.estimate), 0.0),
        unresolved=proof.unresolved + width,
        level_width=width,
    )
