"""The numbers by which compiled loops and those who call them name pairings, profiles and steps of a program."""

from __future__ import annotations

# Pairings: squared distances by inner products, distances by differences, inner products of points or of directions.
# The weighed ones, and mismatches, have a weight for each coordinate.
INNER, SQUARED, ABSOLUTE, CHI2, DOT, COSINE, WEIGHED_SQUARED, WEIGHED_ABSOLUTE, MISMATCHES = range(9)
# Profiles, of mercer.backends.profiles.
EXPONENTIAL, ROOT_EXPONENTIAL, IDENTITY, POWER, TANH = range(5)
# Steps of a program: a leaf puts a block of entries on top of the others, the rest work on the topmost one or two.
LEAF, ADD, MULTIPLY, SCALE, RAISE, NORMALISE, LOGARITHM = range(7)
# Numbers of a leaf; the last three are the parameters of its profile.
LIMIT, FACTOR, MOST, FIRST, SECOND, THIRD = range(6)
