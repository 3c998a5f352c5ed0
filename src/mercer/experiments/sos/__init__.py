"""Densities as kernel sums of squares, and adversaries in a ball of distributions: the figures of SOS."""
