"""One driver and methods in families. They see a problem, never data, kernels or estimators. One algorithm a file."""

from mercer.problems import SparseMeasure
from mercer.solvers.conic import solve_conic
from mercer.solvers.elliptope.interior_point import InteriorPoint, solve_interior_point
from mercer.solvers.elliptope.minorise import Minorise
from mercer.solvers.elliptope.power import AcceleratedPower, ProjectedPower
from mercer.solvers.elliptope.staircase import Climb
from mercer.solvers.elliptope.trust_region import TrustRegion
from mercer.solvers.measure.vertex_exchange import exchange
from mercer.solvers.run import Goal, Limits, Method, Report, Run, solve
from mercer.solvers.solution import Iteration, Solution, Status

__all__ = [
    "AcceleratedPower",
    "Climb",
    "Goal",
    "InteriorPoint",
    "Iteration",
    "Limits",
    "Method",
    "Minorise",
    "ProjectedPower",
    "Report",
    "Run",
    "Solution",
    "SparseMeasure",
    "Status",
    "TrustRegion",
    "exchange",
    "solve",
    "solve_conic",
    "solve_interior_point",
]
