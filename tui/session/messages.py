"""Messages between screens: threads post them, and handlers change what is shown."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from textual.message import Message

if TYPE_CHECKING:
    from sfumato.workspace.ingest.dialects import DetectedFormat
    from sfumato.workspace.plan.drafts import PlanDraft
    from sfumato.workspace.reporting.released_file import ReleasedFileView
    from sfumato.workspace.service.importing import FilePreview


class WorkspaceChanged(Message, bubble=False):
    """Change of the workspace, made by any process; screens read it again."""


@dataclass
class ErrorMessage(Message):
    """Error that the app survives. The text holds no confidential value."""

    text: str


@dataclass
class JobDone(Message):
    """Result of a job that was started, resumed or stopped.

    text: what was done
    run_id: run to show
    worker: process that was started
    tab: tab in which the run is shown, if any
    project_id: project to open
    command: words of the equivalent command, where there is one
    is_import: whether the project has new data, whose variables have no roles yet
    asked_in: tab of a project in which the job was asked for; None outside of one
    """

    text: str
    run_id: int | None = None
    worker: subprocess.Popen[bytes] | None = None
    tab: str = ""
    project_id: int | None = None
    command: tuple[str, ...] = ()
    is_import: bool = False
    asked_in: str | None = None


@dataclass
class FileFormatDetected(Message):
    """Detected format of a text file that is to be imported into a project.

    head: first bytes of the file
    detection: how it is written, with reasons
    """

    file: str
    project: str
    head: bytes
    detection: DetectedFormat


@dataclass
class ColumnsAsked(Message):
    """Columns and first rows of a file that is to be imported into a project; some columns may have a question.

    format_settings: keys of ``[data.format]`` that the user has given; None where the file was read as detected
    preview: the file's columns, with its first records
    """

    file: str
    project: str
    format_settings: Mapping[str, Any] | None
    preview: FilePreview


@dataclass
class ReleasedColumnsRead(Message):
    """Columns of a released file that is to be evaluated by itself, each with its first values."""

    file: str
    columns: Mapping[str, tuple[str, ...]]


@dataclass
class ReleasedFileEvaluated(Message):
    """Result of the evaluation of one released file.

    view: what it shows
    columns: its columns, each with its first values
    answers: variables and limits as they were asked
    """

    view: ReleasedFileView
    columns: Mapping[str, tuple[str, ...]]
    answers: Mapping[str, Any]


@dataclass
class CompanionRunsOffered(Message):
    """Recipe to be run that names companions to be run with it."""

    recipe: str
    data: str | None
    companions: tuple[str, ...]


@dataclass
class KeymapLoaded(Message):
    """Keys that the user has changed, by name of binding."""

    keymap: dict[str, str]


@dataclass
class PlanSaved(Message):
    """Result of storing an edit of a plan; where it was not stored, ``error`` says why."""

    draft: PlanDraft
    error: str = ""


@dataclass
class WorkspaceOpened(Message):
    """Workspace that was opened and is ready to be shown."""

    directory: Path
