import multiprocessing
import os
import sqlite3
import tempfile
from pathlib import Path

import pytest
import sqlalchemy as sa

from prony.base.errors import ConfigError, LaunchError
from prony.base.finding import Finding
from prony.store.schema import MIGRATIONS
from prony.store.store import RowFilter, Selection, Store, open_store
from tests.store.rows import make_row, measured


@pytest.fixture
def place(tmp_path: Path) -> Path:
    return tmp_path / "out" / "store.db"


def test_a_row_comes_back_as_it_went_in(place: Path) -> None:
    row = make_row(verdicts=(Finding(rule="verdict/x", severity="warn", message="é ≠ e", fix="look"),))
    with open_store(place) as store:
        receipt = store.add([row], "here")
        assert store.rows() == (row,)
    assert (receipt.added, receipt.changed, receipt.unchanged) == (1, 0, 0)
    with open_store(place, create=False) as again:
        assert again.row("aaa") == row


def test_ingesting_the_same_again_changes_nothing(place: Path) -> None:
    finding = Finding(rule="import/x", severity="warn", message="odd", evidence="7")
    with open_store(place) as store:
        store.add([make_row()], "here", [finding])
        receipt = store.add([make_row()], "here", [finding])
        assert (receipt.added, receipt.unchanged, receipt.findings) == (0, 1, 0)
        assert len(store.receipts()) == 1 and store.findings() == (finding,) and len(store.rows()) == 1


def test_same_key_with_other_content_becomes_a_new_version_and_says_so(place: Path) -> None:
    old, new = make_row(), make_row(measurements=measured(99.0))
    with open_store(place) as store:
        store.add([old], "first")
        receipt = store.add([new], "second")
        assert receipt.changed == 1
        assert store.rows() == (new,)
        assert store.history(old.key) == (old, new)
        assert [found.rule for found in store.findings()] == ["store/changed"]
        assert store.add([old, new], "both again").unchanged == 2
        assert store.rows() == (new,)


def test_what_came_last_is_shown_also_when_it_is_known_and_no_version_is_lost(place: Path) -> None:
    old, new = make_row(), make_row(measurements=measured(99.0))
    with open_store(place) as store:
        for row, shown in ((old, old), (new, new), (old, old), (new, new)):
            store.add([row], "x")
            assert store.rows() == (shown,)
        assert store.history(old.key) == (old, new)


def test_a_row_that_cannot_be_read_is_told_and_hides_no_other_and_heals(place: Path) -> None:
    bad, good = make_row("b" * 64), make_row()
    with open_store(place) as store:
        store.add([bad, good], "here")
        with sqlite3.connect(place) as raw:
            raw.execute(
                "UPDATE results SET row = replace(row, '123.4', 'null'), digest = 'x' WHERE key = ?", (bad.key,)
            )
        raw.close()
        selected = store.select()
        assert selected.rows == (good,) and store.rows() == (good,)
        assert [one.rule for one in selected.unreadable] == ["store/unreadable"]
        with pytest.raises(ConfigError, match="cannot be read"):
            store.row("bb")
        assert store.add([bad], "again").changed == 1
        assert store.select() == Selection((good, bad), ())


@pytest.mark.parametrize("how", ["replaced", "removed"])
def test_a_store_file_that_goes_away_is_noticed(place: Path, tmp_path: Path, how: str) -> None:
    with open_store(tmp_path / "other.db") as other:
        other.add([make_row("b" * 64)], "there")
    with open_store(place) as store:
        store.add([make_row()], "here")
        assert len(store.rows()) == 1
        for beside in place.parent.glob("store.db*"):
            beside.unlink()
        if how == "replaced":
            (tmp_path / "other.db").rename(place)
            assert [row.key[0] for row in store.rows()] == ["b"]
        else:
            with pytest.raises(LaunchError, match="was removed"):
                store.rows()
            with pytest.raises(LaunchError, match="was removed"):
                store.add([make_row()], "here")
            assert not place.exists()


@pytest.mark.parametrize("url", ["foo://bar", "postgres://x/y", "mysql://x/y", "://", "sqlite://", "sqlite+x:///a"])
def test_a_url_that_is_no_store_names_the_allowed_forms(url: str) -> None:
    with pytest.raises(ConfigError, match="not a place for results") as caught:
        open_store(url)
    assert "postgresql://" in caught.value.allowed and caught.value.exit_code == 2


def test_a_password_in_a_stores_url_is_never_shown() -> None:
    pytest.importorskip("psycopg")
    with pytest.raises(LaunchError) as caught:
        open_store("postgresql://me:secret@127.0.0.1:9/results")
    assert "secret" not in str(caught.value)


def test_an_sqlite_url_is_its_path(place: Path) -> None:
    with open_store(f"sqlite:///{place}") as store:
        store.add([make_row()], "here")
    with open_store(place, create=False) as again:
        assert len(again.rows()) == 1


def _read_as_nobody(folder: Path, answers: "multiprocessing.Queue[object]") -> None:
    if os.getuid() == 0:
        os.setgid(65534)
        os.setuid(65534)
    try:
        with open_store(folder / "store.db", create=False) as store:
            answers.put(len(store.rows()))
            try:
                store.add([make_row("c" * 64)], "there")
            except LaunchError as error:
                answers.put(error.message)
    except BaseException as error:
        answers.put(repr(error))
        raise


@pytest.mark.parametrize("writing", [False, True])
def test_another_users_store_is_read_without_writing_beside_it(writing: bool) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        store = open_store(folder / "store.db")
        store.add([make_row()], "here")
        if not writing:
            store.close()
        for path in folder.iterdir():
            path.chmod(0o444)
        folder.chmod(0o555)
        before = sorted(path.name for path in folder.iterdir())
        context = multiprocessing.get_context("fork")
        answers: multiprocessing.Queue[object] = context.Queue()
        reader = context.Process(target=_read_as_nobody, args=(folder, answers))
        reader.start()
        assert answers.get(timeout=20) == 1
        assert "cannot be written" in str(answers.get(timeout=20))
        reader.join(20)
        store.close()
        if not writing:
            assert sorted(path.name for path in folder.iterdir()) == before
        folder.chmod(0o755)


def test_two_versions_in_one_ingest_leave_the_last_one_shown(place: Path) -> None:
    with open_store(place) as store:
        receipt = store.add(
            [make_row(), make_row(measurements=measured(1.0)), make_row(measurements=measured(2.0))], "x"
        )
        assert (receipt.added, receipt.changed) == (1, 2)
        assert [row.value("tput_per_gpu") for row in store.rows()] == [2.0]
        assert len(store.history("a" * 64)) == 3


def test_an_import_that_says_less_of_a_known_row_adds_nothing(place: Path) -> None:
    whole = make_row(origin="imported", image="engine:1", measurements=(*measured(1.0), *measured(1.0)))
    with open_store(place) as store:
        store.add([whole], "full")
        assert store.add([make_row(origin="imported", measurements=measured(1.0))], "short").unchanged == 1
        assert store.add([make_row(origin="imported", measurements=measured(1.5))], "other").changed == 1


def test_filters_select_by_every_hot_column(place: Path) -> None:
    rows = [make_row(f"{n:064x}", concurrency=n, hardware="cpu" if n % 2 else "h200") for n in range(1, 9)]
    invalid = make_row("f" * 64, verdicts=(Finding(rule="r", severity="invalid", message="no"),))
    with open_store(place) as store:
        store.add([*rows, invalid], "here")
        assert {row.concurrency for row in store.rows(RowFilter(hardware=("h200",)))} == {2, 4, 6, 8}
        assert len(store.rows(RowFilter(concurrency=(2, 3), model=("smollm2",)))) == 2
        assert invalid not in store.rows(RowFilter(valid_only=True))
        assert store.rows(RowFilter(model=("gpt",))) == ()
        assert store.rows(RowFilter(key="%")) == ()


def test_an_ambiguous_key_lists_its_candidates(place: Path) -> None:
    with open_store(place) as store:
        store.add([make_row("ab" * 32), make_row("ac" * 32)], "here")
        with pytest.raises(ConfigError, match="2 results") as caught:
            store.row("a")
        assert "abab" in caught.value.allowed
        with pytest.raises(ConfigError, match="no result"):
            store.row("b")


def test_a_store_that_is_not_there_says_how_to_get_results(place: Path) -> None:
    with pytest.raises(ConfigError, match="no results yet") as caught:
        open_store(place, create=False)
    assert "prony run" in caught.value.fix
    assert not place.parent.exists()


def test_a_locked_store_is_told_and_loses_nothing(place: Path) -> None:
    with open_store(place, wait_s=0.05) as store:
        store.add([make_row()], "here")
        other = sqlite3.connect(place, isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(LaunchError, match="locked by another process") as caught:
            store.add([make_row("b" * 64)], "here")
        assert caught.value.fix and str(place) in str(caught.value)
        assert len(store.rows()) == 1
        other.execute("ROLLBACK")
        other.close()
        assert store.add([make_row("b" * 64)], "here").added == 1


def test_a_full_disk_rolls_the_whole_ingest_back(place: Path) -> None:
    with open_store(place) as store:
        store.add([make_row()], "here")

        @sa.event.listens_for(store._engine, "begin")
        def _small_disk(connection: sa.Connection) -> None:
            connection.exec_driver_sql("PRAGMA max_page_count = 20")

        with pytest.raises(LaunchError, match="does not fit on its disk"):
            store.add([make_row(f"{n:064x}") for n in range(500)], "big")
        assert len(store.rows()) == 1 and len(store.receipts()) == 1


def test_a_store_that_may_only_be_read_is_read_and_says_so_when_written(place: Path) -> None:
    with open_store(place) as store:
        store.add([make_row()], "here")

        @sa.event.listens_for(store._engine, "begin")
        def _read_only(connection: sa.Connection) -> None:
            connection.exec_driver_sql("PRAGMA query_only = ON")

        assert len(store.rows()) == 1
        with pytest.raises(LaunchError, match="cannot be written") as caught:
            store.add([make_row("b" * 64)], "here")
        assert "writable" in caught.value.fix


def test_a_file_that_is_no_store_is_told(tmp_path: Path) -> None:
    place = tmp_path / "store.db"
    content = b"not a database at all, but long enough to be looked at" * 50
    place.write_bytes(content)
    with pytest.raises(LaunchError, match="is not a Prony store") as caught:
        open_store(place)
    assert caught.value.fix
    assert place.read_bytes() == content


def test_a_damaged_store_is_told(place: Path) -> None:
    with open_store(place) as store:
        store.add([make_row(f"{n:064x}") for n in range(200)], "here")
    raw = bytearray(place.read_bytes())
    raw[4096:] = b"\x5a" * (len(raw) - 4096)
    place.write_bytes(raw)
    with pytest.raises(LaunchError, match="is damaged") as caught, open_store(place) as store:
        store.rows()
    assert "job folder" in caught.value.fix


def test_another_programs_database_is_not_touched(tmp_path: Path) -> None:
    place = tmp_path / "other.db"
    other = sqlite3.connect(place)
    other.execute("CREATE TABLE bookmarks (url)")
    other.commit()
    other.close()
    with pytest.raises(LaunchError, match=r"other\.db: a database of something else \(tables: bookmarks\)"):
        open_store(place)


def test_a_store_of_a_newer_prony_is_refused(place: Path) -> None:
    with open_store(place):
        pass
    other = sqlite3.connect(place)
    other.execute("INSERT INTO schema_version VALUES (?, '2030-01-01T00:00:00Z')", (len(MIGRATIONS) + 1,))
    other.commit()
    other.close()
    with pytest.raises(LaunchError, match="newer prony"):
        open_store(place)


def test_a_directory_in_the_place_of_the_store_is_told(tmp_path: Path) -> None:
    with pytest.raises(LaunchError, match="cannot be opened"):
        open_store(tmp_path)


def _add_some(place: Path, first: int) -> None:
    with open_store(place) as store:
        for n in range(first, first + 20):
            store.add([make_row(f"{n % 30:064x}")], "writer")


def test_two_processes_may_create_and_fill_one_store_at_once(place: Path) -> None:
    context = multiprocessing.get_context("fork")
    writers = [context.Process(target=_add_some, args=(place, first)) for first in (0, 10)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join(30)
    assert [writer.exitcode for writer in writers] == [0, 0]
    with open_store(place) as store:
        assert len(store.rows()) == 30


def test_the_sql_is_portable_to_postgresql() -> None:
    from sqlalchemy.dialects import postgresql
    from sqlalchemy.schema import CreateTable

    from prony.store.schema import metadata

    for table in metadata.sorted_tables:
        assert "CREATE TABLE" in str(CreateTable(table).compile(dialect=postgresql.dialect()))


def test_a_store_can_be_closed_twice(place: Path) -> None:
    store: Store = open_store(place)
    store.close()
    store.close()
