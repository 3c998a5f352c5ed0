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
_PHASES = ("climb", "interior point")


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
        self._kept: tuple[Array, tuple[Iteration, ...]] | None = None

    def read(self) -> tuple[Array, tuple[Iteration, ...]] | None:
        """The iterate and the history up to it; None where there is no file yet."""
        if not self._path.exists():
            return None
        try:
            with np.load(self._path, allow_pickle=False) as stored:
                key, H, lines = str(stored["key"]), stored["H"], stored["history"]
        except (OSError, ValueError, KeyError, zipfile.BadZipFile):
            raise ValueError(f"{self._path} is not a checkpoint: delete it, or name another file.") from None
        if key != self._key or H.ndim != 2 or H.shape[0] != self._size:
            raise ValueError(
                f"The checkpoint {self._path} is of other data, weights or kernel: delete it, or name another file."
            )
        return H, tuple(_line(numbers) for numbers in lines)

    def keep(self, H: Array, history: tuple[Iteration, ...]) -> None:
        """Remember an iterate with its history, and write them if the last writing is some seconds ago."""
        self._kept = H, history
        if time.monotonic() - self._last >= _SECONDS_BETWEEN:
            self.flush()

    def flush(self) -> None:
        """Write what was remembered last."""
        if self._kept is None:
            return
        H, history = self._kept
        numbers = np.array([_numbers(line) for line in history], np.float64)
        handle, temporary = tempfile.mkstemp(suffix=".npz", dir=self._path.resolve().parent)
        try:
            with os.fdopen(handle, "wb") as file:
                np.savez(file, key=np.array(self._key), H=H, history=numbers)
            os.replace(temporary, self._path)
        finally:
            Path(temporary).unlink(missing_ok=True)
        self._last = time.monotonic()


def _numbers(line: Iteration) -> tuple[float, ...]:
    gap = np.nan if line.relative_gap is None else line.relative_gap
    return (
        line.number,
        line.objective,
        line.row_residual,
        line.n_columns,
        line.seconds,
        gap,
        _PHASES.index(line.phase),
    )


def _line(numbers: Array) -> Iteration:
    number, objective, residual, n_columns, seconds, gap, phase = (float(value) for value in numbers)
    proved = None if np.isnan(gap) else gap
    return Iteration(int(number), objective, residual, int(n_columns), seconds, proved, _PHASES[int(phase)])


def _fingerprint(kernel: Kernel, points: Any, weights: Array | None) -> str:
    """What tells one problem from another: the kernel with its parameters, every point and every weight."""
    digest = hashlib.sha256(f"{kernel!r} {points.shape}".encode())
    parts = (points.data, points.indices, points.indptr) if hasattr(points, "indptr") else (points,)
    for part in parts if weights is None else (*parts, weights):
        digest.update(np.ascontiguousarray(part).tobytes())
    return digest.hexdigest()
