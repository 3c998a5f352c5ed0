"""Files are written whole or not at all, wherever one is written."""

from __future__ import annotations

import os

import pytest

from mercer.whole_files import sweep, written_whole


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def test_a_block_that_fails_leaves_the_file_as_it_was(tmp_path):
    target = tmp_path / "a.txt"
    target.write_text("before")

    def fail():
        with written_whole(target) as temporary:
            temporary.write_text("half")
            raise ValueError("enough")

    with pytest.raises(ValueError, match="enough"):
        fail()
    assert target.read_text() == "before"
    assert names(tmp_path) == ["a.txt"]


def test_until_the_block_ends_the_name_stands_for_what_was_there(tmp_path):
    target = tmp_path / "a.txt"
    target.write_text("before")
    with written_whole(target) as temporary:
        temporary.write_text("after")
        assert target.read_text() == "before"
        assert temporary.parent == tmp_path
    assert target.read_text() == "after"
    assert names(tmp_path) == ["a.txt"]


def test_permissions_and_links_stay(tmp_path):
    target, link, plain = tmp_path / "a.txt", tmp_path / "link", tmp_path / "plain"
    for path in (target, plain):
        path.touch()
    target.chmod(0o640)
    link.symlink_to(target)
    with written_whole(link) as temporary:
        temporary.write_text("through the link")
        temporary.chmod(0o600)  # as writers of some formats do
    assert link.is_symlink()
    assert target.read_text() == "through the link"
    assert target.stat().st_mode & 0o777 == 0o640
    with written_whole(tmp_path / "new") as temporary:
        temporary.chmod(0o600)
    assert (tmp_path / "new").stat().st_mode == plain.stat().st_mode


def test_a_folder_that_is_not_there_is_named(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"The folder .*none does not exist: create it"):
        written_whole(tmp_path / "none" / "a.txt").__enter__()


def test_what_dead_writers_left_goes_and_what_living_ones_write_stays(tmp_path):
    beyond = 2**22 + 1  # the largest process number
    dead = tmp_path / f".a.txt-{beyond}-0123abcd.part"
    others = [f".a.txt-{os.getpid()}-0123abcd.part", f".a.txt-{os.getppid()}-0123abcd.part", f".b-{beyond}-01.part"]
    for path in (dead, *(tmp_path / name for name in others)):
        path.touch()
    sweep(tmp_path / "a.txt")
    assert names(tmp_path) == sorted(others)
