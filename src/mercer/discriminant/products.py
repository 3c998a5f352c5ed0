"""Discriminants in the space of a kernel by products with its matrix, which is not stored.

With the centred kernel matrix K = ZZᵀ of the scaled rows, M = βI + QmQᵀ = CCᵀ and W = I - QtQᵀ = SSᵀ, the directions of
:mod:`mercer.discriminant.quotient` are u = R₂⁻¹ZᵀCv for the eigenvectors v of CᵀZR₂⁻¹ZᵀC, and by Woodbury's identity

    R₂⁻¹ZᵀC = ZᵀD,    D = (C - r₂ S (αI + r₂ SKS)⁻¹ SKC)/α.

Where β = 0, C has as many columns as labels have features: one linear system with so many right-hand sides, by
conjugate gradients. Where r₂ = 0 there is none to solve, D = C, and supervised components cost a single product.
Elsewhere Lanczos finds v, with a system to solve for every block of its vectors; α is not small then, and a few steps
of conjugate gradients do.
"""

from __future__ import annotations

from typing import NamedTuple, final

import numpy as np
from scipy.linalg import cho_factor, cho_solve, eigh

from mercer.backends import get_config
from mercer.backends.arrays import Array, as_double, to_numpy
from mercer.backends.rounding import EPS
from mercer.discriminant.labels import LabelBasis
from mercer.discriminant.quotient import Quotient
from mercer.discriminant.scatter import SingularScatterError
from mercer.linalg import rp_cholesky
from mercer.linalg.conjugate_gradients import Multiply, conjugate_gradients
from mercer.linalg.eigen import leading_eigenpairs
from mercer.linalg.stand_in_start import start_for
from mercer.linalg.tall import inner_products, tall_product
from mercer.operators import CenteredOperator
from mercer.operators.base import Index, LinearMap, is_sparse, part_of

_RANK, _SHARE = 500, 1 / 8  # of the preconditioner: columns, and the part of the memory limit
_TOLERANCE, _SOLVED = 1e-10, 1e-11  # of eigenvectors, and of linear systems


class KernelDirections(NamedTuple):
    """Eigenvalues μ in falling order, and coefficients a of directions u = Zᵀa with uᵀR₂u = 1; the products Ka."""

    values: Array
    coefficients: Array
    products: Array


def kernel_directions(
    operator: CenteredOperator, labels: LabelBasis, quotient: Quotient, count: int, rng: np.random.Generator
) -> KernelDirections:
    """The ``count`` leading directions, or as many as there are.

    Cost: where β = 0, two products with c columns and, for r₂ > 0, one for every step of conjugate gradients, some ten
    to thirty; elsewhere those of Lanczos, times the steps of its systems. Memory: n × (c + 500).
    """
    if quotient.spread == 0:
        return _of_labels(operator, labels, quotient, count, rng)
    return _of_all(operator, labels, quotient, count, rng)


def _of_labels(
    operator: CenteredOperator, labels: LabelBasis, quotient: Quotient, count: int, rng: np.random.Generator
) -> KernelDirections:
    C = labels.basis * np.sqrt(quotient.label_weights(labels.strengths, labels.explained))
    D = _division(operator, labels, quotient, rng)(C)
    product = _double(operator @ D)
    small = C.T @ product
    values, vectors = eigh((small + small.T) / 2)
    values, vectors = values[::-1], vectors[:, ::-1]
    kept = min(count, int(np.sum(values > values.size * EPS * max(float(values[0]), 0.0))))
    scaled = vectors[:, :kept] / np.sqrt(values[:kept])
    return KernelDirections(values[:kept], D @ scaled, product @ scaled)


def _of_all(
    operator: CenteredOperator, labels: LabelBasis, quotient: Quotient, count: int, rng: np.random.Generator
) -> KernelDirections:
    divided = _division(operator, labels, quotient, rng)
    weighted = _LabelWeighted(operator, labels, quotient, divided)
    start = None if is_sparse(operator) else weighted.root(_double(start_for(operator, count, rng)))
    values, vectors = leading_eigenpairs(weighted, count, rng=rng, tolerance=_TOLERANCE, start=start)
    values, vectors = _double(values[:count]), _double(vectors[:, :count])
    kept = int(np.sum(values > operator.shape[0] * EPS * max(float(values[0]), 0.0)))
    coefficients = divided(weighted.root(vectors[:, :kept])) / np.sqrt(values[:kept])
    return KernelDirections(values[:kept], coefficients, _double(operator @ coefficients))


def _division(operator: CenteredOperator, labels: LabelBasis, quotient: Quotient, rng: np.random.Generator) -> Multiply:
    """The map V ↦ D with R₂⁻¹ZᵀV = ZᵀD."""
    if quotient.r2 == 0:
        return lambda V: V
    if not quotient.identity:
        raise SingularScatterError
    within = _Within(labels)
    precondition = _preconditioner(operator, within, quotient, rng)

    def shifted(V: Array) -> Array:
        return quotient.identity * V + quotient.r2 * within(_double(operator @ within(V)))

    def divided(V: Array) -> Array:
        right = within(_double(operator @ V))
        solution = conjugate_gradients(shifted, right, precondition=precondition, tolerance=_SOLVED)
        return (V - quotient.r2 * within(solution)) / quotient.identity

    return divided


def _double(block: Array) -> Array:
    return to_numpy(as_double(block))


@final
class _Within:
    """S = I - Q(1 - √(1 - t))Qᵀ, which leaves of a block what labels do not account for."""

    def __init__(self, labels: LabelBasis) -> None:
        self._basis, self._removed = labels.basis, (1 - np.sqrt(1 - labels.explained))[:, None]

    def __call__(self, block: Array) -> Array:
        return block - tall_product(self._basis, self._removed * inner_products(self._basis, block))


def _preconditioner(
    operator: CenteredOperator, within: _Within, quotient: Quotient, rng: np.random.Generator
) -> Multiply:
    """(αI + r₂ S F Fᵀ S)⁻¹ of a partial Cholesky factor F of the kernel matrix."""
    n = operator.shape[0]
    rank = max(1, min(n, _RANK, get_config().share(_SHARE) // (16 * n)))
    F = within(_double(operator.centred_factor(as_double(rp_cholesky(operator.gram, rank, rng).factor))))
    inner = inner_products(F, F)
    inner[np.diag_indices_from(inner)] += quotient.identity / quotient.r2
    factor = cho_factor(inner, lower=True, overwrite_a=True)
    return lambda V: (V - tall_product(F, cho_solve(factor, inner_products(F, V)))) / quotient.identity


@final
class _LabelWeighted(LinearMap):
    """CᵀZR₂⁻¹ZᵀC with C = √β I + Q(√(β + m) - √β)Qᵀ."""

    def __init__(self, operator: CenteredOperator, labels: LabelBasis, quotient: Quotient, divided: Multiply) -> None:
        super().__init__(operator.shape, np.float64, symmetric=True)
        self._operator, self._divided = operator, divided
        self._basis, self._even = labels.basis, np.sqrt(quotient.spread)
        weights = quotient.label_weights(labels.strengths, labels.explained)
        self._more = (np.sqrt(quotient.spread + weights) - self._even)[:, None]

    def root(self, block: Array) -> Array:
        """C times a block."""
        return self._even * block + tall_product(self._basis, self._more * inner_products(self._basis, block))

    def _multiply(self, v: Array) -> Array:
        return self.root(_double(self._operator @ self._divided(self.root(v))))

    def diagonal(self) -> Array:
        """The diagonal, from the whole matrix."""
        return np.diagonal(self.to_dense())

    def block(self, rows: Index, cols: Index) -> Array:
        """The dense block of some rows and columns, from products with the identity's."""
        identity = np.eye(self.shape[1], dtype=self.dtype)
        return np.asarray(part_of(self @ identity[:, cols], rows))
