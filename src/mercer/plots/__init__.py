"""Pictures of points and embeddings, drawn with matplotlib and without a display."""

from mercer.plots.density import plot_density
from mercer.plots.figures import new_figure, save_figure
from mercer.plots.images import plot_heat_map
from mercer.plots.levels import plot_levels
from mercer.plots.plane import plot_plane_map
from mercer.plots.quadrature import plot_merging, plot_quadrature, plot_quadrature_path, plot_upsilon
from mercer.plots.rank_path import plot_rank_path
from mercer.plots.scatter import plot_points
from mercer.plots.shades import plot_shaded
from mercer.plots.space import plot_in_space
from mercer.plots.spectra import plot_spectra, plot_spread

__all__ = [
    "new_figure",
    "plot_density",
    "plot_heat_map",
    "plot_in_space",
    "plot_levels",
    "plot_merging",
    "plot_plane_map",
    "plot_points",
    "plot_quadrature",
    "plot_quadrature_path",
    "plot_rank_path",
    "plot_shaded",
    "plot_spectra",
    "plot_spread",
    "plot_upsilon",
    "save_figure",
]
