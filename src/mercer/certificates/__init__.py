"""Proofs by recomputation. They never import solvers, so no solver certifies itself."""

from mercer.certificates.certificate import Certificate, CrossedBoundsError, EmbeddingCertificate, RegressionCertificate
from mercer.certificates.elliptope import certify_elliptope
from mercer.certificates.likelihood import LikelihoodCertificate, certify_likelihood
from mercer.certificates.low_rank_error import LowRankError, bound_low_rank_error
from mercer.certificates.measure import MeasureCertificate, certify_measure
from mercer.certificates.spectrahedron import certify_spectrahedron
from mercer.certificates.stream import StreamCertificate
from mercer.certificates.unfolding import UnfoldingCertificate, certify_unfolding

__all__ = [
    "Certificate",
    "CrossedBoundsError",
    "EmbeddingCertificate",
    "LikelihoodCertificate",
    "LowRankError",
    "MeasureCertificate",
    "StreamCertificate",
    "RegressionCertificate",
    "bound_low_rank_error",
    "UnfoldingCertificate",
    "certify_elliptope",
    "certify_likelihood",
    "certify_measure",
    "certify_spectrahedron",
    "certify_unfolding",
]
