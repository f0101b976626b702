"""The terminal app: screens over a workspace. It shows results; workers in other processes compute."""

from __future__ import annotations

import gc
import importlib
import os
import subprocess
import sys
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from textual import events, on, work
from textual.app import SystemCommand
from textual.binding import Binding, BindingType
from textual.dom import DOMNode
from textual.message import Message
from textual.screen import Screen

from sfumato.workspace.errors import WorkspaceError
from sfumato.workspace.store.runs import RunState, find_run, summarise_run
from sfumato.workspace.store.workspace import Workspace
from sfumato.workspace.visible_text import replace_unprintable, replace_unprintable_in_lines

from ..keys.acts import KEYLESS, bind_act
from ..keys.own_keys import MODIFIERS, NAMES, current_key
from ..parts.page import ShowsErrors
from ..session import jobs
from ..session.command_lines import MOST_REMEMBERED, Words, command_text
from ..session.dial_memory import DialMemory
from ..session.gate_answers import GateMemory
from ..session.lever_memory import LeverMemory
from ..session.messages import (
    ColumnsAsked,
    CompanionRunsOffered,
    ErrorMessage,
    FileFormatDetected,
    JobDone,
    KeymapLoaded,
    ReleasedColumnsRead,
    ReleasedFileEvaluated,
    WorkspaceChanged,
    WorkspaceOpened,
)
from ..session.notification import (
    LONG_SECONDS,
    NOTIFICATION_WAYS,
    EndedRunWatch,
    notification_sequence,
    notification_way,
)
from ..session.places import keys_file
from ..session.reading_notice import ReadingNotice
from ..session.state import AppState, StateWriter, load_state
from ..terminal.beside_pictures import send_to_terminal
from ..terminal.device import HUNG_UP, has_terminal
from ..terminal.diff_output import DiffOutput
from ..terminal.key_queue import KeyQueue
from ..terminal.painting import SinglePaintScreen, double_paint_rate, share_styles
from .memory import limit_malloc_arenas
from .projects import ProjectsScreen
from .themes import THEMES, initial_theme

if TYPE_CHECKING:
    from .project import ProjectScreen

POLL_SECONDS = 1.0
POLLS_PER_SWEEP = 10
GC_THRESHOLDS = (10_000, 20, 20)
"""Thresholds of Python's garbage collection, by generation; with the defaults a collection delays every key."""
KEYS_PER_COLLECTION = 10
"""Number of keys after which the app collects garbage at the next pause without a key."""
SWITCH_SECONDS = 0.0005
"""Longest time that a computing thread keeps the event loop waiting, which happens several times for each key."""


class SfumatoApp(ShowsErrors, DiffOutput, KeyQueue):
    """Terminal app over a workspace."""

    owns_process = False
    """Whether the process is used by the app alone, which may then change memory and thread settings of Python."""
    TITLE = "Sfumato"
    ALLOW_SELECT = False
    """A double click opens a row; Textual would also select text on the screen that opens, and cannot draw that yet."""
    CSS_PATH = "app.tcss"
    HORIZONTAL_BREAKPOINTS = [(0, "-narrow"), (100, "-normal"), (160, "-wide")]  # noqa: RUF012  (Textual declares it)
    VERTICAL_BREAKPOINTS = [(0, "-low"), (30, "-high")]  # noqa: RUF012
    BINDINGS: ClassVar[list[BindingType]] = [
        bind_act("keys", "keys", "Keys", show=True),
        bind_act("manual", "manual"),
        bind_act("close", "close_place", "Close", show=True),
        bind_act("back", "leave"),
        bind_act("palette", "command_palette", priority=True),
        bind_act("command", "command_line"),
        bind_act("redraw", "redraw"),
        bind_act("commands", "commands"),
        bind_act("audit", "audit"),
        bind_act("new", "new_run", "New run"),
        bind_act("import", "import"),
        bind_act("evaluate", "evaluate"),
        bind_act("check_file", "check_file"),
        bind_act("doctor", "doctor"),
        bind_act("computing", "computing"),
        bind_act("theme", "change_theme"),
        bind_act("next_pane", "focus_next"),
    ]

    def __init__(self, directory: Path, run_id: int | None = None) -> None:
        """Create the app for a workspace.

        Raises NotAWorkspace, and NotFound if there is no run with this number.
        """
        super().__init__(ansi_color=True if "NO_COLOR" in os.environ else None)
        self.directory = directory
        self.state = _initial_state(directory, run_id)
        self.reading_notice = ReadingNotice(self)
        self.gate_memory, self.dial_memory, self.lever_memory = GateMemory(), DialMemory(), LeverMemory()
        self.notices: list[str] = []
        self._commands: deque[str] = deque(maxlen=MOST_REMEMBERED)
        self._started: list[subprocess.Popen[bytes]] = []
        self.own_keys: Mapping[str, str] = {}
        self._keeper = StateWriter()
        self._polls = self._spared = 0
        self._watch = EndedRunWatch()
        self._keys_seen = self._keys_collected = 0
        self._use_own_themes()
        # Every step of an animation would be sent over the connection.
        if os.environ.get("SSH_CONNECTION") or os.environ.get("SSH_TTY"):
            self.animation_level = "none"

    def _use_own_themes(self) -> None:
        """Register the app's themes in place of Textual's own."""
        for theme in THEMES.values():
            self.register_theme(theme)
        self.theme = initial_theme(self.state.theme, no_color=self.no_color)
        # Only the contrast of our own themes and the terminal's is tested on every screen.
        for name in set(self.available_themes) - set(THEMES):
            self.unregister_theme(name)

    def get_default_screen(self) -> Screen[Any]:
        """Return the list of projects, the root screen."""
        return ProjectsScreen()

    async def on_mount(self) -> None:
        """Show the screen that was open last, and look for changes once a second."""
        self._workspace = Workspace.open(self.directory, read_only=True)
        self._version = self._workspace.data_version
        self._watch.newly_ended_runs(self._workspace.connection)
        # In tests there is no terminal whose loss could end the app.
        self._has_terminal = not self.is_headless and has_terminal()
        self.set_interval(POLL_SECONDS, self._poll_workspace)
        # Another program may have written on the terminal while the app was suspended.
        self.app_resume_signal.subscribe(self, lambda _: self.action_redraw())
        self.theme_changed_signal.subscribe(self, lambda theme: self.remember(theme=theme.name))
        self.call_after_refresh(self._import_screens)
        if self.state.project is not None:
            await self.open_project(self.state.project, self.state.run, self.state.tab)

    @work(thread=True, exit_on_error=False)
    def _import_screens(self) -> None:
        """Import the other screens in a thread."""
        # Neither the first picture nor the first key waits for these imports.
        importlib.import_module("sfumato.tui.app.project")
        self._freeze_modules()
        self._load_own_keys()

    def _freeze_modules(self) -> None:
        """Exclude imported modules from garbage collection."""
        # Screens import libraries as they open, so freezing is repeated when new modules have come.
        if self.owns_process and len(sys.modules) > self._spared:
            self._spared = len(sys.modules)
            # A collection over the objects of numerical libraries takes 50 ms.
            gc.freeze()

    def _collect_when_idle(self) -> None:
        """Collect garbage, such as closed screens, once no key has been pressed for a second."""
        keys, before = self.keys_taken, self._keys_seen
        self._keys_seen = keys
        if self.owns_process and keys == before and keys - self._keys_collected >= KEYS_PER_COLLECTION:
            self._keys_collected = keys
            gc.collect()

    def _load_own_keys(self) -> None:
        """Read the user's own keys, once all screens are imported."""
        file = keys_file()
        if not file.exists():
            return
        from ..keys.keymap import BadKeymap, read_keymap

        try:
            self.post_message(KeymapLoaded(read_keymap(file)))
        except BadKeymap as error:
            self.post_message(ErrorMessage(f"{error}. The keys are as they come"))

    @on(KeymapLoaded)
    def _apply_own_keys(self, event: KeymapLoaded) -> None:
        """Apply the user's own keys."""
        self.set_keymap(event.keymap)

    def set_keymap(self, keymap: Mapping[str, str]) -> None:
        """Store and apply the user's own keys."""
        self.own_keys = keymap
        super().set_keymap(keymap)

    def on_unmount(self) -> None:
        """Close the workspace and the file of the app's state."""
        self._workspace.close()
        self._keeper.close()

    def _poll_workspace(self) -> None:
        """Make the screens read again if the workspace was written; exit if the terminal is gone."""
        if self._has_terminal and not has_terminal():
            # Textual would read the end of the terminal's input forever, so the process ends at once.
            self._keeper.close()
            os._exit(HUNG_UP)
        self._freeze_modules()
        self._collect_when_idle()
        self._polls += 1
        version = self._workspace.data_version
        # Also without a change, now and then: a worker that has died writes nothing.
        if version != self._version or self._polls % POLLS_PER_SWEEP == 0:
            self._version = version
            # Polling lets the system remove a worker that has ended; otherwise it would stay as a zombie.
            self._started = [worker for worker in self._started if worker.poll() is None]
            way = notification_way(os.environ, self.state.notify, otherwise="bell")
            send_to_terminal(
                self,
                notification_sequence(
                    way, self._watch.newly_ended_runs(self._workspace.connection), in_tmux="TMUX" in os.environ
                ),
            )
            self.refresh_page()

    def refresh_page(self) -> None:
        """Make the current screen read the workspace again."""
        # Screens below read when they return: Textual would paint them now.
        if self.screen_stack:  # none is left while the app ends
            self.screen.post_message(WorkspaceChanged())

    def remember(self, **changes: Any) -> None:
        """Change the state that is kept between sessions, and save it."""
        state = replace(self.state, **changes)
        if state != self.state:
            self.state = state
            self._keeper.write_later(self.directory, state)

    async def open(self, screen: SinglePaintScreen[Any], on_answer: Callable[[Any], None] | None = None) -> None:
        """Show a screen above the others, painted once rather than at every step of its mounting."""
        with self.batch_update():
            screen.set_size_classes(self.size)
            await self.push_screen(screen, on_answer)

    async def open_project(self, project_id: int, run_id: int | None = None, tab: str = "runs") -> None:
        """Show a project above the list of projects."""
        from .project import ProjectScreen

        # The remembered row belongs to the project that was open last.
        row = self.state.row if project_id == self.state.project else ""
        self.remember(project=project_id, run=run_id, tab=tab, row=row)
        await self.open(ProjectScreen(project_id, run_id, tab))

    def action_redraw(self) -> None:
        """Paint the whole screen again, whatever another program has left on it."""
        self.forget_image()
        self.screen.refresh()

    def get_key_display(self, binding: Binding) -> str:
        """Return the displayed name of a key; empty for an act without a key."""
        if binding.key.startswith(KEYLESS):
            return ""
        return NAMES.get(binding.key) or super().get_key_display(binding)

    async def on_key(self, event: events.Key) -> None:
        """Show a message if a key does nothing here."""
        active = self.screen.active_bindings.get(event.key)
        if event.key not in MODIFIERS and (active is None or not active.enabled):
            from ..manual.help import no_effect_message

            self.clear_notifications()
            self.say(f"{no_effect_message(event.key)}; {current_key(self, 'keys')} lists the keys that do", seconds=2)

    async def action_close_place(self) -> None:
        """Close the screen; on the first screen ask whether to quit if something runs."""
        if len(self.screen_stack) > 1:
            await self._close_screen_after_asking()
            return
        await self._quit_after_asking()

    async def action_quit(self) -> None:
        """Quit from any screen, after the same question as on the first screen (``ctrl+q``)."""
        await self._quit_after_asking()

    async def _quit_after_asking(self) -> None:
        """Quit; ask first if a run would continue or text would be lost."""
        unsaved = self._unsaved_warning()
        running = self._active_run_ids()
        if not running and not unsaved:
            self.exit()
            return
        from ..parts.dialogs import ConfirmDialog

        # The key pressed again answers the question.
        if isinstance(self.screen, ConfirmDialog):
            self.exit()
            return
        one = len(running) == 1
        names = f"Run {running[0]} keeps" if one else f"Runs {', '.join(map(str, running))} keep"
        said = [unsaved] if unsaved else []
        said += [f"{names} running if you quit."] if running else []
        question = ConfirmDialog("Quit Sfumato?", " ".join(said), "Quit")
        await self.open(question, lambda yes: self.exit() if yes else None)

    def _unsaved_warning(self) -> str:
        """Return what would be lost by quitting, in a sentence; empty if nothing would be."""
        return next(filter(None, (getattr(screen, "unsaved", "") for screen in self.screen_stack)), "")

    def _active_run_ids(self) -> list[int]:
        """Return the runs that have not ended."""
        rows = self._workspace.connection.execute("SELECT id, state FROM run ORDER BY id")
        return [int(row[0]) for row in rows if not RunState(row[1]).is_final]

    async def _close_screen_after_asking(self) -> None:
        """Close the screen; ask first if typed text would be lost."""
        unsaved = str(getattr(self.screen, "unsaved", ""))
        if not unsaved:
            await self._leave_screen()
            return
        from ..parts.dialogs import ConfirmDialog

        question = ConfirmDialog("Discard the text?", unsaved, "Discard")

        def leave_if_confirmed(yes: bool | None) -> None:
            """Close the screen if the user has confirmed."""
            if yes:
                self.call_later(self._leave_screen)

        await self.open(question, leave_if_confirmed)

    async def _leave_screen(self) -> None:
        """Close the screen, and remember that no project is open."""
        await self.pop_screen()
        self.remember(project=None)

    async def action_leave(self) -> None:
        """Close the screen; on the list of projects show how to quit instead."""
        if len(self.screen_stack) == 1:
            self.say(f"{current_key(self, 'close')} quits; runs keep running")
        else:
            await self._close_screen_after_asking()

    async def action_keys(self) -> None:
        """List the acts of this place, and run the chosen one."""
        from ..manual.help import HelpAct, KeysDialog, available_acts

        if isinstance(self.screen, KeysDialog):
            return

        def run_chosen_act(chosen: HelpAct | None) -> None:
            """Run the chosen act on the screen below."""
            if chosen is not None and chosen.run is not None:
                self.call_later(self.run_action, *chosen.run)

        await self.open(KeysDialog(available_acts(self.screen)), run_chosen_act)

    def action_command_palette(self) -> None:
        """Show the palette, unless it is open."""
        from .palette import ActPalette

        if not isinstance(self.screen, ActPalette):
            self.push_screen(ActPalette(id="--command-palette"))

    async def action_command_line(self) -> None:
        """Ask for a command by name, such as ``runs failed``, and run it."""
        from .command_line import CommandLine, TypedCommand

        def run_command(found: TypedCommand | None) -> None:
            """Run the typed command."""
            if found is not None:
                self.call_later(self._run_typed_command, found.act, found.words, found.run.run)

        if not isinstance(self.screen, CommandLine):
            await self.open(CommandLine(self.screen), run_command)

    async def _run_typed_command(self, act: str, words: str, run: tuple[str, DOMNode] | None) -> None:
        """Run an act; the words after it are rows to show, a run, a theme or a topic of the manual."""
        from ..manual.manual import ManualDialog

        if words and act == "theme":
            if words not in THEMES:
                self.say(f"There is no theme {words}: {', '.join(THEMES)}")
                return
            self.theme = words
        elif words and act == "manual":
            await self.open(ManualDialog((words,)))
        elif words and (take := getattr(self.screen, "take_words", None)) is not None:
            await take(act, words)
        elif words:
            self.say(f"{act.replace('_', '-')} takes no words here")
        elif run is not None:
            await self.run_action(*run)

    async def action_manual(self) -> None:
        """Open the manual at the page that fits what has the focus."""
        from ..manual.manual import ManualDialog, current_topics

        if not isinstance(self.screen, ManualDialog):
            await self.open(ManualDialog(current_topics(self.screen_stack)))

    def action_when_run_ends(self) -> None:
        """Choose the next reaction to the end of a run: none, the bell, or a message of the desktop."""
        ways = list(NOTIFICATION_WAYS)
        now = notification_way(os.environ, self.state.notify, otherwise="bell")
        self.remember(notify=ways[(ways.index(now) + 1) % len(ways)])
        self.say(
            f"When a run ends that took {LONG_SECONDS:.0f} seconds or more: {NOTIFICATION_WAYS[self.state.notify]}"
        )

    async def action_computing(self) -> None:
        """Ask where runs are computed, and with how much memory, until the app ends."""
        from .computing import computing_form

        await self.open(*computing_form(self.say))

    def action_keys_file(self) -> None:
        """Show the path of the file of own keys."""
        self.say(f"{keys_file()} changes keys; sfumato keys prints one to start from")

    async def action_notices(self) -> None:
        """Show the messages of this session."""
        from ..parts.dialogs import NoticesDialog

        await self.open(NoticesDialog(self.notices))

    async def action_audit(self) -> None:
        """Show every act that changed the workspace, and whether the audit log was tampered with."""
        from .audit import AuditLogDialog

        await self.open(AuditLogDialog())

    async def action_new_run(self) -> None:
        """Ask for a recipe and run it."""
        from ..parts.dialogs import NewRun

        def start(answer: tuple[str, str | None] | None) -> None:
            """Start the chosen run."""
            if answer is not None:
                self.job(partial(jobs.run_unless_companions, self.directory, *answer))

        await self.open(NewRun(), start)

    @on(CompanionRunsOffered)
    async def _ask_for_companions(self, event: CompanionRunsOffered) -> None:
        """Ask whether to run a recipe with the companions that it names."""
        from ..parts.dialogs import ChoiceDialog

        several = "companions" if len(event.companions) > 1 else "companion"
        answers = (f"with its {several}: {', '.join(event.companions)}", "alone")
        starts = (jobs.run_with_companions, jobs.run_recipe)

        def start_chosen_runs(place: int | None) -> None:
            """Start the recipe with or without its companions."""
            if place is not None:
                self.job(partial(starts[place], self.directory, event.recipe, event.data))

        await self.open(ChoiceDialog(f"Run {event.recipe}", 2, answers.__getitem__, 0), start_chosen_runs)

    async def action_evaluate(self) -> None:
        """Ask for files of another tool, and evaluate them."""
        from .evaluation import evaluation_form, project_draft

        project = self._open_project
        draft = None if project is None else project_draft(project.project_id, self._workspace)
        await self.open(*evaluation_form(self, draft))

    async def action_check_file(self) -> None:
        """Ask for one anonymised file, and show what it shows by itself."""
        from .released_file import file_form

        await self.open(*file_form(self))

    @on(ReleasedColumnsRead)
    async def _ask_released_columns(self, event: ReleasedColumnsRead) -> None:
        """Ask which columns of an anonymised file an intruder may know."""
        from .released_file import columns_form

        self.reading_notice.end()
        await self.open(*columns_form(self, event.file, event.columns, {}))

    @on(ReleasedFileEvaluated)
    async def _show_released_file(self, event: ReleasedFileEvaluated) -> None:
        """Show what one anonymised file shows by itself."""
        from ..session.released_file import released_file_words
        from .released_file import ReleasedFileDialog

        self.reading_notice.end()
        self.note_command(released_file_words(event.view))
        await self.open(ReleasedFileDialog(event.view, event.columns, event.answers))

    def note_command(self, words: Words) -> None:
        """Store the command that is equivalent to the last act."""
        if words:
            self._commands.append(command_text(self.directory, words))

    def note_change(self, text: str) -> None:
        """Store the line of a recipe that was just changed."""
        self._commands.append(replace_unprintable(text))

    async def action_commands(self) -> None:
        """Show the commands that are equivalent to what is shown and what was done."""
        from .commands import EquivalentCommands

        if isinstance(self.screen, EquivalentCommands):
            return
        words: Words = getattr(self.screen, "command_words", tuple)()
        await self.open(EquivalentCommands(command_text(self.directory, words) if words else "", tuple(self._commands)))

    async def action_doctor(self) -> None:
        """Check installation, terminal and workspace."""
        from .doctor import DoctorDialog

        if not isinstance(self.screen, DoctorDialog):
            await self.open(DoctorDialog())

    async def action_import(self) -> None:
        """Ask for a file, and import it into a project."""
        root = self.screen_stack[0]
        assert isinstance(root, ProjectsScreen)
        await root.action_import()

    def run_again(self, run_id: int) -> None:
        """Run the recipe of a run again."""
        self.job(partial(jobs.run_again, self.directory, run_id))

    def resume_run(self, run_id: int) -> None:
        """Resume a run."""
        self.job(partial(jobs.resume_run, self.directory, run_id))

    def interrupt_run(self, run_id: int) -> None:
        """Interrupt a run."""
        self.job(partial(jobs.interrupt_run, self.directory, run_id))

    def job(self, task: Callable[[], Message]) -> None:
        """Run a task on the workspace in a thread and post the message that it returns."""
        project = self._open_project
        self._run_job(task, None if project is None else project.tab)

    @work(thread=True, group="jobs", exit_on_error=False)
    def _run_job(self, task: Callable[[], Message], tab: str | None) -> None:
        """Run a task that was asked for in a tab of a project, or outside of one."""
        from sfumato.engine.errors import EngineError

        try:
            done = task()
            if isinstance(done, JobDone):
                done.asked_in = tab
            self.post_message(done)
        except (EngineError, WorkspaceError, OSError) as error:
            self.post_message(ErrorMessage(str(error)))

    @property
    def _open_project(self) -> ProjectScreen | None:
        """Return the screen of the project that is open; None without one."""
        from .project import ProjectScreen

        return next((screen for screen in self.screen_stack if isinstance(screen, ProjectScreen)), None)

    @on(JobDone)
    async def _handle_finished_job(self, event: JobDone) -> None:
        """Report a finished job, and show the run or project that it created."""
        from .project import ProjectScreen

        project = self._open_project
        if event.worker is not None:
            self._started.append(event.worker)
        self.reading_notice.end()
        self.say(event.text)
        self.note_command(event.command)
        if project is not None and event.run_id is not None and event.project_id in (None, project.project_id):
            project.select_run(event.run_id)
            # Whoever went to another tab while a run was being started stays there.
            if event.tab and event.asked_in in (None, project.tab):
                await project.action_show_tab(event.tab)
        elsewhere = project is not None and project is self.screen and event.project_id != project.project_id
        # The project is opened only if the user is at the list of projects or in another project, not inside a dialog.
        if event.project_id is not None and (len(self.screen_stack) == 1 or elsewhere):
            if elsewhere:
                await self.pop_screen()
            await self.open_project(event.project_id, event.run_id, event.tab)
            if event.is_import and isinstance(self.screen, ProjectScreen):
                self.screen.ask_roles()
        self.refresh_page()

    @on(FileFormatDetected)
    async def _ask_file_format(self, event: FileFormatDetected) -> None:
        """Ask how a file is read before it is stored."""
        self.reading_notice.end()
        from ..session import jobs
        from .reading import ReadingForm, format_from_answers

        def import_as_answered(answers: dict[str, Any] | None) -> None:
            """Preview the rows of the file in the chosen format."""
            if answers is not None:
                said = format_from_answers(answers)
                self.reading_notice.begin(event.file)
                self.job(partial(jobs.preview_import, self.directory, event.file, event.project, said))

        await self.open(ReadingForm(Path(event.file).name, event.head, event.detection), import_as_answered)

    @on(ColumnsAsked)
    async def _ask_columns(self, event: ColumnsAsked) -> None:
        """Show the first rows, and ask what the columns with a question are, before the file is stored."""
        self.reading_notice.end()
        from ..session import jobs
        from ..session.importing import selection_from_answers
        from .columns_form import ColumnsForm

        def import_with_kinds(answers: dict[str, Any] | None) -> None:
            """Import the file with the columns as answered."""
            if answers is not None:
                selection = selection_from_answers(event.preview, answers)
                self.reading_notice.begin(event.file)
                self.job(
                    partial(
                        jobs.import_file, self.directory, event.file, event.project, event.format_settings, selection
                    )
                )

        await self.open(ColumnsForm(event.preview), import_with_kinds)

    @on(WorkspaceOpened)
    async def _show_opened_workspace(self, event: WorkspaceOpened) -> None:
        """Show the list of projects of another workspace."""
        self._workspace.close()
        self.directory = event.directory
        # Numbers of runs are those of the workspace, so answers of the gate must not be kept.
        self.gate_memory, self.dial_memory, self.lever_memory = GateMemory(), DialMemory(), LeverMemory()
        self._workspace = Workspace.open(self.directory, read_only=True)
        self._version = self._workspace.data_version
        self._watch = EndedRunWatch()
        # Theme and notification are choices of the user, everything else is of the workspace.
        self.state = replace(load_state(self.directory), theme=self.state.theme, notify=self.state.notify)
        self.refresh_page()

    @on(ErrorMessage)
    def _show_error(self, event: ErrorMessage) -> None:
        """Show an error, and end the notice about a file being read."""
        self.reading_notice.end()
        self.say(event.text, severity="error")

    def say(self, text: str, severity: Any = "information", seconds: float | None = None) -> None:
        """Show a message for some seconds, and store it in the list of messages."""
        text = replace_unprintable_in_lines(text)
        self.notices.append(text)
        self.notify(text, severity=severity, timeout=seconds, markup=False)

    def get_system_commands(self, screen: Screen[Any]) -> Iterable[SystemCommand]:
        """Yield the entries of the palette."""
        from .palette import palette_commands

        yield from palette_commands(self, screen)


def _initial_state(directory: Path, run_id: int | None) -> AppState:
    """Return the saved state, changed to the requested run if there is one. Raises NotAWorkspace and NotFound."""
    with Workspace.open(directory, read_only=True) as workspace:
        state = load_state(directory)
        if run_id is not None:
            line = summarise_run(workspace, find_run(workspace, run_id).id)
            ended = "verdicts" if line.verdicts.total else "results"
            tab = ended if line.run.state.is_final else "runs"
            return replace(state, project=line.run.project_id, run=run_id, tab=tab, row="")
        # The project may have been deleted by another session.
        known = workspace.connection.execute("SELECT 1 FROM project WHERE id = ?", (state.project,)).fetchone()
        return state if known else replace(state, project=None, run=None)


def launch_app(directory: Path, run_id: int | None = None, mouse: bool = True) -> None:
    """Run the app on a workspace until the user quits; ``run_id`` is the run to show first.

    Raises NotAWorkspace, and NotFound if there is no such run.
    """
    # The limit has to be set before the first thread is started.
    limit_malloc_arenas()
    app = SfumatoApp(directory, run_id)
    app.owns_process = True
    gc.set_threshold(*GC_THRESHOLDS)
    sys.setswitchinterval(SWITCH_SECONDS)
    double_paint_rate()
    share_styles()
    app.run(mouse=mouse)
