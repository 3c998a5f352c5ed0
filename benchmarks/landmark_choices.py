"""Ways to choose m weighted landmarks of a sample: ours, and the peers that the benchmarks compare it with.

Every way is a function of (kernel, X, m, seed) that returns row numbers and weights that sum to the mass it claims; the
registry ``METHODS`` says which of them draw random numbers. Peers that come from a package: kernel thinning from
goodpoints (in the extra ``bench``), kernel herding from coreax. coreax brings JAX, flax and a checkpoint library of its
own, so it is run as a child in an environment of its own:

    python -m venv /tmp/coreax_venv && /tmp/coreax_venv/bin/pip install coreax     # or name another in COREAX_PYTHON
"""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from scipy.linalg import eigh, eigvalsh, solve
from scipy.optimize import nnls

from mercer import GramOperator, rp_cholesky
from mercer.kernels.base import Kernel

Array = np.ndarray[Any, Any]
Chosen = tuple[Array, Array]
COREAX_PYTHON = Path(os.environ.get("COREAX_PYTHON", "/tmp/coreax_venv/bin/python"))
OURS = "quadrature (ours)"
SAMPLED = "quadrature, sampled (ours)"
EVENED = "quadrature, evened (ours)"
OWN = (OURS, SAMPLED, EVENED)
HERDING = "herding (coreax)"
MOST_HERDED = 2_000_000  # coordinates, up to which coreax is asked
MOST_THINNED = 8000  # kernel thinning holds the kernel matrix of the points it halves: 512 MB at this number


class Unavailable(RuntimeError):
    """A peer that is not installed, with what to install."""


@dataclass(frozen=True)
class Method:
    """A way to choose landmarks: what it is, whether seeds matter, and where its weights come from."""

    choose: Callable[[Kernel, Array, int, int], Chosen] | None  # None: not one by one, see selections
    random: bool
    note: str


@dataclass(frozen=True)
class Landmarks:
    """A choice and the seconds it took."""

    indices: Array
    weights: Array
    seconds: float


def selections(
    name: str, kernel: Kernel, X: Array, counts: tuple[int, ...], seed: int = 0
) -> Iterator[tuple[int, Landmarks]]:
    """The choices of one method, count by count; rows in rising order, without those of weight zero."""
    if name == HERDING:
        yield from herding(kernel, X, counts)
        return
    choose = METHODS[name].choose
    assert choose is not None
    for m in counts:
        began = time.perf_counter()
        indices, weights = choose(kernel, X, m, seed)
        seconds = time.perf_counter() - began
        order = np.argsort(indices)
        indices, weights = np.asarray(indices)[order], np.asarray(weights, np.float64)[order]
        yield m, Landmarks(indices[weights > 0], weights[weights > 0], seconds)


# --- ours -------------------------------------------------------------------------------------------------------


def quadrature(kernel: Kernel, X: Array, m: int, seed: int) -> Chosen:
    """The sparse measure of least squared-kernel discrepancy, in the mass of a uniform measure of mass one."""
    from mercer.quadrature import QuadratureSparsifier

    model = QuadratureSparsifier(kernel, n_nodes=m).fit(X)
    return model.indices_, model.weights_


def sampled_quadrature(kernel: Kernel, X: Array, m: int, seed: int) -> Chosen:
    """The same without the pass over all pairs of points, where that is less work."""
    from mercer.quadrature import QuadratureSparsifier

    model = QuadratureSparsifier(kernel, n_nodes=m, potential="sampled").fit(X)
    return model.indices_, model.weights_


def evened_quadrature(kernel: Kernel, X: Array, m: int, seed: int) -> Chosen:
    """Nodes for a measure that thin places have more of; weights for the sample."""
    from mercer.quadrature import QuadratureSparsifier

    model = QuadratureSparsifier(kernel, n_nodes=m, evenness=0.5).fit(X)
    return model.indices_, model.weights_


# --- peers without a package ------------------------------------------------------------------------------------


def uniform(kernel: Kernel, X: Array, m: int, seed: int) -> Chosen:
    return np.random.default_rng(seed).choice(len(X), m, replace=False), np.full(m, 1 / m)


def k_means(kernel: Kernel, X: Array, m: int, seed: int) -> Chosen:
    """Centres after at most 20 of Lloyd's steps, each moved to the nearest point; its weight is the cluster's share."""
    from sklearn.cluster import KMeans

    model = KMeans(m, n_init=1, max_iter=20, random_state=seed).fit(X)
    distance = np.linalg.norm(X - model.cluster_centers_[model.labels_], axis=1)
    order = np.lexsort((distance, model.labels_))
    _, first, counts = np.unique(model.labels_[order], return_index=True, return_counts=True)
    return order[first], counts / len(X)


def pivoted_cholesky(kernel: Kernel, X: Array, m: int, seed: int) -> Chosen:
    pivots = rp_cholesky(GramOperator(kernel, X), m, seed).landmarks
    return pivots, np.full(len(pivots), 1 / len(pivots))


def leverage(kernel: Kernel, X: Array, m: int, seed: int) -> Chosen:
    """Ridge leverage scores by recursive halving (Musco, Musco 2017), m rows drawn without replacement by them.

    A row is drawn with probability pᵢ, so it stands for 1/pᵢ of them: these weights, scaled to sum to one.
    """
    rng = np.random.default_rng(seed)
    gram = GramOperator(kernel, X)
    order = rng.permutation(len(X))
    sizes = [len(X)]
    while sizes[-1] > 2 * m:
        sizes.append(-(-sizes[-1] // 2))
    sample, scale = order[: sizes[-1]][:m], np.ones(min(m, sizes[-1]))
    for size in reversed(sizes):
        rows = order[:size]
        scores, ridge_rank = _scores(gram, rows, sample, scale, m)
        if size < len(X):
            chance = np.minimum(1.0, scores * np.log(max(ridge_rank, 3)))
            drawn = rng.random(size) < chance
            drawn = drawn if drawn.any() else np.ones(size, dtype=bool)
            sample, scale = rows[drawn], 1 / np.sqrt(chance[drawn])
    drawn = rng.choice(len(X), m, replace=False, p=scores / scores.sum())
    return order[drawn], (1 / scores[drawn]) / np.sum(1 / scores[drawn])


def _scores(gram: GramOperator, rows: Array, sample: Array, scale: Array, m: int) -> tuple[Array, int]:
    """Scores of the rows from a weighted sample; the ridge is the mean tail beyond the rank that m rows can serve."""
    rank = max(2, int(np.ceil(m / (4 * np.log(max(m, 3))))))
    columns = gram.block(rows, sample)
    inner = gram.block(sample, sample)
    weighted = inner * np.outer(scale, scale)
    tail = np.trace(weighted) - eigvalsh(weighted)[-rank:].sum()
    ridge = max(tail, 1e-10 * np.trace(weighted)) / rank
    explained = np.einsum("ij,ji->i", columns, solve(inner + np.diag(ridge / scale**2), columns.T, assume_a="pos"))
    return np.clip((gram.kernel_diagonal()[rows] - explained) / ridge, 1e-12, 1.0), rank


# --- peers from packages ----------------------------------------------------------------------------------------


def thinning(kernel: Kernel, X: Array, m: int, seed: int) -> Chosen:
    """Kernel thinning (Dwivedi, Mackey 2021) with the squared kernel, whose discrepancy is D: the best suited one.

    It halves: so m·2ᵍ points are drawn uniformly, the most that the sample and MOST_THINNED allow, and halved g times.
    """
    try:
        from goodpoints import kt
    except ImportError as error:
        raise Unavailable("goodpoints is not installed: pip install goodpoints") from error
    rounds = int(np.floor(np.log2(min(len(X), MOST_THINNED) / m)))
    drawn = np.random.default_rng(seed).choice(len(X), m * 2**rounds, replace=False)
    squared = GramOperator(kernel, X).block(drawn, drawn) ** 2
    kept = kt.thin_K(squared, squared, rounds, seed=seed, unique=True)
    return drawn[kept], np.full(m, 1 / m)


_HERDING_CHILD = """
import json, sys, time, warnings
warnings.simplefilter("ignore")
import numpy as np
import jax
jax.config.update("jax_enable_x64", True)
import jax.numpy as jnp
from coreax import Data
from coreax.kernels import SquaredExponentialKernel
from coreax.solvers import KernelHerding
from coreax.solvers.coresubset import HerdingState
path, sigma, counts = json.loads(sys.argv[1])
data = Data(jnp.asarray(np.load(path)))
kernel = SquaredExponentialKernel(length_scale=sigma / 2)  # exp(-2 r^2 / sigma^2): the squared kernel
began = time.perf_counter()
means = jax.block_until_ready(kernel.gramian_row_mean(data, block_size=1000))
base = time.perf_counter() - began
for m in counts:
    solver = KernelHerding(coreset_size=m, kernel=kernel, unique=True, block_size=1000)
    for _ in range(2):  # the second is compiled already
        began = time.perf_counter()
        found = np.asarray(solver.reduce(data, HerdingState(means))[0].unweighted_indices)
        seconds = time.perf_counter() - began
    print("FOUND", json.dumps([m, found.tolist(), base + seconds]), flush=True)
"""


def herding(kernel: Kernel, X: Array, counts: tuple[int, ...]) -> Iterator[tuple[int, Landmarks]]:
    """Kernel herding with the squared kernel, all counts in one child process, which takes the time itself.

    coreax forms all differences of coordinates: beyond MOST_HERDED numbers that takes minutes a count, and the same
    rule is followed here with our own products.
    """
    if X.size > MOST_HERDED:
        yield from herded(kernel, X, counts)
        return
    if not COREAX_PYTHON.exists():
        raise Unavailable(f"no interpreter with coreax at {COREAX_PYTHON} (set COREAX_PYTHON)")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "X.npy"
        np.save(path, X)
        arguments = json.dumps([str(path), float(kernel.sigma), list(counts)])
        command = [str(COREAX_PYTHON), "-c", _HERDING_CHILD, arguments]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise Unavailable(f"coreax failed: {(done.stderr.strip() or 'no message').splitlines()[-1]}")
    for line in done.stdout.splitlines():
        if line.startswith("FOUND "):
            m, found, seconds = json.loads(line.removeprefix("FOUND "))
            yield m, Landmarks(np.sort(found), np.full(m, 1 / m), seconds)


def herded(kernel: Kernel, X: Array, counts: tuple[int, ...]) -> Iterator[tuple[int, Landmarks]]:
    """The rule of coreax: the point of largest mean less what those before it have taken, none of them twice.

    The first m points are those of m alone, so that all counts are one run; the time is that up to each.
    """
    began = time.perf_counter()
    squared = GramOperator(kernel**2, X)
    mean, total, found = squared @ np.full(len(X), 1 / len(X)), np.zeros(len(X)), list[int]()
    for m in counts:
        while len(found) < m:
            score = mean - total / (len(found) + 1)
            score[found] = -np.inf
            found.append(int(np.argmax(score)))
            total += squared.block(slice(None), np.array(found[-1:]))[:, 0]
        yield m, Landmarks(np.sort(np.array(found)), np.full(m, 1 / m), time.perf_counter() - began)


METHODS: dict[str, Method] = {
    OURS: Method(quadrature, False, "its own weights, the best on its nodes (`n_nodes=m`)"),
    SAMPLED: Method(
        sampled_quadrature, False, 'the same with `potential="sampled"`; of small samples the pass is made all the same'
    ),
    EVENED: Method(
        evened_quadrature,
        False,
        "the best on nodes that were chosen with `evenness=0.5`: more in thin places",
    ),
    "uniform": Method(uniform, True, "1/m"),
    "k-means, snapped": Method(k_means, True, "shares of the clusters; centres moved to the nearest point"),
    "leverage scores": Method(leverage, True, "recursive ridge leverage scores; weights 1/score, scaled to one"),
    "RPCholesky": Method(pivoted_cholesky, True, "1/m; pivots of `mercer.rp_cholesky`"),
    "kernel thinning": Method(thinning, True, "1/m; goodpoints, halving m·2ᵍ uniform points with the squared kernel"),
    HERDING: Method(
        None,
        False,
        "1/m; greedy, with the squared kernel; in a child process, on MNIST the same rule by our own products",
    ),
}


# --- weights ----------------------------------------------------------------------------------------------------


def optimal_weights(squared: GramOperator, nodes: Array, distortion: Array) -> Array:
    """The v ≥ 0 on these nodes with the least D(v)."""
    return best_weights(squared.block(nodes, nodes), distortion[nodes])


def best_weights(matrix: Array, target: Array) -> Array:
    """The v ≥ 0 with the least ½ vᵀS_II v - vᵀ(Sω)_I: non-negative least squares with a square root of S_II.

    It is ½‖Rv - R⁻ᵀ(Sω)_I‖² up to a constant, S_II = RᵀR. Eigenvalues at rounding level are left out of R: directions
    in which D does not change.
    """
    values, vectors = eigh(matrix)
    kept = values > values[-1] * len(target) * np.finfo(np.float64).eps
    root = np.sqrt(values[kept])
    return nnls((vectors[:, kept] * root).T, (vectors[:, kept].T @ target) / root, maxiter=50 * len(target))[0]
