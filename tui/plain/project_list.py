"""Menu Projects: list, open, the demo, import of a file."""

from __future__ import annotations

from functools import partial
from pathlib import Path

from sfumato.engine.errors import BadInput
from sfumato.engine.wording import count_noun
from sfumato.workspace.store.runs import ProjectSummary, find_run, list_project_summaries

from .run_words import run_outcome_text
from .runs import follow_open_run
from .session import MenuEntry, NumberedMenu, PlainSession
from .talk import ActNotPossible

DEMO = "randhie"


def list_projects(session: PlainSession) -> None:
    """Print every project in a line, the one with the newest run first."""
    known = list_project_summaries(session.workspace)
    session.conversation.say(f"{count_noun(len(known), 'project')}." if known else "No project yet.")
    session.conversation.print_numbered([project_line(session, one) for one in known])


def project_line(session: PlainSession, project: ProjectSummary) -> str:
    """Return a project on one line: ``visits, 1 dataset, 2 runs; run 2 is done: all 3 thresholds are met``."""
    newest = (
        ""
        if project.last is None
        else f"; run {project.last.run.id} is {run_outcome_text(session.workspace, project.last)}"
    )
    here = ", open" if project.id == session.project_id else ""
    return f"{project.name}{here}, {count_noun(project.datasets, 'dataset')}, {count_noun(project.runs, 'run')}{newest}"


def open_project(session: PlainSession) -> None:
    """Open a project, which all other menus are about."""
    known = list_project_summaries(session.workspace)
    if not known:
        raise ActNotPossible("there is no project. Run the demo or import a file first.")
    session.conversation.print_numbered([project_line(session, one) for one in known])
    session.open_project(known[session.conversation.choose("Which project?", [one.name for one in known])])


def run_demo(session: PlainSession) -> None:
    """Run the shipped study, and follow it to its end."""
    from sfumato.workspace.recipes import find_recipe
    from sfumato.workspace.service.prepare import prepare_run

    if not session.conversation.confirm(
        "Run the demo, a study of 20,190 person-years? It takes about a minute.", default=True
    ):
        return
    prepared = prepare_run(find_recipe(DEMO), key=session.workspace.read_workspace_key())
    session.open_run(find_run(session.workspace, prepared.enter(session.workspace)))
    follow_open_run(session)


def import_a_file(session: PlainSession) -> None:
    """Import a file into a project, and describe its columns."""
    from sfumato.workspace.reporting.reading import undecided_lines
    from sfumato.workspace.reporting.words import records_and_dropped_text

    from ..session.importing import (
        check_answer,
        column_remarks,
        import_in_process,
        import_or_ask_in_process,
        plain_question,
        proposed_answer,
        selection_from_answers,
    )

    talk = session.conversation
    file = talk.ask("Which file?", "a path", _check_path_exists)
    talk.say(f"File: {file}.")
    project = talk.ask("Into which project?", "the name of a project, new or not", str, Path(file).stem)
    talk.say(f"Project: {project}. The file is read; this can take a minute.")
    answered = import_or_ask_in_process(session.workspace.directory, file, project)
    found = answered.result
    if (preview := answered.preview) is not None:
        answers = {}
        for column in preview.asked_columns:
            name = column.variable.name
            talk.say(f"{name}: {plain_question(column)}. Its first values: {', '.join(preview.first_rows[name])}.")
            answers[name] = talk.ask(
                f"What is {name}?",
                "a kind, a form such as date:dd.mm.yyyy, or leave out",
                partial(check_answer, preview, name),
                proposed_answer(column),
            )
        selection = selection_from_answers(preview, answers)
        found = import_in_process(session.workspace.directory, file, project, {}, selection)
    assert found is not None
    talk.say(f"{found.source}: {records_and_dropped_text(found.records, found.dropped)} in project {found.project}.")
    talk.print_lines(list(found.notes))
    if found.detection is not None:
        talk.print_lines(undecided_lines(found.detection))
    for column in found.columns:
        # Columns that are left out are listed below with their reasons.
        if column.is_included:
            about = (
                f"{column.variable.kind}, {count_noun(column.missing, 'missing value')}, {column.distinct:,} different"
            )
            talk.say(f"{column.variable.name}: {about}.")
    talk.print_lines(column_remarks(found.columns))
    session.open_project(next(one for one in list_project_summaries(session.workspace) if one.id == found.project_id))
    talk.say("Kinds are guesses. Data corrects them and gives each variable a role; then Plan drafts the steps.")


def _check_path_exists(answer: str) -> str:
    """Return a path that exists. Raises BadInput."""
    path = Path(answer).expanduser()
    # A sheet of a workbook or a member of an archive may follow a colon.
    if not path.exists() and ":" not in answer:
        raise BadInput("", f'There is no file "{answer}".')
    return str(path)


MENU = NumberedMenu(
    "Projects",
    "list, open and begin projects",
    (
        MenuEntry("List projects", "each with its newest run", list_projects),
        MenuEntry("Open a project", "all places then speak of it", open_project),
        MenuEntry("Run the demo", "a study that ships, of 20,190 person-years", run_demo),
        MenuEntry("Import a file", "text, Excel, SPSS, Stata, SAS or Parquet", import_a_file),
    ),
)
