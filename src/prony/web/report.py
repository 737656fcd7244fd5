"""One self-contained HTML file that opens from disk: the page, its modules, d3 and the API's answers."""

import base64
import json
import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from datetime import datetime
from pathlib import Path

from prony.base.clock import iso
from prony.base.files import write_atomic
from prony.store.store import Selection, StoredVersion
from prony.view.catalogue import catalogue, select
from prony.view.chart import STANDARD
from prony.web import api, assets

# A report reads nothing but itself: no network, and modules only as the data: addresses below.
_CSP = (
    "default-src 'none'; script-src 'unsafe-inline' data:; style-src 'unsafe-inline'; img-src data: blob:; "
    "base-uri 'none'; form-action 'none'"
)
_IMPORT = re.compile(r'(\bfrom\s+)"\./([\w-]+\.js)"')


def write_report(
    selection: Selection,
    path: Path,
    title: str,
    now: datetime | None = None,
    versions: Sequence[StoredVersion] = (),
) -> None:
    """Write rows as one HTML file, whole or not at all. Raises LaunchError when the disk refuses or d3 is missing.

    now: the moment of writing; rows older than 30 days are marked stale by it. Without it nothing is. versions: of the
    rows that have several, for their cards.
    """
    write_atomic(path, render_report(selection, title, now, versions).encode())


def render_report(
    selection: Selection, title: str, now: datetime | None = None, versions: Sequence[StoredVersion] = ()
) -> str:
    """Return the text of the report. Raises LaunchError when the page's browser library is missing."""
    page = assets.text("index.html")
    for marked, replacement in (
        (
            '<meta charset="utf-8">',
            f'<meta charset="utf-8"><meta http-equiv="Content-Security-Policy" content="{_CSP}">',
        ),
        ('<link rel="stylesheet" href="static/style.css">', f"<style>{assets.text('style.css')}</style>"),
        ('<script defer src="static/vendor/d3.min.js"></script>', _script("text/javascript", assets.text(assets.D3))),
        (
            '<script type="module" src="static/main.js"></script>',
            _modules() + _payload(_answers(selection, title, now, versions)),
        ),
    ):
        if page.count(marked) != 1:
            raise ValueError(f"index.html must hold {marked!r} once")
        page = page.replace(marked, replacement)
    return page


def _answers(
    selection: Selection, title: str, now: datetime | None, versions: Sequence[StoredVersion]
) -> Iterator[tuple[str, bytes]]:
    rows = selection.rows
    by_key: defaultdict[str, list[StoredVersion]] = defaultdict(list)
    for one in versions:
        by_key[one.key].append(one)
    yield "/api/meta", api.meta(rows, title, "", iso(now) if now else "", selection.unreadable)
    for choice in catalogue(rows).models:
        for workload in choice.workloads:
            query = {"model": choice.model, "workload": workload.id}
            chosen = select(rows, **query)
            for x, y in STANDARD:
                axes = {**query, "x": x, "y": y}
                yield api.address("/api/charts", axes), api.charts(chosen, axes, now)
            yield api.address("/api/table", query), api.rows_table(chosen, query, now)
            yield api.address("/api/table.csv", query), api.table_csv(chosen, query, now)
    for row in rows:
        yield api.address(f"/api/rows/{row.key}", {}), api.row_detail((row,), row.key, now, by_key.get(row.key, ()))


def _modules() -> str:
    """Lay the ES modules in: inline modules cannot import one another, data: addresses in an import map can."""
    imports = {f"prony/{name}": _data_address(_renamed_imports(assets.text(name))) for name in assets.MODULES}
    return _json_script("importmap", json.dumps({"imports": imports})) + _script("module", 'import "prony/main.js";')


def _renamed_imports(source: str) -> str:
    return _IMPORT.sub(r'\1"prony/\2"', source)


def _data_address(source: str) -> str:
    return "data:text/javascript;base64," + base64.b64encode(source.encode()).decode()


def _payload(answers: Iterator[tuple[str, bytes]]) -> str:
    """Lay the answers in as one JSON object by address; a CSV answer is a string in it."""
    parts = (f"{json.dumps(address)}:{_as_json(address, body.decode())}" for address, body in answers)
    return _json_script('application/json" id="prony-data', "{" + ",\n".join(parts) + "}")


def _as_json(address: str, body: str) -> str:
    return json.dumps(body, ensure_ascii=False) if address.startswith("/api/table.csv") else body


def _script(kind: str, source: str) -> str:
    """Wrap JavaScript so that no string in it can end the element."""
    safe = source.replace("</script", "<\\/script")
    return f'<script type="{kind}">{safe}</script>'


def _json_script(kind: str, content: str) -> str:
    """Wrap JSON so that no text in it can end the element or begin a comment."""
    for character in "<>&\u2028\u2029":
        content = content.replace(character, f"\\u{ord(character):04x}")
    return f'<script type="{kind}">{content}</script>'
