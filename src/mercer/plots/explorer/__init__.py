"""The explorer: an embedding as one page of HTML that needs neither a network nor a server."""

from mercer.plots.explorer.atlas import atlas_frame
from mercer.plots.explorer.report import Report, report

__all__ = ["Report", "atlas_frame", "report"]
