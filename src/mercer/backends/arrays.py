"""The array that comes in decides the library that computes.

NumPy arrays are worked on by NumPy, torch tensors by torch, through the array API standard; a function asks
:func:`namespace` for the library of its arguments and calls that. What the standard lacks and both libraries have
stands here, once. :func:`to_numpy` and :func:`like` are the doors for what only NumPy can do: a step of a solver goes
through neither.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from typing import Any

import numpy as np

_WIDE = 16  # times as many right-hand sides as unknowns, from which on a card multiplies by the inverse

Array = Any  # an array of any library of the standard
ArrayOrNumber = Any  # an array, or one number for all of it
Labels = Any  # an array of NumPy's that may hold texts: names of classes


def namespace(*arrays: Any) -> Any:
    """The library of these arrays, with the functions of the array API standard; NumPy for plain numbers and lists."""
    for array in arrays:
        if not isinstance(array, np.ndarray) and is_tensor(array):
            import array_api_compat.torch as torch_namespace

            return torch_namespace
    return np


def is_tensor(array: Any) -> bool:
    """Whether this is a torch tensor; torch is not imported to find out."""
    kind: Any = type(array)
    return _is_tensor_type(kind)


@cache
def _is_tensor_type(kind: type) -> bool:
    return any(base.__module__ == "torch" and base.__name__ == "Tensor" for base in kind.__mro__)


def is_source(points: Any) -> bool:
    """Whether these are rows that come a block at a time: a :class:`mercer.backends.row_source.RowSource`."""
    return bool(getattr(type(points), "gives_blocks", False))


def to_numpy(array: Any) -> np.ndarray[Any, np.dtype[Any]]:
    """The values as a NumPy array, without a copy where they lie in this machine's memory."""
    return array.detach().cpu().numpy() if is_tensor(array) else np.asarray(array)


def like(values: Any, reference: Any, *, dtype: Any = None) -> Any:
    """The values as an array of another one's library and device, in their own precision unless one is given."""
    if not is_tensor(reference):
        return np.asarray(to_numpy(values), dtype=dtype)
    import torch

    if not is_tensor(values):
        array = np.asarray(values)
        backwards = any(stride < 0 for stride in array.strides)  # which torch does not know
        values = torch.as_tensor(array.copy() if backwards else array)
    return values.to(device=reference.device, dtype=dtype)


def dtype_name(dtype: Any) -> str:
    """The name of a precision in any library, "float32" or "float64"."""
    return str(dtype).rpartition(".")[2] if not isinstance(dtype, type) else np.dtype(dtype).name


def double(reference: Any) -> Any:
    """The double precision of an array's library."""
    return namespace(reference).float64


def as_double(array: Any) -> Any:
    """The array in double precision; itself if it has that."""
    xp = namespace(array)
    return xp.astype(xp.asarray(array), xp.float64, copy=False)


def positions(which: Any, n: int, reference: Any) -> Any:
    """Some of n rows as what both libraries index with: a slice of step one, or whole numbers from 0 to n - 1.

    The numbers are an array of the reference's library and device; IndexError where one is out of range.
    """
    if isinstance(which, slice) and which.indices(n)[2] == 1:
        lo, hi, _ = which.indices(n)
        return slice(lo, max(lo, hi))
    if not is_tensor(which):
        return like(np.arange(n)[which], reference)
    if str(which.dtype) == "torch.bool":
        if tuple(which.shape) != (n,):
            raise IndexError(f"A mask of {n} rows must have {n} entries, not {tuple(which.shape)}.")
        return like(which.nonzero()[:, 0], reference)
    if which.numel() and (int(which.min()) < -n or int(which.max()) >= n):
        raise IndexError(f"An index is out of range for {n} rows.")
    which = like(which.long(), reference)
    return which + n * (which < 0)


def cast(array: Any, dtype: Any) -> Any:
    """The array, dense or sparse, in another precision of its library; itself if it has that."""
    return array.to(dtype=dtype) if is_tensor(array) else array.astype(dtype, copy=False)


def copied(array: Any) -> Any:
    """A copy of the array."""
    return array.clone() if is_tensor(array) else np.array(array)


def contiguous(array: Any) -> Any:
    """The array with its rows one after another in memory; itself if they lie so."""
    return array.contiguous() if is_tensor(array) else np.ascontiguousarray(array)


def is_sparse_tensor(array: Any) -> bool:
    """Whether this is a tensor that holds only some of its entries."""
    return is_tensor(array) and str(array.layout) != "torch.strided"


def taken(matrix: Any, indices: Any, *, axis: int = 0) -> Any:
    """Some rows, or columns, of a matrix, dense or sparse: torch indexes a sparse one by a function of its own."""
    if is_sparse_tensor(matrix):
        return matrix.to_sparse_coo().index_select(axis, indices).to_sparse_csr()
    return matrix[indices] if axis == 0 else matrix[:, indices]


def chosen_columns(X: Any, columns: Iterable[int]) -> Any:
    """Some columns of points, in the order given, row after row in memory."""
    return contiguous(X[:, list(columns)])


def unique(values: Any, *, axis: int | None = None) -> tuple[Any, Any]:
    """The first index at which each distinct value (or row, along axis 0) occurs, and which of them each one is.

    The distinct ones are in ascending order, as those of ``numpy.unique``.
    """
    if is_tensor(values):
        import torch

        distinct, place = torch.unique(values, sorted=True, return_inverse=True, dim=axis)
        index = torch.arange(place.shape[0], device=values.device)
        return index.new_zeros(distinct.shape[0]).scatter_reduce(0, place, index, "amin", include_self=False), place
    _, first, place = np.unique(values, return_index=True, return_inverse=True, axis=axis)
    return first, place.reshape(-1)


def unique_rows(X: Any) -> tuple[Any, Any]:
    """The first index at which each distinct row occurs, in an order of their values alone, and which each row is.

    Rows are told apart by a random combination of their entries, which is the same for equal rows, and checked entry by
    entry: n d + n log n operations, where sorting whole rows would take d times as long.
    """
    xp = namespace(X)
    with np.errstate(over="ignore", invalid="ignore"):  # keys that overflow are no keys, which the check below finds
        keys = xp.sum(X * like(np.random.default_rng(0).standard_normal(X.shape[1]), X), axis=1)
    first, place = unique(xp.where(xp.isfinite(keys), keys, xp.zeros_like(keys)))
    return (first, place) if bool((X[first[place]] == X).all()) else unique(X, axis=0)  # two rows met by chance


def distinct_rows(X: Any) -> tuple[Any, Any]:
    """The first row at which each distinct row of X occurs, in the order of the rows, and which of them each row is.

    Cost: N d + N log N operations.
    """
    xp, (first, place) = namespace(X), unique_rows(X)
    order = xp.argsort(first, stable=True)
    rank = xp.empty_like(order)
    rank[order] = xp.arange(order.shape[0], device=X.device)
    return first[order], rank[place]


def solve_triangular(matrix: Any, right: Any, *, lower: bool = True, transpose: bool = False) -> Any:
    """The solution X of A X = B, or of Aᵀ X = B, for a triangular A."""
    if is_tensor(matrix):
        import torch

        column = right.ndim == 1
        b = right[:, None] if column else right
        a, upper = (matrix.mT, lower) if transpose else (matrix, not lower)
        wide = _on_a_card(a) and b.shape[1] >= _WIDE * a.shape[0]
        x = _by_inverse(a, b, upper) if wide else torch.linalg.solve_triangular(a, b, upper=upper)
        return x[:, 0] if column else x
    from scipy.linalg import solve_triangular as solve

    return solve(matrix, right, lower=lower, trans="T" if transpose else 0)


def _on_a_card(tensor: Any) -> bool:
    return str(tensor.device.type) != "cpu"


def _by_inverse(triangle: Any, right: Any, upper: bool) -> Any:
    """A⁻¹B by products with the inverse of a small A, for many columns: a card solves for each of them one by one.

    Refined once, which is as good as substitution where the condition of A is below 10¹².
    """
    import torch

    identity = torch.eye(triangle.shape[0], dtype=triangle.dtype, device=triangle.device)
    a = torch.triu(triangle) if upper else torch.tril(triangle)
    inverse = torch.linalg.solve_triangular(a, identity, upper=upper)
    x = inverse @ right
    return x.add_(inverse @ (right - a @ x))


def cholesky(matrix: Any) -> Any:
    """The lower Cholesky factor; ``numpy.linalg.LinAlgError`` where the matrix has none, whatever the library."""
    if is_tensor(matrix):
        import torch

        factor, failed = torch.linalg.cholesky_ex(matrix)
        if int(failed):
            raise np.linalg.LinAlgError("The matrix is not positive definite.")
        return factor
    return np.linalg.cholesky(matrix)


def inverse(matrix: Any) -> Any:
    """The inverse, or that of Moore and Penrose where not square; ``numpy.linalg.LinAlgError`` where there is none."""
    xp = namespace(matrix)
    made = xp.linalg.inv if matrix.shape[0] == matrix.shape[1] else xp.linalg.pinv
    if not is_tensor(matrix):
        return made(matrix)
    import torch

    linalg: Any = torch.linalg
    try:
        return made(matrix)
    except linalg.LinAlgError as error:
        raise np.linalg.LinAlgError(str(error)) from error


def norm(array: Any) -> float:
    """The root of the sum of the squares of all entries."""
    if is_tensor(array):
        import torch

        return float(torch.linalg.vector_norm(array))
    return float(np.linalg.norm(array))


def eigh(matrix: Any, first: int = 0, last: int | None = None) -> Any:
    """The eigenvalues numbered from first to last - 1, in rising order, of a symmetric matrix, and their eigenvectors.

    SciPy computes only those for NumPy; torch computes them all.
    """
    if is_tensor(matrix):
        import torch

        values, vectors = torch.linalg.eigh(matrix)
        return values[first:last], vectors[:, first:last]
    from scipy.linalg import eigh as decomposed

    return decomposed(matrix, subset_by_index=_numbers(matrix, first, last))


def eigvalsh(matrix: Any, first: int = 0, last: int | None = None) -> Any:
    """The eigenvalues numbered from first to last - 1, in rising order, of a symmetric matrix."""
    if is_tensor(matrix):
        import torch

        return torch.linalg.eigvalsh(matrix)[first:last]
    from scipy.linalg import eigh as decomposed

    return decomposed(matrix, eigvals_only=True, subset_by_index=_numbers(matrix, first, last))


def _numbers(matrix: Any, first: int, last: int | None) -> list[int] | None:
    """What SciPy takes for a part of the spectrum; None for all of it."""
    count = matrix.shape[0] if last is None else last
    return None if (first, count) == (0, matrix.shape[0]) else [first, count - 1]


def cholesky_factor(matrix: Any) -> Any:
    """A factorisation of a positive definite matrix for :func:`cholesky_solve`; the matrix may be overwritten.

    ``numpy.linalg.LinAlgError`` where there is none.
    """
    if is_tensor(matrix):
        return cholesky(matrix)
    from scipy.linalg import cho_factor

    return cho_factor(matrix, overwrite_a=True, check_finite=False)


def cholesky_solve(factor: Any, right: Any) -> Any:
    """The solution of A x = b for a vector b, or for the columns of a matrix, A by :func:`cholesky_factor`."""
    if is_tensor(factor):
        import torch

        x = torch.cholesky_solve(right[:, None] if right.ndim == 1 else right, factor)
        return x[:, 0] if right.ndim == 1 else x
    from scipy.linalg import cho_solve

    return cho_solve(factor, right, check_finite=False)


def upper_triangle(order: int, reference: Any) -> tuple[Any, Any]:
    """Rows and columns of the entries on and above the diagonal, row by row, as index arrays beside a reference."""
    if is_tensor(reference):
        import torch

        rows, cols = torch.triu_indices(order, order, device=reference.device)
        return rows, cols
    return np.triu_indices(order)


def add_to_diagonal(matrix: Any, value: Any) -> None:
    """Add a number, or one for each entry, to the diagonal in place."""
    i = namespace(matrix).arange(matrix.shape[0], device=matrix.device)
    matrix[i, i] += value


def special(name: str, array: Any) -> Any:
    """A function of ``scipy.special`` that ``torch.special`` has too, by its name, such as "erf" or "log_ndtr"."""
    if is_tensor(array):
        import torch

        return getattr(torch.special, name)(array)
    import scipy.special

    return getattr(scipy.special, name)(array)
