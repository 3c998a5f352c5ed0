"""What ``mercer test`` is asked: the samples of a test, how it is run, drawn and put into words."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, final

import click

from mercer.cli.request import Request
from mercer.io import DataTable

if TYPE_CHECKING:
    from mercer.dependence.resampling import Scheme


@dataclass(frozen=True)
class Question(ABC):
    """A test to be run, on samples that are named.

    Attributes
    ----------
    tables : tuple of DataTable
        The samples, or the two sides of a dependence.
    names : tuple of str
        What they are called.
    """

    tables: tuple[DataTable, ...]
    names: tuple[str, ...]

    @abstractmethod
    def ask(self, request: Request, progress: Callable[[float], None]) -> Any:
        """Run the test."""

    @abstractmethod
    def figure(self, result: Any) -> Any:
        """The picture of the answer."""

    @abstractmethod
    def compared(self) -> str:
        """What is compared with what, in words."""

    @abstractmethod
    def sentence(self, result: Any) -> str:
        """The sentence of the result, in which the samples or columns have their names."""


@final
class TwoSamples(Question):
    """The question whether two samples differ."""

    def ask(self, request: Request, progress: Callable[[float], None]) -> Any:
        from mercer.dependence import mmd_test

        X, Y = self._points()
        scheme: Scheme = "blocks" if request.time_series else "rows"
        _require_two_rows(self)
        return mmd_test(X, Y, scheme=scheme, progress=progress, **request.resampling)

    def figure(self, result: Any) -> Any:
        from mercer.plots import new_figure, plot_null, plot_witness

        figure, (left, right) = new_figure(2)
        plot_null(result, left)
        first, second = self.names
        plot_witness(result, *self._points(), right, labels=(first, second), names=self.tables[0].columns)
        return figure

    def explanation(self, request: Request) -> Any:
        """Which columns carry the difference."""
        from mercer.dependence import explain_difference

        return explain_difference(*self.tables, n_resamples=request.resamples, rng=request.seed)

    def _points(self) -> tuple[Any, Any]:
        """Arrays, on which the witness can be drawn between the points, where all columns hold numbers."""
        first, second = self.tables
        return first.as_points(), second.as_points()

    def compared(self) -> str:
        return _with_rows(self)

    def sentence(self, result: Any) -> str:
        first, second = self.names
        said = str(result).replace("The two samples differ", f"{first} and {second} differ")
        return said.replace("the two samples differ", f"{first} and {second} differ")


@final
class ManySamples(Question):
    """The question whether three samples or more are all alike, and which differ."""

    def ask(self, request: Request, progress: Callable[[float], None]) -> Any:
        from mercer.dependence import k_sample_test

        if request.time_series:
            raise click.UsageError("--time-series compares two samples: name two files or groups.")
        _require_two_rows(self)
        return k_sample_test(*(table.as_points() for table in self.tables), progress=progress, **request.resampling)

    def figure(self, result: Any) -> Any:
        from mercer.plots import new_figure, plot_null, plot_sample_pairs

        figure, (left, right) = new_figure(2)
        plot_null(result, left)
        plot_sample_pairs(result, right, labels=self.names)
        return figure

    def compared(self) -> str:
        return _with_rows(self)

    def sentence(self, result: Any) -> str:
        pairs = result.differing()
        numbered = ", ".join(f"{i} and {j}" for i, j in pairs)
        named = ", ".join(f"{self.names[i]} and {self.names[j]}" for i, j in pairs)
        return str(result).replace(f"(samples {numbered} differ)", f"({named} differ)")


@final
class Dependence(Question):
    """The question whether the second side depends on the first."""

    def ask(self, request: Request, progress: Callable[[float], None]) -> Any:
        from mercer.dependence import hsic_test

        scheme: Scheme = "shifts" if request.time_series else "rows"
        X, Y = self.tables  # of a table, not of an array, each column has a bandwidth of its own
        return hsic_test(X, Y, scheme=scheme, progress=progress, **request.resampling)

    def figure(self, result: Any) -> Any:
        from mercer.plots import new_figure, plot_dependence, plot_null

        figure, (left, right) = new_figure(2)
        plot_null(result, left)
        plot_dependence(result, self.tables[0], self.tables[1], right)
        return figure

    def compared(self) -> str:
        return f"{self.names[1]} with {self.names[0]} ({len(self.tables[0])} rows)"

    def sentence(self, result: Any) -> str:
        x, y = self.names
        said = str(result).replace("Y depends on X", f"{y} depends on {x}")
        return said.replace("reorderings of Y", "random reorderings")


def _with_rows(question: Question) -> str:
    """The samples and their sizes."""
    *most, last = (f"{name} ({len(table)} rows)" for name, table in zip(question.names, question.tables, strict=True))
    return f"{', '.join(most)} and {last}"


def _require_two_rows(question: Question) -> None:
    """Refuse samples of a single row, by their names."""
    for name, table in zip(question.names, question.tables, strict=True):
        if len(table) < 2:
            raise ValueError(f"{name} has one row: a comparison needs two or more of each sample.")
