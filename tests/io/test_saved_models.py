"""Every estimator and kernel comes back from a file as it went in, here and in another process."""

from __future__ import annotations

import contextlib
import inspect
import json
import os
import pickle
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import saved_models
from saved_models import CASES, FRAME, NAMES, WEIGHTS, K, X, Y, answers
from sklearn.base import BaseEstimator
from sklearn.ensemble import RandomForestRegressor
from sklearn.model_selection import GridSearchCV

import mercer
from mercer.io import ModelFileError, UnsavableError, container, describe, fingerprint
from mercer.io.classes import _WHERE, class_named, is_enumeration, layout_of
from mercer.kernels import Kernel

every = pytest.mark.parametrize("name", CASES)
PROVED = [name for name, case in CASES.items() if case.proof is not None]


def same(left, right):
    return len(left) == len(right) and all(
        one.dtype == two.dtype and one.shape == two.shape and one.tobytes() == two.tobytes()
        for one, two in zip(left, right, strict=True)
    )


@pytest.fixture(scope="module")
def models():
    return {name: case.make() for name, case in CASES.items()}


@pytest.fixture(scope="module")
def folder(models, tmp_path_factory):
    path = tmp_path_factory.mktemp("models")
    for number, name in enumerate(CASES):
        mercer.save(models[name], path / f"{number}.mercer")
    return path


@pytest.fixture(scope="module")
def files(folder):
    return {name: folder / f"{number}.mercer" for number, name in enumerate(CASES)}


@pytest.fixture(scope="module")
def said(models, files):
    """What the models say; asked after they were saved, for some change by what they are asked."""
    return {name: answers(name, model) for name, model in models.items()}


@every
def test_answers_are_the_same_to_the_last_bit(name, files, said):
    again = mercer.load(files[name])
    assert said[name]
    assert same(answers(name, again), said[name])


@pytest.fixture(scope="module")
def elsewhere(folder):
    """What the models say in a process that has only the files."""
    places = [str(Path(saved_models.__file__).parent), *filter(None, [os.environ.get("PYTHONPATH")])]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(places)}
    subprocess.run([sys.executable, saved_models.__file__, str(folder)], env=environment, check=True)
    out = {}
    for number, name in enumerate(CASES):
        with np.load(folder / f"{number}.npz", allow_pickle=False) as stored:
            out[name] = [stored[each] for each in stored.files]
    return out


@every
def test_another_process_says_the_same_to_the_last_bit(name, elsewhere, said):
    assert same(elsewhere[name], said[name])


@every
def test_class_and_parameters_come_back(name, models, files):
    model, again = models[name], mercer.load(files[name])
    assert type(again) is type(model)
    if isinstance(model, BaseEstimator | Kernel):
        assert list(again.get_params(deep=False)) == list(model.get_params(deep=False))
        assert repr(again) == repr(model) or "Generator" in repr(model)
        assert set(vars(again)) == set(vars(model)) - {"_fitted_like", "_kept_law"}


@pytest.mark.parametrize("name", PROVED)
def test_proofs_hold_again(name, models, files):
    proof, first = mercer.verify(mercer.load(files[name]), *CASES[name].proof), models[name].certificate_
    assert proof.objective == pytest.approx(first.objective, rel=1e-9, abs=0)
    assert proof.relative_gap <= 1.01 * first.relative_gap + 1e-9  # other proofs are made where the solver is gone


def test_every_public_estimator_and_kernel_is_tried(models):
    tried = {type(model) for model in models.values()} | {type(getattr(m, "path_", None)) for m in models.values()}
    for model in models.values():
        tried |= {type(value) for value in (getattr(model, "kernel", None), getattr(model, "measure_", None))}
    public = {value for name in mercer.__all__ if inspect.isclass(value := getattr(mercer, name))}
    wanted = {kind for kind in public if issubclass(kind, BaseEstimator | Kernel)} - {Kernel}
    wanted |= {mercer.MeanEmbedding, mercer.QuadraturePath, mercer.RankPath, mercer.PlaneMap}
    wanted |= {mercer.Box, mercer.DiscreteMeasure, mercer.GaussianMeasure, mercer.Lebesgue}
    assert wanted - tried == set()
    assert len(wanted) > 40


@pytest.mark.parametrize("name", sorted(_WHERE))
def test_every_class_of_the_table_says_what_it_is_made_of(name):
    kind = class_named(name)
    assert kind.__name__ == name
    if not is_enumeration(kind):
        layout = layout_of(kind)
        assert layout.required <= set(layout.parameters)
        assert layout.parameters or layout.attributes or name in ("Lebesgue", "MeanOfLinks") or issubclass(kind, Kernel)


def test_what_a_file_says_of_its_model(files, models):
    found, model = describe(files["embedding with levels"]), models["embedding with levels"]
    assert (found["class"], found["format"], found["library"]) == ("SDPEmbedding", 1, mercer.__version__)
    assert found["parameters"]["tol"] == 1e-6
    assert found["kernel"] == repr(model.kernel_)
    assert found["certificate"]["words"] == str(model.certificate_)
    assert found["certificate"]["lower"] == model.certificate_.lower
    assert found["data"] == {"rows": 45, "columns": 2, "fingerprint": fingerprint(X)}
    assert found["file_bytes"] == files["embedding with levels"].stat().st_size
    assert describe(files["unfitted"])["data"] is None
    assert describe(files["robust classifier"])["data"]["fingerprint"] == fingerprint(X)


def test_notes_are_kept_beside_the_model(tmp_path):
    mercer.save(K, tmp_path / "m.mercer", notes={"columns": ["a", "b"], "means": [0.1, 1e-300]})
    assert describe(tmp_path / "m.mercer")["notes"] == {"columns": ["a", "b"], "means": [0.1, 1e-300]}
    assert repr(mercer.load(tmp_path / "m.mercer")) == repr(K)
    with pytest.raises(UnsavableError, match="notes must be what JSON has"):
        mercer.save(K, tmp_path / "m.mercer", notes={"when": object()})


def test_description_builds_no_model(files):
    code = f"""import sys; from mercer.io import describe; describe({str(files["embedding"])!r})
assert 'sklearn' not in sys.modules and 'mercer.embedding' not in sys.modules"""
    subprocess.run([sys.executable, "-c", code], check=True)


def test_file_is_hardly_larger_than_its_arrays(tmp_path):
    points = np.random.default_rng(0).normal(size=(3000, 20))
    mercer.save(mercer.KernelPCA(K, landmarks=100, random_state=0).fit(points), tmp_path / "m.mercer")
    found = describe(tmp_path / "m.mercer")
    assert found["array_bytes"] <= found["file_bytes"] <= found["array_bytes"] + 6000
    assert found["array_bytes"] < 2.2 * points.nbytes  # nothing is kept twice


@pytest.mark.parametrize("dtype", ["<f8", ">f8", "<f4", "<f2", "<i8", ">i2", "|u1", "|b1", "<U5", ">U3", "|S4"])
@pytest.mark.parametrize("order", ["C", "F"])
def test_arrays_keep_type_order_and_shape(dtype, order, tmp_path):
    array = np.asarray(np.arange(6).reshape(2, 3).astype(dtype), dtype, order=order)
    mercer.save(mercer.Box(array, np.zeros((0, 3))), tmp_path / "m.mercer") if array.dtype.kind not in "US" else None
    kernel = mercer.Linear().on(["a"])
    kernel.columns = [array, array[()], np.asarray(array[1, 2]), array[1, 2], "a", {"b": (1, None, {True, 2.5})}]
    mercer.save(kernel, tmp_path / "m.mercer")
    again = mercer.load(tmp_path / "m.mercer").columns
    assert again[0].dtype == array.dtype
    assert again[0].dtype.byteorder == array.dtype.byteorder
    assert again[0].flags.f_contiguous == array.flags.f_contiguous
    np.testing.assert_array_equal(again[0], array)
    assert again[2].shape == ()
    assert type(again[3]) in (type(array[1, 2]), str)
    assert again[4:] == kernel.columns[4:]
    again[0][0, 0] = again[0][1, 1]  # it can be written


@pytest.mark.parametrize(
    "value", [float("nan"), float("-inf"), 2**70, -0.0, 1e-320, "§ \u2028 \U0001f600", "", None, True]
)
def test_single_values_come_back(value, tmp_path):
    mercer.save(mercer.Gaussian(value), tmp_path / "m.mercer")
    again = mercer.load(tmp_path / "m.mercer").sigma
    assert type(again) is type(value)
    assert repr(again) == repr(value)


@pytest.mark.parametrize("seed", [5, None, np.random.default_rng(3), np.random.RandomState(4)])
def test_random_states_come_back_where_they_stood(seed, tmp_path):
    mercer.save(mercer.SDPEmbedding(random_state=seed), tmp_path / "m.mercer")
    again = mercer.load(tmp_path / "m.mercer").random_state
    assert type(again) is type(seed)
    if hasattr(seed, "normal"):
        np.testing.assert_array_equal(again.normal(size=5), seed.normal(size=5))
    else:
        assert again == seed


def test_parts_that_are_shared_stay_shared(files):
    again = mercer.load(files["embedding with levels"])
    assert again.kernel_ is again._extension.kernel
    assert again.coordinates_ is again.levels_[0].coordinates


def test_fitted_model_can_be_fitted_again(files):
    again = mercer.load(files["embedding"])
    np.testing.assert_array_equal(again.fit(X).embedding_, mercer.load(files["embedding"]).embedding_)


@pytest.mark.parametrize(
    ("model", "sentence"),
    [
        (
            lambda: mercer.SDPEmbedding(callback=print),
            r"^SDPEmbedding\.callback is a function of yours \(print\), and a",
        ),
        (lambda: mercer.SDPEmbedding(diagonal=lambda points: points[:, 0]), r"^SDPEmbedding\.diagonal is a function"),
        (lambda: mercer.FromDistance(metric=lambda a, b: a), r"^FromDistance\.metric is a function of yours"),
        (lambda: mercer.Landmarks(5, strategy=len), r"^Landmarks\.strategy is a function of yours \(len\)"),
        (lambda: mercer.Kernelized(RandomForestRegressor()), r"^Kernelized\.estimator is a sklearn\.ensemble.* joblib"),
        (lambda: _OwnKernel(), r"^save takes a model or a kernel of Mercer and a path, not a _OwnKernel"),
        (lambda: mercer.SDPEmbedding(_OwnKernel()), r"^SDPEmbedding\.kernel is a .*_OwnKernel, which"),
        (lambda: "model.mercer", r"^save takes a model or a kernel of Mercer and a path, not a str"),
        (lambda: mercer.Box(np.zeros(2, complex), np.ones(2)), r"^Box\.lower is a ndarray, which no Box can use"),
        (lambda: mercer.Gaussian(np.zeros(2, np.longdouble)), r"^Gaussian\.sigma is an array of (float128|longdouble)"),
    ],
)
def test_what_cannot_be_stored_is_named(model, sentence, tmp_path):
    with pytest.raises(UnsavableError, match=sentence) as caught:
        mercer.save(model(), tmp_path / "m.mercer")
    assert str(caught.value).endswith(".")
    assert "\n" not in str(caught.value)
    assert list(tmp_path.iterdir()) == []


class _OwnKernel(mercer.Gaussian):
    """A kernel that Mercer does not know."""


def test_attribute_of_the_user_is_not_dropped_silently(tmp_path):
    model = mercer.KernelPCA(K).fit(X)
    model.note = "mine"
    with pytest.raises(UnsavableError, match="has the attribute 'note', which is no part of a KernelPCA: delete it"):
        mercer.save(model, tmp_path / "m.mercer")


def test_tensors_are_stored_as_arrays(tmp_path):
    torch = pytest.importorskip("torch")
    tensors = torch.from_numpy(X)
    for model in (mercer.SDPEmbedding(K, random_state=0), mercer.QuadratureSparsifier(K, alpha=0.1, solver="path")):
        expected = model.fit(tensors).transform(tensors + 0.01).numpy()
        mercer.save(model, tmp_path / "m.mercer")
        again = mercer.load(tmp_path / "m.mercer")
        np.testing.assert_allclose(again.transform(X + 0.01), expected, rtol=1e-9, atol=1e-12)  # another library
        assert isinstance(again.transform(tensors + 0.01), np.ndarray)
        assert mercer.verify(again, X).holds(1e-5)


def test_sparse_matrices_come_back(tmp_path):
    from scipy.sparse import csr_array

    matrix = K(X) * (K(X) > 1e-3)
    model = mercer.SDPEmbedding("precomputed", random_state=0).fit(csr_array(matrix))
    mercer.save(model, tmp_path / "m.mercer")
    new = csr_array(matrix[:5])
    np.testing.assert_array_equal(mercer.load(tmp_path / "m.mercer").transform(new), model.transform(new))


@pytest.mark.parametrize("name", PROVED)
def test_one_changed_number_is_found_out(name, files, tmp_path):
    """A person who changes a coordinate and makes the digest fit again is found out by the proof."""
    model, case = mercer.load(files[name]), CASES[name]
    attribute = next(each for each in CHANGED if getattr(model, each, None) is not None)
    changed = np.array(getattr(model, attribute))
    place = np.unravel_index(np.argmax(np.abs(changed)), changed.shape)
    changed[place] = changed[place] * 1.05
    for holder in (model, *getattr(model, "levels_", ())[:1]):
        for each, value in list(vars(holder).items()):
            if each in (attribute, attribute.rstrip("_")):
                vars(holder)[each] = changed.astype(np.asarray(value).dtype)
    mercer.save(model, tmp_path / "changed.mercer")
    again = mercer.load(tmp_path / "changed.mercer")  # whole, as far as a reader can tell
    honest = mercer.verify(mercer.load(files[name]), *case.proof).relative_gap
    with contextlib.suppress(ValueError):  # which says what does not belong together
        assert mercer.verify(again, *case.proof).relative_gap > 2 * honest


CHANGED = ("coordinates_", "eigenvectors_", "factor_", "dual_coef_", "weights_", "embedding_")


# What tells of the way to a solution, and no proof looks at: the page on saving says so.
NOT_PROVED = ("history", "phase", "reduction_", "path_", "least_eigenvalues")


def _arrays_by_place(parts):
    """The names of arrays, and how the model leads to each of them first."""
    places = {}

    def walk(value, place):
        if isinstance(value, list):
            for each in value:
                walk(each, place)
        elif isinstance(value, dict) and list(value) == ["part"]:
            part = parts[value["part"]]
            if "array" in part:
                places.setdefault(part["array"], place)
            else:
                walk(part, place)
        elif isinstance(value, dict):
            for name, each in value.items():
                walk(each, f"{place}.{name}")

    walk(parts[-1], "")
    return places


@pytest.mark.parametrize("name", ["embedding", "quadrature", "density", "robust regression", "unfolding"])
def test_a_file_that_differs_in_any_number_of_its_solution_is_found_out(name, files, tmp_path):
    """The arrays of the file itself, one number of each in turn, with a digest that fits."""
    with container.opened(files[name]) as found:
        texts = {each: text for each, text in found.texts.items() if each != "digest"}
        arrays = {each: found.read(each) for each in found.stored}
    places, case, tried = _arrays_by_place(json.loads(texts["parts"])), CASES[name], 0
    honest = mercer.verify(mercer.load(files[name]), *case.proof).relative_gap
    for each, array in arrays.items():
        if array.dtype.kind != "f" or not array.size or any(word in places[each] for word in NOT_PROVED):
            continue
        changed = array.copy()
        changed.flat[np.argmax(np.abs(changed))] *= 1.05
        container.write(tmp_path / "m.mercer", texts, {**arrays, each: changed})
        again, tried = mercer.load(tmp_path / "m.mercer"), tried + 1
        with contextlib.suppress(ValueError):  # which says what does not belong together
            assert mercer.verify(again, *case.proof).relative_gap > 2 * honest, places[each]
    assert tried >= 3


def test_proof_of_other_data_is_refused(files):
    with pytest.raises(ValueError, match="of the fit"):
        mercer.verify(mercer.load(files["embedding"]), X[::-1])


def test_pickle_stays_possible(models):
    for name in ("embedding with levels", "quadrature with its path", "kernel LocallyLinear", "density", "drift"):
        again = pickle.loads(pickle.dumps(CASES[name].make()))
        assert same(answers(name, again), answers(name, CASES[name].make()))


def test_fingerprint_tells_data_apart():
    torch = pytest.importorskip("torch")
    from scipy.sparse import csr_array

    base = fingerprint(X)
    assert len(base) == 16
    assert fingerprint(np.asfortranarray(X)) == fingerprint(torch.from_numpy(X)) == base
    changed = X.copy()
    changed[3, 1] = np.nextafter(changed[3, 1], 9)
    swapped = X[np.r_[1, 0, 2 : len(X)]]
    others = [fingerprint(each) for each in (changed, swapped, X[:, ::-1], X[:-1], X.reshape(-1, 3), X.T)]
    assert len({base, *others}) == 7
    assert fingerprint(csr_array(X)) == fingerprint(torch.from_numpy(X).to_sparse()) != base


def test_frames_weights_and_labels_belong_to_the_model(tmp_path):
    model = mercer.SDPEmbedding(mercer.Mixed(), random_state=0).fit(FRAME, sample_weight=WEIGHTS)
    mercer.save(model, tmp_path / "m.mercer")
    again = mercer.load(tmp_path / "m.mercer")
    assert list(again.feature_names_in_) == list("abcd")
    assert again._table == model._table
    with pytest.raises(ValueError, match="feature names"):
        again.transform(FRAME.rename(columns={"a": "z"}))
    classifier = mercer.FisherDiscriminant(K).fit(X, NAMES)
    mercer.save(classifier, tmp_path / "m.mercer")
    assert mercer.load(tmp_path / "m.mercer").classes_.tolist() == ["down", "up"]
    assert mercer.load(tmp_path / "m.mercer").score(X, NAMES) == classifier.score(X, NAMES)


def test_what_scikit_learn_sets_belongs_to_the_model(tmp_path):
    model = mercer.KernelPCA(K).set_output(transform="pandas").fit(FRAME[["a", "b"]])
    mercer.save(model, tmp_path / "m.mercer")
    assert list(mercer.load(tmp_path / "m.mercer").transform(FRAME[["a", "b"]]).columns) == ["kernelpca0", "kernelpca1"]
    search = GridSearchCV(mercer.ConditionalMeanEmbedding(regularization=1e-3), {"kernel__sigma": [1.0, 2.0]}, cv=3)
    best = search.fit(X, Y).best_estimator_
    mercer.save(best, tmp_path / "m.mercer")
    np.testing.assert_array_equal(mercer.load(tmp_path / "m.mercer").predict(X), best.predict(X))


def test_a_number_for_every_coordinate_comes_back(tmp_path):
    mercer.save(mercer.Box(0, 1.5), tmp_path / "m.mercer")
    assert mercer.load(tmp_path / "m.mercer") == mercer.Box(0, 1.5)


def test_loading_is_of_files_alone(tmp_path):
    with pytest.raises(FileNotFoundError, match="There is no file"):
        mercer.load(tmp_path / "none.mercer")
    with pytest.raises(ModelFileError, match="it is no file"):
        mercer.load(tmp_path)
    assert Y.size
