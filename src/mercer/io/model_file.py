"""Models as files: what was learned, with its certificate, and nothing that runs."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from mercer.io import container
from mercer.io.classes import is_known, name_of
from mercer.io.decoding import Decoder
from mercer.io.encoding import Encoder
from mercer.io.references import MOST_REFERENCES, references_followed
from mercer.io.refusals import ModelFileError, UnsavableError, damaged
from mercer.io.summary import summary

MOST_BRACKETS = 2**21  # of the JSON of a file, each a list or a mapping that reading it would make: a second's work
_SAID = ("library", "class", "parameters", "kernel", "data", "certificate", "levels", "notes")  # in the header


def save(model: Any, path: str | os.PathLike[str], *, notes: Mapping[str, Any] | None = None) -> None:
    """Write a model into one file that holds numbers and texts and nothing that runs.

    The file is a safetensors file with a JSON header. It is written whole or not at all: whoever reads the path while
    this runs, or after it was killed, finds what was there before or the whole new file.

    Parameters
    ----------
    model : estimator, kernel or other object of Mercer
        Fitted or not. What it refers to must be Mercer's own too, arrays, numbers and texts: a function of yours, or a
        class of yours, is refused by name. Tensors are stored as arrays.
    path : str or path
        The file, which by custom ends in ``.mercer``; its folder must exist. One that is there is replaced.
    notes : mapping, optional
        What else :func:`mercer.io.describe` is to tell of the file, as JSON has it: texts, numbers, lists and mappings.
        No part of the model. The command ``mercer`` keeps here how the columns of a table were standardised.

    See Also
    --------
    load : The model again.
    mercer.io.describe : What a file says of its model.

    Examples
    --------
    >>> import mercer, tempfile
    >>> from pathlib import Path
    >>> X, _ = mercer.datasets.three_clusters()
    >>> model = mercer.SDPEmbedding(mercer.Gaussian(sigma=1.2), random_state=0).fit(X)
    >>> path = Path(tempfile.mkdtemp()) / "clusters.mercer"
    >>> mercer.save(model, path)
    >>> again = mercer.load(path)
    >>> bool((again.transform(X) == model.transform(X)).all())
    True
    >>> mercer.verify(again, X).holds(1e-6)
    True
    """
    name = name_of(type(model))
    if name is None:
        raise UnsavableError(
            f"save takes a model or a kernel of Mercer and a path, not a {type(model).__name__}: use joblib for "
            "others, whose files run code when they are loaded."
        )
    _check_parameters(model)
    encoder = Encoder()
    encoder.value(model, name)
    texts = {
        "format": str(container.FORMAT),
        "header": _json({"library": _library_version(), "class": name, **summary(model), "notes": _plain_notes(notes)}),
        "parts": _json(encoder.parts),
    }
    if sum(len(text.encode()) for text in texts.values()) > container.MOST_TEXT:
        raise UnsavableError(f"{name} holds more texts and single numbers than a model file can: give them as arrays.")
    if max(map(_brackets, texts.values())) > MOST_BRACKETS:
        raise UnsavableError(f"{name} holds more lists and mappings than a model file can: give them as arrays.")
    if references_followed(encoder.parts) > MOST_REFERENCES:
        raise UnsavableError(f"{name} has parts inside parts without end: no model file holds so many.")
    container.write(path, texts, encoder.arrays)


def load(path: str | os.PathLike[str]) -> Any:
    """Read a model from a file that :func:`save` wrote; no code of the file is run, for it has none.

    Parameters
    ----------
    path : str or path
        The file.

    Returns
    -------
    estimator, kernel or other object of Mercer
        Of the same class and parameters; predictions are the same to the last bit. Arrays are NumPy's.

    Raises
    ------
    ModelFileError
        If the file is damaged, altered, of a newer format than this version of Mercer knows, or no model file. It is a
        ValueError.
    FileNotFoundError
        If there is none.
    """
    with _readable(path) as content:
        header, parts = _header(content), _parsed(content.texts.get("parts"))
        if isinstance(parts, list) and references_followed(parts) > MOST_REFERENCES:
            damaged("its parts refer to one another more often than those of any model")
        model = Decoder(parts, content.stored, content.read).whole()
        if name_of(type(model)) != header["class"]:
            damaged(f"its header says {header['class']}, and it holds a {type(model).__name__}")
        if _bounds(summary(model)["certificate"]) != _bounds(header["certificate"]):
            damaged("its header states another certificate than its model has")
        _check_parameters(model)
        return model


def describe(path: str | os.PathLike[str]) -> dict[str, Any]:
    """What a file says of its model, without building it.

    Parameters
    ----------
    path : str or path
        The file.

    Returns
    -------
    dict
        ``format`` and ``library``, the versions of both; ``class``; ``parameters``, in words where they are neither
        numbers nor texts; ``kernel`` in words, with the parameters that the fit found; ``data``, the ``rows``,
        ``columns`` and ``fingerprint`` of what it was fitted to; ``certificate``, its bounds and its sentence in
        ``words``; ``levels``, the same of each level of an embedding that has several; ``notes``, what was given to
        :func:`mercer.save`; ``arrays`` and ``array_bytes``, how many there are and their size; ``file_bytes``. What
        does not apply is None. It is what the file *says*: :func:`mercer.verify` finds out whether it is true.
    """
    with _readable(path) as content:
        sizes = [_bytes_of(*each) for each in content.stored.values()]
        return {
            "format": int(content.texts["format"]),
            **_header(content),
            "arrays": len(sizes),
            "array_bytes": sum(sizes),
            "file_bytes": content.size,
        }


@contextmanager
def _readable(path: str | os.PathLike[str]) -> Iterator[container.Content]:
    """The content of a file; whatever is wrong with it, or with what is made of it, is one sentence that names it."""
    try:
        with container.opened(path) as content:
            yield content
    except ModelFileError as error:
        raise ModelFileError(f"{os.fspath(path)} cannot be loaded: {error}.") from None
    except OSError:
        raise
    except Exception as error:  # a file can be wrong in more ways than its readers have exceptions for
        first = str(error).strip().split("\n")[0].rstrip(".")
        raise ModelFileError(f"{os.fspath(path)} cannot be loaded: what it holds is no model ({first}).") from error


def _header(content: container.Content) -> dict[str, Any]:
    header = _parsed(content.texts.get("header"))
    if not isinstance(header, dict) or not is_known(header.get("class")):
        damaged("its header names no class that this version of Mercer knows")
    if not all(isinstance(header.get(name), dict | None) for name in ("parameters", "data", "certificate", "notes")):
        damaged("its header is none")
    return {name: header.get(name) for name in _SAID}


def _bounds(certificate: dict[str, Any] | None) -> tuple[Any, Any] | None:
    """What a certificate states; its words may change with the version of Mercer."""
    return None if certificate is None else (certificate.get("lower"), certificate.get("upper"))


def _library_version() -> str:
    """That of the package, whose own file looks at every room."""
    return str(sys.modules["mercer"].__version__)


def _plain_notes(notes: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """The notes, if JSON has such things."""
    try:
        return None if notes is None else dict(json.loads(_json(dict(notes))))
    except (TypeError, ValueError) as error:
        raise UnsavableError(
            f"notes must be what JSON has: texts, finite numbers, lists and mappings ({error})."
        ) from None


def _brackets(text: str) -> int:
    """How many lists and mappings the JSON can stand for, counted before they are made."""
    return text.count("[") + text.count("{")


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))


def _parsed(text: str | None) -> Any:
    if text is None:
        damaged("it is no model file")
    if _brackets(text) > MOST_BRACKETS:
        damaged("it has more lists and mappings than any model")
    try:
        return json.loads(text, parse_constant=_no_constant, object_pairs_hook=_with_each_name_once)
    except (ValueError, RecursionError):
        damaged("its JSON cannot be read")


def _no_constant(word: str) -> Any:
    """Refuse NaN and Infinity, which JSON does not have and :func:`save` never writes so."""
    raise ValueError(word)


def _with_each_name_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """A mapping, if it says nothing twice: readers differ in which they believe."""
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a name stands twice")
    return found


def _check_parameters(model: Any) -> None:
    """Refuse parameters of a fitted model that no fit takes."""
    if hasattr(model, "_check_parameters") and hasattr(model, "n_features_in_"):
        model._check_parameters()


def _bytes_of(kind: str, shape: tuple[int, ...]) -> int:
    size = 1 if kind == "BOOL" else int("".join(filter(str.isdecimal, kind))) // 8
    for count in shape:
        size *= count
    return size
