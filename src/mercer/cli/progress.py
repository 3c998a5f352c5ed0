"""A progress bar that measures convergence, not steps, and a clock where there is nothing to measure."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from mercer.solvers import Iteration


@contextmanager
def residual_bar(description: str, target: float) -> Iterator[Callable[[Iteration], None]]:
    """Show how many decades of the row residual are done; yields a callback for the solver."""
    columns = (
        SpinnerColumn(),
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("residual {task.fields[residual]}"),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task(description, total=-math.log10(target), residual="–")

        def callback(iteration: Iteration) -> None:
            residual = 1.0 if iteration.row_residual is None else iteration.row_residual
            decades = -math.log10(min(1.0, max(residual, target)))
            done = max(decades, progress.tasks[task].completed)
            progress.update(task, completed=done, residual=f"{residual:.0e}")

        yield callback


@contextmanager
def clock(description: str) -> Iterator[None]:
    """Show what is under way and for how long."""
    columns = (SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        progress.add_task(description, total=None)
        yield
