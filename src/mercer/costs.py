"""What a fit will take: seconds and memory, from fits to a few of the rows on this machine.

A fit is timed on more and more rows, each time twice as many, as long as a few seconds allow. Seconds grow like a power
of the number of rows; its exponent is that of the last two sizes, held between those that fits of this package can
have. The power says nothing of what changes beyond the largest of these sizes, a matrix that is no longer stored for
one, so that an estimate is a range.
"""

from __future__ import annotations

import math
import os
import time
import tracemalloc
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from numbers import Real
from typing import Any, NamedTuple, final

import numpy as np

from mercer.backends import get_config
from mercer.backends.arrays import is_source
from mercer.journal import without_journal
from mercer.validation import is_precomputed
from mercer.wording import size_in_words, time_in_words

_FIRST = 200  # rows of the first fit
_OF_A_FILE = 20_000  # rows that are read of a source, at most
_BEYOND = 4  # times the landmarks, from which on seconds grow as they do for many rows
_SHARE = 0.2  # of the time allowed, after which no larger fit is begun: the next takes four to eight times as long
_SLOPES = {"seconds": (0.8, 3.0), "bytes": (0.0, 2.0)}  # exponents that fits can have
_UNSURE = 0.4  # of the exponent
_SILENT = {"callback": None, "verbose": False, "checkpoint": None}  # a fit that is only timed
_COUNTS = ("landmarks", "n_nodes", "support")  # parameters that may ask for more rows than there are


class Pilot(NamedTuple):
    """One timed fit: the rows, its seconds, and the most bytes it held at a time beyond the data."""

    rows: int
    seconds: float
    bytes: int


@final
@dataclass(frozen=True)
class CostEstimate:
    """What a fit will take.

    Attributes
    ----------
    rows : int
        Of the fit.
    seconds : float
        As the timed fits say.
    fastest, slowest : float
        A range that the seconds lie in, if the fit goes on as it did with fewer rows.
    bytes : float
        Memory beyond the data, where all that is worth it is stored.
    limit : int
        What it may take: ``memory_limit``, or a quarter of what is free.
    pilots : tuple of Pilot
        The fits that were timed.
    most_rows : int
        How many rows would fit into the limit.
    """

    rows: int
    seconds: float
    fastest: float
    slowest: float
    bytes: float
    limit: int
    pilots: tuple[Pilot, ...]
    most_rows: int

    @property
    def fits(self) -> bool:
        """Whether the memory is within the limit."""
        return self.bytes <= self.limit

    @property
    def advice(self) -> str:
        """What to do where it does not fit; empty where it does."""
        if self.fits:
            return ""
        return (
            f"what can be left unstored is made again at every product, and a fit that cannot do without is refused. "
            f"Raise memory_limit, take dtype='float32', which halves it, or landmarks={self.most_rows}, which fits"
        )

    def __str__(self) -> str:
        needed, limit = size_in_words(self.bytes), size_in_words(self.limit)
        room = f"{needed} of memory, {'within' if self.fits else 'beyond'} the limit of {limit}"
        span = f"{time_in_words(self.fastest)} to {time_in_words(self.slowest)}"
        said = f"{self.rows} rows take about {time_in_words(self.seconds)} ({span}) and {room}"
        return f"{said}: {self.advice}." if self.advice else f"{said}."


def estimate_cost(model: Any, X: Any, y: Any = None, *, budget: float = 5.0) -> CostEstimate:
    """Say what ``model.fit(X)`` will take, before it is begun.

    Parameters
    ----------
    model : estimator
        With its parameters; it is copied, and stays as it is.
    X : array of shape (n, d)
        The rows, a data frame, or what :func:`open_rows` returns.
    y : array of shape (n,), optional
        What a regression is fitted to.
    budget : float, default=5
        Seconds that the estimate may take, about.

    Returns
    -------
    CostEstimate
        With ``seconds``, ``bytes``, ``fits``, ``advice``, and a sentence as its text.

    Notes
    -----
    Fits to random rows are timed, with the same parameters, each to twice as many as the last; those that ask for more
    landmarks, nodes or support points than there are rows get as many as there are. Where there are far more rows than
    landmarks the first fit has four times as many as these, which may take longer than the budget. A kernel matrix is
    no set of rows: :class:`mercer.Precomputed` is refused. On a machine with other work the seconds of both are those
    of that work.

    Examples
    --------
    >>> import mercer
    >>> X, _ = mercer.datasets.two_moons(n_points=3000)
    >>> cost = mercer.estimate_cost(mercer.QuadratureSparsifier(n_nodes=50), X, budget=1.0)
    >>> cost.fits
    True
    """
    if isinstance(budget, bool) or not isinstance(budget, Real) or not 0 < budget < math.inf:
        raise ValueError(f"budget={budget!r} must be a positive number of seconds.")
    if is_precomputed(getattr(model, "kernel", None)) or getattr(model, "metric", "") == "precomputed":
        raise ValueError("A kernel matrix has no rows to try a fit on: estimate the cost with the points themselves.")
    if not hasattr(model, "fit") or isinstance(X, str | os.PathLike):
        raise TypeError("estimate_cost takes an estimator and its rows: open a file by mercer.open_rows(path).")
    n, rng = int(X.shape[0]) if hasattr(X, "shape") else len(X), np.random.default_rng(0)
    if not n:
        raise ValueError("X has no rows: there is nothing to fit.")
    by_blocks = is_source(X)
    if by_blocks:
        X = X[np.sort(rng.choice(n, min(n, _OF_A_FILE), replace=False))]
    order = rng.permutation(len(X) if by_blocks else n)

    def fit(rows: int) -> None:
        _copy(model, rows).fit(*(_rows(part, np.sort(order[:rows])) for part in (X, y) if part is not None))

    with without_journal(), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the fit itself will say it
        return _extrapolated(_timed(fit, order.size, budget, _first_size(model, n)), n, by_blocks=by_blocks)


def _first_size(model: Any, n: int) -> int:
    """The rows of the first fit: where there are many times the landmarks, so many that their number stands still."""
    asked = model.get_params(deep=False).get("landmarks")
    is_number = isinstance(asked, (int, np.integer)) and not isinstance(asked, bool)
    beyond = _BEYOND * int(asked) if is_number else 0
    return min(n, max(_FIRST, beyond if n > _BEYOND * beyond else 0))


def _timed(fit: Callable[[int], None], n: int, budget: float, first: int = _FIRST) -> list[Pilot]:
    """Fits to more and more rows, as long as time allows."""
    rows, pilots, began = min(n, first), list[Pilot](), time.monotonic()
    fit(rows)  # what is compiled and imported on the way
    while True:
        seconds = min(_seconds(fit, rows) for _ in range(2))  # other work on the machine only adds to them
        pilots.append(Pilot(rows, seconds, _most_bytes(fit, rows)))
        late = time.monotonic() - began + 12 * seconds > budget or seconds > _SHARE * budget
        if rows == n or (late and len(pilots) > 1):
            return pilots
        rows = min(n, 2 * rows)


def _seconds(fit: Callable[[int], None], rows: int) -> float:
    since = time.perf_counter()
    fit(rows)
    return time.perf_counter() - since


def _most_bytes(fit: Callable[[int], None], rows: int) -> int:
    tracing = tracemalloc.is_tracing()
    if not tracing:
        tracemalloc.start()
    tracemalloc.reset_peak()
    before = tracemalloc.get_traced_memory()[0]
    try:
        fit(rows)
        return max(0, tracemalloc.get_traced_memory()[1] - before)
    finally:
        if not tracing:
            tracemalloc.stop()


def _extrapolated(pilots: list[Pilot], n: int, *, by_blocks: bool = False) -> CostEstimate:
    """The cost of n rows; of those of a file, memory grows up to the limit alone, which says how many are read."""
    last, limit = pilots[-1], get_config().memory_bytes
    ratio = n / last.rows
    growth, of_bytes = _slope(pilots, "seconds"), _slope(pilots, "bytes")
    needed = last.bytes * ratio**of_bytes
    if by_blocks:
        needed = max(last.bytes, min(needed, limit))
    most = n if needed <= limit else last.rows * (limit / max(last.bytes, 1)) ** (1 / max(of_bytes, 1.0))
    return CostEstimate(
        rows=n,
        seconds=last.seconds * ratio**growth,
        fastest=last.seconds * ratio ** max(0.0, growth - _UNSURE),
        slowest=last.seconds * ratio ** (growth + _UNSURE),
        bytes=needed,
        limit=limit,
        pilots=tuple(pilots),
        most_rows=int(min(n, most)),
    )


def _slope(pilots: list[Pilot], what: str) -> float:
    """The exponent of the last two sizes, within what it can be; where there is one size, the middle of that."""
    low, high = _SLOPES[what]
    if len(pilots) < 2:
        return (low + high) / 2
    before, last = pilots[-2:]
    risen = max(getattr(last, what), 1e-9) / max(getattr(before, what), 1e-9)
    return min(high, max(low, math.log(risen) / math.log(last.rows / before.rows)))


def _copy(model: Any, rows: int) -> Any:
    """The same model, which says nothing, and asks for no more rows than there are."""
    from sklearn.base import clone

    copy = clone(model)
    params = copy.get_params(deep=False)
    changed: dict[str, Any] = {name: value for name, value in _SILENT.items() if name in params}
    for name in _COUNTS:
        asked = params.get(name)
        if isinstance(asked, (int, np.integer)) and not isinstance(asked, bool) and asked > rows:
            changed[name] = rows
    return copy.set_params(**changed)


def _rows(part: Any, rows: np.ndarray[Any, Any]) -> Any:
    """Some rows of an array, a data frame or a list."""
    if hasattr(part, "iloc"):
        return part.iloc[rows]
    return part[rows] if hasattr(part, "shape") else [part[row] for row in rows]
