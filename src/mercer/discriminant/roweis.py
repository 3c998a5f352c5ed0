"""Roweis discriminant analysis: one family from principal components to Fisher's discriminants."""

from __future__ import annotations

from typing import Any, final

from mercer.discriminant.family import RoweisFamily
from mercer.discriminant.penalty import check_regularization
from mercer.validation import declared, non_negative


def _share(value: Any, name: str) -> float:
    number = non_negative(value, name)
    if number > 1:
        raise ValueError(f"{name}={value!r} must be a number from 0 to 1.")
    return number


@final
class RoweisDiscriminant(RoweisFamily):
    """Project points by RDA(r₁, r₂), between principal components and discriminants (Ghojogh, Karray, Crowley 2020).

    The directions u are the leading solutions of R₁u = λR₂u, uᵀR₂u = 1, with

        R₁ = (1/n) X H (r₁ K_y/n + (1 - r₁) I) H Xᵀ,    R₂ = r₂ S_W + (1 - r₂) I,

    points as columns of X, H the centring matrix, K_y the kernel matrix of y, S_W the covariance within classes. (0, 0)
    is PCA, (1, 0) supervised PCA, (0, 1) Fisher's discriminant analysis, (1, 1) the double-supervised one. With a
    kernel, points are their features. See :doc:`/user_guide/discriminant`.

    Parameters
    ----------
    r1, r2 : float, default=0.5
        From 0 to 1. Both are shares of means, so that they say the same at every n; the paper's r is
        r/(r + n (1 - r)).
    kernel : Kernel or str, default=None
        Of the points; None means ``Linear()``, the points themselves.
    n_components : int, default=None
        Directions; None means one fewer than classes, one for each label, and else 2.
    y_kernel : Kernel or str, default=None
        Compares targets. None means equality of classes, ``Linear()`` of a matrix of labels, ``Gaussian("median")`` of
        numbers.
    regularization : float, "cv", "shrinkage" or None, default=None
        ε, as a part of the total variance: S_W becomes S_W + εI, and the covariance of all points likewise.
        ``"cv"`` takes the one of least error in five-fold cross-validation, ``"shrinkage"`` that of Ledoit and Wolf.
        None means 0, or 1e-3 where r₂ = 1 and S_W is singular or the kernel is not the linear one.
    smoothing : float, default=0.01
        For numbers, and wherever ``y_kernel`` is given: what is within classes there is what kernel ridge regression of
        the points on y leaves, with this part of the trace of K_y as its penalty.
    landmarks : int, array of int, estimator or None, default=None
        Rows of X that features of the kernel are made from, as in :class:`mercer.Kernelized`; None means all.
    random_state : None, int or generator, default=None
        For landmarks that are drawn, starts of large problems and folds.
    verbose : bool, default=False
        Log the phases and the time to the logger ``mercer``.

    Attributes
    ----------
    components_ : array of shape (n_components, d) or None
        The directions, of the linear kernel.
    eigenvalues_ : array of shape (n_components,)
        λ, in falling order.
    regularization_ : float
        The ε that was used, as a part of the total variance.
    classes_, class_means_ : arrays of shapes (c,) and (c, n_components)
        Where y is classes: which, and their means in the projected space.
    kernel_, y_kernel_ : Kernel
        With their parameters fixed; ``y_kernel_`` is None for classes.
    sample_weight_ : array of shape (n,) or None
        The weights of the fit.

    Notes
    -----
    Cost: with d columns or landmarks, n d² flops for S_W and d³/3 for its factor; fewer rows than columns make it a
    problem of order n. A kernel on more than 500 points without landmarks goes by products with its matrix, which is
    not stored: two for r₂ = 0 and r₁ = 1, some ten to thirty for r₂ = 1 or r₁ = 1, and more between.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from mercer import RoweisDiscriminant
    >>> X, y = load_iris(return_X_y=True)
    >>> model = RoweisDiscriminant(r1=0.5, r2=1.0).fit(X, y)
    >>> model.transform(X).shape, model.score(X, y)
    ((150, 2), 0.98)
    """

    _checks = declared(
        **RoweisFamily._checks, r1=_share, r2=_share, regularization=check_regularization, smoothing=non_negative
    )

    def __init__(
        self,
        r1: float = 0.5,
        r2: float = 0.5,
        kernel: Any = None,
        *,
        n_components: int | None = None,
        y_kernel: Any = None,
        regularization: Any = None,
        smoothing: float = 0.01,
        landmarks: Any = None,
        random_state: Any = None,
        verbose: bool = False,
    ) -> None:
        self.r1 = r1
        self.r2 = r2
        self.kernel = kernel
        self.n_components = n_components
        self.y_kernel = y_kernel
        self.regularization = regularization
        self.smoothing = smoothing
        self.landmarks = landmarks
        self.random_state = random_state
        self.verbose = verbose

    def _mixture(self) -> tuple[float, float]:
        return float(self.r1), float(self.r2)
