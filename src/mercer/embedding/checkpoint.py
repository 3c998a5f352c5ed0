"""An iterate kept in a file, so that a long run can be broken off and taken up again.

The file is a plain NumPy archive: reading it runs no code. It is written whole or not at all.
"""

from __future__ import annotations

import hashlib
import os
import tempfile
import time
import zipfile
from pathlib import Path
from typing import Any, final

import numpy as np

from mercer.kernels import Kernel
from mercer.solvers import Iteration

Array = np.ndarray[Any, np.dtype[Any]]
_SECONDS_BETWEEN = 10.0


@final
class Checkpoint:
    """The best iterate so far of one problem, in a file.

    Parameters
    ----------
    path : str or path
        The file; its folder must exist.
    kernel : Kernel
        Resolved.
    points : array or sparse array
        What the problem is solved on.
    weights : array or None
        Their weights.
    """

    def __init__(self, path: str | os.PathLike[str], kernel: Kernel, points: Any, weights: Array | None) -> None:
        self._path = Path(path)
        if not self._path.resolve().parent.is_dir():
            raise FileNotFoundError(f"The folder of checkpoint={str(path)!r} does not exist: create it first.")
        self._key = _fingerprint(kernel, points, weights)
        self._size = points.shape[0]
        self._last = -np.inf
        self._kept: tuple[Array, Iteration] | None = None

    def read(self) -> tuple[Array, Iteration] | None:
        """The iterate and the last line of its history; None where there is no file yet."""
        if not self._path.exists():
            return None
        try:
            with np.load(self._path, allow_pickle=False) as stored:
                key, H, line = str(stored["key"]), stored["H"], stored["line"]
        except (OSError, ValueError, KeyError, zipfile.BadZipFile):
            raise ValueError(f"{self._path} is not a checkpoint: delete it, or name another file.") from None
        if key != self._key or H.ndim != 2 or H.shape[0] != self._size:
            raise ValueError(
                f"The checkpoint {self._path} is of other data, weights or kernel: delete it, or name another file."
            )
        number, objective, residual, n_columns, seconds = line
        return H, Iteration(int(number), float(objective), float(residual), int(n_columns), float(seconds))

    def keep(self, H: Array, line: Iteration) -> None:
        """Remember an iterate, and write it if the last writing is some seconds ago."""
        self._kept = H, line
        if time.monotonic() - self._last >= _SECONDS_BETWEEN:
            self.flush()

    def flush(self) -> None:
        """Write what was remembered last."""
        if self._kept is None:
            return
        H, line = self._kept
        numbers = [line.number, line.objective, line.row_residual, line.n_columns, line.seconds]
        handle, temporary = tempfile.mkstemp(suffix=".npz", dir=self._path.resolve().parent)
        try:
            with os.fdopen(handle, "wb") as file:
                np.savez(file, key=np.array(self._key), H=H, line=np.array(numbers, np.float64))
            os.replace(temporary, self._path)
        finally:
            Path(temporary).unlink(missing_ok=True)
        self._last = time.monotonic()


def _fingerprint(kernel: Kernel, points: Any, weights: Array | None) -> str:
    """What tells one problem from another: the kernel with its parameters, every point and every weight."""
    digest = hashlib.sha256(f"{kernel!r} {points.shape}".encode())
    parts = (points.data, points.indices, points.indptr) if hasattr(points, "indptr") else (points,)
    for part in parts if weights is None else (*parts, weights):
        digest.update(np.ascontiguousarray(part).tobytes())
    return digest.hexdigest()
