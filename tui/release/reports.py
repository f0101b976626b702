"""Form for the report of a run without a release: its file and its audience."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from sfumato.engine.errors import BadInput
from sfumato.tui.parts.fields import FormField
from sfumato.tui.session import jobs
from sfumato.tui.session.app_protocol import AppProtocol
from sfumato.workspace.policy.disclosure import INTERNAL

from ..parts.form import Form

AUDIENCES = ("internal", "public")
AUDIENCE_HELP = f"{INTERNAL}; public: a page for users of the data, with what the policy of the workspace lets out"


def report_form(app: AppProtocol, run_id: int) -> tuple[Form, Callable[[dict[str, Any] | None], None]]:
    """Return the form that asks for a file, and the function that handles its answer."""
    fields = [
        FormField(
            "file",
            "a new HTML file; right completes the path",
            completes_paths=True,
            value=proposed_report_file(run_id),
        ),
        FormField("for", AUDIENCE_HELP, value=AUDIENCES[0], choices=AUDIENCES),
    ]

    def start_report(table: dict[str, Any] | None) -> None:
        """Write the report in a thread."""
        if table is not None:
            file, public = Path(table["file"]).expanduser().absolute(), table["for"] == AUDIENCES[1]
            app.say(f"The report of run {run_id} is being written")
            app.job(partial(jobs.write_report, app.directory, run_id, file, public=public))

    return Form(f"Report of run {run_id}", fields, check_report_form, topic="commands sfumato report"), start_report


def proposed_report_file(run_id: int) -> str:
    """Return a file in the working directory whose name is free."""
    return proposed_file(f"run-{run_id}-report")


def proposed_file(stem: str) -> str:
    """Return a page in the working directory whose name begins with ``stem`` and is free."""
    names = (f"{stem}{suffix}.html" for suffix in ("", *(f"-{number}" for number in range(2, 1000))))
    return str(
        next((path for path in map(Path.cwd().joinpath, names) if not path.exists()), Path.cwd() / "report.html")
    )


def check_report_form(table: dict[str, Any]) -> None:
    """Raise BadInput unless a form names a file that can be created."""
    file = Path(table.get("file", "")).expanduser()
    if not table.get("file"):
        raise BadInput("file", "name a file, such as report.html")
    if file.exists():
        raise BadInput("file", f'"{file}" exists; name another file')
    if not file.absolute().parent.is_dir():
        raise BadInput("file", f'there is no directory "{file.parent}"')
