"""A certificate for a reader: a headline, sentences, a short list of figures, and a card of them in HTML."""

from __future__ import annotations

import html
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from mercer.backends.arrays import to_numpy

if TYPE_CHECKING:
    from mercer.certificates.certificate import Certificate

FAR = 0.1  # a relative gap above it proves next to nothing

_STYLE = (
    "display:inline-block;max-width:44em;padding:0.7em 1em;border:1px solid #8888;border-left:5px solid {colour};"
    "border-radius:4px;font-family:system-ui,sans-serif;line-height:1.4"
)
_COLOURS = {"proved": "#009e73", "far": "#e69f00", "open": "#d55e00"}  # told apart by colour-blind readers too
_SIGNS = {"proved": "✓", "far": "≈", "open": "✗"}


class Card(NamedTuple):
    """What a certificate says, in parts.

    Attributes
    ----------
    verdict : str
        ``"proved"``, ``"far"`` (a bound, but a wide one) or ``"open"`` (no bound).
    headline : str
        The verdict in a line.
    sentences : tuple of str
        What was proved, how, and what could be wrong with it.
    figures : tuple of (name, value)
        The numbers behind the sentences, as texts.
    """

    verdict: str
    headline: str
    sentences: tuple[str, ...]
    figures: tuple[tuple[str, str], ...]

    @property
    def sign(self) -> str:
        """A mark that says the verdict without colour."""
        return _SIGNS[self.verdict]

    def as_html(self) -> str:
        """The card as a piece of a page; it brings its own style, and suits light and dark pages."""
        rows = "".join(
            f'<tr><th scope="row" style="text-align:left;font-weight:normal;padding-right:1.5em">{_safe(name)}</th>'
            f'<td style="text-align:left">{_safe(value)}</td></tr>'
            for name, value in self.figures
        )
        return (
            f'<div role="group" aria-label="Certificate" style="{_STYLE.format(colour=_COLOURS[self.verdict])}">'
            f"<strong>{self.sign} {_safe(self.headline)}</strong>"
            f'<p style="margin:0.4em 0">{_safe(" ".join(self.sentences))}</p>'
            f'<details><summary>Figures</summary><table style="border-collapse:collapse">{rows}</table></details></div>'
        )


def card_of(certificate: Certificate) -> Card:
    """The card of a certificate of any kind."""
    verdict, headline = certificate.verdict
    return Card(verdict, headline, (_bounds(certificate), _proof(certificate)), tuple(_figures(certificate)))


def _bounds(certificate: Certificate) -> str:
    value, gap = certificate.objective, certificate.relative_gap
    if certificate.minimised:
        sides = f"The solution found has the value {value:.7g}, and no other can be below {certificate.lower:.7g}"
    else:
        sides = f"The solution found has the value {value:.7g}, and no other can exceed {certificate.upper:.7g}"
    if certificate.verdict[0] == "proved" and gap > FAR:
        return f"{sides}."  # the headline says what keeps them apart
    if not np.isfinite(gap):
        return f"{sides}: nothing is known of how good it is."
    return f"{sides}: it is at most {_share(gap)} of its value away from the best."


def _share(gap: float) -> str:
    """A relative gap in words that people use, where there are such."""
    if gap >= 0.001:
        return f"{gap:.1%}"
    if gap <= 1e-9:
        return "nothing" if gap == 0 else f"a fraction {gap:.0e}"
    unit = 10 ** (int(np.log10(1 / gap)) - 1)
    return f"one part in {int(1 / gap / unit) * unit:,}"  # rounded towards the larger part


def _proof(certificate: Certificate) -> str:
    odds = certificate.failure_probability
    chance = (
        "involves no chance"
        if odds == 0
        else f"draws random numbers and is wrong with a probability of at most {odds:.0e}"
    )
    return (
        f"The proof ({certificate.method}) {chance}. It uses the data and the solution alone, nothing of how the "
        "solution was found, so anyone can repeat it: mercer.verify(model, X)."
    )


def _figures(certificate: Certificate) -> list[tuple[str, str]]:
    figures = [
        ("lower bound", f"{certificate.lower:.12g}"),
        ("upper bound", f"{certificate.upper:.12g}"),
        ("relative gap", f"{certificate.relative_gap:.3e}"),
        (
            "chance of error",
            "none" if certificate.failure_probability == 0 else f"{certificate.failure_probability:.0e}",
        ),
        ("proved by", certificate.method),
    ]
    if certificate.n_products:
        figures.append(("columns multiplied", f"{certificate.n_products:,}"))
    least = to_numpy(certificate.least_eigenvalues)
    if least.size:
        figures.append(("least eigenvalues of the slack", " ".join(f"{value:.2e}" for value in least)))
    if np.isfinite(certificate.complementarity):
        figures.append(("complementarity", f"{certificate.complementarity:.2e}"))
    return figures


def _safe(text: str) -> str:
    return html.escape(text)
