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
    "mercer.SDPEmbedding().fit(X).certificate_": ("mercer.certificates.certificate.EmbeddingCertificate | None"),
    "mercer.SDPEmbedding().fit(X).rank_": "int",
    "mercer.SDPEmbedding().fit(X).status_": "mercer.solvers.solution.Status",
    "mercer.SDPEmbedding().fit(X).history_[0].objective": "float",
    "mercer.SDPEmbedding().fit(X).phase_seconds_": "dict[str, float]",
    "mercer.SDPEmbedding().fit(X).kernel_": "mercer.kernels.base.Kernel",
    "mercer.SDPEmbedding().set_params(tol=1e-3).fit(X).n_iter_": "int",
    "mercer.DiffusionMaps().fit(X)": "mercer.embedding.diffusion_maps.DiffusionMaps",
    "mercer.DiffusionMaps().fit(X).n_features_in_": "int",
    "mercer.KernelPCA().fit(X)": "mercer.embedding.kernel_pca.KernelPCA",
    "mercer.KernelPCA().fit(X).negative_share_": "float",
    "mercer.QuadratureSparsifier().fit(X).certificate_": "mercer.certificates.certificate.Certificate",
    "mercer.QuadratureSparsifier().fit(X).discrepancy_": "float",
    "mercer.QuadratureSparsifier().fit(X).path_": "mercer.quadrature.path.QuadraturePath",
    "mercer.QuadratureSparsifier().fit(X).history_[0].number": "int",
    "mercer.QuadratureSparsifier().fit(X).status_": "mercer.solvers.solution.Status",
    "mercer.SumOfSquaresDensity().fit(X).certificate_": "mercer.certificates.certificate.Certificate",
    "mercer.SumOfSquaresDensity().fit(X).mmd_": "float",
    "mercer.SumOfSquaresDensity().fit(X).score(X)": "float",
    "mercer.RobustKernelRidge().fit(X, X[:, 0]).certificate_": (
        "mercer.certificates.certificate.RegressionCertificate"
    ),
    "mercer.RobustKernelRidge().fit(X, X[:, 0]).robust_risk_": "float",
    "mercer.RobustKernelRidge().fit(X, X[:, 0]).kernel_": "mercer.kernels.stationary.Gaussian",
    "mercer.verify(mercer.DiffusionMaps(), X)": "mercer.certificates.certificate.Certificate",
    "mercer.Gaussian(sigma=1.0) + 2.0 * mercer.Laplacian(sigma=1.0)": "mercer.kernels.base.Kernel",
    "mercer.mmd(X, X)": "float",
    "mercer.mmd(X, X, estimator='linear', return_std=True)": "tuple[float, float]",
    "mercer.squared_kernel_discrepancy(X, X)": "float",
    "mercer.MeanEmbedding(None, X).distance(mercer.MeanEmbedding(None, X))": "float",
    "mercer.rank_path(X)": "mercer.embedding.rank_path_result.RankPath",
    "mercer.datasets.three_clusters()": "tuple[Any, Any]",
}
SCRIPT = "import numpy as np\nimport mercer\n\nX = np.zeros((5, 2))\n"


def revealed(expressions: list[str], folder: Path) -> dict[str, str]:
    """The type, or the error, of every expression, as mypy sees them in one run with the options of this project."""
    root, script = Path(__file__).parents[2], folder / "consumer.py"
    script.write_text(SCRIPT + "".join(f"reveal_type({expression})\n" for expression in expressions))
    command = [sys.executable, "-m", "mypy", "--config-file", str(root / "pyproject.toml"), "--strict", str(script)]
    done = subprocess.run(command, cwd=root, capture_output=True, text=True)
    found = re.findall(r'consumer\.py:(\d+): (?:note: Revealed type is "(.*)"|error: (.*))', done.stdout)
    first = SCRIPT.count("\n") + 1
    return {
        expressions[int(line) - first]: (kind or error).replace("builtins.", "") for line, kind, error in found[::-1]
    }


def test_a_type_checker_sees_the_package_from_outside(tmp_path):
    pytest.importorskip("mypy", reason="mypy is not installed: nothing can be said of types")
    public = [f"mercer.{name}" for name in mercer.__all__]
    found = revealed([*EXPECTED, *public, "mercer.Gausian"], tmp_path)
    assert {expression: found[expression] for expression in EXPECTED} == EXPECTED
    assert not [name for name in public if found[name] == "Any"]
    assert 'Module has no attribute "Gausian"' in found["mercer.Gausian"]
