"""Searching for a plan that may leave: asked before it begins, and what the newest search of a project found."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, ClassVar, Literal

from textual import on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.widgets import OptionList, Static
from textual.widgets.option_list import Option

from sfumato.tui.keys.acts import bind
from sfumato.tui.widgets.entries import Options
from sfumato.tui.widgets.lines import KeyLine, Scroll
from sfumato.tui.widgets.panel import Box
from sfumato.workspace.reporting.searches import conclusion, finalist_cells, headline
from sfumato.workspace.store.searches import newest_of
from sfumato.workspace.visible_text import replace_unprintable

from ..parts.dialogs import Confirm
from ..parts.page import Dialog

if TYPE_CHECKING:
    from sfumato.workspace.reporting.searches import Finalist, Outcome
    from sfumato.workspace.store.workspace import Workspace

QUESTION = "Search for a plan that meets its limits?"
CONSEQUENCE = (
    "It tries other settings of this plan on samples, then judges the five best on all records.\n"
    "It reads the confidential data, so the plan that it finds claims no epsilon. It keeps running if you quit."
)
GOING_ON = "It has not ended. Its looks are in Runs; if none of them runs, press R to continue it."
Answer = tuple[Literal["take", "continue", "new"], int]


class AskSearch(Confirm):
    def __init__(self) -> None:
        super().__init__(QUESTION, CONSEQUENCE, "Search")


def newest_outcome(project_id: int) -> Callable[[Workspace], Outcome | None]:
    """What the newest search of a project found so far; None where there was none."""

    def query(workspace: Workspace) -> Outcome | None:
        from sfumato.workspace.service.searching import search_outcome

        newest = newest_of(workspace, project_id)
        return None if newest is None else search_outcome(workspace, newest)

    return query


class SearchFound(Dialog[Answer]):
    """The finalists of a search; answers the run whose plan is taken, or that a search continues or begins anew."""

    AUTO_FOCUS = "OptionList, Scroll"
    DEFAULT_CSS = """
    SearchFound OptionList { height: auto; max-height: 8; margin-top: 1; }
    SearchFound Scroll { height: auto; max-height: 12; }
    SearchFound KeyLine { dock: none; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        bind("run", "answer('continue')", "Continue it", show=True),
        bind("search", "answer('new')", "Search from the plan as it is now", show=True),
        bind("down", "focused.cursor_down"),
        bind("up", "focused.cursor_up"),
    ]

    def __init__(self, found: Outcome) -> None:
        super().__init__()
        self._found = found

    def compose(self) -> ComposeResult:
        found = self._found
        with Box(replace_unprintable(headline(found)), tall=True):
            if found.finalists:
                options = (Option(replace_unprintable(finalist_text(one))) for one in found.finalists)
                yield Options(*options, compact=True, markup=False)
            with Scroll():
                lines = conclusion(found) if found.ended else [GOING_ON]
                yield Static("\n".join(replace_unprintable(line) for line in lines), markup=False)
            yield KeyLine()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        return not (action == "answer" and parameters == ("continue",) and self._found.ended)

    def action_answer(self, answer: Literal["continue", "new"]) -> None:
        self.dismiss((answer, self._found.search_id))

    @on(OptionList.OptionSelected)
    def _choose(self, event: OptionList.OptionSelected) -> None:
        self.dismiss(("take", self._found.finalists[event.option_index].run_id))


def finalist_text(one: Finalist) -> str:
    """``run 36  5 of 5 met, passes  cart.minbucket 10  utility 0.8841 -> 1.358``."""
    run, plan, limits, gate, searched, fresh = finalist_cells(one)
    return f"run {run}  {limits}, {gate}  {plan}  utility {searched or '-'} -> {fresh or '-'}"
