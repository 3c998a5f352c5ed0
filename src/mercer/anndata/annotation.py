"""Embeddings of cells, written beside them."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from sklearn.utils.validation import check_is_fitted

from mercer.anndata.record import Plain, record
from mercer.anndata.representation import Representation, chosen, projected
from mercer.backends.arrays import Array, to_numpy
from mercer.embedding import SDPEmbedding


def embed(
    adata: Any,
    model: Any = None,
    *,
    use_rep: str | None = None,
    n_pcs: int | None = None,
    key_added: str | None = None,
    copy: bool = False,
) -> Any:
    """Fit an embedding to the cells of an AnnData object and write what it says beside them.

    As in scanpy, the principal components in ``obsm["X_pca"]`` are embedded unless another representation is named.
    Nothing is written before all of it is there.

    Parameters
    ----------
    adata : AnnData
        The cells.
    model : estimator, default=None
        An estimator with ``fit_transform``, which is fitted in place: keep it to embed further cells by
        :func:`mercer.anndata.transform`. None means ``SDPEmbedding(random_state=0)``.
    use_rep : str, default=None
        A key of ``adata.obsm``, or ``"X"``. None means ``"X_pca"``; without it, X where that has at most 50 variables.
    n_pcs : int, default=None
        How many of the columns of the representation to use; None means all. 0 means X, as in scanpy.
    key_added : str, default=None
        The name in ``obsm`` and ``uns``, in place of ``X_mercer`` and ``mercer``.
    copy : bool, default=False
        Whether to leave ``adata`` as it is and return a copy with the results.

    Returns
    -------
    AnnData or None
        The copy, if one was asked for. These fields are set:

        ``obsm["X_mercer"]`` or ``obsm[key_added]``
            The coordinates of the cells.
        ``uns["mercer"]`` or ``uns[key_added]``
            ``params``, ``certificate`` (bounds, gap, method, sentence) and ``levels`` (an entry for each level), in
            numbers, texts and arrays only.
        ``obs["mercer_novelty"]`` or ``obs[f"{key_added}_novelty"]``
            How far each cell is from the others, where the model has ``novelty``.

    See Also
    --------
    mercer.anndata.transform : Further cells by the same model.
    """
    model = SDPEmbedding(random_state=0) if model is None else model
    if isinstance(model, type) or not hasattr(model, "fit_transform"):
        raise TypeError(f"model={model!r} must be an estimator with fit_transform, such as SDPEmbedding().")
    source = chosen(adata, use_rep, n_pcs)
    found = _Found(model.fit_transform(source.values), _novelty(model, source), record(model, source, proved=True))
    return found.written_to(adata, key_added, copy)


def transform(
    adata: Any,
    model: Any,
    *,
    reference: Any = None,
    use_rep: str | None = None,
    n_pcs: int | None = None,
    key_added: str | None = None,
    copy: bool = False,
) -> Any:
    """Embed the cells of an AnnData object by a model that was fitted to others.

    The columns must mean what they meant in the fit. Principal components that were computed for each of two data sets
    do not: give the cells of the fit as ``reference``, and the new ones are projected on theirs.

    Parameters
    ----------
    adata : AnnData
        The new cells.
    model : estimator
        A fitted one, such as :func:`mercer.anndata.embed` leaves.
    reference : AnnData, default=None
        The cells of the fit, with X, ``varm["PCs"]`` and ``obsm["X_pca"]`` as ``scanpy.pp.pca`` leaves them: X of the
        new cells, prepared in the same way, is projected on these components.
    use_rep, n_pcs : str, int, default=None
        As in :func:`mercer.anndata.embed`; ``n_pcs`` is that of the fit where it is left out.
    key_added, copy : str, bool, default=None, False
        As in :func:`mercer.anndata.embed`.

    Returns
    -------
    AnnData or None
        As :func:`mercer.anndata.embed`; ``uns`` says how the coordinates were made, and holds no certificate, which is
        of the fit.
    """
    check_is_fitted(model)
    if reference is not None and use_rep is not None:
        raise ValueError("reference= and use_rep= both say what to embed: leave one out.")
    if n_pcs is None and use_rep is None:
        n_pcs = int(model.n_features_in_)
    source = chosen(adata, use_rep, n_pcs) if reference is None else projected(adata, reference, n_pcs)
    found = _Found(model.transform(source.values), _novelty(model, source), record(model, source, proved=False))
    return found.written_to(adata, key_added, copy)


class _Found(NamedTuple):
    """All that is to be written beside the cells."""

    coordinates: Any
    novelty: Array | None
    record: Plain

    def written_to(self, adata: Any, key_added: str | None, copy: bool) -> Any:
        """Write to the object, or to a copy that is returned."""
        adata = adata.copy() if copy else adata
        place, name = ("X_mercer", "mercer") if key_added is None else (key_added, key_added)
        adata.obsm[place] = np.asarray(self.coordinates)
        adata.uns[name] = self.record
        if self.novelty is not None:
            adata.obs[f"{name}_novelty"] = self.novelty
        return adata if copy else None


def _novelty(model: Any, source: Representation) -> Array | None:
    """How far each cell is from those of the fit, where the model says so."""
    return to_numpy(model.novelty(source.values)) if hasattr(model, "novelty") else None
