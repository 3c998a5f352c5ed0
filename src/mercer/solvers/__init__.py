"""Loops. They see a problem, never data, kernels or estimators. One algorithm a file."""

from mercer.solvers.conic import solve_conic
from mercer.solvers.elliptope.accelerated import AcceleratedPower
from mercer.solvers.elliptope.interior_point import InteriorPoint, solve_interior_point
from mercer.solvers.elliptope.loop import Method, maximise
from mercer.solvers.elliptope.minorise import Minorise
from mercer.solvers.elliptope.power import ProjectedPower
from mercer.solvers.elliptope.result import Iteration, SolverResult, Status
from mercer.solvers.elliptope.staircase import Climb
from mercer.solvers.elliptope.trust_region import TrustRegion
from mercer.solvers.measure.sparse_measure import ExchangeStep, SparseMeasure
from mercer.solvers.measure.vertex_exchange import exchange
from mercer.solvers.spectrahedron.minimise import minimise_on_spectrahedron

__all__ = [
    "AcceleratedPower",
    "Climb",
    "ExchangeStep",
    "InteriorPoint",
    "Iteration",
    "Method",
    "Minorise",
    "ProjectedPower",
    "SolverResult",
    "SparseMeasure",
    "Status",
    "TrustRegion",
    "exchange",
    "maximise",
    "minimise_on_spectrahedron",
    "solve_conic",
    "solve_interior_point",
]
