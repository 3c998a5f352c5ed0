"""What every call owes: a finite answer whose proof holds when made again, or one clear sentence."""

from __future__ import annotations

import linecache
import os
import traceback
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from numbers import Number
from pathlib import Path

import numpy as np
import scipy.sparse as sparse

import mercer

HOME = Path(mercer.__file__).parent
MINE = str(Path(__file__).parent)
LONGEST = 700  #: characters of a sentence
WITHOUT_BOUND = {"threshold_", "statistic_", "mmd_"}  #: minus infinity before there is a row, nan if not computed


@dataclass(frozen=True)
class Refusal:
    """A sentence in the place of an answer."""

    sentence: str


class Defect(AssertionError):
    """What no call may do."""


def attempt(what, call, said=None):
    """The answer of a call, or its refusal. Anything but a refusal in one of our sentences is a defect.

    What it warns of is added to the list ``said``.
    """
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            answer = call()
        except Defect:
            raise
        except Exception as error:
            fault = _fault(error)
            if fault:
                where = traceback.extract_tb(error.__traceback__)[-1]
                place = f"{os.path.basename(where.filename)}:{where.lineno}"
                raise Defect(f"{what}: {fault}: {type(error).__name__}: {str(error)[:300]} ({place})") from error
            answer = Refusal(str(error))
    if said is not None:
        said += [str(warning.message) for warning in caught]
    for warning in caught:
        if "sklearn" in warning.filename and what.startswith("Kernelized("):  # said by the user's own estimator
            continue
        if not issubclass(warning.category, UserWarning) or not warning.filename.startswith(MINE):
            place = f"{os.path.basename(warning.filename)}:{warning.lineno}"
            raise Defect(f"{what}: warned {warning.category.__name__}: {str(warning.message)[:200]} ({place})")
    return answer


def _of_users_estimator(error):
    """Whether the estimator that a Kernelized has inside raised it."""
    frames = [frame.filename for frame in traceback.extract_tb(error.__traceback__)]
    ours = [place for place, name in enumerate(frames) if str(HOME) in name]
    return bool(ours) and "kernelization" in frames[ours[-1]] and any("sklearn" in name for name in frames[ours[-1] :])


def _fault(error):
    """What is wrong with an exception, empty if it is a refusal in one of our sentences or scikit-learn's."""
    if _of_users_estimator(error):
        return ""
    home = type(error).__module__
    kinds = (ValueError, TypeError, MemoryError, AttributeError, ArithmeticError)
    if type(error) not in kinds and not home.startswith("mercer"):
        return "no refusal"
    sentence = str(error)
    frame = traceback.extract_tb(error.__traceback__)[-1]
    ours = str(HOME) in frame.filename
    if not ours and "sklearn" not in frame.filename:
        return "raised by another library"
    if not linecache.getline(frame.filename, frame.lineno).lstrip().startswith("raise"):
        return "not raised on purpose"
    if ours and ("\n" in sentence or len(sentence) > LONGEST or len(sentence) < 20):
        return "no clear sentence"
    return ""


def finite(what, value, depth=0):
    """Refuse numbers that are not finite, wherever they lie in an answer."""
    if isinstance(value, bool | str | bytes) or value is None or (callable(value) and not hasattr(value, "dtype")):
        return
    if isinstance(value, Number):
        _require(np.isfinite(value), what, value)
    elif sparse.issparse(value):
        finite(what, value.data, depth)
    elif isinstance(value, np.ndarray):
        if value.dtype.kind in "fc":
            _require(np.isfinite(value).all(), what, f"{int((~np.isfinite(value)).sum())} of {value.size}")
    elif isinstance(value, Mapping) and depth < 3:
        for key, part in value.items():
            finite(f"{what}[{key!r}]", part, depth + 1)
    elif isinstance(value, list | tuple) and depth < 3:
        for number, part in enumerate(value):
            finite(f"{what}[{number}]", part, depth + 1)


def _require(holds, what, value):
    if not holds:
        raise Defect(f"{what} is not finite: {value}")


def check_attributes(what, model):
    """All that a person can read off a fitted model is finite."""
    for name, value in vars(model).items():
        if name.endswith("_") and not name.startswith("_") and name not in WITHOUT_BOUND:
            finite(f"{what}: {name}", value)


def check_proof(what, model, sample, *, y, said):
    """The certificate is in order, and one made anew from the data brackets the same optimum.

    A bound may be infinite where the fit says so in a warning.
    """
    proof = getattr(model, "certificate_", None)
    if proof is None:
        return
    if np.isnan([proof.lower, proof.upper]).any() or (not said and np.isinf([proof.lower, proof.upper]).any()):
        raise Defect(f"{what}: certificate_ says [{proof.lower}, {proof.upper}], and no warning does")
    again = attempt(f"{what}: verify", lambda: mercer.verify(model, sample.X, y, random_state=1))
    if isinstance(again, Refusal):
        raise Defect(f"{what}: verify refuses its own model: {again.sentence}")
    if len(getattr(model, "levels_", ())) > 1:  # verify compares level by level, and returns the widest
        return
    slack = 1e-12 * max(
        abs(value) for value in (proof.lower, proof.upper, again.lower, again.upper) if np.isfinite(value)
    )
    if again.lower > proof.upper + slack or proof.lower > again.upper + slack:
        raise Defect(
            f"{what}: [{proof.lower}, {proof.upper}] and, made again, [{again.lower}, {again.upper}] are apart"
        )
