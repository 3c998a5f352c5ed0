"""Principal components as functions: what new points need of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, final

from mercer.backends.arrays import Array, as_double, cast, namespace
from mercer.embedding.principal_pairs import PrincipalPairs
from mercer.kernels import Kernel, Precomputed
from mercer.operators import CenteredOperator, GramOperator
from mercer.support import Support


@final
@dataclass(frozen=True, eq=False)
class PrincipalFunctions:
    """The functions g(x) = (1/δ) Σⱼ √wⱼ vⱼ k̆(xⱼ, x), of which (99) and (101) are multiples.

    With β = √w v / δ, whose sum is zero, the means of k̆ leave a constant: g(x) = Σⱼ βⱼ (k(xⱼ, x) - cⱼ), cⱼ the mean of
    column j over the training points. At a training point it is vⱼ/√wⱼ.

    Attributes
    ----------
    kernel : Kernel
        Resolved.
    points : array or sparse array
        What the problem was solved on.
    support : Support
        Which rows these are, and their weights.
    coefficients, offset : arrays of shapes (m, r) and (r,)
        β and Σⱼ βⱼcⱼ.
    at_points : array of shape (m, r)
        g at the points.
    """

    kernel: Kernel
    points: Any
    support: Support
    coefficients: Array
    offset: Array
    at_points: Array

    @classmethod
    def of(cls, points: Any, support: Support, operator: CenteredOperator, pairs: PrincipalPairs) -> PrincipalFunctions:
        """The functions of some eigenpairs of a centred operator."""
        assert isinstance(operator.gram, GramOperator)
        unit, vectors = as_double(operator.unit)[:, None], pairs.vectors
        centred = vectors - unit * (unit * vectors).sum(axis=0)
        root = 1.0 if operator.weights is None else namespace(unit).sqrt(as_double(operator.weights))[:, None]
        coefficients = root * centred / pairs.values
        offset = as_double(operator.column_means) @ coefficients
        at_points = cast(vectors / root, operator.dtype)
        return cls(operator.gram.kernel, points, support, coefficients, offset, at_points)

    def __call__(self, X: Any) -> Array:
        """The functions at new points, or at the whole sample where a part of it carries the problem."""
        columns = self.support.columns(X, self.kernel)
        if columns is self.points and not isinstance(
            self.kernel, Precomputed
        ):  # else the same points would be rounded as a symmetric matrix is
            columns = columns[:]
        product = GramOperator(self.kernel, columns, self.points) @ self.coefficients
        return product - cast(self.offset, product.dtype)
