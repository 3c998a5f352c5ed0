"""Proofs by recomputation. They never import solvers, so no solver certifies itself."""

from mercer.certificates.certificate import Certificate
from mercer.certificates.discrepancy import certify_measure
from mercer.certificates.elliptope import certify_elliptope

__all__ = ["Certificate", "certify_elliptope", "certify_measure"]
