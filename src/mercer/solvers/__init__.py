"""Loops. They see a problem, never data, kernels or estimators. One algorithm a file."""

from mercer.solvers.accelerated import AcceleratedPower
from mercer.solvers.conic import solve_conic
from mercer.solvers.conic_spectrahedron import conic_spectrahedron
from mercer.solvers.interior_point import InteriorPoint, solve_interior_point
from mercer.solvers.loop import Method, maximise
from mercer.solvers.low_rank_spectrahedron import low_rank_spectrahedron
from mercer.solvers.measure import ExchangeStep, SparseMeasure
from mercer.solvers.minorise import Minorise
from mercer.solvers.power import ProjectedPower
from mercer.solvers.result import Iteration, SolverResult, Status
from mercer.solvers.spectrahedron import SpectrahedronResult, SpectrahedronStep, accelerated_spectrahedron
from mercer.solvers.staircase import Climb
from mercer.solvers.trust_region import TrustRegion
from mercer.solvers.vertex_exchange import exchange

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
    "SpectrahedronResult",
    "SpectrahedronStep",
    "Status",
    "TrustRegion",
    "accelerated_spectrahedron",
    "conic_spectrahedron",
    "exchange",
    "low_rank_spectrahedron",
    "maximise",
    "solve_conic",
    "solve_interior_point",
]
