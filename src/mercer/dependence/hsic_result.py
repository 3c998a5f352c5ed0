"""What a test of independence found: its p-value, and the function that shows the dependence."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, final

import numpy as np

from mercer.backends.arrays import Array
from mercer.backends.chunks import THREAD_BYTES, panel_rows, row_chunks
from mercer.backends.threads import run_chunks
from mercer.dependence.centred_gram import CentredGram, inner_product
from mercer.dependence.result import KernelTestResult
from mercer.dependence.variables import Variable
from mercer.validation import normalised, require_points


@final
@dataclass(frozen=True, eq=False, repr=False)
class HSICTestResult(KernelTestResult):
    """What :func:`mercer.hsic_test` found; ``statistic, pvalue = result``, and ``str(result)`` is a sentence.

    Attributes
    ----------
    statistic, pvalue : float
        HSIC, or of several kernels the largest of their standardised values, and its p-value.
    null_distribution : array
        Statistics of the resamples; empty where the null is a formula.
    kernel : tuple of two kernels
        Those of X and Y; of several pairs, the one that tells most.
    parts : tuple of KernelPart
        Of several pairs of kernels: kernels, statistic and own p-value of each.
    sample_weight : array or None
        How often rows count, zeros left out.
    """

    estimator: str
    sample_weight: Array | None
    _x: Variable
    _y: Variable

    def witness(self, x: Any, y: Any) -> Array:
        """The function of unit norm whose mean under the joint law exceeds most that under the product of margins.

        At pairs of rows (x, y) it is Σᵢ pᵢ k(xᵢ,x) l(yᵢ,y) - Σᵢ pᵢ k(xᵢ,x) Σᵢ pᵢ l(yᵢ,y), over its norm: positive where
        pairs are met more often than independent variables would give them, negative where less often. The difference
        of its means is the square root of HSIC.

        Parameters
        ----------
        x, y : arrays of shape (m, d) and (m, e), vectors, or data frames
            Values of the two variables, row by row in pairs.
        """
        for kernel in self.kernel:
            require_points(kernel, "The witness evaluates kernels at new points")
        new_x, new_y = self._x.coded(x), self._y.coded(y)
        if len(new_x) != len(new_y):
            raise ValueError(f"x has {len(new_x)} rows and y has {len(new_y)}: they must agree.")
        shares = normalised(self.sample_weight, self._x.size)
        out = np.empty(len(new_x))

        def fill(rows: slice) -> None:
            k = self.kernel[0].matrix(new_x[rows], self._x.points).dense()
            l = self.kernel[1].matrix(new_y[rows], self._y.points).dense()
            out[rows] = (k * l) @ shares - (k @ shares) * (l @ shares)

        run_chunks(fill, row_chunks(len(new_x), panel_rows(self._x.size, most=THREAD_BYTES)))
        norm = self._norm(shares)
        return out / norm if norm > 0 else np.zeros_like(out)

    def _norm(self, shares: Array) -> float:
        one, other = (
            CentredGram(kernel, side.points, shares)
            for kernel, side in zip(self.kernel, (self._x, self._y), strict=True)
        )
        return float(np.sqrt(max(inner_product(one.weighed(shares), other), 0.0)))

    def _found(self) -> str:
        return "Y depends on X"

    def _not_found(self) -> str:
        return "No sign that Y depends on X"

    def _statistic_name(self) -> str:
        return "the largest standardised HSIC" if self.parts else "HSIC"

    def _resamples_name(self) -> str:
        return {"permutation": "reorderings of Y", "spectral": "draws of its limit law"}.get(
            self.null, super()._resamples_name()
        )
