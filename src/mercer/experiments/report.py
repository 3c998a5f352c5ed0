"""What every experiment returns: the picture, and the paper's numbers beside the measured ones."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from enum import Enum
from typing import Any


class Verdict(Enum):
    """How a measured value stands to the printed one."""

    AGREES = "agrees"
    DIFFERS = "differs"


@dataclass(frozen=True)
class Comparison:
    """One number of the paper beside ours.

    Attributes
    ----------
    quantity : str
        What the number is, such as ``"rank of B, σ = 10"``.
    paper : float or str
        As printed.
    measured : float or str
        As computed by a converged, certified solve.
    verdict : Verdict
        Whether they agree, to the digits the paper prints.
    reason : str
        Why they differ, or under which reading they agree; required where they differ.
    """

    quantity: str
    paper: float | str
    measured: float | str
    verdict: Verdict
    reason: str = ""

    def __post_init__(self) -> None:
        if self.verdict is Verdict.DIFFERS and not self.reason:
            raise ValueError(f"{self.quantity!r} differs from the paper: say why.")

    def __str__(self) -> str:
        """One line: quantity, paper, measured, verdict and reason."""
        because = f" ({self.reason})" if self.reason else ""
        paper, measured = shown(self.paper), shown(self.measured)
        return f"{self.quantity}: paper {paper}, here {measured}, {self.verdict.value}{because}"


def claim(quantity: str, paper: float | str, measured: float | str, holds: bool, reason: str = "") -> Comparison:
    """Compare with what the paper says in words, which holds here or does not."""
    return Comparison(quantity, paper, measured, Verdict.AGREES if holds else Verdict.DIFFERS, reason)


def compare(quantity: str, paper: float, measured: float, *, within: float, reason: str = "") -> Comparison:
    """Compare two numbers; they agree when they lie within an absolute tolerance, half a printed digit or more."""
    return claim(quantity, paper, measured, abs(paper - measured) <= within, reason)


def printed(quantity: str, paper: str, measured: float, reason: str = "") -> Comparison:
    """Compare with a number as the paper prints it: it agrees when it lies within half a unit of the last digit."""
    digits, _, exponent = paper.partition("e")
    decimals = len(digits.partition(".")[2])
    here = f"{measured:.{decimals}e}".replace("e-0", "e-") if exponent else f"{measured:.{decimals}f}"
    away = abs(float(paper) - measured)
    if away <= 0.500001 * 10.0 ** (int(exponent or 0) - decimals):
        return claim(quantity, paper, here, True)
    reason = reason or f"a relative difference of {away / abs(float(paper)):.0e}, not explained"
    return claim(quantity, paper, here, False, reason)


class Experiment(ABC):
    """The result of an experiment. Subclasses are frozen dataclasses with the data and the fitted models."""

    @property
    @abstractmethod
    def comparisons(self) -> tuple[Comparison, ...]:
        """The paper's printed numbers beside ours; empty where the paper prints none."""

    @abstractmethod
    def figure(self) -> Any:
        """The paper's figure, drawn anew (a matplotlib Figure)."""


def shown(value: float | str) -> str:
    """A value as text: words as they are, numbers to six digits."""
    return value if isinstance(value, str) else f"{value:.6g}"
