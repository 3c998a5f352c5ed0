"""One trial of an estimator: fit, read, ask of old and new points, prove again, write and read back."""

from __future__ import annotations

import inspect
import tempfile
from pathlib import Path

import numpy as np
from fuzz_estimators import draw_estimator
from fuzz_judging import Defect, Refusal, attempt, check_attributes, check_proof, finite
from fuzz_samples import ROWS, draw_sample

import mercer

SUPERVISED = {
    "ConditionalMeanEmbedding", "FisherDiscriminant", "KernelDimensionReduction", "Kernelized", "RobustKernelClassifier",
    "RobustKernelRegressor", "RobustKernelRidge", "RoweisDiscriminant", "SupervisedPCA",
}  # fmt: skip
ANSWERS = (
    "transform",
    "predict",
    "score_samples",
    "decision_function",
    "predict_proba",
    "novelty",
    "update",
    "density",
)
UNCERTIFIED = ("Landmarks", "DriftDetector")
SAME = 1e-12  #: of the largest answer
FAR = 1e3  #: new points as far away as this many times the sample's size


def run_trial(pick, name, *, rows=ROWS):
    """Try one estimator on one sample; the words that both were drawn by, and whether it was refused."""
    model, said = draw_estimator(pick, name)
    sample = draw_sample(pick, rows=rows)
    what = f"{said} on {sample.said}"
    y = sample.y if name in SUPERVISED else None
    before = np.array(sample.X, copy=True)
    said = []
    fitted = attempt(what, lambda: _fit(model, sample, y), said)
    if not np.array_equal(before, np.asarray(sample.X)):
        raise Defect(f"{what}: fit changed X")
    if isinstance(fitted, Refusal):
        return what, fitted.sentence
    check_attributes(what, fitted)
    _check_answers(what, fitted, sample)
    check_proof(what, fitted, sample, y=y, said=said)
    _check_file(what, fitted, sample)
    return what, None


def _fit(model, sample, y):
    takes = inspect.signature(model.fit).parameters
    given = {"sample_weight": sample.weights} if sample.weights is not None and "sample_weight" in takes else {}
    return model.fit(sample.X, **({} if y is None else {"y": y}), **given)


def _check_answers(what, model, sample):
    new = sample.points
    with np.errstate(over="ignore"):
        far = FAR * new
    for points, whose in ((sample.X, "its points"), (new[:1], "one point"), (far, "far points")):
        if not np.isfinite(points).all():
            continue
        for name in ANSWERS:
            if hasattr(model, name):
                answer = attempt(
                    f"{what}: {name} of {whose}", lambda name=name, points=points: getattr(model, name)(points)
                )
                allowed = isinstance(model, mercer.Kernelized) or whose == "far points" or _beyond_numbers(answer)
                if isinstance(answer, Refusal) and not allowed:
                    raise Defect(f"{what}: {name} refuses {whose}: {answer.sentence}")
                if name == "score_samples":  # a density is zero in places
                    answer = np.where(np.isneginf(answer), 0.0, answer) if not isinstance(answer, Refusal) else None
                if not isinstance(answer, Refusal):
                    finite(f"{what}: {name} of {whose}", answer)


def _beyond_numbers(answer):
    """A density of points in a tiny box of many columns, which is no number though its logarithm is one."""
    return isinstance(answer, Refusal) and "exceeds the largest number: ask score_samples" in answer.sentence


def _check_file(what, model, sample):
    """A model that is written and read back says the same."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model"
        written = attempt(f"{what}: save", lambda: mercer.save(model, path))
        if isinstance(written, Refusal):
            return
        again = attempt(f"{what}: load", lambda: mercer.load(path))
    if isinstance(again, Refusal):
        raise Defect(f"{what}: load refuses what save wrote: {again.sentence}")
    name = next((name for name in ("transform", "predict", "score_samples") if hasattr(model, name)), None)
    if name is not None:
        first, second = (np.asarray(getattr(each, name)(sample.X)) for each in (model, again))
        if not _same(first, second):
            raise Defect(f"{what}: {name} of the model read back differs")


def _same(first, second):
    """Equal words, or numbers that are equal but for the order in which they were added up."""
    if first.dtype.kind != "f":
        return np.array_equal(first, second)
    return np.allclose(first, second, rtol=0, atol=SAME * np.max(np.abs(first), where=np.isfinite(first), initial=0.0))
