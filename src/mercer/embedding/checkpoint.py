"""The iterates of all levels kept in a file with their histories, so that a run can be broken off and taken up again.

The file is a plain NumPy archive: reading it runs no code. It is written whole or not at all, and a file that cannot be
written costs the fit nothing: a warning says so, once, and the run goes on.
"""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple, final

import numpy as np

from mercer.backends.arrays import Array, to_numpy
from mercer.embedding.prescribed import Prescribed
from mercer.kernels import Kernel
from mercer.progress import warn_user
from mercer.solvers import Iteration
from mercer.solvers.elliptope.method import Iterate
from mercer.whole_files import written_whole

_SECONDS_BETWEEN = 10.0
_LENGTH_ERROR = 1e-4  # how far the length of a row of an iterate may be from one, in single precision too
_FIELDS = 8
_PHASES = ("climb", "interior point")

Kept = tuple[Array, Sequence[Iteration]]  # an iterate and its history


class CheckpointWarning(UserWarning):
    """A checkpoint could not be written."""


@final
class Checkpoint:
    """The best iterate so far of every level of one embedding, and the history that led to it, in a file.

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
    prescribed : Prescribed or None
        The user's diagonal.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        kernel: Kernel,
        points: Any,
        weights: Array | None,
        prescribed: Prescribed | None = None,
    ) -> None:
        self._path = Path(path)
        if not self._path.resolve().parent.is_dir():
            raise FileNotFoundError(f"The folder of checkpoint={str(path)!r} does not exist: create it first.")
        if self._path.is_dir():
            raise IsADirectoryError(f"checkpoint={str(path)!r} is a folder: name a file in it.")
        self._key = _fingerprint(kernel, points, weights, prescribed)
        self._size, self._most = points.shape[0], points.shape[0] * (1 if prescribed is None else 2)
        self._last = -np.inf
        self._warned = False
        self._kept = self._read()

    def of_level(self, level: int) -> LevelCheckpoint:
        """What the file holds of one level, and where its iterates go."""
        return LevelCheckpoint(self, level)

    def at(self, level: int) -> Kept | None:
        """The iterate of a level, of shape (n, r) with unit rows, and its history; None where there is none."""
        return self._kept[level] if level < len(self._kept) else None

    def _read(self) -> list[Kept]:
        """What the file holds, level by level; nothing where there is no file."""
        if not self._path.exists():
            return []
        try:
            with self._path.open("rb") as file, np.load(file, allow_pickle=False) as stored:
                key, count = str(stored["key"]), sum(name.startswith("H") for name in stored.files)
                parts = [tuple(np.asarray(stored[name]) for name in _names(level)) for level in range(count)]
        except PermissionError:
            raise ValueError(f"The checkpoint {self._path} may not be read: allow it, or name another file.") from None
        except Exception:  # an archive can be damaged in more ways than its readers have exceptions for
            raise ValueError(f"{self._path} is not a checkpoint: name another file.") from None
        if key != self._key:
            raise ValueError(
                f"The checkpoint {self._path} is of other data, weights, kernel or diagonal: delete it, or name "
                "another file."
            )
        if not all(self._is_iterate(H) and _is_history(lines) for H, lines in parts):
            raise ValueError(
                f"The checkpoint {self._path} is damaged, for its iterate or its history is none that a run can have: "
                "delete it, or name another file."
            )
        return [(H, tuple(_as_iteration(line) for line in lines.tolist())) for H, lines in parts]

    def keep(self, level: int, iterate: Iterate, history: Sequence[Iteration]) -> None:
        """Remember an iterate of a level and its history so far, and write all if the last writing is seconds ago."""
        self._kept[level : level + 1] = [(iterate.H, history)]
        if time.monotonic() - self._last >= _SECONDS_BETWEEN:
            self.flush()

    def flush(self) -> None:
        """Write what is remembered; warn, once, where the disk does not take it."""
        self._last = time.monotonic()
        try:
            self._write()
        except OSError as error:
            if not self._warned:
                self._warned = True
                warn_user(
                    f"The checkpoint {self._path} cannot be written ({error.strerror or error}): the fit goes on, but "
                    "could not be taken up again. Free some space, or pass a checkpoint that may be written.",
                    CheckpointWarning,
                )

    def _write(self) -> None:
        parts: dict[str, Array] = {"key": np.array(self._key)}
        for level, (H, history) in enumerate(self._kept):
            lines = np.array([_as_numbers(iteration) for iteration in history], np.float64).reshape(-1, _FIELDS)
            parts.update(zip(_names(level), (to_numpy(H), lines), strict=True))
        with written_whole(self._path) as temporary, temporary.open("wb") as file:
            np.savez(file, **parts)

    def _is_iterate(self, H: Array) -> bool:
        if H.dtype.kind != "f" or H.ndim != 2 or not self._size <= H.shape[0] <= self._most or H.shape[1] == 0:
            return False
        with np.errstate(over="ignore", invalid="ignore"):
            lengths = np.linalg.norm(H, axis=1)
        return bool(np.all(np.abs(lengths - 1) <= _LENGTH_ERROR))  # a NaN is not


def _names(level: int) -> tuple[str, str]:
    """How the iterate and the history of a level are called in the file."""
    number = level + 1 if level else ""
    return f"H{number}", f"history{number}"


class LevelCheckpoint(NamedTuple):
    """The part of a checkpoint that belongs to one level."""

    whole: Checkpoint
    level: int

    def read(self) -> Kept | None:
        """The iterate, of shape (n, r) with unit rows, and its history; None where there is none."""
        return self.whole.at(self.level)

    def keep(self, iterate: Iterate, history: Sequence[Iteration]) -> None:
        """Remember an iterate and its history so far, and write them if the last writing is some seconds ago."""
        self.whole.keep(self.level, iterate, history)

    def flush(self) -> None:
        """Write what is remembered."""
        self.whole.flush()


def _as_numbers(iteration: Iteration) -> list[float]:
    gap, residual = iteration.gap, iteration.row_residual
    return [
        iteration.number,
        iteration.objective,
        0.0 if residual is None else residual,
        iteration.n_columns,
        iteration.seconds,
        np.nan if gap is None else gap,
        _PHASES.index(iteration.phase),
        iteration.size,
    ]


def _as_iteration(numbers: list[float]) -> Iteration:
    number, objective, residual, n_columns, seconds, gap, phase, size = numbers
    proved = None if np.isnan(gap) else gap
    return Iteration(int(number), objective, seconds, proved, residual, int(n_columns), int(size), _PHASES[int(phase)])


def _is_history(lines: Array) -> bool:
    """Whether these are lines of a run: finite but for gaps that were not asked for, counted on from zero."""
    if lines.dtype != np.float64 or lines.ndim != 2 or lines.shape[0] == 0 or lines.shape[1] != _FIELDS:
        return False
    counted, phases = lines[:, [0, 3, 7, 4]], lines[:, 6]
    if not np.isfinite(np.delete(lines, 5, axis=1)).all() or not np.isin(phases, range(len(_PHASES))).all():
        return False
    return bool((counted >= 0).all() and (counted[:, :3] % 1 == 0).all())


def _fingerprint(kernel: Kernel, points: Any, weights: Array | None, prescribed: Prescribed | None) -> str:
    """What tells one problem from another: the kernel with its parameters, every point, weight and length."""
    digest = hashlib.sha256(f"{kernel!r} {tuple(points.shape)}".encode())
    parts = (points.data, points.indices, points.indptr) if hasattr(points, "indptr") else (points,)
    for part in parts if weights is None else (*parts, weights):
        digest.update(np.ascontiguousarray(to_numpy(part)).tobytes())
    if prescribed is not None:
        digest.update(f"diagonal {prescribed.at_most}".encode() + to_numpy(prescribed.values).tobytes())
    return digest.hexdigest()
