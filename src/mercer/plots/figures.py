"""Figures made without pyplot, so that nothing needs a display, and written whole or not at all."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any


def new_figure(n_panels: int = 1, *, rows: int = 1, panel_inches: float = 4.2) -> tuple[Any, list[Any]]:
    """A figure with panels side by side, in one row or more, and their axes row by row."""
    try:
        from matplotlib.figure import Figure
    except ModuleNotFoundError:
        raise ModuleNotFoundError("Pictures need matplotlib: pip install 'mercer[app]'.") from None
    columns = -(-n_panels // rows)
    figure = Figure(figsize=(panel_inches * columns, (panel_inches + 0.3) * rows), layout="constrained")
    axes = list(figure.subplots(rows, columns, squeeze=False).ravel())
    for unused in axes[n_panels:]:
        unused.remove()
    for ax in axes[:n_panels]:
        ax.tick_params(which="both", labelsize=8)
    return figure, axes[:n_panels]


def save_figure(figure: Any, path: str | os.PathLike[str]) -> Path:
    """Write a figure, in the format its suffix names, through a temporary file that is then renamed."""
    with written_whole(path) as temporary:
        figure.savefig(temporary, dpi=150)
    return Path(path).resolve()


@contextmanager
def written_whole(path: str | os.PathLike[str]) -> Iterator[Path]:
    """A file to write, which takes the place of ``path`` once all is written, and else leaves no trace."""
    path = Path(path).resolve()
    if not path.parent.is_dir():
        raise FileNotFoundError(f"The folder {path.parent} does not exist: create it, or choose another output.")
    handle, temporary = tempfile.mkstemp(suffix=path.suffix, dir=path.parent)
    os.close(handle)
    try:
        yield Path(temporary)
        os.chmod(temporary, 0o644)
        os.replace(temporary, path)
    finally:
        Path(temporary).unlink(missing_ok=True)
