"""Commands of the workspace's key: what tells it from others, and a copy of it to keep elsewhere."""

from __future__ import annotations

from pathlib import Path

import click

from .options import WORKSPACE, open_workspace
from .speech import echo


@click.group()
def key() -> None:
    """Tell the workspace's key from others, or export it to keep it elsewhere. The key itself is never shown."""


@key.command("fingerprint")
@WORKSPACE
def show_fingerprint(directory: Path | None) -> None:
    """Print what tells the key from others and gives nothing of it away; "public" for a public key."""
    from sfumato.workspace.store.keys import fingerprint

    echo(fingerprint(open_workspace(directory).key()))


@key.command()
@click.argument("file", type=click.Path(path_type=Path))
@WORKSPACE
def export(file: Path, directory: Path | None) -> None:
    """Copy the key to FILE, which is its owner's alone and must not be there yet; the audit log keeps that it was done."""
    from sfumato.workspace.store.workspace import export_key

    fingerprint = export_key(open_workspace(directory), file.expanduser())
    echo(f"key {fingerprint} written to {file}; keep it apart from what is released")
