"""Real data sets, read from the folder that the variable ``MERCER_DATA`` names."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np

from mercer.backends.arrays import Array


def data_folder() -> Path | None:
    """The folder with real data sets, or None where there is none."""
    folder = os.environ.get("MERCER_DATA")
    return Path(folder) if folder and Path(folder).is_dir() else None


def load_real(name: str) -> dict[str, Array]:
    """The arrays of one data set, such as ``load_real("htru2")["X"]``.

    Raises
    ------
    FileNotFoundError
        If ``MERCER_DATA`` names no folder, or the folder has no such file.
    """
    folder = data_folder()
    if folder is None:
        raise FileNotFoundError("Set the variable MERCER_DATA to the folder with the real data sets.")
    path = folder / f"{name}.npz"
    if not path.is_file():
        have = ", ".join(sorted(file.stem for file in folder.glob("*.npz")))
        raise FileNotFoundError(f"{folder} has no data set {name!r}; it has {have}.")
    with np.load(path, allow_pickle=False) as arrays:
        return {key: arrays[key] for key in arrays.files}
