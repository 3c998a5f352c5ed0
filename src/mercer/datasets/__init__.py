"""Generators with known answers, and loaders of real data."""

from mercer.datasets.generators import halton_square, interval, radial_moons, swiss_roll, three_clusters, two_moons
from mercer.datasets.real import data_folder, load_real
from mercer.datasets.tables import digits, htru2, iris, marrow, mnist_pair, standardized, wine

__all__ = [
    "data_folder",
    "digits",
    "halton_square",
    "htru2",
    "interval",
    "iris",
    "load_real",
    "marrow",
    "mnist_pair",
    "radial_moons",
    "standardized",
    "swiss_roll",
    "three_clusters",
    "two_moons",
    "wine",
]
