"""Tables of real measurements, in the form the papers embed them: one row a sample, float64."""

from __future__ import annotations

from typing import Any

import numpy as np

from mercer.backends.arrays import Array
from mercer.datasets.real import load_real


def standardized(X: Any) -> Array:
    """The columns of X brought to zero mean and unit variance, in float64; a constant column becomes zero."""
    X = np.asarray(X, dtype=np.float64)
    deviation = X.std(axis=0)
    return (X - X.mean(axis=0)) / np.where(deviation > 0, deviation, 1.0)


def wine() -> tuple[Array, Array]:
    """Wine: 178 chemical analyses of 13 quantities, standardised, and the 3 cultivars 0, 1, 2 (PSD22 Fig 5)."""
    from sklearn.datasets import load_wine

    table = load_wine()
    return standardized(table.data), table.target.astype(np.int64)


def iris() -> tuple[Array, Array]:
    """Iris: 150 flowers of 4 lengths, standardised, and the 3 species 0, 1, 2."""
    from sklearn.datasets import load_iris

    table = load_iris()
    return standardized(table.data), table.target.astype(np.int64)


def digits() -> tuple[Array, Array]:
    """Digits: 1797 images of 8 × 8 pixels as rows of 64 numbers in [0, 1], and the digits 0 to 9."""
    from sklearn.datasets import load_digits

    table = load_digits()
    return table.data.astype(np.float64) / 16.0, table.target.astype(np.int64)


def mnist_pair(first: int = 1, second: int = 4, n: int | None = None, random_state: Any = 0) -> tuple[Array, Array]:
    """Two digits of the training set of MNIST, 784 pixels in [0, 1] a row (PSD22 Fig 4).

    Parameters
    ----------
    first, second : int, default=1 and 4
        The digits; there are 12 584 images of the default pair.
    n : int or None, default=None
        How many images to draw at random, without replacement; None for all, in the order of the file.
    random_state : int or generator, default=0
        What decides the draw.

    Returns
    -------
    X : array of shape (n, 784)
        The images.
    y : array of int
        Which digit each is.

    Raises
    ------
    FileNotFoundError
        Without the folder that the variable ``MERCER_DATA`` names.
    """
    data = load_real("mnist")
    chosen = np.flatnonzero(np.isin(data["y_train"], [first, second]))
    rows = chosen[_drawn(chosen.size, n, random_state)]
    return data["x_train"][rows].reshape(len(rows), -1) / 255.0, data["y_train"][rows].astype(np.int64)


def htru2(n: int | None = None, random_state: Any = 0) -> tuple[Array, Array]:
    """Pulsar candidates: 17 898 rows of 8 features, standardised over all rows, and 1 for a pulsar (PSD22 Fig 6).

    Parameters
    ----------
    n : int or None, default=None
        How many candidates to draw at random, without replacement; None for all, in the order of the file.
    random_state : int or generator, default=0
        What decides the draw.

    Returns
    -------
    X : array of shape (n, 8)
        The features.
    y : array of int
        1 for the 1639 pulsars, 0 for the rest.

    Raises
    ------
    FileNotFoundError
        Without the folder that the variable ``MERCER_DATA`` names.
    """
    data = load_real("htru2")
    rows = _drawn(len(data["y"]), n, random_state)
    return standardized(data["X"])[rows], data["y"][rows].astype(np.int64)


def marrow() -> Array:
    """Bone marrow: 4142 cells by their scores on 100 principal components of gene expression.

    Raises
    ------
    FileNotFoundError
        Without the folder that the variable ``MERCER_DATA`` names.
    """
    return load_real("marrow_pca")["X"].astype(np.float64)


def _drawn(size: int, n: int | None, random_state: Any) -> Array:
    if n is None:
        return np.arange(size)
    if not 1 <= n <= size:
        raise ValueError(f"n={n} rows cannot be drawn: the table has {size}.")
    return np.random.default_rng(random_state).choice(size, n, replace=False)
