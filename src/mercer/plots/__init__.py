"""Pictures of points and embeddings, drawn with matplotlib and without a display."""

from mercer.plots.figures import new_figure, save_figure
from mercer.plots.scatter import plot_points

__all__ = ["new_figure", "plot_points", "save_figure"]
