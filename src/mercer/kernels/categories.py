"""The kernel of categories: whether they are equal."""

from __future__ import annotations

from typing import Any, ClassVar, final

from mercer.backends import profiles
from mercer.backends.arrays import Array
from mercer.kernels.checks import as_points
from mercer.kernels.properties import EVERYTHING, Properties
from mercer.kernels.stationary import DistanceKernel


@final
class Categories(DistanceKernel):
    """k(x, y) = exp(-m / σ), m the number of columns in which x and y differ: one where all categories are equal.

    Columns may hold any numbers, of which only equality counts, or texts and categories of a data frame. With a σ for
    each column, k is the product of exp(-1/σᵢ) over the columns that differ. A category that was not among the training
    points is equal to none of theirs.

    Parameters
    ----------
    sigma : float, array of shape (d,) or "median", default="median"
        How many columns may differ before k falls by a factor e; ``"median"`` is how many differ for two unlike rows.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.kernels import Categories
    >>> Categories(sigma=1.0)(np.array([[0, 0], [0, 1], [2, 1]])).round(3)
    array([[1.   , 0.368, 0.135],
           [0.368, 1.   , 0.368],
           [0.135, 0.368, 1.   ]])
    """

    _length_name = "sigma"
    _metric = "mismatches"
    _rules: ClassVar[tuple[str, ...]] = ("median",)

    def __init__(self, sigma: Any = "median") -> None:
        self.sigma = sigma

    def _profile(self, n_features: int) -> tuple[profiles.Profile, float]:
        return profiles.Exponential(), 1.0

    def resolve(self, X: Any, sample_weight: Any = None) -> Categories:
        """Fix σ from X; where all rows are equal, there is nothing to choose and it is one."""
        points: Array = as_points(X)
        alike = self.sigma == "median" if isinstance(self.sigma, str) else False
        if alike and not (points != points[:1]).any():
            return Categories(1.0)
        return super().resolve(points, sample_weight)  # type: ignore[return-value]

    def read_as_numbers(self, n_features: int) -> frozenset[int]:
        """None: only equality counts."""
        return frozenset()

    @property
    def properties(self) -> Properties:
        """Everything, on tuples of categories, a countable set on which every function is continuous.

        With r = exp(-1/σ), k is the product of r + (1 - r)[xᵢ = yᵢ], so ∬ k dμ dμ ≥ (1 - r)^d Σ μ({x})² > 0; its powers
        are the same with another σ.
        """
        return EVERYTHING
