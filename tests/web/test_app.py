"""The API tells the view's numbers, and what is allowed when it cannot."""

import csv
import io
from pathlib import Path

import httpx
import pytest
from starlette.applications import Starlette

from prony.base.errors import LaunchError
from prony.base.finding import Finding
from prony.measure.result import Measurement, Row
from prony.store.store import Selection, open_store
from prony.view.chart import chart
from prony.web import assets
from prony.web.app import create_app
from tests.view.rows import local, locals_with_repeats
from tests.web.conftest import NOW

ROWS = locals_with_repeats()


def app(rows: tuple[Row, ...] = ROWS) -> Starlette:
    return create_app(lambda: Selection(rows, ()), store="prony-out/store.db", now=lambda: NOW)


async def answer(application: Starlette, path: str, **headers: str) -> httpx.Response:
    transport = httpx.ASGITransport(application)
    async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1:8080") as client:
        return await client.get(path, headers=headers)


def get(path: str, rows: tuple[Row, ...] = ROWS, **headers: str) -> httpx.Response:
    import asyncio

    return asyncio.run(answer(app(rows), path, **headers))


def test_charts_tells_the_numbers_of_the_view() -> None:
    told = get("/api/charts?x=e2el&y=output_tput_per_gpu&x_stat=p50").json()
    assert told == chart(ROWS, "e2el", "output_tput_per_gpu", now=NOW).model_dump(mode="json")


@pytest.mark.parametrize(
    ("path", "message", "allowed"),
    [
        ("/api/charts?colour=red", "'colour' is not a query key", "model, workload, x, y"),
        ("/api/charts?x=speed", "'speed' is not a metric", "interactivity"),
        ("/api/charts?x=ttft&x_stat=p42", "'p42' is not a statistic", "p50, p90"),
        ("/api/charts?model=gpt-9", "no row has model 'gpt-9'", "HuggingFaceTB/SmolLM2-135M-Instruct"),
        ("/api/table?limit=5", "'limit' is not a query key", "model, workload"),
        ("/api/meta?x=1", "'x' is not a query key", "none"),
    ],
)
def test_a_query_that_cannot_be_answered_says_what_can(path: str, message: str, allowed: str) -> None:
    response = get(path)
    assert response.status_code == 400
    error = response.json()["error"]
    assert message in error["message"]
    assert allowed in error["allowed"]


def test_an_unknown_row_or_path_is_404_in_json() -> None:
    for path in ("/api/rows/abc", "/api/nothing", "/static/nothing.js"):
        response = get(path)
        assert response.status_code == 404
        assert response.json()["error"]["message"]


def test_a_row_is_told_whole() -> None:
    told = get(f"/api/rows/{ROWS[0].key}").json()
    assert Row.model_validate(told["row"]) == ROWS[0]


def test_csv_has_units_and_leaves_unmeasured_cells_empty() -> None:
    response = get("/api/table.csv", (local(1, measurements=()), local(2)))
    assert response.headers["content-type"] == "text/csv; charset=utf-8"
    none, some = csv.DictReader(io.StringIO(response.text))
    assert none["ttft_p50 (s)"] == ""
    assert float(some["ttft_p50 (s)"]) == local(2).value("ttft", "p50")


def test_csv_text_is_never_a_formula() -> None:
    response = get("/api/table.csv", (local(1, precision="=cmd|' /C calc'!A0"),))
    (row,) = csv.DictReader(io.StringIO(response.text))
    assert row["precision"] == "'=CMD|' /C CALC'!A0"


def test_an_answer_that_has_not_changed_is_not_sent_again() -> None:
    first = get("/api/charts")
    again = get("/api/charts", **{"if-none-match": first.headers["etag"]})
    assert (again.status_code, again.content) == (304, b"")
    changed = get("/api/charts", (*ROWS, local(8)), **{"if-none-match": first.headers["etag"]})
    assert changed.status_code == 200


def test_answers_are_compressed() -> None:
    assert get("/api/charts", **{"accept-encoding": "gzip"}).headers["content-encoding"] == "gzip"


def test_the_page_has_no_inline_code_and_a_policy_that_forbids_it() -> None:
    response = get("/")
    policy = response.headers["content-security-policy"]
    assert "script-src 'self';" in policy and "unsafe" not in policy
    assert "<script>" not in response.text and "style=" not in response.text
    assert response.headers["x-content-type-options"] == "nosniff"


def test_a_foreign_host_name_is_refused_so_that_rebinding_reads_nothing() -> None:
    assert get("/api/table", host="evil.example").status_code == 400
    assert get("/api/table", host="localhost:8080").status_code == 200


def test_a_store_that_cannot_be_read_says_so() -> None:
    import asyncio

    def broken() -> Selection:
        raise LaunchError("store.db: disk I/O error", fix="check the disk")

    response = asyncio.run(answer(create_app(broken), "/api/meta"))
    assert response.status_code == 503
    assert response.json()["error"] == {"message": "store.db: disk I/O error", "allowed": "", "fix": "check the disk"}


def test_health_does_not_depend_on_the_store() -> None:
    assert get("/healthz", ()).json() == {"status": "ok"}


def test_an_empty_store_answers_with_nothing_rather_than_an_error() -> None:
    assert get("/api/meta", ()).json()["rows"] == 0
    assert get("/api/charts", ()).json()["series"] == []


def test_without_the_browser_library_the_server_says_how_to_get_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(assets, "STATIC", tmp_path)
    with pytest.raises(LaunchError, match=r"d3\.min\.js") as fault:
        create_app(lambda: Selection((), ()))
    assert "make setup" in fault.value.fix


def test_what_cannot_be_read_is_told() -> None:
    import asyncio

    fault = Finding(rule="store/unreadable", severity="error", message="result abc version 1 cannot be read: x")
    told = asyncio.run(answer(create_app(lambda: Selection(ROWS, (fault,))), "/api/meta")).json()
    assert (told["rows"], told["unreadable"]) == (len(ROWS), [fault.message])


def test_a_row_tells_its_earlier_versions(tmp_path: Path) -> None:
    import asyncio

    values = (
        local(1, measurements=(Measurement(metric="tput_per_gpu", stat="value", value=v),)) for v in (91.0, 151.0)
    )
    with open_store(tmp_path / "store.db") as store:
        for row in values:
            store.add([row.model_copy(update={"key": "a" * 64})], "test")
        application = create_app(store.select, versions=store.versions)
        told = asyncio.run(answer(application, f"/api/rows/{'a' * 64}")).json()
    assert [(one["version"], one["value"], one.get("shown")) for one in told["versions"]] == [
        (1, 91.0, False),
        (2, 151.0, True),
    ]
    assert told["main"]["unit"] == "tok/s/GPU"
