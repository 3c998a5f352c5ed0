"""What fitted models say of Dask arrays and data frames stays lazy, whatever the method, the columns and the blocks."""

from __future__ import annotations

from contextlib import nullcontext
from typing import Any

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from mercer import (
    ConditionalMeanEmbedding,
    DiffusionMaps,
    FisherDiscriminant,
    Gaussian,
    KernelDimensionReduction,
    Kernelized,
    MaximumVarianceUnfolding,
    Mixed,
    RobustKernelClassifier,
    SDPEmbedding,
    SumOfSquaresDensity,
    open_rows,
)

da = pytest.importorskip("dask.array")
dd = pytest.importorskip("dask.dataframe")
pd = pytest.importorskip("pandas")
_rng = np.random.default_rng(5)
X = _rng.normal(size=(60, 3))
LABELS = np.where(X[:, 0] > 0, "up", "down")
KERNEL = Gaussian(1.2)
ASKED: dict[str, tuple[Any, tuple[str, ...]]] = {
    "density": (lambda: SumOfSquaresDensity(KERNEL, support=30, random_state=0).fit(X), ("density", "score_samples")),
    "machine": (lambda: RobustKernelClassifier(KERNEL, radius=0.05).fit(X, LABELS), ("predict", "predict_proba")),
    "discriminant": (
        lambda: FisherDiscriminant().fit(X, LABELS),
        ("transform", "predict", "predict_proba", "predict_log_proba"),
    ),
    "kernelized": (
        lambda: Kernelized(LogisticRegression(), KERNEL).fit(X, LABELS),
        ("predict", "predict_proba", "predict_log_proba", "decision_function"),
    ),
    "directions": (lambda: KernelDimensionReduction(1, random_state=0).fit(X, X[:, 0]), ("transform",)),
    "unfolding": (lambda: MaximumVarianceUnfolding(n_neighbors=6).fit(X), ("transform",)),
}


@pytest.mark.parametrize("name", ASKED)
def test_every_answer_row_by_row_is_lazy_and_takes_rows_by_blocks(name: str) -> None:
    fit, methods = ASKED[name]
    model = fit()
    for method in methods:
        expected, ask = getattr(model, method)(X), getattr(model, method)
        lazy = ask(da.from_array(X, chunks=(17, 2)))
        assert isinstance(lazy, da.Array), method
        assert lazy.shape == expected.shape
        for found in (lazy.compute(scheduler="synchronous"), ask(open_rows(X))):
            if expected.dtype.kind in "UO":
                assert (found == expected).all()
            else:
                assert found == pytest.approx(expected, rel=1e-9, abs=1e-12)


def test_two_answers_are_two_collections() -> None:
    frame = pd.DataFrame(X, columns=list("abc"))
    model = ConditionalMeanEmbedding().fit(frame, X[:, 0])
    expected = model.predict(frame, return_std=True)
    for given in (da.from_array(X, chunks=(17, 3)), dd.from_pandas(frame, npartitions=3)):
        with pytest.warns(UserWarning, match="feature names") if isinstance(given, da.Array) else nullcontext():
            found = [part.compute(scheduler="synchronous") for part in model.predict(given, return_std=True)]
        for part, own in zip(found, expected, strict=True):
            assert np.asarray(part) == pytest.approx(own, rel=1e-9, abs=1e-12)


@pytest.mark.parametrize("name", ["density", "machine", "discriminant", "kernelized", "directions"])
def test_scores_of_collections_are_numbers(name: str) -> None:
    model, y = ASKED[name][0](), X[:, 0] if name == "directions" else LABELS
    expected = model.score(X, y)
    frame = dd.from_pandas(pd.DataFrame(X), npartitions=3)
    assert model.score(frame, y) == pytest.approx(expected)
    assert model.score(da.from_array(X, chunks=(17, 2)), y) == pytest.approx(expected)


def test_columns_of_words_are_transformed_where_they_lie() -> None:
    frame = pd.DataFrame({"a": X[:, 0], "k": pd.Categorical(_rng.choice(list("xyz"), 60)), "s": LABELS})
    model = SDPEmbedding(Mixed(), random_state=0).fit(frame)
    expected = model.transform(frame)
    found = model.transform(dd.from_pandas(frame, npartitions=3)).compute(scheduler="synchronous")
    assert found.to_numpy() == pytest.approx(expected, rel=1e-9, abs=1e-12)


def test_blocks_without_rows_have_an_answer_without_rows() -> None:
    frame = pd.DataFrame(X, columns=list("abc"))
    model = DiffusionMaps(KERNEL).fit(frame)
    parts = dd.from_map(lambda k: frame[30 * k : 30 * k + 30 * (k != 1)], [0, 1, 0], meta=frame[:0])
    found = model.transform(parts).compute(scheduler="synchronous")
    assert found.shape[0] == 60
    plain = DiffusionMaps(KERNEL).fit(X)
    given = da.from_array(X, chunks=(10, 3))
    some = given[given[:, 0] > np.sort(X[:, 0])[-3]]  # of blocks whose sizes nobody knows
    assert plain.transform(some).compute(scheduler="synchronous").shape == (2, plain.embedding_.shape[1])


def test_what_is_no_table_is_told_in_a_sentence() -> None:
    model, given = DiffusionMaps(KERNEL).fit(X), da.from_array(X, chunks=(20, 3))
    with pytest.raises(ValueError, match=r"X has 1 dimensions, and points are rows of a table: pass X\[:, None\]"):
        model.transform(given[:, 0])
    with pytest.raises(TypeError, match="A Bag of Dask is no table"):
        DiffusionMaps(KERNEL).fit(pytest.importorskip("dask.bag").from_sequence([[1.0, 2.0]] * 4))
