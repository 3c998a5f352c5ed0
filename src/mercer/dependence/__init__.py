"""Distributions as vectors of a reproducing kernel Hilbert space: mean embeddings and their distances."""

from mercer.dependence.mean_embedding import MeanEmbedding
from mercer.dependence.mmd import mmd

__all__ = ["MeanEmbedding", "mmd"]
