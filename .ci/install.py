"""Installs Sfumato from the bundle that it lies in, without a network: ``python3 install.py DIRECTORY``.

Every file of the bundle must have the hash that ``SHA256SUMS`` gives, and no other file may lie there; pip, which is let at nothing but
the bundle, holds every wheel to the hash in the lock once more. The directory becomes a virtual environment, or is not made at all.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

HERE = Path(__file__).resolve().parent
SUMS = "SHA256SUMS"
LOCK = "requirements.lock"
UNUSED = r"/site-packages/(.*/)?(tests?|pip|setuptools)/"
"""What Sfumato never imports is left uncompiled. All else is compiled at once: whoever runs it may not be allowed to write there."""


class NotInstalled(Exception):
    """Why nothing was installed."""


def sha256(path: Path) -> str:
    """The SHA-256 of a file's bytes, 64 hexadecimal digits."""
    return hashlib.sha256(path.read_bytes()).hexdigest()


def check_files(bundle: Path) -> str:
    """Hold every file to its hash; returns the hash of the list itself."""
    listed = {
        name: known
        for known, _, name in (line.partition("  ") for line in (bundle / SUMS).read_text("utf-8").splitlines())
    }
    present = {path.relative_to(bundle).as_posix() for path in bundle.rglob("*") if not path.is_dir()} - {SUMS}
    for name in sorted(listed.keys() | present):
        if name not in present:
            raise NotInstalled(f"{name} is missing from the bundle: copy it again")
        if name not in listed:
            raise NotInstalled(f"{name} does not belong to the bundle: {SUMS} does not name it")
        if (bundle / name).is_symlink() or sha256(bundle / name) != listed[name]:
            raise NotInstalled(f"{name} is not what was bundled: its hash is not the one in {SUMS}; copy it again")
    return sha256(bundle / SUMS)


def this_machine() -> dict[str, str]:
    """What a wheel must suit: the minor version of Python and the platform."""
    python = f"{sys.implementation.name} {sys.version_info.major}.{sys.version_info.minor}"
    return {"python": python, "platform": sysconfig.get_platform()}


def check_machine(bundle: Path) -> None:
    """The wheels are for one kind of machine and one minor version of Python."""
    made_for = json.loads((bundle / "bundle.json").read_text("utf-8"))
    wanted, this = (" on ".join(machine[part] for part in this_machine()) for machine in (made_for, this_machine()))
    if wanted != this:
        raise NotInstalled(
            f"the bundle is for {wanted}, and this is {this}: run it with that Python, or make a bundle with this one"
        )


def run(*command: object) -> None:
    """A program that sees no configuration of pip's; ``NotInstalled`` with what it says where it fails."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith(("PIP_", "PYTHON"))}
    done = subprocess.run(
        [str(word) for word in command],
        capture_output=True,
        text=True,
        check=False,
        env=clean | {"PIP_CONFIG_FILE": os.devnull, "PIP_DISABLE_PIP_VERSION_CHECK": "1", "PIP_NO_CACHE_DIR": "1"},
    )
    if done.returncode:
        raise NotInstalled((done.stderr.strip() or done.stdout.strip() or f"{command[0]} failed").replace("\n", "\n  "))


def install(bundle: Path, target: Path) -> None:
    """Make the virtual environment and install what the lock names into it; take it away again if that fails."""
    try:
        run(sys.executable, "-m", "venv", target)
        python = target / "bin" / "python"
        only = (
            "--isolated",
            "--no-index",
            "--find-links",
            bundle / "wheels",
            "--require-hashes",
            "--only-binary",
            ":all:",
        )
        run(python, "-m", "pip", "install", "-q", "--no-compile", *only, "-r", bundle / LOCK)
        run(python, "-m", "compileall", "-q", "-j", "0", "-x", UNUSED, target / "lib")
        run(target / "bin" / "sfumato", "--version")
    except BaseException:
        shutil.rmtree(target, ignore_errors=True)
        raise


def main() -> None:
    """Check the bundle and the machine, install, and say what is next."""
    parser = argparse.ArgumentParser(description="Install Sfumato from this bundle, without a network.")
    parser.add_argument(
        "directory", type=Path, help="a new directory: it becomes a virtual environment with Sfumato in it"
    )
    parser.add_argument(
        "--sums", metavar="SHA256", help=f"the hash of {SUMS} that was printed when the bundle was made"
    )
    given = parser.parse_args()
    target = given.directory.absolute()
    try:
        if os.path.lexists(target):
            raise NotInstalled(f"{target} exists: name a new directory")
        check_machine(HERE)
        found = check_files(HERE)
        if given.sums not in (None, found):
            raise NotInstalled(f"{SUMS} has the SHA-256 {found}, not the one that was given: this is another bundle")
        install(HERE, target)
    except (NotInstalled, OSError, ValueError, KeyError) as reason:
        sys.exit(f"install: {reason}")
    print(f"installed; {SUMS} has the SHA-256 {found}")
    print(f"next: {given.directory}/bin/sfumato demo")


if __name__ == "__main__":
    main()
