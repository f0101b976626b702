"""Search for a plan that may be released: the question before it, and the result of the project's newest search."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, ClassVar, Literal

from textual import on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.widgets import OptionList, Static
from textual.widgets.option_list import Option

from sfumato.tui.keys.acts import bind_act
from sfumato.tui.widgets.entries import PagedOptionList
from sfumato.tui.widgets.lines import KeyLine, Scroll
from sfumato.tui.widgets.panel import DialogBox
from sfumato.workspace.reporting.searches import conclusion_lines, finalist_cells, search_headline
from sfumato.workspace.store.searches import newest_search_id
from sfumato.workspace.visible_text import replace_unprintable

from ..parts.dialogs import ConfirmDialog
from ..parts.page import Dialog

if TYPE_CHECKING:
    from sfumato.workspace.reporting.searches import SearchFinalist, SearchOutcome
    from sfumato.workspace.store.workspace import Workspace

QUESTION = "Search for a plan that meets its limits?"
CONSEQUENCE = (
    "It tries other settings of this plan on samples, then judges the five best on all records.\n"
    "It reads the confidential data, so the plan that it finds claims no epsilon. It keeps running if you quit."
)
GOING_ON = "It has not ended. Its looks are in Runs; if none of them runs, press R to continue it."
SearchAnswer = tuple[Literal["take", "continue", "new"], int]


class AskSearchDialog(ConfirmDialog):
    """Question before a search is started."""

    def __init__(self) -> None:
        """Create the question."""
        super().__init__(QUESTION, CONSEQUENCE, "Search")


def newest_outcome(project_id: int) -> Callable[[Workspace], SearchOutcome | None]:
    """Return the query for the present result of the project's newest search; it finds None without a search."""

    def query(workspace: Workspace) -> SearchOutcome | None:
        """Read the result of the newest search."""
        from sfumato.workspace.service.searching import search_outcome

        newest = newest_search_id(workspace, project_id)
        return None if newest is None else search_outcome(workspace, newest)

    return query


class SearchFinalists(Dialog[SearchAnswer]):
    """Dialog with the finalists of a search; it returns a run to take the plan of, or to continue the search or start
    another.
    """

    AUTO_FOCUS = "OptionList, Scroll"
    DEFAULT_CSS = """
    SearchFinalists OptionList { height: auto; max-height: 8; margin-top: 1; }
    SearchFinalists Scroll { height: auto; max-height: 12; }
    SearchFinalists KeyLine { dock: none; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        bind_act("run", "answer('continue')", "Continue it", show=True),
        bind_act("search", "answer('new')", "Search from the current plan", show=True),
        bind_act("down", "focused.cursor_down"),
        bind_act("up", "focused.cursor_up"),
    ]

    def __init__(self, found: SearchOutcome) -> None:
        """Create the dialog for a result."""
        super().__init__()
        self._found = found

    def compose(self) -> ComposeResult:
        """Yield the finalists, the conclusion and the keys."""
        found = self._found
        with DialogBox(replace_unprintable(search_headline(found)), tall=True):
            if found.finalists:
                options = (Option(replace_unprintable(finalist_text(one))) for one in found.finalists)
                yield PagedOptionList(*options, compact=True, markup=False)
            with Scroll():
                lines = conclusion_lines(found) if found.has_ended else [GOING_ON]
                yield Static("\n".join(replace_unprintable(line) for line in lines), markup=False)
            yield KeyLine()

    def on_mount(self) -> None:
        """Mark the finalist that passes, so that enter takes its plan; the base class's own handler runs as well."""
        if self._found.winner is not None:
            self.query_one(OptionList).highlighted = self._found.finalists.index(self._found.winner)

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Enable continuing a search that has not ended."""
        return not (action == "answer" and parameters == ("continue",) and self._found.has_ended)

    def action_answer(self, answer: Literal["continue", "new"]) -> None:
        """Close the dialog with the search and what to do."""
        self.dismiss((answer, self._found.search_id))

    @on(OptionList.OptionSelected)
    def _answer_finalist(self, event: OptionList.OptionSelected) -> None:
        """Close the dialog with the run of the chosen finalist."""
        self.dismiss(("take", self._found.finalists[event.option_index].run_id))


def finalist_text(one: SearchFinalist) -> str:
    """Return a finalist in one line: ``run 36  5 of 5 met, passes  cart.minbucket 10  utility 0.8841 -> 1.358``."""
    run, plan, limits, gate, searched, fresh = finalist_cells(one)
    return f"run {run}  {limits}, {gate}  {plan}  utility {searched or '-'} -> {fresh or '-'}"
