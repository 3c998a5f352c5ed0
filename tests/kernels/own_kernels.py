"""Kernels that are no profile of a distance, as a user of the library would write them."""

from __future__ import annotations

from typing import Any

import numpy as np

from mercer.backends.arrays import namespace, to_numpy
from mercer.kernels import EntryError, Kernel, Properties, TileFunction


class HistogramIntersection(Kernel):
    """k(x, y) = Σᵢ min(xᵢ, yᵢ) for x, y ≥ 0, of arrays of any library."""

    def __init__(self) -> None:
        pass

    def _form(self, n_features: int) -> TileFunction:
        return TileFunction(
            function=self._block,
            diagonal=lambda points: points.sum(axis=1),
            roundings=EntryError(n_features),
            nonnegative=True,
            cost=4.0 * n_features,
        )

    def _block(self, rows: Any, cols: Any) -> Any:
        xp = namespace(rows)
        total = xp.minimum(rows[:, 0][:, None], cols[:, 0])
        for i in range(1, rows.shape[1]):
            total += xp.minimum(rows[:, i][:, None], cols[:, i])
        return total

    @property
    def properties(self) -> Properties:
        return Properties(bounded=False, stationary=False, positive=True, positive_definite=True)


class SharedWords(Kernel):
    """How many words of some length two texts share, every pair counted: points are numbers of texts.

    Parameters
    ----------
    texts : list of str
        What the points stand for.
    length : int
        Letters of a word.
    """

    def __init__(self, texts: Any, length: int = 2) -> None:
        self.texts = texts
        self.length = length

    def _form(self, n_features: int) -> TileFunction:
        return TileFunction(
            function=lambda rows, cols: self._counts(rows) @ self._counts(cols).T,
            diagonal=lambda points: (self._counts(points) ** 2).sum(axis=1),
            roundings=EntryError(0),  # whole numbers
            nonnegative=True,
        )

    def _words(self, text: str) -> list[str]:
        return [text[i : i + self.length] for i in range(len(text) - self.length + 1)]

    def _counts(self, points: Any) -> np.ndarray:
        """How often each word occurs in each text."""
        vocabulary = sorted({word for text in self.texts for word in self._words(text)})
        chosen = [self._words(self.texts[int(number)]) for number in to_numpy(points)[:, 0]]
        counts = [[words.count(word) for word in vocabulary] for words in chosen]
        return np.array(counts, float).reshape(len(chosen), len(vocabulary))

    @property
    def properties(self) -> Properties:
        return Properties(positive=True, positive_definite=True)
