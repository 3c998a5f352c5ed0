"""The certificate of a fitted embedding, recomputed from its coordinates, its kernel and the data alone.

All else that a person can read off the model or predict with follows from these three: it is computed again, in the
code that ``fit`` uses, and a model that says otherwise is refused.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from mercer.backends import get_config
from mercer.backends.arrays import (
    Array,
    as_double,
    dtype_name,
    is_tensor,
    like,
    namespace,
)
from mercer.certificates import Certificate, certify_elliptope
from mercer.consistency import same_points
from mercer.embedding.degeneracy import widened
from mercer.embedding.diffusion_problem import DiffusionProblem
from mercer.embedding.extension import Extension, LevelExtension, embedded_rows
from mercer.embedding.levels import Complement, Level, PosedLevel, level_weights
from mercer.embedding.prescribed import Prescribed
from mercer.embedding.sdp import SDPEmbedding
from mercer.kernels import Kernel, Precomputed
from mercer.kernels.base import spelled
from mercer.kernels.checks import as_generator
from mercer.operators import DiffusionOperator, ProjectedOperator
from mercer.support import Support, stored_support
from mercer.validation import checked_points

_CLOSE = {"float64": 1e-9, "float32": 1e-3}  # two computations of one thing, in the same arithmetic
_PARTS = (
    "kernel_",
    "embedding_",
    "coordinates_",
    "levels_",
    "rank_",
    "eigenvalues_",
    "diagonal_",
    "stationary_",
    "landmarks_",
    "sample_weight_",
    "_extension",
    "_n_features_out",
)
_EXTENDED = 1e-6  # directions of new points, where averages that nearly vanish are divided by their length


def verify_embedding(
    model: SDPEmbedding,
    X: Any,
    *,
    extended: bool = False,
    failure_probability: float = 1e-9,
    random_state: Any = None,
) -> Certificate:
    """Certify a fitted embedding again, believing nothing that its solver left behind.

    The kernel operator is built from ``model.kernel_`` and X, the point H from the directions of the coordinates, and
    the bounds from these two. See :func:`mercer.verify`.
    """
    check_is_fitted(model)
    _check_parts(model)
    rng = as_generator(random_state).spawn(1)[0]
    X = checked_points(model, X, fitting=False)
    _check_rows(model, X, extended)
    support = Support(None, None) if extended else stored_support(model, X)
    points = support.points(X, model.kernel_)
    prescribed = _prescribed(model, X, support, extended)
    programme = DiffusionProblem.of(model.kernel_, points, support.scaled, rng, prescribed=prescribed)
    if extended:
        directions = programme.exact.point_of(_directions(model, X, programme))
        return certify_elliptope(programme.exact, directions, rng=rng, failure_probability=failure_probability)
    levels = _posed_levels(model, programme, support)
    _check_model(model, programme.operator)
    _check_extension(model, X, points, support, levels)
    certificates: list[Certificate] = []
    for posed in levels:
        multipliers = _stored_multipliers(posed.level, posed.coordinates.shape[0])
        proof = certify_elliptope(
            posed.posed.exact,
            posed.posed.exact.point_of(_rows(posed.posed, posed.coordinates)),
            rng=rng,
            failure_probability=failure_probability,
            multipliers=posed.posed.multipliers_for(multipliers),
        )
        _check_correlation(posed, proof, max(_tolerance(model), _EXTENDED))
        certificates.append(posed.posed.certificate_in_units(support, proof))
        _check_claims(posed.level.certificate, certificates[-1])
    _check_claims(getattr(model, "certificate_", None), certificates[0])
    return max(certificates, key=lambda certificate: certificate.relative_gap)


def _prescribed(model: SDPEmbedding, X: Any, support: Support, extended: bool) -> Prescribed | None:
    """The diagonal that the parameters of the model prescribe for the rows of X; of new points, what it is there."""
    if not extended:
        return Prescribed.read(model.diagonal, model.diagonal_constraint, X, support)
    return model._extension.prescribed_at(X)


def _rows(posed: DiffusionProblem[Any], coordinates: Array) -> Array:
    """Coordinates in units of the prescribed lengths, where rows may be shorter than these; else as they are."""
    if posed.split is None:
        return coordinates
    d = posed.exact.diagonal[: coordinates.shape[0]]
    xp = namespace(d)
    return coordinates * xp.sqrt(posed.operator.weights / xp.where(d > 0, d, 1.0))[:, None]


def _directions(model: SDPEmbedding, X: Any, programme: DiffusionProblem[Any]) -> Array:
    return _rows(programme, model._extension.level_coordinates(X, capped=model.radius == "capped")[0])


def _posed_levels(
    model: SDPEmbedding, programme: DiffusionProblem[DiffusionOperator], support: Support
) -> list[PosedLevel]:
    """Every level with the programme that the coordinates before it leave, its own attributes checked against that."""
    found: list[PosedLevel] = []
    posed: DiffusionProblem[Any] | None = programme
    for number, level in enumerate(model.levels_):
        if found:
            posed = programme.complement(found[-1].complement.basis)
        if posed is None:
            raise _damaged(f"the levels before level {number + 1} leave nothing for it")
        coordinates = _stored_coordinates(model, level, posed, support)
        _check_readings(model, level, posed, support, coordinates)
        basis = found[-1].complement.basis if found else None
        complement = Complement.after(basis, coordinates, programme.operator.weights)
        found.append(PosedLevel(level, posed, coordinates, complement))
    weights = level_weights(found)
    if not np.allclose([level.weight for level in model.levels_], weights, rtol=_tolerance(model), atol=0):
        raise _damaged("the weights of levels_ are not what the lengths of their coordinates give")
    return found


def _check_parts(model: SDPEmbedding) -> None:
    """Refuse a model that lacks a part of what a fit leaves."""
    for name in _PARTS:
        if not hasattr(model, name):
            raise _damaged(f"it has no {name}")
    if not isinstance(model.kernel_, Kernel):
        raise _damaged("kernel_ is no kernel")
    if not isinstance(model._extension, Extension):
        raise _damaged("it has no extension to new points")
    levels: Any = model.levels_
    if not isinstance(levels, tuple) or not levels or not all(isinstance(level, Level) for level in levels):
        raise _damaged("levels_ is no tuple of levels")


def _check_model(model: SDPEmbedding, operator: DiffusionOperator) -> None:
    """Refuse a model that says other things of its first level than that level does."""
    first = model.levels_[0]
    if model.rank_ != first.rank:
        raise _damaged(f"rank_={model.rank_!r}, but coordinates_ has {first.rank} columns")
    for name, value in (
        ("coordinates_", first.coordinates),
        ("eigenvalues_", first.eigenvalues),
        ("diagonal_", first.diagonal),
    ):
        if not _equal(getattr(model, name), value):
            raise _damaged(f"{name} is not what the coordinates, the kernel and X give")
    _require("stationary_", model.stationary_, operator.stationary**2, _tolerance(model))


def _check_rows(model: SDPEmbedding, X: Any, extended: bool) -> None:
    if extended:
        if X.shape[0] < 2:
            raise ValueError("The extension is certified on a sample of at least two points: X has one.")
        if isinstance(model.kernel_, Precomputed) and X.shape[0] != X.shape[1]:
            raise ValueError(f"A precomputed kernel must be square to be certified, not {X.shape[0]} × {X.shape[1]}.")
        return
    rows = model.embedding_.shape[0]
    if X.shape[0] != rows:
        raise ValueError(
            f"The model was fitted to {rows} points, X has {X.shape[0]}: pass the data of the fit, or extended=True."
        )


def _stored_coordinates(model: SDPEmbedding, level: Level, posed: DiffusionProblem[Any], support: Support) -> Array:
    """The coordinates in the scaled weights; those whose lengths are not what X prescribes are refused.

    ‖Ξᵢ‖² = dᵢ, or ‖Ξᵢ‖² ≤ dᵢ for rows that may be short.
    """
    operator = posed.operator
    stored = like(level.coordinates, operator.reference)
    xp = namespace(stored)
    if stored.ndim != 2 or stored.shape[0] != operator.shape[0] or not xp.isfinite(stored).all():
        raise ValueError(
            f"The model has coordinates of shape {tuple(stored.shape)} for {operator.shape[0]} points, or some of them "
            "are not finite: it is damaged."
        )
    coordinates = as_double(stored) * (support.unit if posed.prescribed is None else 1.0)
    lengths = xp.sum(coordinates**2, axis=1)
    diagonal = as_double(posed.working.diagonal[: lengths.shape[0]] / operator.weights)
    first: Any = operator.inner if isinstance(operator, ProjectedOperator) else operator
    staying = float((first.gram.diagonal() / first.degrees if posed.prescribed is None else diagonal).max())
    off = abs(lengths - diagonal)
    if posed.split is not None:
        off[posed.split.rows] = xp.clip(lengths - diagonal, 0.0, None)[posed.split.rows]
    if float(off.max()) > _tolerance(model) * staying:
        row = int(xp.argmax(off))
        raise ValueError(
            f"The embedding cannot belong to this X: the squared length of row {row} is {float(lengths[row]):.6g} "
            f"where X prescribes {float(diagonal[row]):.6g}. Pass the data of the fit, its rows in the same order."
        )
    return coordinates


def _stored_multipliers(level: Level, rows: int) -> Array | None:
    """Dual variables that the solver left: a suggestion, of which the proof believes nothing but that it is one."""
    stored = level.multipliers
    if stored is None:
        return None
    values = as_double(stored if is_tensor(stored) else np.asarray(stored, np.float64))
    if tuple(values.shape) != (rows,) or not namespace(values).isfinite(values).all():
        raise _damaged(f"multipliers_ is not {rows} finite numbers")
    return values


def _check_readings(
    model: SDPEmbedding, level: Level, posed: DiffusionProblem[Any], support: Support, coordinates: Array
) -> None:
    """Refuse a diagonal or a spectrum of a level that X and the coordinates do not have."""
    close, rank, weights = _tolerance(model), coordinates.shape[1], posed.operator.weights
    _require("diagonal_", level.diagonal, posed.diagonal_in_units(support), close)
    xp = namespace(coordinates)
    weighted = xp.sqrt(as_double(weights))[:, None] * coordinates
    moments = weighted.T @ weighted
    eigenvalues = as_double(like(level.eigenvalues, coordinates))
    if tuple(eigenvalues.shape) != (rank,):
        raise _damaged(f"eigenvalues_ has shape {tuple(eigenvalues.shape)} for a rank of {rank}")
    spectrum = eigenvalues * xp.eye(rank, dtype=xp.float64, device=coordinates.device)
    _require("eigenvalues_", spectrum, moments / moments.diagonal().sum(), close)
    if (eigenvalues[1:] - eigenvalues[:-1] > close).any():
        raise _damaged("eigenvalues_ does not fall")


def _check_extension(model: SDPEmbedding, X: Any, points: Any, support: Support, levels: Sequence[PosedLevel]) -> None:
    """Refuse an ``embedding_`` and an extension to new points that are not those of the coordinates."""
    stored, close = model._extension, _tolerance(model)
    prescribed = levels[0].posed.prescribed
    again = Extension.of(model.kernel_, points, support, [each.for_extension() for each in levels], prescribed)
    if spelled(stored.kernel) != spelled(model.kernel_):
        raise _damaged(f"it extends by {stored.kernel!r}, but kernel_ is {model.kernel_!r}")
    if not same_points(stored.points, points):
        raise _damaged("the points that it extends from are not those of X")
    for name, ours, theirs in zip(("landmarks_", "sample_weight_"), stored.support, support, strict=True):
        if not _equal(ours, theirs):
            raise _damaged(f"it extends by others than {name}")
    _require("the weights of the extension", stored.weights, again.weights, close)
    _require("the slopes of the extension", stored.slopes, again.slopes, close)
    _require("the volume of the extension", np.exp(stored.log_volume - again.log_volume), np.ones(()), close)
    if len(stored.levels) != len(again.levels):
        raise _damaged(f"it extends {len(stored.levels)} levels of {len(again.levels)}")
    for ours, theirs in zip(stored.levels, again.levels, strict=True):
        _check_level_extension(ours, theirs, close)
    _check_prescribed(stored, again, close)
    coordinates = [like(each.level.coordinates, each.coordinates) for each in levels]
    rows = embedded_rows(coordinates, again, X, capped=model.radius == "capped")
    wanted = rows.shape[1] if model.n_components is None else model.n_components
    expected = model._of_unit_length(widened(rows[:, :wanted], wanted))
    if model._n_features_out != wanted:
        raise _damaged(f"transform gives {model._n_features_out} columns where {wanted} were asked for")
    _require("embedding_", model.embedding_, expected, close if support.indices is None else max(close, _EXTENDED))


def _check_prescribed(stored: Extension, again: Extension, close: float) -> None:
    """Refuse an extension whose lengths at new points, or whose points of the sample, are not what the model says."""
    if (stored.prescribed is None) != (again.prescribed is None) or len(stored.known) != len(again.known):
        raise _damaged("its extension prescribes other lengths than its parameters")
    if stored.prescribed is None or again.prescribed is None:
        return
    _require("the diagonal of the extension", stored.prescribed.values, again.prescribed.values, close)
    if stored.prescribed.at_most != again.prescribed.at_most:
        raise _damaged("its extension has another diagonal_constraint than its parameters")
    for ours, theirs in zip(stored.known, again.known, strict=True):
        _require("the coordinates of the extension", ours, theirs, close)


def _check_level_extension(stored: LevelExtension, again: LevelExtension, close: float) -> None:
    """Refuse what one level adds to the extension if it is not that of its coordinates."""
    if stored.rank != again.rank or not abs(stored.weight - again.weight) <= close * again.weight:
        raise _damaged("the ranks or weights of the extension are not those of levels_")
    if again.log_longest != stored.log_longest:
        _require("the cap of the extension", np.exp(stored.log_longest - again.log_longest), np.ones(()), close)
    for name in ("inside", "middle", "across", "turn"):
        _require("the extension of a level", getattr(stored, name), getattr(again, name), max(close, _EXTENDED))


def _check_claims(claimed: Certificate | None, certificate: Certificate) -> None:
    """Refuse a model whose own bounds on the optimum exclude those found here."""
    if claimed is not None and not (claimed.lower <= certificate.upper and certificate.lower <= claimed.upper):
        raise _damaged(
            f"certificate_ says that the optimum lies between {claimed.lower:.9g} and {claimed.upper:.9g}, and it lies "
            f"between {certificate.lower:.9g} and {certificate.upper:.9g}"
        )


def _check_correlation(posed: PosedLevel, certificate: Certificate, close: float) -> None:
    """Refuse a level whose correlation is not its value over its trace."""
    trace = posed.posed.trace_of(posed.coordinates)
    if not abs(posed.level.correlation * trace - certificate.objective) <= close * trace:
        raise _damaged("the correlation of a level is not what its coordinates, the kernel and X give")


def _equal(ours: Any, theirs: Any) -> bool:
    """Whether two arrays, or two that are missing, are the same."""
    if ours is None or theirs is None:
        return ours is theirs
    ours = like(ours, theirs)
    return tuple(ours.shape) == tuple(theirs.shape) and bool((ours == theirs).all())


def _tolerance(model: SDPEmbedding) -> float:
    """How close two computations of one thing are in the coarser of the fit's and the present arithmetic."""
    stored = dtype_name(getattr(model._extension.points, "dtype", ""))
    return max(_CLOSE[get_config().dtype], _CLOSE.get(stored, 0.0))


def _require(name: str, stored: Any, expected: Any, close: float) -> None:
    """Refuse an attribute that is further from what it must be than a part of its largest entry."""
    values, expected = as_double(like(stored, expected)), as_double(expected)
    if tuple(values.shape) != tuple(expected.shape):
        raise _damaged(f"{name} has shape {tuple(values.shape)} instead of {tuple(expected.shape)}")
    size = float(abs(expected).max()) if 0 not in expected.shape else 0.0
    if not (abs(values - expected) <= close * size).all():  # a NaN is not close
        raise _damaged(f"{name} is not what the coordinates, the kernel and X give")


def _damaged(what: str) -> ValueError:
    return ValueError(f"The model is damaged, or of other data: {what}. Fit it again.")
