"""An object written as JSON, to a file or to standard output."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

__all__ = ["write_object"]


def write_object(table: Mapping[str, Any], json_file: str | None, *, private: bool = False) -> None:
    """Write to a file, or to standard output for ``-``; nothing for None. A ``private`` file is its owner's alone."""
    if json_file is None:
        return
    text = json.dumps(table, indent=1, allow_nan=False) + "\n"
    if json_file == "-":
        click.echo(text, nl=False)
        return
    if private:
        Path(json_file).touch(mode=0o600)
        Path(json_file).chmod(0o600)
    Path(json_file).write_text(text, "utf-8")
