"""The semi-definite programme of the embedding (PSD22 (SDP), PSD17 (6)) in its low-rank form.

    p* = max ⟨Ã, B⟩  subject to  B ≽ 0, diag B = d

With s = √d, J = Diag(s) Ã Diag(s) and B = Diag(s) H Hᵀ Diag(s), it reads: maximise ⟨J, H Hᵀ⟩ over n × r matrices H
whose rows have unit length (PSD22 (C.1)). Rows with dᵢ = 0 take no part: B vanishes there. PSD22's diag B ≤ d is the
same programme with some rows split in two halves, see :mod:`mercer.operators.split`.

A linear term may be added, ⟨J, H Hᵀ⟩ + 2⟨C, H⟩. The embedding has none, but the lower models by which
:mod:`mercer.solvers.elliptope.minorise` climbs do.
"""

from __future__ import annotations

from typing import final

import numpy as np

from mercer.backends.arrays import Array, as_double, cast, like, namespace
from mercer.kernels.checks import first_place
from mercer.linalg.eigen import deterministic_signs
from mercer.linalg.tall import first_axis, inner_product, row_lengths, row_products
from mercer.operators import LinearMap, SplitOperator
from mercer.problems.problem import Problem

INDEFINITE, LINEAR = "an indefinite matrix", "a linear term"
_MATRICES = 10  # of doubles, of order n, that a method holds at once where it forms J


@final
class Elliptope(Problem):
    """Maximise ⟨J, H Hᵀ⟩ + 2⟨C, H⟩ over matrices H with unit rows; C = 0 unless it is given.

    It works in the array library of its operator, and on its device.

    Parameters
    ----------
    operator : LinearMap
        Ã, symmetric, n × n.
    diagonal : array of shape (n,)
        d ≥ 0, the prescribed diagonal of B.
    shift : float or array of shape (n,), default=0
        c ≥ 0 with J + Diag(c) ≽ 0, so that power steps ascend; 0 for a positive semi-definite J. A diagonal changes the
        objective by a constant: objective and multipliers are those of J itself, never of the shifted matrix. Where the
        spectrum of Ã lies above -b, c = b·d serves: rows of little weight then need little.
    removed : array of shape (n,), optional
        A vector v if Ã was formed as A - vvᵀ. Certificates use it to bound the rounding of that subtraction.
    linear : array of shape (n, r), optional
        C. Certificates refuse a problem that has it.
    lengths : array of shape (n,), optional
        By what the residuals of rows are weighed: their lengths in the embedding; √d if left out.
    failure_probability : float, default=0
        With which J + Diag(c) ≽ 0 may be false; certificates that build on it add it to their own.
    diagonal_error : array of shape (n,), optional
        How far d may be from what it stands for; if left out d is the operator's own diagonal, which knows its errors.
    repulsion : array of shape (n,), optional
        max(-Jᵢᵢ, 0), where the diagonal of J has negative entries: what row i would lose by its own affinity.
    """

    def __init__(
        self,
        operator: LinearMap,
        diagonal: Array,
        *,
        shift: float | Array = 0.0,
        removed: Array | None = None,
        linear: Array | None = None,
        lengths: Array | None = None,
        failure_probability: float = 0.0,
        diagonal_error: Array | None = None,
        repulsion: Array | None = None,
    ) -> None:
        self.operator = operator
        self.diagonal = like(diagonal, operator.reference)
        self.scale = namespace(self.diagonal).sqrt(self.diagonal)
        self.active = self.scale > 0
        self.shift = shift * namespace(self.diagonal).ones_like(self.diagonal)
        self.removed = removed
        self.linear = linear
        self.lengths = self.scale if lengths is None else like(lengths, operator.reference)
        self.failure_probability = failure_probability
        self.diagonal_error = diagonal_error
        self.repulsion = repulsion

    @property
    def indefinite(self) -> bool:
        """Whether J is not known to be positive semi-definite: some row has a shift."""
        return bool((self.shift > 0).any())

    @property
    def needs(self) -> frozenset[str]:
        """An indefinite matrix, a linear term."""
        return frozenset({INDEFINITE} if self.indefinite else ()) | frozenset(() if self.linear is None else {LINEAR})

    @property
    def size(self) -> int:
        """The number of rows n."""
        return int(self.scale.shape[0])

    @property
    def row_entries(self) -> float:
        """Entries of a row of J that a product meets, on average."""
        gram = getattr(self.operator, "gram", None)
        return float(self.size if gram is None else gram.row_entries)

    def curvature(self, V: Array) -> Array:
        """J V, at the cost of one product with r columns."""
        self.spend(V.shape[1])
        return self.scale[:, None] * (self.operator @ (self.scale[:, None] * V))

    def apply(self, H: Array) -> Array:
        """G = J H + C, half the gradient, at the cost of one product with r columns."""
        G = self.curvature(H)
        return G if self.linear is None else G + self.linear

    def multipliers(self, H: Array, G: Array) -> Array:
        """zᵢ = Gᵢ · Hᵢ: the dual variables that a first-order point determines."""
        return row_products(H, G)

    def objective(self, H: Array, G: Array) -> float:
        """⟨J, H Hᵀ⟩ + 2⟨C, H⟩, from a product at hand: the sum of the multipliers where there is no linear term."""
        xp = namespace(H)
        value = float(xp.sum(self.multipliers(H, G), dtype=xp.float64))
        return value if self.linear is None else value + inner_product(self.linear, H)

    def row_residual(self, H: Array, G: Array) -> float:
        """How far H is from the fixed point Hᵢ = Gᵢ/‖Gᵢ‖, rows weighed as they are in the embedding.

        maxᵢ ℓᵢ ‖Gᵢ/‖Gᵢ‖ - Hᵢ‖ / maxᵢ ℓᵢ: exactly the error, relative to its scale, with which the extension formula
        reproduces the embedding at the training points. A row that repels itself, Jᵢᵢ < 0, may have Gᵢ = zᵢHᵢ with
        zᵢ < 0 at an optimum; zᵢ ≥ Jᵢᵢ always, so that it is compared with Gᵢ - JᵢᵢHᵢ.
        """
        largest = float(self.lengths.max()) if self.size else 0.0
        if largest == 0:  # every row lies at the origin, wherever it is turned
            return 0.0
        towards = G if self.repulsion is None else G + cast(self.repulsion, G.dtype)[:, None] * H
        distance = row_lengths(self.project(towards, H) - H)
        return float((self.lengths * distance).max()) / largest

    def project(self, M: Array, fallback: Array) -> Array:
        """Divide every row by its length; a zero row becomes that of the fallback."""
        xp, lengths = namespace(M), row_lengths(M)
        positive = lengths > 0
        if positive.all():
            return M / lengths[:, None]
        return xp.where(positive[:, None], M / xp.where(positive, lengths, 1.0)[:, None], cast(fallback, M.dtype))

    def random_point(self, rank: int, rng: np.random.Generator) -> Array:
        """Rows drawn uniformly from the unit sphere of R^rank, by NumPy whatever the library: all start alike."""
        M = like(rng.standard_normal((self.size, rank)), self.scale)
        return cast(self.project(M, first_axis(rank, M)), self.operator.dtype)

    def principal(self, H: Array) -> tuple[Array, Array]:
        """Principal coordinates UΣ of Diag(s) H = UΣVᵀ, of deterministic sign, and the eigenvalues of B / Tr B.

        They are formed as Diag(s) H V: short rows keep their digits, which U has to the scale of the longest only.
        """
        return principal_coordinates(self.scale[:, None] * H)

    def reduced(self, H: Array, rank_tol: float) -> Array:
        """The point of lowest rank near H: principal directions above the tolerance, rows of unit length again.

        Where rows are split, the directions are those of B, with the lengths that its rows had, and one more, in which
        the halves part: how they do so is of no account.
        """
        if self.split is not None:
            coordinates, eigenvalues = principal_coordinates(self.lengths_of_rows[:, None] * self.rows_of(H))
            return self._of_directions(H, coordinates[:, eigenvalues > rank_tol])
        coordinates, eigenvalues = self.principal(H)
        kept = coordinates[:, eigenvalues > rank_tol]
        return self.project(kept, first_axis(kept.shape[1], kept))

    def leading(self, H: Array, rank: int) -> Array:
        """The point of that many columns near H, whose columns rise in weight."""
        if self.split is not None:
            coordinates, _ = principal_coordinates(self.lengths_of_rows[:, None] * self.rows_of(H))
            return self._of_directions(H, coordinates[:, : max(rank - 1, 1)])
        return self.project(H[:, -rank:], first_axis(rank, H))

    @property
    def split(self) -> SplitOperator | None:
        """The operator, where some points stand in it twice; None where all stand once."""
        return self.operator if isinstance(self.operator, SplitOperator) else None

    @property
    def lengths_of_rows(self) -> Array:
        """√d of every point, once."""
        return self.scale if self.split is None else self.scale[: self.split.inner.shape[0]]

    def rows_of(self, H: Array) -> Array:
        """The rows of H that the points have, one each: of two halves, their mean."""
        return H if self.split is None else self.split.merged(H)

    def point_of(self, rows: Array) -> Array:
        """The point H of given rows; two unit vectors are found for each row that may be short, in one dimension more.

        Rows that are not split are brought to unit length by whoever works with H.
        """
        if self.split is None:
            return rows
        xp = namespace(rows)
        missing = xp.zeros_like(rows[:, 0])
        missing[self.split.rows] = xp.sqrt(xp.clip(1 - row_lengths(rows[self.split.rows]) ** 2, 0.0, None))
        sides = xp.concat([missing, -missing[self.split.rows]])
        return xp.concat([self.split.repeated(rows), sides[:, None]], axis=1)

    def _of_directions(self, H: Array, kept: Array) -> Array:
        """The point whose rows have these directions, and the lengths that those of H have."""
        lengths = row_lengths(kept)
        stretch = row_lengths(self.rows_of(H)) / namespace(lengths).where(lengths > 0, lengths, 1.0)
        point = self.point_of(stretch[:, None] * kept)
        return self.project(point, first_axis(point.shape[1], point))

    def dense(self) -> DenseElliptope:
        """The same problem with the matrix of its active rows formed, as so many columns are counted."""
        active = namespace(self.active).nonzero(self.active)[0]
        s = as_double(self.scale[active])
        J = as_double(self.operator.block(active, active)) * (s[:, None] * s)
        self.n_columns += active.shape[0]
        problem = DenseElliptope((J + J.T) / 2, self.lengths[active], needs=self.needs)
        problem.n_columns = self.n_columns
        return problem


def principal_coordinates(rows: Array) -> tuple[Array, Array]:
    """Rows turned to their principal directions, of deterministic sign, and the shares of these in their squares."""
    xp = namespace(rows)
    _, sizes, turn = xp.linalg.svd(rows, full_matrices=False)
    coordinates = rows @ turn.T
    return coordinates * deterministic_signs(coordinates), sizes**2 / xp.sum(sizes**2)


def bytes_needed(n: int) -> int:
    """Memory that a solve with the matrix of n rows formed takes."""
    return 8 * _MATRICES * n * n


@final
class DenseElliptope(Problem):
    """Maximise ⟨J, X⟩ over X ≽ 0 with unit diagonal, J a matrix that is held whole.

    Parameters
    ----------
    matrix : array of shape (n, n)
        J, symmetric; it need not be positive semi-definite.
    lengths : array of shape (n,), optional
        By what the residuals of rows are weighed; ones if left out.
    needs : frozenset of str
        What the problem has besides J.

    Raises
    ------
    ValueError
        If J is not square, symmetric and finite.
    """

    def __init__(
        self, matrix: Array, lengths: Array | None = None, *, needs: frozenset[str] = frozenset({INDEFINITE})
    ) -> None:
        if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1]:
            raise ValueError(f"J must be a square matrix, not of shape {tuple(matrix.shape)}.")
        infinite, uneven = ~namespace(matrix).isfinite(matrix), matrix != matrix.T
        if infinite.any():
            row, column = first_place(infinite)
            raise ValueError(f"J has {float(matrix[row, column])} at ({row}, {column}): every entry must be finite.")
        if uneven.any():
            row, column = first_place(uneven)
            raise ValueError(f"J is not symmetric at ({row}, {column}): pass (J + J.T) / 2.")
        self.matrix, self._needs = matrix, needs
        ones = namespace(matrix).ones_like(matrix[:, 0], dtype=namespace(matrix).float64)
        self.lengths = ones if lengths is None else as_double(like(lengths, matrix))

    @property
    def needs(self) -> frozenset[str]:
        """A matrix that may be indefinite, and what the problem had that it was formed from."""
        return self._needs
