"""Projects: list, open, the demo, a file imported."""

from __future__ import annotations

from pathlib import Path

from sfumato.engine.errors import BadInput
from sfumato.engine.wording import count_noun
from sfumato.workspace.store.runs import Project, find_run, projects

from .run_words import state_text
from .runs import carry_on
from .session import Entry, Menu, Session
from .talk import NotPossible

DEMO = "randhie"


def list_projects(session: Session) -> None:
    """Every project in a line, the one with the newest run first."""
    known = projects(session.workspace)
    session.talk.say(f"{count_noun(len(known), 'project')}." if known else "No project yet.")
    session.talk.list([project_line(session, one) for one in known])


def project_line(session: Session, project: Project) -> str:
    """``visits, 1 dataset, 2 runs; run 2 is done: all 3 thresholds are met``."""
    newest = (
        "" if project.last is None else f"; run {project.last.run.id} is {state_text(session.workspace, project.last)}"
    )
    here = ", open" if project.id == session.project_id else ""
    return f"{project.name}{here}, {count_noun(project.datasets, 'dataset')}, {count_noun(project.runs, 'run')}{newest}"


def open_project(session: Session) -> None:
    """Make a project the one that all places speak of."""
    known = projects(session.workspace)
    if not known:
        raise NotPossible("there is no project. Run the demo or import a file first.")
    session.talk.list([project_line(session, one) for one in known])
    session.open_project(known[session.talk.choose("Which project?", [one.name for one in known])])


def run_demo(session: Session) -> None:
    """Run the study that ships, and follow it to its end."""
    from sfumato.workspace.recipes import find_recipe
    from sfumato.workspace.service.prepare import prepare_run

    if not session.talk.confirm("Run the demo, a study of 20,190 person-years? It takes about a minute.", default=True):
        return
    prepared = prepare_run(find_recipe(DEMO), key=session.workspace.key())
    session.open_run(find_run(session.workspace, prepared.enter(session.workspace)))
    carry_on(session)


def import_a_file(session: Session) -> None:
    """Bring a file into a project, and describe its columns."""
    from sfumato.workspace.reporting.reading import doubt_lines
    from sfumato.workspace.reporting.words import records_text
    from sfumato.workspace.service.importing import EVERYTHING

    from ..session.importing import import_apart, left_out_lines

    talk = session.talk
    file = talk.ask("Which file?", "a path", _existing)
    talk.say(f"File: {file}.")
    project = talk.ask("Into which project?", "the name of a project, new or not", str, Path(file).stem)
    talk.say(f"Project: {project}. The file is read; this can take a minute.")
    found = import_apart(session.workspace.directory, file, project, {}, EVERYTHING)
    talk.say(f"{found.source}: {records_text(found.records, found.dropped)} in project {found.project}.")
    talk.say_all(list(found.notes))
    if found.detection is not None:
        talk.say_all(doubt_lines(found.detection))
    for column in found.columns:
        if column.enters:
            about = (
                f"{column.variable.kind}, {count_noun(column.missing, 'missing value')}, {column.distinct:,} different"
            )
            talk.say(f"{column.variable.name}: {about}.")
    talk.say_all(left_out_lines(found.columns))
    session.open_project(next(one for one in projects(session.workspace) if one.id == found.project_id))
    talk.say("Kinds are guesses. Data corrects them and gives each variable a role; then Plan drafts the steps.")


def _existing(answer: str) -> str:
    """A path that leads to a file; a sheet or a member may stand behind a colon."""
    path = Path(answer).expanduser()
    if not path.exists() and ":" not in answer:
        raise BadInput("", f'There is no file "{answer}".')
    return str(path)


MENU = Menu(
    "Projects",
    "list, open and begin projects",
    (
        Entry("List projects", "each with its newest run", list_projects),
        Entry("Open a project", "all places then speak of it", open_project),
        Entry("Run the demo", "a study that ships, of 20,190 person-years", run_demo),
        Entry("Import a file", "text, Excel, SPSS, Stata, SAS or Parquet", import_a_file),
    ),
)
