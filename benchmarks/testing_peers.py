"""Tests that others offer, for benchmarks/testing_power.py: of two arrays and a source of chance, a p-value.

hyppo permutes in a Python loop over dense matrices. Its statistics are inner products of U-centred matrices; here the
same products of the same permutations of rows are made in one go, which is what makes hundreds of data sets possible.
``python benchmarks/testing_peers.py`` shows that both give the same statistic.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.spatial.distance import pdist, squareform
from scipy.special import logsumexp
from scipy.stats import chi2, hypergeom
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

RESAMPLES = 299
FUSE_RESAMPLES = 199
Array = np.ndarray[Any, Any]
Rng = np.random.Generator
Peer = Callable[[Array, Array, Rng], float]


def share_above(values: Array) -> float:
    """The p-value of the first of some statistics."""
    return float(np.count_nonzero(values >= values[0] - 1e-12 * np.abs(values).max())) / values.size


def u_centred(D: Array) -> Array:
    """The matrix without its diagonal, its rows summing to zero (Székely and Rizzo 2014)."""
    n = D.shape[0]
    rows = D.sum(axis=1)
    out = D - (rows[:, None] + rows) / (n - 2) + rows.sum() / ((n - 1) * (n - 2))
    np.fill_diagonal(out, 0.0)
    return out


def distances(X: Array) -> Array:
    return squareform(pdist(X))


def hyppo_kernel(X: Array, of: Array | None = None) -> Array:
    """hyppo's Gaussian kernel, with the median distance of ``of``: of the first of two matrices, whichever is asked."""
    median = np.median(pdist(X if of is None else of)) or 1.0
    return np.exp(-squareform(pdist(X, "sqeuclidean")) / (2 * median**2))


# --- two samples ----------------------------------------------------------------------------------------------


def signs_of(n: int, m: int, resamples: int, rng: Rng) -> Array:
    """Columns of ±1: the labels as they are, then relabelled."""
    labels = np.tile(np.repeat([1.0, -1.0], [n, m]), (1 + resamples, 1))
    labels[1:] = rng.permuted(labels[1:], axis=1)
    return labels.T


def two_samples_by(matrix: Callable[[Array], Array]) -> Peer:
    """The permutation test of hyppo.ksample with this matrix of the pooled sample."""

    def test(X: Array, Y: Array, rng: Rng) -> float:
        centred, labels = u_centred(matrix(np.concatenate([X, Y]))), signs_of(len(X), len(Y), RESAMPLES, rng)
        return share_above(np.einsum("ib,ib->b", labels, centred @ labels))

    return test


def two_samples_by_chi2(matrix: Callable[[Array], Array]) -> Peer:
    """What hyppo does unless it is told otherwise: a χ² bound (Shen, Panda and Vogelstein 2022)."""

    def test(X: Array, Y: Array, rng: Rng) -> float:
        labels = np.repeat([0.0, 1.0], [len(X), len(Y)])[:, None]
        return chi2_bound(matrix(np.concatenate([X, Y])), distances(labels))

    return test


def chi2_bound(D: Array, E: Array) -> float:
    D, E = u_centred(D), u_centred(E)
    correlation = (D * E).sum() / np.sqrt((D * D).sum() * (E * E).sum())
    return float(chi2.sf(len(D) * correlation + 1, 1))


def fused(X: Array, Y: Array, rng: Rng) -> float:
    """MMD-FUSE, written after Biggs, Schrab and Gretton (2023): a soft maximum over twenty normalised statistics."""
    n, m, Z = len(X), len(Y), np.concatenate([X, Y])
    labels = signs_of(n, m, FUSE_RESAMPLES, rng).astype(np.float32)
    first, second = (labels + 1) / 2, (1 - labels) / 2
    values = []
    for metric, power in (("cityblock", 1), ("euclidean", 2)):
        flat = pdist(Z, metric)
        low, high = np.quantile(flat[flat > 0], [0.05, 0.95])
        D = squareform(flat)
        for width in np.linspace(low / 2, 2 * high, 10):
            K = np.exp(-((D / width) ** power) / power).astype(np.float32)
            np.fill_diagonal(K, 0.0)
            KF, KS = K @ first, K @ second
            within = (first * KF).sum(0) / (n * (n - 1)) + (second * KS).sum(0) / (m * (m - 1))
            spread = np.sqrt((K.astype(float) ** 2).sum() / ((n + m) * (n + m - 1)))
            values.append((within - 2 * (first * KS).sum(0) / (n * m)) / spread)
    least = min(n, m)
    return share_above(logsumexp(np.sqrt(least * (least - 1)) * np.array(values, dtype=float), axis=0))


def classifier(make: Callable[[int], Any]) -> Peer:
    """Learn on a random half which sample a row is from; count the hits on the other half (Lopez-Paz, Oquab 2017).

    Given the guesses and the numbers of rows, the number of hits is hypergeometric, so the p-value is exact.
    """

    def test(X: Array, Y: Array, rng: Rng) -> float:
        Z, labels = np.concatenate([X, Y]), np.repeat([0, 1], [len(X), len(Y)])
        order = rng.permutation(len(Z))
        learn, judge = order[::2], order[1::2]
        guesses = make(len(learn)).fit(Z[learn], labels[learn]).predict(Z[judge])
        hits = int((guesses & labels[judge]).sum())
        return float(hypergeom.sf(hits - 1, len(judge), int(labels[judge].sum()), int(guesses.sum())))

    return test


def compress_then_test(X: Array, Y: Array, rng: Rng) -> float:
    """Domingo-Enrich, Dwivedi and Mackey (2023) in their own package, with the median distance as bandwidth."""
    from goodpoints.ctt import ctt

    seeds = rng.integers(2**31, size=2)
    width = float(np.median(pdist(np.concatenate([X, Y]))))
    order = [rng.permutation(len(sample)) for sample in (X, Y)]
    first, second = (
        np.ascontiguousarray(sample[rows], dtype=float) for sample, rows in zip((X, Y), order, strict=True)
    )
    result = ctt(first, second, 2, B=199, lam=width, null_seed=seeds[0], statistic_seed=seeds[1])
    return 0.05 if rng.uniform() < result.rejects else 1.0


TWO_SAMPLE_PEERS: dict[str, Peer] = {
    "hyppo MMD": two_samples_by(hyppo_kernel),
    "hyppo MMD, χ²": two_samples_by_chi2(lambda Z: 1 - hyppo_kernel(Z)),
    "energy": two_samples_by(lambda Z: -distances(Z)),
    "logistic": classifier(lambda n: make_pipeline(StandardScaler(), LogisticRegression(max_iter=500))),
    "k neighbours": classifier(lambda n: make_pipeline(StandardScaler(), KNeighborsClassifier(max(1, round(n**0.5))))),
    "compress then test": compress_then_test,
    "MMD-FUSE (our code)": fused,
}
SINGLE_KERNEL = ("hyppo MMD", "hyppo MMD, χ²", "energy", "compress then test")


# --- independence ---------------------------------------------------------------------------------------------


def independence_by(matrices: Callable[[Array, Array], tuple[Array, Array]]) -> Peer:
    """The permutation test of hyppo.independence with these two matrices."""

    def test(X: Array, Y: Array, rng: Rng) -> float:
        D, E = map(u_centred, matrices(X, Y))
        orders = rng.permuted(np.tile(np.arange(len(X)), (RESAMPLES, 1)), axis=1)
        values = [(D * E).sum(), *((D * E[np.ix_(order, order)]).sum() for order in orders)]
        return share_above(np.array(values))

    return test


def hyppo_hsic(X: Array, Y: Array) -> tuple[Array, Array]:
    """One minus hyppo's kernels, both of which have the median distance of x."""
    return 1 - hyppo_kernel(X), 1 - hyppo_kernel(Y, of=X)


INDEPENDENCE_PEERS: dict[str, Peer] = {
    "hyppo Hsic": independence_by(hyppo_hsic),
    "hyppo Hsic, χ²": lambda X, Y, rng: chi2_bound(*hyppo_hsic(X, Y)),
    "HSIC, both medians": independence_by(lambda X, Y: (hyppo_kernel(X), hyppo_kernel(Y))),
    "hyppo Dcorr": independence_by(lambda X, Y: (distances(X), distances(Y))),
}


def check() -> None:
    """Compare the statistics with hyppo's own, on one data set of each problem."""
    from hyppo.independence import Dcorr, Hsic
    from hyppo.ksample import MMD, Energy

    rng = np.random.default_rng(0)
    X, Y = rng.standard_normal((60, 3)), rng.standard_normal((40, 3)) * 1.3
    Z, labels = np.concatenate([X, Y]), np.repeat([0.0, 1.0], [60, 40])[:, None]
    scale = 2 * 60**2 * 40**2 / 100**4

    def correlation(D: Array, E: Array) -> float:
        D, E = u_centred(D), u_centred(E)
        return float((D * E).sum() / np.sqrt((D * D).sum() * (E * E).sum()))

    own = correlation(1 - hyppo_kernel(Z), distances(labels))
    print(f"MMD       hyppo {MMD().statistic(X, Y):.12f}  here {scale * own:.12f}")
    own = (u_centred(distances(Z)) * u_centred(distances(labels))).sum() / (100 * 97) / scale
    print(f"Energy    hyppo {Energy().statistic(X, Y):.12f}  here {own:.12f}")
    U, V = Z[:, :2], Z[:, 2:] ** 2 + 0.1 * Z[:, :1]
    print(f"Hsic      hyppo {Hsic().statistic(U, V):.12f}  here {correlation(*hyppo_hsic(U, V)):.12f}")
    print(f"Dcorr     hyppo {Dcorr().statistic(U, V):.12f}  here {correlation(distances(U), distances(V)):.12f}")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        theirs = MMD().test(X, Y, reps=1000, auto=False, random_state=0)[1]
    print(f"MMD p     hyppo {theirs:.3f}  here {two_samples_by(hyppo_kernel)(X, Y, rng):.3f}")


if __name__ == "__main__":
    check()
