"""Every estimator on a card that is pretended: tensors stay there, NumPy users' arrays go over and come back."""

from __future__ import annotations

import inspect
import warnings

import numpy as np
import pytest
from sklearn.base import BaseEstimator
from sklearn.linear_model import LogisticRegression, Ridge

import mercer
from mercer import Gaussian, config_context
from mercer.backends.arrays import is_tensor, to_numpy

torch = pytest.importorskip("torch")

K = Gaussian(1.5)
X = np.random.default_rng(1).normal(size=(24, 2)) @ np.diag([2.0, 1.0])
Y = np.where(np.sin(X[:, 0]) + 0.1 * X[:, 1] > 0, 1.0, 0.0)
NEW = X[:4] + 0.01
# A small fit of every public estimator, and the methods of new points that answer by tensors, then those by NumPy's arrays:
# labels, what scikit-learn's estimators answer, and the fits that are compiled for processors.
CASES = {
    "embedding": (lambda: mercer.SDPEmbedding(K, random_state=0), "transform novelty learned_kernel", ""),
    "levels": (lambda: mercer.SDPEmbedding(K, n_levels=2, random_state=0), "transform", ""),
    "landmarks inside": (lambda: mercer.SDPEmbedding(K, landmarks=8, random_state=0), "transform novelty", ""),
    "neighbours": (lambda: mercer.SDPEmbedding(random_state=0, n_levels=1), "transform", ""),
    "interior point": (lambda: mercer.SDPEmbedding(K, solver="interior-point", random_state=0), "transform", ""),
    "diffusion maps": (lambda: mercer.DiffusionMaps(random_state=0), "transform", ""),
    "kernel PCA": (lambda: mercer.KernelPCA(K, certify=True, random_state=0), "transform", ""),
    "kernelized": (lambda: mercer.KernelizedSDPEmbedding(K, nugget=1e-7, tol=1e-4), "transform learned_kernel", ""),
    "unfolding": (lambda: mercer.MaximumVarianceUnfolding(n_neighbors=4, connect=True, tol=1e-2), "", "transform"),
    "quadrature": (lambda: mercer.QuadratureSparsifier(K, n_nodes=5), "transform witness", ""),
    "sampled": (lambda: mercer.QuadratureSparsifier(K, n_nodes=5, potential="sampled"), "transform", ""),
    "density": (
        lambda: mercer.SumOfSquaresDensity(K, support=6, tol=1e-3, random_state=0),
        "score_samples density",
        "",
    ),
    "likelihood": (
        lambda: mercer.SumOfSquaresDensity(K, support=4, objective="likelihood", tol=1e-2, random_state=0),
        "score_samples",
        "",
    ),
    "ridge": (lambda: mercer.RobustKernelRidge(K, support=4, radius=0.05, tol=1e-2, random_state=0), "predict", ""),
    "regressor": (lambda: mercer.RobustKernelRegressor(K, loss="huber", radius=0.05, tol=1e-3), "predict", ""),
    "classifier": (
        lambda: mercer.RobustKernelClassifier(K, radius=0.05, tol=1e-3),
        "decision_function predict_proba",
        "predict",
    ),
    "Fisher": (lambda: mercer.FisherDiscriminant(K, regularization=1e-2), "transform", "predict predict_proba"),
    "Roweis": (lambda: mercer.RoweisDiscriminant(kernel=K), "transform", "predict"),
    "supervised PCA": (lambda: mercer.SupervisedPCA(), "transform", "predict"),
    "dimension": (lambda: mercer.KernelDimensionReduction(1, n_restarts=0, max_iter=20, tol=1.0), "", "transform"),
    "conditional mean": (lambda: mercer.ConditionalMeanEmbedding(K, regularization=1e-3), "predict", ""),
    "novelty": (lambda: mercer.NoveltyDetector(), "score_samples novelty", ""),
    "novelty of a kernel": (lambda: mercer.NoveltyDetector(K, n_neighbors=5), "score_samples novelty", ""),
    "drift": (
        lambda: mercer.DriftDetector(K, false_alarms=0.02, landmarks=8, n_simulated_alarms=10, random_state=0),
        "",
        "",
    ),
    "landmarks": (lambda: mercer.Landmarks(5, kernel=K, random_state=0), "", ""),
    "kernel method": (lambda: mercer.Kernelized(Ridge(), K), "", "predict"),
    "kernel classes": (lambda: mercer.Kernelized(LogisticRegression(), K), "", "predict predict_proba"),
}
PROVED = {"embedding", "levels", "landmarks inside", "interior point", "kernel PCA", "kernelized", "unfolding"} | {
    *("quadrature", "density", "likelihood", "ridge", "regressor", "classifier")
}
WITH_TARGETS = {"ridge", "regressor", "classifier"}
# Where a solver stops; the optimum is known to that. Of labels and probabilities it is asked that they be the same.
TOLERANCE = {
    "density": 1e-2,
    "likelihood": 1e-1,
    "classifier": 1e-2,
    "regressor": 1e-4,
    "ridge": 1e-2,
    "kernelized": 1e-4,
}


@pytest.fixture(autouse=True)
def _tolerant():
    """A loose fit may say that it is one."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        yield


@pytest.fixture(scope="module")
def here():
    """The fits of NumPy, each made when it is first asked for."""
    made = {}

    def fitted(name):
        if name not in made:
            made[name] = CASES[name][0]().fit(X, Y)
        return made[name]

    return fitted


def arrays_of(model):
    """What a fit leaves behind that a tensor may be, by name."""
    return {name: value for name, value in vars(model).items() if is_tensor(value) or isinstance(value, np.ndarray)}


def close(found, expected, name):
    scale = max(1.0, float(np.abs(expected).max()))
    np.testing.assert_allclose(to_numpy(found), expected, rtol=0, atol=TOLERANCE.get(name, 1e-6) * scale)


def test_every_public_estimator_is_among_the_cases():
    public = {each for each in map(mercer.__getattr__, mercer.__all__[:-1]) if inspect.isclass(each)}
    assert {type(make()) for make, *_ in CASES.values()} == {each for each in public if issubclass(each, BaseEstimator)}


@pytest.mark.parametrize("name", CASES)
def test_tensors_of_the_card_stay_there(name, pretend_card, here, tmp_path):
    make, answers, plain_answers = CASES[name]
    T, t, new = (torch.as_tensor(part, device="cuda") for part in (X, Y, NEW))
    model, ours = make().fit(T, t), here(name)
    for attribute, value in arrays_of(model).items():
        assert not is_tensor(value) or value.device == T.device, attribute
    for method in (*answers.split(), *plain_answers.split()):
        answer = getattr(model, method)(new)
        assert is_tensor(answer) is (method in answers.split()), method
        assert not is_tensor(answer) or answer.device == T.device
        close(answer, getattr(ours, method)(NEW), name)
        close(getattr(model, method)(NEW), getattr(ours, method)(NEW), name)  # brought over
        answer = getattr(ours, method)(new)  # a model of NumPy's, asked by a tensor of the card
        assert isinstance(answer, np.ndarray)
        close(answer, getattr(ours, method)(NEW), name)
    if hasattr(ours, "score") and name != "density":
        assert model.score(T, t) == pytest.approx(ours.score(X, Y), abs=1e-2)
    if name in PROVED:
        proof = mercer.verify(model, *((T, t) if name in WITH_TARGETS else (T,)))
        assert proof.lower <= proof.upper
    mercer.save(model, tmp_path / "model")
    loaded = mercer.load(tmp_path / "model")
    for method in answers.split():
        close(getattr(model, method)(new), getattr(loaded, method)(NEW), name)


@pytest.mark.parametrize("name", CASES)
def test_arrays_go_over_and_come_back(name, pretend_card, here):
    make, answers, plain_answers = CASES[name]
    with config_context(device="cuda"):
        model = make().fit(X, Y)
        found = {method: getattr(model, method)(NEW) for method in (*answers.split(), *plain_answers.split())}
        proved = mercer.verify(model, *((X, Y) if name in WITH_TARGETS else (X,))) if name in PROVED else None
    assert not [attribute for attribute, value in arrays_of(model).items() if is_tensor(value)]
    for method, answer in found.items():
        assert isinstance(answer, np.ndarray), method
        close(answer, getattr(here(name), method)(NEW), name)
        close(getattr(model, method)(NEW), answer, name)  # without the card
    assert proved is None or proved.lower <= proved.upper
    went = [size for way, size in pretend_card.copies if way == "there"]
    assert not went if name == "unfolding" else max(went) >= X.nbytes


@pytest.mark.parametrize("solver", ["accelerated", "trust-region"])
def test_a_fit_sends_its_points_once_and_a_step_sends_no_array(solver, pretend_card):
    """Some numbers come back, by which a solver decides; of a fit of tensors, nothing else ever does."""
    points, marks = np.random.default_rng(2).normal(size=(40, 2)), []

    def seen(iteration):
        marks.append(len(pretend_card.copies))

    T = torch.as_tensor(points, device="cuda")
    mercer.SDPEmbedding(K, solver=solver, callback=seen, random_state=0).fit(T)
    steps = len(marks) - 3  # beyond, a proof is tried
    inside = pretend_card.copies[marks[0] : marks[steps]]
    assert steps >= 4
    assert {way for way, _ in inside} == {"number"}
    assert len(inside) <= 25 * steps
    assert not [size for way, size in pretend_card.copies if way == "back"]
    pretend_card.copies.clear()
    with config_context(device="cuda"):
        mercer.SDPEmbedding(K, solver=solver, random_state=0).fit(points)
    assert [way for way, size in pretend_card.copies if size == points.nbytes].count("there") == 1
