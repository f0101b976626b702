"""What several commands share: options, the workspace they name, tables that fit the terminal, JSON."""

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

from sfumato.workspace.jobs import settings as computing

from ..session.places import default_workspace, remember_workspace
from .completion import recipes, runs, settings
from .speech import echo

if TYPE_CHECKING:
    from sfumato.workspace.reporting.tables import Table
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
    "--jobs", type=click.IntRange(1), default=computing.JOBS, show_default=True, help="Tasks at a time."
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
SAID = "sfumato.workspace-said"


def _settle(context: click.Context, option: click.Parameter, value: str | None) -> None:
    """Say for this command and its worker where runs are computed, and how much memory they have."""
    if value is None:
        return
    variable = str(option.envvar)
    before = os.environ.get(variable, "")
    computing.settle_computing(**{str(option.name): value})
    context.call_on_close(partial(os.environ.__setitem__, variable, before))
    if option.name == "dask" and value.strip() and not value.strip().startswith(computing.ENCRYPTED):
        echo(computing.OPEN_CLUSTER.format(address=value.strip()), err=True)


def COMPUTING(command: Callable[..., Any]) -> Callable[..., Any]:  # noqa: N802
    """Where a command has its runs computed, and in how much memory: settled before it begins."""
    dask = click.option(
        "--dask",
        metavar="ADDRESS",
        envvar="SFUMATO_DASK",
        expose_value=False,
        callback=_settle,
        help="Compute on the cluster of this Dask scheduler, not here (needs sfumato[dask]).",
    )
    memory = click.option(
        "--memory",
        metavar="SIZE|none",
        envvar="SFUMATO_MEMORY",
        expose_value=False,
        callback=_settle,
        help="Memory for all tasks together, such as 8GB (default: most of the machine's free memory).",
    )
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
    shell_complete=settings,
    help="Change the recipe, such as release.m=5. Repeatable.",
)


KEY = click.option(
    "--key", "key_file", metavar="FILE|public", help="The key of a workspace that is made (default: one of its own)."
)


RUN = click.argument("run_id", metavar="[RUN]", default="last", shell_complete=runs)
"""A run by its number or name, or ``last``."""
RECIPE = click.argument("recipe", shell_complete=recipes)
"""A file, or the name of a recipe that ships."""


def _separator(_context: click.Context, _option: click.Parameter, value: str | None) -> str | None:
    return None if value is None else SEPARATORS.get(value, value)


def text_format(command: Callable[..., Any]) -> Callable[..., Any]:
    """The keys of ``[data.format]`` as options of a command that reads a file; one that is not given is None or empty."""
    options = (
        click.option(
            "--delimiter", callback=_separator, metavar="SIGN", help="What separates cells: , ; tab | blanks."
        ),
        click.option("--encoding", metavar="NAME", help="Such as utf-8, windows-1252."),
        click.option("--decimal", metavar="SIGN", help="The decimal sign: . or a comma."),
        click.option("--thousands", metavar="SIGN", help="What groups thousands: . , ' or a blank."),
        click.option("--quote", metavar="SIGN", help="What stands around cells that hold separators."),
        click.option("--header/--no-header", default=None, help="Whether the first line holds names."),
        click.option("--skip", type=int, metavar="LINES", help="Lines that stand before the table."),
        click.option("--trim/--no-trim", default=None, help="Whether blanks around a cell do not count."),
        click.option("--missing", multiple=True, metavar="CODE", help="What stands for no value. Repeatable."),
    )
    for option in reversed(options):
        command = option(command)
    return command


def selection(command: Callable[..., Any]) -> Callable[..., Any]:
    """What of a file is brought in, as options of a command."""
    options = (
        click.option("--sheet", default="", metavar="NAME", help="Of an Excel file (default: the first)."),
        click.option("--where", default="", metavar="EXPRESSION", help="Only records for which it holds: price > 0."),
        click.option("--sample", type=click.IntRange(1), metavar="N", help="Sample N records, without replacement."),
        click.option("--only", multiple=True, metavar="COLUMN", help="Bring in this column and no other. Repeatable."),
        click.option("--leave-out", multiple=True, metavar="COLUMN", help="Leave this column out. Repeatable."),
        click.option("--keep", multiple=True, metavar="COLUMN", help="Bring it in though it may be an identifier."),
    )
    for option in reversed(options):
        command = option(command)
    return command


def named_workspace(directory: Path | None) -> Path | None:
    """The workspace that was named, after the command or before it."""
    context = click.get_current_context(silent=True)
    before = None if context is None else context.find_root().params.get("directory")
    return directory or (before if isinstance(before, Path) else None)


def chosen_workspace(directory: Path | None) -> Path:
    """The workspace that was named, else the one used last in this terminal."""
    return named_workspace(directory) or default_workspace()


def _plain(context: click.Context, option: click.Parameter, value: bool) -> bool:
    """Whether the option is given, else what SFUMATO_PLAIN says. Raises BadInput."""
    from sfumato.engine.errors import BadInput

    said = os.environ.get("SFUMATO_PLAIN", "")
    if said.lower() not in ("", "0", "no", "false", "1", "yes", "true"):
        raise BadInput("SFUMATO_PLAIN", f'must be 1 or 0, not "{said}"')
    return value or said.lower() in ("1", "yes", "true")


PLAIN = click.option(
    "--plain",
    is_flag=True,
    callback=_plain,
    help="Numbered menus in lines of text, for screen readers and scripts (or SFUMATO_PLAIN=1).",
)


def plain_wanted() -> bool:
    """Whether ``--plain`` or SFUMATO_PLAIN asks for whole lines of text, without a redraw."""
    context = click.get_current_context(silent=True)
    return context is not None and bool(context.find_root().params.get("plain"))


def say_workspace(directory: Path) -> None:
    """Have a command say at its end, on standard error, which workspace it worked in.

    It does so once, where the workspace was not named, it is not to be quiet, and there is no failure to tell instead.
    """
    context = click.get_current_context(silent=True)
    if named_workspace(None if context is None else context.params.get("directory")) is not None:
        return
    if context is not None and not context.params.get("quiet") and not context.find_root().meta.get(SAID):
        context.find_root().meta[SAID] = True
        context.call_on_close(partial(_said_unless_it_failed, directory))


def _said_unless_it_failed(directory: Path) -> None:
    failure = sys.exc_info()[1]
    if not isinstance(failure, Exception) or isinstance(failure, click.exceptions.Exit):
        echo(f"workspace: {directory}", err=True)


def open_or_create(directory: Path | None, key: bytes | None = None) -> Workspace:
    """The workspace, the one used last when none is named, made with this key if need be; it is remembered."""
    from sfumato.workspace.store.workspace import Workspace

    workspace = Workspace.create(chosen_workspace(directory), key)
    say_workspace(workspace.directory)
    remember_workspace(workspace.directory)
    return workspace


def key_given(key_file: str | None) -> bytes | None:
    """The key that ``--key`` names. Raises NoKey."""
    from sfumato.workspace.store.keys import given_key

    return None if key_file is None else given_key(key_file)


def workspace_key(directory: Path | None, key_file: str | None = None) -> bytes:
    """The key of the workspace, or that it will be made with. Raises NoKey."""
    from sfumato.workspace.store.workspace import key_beforehand

    return key_beforehand(chosen_workspace(directory), key_given(key_file))


def weighing(
    directory: Path | None, weights_from: str | None, measure: str | None, strength: float | None
) -> tuple[str, ...]:
    """The settings of a recipe that ``--weights-from`` means. Raises UsageError, NotAWorkspace and NotFound."""
    if weights_from is None:
        if measure is not None or strength is not None:
            raise click.UsageError(
                "--measure and --strength need --weights-from RUN, whose records at risk they speak of"
            )
        return ()
    from sfumato.workspace.store.runs import find_run

    run = find_run(open_workspace(directory), weights_from)
    by = () if measure is None else (f"weights.measure={json.dumps(measure)}",)
    strong = () if strength is None else (f"weights.strength={strength!r}",)
    return (f"weights.run={run.id}", *by, *strong)


def open_workspace(directory: Path | None, *, unchecked: bool = False) -> Workspace:
    """The workspace, the one used last when none is named. Raises NotAWorkspace, and BrokenHistory unless ``unchecked``."""
    from sfumato.workspace.store.workspace import Workspace

    workspace = Workspace.open(chosen_workspace(directory), unchecked=unchecked)
    say_workspace(workspace.directory)
    return workspace


def check_seal(workspace: Workspace, *run_ids: int | str) -> None:
    """Hold runs against their seals before they are shown; that one has none is said. Raises NotFound and NotAsSealed."""
    from sfumato.workspace.upkeep.integrity import verify_run

    for run_id in run_ids:
        if said := verify_run(workspace, run_id).message:
            echo(said, err=True)


def check_run_named(run_id: str | None, directory: Path | None) -> None:
    """BadInput where the newest run of a workspace is meant that nobody has named: it may be another's than is thought of."""
    from sfumato.engine.errors import BadInput

    if run_id == "last" and named_workspace(directory) is None:
        raise BadInput(
            "RUN", '"last" needs --workspace DIR here; or name the run by its number, which sfumato runs shows'
        )


def printed(table: Table) -> str:
    """A table as text that fits the terminal it goes to; where it goes to a file, all of it."""
    from sfumato.workspace.reporting.tables import text

    return text(table, terminal_width())


def terminal_width() -> int | None:
    """Cells across, where standard output is a terminal."""
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else None


def write_object(table: Mapping[str, Any], json_file: str | None, *, private: bool = False) -> None:
    """Write to a file, or to standard output for ``-``; nothing for None. A ``private`` file is its owner's alone."""
    if json_file is None:
        return
    text = json.dumps(table, indent=1, allow_nan=False) + "\n"
    if json_file == "-":
        echo(text, nl=False, verbatim=True)
        return
    if private:
        Path(json_file).touch(mode=0o600)
        Path(json_file).chmod(0o600)
    Path(json_file).write_text(text, "utf-8")


def check_writable(json_file: str | None) -> None:
    """BadInput where the file for the results has no directory."""
    from sfumato.engine.errors import BadInput

    if json_file not in (None, "-") and not Path(str(json_file)).absolute().parent.is_dir():
        raise BadInput("--json", f'there is no directory "{Path(str(json_file)).parent}"; make it first')
