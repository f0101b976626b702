"""A lever in words, the message that it was chosen, and the dialog with the difference of the plans."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Literal

from textual.app import ComposeResult
from textual.binding import BindingType
from textual.content import Content
from textual.message import Message
from textual.widgets import Static

from sfumato.tui.keys.acts import bind_act
from sfumato.tui.widgets.lines import KeyLine, Scroll
from sfumato.tui.widgets.panel import DialogBox
from sfumato.workspace.visible_text import replace_unprintable

from ..parts.page import Dialog

if TYPE_CHECKING:
    from sfumato.workspace.plan.drafts import PlanDraft
    from sfumato.workspace.plan.levers import PlanLever

TITLE = "How to fix it   (enter changes the plan, or opens it where you decide)"
BY_HAND = "in the plan"


@dataclass
class LeverChosen(Message):
    """Message that the user wants a run changed by this lever; ``draft`` is the plan of the run without the change."""

    lever: PlanLever
    run_id: int
    draft: PlanDraft


class PlanChange(Dialog[Literal["run", "undo"]]):
    """Dialog with the difference that a lever made to the plan; returns whether to run the plan or to undo."""

    AUTO_FOCUS = "Scroll"
    BINDINGS: ClassVar[list[BindingType]] = [
        bind_act("run", "answer('run')", "Run it", show=True),
        bind_act("undo", "answer('undo')", show=True),
    ]
    DEFAULT_CSS = "PlanChange Scroll { height: auto; max-height: 12; } PlanChange KeyLine { dock: none; }"

    def __init__(self, lever: PlanLever) -> None:
        """Create the dialog about a lever."""
        super().__init__()
        self._lever = lever

    def compose(self) -> ComposeResult:
        """Yield the lever, the difference, and the keys."""
        with DialogBox("The plan has changed"):
            yield Static(replace_unprintable(f"{self._lever.text}\n"), markup=False)
            yield Scroll(difference_text(self._lever.lines))
            yield KeyLine()

    def action_answer(self, answer: Literal["run", "undo"]) -> None:
        self.dismiss(answer)


def difference_text(lines: Sequence[str]) -> Content:
    """Return the removed and added lines, in colours as well as with their signs."""
    styles = {"-": "$text-error", "+": "$text-success"}
    return Content("\n").join(Content.styled(replace_unprintable(line), styles.get(line[:1], "")) for line in lines)
