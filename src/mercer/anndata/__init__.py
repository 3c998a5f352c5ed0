"""Cells in an AnnData object: embeddings, certificates and novelty where scanpy looks for them.

``embed(adata)`` reads ``obsm["X_pca"]`` and writes ``obsm["X_mercer"]``, ``uns["mercer"]`` and
``obs["mercer_novelty"]``; ``transform(new, model)`` embeds further cells by the same model. Nothing here imports
anndata or scanpy: an object with ``obs``, ``obsm``, ``uns`` and ``X`` will do.
"""

from mercer.anndata.annotation import embed, transform

__all__ = ["embed", "transform"]
