"""Plain mode from its first line to its last: the places, the standard streams, how it ends."""

from __future__ import annotations

import sys
from typing import NoReturn

from sfumato.workspace.store.runs import find_run, projects
from sfumato.workspace.store.workspace import Workspace

from . import data, findings, plan, project_list, release, runs
from .session import Act, Entry, Menu, Session
from .talk import Ended, Talk

INTERRUPTED = 130
PLACES = (project_list.MENU, data.MENU, plan.MENU, runs.MENU, findings.MENU, release.MENU)
"""In the order of the work."""


def menus() -> Menu:
    """The menu of the places."""
    return Menu("Places", "the parts of Sfumato", [Entry(menu.name, menu.does, _into(menu)) for menu in PLACES])


def _into(menu: Menu) -> Act:
    def enter(session: Session) -> None:
        menu.enter(session)
        session.talk.say("Back in Places.")

    return enter


def begin(workspace: Workspace, run_id: int | None = None) -> int:
    """Talk on the standard streams until the end; the exit status: 0, 1 where a script was stopped, 130 after Ctrl-C."""
    if (reconfigure := getattr(sys.stdout, "reconfigure", None)) is not None:
        reconfigure(errors="backslashreplace")
    talk = Talk(sys.stdin.buffer, sys.stdout, script=not sys.stdin.isatty())
    try:
        converse(Session(talk, workspace), run_id)
    except Ended as ended:
        return ended.status
    except KeyboardInterrupt:
        talk.say("Interrupted; Sfumato ends.")
        return INTERRUPTED


def converse(session: Session, run_id: int | None = None) -> NoReturn:
    """The whole conversation; it ends by Ended or KeyboardInterrupt."""
    talk = session.talk
    talk.say(f"Sfumato, plain mode. Workspace: {session.workspace.directory}.")
    talk.say("Every question names its answers and its default; an empty line takes the default.")
    talk.say("The manual describes this mode: sfumato help plain.")
    known = projects(session.workspace)
    if run_id is not None:
        session.open_run(find_run(session.workspace, run_id))
        talk.say(f"Run {run_id} is open.")
    elif known:
        session.open_project(known[0])
    else:
        talk.say("No project yet. Projects runs the demo or imports a file.")
    places = menus()
    while True:
        places.enter(session)
        talk.say("This is the first menu; quit ends Sfumato.")
