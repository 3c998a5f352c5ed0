"""A kernel that learns something of its training points when it is resolved."""

from __future__ import annotations

import hashlib
from abc import abstractmethod
from collections.abc import Iterable
from typing import Any, Self

import numpy as np

from mercer.backends.arrays import Array, to_numpy
from mercer.kernels.base import Kernel
from mercer.wording import parameters_in_a_line


class TrainedKernel(Kernel):
    """A kernel whose values rest on the training points that :meth:`resolve` shows it.

    What it learned is its sample: something with ``positions``, the points that it keeps, one a row, and a ``digest``.
    """

    _sample: Any = None
    _relation = "of"  # what the points that are kept are to the kernel

    @abstractmethod
    def _check_parameters(self) -> None:
        """Refuse parameters that are none."""

    @abstractmethod
    def _learned(self, X: Any, sample_weight: Any) -> Any:
        """The sample of points X, or of those of positive weight."""

    @property
    def is_resolved(self) -> bool:
        """Whether the training points are known."""
        return self._sample is not None

    def resolve(self, X: Any, sample_weight: Any = None) -> Self:
        """Return the kernel of the training points X, or of those of positive weight; a resolved one stays as it is."""
        if self.is_resolved:
            return self
        self._check_parameters()
        resolved = self.__sklearn_clone__()
        resolved._sample = self._learned(X, sample_weight)
        return resolved

    def set_params(self, **params: Any) -> Self:
        """Set parameters in place and return self, which then awaits training points."""
        super().set_params(**params)
        self._sample = None
        return self

    def __sklearn_clone__(self) -> Self:
        """Return a copy, of the same training points if they are known."""
        copy = type(self)(**self._own_params())
        copy._sample = self._sample
        return copy

    def __repr__(self) -> str:
        """Return the constructor call, and what tells one set of training points from another."""
        shown = {
            name: _Graph(value) if hasattr(value, "tocsr") else value for name, value in self._own_params().items()
        }
        return parameters_in_a_line(self, shown, ending=self._learned_from())

    def _spelled(self) -> str:
        """The whole constructor call and the training points."""
        return f"{super()._spelled()}{self._learned_from()}"

    def _learned_from(self) -> str:
        if self._sample is None:
            return ""
        count = self._sample.positions.shape[0]
        return f" {self._relation} {count} point{'s' * (count != 1)} [{self._sample.digest}]"

    @property
    def _known(self) -> Any:
        """The sample; a kernel without training points is refused."""
        self.form(1)
        return self._sample

    @property
    def _reader(self) -> Kernel | None:
        return self

    def _require_features(self, sides: Iterable[Any]) -> list[Any]:
        """Both sides as NumPy arrays, of as many features as the training points."""
        expected, arrays = self._known.positions.shape[1], [None if side is None else to_numpy(side) for side in sides]
        for points in arrays:
            if points is not None and points.shape[1] != expected:
                raise ValueError(f"X has {points.shape[1]} features, but the training points of the kernel {expected}.")
        return arrays


def digest_of(what: str, *arrays: Array) -> str:
    """Some digits of a hash of a description and of arrays."""
    whole = hashlib.blake2b(what.encode(), digest_size=4)
    for array in arrays:
        whole.update(np.ascontiguousarray(array).data)
    return whole.hexdigest()


class _Graph:
    """A graph as a parameter is shown."""

    def __init__(self, graph: Any) -> None:
        self._count = graph.shape[0]

    def __repr__(self) -> str:
        return f"<graph of {self._count} points>"
