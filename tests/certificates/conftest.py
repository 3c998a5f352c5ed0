"""Ways to make "auto" take one road."""

from __future__ import annotations

import pytest

import mercer.certificates.elliptope as elliptope_certificate
from mercer.certificates.matrix_free import MatrixFreeProof


@pytest.fixture
def no_factorisation(monkeypatch):
    monkeypatch.setattr(elliptope_certificate, "_DENSE_UP_TO", 0)


@pytest.fixture
def lanczos(no_factorisation, monkeypatch):
    """No factorisation and no stand-in: deflated Lanczos is what is left."""
    monkeypatch.setattr(MatrixFreeProof, "_candidates", lambda self, stand_in, everything=False: iter(()))


@pytest.fixture
def factorisation(monkeypatch):
    """No stand-in: a factorisation is what is left at these sizes."""
    monkeypatch.setattr(MatrixFreeProof, "_candidates", lambda self, stand_in, everything=False: iter(()))


@pytest.fixture(params=["factorisation", "lanczos"])
def method(request):
    request.getfixturevalue(request.param)
    return request.param
