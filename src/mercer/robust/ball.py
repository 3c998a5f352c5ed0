"""The ball of a robust regression: densities on some pairs of the support, their distance from the sample on all."""

from __future__ import annotations

from mercer.backends.arrays import as_double, namespace
from mercer.density.fitting_problem import make_programme
from mercer.density.setting import Setting
from mercer.kernels.integrals import kernel_integrals
from mercer.kernels.integrals.measures import Lebesgue
from mercer.kernels.integrals.probes import SectionProbes
from mercer.linalg.eigen import positive_eigenpairs
from mercer.operators import GramOperator
from mercer.problems import SumOfSquares
from mercer.problems.sum_of_squares import Comparison, Spans, spanned
from mercer.problems.sum_of_squares_enclosures import Sample
from mercer.robust.pairs import Pairs


def make_ball(pairs: Pairs, truncation: float, spans: Spans | None = None) -> SumOfSquares:
    """The embedding of densities, compared with the sample's on the span of the support's sections.

    Parameters
    ----------
    pairs : Pairs
        The sample, the support, and the points of it that densities are made of.
    truncation : float
        Where the spectra of the mass matrix of these points, and of the kernel matrix of the support, end.
    spans : Spans, optional
        T and Ω of an earlier ball on the same pairs, of shapes (r, s) and (m, q).
    """
    sample = Sample(pairs.joint, pairs.given)
    if pairs.chosen is None:
        setting = Setting(pairs.kernel, pairs.joint_support, Lebesgue())
        return make_programme(setting, sample, regularization=0.0, truncation=truncation, spans=spans)
    points, kernel = pairs.joint_support, pairs.kernel
    integrals = kernel_integrals(kernel, pairs.density_support, Lebesgue())
    gram = as_double(kernel(pairs.density_support))
    target = as_double(GramOperator(kernel, points, pairs.joint) @ pairs.weights)
    own = spanned(integrals, gram, truncation)
    if spans is None:
        levels, V = positive_eigenpairs(as_double(kernel(points)), truncation / points.shape[0])
        spans = Spans(own.basis, V / namespace(V).sqrt(levels))
    return SumOfSquares(
        integrals,
        gram,
        target[pairs.chosen],
        truncation=truncation,
        sample=sample,
        spans=Spans(spans.basis, own.whitening),
        comparison=Comparison.on_span(SectionProbes(integrals, points), spans.whitening, target),
    )
