"""What a type checker sees of the package from outside: every public name, and the attributes of fitted models."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

import mercer

# Expressions of a person's script, with X: numpy.ndarray, and their types.
EXPECTED = {
    "mercer.SDPEmbedding().fit(X)": "mercer.embedding.sdp.SDPEmbedding",
    "mercer.SDPEmbedding().fit(X).certificate_": (
        "mercer.certificates.embedding_certificate.EmbeddingCertificate | None"
    ),
    "mercer.SDPEmbedding().fit(X).rank_": "int",
    "mercer.SDPEmbedding().fit(X).status_": "mercer.solvers.solution.Status",
    "mercer.SDPEmbedding().fit(X).history_[0].objective": "float",
    "mercer.SDPEmbedding().fit(X).phase_seconds_": "dict[str, float]",
    "mercer.SDPEmbedding().fit(X).kernel_": "mercer.kernels.base.Kernel",
    "mercer.SDPEmbedding().set_params(tol=1e-3).fit(X).n_iter_": "int",
    "mercer.DiffusionMaps().fit(X)": "mercer.embedding.diffusion_maps.DiffusionMaps",
    "mercer.DiffusionMaps().fit(X).n_features_in_": "int",
    "mercer.QuadratureSparsifier().fit(X).certificate_": "mercer.certificates.certificate.Certificate",
    "mercer.QuadratureSparsifier().fit(X).discrepancy_": "float",
    "mercer.QuadratureSparsifier().fit(X).path_": "mercer.quadrature.path.QuadraturePath",
    "mercer.QuadratureSparsifier().fit(X).history_[0].number": "int",
    "mercer.QuadratureSparsifier().fit(X).status_": "mercer.solvers.solution.Status",
    "mercer.SumOfSquaresDensity().fit(X).certificate_": "mercer.certificates.certificate.Certificate",
    "mercer.SumOfSquaresDensity().fit(X).mmd_": "float",
    "mercer.SumOfSquaresDensity().fit(X).score(X)": "float",
    "mercer.RobustKernelRidge().fit(X, X[:, 0]).certificate_": "mercer.certificates.certificate.Certificate",
    "mercer.RobustKernelRidge().fit(X, X[:, 0]).robust_risk_": "float",
    "mercer.RobustKernelRidge().fit(X, X[:, 0]).kernel_": "mercer.kernels.stationary.Gaussian",
    "mercer.verify(mercer.DiffusionMaps(), X)": "mercer.certificates.certificate.Certificate",
    "mercer.Gaussian(sigma=1.0) + 2.0 * mercer.Laplacian(sigma=1.0)": "mercer.kernels.base.Kernel",
}
SCRIPT = "import numpy as np\nimport mercer\n\nX = np.zeros((5, 2))\n"


@pytest.fixture(scope="module")
def revealed(tmp_path_factory) -> dict[str, str]:
    """What mypy, in one run with the options of this project, reveals of every expression."""
    pytest.importorskip("mypy", reason="mypy is not installed: nothing can be said of types")
    root = Path(__file__).parents[2]
    expressions = [*EXPECTED, *(f"mercer.{name}" for name in mercer.__all__), "mercer.Gausian"]
    script = tmp_path_factory.mktemp("types") / "consumer.py"
    script.write_text(SCRIPT + "".join(f"reveal_type({expression})\n" for expression in expressions))
    command = [sys.executable, "-m", "mypy", "--config-file", str(root / "pyproject.toml"), "--strict", str(script)]
    done = subprocess.run(command, cwd=root, capture_output=True, text=True)
    found = re.findall(r'consumer\.py:(\d+): (?:note: Revealed type is "(.*)"|error: (.*))', done.stdout)
    first = SCRIPT.count("\n") + 1
    return {expressions[int(line) - first]: kind or error for line, kind, error in reversed(found)}


@pytest.mark.parametrize("expression", EXPECTED)
def test_type_of(expression, revealed):
    assert revealed[expression].replace("builtins.", "") == EXPECTED[expression]


@pytest.mark.parametrize("name", mercer.__all__)
def test_public_name_has_a_type(name, revealed):
    assert revealed[f"mercer.{name}"] != "Any"


def test_unknown_name_is_an_error(revealed):
    assert 'Module has no attribute "Gausian"' in revealed["mercer.Gausian"]
