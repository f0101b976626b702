"""Installed packages of other authors, compared with those whose privacy accounts a policy lets count."""

from __future__ import annotations

import functools
import hashlib
import marshal
import os
import sys
import warnings
from collections.abc import Iterator, Sequence
from importlib.machinery import SOURCE_SUFFIXES, all_suffixes
from importlib.metadata import Distribution, PackageNotFoundError, PackagePath, distribution
from importlib.util import MAGIC_NUMBER, cache_from_source, source_hash
from pathlib import Path, PurePath
from types import ModuleType

from sfumato.engine.errors import BadInput
from sfumato.engine.methods.registry import OWN, methods_found_at, registry
from sfumato.engine.recipe.budget import NO_PACKAGES, TrustedPackages
from sfumato.engine.recipe.recipe import Recipe

from .packages import PackageFiles, normalise_package_name
from .policy import read_policy_of_workspace, read_trusted_policy

INSTALLER_FILES = ("RECORD", "RECORD.jws", "RECORD.p7s", "INSTALLER", "REQUESTED", "direct_url.json", "uv_cache.json")
"""Files of metadata that differ between installers and machines."""
COMMAND_FOLDERS = ("bin", "Scripts")
"""Where an installer writes commands, whose first line names the interpreter of the machine."""
CACHE = "__pycache__"
"""Where Python keeps the compiled code of a source beside it."""
MODULE_ENDINGS = tuple(all_suffixes())
"""Endings of the files that Python imports: sources, compiled code without its source, and extensions."""


def installed_package(name: str) -> PackageFiles:
    """Return the version and the hash of an installed package.

    The hash is of the names and bytes of its files, in the order of names: those that it lists, and every other one in
    its folders that Python could import. Files that differ between installers do not count. Raises BadInput where code
    of the package runs from a file that is none of them.
    """
    own, files = _files_of_package(name)
    place = f"package {name}"
    _check_lists_methods(own, place)
    _check_covers_modules(own, {path.resolve() for _, path in files}, place)
    _check_cached_code(files, place)
    whole = hashlib.sha256()
    for listed, path in files:
        try:
            content = path.read_bytes()
        except OSError as error:
            raise BadInput(place, f"its file {listed} cannot be read: {error.strerror}") from None
        # Both parts have a fixed length, so that no other names and bytes give the same text.
        whole.update(hashlib.sha256(listed.encode()).digest() + hashlib.sha256(content).digest())
    return PackageFiles(normalise_package_name(name), own.version, whole.hexdigest())


def loaded_package(name: str) -> PackageFiles:
    """Return the version and the hash of an installed package whose code is what this process runs.

    Raises BadInput where ``installed_package`` does, and where one of its files changed since it was imported.
    """
    # Read first and looked at afterwards, so that what changes while it is read is found too.
    found = installed_package(name)
    for listed, path in _files_of_package(name)[1]:
        # The time of change of a file, unlike that of its content, cannot be set back by an installer.
        if not path.exists() or path.stat().st_ctime_ns > methods_found_at():
            raise BadInput(f"package {name}", f"its file {listed} changed after this program began; start it again")
    return found


def recorded_package_text(name: str) -> str:
    """Return what each task that runs a package records of it, in words."""
    try:
        found = loaded_package(name)
    except BadInput as error:
        return f"runs record no hash of it, so its privacy accounts count as none: {error}"
    return f"runs record version {found.version} and the hash {found.sha256}"


def _files_of_package(name: str) -> tuple[Distribution, list[tuple[str, Path]]]:
    """Return an installed package with the files that its hash is of, by name. Raises BadInput."""
    try:
        own = distribution(name)
    except PackageNotFoundError:
        raise BadInput(f"package {name}", "is not installed") from None
    root = Path(str(own.locate_file("")))
    files = {file.as_posix(): Path(str(own.locate_file(file))) for file in own.files or () if _is_hashed(file)}
    # A module that the list lacks is imported like any other.
    for folder in _own_folders(own):
        files |= {path.relative_to(root).as_posix(): path for path in _modules_in(folder, f"package {name}")}
    for stem in _own_single_modules(own):
        found = (root / f"{stem}{ending}" for ending in MODULE_ENDINGS)
        files |= {path.name: path for path in found if path.exists()}
    if not files:
        raise BadInput(f"package {name}", "its installer left no list of its files; install it from a wheel")
    return own, sorted(files.items())


def _is_hashed(file: PackagePath) -> bool:
    """Return whether a file is the same wherever this version of the package is installed."""
    if _is_cached_code(file):
        return False
    if file.parent.name.endswith(".dist-info") and file.name in INSTALLER_FILES:
        return False
    return not (file.parts[0] == ".." and file.parent.name in COMMAND_FOLDERS)


def _is_cached_code(file: PurePath) -> bool:
    """Return whether a file is compiled code that Python takes for that of a source: ``__pycache__/a.cpython-313.pyc``."""
    # Without the interpreter in its name it is a module of its own: import package.__pycache__.a
    return file.parent.name == CACHE and file.suffix == ".pyc" and "." in file.stem


def _listed_in_folders(own: Distribution) -> list[PackagePath]:
    """Return the listed files that are hashed and stand where modules are imported from."""
    return [
        file
        for file in own.files or ()
        if _is_hashed(file)
        and not file.is_absolute()
        and ".." not in file.parts
        and not file.parts[0].endswith((".dist-info", ".egg-info"))
    ]


def _own_folders(own: Distribution) -> set[Path]:
    """Return the folders of a package: those of its files, and those above that are packages of Python.

    A folder above without ``__init__`` may be a namespace that other distributions share.
    """
    root, found = Path(str(own.locate_file(""))), set[Path]()
    for file in _listed_in_folders(own):
        for above in list(file.parents)[:-1]:  # the last is where all packages are
            folder = root / above
            if above == file.parent or any((folder / f"__init__{ending}").exists() for ending in MODULE_ENDINGS):
                found.add(folder)
    # A folder is imported before a file of its name.
    found |= {root / stem for stem in _own_single_modules(own) if (root / stem).is_dir()}
    return found


def _own_single_modules(own: Distribution) -> set[str]:
    """Return the names of a package's modules that stand in no folder of its own."""
    listed = (file.name for file in _listed_in_folders(own) if len(file.parts) == 1)
    return {name.split(".")[0] for name in listed if name.endswith(MODULE_ENDINGS)}


def _modules_in(folder: Path, place: str) -> Iterator[Path]:
    """Yield every file of a folder and of those below that Python could import. Raises BadInput."""

    def refuse(error: OSError) -> None:
        raise BadInput(place, f"its folder {error.filename} cannot be read: {error.strerror}")

    seen = set[str]()
    # Python imports from linked folders too.
    for at, folders, names in os.walk(folder, onerror=refuse, followlinks=True):
        if os.path.realpath(at) in seen:
            folders.clear()
            continue
        seen.add(os.path.realpath(at))
        folders.sort()  # of two names of a folder, the same one counts everywhere
        paths = (Path(at, name) for name in names if name.endswith(MODULE_ENDINGS))
        yield from (path for path in paths if not _is_cached_code(path))


def _check_lists_methods(own: Distribution, place: str) -> None:
    """Raise BadInput where a method of the package is defined in a module that it does not list."""
    files = {Path(str(own.locate_file(file))).resolve() for file in own.files or () if _is_hashed(file)}
    names = {
        method.func.__module__
        for method in registry().values()
        if normalise_package_name(method.package) == normalise_package_name(own.name)
    }
    for name in sorted(names):
        file = getattr(sys.modules.get(name), "__file__", None)
        if file is None or Path(file).resolve() not in files:
            # An editable installation lists no module: a hash of its list would not change with the code.
            raise BadInput(
                place, f"its list of installed files lacks the module {name}; install it from a wheel, not as editable"
            )


def _check_covers_modules(own: Distribution, files: set[Path], place: str) -> None:
    """Raise BadInput where a module of the package, by its file or its name, was imported from none of these files."""
    folders = _own_folders(own)
    root = Path(str(own.locate_file("")))
    names = {".".join(folder.relative_to(root).parts) for folder in folders} | _own_single_modules(own)
    beginnings = tuple({f"{path}{os.sep}" for folder in folders for path in (folder.absolute(), folder.resolve())})
    for name, module in list(sys.modules.items()):
        # Not by getattr: a module that is loaded when it is used would be.
        file = object.__getattribute__(module, "__dict__").get("__file__") if isinstance(module, ModuleType) else None
        if not isinstance(file, str):
            continue
        parts = name.split(".")
        is_named = any(".".join(parts[:n]) in names for n in range(1, len(parts) + 1))
        if (is_named or str(Path(file).absolute()).startswith(beginnings)) and Path(file).resolve() not in files:
            raise BadInput(
                place,
                f"the module {name} was imported from {file}, outside its files; install it again from a wheel",
            )


def _check_cached_code(files: Sequence[tuple[str, Path]], place: str) -> None:
    """Raise BadInput where Python may run compiled code that is not that of the source that was hashed (PEP 552)."""
    for listed, path in files:
        if not listed.endswith(tuple(SOURCE_SUFFIXES)) or sys.implementation.cache_tag is None:
            continue
        for level in ("", "1", "2"):
            cached = Path(cache_from_source(path, optimization=level))
            try:
                compiled = cached.read_bytes()
                source, status = path.read_bytes(), path.stat()
            except FileNotFoundError:
                continue
            except OSError as error:
                raise BadInput(place, f"its file {cached} cannot be read: {error.strerror}") from None
            flags = int.from_bytes(compiled[4:8], "little")
            # bit 0: compared by a hash of the source, not by its time and size; bit 1: and really compared
            if flags & 0b11 == 0b01:
                raise BadInput(
                    place,
                    f"its compiled file {cached} is never compared with the source {listed}; delete it and start again",
                )
            stamp = b"".join((int(one) & 0xFFFFFFFF).to_bytes(4, "little") for one in (status.st_mtime, status.st_size))
            is_used = compiled[:4] == MAGIC_NUMBER and compiled[8:16] == (source_hash(source) if flags else stamp)
            # A stamp that fits proves nothing: a build may give all files one time.
            if is_used and not _is_code_of(source, compiled[16:], int(level or 0)):
                raise BadInput(
                    place, f"its compiled file {cached} is of another source than {listed}; delete it and start again"
                )


@functools.lru_cache(maxsize=256)
def _is_code_of(source: bytes, compiled: bytes, level: int) -> bool:
    """Return whether compiled code is that of a source at a level of optimisation, but for the name of its file."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            expected = compile(source, "", "exec", dont_inherit=True, optimize=level)
        return bool(marshal.loads(compiled) == expected)  # noqa: S302  (importing the package loads the same bytes)
    except (SyntaxError, ValueError, EOFError, TypeError):
        return False


def trusted_packages(recipe: Recipe, named: Sequence[PackageFiles]) -> TrustedPackages:
    """Compare the packages of a recipe's methods with ``named``, those of a policy.

    Files are read each time, and must be those that this process imported: an account is computed by its code.
    """
    versions, differences = dict[str, str](), dict[str, str]()
    by_name = {package.name: package for package in named}
    for name in recipe.packages:
        package = by_name.get(normalise_package_name(name))
        if name == OWN or package is None:
            continue
        try:
            if difference := _difference_text(package, installed_package(name)):
                differences[name] = difference
            else:
                versions[name] = loaded_package(name).version
        except BadInput as error:
            differences[name] = str(error)
    return TrustedPackages(versions, differences)


def find_trusted_packages(recipe: Recipe, directory: Path | None = None) -> TrustedPackages:
    """Return ``trusted_packages`` by the policy of a workspace, or of office and user. Raises BadInput and StrangeFile."""
    # Most recipes have only methods of ours: for them a policy that cannot be read stops nothing.
    if set(recipe.packages) <= {OWN}:
        return NO_PACKAGES
    policy = read_trusted_policy() if directory is None else read_policy_of_workspace(directory)
    return trusted_packages(recipe, policy.packages)


def _difference_text(named: PackageFiles, present: PackageFiles) -> str:
    """Explain in which point an installed package differs from what the policy names; empty where it does not."""
    found = []
    if named.version != present.version:
        found.append(f"version {present.version} is installed, and the policy names {named.version}")
    if named.sha256 != present.sha256:
        found.append(f"its files have another hash than the policy names; it is now {present.sha256}")
    return "; ".join(found)
