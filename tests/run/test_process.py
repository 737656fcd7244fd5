import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from prony.run import procfs
from prony.run.logs import LogPump
from prony.run.process import SUPERVISOR, SWEEP, signal_exactly, sweep_orphans
from tests.run.kit import eventually


@contextmanager
def marked_process(sweep: str, supervisor: str) -> Iterator["subprocess.Popen[bytes]"]:
    """Run a process that looks as if a supervisor had started it."""
    env = {**os.environ, SWEEP: sweep, SUPERVISOR: supervisor}
    with subprocess.Popen(["sleep", "60"], env=env) as process:
        yield process
        process.kill()


def dead_identity() -> procfs.Identity:
    """Return the identity of a process that has ended."""
    with subprocess.Popen(["sleep", "60"]) as process:
        who = procfs.identity(process.pid)
        process.kill()
    assert who is not None
    return who


def test_orphans_of_dead_supervisors_are_killed_and_others_are_not(tmp_path: Path) -> None:
    dead, living = str(dead_identity()), str(procfs.own_identity())
    sweep = str(tmp_path)
    with (
        marked_process(sweep, dead) as orphan,
        marked_process(sweep, living) as owned,
        marked_process(sweep + "-other", dead) as foreign,
    ):
        assert sweep_orphans(sweep=sweep) == (orphan.pid,)
        assert orphan.wait(5) == -signal.SIGKILL
        assert owned.poll() is None
        assert foreign.poll() is None


def test_identity_is_not_fooled_by_a_pid_that_is_used_again() -> None:
    me = procfs.own_identity()
    assert me.alive
    earlier = procfs.Identity(me.pid, me.boot, me.started - 1)
    other_boot = procfs.Identity(me.pid, "another-boot", me.started)
    assert not earlier.alive
    assert not other_boot.alive
    assert not signal_exactly(earlier, signal.SIGKILL)
    assert procfs.Identity.parse(str(me)) == me
    assert procfs.Identity.parse("8123@clusterA") is None


@pytest.fixture
def pipe() -> Iterator[tuple[LogPump, int]]:
    """A pump with secrets and a small limit, and the end of a pipe to write into."""
    pump = LogPump(["swordfish", "first-line\nsecond-line"], limit_bytes=100)
    reading, writing = os.pipe()
    pump.attach("agg-0", os.fdopen(reading, "rb", buffering=0))
    yield pump, writing
    pump.close()
    os.close(writing)


def test_secret_is_blanked_even_when_it_arrives_in_pieces(pipe: tuple[LogPump, int], tmp_path: Path) -> None:
    pump, writing = pipe
    pump.direct(tmp_path)
    os.write(writing, b"the password is sword")
    pump.pump(0.01)
    os.write(writing, b"fish and second-line\n")
    pump.pump(0.01)
    assert (tmp_path / "agg-0.log").read_text() == "the password is [redacted] and [redacted]\n"
    assert "swordfish" not in pump.tail("agg-0")


def test_log_follows_the_current_job(pipe: tuple[LogPump, int], tmp_path: Path) -> None:
    pump, writing = pipe
    for name in ("one", "two"):
        pump.direct(tmp_path / name)
        os.write(writing, f"about {name}\n".encode())
    pump.drain()
    assert (tmp_path / "one" / "agg-0.log").read_text() == "about one\n"
    assert (tmp_path / "two" / "agg-0.log").read_text() == "about two\n"


def test_log_is_bounded_and_says_where_it_was_cut(pipe: tuple[LogPump, int], tmp_path: Path) -> None:
    pump, writing = pipe
    pump.direct(tmp_path)
    for number in range(50):
        os.write(writing, f"line {number} of many\n".encode())
        pump.pump(0.001)
    text = (tmp_path / "agg-0.log").read_text()
    assert text.startswith("line 0 of many\n")
    assert text.endswith("[cut here: the log reached 100 bytes]\n")
    assert len(text) < 200
    assert pump.tail("agg-0").endswith("line 49 of many")


def test_log_that_cannot_be_written_is_a_fault_and_not_a_crash(pipe: tuple[LogPump, int], tmp_path: Path) -> None:
    pump, writing = pipe
    (tmp_path / "agg-0.log").symlink_to("/dev/full")
    pump.direct(tmp_path)
    os.write(writing, b"lost\n")
    pump.drain()
    assert pump.fault is not None
    assert pump.fault.strerror == "No space left on device"
    assert pump.tail("agg-0") == "lost"


def test_children_of_a_killed_supervisor_die_with_it(tmp_path: Path) -> None:
    script = (
        "import os, sys, time; from prony.run.process import Supervisor\n"
        "with Supervisor(sys.argv[1], ()) as owner:\n"
        "    print(owner.start('agg-0', ['sleep', '60'], {}, 'job/1').pid, flush=True)\n"
        "    time.sleep(60)\n"
    )
    with subprocess.Popen([sys.executable, "-c", script, str(tmp_path)], stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        child = procfs.identity(int(parent.stdout.readline()))
        assert child is not None
        assert child.alive
        parent.kill()
        parent.wait()
        eventually(lambda: not child.alive)
