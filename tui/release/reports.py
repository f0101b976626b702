"""The report of a run without a release: where to, and for whom."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from sfumato.engine.errors import BadInput
from sfumato.tui.parts.fields import Field
from sfumato.tui.session import jobs
from sfumato.tui.session.app_protocol import AppProtocol
from sfumato.workspace.policy.disclosure import INTERNAL

from ..parts.form import Form

FOR = ("internal", "public")
MEANT = f"{INTERNAL}; public: a page for users of the data, with what the policy of the workspace lets out"


def report_form(app: AppProtocol, run_id: int) -> tuple[Form, Callable[[dict[str, Any] | None], None]]:
    """The form that asks for a file, and what is done with its answer."""
    fields = [
        Field(
            "file", "an HTML file that is not there yet; right completes the path", paths=True, value=proposed(run_id)
        ),
        Field("for", MEANT, value=FOR[0], choices=FOR),
    ]

    def answered(table: dict[str, Any] | None) -> None:
        if table is not None:
            file, public = Path(table["file"]).expanduser().absolute(), table["for"] == FOR[1]
            app.say(f"The report of run {run_id} is being written")
            app.job(partial(jobs.write_report, app.directory, run_id, file, public=public))

    return Form(f"Report of run {run_id}", fields, check_report, topic="commands sfumato report"), answered


def proposed(run_id: int) -> str:
    """A file in the working directory whose name is free."""
    names = (f"run-{run_id}-report{suffix}.html" for suffix in ("", *(f"-{number}" for number in range(2, 1000))))
    return str(
        next((path for path in map(Path.cwd().joinpath, names) if not path.exists()), Path.cwd() / "report.html")
    )


def check_report(table: dict[str, Any]) -> None:
    """BadInput unless a form names a file that can be made."""
    file = Path(table.get("file", "")).expanduser()
    if not table.get("file"):
        raise BadInput("file", "name a file, such as report.html")
    if file.exists():
        raise BadInput("file", f'"{file}" exists; name another file')
    if not file.absolute().parent.is_dir():
        raise BadInput("file", f'there is no directory "{file.parent}"')
