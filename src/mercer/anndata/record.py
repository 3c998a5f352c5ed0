"""What is written about a fit: numbers, texts and arrays under names, which a file of AnnData can store."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from importlib.metadata import version
from typing import Any

import numpy as np

from mercer.anndata.representation import Representation
from mercer.backends.arrays import to_numpy
from mercer.certificates import Certificate

Plain = dict[str, Any]


def record(model: Any, source: Representation, *, proved: bool) -> Plain:
    """All that is written about coordinates; the proofs are those of the cells that were fitted."""
    return {"params": _parameters(model, source), **(_proofs(model) if proved else {})}


def _parameters(model: Any, source: Representation) -> Plain:
    """How coordinates were made: the version, the estimator with its parameters, and what it was shown.

    Parameters that are None are left out, and objects, such as a kernel, stand as their text: what is in a file cannot
    run.
    """
    own = {name: _plain(value) for name, value in model.get_params(deep=False).items() if value is not None}
    shown = {"use_rep": source.use_rep, "n_pcs": source.n_columns}
    named = {"estimator": type(model).__name__, "kernel": repr(getattr(model, "kernel_", None))}
    return {**own, **shown, **named, "mercer_version": version("mercer")}


def _proofs(model: Any) -> Plain:
    """The certificate of a model, and those of its levels where it has some; empty without any."""
    certificate = getattr(model, "certificate_", None)
    if not isinstance(certificate, Certificate):
        return {}
    found: Plain = {"certificate": _numbers_of(certificate)}
    levels = [each for each in getattr(model, "levels_", ()) if each.certificate is not None]
    if levels:
        bounds = ("lower", "upper", "relative_gap", "failure_probability")
        found["levels"] = {"rank": np.array([each.rank for each in levels])} | {
            name: np.array([getattr(each.certificate, name) for each in levels]) for name in bounds
        }
    return found


def _numbers_of(certificate: Certificate) -> Plain:
    """The numbers of a certificate by their names, its relative gap, and its sentence."""
    numbers = {name: _plain(value) for name, value in asdict(certificate).items()}
    return {**numbers, "relative_gap": float(certificate.relative_gap), "sentence": str(certificate)}


def _plain(value: Any) -> Any:
    """A number, a text or an array as it is; anything else as its text."""
    if isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, Mapping):
        return {str(name): _plain(each) for name, each in value.items()}
    if hasattr(value, "shape"):
        return to_numpy(value)
    return repr(value)
