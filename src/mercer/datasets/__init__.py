"""Generators with known answers, and loaders of real data."""

from mercer.datasets.generators import interval, three_clusters, two_moons
from mercer.datasets.real import data_folder, load_real

__all__ = ["data_folder", "interval", "load_real", "three_clusters", "two_moons"]
