import errno
import os
import threading
from pathlib import Path

import pytest

from prony.base.errors import LaunchError
from prony.base.files import check_can_write, make_folder, write_atomic, write_fault


def test_a_file_is_written_whole_and_leaves_no_partial_one(tmp_path: Path) -> None:
    write_atomic(tmp_path / "a", b"one")
    write_atomic(tmp_path / "a", b"two")
    assert (tmp_path / "a").read_bytes() == b"two" and len(list(tmp_path.iterdir())) == 1


@pytest.mark.parametrize(
    ("number", "word"),
    [
        (errno.ENOSPC, "free space"),
        (errno.EDQUOT, "free space"),
        (errno.EACCES, "writable for you"),
        (errno.EROFS, "writable for you"),
        (errno.EIO, "disk's health"),
        (errno.ENAMETOOLONG, "shorter name"),
    ],
)
def test_the_advice_fits_what_the_system_said(number: int, word: str) -> None:
    fault = write_fault(Path("x"), OSError(number, os.strerror(number)))
    assert word in fault.fix and "--resume" not in fault.fix and os.strerror(number) in fault.message


@pytest.mark.parametrize(
    ("place", "word"),
    [(".", "name a file"), ("folder", "name a file"), ("file/x", "name a folder"), ("no/x", "mkdir -p")],
)
def test_a_path_that_cannot_be_a_file_is_told_as_such(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: str, word: str
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("folder").mkdir()
    Path("file").touch()
    with pytest.raises(LaunchError) as caught:
        write_atomic(Path(place), b"")
    assert word in caught.value.fix
    assert sorted(path.name for path in tmp_path.iterdir()) == ["file", "folder"]


def test_a_file_in_the_place_of_a_folder_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(LaunchError, match="is a file, not a folder"):
        make_folder(tmp_path / "file")
    with pytest.raises(LaunchError, match="Not a directory"):
        make_folder(tmp_path / "file" / "below")


def test_a_link_stays_a_link_and_permissions_stay(tmp_path: Path) -> None:
    target, link = tmp_path / "private", tmp_path / "link"
    target.write_bytes(b"old")
    target.chmod(0o640)
    link.symlink_to(target)
    write_atomic(link, b"new")
    assert link.is_symlink() and target.read_bytes() == b"new"
    assert target.stat().st_mode & 0o777 == 0o640


def test_a_pipe_stays_a_pipe_and_its_reader_gets_the_content(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    got: list[bytes] = []
    os.mkfifo(pipe)
    reader = threading.Thread(target=lambda: got.append(pipe.read_bytes()))
    reader.start()
    write_atomic(pipe, b"numbers")
    reader.join(10)
    assert got == [b"numbers"] and pipe.is_fifo()


def test_a_device_that_is_full_is_told() -> None:
    with pytest.raises(LaunchError, match="/dev/full: cannot be written: No space left"):
        write_atomic(Path("/dev/full"), b"x" * 10_000)
    assert Path("/dev/full").is_char_device()


@pytest.mark.parametrize(("name", "word"), [("no/x.json", "folder is missing"), ("", "that is a folder")])
def test_what_cannot_be_written_is_told_before_the_work(tmp_path: Path, name: str, word: str) -> None:
    check_can_write(tmp_path / "x.json")
    with pytest.raises(LaunchError) as error:
        check_can_write(tmp_path / name)
    assert word in error.value.fix
