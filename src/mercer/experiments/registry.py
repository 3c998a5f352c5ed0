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
from typing import Any, TypeVar

from mercer.experiments.report import Experiment

Run = TypeVar("Run", bound=Callable[..., Experiment])

# PSD22 and PSD17 are the two papers on the SDP embedding, QUAD the one on quadrature sparsification, SOS the one on
# sums of squares, RKHS the survey of kernels. They are listed in this order, others after them.
_PAPERS = ("psd22", "psd17", "quad", "sos", "rkhs")
_registered: dict[str, tuple[float, Callable[..., Experiment]]] = {}


def experiment(name: str, *, place: float | None = None) -> Callable[[Run], Run]:
    """Register a function, whose defaults are the paper's values where it prints them, as an experiment to be run.

    Parameters
    ----------
    name : str
        The paper, a hyphen, and the figure or table: ``"psd22-fig1"``.
    place : float, optional
        Where it stands among those of its paper; by default the number of the figure.
    """
    at = _number(name) if place is None else place

    def register(run: Run) -> Run:
        known = _registered.get(name, (0.0, run))[1]
        if (known.__module__, known.__qualname__) != (run.__module__, run.__qualname__):
            raise ValueError(f"{known.__module__} and {run.__module__} both register {name!r}: rename one of them.")
        _registered[name] = (at, run)
        return run

    return register


def catalogue() -> dict[str, Callable[..., Experiment]]:
    """All experiments by their names, paper by paper and in the order of each paper."""
    _papers_files()
    return {name: _registered[name][1] for name in sorted(_registered, key=_order)}


def description(name: str) -> str:
    """The first line of the docstring of an experiment."""
    return (inspect.getdoc(catalogue()[name]) or "").partition("\n")[0]


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
    return _PAPERS.index(paper) if paper in _PAPERS else len(_PAPERS), _registered[name][0], name
