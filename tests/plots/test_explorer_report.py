"""The page of a model: what it carries, what it refuses, how it is written. No browser is needed here."""

import base64
import json
import re
import zlib

import numpy as np
import pandas as pd
import polars as pl
import pytest
from explorer_pages import NASTY, sample_model, sample_report

from mercer import (
    DiffusionMaps,
    Gaussian,
    KernelizedSDPEmbedding,
    KernelPCA,
    MaximumVarianceUnfolding,
    Precomputed,
    SDPEmbedding,
    plane_map,
    rank_path,
)
from mercer.datasets import three_clusters
from mercer.io.data_table import DataColumn, DataTable
from mercer.plots import report
from mercer.plots.explorer.columns import read_column, read_columns
from mercer.plots.explorer.packing import smallest
from mercer.plots.explorer.page import SCRIPTS, asset

TYPES = {"Int8Array": "<i1", "Int16Array": "<i2", "Int32Array": "<i4", "Float32Array": "<f4", "Float64Array": "<f8"}


def description_of(page):
    text = re.search(r'<script type="application/json" id="description">(.*?)</script>', page.html, re.DOTALL)[1]
    return json.loads(text)


def array_of(page, packed):
    text = re.search(rf'<script type="text/plain" id="{packed["id"]}">(.*?)</script>', page.html)[1]
    raw = base64.b64decode(text)
    raw = zlib.decompress(raw) if packed["packed"] else raw
    return json.loads(raw) if packed["kind"] == "texts" else np.frombuffer(raw, TYPES[packed["kind"]])


@pytest.fixture(scope="module")
def page():
    return sample_report()


@pytest.fixture(scope="module")
def points():
    return three_clusters()


def test_the_page_carries_the_embedding_and_both_methods_beside_it(page):
    model, _, _ = sample_model()
    views = description_of(page)["views"]
    assert [view["name"] for view in views] == ["SDPEmbedding", "Diffusion maps", "PCA"]
    there = np.column_stack([array_of(page, axis) for axis in views[0]["coordinates"]])
    np.testing.assert_array_equal(there, model.embedding_.astype(np.float32))
    assert "Computed for this page in" in views[1]["note"]


def test_columns_of_the_rows_and_of_the_model_are_there_exactly(page):
    model, X, _ = sample_model()
    columns = {column["name"]: column for column in description_of(page)["columns"]}
    assert set(columns) == {"class", f"height {NASTY}", "name", "stationary density", "novelty", "landmark weight"}
    np.testing.assert_array_equal(array_of(page, columns[f"height {NASTY}"]["values"]), X[:, 0])
    np.testing.assert_array_equal(array_of(page, columns["novelty"]["values"]), model.novelty(X))
    weights = array_of(page, columns["landmark weight"]["values"])
    np.testing.assert_array_equal(np.flatnonzero(~np.isnan(weights)), np.sort(model.landmarks_))
    np.testing.assert_allclose(weights[model.landmarks_], model.sample_weight_)
    assert columns["name"]["kind"] == "category"  # 310 words: few enough for a list of them


def test_landmarks_come_by_falling_weight(page):
    model, _, _ = sample_model()
    landmarks = description_of(page)["landmarks"]
    assert landmarks["count"] == 80
    assert np.all(np.diff(landmarks["weights"]) <= 0)
    assert sum(landmarks["shares"]) == pytest.approx(1)
    assert set(landmarks["rows"]) == set(model.landmarks_.tolist())


def test_texts_of_the_data_cannot_leave_their_place(page):
    assert "<img" not in page.html
    assert page.html.lower().count("</script>") == page.html.lower().count("<script")
    assert "A &lt;/script&gt;" in page.html  # the title, in its element
    assert description_of(page)["title"] == f"A {NASTY} title"


def test_the_policy_lets_only_the_scripts_of_the_page_run(page):
    policy = re.search(r'http-equiv="Content-Security-Policy" content="([^"]*)"', page.html)[1]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    assert "http" not in policy
    assert policy.count("sha256-") == 3


def test_nothing_in_the_page_is_loaded_from_elsewhere(page):
    ours = page.html.replace(asset("three.min.js"), "")
    assert set(re.findall(r"https?://[\w./]+", ours)) == {"http://www.w3.org/2000/svg"}
    assert not re.search(r"<(link|script|img|iframe)[^>]*\s(src|href)=", ours)


def test_the_page_without_its_data_is_small(page):
    assert len(page.html.encode()) < 1_000_000
    assert len(page.html.encode()) < 6_000_000  # the limit that was set


def test_stationary_density_of_all_rows_is_that_of_the_model(points):
    X, _ = points
    model = SDPEmbedding(Gaussian(sigma=1.2), random_state=0).fit(X)
    page = report(model, X, beside=False)
    columns = {column["name"]: array_of(page, column["values"]) for column in description_of(page)["columns"]}
    np.testing.assert_array_equal(columns["stationary density"], model.stationary_)
    shares = np.exp(-columns["novelty"])
    np.testing.assert_allclose(shares / shares.sum(), model.stationary_, rtol=1e-9)  # what landmarks are extended by


def test_certificates_charts_and_settings_are_those_of_the_model(points):
    X, _ = points
    model = SDPEmbedding(Gaussian(sigma=1.2), n_levels=2, random_state=0).fit(X)
    path = rank_path(X, sigmas=[0.8, 1.6, 3.2], random_state=0)
    what = description_of(report(model, X, beside=False, path=path))
    assert [card["name"] for card in what["certificates"]] == ["Level 1", "Level 2"]
    assert what["certificates"][0]["verdict"] == "proved"
    charts = {chart["title"]: chart for chart in what["charts"]}
    assert set(charts) >= {"Spectrum", "Gap history", "Convergence", "Rank path", "Spectrum over the bandwidth"}
    assert charts["Spectrum"]["series"][0]["y"] == model.eigenvalues_.tolist()
    assert charts["Convergence"]["series"][0]["y"][-1] == model.history_[-1].objective
    assert charts["Rank path"]["series"][0]["y"] == [entry.rank or None for entry in path.entries]
    assert charts["Rank path"]["note"] == path.reason
    assert dict(what["settings"])["rank_"] == str(model.rank_)


@pytest.mark.parametrize(
    ("model", "n"),
    [
        (DiffusionMaps(n_components=3), 120),
        (KernelPCA(n_components=2), 120),
        (KernelizedSDPEmbedding(), 40),
        (MaximumVarianceUnfolding(n_neighbors=4, tol=1e-2, connect=True), 40),
        (SDPEmbedding(random_state=0), 120),
    ],
    ids=lambda value: type(value).__name__,
)
def test_every_embedding_has_a_page(model, n, points):
    X = points[0][:n]
    page = report(model.fit(X), X)
    what = description_of(page)
    assert what["views"][0]["name"] == type(model).__name__
    assert len(what["certificates"]) >= (getattr(model, "certificate_", None) is not None)
    names = [view["name"] for view in what["views"]]
    assert ("Diffusion maps" in names) == (not isinstance(model, DiffusionMaps))


def test_new_rows_are_placed_and_have_no_landmarks(points):
    X, _ = points
    model = SDPEmbedding(Gaussian(sigma=1.2), landmarks=50, random_state=0).fit(X[::2])
    page = report(model, X[1::2], beside=False)
    what = description_of(page)
    there = np.column_stack([array_of(page, axis) for axis in what["views"][0]["coordinates"]])
    np.testing.assert_array_equal(there, model.transform(X[1::2]).astype(np.float32))
    assert what["landmarks"] is None
    assert "New rows" in what["views"][0]["note"]


def test_a_precomputed_kernel_has_a_page_without_principal_components(points):
    X, _ = points
    K = Gaussian(sigma=1.2)(X)
    what = description_of(report(SDPEmbedding(Precomputed(), random_state=0).fit(K), K))
    assert [view["name"] for view in what["views"]] == ["SDPEmbedding", "Diffusion maps"]


def test_a_plane_map_is_one_more_picture(points):
    X, _ = points
    model = SDPEmbedding(Gaussian(sigma=1.2), n_levels=2, random_state=0).fit(X)
    plane = plane_map(model)
    what = description_of(report(model, X, plane=plane, beside=False))
    assert what["views"][1]["note"] == plane.summary


@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame, dict], ids=["pandas", "polars", "mapping"])
def test_tables_of_all_kinds_are_read_alike(make):
    table = make({"word": ["b", None, "a"], "number": [1.5, 2.5, None], "flag": [True, False, True]})
    word, number, flag = read_columns(table, 3)
    assert (word.kind, word.words, word.values.tolist()) == ("category", ("a", "b"), [1, -1, 0])
    assert number.kind == "number"
    np.testing.assert_array_equal(number.values, [1.5, 2.5, np.nan])
    assert flag.words == ("False", "True")


def test_a_table_of_ours_is_read_too():
    parts = (DataColumn("a", np.array([1.0, np.nan])), DataColumn("b", np.array(["x", None], dtype=object)))
    a, b = read_columns(DataTable("file", parts), 2)
    assert (a.kind, b.kind, b.words) == ("number", "category", ("x",))


def test_times_and_missing_values_of_pandas_are_texts_and_gaps():
    times = pd.Series(pd.to_datetime(["2020-01-02", None, "2020-01-02"]))
    column = read_columns({"t": times}, 3)[0]
    assert column.kind == "category"
    assert column.values.tolist() == [0, -1, 0]
    gaps = pd.Series([1, None, 3], dtype="Int64")
    np.testing.assert_array_equal(read_columns({"g": gaps}, 3)[0].values, [1, np.nan, 3])


def test_classes_are_in_order_and_many_texts_are_texts():
    assert read_column("c", np.array(["10", "9", "b", "9"]), 4).words == ("9", "10", "b")
    assert read_column("c", np.arange(3000).astype(str), 3000).kind == "text"
    assert read_column("c", np.arange(3000) % 40, 3000).kind == "number"
    assert read_column("c", np.arange(3000) % 40, 3000, classes=True).kind == "category"


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        (np.array([-128.0, 127.0]), "Int16Array"),
        (np.array([1.0, 127.0]), "Int8Array"),
        (np.array([40000.0]), "Int32Array"),
        (np.array([0.5, np.nan, np.inf]), "Float32Array"),
        (np.array([0.1]), "Float64Array"),
        (np.array([1e300]), "Float64Array"),
        (np.array([]), "Int8Array"),
    ],
)
def test_the_smallest_type_keeps_every_value(values, kind):
    name, stored = smallest(values)
    assert name == kind
    np.testing.assert_array_equal(stored.astype(np.float64), values)


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"table": {"a": [1, 2]}}, "The column 'a' has 2 values, but there are 310 rows"),
        ({"label": "colour", "table": {"a": np.zeros(310)}}, "There is no column 'colour' to colour by"),
        ({"label": np.zeros((310, 2))}, "has the shape"),
        ({"table": np.zeros((310, 2))}, "table must be a data frame"),
        ({"table": pd.DataFrame(np.zeros((310, 2)), columns=["a", "a"])}, "more than one column"),
    ],
)
def test_bad_tables_and_labels_are_told(options, sentence, points):
    X, _ = points
    model = KernelPCA().fit(X)
    with pytest.raises((ValueError, TypeError), match=sentence):
        report(model, X, **options)


def test_an_estimator_without_an_embedding_is_refused(points):
    with pytest.raises(TypeError, match="SDPEmbedding has no embedding_ to show: fit it first"):
        report(SDPEmbedding(), points[0])


def test_a_page_is_written_whole_or_not_at_all(page, tmp_path, monkeypatch):
    path = page.save(tmp_path / "page.html")
    assert path.read_text(encoding="utf-8") == page.html
    with pytest.raises(FileNotFoundError, match="does not exist"):
        page.save(tmp_path / "nowhere" / "page.html")
    monkeypatch.setattr("os.replace", lambda *_: (_ for _ in ()).throw(OSError("disk full")))
    with pytest.raises(OSError, match="disk full"):
        page.save(tmp_path / "other.html")
    assert [each.name for each in tmp_path.iterdir()] == ["page.html"]


def test_a_notebook_shows_the_page_in_a_frame_of_its_own(page):
    frame = page._repr_html_()
    assert frame.startswith("<iframe")
    assert frame.count("<") == 2  # all of the page is in the attribute
    assert 'sandbox="allow-scripts allow-downloads' in frame
    assert "allow-same-origin" not in frame
    assert "310 rows" in repr(page)


def test_scripts_are_of_a_readable_size_and_the_renderer_has_its_licence():
    for name in SCRIPTS:
        assert len(asset(name).splitlines()) < 400, name
    assert "MIT" in asset("three.LICENSE.txt")
    assert "three.js r187" in asset("three.min.js")[:200]


def test_the_place_of_rows_is_a_column_of_the_table():
    assert description_of(sample_report(place="name"))["place"] == "name"
    with pytest.raises(ValueError, match="There is no column 'line' to say where rows stand"):
        sample_report(place="line")
