"""Dialogs that explain a finding or a verdict, with the levers for it, tried while one reads."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.widgets import OptionList, Static

from sfumato.tui.keys.acts import bind_act
from sfumato.tui.keys.own_keys import current_key
from sfumato.tui.widgets.lines import Scroll
from sfumato.tui.widgets.panel import DialogBox

from ..parts.explain import ResultExplanation
from ..parts.page import Dialog
from ..release.release import FindingDialog
from .lever_pane import LeverList

if TYPE_CHECKING:
    from sfumato.workspace.gate.gate import Finding
    from sfumato.workspace.reporting.explanation import ExplainedNumber
    from sfumato.workspace.service.run_levers import RunLever, RunLevers

TITLE = "How to fix it   (enter changes the plan, or opens it where you decide)"


class LeverDialog(Dialog[Any]):
    """Base of dialogs that show levers below their text, and return the chosen one."""

    AUTO_FOCUS = "LeverList"
    DEFAULT_CSS = """
    LeverDialog LeverList { max-height: 8; }
    LeverDialog #lever-title { text-style: bold; margin-top: 1; }
    LeverDialog #lever-sample { color: $text-muted; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        bind_act("down", "focused.cursor_down", only="j"),
        bind_act("up", "focused.cursor_up", only="k"),
        bind_act("page_down", "pages(1)"),
        bind_act("page_up", "pages(-1)"),
    ]

    def compose_levers(self, title: str, keys: str) -> ComposeResult:
        """Yield the dialog's text, its levers, and on what they were tried."""
        with DialogBox(title, keys, tall=True):
            yield Scroll()
            yield Static(TITLE, id="lever-title", markup=False)
            yield LeverList()
            yield Static("", id="lever-sample", markup=False)

    def action_pages(self, pages: int) -> None:
        self.query_one(Scroll).action_pages(pages)

    @on(LeverList.TrialsAdvanced)
    def _show_sample(self) -> None:
        """Say on what the levers were tried."""
        self.query_one("#lever-sample", Static).update(self.query_one(LeverList).trials_text)

    @on(OptionList.OptionSelected)
    def _answer_lever(self, event: OptionList.OptionSelected) -> None:
        """Close the dialog with the chosen lever."""
        self.dismiss(self.query_one(LeverList).lever_of_option(event.option))


class FindingExplanation(LeverDialog, FindingDialog):
    """Dialog that explains a finding of the gate, and returns the chosen lever."""

    def __init__(
        self,
        finding: Finding,
        waived: str,
        witnesses: Sequence[Finding],
        found: RunLevers,
        levers: Sequence[RunLever],
    ) -> None:
        """Create the dialog with the levers for a finding."""
        super().__init__(finding, waived, witnesses)
        self._found, self._levers = found, levers

    def compose(self) -> ComposeResult:
        """Yield the finding and its levers."""
        yield from self.compose_levers(self._box_title, "enter changes the plan, esc closes")

    def on_mount(self) -> None:
        """Show the levers; the base classes' own handlers run as well."""
        self.query_one(LeverList).show_levers(self._found, self._levers)


class VerdictExplanation(LeverDialog, ResultExplanation):
    """Dialog that explains the number of a verdict that is not met, and returns the chosen lever."""

    def __init__(
        self, found: ExplainedNumber, titles: Mapping[str, str] | None, levers: RunLevers, run_id: int | None = None
    ) -> None:
        """Create the dialog with the levers of the verdict."""
        super().__init__(found, titles, run_id)
        self._levers = levers

    def compose(self) -> ComposeResult:
        """Yield the explanation, the levers, and the keys."""
        yield from self.compose_levers("…", self.keys_text)

    def on_mount(self) -> None:
        """Show the levers; the base classes' own handlers run as well."""
        self.query_one(LeverList).show_levers(self._levers, self._levers.levers)

    @property
    def keys_text(self) -> str:
        """Return the help on the keys at the lower edge."""
        people = "" if self._of_run is None else f"{current_key(self.app, 'next')} people recognised, "
        return f"{people}enter changes the plan, esc closes"
