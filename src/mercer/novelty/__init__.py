"""Rows that are unlike the rest: scores of novelty, and a threshold for them."""

from mercer.novelty.detector import NoveltyDetector

__all__ = ["NoveltyDetector"]
