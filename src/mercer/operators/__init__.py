"""Kernel matrices as linear maps: Gram, diffusion, centred, normalised, low rank. Never stored by default."""

from mercer.operators.base import LinearMap
from mercer.operators.centered import CenteredOperator
from mercer.operators.diffusion import DiffusionOperator
from mercer.operators.gram import GramOperator
from mercer.operators.lowrank import LowRankOperator, RankOneUpdate
from mercer.operators.normalized import NormalizedOperator
from mercer.operators.projected import ProjectedOperator
from mercer.operators.split import SplitOperator

__all__ = [
    "CenteredOperator",
    "DiffusionOperator",
    "GramOperator",
    "LinearMap",
    "LowRankOperator",
    "NormalizedOperator",
    "ProjectedOperator",
    "RankOneUpdate",
    "SplitOperator",
]
