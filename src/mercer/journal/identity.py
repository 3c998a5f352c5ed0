"""What tells one run from another: what is run, with which parameters, on which data, by which version."""

from __future__ import annotations

import hashlib
import re
import sys
from collections.abc import Mapping
from contextvars import ContextVar
from dataclasses import fields, is_dataclass
from functools import partial
from types import CodeType, FunctionType, MethodType
from typing import Any, NamedTuple

import numpy as np

from mercer.backends import get_config
from mercer.backends.arrays import is_source, is_tensor
from mercer.backends.fingerprint import fingerprint

_ADDRESS = re.compile(r" at 0x[0-9a-f]+")
_HOW = ("callback", "progress", "verbose", "n_jobs", "checkpoint")  # which change what is seen, and nothing else
_inside: ContextVar[frozenset[int]] = ContextVar("mercer_told", default=frozenset())  # what holds itself ends there


class Identity(NamedTuple):
    """What a run is of, in texts.

    Attributes
    ----------
    what : str
        An estimator or a function by name.
    data : str
        Fingerprints of all arrays that it is given.
    parameters : str
        In one line, with the arithmetic and where products are made, whose rounding proofs count with.
    version : str
        Of Mercer.
    """

    what: str
    data: str
    parameters: str
    version: str

    @classmethod
    def of(cls, what: str, parameters: Mapping[str, Any], *data: Any) -> Identity:
        """Of an estimator or function with these parameters, on these arrays."""
        named = {name: value for name, value in sorted(parameters.items()) if name not in _HOW}
        text = ", ".join(f"{name}={_told(value)}" for name, value in named.items())
        parts = " ".join(_told(part) for part in data)
        version = str(sys.modules["mercer"].__version__)
        config = get_config()
        place = f"{config.device}{'' if config.client is None else ' and a cluster'}"
        return cls(what, parts, f"{text}, dtype={config.dtype}, on {place}", version)

    @property
    def digits(self) -> str:
        """Twelve digits, for the name of a file."""
        return hashlib.blake2b("\n".join(self).encode(), digest_size=6).hexdigest()

    def difference(self, other: Identity) -> str | None:
        """How another run differs, in words; None where it is the same."""
        if self.what != other.what:
            return f"a run of {other.what}, not of {self.what}"
        if self.version != other.version:
            return f"version {other.version} of Mercer, and this is {self.version}"
        if self.data != other.data:
            return "other data"
        return None if self.parameters == other.parameters else "other parameters"


def _told(value: Any) -> str:
    """A value in one line that is the same in every process; arrays by their fingerprint."""
    if value is None or isinstance(value, (bool, int, float, str)):
        return repr(value)
    if isinstance(value, np.ndarray) or is_source(value) or is_tensor(value) or hasattr(value, "tocsr"):
        return _told_array(value)
    if hasattr(value, "to_numpy"):  # a data frame, or a column of one
        return f"{list(getattr(value, 'columns', ()))} {_told_array(np.asarray(value.to_numpy()))}"
    if isinstance(value, (list, tuple)):
        return f"({', '.join(_told(each) for each in value)})"
    if isinstance(value, Mapping):
        return f"{{{', '.join(f'{key!r}: {_told(each)}' for key, each in value.items())}}}"
    if isinstance(value, (np.random.Generator, np.random.RandomState)):
        return type(value).__name__
    if hasattr(value, "get_params") and not isinstance(value, type):
        return f"{type(value).__name__}({_told(value.get_params(deep=False))})"
    if id(value) in (inside := _inside.get()):
        return f"{type(value).__name__} again"
    token = _inside.set(inside | {id(value)})
    try:
        return _told_object(value)
    finally:
        _inside.reset(token)


def _told_object(value: Any) -> str:
    """An object by all that it is made of: its fields, or what a function does and what it was made with."""
    kind = type(value).__name__
    if is_dataclass(value) and not isinstance(value, type):
        return f"{kind}({', '.join(f'{each.name}={_told(getattr(value, each.name))}' for each in fields(value))})"
    if isinstance(value, FunctionType):
        kept = [cell.cell_contents for cell in value.__closure__ or () if _is_filled(cell)]
        made_with = _told((value.__defaults__, value.__kwdefaults__, kept))
        return f"{value.__module__}.{value.__qualname__}:{_told_code(value.__code__)}{made_with}"
    if isinstance(value, MethodType):
        return f"{_told(value.__func__)} of {_told(value.__self__)}"
    if isinstance(value, partial):
        return f"partial{_told((value.func, value.args, value.keywords))}"
    if callable(value) and hasattr(value, "__qualname__"):
        return f"{value.__module__}.{value.__qualname__}"
    if hasattr(value, "__dict__") and vars(object)["__repr__"] is type(value).__repr__:  # no words of its own
        return f"{kind}({_told(vars(value))})"
    with np.printoptions(threshold=sys.maxsize, floatmode="unique"):
        return _ADDRESS.sub("", repr(value))


def _is_filled(cell: Any) -> bool:
    try:
        return cell.cell_contents is not None
    except ValueError:  # of a name that is not bound yet
        return False


def _told_code(code: CodeType) -> str:
    """A digest of what the code does, that of the functions inside it among it."""
    constants = [_told_constant(each) for each in code.co_consts]
    text = f"{code.co_code.hex()} {code.co_names} {constants}"
    return hashlib.blake2b(text.encode(), digest_size=8).hexdigest()


def _told_constant(value: Any) -> str:
    if isinstance(value, frozenset):  # whose order changes from process to process
        return str(sorted(map(repr, value)))
    return _told_code(value) if isinstance(value, CodeType) else repr(value)


def _told_array(array: Any) -> str:
    kind = getattr(array, "dtype", None)
    if isinstance(array, np.ndarray) and array.dtype.kind not in "biuf":
        return hashlib.blake2b(repr(array.tolist()).encode(), digest_size=8).hexdigest()
    return f"{kind}{tuple(array.shape)}:{fingerprint(array)}"
