"""What our processes are started with: nothing of the current directory, and a life that ends with ours."""

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from prony.run import procfs
from prony.run.executors.local import LocalExecutor
from tests.conftest import REPOSITORY
from tests.run.conftest import Bench
from tests.run.kit import ended, eventually, make_deployment, make_job
from tests.run.test_sim_path import sim

TRAPS = ("numpy", "pydantic", "orjson", "uvloop", "yaml", "json", "prony")


def set_traps(place: Path) -> Path:
    """Fill a directory with modules that tell when they are imported; return where they tell it."""
    sign = place / "hijacked"
    for name in TRAPS:
        (place / name).mkdir()
        (place / name / "__init__.py").write_text(f"open({str(sign)!r}, 'a').write({name!r})\nraise SystemExit(66)\n")
    return sign


def test_modules_in_the_current_directory_are_not_taken_for_ours(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = bench.folder(make_job(sim()))
    place = bench.directory / "trapped"
    place.mkdir()
    sign = set_traps(place)
    monkeypatch.chdir(place)
    executor = LocalExecutor()
    handle = executor.submit("launch", [folder.path], 1)
    eventually(lambda: executor.poll([handle])[handle].phase == "exited", within_s=40)
    assert not sign.exists()
    assert ended(folder).status == "succeeded"


def test_the_traps_would_spring(tmp_path: Path) -> None:
    sign = set_traps(tmp_path)
    subprocess.run([sys.executable, "-m", "prony", "--help"], cwd=tmp_path, check=False, capture_output=True)
    assert sign.read_text() == "prony"


def test_program_gets_its_environment_and_default_signals_untouched(tmp_path: Path) -> None:
    script = (
        "import os, signal, sys; from prony.run.process import Supervisor\n"
        "os.environ.clear(); os.environ.update(LC_ALL='', KEPT='yes')\n"
        "with Supervisor('s', []) as owner:\n"
        "    child = owner.start('sh', ['/bin/sh', '-c', 'env; grep SigIgn /proc/self/status'], {'MORE': '1'}, 'j')\n"
        "    while child.exit is None: owner.wait()\n"
        "    print(owner.pump.tail('sh'))\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, cwd=REPOSITORY)
    names = {line.partition("=")[0] for line in done.stdout.splitlines() if "=" in line}
    assert {"KEPT", "MORE", "PYTHONSAFEPATH"} <= names
    assert not names & {"LC_CTYPE", "LANG"}
    assert int(done.stdout.partition("SigIgn:")[2].split()[0], 16) & (1 << (signal.SIGPIPE - 1)) == 0


def test_supervisor_with_threads_starts_programs_without_forking_its_own_code(bench: Bench) -> None:
    script = (
        "import threading, warnings; warnings.simplefilter('error')\n"
        "from prony.run.process import Supervisor\n"
        "threading.Thread(target=threading.Event().wait, daemon=True).start()\n"
        "with Supervisor('s', []) as owner:\n"
        "    child = owner.start('true', ['true'], {}, 'j')\n"
        "    while child.exit is None: owner.wait()\n"
        "    print(child.exit)\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, cwd=REPOSITORY)
    assert done.stdout == "0\n"
    assert done.stderr == ""


def test_file_that_is_no_program_is_named(bench: Bench) -> None:
    broken = bench.directory / "engine"
    broken.write_bytes(b"\x7fELF-not")
    deployment = make_deployment()
    for mode, says in ((0o644, "cannot be started: Permission denied"), (0o755, "Exec format error")):
        broken.chmod(mode)
        changed = deployment.roles[0].model_copy(update={"argv": (str(broken), str(mode))})
        folder = bench.folder(make_job(deployment.model_copy(update={"roles": (changed,)})))
        assert bench.run(folder).returncode == 3
        assert says in ended(folder).message


def test_server_dies_with_a_supervisor_that_is_killed(bench: Bench) -> None:
    folder = bench.folder(make_job(make_deployment("--delay", "5")))
    with bench.start(folder) as supervisor:
        eventually(lambda: len(procfs.children(supervisor.pid)) == 2)
        pids = procfs.children(supervisor.pid)
        supervisor.kill()
        supervisor.communicate()
    eventually(lambda: not any(Path(f"/proc/{pid}").exists() for pid in pids))


def test_first_line_of_a_message_is_a_sentence_and_the_engines_advice_is_told_once(bench: Bench) -> None:
    folder = bench.folder(make_job(sim("boom")))
    assert bench.run(folder).returncode == 2
    record = ended(folder)
    assert record.fault == "config"
    first, *tail = record.message.splitlines()
    assert first == "agg-0: the server exited with code 2 before it was ready"
    assert tail[0] == "  its last lines:"
    assert any("'boom' is not a fault" in line for line in tail)
    assert "what to do" not in record.message + record.fix
    assert "agg-0.log" in record.fix
