"""Pairs that a fitted model is to be certified on again, checked as those of its fit were."""

from __future__ import annotations

from typing import Any

from sklearn.utils.validation import check_is_fitted

from mercer.backends.arrays import Array
from mercer.validation import checked_weights, require_rows


def pairs_again(model: Any, X: Any, y: Any) -> tuple[Any, Array, Array | None]:
    """X, y and the weights that the model states, or a sentence that says what is wrong with them."""
    check_is_fitted(model)
    if y is None:
        raise ValueError("A regression or a classifier is certified on its pairs: pass y as well.")
    model._check_parameters()
    X, y = model._checked_data(X, y, fitting=False)
    require_rows(X, model._n_rows)
    given = model.sample_weight_
    if given is not None:
        given = checked_weights(given, X.shape[0], "The model's sample_weight_", reference=X)
    return X, y, given
