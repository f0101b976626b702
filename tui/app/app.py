"""The terminal app: two screens over a workspace. It shows; workers of their own compute."""

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
from typing import Any, ClassVar

from textual import events, on, work
from textual.app import SystemCommand
from textual.binding import Binding, BindingType
from textual.dom import DOMNode
from textual.message import Message
from textual.screen import Screen

from sfumato.workspace.errors import WorkspaceError
from sfumato.workspace.store.runs import RunState, find_run, run_line
from sfumato.workspace.store.workspace import Workspace
from sfumato.workspace.visible_text import replace_unprintable, replace_unprintable_in_lines

from ..keys.acts import KEYLESS, bind
from ..keys.own_keys import MODIFIERS, NAMES, key_for
from ..parts.page import TellsErrors
from ..session import jobs
from ..session.command_lines import REMEMBERED, Words, command_text
from ..session.gate_answers import GateMemory
from ..session.messages import (
    CompanionsNamed,
    ErrorMessage,
    FileLookedAt,
    JobDone,
    KeysRead,
    WorkspaceChanged,
    WorkspaceOpened,
)
from ..session.notification import LONG_SECONDS, WAYS, RunWatch, sequence, way_of
from ..session.places import keys_file
from ..session.reading_notice import ReadingNotice
from ..session.state import AppState, StateWriter, load_state
from ..terminal.beside_pictures import send
from ..terminal.device import HUNG_UP, terminal_is_there
from ..terminal.diff_output import DiffOutput
from ..terminal.key_queue import KeyQueue
from ..terminal.painting import SinglePaintScreen, paint_often, share_styles
from .memory import share_arenas
from .projects import Projects
from .themes import THEMES, first_theme

POLL_SECONDS = 1.0
POLLS_PER_SWEEP = 10
COLLECTED_AFTER = (10_000, 20, 20)
"""Allocations, and collections of younger objects, before Python looks for garbage: by default it holds up every key."""
COLLECTED_KEYS = 10
"""After so many keys it is looked for when nobody presses one."""
SWITCH_SECONDS = 0.0005
"""For how long a thread that computes may keep the event loop waiting: for each key it waits several times."""


class SfumatoApp(TellsErrors, DiffOutput, KeyQueue):
    alone = False
    """Whether the process is there for nothing but the app, which then may settle how its memory is looked after."""
    TITLE = "Sfumato"
    ALLOW_SELECT = False
    """A double click opens a row; Textual would also select text on the screen that comes, and cannot draw that yet."""
    CSS_PATH = "app.tcss"
    HORIZONTAL_BREAKPOINTS = [(0, "-narrow"), (100, "-normal"), (160, "-wide")]  # noqa: RUF012  (Textual declares it)
    VERTICAL_BREAKPOINTS = [(0, "-low"), (30, "-high")]  # noqa: RUF012
    BINDINGS: ClassVar[list[BindingType]] = [
        bind("keys", "keys", "Keys", show=True),
        bind("manual", "manual"),
        bind("close", "close_place", "Close", show=True),
        bind("back", "leave"),
        bind("palette", "command_palette", priority=True),
        bind("command", "command_line"),
        bind("redraw", "redraw"),
        bind("commands", "commands"),
        bind("audit", "audit"),
        bind("new", "new_run", "New run"),
        bind("import", "import"),
        bind("evaluate", "evaluate"),
        bind("doctor", "doctor"),
        bind("computing", "computing"),
        bind("theme", "change_theme"),
        bind("next_pane", "focus_next"),
    ]

    def __init__(self, directory: Path, run_id: int | None = None) -> None:
        """Raises NotAWorkspace, and NotFound where there is no such run."""
        super().__init__(ansi_color=True if "NO_COLOR" in os.environ else None)
        self.directory = directory
        self.state = _first_state(directory, run_id)
        self.reading_notice = ReadingNotice(self)
        self.gate_memory = GateMemory()
        self.notices: list[str] = []
        self._commands: deque[str] = deque(maxlen=REMEMBERED)
        self._started: list[subprocess.Popen[bytes]] = []
        self.own_keys: Mapping[str, str] = {}
        self._keeper = StateWriter()
        self._polls = self._spared = 0
        self._watch = RunWatch()
        self._keys_seen = self._keys_collected = 0
        self._use_own_themes()
        if os.environ.get("SSH_CONNECTION") or os.environ.get("SSH_TTY"):
            self.animation_level = "none"

    def _use_own_themes(self) -> None:
        for theme in THEMES.values():
            self.register_theme(theme)
        self.theme = first_theme(self.state.theme, no_color=self.no_color)
        for name in set(self.available_themes) - set(THEMES):
            self.unregister_theme(name)

    def get_default_screen(self) -> Screen[Any]:
        """The root is the list of projects."""
        return Projects()

    async def on_mount(self) -> None:
        """Open what was open, and look for changes once a second."""
        self._workspace = Workspace.open(self.directory, read_only=True)
        self._version = self._workspace.data_version
        self._watch.ended(self._workspace.connection)
        self._has_terminal = not self.is_headless and terminal_is_there()
        self.set_interval(POLL_SECONDS, self._poll)
        self.app_resume_signal.subscribe(self, lambda _: self.action_redraw())
        self.theme_changed_signal.subscribe(self, lambda theme: self.remember(theme=theme.name))
        self.call_after_refresh(self._import_screens)
        if self.state.project is not None:
            await self.open_project(self.state.project, self.state.run, self.state.tab)

    @work(thread=True, exit_on_error=False)
    def _import_screens(self) -> None:
        """The first picture does not wait for the other screens, nor the first key after it."""
        importlib.import_module("sfumato.tui.app.project")
        self._spare_modules()
        self._read_keys()

    def _spare_modules(self) -> None:
        """Never look for garbage in what modules have brought: going through numerical libraries takes 50 ms."""
        if self.alone and len(sys.modules) > self._spared:
            self._spared = len(sys.modules)
            gc.freeze()

    def _collect_when_idle(self) -> None:
        """Look for garbage once nobody has pressed a key for a second: a screen that was closed is some, and would pile up."""
        keys, before = self.keys_taken, self._keys_seen
        self._keys_seen = keys
        if self.alone and keys == before and keys - self._keys_collected >= COLLECTED_KEYS:
            self._keys_collected = keys
            gc.collect()

    def _read_keys(self) -> None:
        """The user's own keys, which need every screen to be known."""
        file = keys_file()
        if not file.exists():
            return
        from ..keys.keymap import BadKeymap, read_keymap

        try:
            self.post_message(KeysRead(read_keymap(file)))
        except BadKeymap as error:
            self.post_message(ErrorMessage(f"{error}. The keys are as they come"))

    @on(KeysRead)
    def _take_keys(self, event: KeysRead) -> None:
        self.set_keymap(event.keymap)

    def set_keymap(self, keymap: Mapping[str, str]) -> None:
        self.own_keys = keymap
        super().set_keymap(keymap)

    def on_unmount(self) -> None:
        self._workspace.close()
        self._keeper.close()

    def _poll(self) -> None:
        """Have the screens read again when somebody wrote, and now and then in case a worker has died."""
        if self._has_terminal and not terminal_is_there():
            self._keeper.close()
            os._exit(HUNG_UP)
        self._spare_modules()
        self._collect_when_idle()
        self._polls += 1
        version = self._workspace.data_version
        if version != self._version or self._polls % POLLS_PER_SWEEP == 0:
            self._version = version
            self._started = [worker for worker in self._started if worker.poll() is None]
            way = way_of(os.environ, self.state.notify, otherwise="bell")
            send(self, sequence(way, self._watch.ended(self._workspace.connection), in_tmux="TMUX" in os.environ))
            self.refresh_page()

    def refresh_page(self) -> None:
        """Have the screen read the workspace again. Those below do so when they are back: Textual would paint them now."""
        if self.screen_stack:  # none is left while the app ends
            self.screen.post_message(WorkspaceChanged())

    def remember(self, **changes: Any) -> None:
        """Change what is kept between sessions, and write it down."""
        state = replace(self.state, **changes)
        if state != self.state:
            self.state = state
            self._keeper.keep(self.directory, state)

    async def open(self, screen: SinglePaintScreen[Any], answered: Callable[[Any], None] | None = None) -> None:
        """Show a screen above the others, painted once rather than at every step of its mounting."""
        with self.batch_update():
            screen.fit(self.size)
            await self.push_screen(screen, answered)

    async def open_project(self, project_id: int, run_id: int | None = None, tab: str = "runs") -> None:
        """Show a project above the list of projects."""
        from .project import Project

        row = self.state.row if project_id == self.state.project else ""
        self.remember(project=project_id, run=run_id, tab=tab, row=row)
        await self.open(Project(project_id, run_id, tab))

    def action_redraw(self) -> None:
        """Paint the whole screen again, whatever another program has left on it."""
        self.forget_image()
        self.screen.refresh()

    def get_key_display(self, binding: Binding) -> str:
        """Keys by name where their sign is in few fonts; none for an act without a key."""
        if binding.key.startswith(KEYLESS):
            return ""
        return NAMES.get(binding.key) or super().get_key_display(binding)

    async def on_key(self, event: events.Key) -> None:
        """Say so where a key does nothing: no widget has typed it, and no act of this place has it."""
        active = self.screen.active_bindings.get(event.key)
        if event.key not in MODIFIERS and (active is None or not active.enabled):
            from ..manual.help import does_nothing

            self.clear_notifications()
            self.say(f"{does_nothing(event.key)}; {key_for(self, 'keys')} lists the keys that do", seconds=2)

    async def action_close_place(self) -> None:
        """Close the screen; at the top ask whether to quit when something runs."""
        if len(self.screen_stack) > 1:
            await self._close_screen()
            return
        await self._quit_after_asking()

    async def action_quit(self) -> None:
        """``ctrl+q``: the same question as at the top, wherever the app is."""
        await self._quit_after_asking()

    async def _quit_after_asking(self) -> None:
        """Quit; ask first where a run would go on or text would be lost."""
        unsaved = self._unsaved()
        running = self._unended()
        if not running and not unsaved:
            self.exit()
            return
        from ..parts.dialogs import Confirm

        if isinstance(self.screen, Confirm):
            self.exit()
            return
        one = len(running) == 1
        names = f"Run {running[0]} keeps" if one else f"Runs {', '.join(map(str, running))} keep"
        said = [unsaved] if unsaved else []
        said += [f"{names} running if you quit."] if running else []
        question = Confirm("Quit Sfumato?", " ".join(said), "Quit")
        await self.open(question, lambda yes: self.exit() if yes else None)

    def _unsaved(self) -> str:
        """What of the screens would be lost, in a sentence; empty where nothing would."""
        return next(filter(None, (getattr(screen, "unsaved", "") for screen in self.screen_stack)), "")

    def _unended(self) -> list[int]:
        """The runs that have not ended."""
        rows = self._workspace.connection.execute("SELECT id, state FROM run ORDER BY id")
        return [int(row[0]) for row in rows if not RunState(row[1]).ended]

    async def _close_screen(self) -> None:
        """Leave the screen; ask first where what was typed there would be lost."""
        unsaved = str(getattr(self.screen, "unsaved", ""))
        if not unsaved:
            await self._leave_screen()
            return
        from ..parts.dialogs import Confirm

        question = Confirm("Discard the text?", unsaved, "Discard")

        def answered(yes: bool | None) -> None:
            if yes:
                self.call_later(self._leave_screen)

        await self.open(question, answered)

    async def _leave_screen(self) -> None:
        await self.pop_screen()
        self.remember(project=None)

    async def action_leave(self) -> None:
        """Leave the screen; from the list of projects nothing is left by accident."""
        if len(self.screen_stack) == 1:
            self.say(f"{key_for(self, 'close')} quits; runs keep running")
        else:
            await self._close_screen()

    async def action_keys(self) -> None:
        """List the acts of this place, and run one."""
        from ..manual.help import HelpAct, Keys, acts_here

        if isinstance(self.screen, Keys):
            return

        def answered(chosen: HelpAct | None) -> None:
            if chosen is not None and chosen.run is not None:
                self.call_later(self.run_action, *chosen.run)

        await self.open(Keys(acts_here(self.screen)), answered)

    def action_command_palette(self) -> None:
        """Show the palette, once."""
        from .palette import Palette

        if not isinstance(self.screen, Palette):
            self.push_screen(Palette(id="--command-palette"))

    async def action_command_line(self) -> None:
        """Take a command by name, such as ``runs failed``, and do it."""
        from .command_line import Command, CommandLine

        def answered(found: Command | None) -> None:
            if found is not None:
                self.call_later(self._command, found.act, found.words, found.run.run)

        if not isinstance(self.screen, CommandLine):
            await self.open(CommandLine(self.screen), answered)

    async def _command(self, act: str, words: str, run: tuple[str, DOMNode] | None) -> None:
        """Do an act; the words behind it are rows to show, a run, a theme or a topic of the manual."""
        from ..manual.manual import Manual

        if words and act == "theme":
            if words not in THEMES:
                self.say(f"There is no theme {words}: {', '.join(THEMES)}")
                return
            self.theme = words
        elif words and act == "manual":
            await self.open(Manual((words,)))
        elif words and (take := getattr(self.screen, "take_words", None)) is not None:
            await take(act, words)
        elif words:
            self.say(f"{act.replace('_', '-')} takes no words here")
        elif run is not None:
            await self.run_action(*run)

    async def action_manual(self) -> None:
        """Open the manual at the page that fits what has the focus."""
        from ..manual.manual import Manual, topics_here

        if not isinstance(self.screen, Manual):
            await self.open(Manual(topics_here(self.screen_stack)))

    def action_when_run_ends(self) -> None:
        """Choose what happens when a run ends: nothing, the bell, a message of the desktop."""
        ways = list(WAYS)
        now = way_of(os.environ, self.state.notify, otherwise="bell")
        self.remember(notify=ways[(ways.index(now) + 1) % len(ways)])
        self.say(f"When a run ends that took {LONG_SECONDS:.0f} seconds or more: {WAYS[self.state.notify]}")

    async def action_computing(self) -> None:
        """Say where runs are computed, and in how much memory, until the app is left."""
        from .computing import computing_form

        await self.open(*computing_form(self.say))

    def action_keys_file(self) -> None:
        self.say(f"{keys_file()} changes keys; sfumato keys prints one to start from")

    async def action_notices(self) -> None:
        """Show what was said in this session."""
        from ..parts.dialogs import Notices

        await self.open(Notices(self.notices))

    async def action_audit(self) -> None:
        """Show every act that changed the workspace, and whether the list was changed."""
        from .audit import Audit

        await self.open(Audit())

    async def action_new_run(self) -> None:
        from ..parts.dialogs import NewRun

        def start(answer: tuple[str, str | None] | None) -> None:
            if answer is not None:
                self.job(partial(jobs.look_at_recipe, self.directory, *answer))

        await self.open(NewRun(), start)

    @on(CompanionsNamed)
    async def _ask_for_companions(self, event: CompanionsNamed) -> None:
        """Ask whether a recipe is run with those it names."""
        from ..parts.dialogs import Choose

        several = "companions" if len(event.companions) > 1 else "companion"
        answers = (f"with its {several}: {', '.join(event.companions)}", "alone")
        starts = (jobs.run_together, jobs.run_recipe)

        def answered(place: int | None) -> None:
            if place is not None:
                self.job(partial(starts[place], self.directory, event.recipe, event.data))

        await self.open(Choose(f"Run {event.recipe}", 2, answers.__getitem__, 0), answered)

    async def action_evaluate(self) -> None:
        """Ask for files of another tool, and score them."""
        from .evaluation import draft_in, evaluation_form
        from .project import Project

        project = next((screen for screen in self.screen_stack if isinstance(screen, Project)), None)
        draft = None if project is None else draft_in(project.project_id, self._workspace)
        await self.open(*evaluation_form(self, draft))

    def note_command(self, words: Words) -> None:
        """Remember the command that does what was just done."""
        if words:
            self._commands.append(command_text(self.directory, words))

    def note_change(self, text: str) -> None:
        """Remember the line of a recipe that was just changed."""
        self._commands.append(replace_unprintable(text))

    async def action_commands(self) -> None:
        """Show the commands that equal what is shown and what was done."""
        from .commands import Commands

        if isinstance(self.screen, Commands):
            return
        words: Words = getattr(self.screen, "command_words", tuple)()
        await self.open(Commands(command_text(self.directory, words) if words else "", tuple(self._commands)))

    async def action_doctor(self) -> None:
        """Check installation, terminal and workspace."""
        from .doctor import Doctor

        if not isinstance(self.screen, Doctor):
            await self.open(Doctor())

    async def action_import(self) -> None:
        """Ask for a file, and bring it into a project."""
        root = self.screen_stack[0]
        assert isinstance(root, Projects)
        await root.action_import()

    def run_again(self, run_id: int) -> None:
        self.job(partial(jobs.run_again, self.directory, run_id))

    def resume(self, run_id: int) -> None:
        self.job(partial(jobs.resume, self.directory, run_id))

    def interrupt(self, run_id: int) -> None:
        self.job(partial(jobs.interrupt, self.directory, run_id))

    @work(thread=True, group="jobs", exit_on_error=False)
    def job(self, task: Callable[[], Message]) -> None:
        """Do something to the workspace, off the event loop."""
        from sfumato.engine.errors import EngineError

        try:
            self.post_message(task())
        except (EngineError, WorkspaceError, OSError) as error:
            self.post_message(ErrorMessage(str(error)))

    @on(JobDone)
    async def _job_done(self, event: JobDone) -> None:
        from .project import Project

        if event.worker is not None:
            self._started.append(event.worker)
        self.reading_notice.end()
        self.say(event.text)
        self.note_command(event.command)
        project = next((screen for screen in self.screen_stack if isinstance(screen, Project)), None)
        if project is not None and event.run_id is not None and event.project_id in (None, project.project_id):
            project.look_at(event.run_id)
            if event.tab:
                await project.action_show_tab(event.tab)
        elsewhere = project is not None and project is self.screen and event.project_id != project.project_id
        if event.project_id is not None and (len(self.screen_stack) == 1 or elsewhere):
            if elsewhere:
                await self.pop_screen()
            await self.open_project(event.project_id, event.run_id, event.tab)
            if event.imported and isinstance(self.screen, Project):
                self.screen.ask_roles()
        self.refresh_page()

    @on(FileLookedAt)
    async def _file_looked_at(self, event: FileLookedAt) -> None:
        """Ask how a file is read before it is stored."""
        self.reading_notice.end()
        from ..session import jobs
        from .reading import Reading, asked_format

        def answered(answers: dict[str, Any] | None) -> None:
            if answers is not None:
                said = asked_format(answers)
                self.reading_notice.begin(event.file)
                self.job(partial(jobs.import_file, self.directory, event.file, event.project, said))

        await self.open(Reading(Path(event.file).name, event.head, event.found), answered)

    @on(WorkspaceOpened)
    async def _workspace_opened(self, event: WorkspaceOpened) -> None:
        """Look at another workspace, from its list of projects."""
        self._workspace.close()
        self.directory = event.directory
        self.gate_memory = GateMemory()
        self._workspace = Workspace.open(self.directory, read_only=True)
        self._version = self._workspace.data_version
        self._watch = RunWatch()
        self.state = replace(load_state(self.directory), theme=self.state.theme, notify=self.state.notify)
        self.refresh_page()

    @on(ErrorMessage)
    def _trouble(self, event: ErrorMessage) -> None:
        self.reading_notice.end()
        self.say(event.text, severity="error")

    def say(self, text: str, severity: Any = "information", seconds: float | None = None) -> None:
        """Show a message for a while, and keep it."""
        text = replace_unprintable_in_lines(text)
        self.notices.append(text)
        self.notify(text, severity=severity, timeout=seconds, markup=False)

    def get_system_commands(self, screen: Screen[Any]) -> Iterable[SystemCommand]:
        from .palette import commands

        yield from commands(self, screen)


def _first_state(directory: Path, run_id: int | None) -> AppState:
    """The saved state, or the run that was asked for. Raises NotAWorkspace and NotFound."""
    with Workspace.open(directory, read_only=True) as workspace:
        state = load_state(directory)
        if run_id is not None:
            line = run_line(workspace, find_run(workspace, run_id).id)
            ended = "verdicts" if line.tally.total else "results"
            tab = ended if line.run.state.ended else "runs"
            return replace(state, project=line.run.project_id, run=run_id, tab=tab, row="")
        known = workspace.connection.execute("SELECT 1 FROM project WHERE id = ?", (state.project,)).fetchone()
        return state if known else replace(state, project=None, run=None)


def launch(directory: Path, run_id: int | None = None, mouse: bool = True) -> None:
    """Run the app on a workspace until the user leaves; ``run_id`` is the run to look at first.

    Raises NotAWorkspace, and NotFound where there is no such run.
    """
    share_arenas()
    app = SfumatoApp(directory, run_id)
    app.alone = True
    gc.set_threshold(*COLLECTED_AFTER)
    sys.setswitchinterval(SWITCH_SECONDS)
    paint_often()
    share_styles()
    app.run(mouse=mouse)
