"""The classes that may stand in a model file, and what each says of its own state.

A class is found by its name in the table below and in no other way: nothing is imported because a file says so. Its
parameters are those of its constructor, its other state is what its body annotates; ``_unsaved`` names what it leaves
out, such as what is made again when it is asked for, and ``_sometimes`` what it does not always have.
"""

from __future__ import annotations

import dataclasses
import importlib
import inspect
import sys
from collections.abc import Collection
from enum import Enum
from functools import cache, cached_property
from typing import Any, ClassVar, NamedTuple, get_origin, get_type_hints

from mercer.io.fitting_values import Numbers

# Where they live. A name in a file stays what it is when a class moves: the table moves with it.
_HOMES = {
    "backends.fingerprint": "DataSeen",
    "kernels.algebra": "Normalized Power Product Scaled Sum",
    "kernels.categories": "Categories",
    "kernels.distance_kernel": "Centre",
    "kernels.dot": "Cosine Linear Polynomial Sigmoid",
    "kernels.from_distance": "FromDistance",
    "kernels.histogram": "ChiSquared",
    "kernels.mixed": "Mixed",
    "kernels.neighbour_graph": "Parts",
    "kernels.neighbour_sample": "Sample",
    "kernels.on_columns": "OnColumns",
    "kernels.precomputed": "Precomputed",
    "kernels.self_tuning": "SelfTuning",
    "kernels.ssim": "SSIM",
    "kernels.stationary": "Gaussian Laplacian Matern Sobolev",
    "kernels.tables": "Table",
    "kernels.geodesic": "Geodesic",
    "kernels.geodesic_columns": "GeodesicColumns",
    "kernels.graph_laplacian": "GraphLaplacian MeanOfLinks",
    "kernels.inverse_columns": "InverseColumns",
    "kernels.linked_points": "LinkedPoints",
    "kernels.locally_linear": "LocallyLinear Rebuilding",
    "kernels.integrals.gaussian": "GaussianMixture",
    "kernels.integrals.gaussian_sections": "GaussianSections",
    "kernels.integrals.law_sections": "LawSections",
    "kernels.integrals.measures": "Box DiscreteMeasure GaussianMeasure Lebesgue",
    "operators.gram": "GramOperator",
    "operators.gram_sum": "GramSum",
    "operators.sections": "KernelSections",
    "problems.discrepancy": "Discrepancy TargetLaw",
    "problems.sum_of_squares": "Spans",
    "certificates.certificate": "Certificate EmbeddingCertificate RegressionCertificate",
    "certificates.likelihood": "LikelihoodCertificate",
    "certificates.measure": "MeasureCertificate",
    "certificates.stream": "StreamCertificate",
    "certificates.unfolding": "UnfoldingCertificate",
    "solvers.measure.elimination": "EliminationSequence",
    "solvers.measure.kinks": "Kinks PathEnd",
    "solvers.measure.merging": "MergeSequence",
    "solvers.solution": "Iteration Status",
    "landmarks.chooser": "Landmarks",
    "support": "Support",
    "embedding.diffusion_maps": "DiffusionMaps",
    "embedding.extension": "Extension LevelExtension",
    "embedding.kernel_pca": "KernelPCA",
    "embedding.kernelized": "KernelizedSDPEmbedding",
    "embedding.levels": "Level",
    "embedding.local_extension": "LocalExtension",
    "embedding.plane": "PlaneMap",
    "embedding.preimage": "PreImage",
    "embedding.prescribed": "Prescribed",
    "embedding.principal_functions": "PrincipalFunctions",
    "embedding.rank_path_result": "Diagnosis RankPath RankPathEntry",
    "embedding.sdp": "SDPEmbedding",
    "embedding.unfolding": "MaximumVarianceUnfolding",
    "quadrature.features": "NystromFeatures",
    "quadrature.path": "QuadraturePath",
    "quadrature.request": "Claim",
    "quadrature.sparsifier": "QuadratureSparsifier",
    "quadrature.stream": "MeasureStream Summary Waiting",
    "density.affine_squares": "AffineSquares",
    "density.gaussian_squares": "GaussianSquares",
    "density.optimal": "OptimalDensity",
    "density.point_masses": "PointMasses",
    "density.signed_normals": "SignedNormals",
    "density.sos": "SumOfSquaresDensity",
    "dependence.conditional_mean": "ConditionalMeanEmbedding",
    "dependence.drift": "DriftDetector",
    "dependence.growing_mean": "Growth",
    "dependence.kdr": "KernelDimensionReduction",
    "dependence.kdr_dimension": "DimensionTest",
    "dependence.landmark_features": "LandmarkFeatures",
    "dependence.landmark_regression": "LandmarkRegression",
    "dependence.mean_embedding": "MeanEmbedding",
    "dependence.response": "Codes Response",
    "kernelization.features": "KernelFeatures",
    "kernelization.kernelized": "Kernelized",
    "discriminant.class_posterior": "ClassPosterior",
    "discriminant.fisher": "FisherDiscriminant",
    "discriminant.least_squares": "LeastSquares",
    "discriminant.projection": "Projection",
    "discriminant.roweis": "RoweisDiscriminant",
    "discriminant.supervised_pca": "SupervisedPCA",
    "novelty.detector": "NoveltyDetector",
    "novelty.reference": "Reference",
    "novelty.scales": "Rule",
    "novelty.views": "Views",
    "novelty.search": "EuclideanSearch KernelSearch",
    "robust.classifier": "RobustKernelClassifier",
    "robust.machine": "Units",
    "robust.regressor": "RobustKernelRegressor",
    "robust.ridge": "RobustKernelRidge",
}
# Estimators of scikit-learn whose fitted state is arrays and numbers, and its names; what Kernelized wraps.
_FOREIGN = {
    "sklearn.linear_model": {
        "ElasticNet": "coef_ intercept_ n_iter_ dual_gap_",
        "Lasso": "coef_ intercept_ n_iter_ dual_gap_ l1_ratio",
        "LinearRegression": "coef_ intercept_ rank_ singular_",
        "LogisticRegression": "classes_ coef_ intercept_ n_iter_",
        "Ridge": "coef_ intercept_ n_iter_ solver_",
        "RidgeCV": "alpha_ best_score_ coef_ intercept_",
    },
    "sklearn.discriminant_analysis": {
        "LinearDiscriminantAnalysis": (
            "_max_components _n_features_out classes_ coef_ covariance_ explained_variance_ratio_ intercept_ means_ "
            "priors_ scalings_ xbar_"
        )
    },
    "sklearn.svm": {"LinearSVC": "classes_ coef_ intercept_ n_iter_", "LinearSVR": "coef_ intercept_ n_iter_"},
    "sklearn.decomposition": {
        "PCA": (
            "_fit_svd_solver components_ explained_variance_ explained_variance_ratio_ mean_ n_components_ n_samples_ "
            "noise_variance_ singular_values_"
        )
    },
    "sklearn.cluster": {
        "KMeans": ("_algorithm _n_features_out _n_init _n_threads _tol cluster_centers_ inertia_ labels_ n_iter_")
    },
}
# What scikit-learn sets on any estimator: to be kept where it is there; and what belongs to a fit that is under way.
_OF_ESTIMATORS = {"feature_names_in_": Any, "_sklearn_output_config": dict[str, Any]}
_OF_A_FIT = frozenset({"_callback_fit_ctx", "_parent_callback_ctx", "_skl_callbacks", "_skl_callbacks_to_teardown"})
_WHERE = {
    **{name: f"mercer.{module}" for module, names in _HOMES.items() for name in names.split()},
    **{name: module for module, classes in _FOREIGN.items() for name in classes},
}


class Layout(NamedTuple):
    """What a class is made of.

    Attributes
    ----------
    kind : type
        The class.
    parameters : dict
        What its constructor takes, and the attributes that hold it.
    attributes : dict
        What is set on an object of it afterwards, and of which kind that is.
    types : dict
        Of which kind the parameters are, where the class says it.
    required : frozenset
        The parameters that the constructor needs.
    unsaved : frozenset
        What an object of it holds and a file does not.
    sometimes : frozenset
        The attributes that an object with others may lack.
    """

    kind: type
    parameters: dict[str, str]
    attributes: dict[str, Any]
    types: dict[str, Any]
    required: frozenset[str]
    unsaved: frozenset[str]
    sometimes: frozenset[str]

    def lacking(self, held: Collection[str]) -> list[str]:
        """The attributes that an object with these should have too; one that is not fitted, or resolved, has none."""
        put_together = not self.parameters and not self.types
        return sorted(set(self.attributes) - set(held) - self.sometimes) if held or put_together else []


def is_known(name: Any) -> bool:
    """Whether a name stands in the table."""
    return isinstance(name, str) and name in _WHERE


def class_named(name: Any) -> type | None:
    """The class that a file means, or None where it is none of ours."""
    if not is_known(name):
        return None
    found: type = getattr(importlib.import_module(_WHERE[name]), name)
    return found


def name_of(kind: type) -> str | None:
    """The name that a class has in files, or None where it has none: a subclass of ours is not ours."""
    return kind.__name__ if class_named(kind.__name__) is kind else None


def is_enumeration(kind: type) -> bool:
    """Whether the class is a list of named values."""
    return issubclass(kind, Enum)


@cache
def layout_of(kind: Any) -> Layout:
    """What a class of the table says of its state, or is said of it."""
    if not kind.__module__.startswith("mercer."):
        names = f"n_features_in_ feature_names_in_ {_FOREIGN[_WHERE[kind.__name__]][kind.__name__]}".split()
        own = {name: name for name in kind._get_param_names()}
        return Layout(kind, own, dict.fromkeys(names, Any), {}, frozenset(), _OF_A_FIT, frozenset(names))
    hints = _annotations(kind)
    unsaved, sometimes = (
        frozenset().union(*(vars(base).get(name, ()) for base in kind.__mro__)) for name in ("_unsaved", "_sometimes")
    )
    if hasattr(kind, "_get_param_names"):
        hints, unsaved, sometimes = _OF_ESTIMATORS | hints, unsaved | _OF_A_FIT, sometimes | set(_OF_ESTIMATORS)
    parameters, required = _parameters(kind)
    kept = {
        name: hint
        for name, hint in hints.items()
        if name not in parameters and name not in unsaved and not _is_made(kind, name)
    }
    is_record = dataclasses.is_dataclass(kind) or issubclass(kind, tuple) or "_made_from" in vars(kind)
    types = hints if is_record else {}
    return Layout(kind, parameters, {} if is_record else kept, types, required, unsaved, sometimes)


def _annotations(kind: type) -> dict[str, Any]:
    """The annotated names of a class and of those it is made of, but for what belongs to the class itself."""
    hints: dict[str, Any] = {}
    for base in reversed(kind.__mro__):
        if base.__module__.startswith("mercer."):
            scope = {**vars(sys.modules[base.__module__]), "Array": Numbers, "ArrayOrNumber": Numbers | float}
            hints.update(_evaluated(type("Own", (), {"__annotations__": inspect.get_annotations(base)}), scope))
    return {name: hint for name, hint in hints.items() if hint is not ClassVar and get_origin(hint) is not ClassVar}


def _evaluated(owner: type, scope: dict[str, Any]) -> dict[str, Any]:
    """The annotations of a class; a name that its module imports for type checkers alone is one of the table."""
    while True:
        try:
            return get_type_hints(owner, scope)
        except NameError as error:
            known = class_named(error.name)
            if known is None:
                raise
            scope[str(error.name)] = known


def _parameters(kind: Any) -> tuple[dict[str, str], frozenset[str]]:
    """What the constructor takes, with the attributes that hold it, and what it needs.

    Records, kernels and estimators hold each parameter under its own name; a class whose state is made by its
    constructor says in ``_made_from`` where its parameters are. Others are not constructed but put together.
    """
    if issubclass(kind, tuple):
        return {name: name for name in kind._fields}, frozenset(kind._fields) - frozenset(kind._field_defaults)
    made_from = vars(kind).get("_made_from")
    if made_from is None and not dataclasses.is_dataclass(kind) and not hasattr(kind, "get_params"):
        return {}, frozenset()
    own = [each for name, each in inspect.signature(kind.__init__).parameters.items() if name != "self"]
    needed = frozenset(each.name for each in own if each.default is inspect.Parameter.empty)
    return made_from or {each.name: each.name for each in own}, needed


def _is_made(kind: type, name: str) -> bool:
    """Whether a name stands for what is made when it is asked for."""
    return isinstance(inspect.getattr_static(kind, name, None), property | cached_property)
