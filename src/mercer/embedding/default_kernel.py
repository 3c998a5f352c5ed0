"""The kernel of an embedding that is given none, chosen by what it gives on real data (see the user guide)."""

from __future__ import annotations

from mercer.kernels import SelfTuning


def default_kernel() -> SelfTuning:
    """A graph of neighbours in which the scale of a pair is the smaller of its two, so that outliers reach few."""
    return SelfTuning(scale_neighbor=10, pair_scale="smaller")
