"""Every public estimator with random parameters that are valid for some sample; the defaults are likeliest."""

from __future__ import annotations

import numpy as np
from sklearn.cluster import KMeans
from sklearn.decomposition import PCA
from sklearn.linear_model import LogisticRegression, Ridge

import mercer
from mercer import kernels

KERNELS = (
    lambda: None,
    lambda: kernels.Gaussian(),
    lambda: kernels.Gaussian(sigma=1.0),
    lambda: kernels.Laplacian(),
    lambda: kernels.Matern(1.5),
    lambda: kernels.Matern(0.5, 1.0),
    lambda: kernels.Sobolev(),
    lambda: kernels.Linear(),
    lambda: kernels.Polynomial(2),
    lambda: kernels.Polynomial(3, gamma=1.0, coef0=0.0),
    lambda: kernels.Sigmoid(),
    lambda: kernels.Cosine(),
    lambda: kernels.ChiSquared(),
    lambda: kernels.SelfTuning(),
    lambda: kernels.SelfTuning(5, 3, connect=True),
    lambda: kernels.Geodesic(5, connect=True),
    lambda: kernels.LocallyLinear(5),
    lambda: kernels.GraphLaplacian(5, connect=True),
    lambda: kernels.FromDistance("cityblock"),
    lambda: kernels.Gaussian() + kernels.Linear(),
    lambda: 2.0 * kernels.Gaussian() * kernels.Laplacian(),
    lambda: kernels.Gaussian(sigma=1e-3),
    lambda: kernels.Gaussian(sigma=1e3),
    lambda: kernels.Polynomial(2).normalized(),
)
SOLVERS = ("auto", "auto", "power", "accelerated", "trust-region", "interior-point")
LANDMARKS = (None, None, 5, 2, 12)
# Of each estimator: its parameters and their values, the default first and often.
SPACES = {
    "SDPEmbedding": {
        "n_components": (None, None, 1, 2, 5), "n_levels": (None, None, 1, 2), "initial_rank": (10, 10, 2, 40),
        "solver": SOLVERS, "certify": (True, True, False, "factorisation", "residual-lanczos", "pivoted-cholesky"),
        "landmarks": LANDMARKS, "radius": ("capped", "paper"), "diagonal": (None, None, None, 1.0),
        "diagonal_constraint": ("equal", "equal", "at most"), "unit_length": (False, False, True),
    },
    "DiffusionMaps": {
        "n_components": (2, 1, 5), "time": (1.0, 0.0, 3.5), "alpha": (0.0, 1.0, 0.5),
        "normalization": ("markov", "symmetric"), "landmarks": LANDMARKS,
    },
    "KernelPCA": {
        "n_components": (2, 1, 5), "landmarks": LANDMARKS, "indefinite": ("clip", "lift", "refuse"),
        "certify": (False, True),
    },
    "KernelizedSDPEmbedding": {
        "regularization": ("auto", 1e-2, 10.0), "n_components": (None, 1, 3), "nugget": (0.0, 1e-6),
        "landmarks": LANDMARKS, "certify": (True, False),
    },
    "MaximumVarianceUnfolding": {
        "n_neighbors": (6, 2, 4), "distances": ("kept", "not exceeded"), "n_components": (2, 1, None),
        "connect": (True, False), "landmarks": LANDMARKS, "tol": (1e-2, 1e-3),
    },
    "Landmarks": {
        "n_landmarks": (5, 1, 100), "strategy": ("rpcholesky", "greedy", "leverage", "k-means", "uniform"),
    },
    "QuadratureSparsifier": {
        "n_nodes": (None, None, 3, 1, 40), "trace_fraction": (None, None, 0.5, 1.0, 0.01), "alpha": (None, None, 0.0, 1e-2),
        "solver": ("auto", "auto", "active-set", "path", "exchange", "exchange-plain", "exchange-second-order"),
        "merge": (None, None, "eliminate", "strong", "weak"), "max_increase": (None, None, 0.05),
        "max_weight": (None, None, 0.2), "ridge": (None, None, 0.1), "discrepancy": ("squared", "mmd"),
        "potential": ("exact", "sampled"), "reweight": (None, None, True, False),
    },
    "SumOfSquaresDensity": {
        "support": (None, 5, "kmeans", ("kmeans", 3), 1), "regularization": (None, None, 1e-3, 0.0, 1.0),
        "objective": ("projection", "projection", "mmd", "likelihood"), "reference": ("lebesgue", "lebesgue", "gaussian"),
        "solver": ("auto", "auto", "accelerated"), "max_iter": (None, 40),
    },
    "RobustKernelRidge": {
        "radius": (0.1, 0.0, 0.01, 1.5, "sampling"), "support": (8, 3, 12), "adversary_support": (100, 10),
        "regularization": (1e-3, 1.0, 1e-8), "relaxation": (None, "rkhs"), "target_sigma": ("median", "slope", 1.0),
        "tol": (1e-3, 1e-5), "max_iter": (60,),
    },
    "RobustKernelRegressor": {
        "loss": ("squared", "huber", "absolute"), "radius": (0.1, 0.0, 1.5), "regularization": (1e-3, 1.0, 1e-8),
        "target_grid": (None, 3), "target_sigma": ("median", "slope", 1.0), "threshold": (1.0, 1e-3), "tol": (1e-3, 1e-6),
        "max_iter": (60,),
    },
    "RobustKernelClassifier": {
        "loss": ("logistic", "hinge"), "radius": (0.1, 0.0, 1.5), "regularization": (1e-3, 1.0, 1e-8),
        "label_flips": (False, True), "label_similarity": (0.0, 0.5), "tol": (1e-3, 1e-6), "max_iter": (60,),
    },
    "NoveltyDetector": {
        "n_neighbors": ((10, 20, 40), 5, 1), "locality": (1 / 3, 0.0, 2.0), "standardize": ("auto", True, False),
        "contamination": ("auto", 0.1), "false_alarms": (None, None, 0.1),
    },
    "ConditionalMeanEmbedding": {
        "regularization": ("loo", 1e-3, 10.0), "fit_intercept": (True, False), "max_rank": (1000, 3),
    },
    "DriftDetector": {
        "window": (None, 2, (1, 3)), "false_alarms": (0.05,), "landmarks": (64, 3), "n_simulated_alarms": (10,),
    },
    "KernelDimensionReduction": {
        "n_components": (2, 1, "test"), "regularization": (1e-3, 1.0), "scaling": ("columns", "whiten", None),
        "method": ("kdr", "gkdr"), "landmarks": LANDMARKS, "n_restarts": (0, 1), "n_resamples": (19,), "max_iter": (20,),
    },
    "FisherDiscriminant": {
        "n_components": (None, 1), "regularization": (None, 1e-3, "cv", "shrinkage"), "landmarks": LANDMARKS,
    },
    "RoweisDiscriminant": {
        "r1": (0.5, 0.0, 1.0), "r2": (0.5, 0.0, 1.0), "n_components": (None, 1),
        "regularization": (None, 1e-3, "cv", "shrinkage"), "landmarks": LANDMARKS,
    },
    "SupervisedPCA": {"n_components": (None, 1), "landmarks": LANDMARKS},
    "Kernelized": {
        "estimator": (Ridge(), LogisticRegression(), KMeans(2, n_init=1, random_state=0), PCA(1)), "landmarks": LANDMARKS,
    },
}  # fmt: skip
WITHOUT_KERNEL = {"MaximumVarianceUnfolding"}
FULL = 0.4  #: how often a parameter is drawn rather than left at its default


def draw_estimator(pick, name):
    """An estimator of that name, and the words it was drawn by."""
    parameters = {}
    for parameter, values in SPACES[name].items():
        drawn = values[0] if pick((True, True, False)) else pick(values)
        if not _is_default(name, parameter, drawn):
            parameters[parameter] = drawn
    if name == "KernelDimensionReduction":
        kernel = None
    elif name not in WITHOUT_KERNEL:
        kernel = pick(KERNELS)()
        if kernel is not None:
            parameters["kernel"] = kernel
    kind = getattr(mercer, name)
    if "random_state" in kind().get_params(deep=False) if name != "Kernelized" else True:
        parameters["random_state"] = 0
    return kind(**parameters), f"{name}({', '.join(f'{key}={value!r}' for key, value in parameters.items())})"


def _is_default(name, parameter, value):
    if name == "Kernelized" and parameter == "estimator":
        return False
    default = getattr(mercer, name)(Ridge()) if name == "Kernelized" else getattr(mercer, name)()
    return default.get_params(deep=False)[parameter] is value or np.array_equal(
        np.asarray(default.get_params(deep=False)[parameter], dtype=object), np.asarray(value, dtype=object)
    )
