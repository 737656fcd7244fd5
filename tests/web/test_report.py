"""The report is one file, whole or absent."""

import errno
import re
from pathlib import Path

import pytest

from prony.base.errors import LaunchError
from prony.measure.result import Row
from prony.store.store import Selection
from prony.web import api
from prony.web.report import render_report, write_report
from tests.view.rows import local, locals_with_repeats
from tests.web.conftest import HOSTILE, NOW


def test_a_report_refers_to_nothing_outside_itself() -> None:
    text = render_report(Selection(locals_with_repeats(), ()), "Prony", NOW)
    assert not re.search(r'(?:src|href)="(?!data:|#)', text.split("<body>")[0])
    assert "static/" not in text.replace("prony/", "")
    assert "default-src 'none'" in text


def test_text_in_rows_cannot_end_the_script_that_holds_it() -> None:
    text = render_report(Selection((local(1, image=HOSTILE),), ()), HOSTILE, NOW)
    assert HOSTILE not in text
    assert len(re.findall("<script", text)) == len(re.findall("</script>", text))


def test_the_report_holds_what_the_api_answers() -> None:
    rows = locals_with_repeats()
    query = {"model": rows[0].model, "workload": "fixed-seq-len-128-32", "x": "e2el", "y": "tput_per_gpu"}
    chart = api.charts(rows, query, NOW).decode()
    escaped = chart.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")
    assert escaped in render_report(Selection(rows, ()), "Prony", NOW)


def test_addresses_are_spelled_as_a_browser_spells_them() -> None:
    query = {"workload": "", "model": "a/b c+d&e'(f)é", "x": "ttft"}
    assert api.address("/api/charts", query) == "/api/charts?model=a%2Fb%20c%2Bd%26e'(f)%C3%A9&x=ttft"


def test_a_full_disk_leaves_the_old_report_and_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "report.html"
    path.write_text("the old one")

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(LaunchError, match="No space left on device"):
        write_report(Selection(locals_with_repeats(), ()), path, "Prony")
    assert path.read_text() == "the old one"
    assert list(tmp_path.iterdir()) == [path]


def test_a_report_of_the_published_rows_is_quick_to_open(rows: tuple[Row, ...]) -> None:
    assert len(render_report(Selection(rows, ()), "Prony", NOW).encode()) < 4_000_000
