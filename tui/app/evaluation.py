"""Form to evaluate files of another tool with a recipe or a project's plan."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from sfumato.engine.data.toml import read_toml
from sfumato.engine.errors import BadInput
from sfumato.tui.parts.fields import FormField
from sfumato.tui.session import jobs
from sfumato.tui.session.app_protocol import AppProtocol
from sfumato.workspace.plan.drafts import PlanDraft, find_draft
from sfumato.workspace.store.workspace import Workspace

from ..parts.form import Form

PLAN = "the plan of this project"


def evaluation_form(app: AppProtocol, draft: PlanDraft | None) -> tuple[Form, Callable[[dict[str, Any] | None], None]]:
    """Return the form, for the plan of a project if there is one, and the function that handles its answer."""
    original = _original_file(draft)
    fields = [
        FormField("recipe", "a recipe file, or one that ships; right completes the path", value=PLAN if draft else None, completes_paths=True),
        FormField("original", "the confidential file; right completes the path", value=original or None, completes_paths=True),
        FormField(
            "released",
            "the files made of it, with commas between them; syn*.csv means all that are called so",
            "list",
            completes_paths=True,
        ),
    ]  # fmt: skip

    def start_evaluation(table: dict[str, Any] | None) -> None:
        """Start the evaluation with the answers of the form."""
        if table is not None:
            app.say("The files are being read")
            plan = draft if draft is not None and table["recipe"] == PLAN else None
            recipe, released = str(table["recipe"]), _released_files(table)
            app.job(partial(jobs.evaluate_files, app.directory, recipe, str(table["original"]), released, plan))

    return Form(
        "Evaluate files of another tool", fields, partial(check_evaluation, draft), topic="commands sfumato evaluate"
    ), start_evaluation


def project_draft(project_id: int, workspace: Workspace) -> PlanDraft | None:
    """Return the plan of a project; None without one."""
    return find_draft(workspace, project_id)


def _original_file(draft: PlanDraft | None) -> str:
    """Return the file that the plan names, if it still exists; otherwise empty."""
    try:
        data = {} if draft is None else read_toml(draft.toml).get("data", {})
    except BadInput:
        return ""
    file = data.get("file", "") if isinstance(data, Mapping) else ""
    # Imported data outlive their file, which may have been moved or deleted.
    return file if isinstance(file, str) and Path(file).is_file() else ""


def _released_files(table: Mapping[str, Any]) -> Sequence[str]:
    """Return the patterns of released files."""
    return [str(one) for one in table.get("released", [])]


def check_evaluation(draft: PlanDraft | None, table: dict[str, Any]) -> None:
    """Raise BadInput unless a form names a recipe and existing files. Their contents are checked by the run."""
    from sfumato.workspace.ingest.files import expand_file_patterns
    from sfumato.workspace.recipes import find_recipe

    recipe, original = str(table.get("recipe", "")), str(table.get("original", ""))
    if not recipe:
        raise BadInput("recipe", "name a recipe file, or one that ships")
    if draft is None or recipe != PLAN:
        find_recipe(recipe)
    if not Path(original).expanduser().is_file() or not original:
        raise BadInput("original", f'no such file "{original}"' if original else "name the confidential file")
    released = expand_file_patterns(_released_files(table), "released")
    if not released:
        raise BadInput("released", "name the released files, such as syn*.csv")
    missing = next((file for file in released if not Path(file).is_file()), None)
    if missing is not None:
        raise BadInput("released", f'no such file "{missing}"')
