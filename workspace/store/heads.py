"""Last heads of workspaces' audit logs, kept outside the workspaces.

Whoever may write a workspace can put an older copy in its place, with all its seals. The head that is kept elsewhere is
not on that copy.

Heads lie in the user's state directory, one file for each audit log (key fingerprint and hash of the first row) and one
for each directory, which names the log that lies there. The policy may name a file besides, ``[audit] heads``: each
head is a line at its end, and the last line counts. That file may be append-only and belong to another account.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import platform
import sqlite3
import stat
import tempfile
from collections.abc import Iterator, Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Protocol

from sfumato.engine.errors import BadInput

from ..audit import AuditHead
from ..errors import BrokenHistory, StrangeFile
from ..plain_files import is_hash, read_plain, strange_kind
from ..policy.policy import POLICY_FILE, read_trusted_policy
from .keys import FINGERPRINT_DIGITS, PUBLIC_NAME
from .places import state_directory

HEADS_FOLDER = "heads"
MAX_HEAD_BYTES = 1 << 10
BLOCK_BYTES = 1 << 16
ROLLBACK_ADVICE = (
    "An older copy or another history was put in its place. If you restored a backup on purpose: sfumato audit accept-rollback "
    "--reason TEXT. To work on a copy: sfumato adopt"
)

_PASSING: ContextVar[Path | None] = ContextVar("passing", default=None)
"""The workspace that ``without_outside_heads`` is about, in this thread."""


@dataclass(frozen=True, slots=True)
class AuditLogIdentity:
    """Identity of an audit log.

    fingerprint: fingerprint of its workspace's key
    first_hash: hash of its first row
    """

    fingerprint: str
    first_hash: str

    def __str__(self) -> str:
        return f"{self.fingerprint} {self.first_hash}"


@dataclass(frozen=True, slots=True)
class RecordedHead:
    """What a place outside the workspace has recorded.

    log: log that lies in a directory, None if unknown
    head: last head of a log, None if unknown
    """

    log: AuditLogIdentity | None = None
    head: AuditHead | None = None


class HeadStore(Protocol):
    """Protocol of a place outside the workspaces where heads are kept.

    All its functions raise OSError where the place cannot be used, and BrokenHistory where it must be.
    """

    def find_head(self, log: AuditLogIdentity | None, directory: Path) -> RecordedHead:
        """Return the log recorded for ``directory``, and the last head of ``log``, or of the recorded log for None."""
        ...

    def check_can_store(self) -> None:
        """Raise OSError or BrokenHistory where no head can be written."""
        ...

    def store_head(self, log: AuditLogIdentity, directory: Path, head: AuditHead, *, replace: bool) -> None:
        """Store a head of ``log``, and that the log lies in ``directory``; an older head only to ``replace`` a newer
        one.
        """
        ...


@contextlib.contextmanager
def without_outside_heads(directory: Path) -> Iterator[None]:
    """Keep no head of the workspace in ``directory`` outside it, in this thread and within the block.

    For a workspace that is gone when the block ends: nobody can put an older copy of it in its place.
    """
    token = _PASSING.set(directory)
    try:
        yield
    finally:
        _PASSING.reset(token)


def first_head_stores(directory: Path) -> list[HeadStore]:
    """Return the places that keep the first head of a workspace that is made in ``directory``."""
    return [] if _PASSING.get() == directory else [HeadsFolder()]


def head_stores_of(directory: Path) -> list[HeadStore]:
    """Return the places that keep heads of the workspace in ``directory``. Raises BadInput and StrangeFile for the
    policy of the user or the office; the workspace's own cannot name one.
    """
    if _PASSING.get() == directory:
        return []
    named = read_trusted_policy().heads
    return [HeadsFolder(), *([HeadsFile.from_policy_path(named, directory)] if named else [])]


@dataclass(frozen=True, slots=True)
class HeadsFolder:
    """Heads in a folder of the user's state directory."""

    @property
    def folder(self) -> Path:
        return state_directory() / HEADS_FOLDER

    def __str__(self) -> str:
        return str(self.folder)

    def find_head(self, log: AuditLogIdentity | None, directory: Path) -> RecordedHead:
        """Return the recorded log and head, see ``HeadStore``. Raises BrokenHistory where a file holds no head."""
        there = _parse_log_identity(_read_small_file(self._path_of_directory(directory)))
        wanted = log or there
        text = "" if wanted is None else _read_small_file(self._path_of_log(wanted))
        head = _parse_head(text)
        if text and head is None:
            raise BrokenHistory(
                f'"{self._path_of_log(wanted or AuditLogIdentity("", ""))}" holds no head of an audit log; remove it'
            )
        return RecordedHead(there, head)

    def check_can_store(self) -> None:
        """Create the folder; raise OSError where it cannot be written."""
        self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        if not os.access(self.folder, os.W_OK | os.X_OK):
            raise PermissionError(f"{self.folder} cannot be written")

    def store_head(self, log: AuditLogIdentity, directory: Path, head: AuditHead, *, replace: bool) -> None:
        """Store a head, see ``HeadStore``."""
        self.check_can_store()
        # Two workers may commit in one order and write their heads in the other: the larger number stays.
        with _exclusive_handle(self.folder, os.O_RDONLY):
            known = self.find_head(log, directory)
            if replace or known.head is None or known.head.number < head.number:
                self._replace_file(self._path_of_log(log), str(head))
            if replace or known.log is None:
                self._replace_file(self._path_of_directory(directory), str(log))

    def store_first_head(self, log: AuditLogIdentity, directory: Path, head: AuditHead) -> None:
        """Store what is not known yet: the log that lies in ``directory``, and the head of that log."""
        known = self.find_head(log, directory)
        if known.head is not None and known.log is not None:
            return
        self.check_can_store()
        with _exclusive_handle(self.folder, os.O_RDONLY):
            known = self.find_head(log, directory)
            # A known head stays: whoever sends a copy with more rows could have the true workspace refused.
            if known.head is None:
                self._replace_file(self._path_of_log(log), str(head))
            if known.log is None:
                self._replace_file(self._path_of_directory(directory), str(log))

    def _path_of_log(self, log: AuditLogIdentity) -> Path:
        return self.folder / f"{log.fingerprint}-{log.first_hash[:32]}"

    def _path_of_directory(self, directory: Path) -> Path:
        return self.folder / f"at-{_directory_hash(directory)}"

    def _replace_file(self, path: Path, text: str) -> None:
        """Write a file aside and rename it, so that no reader sees half of it."""
        handle, aside = tempfile.mkstemp(dir=self.folder, prefix=".writing-")
        try:
            with os.fdopen(handle, "w", encoding="utf-8") as file:
                file.write(f"{text}\n")
            Path(aside).replace(path)
        except BaseException:
            Path(aside).unlink(missing_ok=True)
            raise


@dataclass(frozen=True, slots=True)
class HeadsFile:
    """Heads in the file that the policy names: one on each line, added at the end."""

    path: Path

    @classmethod
    def from_policy_path(cls, path: str, directory: Path) -> HeadsFile:
        """Return the store of the file that the policy of the workspace in ``directory`` names.

        Raises BadInput for a relative path, or a file inside the workspace.
        """
        file = Path(path).expanduser()
        if not file.is_absolute() or file.resolve().is_relative_to(directory.resolve()):
            raise BadInput(f"{POLICY_FILE}: audit.heads", "must be an absolute path outside the workspace")
        return cls(file)

    def __str__(self) -> str:
        return str(self.path)

    def find_head(self, log: AuditLogIdentity | None, directory: Path) -> RecordedHead:
        """Return the recorded log and head, see ``HeadStore``."""
        name, there, heads = _directory_hash(directory), None, dict[AuditLogIdentity, AuditHead]()
        with self._raise_if_unusable(), contextlib.suppress(FileNotFoundError):
            # From the end, since the last line counts and the file grows for ever.
            for line in _lines_backwards(self.path):
                words = line.split(" ")
                if len(words) != 5 or (found := _parse_log_identity(f"{words[1]} {words[2]}")) is None:
                    continue  # half a line, of a disk that was full
                head = _parse_head(words[3])
                if head is not None:
                    heads.setdefault(found, head)
                if there is None and words[4] == name:
                    there = found
                wanted = log or there
                if there is not None and wanted in heads:
                    break
        wanted = log or there
        return RecordedHead(there, None if wanted is None else heads.get(wanted))

    def check_can_store(self) -> None:
        """Create the file; raise BrokenHistory where it cannot be written."""
        with self._raise_if_unusable():
            os.close(_open_plain_handle(self.path, os.O_WRONLY | os.O_APPEND | os.O_CREAT))

    def store_head(self, log: AuditLogIdentity, directory: Path, head: AuditHead, *, replace: bool) -> None:
        """Add a head as the last line, see ``HeadStore``."""
        with self._raise_if_unusable(), _exclusive_handle(self.path, os.O_WRONLY | os.O_APPEND | os.O_CREAT) as handle:
            known = self.find_head(log, directory)
            if replace or known.log is None or known.head is None or known.head.number < head.number:
                now = datetime.now(UTC).isoformat(timespec="seconds")
                os.write(handle, f"{now} {log} {head} {_directory_hash(directory)}\n".encode())
                os.fsync(handle)

    @contextlib.contextmanager
    def _raise_if_unusable(self) -> Iterator[None]:
        """Raise BrokenHistory for an error of the file within the block."""
        try:
            yield
        except (OSError, StrangeFile) as error:
            why = error.strerror if isinstance(error, OSError) else f"it is {error.kind}"
            raise BrokenHistory(
                f'the policy names "{self.path}" for the heads of the audit log, and it cannot be used: {why}. '
                "Without it nothing is written"
            ) from None


def audit_log_identity(connection: sqlite3.Connection) -> AuditLogIdentity | None:
    """Return the identity of a database's audit log; None where it has no log or no key yet. Raises sqlite3.Error."""
    tables = {
        row[0] for row in connection.execute("SELECT name FROM sqlite_schema WHERE name IN ('audit', 'workspace_key')")
    }
    if len(tables) < 2:
        return None
    fingerprint = connection.execute("SELECT fingerprint FROM workspace_key").fetchone()
    first = connection.execute("SELECT hash FROM audit WHERE number = 1").fetchone()
    return None if fingerprint is None or first is None else _parse_log_identity(f"{fingerprint[0]} {first[0]}")


def head_disagreement(directory: Path, connection: sqlite3.Connection, stores: Sequence[HeadStore]) -> str:
    """Explain why the audit log of a workspace is not the one recorded outside; empty where it is, or none is recorded.

    Raises BrokenHistory where a place that the policy demands cannot be read.
    """
    for place in stores:
        try:
            log = audit_log_identity(connection)
            known = place.find_head(log, directory)
        except OSError:
            continue
        if known.log is not None and log is not None and known.log != log:
            return f"{directory} holds another workspace than the one recorded in {place}. {ROLLBACK_ADVICE}"
        # The recorded head may be behind, after a crash between the commit and its writing: it must be a row of the
        # log, not the last.
        if known.head is not None and (why := _head_mismatch(connection, known.head)):
            return f"the audit log of {directory} {why}, as recorded in {place}. {ROLLBACK_ADVICE}"
    return ""


def _head_mismatch(connection: sqlite3.Connection, head: AuditHead) -> str:
    """Explain why a head is not a row of a database's audit log; empty where it is."""
    try:
        row = connection.execute("SELECT hash FROM audit WHERE number = ?", (head.number,)).fetchone()
    except sqlite3.OperationalError:
        row = None
    if row is None:
        return f"lacks row {head.number}"
    return "" if row[0] == head.hash else f"has another row {head.number}"


def store_head_outside(
    directory: Path,
    connection: sqlite3.Connection,
    head: AuditHead,
    stores: Sequence[HeadStore],
    *,
    replace: bool = False,
) -> None:
    """Store the head of an audit log in all places, after the commit. Raises BrokenHistory."""
    if (log := audit_log_identity(connection)) is None:
        return
    for place in stores:
        # A state directory that cannot be written is no reason to fail.
        with contextlib.suppress(OSError):
            place.store_head(log, directory, head, replace=replace)


def store_unknown_head(
    directory: Path, connection: sqlite3.Connection, head: AuditHead, stores: Sequence[HeadStore]
) -> None:
    """Store the head of an audit log that the user's state directory does not know yet, such as that of a workspace
    from another machine.

    A log that lacks its own last row has no head to keep: ``sfumato audit verify`` reports it. A file that the policy
    names gets its line with the next act, since looking at a workspace writes nothing outside it but this state.
    """
    if (log := audit_log_identity(connection)) is None or _head_mismatch(connection, head):
        return
    for place in stores:
        if isinstance(place, HeadsFolder):
            with contextlib.suppress(OSError, BrokenHistory):  # whoever writes hears of it; looking needs no head
                place.store_first_head(log, directory, head)


def describe_head_store(store: HeadStore, directory: Path, connection: sqlite3.Connection) -> tuple[bool, str]:
    """Return whether a place keeps the right head, and a line that says where and which."""
    try:
        log = audit_log_identity(connection)
        known = store.find_head(log, directory)
    except OSError as error:
        return False, f"the head is not kept outside the workspace: {store} cannot be used ({error.strerror or error})"
    except BrokenHistory as error:
        return False, str(error)
    # Without creating it: who looks at a workspace writes nothing outside it.
    if (path := Path(str(store))).exists() and not os.access(path, os.W_OK):
        return False, f"the head is not kept outside the workspace: {store} cannot be written"
    if known.head is None:
        return False, f"the head is not kept outside the workspace yet: {store} has none of it"
    agrees = "does not agree" if head_disagreement(directory, connection, [store]) else "agrees"
    return agrees == "agrees", f"head kept outside: row {known.head.number}, {agrees}; in {store}"


def _directory_hash(directory: Path) -> str:
    """Return a file name for a directory of this machine that does not show its path."""
    return hashlib.sha256(f"{platform.node()} {directory.resolve()}".encode()).hexdigest()[:32]


def _parse_log_identity(text: str) -> AuditLogIdentity | None:
    """Return the identity of an audit log as it is written; None for another text."""
    fingerprint, _, first = text.strip().partition(" ")
    plain = len(fingerprint) == FINGERPRINT_DIGITS and set(fingerprint) <= set("0123456789abcdef")
    return AuditLogIdentity(fingerprint, first) if (plain or fingerprint == PUBLIC_NAME) and is_hash(first) else None


def _parse_head(text: str) -> AuditHead | None:
    """Return the head of an audit log as it is written; None for another text."""
    number, _, hashed = text.strip().partition(":")
    return AuditHead(int(number), hashed) if number.isascii() and number.isdigit() and is_hash(hashed) else None


def _read_small_file(path: Path) -> str:
    """Return the text of a small file; empty if it does not exist. Raises OSError."""
    try:
        return read_plain(path, MAX_HEAD_BYTES).decode("utf-8", "replace")
    except FileNotFoundError:
        return ""
    except StrangeFile as error:
        raise OSError(str(error)) from None


def _open_plain_handle(path: Path, flags: int) -> int:
    """Open a plain file or directory without following links. Raises OSError and StrangeFile."""
    # Without O_NONBLOCK a named pipe would be waited for before it can be refused.
    handle = os.open(path, flags | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, 0o600)
    mode = os.fstat(handle).st_mode
    if (kind := strange_kind(mode)) and not stat.S_ISDIR(mode):
        os.close(handle)
        raise StrangeFile(path, kind)
    return handle


@contextlib.contextmanager
def _exclusive_handle(path: Path, flags: int) -> Iterator[int]:
    """Open a file or directory, locked against other processes that open it in this way."""
    handle = _open_plain_handle(path, flags)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield handle
    finally:
        os.close(handle)


def _lines_backwards(path: Path) -> Iterator[str]:
    """Yield the lines of a text file, the last one first."""
    with os.fdopen(_open_plain_handle(path, os.O_RDONLY), "rb") as file:
        at, rest = file.seek(0, os.SEEK_END), b""
        while at > 0:
            size = min(BLOCK_BYTES, at)
            at = file.seek(at - size)
            first, *lines = (file.read(size) + rest).split(b"\n")
            # A file without line breaks must not be kept in memory as one line.
            rest = first[:MAX_HEAD_BYTES]
            yield from (line[:MAX_HEAD_BYTES].decode("utf-8", "replace") for line in reversed(lines))
        yield rest.decode("utf-8", "replace")
