"""Edit a text with the user's own editor, in a file that only the user can read and that is deleted afterwards."""

from __future__ import annotations

import os
import shlex
import signal
import stat
import subprocess
import tempfile
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from sfumato.workspace.errors import StrangeFile
from sfumato.workspace.plain_files import read_plain

VARIABLES = ("VISUAL", "EDITOR")
NO_EDITOR = "No editor is known: set VISUAL or EDITOR, such as export EDITOR=nano, and start the app again"
MOST_BYTES = 1 << 20
"""Greatest size of a recipe."""


class NotEdited(Exception):
    """Error that leaves the text unchanged; its message is the reason."""


def editor_command(environment: Mapping[str, str]) -> list[str]:
    """Return the command that ``VISUAL``, otherwise ``EDITOR``, names, split as by a shell. Raises NotEdited."""
    named = next((name for name in VARIABLES if environment.get(name, "").strip()), None)
    if named is None:
        raise NotEdited(NO_EDITOR)
    try:
        # Split here and run without a shell, so that nothing in a path is expanded.
        return shlex.split(environment[named])
    except ValueError as error:
        raise NotEdited(f"{named} cannot be read as a command: {error}") from None


def edit_text(text: str, name: str, command: Sequence[str]) -> str:
    """Return the text after editing it in a file called ``name``. Raises NotEdited.

    The directory belongs to the user alone (0700), is in memory if the session has a place there, and is removed with
    everything that the editor leaves in it.
    """
    with tempfile.TemporaryDirectory(
        prefix="sfumato-", dir=_session_directory(os.environ), ignore_cleanup_errors=True
    ) as directory:
        file = Path(directory) / name
        with os.fdopen(
            # Created with its permissions: a later chmod would leave the file readable for a moment.
            os.open(file, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600),
            "w",
            encoding="utf-8",
            newline="",
        ) as out:
            out.write(text)
        try:
            with _leave_interrupts_to_editor():
                status = subprocess.run([*command, str(file)], check=False).returncode
        except (OSError, ValueError) as error:
            reason = error.strerror if isinstance(error, OSError) else str(error)
            raise NotEdited(f"{command[0]} cannot be started: {reason}; set VISUAL or EDITOR to your editor") from None
        if status:
            raise NotEdited(f"{command[0]} ended with status {status}: the text is as it was")
        return _read_edited(file)


def _read_edited(file: Path) -> str:
    """Return the text that the editor left. Raises NotEdited."""
    try:
        # An editor may have replaced the file by a link or a device.
        content = read_plain(file, MOST_BYTES)
        # Editors of other systems add a byte order mark and line ends of their own.
        return content.decode("utf-8-sig").replace("\r\n", "\n").replace("\r", "\n")
    except StrangeFile as error:
        raise NotEdited(f"what the editor left is {error.kind}: the text is as it was") from None
    except UnicodeDecodeError:
        raise NotEdited("what the editor left is not UTF-8: the text is as it was") from None
    except OSError as error:
        raise NotEdited(f"what the editor left cannot be read ({error.strerror}): the text is as it was") from None


def _session_directory(environment: Mapping[str, str]) -> str | None:
    """Return the session's own directory in memory; None for the system's default."""
    named = environment.get("XDG_RUNTIME_DIR", "")
    try:
        found = os.lstat(named)
    except (OSError, ValueError):
        return None
    # The variable may name a directory of somebody else, or one that others can read.
    own = stat.S_ISDIR(found.st_mode) and found.st_uid == os.geteuid() and not found.st_mode & 0o077
    return named if own and os.access(named, os.W_OK) else None


@contextmanager
def _leave_interrupts_to_editor() -> Iterator[None]:
    """Ignore Ctrl+C in the app while the editor is in front."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGINT, lambda *_: None)  # a handler, unlike SIG_IGN, is not inherited
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
