"""The semi-definite programme of the embedding in its low-rank form.

    p* = max ⟨Ã, B⟩  subject to  B ≽ 0, diag B = d

With s = √d, J = Diag(s) Ã Diag(s) and B = Diag(s) H Hᵀ Diag(s), it reads: maximise ⟨J, H Hᵀ⟩ over n × r matrices H
whose rows have unit length (PSD22 (C.1)). Rows with dᵢ = 0 take no part: B vanishes there.
"""

from __future__ import annotations

from typing import Any, final

import numpy as np

from mercer.operators import LinearMap

Array = np.ndarray[Any, np.dtype[Any]]


@final
class Elliptope:
    """Maximise ⟨J, H Hᵀ⟩ over matrices H with unit rows.

    Parameters
    ----------
    operator : LinearMap
        Ã, symmetric, n × n.
    diagonal : array of shape (n,)
        d ≥ 0, the prescribed diagonal of B.
    shift : float, default=0
        A number c with J + cI ≽ 0, so that power steps ascend; 0 for a positive semi-definite J. Objective and
        multipliers are those of J itself, never of the shifted matrix.
    removed : array of shape (n,), optional
        A vector v if Ã was formed as A - vvᵀ. Certificates use it to bound the rounding of that subtraction.

    Attributes
    ----------
    n_columns : int
        Columns the operator has been applied to so far.
    """

    def __init__(
        self, operator: LinearMap, diagonal: Array, *, shift: float = 0.0, removed: Array | None = None
    ) -> None:
        self.operator = operator
        self.diagonal = np.asarray(diagonal)
        self.scale = np.sqrt(self.diagonal)
        self.active = self.scale > 0
        self.shift = shift
        self.removed = removed
        self.n_columns = 0

    @property
    def size(self) -> int:
        """The number of rows n."""
        return int(self.scale.size)

    def apply(self, H: Array) -> Array:
        """G = J H, at the cost of one product with r columns."""
        self.n_columns += H.shape[1]
        return self.scale[:, None] * (self.operator @ (self.scale[:, None] * H))

    def multipliers(self, H: Array, G: Array) -> Array:
        """zᵢ = Gᵢ · Hᵢ: the dual variables that a first-order point determines; their sum is the objective."""
        return np.einsum("ij,ij->i", H, G)

    def row_residual(self, H: Array, G: Array) -> float:
        """How far H is from the fixed point Hᵢ = Gᵢ/‖Gᵢ‖, rows weighed as they are in the embedding.

        maxᵢ sᵢ ‖Gᵢ/‖Gᵢ‖ - Hᵢ‖ / maxᵢ sᵢ: exactly the error, relative to its scale, with which the extension formula
        reproduces the embedding at the training points.
        """
        distance = np.linalg.norm(self.project(G, H) - H, axis=1)
        return float(np.max(self.scale * distance) / np.max(self.scale))

    def project(self, M: Array, fallback: Array) -> Array:
        """Divide every row by its length; a zero row becomes that of the fallback."""
        lengths = np.linalg.norm(M, axis=1)
        positive = lengths > 0
        if positive.all():
            return M / lengths[:, None]
        return np.where(positive[:, None], M / np.where(positive, lengths, 1.0)[:, None], fallback)

    def random_point(self, rank: int, rng: np.random.Generator) -> Array:
        """Rows drawn uniformly from the unit sphere of R^rank."""
        M = rng.standard_normal((self.size, rank))
        return self.project(M, np.eye(1, rank).repeat(self.size, axis=0)).astype(self.operator.dtype)
