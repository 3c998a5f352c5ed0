"""What a page says of a model beside its picture: certificates in words, charts, settings. Plain data for JSON."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from mercer.backends.arrays import to_numpy
from mercer.certificates.card import card_of

_CURVES = 6  # eigenvalues drawn over a bandwidth
_LONGEST = 400  # points of a curve; of longer histories every so manieth is drawn
_LONG_VALUE = 80  # characters of a parameter that the page prints


def certificates_of(model: Any) -> list[dict[str, Any]]:
    """The card of the proof of every level, or of the one there is."""
    levels = getattr(model, "levels_", ())
    proofs = [level.certificate for level in levels] if levels else [getattr(model, "certificate_", None)]
    cards = []
    for number, proof in enumerate(proofs, 1):
        if proof is not None:
            name = f"Level {number}" if len(proofs) > 1 else ""
            cards.append({"name": name, "sign": (card := card_of(proof)).sign, **card._asdict()})
    return cards


def charts_of(model: Any, path: Any = None) -> list[dict[str, Any]]:
    """Spectrum, convergence and gap history of the model, and the path of ranks where there is one."""
    charts = [_spectrum(model), *_histories(model)]
    if path is not None:
        charts += _rank_path(path)
    return [chart for chart in charts if chart is not None and chart["series"]]


def settings_of(model: Any) -> list[tuple[str, str]]:
    """Parameters of the model and what the fit found, as texts."""
    pairs = [(name, _short(value)) for name, value in sorted(model.get_params(deep=False).items())]
    for name in ("kernel_", "rank_", "status_", "n_iter_", "n_products_"):
        value = getattr(model, name, None)
        if value is not None:
            pairs.append((name, _short(getattr(value, "name", value))))
    seconds = getattr(model, "phase_seconds_", None)
    if seconds:
        pairs.append(("seconds of the fit", f"{sum(seconds.values()):.2f}"))
    return pairs


def chart(title: str, note: str, x: str, y: str, series: Sequence[Any], **more: Any) -> dict[str, Any]:
    """A chart of curves: every series has a name, abscissae and ordinates; NaN breaks a curve."""
    drawn = [{"name": name, "x": _plain(xs), "y": _plain(ys)} for name, xs, ys in series if len(xs)]
    return {"title": title, "note": note, "x": x, "y": y, "series": drawn, **more}


def _spectrum(model: Any) -> dict[str, Any] | None:
    values = getattr(model, "eigenvalues_", None)
    if values is None:
        return None
    levels = getattr(model, "levels_", ())
    each = [to_numpy(level.eigenvalues) for level in levels] if len(levels) > 1 else [to_numpy(values)]
    named = [f"level {i}" for i in range(1, len(each) + 1)] if len(each) > 1 else ["eigenvalues"]
    learned = hasattr(model, "levels_")
    note = "Eigenvalues of the learned B / Tr B, in falling order." if learned else "Eigenvalues, in falling order."
    series = [(name, np.arange(1, v.size + 1), v) for name, v in zip(named, each, strict=True)]
    return chart("Spectrum", note, "number", "eigenvalue", series, bars=True)


def _histories(model: Any) -> list[dict[str, Any] | None]:
    levels = getattr(model, "levels_", ())
    runs = [level.history for level in levels] if levels else [getattr(model, "history_", ())]
    runs = [_thinned(run) for run in runs if run]
    if not runs:
        return []
    prefix = [f"level {i}: " if len(runs) > 1 else "" for i in range(1, len(runs) + 1)]
    gaps, objectives, ranks = [], [], []
    for name, run in zip(prefix, runs, strict=True):
        known = [step for step in run if step.relative_gap is not None]
        gaps.append((f"{name}certified gap", [s.number for s in known], [s.relative_gap for s in known]))
        known = [step for step in run if step.row_residual is not None]
        gaps.append((f"{name}row residual", [s.number for s in known], [s.row_residual for s in known]))
        objectives.append((f"{name}objective", [s.number for s in run], [s.objective for s in run]))
        if any(step.size for step in run):
            ranks.append((f"{name}size", [s.number for s in run], [s.size for s in run]))
    return [
        chart("Gap history", "How far the solution could be from the optimum, and how much it still moves, by step.",
              "step", "relative", gaps, log_y=True),
        chart("Convergence", "The objective by step of the solver.", "step", "objective", objectives),
        chart("Rank by step", "Columns of the factor that the solver works with.", "step", "columns", ranks),
    ]  # fmt: skip


def _rank_path(path: Any) -> list[dict[str, Any]]:
    sigmas = np.asarray(path.sigmas)
    spectrum, ranks = np.asarray(path.eigenvalues), [entry.rank or np.nan for entry in path.entries]
    count = min(_CURVES, spectrum.shape[1])
    curves = [(f"β{i + 1}", sigmas, np.where(spectrum[:, i] > 0, spectrum[:, i], np.nan)) for i in range(count)]
    note = path.reason
    suggested = None if path.suggested is None else float(path.suggested.sigma)
    more: dict[str, Any] = {"log_x": True, "mark": suggested}
    return [
        chart("Rank path", note, "bandwidth", "rank", [("rank", sigmas, ranks)], **more),
        chart("Spectrum over the bandwidth", "Eigenvalues of B / Tr B.", "bandwidth", "eigenvalue", curves, **more),
    ]


def _thinned(run: Any) -> list[Any]:
    """At most so many steps, the last among them."""
    stride = -(-len(run) // _LONGEST)
    return [*run[:-1][::stride], run[-1]]


def _plain(values: Any) -> list[float | None]:
    """Numbers for JSON, which has no NaN."""
    return [float(v) if np.isfinite(v) else None for v in np.asarray(values, dtype=np.float64).tolist()]


def _short(value: Any) -> str:
    text = " ".join(repr(value).split()) if not isinstance(value, str) else value
    return text if len(text) <= _LONG_VALUE else f"{text[: _LONG_VALUE - 1]}…"
