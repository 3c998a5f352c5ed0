"""Configuration and memory."""

from __future__ import annotations

import threading
from dataclasses import FrozenInstanceError

import numpy as np
import pytest

import mercer
from mercer.backends import Config, config_context, get_config
from mercer.backends import config as memory
from mercer.backends.config import usable_cores


def test_defaults():
    config = Config()
    assert (config.device, config.memory_limit, config.n_threads, config.dtype) == ("cpu", None, None, "float64")
    assert config.threads == usable_cores() >= 1
    assert config.memory_bytes > 0
    assert Config(memory_limit=0).memory_bytes == 0
    assert mercer.get_config is get_config
    with pytest.raises(FrozenInstanceError):
        config.dtype = "float32"


def test_contexts_nest_and_restore():
    before = get_config()
    with config_context(n_threads=3, dtype="float32") as outer:
        assert get_config() is outer
        assert (outer.n_threads, outer.threads, outer.dtype) == (3, 3, "float32")
        with config_context(memory_limit=10, device="cpu"):
            assert get_config() == Config("cpu", 10, 3, "float32")  # what is left out stays
            with config_context(n_threads=1):
                assert get_config().n_threads == 1
            assert get_config().n_threads == 3
        assert get_config() == outer
    assert get_config() == before


def test_an_exception_restores_too():
    before = get_config()
    with pytest.raises(KeyError), config_context(n_threads=7):
        raise KeyError
    with pytest.raises(ValueError, match="n_threads=-1"), config_context(n_threads=7), config_context(n_threads=-1):
        pass
    assert get_config() == before


def test_other_threads_keep_their_own():
    seen = []
    with config_context(n_threads=5):
        thread = threading.Thread(target=lambda: seen.append(get_config().n_threads))
        thread.start()
        thread.join()
    assert seen == [None]


@pytest.mark.parametrize(
    ("amount", "size"),
    [
        ("2GB", 2 * 10**9),
        ("500 MiB", 500 * 2**20),
        ("1.5 kb", 1500),
        (" .5 GiB ", 2**29),
        ("7", 7),
        ("7B", 7),
        ("3 T", 3 * 10**12),
        ("1tib", 2**40),
        ("0", 0),
        (12, 12),
        (1e9, 10**9),
        (np.int64(5), 5),
    ],
)
def test_memory_in_words(amount, size):
    with config_context(memory_limit=amount) as config:
        assert config.memory_limit == config.memory_bytes == size
        assert isinstance(config.memory_limit, int)


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        *(
            ({"memory_limit": text}, "must be bytes or text such as '2GB' or '500 MiB'")
            for text in ("", "lots", "1.2.3GB", ".", "-1GB", "2 XB", "1e3", "GB")
        ),
        *(
            ({"memory_limit": value}, "must be a number of bytes of at least 0")
            for value in (-1, np.nan, np.inf, True, [1])
        ),
        *(({"n_threads": value}, "must be a whole number of at least 1") for value in (0, -2, 1.5, "2", True)),
        *(({"dtype": value}, "must be 'float64' or 'float32'") for value in ("float16", int, "double precision", 3)),
        *(({"device": value}, "must be 'cpu', 'cuda'") for value in ("tpu", "CUDA", 0)),
    ],
    ids=str,
)
def test_bad_values(options, sentence):
    name = next(iter(options))
    with pytest.raises(ValueError, match=f"{name}=.*{sentence}"), config_context(**options):
        pass


@pytest.mark.parametrize("dtype", ["float32", np.float32, np.dtype("float32"), "f4"])
def test_spellings_of_a_dtype(dtype):
    with config_context(dtype=dtype) as config:
        assert config.dtype == "float32"


def container(tmp_path, monkeypatch, limit, usage):
    (tmp_path / "max").write_text(limit)
    (tmp_path / "current").write_text(usage)
    monkeypatch.setattr(memory, "_CGROUP_FILES", ((str(tmp_path / "max"), str(tmp_path / "current")),))
    monkeypatch.setattr(memory, "_last", (-1.0, 0))


def test_a_container_limits_memory(tmp_path, monkeypatch):
    container(tmp_path, monkeypatch, "1000000\n", "400000\n")
    assert memory.free_memory() == 600_000
    assert Config().memory_bytes == 150_000
    container(tmp_path, monkeypatch, "1000", "4000")
    assert memory.free_memory() == 0


def test_free_memory_is_read_again_after_a_moment(monkeypatch):
    """Small fits ask twenty times within a moment, and reading the system's files takes longer than their products."""
    now, free = [0.0], [4_000]
    monkeypatch.setattr(memory, "_last", (-1.0, 0))
    monkeypatch.setattr(memory.time, "monotonic", lambda: now[0])
    monkeypatch.setattr(memory, "free_memory", lambda: free[0])
    assert Config().memory_bytes == 1_000
    now[0], free[0] = 0.01, 8_000
    assert Config().memory_bytes == 1_000
    now[0] = 0.03
    assert Config().memory_bytes == 2_000


def test_a_container_without_a_limit_is_the_machine(tmp_path, monkeypatch):
    container(tmp_path, monkeypatch, "max\n", "400000\n")
    monkeypatch.setattr(memory, "_machine_free", lambda: 12345)
    assert memory.free_memory() == 12345
    monkeypatch.setattr(memory, "_CGROUP_FILES", (("/no/such/file", "/nor/this"),))
    assert memory.free_memory() == 12345


def test_a_machine_that_does_not_say(monkeypatch):
    def fail(*_):
        raise OSError

    monkeypatch.setattr(memory.Path, "read_text", fail)
    assert memory._machine_free() > 0
    monkeypatch.setattr(memory.os, "sysconf", fail)
    assert memory._machine_free() == memory._CAUTIOUS
