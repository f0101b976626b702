"""Reading and profiling large tables in a process of its own: neither the app's memory nor its keys have to bear it."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from ..errors import WorkspaceError
from ..views.variable_lines import DataView, view_from_json

__all__ = ["data_view_apart"]

LOOK_SECONDS = 0.1
REFUSED = 3
"""How the other process ends when it has put a message for the user in place of the answer."""


def data_view_apart(directory: Path, project_id: int, unwanted: Callable[[], bool] = lambda: False) -> DataView | None:
    """``data_view`` by another process; None too once the answer is ``unwanted``. Raises WorkspaceError."""
    command = [
        sys.executable,
        "-P",
        "-m",
        "sfumato.workspace.views.data_view",
        str(directory.resolve()),
        str(project_id),
    ]
    process = subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=os.environ
    )
    with process:
        while True:
            try:
                answer, _ = process.communicate(timeout=LOOK_SECONDS)
            except subprocess.TimeoutExpired:
                if unwanted():
                    process.kill()
                    return None
            else:
                break
    if process.returncode == 0:
        return view_from_json(answer)
    raise WorkspaceError(answer if process.returncode == REFUSED else "the data could not be read")
