"""Landmarks of a stream: the bound that is carried along holds, and every part of it is needed."""

import numpy as np
import pytest

import mercer
from mercer import Gaussian, QuadratureSparsifier, open_rows, squared_kernel_discrepancy
from mercer.dependence import mmd
from mercer.quadrature import stream

KERNEL = Gaussian(1.5)


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch):
    monkeypatch.setattr(stream, "BLOCK", 150)


def rows_of(seed, n=900):
    rng = np.random.default_rng(seed)
    return (
        rng.normal(size=(n, 2)) * np.where(np.arange(n) < n // 3, 0.3, 1.0)[:, None] + 3 * (np.arange(n) > 600)[:, None]
    )


def streamed(X, cuts, weights=None, **options):
    model = QuadratureSparsifier(KERNEL, **{"n_nodes": 12, **options})
    for rows in np.split(np.arange(X.shape[0]), cuts):
        model.partial_fit(X[rows], sample_weight=None if weights is None else weights[rows])
    return model


def distance(model, X, weights=None):
    """‖T_μ - T_ν‖, or that of the embeddings, from all pairs."""
    weights = np.full(X.shape[0], 1 / X.shape[0]) if weights is None else weights / weights.sum()
    options = {"x_weights": weights, "y_weights": model.weights_}
    if model.discrepancy == "squared":
        return squared_kernel_discrepancy(X, model.components_, KERNEL, **options) ** 0.5
    return mmd(X, model.components_, KERNEL, squared=False, **options)


@pytest.mark.parametrize("discrepancy", ["squared", "mmd"])
@pytest.mark.parametrize("cuts", [[], [100, 130, 700]])
def test_the_bound_holds_and_needs_its_parts(discrepancy, cuts):
    X = rows_of(1)
    weights = np.random.default_rng(2).uniform(0.1, 3.0, X.shape[0]) * np.where(np.arange(900) < 450, 1.0, 20.0)
    model = streamed(X, cuts, weights, discrepancy=discrepancy)
    proof, true = model.certificate_, distance(model, X, weights)
    assert true <= proof.blocks + proof.reductions
    assert proof.upper == pytest.approx((proof.blocks + proof.reductions) ** 2 / 2)
    assert 0.5 * true**2 <= model.discrepancy_ == proof.upper
    assert true > proof.blocks  # so that without the reductions it would be false
    assert proof.reductions < 8 * true
    assert model._n_rows == 900
    np.testing.assert_array_equal(X[model.indices_], model.components_)


def test_the_blocks_are_a_part_of_the_bound_that_counts():
    X = rows_of(3, 150)
    whole = QuadratureSparsifier(KERNEL, n_nodes=6).partial_fit(X)
    few = QuadratureSparsifier(KERNEL, n_nodes=75).partial_fit(rows_of(3, 140))
    assert (few.certificate_.blocks, few.certificate_.reductions > 0) == (0.0, True)  # no block was reduced
    proof = whole.certificate_
    assert proof.blocks > 0
    kept = stream.MeasureStream(whole._stream.summaries)
    (block,) = kept.summaries
    apart = squared_kernel_discrepancy(X, block.points, KERNEL, x_weights=1.0, y_weights=block.weights) ** 0.5
    assert apart / 150 == pytest.approx(proof.blocks, rel=1e-3)  # tight, so that nothing can be left out
    assert block.reductions == 0


def test_a_stream_is_as_good_as_the_batch():
    X = rows_of(4)
    batch = QuadratureSparsifier(KERNEL, n_nodes=12).fit(X)
    model = streamed(X, [300, 600])
    proof = mercer.verify(model, X)
    assert proof.discrepancy == pytest.approx(distance(model, X) ** 2 / 2, rel=1e-6)
    assert batch.discrepancy_ <= proof.discrepancy <= min(model.discrepancy_, 3 * batch.discrepancy_)
    features, dense = model.transform(X[:40]), KERNEL(X[:40], model.components_)
    np.testing.assert_allclose(
        features @ features.T, dense @ np.linalg.solve(KERNEL(model.components_), dense.T), atol=1e-5
    )
    assert mercer.io.fingerprint(X) == model._data_seen.fingerprint


def test_rows_of_a_file_are_a_stream(tmp_path):
    X = rows_of(5)
    np.save(tmp_path / "a.npy", X)
    model = QuadratureSparsifier(KERNEL, n_nodes=12).fit(open_rows(tmp_path / "a.npy"))
    assert distance(model, X) ** 2 / 2 <= model.discrepancy_
    proof = mercer.verify(model, open_rows(tmp_path / "a.npy"))
    assert proof.discrepancy == pytest.approx(distance(model, X) ** 2 / 2, rel=1e-6)


def test_a_stream_goes_on_after_loading(tmp_path):
    X = rows_of(6)
    whole, half = streamed(X, [450]), QuadratureSparsifier(KERNEL, n_nodes=12).partial_fit(X[:450])
    mercer.save(half, tmp_path / "half.mercer")
    again = mercer.load(tmp_path / "half.mercer").partial_fit(X[450:])
    np.testing.assert_array_equal(again.weights_, whole.weights_)
    assert again.certificate_.upper == whole.certificate_.upper
    again.fit(X[:100])
    assert not hasattr(again, "_stream")


def test_copies_and_rows_of_weight_zero():
    X, weights = np.repeat(rows_of(7, 40), 20, axis=0), np.repeat(np.arange(40.0) % 2, 20)
    model = streamed(X, [333], weights, n_nodes=25)
    assert distance(model, X, weights) <= model.certificate_.blocks + model.certificate_.reductions < 1e-6
    assert set(model.indices_ // 20 % 2) == {1}


def test_what_a_stream_cannot_do_is_refused():
    X = rows_of(8, 200)
    for name, value in {"trace_fraction": 0.5, "max_weight": 0.1, "ridge": 1.0, "merge": "weak"}.items():
        with pytest.raises(ValueError, match=f"{name} needs all rows at once, and a stream has n_nodes alone"):
            QuadratureSparsifier(KERNEL, n_nodes=5, **{name: value}).partial_fit(X)
    model = QuadratureSparsifier(KERNEL, n_nodes=5).partial_fit(X)
    for ask in (lambda: model.witness(X), lambda: model.eigenpairs(2)):
        with pytest.raises(ValueError, match="needs the rows of the stream, which are not kept"):
            ask()
    broken = X.copy()
    broken[3, 1] = np.nan
    before = model.certificate_
    with pytest.raises(ValueError, match="NaN"):
        model.partial_fit(broken)
    assert model.certificate_ is before
    with pytest.raises(ValueError, match="not the stream that the model was fitted to"):
        mercer.verify(model, X[::-1])
    model.certificate_ = type(before)(**{**vars(before), "upper": before.upper / 100})
    with pytest.raises(ValueError, match=r"certificate_\.upper"):
        mercer.verify(model, X)
