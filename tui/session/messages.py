"""Messages that cross screens. Threads post them; handlers change what is shown."""

from __future__ import annotations

import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from textual.message import Message

if TYPE_CHECKING:
    from sfumato.workspace.ingest.dialects import Detection
    from sfumato.workspace.plan.drafts import Draft


class WorkspaceChanged(Message, bubble=False):
    """Somebody wrote to the workspace; what is shown should be read again."""


@dataclass
class ErrorMessage(Message):
    """Something went wrong; the app goes on. The text holds no confidential value."""

    text: str


@dataclass
class JobDone(Message):
    """A job was started, resumed or stopped; ``text`` says so, ``run_id`` is the run to look at, in the tab called ``tab``
    if any; ``project_id`` is a project to open, ``command`` the words of the command that does the same, where there is one.
    """

    text: str
    run_id: int | None = None
    worker: subprocess.Popen[bytes] | None = None
    tab: str = ""
    project_id: int | None = None
    command: tuple[str, ...] = ()
    imported: bool = False
    """Whether the project has new data, whose variables have no roles yet."""


@dataclass
class FileLookedAt(Message):
    """The first lines of a file of text that is to be imported into a project, and how they are written."""

    file: str
    project: str
    head: bytes
    found: Detection


@dataclass
class CompanionsNamed(Message):
    """A recipe that is to be run names others to be run beside it."""

    recipe: str
    data: str | None
    companions: tuple[str, ...]


@dataclass
class KeysRead(Message):
    """The user's own keys, by name of binding."""

    keymap: dict[str, str]


@dataclass
class PlanSaved(Message):
    """An edit of a plan was stored, unless ``error`` says why not."""

    draft: Draft
    error: str = ""


@dataclass
class WorkspaceOpened(Message):
    """Another workspace is ready to be looked at."""

    directory: Path
