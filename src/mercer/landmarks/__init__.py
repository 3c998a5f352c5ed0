"""Landmarks: a few rows that stand for a sample, chosen by one of several strategies."""

from mercer.landmarks.chooser import Landmarks
from mercer.landmarks.strategies import STRATEGIES

__all__ = ["STRATEGIES", "Landmarks"]
