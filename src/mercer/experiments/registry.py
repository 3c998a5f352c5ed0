"""Where experiments register themselves, each in its own file: ``@experiment("psd22-fig1")`` above a function.

The files are imported when an experiment is listed, run or looked up, and not before.
"""

from __future__ import annotations

import importlib
import inspect
import pkgutil
import re
from collections.abc import Callable
from functools import cache
from types import ModuleType
from typing import Any, NamedTuple, TypeVar

from mercer.experiments.report import Experiment

Run = TypeVar("Run", bound=Callable[..., Experiment])

# They are listed in this order, others after them.
PAPERS = {
    "psd22": "Fanuel, Aspeel, Delvenne, Suykens: Positive Semi-definite Embedding for Dimensionality Reduction and "
    "Out-of-Sample Extensions, 2022",
    "psd17": "the same authors: its first version, 2017",
    "quad": "Gauthier, Suykens: Optimal quadrature-sparsification for integral operator approximation, 2016",
    "sos": "Muzellec, Bach, Rudi: A Note on Optimizing Distributions using Kernel Mean Embeddings, by kernel sums of "
    "squares, 2021",
    "rkhs": "Ghojogh, Ghodsi, Karray, Crowley: Reproducing Kernel Hilbert Space, Mercer's Theorem, Eigenfunctions, "
    "Nyström Method, and Use of Kernels in Machine Learning: Tutorial and Survey, 2021",
}


class Registered(NamedTuple):
    """An experiment, and what a person should know before running it.

    Attributes
    ----------
    place : float
        Where it stands among those of its paper.
    run : callable
        The function.
    seconds : float or None
        What it took at most with its defaults, on two cores under load.
    data : str or None
        The data set of the folder ``MERCER_DATA`` that it needs.
    quick : dict
        Arguments with which it takes seconds, in the place of minutes; empty where it takes no more anyway.
    """

    place: float
    run: Callable[..., Experiment]
    seconds: float | None
    data: str | None
    quick: dict[str, Any]


_registered: dict[str, Registered] = {}


def experiment(
    name: str,
    *,
    place: float | None = None,
    seconds: float | None = None,
    data: str | None = None,
    quick: dict[str, Any] | None = None,
) -> Callable[[Run], Run]:
    """Register a function, whose defaults are the paper's values where it prints them, as an experiment to be run.

    Parameters
    ----------
    name : str
        The paper, a hyphen, and the figure or table: ``"psd22-fig1"``.
    place : float, optional
        Where it stands among those of its paper; by default the number of the figure.
    seconds, data, quick : optional
        What it takes, see ``Registered``.
    """
    at = _number(name) if place is None else place

    def register(run: Run) -> Run:
        known = _registered[name].run if name in _registered else run
        if (known.__module__, known.__qualname__) != (run.__module__, run.__qualname__):
            raise ValueError(f"{known.__module__} and {run.__module__} both register {name!r}: rename one of them.")
        _registered[name] = Registered(at, run, seconds, data, quick or {})
        return run

    return register


def catalogue() -> dict[str, Callable[..., Experiment]]:
    """All experiments by their names, paper by paper and in the order of each paper."""
    _papers_files()
    return {name: _registered[name].run for name in sorted(_registered, key=_order)}


def description(name: str) -> str:
    """The first line of the docstring of an experiment."""
    return (inspect.getdoc(catalogue()[name]) or "").partition("\n")[0]


def registered(name: str) -> Registered:
    """What is known of an experiment."""
    _papers_files()
    return _registered[name]


@cache
def public_names() -> dict[str, Any]:
    """The public functions and classes of the papers' files."""
    return {
        name: value
        for module in _papers_files()
        for name, value in vars(module).items()
        if not name.startswith("_") and getattr(value, "__module__", None) == module.__name__
    }


@cache
def _papers_files() -> tuple[ModuleType, ...]:
    """Import every file of the papers' folders; what they register is registered then."""
    room = importlib.import_module(__package__)
    found = pkgutil.walk_packages(room.__path__, f"{__package__}.")
    return tuple(importlib.import_module(file.name) for file in found if file.name.count(".") > 2)


def _number(name: str) -> float:
    """The first number behind the hyphen."""
    found = re.search(r"\d+(\.\d+)?", name.partition("-")[2])
    if found is None:
        raise ValueError(f"The experiment {name!r} has no number behind a hyphen: give its place.")
    return float(found[0])


def _order(name: str) -> tuple[int, float, str]:
    paper = name.partition("-")[0]
    return [*PAPERS].index(paper) if paper in PAPERS else len(PAPERS), _registered[name].place, name
