"""Every warning says what to do, by the name of a parameter: as it stands in the source, and as it reaches a person."""

import ast
import inspect
import re
from functools import cache
from pathlib import Path

import numpy as np
import pytest

import mercer
from mercer import (
    ConditionalMeanEmbedding,
    Cosine,
    DiffusionMaps,
    Gaussian,
    KernelDimensionReduction,
    KernelizedSDPEmbedding,
    KernelPCA,
    Linear,
    MaximumVarianceUnfolding,
    Polynomial,
    QuadratureSparsifier,
    RobustKernelRidge,
    SDPEmbedding,
    SelfTuning,
    Sigmoid,
    SumOfSquaresDensity,
    hsic_test,
    mmd,
    mmd_test,
)
from mercer.datasets import two_moons
from mercer.solvers.solution import Status

SOURCE = Path(mercer.__file__).parent
# Parameters of one word that nobody writes by chance; those with an underscore count too, "kernel" and "X" do not.
TELLING = {"tol", "sigma", "regularization", "truncation", "landmarks", "nugget", "checkpoint", "indefinite", "penalty"}
TELLING |= {"connect", "candidates", "lipschitz", "radius", "dtype", "objective"}
NOT_ENDS = (Status.CONVERGED, Status.STOPPED, Status.SLOW)  # of which nobody is warned


@cache
def parameters():
    """The parameters of everything public, those of kernels and methods among them, that have a telling name."""
    public = [getattr(mercer, name) for name in mercer.__all__ if name != "__version__"]
    found = {name for each in public if callable(each) for name in _names(each)}
    found |= {name for each in public if inspect.isclass(each) for name in _of_methods(each)}
    assert found >= TELLING
    return {name for name in found if "_" in name or name in TELLING}


def _names(each):
    try:
        return [name for name in inspect.signature(each).parameters if len(name) > 1]
    except (TypeError, ValueError):
        return []


def _of_methods(kind):
    return [name for _, method in inspect.getmembers(kind, inspect.isfunction) for name in _names(method)]


def names_in(text):
    """The parameters that a text names, as whole words; ``kernel=`` is plain enough."""
    words = re.findall(r"\w+=?", text)
    return {word for word in words if word == "kernel="} | {word.rstrip("=") for word in words} & parameters()


def calls(tree):
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and getattr(node.func, "id", getattr(node.func, "attr", "")) in (
            "warn_user",
            "warn",
        ):
            yield node


def literal(node):
    """All that is written down of a message: text, and in braces the names of what is put in."""
    parts = []
    for each in ast.walk(node):
        if isinstance(each, ast.Constant) and isinstance(each.value, str):
            parts.append(each.value)
        elif isinstance(each, (ast.Name, ast.Attribute)):
            parts.append(f"{{{each.id if isinstance(each, ast.Name) else each.attr}}}")
    return " ".join(parts)


# Messages that are put together from others: by a status, by an advice that is handed in, by the name of a kernel's parameter.
MADE = {"{message}", "{advice}", "{sentence}", "{_advice}", "{name}"}


def test_every_warning_in_the_source_names_a_parameter():
    seen = 0
    for path in sorted(SOURCE.rglob("*.py")):
        if path.name == "progress.py":
            continue  # which defines warn_user
        for call in calls(ast.parse(path.read_text())):
            seen += 1
            text = literal(call.args[0])
            assert names_in(re.sub(r"{\w+}", "", text)) or any(part in text for part in MADE), (
                f"{path.name}:{call.lineno} {text}"
            )
    assert seen > 25


def test_every_end_of_a_run_names_a_parameter():
    for status in Status:
        assert status in NOT_ENDS or names_in(status.message), status


# --- as they reach a person ---------------------------------------------------------------------------------

RNG = np.random.default_rng(0)
POINTS = RNG.normal(size=(40, 2))
SPREAD = RNG.normal(size=(40, 12))
MOONS = two_moons(300, noise=0.1, random_state=0)[0]
CLOSE = np.array([[0.0], [1.0], [1.0 + 1e-5], [2.0]])
FAR = np.concatenate([RNG.normal(size=(30, 2)), [[1e6, 1e6]]])

TRIGGERS = {
    "iterations": (lambda: SDPEmbedding(Gaussian(1.0), max_iter=1, random_state=0).fit(POINTS), {"max_iter"}),
    "products": (lambda: SDPEmbedding(Gaussian(1.0), max_products=12, random_state=0).fit(POINTS), {"max_products"}),
    "interrupted": (lambda: SDPEmbedding(Gaussian(1.0), callback=_interrupt).fit(POINTS), {"max_iter", "tol"}),
    "components": (
        lambda: SDPEmbedding(Gaussian(3.0), n_components=30, n_levels=1, random_state=0).fit(POINTS),
        {"n_components"},
    ),
    "alike": (lambda: DiffusionMaps(Gaussian(2e5)).fit(POINTS), {"sigma"}),
    "isolated": (lambda: SelfTuning(5, 1).resolve(FAR), {"scale_neighbor", "connect"}),
    "indefinite": (lambda: KernelPCA(Sigmoid(1.0, -3.0), indefinite="clip").fit(POINTS), {"indefinite"}),
    "kernelised": (lambda: KernelizedSDPEmbedding(Gaussian(1.0), max_iter=2, nugget=1e-7).fit(POINTS), {"max_iter"}),
    "ill-conditioned": (
        lambda: KernelizedSDPEmbedding(Gaussian(2.0), regularization=1e-3, diagonal=np.array([1.0, 1.0, 2.0, 1.0])).fit(
            CLOSE
        ),
        {"nugget", "landmarks"},
    ),
    "unfolding": (lambda: MaximumVarianceUnfolding(max_iter=2).fit(POINTS), {"max_iter"}),
    "nodes": (lambda: QuadratureSparsifier(Gaussian(50.0), n_nodes=39).fit(POINTS), {"n_nodes", "sigma"}),
    "caps": (
        lambda: QuadratureSparsifier(Gaussian(1.0), trace_fraction=0.9, n_nodes=5, max_weight=0.05, merge="strong").fit(
            POINTS
        ),
        {"max_weight"},
    ),
    "penalty": (
        lambda: QuadratureSparsifier(Gaussian(1.0), trace_fraction=0.9999, penalty=_distortion).fit(POINTS),
        {"penalty", "n_nodes"},
    ),
    "eigenpairs": (
        lambda: QuadratureSparsifier(Gaussian(1.0), n_nodes=5).fit(POINTS).eigenpairs(20),
        {"n_nodes"},
    ),
    "density, universal": (
        lambda: SumOfSquaresDensity(Polynomial(2, 1.0, 1.0), support=10, reference="gaussian", random_state=0).fit(
            POINTS
        ),
        {"kernel="},
    ),
    "density, apart": (
        lambda: SumOfSquaresDensity(Gaussian(1.0), support=POINTS[:8] + 1e3, regularization=0.0).fit(POINTS),
        {"sigma"},
    ),
    "density, unseen": (
        lambda: SumOfSquaresDensity(Gaussian(0.5), support=10, random_state=0).fit(MOONS),
        {"objective"},
    ),
    "density, iterations": (
        lambda: SumOfSquaresDensity(Gaussian(1.0), support=30, max_iter=1, random_state=0).fit(POINTS),
        {"max_iter"},
    ),
    "regression": (
        lambda: RobustKernelRidge(support=5, radius=0.05, max_iter=1, random_state=0).fit(POINTS, POINTS[:, 0]),
        {"max_iter"},
    ),
    "rank": (lambda: ConditionalMeanEmbedding(Gaussian(0.1), max_rank=2).fit(POINTS, POINTS[:, 0]), {"max_rank"}),
    "directions": (
        lambda: KernelDimensionReduction("test", n_resamples=19, random_state=0).fit(SPREAD[:, :3], POINTS[:, 0]),
        {"n_resamples", "n_components"},
    ),
    "gradient": (
        lambda: KernelDimensionReduction(1, max_iter=1, tol=1e-12, random_state=0).fit(POINTS, POINTS[:, 0] ** 2),
        {"max_iter"},
    ),
    "characteristic": (lambda: mmd(POINTS[:20], POINTS[20:], Linear()), {"kernel="}),
    "characteristic, test": (lambda: mmd_test(POINTS[:20], POINTS[20:], Cosine(), n_resamples=19), {"kernel="}),
    "characteristic, side": (lambda: hsic_test(POINTS, POINTS, y_kernel=Linear(), n_resamples=19), {"y_kernel"}),
}


def _interrupt(line):
    raise KeyboardInterrupt


def _distortion(X):
    return Gaussian(1.0)(X).mean(axis=1)


@pytest.mark.parametrize("name", TRIGGERS)
def test_a_warning_names_what_to_change(name):
    act, wanted = TRIGGERS[name]
    with pytest.warns(Warning, match=".") as caught:
        act()
    texts = [str(warning.message) for warning in caught]
    assert all(names_in(text) for text in texts), texts
    assert wanted <= set().union(*map(names_in, texts)), texts
