"""What tells one run from another: two runs whose programmes differ never share a journal."""

from __future__ import annotations

import os
import subprocess
import sys
from functools import partial

import numpy as np
import pytest

from mercer import Gaussian, QuadratureSparsifier, config_context
from mercer.journal import JournalError
from mercer.journal.identity import Identity
from mercer.kernels.integrals.measures import DiscreteMeasure, GaussianMeasure

MANY = np.linspace(0, 1, 5000)[:, None]


def moved(at):
    """The same points but for one amid them, which no print of them shows."""
    points = MANY.copy()
    points[2500] += at
    return points


class Penalty:
    """A callable with a state, and without words for it."""

    def __init__(self, factor):
        self.factor = factor

    def __call__(self, X):
        return self.factor * np.ones(len(X))

    def of(self, X):
        return self(X)


def penalty(factor):
    def at(X):
        return factor * np.ones(len(X))

    return at


def by_default(factor):
    def at(X, factor=factor):
        return factor * np.ones(len(X))

    return at


MAKERS = {
    "points of a measure": lambda at: DiscreteMeasure(moved(at), np.ones(5000)),
    "weights of a measure": lambda at: DiscreteMeasure(MANY, moved(at)[:, 0]),
    "a late digit": lambda at: GaussianMeasure(np.array([0.1 + 1e-6 * at, 0.2]), 1.0),
    "a measure in a list": lambda at: [GaussianMeasure(np.zeros(2), 1.0), DiscreteMeasure(moved(at))],
    "what a function was made with": penalty,
    "a default": by_default,
    "part of a function": lambda at: partial(penalty, factor=at),
    "an object": Penalty,
    "a method": lambda at: Penalty(at).of,
    "a kernel": lambda at: Gaussian(1 + 1e-12 * at),
    "a kernel of columns": lambda at: Gaussian(np.array([1.0, 1 + 1e-12 * at])),
}


def identity(value):
    return Identity.of("fit", {"value": value}, MANY)


@pytest.mark.parametrize("name", MAKERS)
def test_parameters_are_told_apart_by_all_they_are_made_of(name):
    one, same, other = (identity(MAKERS[name](at)) for at in (1e-3, 1e-3, 2e-3))
    assert one == same
    assert one.difference(other) == "other parameters"
    assert one.digits != other.digits


def test_functions_are_told_apart_by_what_they_do():
    scope = {}
    exec("def f(X):\n    return [2 * x for x in X]\ndef g(X):\n    return [3 * x for x in X]", scope)
    scope["g"].__qualname__ = "f"
    assert identity(scope["f"]) != identity(scope["g"])


def test_what_holds_itself_has_an_end():
    one = Penalty(1.0)
    one.factor = [one, one.of, lambda X: one(X)]
    assert identity(one) == identity(one)


def test_an_identity_is_the_same_in_every_process():
    code = (
        "from mercer.journal.identity import Identity\n"
        "def f(X): return [x for x in X if x in {'a', 'b', 'c', 'd', 'e'}]\n"
        "print(Identity.of('fit', {'value': f}).digits)"
    )
    found = {
        subprocess.run(
            [sys.executable, "-c", code],
            capture_output=True,
            text=True,
            check=True,
            env=os.environ | {"PYTHONHASHSEED": seed},
        ).stdout
        for seed in ("1", "2")
    }
    assert len(found) == 1


def test_a_bit_of_the_data_is_told():
    other = MANY.copy()
    other[77] = np.nextafter(other[77], 2.0)
    assert identity(None).difference(Identity.of("fit", {"value": None}, other)) == "other data"


def test_a_run_with_torch_is_another_run():
    pytest.importorskip("torch")
    with config_context(device="torch"):
        other = identity(None)
    assert identity(None).difference(other) == "other parameters"


def test_a_run_with_another_law_does_not_go_on_from_the_journal(tmp_path):
    X = np.random.default_rng(0).uniform(size=(60, 1))
    with config_context(checkpoint=tmp_path / "run.journal", checkpoint_every=0):
        laws = [DiscreteMeasure(moved(at)) for at in (0.0, 0.5)]
        QuadratureSparsifier(Gaussian(0.3), n_nodes=5, measure=laws[0]).fit(X)
        with pytest.raises(JournalError, match="of other parameters"):
            QuadratureSparsifier(Gaussian(0.3), n_nodes=5, measure=laws[1]).fit(X)
