"""Embeddings in two dimensions against their peers: seconds, memory, quality, new points; each in a process of its own.

    python -m benchmarks race embedding                  # writes benchmarks/results/race_embedding.md
    python benchmarks/race_embedding.py 1000 1000000     # some sizes; the tables of the others stay

PHATE and datafold ask for older packages than ours and run in an environment of their own:

    python -m venv /tmp/race_venv                                               # or name one in RACE_PYTHON
    /tmp/race_venv/bin/pip install phate datafold "scikit-learn<1.5" "numpy<2"
"""

from __future__ import annotations

import json
import os
import resource
import signal
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

HERE = Path(__file__).resolve().parent
RESULT = HERE / "results" / "race_embedding.md"
OTHER_PYTHON = Path(os.environ.get("RACE_PYTHON", "/tmp/race_venv/bin/python"))
LEAST = 0.001
NEW = 1000  # points kept back, for the time of new ones
PATIENCE = {1000: 60, 5000: 90, 20_000: 150, 100_000: 300, 1_000_000: 1200}  # seconds of a processor for a method
MEMORY = 14 * 2**30  # bytes that a method may take
JITTER = 0.02  # of a column's deviation, where there are more points than rows
WARMED = 40  # seconds more, for imports and compilers
ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "NUMBA_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
JUDGED = 5000  # points of which the quality is measured

Array = np.ndarray[Any, Any]
Maker = Callable[[int], Any]


def sample(n: int) -> tuple[Array, Array, str]:
    """Points and classes: digits on 50 principal components, or the ten quantities of cover types."""
    from mercer.datasets import load_real

    rng = np.random.default_rng(0)
    if n <= 20_000:
        data = load_real("mnist")
        rows = rng.permutation(len(data["x_train"]))[: n + NEW]
        X = data["x_train"][rows].reshape(len(rows), -1) / 255.0
        from sklearn.decomposition import PCA

        return PCA(50, random_state=0).fit_transform(X), data["y_train"][rows], "MNIST, 50 components"
    data = load_real("covtype")
    there = len(data["X"])
    again = n + NEW > there
    rows = rng.integers(there, size=n + NEW) if again else rng.permutation(there)[: n + NEW]
    X = data["X"][rows, :10].astype(np.float64)
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    if not again:
        return X, data["y"][rows], "cover types, 10 quantities"
    X += JITTER * rng.standard_normal(X.shape)
    return X, data["y"][rows], f"cover types, 10 quantities, rows drawn again and again and moved by {JITTER}"


# --- methods: fitted, then asked for coordinates of new points --------------------------------------------------------


def _pca(n: int) -> Any:
    from sklearn.decomposition import PCA

    return PCA(2)


def _kernel_pca(n: int) -> Any:
    from sklearn.decomposition import KernelPCA

    return KernelPCA(2, kernel="rbf")


def _spectral(n: int) -> Any:
    from sklearn.manifold import SpectralEmbedding

    return SpectralEmbedding(2, affinity="nearest_neighbors", random_state=0)


def _isomap(n: int) -> Any:
    from sklearn.manifold import Isomap

    return Isomap()


def _umap(n: int) -> Any:
    from umap import UMAP

    return UMAP()


class _PaCMAP:
    """Its transform wants the training points again."""

    def fit(self, X: Array) -> _PaCMAP:
        from pacmap import PaCMAP

        self.X, self.model = X, PaCMAP(save_tree=True, random_state=0)
        self.embedding_ = self.model.fit_transform(X.copy())
        return self

    def transform(self, X: Array) -> Array:
        return self.model.transform(X, basis=self.X.copy())


def _sdp(n: int) -> Any:
    from mercer import SDPEmbedding

    return SDPEmbedding(random_state=0)


def _sdp_by_landmarks(n: int) -> Any:
    from mercer import SDPEmbedding

    return SDPEmbedding(landmarks=min(n, 1000), random_state=0)


def _maps(n: int) -> Any:
    from mercer import DiffusionMaps

    return DiffusionMaps(random_state=0)


def _our_kernel_pca(n: int) -> Any:
    from mercer import KernelPCA

    return KernelPCA(random_state=0)


class _PHATE:
    def fit(self, X: Array) -> _PHATE:
        import phate

        self.model = phate.PHATE(verbose=0, random_state=0)
        self.embedding_ = self.model.fit_transform(X)
        return self

    def transform(self, X: Array) -> Array:
        return self.model.transform(X)


class _Datafold:
    """Its diffusion maps with the bandwidth and the cut that it estimates."""

    def fit(self, X: Array) -> _Datafold:
        import datafold.dynfold as dynfold
        import datafold.pcfold as pcfold

        manifold = pcfold.PCManifold(X)
        manifold.optimize_parameters()
        kernel = pcfold.GaussianKernel(epsilon=manifold.kernel.epsilon, distance={"cut_off": manifold.cut_off})
        self.model = dynfold.DiffusionMaps(kernel=kernel, n_eigenpairs=3)
        self.embedding_ = np.asarray(self.model.fit_transform(manifold))[:, 1:]
        return self

    def transform(self, X: Array) -> Array:
        return np.asarray(self.model.transform(X))[:, 1:]


METHODS: dict[str, Maker] = {
    "**SDPEmbedding()**": _sdp,
    "**SDPEmbedding(landmarks=1000)**": _sdp_by_landmarks,
    "**DiffusionMaps()**": _maps,
    "**KernelPCA()** of mercer": _our_kernel_pca,
    "PCA": _pca,
    "KernelPCA of scikit-learn": _kernel_pca,
    "SpectralEmbedding": _spectral,
    "Isomap": _isomap,
    "UMAP": _umap,
    "PaCMAP": lambda n: _PaCMAP(),
    "PHATE": lambda n: _PHATE(),
    "datafold, diffusion maps": lambda n: _Datafold(),
}
ELSEWHERE = ("PHATE", "datafold, diffusion maps")
QUADRATIC = ("KernelPCA of scikit-learn", "Isomap", "datafold, diffusion maps")  # n × n arrays: not beyond 5 000
OF_ALL_PAIRS = ("**KernelPCA()** of mercer",)  # n² in time alone


def child(name: str, folder: str) -> None:
    """Fit and transform in this process; what it found goes into the folder."""
    warnings.simplefilter("ignore")
    train, new = np.load(f"{folder}/train.npy"), np.load(f"{folder}/new.npy")
    warm = METHODS[name](400).fit(train[:400])  # imports and compiles
    if hasattr(warm, "transform"):
        warm.transform(new[:10])
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    began = time.process_time()
    model = METHODS[name](len(train)).fit(train)
    found = {"seconds": time.process_time() - began}
    Z = model.embedding_ if hasattr(model, "embedding_") else model.transform(train)
    found["MB"] = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
    if hasattr(model, "transform"):
        began = time.process_time()
        moved = np.asarray(model.transform(new), np.float64)
        found["new"] = time.process_time() - began
        np.save(f"{folder}/moved.npy", moved[:, :2])
    certificate = getattr(model, "certificate_", None)
    found["gap"] = None if certificate is None else certificate.relative_gap
    np.save(f"{folder}/embedding.npy", np.asarray(Z, np.float64))
    Path(f"{folder}/found.json").write_text(json.dumps(found), encoding="utf-8")


def quality(folder: Path, X: Array, labels: Array) -> dict[str, float]:
    """Trustworthiness of two coordinates, and five neighbours: of training points, and from them to new points."""
    from embedding_scores import neighbours_right, trusted
    from sklearn.neighbors import KNeighborsClassifier

    n = len(X) - NEW
    Z = np.load(folder / "embedding.npy")
    some = np.random.default_rng(1).permutation(n)[:JUDGED]
    found = {"trust": trusted(X[some], Z[some, :2]), "knn": neighbours_right(Z[some, :2], labels[some])}
    if Z.shape[1] > 2:
        found["all"] = neighbours_right(Z[some], labels[some])
    if (folder / "moved.npy").exists():
        model = KNeighborsClassifier(5).fit(Z[:, :2], labels[:n])
        found["new_knn"] = float(model.score(np.load(folder / "moved.npy"), labels[n:]))
    return found


def limited(seconds: int) -> None:
    """End this process after so many seconds of a processor, and give it so much memory and no more."""
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds + 5))
    resource.setrlimit(resource.RLIMIT_DATA, (MEMORY, MEMORY))


def run(name: str, n: int) -> dict[str, Any]:
    """One method at one size, in a child; what went wrong where something did."""
    X, labels, _ = sample(n)
    python = str(OTHER_PYTHON) if name in ELSEWHERE else sys.executable
    if not Path(python).exists():
        return {"error": "not installed"}
    with tempfile.TemporaryDirectory() as folder:
        np.save(f"{folder}/train.npy", X[:n])
        np.save(f"{folder}/new.npy", X[n:])
        done = subprocess.run(
            [python, __file__, "--child", name, folder],
            capture_output=True,
            check=False,
            env={**os.environ, **ONE_THREAD, **({"PYTHONPATH": ""} if name in ELSEWHERE else {})},
            preexec_fn=lambda: limited(PATIENCE[n] + WARMED),
        )
        if done.returncode == -signal.SIGXCPU:
            return {"error": f"not within {PATIENCE[n]} s"}
        if done.returncode:
            return {"error": "failed: " + done.stderr.decode().strip().splitlines()[-1][:80]}
        return json.loads(Path(f"{folder}/found.json").read_text()) | quality(Path(folder), X, labels)


def cell(found: dict[str, Any], key: str, form: str) -> str:
    value = found.get(key)
    if key in ("seconds", "new") and value is not None and value < LEAST:
        return f"< {LEAST}"  # what the clock of a processor tells apart
    if value is not None and form == ".2g":
        return f"{float(format(value, form)):g}"  # 210, not 2.1e+02
    return "–" if value is None else format(value, form)


def line(name: str, found: dict[str, Any]) -> str:
    if "error" in found:
        return f"| {name} | {found['error']} | | | | | | | |"
    forms = ("seconds", ".2g"), ("MB", ".0f"), ("trust", ".3f"), ("knn", ".3f"), ("all", ".3f"), ("new", ".2g")
    cells = [cell(found, key, form) for key, form in (*forms, ("new_knn", ".3f"), ("gap", ".0e"))]
    return f"| {name} | " + " | ".join(cells) + " |"


def table(n: int, last: dict[str, float]) -> list[str]:
    """The rows of one size; ``last``, seconds a point or a pair at the size before, says which runs are hopeless."""
    lines = [
        f"n = {n:,}: {sample(n)[2]}.",
        "",
        "| method | s | MB | trustworthiness | 5-NN, 2 coordinates | 5-NN, all | s, 1 000 new points | 5-NN of new "
        "points | proved gap |",
        "| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |",
    ]
    for name in METHODS:
        units = n * n if name in OF_ALL_PAIRS else n
        if n > 5000 and name in QUADRATIC:
            found: dict[str, Any] = {"error": "n × n numbers: left out"}
        elif units * last.get(name, 0.0) > PATIENCE[n]:
            found = {"error": f"would take more than {PATIENCE[n]} s"}
        else:
            found = run(name, n)
        patient = "seconds" in found or found["error"].startswith("failed")
        last[name] = found.get("seconds", 0.0) / units if patient else float("inf")
        lines.append(line(name, found))
        print(lines[-1], flush=True)
    return lines


def main(sizes: tuple[int, ...] = tuple(PATIENCE)) -> None:
    import race_setting
    from result_page import write_table

    last: dict[str, float] = {}
    for n in sizes:
        write_table(RESULT, f"n = {n}", table(n, last))
        write_table(RESULT, "machine", [race_setting.machine("scikit-learn", "umap-learn", "pacmap")])


if __name__ == "__main__":
    if sys.argv[1:2] == ["--child"]:
        child(*sys.argv[2:4])
    else:
        main(tuple(map(int, sys.argv[1:])) or tuple(PATIENCE))
