"""What a test returns: a statistic, a p-value, the null distribution, and one sentence that says what was found."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from mercer.backends.arrays import Array
from mercer.validation import fraction
from mercer.wording import brief

_LEVEL = 0.05  # of the sentence that a result prints
_RESAMPLES = {
    "permutation": "random relabellings",
    "spectral": "draws from the spectral approximation of chance",
    "wild bootstrap": "wild bootstrap samples",
    "parametric bootstrap": "samples of the model",
}


@dataclass(frozen=True)
class KernelPart:
    """One kernel of a test over several.

    Attributes
    ----------
    kernel : Kernel or tuple of Kernel
        The kernel with its parameters fixed; a pair where the test has two.
    statistic : float
        Its own statistic.
    pvalue : float
        Its own p-value, as if it were the only kernel: not corrected for the others.
    """

    kernel: Any
    statistic: float
    pvalue: float


@dataclass(frozen=True, eq=False)
class KernelTestResult(ABC):
    """The outcome of a test; ``statistic, pvalue = result`` unpacks it, ``str(result)`` says it in one sentence.

    Attributes
    ----------
    statistic : float
        The observed statistic.
    pvalue : float
        How likely a statistic as large is where there is nothing to be found.
    null_distribution : array of shape (n_resamples,)
        Statistics of the resamples, the observed one not among them; empty where the null is a formula.
    null : str
        "permutation", "gamma", "spectral", "wild bootstrap" or "parametric bootstrap".
    n_resamples : int
        How many resamples there were; 0 where the null is a formula.
    kernel : Kernel or tuple of Kernel
        The kernel or kernels, with their parameters fixed.
    parts : tuple of KernelPart
        What each kernel found, in a test over several; empty otherwise.
    """

    statistic: float
    pvalue: float
    null_distribution: Array
    null: str
    n_resamples: int
    kernel: Any
    parts: tuple[KernelPart, ...]

    def __iter__(self) -> Iterator[float]:
        return iter((self.statistic, self.pvalue))

    def rejects(self, level: float = _LEVEL) -> bool:
        """Whether the p-value is at most ``level``, a number between 0 and 1 chosen before the data were seen."""
        return self.pvalue <= fraction(level, "level")

    @abstractmethod
    def _found(self) -> str:
        """What a small p-value says, such as "The two samples differ"."""

    @abstractmethod
    def _not_found(self) -> str:
        """What a large p-value says, such as "No sign that the two samples differ"."""

    @abstractmethod
    def _statistic_name(self) -> str:
        """What the statistic is called, such as "MMD²"."""

    def _resamples_name(self) -> str:
        """What the resamples are called, in the plural."""
        return _RESAMPLES.get(self.null, "resamples")

    def __repr__(self) -> str:
        return brief(self, "statistic", "pvalue", "null", "n_resamples")

    def __str__(self) -> str:
        verdict = self._found() if self.pvalue <= _LEVEL else self._not_found()
        return (
            f"{verdict}: {self._statistic_name()} = {self.statistic:.3g}, {self._how_rare()} (p = {self.pvalue:.2g})."
        )

    def _how_rare(self) -> str:
        """How often a statistic as large is met without anything to be found; the data count as one resample."""
        if not self.n_resamples:
            return f"by the {self.null} approximation of chance"
        total = self.n_resamples + 1
        return f"as large in {round(self.pvalue * total)} of {total} {self._resamples_name()}"
