"""The transition matrix of a diffusion, truncated to its leading eigenpairs (PSD17 (20))."""

from __future__ import annotations

from typing import NamedTuple

from sklearn.utils.validation import check_is_fitted

from mercer.backends.arrays import Array, as_double, namespace
from mercer.backends.config import require_memory
from mercer.embedding.diffusion_maps import DiffusionMaps


class TruncatedTransitions(NamedTuple):
    """A transition matrix of low rank.

    Attributes
    ----------
    left : array of shape (n, m)
        λᵗψ(x), the constant first: what a row has of each function.
    right : array of shape (n, m)
        φ(y) = φ₀(y)ψ(y).
    """

    left: Array
    right: Array

    def matrix(self) -> Array:
        """p*(x, y), n × n: the rows sum to one, but entries may be negative, which a transition matrix has none of."""
        require_memory(8 * self.left.shape[0] ** 2, "A transition matrix", "take rows of left times right")
        return self.left @ self.right.T


def truncated_transitions(model: DiffusionMaps) -> TruncatedTransitions:
    """The transition matrix after t steps from the leading eigenpairs of a fitted diffusion map (PSD17 (20)).

        p*_t(x, y) = Σ_{l<m} λ_lᵗ ψ_l(x) φ_l(y),        φ_l = φ₀ψ_l,  λ₀ = 1,  ψ₀ = 1,

    with the t of the model and m = ``n_components`` + 1. Of all matrices of rank m it is the one nearest to p_t in
    Σ φ₀(x) Σ (p_t(x, y) - p(x, y))²/φ₀(y) (Theorem 2): the square of a Frobenius norm, that of φ₀^½ p φ₀^-½, which is
    symmetric with the eigenvalues λᵗ, so that the least is Σ_{l≥m} λ_l²ᵗ. Points where φ₀ is small weigh little:
    outliers are where the truncation errs. The coordinates of :class:`mercer.DiffusionMaps` are ``left`` without its
    first column.

    Parameters
    ----------
    model : DiffusionMaps
        Fitted; the matrix is that of the points that it was fitted to, or of its landmarks.
    """
    check_is_fitted(model)
    functions = as_double(model._eigenfunctions)
    xp = namespace(functions)
    ones = xp.ones_like(functions[:, :1])
    values = as_double(model.eigenvalues_)[: functions.shape[1]] ** float(model.time)
    left = xp.concat([ones, values * functions], axis=1)
    right = as_double(model.stationary_)[:, None] * xp.concat([ones, functions], axis=1)
    return TruncatedTransitions(left, right)
