"""Pictures of models, results and points, drawn with matplotlib and without a screen.

A *display* has the numbers of a picture and draws them: ``EmbeddingDisplay.from_estimator(model, X, labels=…)`` and the
like, all with the same order of arguments, as in scikit-learn. The functions ``plot_…`` draw the same pictures in one
call. ``report`` makes the explorer, a page for browsers.
"""

from mercer.plots.certificate import CertificateDisplay
from mercer.plots.density import DensityDisplay, plot_density
from mercer.plots.display import Display
from mercer.plots.embedding import EmbeddingDisplay
from mercer.plots.explorer import Report, atlas_frame, report
from mercer.plots.figures import new_figure, save_figure
from mercer.plots.images import plot_heat_map
from mercer.plots.levels import LevelsDisplay, plot_levels
from mercer.plots.plane import plot_plane_map
from mercer.plots.quadrature import plot_merging, plot_quadrature, plot_quadrature_path, plot_upsilon
from mercer.plots.quadrature_displays import LandmarksDisplay, QuadraturePathDisplay, UpsilonDisplay
from mercer.plots.rank_path import RankPathDisplay, plot_rank_path
from mercer.plots.scatter import plot_points
from mercer.plots.shades import plot_shaded
from mercer.plots.space import plot_in_space
from mercer.plots.spectra import plot_spectra, plot_spread
from mercer.plots.tests import NullDisplay, plot_null, plot_sample_pairs
from mercer.plots.witness import DependenceDisplay, WitnessDisplay, plot_dependence, plot_witness

__all__ = [
    "CertificateDisplay",
    "DensityDisplay",
    "DependenceDisplay",
    "Display",
    "EmbeddingDisplay",
    "LandmarksDisplay",
    "LevelsDisplay",
    "NullDisplay",
    "QuadraturePathDisplay",
    "RankPathDisplay",
    "Report",
    "UpsilonDisplay",
    "WitnessDisplay",
    "atlas_frame",
    "new_figure",
    "plot_density",
    "plot_dependence",
    "plot_heat_map",
    "plot_in_space",
    "plot_levels",
    "plot_merging",
    "plot_null",
    "plot_plane_map",
    "plot_points",
    "plot_quadrature",
    "plot_quadrature_path",
    "plot_rank_path",
    "plot_sample_pairs",
    "plot_shaded",
    "plot_spectra",
    "plot_spread",
    "plot_upsilon",
    "plot_witness",
    "report",
    "save_figure",
]
