"""Objectives, constraints, residuals and gradients. No loops."""

from mercer.problems.elliptope import Elliptope

__all__ = ["Elliptope"]
