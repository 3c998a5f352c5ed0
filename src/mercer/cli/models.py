"""The estimator that the options of ``mercer embed`` ask for."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, final

import click

METHODS = ("sdp", "diffusion", "kernel-pca", "unfolding")
KERNELS = ("self-tuning", "gaussian", "laplacian", "matern", "cosine", "linear", "polynomial", "chi2", "mixed")
_BANDWIDTHS = {"gaussian": "sigma", "laplacian": "sigma", "matern": "length_scale"}
_PROVED = 5000  # rows up to which kernel PCA is certified without being asked


@final
@dataclass(frozen=True)
class ModelOptions:
    """The options of a fit, as they were given; None where they were not."""

    method: str
    kernel: str | None
    sigma: str | None
    neighbors: int | None
    components: int | None
    landmarks: int | None
    tol: float | None
    seed: int

    @property
    def mixed(self) -> bool:
        """Whether columns of words take part."""
        return self.kernel == "mixed"

    def estimator(self, rows: int) -> Any:
        """The estimator, not fitted."""
        _MISFITS[self.method](self)
        import mercer

        given: dict[str, Any] = {"n_components": self.components, "landmarks": self.landmarks, "tol": self.tol}
        given = {name: value for name, value in given.items() if value is not None}
        if self.method == "unfolding":
            near: dict[str, Any] = {} if self.neighbors is None else {"n_neighbors": self.neighbors}
            return mercer.MaximumVarianceUnfolding(connect=True, **near, **given)
        kernel = kernel_of(self.kernel, self.sigma, self.neighbors)
        if self.method == "diffusion":
            return mercer.DiffusionMaps(kernel, random_state=self.seed, **given)
        if self.method == "kernel-pca":
            return mercer.KernelPCA(kernel, certify=rows <= _PROVED, random_state=self.seed, **given)
        return mercer.SDPEmbedding(kernel, random_state=self.seed, **given)


def kernel_of(name: str | None, sigma: str | None, neighbors: int | None = None) -> Any:
    """The kernel by its name and its one number; None where nothing was said, and the estimator knows best."""
    from mercer.embedding.default_kernel import default_kernel
    from mercer.kernels import Mixed
    from mercer.kernels.names import kernel_named

    if name is None and sigma is None and neighbors is None:
        return None
    if sigma is not None and name not in (None, *_BANDWIDTHS):
        raise click.UsageError(f"--sigma is a bandwidth, which the kernel {name} has not: leave one of them out.")
    if neighbors is not None and (name not in (None, "self-tuning") or sigma is not None):
        raise click.UsageError("--neighbors is of the kernel self-tuning: leave it out, or name no other kernel.")
    name = name or ("gaussian" if sigma is not None else "self-tuning")
    if name == "mixed":
        return Mixed()
    kernel = default_kernel() if name == "self-tuning" else kernel_named(name)
    if sigma is not None:
        kernel.set_params(**{_BANDWIDTHS[name]: _bandwidth(sigma)})
    return kernel if neighbors is None else kernel.set_params(n_neighbors=neighbors)


def _bandwidth(given: str) -> float | str:
    try:
        return float(given)
    except ValueError:
        return given  # a rule, such as median, which the kernel refuses where it knows no such rule


def _refuse(**unused: str) -> Callable[[ModelOptions], None]:
    """Refuse options that a method has no use for."""

    def check(options: ModelOptions) -> None:
        for name, why in unused.items():
            if getattr(options, name) is not None:
                raise click.UsageError(f"--{name} has no meaning with --method {options.method}: {why}.")

    return check


_MISFITS = {
    "sdp": _refuse(),
    "diffusion": _refuse(tol="it solves no programme"),
    "kernel-pca": _refuse(),
    "unfolding": _refuse(kernel="it keeps distances of neighbours", sigma="it keeps distances of neighbours"),
}
