"""Whether the kernel learned on an interval is continuous: the step between neighbours (PSD17 Figs 3, 6)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from mercer.backends.arrays import Array
from mercer.datasets import interval
from mercer.embedding import SDPEmbedding
from mercer.experiments.interval_kernels import IntervalKernels, interval_kernels
from mercer.experiments.ranks import compare_rank
from mercer.experiments.report import Comparison, Experiment, Verdict
from mercer.kernels import Gaussian


@dataclass(frozen=True)
class IntervalSteepness(Experiment):
    """Both kernels on the square, and how steep the learned one is on a fine and on a coarse grid.

    Attributes
    ----------
    kernels : IntervalKernels
        The diffusion kernel and the learned one on a grid.
    claim : str
        What the paper says about the shape of the learned kernel.
    steps : (float, float)
        The largest step of the first coordinate between neighbours, as a fraction of its largest value: with all
        points, and with every other one.
    """

    kernels: IntervalKernels
    claim: str
    steps: tuple[float, float]

    @property
    def comparisons(self) -> tuple[Comparison, ...]:
        """The rank, and whether the learned kernel is continuous."""
        fine, coarse = self.steps
        continuous = coarse > 1.5 * fine
        shape = "continuous" if continuous else "discontinuous"
        behaviour = "shrinks with the spacing" if continuous else "does not shrink with the spacing"
        step = Comparison(
            "shape of ρ",
            self.claim,
            f"{shape}, largest step {fine:.4f} of the largest value",
            Verdict.AGREES if continuous else Verdict.DIFFERS,
            f"the step between neighbours is {coarse:.4f} on twice as coarse a grid: it {behaviour}",
        )
        return compare_rank("rank of ρ", 2, self.kernels.sdp), step

    def figure(self) -> Any:
        """Both kernels as heat maps."""
        return self.kernels.figure()


def interval_kernel_smooth(sigma: float = 0.1, *, n_points: int = 2001, random_state: Any = 0) -> IntervalSteepness:
    """The diffusion kernel of [-1, 1] and the continuous kernel learned from it, σ = 0.1 (PSD17 Fig 3).

    The programme is solved again on every other point, to tell a steep function from a discontinuous one.

    Parameters
    ----------
    sigma : float, default=0.1
        The bandwidth of the Gaussian kernel, the paper's by default.
    n_points : int, default=2001
        Equidistant points, an odd number.
    random_state : int, default=0
        Seed of the solver.
    """
    return _steepness(sigma, n_points, random_state, "continuous")


def interval_kernel_steep(sigma: float = 0.7, *, n_points: int = 2001, random_state: Any = 0) -> IntervalSteepness:
    """The diffusion kernel of [-1, 1] and the step-like kernel learned from it, σ = 0.7 (PSD17 Fig 6).

    The programme is solved again on every other point, to tell a steep function from a discontinuous one. Parameters as
    in :func:`interval_kernel_smooth`.
    """
    return _steepness(sigma, n_points, random_state, "step-like, close to a discontinuity")


def largest_step(values: Array) -> float:
    """The largest difference between neighbours, as a fraction of the largest value."""
    return float(np.abs(np.diff(values)).max() / np.abs(values).max())


def _steepness(sigma: float, n_points: int, random_state: Any, claim: str) -> IntervalSteepness:
    kernels = interval_kernels(sigma, n_points=n_points, random_state=random_state)
    coarse = SDPEmbedding(Gaussian(sigma=sigma), random_state=random_state).fit(interval((n_points + 1) // 2))
    steps = largest_step(kernels.sdp.embedding_[:, 0]), largest_step(coarse.embedding_[:, 0])
    return IntervalSteepness(kernels, claim, steps)
