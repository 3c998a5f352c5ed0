"""Certificates recomputed from a model and the data alone."""

from __future__ import annotations

from typing import Any

from mercer.certificates import Certificate
from mercer.estimator import Certified, Recheck


def verify(
    model: Certified,
    X: Any,
    y: Any = None,
    *,
    extended: bool = False,
    failure_probability: float = 1e-9,
    random_state: Any = None,
) -> Certificate:
    """Certify a fitted model again, believing nothing that its solver left behind.

    The kernel operator is built from ``model.kernel_`` and X, the solution is read off the fitted attributes, and the
    bounds are computed from these two. A model that was read from a file, or changed by hand, is judged by what it is.

    Parameters
    ----------
    model : estimator
        A fitted SDPEmbedding, KernelizedSDPEmbedding, MaximumVarianceUnfolding, KernelPCA, QuadratureSparsifier,
        SumOfSquaresDensity, RobustKernelRidge, RobustKernelRegressor or RobustKernelClassifier; or what
        :func:`mercer.optimal_density` returned, with its ConvexFunctional in the place of X.
    X : array of shape (n, d)
        The data it was fitted to, in the same order. Of an embedding with landmarks or weights the weighted problem on
        its landmarks is certified, as in ``fit``.
    y : array of shape (n,), optional
        The targets it was fitted to, of a regression or a classifier; not used by the others.
    extended : bool, default=False
        Of an embedding, certify the *extension* instead: on any sample X, the directions that
        :meth:`SDPEmbedding.transform` gives its points, in all dimensions of the model, as a solution of the unweighted
        problem of X.
    failure_probability : float, default=1e-9
        With which the upper bound of an embedding may be wrong, at most; a proof without chance is made where that is
        affordable. The bounds of the other models involve no chance.
    random_state : None, int or generator, default=None
        Random numbers of the proof, independent of those of a fit with the same seed.

    Returns
    -------
    Certificate
        Bounds on the optimum of the problem of X; its ``objective`` is that of the model.

    Raises
    ------
    ValueError
        If the model cannot belong to X: other numbers of rows or columns, other lengths than ‖Ξᵢ‖² = dᵢ, nodes that X
        does not have; or if anything that a person reads off the model or predicts with is not what its solution, its
        kernel and X give.

    Examples
    --------
    >>> import mercer
    >>> X, _ = mercer.datasets.three_clusters()
    >>> model = mercer.SDPEmbedding(mercer.Gaussian(sigma=1.2), random_state=0).fit(X)
    >>> mercer.verify(model, X).holds(1e-6)
    True
    >>> landmarks = mercer.QuadratureSparsifier(mercer.Gaussian(sigma=1.2), trace_fraction=0.5).fit(X)
    >>> mercer.verify(landmarks, X).holds(1e-9)
    True
    """
    recertify = getattr(type(model), "_recertify", None)
    if recertify is not None:
        return recertify(model, X, y, Recheck(extended, failure_probability, random_state))
    raise TypeError(
        "verify takes a fitted SDPEmbedding, KernelizedSDPEmbedding, MaximumVarianceUnfolding, KernelPCA, "
        "QuadratureSparsifier, SumOfSquaresDensity, RobustKernelRidge, RobustKernelRegressor or "
        f"RobustKernelClassifier, not {type(model).__name__}."
    )
