"""Supervised principal components: the directions that depend most on the targets."""

from __future__ import annotations

from typing import Any, final

from mercer.discriminant.family import RoweisFamily


@final
class SupervisedPCA(RoweisFamily):
    """Project points on the orthonormal directions of largest dependence on y (Barshan et al. 2011).

    It maximises the Hilbert-Schmidt independence criterion Tr(UᵀX H K_y H XᵀU)/n² over UᵀU = I, points as columns of X:
    the leading eigenvectors of X H K_y H Xᵀ. That is ``RoweisDiscriminant(1, 0)``.

    Parameters
    ----------
    kernel : Kernel or str, default=None
        Of the points; None means ``Linear()``, the points themselves.
    n_components : int, default=None
        Directions; None means one fewer than classes, one for each label, and else 2.
    y_kernel : Kernel or str, default=None
        Compares targets. None means equality of classes, ``Linear()`` of a matrix of labels, ``Gaussian("median")`` of
        numbers.
    landmarks : int, array of int, estimator or None, default=None
        Rows of X that features of the kernel are made from, as in :class:`mercer.Kernelized`; None means all.
    random_state : None, int or generator, default=None
        For landmarks that are drawn.
    verbose : bool, default=False
        Log the phases and the time to the logger ``mercer``.

    Attributes
    ----------
    components_ : array of shape (n_components, d) or None
        The directions, of the linear kernel.
    eigenvalues_ : array of shape (n_components,)
        The parts of the criterion, in falling order.
    regularization_ : float
        Zero: nothing is divided by.
    classes_, class_means_ : arrays of shapes (c,) and (c, n_components)
        Where y is classes: which, and their means in the projected space.
    kernel_, y_kernel_ : Kernel
        With their parameters fixed; ``y_kernel_`` is None for classes.
    sample_weight_ : array of shape (n,) or None
        The weights of the fit.

    Notes
    -----
    Cost: n d c flops for c features of the labels; with a kernel on more than 500 points, two products with its
    matrix, which is not stored.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from mercer import SupervisedPCA
    >>> X, y = load_diabetes(return_X_y=True)
    >>> SupervisedPCA(n_components=3).fit_transform(X, y).shape
    (442, 3)
    """

    def __init__(
        self,
        kernel: Any = None,
        *,
        n_components: int | None = None,
        y_kernel: Any = None,
        landmarks: Any = None,
        random_state: Any = None,
        verbose: bool = False,
    ) -> None:
        self.kernel = kernel
        self.n_components = n_components
        self.y_kernel = y_kernel
        self.landmarks = landmarks
        self.random_state = random_state
        self.verbose = verbose

    def _mixture(self) -> tuple[float, float]:
        return 1.0, 0.0
