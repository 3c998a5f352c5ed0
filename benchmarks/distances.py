"""What kernels from distances cost, and what an embedding by them is worth.

    python benchmarks/distances.py            a minute: 5 000 points of a roll, 1 000 images
    python benchmarks/distances.py --full     20 000 points and 10 000 images of MNIST; writes results/distances.md

Rolls: kernel PCA by each kernel through landmarks, time and memory above that of the points, and the correlation of the
first coordinate with the place along the roll. Images: MNIST by pixels and by structural similarity through landmarks,
and the share of new images that five neighbours in ten coordinates name rightly; left out without MERCER_DATA.
"""

from __future__ import annotations

import argparse
import os
import time
import warnings
from pathlib import Path

import numpy as np
from peak_memory import PeakMemory
from result_page import write_table
from sklearn.datasets import make_swiss_roll
from sklearn.neighbors import KNeighborsClassifier

from mercer import SSIM, FromDistance, Geodesic, GraphLaplacian, KernelPCA, LocallyLinear
from mercer.datasets import real

PAGE = Path(__file__).resolve().parent / "results" / "distances.md"


def machine() -> str:
    """Cores, and how many processes wanted one before the run."""
    return f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.0f} at the start"


def measured(model: KernelPCA, X: np.ndarray) -> tuple[KernelPCA, float, float]:
    """The fitted model, seconds and megabytes."""
    with PeakMemory() as memory:
        start = time.perf_counter()
        model.fit(X)
        seconds = time.perf_counter() - start
    return model, seconds, memory.peak / 1e6


def rolls(n: int, landmarks: int) -> list[str]:
    X, along = make_swiss_roll(n, random_state=0)
    rows = np.linspace(0, n - 1, landmarks).astype(int)
    lines = [
        f"Roll, n = {n}, {landmarks} landmarks ({8 * n * landmarks / 1e6:.0f} MB; all pairs {8 * n * n / 1e6:.0f} MB), "
        f"{machine()}",
        "",
        "| kernel | landmarks | seconds | MB | negative share | correlation |",
        "|---|---|---|---|---|---|",
    ]
    for kernel in (Geodesic(10), LocallyLinear(10), GraphLaplacian(10)):
        measured(KernelPCA(kernel, landmarks=np.arange(50)), X[:500])  # compiled
        for name, chosen in (("evenly spread", rows), ("chosen by the kernel", landmarks)):
            model, seconds, megabytes = measured(KernelPCA(kernel, landmarks=chosen, random_state=0), X)
            right = abs(np.corrcoef(model.embedding_[:, 0], along)[0, 1])
            lines.append(
                f"| {type(kernel).__name__}(10) | {name} | {seconds:.1f} | {megabytes:.0f} | "
                f"{model.negative_share_:.3f} | {right:.3f} |"
            )
            print(lines[-1], flush=True)
    return lines


def images(n: int, landmarks: int) -> list[str]:
    data = real.load_real("mnist")
    X, Y = (data[key].reshape(-1, 784).astype(np.float64)[:count] for key, count in (("x_train", n), ("x_test", 1000)))
    rows = np.linspace(0, n - 1, landmarks).astype(int)
    lines = [
        f"MNIST, n = {n}, {landmarks} landmarks, ten coordinates, 1 000 new images, {machine()}",
        "",
        "| distance | seconds | µs a pair | seconds for new images | right |",
        "|---|---|---|---|---|",
    ]
    kernels = {
        "pixels": FromDistance(),
        "SSIM, the metric": SSIM((28, 28), data_range=255),
        "SSIM, 1 - index": SSIM((28, 28), "index", data_range=255),
    }
    for name, kernel in kernels.items():
        measured(KernelPCA(kernel, n_components=10), X[:50])  # compiled
        model, seconds, _ = measured(KernelPCA(kernel, n_components=10, landmarks=rows), X)
        start = time.perf_counter()
        new = model.transform(Y)
        later = time.perf_counter() - start
        score = KNeighborsClassifier(5).fit(model.embedding_, data["y_train"][:n]).score(new, data["y_test"][:1000])
        pair = 1e6 * later / 1000 / (landmarks + 200)
        lines.append(f"| {name} | {seconds:.1f} | {pair:.1f} | {later:.1f} | {score:.3f} |")
        print(lines[-1], flush=True)
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--full", action="store_true", help="the sizes of the page, which is written")
    parser.add_argument("--only", choices=["roll", "mnist"], help="one of the two tables")
    options = parser.parse_args()
    warnings.filterwarnings("ignore", message=".*is not positive semi-definite")
    if options.only != "mnist":
        lines = rolls(20_000 if options.full else 5_000, 300)
        if options.full:
            write_table(PAGE, "roll", lines)
    if options.only != "roll" and real.data_folder() is not None:
        lines = images(10_000 if options.full else 1_000, 300 if options.full else 100)
        if options.full:
            write_table(PAGE, "mnist", lines)


if __name__ == "__main__":
    main()
