"""Options that several commands share, and the workspace they name."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ..places import default_workspace, remember_workspace

if TYPE_CHECKING:
    from sfumato.workspace.store.workspace import Workspace

__all__ = ["JOBS", "JSON", "QUIET", "SET", "WORKSPACE", "open_or_create", "open_workspace"]

WORKSPACE = click.option(
    "--workspace",
    "directory",
    type=click.Path(path_type=Path),
    help="Workspace directory (default: the last one used).",
)
JSON = click.option("--json", "json_file", metavar="FILE", help="Write the results as JSON; - for standard output.")
JOBS = click.option(
    "--jobs", type=click.IntRange(1), default=min(2, os.cpu_count() or 1), show_default=True, help="Tasks at a time."
)
QUIET = click.option("--quiet", is_flag=True, help="Print nothing but errors.")
SET = click.option(
    "--set", "settings", multiple=True, metavar="KEY=VALUE", help="Change the recipe, such as release.m=5. Repeatable."
)


def open_or_create(directory: Path | None) -> Workspace:
    """The workspace, the one used last when none is named, made if need be; it is remembered."""
    from sfumato.workspace.store.workspace import Workspace

    workspace = Workspace.create(directory or default_workspace())
    remember_workspace(workspace.directory)
    return workspace


def open_workspace(directory: Path | None) -> Workspace:
    """The workspace, the one used last when none is named. Raises NotAWorkspace."""
    from sfumato.workspace.store.workspace import Workspace

    return Workspace.open(directory or default_workspace())
