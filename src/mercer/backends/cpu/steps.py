"""The numbers by which compiled loops and those who call them name pairings, profiles and steps of a program."""

from __future__ import annotations

# Pairings: squared distances by inner products, distances by differences, inner products of points or of directions.
INNER, SQUARED, ABSOLUTE, CHI2, DOT, COSINE = range(6)
# Profiles, of mercer.backends.profiles.
EXPONENTIAL, ROOT_EXPONENTIAL, IDENTITY, POWER, TANH = range(5)
# Steps of a program: a leaf puts a block of entries on top of the others, the rest work on the topmost one or two.
LEAF, ADD, MULTIPLY, SCALE, RAISE, NORMALISE, LOGARITHM = range(7)
# Numbers of a leaf; the last three are the parameters of its profile.
LENGTH, LIMIT, FACTOR, MOST, FIRST, SECOND, THIRD = range(7)
