"""The picture of a proof: the bounds and the gap between them, over the run that led to it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Self, final

import numpy as np

from mercer.backends.arrays import Array
from mercer.plots.display import Display
from mercer.plots.labels import COLOURS, draw_legend

if TYPE_CHECKING:  # estimators load scikit-learn, which a picture need not
    from mercer.certificates import Certificate
    from mercer.solvers.solution import Iteration

_BOUND = "#aa3377"
_GREY = "#999999"
_LEAST = 1e-16  # a gap that is drawn at the foot of the panel, since zero has no place on its scale


@final
class CertificateDisplay(Display):
    """Bounds and gap over a run: on the left objective and proved bound, on the right the relative gap.

    Make one by :meth:`from_estimator`. The lines of the run are what the solver saw of itself; the dashed lines and the
    star are the certificate, which is proved afterwards from the solution alone.

    Parameters
    ----------
    history : sequence of Iteration
        The lines of a run, see ``history_`` of a model; empty for a model that is not found by iteration.
    certificate : Certificate or None
        What was proved in the end.
    tol : float, optional
        The relative gap that was asked for.
    name : str, optional
        What the certificate is of, for the title.

    Attributes
    ----------
    steps, seconds, objectives, gaps, residuals : arrays
        One entry a line of the run; gaps are relative, nan where the run knew none, and so are residuals.
    bounds : array
        The bound on the optimum that goes with each gap, nan where there is none.
    phases : tuple of str
        What the solver was at.
    figure_, ax_, axes_ : matplotlib Figure, Axes and tuple of Axes
        The last picture.
    """

    def __init__(
        self,
        history: Sequence[Iteration],
        certificate: Certificate | None = None,
        *,
        tol: float | None = None,
        name: str = "",
    ) -> None:
        if not history and certificate is None:
            raise ValueError("There is neither a history nor a certificate to draw: fit with certify=True.")
        self.certificate, self.tol, self.name = certificate, tol, name
        self.steps = np.array([line.number for line in history])
        self.seconds = np.array([line.seconds for line in history])
        unit = _unit(history, certificate)
        self.objectives = unit * np.array([line.objective for line in history])
        self.gaps = _known([line.relative_gap for line in history])
        self.residuals = _known([line.row_residual for line in history])
        side = -1.0 if certificate is None or certificate.minimised else 1.0
        self.bounds = self.objectives + side * unit * _known([line.gap for line in history])
        self.phases = tuple(line.phase for line in history)

    @classmethod
    def from_estimator(
        cls, model: Any, X: Any = None, *, ax: Any = None, level: int = 1, over: str = "steps", **look: Any
    ) -> CertificateDisplay:
        """Draw the certificate of a fitted model, and the run that led to it.

        Parameters
        ----------
        model : fitted estimator
            One with ``certificate_`` or ``history_``.
        X : ignored
            Here so that every display takes the same arguments: nothing is computed again (:func:`mercer.verify` does).
        ax : pair of matplotlib Axes, or one, optional
            Where to draw; the place of a single one is divided. A new figure by default.
        level : int, default=1
            Of an embedding with several levels: which one.
        over : {"steps", "seconds"}, default="steps"
            What the horizontal axis is.
        **look
            See :meth:`plot`.

        Returns
        -------
        CertificateDisplay
            The display, drawn.
        """
        history, proof, name = getattr(model, "history_", ()), getattr(model, "certificate_", None), ""
        levels = getattr(model, "levels_", ())
        if len(levels) > 1 or level != 1:
            if not 1 <= level <= max(len(levels), 1):
                raise ValueError(f"level={level!r} must be one of the {max(len(levels), 1)} levels of the model.")
            history, proof, name = levels[level - 1].history, levels[level - 1].certificate, f"level {level}"
        if not history and proof is None:
            name = type(model).__name__
            raise ValueError(
                f"{name} has neither history_ nor certificate_ to draw: fit it, with certify=True where "
                "that is a parameter."
            )
        display = cls(history, proof, tol=getattr(model, "tol", None), name=name)
        return display.plot(ax, over=over, **look)

    def plot(self, ax: Any = None, *, over: str = "steps", legend: bool = True, title: str | None = None) -> Self:
        """Draw both panels.

        Parameters
        ----------
        ax : pair of matplotlib Axes, or one, optional
            Where to draw; the place of a single one is divided. A new figure by default.
        over : {"steps", "seconds"}, default="steps"
            What the horizontal axis is.
        legend : bool, default=True
            Whether to draw the legends.
        title : str, optional
            Above the left panel; by default what is proved.

        Returns
        -------
        CertificateDisplay
            The same display.
        """
        if over not in ("steps", "seconds"):
            raise ValueError(f'over={over!r} must be "steps" or "seconds".')
        left, right = self._begin(ax, 2)
        places = self.steps if over == "steps" else self.seconds
        self._draw_bounds(left, places)
        self._draw_gaps(right, places)
        left.set_title(self._said() if title is None else title, fontsize=10)
        right.set_title("Relative gap", fontsize=10)
        for panel in (left, right):
            panel.set_xlabel(over if places.size else "", fontsize=8)
            panel.tick_params(which="both", labelsize=8)
            if not places.size:
                panel.set_xticks([])
            elif over == "steps":
                panel.xaxis.get_major_locator().set_params(integer=True)
            if legend:
                draw_legend(panel)
        self._name_phases(right, places)
        return self

    def _draw_bounds(self, ax: Any, places: Array) -> None:
        known = np.isfinite(self.bounds)
        if places.size:
            ax.plot(places, self.objectives, ".-", color=COLOURS[0], linewidth=1.2, markersize=4, label="objective")
        if known.any():
            low, high = self.objectives[known], self.bounds[known]
            ax.plot(places[known], high, ".-", color=_BOUND, linewidth=1.2, markersize=4, label="bound of the run")
            ax.fill_between(places[known], low, high, color=_BOUND, alpha=0.1, linewidth=0)
        proof = self.certificate
        if proof is not None:
            ax.axhline(proof.upper, color="black", linestyle="--", linewidth=0.9, label=f"at most {proof.upper:.6g}")
            ax.axhline(proof.lower, color="black", linestyle=":", linewidth=0.9, label=f"at least {proof.lower:.6g}")
        ax.set_ylabel("objective", fontsize=8)

    def _draw_gaps(self, ax: Any, places: Array) -> None:
        ax.set_yscale("log")
        for values, colour, label in ((self.residuals, COLOURS[2], "residual"), (self.gaps, _BOUND, "gap of the run")):
            known = np.isfinite(values)
            if known.any():
                shown = np.maximum(values[known], _LEAST)
                ax.plot(places[known], shown, ".-", color=colour, linewidth=1.2, markersize=4, label=label)
        if self.certificate is not None and np.isfinite(self.certificate.relative_gap):
            gap = self.certificate.relative_gap
            last = places[-1] if places.size else 0
            ax.plot([last], [max(gap, _LEAST)], "*", color="black", markersize=10, label=f"proved: {gap:.1e}", zorder=4)
        if self.tol is not None and 0 < self.tol < np.inf and places.size:
            ax.axhline(self.tol, color=_GREY, linestyle="--", linewidth=0.9, label=f"asked for: tol={self.tol:g}")

    def _name_phases(self, ax: Any, places: Array) -> None:
        """A line where the solver turned to something else, and what it was at, where it was at several things."""
        if len(set(self.phases)) < 2:
            return
        starts = [0, *(k + 1 for k, (one, two) in enumerate(pairwise(self.phases)) if one != two)]
        across = ax.get_xaxis_transform()
        for start in starts:
            if start:
                ax.axvline(places[start], color="#cccccc", linewidth=0.8, zorder=0)
            text = self.phases[start]
            ax.text(
                places[start], 0.02, f" {text}", rotation=90, fontsize=7, color="#666666", transform=across, va="bottom"
            )

    def _said(self) -> str:
        """The title: whether it is proved, and to what."""
        head = f"{self.name}: " if self.name else ""
        if self.certificate is None or not np.isfinite(self.certificate.relative_gap):
            return f"{head}not certified"
        return f"{head}certified to within {self.certificate.relative_gap:.1e}"

    def __repr__(self) -> str:
        return f"CertificateDisplay({len(self.phases)} lines of a run, {self._said()})"


def _unit(history: Sequence[Iteration], certificate: Certificate | None) -> float:
    """What a run's objective is multiplied by: solvers see data in units of their own, powers of two apart from X's."""
    if certificate is None or not history:
        return 1.0
    ratio = certificate.objective / history[-1].objective if history[-1].objective else 0.0
    return 2.0 ** round(math.log2(ratio)) if 0 < ratio < math.inf else 1.0


def _known(values: Sequence[float | None]) -> Array:
    return np.array([np.nan if value is None else value for value in values], dtype=np.float64)
