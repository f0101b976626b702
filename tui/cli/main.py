"""The command line. Every job of the app can be done from here; heavy imports wait for the command that needs them."""

from __future__ import annotations

import atexit
import contextlib
import gc
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from sfumato.tui.terminal.glyphs import CHOICE, SETS, choose_glyphs
from sfumato.workspace.process import forbid_core_dumps

from . import completion as completing
from .admin import adopt, audit, cancel, delete, doctor, keys, runs, worker
from .audit_tables import audit_tables
from .completion import completion
from .constraints import constraints
from .draft import draft
from .failures import RootCommandGroup, run_and_exit
from .gate import approve, examine, policy
from .hierarchies import hierarchies
from .key import key
from .levers import levers
from .manual import manual
from .options import (
    JOBS,
    JSON,
    KEY,
    PLAIN_OPTION,
    PUBLIC,
    QUIET,
    RECIPE,
    RUN,
    SET,
    WORKSPACE,
    add_computing_options,
    add_selection_options,
    add_text_format_options,
    check_seal,
    check_writable,
    is_plain_requested,
    open_or_create,
    open_workspace,
    read_key_option,
    weighting_settings,
    workspace_key,
    write_object,
)
from .outputs import figures, release, report, show_public_results, show_record_weights
from .plans import again, plan
from .population import population
from .search import search
from .speech import echo
from .tables import tables
from .verify import verify
from .whatif import whatif

if TYPE_CHECKING:
    from sfumato.workspace.service.prepare import PreparedRun
    from sfumato.workspace.store.workspace import Workspace

OWNER_ONLY_UMASK = 0o077
"""The umask that leaves permissions to the owner alone."""


@click.group(
    cls=RootCommandGroup, invoke_without_command=True, context_settings={"help_option_names": ["-h", "--help"]}
)
@click.version_option(package_name="sfumato")
@WORKSPACE
@click.option("--no-mouse", is_flag=True, help="Leave the mouse to the terminal.")
@click.option("--glyphs", type=click.Choice(SETS), help="What plots are drawn with, where the font lacks braille.")
@PLAIN_OPTION
@click.pass_context
def sfumato(context: click.Context, directory: Path | None, glyphs: str | None, *, no_mouse: bool, plain: bool) -> None:
    """Synthesise or anonymise confidential data, measure what the release keeps and reveals, decide, and show why.

    Without a command, opens the terminal app on the last workspace.
    """
    if context.invoked_subcommand is None:
        if glyphs:
            os.environ[CHOICE] = glyphs
        workspace = open_or_create(directory)
        _launch_app(workspace, None, plain=plain, mouse=not no_mouse)


def _launch_app(workspace: Workspace, run_id: int | None, *, plain: bool, mouse: bool = True) -> None:
    """Open the app on a workspace, or plain mode where requested or where the terminal can only print lines.

    Raises UsageError where the app has no terminal.
    """
    if plain or os.environ.get("TERM") == "dumb":
        from ..plain.mode import run_plain_mode

        sys.exit(run_plain_mode(workspace, run_id))
    if not sys.stdout.isatty():
        raise click.UsageError("the app needs a terminal; sfumato --plain and the commands of sfumato --help do not")
    from ..app.app import launch_app

    choose_glyphs()
    # The app opens the workspace itself.
    workspace.close()
    launch_app(workspace.directory, run_id, mouse=mouse)


def _enter_and_run(
    prepared: PreparedRun,
    directory: Path | None,
    jobs: int,
    json_file: str | None,
    companions: Sequence[PreparedRun] = (),
    *,
    key: bytes,
    given: bool = False,
    quiet: bool,
) -> int:
    """Enter prepared runs in a workspace, created if need be, and run them to the end; return the exit status.

    ``given`` is whether the user named the key.
    """
    from sfumato.workspace.service.prepare import enter_with_companions
    from sfumato.workspace.store.chains import kept_chains_remark
    from sfumato.workspace.store.keys import NoKey

    from .run import run_to_end

    for said in () if quiet else prepared.recipe.warnings:
        echo(f"warning: {said}", err=True)
    if (kept := kept_chains_remark(prepared.recipe, prepared.whole_data)) and not quiet:
        echo(kept, err=True)
    try:
        workspace = open_or_create(directory, key)
    except NoKey:
        if given or prepared.recipe.data.is_random:
            raise
        workspace = open_or_create(directory)  # somebody else has made it meanwhile, with a key of its own
    return run_to_end(workspace, enter_with_companions(workspace, prepared, companions), jobs, json_file, quiet=quiet)


@sfumato.command()
@WORKSPACE
@JSON
@click.option("--no-tui", is_flag=True, help="Print the summary and end; do not open the app.")
@JOBS
@add_computing_options
def demo(directory: Path | None, json_file: str | None, jobs: int, *, no_tui: bool) -> None:
    """Run a shipped study of real people and open the app on it.

    It has 20,190 person-years and takes less than a minute; what it found is printed first.
    """
    from sfumato.workspace.recipes import find_recipe
    from sfumato.workspace.service.prepare import prepare_run
    from sfumato.workspace.store.runs import find_run

    from .run import INTERRUPTED

    check_writable(json_file)
    key = workspace_key(directory)
    prepared = prepare_run(find_recipe("randhie"), key=key)
    code = _enter_and_run(prepared, directory, jobs, json_file, key=key, quiet=False)
    if code != INTERRUPTED and not no_tui and sys.stdout.isatty() and sys.stdin.isatty():
        workspace = open_workspace(directory)
        _launch_app(workspace, find_run(workspace, "last").id, plain=is_plain_requested())
    sys.exit(code)


@sfumato.command()
@click.argument("directory", type=click.Path(path_type=Path))
@KEY
def init(directory: Path, key_file: str | None) -> None:
    """Make a workspace in DIRECTORY and remember it.

    With --key FILE, put back the key of a workspace that has lost it.
    """
    workspace = open_or_create(directory, read_key_option(key_file))
    echo(f"workspace ready in {workspace.directory}; next: sfumato import FILE, or sfumato run RECIPE")


@sfumato.command("import")
@click.argument("file")
@WORKSPACE
@click.option("--project", help="The project it belongs to (default: the file's name).")
@click.option("--recipe", "recipe_file", type=click.Path(path_type=Path), help="Write a recipe to start from.")
@click.option("--preview", is_flag=True, help="Say how FILE would be read, and store nothing.")
@click.option("--rows", is_flag=True, help="Show its first ten rows too: they are confidential.")
@JSON
@add_selection_options
@add_text_format_options
def import_file(
    file: str,
    directory: Path | None,
    project: str | None,
    recipe_file: Path | None,
    preview: bool,
    json_file: str | None,
    *,
    rows: bool,
    **said: Any,
) -> None:
    """Bring a file into a project and describe its columns.

    FILE is text, Excel, SPSS, Stata, SAS, Parquet or another format that the manual lists.

    How a file of text is written (separator, encoding, decimal sign, missing codes) is found, and said with its reasons. Labels and
    missing codes of SPSS, Stata and SAS are kept. Columns that may say who a record is are left out.
    """
    from sfumato.workspace.service.importing import FilePreview, ImportSelection

    from ..session.importing import preview_in_process
    from .importing import imported_text, importing_object, preview_text, store_file

    check_writable(json_file)
    what = ImportSelection(
        *(said.pop(name) for name in ("sheet", "where", "sample", "only", "leave_out", "keep", "kinds"))
    )

    form = {key: value for key, value in said.items() if value not in (None, ())}
    form |= {"missing": list(form["missing"])} if "missing" in form else {}
    found = (
        preview_in_process(file, form, what, with_rows=rows)
        if preview
        else store_file(directory, file, project, recipe_file, form, what, with_rows=rows)
    )
    if json_file is not None:
        # What is asked about a column may quote its values.
        write_object(importing_object(found), json_file, private=True)
    if json_file != "-":
        echo(preview_text(found) if isinstance(found, FilePreview) else imported_text(found, directory, recipe_file))


@sfumato.command()
@RECIPE
@click.option("--data", metavar="FILE", help="The confidential file, in place of the recipe's.")
@WORKSPACE
@KEY
@click.option("--seed", type=click.IntRange(0), help="In place of the recipe's seed.")
@JOBS
@add_computing_options
@SET
@JSON
@QUIET
@click.option("--alone", is_flag=True, help="Leave out the recipes that RECIPE names as its companions.")
@click.option(
    "--weights-from",
    metavar="RUN",
    shell_complete=completing.complete_runs,
    help="Give the records at risk in RUN, of the same records, less influence.",
)
@click.option(
    "--measure",
    metavar="KEY",
    shell_complete=completing.complete_methods,
    help="With --weights-from: at risk by this measure of RUN (default: the first).",
)
@click.option("--strength", type=float, help="With --weights-from: what weight a record of risk 1 loses (default: 1).")
def run(
    recipe: str,
    data: str | None,
    directory: Path | None,
    key_file: str | None,
    seed: int | None,
    jobs: int,
    settings: tuple[str, ...],
    json_file: str | None,
    *,
    quiet: bool,
    alone: bool,
    weights_from: str | None,
    measure: str | None,
    strength: float | None,
) -> None:
    """Carry out a recipe: synthesise, measure, compare with limits.

    RECIPE is a file or the name of a shipped recipe.

    The recipes it names as companions run with it on the same data; they do not decide the exit status.
    """
    from sfumato.workspace.recipes import find_recipe
    from sfumato.workspace.service.prepare import prepare_companion_runs, prepare_run

    check_writable(json_file)
    # The recipe and the data are checked before a workspace is opened: bad input must not create one.
    found, key = find_recipe(recipe), workspace_key(directory, key_file)
    settings = (*settings, *weighting_settings(directory, weights_from, measure, strength))
    prepared = prepare_run(found, data, seed, settings, key=key, directory=directory)
    companions = () if alone else prepare_companion_runs(prepared, found, settings)
    sys.exit(
        _enter_and_run(
            prepared, directory, jobs, json_file, companions, key=key, given=key_file is not None, quiet=quiet
        )
    )


@sfumato.command()
@click.argument("recipe", required=False, default="", shell_complete=completing.complete_recipes)
@click.option("--original", metavar="FILE", help="The confidential file; without it, what one released file shows.")
@click.option(
    "--released", required=True, multiple=True, metavar="FILE...", help="A released file, or 'syn*.csv'. Repeatable."
)
@click.argument("more", nargs=-1, metavar="")
@click.option(
    "--known",
    multiple=True,
    metavar="NAMES",
    help="Without --original: what an intruder may know (default: RECIPE's). Commas between names; repeatable.",
)
@click.option(
    "--sensitive",
    multiple=True,
    metavar="NAMES",
    help="Without --original: what must not be learnt (default: RECIPE's). Commas between names; repeatable.",
)
@click.option("-k", type=click.IntRange(2), help="Without --original: fewest records in a class.")
@click.option(
    "-l",
    type=click.FloatRange(1, min_open=True),
    help="Without --original: fewest different sensitive values in a class.",
)
@click.option(
    "-t",
    type=click.FloatRange(0, 1, min_open=True),
    help="Without --original: largest distance of a class from the whole table.",
)
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Without --original: write a page, or Markdown where its name ends in .md.",
)
@click.option("--force", is_flag=True, help="Replace the page where it exists.")
@WORKSPACE
@JOBS
@add_computing_options
@SET
@JSON
@QUIET
def evaluate(
    recipe: str,
    original: str | None,
    released: tuple[str, ...],
    more: tuple[str, ...],
    known: tuple[str, ...],
    sensitive: tuple[str, ...],
    k: int | None,
    l: float | None,  # noqa: E741
    t: float | None,
    output: Path | None,
    directory: Path | None,
    jobs: int,
    settings: tuple[str, ...],
    json_file: str | None,
    *,
    force: bool,
    quiet: bool,
) -> None:
    """Score released files that another tool made.

    The measures and thresholds are those of RECIPE.

    Without --original, it shows what one anonymised file shows by itself: k, l and t of its classes, and suppressed cells and records apart. Known cells are compared as the file writes them; spellings of a sensitive level are one value. RECIPE or --known and --sensitive name the variables. Nothing is stored.

    Record i of a file is record i of the original, unless [release] of RECIPE names a link or says order = "shuffled".
    A pattern stands for its files in the order of their numbers, so that syn2.csv is before syn10.csv; files after --released FILE count too.
    There it also says whose values are intervals or groups (generalised) and whose are class means (micro_aggregated).
    """
    from sfumato.workspace.ingest.files import expand_file_patterns
    from sfumato.workspace.recipes import find_recipe
    from sfumato.workspace.service.prepare import prepare_evaluation

    check_writable(json_file)
    if original is None:
        page = (output, force)
        names = (known, sensitive)
        sys.exit(_show_released_file(recipe, released, more, names, (k, l, t), settings, json_file, page, quiet))
    if known or sensitive or (k, l, t) != (None, None, None):
        raise click.UsageError(
            "--known, --sensitive, -k, -l and -t are of one file without --original; RECIPE names them here"
        )
    if output is not None:
        raise click.UsageError("-o is of one file without --original; sfumato report writes the page of a run")
    if not recipe:
        raise click.UsageError("Missing argument 'RECIPE': it names the measures")
    key = workspace_key(directory)
    files = expand_file_patterns((*released, *more), "--released")
    prepared = prepare_evaluation(find_recipe(recipe), original, files, settings, key=key)
    sys.exit(_enter_and_run(prepared, directory, jobs, json_file, key=key, quiet=quiet))


def _show_released_file(
    recipe: str,
    released: Sequence[str],
    more: Sequence[str],
    names: tuple[Sequence[str], Sequence[str]],
    limits: tuple[int | None, float | None, float | None],
    settings: Sequence[str],
    json_file: str | None,
    page: tuple[Path | None, bool],
    quiet: bool,
) -> int:
    """Show what one released file shows by itself; return the exit status."""
    from .constraints import is_recipe
    from .released_file import show_released_file

    if len(released) + len(more) > 1 or (recipe and not is_recipe(recipe)):
        raise click.UsageError(
            "without --original it is about one file; name one --released FILE, and a recipe or none"
        )
    if settings:
        raise click.UsageError("--set changes a run of RECIPE; leave it out, or name --original")
    return show_released_file(released[0], recipe, *names, limits, json_file, page, quiet=quiet)


@sfumato.command()
@RUN
@WORKSPACE
@JSON
@click.option("--all", "every_setting", is_flag=True, help="Show every setting of a measure, one line each.")
@click.option("--draws", is_flag=True, help="Show every dataset's rows, not only the averages.")
@click.option("--keys", is_flag=True, help="Show each number's key too, as recipes and --json have it.")
@PUBLIC
def results(
    run_id: str,
    directory: Path | None,
    json_file: str | None,
    *,
    every_setting: bool,
    draws: bool,
    keys: bool,
    public: bool,
) -> None:
    """Show what a run found.

    RUN is a number, a name, or last. One line for each measure and variable; --all shows every setting.
    """
    from sfumato.workspace.store.runs import companion_ids, find_run

    if public:
        if draws:
            raise click.UsageError(
                "--draws shows rows of single datasets, which are internal; leave out --public or --draws"
            )
        show_public_results(run_id, directory, json_file)
        return

    from .run import show_results
    from .summary import draws_text

    workspace = open_workspace(directory)
    found = find_run(workspace, run_id)
    beside = [find_run(workspace, other) for other in companion_ids(workspace, found.id)]
    show_results(workspace, [found, *beside], json_file, keys=keys, every_setting=every_setting)
    if draws and json_file != "-":
        echo(f"\n{draws_text(workspace, found, keys=keys)}")


@sfumato.command()
@RUN
@WORKSPACE
@JOBS
@add_computing_options
@JSON
@QUIET
def resume(run_id: str, directory: Path | None, jobs: int, json_file: str | None, *, quiet: bool) -> None:
    """Resume a run that was interrupted, cancelled or failed.

    RUN is a number, a name, or last. Finished tasks are not computed again.
    """
    from sfumato.workspace.jobs import queue
    from sfumato.workspace.store.releases_in_progress import settle_releases
    from sfumato.workspace.store.runs import find_run

    from .run import run_to_end

    check_writable(json_file)
    workspace = open_workspace(directory)
    found = find_run(workspace, run_id)
    # A release that was cut off is completed or removed first.
    for said in settle_releases(workspace):
        echo(said, err=True)
    queue.requeue_run(workspace, found.id)
    sys.exit(run_to_end(workspace, [found.id], jobs, json_file, quiet=quiet))


@sfumato.command()
@click.argument("first", metavar="RUN", shell_complete=completing.complete_runs)
@click.argument("second", metavar="RUN", shell_complete=completing.complete_runs)
@WORKSPACE
@JSON
@click.option("--any-data", is_flag=True, help="Compare runs on different data too.")
def compare(first: str, second: str, directory: Path | None, json_file: str | None, *, any_data: bool) -> None:
    """Show two runs side by side, and which is better.

    Each RUN is a number, a name, or last.
    """
    from sfumato.workspace.views.comparison import compare_runs

    from .summary import comparison_text

    check_writable(json_file)
    workspace = open_workspace(directory)
    check_seal(workspace, first, second)
    found = compare_runs(workspace, first, second, any_data=any_data)
    write_object(found.to_dict(), json_file)
    if json_file != "-":
        echo(comparison_text(found))


@sfumato.command()
@RUN
@WORKSPACE
@JSON
@click.option(
    "--measure",
    default="",
    metavar="KEY",
    shell_complete=completing.complete_methods,
    help="Such as risk.attribute, or measure[2] (default: the first).",
)
@click.option("--top", type=click.IntRange(1), default=20, show_default=True, help="How many records.")
@click.option("--draw", type=click.IntRange(1), metavar="L", help="One released dataset in place of the average.")
@click.option("--record", type=click.IntRange(1), metavar="N", help="One record in place of the list; its guesses too.")
@click.option("--weights", is_flag=True, help="The records that RUN gave less influence, those that say least first.")
@click.option("--values", "with_values", is_flag=True, help="Show the records' values too: they are confidential.")
def records(
    run_id: str,
    directory: Path | None,
    json_file: str | None,
    measure: str,
    top: int,
    draw: int | None,
    record: int | None,
    *,
    weights: bool,
    with_values: bool,
) -> None:
    """Show the records most at risk, and what drives their risk.

    RUN is a number, a name, or last. Each record has the number of candidates among which it is found.

    Where records come in units, such as households, each unit is a row with its records below it.

    Of a measure that tells what an intruder believes: how belief in the truth moved, and with --record the guesses at one.
    """
    from sfumato.workspace.views.most_at_risk import read_records_at_risk

    from .summary import records_at_risk_object, records_at_risk_text

    check_writable(json_file)
    workspace = open_workspace(directory)
    check_seal(workspace, run_id)
    if weights:
        if measure or draw or record or with_values:
            raise click.UsageError(
                "--weights shows what RUN was fitted by; leave out --measure, --draw, --record and --values"
            )
        show_record_weights(workspace, run_id, top, json_file)
        return
    found = read_records_at_risk(workspace, run_id, measure, top, draw, record, with_values=with_values)
    write_object(records_at_risk_object(found), json_file, private=with_values)
    if json_file != "-":
        echo(records_at_risk_text(found))


@sfumato.command()
@click.argument("key", required=False, shell_complete=completing.complete_methods)
@JSON
def methods(key: str | None, json_file: str | None) -> None:
    """List the methods, or show one with measures and parameters."""
    from .catalogue import method_list_text, method_object, method_page, methods_object

    check_writable(json_file)
    if json_file is not None:
        write_object(methods_object() if key is None else method_object(key), json_file)
    if json_file != "-":
        echo(method_list_text() if key is None else method_page(key))


@sfumato.command("new-method")
@click.argument("key")
@click.argument("directory", type=click.Path(path_type=Path))
def new_method(key: str, directory: Path) -> None:
    """Write a Python package that adds a method of your own.

    KEY is its family and name, such as risk.my_measure; DIRECTORY is a new folder.

    It has a small method that works and keeps the contract, a test and an entry point. Replace the method with your own.

    If DIRECTORY is the checkout that Sfumato runs from, the method is added to Sfumato itself: its module, evidence, test, manual entry and rates.
    """
    from .new_method import is_own_checkout, write_own_method, write_package

    if is_own_checkout(directory):
        echo("\n".join(["written:", *(f"  {path}" for path in write_own_method(key))]))
        echo(f"next: replace the method, its evidence and its words; pytest tests/contract -k {key.partition('.')[2]}")
        return
    echo("\n".join([f"written to {directory}:", *(f"  {path}" for path in write_package(key, directory))]))
    echo(f"next: cd {directory}, then pip install -e . and pytest, which runs the contract for {key}")


@sfumato.command()
@click.argument("name", required=False, shell_complete=completing.complete_shipped_recipes)
@JSON
def recipes(name: str | None, json_file: str | None) -> None:
    """List the shipped recipes, or print one to start from."""
    from sfumato.workspace.recipes import find_recipe, shipped_recipes

    from .catalogue import recipe_list_text

    check_writable(json_file)
    if json_file is not None:
        found = shipped_recipes() if name is None else [find_recipe(name)]
        write_object({"recipes": [{"name": one.name, "recipe": one.table} for one in found]}, json_file)
    if json_file != "-":
        echo(recipe_list_text() if name is None else find_recipe(name).text, nl=name is None, verbatim=name is not None)


for command in (
    adopt, again, approve, audit_tables, constraints, audit, cancel, completion, delete, doctor, draft, examine, figures, hierarchies, key, keys, levers, manual, plan, policy, population, release, report, runs, search, tables, verify, whatif, worker,
):  # fmt: skip
    sfumato.add_command(command)


GC_THRESHOLDS = (200_000, 20, 20)
"""Thresholds of Python's garbage collection, by generation; with the defaults a command spends a seventh of its start
collecting what it has just loaded. The gate of a small table loads 160,000 objects."""


def _spare_loaded_objects() -> None:
    """Close databases that are still open, and exclude all objects from the garbage collection at the end of the process.

    Else Python takes apart all that was loaded: a quarter of the time of the gate of a small table.
    """
    if sqlite3 := sys.modules.get("sqlite3"):
        # Each is in a cycle with its statements, so that only a collection would close it, and its log stay behind.
        for connection in [one for one in gc.get_objects() if isinstance(one, sqlite3.Connection)]:
            # One of another thread ends with the process.
            with contextlib.suppress(sqlite3.ProgrammingError):
                connection.close()
    gc.freeze()


def main(arguments: list[str] | None = None) -> Any:
    """Run the command ``sfumato``. Its files are readable by its user alone, and it leaves no core dump."""
    gc.set_threshold(*GC_THRESHOLDS)
    atexit.unregister(_spare_loaded_objects)  # of an earlier call
    atexit.register(_spare_loaded_objects)
    forbid_core_dumps()
    before = os.umask(OWNER_ONLY_UMASK)
    try:
        run_and_exit(lambda: sfumato.main(args=arguments, prog_name="sfumato", standalone_mode=False))
    finally:
        os.umask(before)
