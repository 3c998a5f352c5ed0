"""What a sparsifier finds out when somebody asks: the proof of a fit without the pass Sω, all that a stream stands for.

Nodes and weights need Sω on some points alone. What the pass is for is the level of D, one number: whoever takes the
landmarks and never looks at it does not wait for it, and whoever does gets the proof that a fit with the pass has. Of
a stream nothing is made as long as rows only come.
"""

from __future__ import annotations

from typing import Any, ClassVar, NamedTuple

from mercer.backends.arrays import Array, double
from mercer.backends.ordering import place_of, places
from mercer.certificates import Certificate, MeasureCertificate, certify_measure
from mercer.certificates.measure_definiteness import SquareDefiniteness
from mercer.certificates.sampled_level import Level, widened
from mercer.kernels import Kernel
from mercer.problems import Discrepancy
from mercer.progress import progress_bar
from mercer.quadrature import streaming
from mercer.quadrature.request import Claim
from mercer.quadrature.sample import Sample, make_problem
from mercer.quadrature.sampled import Potential

PROVED = frozenset({"certificate_", "discrepancy_", "margin_", "kappa_", "trace_fraction_", "alpha_"})


class Unproved(NamedTuple):
    """What a proof needs beside the measure: the sample, the kernel of S, and whether D's level is to be sampled."""

    sample: Sample
    discrepancy: str
    by_points: bool


class ProvedOnRequest:
    """The part of a sparsifier that proves its measure, at the end of the fit or when an attribute is asked for.

    The attributes of a proof are plain ones as soon as they are there. Until then ``_unproved`` is, and the first of
    them that is read makes all; so it is with those of ``_stream``.
    """

    kernel_: Kernel
    indices_: Array
    weights_: Array
    certificate_: Certificate
    discrepancy_: float
    margin_: float
    kappa_: float
    trace_fraction_: float
    alpha_: float
    verbose: bool
    _claim: Claim
    _points: Any
    _rows: Array
    _unproved: Unproved
    _unsaved: ClassVar[frozenset[str]] = frozenset({"_unproved"})

    def __getattr__(self, name: str) -> Any:
        if name in PROVED and "_unproved" in self.__dict__:
            self._prove_now()
            return self.__dict__[name]
        if name in streaming.SETTLED and "_stream" in self.__dict__:
            streaming.settle(self)
            return self.__dict__[name]
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def _leave_unproved(self, unproved: Unproved) -> None:
        """Forget what an earlier fit proved; the proof of this one is made when it is asked for."""
        for name in PROVED:
            self.__dict__.pop(name, None)
        self._unproved = unproved

    def _prove_now(self) -> None:
        """The pass, or the points drawn in its place, and the proof."""
        sample, discrepancy, by_points = self._unproved
        nodes = place_of(self.indices_, self._rows)
        own = sample._replace(rows=places(int(sample.rows.shape[0]), sample.rows))  # the points are those alone
        options = {"discrepancy": discrepancy, "dtype": double(sample.weights), "without_pass": by_points}
        with progress_bar("Sω", shown=bool(self.verbose)) as report:
            problem, level = make_problem(self._points, self.kernel_, own, **options, report=report), None
        if by_points:
            problem, level = at_sampled_level(Potential(problem, own), nodes, self.weights_)
        self._prove(problem, nodes, self.weights_, None, level)

    def _prove(
        self,
        problem: Discrepancy,
        nodes: Array,
        values: Array,
        definiteness: SquareDefiniteness | None,
        level: Level | None,
    ) -> None:
        """Certify the measure and take over what the proof computed of it."""
        proof: MeasureCertificate = certify_measure(
            problem, nodes, values, **self._claim._asdict(), definiteness=definiteness
        )
        proof = proof if level is None else widened(proof, level)
        self.certificate_, self.discrepancy_, self.margin_ = proof, proof.discrepancy, proof.margin
        self.kappa_, self.trace_fraction_, self.alpha_ = proof.trace, proof.trace / problem.total, proof.multiplier
        self.__dict__.pop("_unproved", None)


def at_sampled_level(potential: Potential, nodes: Array, values: Array) -> tuple[Discrepancy, Level]:
    """The programme with Sω on the nodes of a measure, and the interval of ωᵀSω by points drawn for its proof."""
    exact = potential.exact_on(nodes)
    level = potential.level(exact, nodes, values)
    return potential.at_level(exact, level), level
