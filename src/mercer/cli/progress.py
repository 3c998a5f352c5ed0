"""A progress bar that measures convergence, not steps."""

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
            decades = -math.log10(min(1.0, max(iteration.row_residual, target)))
            done = max(decades, progress.tasks[task].completed)
            progress.update(task, completed=done, residual=f"{iteration.row_residual:.0e}")

        yield callback
