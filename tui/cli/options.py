"""Parts that several commands share: options, the workspace they name, tables that fit the terminal, JSON."""

from __future__ import annotations

import json
import os
import shutil
import sys
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from sfumato.engine.wording import split_names
from sfumato.workspace.jobs import settings as computing

from ..session.places import default_workspace, remember_workspace
from .completion import complete_recipes, complete_runs, complete_settings
from .speech import echo

if TYPE_CHECKING:
    from sfumato.workspace.reporting.tables import DisplayTable
    from sfumato.workspace.store.workspace import Workspace

WORKSPACE = click.option(
    "--workspace",
    "-w",
    "directory",
    type=click.Path(path_type=Path),
    help="Workspace directory (default: the last one used in this terminal).",
)
JSON = click.option(
    "--json",
    "json_file",
    metavar="[FILE]",
    is_flag=False,
    flag_value="-",
    help="Write JSON to FILE; without FILE or with -, to standard output.",
)
JOBS = click.option(
    "--jobs", type=click.IntRange(1), default=computing.DEFAULT_JOBS, show_default=True, help="Tasks at a time."
)
SEPARATORS = {
    "tab": "\t",
    "\\t": "\t",
    "blank": " ",
    "blanks": " ",
    "space": " ",
    "comma": ",",
    "semicolon": ";",
    "bar": "|",
}
WORKSPACE_REPORTED = "sfumato.workspace-said"


def _apply_computing_option(context: click.Context, option: click.Parameter, value: str | None) -> None:
    """Set where runs are computed, or with how much memory, for this command and its worker."""
    if value is None:
        return
    variable = str(option.envvar)
    # The environment is restored at the end: several commands can run in one process.
    before = os.environ.get(variable, "")
    computing.set_computing(**{str(option.name): value})
    context.call_on_close(partial(os.environ.__setitem__, variable, before))
    # Records go over the network: an address without encryption is pointed out.
    if option.name == "dask" and value.strip() and not value.strip().startswith(computing.ENCRYPTED_SCHEMES):
        echo(computing.OPEN_CLUSTER_WARNING.format(address=value.strip()), err=True)


def add_computing_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options for where runs are computed and with how much memory."""
    dask = click.option(
        "--dask",
        metavar="ADDRESS",
        envvar="SFUMATO_DASK",
        expose_value=False,
        callback=_apply_computing_option,
        help="Compute on the cluster of this Dask scheduler, not here (needs sfumato[dask]).",
    )
    memory = click.option(
        "--memory",
        metavar="SIZE|none",
        envvar="SFUMATO_MEMORY",
        expose_value=False,
        callback=_apply_computing_option,
        help="Memory for all tasks together, such as 8GB (default: most of the machine's free memory).",
    )
    # Their callbacks take effect before the command begins, so that it receives no parameters of them.
    return dask(memory(command))


PUBLIC = click.option(
    "--public",
    is_flag=True,
    help="Only what may leave the building. Without it, what is written is as confidential as the data.",
)
QUIET = click.option("--quiet", is_flag=True, help="Print nothing but errors.")
SET = click.option(
    "--set",
    "settings",
    multiple=True,
    metavar="KEY=VALUE",
    shell_complete=complete_settings,
    help="Change the recipe, such as release.m=5. Repeatable.",
)


KEY = click.option(
    "--key", "key_file", metavar="FILE|public", help="The key of a workspace that is made (default: one of its own)."
)


RUN = click.argument("run_id", metavar="[RUN]", default="last", shell_complete=complete_runs)
"""A run by its number or name, or ``last``."""
RECIPE = click.argument("recipe", shell_complete=complete_recipes)
"""A file, or the name of a recipe that ships."""


def _parse_separator(_context: click.Context, _option: click.Parameter, value: str | None) -> str | None:
    """Return the separator that a name such as ``tab`` stands for; any other text unchanged."""
    return None if value is None else SEPARATORS.get(value, value)


def _split_commas(_context: click.Context, _option: click.Parameter, values: tuple[str, ...]) -> tuple[str, ...]:
    """Return the names that stand between commas in all values of an option."""
    return split_names(values)


def _parse_widths(context: click.Context, option: click.Parameter, values: tuple[str, ...]) -> tuple[int, ...]:
    """Return the whole numbers that stand between commas in all values of an option. Raises BadInput."""
    from sfumato.engine.errors import BadInput

    texts = _split_commas(context, option, values)
    if wrong := [text for text in texts if not text.isdecimal()]:
        raise BadInput("--widths", f'"{wrong[0]}" is no number of characters; give one for each column, such as 2,1,8')
    return tuple(map(int, texts))


def add_text_format_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the keys of ``[data.format]`` as options of a command that reads a file.

    An option that is not given is None or empty.
    """
    options = (
        click.option(
            "--delimiter", callback=_parse_separator, metavar="SIGN", help="What separates cells: , ; tab | blanks."
        ),
        click.option("--encoding", metavar="NAME", help="Such as utf-8, windows-1252."),
        click.option("--decimal", metavar="SIGN", help="The decimal sign: . or a comma."),
        click.option("--thousands", metavar="SIGN", help="What groups thousands: . , ' or a blank."),
        click.option("--quote", metavar="SIGN", help="What stands around cells that hold separators."),
        click.option("--header/--no-header", default=None, help="Whether the first line holds names."),
        click.option("--skip", type=int, metavar="LINES", help="Lines that stand before the table."),
        click.option("--skip-below", type=int, metavar="LINES", help="Lines below the names that are no records."),
        click.option("--footer", type=int, metavar="LINES", help="Lines that stand below the table."),
        click.option(
            "--widths",
            multiple=True,
            callback=_parse_widths,
            metavar="N,N",
            help="Characters of each column, without separators.",
        ),
        click.option(
            "--names",
            multiple=True,
            callback=_split_commas,
            metavar="NAMES",
            help="Names of columns, where no line has them.",
        ),
        click.option("--trim/--no-trim", default=None, help="Whether blanks around a cell do not count."),
        click.option("--missing", multiple=True, metavar="CODE", help="What stands for no value. Repeatable."),
    )
    # Decorators apply from the last to the first: reversed, the help lists them in this order.
    for option in reversed(options):
        command = option(command)
    return command


def add_selection_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options for the part of a file that is imported."""
    options = (
        click.option("--sheet", default="", metavar="NAME", help="Of an Excel file (default: the first)."),
        click.option("--where", default="", metavar="EXPRESSION", help="Only records for which it holds: price > 0."),
        click.option("--sample", type=click.IntRange(1), metavar="N", help="Sample N records, without replacement."),
        click.option("--only", multiple=True, metavar="COLUMN", help="Bring in this column and no other. Repeatable."),
        click.option("--leave-out", multiple=True, metavar="COLUMN", help="Leave this column out. Repeatable."),
        click.option("--keep", multiple=True, metavar="COLUMN", help="Bring it in though it may be an identifier."),
        click.option(
            "--as",
            "kinds",
            multiple=True,
            metavar="COLUMN=KIND",
            help="Say a column's kind, of dates their form: zip=categorical, born=date:dd.mm.yyyy.",
        ),
    )
    for option in reversed(options):
        command = option(command)
    return command


def named_workspace(directory: Path | None) -> Path | None:
    """Return the workspace that was named after the command or before it; None for none."""
    context = click.get_current_context(silent=True)
    before = None if context is None else context.find_root().params.get("directory")
    return directory or (before if isinstance(before, Path) else None)


def chosen_workspace(directory: Path | None) -> Path:
    """Return the workspace that was named, else the one used last in this terminal."""
    return named_workspace(directory) or default_workspace()


def _parse_plain(context: click.Context, option: click.Parameter, value: bool) -> bool:
    """Return whether the option is given, else the value of SFUMATO_PLAIN. Raises BadInput."""
    from sfumato.engine.errors import BadInput

    said = os.environ.get("SFUMATO_PLAIN", "")
    if said.lower() not in ("", "0", "no", "false", "1", "yes", "true"):
        raise BadInput("SFUMATO_PLAIN", f'must be 1 or 0, not "{said}"')
    return value or said.lower() in ("1", "yes", "true")


PLAIN_OPTION = click.option(
    "--plain",
    is_flag=True,
    callback=_parse_plain,
    help="Numbered menus in lines of text, for screen readers and scripts (or SFUMATO_PLAIN=1).",
)


def is_plain_requested() -> bool:
    """Return whether ``--plain`` or SFUMATO_PLAIN asks for whole lines of text, without a redraw."""
    context = click.get_current_context(silent=True)
    return context is not None and bool(context.find_root().params.get("plain"))


def report_workspace_at_end(directory: Path) -> None:
    """Print at the end of the command, on standard error, which workspace it used.

    It does so once, and only where the workspace was not named and the command is neither quiet nor failed.
    """
    context = click.get_current_context(silent=True)
    if named_workspace(None if context is None else context.params.get("directory")) is not None:
        return
    if context is not None and not context.params.get("quiet") and not context.find_root().meta.get(WORKSPACE_REPORTED):
        context.find_root().meta[WORKSPACE_REPORTED] = True
        context.call_on_close(partial(_report_workspace_unless_failed, directory))


def _report_workspace_unless_failed(directory: Path) -> None:
    """Print which workspace a command used, unless an exception ends it."""
    failure = sys.exc_info()[1]
    # Exit is how a command sets its status: not a failure.
    if not isinstance(failure, Exception) or isinstance(failure, click.exceptions.Exit):
        echo(f"workspace: {directory}", err=True)


def open_or_create(directory: Path | None, key: bytes | None = None) -> Workspace:
    """Open the workspace that was named, else the one used last, and remember it; create it with this key if need be.

    .
    """
    from sfumato.workspace.store.workspace import Workspace

    workspace = Workspace.create(chosen_workspace(directory), key)
    report_workspace_at_end(workspace.directory)
    remember_workspace(workspace.directory)
    return workspace


def read_key_option(key_file: str | None) -> bytes | None:
    """Return the key that ``--key`` names; None where it is not given. Raises NoKey."""
    from sfumato.workspace.store.keys import read_key_option

    return None if key_file is None else read_key_option(key_file)


def workspace_key(directory: Path | None, key_file: str | None = None) -> bytes:
    """Return the key of the workspace, or the key that it will be created with. Raises NoKey."""
    from sfumato.workspace.store.workspace import future_workspace_key

    return future_workspace_key(chosen_workspace(directory), read_key_option(key_file))


def weighting_settings(
    directory: Path | None, weights_from: str | None, measure: str | None, strength: float | None
) -> tuple[str, ...]:
    """Return the recipe settings for ``--weights-from``. Raises UsageError, NotAWorkspace and NotFound."""
    if weights_from is None:
        if measure is not None or strength is not None:
            raise click.UsageError(
                "--measure and --strength need --weights-from RUN, whose records at risk they speak of"
            )
        return ()
    from sfumato.workspace.store.runs import find_run

    run = find_run(open_workspace(directory), weights_from)
    # A JSON string is a TOML string too, and ``repr`` keeps every digit of the strength.
    by = () if measure is None else (f"weights.measure={json.dumps(measure)}",)
    strong = () if strength is None else (f"weights.strength={strength!r}",)
    return (f"weights.run={run.id}", *by, *strong)


def open_workspace(directory: Path | None, *, unchecked: bool = False) -> Workspace:
    """Open the workspace that was named, else the one used last.

    Raises NotAWorkspace, and BrokenHistory unless ``unchecked``.
    """
    from sfumato.workspace.store.workspace import Workspace

    workspace = Workspace.open(chosen_workspace(directory), unchecked=unchecked)
    report_workspace_at_end(workspace.directory)
    return workspace


def check_seal(workspace: Workspace, *run_ids: int | str) -> None:
    """Compare runs with their seals before they are shown; report a missing seal. Raises NotFound and NotAsSealed."""
    from sfumato.workspace.upkeep.integrity import verify_run

    for run_id in run_ids:
        if said := verify_run(workspace, run_id).message:
            echo(said, err=True)


def check_run_named(run_id: str | None, directory: Path | None) -> None:
    """Raise BadInput for the newest run of a workspace that was not named."""
    from sfumato.engine.errors import BadInput

    # It may be another workspace than the user thinks, and what follows cannot be undone.
    if run_id == "last" and named_workspace(directory) is None:
        raise BadInput(
            "RUN", '"last" needs --workspace DIR here; or name the run by its number, which sfumato runs shows'
        )


def table_text(table: DisplayTable) -> str:
    """Return a table as text that fits the terminal on standard output; in full where that is a file."""
    from sfumato.workspace.reporting.tables import format_table

    return format_table(table, terminal_width())


def terminal_width() -> int | None:
    """Return the width of the terminal on standard output; None where it is no terminal."""
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else None


def write_object(table: Mapping[str, Any], json_file: str | None, *, private: bool = False) -> None:
    """Write a JSON object to a file, or to standard output for ``-``; nothing for None.

    A ``private`` file is readable by its owner alone.
    """
    if json_file is None:
        return
    # A recipe may have dates, which JSON has as text.
    text = json.dumps(table, indent=1, allow_nan=False, default=str) + "\n"
    if json_file == "-":
        echo(text, nl=False, verbatim=True)
        return
    if private:
        # Before the text is written: afterwards, it could be read for a moment.
        Path(json_file).touch(mode=0o600)
        # A file that was there keeps its mode through ``touch``.
        Path(json_file).chmod(0o600)
    Path(json_file).write_text(text, "utf-8")


def check_writable(json_file: str | None) -> None:
    """Raise BadInput where the file for the results has no directory."""
    from sfumato.engine.errors import BadInput

    # Commands call this first: a run must not fail at its end for a path.
    if json_file not in (None, "-") and not Path(str(json_file)).absolute().parent.is_dir():
        raise BadInput("--json", f'there is no directory "{Path(str(json_file)).parent}"; make it first')
