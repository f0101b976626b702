"""A folder that leaves has the bytes that were written or does not get its name, whatever another process does meanwhile."""

from __future__ import annotations

import os
import shutil
import stat
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from sfumato.workspace import outgoing
from sfumato.workspace.errors import ExchangedFiles, NotReleased, UnsafeFolder
from sfumato.workspace.outgoing import OutgoingFolder, open_guarded_folder, rename_new, write_outgoing_file

FILES = {"public/a.csv": b"age\n34\n", "public/b.csv": b"", "internal/crate/c.json": b"{}" * 5000}
EVIL = b"age\n99\n"


class Intruder:
    """Another process of this account, which acts once, at the N-th system call that opens, makes or renames something."""

    def __init__(self) -> None:
        self.count, self.moment, self.renamed = 0, -1, 0
        self.act: Callable[[], None] | None = None
        self.active = False

    def notice(self, event: str, _: tuple[object, ...]) -> None:
        if not self.active or event not in ("open", "os.mkdir", "os.rename"):
            return
        self.count += 1
        if event == "os.rename":
            self.renamed = self.count
        if self.count == self.moment and self.act is not None:
            self.active = False
            self.act()
            self.active = True


INTRUDER = Intruder()
sys.addaudithook(INTRUDER.notice)  # a hook stays as long as the process


@pytest.fixture
def intruder() -> Iterator[Intruder]:
    INTRUDER.__init__()  # type: ignore[misc]
    yield INTRUDER
    INTRUDER.active = False


def release(target: Path) -> None:
    """Write the files into a folder that becomes the target; remove them where that fails, as a release does."""
    with OutgoingFolder(target) as folder:
        try:
            folder.make()
            for name, content in FILES.items():
                folder.write_file(name, content)
            folder.publish()
        except (OSError, NotReleased):
            folder.remove()
            raise


def content_of(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def folder_in_progress(place: Path) -> Path | None:
    return next((path for path in place.iterdir() if path.name.startswith(".out.writing-") and path.is_dir()), None)


def exchange_folder(place: Path) -> None:
    if folder := folder_in_progress(place):
        folder.rename(place / "taken")
        shutil.copytree(place / "taken", folder)
        for path in folder.rglob("*.*"):
            if path.is_file():
                path.write_bytes(EVIL)
        (folder / "more").write_bytes(EVIL)


def exchange_inner_folder(place: Path) -> None:
    if (folder := folder_in_progress(place)) and (folder / "public").is_dir():
        (folder / "public").rename(place / "taken")
        (place / "evil").mkdir()
        (place / "evil/a.csv").write_bytes(EVIL)
        (folder / "public").symlink_to(place / "evil")


def exchange_file(place: Path) -> None:
    if (folder := folder_in_progress(place)) and (path := folder / "public/a.csv").exists():
        path.unlink()
        path.write_bytes(EVIL)


def change_bytes(place: Path) -> None:
    if (folder := folder_in_progress(place)) and (path := folder / "public/a.csv").exists():
        with path.open("r+b") as file:
            file.write(EVIL)


def add_file(place: Path) -> None:
    if folder := folder_in_progress(place):
        (folder / "more").write_bytes(EVIL)


def add_name(place: Path) -> None:
    if (folder := folder_in_progress(place)) and (path := folder / "public/a.csv").exists():
        os.link(path, place / "second-name")


def remove_file(place: Path) -> None:
    if folder := folder_in_progress(place):
        (folder / "internal/crate/c.json").unlink(missing_ok=True)


def take_name(place: Path) -> None:
    if not (place / "out").exists():
        (place / "out").mkdir()
        (place / "out/evil").write_bytes(EVIL)


def exchange_place(place: Path) -> None:
    place.rename(place.with_name("elsewhere"))
    place.mkdir()


ACTS = (
    exchange_folder, exchange_inner_folder, exchange_file, change_bytes, add_file, add_name, remove_file, take_name,
    exchange_place,
)  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("act", ACTS)
def test_whenever_another_process_interferes_the_folder_is_whole_or_has_no_name(
    intruder: Intruder, tmp_path: Path, act: Callable[[Path], None]
) -> None:
    intruder.active = True
    (tmp_path / "plain").mkdir()
    release(tmp_path / "plain/out")
    moments, prevented = intruder.renamed, 0
    assert moments > 15
    for moment in range(1, moments + 1):
        place = tmp_path / f"at-{moment}" / "place"
        place.mkdir(parents=True)
        intruder.__init__()  # type: ignore[misc]
        intruder.moment, intruder.act, intruder.active = moment, lambda place=place: act(place), True  # type: ignore[misc]
        try:
            release(place / "out")
        except (OSError, NotReleased):
            intruder.active = False
            prevented += 1
            assert not (place / "out").exists() or content_of(place / "out") != FILES
            kept = [path for path in place.parent.rglob("c.json") if path.is_file()]
            assert not any(path.read_bytes() == FILES["internal/crate/c.json"] for path in kept), (
                "nothing of ours is left"
            )
        else:
            intruder.active = False
            assert content_of(place / "out") == FILES
    assert prevented, "the control: some of its acts would have changed what leaves"


def test_the_control_an_intruder_changes_what_is_not_compared(
    intruder: Intruder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(OutgoingFolder, "check_files", lambda _: None)
    intruder.active = True
    release(tmp_path / "out")
    moment = intruder.renamed
    shutil.rmtree(tmp_path / "out")
    intruder.__init__()  # type: ignore[misc]
    intruder.moment, intruder.act, intruder.active = moment, lambda: exchange_folder(tmp_path), True
    release(tmp_path / "out")
    assert content_of(tmp_path / "out")["public/a.csv"] == EVIL


@pytest.mark.parametrize("has_call", [True, False])
def test_a_new_name_replaces_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, has_call: bool) -> None:
    if not has_call:
        monkeypatch.setattr(outgoing, "_renameat2", lambda: None)
    (tmp_path / "a").write_text("new")
    (tmp_path / "b").write_text("old")
    folder = os.open(tmp_path, os.O_RDONLY)
    with pytest.raises(FileExistsError):
        rename_new("a", "b", folder)
    rename_new("a", "c", folder)
    os.close(folder)
    assert ((tmp_path / "b").read_text(), (tmp_path / "c").read_text()) == ("old", "new")


def test_an_empty_folder_of_the_user_is_replaced_and_a_full_one_is_not(tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    release(tmp_path / "out")
    assert content_of(tmp_path / "out") == FILES
    with pytest.raises(NotReleased, match="cannot be written"):
        release(tmp_path / "out")
    assert content_of(tmp_path / "out") == FILES
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


def test_all_that_is_written_is_for_its_owner_alone_whatever_the_umask(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        release(tmp_path / "out")
    finally:
        os.umask(before)
    modes = {path: stat.S_IMODE(path.stat().st_mode) for path in (tmp_path / "out", *(tmp_path / "out").rglob("*"))}
    assert all(mode == (0o700 if path.is_dir() else 0o600) for path, mode in modes.items())


@pytest.mark.parametrize("mode", [0o777, 0o773, 0o775])
@pytest.mark.parametrize("level", ["parent", "above"])
def test_a_folder_in_which_others_may_write_is_refused_and_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mode: int, level: str
) -> None:
    monkeypatch.setattr(outgoing, "_is_group_of_one", lambda *_: False)
    open_to_others = tmp_path / "shared"
    inner = open_to_others / "mine"
    inner.mkdir(parents=True)
    place = open_to_others if level == "parent" else inner
    os.close(open_guarded_folder(place))
    open_to_others.chmod(mode)
    with pytest.raises(UnsafeFolder, match=f'"{open_to_others}" can be written by .*chmod'):
        release(place / "out")
    assert folder_in_progress(place) is None
    # With the sticky bit nobody else can rename what is ours.
    open_to_others.chmod(mode | stat.S_ISVTX)
    release(place / "out")


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a folder away")
def test_a_folder_of_another_account_is_refused(tmp_path: Path) -> None:
    (tmp_path / "theirs").mkdir()
    os.chown(tmp_path / "theirs", 12_345, 12_345)
    for mode in (0o755, 0o1777):
        (tmp_path / "theirs").chmod(mode)
        with pytest.raises(UnsafeFolder, match="belongs to uid 12345, who could"):
            release(tmp_path / "theirs/out")


def test_the_private_group_of_an_account_may_write(tmp_path: Path) -> None:
    """Many systems make every folder writable by a group in which its owner is alone."""
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine").chmod(0o775)
    import grp
    import pwd

    me = pwd.getpwuid(os.geteuid())
    if grp.getgrgid((tmp_path / "mine").stat().st_gid).gr_name != me.pw_name:
        pytest.skip("this account has no group of its own")
    release(tmp_path / "mine/out")


def test_a_single_file_is_whole_or_not_there(intruder: Intruder, tmp_path: Path) -> None:
    assert write_outgoing_file(tmp_path / "a.html", b"one", replace=False)
    with pytest.raises(FileExistsError):
        write_outgoing_file(tmp_path / "a.html", b"two", replace=False)
    assert (tmp_path / "a.html").read_bytes() == b"one"
    write_outgoing_file(tmp_path / "a.html", b"two", replace=True)
    assert (tmp_path / "a.html").read_bytes() == b"two"

    def exchange() -> None:
        aside = next(tmp_path.glob(".a.html.writing-*"))
        aside.unlink()
        aside.write_bytes(EVIL)

    intruder.active = True
    write_outgoing_file(tmp_path / "a.html", b"three", replace=True)
    moment = intruder.renamed
    intruder.__init__()  # type: ignore[misc]
    intruder.moment, intruder.act, intruder.active = moment, exchange, True
    with pytest.raises(ExchangedFiles):
        write_outgoing_file(tmp_path / "a.html", b"four", replace=True)
    assert [path.name for path in tmp_path.iterdir()] == ["a.html"]
