"""Makes the bundle that installs Sfumato on a machine without a network: ``python3 .ci/bundle.py DIRECTORY``.

It is run on a machine with a network, of the kind and with the minor version of Python that the other has. The directory holds
Sfumato as a wheel, the wheels of ``requirements.lock`` (among them what builds Sfumato), a lock with the hashes of just these files,
``SHA256SUMS`` over all, and ``install.py``. Nothing is fetched whose hash the lock does not have; no file holds an address.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from install import HERE, LOCK, SUMS, sha256, this_machine

ROOT = HERE.parent
SOURCE = ("engine", "workspace", "tui", "pyproject.toml", "README.md", "LICENSE")


class NoBundle(Exception):
    """Why there is no bundle."""


def run(*command: object, **environment: str) -> str:
    """What a program prints; ``NoBundle`` with its last line of complaint where it fails."""
    words = [str(word) for word in command]
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=False, env=os.environ | environment)
    if done.returncode:
        raise NoBundle(
            f"{' '.join(words[:5])} failed: {(done.stderr.strip() or 'it did not say why').splitlines()[-1]}"
        )
    return done.stdout


def copy_source(target: Path) -> None:
    """The files that git tracks, as they stand in the folder, with modes that do not depend on whose clone it is."""
    for name in run("git", "ls-files", "-z", "--", *SOURCE).split("\0"):
        if name:
            (target / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(ROOT / name, target / name)
            (target / name).chmod(0o644)


def pinned(wheel: Path) -> str:
    """The line of a lock for one wheel: name, version and hash."""
    name, version = wheel.name.split("-")[:2]
    return f"{re.sub(r'[-_.]+', '-', name).lower()}=={version} \\\n    --hash=sha256:{sha256(wheel)}\n"


def write_described(bundle: Path) -> None:
    """The machine that the bundle is for, and the commit that it was made from, as ``bundle.json``."""
    changed = run("git", "status", "--porcelain", "--untracked-files=no")
    commit = run("git", "rev-parse", "HEAD").strip() + (", with changes that are not committed" if changed else "")
    (bundle / "bundle.json").write_text(json.dumps({"commit": commit, **this_machine()}, indent=1) + "\n", "utf-8")


def write_sums(bundle: Path) -> None:
    """The hash of every other file, as ``sha256sum -c`` reads it."""
    files = sorted(path for path in bundle.rglob("*") if path.is_file() and path.name != SUMS)
    (bundle / SUMS).write_text(
        "".join(f"{sha256(path)}  {path.relative_to(bundle).as_posix()}\n" for path in files), "utf-8"
    )


def fetch(wheels: Path, python: Path) -> None:
    """The wheels of the lock, each held to its hash; what builds ours is installed from them."""
    everything = ("--require-hashes", "--only-binary", ":all:")
    run(python, "-m", "pip", "download", "-q", *everything, "-d", wheels, "-r", ROOT / LOCK)
    run(python, "-m", "pip", "install", "-q", "--no-deps", "--no-index", *wheels.glob("setuptools-*.whl"))


def build(wheels: Path, python: Path, scratch: Path) -> None:
    """The wheel of Sfumato: the same bytes from the same source, whoever builds it and when."""
    copy_source(scratch / "source")
    committed = run("git", "log", "-1", "--format=%ct").strip()
    alone = ("--no-deps", "--no-index", "--no-build-isolation")
    run(python, "-m", "pip", "wheel", "-q", *alone, "-w", wheels, scratch / "source", SOURCE_DATE_EPOCH=committed)


def fill(bundle: Path, scratch: Path) -> None:
    """Everything that the bundle holds, and the list of it."""
    wheels = bundle / "wheels"
    wheels.mkdir(parents=True)
    run(sys.executable, "-m", "venv", scratch / "venv")
    print(f"fetching the wheels of {LOCK}", flush=True)
    fetch(wheels, scratch / "venv" / "bin" / "python")
    print("building the wheel of Sfumato", flush=True)
    build(wheels, scratch / "venv" / "bin" / "python", scratch)
    (bundle / LOCK).write_text("".join(pinned(wheel) for wheel in sorted(wheels.iterdir())), "utf-8")
    write_described(bundle)
    shutil.copyfile(HERE / "install.py", bundle / "install.py")
    write_sums(bundle)


def main() -> None:
    """Make the bundle aside and put it into place whole; say how large it is, and the hash to compare on the other side."""
    parser = argparse.ArgumentParser(
        description="Make the bundle that installs Sfumato on a machine without a network."
    )
    parser.add_argument("directory", type=Path, help="a new directory for the bundle")
    target = parser.parse_args().directory.absolute()
    try:
        if target.exists():
            raise NoBundle(f"{target} exists: name a new directory")
        if not target.parent.is_dir():
            raise NoBundle(f"{target.parent} is no directory")
        with tempfile.TemporaryDirectory(prefix=".sfumato-bundle-", dir=target.parent) as scratch:
            bundle = Path(scratch) / "bundle"
            fill(bundle, Path(scratch))
            bundle.rename(target)
    except NoBundle as reason:
        sys.exit(f"bundle: {reason}")
    size = sum(path.stat().st_size for path in target.rglob("*") if path.is_file())
    count = len(list((target / "wheels").iterdir()))
    print(f"{target}: {count} wheels, {size / 1e6:.0f} MB, for {' on '.join(this_machine().values())}")
    print(f"{SUMS} has the SHA-256 {sha256(target / SUMS)}: install.py prints it too, compare them")
    print(f"there: python3 {target.name}/install.py DIRECTORY")


if __name__ == "__main__":
    main()
