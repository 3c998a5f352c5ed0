"""How far a measure can be from a stream that it stands for, where the stream is gone: bounds that were carried along.

‖T_μ - T_ν‖ is a norm of differences, so that distances add up. A block of mass W_b is replaced by a measure at a
distance of no more than W_b √(2D_b), two measures side by side are at no more than the sum of their distances, and one
that is reduced to fewer nodes is farther by the distance of the reduction. Divided by the mass of the stream,

    √(2 D) ≤ Σ_b (W_b/W) √(2 D_b) + Σ_r (W_r/W) √(2 D_r),

each D proved when its points were there.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mercer.backends.rounding import TINY
from mercer.certificates.measure import MeasureCertificate

_MORE = 1 + 1e-10  # for the sums of the bounds


@dataclass(frozen=True, repr=False)
class StreamCertificate(MeasureCertificate):
    """The bound on the discrepancy of a measure from a stream that nobody has any more.

    ``upper`` and ``discrepancy`` are the bound; ``lower`` is zero, for what better weights would do is not known.

    Attributes
    ----------
    blocks, reductions : float
        The two sums: distances ‖T_μ - T_ν‖ of what replaced the rows, and of what replaced that.
    """

    blocks: float = 0.0
    reductions: float = 0.0

    @property
    def verdict(self) -> tuple[str, str]:
        """The bound is proved, of whatever size it is."""
        return "proved", f"Certified to be within a discrepancy of {self.upper:.1e} of the whole stream"


def certify_stream(blocks: float, reductions: float, trace: float, n_products: int) -> StreamCertificate:
    """The certificate of the sums of the distances of blocks and of reductions, as parts of the mass of the stream.

    Parameters
    ----------
    blocks, reductions : float
        The sums.
    trace : float
        dᵀv.
    n_products : int
        Columns of S that were evaluated on the way.
    """
    bound = 0.5 * (_MORE * (blocks + reductions)) ** 2 + TINY
    return StreamCertificate(
        lower=0.0,
        upper=bound,
        failure_probability=0.0,
        method="distances of blocks and of reductions, added up",
        n_products=n_products,
        minimised=True,
        discrepancy=bound,
        trace=trace,
        multiplier=0.0,
        margin=float(np.nan),
        unresolved=bound,
        blocks=blocks,
        reductions=reductions,
    )
