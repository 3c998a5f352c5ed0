"""What the embedding looks like at every bandwidth, so that one can be chosen."""

from __future__ import annotations

import warnings
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from mercer.backends.arrays import Array, like, namespace, to_numpy
from mercer.backends.moved import in_memory, moves
from mercer.embedding.neighbourhoods import N_NEIGHBORS, nearest_by_kernel, nearest_points, shared
from mercer.embedding.rank_path_result import STAYS, Diagnosis, RankPath, RankPathEntry
from mercer.embedding.sdp import SDPEmbedding
from mercer.kernels import Kernel
from mercer.kernels.checks import as_generator
from mercer.linalg.lanczos import BlockLanczos
from mercer.operators import DiffusionOperator, GramOperator
from mercer.operators.diffusion import DegenerateKernelError
from mercer.solvers import Status
from mercer.validation import checked_kernel, checked_points, kernel_on_columns, resolved_kernel, whole_number

_BANDWIDTHS = ("sigma", "length_scale")
_NEARLY_CONSTANT = 1e-2
_UNDETERMINED = 1e-2
_RIGID = 1e-4  # measured: above 0.3 where solutions from different starts agree, below 1e-16 where they do not
_GRID = 2.0 ** np.arange(-4, 2.25, 0.5)
_DENSE_UP_TO = 1500
_DEPTHS = range(10, 61, 10)
_EIGENVALUE_ERROR = 1e-6
_ASKED = 1000  # points whose neighbours are compared, evenly spread over the rows


def rank_path(
    X: Any,
    sigmas: Any = None,
    *,
    kernel: Kernel | None = None,
    parameter: str | None = None,
    n_eigenvalues: int = 5,
    max_products: int | None = 20_000,
    random_state: Any = None,
    **parameters: Any,
) -> RankPath:
    """Embed X at every bandwidth of a grid, say what each of them shows, and suggest one.

    ``rank_path(X).suggested_kernel`` is a kernel with the suggested bandwidth, and ``rank_path(X).reason`` says why.
    The rank of the solution, the spectrum of B / Tr B and the eigenvalues of diffusion maps change with the bandwidth.
    Where they stay the same over a range of bandwidths they belong to the data.

    Parameters
    ----------
    X : array of shape (n, d)
        The points; the fits run in their array library, and the path is a table of NumPy arrays.
    sigmas : array of shape (m,), optional
        Bandwidths, strictly rising. By default 13 of them, from 1/16 to 4 times the median distance (the rule
        ``"median"`` of the kernel, in its own metric), each √2 times the one before.
    kernel : Kernel, default=None
        Any kernel with a bandwidth: ``sigma`` or ``length_scale`` among its parameters, those of inner kernels
        included. The bandwidth it has is ignored. None means :class:`~mercer.Gaussian`.
    parameter : str, optional
        The name of the bandwidth, needed only where the kernel has several, as in ``"left__sigma"``.
    n_eigenvalues : int, default=5
        Eigenvalues of diffusion maps to compute.
    max_products : int or None, default=20000
        Columns the operator may be applied to for one bandwidth. Where more are needed the bandwidth is nearly always
        too small to be of use; the entry then says ``not converged``, with the gap that was reached.
    random_state : None, int or generator, default=None
        The starting point.
    **parameters
        Further parameters of :class:`~mercer.SDPEmbedding`, such as ``tol`` or ``initial_rank``. ``warm_start`` is
        True and ``n_levels`` is 1 unless given.

    Returns
    -------
    RankPath
        One entry for every bandwidth. A degenerate one has a diagnosis and no embedding; it does not end the path. On
        Ctrl-C the path ends with the bandwidths fitted so far.

    Notes
    -----
    The user guide says what the diagnoses mean and how a bandwidth is suggested. Bandwidths are fitted from large to
    small, each from the solution of the one before.

    Cost: a fit for every bandwidth, and for the eigenvalues of diffusion maps a dense eigenproblem up to n = 1500 or
    60 products of ``n_eigenvalues`` + 3 columns at most beyond, where they are exact to 1e-6 or too small. Neighbours
    are compared for 1000 points at most.

    Examples
    --------
    >>> from mercer import rank_path
    >>> from mercer.datasets import three_clusters
    >>> X, labels = three_clusters()
    >>> path = rank_path(X, [1e-6, 1.2, 3.6, 1e9], random_state=0)
    >>> path.ranks
    array([0, 2, 2, 0])
    >>> [diagnosis.value for diagnosis in path.diagnoses]
    ['isolated', 'informative', 'informative', 'constant']
    >>> path.suggested_kernel
    Gaussian(sigma=1.2)
    """
    count = whole_number(n_eigenvalues, "n_eigenvalues", 1)
    kernel = clone(checked_kernel(kernel))
    name = _bandwidth_name(kernel, parameter)
    if parameters.get("diagonal") is not None:
        raise ValueError("rank_path tells bandwidths apart by the lengths that kernels give: leave out diagonal.")
    defaults = {"warm_start": True, "n_levels": 1}
    model = SDPEmbedding(kernel, max_products=max_products, random_state=random_state, **{**defaults, **parameters})
    moved = moves((X,))
    X = checked_points(model, X, fitting=True)
    kernel = kernel_on_columns(model, kernel)
    if (X[:1] == X).all():
        raise DegenerateKernelError("All points are equal: there is nothing to embed.")
    middle = clone(kernel).set_params(**{name: "median"}).resolve(X)
    grid = float(middle.get_params()[name]) * _GRID if sigmas is None else _checked_sigmas(sigmas)
    sample = _Sample.of(X, middle)
    entries: list[RankPathEntry] = []
    for sigma in grid[::-1].tolist():
        model.set_params(kernel=clone(kernel).set_params(**{name: sigma}))
        entries.append(_entry(model, sample, sigma, count))
        if entries[-1].status is Status.INTERRUPTED:
            break
    path = RankPath(tuple(entries[::-1]), kernel, name)
    return in_memory(path) if moved else path


class _Sample(NamedTuple):
    """The points, and the nearest others of some of them by their affinity at the median bandwidth."""

    points: Any
    asked: Array
    neighbours: Array

    @classmethod
    def of(cls, X: Any, kernel: Kernel) -> _Sample:
        n = X.shape[0]
        asked = np.unique(np.linspace(0, n - 1, min(n, _ASKED)).astype(np.int64))
        return cls(X, asked, nearest_by_kernel(kernel, X, asked, min(N_NEIGHBORS, n - 1)))

    def kept(self, coordinates: Array) -> float:
        """The share of these neighbours that are neighbours in the embedding too."""
        near = nearest_points(to_numpy(coordinates), self.asked, self.neighbours.shape[1])
        return float(shared(self.neighbours, near).mean())


def _entry(model: SDPEmbedding, sample: _Sample, sigma: float, count: int) -> RankPathEntry:
    """Fit at one bandwidth; a degenerate one becomes an entry without an embedding."""
    X = sample.points
    try:
        with warnings.catch_warnings():  # the entry says both, for its bandwidth
            warnings.simplefilter("ignore", ConvergenceWarning)
            warnings.filterwarnings("ignore", "All points look nearly alike", UserWarning)
            model.fit(X)
    except DegenerateKernelError as error:
        return RankPathEntry(sigma, _degenerate(resolved_kernel(model.kernel, X), X), str(error))
    weights = 1.0 if model.sample_weight_ is None else model.sample_weight_
    staying = model.diagonal_ + model.stationary_ / weights  # k(x, x)/m(x), for d = k(x, x)/m - m/vol
    typical, signal = _median(staying), float((model.diagonal_ / staying).max())
    lengths = weights * model.diagonal_
    undetermined, rigidity = _undetermined(model, float(lengths.sum())), _rigidity(model, lengths)
    flat = undetermined > _UNDETERMINED or rigidity < _RIGID
    diagnosis = _diagnosis(model.status_, typical, signal, flat)
    certificate = model.certificate_
    return RankPathEntry(
        sigma,
        diagnosis,
        diagnosis.message,
        model.rank_,
        to_numpy(model.eigenvalues_),
        model.history_[-1].objective if certificate is None else certificate.lower,
        float("nan") if certificate is None else certificate.relative_gap,
        model.status_,
        to_numpy(_diffusion_eigenvalues(model, X, count)),
        model.n_products_,
        model.n_stand_in_products_,
        typical,
        signal,
        undetermined,
        rigidity,
        model.levels_[0].correlation,
        sample.kept(model.embedding_),
    )


def _undetermined(model: SDPEmbedding, trace: float) -> float:
    """How much of Tr B an embedding within ``tol`` of the optimum may have outside the dimensions of the optimum.

    Every feasible B has ⟨Ā, B⟩ = Σ yᵢdᵢ - ⟨S, B⟩ with the dual slack S = Diag(y) - Ā, and Σ yᵢdᵢ is the optimum. If μ
    is the least eigenvalue of S beyond the first rank(B) of them, a share s of the trace outside their space costs at
    least s·μ·Tr B: so s ≤ tol · optimum / (μ Tr B).
    """
    certificate = model.certificate_
    if certificate is None or certificate.least_eigenvalues.shape[0] <= model.rank_:
        return float("nan")
    cost = float(certificate.least_eigenvalues[model.rank_]) * trace
    allowed = model.tol * abs(certificate.lower)
    return allowed / cost if cost > allowed else 1.0


def _rigidity(model: SDPEmbedding, lengths: Array) -> float:
    """The least χ² distance from d of the diagonal of B + UΔUᵀ, ‖Δ‖ = 1, U the eigenvectors of B, Δ symmetric.

    If it is zero, B can move along a line of feasible matrices in its own dimensions without losing optimality: it is
    not the only solution. With B = Σβₖuₖuₖᵀ this is the least eigenvalue of Σᵢ (uᵢᵀΔuᵢ)²/dᵢ as a quadratic form in Δ.
    """
    active, xp = lengths > 0, namespace(lengths)
    directions = model.coordinates_[active] / xp.sqrt(model.diagonal_[active][:, None] * model.eigenvalues_)
    k, l = (like(side, lengths) for side in np.triu_indices(model.rank_))
    products = directions[:, k] * directions[:, l] * (1.0 + (2.0**0.5 - 1.0) * (k != l))
    shares = xp.sqrt(lengths[active] / xp.sum(lengths))
    return float(xp.linalg.svdvals(shares[:, None] * products)[-1] ** 2)


def _median(values: Array) -> float:
    """The middle value, or the mean of the two in the middle."""
    ordered, n = namespace(values).sort(values), values.shape[0]
    return 0.5 * float(ordered[(n - 1) // 2] + ordered[n // 2])


def _diagnosis(status: Status, staying: float, signal: float, flat: bool) -> Diagnosis:
    """The reason first: a bandwidth that is far too small or too large also keeps the solver from converging."""
    if staying > STAYS:
        return Diagnosis.NEARLY_ISOLATED
    if signal <= _NEARLY_CONSTANT:
        return Diagnosis.NEARLY_CONSTANT
    if status not in (Status.CONVERGED, Status.FLAT):
        return Diagnosis.NOT_CONVERGED
    return Diagnosis.FLAT if flat or status is Status.FLAT else Diagnosis.INFORMATIVE


def _degenerate(kernel: Kernel, X: Any) -> Diagnosis:
    """Which end a kernel that was refused lies at."""
    gram = GramOperator(kernel, X)
    sums, diagonal = gram.row_sums(), gram.diagonal()
    positive = bool((sums > 0).all())
    if positive and _median(diagonal / sums) > STAYS:
        return Diagnosis.ISOLATED
    if positive and float((1 - sums**2 / (sums.sum() * diagonal)).max()) <= _NEARLY_CONSTANT:
        return Diagnosis.CONSTANT
    return Diagnosis.DEGENERATE


def _diffusion_eigenvalues(model: SDPEmbedding, X: Any, count: int) -> Array:
    """λ₁, λ₂, …: exact for small n; beyond, from below by block Lanczos, whose block finds eigenvalues that repeat."""
    operator = DiffusionOperator(GramOperator(model.kernel_, X))
    n, xp = operator.shape[0], namespace(operator.reference)
    count = min(count, n - 1)
    if n <= _DENSE_UP_TO:
        return xp.flip(xp.linalg.eigvalsh(operator.to_dense())[-count:], axis=0)
    nothing = xp.empty((n, 0), dtype=xp.float64, device=operator.reference.device)
    space = BlockLanczos(operator.__matmul__, nothing, as_generator(model.random_state), block=count + 3)
    for depth in _DEPTHS:
        space.extend(depth)
        if (space.residual_norms()[:count] <= _EIGENVALUE_ERROR).all():
            break
    return space.ritz_values()[:count]


def _bandwidth_name(kernel: Kernel, wanted: str | None) -> str:
    """The parameter to vary: the one asked for, or the only one that is a bandwidth."""
    names = [name for name in kernel.get_params() if name.rpartition("__")[2] in _BANDWIDTHS]
    if not names:
        raise ValueError(f"{kernel!r} has no bandwidth to vary: take one such as Gaussian(), Laplacian() or Matern().")
    if wanted is None and len(names) > 1:
        raise ValueError(f"{kernel!r} has several bandwidths: choose one by parameter={' or '.join(map(repr, names))}.")
    if wanted is not None and wanted not in names:
        raise ValueError(f"parameter={wanted!r} is no bandwidth of {kernel!r}, which has {', '.join(names)}.")
    return names[0] if wanted is None else wanted


def _checked_sigmas(sigmas: Any) -> Array:
    try:
        grid = np.asarray(sigmas, dtype=np.float64)
    except (TypeError, ValueError):
        raise ValueError(f"sigmas={sigmas!r} must be a sequence of positive numbers.") from None
    if grid.ndim != 1 or grid.size == 0:
        raise ValueError(f"sigmas must be a sequence of at least one number, not of shape {grid.shape}.")
    if not np.all(np.isfinite(grid) & (grid > 0)):
        bad = grid[~(np.isfinite(grid) & (grid > 0))][0]
        raise ValueError(f"sigmas has {bad:g}: every bandwidth must be a finite number greater than 0.")
    if np.any(np.diff(grid) <= 0):
        at = int(np.argmax(np.diff(grid) <= 0))
        raise ValueError(f"sigmas must rise strictly, but {grid[at]:g} is followed by {grid[at + 1]:g}: sort them.")
    return grid
