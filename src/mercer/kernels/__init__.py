"""Positive semi-definite kernels: parameters, algebra, declared properties."""

from mercer.backends.forms import TileFunction
from mercer.backends.rounding import EntryError
from mercer.kernels.base import Kernel
from mercer.kernels.categories import Categories
from mercer.kernels.dot import Cosine, Linear, Polynomial, Sigmoid
from mercer.kernels.from_distance import FromDistance
from mercer.kernels.geodesic import Geodesic
from mercer.kernels.graph_laplacian import GraphLaplacian
from mercer.kernels.histogram import ChiSquared
from mercer.kernels.integrals.measures import Box, DiscreteMeasure, GaussianMeasure, Lebesgue
from mercer.kernels.locally_linear import LocallyLinear
from mercer.kernels.mixed import Mixed
from mercer.kernels.on_columns import OnColumns
from mercer.kernels.precomputed import Precomputed
from mercer.kernels.properties import Properties
from mercer.kernels.self_tuning import SelfTuning
from mercer.kernels.ssim import SSIM
from mercer.kernels.stationary import Gaussian, Laplacian, Matern, Sobolev

__all__ = [
    "Box",
    "SSIM",
    "Categories",
    "ChiSquared",
    "Cosine",
    "DiscreteMeasure",
    "EntryError",
    "FromDistance",
    "Gaussian",
    "GaussianMeasure",
    "Geodesic",
    "GraphLaplacian",
    "Kernel",
    "Laplacian",
    "Lebesgue",
    "Linear",
    "LocallyLinear",
    "Matern",
    "Mixed",
    "OnColumns",
    "Polynomial",
    "Precomputed",
    "Properties",
    "SelfTuning",
    "Sigmoid",
    "Sobolev",
    "TileFunction",
]
