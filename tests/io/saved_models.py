"""One model of every kind, with what it is asked: the same code runs in the process that saves and in one that loads."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.cluster import KMeans
from sklearn.decomposition import PCA
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.linear_model import ElasticNet, Lasso, LinearRegression, LogisticRegression, Ridge, RidgeCV
from sklearn.svm import LinearSVC, LinearSVR

import mercer
from mercer import Gaussian, Linear
from mercer.datasets import three_clusters
from mercer.density import ConvexFunctional

X = three_clusters(n_per_cluster=15, n_outliers=0)[0]
Y = np.where(np.sin(X[:, 0]) + 0.1 * X[:, 1] > 0, 1.0, 0.0)
NEW = X[::3] + 0.01
NAMES = np.where(Y > 0, "up", "down")
FRAME = pd.DataFrame({"a": X[:, 0], "b": X[:, 1], "c": pd.Categorical(NAMES), "d": X[:, 0] > 3})
NEW_FRAME = FRAME.iloc[::3].assign(a=lambda frame: frame["a"] + 0.01)
K = Gaussian(1.5)
WEIGHTS = np.arange(1.0, X.shape[0] + 1)
IMAGES = np.abs(np.random.default_rng(0).normal(size=(12, 64))) % 1.0


@dataclass(frozen=True)
class Case:
    """A model, what it is asked, and the data that its proof is of."""

    make: Callable[[], Any]
    ask: Callable[[Any], Any]
    proof: tuple[Any, ...] | None = None


def _values(*methods: str, of: Any = NEW) -> Callable[[Any], Any]:
    return lambda model: [getattr(model, name)(of) for name in methods]


def _kernel(kernel: Any, of: Any = X, new: Any = NEW) -> Case:
    return Case(lambda: kernel().resolve(of), lambda model: [model(new, of), model(of), model.diag(new)])


def _linear(estimator: Any, y: Any = Y) -> Case:
    method = next(name for name in ("predict", "transform") if hasattr(estimator, name))
    return Case(lambda: mercer.Kernelized(estimator, K).fit(X, y), _values(method))


def _drift() -> Any:
    model = mercer.DriftDetector(K, window=10, landmarks=16, n_simulated_alarms=10, random_state=0).fit(X)
    model.update(X[:7])
    return model


def _watch(model: Any) -> Any:
    return [*model.update(X[7:20] + 0.5, return_scores=True), model.statistic_, model.n_seen_, model.witness(NEW)]


def _with_preimage() -> Any:
    model = mercer.KernelPCA(K, n_components=3, random_state=np.random.default_rng(3)).fit(X)
    model.inverse_transform(model.transform(X))
    return model


def _near_a_far_point() -> ConvexFunctional:
    return ConvexFunctional(mercer.density.Moments(1), lambda u: float((u - 30) @ (u - 30)), lambda u: 2 * (u - 30))


sdp, quadrature = mercer.SDPEmbedding, mercer.QuadratureSparsifier
density = mercer.SumOfSquaresDensity(K, support=10, random_state=0)
placed, extended = _values("transform", "novelty", "learned_kernel"), _values("transform")
judged = _values("score_samples", "decision_function", "predict", of=np.concatenate([X[:9], NEW]))
LAW = mercer.GaussianMeasure(X.mean(axis=0), 2.0)

CASES: dict[str, Case] = {
    "embedding": Case(lambda: sdp(K, random_state=0).fit(X), placed, (X,)),
    "embedding with levels": Case(lambda: sdp(random_state=0).fit(X), placed, (X,)),
    "embedding of landmarks": Case(lambda: sdp(K, landmarks=15, random_state=0).fit(X), placed, (X,)),
    "embedding of weights": Case(lambda: sdp(K, random_state=0).fit(X, sample_weight=WEIGHTS), placed, (X,)),
    "embedding of a choice of rows": Case(
        lambda: sdp(K, landmarks=mercer.Landmarks(12, kernel=K, random_state=0), random_state=0).fit(X), placed, (X,)
    ),
    "embedding of lengths": Case(
        lambda: sdp(K, diagonal=np.ones(len(X)), diagonal_constraint="at most", random_state=0).fit(X), placed, (X,)
    ),
    "embedding of a frame": Case(
        lambda: sdp(mercer.Mixed(), random_state=0).fit(FRAME), _values("transform", of=NEW_FRAME), (FRAME,)
    ),
    "embedding of a matrix": Case(
        lambda: sdp("precomputed", random_state=0).fit(K(X)), _values("transform", of=K(NEW, X)), (K(X),)
    ),
    "diffusion maps": Case(lambda: mercer.DiffusionMaps(random_state=0).fit(X), extended),
    "symmetric diffusion maps": Case(
        lambda: mercer.DiffusionMaps(K, landmarks=15, normalization="symmetric", random_state=0).fit(X), extended
    ),
    "kernel PCA": Case(lambda: mercer.KernelPCA(K, certify=True, random_state=0).fit(X), extended, (X,)),
    "kernel PCA with preimages": Case(_with_preimage, lambda model: [model.inverse_transform(model.transform(NEW))]),
    "kernelized embedding": Case(
        lambda: mercer.KernelizedSDPEmbedding(nugget=1e-7, tol=1e-5, random_state=0).fit(X), extended, (X,)
    ),
    "unfolding": Case(
        lambda: mercer.MaximumVarianceUnfolding(n_neighbors=4, connect=True, tol=1e-3).fit(X), extended, (X,)
    ),
    "plane map": Case(
        lambda: mercer.plane_map(sdp(random_state=0).fit(X), random_state=0),
        lambda model: [model.coordinates, model.kept, model.summary],
    ),
    "rank path": Case(
        lambda: mercer.rank_path(X, [1.0, 2.0], kernel=K, random_state=0), lambda model: [model.ranks, str(model)]
    ),
    "landmarks": Case(
        lambda: mercer.Landmarks(10, kernel=K, random_state=0).fit(X), lambda model: [model.indices_, model.weights_]
    ),
    "quadrature": Case(lambda: quadrature(K, n_nodes=8).fit(X), _values("transform", "witness"), (X,)),
    "quadrature by merging": Case(lambda: quadrature(K, n_nodes=8, merge="strong").fit(X), extended, (X,)),
    "quadrature with its path": Case(
        lambda: quadrature(K, alpha=0.1, solver="path").fit(X),
        lambda model: [model.path_.at(alpha=0.3), model.path_.at(n_nodes=3), repr(model.path_)],
        (X,),
    ),
    "quadrature path with a covariance": Case(
        lambda: quadrature(K, alpha=0.1, solver="path", ridge=0.01 * np.eye(len(X))).fit(X),
        lambda model: [model.path_.at(alpha=0.3)],
        (X,),
    ),
    "quadrature of a law": Case(
        lambda: quadrature(K, n_nodes=6, measure=LAW).fit(X), _values("transform", "witness"), (X,)
    ),
    "density": Case(
        lambda: density.fit(X), lambda model: [model.density(NEW), model.sample(3, random_state=0), model.mean()], (X,)
    ),
    "density by the whole distance": Case(
        lambda: mercer.SumOfSquaresDensity(K, support=8, objective="mmd", random_state=0).fit(X),
        _values("score_samples"),
        (X,),
    ),
    "density by likelihood": Case(
        lambda: mercer.SumOfSquaresDensity(K, support=8, objective="likelihood", random_state=0).fit(X),
        _values("score_samples"),
        (X,),
    ),
    "density with covariances of its own": Case(
        lambda: mercer.SumOfSquaresDensity(support=("mixture", 2), objective="likelihood", random_state=0).fit(X),
        lambda model: [model.density(NEW), model.sample(3, random_state=0), model.mean()],
        (X,),
    ),
    "optimal density": Case(
        lambda: mercer.optimal_density(_near_a_far_point(), X[::5], K), _values("density"), (_near_a_far_point(),)
    ),
    "law of some coordinates": Case(lambda: density.fit(X).marginal([0]), lambda model: [model.density(NEW[:, :1])]),
    "robust ridge": Case(
        lambda: mercer.RobustKernelRidge(K, support=4, radius=0.05, tol=1e-2, random_state=0).fit(X, Y),
        _values("predict"),
        (X, Y),
    ),
    "robust ridge of few densities": Case(
        lambda: mercer.RobustKernelRidge(
            K, support=8, adversary_support=3, radius="sampling", tol=1e-2, random_state=0
        ).fit(X, Y),
        lambda model: [model.predict(NEW), model.radius_, model.adversary_support_],
        (X, Y),
    ),
    "robust regression": Case(
        lambda: mercer.RobustKernelRegressor(K, loss="huber", radius=0.05, tol=1e-3).fit(X, Y),
        _values("predict"),
        (X, Y),
    ),
    "robust classifier": Case(
        lambda: mercer.RobustKernelClassifier(K, radius=0.05, tol=1e-3).fit(X, NAMES),
        _values("predict", "predict_proba", "decision_function"),
        (X, NAMES),
    ),
    "supervised PCA": Case(lambda: mercer.SupervisedPCA(n_components=1).fit(X, Y + 0.1 * X[:, 0]), extended),
    "Fisher's discriminant": Case(
        lambda: mercer.FisherDiscriminant(K).fit(X, NAMES), _values("transform", "predict", "predict_proba")
    ),
    "Roweis's discriminant": Case(
        lambda: mercer.RoweisDiscriminant(0.5, 0.5, landmarks=10, kernel=K, random_state=0).fit(X, NAMES), extended
    ),
    "dimension reduction": Case(lambda: mercer.KernelDimensionReduction(1).fit(X, Y), extended),
    "dimension reduction by a test": Case(
        lambda: mercer.KernelDimensionReduction("test", random_state=0).fit(X, NAMES), extended
    ),
    "conditional mean": Case(
        lambda: mercer.ConditionalMeanEmbedding(K, regularization=1e-3).fit(X, Y), _values("predict")
    ),
    "mean embedding": Case(lambda: mercer.MeanEmbedding(K, X, WEIGHTS), lambda model: [model(NEW), model.norm_squared]),
    "drift": Case(_drift, _watch),
    "novelty": Case(lambda: mercer.NoveltyDetector(contamination=0.1).fit(X, sample_weight=WEIGHTS), judged),
    "novelty by a kernel": Case(lambda: mercer.NoveltyDetector(K, n_neighbors=3, false_alarms=0.1).fit(X), judged),
    **{
        type(each).__name__: _linear(each)
        for each in (
            Ridge(),
            RidgeCV(),
            LinearRegression(),
            Lasso(),
            ElasticNet(),
            LinearSVR(random_state=0, max_iter=100000),
        )
    },
    "LogisticRegression": _linear(LogisticRegression(), NAMES),
    "LinearDiscriminantAnalysis": _linear(LinearDiscriminantAnalysis(), NAMES),
    "LinearSVC": _linear(LinearSVC(random_state=0), NAMES),
    "PCA": _linear(PCA(2)),
    "KMeans": _linear(KMeans(3, n_init=1, random_state=0)),
    **{
        f"kernel {each().__class__.__name__}": _kernel(each)
        for each in (
            Gaussian,
            mercer.Laplacian,
            lambda: mercer.Matern(1.5, "median"),
            lambda: mercer.Sobolev(2, 1.0),
            Linear,
            lambda: mercer.Polynomial(2),
            lambda: mercer.Sigmoid(0.1),
            mercer.Cosine,
            mercer.SelfTuning,
            lambda: mercer.FromDistance("cityblock"),
            lambda: mercer.Geodesic(3, connect=True),
            lambda: mercer.GraphLaplacian(3, connect=True),
            lambda: mercer.LocallyLinear(40),
        )
    },
    "kernel of columns": _kernel(lambda: Gaussian([1.0, 2.0])),
    "kernel ChiSquared": _kernel(lambda: mercer.ChiSquared(), np.abs(X), np.abs(NEW)),
    "kernel SSIM": _kernel(lambda: mercer.SSIM((8, 8), size=5), IMAGES, IMAGES[:3]),
    "kernel Mixed": _kernel(mercer.Mixed, FRAME, NEW_FRAME),
    "kernel Categories": _kernel(lambda: mercer.Categories().on("c") + Linear().on(["a", "b"]), FRAME, NEW_FRAME),
    "kernel algebra": _kernel(lambda: (2.0 * Gaussian() * Linear() + mercer.Matern(0.5, 1.0) ** 2).normalized()),
    "kernel of categories alone": _kernel(mercer.Categories, np.round(X), np.round(NEW)),
    "kernel Precomputed": Case(mercer.Precomputed, lambda model: [model(K(X)), model.diag(K(X))]),
    "box": Case(lambda: mercer.Box([0.0, 0.0], [1.0, 2.0]), lambda model: [model.lower, model.upper]),
    "discrete measure": Case(lambda: mercer.DiscreteMeasure(X), lambda model: [model.points, model.weights]),
    "unfitted": Case(lambda: sdp(Gaussian("median"), tol=1e-3), lambda model: [repr(model)]),
    "search for a model": Case(
        lambda: mercer.Kernelized(Ridge(alpha=0.5), Gaussian(2.0), landmarks=10), lambda model: [repr(model)]
    ),
}


def answers(name: str, model: Any) -> list[Any]:
    """What a model says, as plain arrays."""
    return [
        np.asarray("none" if each is None else each)
        for part in CASES[name].ask(model)
        for each in (part if isinstance(part, tuple) else [part])
    ]


def main(folder: str) -> None:
    """Load every file of a folder and write what its model says beside it."""
    for number, name in enumerate(CASES):
        said = answers(name, mercer.load(Path(folder) / f"{number}.mercer"))
        np.savez(Path(folder) / f"{number}.npz", *said)


if __name__ == "__main__":
    main(sys.argv[1])
