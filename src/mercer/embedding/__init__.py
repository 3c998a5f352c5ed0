"""Estimators that give points coordinates."""

from mercer.embedding.diffusion_maps import DiffusionMaps
from mercer.embedding.rank_path import Diagnosis, RankPath, RankPathEntry, rank_path
from mercer.embedding.sdp import SDPEmbedding

__all__ = ["Diagnosis", "DiffusionMaps", "RankPath", "RankPathEntry", "SDPEmbedding", "rank_path"]
