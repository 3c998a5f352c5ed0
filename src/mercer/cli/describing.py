"""What ``mercer info`` says: of a model file, or of the installation."""

from __future__ import annotations

import os
import platform
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from mercer.cli.errors import one_sentence
from mercer.cli.saying import Account
from mercer.cli.tables import listed
from mercer.wording import size_in_words

_PACKAGES = ("numpy", "scipy", "scikit-learn", "numba", "safetensors")
_OPTIONAL = {
    "torch": "tensors and GPUs",
    "cvxpy": "a second solver for small problems",
    "pandas": "data frames",
    "polars": "data frames",
    "pyarrow": ".parquet",
    "anndata": ".h5ad",
    "pynndescent": "neighbours of many points",
    "dask": "clusters",
}


def described(options: dict[str, Any]) -> None:
    """Answer a call of ``mercer info``."""
    with one_sentence():
        account = _of_installation() if options["model"] is None else _of_model(options["model"])
    account.say(as_json=options["as_json"], quiet=options["quiet"])


def _of_model(path: Path) -> Account:
    from mercer.io import Preparation, describe

    said = describe(path)
    prepared = (said.pop("notes") or {}).get("preparation")
    account = Account(facts={"model": str(path), **said, "preparation": prepared})
    account.sentence = f"{path} is a model of the class {said['class']}, written by Mercer {said['library']}."
    if said.get("kernel"):
        account.lines.append(("Kernel", said["kernel"]))
    seen = said.get("data")
    if seen:
        account.lines.append(("Data", f"{seen['rows']} rows, {seen['columns']} columns"))
    if prepared is not None:
        found = Preparation.from_dict(prepared)
        account.lines.append(("Columns", listed(found.columns) + (", standardised" if found.is_scaled else "")))
    proof = said.get("certificate")
    for number, each in enumerate(said.get("levels") or (), 1):
        account.lines.append((f"Level {number}", each["words"] if each else "not certified"))
    if not said.get("levels"):
        account.lines.append(("Certificate", proof["words"] if proof else "none"))
    account.lines.append(("Size", f"{size_in_words(said['file_bytes'])} in {said['arrays']} arrays"))
    account.notes.append("This is what the file says; mercer verify finds out whether it is true.")
    return account


def _of_installation() -> Account:
    import mercer
    from mercer.backends import get_config

    config = get_config()
    found = {name: _version(name) for name in _PACKAGES}
    optional = {name: _version(name) for name in _OPTIONAL}
    account = Account(
        sentence=f"Mercer {mercer.__version__} on Python {platform.python_version()}, {platform.platform()}."
    )
    account.lines = [
        ("Packages", ", ".join(f"{name} {number}" for name, number in found.items())),
        ("Optional", ", ".join(f"{name} {number}" for name, number in optional.items() if number) or "none"),
        (
            "Not found",
            ", ".join(f"{name} ({_OPTIONAL[name]})" for name, number in optional.items() if not number) or "–",
        ),
        ("Processors", f"{os.cpu_count()}, threads: {config.n_threads or 'as many as there are'}"),
        ("Device", _device(config)),
    ]
    account.facts = {
        "python": platform.python_version(),
        "platform": platform.platform(),
        "packages": found,
        "optional": optional,
        "processors": os.cpu_count(),
        "threads": config.n_threads,
        "device": _device(config),
        "data_folder": os.environ.get("MERCER_DATA"),
    }
    return account


def _device(config: Any) -> str:
    """Where arrays are computed with; that of a GPU that torch sees, by its name."""
    if find_spec("torch") is not None:
        import torch

        if torch.cuda.is_available():
            return f"{config.device or 'cpu'}; {torch.cuda.get_device_name()} is there"
    return str(config.device or "cpu")


def _version(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None
