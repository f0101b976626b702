"""What the app does to a workspace. Called in threads: the engine is imported here, when it is first needed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sfumato.engine.wording import agreeing_word, count_noun
from sfumato.workspace.jobs.settings import JOBS
from sfumato.workspace.store.workspace import Workspace

from .command_lines import THEN, Words, computing_options, reading_options, whole_path
from .messages import CompanionsNamed, FileLookedAt, JobDone, PlanSaved, WorkspaceOpened

if TYPE_CHECKING:
    from sfumato.workspace.plan.drafts import Draft
    from sfumato.workspace.service.guided_minimisation import ProjectTable

DEMO = "randhie"


def run_again(directory: Path, run_id: int) -> JobDone:
    """Enter a run's recipe and data once more, with a worker. Raises NotFound."""
    from sfumato.workspace.jobs.runs import enter_again

    with Workspace.open(directory) as workspace:
        again = enter_again(workspace, run_id)
        return _started(workspace, again, f"Run {again} repeats run {run_id}", ("again", str(run_id)))


def run_recipe(directory: Path, recipe: str, data_file: str | None) -> JobDone:
    """Start a run of a recipe, a file or a shipped name. Raises BadInput; then nothing was stored."""
    from sfumato.workspace.recipes import find_recipe
    from sfumato.workspace.service.prepare import prepare_run

    with Workspace.open(directory) as workspace:
        prepared = prepare_run(find_recipe(recipe), data_file, key=workspace.key())
        run_id = prepared.enter(workspace)
        words = ("run", whole_path(recipe), *_data(data_file), "--alone")
        return _started(workspace, run_id, f"Run {run_id} started", words)


def _data(data_file: str | None) -> Words:
    return () if data_file is None else ("--data", whole_path(data_file))


def look_at_recipe(directory: Path, recipe: str, data_file: str | None) -> JobDone | CompanionsNamed:
    """Start a run of a recipe, or say which companions it names, so that it can be asked whether they are wanted too."""
    from sfumato.workspace.recipes import find_recipe

    named = find_recipe(recipe).table.get("companions", [])
    if isinstance(named, list) and named and all(isinstance(one, str) for one in named):
        return CompanionsNamed(recipe, data_file, tuple(named))
    return run_recipe(directory, recipe, data_file)


def run_together(directory: Path, recipe: str, data_file: str | None) -> JobDone:
    """Start runs of a recipe and of its companions, on the same data. Raises BadInput; then nothing was stored."""
    from sfumato.workspace.recipes import find_recipe
    from sfumato.workspace.service.prepare import enter_with_companions, prepare_companion_runs, prepare_run

    with Workspace.open(directory) as workspace:
        found = find_recipe(recipe)
        prepared = prepare_run(found, data_file, key=workspace.key())
        main, *beside = enter_with_companions(workspace, prepared, prepare_companion_runs(prepared, found))
        others = ", ".join(map(str, beside))
        return _started(
            workspace, main, f"Run {main} started, beside it {'runs' if len(beside) > 1 else 'run'} {others}"
        )


def evaluate(directory: Path, recipe: str, original: str, released: Sequence[str], plan: Draft | None) -> JobDone:
    """Start a run that scores files of another tool with a recipe, or with a project's plan where one is given.

    Raises BadInput; then nothing was stored.
    """
    from sfumato.workspace.ingest.files import files_matching
    from sfumato.workspace.recipes import RecipeFile, find_recipe
    from sfumato.workspace.service.prepare import prepare_evaluation
    from sfumato.workspace.store.runs import find_run

    with Workspace.open(directory) as workspace:
        found = find_recipe(recipe) if plan is None else RecipeFile("plan", plan.toml, None)
        files = files_matching(released, "released")
        original = str(Path(original).expanduser())
        prepared = prepare_evaluation(found, original, files, key=workspace.key())
        query = "SELECT name FROM project WHERE id = ?"
        row = None if plan is None else workspace.connection.execute(query, (plan.project_id,)).fetchone()
        run_id = prepared.enter(workspace, "" if row is None else str(row[0]))
        project_id = find_run(workspace, run_id).project_id
        count = count_noun(len(files), "file")
        done = _started(workspace, run_id, f"Run {run_id} scores {count}")
        written = f"plan-of-run-{run_id}.toml"
        first = () if plan is None or row is None else ("plan", str(row[0]), "-o", written, *THEN)
        named = ("evaluate", written if first else whole_path(recipe), "--original", whole_path(original))
        words = (*first, *named, *(word for file in files for word in ("--released", whole_path(file))))
        return JobDone(done.text, run_id, done.worker, "runs", project_id, words)


def open_demo(directory: Path) -> JobDone:
    """Start the shipped study, to be looked at. Raises BadInput."""
    from sfumato.workspace.store.runs import find_run

    done = run_recipe(directory, DEMO, None)
    with Workspace.open(directory, read_only=True) as workspace:
        project_id = find_run(workspace, done.run_id or 0).project_id
    return JobDone(done.text, done.run_id, done.worker, "runs", project_id, ("demo", "--no-tui"))


def detect_format(directory: Path, file: str, project: str) -> FileLookedAt | JobDone:
    """Find how a file of text is written; bring it in at once where nothing about that is unusual or unsettled.

    Raises BadInput, OSError and StrangeFile; then nothing was stored.
    """
    from sfumato.workspace.ingest.dialects import detect
    from sfumato.workspace.ingest.files import text_head

    head = text_head(Path(file).expanduser())
    found = detect(head) if head.strip() and b"\0" not in head[:2] else None
    if found is None or (found.usual and not found.doubts):
        return import_file(directory, file, project)
    return FileLookedAt(file, project, head, found)


def import_file(directory: Path, file: str, project: str, said: Mapping[str, Any] | None = None) -> JobDone:
    """Bring a file into a project, in a process of its own, read as is ``said``. Raises BadInput; then nothing was stored."""
    from sfumato.workspace.ingest.limits import READ_SECONDS
    from sfumato.workspace.jobs.processes import call_in_process
    from sfumato.workspace.reporting.words import records_text
    from sfumato.workspace.service.importing import import_file as bring_in

    path = str(Path(file).expanduser())
    found = call_in_process(
        bring_in, directory, path, project or Path(file).stem, said, what="the import", seconds=READ_SECONDS
    )
    records = records_text(found.records, found.dropped)
    return JobDone(
        ". ".join([f'{found.source}: {records} in project "{found.project}" of {directory}', *found.notes]),
        tab="data",
        project_id=found.project_id,
        command=("import", whole_path(path), "--project", found.project, *reading_options(said)),
        imported=True,
    )


def open_workspace(directory: Path) -> WorkspaceOpened:
    """Open another workspace, made if there is none. Raises NotAWorkspace."""
    from .places import remember_workspace

    Workspace.create(directory).close()
    remember_workspace(directory)
    return WorkspaceOpened(directory)


def save_plan(directory: Path, draft: Draft, after: int) -> PlanSaved:
    """Store an edit of the plan that had the revision ``after``; the answer says what went wrong, if anything did."""
    import sqlite3

    from sfumato.workspace.errors import WorkspaceError
    from sfumato.workspace.plan.drafts import save_draft

    try:
        with Workspace.open(directory) as workspace:
            return PlanSaved(save_draft(workspace, draft, after))
    except (sqlite3.Error, WorkspaceError) as error:
        return PlanSaved(draft, f"The plan was not stored: {error}")


def run_plan(directory: Path, draft: Draft) -> JobDone:
    """Start a run of a project's plan. Raises BadInput; then nothing was stored."""
    from sfumato.workspace.service.prepare import enter_plan_run as enter_plan

    with Workspace.open(directory) as workspace:
        run_id = enter_plan(workspace, draft)
        query = "SELECT name FROM project WHERE id = ?"
        name = str(workspace.connection.execute(query, (draft.project_id,)).fetchone()[0])
        done = _started(workspace, run_id, f"Run {run_id} started", ("plan", name, "--run"))
        return JobDone(done.text, done.run_id, done.worker, tab="runs", command=done.command)


def search_plan(directory: Path, draft: Draft) -> JobDone:
    """Start a search that begins with a project's plan. Raises BadInput; then nothing was stored."""
    from sfumato.engine.data.toml import read_toml
    from sfumato.workspace.service.search_main import start_search_process
    from sfumato.workspace.service.searching import begin_search

    with Workspace.open(directory) as workspace:
        query = "SELECT name FROM project WHERE id = ?"
        name = str(workspace.connection.execute(query, (draft.project_id,)).fetchone()[0])
        search_id = begin_search(workspace, read_toml(draft.toml), name)
    process = start_search_process(directory, search_id, JOBS)
    return JobDone(
        f"Search {search_id} started; its looks are runs, S in Plan shows what it found",
        worker=process,
        command=("search", name),
    )


def continue_search(directory: Path, search_id: int) -> JobDone:
    """Continue a search that was stopped."""
    from sfumato.workspace.service.search_main import start_search_process

    process = start_search_process(directory, search_id, JOBS)
    return JobDone(f"Search {search_id} continues", worker=process, command=("search", str(search_id)))


def take_searched_plan(directory: Path, run_id: int) -> JobDone:
    """Make the plan of a finalist the plan of its project. Raises NotFound."""
    from sfumato.workspace.service.searching import adopt_plan

    with Workspace.open(directory) as workspace:
        adopt_plan(workspace, run_id)
    return JobDone(f"The plan of run {run_id} is the plan of this project", command=("search", "--take", str(run_id)))


def find_smallest_sample(directory: Path, data: ProjectTable, answers: Mapping[str, Any]) -> JobDone:
    """Start a run that looks for the smallest sufficient sample. Raises BadInput; then nothing was stored."""
    from sfumato.workspace.service.guided_minimisation import prepare_minimisation

    with Workspace.open(directory) as workspace:
        run_id = prepare_minimisation(workspace, data, answers).enter(workspace, data.project)
        return _started(workspace, run_id, f"Run {run_id} looks for the smallest sample; N shows it when it is done")


def resume(directory: Path, run_id: int) -> JobDone:
    """Go on with an interrupted, cancelled or failed run, or give a run that nobody works on a worker."""
    from sfumato.workspace.jobs.queue import resume as queue_again

    with Workspace.open(directory) as workspace:
        queue_again(workspace, run_id)
        return _started(workspace, run_id, f"Run {run_id} resumed", ("resume", str(run_id)))


def interrupt(directory: Path, run_id: int) -> JobDone:
    """Stop a run; its finished tasks stay, and it can be resumed."""
    from sfumato.workspace.jobs.queue import request_stop
    from sfumato.workspace.store.runs import RunState

    with Workspace.open(directory) as workspace:
        stopped = request_stop(workspace, run_id, RunState.INTERRUPTED)
        said = f"Run {run_id} is interrupted" if stopped else f"Run {run_id} had ended already"
        return JobDone(said, run_id, command=("cancel", str(run_id)) if stopped else ())


def name_run(directory: Path, run_id: int, name: str, note: str) -> JobDone:
    """Give a run a name and a note. Raises BadInput."""
    from sfumato.workspace.store.run_names import name_run as keep

    with Workspace.open(directory) as workspace:
        keep(workspace, run_id, name, note)
        return JobDone(f"Run {run_id} is called {name.strip()}" if name.strip() else f"Run {run_id} has no name")


def write_report(directory: Path, run_id: int, file: Path, *, public: bool) -> JobDone:
    """Write the report of a run that is done, in a process of its own. Raises BadInput, NotReady and NotAsSealed."""
    from sfumato.workspace.jobs.processes import call_in_process
    from sfumato.workspace.policy.disclosure import INTERNAL
    from sfumato.workspace.release.report import write_report_in_process

    from .export import PUBLIC

    size = call_in_process(write_report_in_process, directory, run_id, file, public, what="the report")
    mark = PUBLIC if public else INTERNAL
    words = ("report", str(run_id), "-o", str(file), *(["--public"] if public else []))
    return JobDone(f"Report of run {run_id} written to {file} ({size // 1024:,} KiB). {mark}", command=words)


def delete_runs(directory: Path, run_ids: Sequence[int]) -> JobDone:
    """Delete runs that have ended. Raises NotReady for the first that has not; those before it are gone then."""
    from sfumato.workspace.service.deletion import delete_run, pending_removal_text

    with Workspace.open(directory) as workspace:
        left = sum(delete_run(workspace, run_id) for run_id in run_ids)
    what = (
        f"Run {run_ids[0]} is deleted"
        if len(run_ids) == 1
        else f"{count_noun(len(run_ids), 'run')} {agreeing_word(len(run_ids), 'is', 'are')} deleted"
    )
    words = tuple(word for run_id in run_ids for word in (*THEN, "delete", str(run_id), "--yes"))[len(THEN) :]
    return JobDone(f"{what}{pending_removal_text(left)}", command=words)


def delete_projects(directory: Path, project_ids: Sequence[int]) -> JobDone:
    """Delete projects with their data. Raises NotReady for the first that still computes; those before it are gone then."""
    from sfumato.workspace.service.deletion import delete_project, pending_removal_text

    with Workspace.open(directory) as workspace:
        left = sum(delete_project(workspace, project_id) for project_id in project_ids)
    what = (
        "The project is deleted"
        if len(project_ids) == 1
        else f"{count_noun(len(project_ids), 'project')} {agreeing_word(len(project_ids), 'is', 'are')} deleted"
    )
    return JobDone(f"{what}{pending_removal_text(left)}")


def recipe_titles() -> list[tuple[str, str]]:
    """Name and title of every shipped recipe."""
    from sfumato.workspace.recipes import shipped_recipes

    return [(recipe.name, str(recipe.table.get("title", ""))) for recipe in shipped_recipes()]


def _started(workspace: Workspace, run_id: int, text: str, command: Words = ()) -> JobDone:
    """Start a worker, unless one that computes now will come to this run by itself; ``command`` does the same."""
    from sfumato.workspace.jobs.worker import start_worker
    from sfumato.workspace.store.runs import attended

    command = (*command, *computing_options()) if command else ()
    busy = workspace.connection.execute("SELECT EXISTS (SELECT 1 FROM task WHERE state = 'running')").fetchone()[0]
    if busy and attended(workspace):
        return JobDone(text, run_id, command=command)
    return JobDone(text, run_id, start_worker(workspace.directory, JOBS), command=command)
