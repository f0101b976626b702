"""Levers of a run with what each does, tried on a sample while one reads."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.message import Message
from textual.widgets import OptionList, Static
from textual.widgets.option_list import Option

from sfumato.engine.errors import BadInput
from sfumato.engine.wording import agreeing_word
from sfumato.tui.keys.acts import bind_act
from sfumato.tui.widgets.entries import PagedOptionList
from sfumato.tui.widgets.lines import Line
from sfumato.workspace.visible_text import replace_unprintable

from ..parts.page import CallInProcess, WorkspaceReader
from ..session.lever_lines import change_as_tried, sort_by_effect, useless_text
from .levers import BY_HAND, LeverChosen

if TYPE_CHECKING:
    from sfumato.workspace.gate.answer import ReleaseAnswer
    from sfumato.workspace.service.run_levers import FindingAim, LeverEffect, RunLever, RunLevers
    from sfumato.workspace.store.workspace import Workspace

TRYING, WAITING = "testing this change …", "to be tried"
HELPING, HOPED, NONE_HELPS = "Changes that would help", "Changes that may help", "No single change helps in trials"
UNTRIED = "None of them could be tried on a sample: what they do is not known before a run."
EFFECT_TRIED = "A trial on a sample shows in a moment what that does."
COST_TRIED = "A trial on a sample shows in a moment what that costs in utility."
EFFECT_UNKNOWN = "What that does is not known before a run with it."
"""What stands behind the advice as long as no trial has ended, and where none is made."""
MOST_LINES, LEAST_LINES = 14, 5
"""Lines of the list at most, and of the pane from which a sentence stands below the list."""
TRIALS = "trials"
"""Group of the threads that try levers: a later one ends those before it."""
CHANGED_SINCE = "The plan was edited since; the levers are found again"


class LeverList(PagedOptionList, WorkspaceReader):
    """List of levers with what each does; what was tried and does not help is left out.

    Trials are made one after another while the list is shown. ``enter`` asks to change the run's recipe.
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        bind_act("open", "select", "Change the plan", show=True),
        bind_act("down", "cursor_down", only="j"),
        bind_act("up", "cursor_up", only="k"),
    ]
    DEFAULT_CSS = "LeverList { height: auto; }"

    class TrialsAdvanced(Message):
        """Message that a lever was tried, or that others are tried."""

    def __init__(self) -> None:
        """Create the list, without levers."""
        super().__init__(compact=True, markup=False)
        self.found: RunLevers | None = None
        self._levers: Sequence[RunLever] = ()
        self._effects: dict[int, LeverEffect] = {}
        self._trying: int | None = None

    def show_levers(self, found: RunLevers | None, levers: Sequence[RunLever]) -> None:
        """Show some levers of a run, and begin to try them."""
        if found == self.found and list(levers) == list(self._levers):
            return
        self.stop_trials()
        self.found, self._levers, self._effects = found, levers, {}
        self._show_options()
        self.try_next()

    @property
    def shown_levers(self) -> list[int]:
        """Return the numbers of the levers that are shown, the best first: all but those that were tried and do not
        help.
        """
        places = {id(lever): at for at, lever in enumerate(self._levers)}
        ordered = [places[id(lever)] for lever, _ in sort_by_effect(self.effects)]
        return [at for at in ordered if self._is_shown(at)]

    @property
    def sample_text(self) -> str:
        """Return on what the levers were tried; empty before one was."""
        return next((one.sample for one in self._effects.values() if one.sample), "")

    @property
    def useless_text(self) -> str:
        """Return how many levers were tried and do not help, in a sentence; empty for none."""
        shown = len(self.shown_levers)
        return useless_text(len(self._levers) - shown, shown)

    @property
    def untried_text(self) -> str:
        """Return how many changes could not be tried, in a sentence; empty for none."""
        failed = sum(bool(one.reason) for one in self._effects.values())
        if not failed:
            return ""
        if failed == len(self._levers):
            return UNTRIED
        return f"{failed} of them could not be tried on a sample: {agreeing_word(failed, 'its effect is', 'their effects are')} not known."

    @property
    def is_proved(self) -> bool:
        """Return whether every lever that is shown was tried, and helps."""
        shown = [self._effects.get(at) for at in self.shown_levers]
        return bool(shown) and all(one is not None and one.helps for one in shown)

    @property
    def trials_text(self) -> str:
        """Return on what levers were tried, how many could not be, and how many do not help."""
        return " ".join(filter(None, (self.sample_text, self.untried_text, self.useless_text)))

    @property
    def is_tried(self) -> bool:
        """Return whether every lever that can be tried was."""
        return bool(self._effects) and all(at in self._effects for at, one in enumerate(self._levers) if one.toml)

    @property
    def is_tried_here(self) -> bool:
        """Return whether levers are tried while the list is read."""
        return self._makes_trials and any(one.toml for one in self._levers)

    @property
    def effects(self) -> list[tuple[RunLever, LeverEffect | None]]:
        """Return the levers, each with what it does as far as that is known."""
        return [(lever, self._effects.get(at)) for at, lever in enumerate(self._levers)]

    def _is_shown(self, at: int) -> bool:
        effect = self._effects.get(at)
        return effect is None or bool(effect.reason) or effect.helps

    def _show_options(self) -> None:
        """Show the levers; the cursor stays on its lever while the keys are here, else it is on the first."""
        at = self.highlighted
        # Where nobody moves the cursor, it stays on the first: that is what the answer advises.
        is_kept = at is not None and at < self.option_count and self.has_focus
        kept = self.get_option_at_index(at).id if at is not None and is_kept else None
        self.clear_options()
        self.add_options(Option(self._lever_text(number), id=str(number)) for number in self.shown_levers)
        shown = [str(number) for number in self.shown_levers]
        self.highlighted = shown.index(kept) if kept in shown else (0 if shown else None)
        self.post_message(self.TrialsAdvanced())

    def _lever_text(self, at: int) -> Content:
        """Return a lever and what it does, on two lines."""
        lever, effect = self._levers[at], self._effects.get(at)
        first = lever.change_text
        if not lever.toml:
            return Content(replace_unprintable(f"{first} ({BY_HAND})"))
        if effect is not None:
            # That a change could not be tried is said once, below all of them.
            said = "" if effect.reason else effect.text
        elif at == self._trying:
            said = TRYING
        else:
            said = WAITING if self._makes_trials else ""
        return Content("\n").join(
            [Content(replace_unprintable(first)), *([Content.styled(f"  {said}", "dim")] if said else [])]
        )

    @property
    def _makes_trials(self) -> bool:
        """Return whether levers are tried: not in a process that other code uses, which would be kept busy."""
        return self.is_attached and self.sfumato.owns_process

    @property
    def is_read(self) -> bool:
        """Return whether somebody may read the list now."""
        return self.is_attached and self.is_on_screen

    def try_next(self) -> None:
        """Try the next lever, or take what is known of it."""
        if self.found is None or not self._makes_trials or self._trying is not None or not self.is_read:
            return
        found, memory, directory = self.found, self.sfumato.lever_memory, self.sfumato.directory
        for at, lever in enumerate(self._levers):
            if not lever.toml or at in self._effects:
                continue
            if (known := memory.known_effect(found, lever)) is not None:
                self._effects[at] = known
                continue
            self._trying = at
            try_lever = partial(memory.try_lever, directory, found, lever)
            self.compute_in_processes(try_lever, partial(self._take_effect, found, at), group=TRIALS)
            break
        self._show_options()

    def _take_effect(self, found: RunLevers, at: int, effect: LeverEffect | None) -> None:
        """Show what a lever does, and try the next one."""
        if found != self.found or effect is None:
            return
        self._trying = None
        self._effects[at] = effect
        self.try_next()

    def stop_trials(self) -> None:
        """End the trial that is made; nothing of it is left."""
        self._trying = None
        if self.is_attached:
            self.workers.cancel_group(self, TRIALS)

    def on_hide(self) -> None:
        """Stop trying once nobody looks."""
        self.stop_trials()

    def on_show(self) -> None:
        """Go on trying."""
        self.try_next()

    def on_unmount(self) -> None:
        """Stop trying."""
        self.workers.cancel_node(self)

    def lever_of_option(self, option: Option) -> RunLever:
        """Return the lever of an option."""
        return self._levers[int(option.id or 0)]


class LeverPane(Vertical, WorkspaceReader):
    """Levers of the run of a page, for its findings that block or warn and its limits that are not met."""

    DEFAULT_CSS = """
    LeverPane { height: auto; border-left: solid $secondary; display: none; }
    LeverPane.found { display: block; }
    LeverPane:focus-within { border-left: heavy $primary; }
    LeverPane LeverList { max-height: 14; margin: 0 1; background: transparent; }
    LeverPane LeverList > .option-list--option-highlighted { background: transparent; color: $foreground; text-style: none; }
    LeverPane LeverList:focus > .option-list--option-highlighted {
        background: $block-cursor-background; color: $block-cursor-foreground; text-style: $block-cursor-text-style;
    }
    LeverPane #lever-sample { color: $text-muted; height: auto; margin: 0 1; }
    """

    def __init__(self) -> None:
        """Create the pane, without a run."""
        super().__init__(id="levers")
        self._asked: tuple[int, tuple[FindingAim, ...]] | None = None
        self._most_lines: int | None = None

    def compose(self) -> ComposeResult:
        """Yield the title, the levers, and on what they were tried."""
        yield Line(name="lever-title")
        yield LeverList()
        yield Static("", id="lever-sample", markup=False)

    def show_run_levers(self, run_id: int | None, findings: Sequence[FindingAim] = ()) -> None:
        """Show the levers of a run for these findings of the gate and for its limits; none for None."""
        asked = None if run_id is None else (run_id, tuple(findings))
        if asked == self._asked:
            return
        self._asked = asked
        self._take_levers(asked, None)
        if asked is None:
            return
        memory, directory = self.sfumato.lever_memory, self.sfumato.directory

        def find(call: CallInProcess) -> RunLevers:
            """Find the levers in another process."""
            return memory.find_levers(directory, *asked, call)

        def report_nothing(_: str) -> Message | None:
            """Return nothing: a run of another version has no levers, and the page says what else is wrong."""
            return None

        self.compute_in_processes(find, partial(self._take_levers, asked), group="levers", refuse=report_nothing)

    def _take_levers(self, asked: object, found: RunLevers | None) -> None:
        """Show the levers that were found, unless others are wanted by now."""
        if asked == self._asked:
            levers = () if found is None else found.levers
            self.set_class(bool(levers), "found")
            self.query_one(LeverList).show_levers(found, levers)

    def limit_height(self, lines: int) -> None:
        """Let the pane have at most so many lines: its list scrolls then, and the sentence below it is left out last."""
        self._most_lines = lines
        sample = self.query_one("#lever-sample", Static)
        below = sample.size.height if lines > LEAST_LINES + sample.size.height else 0
        sample.display = bool(below) or lines > LEAST_LINES
        self.query_one(LeverList).styles.max_height = max(1, min(MOST_LINES, lines - 1 - below))
        self.styles.max_height = max(2, lines)

    def change_text(self, answer: ReleaseAnswer) -> str:
        """Return what to change first: what the gate answers, with what trials show; where these are still made, it says
        so, and where none are, that the effect is not known.
        """
        shown = self.query_one(LeverList)
        text = change_as_tried(answer, shown.effects, is_tried=shown.is_tried)
        if not shown.effects or text != answer.change or shown.is_tried:
            return text
        if not shown.is_tried_here:
            return text if answer.change_has_effect else f"{text} {EFFECT_UNKNOWN}"
        return f"{text} {COST_TRIED if answer.change_has_effect else EFFECT_TRIED}"

    def levers_of_check(self, check: str) -> tuple[RunLevers | None, list[RunLever]]:
        """Return what was found for the run, and of it the levers for a finding of the gate."""
        found = self.query_one(LeverList).found
        return found, [] if found is None else [one for one in found.levers if one.aim.serves(check)]

    @on(LeverList.TrialsAdvanced)
    def _show_title(self) -> None:
        """Show what the list is of, and on what its levers were tried."""
        shown = self.query_one(LeverList)
        title = HELPING if shown.is_proved else HOPED if shown.shown_levers else NONE_HELPS
        self.query_one("#lever-title", Line).set_text(Content.styled(title, "bold"))
        sample = self.query_one("#lever-sample", Static)
        if sample.content != shown.trials_text:
            sample.update(shown.trials_text)
            # The list makes room for the sentence, which is longer or shorter now.
            self.call_after_refresh(self._limit_height_again)

    def _limit_height_again(self) -> None:
        """Share the lines of the pane between the list and the sentence below it."""
        if self._most_lines is not None:
            self.limit_height(self._most_lines)

    @on(OptionList.OptionSelected)
    def _choose_lever(self, event: OptionList.OptionSelected) -> None:
        """Ask for the change of the run's recipe by the chosen lever."""
        event.stop()
        shown = self.query_one(LeverList)
        if shown.found is not None:
            post_lever(self, shown.found, shown.lever_of_option(event.option))


def post_lever(reader: WorkspaceReader, found: RunLevers, lever: RunLever) -> None:
    """Post that the recipe of a run is to be changed by a lever, as long as that is still the recipe."""

    def query(workspace: Workspace) -> Message | None:
        """Read the recipe of the run."""
        from sfumato.workspace.plan.edits import draft_to_change_run

        try:
            draft = draft_to_change_run(workspace, found.run_id)
        except BadInput:  # of an earlier version, whose recipe this one cannot read
            return None
        return LeverChosen(lever.plan_lever, found.run_id, draft) if draft.toml == found.toml else None

    def take(message: Message | None) -> Message | None:
        """Post the message, or say that the plan has changed."""
        if message is None:
            reader.sfumato.say(CHANGED_SINCE)
        return message

    reader.read(query, take)
