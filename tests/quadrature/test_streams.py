"""Landmarks of a stream: the bound that is carried along holds, and every part of it is needed."""

import pickle

import numpy as np
import pytest
from sklearn.base import clone

import mercer
from mercer import Gaussian, Linear, QuadratureSparsifier, config_context, open_rows, squared_kernel_discrepancy
from mercer.dependence import mmd
from mercer.journal import Journal, JournalError
from mercer.quadrature import stream, streaming

KERNEL = Gaussian(1.5)


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch):
    monkeypatch.setattr(stream, "BLOCK", 150)
    monkeypatch.setattr(streaming, "BLOCK", 150)


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
@pytest.mark.parametrize("n", [900, 860])
def test_the_bound_holds_and_needs_its_parts(discrepancy, n):
    X = rows_of(1)[:n]
    weights = np.random.default_rng(2).uniform(0.1, 3.0, X.shape[0]) * np.where(np.arange(n) < 450, 1.0, 20.0)
    model = streamed(X, [100, 130, 700], weights, discrepancy=discrepancy)
    proof, true = model.certificate_, distance(model, X, weights)
    assert true <= proof.blocks + proof.reductions
    assert proof.upper == pytest.approx((proof.blocks + proof.reductions) ** 2 / 2)
    assert 0.5 * true**2 <= model.discrepancy_ == proof.upper
    assert true > proof.blocks  # so that without the reductions it would be false
    assert proof.reductions < 8 * true
    assert model._n_rows == n
    np.testing.assert_array_equal(X[model.indices_], model.components_)


def test_the_blocks_are_a_part_of_the_bound_that_counts():
    X = rows_of(3, 150)
    whole = QuadratureSparsifier(KERNEL, n_nodes=6).partial_fit(X)
    few = QuadratureSparsifier(KERNEL, n_nodes=75).partial_fit(rows_of(3, 70))
    assert few.certificate_.blocks == 0.0  # no rows were replaced
    assert 0 < few.certificate_.reductions < 1e-15
    (block,) = whole._stream.summaries
    apart = squared_kernel_discrepancy(X, block.points, KERNEL, x_weights=1.0, y_weights=block.weights) ** 0.5
    assert apart / 150 == pytest.approx(whole.certificate_.blocks, rel=1e-3)  # tight, so that nothing can be left out
    assert block.reductions == 0


def bounds(model):
    proof = model.certificate_
    return proof.upper, proof.blocks, proof.reductions, proof.trace, proof.n_products


def test_portions_of_any_size_make_the_same_model():
    X, weights = rows_of(10, 400), np.random.default_rng(11).uniform(0.1, 3.0, 400)
    whole = streamed(X, [], weights)
    assert whole._stream.n_waiting == 100
    for cuts in (np.arange(1, 400), np.arange(37, 400, 37), [399], np.cumsum(np.arange(50, 42, -1))):
        model = streamed(X, cuts, weights)
        assert len(model._stream.waiting) <= 7
        for name in ("indices_", "weights_", "components_", "n_columns_", "_data_seen"):
            np.testing.assert_array_equal(getattr(model, name), getattr(whole, name))
        assert bounds(model) == bounds(whole)
        assert model.trace_fraction_ == pytest.approx(whole.trace_fraction_, rel=1e-12, abs=0)


def test_less_than_a_block_is_the_fit_of_its_rows():
    X = rows_of(12, 140)
    model, batch = streamed(X, range(20, 140, 20)), QuadratureSparsifier(KERNEL, n_nodes=12).fit(X)
    np.testing.assert_array_equal(model.indices_, batch.indices_)
    np.testing.assert_allclose(model.weights_, batch.weights_, rtol=1e-12)
    assert batch.certificate_.upper <= model.discrepancy_ <= 1.001 * batch.certificate_.upper


@pytest.fixture
def fits(monkeypatch):
    """The rows of all fits that streams make, as they make them."""
    made, fit = [], QuadratureSparsifier.fit

    def counted(self, X, *args, **kwargs):
        made.append(len(X))
        return fit(self, X, *args, **kwargs)

    monkeypatch.setattr(QuadratureSparsifier, "fit", counted)
    return made


def test_nothing_is_made_before_it_is_asked_for(fits):
    X = rows_of(13, 290)
    model = streamed(X, range(10, 290, 10), verbose=True)
    clone(model), repr(model), model.get_params()
    assert fits == [150]
    copy, proof = pickle.loads(pickle.dumps(model)), model.certificate_
    assert fits == [150, 24 + 140]
    assert (model.discrepancy_, model.indices_.size, model.transform(X[:3]).shape) == (proof.upper, 12, (3, 12))
    assert len(fits) == 2
    assert bounds(copy) == bounds(model)
    model.partial_fit(X[:1])
    assert len(fits) == 3
    assert model._n_rows == 291
    assert fits[3:] == [24 + 141]


def test_the_rows_are_ours_as_soon_as_they_are_given():
    X = rows_of(14, 200)
    model, buffer = QuadratureSparsifier(KERNEL, n_nodes=12), np.empty((50, 2))
    for start in range(0, 200, 50):
        buffer[:] = X[start : start + 50]
        model.partial_fit(buffer)
        buffer[:] = np.nan
    np.testing.assert_array_equal(X[model.indices_], model.components_)


def test_what_would_spoil_a_block_is_refused_before_it_waits():
    X = rows_of(15, 100)
    model = QuadratureSparsifier(Linear(), n_nodes=2).partial_fit(X)
    far = X.copy()
    far[7] = 1e100
    with pytest.raises(ValueError, match=r"k\(x, x\) = 2e\+200 at row 7 under Linear\(\): divide the kernel"):
        model.partial_fit(far)
    assert model._n_rows == 100
    model.set_params(discrepancy="mmd")
    with pytest.raises(ValueError, match="begun with discrepancy='squared', and its bound is of that"):
        model.partial_fit(X)
    for options, said in (
        ({"kernel": Linear(), "discrepancy": "mmd"}, "takes negative values"),
        ({"kernel": mercer.Sigmoid()}, "not positive semi-definite"),
    ):
        with pytest.raises(ValueError, match=said):
            QuadratureSparsifier(**options).partial_fit(X[:1])
    with pytest.raises(ValueError, match="n_nodes=-1"):
        QuadratureSparsifier(KERNEL, n_nodes=2).partial_fit(X).set_params(n_nodes=-1).partial_fit(X)


def test_a_killed_stream_of_a_file_goes_on_to_the_same_bits(tmp_path, monkeypatch, fits):
    np.save(tmp_path / "a.npy", rows_of(16))
    whole, flush, written = (
        QuadratureSparsifier(KERNEL, n_nodes=12).fit(open_rows(tmp_path / "a.npy")),
        Journal.flush,
        [],
    )

    def flush_and_die(journal):
        flush(journal)
        written.append(len(fits))
        if len(written) == 3:
            raise KeyboardInterrupt

    fits.clear()
    with config_context(checkpoint=tmp_path / "run.journal", checkpoint_every=0):
        monkeypatch.setattr(Journal, "flush", flush_and_die)
        with pytest.raises(KeyboardInterrupt):
            QuadratureSparsifier(KERNEL, n_nodes=12).fit(open_rows(tmp_path / "a.npy"))
        monkeypatch.setattr(Journal, "flush", flush)
        np.save(tmp_path / "a.npy", rows_of(17))
        with pytest.raises(JournalError, match="is of other data"):
            QuadratureSparsifier(KERNEL, n_nodes=12).fit(open_rows(tmp_path / "a.npy"))
        np.save(tmp_path / "a.npy", rows_of(16))
        first = len(fits)
        again = QuadratureSparsifier(KERNEL, n_nodes=12).fit(open_rows(tmp_path / "a.npy"))
    assert len(fits) - first < 10
    np.testing.assert_array_equal(again.weights_, whole.weights_)
    assert bounds(again) == bounds(whole)


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
