"""What outliers do to an embedding: clusters and neighbours of the other points, as outliers grow."""

from __future__ import annotations

import importlib
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any

import numpy as np
from sklearn.cluster import KMeans
from sklearn.manifold import TSNE, SpectralEmbedding
from sklearn.metrics import normalized_mutual_info_score
from sklearn.model_selection import StratifiedKFold, cross_val_score
from sklearn.neighbors import KNeighborsClassifier

from mercer.backends.arrays import Array
from mercer.datasets import three_clusters, two_moons, wine
from mercer.embedding import DiffusionMaps, SDPEmbedding
from mercer.experiments.conventions import directions, in_the_plane
from mercer.experiments.report import Comparison, Experiment, claim
from mercer.kernels import Gaussian
from mercer.operators.diffusion import DegenerateKernelError
from mercer.plots import new_figure

# Colour, line and marker of every method.
_LOOKS = {
    "SDP, 2 components": ("#4477aa", "-", "o"),
    "SDP, all dimensions": ("#4477aa", "--", "o"),
    "SDP, directions": ("#4477aa", ":", "o"),
    "diffusion maps, λu": ("#ee6677", "-", "s"),
    "diffusion maps, λψ": ("#ee6677", "--", "s"),
    "diffusion maps, directions": ("#ee6677", ":", "s"),
    "spectral embedding": ("#228833", "-", "^"),
    "t-SNE": ("#aa3377", "-", "v"),
    "UMAP": ("#ccbb44", "-", "D"),
}
METHODS = tuple(_LOOKS)
MEASURES = ("NMI of k-means", "accuracy of 5-NN")
_SDP, _MAPS, _SPECTRAL, _TSNE, _UMAP = METHODS[:3], METHODS[3:6], METHODS[6], METHODS[7], METHODS[8]
_FACTORS = (1 / 8, 1 / 4, 1 / 2, 1.0, 2.0)
_NEIGHBOURS = {_TSNE: (5, 30, 50), _UMAP: (5, 15, 50)}  # of t-SNE the perplexity
_DEFAULT_NEIGHBOURS = {_TSNE: 30.0, _UMAP: 15.0}
_BOX = 1.5
_FOLDS = 5
_TIE = 0.005


@dataclass(frozen=True)
class OutlierRobustness(Experiment):
    """Scores of every method on every sample, for every share of outliers and every bandwidth."""

    samples: tuple[str, ...]  #: their names
    fractions: tuple[float, ...]  #: the shares of outliers among all points
    settings: dict[str, tuple[float, ...]]  #: by method: multiples of the median distance; neighbours for t-SNE, UMAP
    #: By method, (samples, fractions, settings, seeds, 2): the two measures, on the points that are no outliers; NaN
    #: where the kernel was too narrow to embed.
    scores: dict[str, Array]
    missing: str = ""  #: which method is missing and why; empty where none is

    def fixed(self, method: str) -> Array:
        """Scores at the median distance, of shape (samples, fractions, seeds, 2).

        For t-SNE and UMAP at their own defaults, a perplexity of 30 and 15 neighbours.
        """
        return self.scores[method][:, :, self.settings[method].index(_default(method))]

    def tuned(self, method: str) -> Array:
        """Scores at :meth:`best_settings`, of the same shape: chosen by the labels, which flatters all alike."""
        best = self._best(method)[:, :, None, None]
        return np.take_along_axis(self.scores[method], best, axis=2)[:, :, 0]

    def best_settings(self, method: str) -> Array:
        """The setting with the best mean over the seeds, of shape (samples, fractions, 2).

        It is chosen for every sample, share of outliers and measure by itself; of equally good ones that nearest to
        the default is taken.
        """
        return np.array(self.settings[method])[self._best(method)]

    def _best(self, method: str) -> Array:
        means = np.nan_to_num(self.scores[method], nan=-1.0).mean(axis=3)  # what could not be embedded is never chosen
        distance = np.abs(np.log(np.array(self.settings[method]) / _default(method)))
        order = np.argsort(distance, kind="stable")  # argmax takes the first of equals
        return order[np.argmax(np.take(np.round(means, 12), order, axis=2), axis=2)]

    def averaged(self, method: str) -> Array:
        """Scores averaged over all settings, of the same shape; a setting without an embedding counts as zero."""
        return np.nan_to_num(self.scores[method], nan=0.0).mean(axis=2)

    @property
    def views(self) -> dict[str, Callable[[str], Array]]:
        """The three ways to read the scores."""
        return {"default setting": self.fixed, "tuned": self.tuned, "mean over settings": self.averaged}

    @property
    def comparisons(self) -> tuple[Comparison, ...]:
        """The claim of the abstract of PSD22, more robust to outliers than a spectral embedding, sample by sample."""
        return tuple(self._claim(i, view) for view in self.views for i in range(len(self.samples)))

    def _claim(self, sample: int, view: str) -> Comparison:
        ours, theirs, markov = (np.nanmean(self.views[view](m)[sample, -1, :, 0]) for m in (_SDP[0], *_MAPS[:2]))
        return claim(
            f"NMI of k-means, {self.samples[sample]} with {100 * self.fractions[-1]:g} % outliers, {view}",
            "SDP at least as robust as a spectral embedding",
            f"SDP {ours:.3f}, diffusion maps {theirs:.3f} by λu, {markov:.3f} by λψ",
            ours >= theirs - _TIE,
            "the paper prints no numbers; two components each, beside λu, which is what it calls a diffusion embedding",
        )

    def figure(self) -> Any:
        """Both measures against the share of outliers: one row a way to read the scores, two columns a sample."""
        columns = 2 * len(self.samples)
        figure, axes = new_figure(3 * columns, rows=3, panel_inches=3.0)
        for row, (view, scores) in enumerate(self.views.items()):
            for column in range(columns):
                ax = axes[row * columns + column]
                sample, measure = column // 2, column % 2
                self._curves(ax, sample, measure, scores)
                ax.set_title(f"{self.samples[sample]}: {MEASURES[measure]}\n{view}", fontsize=9)
        axes[0].legend(fontsize=7, loc="lower left")
        return figure

    @property
    def _least_accuracy(self) -> float:
        return min(float(view(m)[..., 1].mean(axis=2).min()) for view in self.views.values() for m in self.scores)

    def _curves(self, ax: Any, sample: int, measure: int, scores: Callable[[str], Array]) -> None:
        shares = 100 * np.array(self.fractions)
        for method in self.scores:
            values = scores(method)[sample, :, :, measure]
            colour, line, marker = _LOOKS[method]
            looks = {"color": colour, "linestyle": line, "marker": marker, "markersize": 3.5, "linewidth": 1.2}
            ax.errorbar(shares, np.nanmean(values, axis=1), np.nanstd(values, axis=1), label=method, capsize=2, **looks)
        if self.missing:
            ax.plot([], [], " ", label=self.missing)
        ax.set_xlabel("outliers, %", fontsize=8)
        ax.set_ylim(*((-0.03, 1.05) if measure == 0 else (self._least_accuracy - 0.05, 1.02)))


def outlier_robustness(
    samples: Sequence[str] = ("three clusters", "two moons", "wine"),
    fractions: Sequence[float] = (0.0, 0.02, 0.05, 0.1, 0.2),
    *,
    n_seeds: int = 5,
    n_points: int = 300,
    factors: Sequence[float] = _FACTORS,
    tsne: bool = True,
    umap: bool | None = None,
    random_state: int = 0,
    progress: Callable[[str], None] | None = None,
) -> OutlierRobustness:
    """Clusters and neighbours in embeddings of samples with more and more outliers.

    Outliers of the three clusters are uniform on a box and away from the centres, see
    :func:`mercer.datasets.three_clusters`. Those of two moons and wine are uniform on the bounding box of the data,
    half as large again. Every method embeds all points. k-means, with as many centres as there are classes and ten
    starts, is run on all of them too, for nobody knows the outliers in advance: it may spend a centre on them. Its
    normalised mutual information with the classes, and the accuracy of five nearest neighbours in five-fold
    cross-validation, count the points that are no outliers.

    Parameters
    ----------
    samples : sequence of str
        Among ``"three clusters"``, ``"two moons"`` and ``"wine"``.
    fractions : sequence of float
        Shares of outliers among all points, below 1.
    n_seeds : int, default=5
        Samples of each kind. The points of wine are always the same; its outliers are drawn anew.
    n_points : int, default=300
        Points of the synthetic samples, outliers not counted.
    factors : sequence of float
        Bandwidths to try, as multiples of the median distance of the sample with its outliers; 1 is among them.
    tsne : bool, default=True
        Whether to run t-SNE.
    umap : bool or None, default=None
        Whether to run UMAP; None means if umap-learn is installed.
    progress : callable, optional
        Receives a line for every sample.

    Returns
    -------
    OutlierRobustness
        All scores, and the picture.
    """
    _check(samples, factors)
    installed = find_spec("umap") is not None
    peers = {_TSNE: tsne, _UMAP: installed if umap is None else umap}
    methods = [method for method in METHODS if peers.get(method, True)]
    settings = {m: tuple(map(float, _NEIGHBOURS.get(m, sorted(factors)))) for m in methods}
    shape = (len(samples), len(fractions))
    scores = {m: np.full((*shape, len(settings[m]), n_seeds, 2), np.nan) for m in methods}
    for (i, j), seed in ((cell, s) for cell in np.ndindex(shape) for s in range(n_seeds)):
        X, labels = _SAMPLES[samples[i]](n_points, fractions[j], random_state + seed)
        for method, setting, points in _embeddings(X, sorted(factors), methods, random_state + seed):
            at = settings[method].index(setting)
            scores[method][i, j, at, seed] = _measured(points, labels, random_state + seed)
        if progress is not None:
            progress(f"{samples[i]}, {100 * fractions[j]:g} % outliers, seed {seed}")
    missing = ", ".join(f"{name} {_why(name, installed)}" for name, used in peers.items() if not used)
    return OutlierRobustness(tuple(samples), tuple(map(float, fractions)), settings, scores, missing)


def _check(samples: Sequence[str], factors: Sequence[float]) -> None:
    unknown = [name for name in samples if name not in _SAMPLES]
    if unknown:
        raise ValueError(f"There is no sample {unknown[0]!r}: choose among {', '.join(_SAMPLES)}.")
    if 1.0 not in factors:
        raise ValueError("factors must contain 1, the bandwidth that is called fixed.")


def _why(method: str, installed: bool) -> str:
    return "left out" if installed or method != _UMAP else "not installed"


def _default(method: str) -> float:
    return _DEFAULT_NEIGHBOURS.get(method, 1.0)


# --- samples ------------------------------------------------------------------------------------------------


def _n_outliers(n_points: int, fraction: float) -> int:
    return round(n_points * fraction / (1 - fraction))


def _clusters(n_points: int, fraction: float, seed: int) -> tuple[Array, Array]:
    return three_clusters(n_points // 3, _n_outliers(n_points // 3 * 3, fraction), random_state=seed)


_SAMPLES: dict[str, Callable[[int, float, int], tuple[Array, Array]]] = {
    "three clusters": _clusters,
    "two moons": lambda n_points, fraction, seed: _in_a_box(*two_moons(n_points, random_state=seed), fraction, seed),
    "wine": lambda n_points, fraction, seed: _in_a_box(*wine(), fraction, seed),
}


def _in_a_box(X: Array, labels: Array, fraction: float, seed: int) -> tuple[Array, Array]:
    """The sample with uniform outliers, labelled -1, on its bounding box made larger."""
    low, high = X.min(axis=0), X.max(axis=0)
    middle, half = (low + high) / 2, _BOX * (high - low) / 2
    count = _n_outliers(len(X), fraction)
    outliers = np.random.default_rng([seed, 1]).uniform(middle - half, middle + half, (count, X.shape[1]))
    return np.concatenate([X, outliers]), np.concatenate([labels, np.full(count, -1)])


# --- methods ------------------------------------------------------------------------------------------------


def _embeddings(
    X: Array, factors: Sequence[float], methods: Sequence[str], seed: int
) -> Iterator[tuple[str, float, Array]]:
    """Method, setting and coordinates; from wide kernels to narrow ones, where the last solution is a good start."""
    median = float(Gaussian("median").resolve(X).get_params()["sigma"])
    sdp = SDPEmbedding(Gaussian(), warm_start=True, random_state=seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of convergence, of graphs in pieces, of threads: the scores say it
        for factor in factors[::-1]:
            for method, points in _by_kernel(sdp, X, factor * median, seed):
                yield method, factor, points
        for method, embed in ((_TSNE, _by_tsne), (_UMAP, _by_umap)):
            for count in _NEIGHBOURS[method] if method in methods else ():
                yield method, float(count), embed(X, count, seed)


def _by_kernel(sdp: SDPEmbedding, X: Array, sigma: float, seed: int) -> Iterator[tuple[str, Array]]:
    kernel = Gaussian(sigma)
    try:
        solution = sdp.set_params(kernel=kernel).fit(X).embedding_
    except DegenerateKernelError:
        return
    symmetric, maps = (
        DiffusionMaps(kernel, n_components=2, normalization=name, random_state=seed).fit(X).embedding_
        for name in ("symmetric", "markov")
    )
    yield from zip(_SDP, (in_the_plane(solution), solution, directions(solution)), strict=True)
    yield from zip(_MAPS, (symmetric, maps, directions(maps)), strict=True)
    model = SpectralEmbedding(n_components=2, affinity="rbf", gamma=1 / sigma**2, random_state=seed)
    yield _SPECTRAL, model.fit_transform(X)


def _by_tsne(X: Array, perplexity: int, seed: int) -> Array:
    model = TSNE(perplexity=min(perplexity, len(X) - 1), random_state=seed)
    return np.asarray(model.fit_transform(X), dtype=np.float64)


def _by_umap(X: Array, n_neighbors: int, seed: int) -> Array:
    model = importlib.import_module("umap").UMAP(n_neighbors=n_neighbors, random_state=seed)
    return np.asarray(model.fit_transform(X), dtype=np.float64)


# --- measures -----------------------------------------------------------------------------------------------


def _measured(points: Array, labels: Array, seed: int) -> tuple[float, float]:
    """Both measures on the points that are no outliers; k-means has seen all points."""
    inlier = labels != -1
    found = KMeans(np.unique(labels[inlier]).size, n_init=10, random_state=seed).fit_predict(points)
    folds = StratifiedKFold(_FOLDS, shuffle=True, random_state=seed)
    accuracy = cross_val_score(KNeighborsClassifier(5), points[inlier], labels[inlier], cv=folds)
    return float(normalized_mutual_info_score(labels[inlier], found[inlier])), float(np.mean(accuracy))
