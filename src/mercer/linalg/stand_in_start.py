"""Where the search for the principal components of a kernel starts: at those of a low-rank stand-in."""

from __future__ import annotations

import numpy as np

from mercer.backends import get_config
from mercer.backends.arrays import Array, as_double, like, namespace
from mercer.linalg.eigen import positive_eigenpairs
from mercer.linalg.pivoted_cholesky import rp_cholesky
from mercer.linalg.tall import inner_products, tall_product, weighted_gram
from mercer.operators import CenteredOperator, GramOperator

_MORE_COLUMNS = 10  # than are wanted: a product with them costs hardly more, and takes fewer steps
_MOST_COLUMNS = 64
_LEAST_RANK, _MOST_RANK, _POINTS = 64, 256, 100  # one column of the stand-in for so many points
_SHARE = 1 / 8  # of the memory limit, for the factor
_LOST = 1e-12  # eigenvalues of the stand-in below this part of the largest are none


def start_for(operator: CenteredOperator, count: int, rng: np.random.Generator) -> Array:
    """Columns that span about the leading space of a centred kernel matrix, ``count`` + 10 of them or 64.

    A positive semi-definite kernel has a stand-in F Fᵀ by randomly pivoted Cholesky, n·rank kernel evaluations, whose
    centred eigenvectors cost n·rank² flops: on data of few effective dimensions they are right to some digits. Another
    kernel, and what the stand-in does not have, starts at random.
    """
    n, columns = operator.shape[0], min(operator.shape[0], count + _MORE_COLUMNS, _MOST_COLUMNS)
    random = like(rng.standard_normal((n, columns)), operator.reference)
    rank = min(max(_LEAST_RANK, 2 * columns, n // _POINTS), _MOST_RANK, get_config().share(_SHARE) // (8 * n), n)
    gram = operator.gram
    if not isinstance(gram, GramOperator) or not gram.kernel.properties.positive_definite or rank <= columns:
        return random
    factor = as_double(rp_cholesky(gram, rank, rng).factor)
    values, vectors = positive_eigenpairs(_centred_gram(operator, factor), _LOST)
    found = min(columns, values.shape[0])
    xp = namespace(factor)
    leading = operator.centred_factor(tall_product(factor, vectors[:, :found] / xp.sqrt(values[:found])))
    return xp.concat([leading, random[:, found:]], axis=1)


def _centred_gram(operator: CenteredOperator, factor: Array) -> Array:
    """The inner products of the columns of P W^½ F, no copy of which is made: it may have some hundred columns."""
    xp, unit = namespace(factor), as_double(operator.unit)
    root = xp.ones_like(unit) if operator.weights is None else xp.sqrt(as_double(operator.weights))
    along = inner_products(factor, (unit * root)[:, None])
    return weighted_gram(factor, root) - along @ along.T
