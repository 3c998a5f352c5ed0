"""Samples of every shape, scale, dtype and layout that a person may hand over, drawn option by option.

``pick(options)`` returns one of them: Hypothesis where it shrinks, a generator in a long run. The first option is the
plainest.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

ROWS = (30, 60, 1, 2, 3, 5, 8, 13, 20, 40, 25, 50)
COLUMNS = (2, 1, 3, 7)
KINDS = (
    *("normal", "clusters", "few different", "constant column", "grid", "line", "outlier", "binary", "pairs") * 2,
    "equal",
)
SCALES = (*[1.0] * 6, 1e-150, 1e150, 1e-300, 1e300, 1e-20, 1e8)
OFFSETS = (*[0.0] * 4, 1.0, 1e8)
DTYPES = (*["float64"] * 3, "float32", "int64", "int8", "float16", "bool")
LAYOUTS = ("plain", "fortran", "read-only", "strided", "reversed", "list")
WEIGHTS = (*["none"] * 12, "equal", "random", "some zero", "all but one zero", "all zero", "huge", "tiny", "uneven")
TARGETS = ("numbers", "two classes", "three classes", "texts", "constant", "huge", "tiny", "one of its own", "line")


@dataclass(frozen=True)
class Sample:
    """Points, weights and targets, with the words that they were drawn by."""

    X: object
    weights: object
    y: object
    said: str

    @property
    def points(self):
        """The points as they are read: in double precision."""
        return np.asarray(self.X, dtype=np.float64)


def draw_sample(pick, *, rows=ROWS, columns=COLUMNS):
    n, d, seed = pick(rows), pick(columns), pick(tuple(range(100)))
    kind, scale, offset = pick(KINDS), pick(SCALES), pick(OFFSETS)
    dtype, layout = pick(DTYPES), pick(LAYOUTS)
    weights, target = pick(WEIGHTS), pick(TARGETS)
    rng = np.random.default_rng(seed)
    values = points_of(kind, n, d, rng)
    if dtype not in ("float64", "float32"):  # which have no room for other scales
        scale, offset = 1.0, min(offset, 1.0)
    X = laid_out(converted((values + offset) * scale, dtype), layout)
    said = f"n={n} d={d} seed={seed} {kind} ·{scale:g} +{offset:g} {dtype} {layout} weights: {weights} y: {target}"
    return Sample(X, weights_of(weights, n, rng), targets_of(target, values, rng), said)


def points_of(kind, n, d, rng):
    values = rng.standard_normal((n, d))
    if kind == "clusters":
        values += 8.0 * rng.integers(0, 3, (n, 1))
    elif kind == "few different":
        values = values[rng.integers(0, min(n, 4), n)]
    elif kind == "equal":
        values[:] = values[0]
    elif kind == "constant column":
        values[:, -1] = 3.0
    elif kind == "grid":
        values = rng.integers(-2, 3, (n, d)).astype(float)
    elif kind == "line":
        values = np.outer(np.linspace(-1, 1, n), np.ones(d))
    elif kind == "outlier":
        values[-1] = 1e6
    elif kind == "binary":
        values = rng.integers(0, 2, (n, d)).astype(float)
    elif kind == "pairs":  # that differ in the last digits alone
        values[1::2] = values[: n // 2 * 2 : 2] * (1 + 1e-15)
    return values


def converted(values, dtype):
    """The values in another type, where integers keep something of them."""
    kind = np.dtype(dtype)
    if kind.kind == "i":
        room = np.iinfo(kind)
        return np.clip(np.rint(np.clip(values, -1e9, 1e9) * 3), room.min // 2, room.max // 2).astype(kind)
    with np.errstate(over="ignore", under="ignore"):
        return values > 0 if kind.kind == "b" else values.astype(kind)


def laid_out(X, layout):
    if layout == "fortran":
        return np.asfortranarray(X)
    if layout == "strided":
        return np.repeat(X, 2, axis=0)[::2]
    if layout == "reversed":
        return X[::-1].copy()[::-1]
    if layout == "list":
        return X.tolist()
    if layout == "read-only":
        X.setflags(write=False)
    return X


def weights_of(kind, n, rng):
    drawn = rng.random(n) + 0.1
    made = {
        "none": None,
        "equal": np.ones(n),
        "random": drawn,
        "some zero": drawn * (np.arange(n) % 3 > 0),
        "all but one zero": np.where(np.arange(n) == 0, 1.0, 0.0),
        "all zero": np.zeros(n),
        "huge": drawn * 1e300,
        "tiny": drawn * 1e-300,
        "uneven": 10.0 ** rng.uniform(-200, 0, n),
    }
    return made[kind]


def targets_of(kind, values, rng):
    n = len(values)
    line = values[:, 0]
    made = {
        "numbers": line + 0.1 * rng.standard_normal(n),
        "two classes": (np.arange(n) % 2).astype(int),
        "three classes": rng.integers(0, 3, n),
        "texts": np.array(["left", "right"])[np.arange(n) % 2],
        "constant": np.full(n, 2.5),
        "huge": 1e150 * line,
        "tiny": 1e-150 * line,
        "one of its own": (np.arange(n) == 0).astype(int),
        "line": np.linspace(-1, 1, n),
    }
    return made[kind]
