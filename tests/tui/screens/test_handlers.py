"""Handlers of messages: Textual calls that of every class, so that none calls the one of its base."""

import ast
import inspect
from pathlib import Path

import pytest

import sfumato.tui
from sfumato.tui.parts.dialogs import LetterDialog
from sfumato.tui.parts.page import Dialog

ROOM = Path(inspect.getfile(sfumato.tui)).parent


def calls_of_base_handlers(source):
    """Lines at which a handler calls the handler of a base class; private ones of Textual's widgets are replaced whole."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("on_"):
            if node.name == "on_event":  # no handler of one message: it takes every event before those
                continue
            for call in ast.walk(node):
                if isinstance(call, ast.Call) and ast.unparse(call.func) == f"super().{node.name}":
                    yield call.lineno


def test_no_handler_calls_that_of_a_base_class():
    found = [
        f"{path.relative_to(ROOM)}:{line}"
        for path in sorted(ROOM.rglob("*.py"))
        for line in calls_of_base_handlers(path.read_text("utf-8"))
    ]
    assert found == [], "Textual calls the handlers of all classes: the base's would run twice"


@pytest.mark.slow
async def test_a_dialog_reads_what_it_shows_once(sit, empty_workspace, monkeypatch):
    read = []
    monkeypatch.setattr(Dialog, "reload", lambda self: read.append(type(self)))
    async with sit(empty_workspace) as seat:
        await seat.app.open(LetterDialog("Which?", [("a", 1, "one", "the first"), ("b", 2, "two", "the second")], 2))
        await seat.until(lambda: isinstance(seat.app.screen, LetterDialog))
        assert read == [LetterDialog]
