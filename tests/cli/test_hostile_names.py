"""Names that would be markup, or would steer the terminal, come out as text from every printer."""

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from prony.base.finding import Finding
from prony.cli import console
from prony.cli.live import view
from prony.cli.main import main
from prony.cli.outcome import print_faults, print_points
from prony.cli.rowdetail import print_row
from prony.cli.rowtable import print_rows
from prony.measure.result import Row
from prony.run.snapshot import JobView, Snapshot
from tests.conftest import REPOSITORY
from tests.store.rows import make_row

HOSTILE = ["sim[/nope]", "[bold]loud", "a\x1b[31mred", ":warning:", "[link=x]y[/link]", "x\r\x07\x9b2J"]
CODES = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f]")


def hostile_row(name: str) -> Row:
    found = Finding(rule="verdict/made-up", severity="warn", message=f"because of {name}", fix=name)
    return make_row(
        "ab" * 32, config_key=name, model=name, model_prefix=name, framework=name, hardware=name, precision=name,
        source=name, image=name, verdicts=(found,),
    )  # fmt: skip


def snapshot(name: str) -> Snapshot:
    job = JobView(key="k", label=name, folder="f", state="failed", attempt=1, message=f"{name}\n  | {name}", fix=name)
    return Snapshot(directory="d", jobs=(job,), eta_s=None)


def show_live(name: str) -> None:
    with view(plain=False) as show:
        show(snapshot(name))


PRINTERS: dict[str, Callable[[str], object]] = {
    "table of results": lambda name: print_rows([hostile_row(name)]),
    "one result": lambda name: print_row(hostile_row(name)),
    "points of a sweep": lambda name: print_points([hostile_row(name)]),
    "faults of a sweep": lambda name: print_faults(snapshot(name)),
    "progress": show_live,
    "message": console.say,
}


@pytest.mark.parametrize("name", HOSTILE)
@pytest.mark.parametrize("printer", PRINTERS)
def test_a_hostile_name_is_printed_as_text(name: str, printer: str, capsys: pytest.CaptureFixture[str]) -> None:
    PRINTERS[printer](name)
    out, err = capsys.readouterr()
    assert CODES.sub("\ufffd", name) in out + err
    assert not CODES.search(out + err)


@pytest.mark.parametrize("name", HOSTILE[:2])
def test_a_hostile_name_is_printed_as_text_on_a_colour_terminal_too(
    name: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    for printer in PRINTERS.values():
        printer(name)
        assert name in "".join(capsys.readouterr())


def test_a_hostile_key_of_a_config_is_listed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    example = REPOSITORY / "examples" / "sim"
    (tmp_path / "runners.yaml").write_text((example / "runners.yaml").read_text())
    config = tmp_path / "master.yaml"
    config.write_text((example / "master.yaml").read_text().replace("sim-tiny:", "'sim[/nope]':"))
    assert main(["matrix", "list", str(config)]) == 0
    assert "sim[/nope]" in capsys.readouterr().out
    assert main(["matrix", "list", str(config), "--keys", "[bold]\x1b[31m"]) == 2
    assert "\x1b" not in capsys.readouterr().err


def test_nothing_prints_past_the_safe_printers() -> None:
    allowed = {"console.py", "streams.py", "main.py"}
    for path in (REPOSITORY / "src/prony/cli").glob("*.py"):
        if path.name not in allowed:
            found = re.findall(r"(?<![\w.])print\(|\bConsole\(|sys\.stdout\.write", path.read_text())
            assert not found, f"{path.name} prints by {found}"
