"""Figures made without pyplot, so that nothing needs a display, and written whole or not at all."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from mercer.whole_files import asked_for


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
    """Write a figure, in the format its suffix names, whole or not at all."""
    target = Path(path).resolve()
    with asked_for(target) as temporary:
        figure.savefig(temporary, dpi=150, format=target.suffix[1:] or "png")
    return target
