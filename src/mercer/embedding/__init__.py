"""Estimators that give points coordinates."""

from mercer.embedding.diffusion_maps import DiffusionMaps
from mercer.embedding.sdp import SDPEmbedding

__all__ = ["DiffusionMaps", "SDPEmbedding"]
