"""Start and end of plain mode: its menus, the standard streams, the exit status."""

from __future__ import annotations

import sys
from typing import NoReturn

from sfumato.workspace.store.runs import find_run, list_project_summaries
from sfumato.workspace.store.workspace import Workspace

from . import data, findings, plan, project_list, release, runs
from .session import MenuAct, MenuEntry, NumberedMenu, PlainSession
from .talk import Conversation, ConversationEnded

INTERRUPTED = 130
PLACE_MENUS = (project_list.MENU, data.MENU, plan.MENU, runs.MENU, findings.MENU, release.MENU)
"""In the order of the work."""


def places_menu() -> NumberedMenu:
    """Return the menu of the places."""
    return NumberedMenu(
        "Places",
        "the parts of Sfumato",
        [MenuEntry(menu.name, menu.description, _enter_menu(menu)) for menu in PLACE_MENUS],
    )


def _enter_menu(menu: NumberedMenu) -> MenuAct:
    """Return the act that enters a menu."""

    def enter(session: PlainSession) -> None:
        menu.run_menu(session)
        session.conversation.say("Back in Places.")

    return enter


def run_plain_mode(workspace: Workspace, run_id: int | None = None) -> int:
    """Run plain mode on the standard streams until it ends; return the exit status.

    It is 0, 1 where a script was stopped, 130 after Ctrl-C.
    """
    if (reconfigure := getattr(sys.stdout, "reconfigure", None)) is not None:
        # A character that the locale lacks must not end the conversation.
        reconfigure(errors="backslashreplace")
    talk = Conversation(sys.stdin.buffer, sys.stdout, script=not sys.stdin.isatty())
    try:
        hold_conversation(PlainSession(talk, workspace), run_id)
    except ConversationEnded as ended:
        return ended.status
    except KeyboardInterrupt:
        talk.say("Interrupted; Sfumato ends.")
        return INTERRUPTED


def hold_conversation(session: PlainSession, run_id: int | None = None) -> NoReturn:
    """Hold the whole conversation; it ends by ConversationEnded or KeyboardInterrupt."""
    talk = session.conversation
    talk.say(f"Sfumato, plain mode. Workspace: {session.workspace.directory}.")
    talk.say("Every question names its answers and its default; an empty line takes the default.")
    talk.say("The manual describes this mode: sfumato help plain.")
    known = list_project_summaries(session.workspace)
    if run_id is not None:
        session.open_run(find_run(session.workspace, run_id))
        talk.say(f"Run {run_id} is open.")
    elif known:
        session.open_project(known[0])
    else:
        talk.say("No project yet. Projects runs the demo or imports a file.")
    places = places_menu()
    while True:
        places.run_menu(session)
        talk.say("This is the first menu; quit ends Sfumato.")
