"""Budgets, Ctrl-C, checkpoints, warm starts, and the solvers behind the estimator."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
import textwrap
import warnings

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from mercer import Gaussian, Laplacian, Precomputed, SDPEmbedding, verify
from mercer.datasets import three_clusters, two_moons
from mercer.embedding import checkpoint as checkpoint_module
from mercer.embedding.checkpoint import CheckpointWarning
from mercer.solvers import Status

KERNEL = Gaussian(sigma=0.6)


@pytest.fixture(scope="module")
def X():
    return two_moons(n_points=90)[0]


@pytest.fixture(scope="module")
def reference(X):
    return SDPEmbedding(KERNEL, random_state=0, tol=1e-9, residual_tol=1e-9).fit(X)


def _gram(model):
    return model.coordinates_ @ model.coordinates_.T


# --- solvers ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("solver", ["auto", "power", "accelerated", "trust-region", "interior-point", "conic"])
def test_every_solver_finds_the_same_kernel(X, reference, solver):
    model = SDPEmbedding(KERNEL, solver=solver, random_state=1, residual_tol=1e-5, max_iter=100_000).fit(X)
    assert model.certificate_.holds(1e-6)
    assert model.certificate_.lower == pytest.approx(reference.certificate_.lower, rel=1e-6)
    np.testing.assert_allclose(_gram(model), _gram(reference), atol=2e-2 * _gram(reference).max())


def test_automatic_solver_needs_few_exact_columns():
    X = two_moons(n_points=260)[0]
    automatic = SDPEmbedding(KERNEL, random_state=0).fit(X)
    accelerated = SDPEmbedding(KERNEL, solver="accelerated", random_state=0).fit(X)
    assert automatic.n_products_ < accelerated.n_products_ / 4
    assert automatic.n_stand_in_products_ > 0
    assert accelerated.n_stand_in_products_ == 0


def test_conic_solver_says_when_it_is_too_large():
    with pytest.raises(ValueError, match="at most 200 points"):
        SDPEmbedding(KERNEL, solver="conic").fit(two_moons(n_points=201)[0])


def test_conic_solver_that_fails_says_so(X, monkeypatch):
    cvxpy = pytest.importorskip("cvxpy")

    def fail(self, *args, **kwargs):
        raise cvxpy.error.SolverError("numbers ran out")

    monkeypatch.setattr(cvxpy.Problem, "solve", fail)
    with pytest.raises(ArithmeticError, match="conic solver failed .numbers ran out.: use solver='interior-point'"):
        SDPEmbedding(KERNEL, solver="conic").fit(X)
    monkeypatch.setattr(cvxpy.Problem, "solve", lambda self, **kwargs: None)
    with pytest.raises(ArithmeticError, match="ended without a solution, with the status None"):
        SDPEmbedding(KERNEL, solver="conic").fit(X)
    monkeypatch.setattr(cvxpy.Variable, "value", np.full((90, 90), np.nan))
    with pytest.raises(ArithmeticError, match="ended without a solution"):
        SDPEmbedding(KERNEL, solver="conic").fit(X)


@pytest.mark.parametrize("solver", ["auto", "interior-point", "conic"])
def test_an_eigenvalue_of_high_multiplicity_is_no_exception(solver):
    """LAPACK's bisection gives up on the matrix of this certificate."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # seven digits of its entries are the same everywhere
        model = SDPEmbedding(Precomputed(), solver=solver, random_state=0).fit(1e-3 * np.eye(40) + np.ones((40, 40)))
    assert model.certificate_.holds(1e-4)


def test_indefinite_affinities_go_without_a_stand_in(X):
    affinities = np.where(Laplacian(sigma=1.0)(X) > 0.3, Laplacian(sigma=1.0)(X), 0.0)
    model = SDPEmbedding(Precomputed(), random_state=0, tol=1e-5).fit(affinities)
    assert model.n_stand_in_products_ == 0
    assert model.certificate_.holds(1e-5)


_PROVED_BY = {
    "factorisation": {"factorisation proof"},
    "pivoted-cholesky": {"pivoted Cholesky proof"},
    "residual-lanczos": {"residual Lanczos bound", "pivoted Cholesky proof"},  # the better of the two
    "deflated-lanczos": {"deflated Lanczos bound"},
}


@pytest.fixture(scope="module")
def proved():
    """Certificates of one fit, by the way that was named."""
    X, _ = three_clusters(n_per_cluster=40, n_outliers=5)
    options = {"kernel": Gaussian(sigma=2.5), "tol": 1e-5, "random_state": 0}
    return {method: SDPEmbedding(certify=method, **options).fit(X).certificate_ for method in _PROVED_BY}


@pytest.mark.parametrize("method", _PROVED_BY)
def test_certificate_by_a_named_way(proved, method):
    assert proved[method].method in _PROVED_BY[method]
    assert proved[method].holds(1e-5)
    assert (proved[method].failure_probability == 0) == ("proof" in proved[method].method)


def test_lanczos_on_what_a_factor_leaves_out_takes_columns_of_its_own(proved):
    assert proved["residual-lanczos"].n_products > proved["pivoted-cholesky"].n_products


def test_unknown_certificate_is_refused(X):
    with pytest.raises(ValueError, match="certify='guess' must be one of True, False, 'auto', 'factorisation'"):
        SDPEmbedding(KERNEL, certify="guess").fit(X)


# --- budgets ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("budget", [1, 5, 25])
def test_product_budget_gives_a_warning_a_status_and_an_honest_certificate(X, reference, budget):
    with pytest.warns(ConvergenceWarning, match="product budget ran out: raise max_products"):
        model = SDPEmbedding(KERNEL, solver="power", max_products=budget, random_state=0).fit(X)
    assert model.status_ is Status.MAX_PRODUCTS
    assert not model.certificate_.holds(1e-6)
    assert model.certificate_.lower <= reference.certificate_.lower * (1 + 1e-9)
    assert model.certificate_.upper >= reference.certificate_.lower * (1 - 1e-9)
    assert model.embedding_.shape[0] == len(X)


@pytest.mark.parametrize("budget", [0, -3, 2.5, "many", True])
def test_a_budget_that_is_none_is_refused(X, budget):
    with pytest.raises(ValueError, match="max_products=.* must be a whole number of at least 1"):
        SDPEmbedding(KERNEL, max_products=budget).fit(X)


# --- interruption -----------------------------------------------------------------------------------------------


class _PressCtrlC:
    """A callback that raises what Ctrl-C raises, at one step."""

    def __init__(self, step):
        self.step, self.calls = step, 0

    def __call__(self, iteration):
        self.calls += 1
        if self.calls == self.step:
            raise KeyboardInterrupt


@pytest.mark.parametrize("solver", ["auto", "power", "accelerated", "trust-region"])
@pytest.mark.parametrize("step", [1, 4])
def test_interrupted_fit_returns_the_best_iterate_with_an_honest_certificate(X, reference, solver, step):
    with pytest.warns(ConvergenceWarning, match="interrupted"):
        model = SDPEmbedding(
            KERNEL, solver=solver, residual_tol=1e-14, tol=1e-14, callback=_PressCtrlC(step), random_state=0
        ).fit(X)
    assert model.status_ is Status.INTERRUPTED
    assert model.certificate_.lower <= reference.certificate_.upper
    assert model.certificate_.upper >= reference.certificate_.lower
    assert verify(model, X, random_state=3).lower == pytest.approx(model.certificate_.lower, rel=1e-9)
    assert np.isfinite(model.transform(X[:5] + 0.01)).all()


def test_a_signal_during_the_solve_on_the_stand_in(tmp_path):
    """A true SIGINT, early, to a process of its own: it must end with a model and not with a traceback."""
    script = textwrap.dedent(
        """
        import os, signal, warnings
        import numpy as np
        import mercer.solvers.elliptope.staircase as staircase
        from mercer import Gaussian, SDPEmbedding
        warnings.simplefilter("ignore")
        signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell may start its background jobs without it
        inner = staircase.solve
        def noisy(problem, *args, **kwargs):
            staircase.solve = inner
            multiply, calls = problem.curvature, []
            def curvature(V):
                calls.append(1)
                if len(calls) == 5:
                    os.kill(os.getpid(), signal.SIGINT)
                return multiply(V)
            problem.curvature = curvature
            return inner(problem, *args, **kwargs)
        staircase.solve = noisy
        X = np.random.default_rng(0).standard_normal((400, 2))
        model = SDPEmbedding(Gaussian(sigma=0.5), random_state=0).fit(X)
        print(model.status_.name, model.certificate_.lower > 0, model.embedding_.shape[0])
        """
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=120)
    assert done.stdout.split() == ["INTERRUPTED", "True", "400"], done.stderr


# --- checkpoints ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("solver", ["auto", "power", "accelerated", "trust-region"])
def test_resumed_run_gives_the_same_answer(X, reference, solver, tmp_path):
    file = tmp_path / "run.npz"
    options = {"solver": solver, "checkpoint": file, "random_state": 0, "max_iter": 100_000, "residual_tol": 1e-7}
    with pytest.warns(ConvergenceWarning, match="interrupted"):
        broken = SDPEmbedding(KERNEL, callback=_PressCtrlC(3), **options).fit(X)
    assert file.exists()
    resumed = SDPEmbedding(KERNEL, **options).fit(X)
    assert resumed.status_ is Status.CONVERGED
    earlier = len(broken.history_)
    assert resumed.history_[:earlier] == broken.history_  # every step of the first run is kept
    assert [line.number for line in resumed.history_[earlier:]] == sorted(
        line.number for line in resumed.history_[earlier:]
    )
    assert resumed.history_[earlier].number >= broken.n_iter_  # counted on
    assert resumed.history_[earlier].n_columns > broken.history_[-1].n_columns
    assert resumed.history_[earlier].seconds > broken.history_[-1].seconds
    assert resumed.certificate_.lower == pytest.approx(reference.certificate_.lower, rel=1e-6)
    np.testing.assert_allclose(_gram(resumed), _gram(reference), atol=1e-3 * _gram(reference).max())
    again = SDPEmbedding(KERNEL, **options).fit(X)  # a finished run is taken up at its end
    assert again.n_products_ <= 20
    np.testing.assert_allclose(again.embedding_, resumed.embedding_, atol=1e-6)


def test_checkpoint_of_other_data_is_refused(X, tmp_path):
    file = tmp_path / "run.npz"
    SDPEmbedding(KERNEL, checkpoint=file, random_state=0).fit(X)
    for other, kernel, weights in ((X + 1e-9, KERNEL, None), (X, Gaussian(0.61), None), (X, KERNEL, np.arange(1, 91))):
        with pytest.raises(ValueError, match="is of other data, weights, kernel or diagonal: delete it"):
            SDPEmbedding(kernel, checkpoint=file, random_state=0).fit(other, sample_weight=weights)


def test_a_file_that_is_no_checkpoint_is_refused_and_kept(X, tmp_path):
    file = tmp_path / "thesis.txt"
    file.write_text("ten years of work")
    with pytest.raises(ValueError, match="is not a checkpoint: name another file"):
        SDPEmbedding(KERNEL, checkpoint=file).fit(X)
    assert file.read_text() == "ten years of work"
    np.savez(tmp_path / "other.npz", array=np.arange(3))
    with pytest.raises(ValueError, match="is not a checkpoint"):
        SDPEmbedding(KERNEL, checkpoint=tmp_path / "other.npz").fit(X)
    with pytest.raises(FileNotFoundError, match="folder of checkpoint=.* does not exist: create it first"):
        SDPEmbedding(KERNEL, checkpoint=tmp_path / "none" / "run.npz").fit(X)


def test_reading_a_checkpoint_runs_no_code(X, tmp_path):
    """An archive with a pickled object is refused, not executed."""
    marker = tmp_path / "executed"

    class Evil:
        def __reduce__(self):
            return os.mkdir, (str(marker),)

    np.savez(tmp_path / "run.npz", key=np.array([Evil()], dtype=object), H=np.zeros((1, 1)), history=np.zeros((1, 7)))
    with pytest.raises(ValueError, match="is not a checkpoint"):
        SDPEmbedding(KERNEL, checkpoint=tmp_path / "run.npz").fit(X)
    assert not marker.exists()


def test_an_interrupted_writing_leaves_the_old_file(X, tmp_path, monkeypatch):
    file = tmp_path / "run.npz"
    SDPEmbedding(KERNEL, checkpoint=file, random_state=0).fit(X)
    before = file.read_bytes()

    def fail(*args, **kwargs):
        raise OSError("disk full")

    monkeypatch.setattr(np, "savez", fail)
    with pytest.warns(CheckpointWarning, match=r"run.npz cannot be written \(disk full\): the fit goes on"):
        model = SDPEmbedding(KERNEL, checkpoint=file, random_state=0).fit(X)
    assert model.certificate_.holds(1e-6)
    assert file.read_bytes() == before
    assert [path.name for path in tmp_path.iterdir()] == ["run.npz"]


def test_a_disk_that_takes_no_checkpoint_loses_no_fit_and_warns_once(X, tmp_path, monkeypatch):
    def refuse(*args, **kwargs):
        raise OSError(errno.EROFS, os.strerror(errno.EROFS))

    monkeypatch.setattr(os, "fsync", refuse)
    monkeypatch.setattr(checkpoint_module, "_SECONDS_BETWEEN", 0.0)  # every step is written
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model = SDPEmbedding(KERNEL, checkpoint=tmp_path / "run.npz", random_state=0).fit(X)
    assert [str(one.message) for one in caught if one.category is CheckpointWarning] == [
        f"The checkpoint {tmp_path / 'run.npz'} cannot be written (Read-only file system): the fit goes on, but could "
        "not be taken up again. Free some space, or pass a checkpoint that may be written."
    ]
    assert model.status_ is Status.CONVERGED
    assert model.certificate_.holds(1e-6)


def test_a_folder_is_no_checkpoint(X, tmp_path):
    with pytest.raises(IsADirectoryError, match="is a folder: name a file in it"):
        SDPEmbedding(KERNEL, checkpoint=tmp_path).fit(X)


@pytest.mark.parametrize("cut", [0, 1, 100, 1000, -1, -30])
def test_a_truncated_checkpoint_is_refused(X, tmp_path, cut):
    file = tmp_path / "run.npz"
    SDPEmbedding(KERNEL, checkpoint=file, random_state=0).fit(X)
    file.write_bytes(file.read_bytes()[:cut])
    with pytest.raises(ValueError, match="is not a checkpoint: name another file"):
        SDPEmbedding(KERNEL, checkpoint=file).fit(X)


def test_a_checkpoint_with_damaged_bytes_is_refused_or_sound(X, tmp_path):
    file = tmp_path / "run.npz"
    reference = SDPEmbedding(KERNEL, checkpoint=file, random_state=0).fit(X)
    whole, rng = file.read_bytes(), np.random.default_rng(0)
    refused = 0
    for position in rng.integers(0, len(whole), 30):
        damaged = bytearray(whole)
        damaged[position] ^= int(rng.integers(1, 256))
        file.write_bytes(bytes(damaged))
        try:
            model = SDPEmbedding(KERNEL, checkpoint=file, random_state=0).fit(X)
        except ValueError as error:
            assert "name another file" in str(error)  # noqa: PT017
            refused += 1
        else:
            assert model.certificate_.lower == pytest.approx(reference.certificate_.lower, rel=1e-6)
    assert refused > 10


def _nan(H, history):
    H[3] = np.nan


def _zero(H, history):
    H[3] = 0


def _long(H, history):
    H *= 1.01


def _huge(H, history):
    H *= 1e200


def _no_numbers(H, history):
    history[0, 1] = np.inf


def _half_a_step(H, history):
    history[0, 0] = 0.5


def _unknown_phase(H, history):
    history[0, 6] = 5


@pytest.mark.parametrize("forge", [_nan, _zero, _long, _huge, _no_numbers, _half_a_step, _unknown_phase])
def test_a_forged_iterate_or_history_is_refused(X, tmp_path, forge):
    file = tmp_path / "run.npz"
    SDPEmbedding(KERNEL, checkpoint=file, random_state=0).fit(X)
    with np.load(file) as stored:
        parts = {name: stored[name].copy() for name in stored.files}
    forge(parts["H"], parts["history"])
    np.savez(file, **parts)
    with pytest.raises(ValueError, match="is damaged, for its iterate or its history .*: delete it"):
        SDPEmbedding(KERNEL, checkpoint=file).fit(X)


# --- warm starts ------------------------------------------------------------------------------------------------


def test_warm_start_begins_at_the_last_solution(X):
    warm = SDPEmbedding(KERNEL, solver="accelerated", warm_start=True, random_state=0).fit(X)
    cold_columns = warm.n_products_
    first = warm.certificate_.lower
    warm.fit(X)
    assert warm.n_products_ < cold_columns
    assert warm.certificate_.lower == pytest.approx(first, rel=1e-6)
    warm.set_params(kernel=Gaussian(sigma=0.62)).fit(X)
    cold = SDPEmbedding(Gaussian(sigma=0.62), solver="accelerated", random_state=0).fit(X)
    assert warm.certificate_.lower == pytest.approx(cold.certificate_.lower, rel=2e-6)


def test_warm_start_with_other_points_starts_afresh(X):
    model = SDPEmbedding(KERNEL, warm_start=True, random_state=0).fit(X).fit(X[:60])
    assert model.embedding_.shape[0] == 60
    assert model.certificate_.holds(1e-6)


def test_sigint_is_python_s_own(X):
    """Fitting leaves the handler of the process alone."""
    before = signal.getsignal(signal.SIGINT)
    SDPEmbedding(KERNEL, random_state=0).fit(X)
    assert signal.getsignal(signal.SIGINT) is before
