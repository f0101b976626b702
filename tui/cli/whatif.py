"""Command that counts whom an intruder finds by what he knows, and how surely."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from sfumato.engine.wording import split_names

from .options import JSON, RUN, WORKSPACE, check_seal, check_writable, open_workspace, write_object
from .speech import echo

if TYPE_CHECKING:
    from sfumato.workspace.reporting.intruder_dial import IntruderDial


@click.command()
@RUN
@WORKSPACE
@JSON
@click.option(
    "--known",
    multiple=True,
    metavar="NAMES",
    help="What the intruder knows (default: what the plan says). Commas between names; repeatable.",
)
@click.option(
    "--unsure",
    multiple=True,
    metavar="NAME=WIDTH",
    help="A number that he knows within WIDTH, such as age=2. Repeatable.",
)
def whatif(
    run_id: str, directory: Path | None, json_file: str | None, known: tuple[str, ...], unsure: tuple[str, ...]
) -> None:
    """Count whom an intruder finds by what he knows.

    RUN is a number, a name, or last. The numbers are those of the dial on the first page of Findings. For a synthetic number
    that he knows within WIDTH, 0 included, he looks in the window that finds most people. The last line says what to
    coarsen first.
    """
    from dataclasses import replace

    from sfumato.engine.errors import BadInput
    from sfumato.workspace.reporting.intruder_dial import IntruderDial
    from sfumato.workspace.service.intruder_dial import count_for_dial, count_unsure
    from sfumato.workspace.store.runs import RunState, find_run

    check_writable(json_file)
    workspace = open_workspace(directory)
    run = find_run(workspace, run_id)
    if run.state is not RunState.DONE:
        raise BadInput("RUN", f"run {run.id} is not done, so it has no release to count in")
    check_seal(workspace, run.id)
    dial = _turned_dial(IntruderDial.from_numbers(count_for_dial(workspace.directory, run.id)), known, unsure)
    if dial.numbers.counts is not None and dial.counts is None and not dial.uncounted_reason:
        (found,) = count_unsure(workspace.directory, run.id, (dial.wanted_reaches,))
        dial = replace(dial, unsure={dial.wanted_reaches: found})
    write_object(dial.to_table(), json_file)
    if json_file != "-":
        echo("\n".join(dial.sentences()))


def _turned_dial(dial: IntruderDial, known: Sequence[str], unsure: Sequence[str]) -> IntruderDial:
    """Return the dial with what the options say is known, and how surely. Raises BadInput."""
    from dataclasses import replace

    from sfumato.engine.errors import BadInput, near_miss_hint

    variables = {one.name: one for one in dial.numbers.variables}

    def require_variable(name: str, option: str) -> None:
        """Raise BadInput for a name that is no variable of the dial."""
        if name not in variables:
            raise BadInput(
                option,
                f'"{name}" is no variable that can be turned{near_miss_hint(name, variables) or "; these can: " + ", ".join(variables)}',
            )

    names = split_names(known, variables)
    for name in names:
        require_variable(name, "--known")
    turned = replace(dial, known=frozenset(names)) if names else dial
    for text in unsure:
        name, _, width = text.rpartition("=")
        require_variable(name, "--unsure")
        try:
            reach = float(width)
        except ValueError:
            reach = math.nan
        if not (math.isfinite(reach) and reach >= 0):
            raise BadInput("--unsure", f'"{width}" is no width; write NAME=WIDTH, such as {name}=2')
        if not variables[name].is_numeric:
            raise BadInput("--unsure", f'"{name}" is known or not: the release has no numbers of it')
        turned = turned.set_reach(name, reach)
    return turned
