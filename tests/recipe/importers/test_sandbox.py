"""Programs of strangers run sealed in: whatever they try, the machine and the one who looks at them stay unharmed."""

import os
import subprocess
import time
from pathlib import Path

import pytest

from prony.base.errors import LaunchError
from prony.recipe.importers.sandbox import Ended, Limits, confined
from tests.conftest import REPOSITORY, optional_part

_OWN = [] if os.geteuid() == 0 else ["--user", "--map-root-user"]
_ALLOWED = not subprocess.run(
    ["unshare", *_OWN, "--mount", "--net", "--pid", "--fork", "true"], capture_output=True, check=False
).returncode
_ENV = {"PATH": "/usr/bin:/bin:/usr/sbin:/sbin", "HOME": "/tmp"}


@pytest.fixture(autouse=True)
def namespaces() -> None:
    optional_part(_ALLOWED, "namespaces (unshare)")


def run(folder: Path, text: str, limits: Limits | None = None) -> Ended:
    (folder / "run.sh").write_text(text)
    return confined(("bash", "/theirs/run.sh"), _ENV, {"/theirs": folder}, limits)


def test_a_program_answers_with_its_code_its_words_and_its_files(tmp_path: Path) -> None:
    ended = run(tmp_path, "echo said; echo also >&2; cat <(echo sub); printf 'a\\0b' > /trace/one; exit 3")
    assert (ended.code, ended.said, dict(ended.files)) == (3, "said\nalso\nsub", {"one": b"a\0b"})


def test_what_it_leaves_in_the_background_may_still_write(tmp_path: Path) -> None:
    ended = run(
        tmp_path,
        "(sleep 0.5; echo late > /trace/late) & (sleep 60; echo never > /trace/never) & exit 0",
        Limits(linger_s=1),
    )
    assert ended.code == 0 and dict(ended.files) == {"late": b"late\n"}


def test_neither_files_nor_network_nor_processes_outside_are_reached(tmp_path: Path) -> None:
    ended = run(
        tmp_path,
        "cat /etc/shadow; cat /root/.bashrc; ls /home/* /work; echo x > /theirs/new; echo x > /usr/new; echo x > /new\n"
        "rm -rf /theirs/run.sh /usr/bin/env; mount -o remount,rw,bind /theirs; umount /theirs\n"
        "(exec 3<>/dev/tcp/127.0.0.1/22) && echo ONLINE > /trace/online\n"
        "head -c 1 /proc/1/environ > /trace/environ && readlink /proc/1/fd/4 > /trace/fd\n"
        f"[ -e /proc/{os.getpid()}/cwd ] && [ {os.getpid()} -gt 500 ] && echo SEEN > /trace/seen\n"
        "for one in /root/* /home/* /old/*; do [ -e $one ] && echo $one > /trace/outside; done\n"
        "grep CapEff /proc/self/status > /trace/caps; grep NoNewPrivs /proc/self/status >> /trace/caps; exit 0\n",
    )
    assert not any(name in ended.files and ended.files[name] for name in ("online", "environ", "fd", "seen", "outside"))
    assert ended.files["caps"].split() == [b"CapEff:", b"0" * 16, b"NoNewPrivs:", b"1"]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["run.sh"]
    assert Path("/usr/bin/env").exists() and not Path("/usr/new").exists() and not Path("/new").exists()


def test_it_cannot_climb_out_of_its_root(tmp_path: Path) -> None:
    (tmp_path / "climb.py").write_text(
        "import os\n"
        "os.makedirs('/tmp/deep', exist_ok=True)\n"
        "above = os.open('/', os.O_RDONLY)\n"
        "os.chroot('/tmp/deep'); os.fchdir(above)\n"
        "for _ in range(30): os.chdir('..')\n"
        "os.chroot('.')\n"
        "print('OUT')\n"
    )
    ended = run(tmp_path, "/usr/bin/python3 /theirs/climb.py; unshare --user --map-root-user mount -t tmpfs x /usr")
    assert "OUT" not in ended.said


def test_links_and_pipes_that_it_plants_lead_nowhere(tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("secret")
    folder = tmp_path / "theirs"
    folder.mkdir()
    ended = run(
        folder,
        f"ln -s {secret} /trace/link; ln -s /etc/shadow /trace/shadow; mkfifo /trace/pipe; echo x > /trace/real\n"
        "mkdir /trace/folder; ln -s /etc /trace/folder/etc; ln -s /proc/1/fd/4 /end/code; rm -rf /end/said\n",
    )
    assert dict(ended.files) == {"real": b"x\n"} and ended.code is not None


def test_endless_and_forking_programs_are_ended(tmp_path: Path) -> None:
    before = time.monotonic()
    ended = run(tmp_path, "echo begun; while :; do :; done", Limits(wall_s=0.5))
    assert ended.code is None and ended.said == "begun"
    ended = run(tmp_path, "b() { b | b & }; b; while :; do sleep 1; done", Limits(wall_s=1, processes=50))
    assert ended.code is None and time.monotonic() - before < 30


def test_memory_disk_and_words_are_bounded(tmp_path: Path) -> None:
    ended = run(
        tmp_path,
        "head -c 30M /dev/zero > /trace/much; ls -s /trace > /workspace/x; yes | head -c 60M\n"
        "/usr/bin/python3 -c 'bytearray(2 << 30)' && echo MUCH > /workspace/memory; [ ! -e /workspace/memory ]\n",
        Limits(disk=4 << 20, memory=1 << 30),
    )
    assert ended.code == 0 and len(ended.said) <= 4000 and len(ended.files["much"]) <= 4 << 20
    many = "for i in $(seq 200); do : > /trace/$i || exit 7; done"
    assert run(tmp_path, many, Limits(files=50)).code == 7


def test_a_folder_that_only_its_owner_may_read_is_read_all_the_same(tmp_path: Path) -> None:
    folder = tmp_path / "private"
    folder.mkdir(mode=0o700)
    (folder / "own").write_text("own")
    (folder / "own").chmod(0o600)
    ended = run(folder, "cat /theirs/own; echo x > /theirs/new || exit 5")
    assert ended.said.startswith("own") and ended.code == 5 and not (folder / "new").exists()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become somebody else")
def test_it_is_the_same_without_root(tmp_path: Path) -> None:
    """The owner of the files traces a script that tries to write them through namespaces of its own."""
    optional_part(_others_may_run(), "namespaces and a Python 3.11 for everybody")
    theirs = Path("/var/tmp") / f"prony-sandbox-{os.getpid()}"
    theirs.mkdir()
    try:
        (theirs / "run.sh").write_text("id -u; mount -o remount,rw,bind /theirs && echo x > /theirs/new; exit 4\n")
        os.chown(theirs, 65534, 65534)
        code = (
            "from pathlib import Path; from prony.recipe.importers.sandbox import confined; "
            f"e = confined(('bash', '/theirs/run.sh'), {_ENV!r}, {{'/theirs': Path({str(theirs)!r})}}); print(e.code)"
        )
        as_nobody = ["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups"]
        done = subprocess.run(
            [*as_nobody, "/usr/bin/python3", "-c", code],
            env={**_ENV, "PYTHONPATH": str(REPOSITORY / "src"), "PYTHONDONTWRITEBYTECODE": "1"},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.stdout == "4\n", done.stderr
        assert not (theirs / "new").exists()
    finally:
        (theirs / "run.sh").unlink()
        theirs.rmdir()


def _others_may_run() -> bool:
    """Say whether nobody has namespaces, a Python that is new enough, and can read this checkout."""
    code = f"import sys, os; sys.exit(sys.version_info < (3, 11) or not os.access({str(REPOSITORY)!r}, os.R_OK))"
    as_nobody = ["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups"]
    there = [*as_nobody, "unshare", "--user", "--map-root-user", "/usr/bin/python3", "-c", code]
    return subprocess.run(there, capture_output=True, check=False, cwd="/").returncode == 0


def test_without_namespaces_nothing_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(LaunchError, match="unshare"):
        run(tmp_path, "echo ran > /trace/ran")
