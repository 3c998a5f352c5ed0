"""``verbose=True`` tells the phase, the gap and the time of every fit that can be long; without it a fit is silent."""

import inspect
import logging
import re

import numpy as np
import pytest
from sklearn.base import BaseEstimator

import mercer
from mercer import (
    ConditionalMeanEmbedding,
    DiffusionMaps,
    DriftDetector,
    FisherDiscriminant,
    Gaussian,
    KernelDimensionReduction,
    Kernelized,
    KernelizedSDPEmbedding,
    KernelPCA,
    Landmarks,
    MaximumVarianceUnfolding,
    NoveltyDetector,
    QuadratureSparsifier,
    RobustKernelClassifier,
    RobustKernelRegressor,
    RobustKernelRidge,
    RoweisDiscriminant,
    SDPEmbedding,
    SumOfSquaresDensity,
    SupervisedPCA,
)

X = np.random.default_rng(0).normal(size=(40, 2))
CLASSES = (X[:, 0] > 0).astype(int)
# A fit of each, and what its lines begin with. Those of the first kind iterate, and prove a gap.
SOLVED = {
    SDPEmbedding: ({"kernel": Gaussian(1.0), "random_state": 0}, "climb"),
    KernelizedSDPEmbedding: ({"kernel": Gaussian(1.0), "nugget": 1e-7}, "interior point"),
    MaximumVarianceUnfolding: ({"n_neighbors": 10}, "interior point"),
    QuadratureSparsifier: ({"kernel": Gaussian(1.0), "n_nodes": 5, "solver": "active-set"}, "active set"),
    SumOfSquaresDensity: ({"kernel": Gaussian(1.0), "support": 15, "random_state": 0}, "faces"),
    RobustKernelRidge: ({"support": 5, "radius": 0.05, "tol": 1e-3, "random_state": 0}, "barrier"),
    RobustKernelRegressor: ({"radius": 0.05, "tol": 1e-3}, "interior point"),
    RobustKernelClassifier: ({"radius": 0.05, "tol": 1e-3}, "interior point"),
}
OTHERS = {
    KernelPCA: ({"kernel": Gaussian(1.0), "certify": True}, "finding the leading eigenpairs"),
    DiffusionMaps: ({"kernel": Gaussian(1.0)}, "finding the leading eigenpairs"),
    KernelDimensionReduction: ({"random_state": 0}, "quasi-Newton"),
    RoweisDiscriminant: ({}, "finding the directions"),
    FisherDiscriminant: ({}, "finding the directions"),
    SupervisedPCA: ({}, "finding the directions"),
    NoveltyDetector: ({}, "finding neighbours"),
    ConditionalMeanEmbedding: ({}, "trying penalties and bandwidths"),
}
EVERY = SOLVED | OTHERS
SHORT = {Landmarks, Kernelized, DriftDetector}  # a choice of rows, another's fit, a threshold


def targets(kind):
    return CLASSES if kind in (RobustKernelClassifier, FisherDiscriminant, RoweisDiscriminant) else X[:, 0]


def said(kind, caplog, **more):
    with caplog.at_level(logging.INFO, "mercer"):
        model = kind(**EVERY[kind][0], **more).fit(X, targets(kind))
    return model, [record.getMessage() for record in caplog.records if record.name == "mercer"]


def test_every_long_fit_can_be_followed():
    public = (getattr(mercer, name) for name in mercer.__all__ if name != "__version__")
    kinds = {kind for kind in public if inspect.isclass(kind) and issubclass(kind, BaseEstimator)}
    assert kinds - SHORT == set(EVERY)
    for kind in EVERY:
        assert inspect.signature(kind).parameters["verbose"].default is False


@pytest.mark.parametrize("kind", EVERY)
def test_phase_and_time_are_told(kind, caplog):
    model, lines = said(kind, caplog, verbose=True)
    assert any(line.startswith(EVERY[kind][1]) for line in lines)
    assert all(re.search(r"\d\.\d s\b", line) for line in lines if line.startswith(EVERY[kind][1]))
    assert re.match(rf"{kind.__name__} fitted in \d+\.\d s", lines[-1])
    proof = getattr(model, "certificate_", None)
    assert proof is None or lines[-1].endswith(f" s. {proof}")


@pytest.mark.parametrize("kind", SOLVED)
def test_the_gap_is_told(kind, caplog):
    model, lines = said(kind, caplog, verbose=True)
    steps = [line for line in lines if ", step " in line]
    assert len(steps) == len(model.history_) or kind is QuadratureSparsifier  # whose penalties are sought on the way
    assert any(re.search(r"gap \d\.\de[+-]\d\d", line) for line in steps)


@pytest.mark.parametrize("kind", EVERY)
def test_a_fit_is_silent_unless_asked(kind, caplog, capsys):
    assert said(kind, caplog)[1] == []
    assert capsys.readouterr() == ("", "")
