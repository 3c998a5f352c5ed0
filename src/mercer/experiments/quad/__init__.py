"""Sparse quadratures of integral operators: the figures and section 9 of QUAD."""
