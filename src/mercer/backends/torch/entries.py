"""What fills a tile of a kernel matrix on a torch device: a form on given points."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from mercer.backends.arrays import like
from mercer.backends.entries import FormEntries, Side, Which
from mercer.backends.profiles import Profile
from mercer.backends.rounding import EntryError
from mercer.backends.torch.triton_plan import Plan, pairs_by_dot, profile_numbers, side_of

Tensor = Any


class Entries(FormEntries):
    """One form on given points: two prepared panels become a tile of k or log k.

    ``panel`` prepares a run of rows or columns (centred, scaled, transposed where that helps), ``tile`` pairs two of
    them into a new tensor that belongs to the caller. Points are widened panel by panel, so nothing of size n × d is
    copied.
    """

    @property
    def device(self) -> torch.device:
        """Where the points lie."""
        return self._points["rows"].device

    def plan(self) -> Plan | None:
        """The form for a product in one pass over the entries; None where it has no such form."""
        return None

    def fused_error(self, plan: Plan) -> EntryError:
        """How far an entry of such a product can be from the kernel's value."""
        raise NotImplementedError  # of a form that has a plan

    def _planned(
        self,
        profile: Profile,
        pair: int,
        prepared: Callable[[Side], tuple[Tensor, Tensor | None]],
        *,
        norms: bool = False,
        limits: tuple[float, float] = (1.0, 0.0),
        weights: Any = (),
    ) -> Plan | None:
        """The plan of a profile of pairs of points; ``prepared`` are those of a side, n × d, and their squared norms.

        ``limits`` are the factor of a distance and the largest there is, ``weights`` those of the coordinates.
        """
        numbers = profile_numbers(profile)
        if numbers is None:
            return None
        number, degree, first, second = numbers
        by_dot, points = pairs_by_dot(self.n_features, pair), self._points["rows"]
        sides = [side_of(*prepared(side), by_dot) for side in self._sides()]
        return Plan(
            pair=pair,
            norms=norms,
            by_dot=by_dot,
            weights=like(np.asarray(weights), points, dtype=torch.float64),
            numbers=like([*limits, first, second], points, dtype=torch.float64),
            profile=number,
            degree=degree,
            n_features=self.n_features,
            symmetric=self.symmetric,
            rows=sides[0],
            cols=sides[-1],
            diagonal=self.diagonal() if self.symmetric else self.full((0,), 0.0),
        )

    def _sides(self) -> tuple[Side, ...]:
        """The sets of points that are different."""
        return ("rows",) if self.symmetric else ("rows", "cols")

    @abstractmethod
    def panel(self, side: Side, which: Which) -> Any:
        """Prepare some points of one side."""

    @abstractmethod
    def tile(self, rows: Any, cols: Any, *, log: bool = False) -> Tensor:
        """k (or log k) of two panels."""

    def filled(self, rows: Which, cols: Which, panels: tuple[Any, Any] | None = None, *, log: bool = False) -> Tensor:
        """k (or log k) of some rows and columns, with the diagonal as :meth:`diagonal` has it."""
        x, y = panels or (self.panel("rows", rows), self.panel("cols", cols))
        tile = self.tile(x, y, log=log)
        self.set_diagonal(rows, cols, tile, log=log)
        return tile


def log_in_place(values: Tensor) -> Tensor:
    """Replace values by their logarithm, minus infinity where they are zero or negative."""
    return values.clamp_(min=0).log_()
