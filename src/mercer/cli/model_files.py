"""Model files with what was done to the data before the model saw them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from mercer.io import ModelFileError, Preparation, describe, load, save

_KEY = "preparation"


def save_with(model: Any, path: Path, preparation: Preparation) -> None:
    """Write a model, and beside it the columns that it was fitted to and how they were standardised."""
    save(model, path, notes={_KEY: preparation.as_dict()})


def is_model(path: Path) -> bool:
    """Whether a file is a model, or says so by its name."""
    if path.suffix == ".mercer":
        return True
    try:
        describe(path)
    except ModelFileError:
        return False
    return True


def load_with(path: Path) -> tuple[Any, Preparation | None]:
    """A model and what its data are prepared by; None where nobody said, as of models that Python saved."""
    model = load(path)
    found = (describe(path).get("notes") or {}).get(_KEY)
    return model, named_columns(model) if found is None else Preparation.from_dict(found)


def named_columns(model: Any) -> Preparation | None:
    """The columns of a data frame that a model was fitted to, where it remembers their names."""
    names = getattr(model, "feature_names_in_", None)
    return None if names is None else Preparation(tuple(map(str, names)))
