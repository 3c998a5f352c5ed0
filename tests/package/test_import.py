"""Importing the package is cheap, and every public name is there."""

import subprocess
import sys

import pytest

import mercer


def _modules_after(statement: str) -> set[str]:
    code = f"{statement}\nimport sys\nprint('\\n'.join(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return set(done.stdout.split())


def test_import_alone_loads_nothing_heavy():
    loaded = _modules_after("import mercer")
    assert loaded.isdisjoint({"numpy", "scipy", "sklearn", "numba", "torch", "matplotlib", "click", "safetensors"})


def test_kernels_do_not_load_scikit_learn_or_numba():
    loaded = _modules_after("from mercer import Gaussian; Gaussian(sigma=1.0)")
    assert loaded.isdisjoint({"sklearn", "numba", "torch", "matplotlib"})


@pytest.mark.parametrize("name", mercer.__all__)
def test_public_name_exists(name):
    assert getattr(mercer, name) is not None
    assert name in dir(mercer)


def test_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="no attribute 'Gausian'"):
        mercer.Gausian  # noqa: B018


def test_the_robust_regression_is_found_in_its_earlier_room():
    from mercer.density import RobustKernelRidge

    assert RobustKernelRidge is mercer.RobustKernelRidge
    with pytest.raises(ImportError, match="cannot import name 'Nothing'"):
        from mercer.density import Nothing  # noqa: F401
