"""Reading of files and names that others may have made: only plain files are opened, with a limit on waiting and size.

A workspace, a recipe or a table may come from a stranger. Within a workspace no link is followed, and no stored name becomes a
path before it looks like the name of a table: the SHA-256 of its bytes.
"""

from __future__ import annotations

import errno
import os
import re
import stat
from pathlib import Path

from .errors import StrangeFile

_HASH = re.compile(r"[0-9a-f]{64}", re.ASCII)
_KINDS = (
    (stat.S_ISLNK, "a link"),
    (stat.S_ISDIR, "a directory"),
    (stat.S_ISFIFO, "a named pipe"),
    (stat.S_ISSOCK, "a socket"),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
)
DIRECTORIES = ("tables", "logs")
FILES = ("workspace.db", "workspace.db-wal", "workspace.db-shm", "workspace.db-journal", "audit.head", "app-state.json")


def is_hash(name: object) -> bool:
    """Return whether a stored name is a SHA-256 in 64 hexadecimal digits, as every table's is."""
    return isinstance(name, str) and _HASH.fullmatch(name) is not None


def strange_kind(mode: int) -> str:
    """Return what a path is that is no plain file, in words: ``a named pipe``; empty for a plain file."""
    return "" if stat.S_ISREG(mode) else next((words for is_it, words in _KINDS if is_it(mode)), "no plain file")


def open_plain(path: Path, *, follow: bool = False) -> int:
    """Open a plain file to read and return its handle. A link is followed only with ``follow``, and then only to a plain file.

    Never waits: not for the other end of a pipe, not for a device. Raises OSError, and StrangeFile for all but plain files.
    """
    flags = os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC | (0 if follow else os.O_NOFOLLOW)
    try:
        if follow and (kind := strange_kind(path.stat().st_mode)):  # to open a device may do something
            raise StrangeFile(path, kind)
        handle = os.open(path, flags)
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise StrangeFile(path, "a link") from None
        if error.errno == errno.ENXIO:
            raise StrangeFile(path, "a socket or a device") from None
        raise
    if kind := strange_kind(os.fstat(handle).st_mode):
        os.close(handle)
        raise StrangeFile(path, kind)
    return handle


def read_plain(path: Path, most_bytes: int | None = None, *, follow: bool = False) -> bytes:
    """Read the bytes of a plain file. Raises OSError; StrangeFile for all but plain files, and for more than ``most_bytes``."""
    with os.fdopen(open_plain(path, follow=follow), "rb") as file:
        if most_bytes is None:
            return file.read()
        content = file.read(most_bytes + 1)
    if len(content) > most_bytes:
        raise StrangeFile(path, f"larger than {_size_text(most_bytes)}")
    return content


def _size_text(size: int) -> str:
    return f"{size >> 20} MiB" if size >= 1 << 20 else f"{size >> 10} KiB"


def open_to_append(path: Path) -> int:
    """Open a plain file of ours to append to it, made if need be (0600), and return its handle. Raises OSError, and StrangeFile for links
    and all else.
    """
    flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    try:
        handle = os.open(path, flags, 0o600)
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.ENXIO, errno.EISDIR):
            raise StrangeFile(path, "a link, a pipe or a directory") from None
        raise
    found = os.fstat(handle)
    kind = strange_kind(found.st_mode) or ("a file that has another name too" if found.st_nlink > 1 else "")
    if kind or found.st_uid != os.geteuid():
        os.close(handle)
        raise StrangeFile(path, kind or "a file of another user")
    return handle


def check_layout(directory: Path) -> None:
    """Check that the parts of a workspace lie in it: directories that are no links, plain files. Raises StrangeFile."""
    for name in (*DIRECTORIES, *FILES):
        try:
            mode = (directory / name).lstat().st_mode
        except FileNotFoundError:
            continue
        wanted = "a directory" if name in DIRECTORIES else ""
        if (kind := strange_kind(mode)) != wanted:
            raise StrangeFile(directory / name, kind or "a file")


def ensure_directory(directory: Path, name: str) -> Path:
    """Return the directory ``name`` of a workspace, made if need be (0700); what is in it is ours. Raises OSError and StrangeFile."""
    path = directory / name
    path.mkdir(mode=0o700, exist_ok=True)
    found = path.lstat()
    if not stat.S_ISDIR(found.st_mode):
        raise StrangeFile(path, strange_kind(found.st_mode) or "a file")
    if found.st_uid != os.geteuid():
        raise StrangeFile(path, "a directory of another user")
    return path


def owner_if_other(directory: Path, *names: str) -> str:
    """Return who owns a directory, or a file of these names in it, if that is not this user; empty where all are ours."""
    for path in (directory, *(directory / name for name in names)):
        uid = path.lstat().st_uid if path != directory else path.stat().st_uid
        if uid != os.geteuid():
            return _account_text(uid)
    return ""


def _account_text(uid: int) -> str:
    try:
        import pwd

        return f"{pwd.getpwuid(uid).pw_name} (uid {uid})"
    except (ImportError, KeyError):
        return f"uid {uid}"


def sync_to_disk(path: Path) -> None:
    """Flush what was written to a file, or entered in a directory, to the disk."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
