"""A real store, a real server over it, a real browser."""

import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest
from playwright.sync_api import Browser, ConsoleMessage, Page, sync_playwright

from prony.base.finding import Finding
from prony.measure.result import Row
from prony.store.store import Selection, open_store
from prony.web.report import write_report
from tests.view.rows import local, locals_with_repeats, published

NOW = datetime(2026, 12, 2, tzinfo=UTC)
CHROMIUM = (
    "--no-sandbox",
    "--disable-gpu",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
# Artifacts come from elsewhere: a name may hold markup, and must stay text.
HOSTILE = "</script><script>window.broken=1</script><img src=x onerror=window.broken=1>"


@pytest.fixture(scope="session")
def rows(shared: Path) -> tuple[Row, ...]:
    """Published rows, local ones, a simulated one, an invalid one and a hostile one."""
    invalid = Finding(rule="littles-law", severity="invalid", message="k = 0.4 is far from 1", fix="measure again")
    return (
        *published(shared),
        *locals_with_repeats(),
        local(8, simulated=True),
        local(16, verdicts=(invalid,)),
        local(32, image=HOSTILE, source=HOSTILE),
    )


@pytest.fixture(scope="session")
def store(rows: tuple[Row, ...], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A SQLite store with the rows."""
    path = tmp_path_factory.mktemp("store") / "store.db"
    with open_store(path) as opened:
        opened.add(rows, "test")
    return path


@pytest.fixture(scope="session")
def server(store: Path) -> Iterator[str]:
    """The address of `prony serve` over the store."""
    command = [sys.executable, "-m", "prony", "serve", "--store", str(store), "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            line = process.stdout.readline()
            yield line.split(" at ")[1].split()[0]
        finally:
            process.terminate()
            process.wait(10)


@pytest.fixture(scope="session")
def report(rows: tuple[Row, ...], tmp_path_factory: pytest.TempPathFactory) -> str:
    """The address of a report on disk."""
    path = tmp_path_factory.mktemp("report") / "report.html"
    write_report(Selection(rows, ()), path, "Prony", NOW)
    return path.as_uri()


@pytest.fixture(scope="module")
def browser(chromium: str) -> Iterator[Browser]:
    """One browser for all tests of a module; while it is open the thread has a running event loop."""
    with sync_playwright() as playwright:
        opened = playwright.chromium.launch(executable_path=chromium, args=list(CHROMIUM))
        yield opened
        opened.close()


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    """A fresh page whose console must stay silent."""
    context = browser.new_context(viewport={"width": 1280, "height": 900}, locale="en-GB")
    context.set_default_timeout(10_000)
    opened = context.new_page()
    said: list[str] = []

    def hear(message: ConsoleMessage) -> None:
        if message.type in ("error", "warning"):
            said.append(message.text)

    opened.on("console", hear)
    opened.on("pageerror", lambda error: said.append(str(error)))
    yield opened
    context.close()
    assert said == []
