"""Products on a device for users of NumPy: the same values, as NumPy arrays, and tensors all the way between."""

from __future__ import annotations

import os
import pickle
import weakref

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import Ridge

import mercer
from mercer import Gaussian, config_context, verify
from mercer.backends import device as devices
from mercer.backends.moved import MovedMatrix, in_memory
from mercer.kernels import ChiSquared, Linear, Precomputed
from mercer.operators import GramOperator

torch = pytest.importorskip("torch")

X = np.random.default_rng(1).normal(size=(60, 2)) @ np.diag([2.0, 1.0])  # one part, no two equal eigenvalues
Y = np.where(np.sin(X[:, 0]) + 0.1 * X[:, 1] > 0, 1.0, 0.0)
NEW = X[:5] + 0.01
K = Gaussian(1.5)
CASES = {
    "embedding": (lambda: mercer.SDPEmbedding(K, random_state=0), "transform"),
    "default embedding": (lambda: mercer.SDPEmbedding(random_state=0), "transform"),
    "landmarks inside": (lambda: mercer.SDPEmbedding(K, landmarks=15, random_state=0), "transform"),
    "diffusion maps": (lambda: mercer.DiffusionMaps(random_state=0), "transform"),
    "kernel PCA": (lambda: mercer.KernelPCA(K, certify=True, random_state=0), "transform"),
    "kernelized embedding": (
        lambda: mercer.KernelizedSDPEmbedding(K, nugget=1e-7, tol=1e-5, random_state=0),
        "transform",
    ),
    "unfolding": (lambda: mercer.MaximumVarianceUnfolding(n_neighbors=4, connect=True, tol=1e-3), "transform"),
    "quadrature": (lambda: mercer.QuadratureSparsifier(K, n_nodes=8), "transform"),
    "density": (lambda: mercer.SumOfSquaresDensity(K, support=15, random_state=0), "score_samples"),
    "ridge": (lambda: mercer.RobustKernelRidge(K, support=5, radius=0.05, tol=1e-3, random_state=0), "predict"),
    "regressor": (lambda: mercer.RobustKernelRegressor(K, loss="huber", radius=0.05, tol=1e-4), "predict"),
    "classifier": (lambda: mercer.RobustKernelClassifier(K, radius=0.05, tol=1e-4), "decision_function"),
    "discriminant": (lambda: mercer.FisherDiscriminant(K), "transform"),
    "conditional mean": (lambda: mercer.ConditionalMeanEmbedding(K, regularization=1e-3), "predict"),
    "novelty": (lambda: mercer.NoveltyDetector(), "score_samples"),
    "kernel method": (lambda: mercer.Kernelized(Ridge(), K), "predict"),
}
# Where a solver stops, and by its tolerance alone: the optimum is known to that.
TOLERANCE = {"density": 1e-4, "classifier": 1e-3, "regressor": 1e-6, "ridge": 1e-6}


def tensors_in(model):
    """Whether anything that a model holds is a tensor, wherever it lies: pickle meets it all."""

    class Finder(pickle.Pickler):
        found = False

        def reducer_override(self, value):
            self.found = self.found or isinstance(value, torch.Tensor)
            return NotImplemented

    with open(os.devnull, "wb") as nowhere:
        finder = Finder(nowhere)
        finder.dump(model)
    return finder.found


@pytest.mark.parametrize("name", CASES)
def test_estimators_answer_alike(name):
    make, method = CASES[name]
    with config_context(device="torch"):
        there = make().fit(X, Y)
        answer = getattr(there, method)(NEW)
    here = make().fit(X, Y)
    assert not tensors_in(there)
    assert isinstance(answer, np.ndarray)
    np.testing.assert_allclose(answer, getattr(there, method)(NEW), rtol=1e-10, atol=1e-11)  # the same model
    np.testing.assert_allclose(answer, getattr(here, method)(NEW), rtol=0, atol=TOLERANCE.get(name, 1e-7))
    assert there._data_seen == here._data_seen if hasattr(here, "_data_seen") else True


def test_nothing_is_numpy_between_the_points_and_the_proof(refuse_numpy, monkeypatch):
    """A fit asks for NumPy arrays when all is done, and not before."""
    done = []

    def returned(value):
        done.append(True)
        return value

    monkeypatch.setattr("mercer.backends.moved.in_memory", returned)
    with config_context(device="torch"):
        model = mercer.SDPEmbedding(K, n_levels=1, random_state=0).fit(X)
    assert done
    assert isinstance(model.embedding_, torch.Tensor)
    assert model.certificate_.holds(1e-6)


def test_proofs_and_models_go_on_without_the_device(tmp_path):
    with config_context(device="torch"):
        model = mercer.SDPEmbedding(K, random_state=0).fit(X)
        assert verify(model, X).holds(1e-6)
    assert verify(model, X).holds(1e-6)
    mercer.save(model, tmp_path / "model")
    np.testing.assert_array_equal(mercer.load(tmp_path / "model").transform(NEW), model.transform(NEW))
    assert not tensors_in(pickle.loads(pickle.dumps(model)))


def test_tensors_keep_their_place():
    with config_context(device="torch"):
        model = mercer.KernelPCA(K, random_state=0).fit(torch.as_tensor(X))
    assert isinstance(model.embedding_, torch.Tensor)


@pytest.mark.parametrize("kernel", [K, ChiSquared(0.3), Linear() + K, K.normalized()], ids=str)
def test_kernels_and_operators(kernel):
    points, others = np.abs(X[:30]), np.abs(NEW)
    here = GramOperator(kernel, points, others)
    with config_context(device="torch"):
        values, there = kernel(points, others), GramOperator(kernel, points, others)
        V = np.random.default_rng(0).normal(size=(5, 2))
        assert isinstance(there._matrix, MovedMatrix)
        for get in (lambda K: K @ V, lambda K: K.row_sums(), lambda K: K.T @ points, lambda K: K.block([3, 1], [0, 4])):
            assert type(get(there)) is np.ndarray
            np.testing.assert_allclose(get(there), get(here), rtol=1e-12)
    np.testing.assert_allclose(values, kernel(points, others), rtol=1e-13)


def test_sparse_affinities_go_over_and_come_back():
    scipy_sparse = pytest.importorskip("scipy.sparse")
    affinities = scipy_sparse.csr_array(np.where((A := K(X)) > 0.1, A, 0.0))
    here = mercer.DiffusionMaps(Precomputed(), random_state=0).fit(affinities)
    with config_context(device="torch"):
        there = mercer.DiffusionMaps(Precomputed(), random_state=0).fit(affinities)
    np.testing.assert_allclose(there.embedding_, here.embedding_, atol=1e-9)


def test_two_samples_are_compared_there():
    with config_context(device="torch"):
        there = mercer.mmd_test(X[:30], X[30:], n_resamples=99, rng=0)
    here = mercer.mmd_test(X[:30], X[30:], n_resamples=99, rng=0)
    assert there.pvalue == here.pvalue
    assert there.statistic == pytest.approx(here.statistic, rel=1e-10, abs=0)


def test_values_that_hold_no_tensor_are_returned_themselves():
    pair = ([1, "a"], {"b": X})
    assert in_memory(pair) is pair
    mixed = in_memory([X, torch.ones(2)])
    assert mixed[0] is X
    assert isinstance(mixed[1], np.ndarray)


@pytest.mark.parametrize(
    ("cards", "name", "sentence"),
    [
        (0, "cuda", "torch sees none: use device='cpu'"),
        (1, "cuda:1", "torch sees one card, 'cuda:0'"),
        (2, "cuda:2", "torch sees 2 cards, 'cuda:0' to 'cuda:1'"),
        (2, "cuda:x", "must be 'cpu', 'cuda', 'cuda:1' and the like, or 'torch'"),
        (2, "mps", "must be 'cpu'"),
        (2, 1, "must be 'cpu'"),
    ],
)
def test_devices_that_are_not_there(monkeypatch, cards, name, sentence):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: cards > 0)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: cards)
    with pytest.raises(ValueError, match=sentence), config_context(device=name):
        pass


def test_without_torch(monkeypatch):
    monkeypatch.setattr(devices, "find_spec", lambda name: None)
    with pytest.raises(ValueError, match=r"needs torch, which is not installed: pip install 'mercer\[gpu\]'"):
        config_context(device="cuda").__enter__()


# --- cards that are full, and people who do not wait ------------------------------------------------------------------


def full(monkeypatch, message="CUDA out of memory. Tried to allocate 6.00 GiB. GPU 0 is full."):
    """Products end as on a card without room; what they hold is freed with their frames."""
    held = []

    def fail(self, v, **_):
        block = torch.zeros(1000)
        held.append(weakref.ref(block))
        raise torch.OutOfMemoryError(message)

    monkeypatch.setattr("mercer.backends.torch.matrix.TiledMatrix.multiply", fail)
    monkeypatch.setattr("mercer.backends.torch.matrix.TiledMatrix.row_sums", lambda self, **_: fail(self, None))
    return held


def test_a_full_card_is_one_sentence_and_left_free(monkeypatch):
    monkeypatch.setattr(devices, "card_memory", lambda: (4 * 2**30, 8 * 2**30))
    held = full(monkeypatch)
    model = mercer.KernelPCA(K, random_state=0)
    with config_context(device="torch"):
        with pytest.raises(
            MemoryError, match="The card ran out of memory: about 43 of these 60 points would fit"
        ) as said:
            model.fit(X)
        assert said.value.__suppress_context__
        assert held
        assert all(block() is None for block in held)  # though the error is still in hand
        assert not hasattr(model, "embedding_")
        monkeypatch.undo()
        assert model.fit(X).embedding_.shape == (60, 2)


@pytest.mark.parametrize("message", ["CUDA error: out of memory", "Tried to allocate some GiB"])
def test_a_full_card_that_does_not_say_how_full(monkeypatch, message):
    full(monkeypatch, message)
    with pytest.raises(MemoryError, match="pass fewer points; or take landmarks"):
        mercer.KernelPCA(K).fit(torch.as_tensor(X))


def test_other_errors_stay_what_they_are():
    assert devices.memory_error(RuntimeError("Tried to allocate 1 GiB")) is None
    with config_context(device="torch"), pytest.raises(ValueError, match="remove"):
        GramOperator(K, np.full((3, 2), np.nan))


def test_free_memory_is_that_of_the_card(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    for name, size in (
        ("device_count", 1),
        ("memory_allocated", 2),
        ("memory_reserved", 6),
        ("mem_get_info", (96, 200)),
    ):
        monkeypatch.setattr(torch.cuda, name, lambda *_, size=size: size)
    with config_context(device="cuda") as config:
        assert config.memory_bytes == 25
    with config_context(device="cuda", memory_limit=7) as config:
        assert config.memory_bytes == 7
    assert devices.free_on_card("cpu") is None


def test_an_interrupted_fit_comes_back_too():
    def impatient(iteration):
        raise KeyboardInterrupt

    model = mercer.SDPEmbedding(K, solver="power", callback=impatient, random_state=0)
    with config_context(device="torch"), pytest.warns(ConvergenceWarning, match="interrupted"):
        model.fit(X)
    assert isinstance(model.embedding_, np.ndarray)
    assert not tensors_in(model.embedding_)
