"""Files and names that others may have made: only plain files are opened, none for longer or larger than was agreed.

A workspace, a recipe or a table may come from a stranger. Within a workspace no link is followed, and no stored name becomes a
path before it looks like what we give tables: the SHA-256 of their bytes.
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
    """Whether a stored name is a SHA-256 in 64 hexadecimal digits, as every table's is."""
    return isinstance(name, str) and _HASH.fullmatch(name) is not None


def kind_of(mode: int) -> str:
    """What is no plain file, in words: ``a named pipe``; empty for a plain one."""
    return "" if stat.S_ISREG(mode) else next((words for is_it, words in _KINDS if is_it(mode)), "no plain file")


def open_plain(path: Path, *, follow: bool = False) -> int:
    """A handle to read a plain file. A link is followed where ``follow`` says so, and then only to a plain file.

    Never waits: not for the other end of a pipe, not for a device. Raises OSError, and StrangeFile for all but plain files.
    """
    flags = os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC | (0 if follow else os.O_NOFOLLOW)
    try:
        if follow and (kind := kind_of(path.stat().st_mode)):  # to open a device may do something
            raise StrangeFile(path, kind)
        handle = os.open(path, flags)
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise StrangeFile(path, "a link") from None
        if error.errno == errno.ENXIO:
            raise StrangeFile(path, "a socket or a device") from None
        raise
    if kind := kind_of(os.fstat(handle).st_mode):
        os.close(handle)
        raise StrangeFile(path, kind)
    return handle


def read_plain(path: Path, most_bytes: int | None = None, *, follow: bool = False) -> bytes:
    """The bytes of a plain file. Raises OSError; StrangeFile for all but plain files, and for more than ``most_bytes``."""
    with os.fdopen(open_plain(path, follow=follow), "rb") as file:
        if most_bytes is None:
            return file.read()
        content = file.read(most_bytes + 1)
    if len(content) > most_bytes:
        raise StrangeFile(path, f"larger than {_size(most_bytes)}")
    return content


def _size(size: int) -> str:
    return f"{size >> 20} MiB" if size >= 1 << 20 else f"{size >> 10} KiB"


def open_to_add(path: Path) -> int:
    """A handle to add to a plain file of ours, made if need be (0600). Raises OSError, and StrangeFile for links and all else."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    try:
        handle = os.open(path, flags, 0o600)
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.ENXIO, errno.EISDIR):
            raise StrangeFile(path, "a link, a pipe or a directory") from None
        raise
    found = os.fstat(handle)
    kind = kind_of(found.st_mode) or ("a file that has another name too" if found.st_nlink > 1 else "")
    if kind or found.st_uid != os.geteuid():
        os.close(handle)
        raise StrangeFile(path, kind or "a file of another user")
    return handle


def check_layout(directory: Path) -> None:
    """Hold that what a workspace is made of lies in it: directories that are no links, plain files. Raises StrangeFile."""
    for name in (*DIRECTORIES, *FILES):
        try:
            mode = (directory / name).lstat().st_mode
        except FileNotFoundError:
            continue
        wanted = "a directory" if name in DIRECTORIES else ""
        if (kind := kind_of(mode)) != wanted:
            raise StrangeFile(directory / name, kind or "a file")


def room(directory: Path, name: str) -> Path:
    """The directory ``name`` of a workspace, made if need be (0700); what is in it is ours. Raises OSError and StrangeFile."""
    path = directory / name
    path.mkdir(mode=0o700, exist_ok=True)
    found = path.lstat()
    if not stat.S_ISDIR(found.st_mode):
        raise StrangeFile(path, kind_of(found.st_mode) or "a file")
    if found.st_uid != os.geteuid():
        raise StrangeFile(path, "a directory of another user")
    return path


def owner_if_other(directory: Path, *names: str) -> str:
    """Who owns a directory, or a file of these names in it, if that is not this user; empty where all are ours."""
    for path in (directory, *(directory / name for name in names)):
        uid = path.lstat().st_uid if path != directory else path.stat().st_uid
        if uid != os.geteuid():
            return _name_of(uid)
    return ""


def _name_of(uid: int) -> str:
    try:
        import pwd

        return f"{pwd.getpwuid(uid).pw_name} (uid {uid})"
    except (ImportError, KeyError):
        return f"uid {uid}"


def synchronise(path: Path) -> None:
    """Have what was written to a file, or entered in a directory, reach the disk."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
