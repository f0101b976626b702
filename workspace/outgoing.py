"""Writing of what leaves the building: new files that are known by the bytes in memory, never by a path.

A path says where something should be, not what is there: whoever may write in a parent folder can put another file or
folder in its place, also between two system calls. So a folder is opened once; everything in it is made and read again
through descriptors; and before and after it gets its name its files are compared with those that were written, by inode
and by hash. Folders in which somebody else could exchange them are refused before anything is written.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import hashlib
import os
import secrets
import shutil
import stat
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path, PurePosixPath
from typing import Any

from .errors import ExchangedFiles, NotReleased, UnsafeFolder

READ_PIECE_BYTES = 1 << 20
_NEW_FILE = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_OLD_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_RENAME_NOREPLACE = 1
_NO_SUCH_CALL = (errno.ENOSYS, errno.EINVAL, errno.ENOTSUP)
"""Errors of a kernel or file system that cannot rename without replacing."""
_ACL = "system.posix_acl_access"
TOP = PurePosixPath()

Identity = tuple[int, int]
"""Device and inode of a file or folder."""


@dataclass(frozen=True, slots=True)
class OutgoingFile:
    """A file as it was written.

    bytes: its size
    sha256: hash of the bytes in memory
    identity: its device and inode
    """

    bytes: int
    sha256: str
    identity: Identity


def open_guarded_folder(path: Path) -> int:
    """Open a folder in which nobody else can exchange what is written there, and return its descriptor.

    Raises UnsafeFolder where somebody else may write in it or in a folder above it, and OSError.
    """
    path = path.resolve()
    # A folder above may be passable and not readable.
    flags = getattr(os, "O_PATH", os.O_RDONLY) | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
    handle, at = os.open(path.anchor, flags), Path(path.anchor)
    try:
        check_folder_is_guarded(at, os.fstat(handle))
        for name in path.parts[1:]:
            inner = os.open(name, flags, dir_fd=handle)
            os.close(handle)
            handle, at = inner, at / name
            check_folder_is_guarded(at, os.fstat(handle))
        return os.open(".", _FOLDER, dir_fd=handle)
    finally:
        os.close(handle)


def check_folder_is_guarded(path: Path, found: os.stat_result) -> None:
    """Raise UnsafeFolder where somebody else may rename or remove what this account has in a folder."""
    me = os.geteuid()
    if found.st_uid not in (0, me):
        raise UnsafeFolder(
            path, f"belongs to {_account_name(found.st_uid)}, who could", "Choose a folder in one of your own"
        )
    # In a folder with the sticky bit only the owner of a file, the folder's owner and root can rename it.
    if found.st_mode & stat.S_ISVTX:
        return
    mode = f"mode {stat.S_IMODE(found.st_mode):o}"
    if found.st_mode & stat.S_IWOTH:
        raise UnsafeFolder(
            path, f"can be written by everybody ({mode}), who could", f'Choose another folder, or: chmod o-w "{path}"'
        )
    if found.st_mode & stat.S_IWGRP and not _is_group_of_one(found, path):
        group = _group_name(found.st_gid)
        raise UnsafeFolder(
            path,
            f"can be written by the group {group} ({mode}), who could",
            f'Choose another folder, or: chmod g-w "{path}"',
        )


def _is_group_of_one(found: os.stat_result, path: Path) -> bool:
    """Return whether the group of a folder is the private group of its owner, which has no other member."""
    try:
        import grp
        import pwd

        owner, group = pwd.getpwuid(found.st_uid), grp.getgrgid(found.st_gid)
        others = [account.pw_name for account in pwd.getpwall() if account.pw_gid == found.st_gid]
    except (ImportError, KeyError):
        return False
    # By the name too: a directory service may not list every account that has a group.
    if owner.pw_gid != found.st_gid or group.gr_name != owner.pw_name or {*group.gr_mem, *others} - {owner.pw_name}:
        return False
    # With an access list the bits of the group are those of everybody whom the list names.
    try:
        os.getxattr(path, _ACL, follow_symlinks=False)
    except (AttributeError, OSError):
        return True
    return False


def _account_name(uid: int) -> str:
    """Return the name of an account; its number where it has none."""
    try:
        import pwd

        return pwd.getpwuid(uid).pw_name
    except (ImportError, KeyError):
        return f"uid {uid}"


def _group_name(gid: int) -> str:
    """Return the name of a group; its number where it has none."""
    try:
        import grp

        return grp.getgrgid(gid).gr_name
    except (ImportError, KeyError):
        return f"gid {gid}"


class OutgoingFolder:
    """A new folder that gets its name when all of it is written, and then has exactly the files that were written.

    target: path that it gets
    name: name that it has now, in the folder of the target
    files: its files as they were written, by their path in it
    """

    def __init__(self, target: Path) -> None:
        """Open the folder of the target. Raises UnsafeFolder and NotReleased."""
        self.target = target
        # In the same folder: a rename is atomic within one file system alone.
        self.name = f".{target.name}.writing-{secrets.token_hex(4)}"
        self.files: dict[PurePosixPath, OutgoingFile] = {}
        self._folders: dict[PurePosixPath, int] = {}
        try:
            self._parent = open_guarded_folder(target.parent)
        except OSError as error:
            raise NotReleased(f'"{target.parent}" cannot be opened: {error.strerror}') from None

    def __enter__(self) -> OutgoingFolder:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def path(self) -> Path:
        """Return the path that the folder has now."""
        return self.target.with_name(self.name)

    def close(self) -> None:
        """Close all descriptors."""
        while self._folders:
            os.close(self._folders.popitem()[1])
        os.close(self._parent)

    def make(self) -> None:
        """Make the folder, readable by this account alone. Raises NotReleased."""
        try:
            self._make_folder(TOP, self._parent, self.name)
        except OSError as error:
            raise NotReleased(f'"{self.path}" cannot be made: {error.strerror}') from None

    def write_file(self, name: str, content: bytes | Iterator[bytes]) -> OutgoingFile:
        """Write a new file, whose bytes may come piece by piece, and read it again; return it as it was written.

        Raises OSError, and ExchangedFiles where another file is there or other bytes come back.
        """
        path = PurePosixPath(name)
        folder = self._ensure_folder(path.parent)
        try:
            handle = os.open(path.name, _NEW_FILE, 0o600, dir_fd=folder)
        except FileExistsError:
            raise ExchangedFiles(self.path / name) from None
        try:
            os.fchmod(handle, 0o600)
            written = _write_and_compare(handle, content, self.path / name)
        finally:
            os.close(handle)
        self.files[path] = written
        return written

    def publish(self) -> None:
        """Give the folder its name, unless something with this name is there that is no empty folder.

        Raises ExchangedFiles where it has not exactly the files that were written, before or after; NotReleased where
        it cannot get its name.
        """
        for handle in self._folders.values():
            os.fsync(handle)
        self.check_files()
        replaced = self.target.is_dir()
        try:
            if replaced:
                # An empty folder that the user made: a rename replaces no other one.
                os.rename(self.name, self.target.name, src_dir_fd=self._parent, dst_dir_fd=self._parent)
            else:
                rename_new(self.name, self.target.name, self._parent)
        except OSError as error:
            raise NotReleased(f'"{self.target}" cannot be written: {error.strerror}') from None
        self.name = self.target.name
        os.fsync(self._parent)
        self.check_files()

    def check_files(self) -> None:
        """Compare all that is in the folder, under its present name, with what was written. Raises ExchangedFiles."""
        try:
            if _identity(self.target.parent.stat()) != _identity(os.fstat(self._parent)):
                raise ExchangedFiles(self.target.parent)
            for path, handle in self._folders.items():
                self._check_folder(path, handle)
            for path, written in self.files.items():
                self._check_file(path, written)
        except OSError as error:
            raise ExchangedFiles(Path(error.filename or self.path)) from None

    def restore_working_name(self, name: str) -> bool:
        """Rename the folder to ``name`` if it is still the one that was written; return whether it was renamed."""
        if not self._is_in_place():
            return False
        os.rename(self.name, name, src_dir_fd=self._parent, dst_dir_fd=self._parent)
        self.name = name
        return True

    def remove(self) -> None:
        """Remove the folder with all that is in it, wherever it was moved; another folder in its place stays."""
        in_place = TOP in self._folders and self._is_in_place()
        for path, handle in reversed(self._folders.items()):
            for entry in _entry_names(handle):
                with contextlib.suppress(OSError):
                    _remove_entry(entry, handle)
            if path != TOP:
                with contextlib.suppress(OSError):
                    os.rmdir(path.name, dir_fd=self._folders[path.parent])
        if in_place:
            with contextlib.suppress(OSError):
                os.rmdir(self.name, dir_fd=self._parent)

    def _is_in_place(self) -> bool:
        """Return whether the folder that was made is the one that has its name."""
        try:
            found = os.stat(self.name, dir_fd=self._parent, follow_symlinks=False)
        except OSError:
            return False
        return _identity(found) == _identity(os.fstat(self._folders[TOP]))

    def _ensure_folder(self, path: PurePosixPath) -> int:
        """Return the descriptor of a folder within, made if need be."""
        if path not in self._folders:
            self._make_folder(path, self._ensure_folder(path.parent), path.name)
        return self._folders[path]

    def _make_folder(self, path: PurePosixPath, parent: int, name: str) -> None:
        """Make a folder that this account alone may enter, and open it. Raises OSError and ExchangedFiles."""
        os.mkdir(name, 0o700, dir_fd=parent)
        handle = os.open(name, _FOLDER, dir_fd=parent)
        self._folders[path] = handle
        os.fchmod(handle, 0o700)
        # Between the two calls another folder could be put there; whose files are compared in any case.
        if os.fstat(handle).st_uid != os.geteuid():
            raise ExchangedFiles(self.path / path)

    def _check_folder(self, path: PurePosixPath, handle: int) -> None:
        """Raise ExchangedFiles where another folder has the name of one of ours, or it holds anything else."""
        own, parent, name = (
            (self.path, self._parent, self.name)
            if path == TOP
            else (self.path / path, self._folders[path.parent], path.name)
        )
        found, opened = os.stat(name, dir_fd=parent, follow_symlinks=False), os.fstat(handle)
        if _identity(found) != _identity(opened) or found.st_uid != os.geteuid() or found.st_mode & 0o077:
            raise ExchangedFiles(own)
        wanted = {one.name for one in (*self._folders, *self.files) if one != TOP and one.parent == path}
        if strange := wanted ^ set(_entry_names(handle)):
            raise ExchangedFiles(own / min(strange))

    def _check_file(self, path: PurePosixPath, written: OutgoingFile) -> None:
        """Raise ExchangedFiles where another file has the name of one of ours, or it has other bytes."""
        handle = os.open(path.name, _OLD_FILE, dir_fd=self._folders[path.parent])
        try:
            found = os.fstat(handle)
            # A second name of the file could be used to change it later.
            if _identity(found) != written.identity or found.st_nlink != 1 or found.st_mode & 0o077:
                raise ExchangedFiles(self.path / path)
            _compare_bytes(handle, written, self.path / path)
        finally:
            os.close(handle)


def write_outgoing_file(path: Path, content: bytes, *, replace: bool) -> str:
    """Write a file that leaves by itself, whole or not at all; return the SHA-256 of the bytes in memory.

    An existing file is only replaced with ``replace``. Raises UnsafeFolder, ExchangedFiles, FileExistsError and OSError.
    """
    parent = open_guarded_folder(path.parent)
    # The name is cut since file systems allow 255 bytes.
    aside = f".{path.name[:200]}.writing-{secrets.token_hex(4)}"
    try:
        handle = os.open(aside, _NEW_FILE, 0o600, dir_fd=parent)
        try:
            written = _write_and_compare(handle, content, path)
            if replace:
                os.rename(aside, path.name, src_dir_fd=parent, dst_dir_fd=parent)
            else:
                rename_new(aside, path.name, parent)
            found = os.stat(path.name, dir_fd=parent, follow_symlinks=False)
            if _identity(found) != written.identity:
                raise ExchangedFiles(path)
            _compare_bytes(handle, written, path)
        finally:
            os.close(handle)
            with contextlib.suppress(FileNotFoundError):
                os.unlink(aside, dir_fd=parent)
        os.fsync(parent)
    finally:
        os.close(parent)
    return written.sha256


def rename_new(name: str, new_name: str, folder: int) -> None:
    """Rename an entry of an open folder; whatever has the new name already stays. Raises OSError."""
    call = _renameat2()
    if call is not None:
        # As os.rename does, for whoever watches.
        sys.audit("os.rename", name, new_name, folder, folder)
        if call(folder, os.fsencode(name), folder, os.fsencode(new_name), _RENAME_NOREPLACE) == 0:
            return
        number = ctypes.get_errno()
        if number not in _NO_SUCH_CALL:
            raise OSError(number, os.strerror(number), new_name)
    with contextlib.suppress(FileNotFoundError):
        os.stat(new_name, dir_fd=folder, follow_symlinks=False)
        raise OSError(errno.EEXIST, os.strerror(errno.EEXIST), new_name)
    os.rename(name, new_name, src_dir_fd=folder, dst_dir_fd=folder)


@lru_cache(maxsize=1)
def _renameat2() -> Any:
    """Return the system call that renames without replacing; None where there is none."""
    if not sys.platform.startswith("linux"):
        return None
    call = getattr(ctypes.CDLL(None, use_errno=True), "renameat2", None)
    if call is not None:
        call.argtypes = [ctypes.c_int, ctypes.c_char_p, ctypes.c_int, ctypes.c_char_p, ctypes.c_uint]
    return call


def _write_and_compare(handle: int, content: bytes | Iterator[bytes], path: Path) -> OutgoingFile:
    """Write bytes to an open new file and the disk, and read them again. Raises OSError and ExchangedFiles."""
    size, found = 0, hashlib.sha256()
    for piece in [content] if isinstance(content, bytes) else content:
        size, view = size + len(piece), memoryview(piece)
        found.update(piece)
        while view:
            view = view[os.write(handle, view) :]
    # A row of the audit log must never name files that a power failure can still lose.
    os.fsync(handle)
    written = OutgoingFile(size, found.hexdigest(), _identity(os.fstat(handle)))
    _compare_bytes(handle, written, path)
    return written


def _compare_bytes(handle: int, written: OutgoingFile, path: Path) -> None:
    """Raise ExchangedFiles where an open file has other bytes than were written."""
    found, at = hashlib.sha256(), 0
    # No more than was written: another process may add to the file for ever.
    while at <= written.bytes and (piece := os.pread(handle, READ_PIECE_BYTES, at)):
        found.update(piece)
        at += len(piece)
    if at != written.bytes or found.hexdigest() != written.sha256:
        raise ExchangedFiles(path)


def _entry_names(folder: int) -> list[str]:
    """Return the names of all entries of an open folder."""
    with os.scandir(folder) as entries:
        return [entry.name for entry in entries]


def _remove_entry(name: str, folder: int) -> None:
    """Remove a file, or a folder with all that is in it, from an open folder. Raises OSError."""
    if stat.S_ISDIR(os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode):
        shutil.rmtree(name, dir_fd=folder)
    else:
        os.unlink(name, dir_fd=folder)


def _identity(found: os.stat_result) -> Identity:
    """Return the device and inode of what was looked at."""
    return found.st_dev, found.st_ino
