"""Cells in AnnData objects: where results go, that a file holds them, further cells, and what is refused."""

from __future__ import annotations

import doctest
import os
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.sparse import csr_matrix, issparse
from sklearn.decomposition import PCA
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from mercer import DiffusionMaps, KernelPCA, SDPEmbedding, config_context
from mercer.anndata import embed, transform

anndata = pytest.importorskip("anndata", reason="anndata is not installed: pip install 'mercer[anndata]'")
# anndata asks pandas 3 for an option that pandas will drop: no doing of ours.
pytestmark = pytest.mark.filterwarnings("ignore:The 'future.infer_string' option is deprecated")
GENES, CELLS, COMPONENTS = 80, 90, 12


def prepared(counts, names):
    """Counts as scanpy prepares them: of equal sums, logarithmic, sparse."""
    scaled = np.log1p(1e4 * counts / counts.sum(axis=1, keepdims=True)).astype(np.float32)
    adata = anndata.AnnData(csr_matrix(scaled))
    adata.obs_names, adata.var_names = [f"cell{k}" for k in range(len(counts))], names
    return adata


@pytest.fixture(scope="module")
def tables():
    """Cells of three kinds with their principal components as scanpy leaves them, and further cells without."""
    rng = np.random.default_rng(0)
    rates = rng.gamma(1.0, 3.0, (3, GENES))
    kinds = np.arange(CELLS + 30) % 3
    counts = rng.poisson(rates[kinds]) + 0.0
    names = [f"gene{k}" for k in range(GENES)]
    first, further = prepared(counts[:CELLS], names), prepared(counts[CELLS:], names)
    pca = PCA(COMPONENTS, svd_solver="full").fit(first.X.toarray())
    first.obsm["X_pca"] = pca.transform(first.X.toarray()).astype(np.float32)
    first.varm["PCs"] = pca.components_.T
    return first, further, pca


@pytest.fixture
def cells(tables):
    return tables[0].copy()


@pytest.fixture
def further(tables):
    return tables[1].copy()


def same(left, right):
    """Whether two records hold the same names and values."""
    if isinstance(left, dict):
        assert left.keys() == right.keys()
        return all(same(left[name], right[name]) for name in left)
    return bool(np.array_equal(left, right, equal_nan=np.asarray(left).dtype.kind == "f"))


# --- where results go ---------------------------------------------------------------------------------------------


def test_the_default_is_the_certified_embedding_of_the_principal_components(cells):
    model = SDPEmbedding(random_state=0).fit(cells.obsm["X_pca"])
    assert embed(cells) is None
    assert_array_equal(cells.obsm["X_mercer"], model.embedding_)
    assert_array_equal(cells.obs["mercer_novelty"], model.novelty(cells.obsm["X_pca"]))
    written = cells.uns["mercer"]
    assert written["certificate"]["upper"] == model.certificate_.upper
    assert written["certificate"]["lower"] == model.certificate_.lower
    assert written["certificate"]["relative_gap"] == model.certificate_.relative_gap <= 1e-6
    assert written["certificate"]["sentence"] == str(model.certificate_)
    assert_array_equal(written["levels"]["rank"], [level.rank for level in model.levels_])
    assert_array_equal(written["levels"]["upper"], [level.certificate.upper for level in model.levels_])
    assert written["params"]["use_rep"] == "X_pca"
    assert written["params"]["n_pcs"] == COMPONENTS
    assert written["params"]["estimator"] == "SDPEmbedding"
    assert written["params"]["random_state"] == 0
    assert "SelfTuning" in written["params"]["kernel"]


def test_nothing_else_is_touched(cells):
    before = cells.copy()
    embed(cells)
    assert set(cells.obsm) == {"X_pca", "X_mercer"}
    assert set(cells.varm) == set(before.varm)
    assert set(cells.uns) == {"mercer"}
    assert list(cells.obs) == ["mercer_novelty"]
    assert issparse(cells.X)
    assert (cells.X != before.X).nnz == 0


def test_a_copy_leaves_the_original_as_it_was(cells):
    copied = embed(cells, copy=True)
    assert set(copied.obsm) == {"X_pca", "X_mercer"}
    assert set(cells.obsm) == {"X_pca"}
    assert not cells.uns
    assert not len(cells.obs.columns)


def test_a_key_names_all_that_is_written(cells):
    embed(cells, key_added="X_second")
    assert set(cells.obsm) == {"X_pca", "X_second"}
    assert set(cells.uns) == {"X_second"}
    assert list(cells.obs) == ["X_second_novelty"]


def test_columns_and_other_representations(cells):
    embed(cells, DiffusionMaps(n_components=2, random_state=0), n_pcs=5)
    expected = DiffusionMaps(n_components=2, random_state=0).fit_transform(cells.obsm["X_pca"][:, :5])
    assert_array_equal(cells.obsm["X_mercer"], expected)
    assert cells.uns["mercer"]["params"]["n_pcs"] == 5
    assert "certificate" not in cells.uns["mercer"]
    assert "mercer_novelty" not in cells.obs
    dense = cells.X.toarray()
    for named in ({"use_rep": "X"}, {"n_pcs": 0}):
        embed(cells, KernelPCA(random_state=0), **named)
        assert_allclose(cells.obsm["X_mercer"], KernelPCA(random_state=0).fit_transform(dense))
        assert cells.uns["mercer"]["params"]["use_rep"] == "X"
    cells.obsm["named"] = cells.obs.assign(a=dense[:, 0], b=dense[:, 1])[["a", "b"]]
    embed(cells, KernelPCA(random_state=0), use_rep="named")
    assert_allclose(cells.obsm["X_mercer"], KernelPCA(random_state=0).fit_transform(dense[:, :2]))


def test_few_variables_without_components_are_embedded_as_they_are(cells):
    few = anndata.AnnData(cells.X.toarray()[:, :7])
    embed(few, KernelPCA(random_state=0))
    assert few.uns["mercer"]["params"]["use_rep"] == "X"
    assert_allclose(few.obsm["X_mercer"], KernelPCA(random_state=0).fit_transform(few.X))


def test_a_pipeline_is_a_model(cells):
    embed(cells, make_pipeline(StandardScaler(), KernelPCA(n_components=2)).set_output(transform="pandas"))
    assert cells.obsm["X_mercer"].shape == (CELLS, 2)
    assert isinstance(cells.obsm["X_mercer"], np.ndarray)


# --- files --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "model",
    [
        None,
        SDPEmbedding("rbf", landmarks=np.arange(0, CELLS, 2), unit_length=True, random_state=np.random.default_rng(0)),
        KernelPCA(certify=True),
    ],
    ids=["default", "landmarks", "kernel PCA"],
)
def test_a_file_holds_all_that_was_written(cells, model, tmp_path):
    embed(cells, model)
    cells.write_h5ad(tmp_path / "cells.h5ad")
    read = anndata.read_h5ad(tmp_path / "cells.h5ad")
    assert_array_equal(read.obsm["X_mercer"], cells.obsm["X_mercer"])
    assert same(cells.uns["mercer"], read.uns["mercer"])
    assert list(read.obs.columns) == list(cells.obs.columns)


def test_a_file_that_stays_on_disk_is_read(cells, tmp_path):
    cells.write_h5ad(tmp_path / "cells.h5ad")
    backed = anndata.read_h5ad(tmp_path / "cells.h5ad", backed="r")
    try:
        embed(backed, KernelPCA(random_state=0), use_rep="X")
        embed(cells, KernelPCA(random_state=0), use_rep="X")
        assert_array_equal(backed.obsm["X_mercer"], cells.obsm["X_mercer"])
    finally:
        backed.file.close()


# --- further cells ------------------------------------------------------------------------------------------------


def test_further_cells_are_projected_on_the_components_of_the_reference(tables, cells, further):
    model, pca = SDPEmbedding(random_state=0), tables[2]
    embed(cells, model)
    assert transform(further, model, reference=cells) is None
    scores = pca.transform(further.X.toarray())
    assert_allclose(further.obsm["X_mercer"], model.transform(scores), rtol=1e-6, atol=1e-6)
    assert_allclose(further.obs["mercer_novelty"], model.novelty(scores), rtol=1e-6)
    assert set(further.uns["mercer"]) == {"params"}
    assert further.uns["mercer"]["params"]["use_rep"] == "X_pca"
    strange = further.copy()
    strange.X = further.X * 4.0
    transform(strange, model, reference=cells)
    assert (strange.obs["mercer_novelty"].to_numpy() > further.obs["mercer_novelty"].to_numpy()).all()


def test_genes_are_matched_by_name(cells, further):
    model = SDPEmbedding(random_state=0)
    embed(cells, model)
    shuffled = further[:, further.var_names[::-1]].copy()
    transform(further, model, reference=cells)
    transform(shuffled, model, reference=cells)
    assert_allclose(shuffled.obsm["X_mercer"], further.obsm["X_mercer"], atol=1e-9)
    with pytest.raises(ValueError, match=r"^adata lacks 1 of the 80 variables of the reference, 'gene0' among them"):
        transform(further[:, 1:].copy(), model, reference=cells)


def test_components_that_were_not_centred_are_known_as_such(cells, further):
    dense = cells.X.toarray().astype(float)
    loadings = np.linalg.svd(dense, full_matrices=False)[2][:5].T
    cells.varm["PCs"], cells.obsm["X_pca"] = loadings, dense @ loadings
    model = KernelPCA(random_state=0)
    embed(cells, model)
    transform(further, model, reference=cells)
    assert_allclose(further.obsm["X_mercer"], model.transform(further.X.toarray() @ loadings), atol=1e-9)


def test_components_of_its_own_are_used_as_many_as_the_fit_had(cells):
    model = SDPEmbedding(random_state=0)
    embed(cells, model, n_pcs=4)
    again = cells[:20].copy()
    transform(again, model, key_added="again")
    assert_allclose(again.obsm["again"], cells.obsm["X_mercer"][:20], atol=1e-6)
    assert again.uns["again"]["params"]["n_pcs"] == 4
    copied = transform(cells[:20], model, copy=True)
    assert_array_equal(copied.obsm["X_mercer"], again.obsm["again"])


# --- what is refused ----------------------------------------------------------------------------------------------


def refused(cells, further):
    """Calls, and the sentences that answer them."""
    bare = anndata.AnnData(further.X)
    changed = cells.copy()
    changed.X = cells.X * 2.0
    empty = anndata.AnnData(obs=cells.obs)
    model = KernelPCA().fit(cells.obsm["X_pca"])
    return [
        (lambda: embed(bare), KeyError, 'obsm."X_pca". is missing, and X has 80 variables: run scanpy.pp.pca'),
        (lambda: embed(cells, use_rep="X_scVI"), KeyError, "use_rep='X_scVI' is not in adata.obsm: choose one of 'X', 'X_pca'"),
        (lambda: embed(cells, n_pcs=13), ValueError, "n_pcs=13 exceeds the 12 columns of X_pca: lower it"),
        (lambda: embed(cells, n_pcs=-1), ValueError, "n_pcs"),
        (lambda: embed(cells.X), TypeError, "adata must be an AnnData object, not csr_matrix: it has no obs"),
        (lambda: embed(cells, KernelPCA), TypeError, "must be an estimator with fit_transform, such as SDPEmbedding"),
        (lambda: embed(empty, use_rep="X"), ValueError, "X of the AnnData object is empty: name what to embed"),
        (lambda: transform(further, KernelPCA(), reference=cells), NotFittedError, "not fitted yet"),
        (lambda: transform(further, model), KeyError, 'obsm."X_pca". is missing'),
        (lambda: transform(further, model, reference=bare), KeyError, 'varm."PCs". of the reference is missing'),
        (lambda: transform(further, model, reference=changed), ValueError, "does not lead from its X to its obsm"),
        (lambda: transform(cells, model, reference=cells, use_rep="X"), ValueError, "leave one out"),
    ]  # fmt: skip


@pytest.mark.parametrize("which", range(12))
def test_what_cannot_be_done_is_said_in_a_sentence_and_nothing_is_written(which, cells, further):
    call, error, sentence = refused(cells, further)[which]
    with pytest.raises(error, match=sentence):
        call()
    assert set(cells.obsm) == {"X_pca"}
    assert not cells.uns
    assert not further.uns


def test_a_matrix_that_does_not_fit_in_memory_is_refused(cells):
    wide = anndata.AnnData(csr_matrix((3000, 3000), dtype=np.float32))
    with (
        config_context(memory_limit="50MB"),
        pytest.raises(ValueError, match="A dense copy of X, 3000 × 3000, takes 72"),
    ):
        embed(wide, use_rep="X")


# --- the page of the user guide -----------------------------------------------------------------------------------


def test_the_examples_on_cells_run_as_the_page_prints_them():
    page = Path(__file__).parents[2] / "docs" / "user_guide" / "ecosystem.rst"
    text = page.read_text(encoding="utf-8").partition(".. _cells:")[2]
    names = {"np": np, "anndata": anndata}
    examples = doctest.DocTestParser().get_doctest(text, names, page.name, str(page), 0)
    assert len(examples.examples) > 10
    said: list[str] = []
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS)
    assert runner.run(examples, out=said.append).failed == 0, "".join(said)


# --- bone marrow --------------------------------------------------------------------------------------------------


def test_bone_marrow(tmp_path):
    folder = Path(os.environ.get("MERCER_DATA", ""))
    if not (folder / "marrow_pca.npz").is_file():
        pytest.skip("MERCER_DATA names no folder with marrow_pca.npz")
    with np.load(folder / "marrow_pca.npz") as data:
        scores, markers, names = data["X"], data["markers"], data["marker_names"]
    marrow = anndata.AnnData(markers, obsm={"X_pca": scores})
    marrow.obs_names, marrow.var_names = [f"cell{k}" for k in range(len(scores))], list(map(str, names))
    first, second = marrow[:1200].copy(), marrow[1200:1500].copy()
    model = SDPEmbedding(random_state=0)
    embed(first, model, n_pcs=30)
    transform(second, model)
    assert first.uns["mercer"]["params"]["use_rep"] == "X_pca"
    assert first.uns["mercer"]["certificate"]["relative_gap"] <= 1e-6
    assert second.obsm["X_mercer"].shape == (300, first.obsm["X_mercer"].shape[1])
    first.write_h5ad(tmp_path / "marrow.h5ad")
    assert_array_equal(anndata.read_h5ad(tmp_path / "marrow.h5ad").obsm["X_mercer"], first.obsm["X_mercer"])
