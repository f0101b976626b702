"""Orders of results that are kept: the same rows as SQL gives page by page, sorted once, by whoever asks first."""

from __future__ import annotations

import sqlite3
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from sfumato.workspace.store.database import immediate_transaction, migrate_database
from sfumato.workspace.store.workspace import Workspace
from sfumato.workspace.views.results import (
    MOST_SELECTIONS,
    SORTS,
    ResultSelection,
    SortedResultIds,
    read_rows_by_id,
    read_selected_ids,
    read_selected_rows,
)


class Connection:
    """A database of one run with 240 rows, the last task's the averages."""

    def __init__(self, path: Path) -> None:
        self.connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
        self.connection.row_factory = sqlite3.Row


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    made = Connection(tmp_path / "workspace.db")
    migrate_database(made.connection)
    write = made.connection.execute
    write("INSERT INTO project VALUES (1, 'p', '')")
    write("INSERT INTO dataset VALUES (1, 1, 'd', 'confidential', '', '', '{}', 1, 0, '')")
    write("INSERT INTO run VALUES (1, 1, 1, 't', '', '', 1, '{}', 'done', 0, 0, 0, '', 1, 'public')")
    write(
        "INSERT INTO task (id, run_id, key, kind, item, state, blockers) VALUES (1, 1, 'combine', 'combine', 0, 'done', 0)"
    )
    rows = [
        (f"m{i % 4}", f"v{i % 7}", "synthetic", i % 3 or None, None if i % 5 else i / 100, (i * 37) % 101 / 7)
        for i in range(240)
    ]
    with immediate_transaction(made.connection):
        made.connection.executemany(
            """INSERT INTO result (run_id, task_id, family, method, measure, target, dataset, draw, level, value, unit, status,
               reason, params) VALUES (1, 1, 'risk', 'identification', ?, ?, ?, ?, ?, ?, '', 'computed', '', '{"k": 1}')""",
            rows,
        )
    return made


@pytest.mark.slow
@pytest.mark.parametrize("sort", SORTS)
@pytest.mark.parametrize(("draws", "text"), [(False, ""), (True, ""), (True, "v3 !m1"), (False, "nothing")])
def test_pages_are_those_of_sql(workspace: Workspace, sort: str, draws: bool, text: str) -> None:
    orders, selection = SortedResultIds(), ResultSelection(1, draws, text, sort)
    whole = read_selected_rows(workspace, selection, 0, -1)
    assert len(orders.row_ids(workspace, selection)) == len(whole)
    pages = [line for offset in range(0, 250, 50) for line in orders.read_rows(workspace, selection, offset, 50)]
    assert pages == whole


def test_rows_come_in_the_order_of_their_numbers_and_gone_ones_are_left_out(workspace: Workspace) -> None:
    first, second = read_rows_by_id(workspace, [7, 3])
    assert [first, second] == read_rows_by_id(workspace, [7, 999, 3])
    assert [second, first] == read_rows_by_id(workspace, [3, 7])


def test_what_was_sorted_is_not_sorted_again_and_the_oldest_is_forgotten(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    sorted_now = []

    def counted(workspace: Workspace, selection: ResultSelection) -> object:
        sorted_now.append(selection)
        return read_selected_ids(workspace, selection)

    monkeypatch.setattr("sfumato.workspace.views.results.read_selected_ids", counted)
    orders = SortedResultIds()
    orders.sort_ahead(workspace, ResultSelection(1), lambda: False)
    shown, names = ResultSelection(1).sort, list(SORTS)
    others = names[names.index(shown) + 1 :] + names[: names.index(shown)]
    assert [one.sort for one in sorted_now] == [*others, shown], "those come first that o leads to first"
    assert sorted_now[-1].with_draws
    for sort in others:
        orders.read_rows(workspace, ResultSelection(1, sort=sort), 0, 5)
    assert len(sorted_now) == len(SORTS)
    for number in range(MOST_SELECTIONS):
        orders.row_ids(workspace, ResultSelection(1, filter_text=f"v{number}"))
    before = len(sorted_now)
    orders.row_ids(workspace, ResultSelection(1, sort="target"))
    assert len(sorted_now) == before + 1


def test_two_who_ask_at_once_have_it_sorted_once(workspace: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    begun, go_on, times = threading.Event(), threading.Event(), []

    def slow(workspace: Workspace, selection: ResultSelection) -> object:
        times.append(selection)
        begun.set()
        go_on.wait(10)
        return read_selected_ids(workspace, selection)

    monkeypatch.setattr("sfumato.workspace.views.results.read_selected_ids", slow)
    orders = SortedResultIds()
    with ThreadPoolExecutor(2) as pool:
        first = pool.submit(orders.row_ids, workspace, ResultSelection(1))
        begun.wait(10)
        second = pool.submit(orders.row_ids, workspace, ResultSelection(1))
        go_on.set()
        assert first.result(10) == second.result(10)
    assert len(times) == 1


def test_a_failure_is_told_and_tried_again(workspace: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(workspace: Workspace, selection: ResultSelection) -> object:
        raise sqlite3.OperationalError("locked")

    orders = SortedResultIds()
    with monkeypatch.context() as patched:
        patched.setattr("sfumato.workspace.views.results.read_selected_ids", fails)
        with pytest.raises(sqlite3.OperationalError):
            orders.row_ids(workspace, ResultSelection(1))
    assert orders.row_ids(workspace, ResultSelection(1, with_draws=True))
    assert len(orders.row_ids(workspace, ResultSelection(1))) == 80


def test_nothing_is_prepared_that_nobody_wants(workspace: Workspace) -> None:
    orders = SortedResultIds()
    orders.sort_ahead(workspace, ResultSelection(1), lambda: True)
    assert not orders._kept
