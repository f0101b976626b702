"""Installed packages of other authors, compared with those whose privacy accounts a policy lets count."""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Sequence
from importlib.metadata import Distribution, PackageNotFoundError, PackagePath, distribution
from pathlib import Path

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


def installed_package(name: str) -> PackageFiles:
    """Return the version and the hash of an installed package.

    The hash is of the names and bytes of its files, in the order of names. Files that differ between installers do not
    count. Raises BadInput where a method of the package runs from a file that is none of them.
    """
    own, files = _files_of_package(name)
    place = f"package {name}"
    _check_covers_methods(own, {path.resolve() for _, path in files}, place)
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
    files = (file for file in own.files or () if _is_hashed(file))
    return own, sorted((file.as_posix(), Path(str(own.locate_file(file)))) for file in files)


def _is_hashed(file: PackagePath) -> bool:
    """Return whether a file is the same wherever this version of the package is installed."""
    if "__pycache__" in file.parts or file.suffix == ".pyc":
        return False
    if file.parent.name.endswith(".dist-info") and file.name in INSTALLER_FILES:
        return False
    return not (file.parts[0] == ".." and file.parent.name in COMMAND_FOLDERS)


def _check_covers_methods(own: Distribution, files: set[Path], place: str) -> None:
    """Raise BadInput where a method of the package is defined outside of these files."""
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
