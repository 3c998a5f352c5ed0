"""A smooth function of a matrix with orthonormal columns."""

from __future__ import annotations

from abc import abstractmethod
from typing import NamedTuple

from mercer.backends.arrays import Array
from mercer.problems.problem import Problem


class ValueAndGradient(NamedTuple):
    """f(U), and the d × m matrix of its derivatives by the entries of U, as if these were free."""

    value: float
    gradient: Array


class StiefelProblem(Problem):
    """min f(U) over U with UᵀU = I, d × m."""

    @abstractmethod
    def evaluate(self, U: Array) -> ValueAndGradient:
        """The value and the gradient at a matrix with orthonormal columns."""


def tangent(U: Array, V: Array) -> Array:
    """The part of V that is tangent to {UᵀU = I} at U: V - U sym(UᵀV)."""
    inner = U.T @ V
    projected: Array = V - U @ ((inner + inner.T) / 2)
    return projected
