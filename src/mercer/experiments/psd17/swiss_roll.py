"""A swiss roll in the plane, by the SDP embedding and by diffusion maps (PSD17 Fig D.16)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from mercer.backends.arrays import Array
from mercer.datasets import swiss_roll
from mercer.embedding import DiffusionMaps, SDPEmbedding
from mercer.experiments.conventions import both_embeddings, compare_rank
from mercer.experiments.registry import experiment
from mercer.experiments.report import Comparison, Experiment, compare
from mercer.plots import new_figure, plot_in_space, plot_shaded


@dataclass(frozen=True)
class SwissRollInPlane(Experiment):
    """The roll, the angle along it, and both embeddings."""

    X: Array
    angle: Array
    sdp: SDPEmbedding
    diffusion_maps: DiffusionMaps

    @property
    def comparisons(self) -> tuple[Comparison, ...]:
        """The number of points and the rank of the caption."""
        reading = "the size of the paper's roll is not printed; ours has unit variance in every coordinate"
        part = "" if len(self.X) == 4000 else "fewer points were asked for"
        return (
            compare("points", 4000, len(self.X), within=0, reason=part),
            compare_rank("rank of ρ", 2, self.sdp, reason=reading),
        )

    def figure(self) -> Any:
        """The roll, the SDP embedding and diffusion maps; shaded by the angle above, by the density below."""
        figure, axes = new_figure(6, rows=2)
        density = self.sdp.stationary_
        for row, (values, name) in enumerate(((self.angle, "angle"), (density, "stationary probability"))):
            roll, sdp, maps = axes[3 * row : 3 * row + 3]
            plot_in_space(roll, self.X, values=values, title=f"Data, shaded by {name}", view=(8.0, -80.0))
            plot_shaded(sdp, self.sdp.embedding_, values, title=f"SDP embedding: rank {self.sdp.rank_}", size=6)
            plot_shaded(maps, self.diffusion_maps.embedding_, values, title="Diffusion maps", size=6)
        return figure


@experiment("psd17-figd16", seconds=435, quick={"n_points": 800})
def swiss_roll_in_plane(sigma: float = 0.1, *, n_points: int = 4000, random_state: Any = 0) -> SwissRollInPlane:
    """A swiss roll in the plane by the SDP embedding and by diffusion maps (PSD17 Fig D.16).

    The paper does not print the size of its roll: :func:`mercer.datasets.swiss_roll` stands in, with ``n_points``.
    """
    X, angle = swiss_roll(n_points, random_state=random_state)
    return SwissRollInPlane(X, angle, *both_embeddings(X, sigma, normalization="markov", random_state=random_state))
