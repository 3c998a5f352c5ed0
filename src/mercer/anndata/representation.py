"""Which numbers of an AnnData object are embedded: principal components, the matrix itself, or what the user names."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import issparse

from mercer.backends.arrays import Array
from mercer.backends.config import require_free_memory
from mercer.kernels.checks import whole_number

PRINCIPAL, LOADINGS = "X_pca", "PCs"  # where scanpy leaves the scores of the cells and the loadings of the genes
_FEW_VARIABLES = 50  # scanpy embeds so many variables as they are
_CHECKED_CELLS = 20
_SCORE_ERROR = 1e-3  # of the largest score: they are stored in single precision


class Representation(NamedTuple):
    """The numbers of each cell, where they are from, and how many of the columns there are used."""

    values: Array
    use_rep: str
    n_columns: int


def chosen(adata: Any, use_rep: str | None, n_pcs: int | None) -> Representation:
    """The representation that the user names, or scanpy's: ``X_pca`` if it is there, X if that is narrow."""
    _require_annotated(adata, "adata")
    if use_rep is None:
        use_rep = _default(adata, n_pcs)
    if use_rep != "X" and use_rep not in adata.obsm:
        known = ", ".join(map(repr, ("X", *adata.obsm)))
        raise KeyError(f"use_rep={use_rep!r} is not in adata.obsm: choose one of {known}.")
    values = _dense(adata.X if use_rep == "X" else adata.obsm[use_rep], use_rep)
    return _first_columns(values, use_rep, None if use_rep == "X" else n_pcs)


def projected(adata: Any, reference: Any, n_pcs: int | None) -> Representation:
    """The scores of cells on the principal components of other cells, as far as these have the same genes."""
    _require_annotated(adata, "adata")
    _require_annotated(reference, "reference")
    loadings, scores = _components_of(reference)
    missing = reference.var_names.difference(adata.var_names)
    if len(missing):
        raise ValueError(
            f"adata lacks {len(missing)} of the {reference.n_vars} variables of the reference, {missing[0]!r} among "
            "them: both must be of the same genes."
        )
    known = _dense(reference[:_CHECKED_CELLS].X, "X")
    mean = np.asarray(reference.X.mean(axis=0), np.float64).ravel()
    centre = next((c for c in (mean, 0 * mean) if _agree((known - c) @ loadings, scores[:_CHECKED_CELLS])), None)
    if centre is None:
        raise ValueError(
            f'varm["{LOADINGS}"] of the reference does not lead from its X to its obsm["{PRINCIPAL}"]: X, or the '
            "components, have changed since; compute them again."
        )
    values = (_dense(adata[:, reference.var_names].X, "X") - centre) @ loadings
    return _first_columns(values, PRINCIPAL, n_pcs)


def _require_annotated(adata: Any, name: str) -> None:
    for part in ("obs", "obsm", "uns", "varm", "X", "n_vars"):
        if not hasattr(adata, part):
            raise TypeError(f"{name} must be an AnnData object, not {type(adata).__name__}: it has no {part}.")


def _default(adata: Any, n_pcs: int | None) -> str:
    if n_pcs == 0:  # scanpy's way to say X
        return "X"
    if PRINCIPAL in adata.obsm:
        return PRINCIPAL
    if adata.n_vars <= _FEW_VARIABLES:
        return "X"
    raise KeyError(
        f'adata.obsm["{PRINCIPAL}"] is missing, and X has {adata.n_vars} variables: run scanpy.pp.pca(adata) on '
        'normalised, logarithmic counts, or name what to embed, use_rep="X" for X as it is.'
    )


def _first_columns(values: Array, use_rep: str, n_pcs: int | None) -> Representation:
    if n_pcs is None:
        return Representation(values, use_rep, int(values.shape[1]))
    if whole_number(n_pcs, "n_pcs", 1) > values.shape[1]:
        raise ValueError(
            f"n_pcs={n_pcs} exceeds the {values.shape[1]} columns of {use_rep}: lower it, or compute more."
        )
    return Representation(np.ascontiguousarray(values[:, :n_pcs]), use_rep, int(n_pcs))


def _dense(values: Any, name: str) -> Array:
    """A matrix as a dense array: that of a data frame, of a sparse matrix, or of a file that stays on disk."""
    if values is None:
        raise ValueError("X of the AnnData object is empty: name what to embed by use_rep.")
    if hasattr(values, "to_memory"):
        values = values.to_memory()
    if issparse(values):
        rows, columns = values.shape
        what = f"A dense copy of {name}, {rows} × {columns}, takes"
        require_free_memory(8.0 * rows * columns, what, "embed principal components instead")
        values = values.toarray()
    found = np.asarray(values)
    if found.ndim != 2:
        raise ValueError(f"{name} has {found.ndim} dimensions: it must have two, a row for each cell.")
    return found


def _components_of(reference: Any) -> tuple[Array, Array]:
    """The loadings of the genes and the scores of the cells of a reference."""
    for place, name in (("varm", LOADINGS), ("obsm", PRINCIPAL)):
        if name not in getattr(reference, place):
            raise KeyError(f'{place}["{name}"] of the reference is missing: run scanpy.pp.pca on it.')
    return np.asarray(reference.varm[LOADINGS], np.float64), np.asarray(reference.obsm[PRINCIPAL], np.float64)


def _agree(found: Array, scores: Array) -> bool:
    return found.shape == scores.shape and bool(np.abs(found - scores).max() <= _SCORE_ERROR * np.abs(scores).max())
