"""Which Gaussian sections a likelihood is posed on: given, or chosen by the log-density of points left out.

Sections with covariances of their own come from a mixture of normal laws, fitted by EM to the standardised columns: its
parts, and copies of them with wider covariances, which carry tails. A sum of squares of them holds every mixture of the
same parts, so that likelihood alone would always ask for more; the number of parts is the one that predicts best in
three folds. Where the law follows a curve, many bumps of one shape do better than a few of their own: centres of
k-means with the covariance of the sample, reduced, are among the candidates in few dimensions.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
from sklearn.cluster import KMeans

from mercer.backends.arrays import Array
from mercer.backends.threads import one_openmp_thread
from mercer.density.likelihood_problem import log_density, make_likelihood
from mercer.density.robust_mixture import fit_mixture, log_constant, within_fences
from mercer.kernels.integrals.gaussian_sections import GaussianSections
from mercer.problems.sum_of_squares_enclosures import Sample
from mercer.solvers.spectrahedron.interior_point import Likelihood, minimise_likelihood

FACTORS = (1.0, 2.0, 8.0)  # of the covariances of parts
MOST_WIDE = 2  # sections for rows that no part reaches: of those that are drawn, and of all
_PENALTY, _PENALTY_OF_BUMPS = 10.0, 60.0  # λ n of sections whose squares have mass one
_PARTS = (1, 2, 3, 4, 6, 8, 12)
_MANY_PARTS, _SHARE = 8, 20  # parts that are tried whatever the sample; beyond, numbers of the sample for one of theirs
_WIDTHS = (0.12, 0.2, 0.33, 0.55)
_CENTRES, _FEWEST_CENTRES, _ROWS_A_CENTRE = 36, 10, 10
_MOST_FEATURES = 4  # in which bumps of one shape are tried
_FOLDS, _LEAST_ROWS, _STARTS = 3, 12, 3
_SEARCHED, _MOST_ROWS = 3000, 20_000
_SEARCH = 1e-3  # nats a point that a density may lack when candidates are compared
_BEHIND = 2.0  # standard errors of its loss to the best at which a candidate is not tried on further folds

Make = Callable[[Array, int, int], GaussianSections]


class Candidate(NamedTuple):
    """A family of sections: how to make them from points, with a seed, from so many starts."""

    make: Make
    name: str


def mixture_parts(count: int, factors: Array) -> Candidate:
    """The parts of a mixture of normal laws with full covariances, and copies with these factors."""

    def make(X: Array, seed: int, starts: int) -> GaussianSections:
        found = fit_mixture(X, count, seed, starts)
        inverse = np.linalg.inv(np.linalg.cholesky(found.covariances))
        roots = _triangular(np.transpose(inverse, (0, 2, 1)))
        return reaching(GaussianSections(found.means, roots, factors), X)

    return Candidate(make, f"{count} parts of a mixture")


def equal_bumps(count: int, width: float) -> Candidate:
    """Centres of k-means in the coordinates of the sample's covariance, which is theirs times width²."""

    def make(X: Array, seed: int, starts: int) -> GaussianSections:
        found = fit_mixture(X, 1, seed, 1)
        centre, root = found.means[0], np.linalg.cholesky(found.covariances[0])
        inverse = np.linalg.inv(root)
        clusters = KMeans(min(count, X.shape[0]), n_init=starts, random_state=seed)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of points that are equal
            clusters.fit((X - centre) @ inverse.T)
        means = np.unique(clusters.cluster_centers_, axis=0) @ root.T + centre
        return reaching(GaussianSections(means, _triangular(inverse.T[None] / width), np.ones(1)), X)

    return Candidate(make, f"{count} bumps of width {width:g}")


def default_penalty(sections: GaussianSections) -> float:
    """λ n: more for sections of one shape, of which many lie near one another and cancel."""
    return _PENALTY_OF_BUMPS if sections.of_one_shape else _PENALTY


def reaching(sections: GaussianSections, X: Array) -> GaussianSections:
    """The sections, and one as wide as the box of the sample where they are below its constant at a row."""
    logs = 2.0 * sections.log_values(X).max(axis=1) - sections.log_scale
    if not (logs < log_constant(X)).any():
        return sections
    low, high = X.min(axis=0), X.max(axis=0)
    count = sections.means.shape[0]
    roots = np.broadcast_to(sections.roots, (count, *sections.roots.shape[1:]))
    wide = np.diag(2.0 / np.where(high > low, high - low, 1.0))
    return GaussianSections(
        np.concatenate([sections.means, (low + high)[None] / 2]), np.concatenate([roots, wide[None]]), sections.factors
    )


def _triangular(roots: Array) -> Array:
    """Lower triangular L with the same L Lᵀ, from any square roots."""
    upper = np.linalg.qr(np.transpose(roots, (0, 2, 1)))[1]
    signs = np.sign(np.diagonal(upper, axis1=1, axis2=2))
    return np.ascontiguousarray(np.tril(np.transpose(upper * signs[:, :, None], (0, 2, 1))))


def candidates(n: int, d: int, factors: Array, *, mixtures_only: bool = False) -> Iterator[Candidate]:
    """What is tried for n points with d features."""
    numbers = d + d * (d + 1) // 2
    for count in _PARTS:
        if count == 1 or (count <= max(_MANY_PARTS, n * d // (_SHARE * numbers)) and count * numbers <= n * d):
            yield mixture_parts(count, factors)
    if d <= _MOST_FEATURES and not mixtures_only:
        for width in _WIDTHS:
            yield equal_bumps(min(max(n // _ROWS_A_CENTRE, _FEWEST_CENTRES), _CENTRES), width)


def best_sections(X: Array, tried: list[Candidate], rng: np.random.Generator) -> GaussianSections:
    """Those of the candidate whose densities predict points left out best, in three folds of at most 3 000 rows.

    Who is clearly behind after a fold is left out of those that follow.
    """
    n, seed = X.shape[0], int(rng.integers(2**31))
    with one_openmp_thread():
        if n >= _LEAST_ROWS and len(tried) > 1:
            order = rng.permutation(n)[:_SEARCHED]
            logs: list[list[Array]] = [[] for _ in tried]
            ahead, floors = list(range(len(tried))), _floors(X)
            for fold in np.array_split(order, _FOLDS):
                for place in ahead:
                    logs[place].append(_predicted(tried[place], X, order, fold, seed, floors))
                ahead = _not_behind({place: np.concatenate(logs[place]) for place in ahead})
            tried = [tried[max(ahead, key=lambda place: float(np.concatenate(logs[place]).sum()))]]
        return tried[0].make(X, seed, _STARTS)


def _not_behind(logs: dict[int, Array]) -> list[int]:
    """Who loses to the best, in the mean of the logarithms, no more than two standard errors of the difference."""
    best = max(logs.values(), key=np.sum)
    if not np.isfinite(best).all():
        return list(logs)
    lost = {place: best - values for place, values in logs.items() if np.isfinite(values).all()}
    return [place for place, each in lost.items() if each.mean() <= _BEHIND * each.std(ddof=1) / np.sqrt(each.size)]


def _floors(X: Array) -> Array:
    """What the density of a far row counts for at least: candidates compare by the rest of the rows; elsewhere none."""
    far = (within_fences(X) != X).any(axis=1)
    return np.where(far, log_constant(X), -np.inf)


def _predicted(candidate: Candidate, X: Array, order: Array, fold: Array, seed: int, floors: Array) -> Array:
    """log p at the rows of a fold, p fitted to the others; minus infinity where there is none."""
    rest = X[np.setdiff1d(order, fold)]
    try:
        sections = candidate.make(rest, seed, 1)
        problem = make_likelihood(
            sections, Sample(rest, None), regularization=default_penalty(sections) / len(rest), truncation=1e-10
        )
        observed = problem.observed
        C = minimise_likelihood(Likelihood(observed.rows, observed.shares, problem.penalty), tol=_SEARCH)
        logs = log_density(sections, X[fold], problem.coefficients(np.linalg.cholesky(C)))[0]
        return np.logaddexp(logs, floors[fold])
    except (ValueError, np.linalg.LinAlgError):
        return np.full(fold.size, -np.inf)


def drawn_rows(X: Any, shares: Array, rng: np.random.Generator) -> Array:
    """At most 20 000 rows that stand for a sample with weights, which EM does not take: drawn by them, if they differ.

    Raises
    ------
    ValueError
        If a column has one value alone, so that it has no density.
    """
    X = np.asarray(X, np.float64)[shares > 0]
    shares = shares[shares > 0]
    if not np.all(shares == shares[0]):
        places = (rng.uniform() + np.arange(X.shape[0])) / X.shape[0]
        X = X[np.minimum(np.searchsorted(np.cumsum(shares), places), X.shape[0] - 1)]
    if X.shape[0] > _MOST_ROWS:
        X = X[rng.choice(X.shape[0], _MOST_ROWS, replace=False)]
    constant = np.flatnonzero(~(X.std(axis=0) > 1e-12 * np.abs(X).max(axis=0)))
    if constant.size:
        raise ValueError(
            f"Column {constant[0]} of X has one value alone, so that no density with a covariance of its own fits: "
            "leave the column out, or pass a kernel and a support."
        )
    return X
