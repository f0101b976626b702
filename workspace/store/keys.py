"""Key of a workspace: 32 random bytes in a file of their own, used beside the seed in every random stream.

It is in no recipe, report, log, result or row of the database: there stands its fingerprint. A public key is the word
``public`` in place of 32 bytes: its runs have the streams that the seed alone gives, for studies that strangers shall
repeat.
"""

from __future__ import annotations

import errno
import hmac
import os
import stat
from pathlib import Path

from ..errors import WorkspaceError
from ..plain_files import sync_to_disk
from ..process import forbid_core_dumps

KEY_FILE = "key"
KEY_BYTES = 32
PUBLIC_KEY = b""
"""The empty key of ``engine.methods.run``; repeated here, since that module loads numerical libraries."""
PUBLIC_NAME = "public"
PUBLIC_CONTENT = b"public\n"
FINGERPRINT_LABEL = b"sfumato key fingerprint"
SEAL_LABEL = b"sfumato seal"
FINGERPRINT_DIGITS = 16


class NoKey(WorkspaceError):
    """Error of a key that is missing, cannot be read, or is another one."""


def generate_key() -> bytes:
    """Return a new random key."""
    # A core dump would have the key in it. Whoever has it can repeat a run, and so undo a release.
    forbid_core_dumps()
    return os.urandom(KEY_BYTES)


def compute_fingerprint(key: bytes) -> str:
    """Return the first 16 hexadecimal digits of an HMAC-SHA-256 by a key, which identify it; ``public`` for a public
    key.
    """
    return hmac.digest(key, FINGERPRINT_LABEL, "sha256").hex()[:FINGERPRINT_DIGITS] if key else PUBLIC_NAME


def sealing_key(key: bytes) -> bytes:
    """Derive the key with which a workspace seals its records, unless its policy names another."""
    # Derived, so that the sealing key does not reveal the key of the random streams.
    return hmac.digest(key, SEAL_LABEL, "sha256")


def read_sealing_key(directory: Path, path: str) -> bytes:
    """Read the sealing key that the policy of the user or the office names. Raises NoKey, also for one inside the
    workspace in ``directory``.
    """
    file = Path(path).expanduser()
    if not file.is_absolute() or file.resolve().is_relative_to(directory.resolve()):
        raise NoKey(f'the key to seal with, "{path}" in the policy, must be an absolute path outside of the workspace')
    if not (key := read_key(file)):
        raise NoKey(f'"{path}" is the word public; a key to seal with has {KEY_BYTES} bytes that others do not know')
    return key


def write_key(path: Path, key: bytes) -> None:
    """Write a key into a new file that only its owner can read. Raises NoKey."""
    try:
        # O_EXCL: a key is never overwritten, since runs could not be repeated without the old one.
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    except FileExistsError:
        raise NoKey(f'"{path}" is there already, and no key is written over; name a new file') from None
    except OSError as error:
        raise NoKey(f'the key cannot be written to "{path}": {error.strerror}') from None
    try:
        with os.fdopen(handle, "wb") as file:
            os.fchmod(file.fileno(), 0o600)
            file.write(key or PUBLIC_CONTENT)
            file.flush()
            os.fsync(file.fileno())
        sync_to_disk(path.parent)
    except OSError as error:
        path.unlink(missing_ok=True)
        raise NoKey(f'the key cannot be written to "{path}": {error.strerror}') from None


def read_key(path: Path) -> bytes:
    """Read the key in a file; empty for a public one. Raises NoKey."""
    forbid_core_dumps()
    try:
        # Without O_NONBLOCK a named pipe in its place would be waited for.
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError:
        raise NoKey(f'there is no key "{path}"') from None
    except OSError as error:
        said = "it is a link; name the file itself" if error.errno == errno.ELOOP else error.strerror
        raise NoKey(f'the key "{path}" cannot be read: {said}') from None
    try:
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            raise NoKey(f'"{path}" is no file; a key is a file of {KEY_BYTES} bytes')
        # One byte more, so that a longer file is not taken for a key.
        content = os.read(handle, KEY_BYTES + 1)
    finally:
        os.close(handle)
    if content == PUBLIC_CONTENT:
        return PUBLIC_KEY
    if len(content) != KEY_BYTES:
        raise NoKey(f'"{path}" is no key: a key has {KEY_BYTES} bytes; make one with: sfumato key export FILE')
    return content


def read_key_option(text: str) -> bytes:
    """Read the key that ``--key`` names: a file, or the word ``public``. Raises NoKey."""
    return PUBLIC_KEY if text == PUBLIC_NAME else read_key(Path(text).expanduser())


def key_of_workspace(directory: Path, expected: str) -> bytes:
    """Read the key of the workspace in a directory, which must have the expected fingerprint. Raises NoKey."""
    path = directory / KEY_FILE
    if not os.path.lexists(path):
        raise NoKey(
            f"the key of the workspace is missing ({path}): nothing can be computed or released. Put the one that was "
            f"exported back with: sfumato init {directory} --key FILE"
        )
    key = read_key(path)
    if compute_fingerprint(key) != expected:
        raise NoKey(
            f"{path} is another key than the workspace's (fingerprint {compute_fingerprint(key)}, not {expected}); "
            f"move it away and put the exported one back with: sfumato init {directory} --key FILE"
        )
    return key


def run_key(directory: Path, expected: str) -> bytes:
    """Return the key for a run with this fingerprint; empty for a public run. Raises NoKey."""
    return PUBLIC_KEY if expected == PUBLIC_NAME else key_of_workspace(directory, expected)
