"""Estimators that give points coordinates."""

from mercer.embedding.diffusion_maps import DiffusionMaps
from mercer.embedding.discretization import discretization_constant, fill_distance
from mercer.embedding.kernel_pca import KernelPCA
from mercer.embedding.kernelized import KernelizedSDPEmbedding
from mercer.embedding.levels import Level
from mercer.embedding.plane import PlaneMap, plane_map
from mercer.embedding.quantities import distance_objective, lipschitz_constant
from mercer.embedding.rank_path import rank_path
from mercer.embedding.rank_path_result import Diagnosis, RankPath, RankPathEntry
from mercer.embedding.sdp import SDPEmbedding
from mercer.embedding.spectral_truncation import TruncatedTransitions, truncated_transitions
from mercer.embedding.unfolding import MaximumVarianceUnfolding

__all__ = [
    "Diagnosis",
    "DiffusionMaps",
    "KernelPCA",
    "KernelizedSDPEmbedding",
    "Level",
    "MaximumVarianceUnfolding",
    "PlaneMap",
    "RankPath",
    "RankPathEntry",
    "SDPEmbedding",
    "TruncatedTransitions",
    "discretization_constant",
    "distance_objective",
    "fill_distance",
    "lipschitz_constant",
    "plane_map",
    "rank_path",
    "truncated_transitions",
]
