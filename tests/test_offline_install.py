"""The bundle for machines without a network, and what the README's commands fetch on those that have one."""

from __future__ import annotations

import importlib.util
import os
import re
import shlex
import shutil
import subprocess
import sys
import time
import zipfile
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parents[1]
ALONE = {"--no-index", "--no-deps", "--no-build-isolation"}


def script(name: str) -> ModuleType:
    """One of the two programs, as a module."""
    specified = importlib.util.spec_from_file_location(name, ROOT / ".ci" / f"{name}.py")
    assert specified is not None
    assert specified.loader is not None
    module = importlib.util.module_from_spec(specified)
    sys.modules[name] = module
    specified.loader.exec_module(module)
    return module


installing = script("install")
bundling = script("bundle")


def wheel(path: Path, name: str, text: str) -> Path:
    """The smallest wheel: one module, and the command ``sfumato``."""
    information = f"{name}-1.dist-info"
    files = {
        f"{name}_module.py": f"def main():\n    print({text!r})\n",
        f"{information}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: 1\n",
        f"{information}/WHEEL": "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        f"{information}/entry_points.txt": f"[console_scripts]\n{name} = {name}_module:main\n",
    }
    files[f"{information}/RECORD"] = "".join(f"{file},,\n" for file in [*files, f"{information}/RECORD"])
    made = path / f"{name}-1-py3-none-any.whl"
    with zipfile.ZipFile(made, "w") as archive:
        for file, content in files.items():
            archive.writestr(zipfile.ZipInfo(file), content)
    return made


def lists(bundle: Path) -> None:
    """Write the lock and the sums of what lies in the bundle."""
    wheels = sorted((bundle / "wheels").iterdir())
    (bundle / "requirements.lock").write_text("".join(bundling.pinned(one) for one in wheels), "utf-8")
    bundling.write_sums(bundle)


@pytest.fixture
def bundle(tmp_path: Path) -> Path:
    """A bundle of one small wheel, for this machine."""
    made = tmp_path / "bundle"
    (made / "wheels").mkdir(parents=True)
    wheel(made / "wheels", "sfumato", "one")
    bundling.write_described(made)
    shutil.copyfile(ROOT / ".ci" / "install.py", made / "install.py")
    lists(made)
    return made


def install(
    bundle: Path, *words: str, python: str = sys.executable, before: tuple[str, ...] = ()
) -> subprocess.CompletedProcess[str]:
    """Run the bundle's own program."""
    command = [*before, python, str(bundle / "install.py"), *words]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=600)


# what the README asks for

PIP = re.compile(r"\.venv/bin/pip install ([^&|;]*)")


def unhashed(command: str) -> list[str]:
    """The parts of a command that might fetch a file whose hash is not known beforehand."""
    found = []
    for words in (shlex.split(part) for part in PIP.findall(command)):
        locks = [ROOT / words[place + 1] for place, word in enumerate(words) if word == "-r"]
        given = [word for word in words if not word.startswith("-") and not word.endswith(".lock")]
        if not (set(words) >= ALONE or (locks and not given and all(map(hashed, locks)))):
            found.append(" ".join(words))
    return found


def hashed(lock: Path) -> bool:
    """Whether every requirement of a lock has a hash, so that pip takes nothing else."""
    lines = lock.read_text("utf-8").replace("\\\n", " ").splitlines()
    return all(re.fullmatch(r"[a-z0-9.-]+==\S+( +--hash=sha256:[0-9a-f]{64})+ *", line) for line in lines)


@pytest.mark.parametrize("part", ["demo", "tests"])
def test_a_command_of_the_readme_fetches_nothing_without_a_hash(part: str) -> None:
    text = (ROOT / "README.md").read_text("utf-8")
    shown = text.partition(f"<!-- {part} -->")[2].partition(f"<!-- end of {part} -->")[0]
    assert len(PIP.findall(shown)) == 2
    assert unhashed(shown) == []


@pytest.mark.parametrize(
    "words", ["--no-deps .", "--no-deps --no-index .", "-r requirements.lock textual", "-r README.md"]
)
def test_a_command_that_builds_in_isolation_or_names_a_package_would_be_found(words: str) -> None:
    assert unhashed(f"python3 -m venv .venv && .venv/bin/pip install -q {words} && .venv/bin/sfumato") == [
        f"-q {words}"
    ]


@pytest.mark.parametrize("lock", ["requirements.lock", "tests/requirements.lock"])
def test_a_lock_holds_what_builds_sfumato_and_names_no_address(lock: str) -> None:
    text = (ROOT / lock).read_text("utf-8")
    wanted = re.search(r'requires = \["setuptools>=(\d+)"\]', (ROOT / "pyproject.toml").read_text("utf-8"))
    locked = re.search(r"^setuptools==(\d+)\.", text, re.MULTILINE)
    assert wanted is not None
    assert locked is not None
    assert int(locked[1]) >= int(wanted[1])
    assert "://" not in text


# the bundle's own checks


def test_a_bundle_that_is_whole_passes(bundle: Path) -> None:
    installing.check_machine(bundle)
    assert installing.check_files(bundle) == installing.sha256(bundle / "SHA256SUMS")


def flip(bundle: Path) -> None:
    path = next((bundle / "wheels").iterdir())
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(bytes(content))


def add(bundle: Path) -> None:
    wheel(bundle / "wheels", "another", "two")


def remove(bundle: Path) -> None:
    next((bundle / "wheels").iterdir()).unlink()


def link(bundle: Path) -> None:
    path = next((bundle / "wheels").iterdir())
    path.rename(bundle.parent / path.name)
    path.symlink_to(bundle.parent / path.name)


def relock(bundle: Path) -> None:
    (bundle / "requirements.lock").write_text("sfumato==1\n", "utf-8")


@pytest.mark.parametrize(
    ("harm", "says"),
    [
        (flip, "wheels/sfumato-1-py3-none-any.whl is not what was bundled"),
        (add, "wheels/another-1-py3-none-any.whl does not belong to the bundle"),
        (remove, "wheels/sfumato-1-py3-none-any.whl is missing from the bundle"),
        (link, "wheels/sfumato-1-py3-none-any.whl is not what was bundled"),
        (relock, "requirements.lock is not what was bundled"),
    ],
)
def test_a_bundle_that_was_changed_is_refused_by_the_name_of_the_file(
    harm: Callable[[Path], None], says: str, bundle: Path, tmp_path: Path
) -> None:
    harm(bundle)
    done = install(bundle, str(tmp_path / "made"))
    assert done.returncode == 1
    assert done.stderr.startswith(f"install: {says}")
    assert len(done.stderr.splitlines()) == 1
    assert not (tmp_path / "made").exists()


def test_a_bundle_for_another_python_is_refused(bundle: Path, tmp_path: Path) -> None:
    described = bundle / "bundle.json"
    described.write_text(re.sub(r"cpython 3\.\d+", "cpython 3.99", described.read_text("utf-8")), "utf-8")
    bundling.write_sums(bundle)
    done = install(bundle, str(tmp_path / "made"))
    assert done.returncode == 1
    assert done.stderr.startswith("install: the bundle is for cpython 3.99 on ")
    assert not (tmp_path / "made").exists()


def test_another_bundle_than_the_one_whose_hash_was_noted_is_refused(bundle: Path, tmp_path: Path) -> None:
    noted = installing.sha256(bundle / "SHA256SUMS")
    next((bundle / "wheels").iterdir()).unlink()
    wheel(bundle / "wheels", "sfumato", "somebody else's")
    lists(bundle)
    done = install(bundle, str(tmp_path / "made"), "--sums", noted)
    assert done.returncode == 1
    assert "not the one that was given: this is another bundle" in done.stderr
    assert not (tmp_path / "made").exists()


def test_a_directory_that_exists_is_left_alone(bundle: Path, tmp_path: Path) -> None:
    (tmp_path / "there").mkdir()
    for place in (tmp_path / "there", bundle / "install.py"):
        done = install(bundle, str(place))
        assert done.returncode == 1
        assert done.stderr == f"install: {place} exists: name a new directory\n"
    assert list((tmp_path / "there").iterdir()) == []


@pytest.mark.offline
def test_pip_holds_each_wheel_to_the_lock_even_where_the_sums_agree(bundle: Path, tmp_path: Path) -> None:
    good = install(bundle, str(tmp_path / "good"))
    assert good.returncode == 0, good.stderr
    assert f"next: {tmp_path / 'good'}/bin/sfumato demo" in good.stdout
    wheel(bundle / "wheels", "sfumato", "another's")
    bundling.write_sums(bundle)
    done = install(bundle, str(tmp_path / "made"))
    assert done.returncode == 1
    assert "DO NOT MATCH THE HASHES" in done.stderr
    assert not (tmp_path / "made").exists()


# the whole of it


@pytest.fixture(scope="session")
def without_network() -> tuple[str, ...]:
    """What is put before a command, so that it has no network."""
    for before in (("unshare", "-rn"), ("unshare", "-n")):
        if (
            shutil.which(before[0])
            and subprocess.run([*before, "true"], capture_output=True, check=False).returncode == 0
        ):
            return before
    pytest.skip("this machine lets nobody make a network namespace (unshare -rn)")


@pytest.fixture(scope="session")
def whole(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """The bundle of this tree, and what was printed when it was made."""
    bundle = tmp_path_factory.mktemp("whole") / "bundle"
    command = [sys.executable, ROOT / ".ci" / "bundle.py", bundle]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=900)
    if "No matching distribution found" in done.stderr:
        pytest.skip("no package index can be reached from here")
    assert done.returncode == 0, done.stderr
    return bundle, done.stdout


@pytest.mark.offline
def test_the_bundle_is_installed_and_the_demo_runs_without_a_network(
    without_network: tuple[str, ...], whole: tuple[Path, str], tmp_path: Path
) -> None:
    bundle, printed = whole
    began = time.monotonic()
    figures = [f"bundle of {sum(path.stat().st_size for path in bundle.rglob('*')) / 1e6:.0f} MB"]

    def took(what: str) -> None:
        nonlocal began
        figures.append(f"{what}: {time.monotonic() - began:.0f} s")
        began = time.monotonic()

    def alone(*command: object) -> subprocess.CompletedProcess[str]:
        clean = {name: value for name, value in os.environ.items() if not name.startswith(("SFUMATO_", "PYTHON"))}
        words = [*without_network, *(str(word) for word in command)]
        home = {
            "HOME": str(tmp_path),
            "XDG_DATA_HOME": str(tmp_path / "data"),
            "XDG_STATE_HOME": str(tmp_path / "state"),
        }
        return subprocess.run(
            words, capture_output=True, text=True, check=False, timeout=900, cwd=tmp_path, env=clean | home
        )

    connects = "import socket; socket.create_connection(('192.0.2.1', 443), 5)"
    assert "Network is unreachable" in alone(sys.executable, "-c", connects).stderr
    for name in ("requirements.lock", "bundle.json", "SHA256SUMS"):
        assert "://" not in (bundle / name).read_text("utf-8")

    noted = re.search(r"SHA-256 ([0-9a-f]{64})", printed)
    assert noted is not None
    done = alone(sys.executable, bundle / "install.py", tmp_path / "venv", "--sums", noted[1])
    assert done.returncode == 0, done.stderr
    assert f"next: {tmp_path / 'venv'}/bin/sfumato demo" in done.stdout
    took(f"installation of {sum(path.lstat().st_size for path in (tmp_path / 'venv').rglob('*')) / 1e6:.0f} MB")

    sfumato = tmp_path / "venv" / "bin" / "sfumato"
    demo = alone(sfumato, "demo", "--no-tui", "--workspace", tmp_path / "workspace")
    assert demo.returncode == 0, demo.stderr
    # ten limits, of which two are about records and about people
    assert demo.stdout.count("+ met") == 12
    took("demo")

    doctor = alone(sfumato, "doctor", "--workspace", tmp_path / "workspace")
    assert doctor.returncode == 0, doctor.stdout + doctor.stderr
    took("doctor")

    # what was installed builds the same wheel again, from the source and without a network
    (tmp_path / "again").mkdir()
    call = "import sys; from pathlib import Path; sys.path.insert(0, sys.argv[1]); import bundle; bundle.build(*map(Path, sys.argv[2:]))"
    built = alone(
        sfumato.with_name("python"),
        "-c",
        call,
        ROOT / ".ci",
        tmp_path / "again",
        sfumato.with_name("python"),
        tmp_path / "scratch",
    )
    assert built.returncode == 0, built.stderr
    (rebuilt,) = (tmp_path / "again").iterdir()
    assert rebuilt.read_bytes() == (bundle / "wheels" / rebuilt.name).read_bytes()
    took("the wheel again")
    print("\n" + "\n".join(figures))
