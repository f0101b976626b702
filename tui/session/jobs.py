"""Changes of a workspace by the app, called in threads.

The engine is imported when it is first needed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from sfumato.engine.errors import BadInput
from sfumato.engine.wording import agreeing_word, count_noun
from sfumato.workspace.jobs.settings import DEFAULT_JOBS
from sfumato.workspace.store.workspace import Workspace

from .command_lines import THEN, Words, computing_options, reading_options, whole_path
from .messages import (
    ColumnsAsked,
    CompanionRunsOffered,
    FileFormatDetected,
    JobDone,
    PlanSaved,
    ReleasedColumnsRead,
    ReleasedFileEvaluated,
    WorkspaceOpened,
)

if TYPE_CHECKING:
    from sfumato.workspace.plan.drafts import PlanDraft
    from sfumato.workspace.reporting.released_file import ReleasedFileView
    from sfumato.workspace.service.guided_minimisation import ProjectTable
    from sfumato.workspace.service.importing import ImportResult, ImportSelection

DEMO = "randhie"
Found = TypeVar("Found")


def run_again(directory: Path, run_id: int) -> JobDone:
    """Run a run's recipe on its data once more, with a worker. Raises NotFound."""
    from sfumato.workspace.jobs.runs import reenter_run

    with Workspace.open(directory) as workspace:
        again = reenter_run(workspace, run_id)
        return _start_worker_for(workspace, again, f"Run {again} repeats run {run_id}", ("again", str(run_id)))


def run_recipe(directory: Path, recipe: str, data_file: str | None) -> JobDone:
    """Start a run of a recipe, a file or a shipped name. Raises BadInput; then nothing was stored."""
    from sfumato.workspace.recipes import find_recipe
    from sfumato.workspace.service.prepare import prepare_run

    with Workspace.open(directory) as workspace:
        prepared = prepare_run(find_recipe(recipe), data_file, key=workspace.read_workspace_key(), directory=directory)
        run_id = prepared.enter(workspace)
        # Without ``--alone`` the command would run the recipe's companions too.
        words = ("run", whole_path(recipe), *_data_option(data_file), "--alone")
        return _start_worker_for(workspace, run_id, f"Run {run_id} started", words)


def _data_option(data_file: str | None) -> Words:
    return () if data_file is None else ("--data", whole_path(data_file))


def run_unless_companions(directory: Path, recipe: str, data_file: str | None) -> JobDone | CompanionRunsOffered:
    """Start a run of a recipe, or return the companions that it names."""
    from sfumato.workspace.recipes import find_recipe

    named = find_recipe(recipe).table.get("companions", [])
    if isinstance(named, list) and named and all(isinstance(one, str) for one in named):
        # The user is asked whether to run them too.
        return CompanionRunsOffered(recipe, data_file, tuple(named))
    return run_recipe(directory, recipe, data_file)


def run_with_companions(directory: Path, recipe: str, data_file: str | None) -> JobDone:
    """Start runs of a recipe and of its companions, on the same data. Raises BadInput; then nothing was stored."""
    from sfumato.workspace.recipes import find_recipe
    from sfumato.workspace.service.prepare import enter_with_companions, prepare_companion_runs, prepare_run

    with Workspace.open(directory) as workspace:
        found = find_recipe(recipe)
        prepared = prepare_run(found, data_file, key=workspace.read_workspace_key(), directory=directory)
        main, *beside = enter_with_companions(workspace, prepared, prepare_companion_runs(prepared, found))
        others = ", ".join(map(str, beside))
        return _start_worker_for(
            workspace, main, f"Run {main} started, beside it {'runs' if len(beside) > 1 else 'run'} {others}"
        )


def evaluate_files(
    directory: Path, recipe: str, original: str, released: Sequence[str], plan: PlanDraft | None
) -> JobDone:
    """Start a run that scores files of another tool with a recipe, or with a project's plan where one is given.

    Raises BadInput; then nothing was stored.
    """
    from sfumato.workspace.ingest.files import expand_file_patterns
    from sfumato.workspace.recipes import RecipeFile, find_recipe
    from sfumato.workspace.service.prepare import prepare_evaluation
    from sfumato.workspace.store.runs import find_run

    with Workspace.open(directory) as workspace:
        found = find_recipe(recipe) if plan is None else RecipeFile("plan", plan.toml, None)
        files = expand_file_patterns(released, "released")
        original = str(Path(original).expanduser())
        prepared = prepare_evaluation(found, original, files, key=workspace.read_workspace_key())
        query = "SELECT name FROM project WHERE id = ?"
        row = None if plan is None else workspace.connection.execute(query, (plan.project_id,)).fetchone()
        run_id = prepared.enter(workspace, "" if row is None else str(row[0]))
        project_id = find_run(workspace, run_id).project_id
        count = count_noun(len(files), "file")
        done = _start_worker_for(workspace, run_id, f"Run {run_id} scores {count}")
        written = f"plan-of-run-{run_id}.toml"
        # The command reads a plan from a file only, so it is written to one first.
        first = () if plan is None or row is None else ("plan", str(row[0]), "-o", written, *THEN)
        named = ("evaluate", written if first else whole_path(recipe), "--original", whole_path(original))
        words = (*first, *named, *(word for file in files for word in ("--released", whole_path(file))))
        return JobDone(done.text, run_id, done.worker, "runs", project_id, words)


def read_released_columns(file: str) -> ReleasedColumnsRead:
    """Read the columns of a released file. Raises BadInput."""
    from .released_file import released_columns_in_process

    path = str(Path(file).expanduser())
    with _without_option_name():
        return ReleasedColumnsRead(path, released_columns_in_process(path))


def evaluate_released(
    file: str, columns: Mapping[str, tuple[str, ...]], answers: Mapping[str, Any]
) -> ReleasedFileEvaluated:
    """Evaluate one released file with the answers of a form. Raises BadInput."""
    from sfumato.workspace.reporting.released_file import AnonymityLimits

    from .released_file import evaluate_in_process

    known, sensitive = (list(map(str, answers.get(name, []))) for name in ("known", "sensitive"))
    limits = AnonymityLimits(*(answers.get(name) for name in ("k", "l", "t")))
    with _without_option_name():
        return ReleasedFileEvaluated(evaluate_in_process(file, known, sensitive, limits), columns, answers)


@contextmanager
def _without_option_name() -> Iterator[None]:
    """Raise BadInput of the block without the option of the command line at which it was raised."""
    try:
        yield
    except BadInput as error:
        raise BadInput("", error.message) from None


def write_released_page(view: ReleasedFileView, path: Path, words: Words) -> JobDone:
    """Write the page about a released file; ``words`` are those of the command that shows it. Raises BadInput."""
    from sfumato.workspace.policy.disclosure import INTERNAL
    from sfumato.workspace.service.released_file import write_released_file_page

    size = write_released_file_page(view, path)
    return JobDone(
        f"Page written to {path} ({count_noun(size, 'byte')}). {INTERNAL}", command=(*words, "-o", str(path))
    )


def open_demo(directory: Path) -> JobDone:
    """Start the shipped study and open it. Raises BadInput."""
    from sfumato.workspace.store.runs import find_run

    done = run_recipe(directory, DEMO, None)
    with Workspace.open(directory, read_only=True) as workspace:
        project_id = find_run(workspace, done.run_id or 0).project_id
    return JobDone(done.text, done.run_id, done.worker, "runs", project_id, ("demo", "--no-tui"))


def detect_format(directory: Path, file: str, project: str) -> FileFormatDetected | ColumnsAsked:
    """Detect how a text file is written; preview its rows at once where nothing about that is unusual or uncertain.

    Raises BadInput, OSError and StrangeFile; then nothing was stored.
    """
    from sfumato.workspace.ingest.dialects import detect_text_format
    from sfumato.workspace.ingest.files import text_head

    head = text_head(Path(file).expanduser())
    found = detect_text_format(head) if head.strip() and b"\0" not in head[:2] else None
    if found is None or (found.is_default and not found.doubtful_settings):
        return preview_import(directory, file, project)
    return FileFormatDetected(file, project, head, found)


def preview_import(
    directory: Path, file: str, project: str, format_settings: Mapping[str, Any] | None = None
) -> ColumnsAsked:
    """Read how the columns of a file would be imported, with its first rows; store nothing. Raises BadInput."""
    from .importing import preview_in_process

    # A process can be ended where a file makes its reader hang; a thread cannot.
    found = preview_in_process(str(Path(file).expanduser()), format_settings)
    return ColumnsAsked(file, project, format_settings, found)


def import_file(
    directory: Path,
    file: str,
    project: str,
    format_settings: Mapping[str, Any] | None = None,
    selection: ImportSelection | None = None,
) -> JobDone:
    """Import a file into a project with these format settings and kinds of columns.

    Raises BadInput; then nothing was stored.
    """
    from sfumato.workspace.service.importing import EVERYTHING
    from sfumato.workspace.service.importing import import_file as bring_in

    selection = EVERYTHING if selection is None else selection
    found = _import_in_process(bring_in, directory, file, project, format_settings, selection)
    options = [word for one in selection.kinds for word in ("--as", one)]
    options += [word for one in selection.leave_out for word in ("--leave-out", one)]
    return _describe_import(directory, file, format_settings, found, options)


def _import_in_process(call: Callable[..., Found], directory: Path, file: str, project: str, *more: object) -> Found:
    """Call an import in a process of its own."""
    from sfumato.workspace.ingest.limits import READ_SECONDS
    from sfumato.workspace.jobs.processes import call_in_process

    path = str(Path(file).expanduser())
    # A process can be ended where a file makes its reader hang; a thread cannot.
    return call_in_process(
        call, directory, path, project or Path(file).stem, *more, what="the import", seconds=READ_SECONDS
    )


def _describe_import(
    directory: Path,
    file: str,
    format_settings: Mapping[str, Any] | None,
    found: ImportResult,
    options: Sequence[str],
) -> JobDone:
    """Return what an import did, with the command that does the same; ``options`` are those about columns."""
    from sfumato.workspace.reporting.reading import undecided_lines
    from sfumato.workspace.reporting.words import records_and_dropped_text

    records = records_and_dropped_text(found.records, found.dropped)
    # what the form for a text file did not show, and all that is open in a sheet
    open_lines = [] if found.detection is None else undecided_lines(found.detection)
    head = f'{found.source}: {records} in project "{found.project}" of {directory}'
    path = whole_path(str(Path(file).expanduser()))
    return JobDone(
        ". ".join([head, *found.notes, *open_lines]),
        tab="data",
        project_id=found.project_id,
        command=("import", path, "--project", found.project, *reading_options(format_settings), *options),
        is_import=True,
    )


def open_workspace(directory: Path) -> WorkspaceOpened:
    """Open another workspace, created if needed. Raises NotAWorkspace."""
    from .places import remember_workspace

    Workspace.create(directory).close()
    remember_workspace(directory)
    return WorkspaceOpened(directory)


def save_plan(directory: Path, draft: PlanDraft, after: int) -> PlanSaved:
    """Store an edit of the plan that had the revision ``after``; the message has the error, if there was one."""
    import sqlite3

    from sfumato.workspace.errors import WorkspaceError
    from sfumato.workspace.plan.drafts import save_draft

    try:
        with Workspace.open(directory) as workspace:
            return PlanSaved(save_draft(workspace, draft, after))
    except (sqlite3.Error, WorkspaceError) as error:
        return PlanSaved(draft, f"The plan was not stored: {error}")


def run_plan(directory: Path, draft: PlanDraft) -> JobDone:
    """Start a run of a project's plan. Raises BadInput; then nothing was stored."""
    from sfumato.workspace.service.prepare import enter_plan_run as enter_plan

    with Workspace.open(directory) as workspace:
        run_id = enter_plan(workspace, draft)
        query = "SELECT name FROM project WHERE id = ?"
        name = str(workspace.connection.execute(query, (draft.project_id,)).fetchone()[0])
        done = _start_worker_for(workspace, run_id, f"Run {run_id} started", ("plan", name, "--run"))
        return JobDone(done.text, done.run_id, done.worker, tab="runs", command=done.command)


def search_plan(directory: Path, draft: PlanDraft) -> JobDone:
    """Start a search that begins with a project's plan. Raises BadInput; then nothing was stored."""
    from sfumato.engine.data.toml import read_toml
    from sfumato.workspace.service.search_main import start_search_process
    from sfumato.workspace.service.searching import begin_search

    with Workspace.open(directory) as workspace:
        query = "SELECT name FROM project WHERE id = ?"
        name = str(workspace.connection.execute(query, (draft.project_id,)).fetchone()[0])
        search_id = begin_search(workspace, read_toml(draft.toml), name)
    process = start_search_process(directory, search_id, DEFAULT_JOBS)
    return JobDone(
        f"Search {search_id} started; its looks are runs, S in Plan shows what it found",
        worker=process,
        command=("search", name),
    )


def continue_search(directory: Path, search_id: int) -> JobDone:
    """Continue a search that was stopped."""
    from sfumato.workspace.service.search_main import start_search_process

    process = start_search_process(directory, search_id, DEFAULT_JOBS)
    return JobDone(f"Search {search_id} continues", worker=process, command=("search", str(search_id)))


def take_searched_plan(directory: Path, run_id: int) -> JobDone:
    """Make the plan of a finalist the plan of its project, and its run the one that keys act on. Raises NotFound."""
    from sfumato.workspace.service.searching import adopt_plan

    with Workspace.open(directory) as workspace:
        adopt_plan(workspace, run_id)
    return JobDone(
        f"The plan of run {run_id} is the plan of this project", run_id, command=("search", "--take", str(run_id))
    )


def find_smallest_sample(directory: Path, data: ProjectTable, answers: Mapping[str, Any]) -> JobDone:
    """Start a run that looks for the smallest sufficient sample. Raises BadInput; then nothing was stored."""
    from sfumato.workspace.service.guided_minimisation import prepare_minimisation

    with Workspace.open(directory) as workspace:
        run_id = prepare_minimisation(workspace, data, answers).enter(workspace, data.project)
        return _start_worker_for(
            workspace, run_id, f"Run {run_id} looks for the smallest sample; N shows it when it is done"
        )


def resume_run(directory: Path, run_id: int) -> JobDone:
    """Resume an interrupted, cancelled or failed run, or start a worker for a run that has none."""
    from sfumato.workspace.jobs.queue import requeue_run as queue_again

    with Workspace.open(directory) as workspace:
        queue_again(workspace, run_id)
        return _start_worker_for(workspace, run_id, f"Run {run_id} resumed", ("resume", str(run_id)))


def interrupt_run(directory: Path, run_id: int) -> JobDone:
    """Interrupt a run; its finished tasks stay, and it can be resumed."""
    from sfumato.workspace.jobs.queue import stop_run
    from sfumato.workspace.store.runs import RunState

    with Workspace.open(directory) as workspace:
        stopped = stop_run(workspace, run_id, RunState.INTERRUPTED)
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

    from .export import PUBLIC_MARK

    size = call_in_process(write_report_in_process, directory, run_id, file, public, what="the report")
    mark = PUBLIC_MARK if public else INTERNAL
    words = ("report", str(run_id), "-o", str(file), *(["--public"] if public else []))
    return JobDone(f"Report of run {run_id} written to {file} ({size // 1024:,} KiB). {mark}", command=words)


def delete_runs(directory: Path, run_ids: Sequence[int]) -> JobDone:
    """Delete runs that have ended.

    Raises NotReady for the first that has not; those listed before it are already deleted.
    """
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
    """Delete projects with their data.

    Raises NotReady for the first that is still computing; those listed before it are already deleted.
    """
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
    """Return the name and title of every shipped recipe."""
    from sfumato.workspace.recipes import shipped_recipes

    return [(recipe.name, str(recipe.table.get("title", ""))) for recipe in shipped_recipes()]


def _start_worker_for(workspace: Workspace, run_id: int, text: str, command: Words = ()) -> JobDone:
    """Start a worker for a run, unless a running one will reach it; ``command`` is the equivalent command line."""
    from sfumato.workspace.jobs.worker import start_worker
    from sfumato.workspace.store.runs import has_live_worker

    command = (*command, *computing_options()) if command else ()
    busy = workspace.connection.execute("SELECT EXISTS (SELECT 1 FROM task WHERE state = 'running')").fetchone()[0]
    if busy and has_live_worker(workspace):
        return JobDone(text, run_id, command=command)
    return JobDone(text, run_id, start_worker(workspace.directory, DEFAULT_JOBS), command=command)
