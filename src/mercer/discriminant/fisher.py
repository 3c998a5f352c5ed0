"""Fisher's discriminants, linear and in the space of a kernel."""

from __future__ import annotations

from typing import Any, final

from sklearn.utils.multiclass import check_classification_targets

from mercer.discriminant.family import RoweisFamily
from mercer.discriminant.penalty import check_regularization
from mercer.estimator import Classifier
from mercer.validation import declared, of_labels


@final
class FisherDiscriminant(Classifier, RoweisFamily):
    """Project points where classes lie apart and each is narrow, and classify them there (Fisher; Mika et al. 1999).

    The directions are the leading solutions of S_B u = μ (S_W + εI) u, uᵀ(S_W + εI)u = 1, S_B and S_W the covariances
    of class means and within classes. That is ``RoweisDiscriminant(0, 1)``, whose λ is 1 + μ. With the linear kernel
    and ε = 0 it is linear discriminant analysis, its probabilities included.

    Parameters
    ----------
    kernel : Kernel or str, default=None
        Of the points; None means ``Linear()``, the points themselves.
    n_components : int, default=None
        Directions; None means one fewer than classes.
    regularization : float, "cv", "shrinkage" or None, default=None
        ε, as a part of the total variance. ``"cv"`` takes the one of least error of the probabilities in five-fold
        cross-validation, ``"shrinkage"`` that of Ledoit and Wolf. None means 0, or 1e-3 where S_W is singular, as it
        is with more columns than rows, and with any kernel but the linear one.
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
        1 + μ, in falling order.
    regularization_ : float
        The ε that was used, as a part of the total variance.
    classes_, class_means_ : arrays of shapes (c,) and (c, n_components)
        The classes, and their means in the projected space.
    kernel_, y_kernel_ : Kernel and None
        With its parameters fixed; classes are compared by equality.
    sample_weight_ : array of shape (n,) or None
        The weights of the fit.

    Notes
    -----
    Cost: n d² + d³/3 flops, or n² d + n³/3 with fewer rows than columns; with a kernel on more than 500 points, some
    ten to thirty products with its matrix, which is not stored.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from mercer import FisherDiscriminant
    >>> X, y = load_wine(return_X_y=True)
    >>> model = FisherDiscriminant().fit(X, y)
    >>> model.transform(X).shape, model.score(X, y)
    ((178, 2), 1.0)
    """

    _checks = declared(**RoweisFamily._checks, regularization=check_regularization)

    def __init__(
        self,
        kernel: Any = None,
        *,
        n_components: int | None = None,
        regularization: Any = None,
        landmarks: Any = None,
        random_state: Any = None,
        verbose: bool = False,
    ) -> None:
        self.kernel = kernel
        self.n_components = n_components
        self.regularization = regularization
        self.landmarks = landmarks
        self.random_state = random_state
        self.verbose = verbose

    def _mixture(self) -> tuple[float, float]:
        return 0.0, 1.0

    def _check_targets(self, y: Any) -> None:
        of_labels(check_classification_targets, y)
