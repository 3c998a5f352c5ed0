"""The certificate of a fitted unfolding, recomputed from its coordinates, its multipliers and the data alone."""

from __future__ import annotations

from typing import Any

from sklearn.utils.validation import check_is_fitted

from mercer.certificates import Certificate
from mercer.certificates.unfolding import certify_unfolding
from mercer.consistency import require_equal, require_meeting, require_numbers
from mercer.embedding.degeneracy import widened
from mercer.embedding.local_extension import LocalExtension
from mercer.embedding.unfolding import MaximumVarianceUnfolding
from mercer.embedding.unfolding_problem import PosedUnfolding
from mercer.support import stored_support
from mercer.validation import require_rows

_WHY = "its coordinates and X"
_ROUNDING = 1e-12  # of squared distances, summed in another order


def verify_unfolding(model: MaximumVarianceUnfolding, X: Any) -> Certificate:
    """Certify a fitted unfolding again, believing nothing that its solver left behind.

    The graph is made again from X; ``multipliers_`` may be any numbers, for any of them prove a bound; the rest of the
    model must be what follows from ``coordinates_``.
    """
    check_is_fitted(model)
    model._check_parameters()
    X = model._checked(X, fitting=False)
    require_rows(X, model.embedding_.shape[0])
    posed = PosedUnfolding.on(model, X, stored_support(model, X))
    require_equal(model, "pairs_", posed.named_pairs, "its parameters and X")
    multipliers = require_numbers(model, "multipliers_", (posed.problem.pairs.shape[0],))
    coordinates = require_numbers(model, "coordinates_")
    if coordinates.ndim != 2 or coordinates.shape[0] != posed.place.size or coordinates.shape[1] < 1:
        raise ValueError(f"The model's coordinates_ have shape {coordinates.shape}: it is damaged.")
    points = coordinates[posed.groups.first]
    require_equal(model, "coordinates_", points[posed.place], "equal rows of X")
    certificate = posed.in_units(certify_unfolding(posed.problem, points / posed.unit, multipliers / posed.masses_unit))
    for name, value in posed.described(coordinates, float(model.tol)).items():
        require_equal(model, name, value, _WHY)
    _require_embedding(model, X, posed, coordinates)
    require_equal(model, "violation_", certificate.violation, _WHY, tolerance=_ROUNDING)
    return require_meeting(model, certificate)


def _require_embedding(model: MaximumVarianceUnfolding, X: Any, posed: PosedUnfolding, coordinates: Any) -> None:
    """Refuse an embedding, or a map of new points, other than that of the coordinates."""
    stored = model._extension
    expected = posed.extension(coordinates, int(model.n_neighbors))
    if (stored is None) != (expected is None):
        raise ValueError("The model's map of new points is missing: it is damaged.")
    if expected is not None:
        for name in LocalExtension.__dataclass_fields__:
            require_equal(stored, name, getattr(expected, name), _WHY)
    rows, width = coordinates, model._n_features_out
    if posed.support.indices is not None:
        assert expected is not None
        rows = expected.of(X)
        rows[posed.support.indices] = coordinates
    require_equal(model, "embedding_", widened(rows[:, :width], width), _WHY)
