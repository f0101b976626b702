"""Files that another tool made, scored with a recipe or a project's plan: which recipe, the original, the released files."""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from sfumato.engine.errors import BadInput
from sfumato.tui.parts.fields import Field
from sfumato.tui.session import jobs
from sfumato.tui.session.app_protocol import AppProtocol
from sfumato.workspace.plan.drafts import Draft, draft_of
from sfumato.workspace.store.workspace import Workspace

from ..parts.form import Form

PLAN = "the plan of this project"


def evaluation_form(app: AppProtocol, draft: Draft | None) -> tuple[Form, Callable[[dict[str, Any] | None], None]]:
    """The form, for the plan of a project where there is one, and what is done with its answer."""
    original = _original(draft)
    fields = [
        Field("recipe", "a recipe file, or one that ships; right completes the path", value=PLAN if draft else None, paths=True),
        Field("original", "the confidential file; right completes the path", value=original or None, paths=True),
        Field(
            "released",
            "the files made of it, with commas between them; syn*.csv means all that are called so",
            "list",
            paths=True,
        ),
    ]  # fmt: skip

    def answered(table: dict[str, Any] | None) -> None:
        if table is not None:
            app.say("The files are being read")
            plan = draft if draft is not None and table["recipe"] == PLAN else None
            recipe, released = str(table["recipe"]), _released(table)
            app.job(partial(jobs.evaluate, app.directory, recipe, str(table["original"]), released, plan))

    return Form(
        "Evaluate files of another tool", fields, partial(check_evaluation, draft), topic="commands sfumato evaluate"
    ), answered


def draft_in(project_id: int, workspace: Workspace) -> Draft | None:
    return draft_of(workspace, project_id)


def _original(draft: Draft | None) -> str:
    """The file that the plan names, where it is still there."""
    try:
        data = {} if draft is None else tomllib.loads(draft.toml).get("data", {})
    except tomllib.TOMLDecodeError:
        return ""
    file = data.get("file", "") if isinstance(data, Mapping) else ""
    return file if isinstance(file, str) and Path(file).is_file() else ""


def _released(table: Mapping[str, Any]) -> Sequence[str]:
    return [str(one) for one in table.get("released", [])]


def check_evaluation(draft: Draft | None, table: dict[str, Any]) -> None:
    """BadInput unless a form names a recipe and files that are there. What is in them, the run is asked."""
    from sfumato.workspace.ingest.files import files_matching
    from sfumato.workspace.recipes import find_recipe

    recipe, original = str(table.get("recipe", "")), str(table.get("original", ""))
    if not recipe:
        raise BadInput("recipe", "name a recipe file, or one that ships")
    if draft is None or recipe != PLAN:
        find_recipe(recipe)
    if not Path(original).expanduser().is_file() or not original:
        raise BadInput("original", f'no such file "{original}"' if original else "name the confidential file")
    released = files_matching(_released(table), "released")
    if not released:
        raise BadInput("released", "name the released files, such as syn*.csv")
    missing = next((file for file in released if not Path(file).is_file()), None)
    if missing is not None:
        raise BadInput("released", f'no such file "{missing}"')
