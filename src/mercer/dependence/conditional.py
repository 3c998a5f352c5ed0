"""Does Y depend on X once Z is known? Tests of conditional independence by what X and Y have beside Z.

X and Y are independent given Z exactly if the residuals φ(x) - E[φ(x) given z] and ψ(y) - E[ψ(y) given z] of features
of characteristic kernels are uncorrelated at every z (Daudin 1980; Zhang et al. 2011). With the residuals rᵢ and sᵢ of
kernel ridge regressions and a kernel κ of z, the statistic is the squared Hilbert-Schmidt norm of their covariance,

    T = (1/n) Σᵢⱼ ⟨rᵢ, rⱼ⟩ ⟨sᵢ, sⱼ⟩ κ(zᵢ, zⱼ) = n ‖(1/n) Σᵢ rᵢ ⊗ ζ(zᵢ) ⊗ sᵢ‖²,

κ = 1 for what holds at all z alike and a kernel that tells values of z apart for what does not (Pogodin et al. 2024).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import product
from typing import Any, Literal, final

import numpy as np

from mercer.backends.arrays import Array
from mercer.dependence.aggregation import aggregated, kernel_parts
from mercer.dependence.cells import neighbour_cells
from mercer.dependence.conditional_residuals import regressors, residuals
from mercer.dependence.principal_features import principal_features
from mercer.dependence.resampling import permutations
from mercer.dependence.residual_covariance import ResidualCovariance, Transform
from mercer.dependence.result import KernelTestResult
from mercer.dependence.variables import Variable, variable
from mercer.kernels import Gaussian
from mercer.kernels.checks import as_generator
from mercer.validation import one_of, whole_number

Method = Literal["neighbours", "residuals"]
_WIDTHS = (1.0, 4.0)  # of the default kernels of X and Y, times the median: shapes, and what is nearly a straight line
_HANDICAP = 0.25  # of all pairs of them but the widest, which sees straight lines: fine shapes are found all the same
_Z_WIDTHS = (0.5, 1.0, 2.0, 4.0)  # of the regressions, which choose among them
_RANK = 60  # of the features of X and Y
_PLACES = 3  # coordinates of z by which κ tells its values apart
_LEAST_ROWS = 8


@final
@dataclass(frozen=True, eq=False, repr=False)
class ConditionalTestResult(KernelTestResult):
    """What :func:`mercer.conditional_independence_test` found.

    Attributes
    ----------
    statistic, pvalue, null_distribution, null, n_resamples, kernel, parts
        As in every :class:`mercer.dependence.KernelTestResult`; ``kernel`` holds those of X, of Y and of Z. The
        kernel of a part is (k of X, k of Y, κ), κ None where it is 1.
    method : str
        "neighbours" or "residuals".
    explained : tuple of two floats
        The parts of the variance of the features of X, and of Y, that Z predicts on rows that were left out. Where the
        truth is known to be much more, the regressions fall short, and a small p-value may come from Z alone.
    cells : array of shape (n,) or None
        Of "neighbours": the group of each row, inside of which Y is reordered.
    """

    method: str
    explained: tuple[float, float]
    cells: Array | None

    def _found(self) -> str:
        return "Y depends on X beyond what Z explains"

    def _not_found(self) -> str:
        return "No sign that Y depends on X beyond what Z explains"

    def _statistic_name(self) -> str:
        return "the largest standardised covariance of residuals" if self.parts else "the covariance of residuals"

    def _resamples_name(self) -> str:
        return "reorderings among neighbours" if self.null == "permutation" else super()._resamples_name()


def conditional_independence_test(
    X: Any,
    Y: Any,
    Z: Any,
    *,
    x_kernel: Any = None,
    y_kernel: Any = None,
    z_kernel: Any = None,
    method: Method = "neighbours",
    n_neighbors: int = 8,
    n_resamples: int = 999,
    rng: Any = None,
    progress: Callable[[float], None] | None = None,
) -> ConditionalTestResult:
    """Test whether X and Y are independent given Z, from n rows of all three.

    What Z predicts of X and of Y is taken out by kernel ridge regression, tuned by leaving rows out, and the
    statistic is the covariance of what is left. Its law under independence comes from one of two ways:

    ``"neighbours"``
        The residuals of Y are reordered inside groups of rows with nearly the same Z. Where groups have one value of Z,
        as with categories, the p-value is exact. Otherwise it is so in the limit of smooth regressions (Kim et al.
        2022).
    ``"residuals"``
        Residuals get random signs (a wild bootstrap; Shah and Peters 2020, Pogodin et al. 2024). It needs no
        neighbours, so it suits a Z of several columns, and is valid for large n where both regressions are good.

    No test of this question is valid for all laws with a continuous Z and has power against any (Shah and Peters 2020,
    theorem 2): these two trust that E[φ(X) given z] is smooth enough to be learnt from n rows. If it is not, what Z
    does to both looks like dependence. ``explained`` tells how much was learnt.

    Parameters
    ----------
    X, Y, Z : arrays of shape (n, ·), vectors of numbers or texts, or data frames
        The observations.
    x_kernel, y_kernel : Kernel or sequence of them, optional
        Of X and Y. Left out, numbers have Gaussians of once and four times the median distance, and all pairs of them
        are put into one p-value.
    z_kernel : Kernel or sequence of them, optional
        Of the regressions, which take the one that predicts best, for X and for Y. Left out, numbers have Gaussians of
        0.5, 1, 2 and 4 times the median distance. What depends on the data is fixed from them.
    method : {"neighbours", "residuals"}, default="neighbours"
        See above.
    n_neighbors : int, default=8
        Of "neighbours": the fewest rows of a group; they have up to twice as many, more where rows have the same Z.
        Fewer keep closer to equal Z, more have more power.
    n_resamples : int, default=999
        Reorderings, or draws of signs.
    rng : int, Generator or None
        The source of chance.
    progress : callable, optional
        Called with the fraction done.

    Returns
    -------
    ConditionalTestResult

    Notes
    -----
    Kernel matrices are replaced by factors of low rank r, 60 at most for X and Y and 200 for the regressions. Cost:
    n r² and, for each resample, n p q for p and q features, some dozens each for a few columns. Memory: n r.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer import conditional_independence_test
    >>> noise = np.random.default_rng(0)
    >>> z = noise.normal(size=200)
    >>> x, y = z + 0.5 * noise.normal(size=200), z**2 + 0.5 * noise.normal(size=200)
    >>> conditional_independence_test(x, y, z, rng=0).rejects()
    False
    >>> conditional_independence_test(x, y + x, z, rng=0).rejects()
    True
    """
    one_of("neighbours", "residuals")(method, "method")
    n_resamples = whole_number(n_resamples, "n_resamples", 1)
    size = whole_number(n_neighbors, "n_neighbors", 2)
    generator = as_generator(rng)
    x, y = _read(X, x_kernel, "X", _WIDTHS), _read(Y, y_kernel, "Y", _WIDTHS)
    z = _read(Z, z_kernel, "Z", _Z_WIDTHS)
    n = _same_rows(x, y, z)
    choices = [regressors(kernel, z.points, generator) for kernel in z.kernels]
    of_x, of_y = (
        [residuals(_features(k, v.points, name, generator), choices) for k in v.kernels]
        for v, name in ((x, "X"), (y, "Y"))
    )
    places = _features(z.kernels[len(z.kernels) // 2], z.points, "Z", generator)
    left = [block for each in of_x for block in (each.values, _by_place(each.values, places[:, :_PLACES]))]
    covariance = ResidualCovariance(left, [each.values for each in of_y])
    cells = neighbour_cells(places, size) if method == "neighbours" else None
    resamples = _signs(n, generator) if cells is None else _reorderings(cells, n_resamples, generator)
    statistics = covariance.statistics(resamples, n_resamples, progress)
    named = list(product(x.kernels, (None, z.kernels[len(z.kernels) // 2]), y.kernels))
    handicap = _HANDICAP if x_kernel is y_kernel is None else 0.0
    handicaps = [0.0 if pair == (x.kernels[-1], None, y.kernels[-1]) else handicap for pair in named]
    together = aggregated(statistics, covariance.roundings(statistics), handicaps)
    parts = kernel_parts([(kx, ky, kappa) for kx, kappa, ky in named], statistics, together)
    return ConditionalTestResult(
        statistic=together.observed,
        pvalue=together.pvalue,
        null_distribution=together.null,
        null="wild bootstrap" if cells is None else "permutation",
        n_resamples=n_resamples,
        kernel=(x.kernels, y.kernels, z.kernels),
        parts=parts,
        method=method,
        explained=(max(each.explained for each in of_x), max(each.explained for each in of_y)),
        cells=cells,
    )


def _read(values: Any, kernels: Any, name: str, widths: Sequence[float]) -> Variable:
    """A variable with the kernels given, or with Gaussians of several widths where the default is one."""
    read = variable(values, kernels, name)
    default = read.kernels[0]
    if kernels is not None or not isinstance(default, Gaussian):
        return read
    lengths = np.asarray(default.sigma)
    scaled = (width * lengths for width in widths)
    return replace(read, kernels=tuple(Gaussian(tuple(each.tolist()) if each.ndim else float(each)) for each in scaled))


def _features(kernel: Any, points: Any, name: str, rng: np.random.Generator) -> Array:
    """Coordinates of one variable in the space of its kernel, at least one."""
    features = principal_features(kernel, points, _RANK, rng)
    if not features.shape[1]:
        raise ValueError(f"The rows of {name} are all alike to {kernel!r}: choose another kernel, or leave it out.")
    return features


def _same_rows(x: Variable, y: Variable, z: Variable) -> int:
    """As many rows of all three: their number."""
    if not x.size == y.size == z.size:
        raise ValueError(f"X has {x.size} rows, Y {y.size} and Z {z.size}: give one row of each for every observation.")
    if x.size < _LEAST_ROWS:
        raise ValueError(f"X, Y and Z have {x.size} rows: to take out what Z explains, {_LEAST_ROWS} are needed.")
    return x.size


def _by_place(values: Array, places: Array) -> Array:
    """rᵢ ⊗ ζ(zᵢ), with coordinates ζ of mean zero: what it adds up to differs from one z to another."""
    return np.asarray((values[:, :, None] * places[:, None, :]).reshape(values.shape[0], -1))


def _reorderings(cells: Array, count: int, rng: np.random.Generator) -> Iterator[Transform]:
    if np.bincount(cells).max() < 2:
        raise ValueError("No two rows are neighbours in Z, so that nothing can be reordered: raise n_neighbors.")
    for block in permutations(cells.size, count, rng, strata=cells):
        for order in block:
            yield partial(np.take, indices=order, axis=0)


def _signs(n: int, rng: np.random.Generator) -> Iterator[Transform]:
    while True:
        signs = rng.choice((-1.0, 1.0), size=(n, 1))
        yield partial(np.multiply, signs)
