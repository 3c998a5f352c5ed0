"""Mercer learns positive semi-definite kernels from data and proves that what it learned is optimal.

``SDPEmbedding().fit(X)`` connects the points X to their neighbours and gives them coordinates, level after level, each
level the optimum of a semi-definite programme with a certificate; ``verify(model, X)`` proves all of them again, and
``model.transform`` embeds new points. Beside it stand diffusion maps, landmarks, densities, robust regression, and the
kernels and matrix-free operators that all of them are made of.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

# Public names and where they live. They are imported when first used: scikit-learn and numba cost a second each, and
# `import mercer` or `mercer --help` should not pay for them.
_HOMES = {
    "backends": "Config config_context get_config",
    "kernels": (
        "Box Categories ChiSquared Cosine DiscreteMeasure FromDistance Gaussian GaussianMeasure Geodesic "
        "GraphLaplacian Kernel Laplacian Lebesgue Linear LocallyLinear Matern Mixed Polynomial Precomputed SSIM "
        "SelfTuning Sigmoid Sobolev"
    ),
    "operators": "CenteredOperator DiffusionOperator GramOperator LowRankOperator NormalizedOperator",
    "linalg": "factorize greedy_cholesky nystrom nystrom_completion rp_cholesky",
    "embedding": (
        "DiffusionMaps KernelPCA KernelizedSDPEmbedding MaximumVarianceUnfolding PlaneMap RankPath SDPEmbedding "
        "plane_map rank_path"
    ),
    "landmarks": "Landmarks",
    "verification": "verify",
    "dependence": (
        "ConditionalMeanEmbedding DriftDetector KernelDimensionReduction MeanEmbedding "
        "conditional_independence_test explain_difference hsic hsic_test k_sample_test kernel_herding mmd "
        "mmd_test stein_test"
    ),
    "quadrature": "QuadraturePath QuadratureSparsifier squared_kernel_discrepancy",
    "density": "SumOfSquaresDensity optimal_density",
    "discriminant": "FisherDiscriminant RoweisDiscriminant SupervisedPCA",
    "kernelization": "Kernelized",
    "novelty": "NoveltyDetector",
    "io": "load open_rows read_table save",
    "robust": "RobustKernelClassifier RobustKernelRegressor RobustKernelRidge worst_case_expectation",
}
_MODULES = ("anndata", "datasets", "experiments", "plots")
_WHERE = {name: module for module, names in _HOMES.items() for name in names.split()}

__all__ = [*sorted(_WHERE), "__version__"]

if TYPE_CHECKING:  # the same names for a type checker, which runs nothing
    from mercer import anndata as anndata
    from mercer import backends as backends
    from mercer import datasets as datasets
    from mercer import density as density
    from mercer import dependence as dependence
    from mercer import discriminant as discriminant
    from mercer import embedding as embedding
    from mercer import experiments as experiments
    from mercer import io as io
    from mercer import kernelization as kernelization
    from mercer import kernels as kernels
    from mercer import landmarks as landmarks
    from mercer import linalg as linalg
    from mercer import novelty as novelty
    from mercer import operators as operators
    from mercer import plots as plots
    from mercer import quadrature as quadrature
    from mercer import robust as robust
    from mercer import verification as verification
    from mercer.backends import Config as Config
    from mercer.backends import config_context as config_context
    from mercer.backends import get_config as get_config
    from mercer.density import SumOfSquaresDensity as SumOfSquaresDensity
    from mercer.density import optimal_density as optimal_density
    from mercer.dependence import ConditionalMeanEmbedding as ConditionalMeanEmbedding
    from mercer.dependence import DriftDetector as DriftDetector
    from mercer.dependence import KernelDimensionReduction as KernelDimensionReduction
    from mercer.dependence import MeanEmbedding as MeanEmbedding
    from mercer.dependence import conditional_independence_test as conditional_independence_test
    from mercer.dependence import explain_difference as explain_difference
    from mercer.dependence import hsic as hsic
    from mercer.dependence import hsic_test as hsic_test
    from mercer.dependence import k_sample_test as k_sample_test
    from mercer.dependence import kernel_herding as kernel_herding
    from mercer.dependence import mmd as mmd
    from mercer.dependence import mmd_test as mmd_test
    from mercer.dependence import stein_test as stein_test
    from mercer.discriminant import FisherDiscriminant as FisherDiscriminant
    from mercer.discriminant import RoweisDiscriminant as RoweisDiscriminant
    from mercer.discriminant import SupervisedPCA as SupervisedPCA
    from mercer.embedding import DiffusionMaps as DiffusionMaps
    from mercer.embedding import KernelizedSDPEmbedding as KernelizedSDPEmbedding
    from mercer.embedding import KernelPCA as KernelPCA
    from mercer.embedding import MaximumVarianceUnfolding as MaximumVarianceUnfolding
    from mercer.embedding import PlaneMap as PlaneMap
    from mercer.embedding import RankPath as RankPath
    from mercer.embedding import SDPEmbedding as SDPEmbedding
    from mercer.embedding import plane_map as plane_map
    from mercer.embedding import rank_path as rank_path
    from mercer.io import load as load
    from mercer.io import open_rows as open_rows
    from mercer.io import read_table as read_table
    from mercer.io import save as save
    from mercer.kernelization import Kernelized as Kernelized
    from mercer.kernels import SSIM as SSIM
    from mercer.kernels import Box as Box
    from mercer.kernels import Categories as Categories
    from mercer.kernels import ChiSquared as ChiSquared
    from mercer.kernels import Cosine as Cosine
    from mercer.kernels import DiscreteMeasure as DiscreteMeasure
    from mercer.kernels import FromDistance as FromDistance
    from mercer.kernels import Gaussian as Gaussian
    from mercer.kernels import GaussianMeasure as GaussianMeasure
    from mercer.kernels import Geodesic as Geodesic
    from mercer.kernels import GraphLaplacian as GraphLaplacian
    from mercer.kernels import Kernel as Kernel
    from mercer.kernels import Laplacian as Laplacian
    from mercer.kernels import Lebesgue as Lebesgue
    from mercer.kernels import Linear as Linear
    from mercer.kernels import LocallyLinear as LocallyLinear
    from mercer.kernels import Matern as Matern
    from mercer.kernels import Mixed as Mixed
    from mercer.kernels import Polynomial as Polynomial
    from mercer.kernels import Precomputed as Precomputed
    from mercer.kernels import SelfTuning as SelfTuning
    from mercer.kernels import Sigmoid as Sigmoid
    from mercer.kernels import Sobolev as Sobolev
    from mercer.landmarks import Landmarks as Landmarks
    from mercer.linalg import factorize as factorize
    from mercer.linalg import greedy_cholesky as greedy_cholesky
    from mercer.linalg import nystrom as nystrom
    from mercer.linalg import nystrom_completion as nystrom_completion
    from mercer.linalg import rp_cholesky as rp_cholesky
    from mercer.novelty import NoveltyDetector as NoveltyDetector
    from mercer.operators import CenteredOperator as CenteredOperator
    from mercer.operators import DiffusionOperator as DiffusionOperator
    from mercer.operators import GramOperator as GramOperator
    from mercer.operators import LowRankOperator as LowRankOperator
    from mercer.operators import NormalizedOperator as NormalizedOperator
    from mercer.quadrature import QuadraturePath as QuadraturePath
    from mercer.quadrature import QuadratureSparsifier as QuadratureSparsifier
    from mercer.quadrature import squared_kernel_discrepancy as squared_kernel_discrepancy
    from mercer.robust import RobustKernelClassifier as RobustKernelClassifier
    from mercer.robust import RobustKernelRegressor as RobustKernelRegressor
    from mercer.robust import RobustKernelRidge as RobustKernelRidge
    from mercer.robust import worst_case_expectation as worst_case_expectation
    from mercer.verification import verify as verify
else:

    def __getattr__(name: str) -> Any:
        if name in _WHERE:
            value = getattr(importlib.import_module(f"mercer.{_WHERE[name]}"), name)
            globals()[name] = value
            return value
        if name in _HOMES or name in _MODULES:
            return importlib.import_module(f"mercer.{name}")
        raise AttributeError(f"module 'mercer' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *_WHERE, *_HOMES, *_MODULES})
