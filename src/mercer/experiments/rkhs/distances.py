"""Kernels made of distances, and the negative part of their spectra (RKHS section 5.2, Lemma 4)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from mercer.backends.arrays import Array
from mercer.datasets import digits, swiss_roll
from mercer.experiments.registry import experiment
from mercer.experiments.report import Comparison, Experiment, claim
from mercer.kernels import SSIM, FromDistance, Geodesic, Kernel
from mercer.operators import CenteredOperator, GramOperator
from mercer.plots import new_figure
from mercer.plots.scatter import COLOURS

_ROUNDING = 1e-9  # of the largest eigenvalue: below, an eigenvalue counts as zero
_WHY = (
    "the proof takes -½HDH for the inner products of some features; that is what is to be shown, and is true just of "
)
_WHY += "distances between points of a Hilbert space (Schoenberg 1935)"


@dataclass(frozen=True)
class DistanceSpectra(Experiment):
    """Spectra of -½HDH, D the squared distances of some points."""

    corners: Array  #: of the four corners of a square under the Manhattan distance
    spectra: dict[str, Array]  #: by distance, in falling order, over the largest

    def negative_share(self, name: str) -> float:
        """The part of the negative eigenvalues in the sum of the lengths of all of them."""
        values = self.spectra[name]
        return float(np.abs(values[values < -_ROUNDING]).sum() / np.abs(values).sum())

    @property
    def comparisons(self) -> tuple[Comparison, ...]:
        """Each distance fulfils the lemma's condition, and some its conclusion."""
        return (
            claim(
                "eigenvalues of (51), four corners of a square, Manhattan distance",
                "not negative",
                ", ".join(f"{value:.3g}" for value in (self.corners.round(12) + 0.0).tolist()),
                bool(self.corners.min() >= 0),
                _WHY,
            ),
            *map(self._of, self.spectra),
        )

    def _of(self, name: str) -> Comparison:
        share, values = self.negative_share(name), self.spectra[name]
        count = int(np.sum(values < -_ROUNDING))
        return claim(
            f"negative part of the spectrum, {name}",
            "none",
            f"{share:.1%} in {count} eigenvalues, down to {values[-1]:.2g} of the largest" if share else "none",
            share == 0,
            "as for the square" if share else "",
        )

    def figure(self) -> Any:
        """The eigenvalues of every distance, and the shares of the negative ones."""
        figure, (left, right) = new_figure(2, panel_inches=4.8)
        for i, (name, values) in enumerate(self.spectra.items()):
            order = np.arange(1, values.size + 1) / values.size
            left.plot(order, values, color=COLOURS[i % len(COLOURS)], label=name)
        left.axhline(0, color="black", linewidth=0.6)
        left.set_yscale("symlog", linthresh=1e-3)
        left.set(title="Eigenvalues over the largest", xlabel="place, from the first to the last")
        left.legend(fontsize=8)
        names = list(self.spectra)
        shares = [100 * self.negative_share(name) for name in names]
        bars = right.barh(names, shares, color=[COLOURS[i % len(COLOURS)] for i in range(len(names))])
        right.bar_label(bars, fmt="%.1f %%", padding=3, fontsize=8)
        right.invert_yaxis()
        right.set_xlim(0, 1.25 * max([*shares, 1.0]))
        right.set(title="Share of the negative part, %")
        return figure


@experiment("rkhs-lemma4", place=5.2, seconds=2)
def distance_spectra(n: int = 400, *, n_neighbors: int = 5, random_state: Any = 0) -> DistanceSpectra:
    """The negative part of kernels made of distances, of digits and of a swiss roll (RKHS Lemma 4).

    Parameters
    ----------
    n : int, default=400
        Digits, and points of the roll.
    n_neighbors : int, default=5
        Of the geodesic distances.
    """
    square = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])
    rng = np.random.default_rng(random_state)
    images = digits()[0]
    images = images[rng.choice(len(images), n, replace=False)]
    roll = swiss_roll(n, random_state=random_state)[0]
    geodesic = Geodesic(n_neighbors, connect=True)
    cases: dict[str, tuple[Kernel, Array]] = {
        "digits, Euclidean": (FromDistance("euclidean"), images),
        "digits, SSIM": (SSIM((8, 8), size=5, data_range=float(np.ptp(images))), images),
        "swiss roll, geodesic": (geodesic, roll),
        "digits, Manhattan": (FromDistance("manhattan"), images),
        "digits, geodesic": (geodesic, images),
    }
    spectra = {name: _spectrum(*case) for name, case in cases.items()}
    corners = _spectrum(FromDistance("manhattan"), square, relative=False)
    return DistanceSpectra(corners, spectra)


def _spectrum(kernel: Kernel, X: Array, *, relative: bool = True) -> Array:
    """All eigenvalues of the centred matrix, over the largest or as they are."""
    centred = CenteredOperator(GramOperator(kernel.resolve(X), X)).to_dense()
    values = np.linalg.eigvalsh(centred)[::-1]
    return np.asarray(values / values[0] if relative else values)
