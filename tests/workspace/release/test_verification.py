"""A released folder is held against its manifests and against the run that it came from; nobody without the key can fit one to it."""

from __future__ import annotations

import hashlib
import hmac
import json
import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from keyed_workspace import KEY
from prepared_workspaces import reseal, run_recipe

from sfumato.engine.errors import BadInput
from sfumato.tui.cli.main import sfumato
from sfumato.workspace.gate.contents import plan_release
from sfumato.workspace.jobs.worker import run_worker
from sfumato.workspace.policy.policy import read_policy_of_workspace
from sfumato.workspace.release import verification
from sfumato.workspace.release.commitment import commitment_of_run
from sfumato.workspace.release.verification import check_audit_log, check_known_hash, find_origin, verify_release
from sfumato.workspace.service.release import write_run_release
from sfumato.workspace.store.runs import find_run
from sfumato.workspace.store.workspace import Workspace
from sfumato.workspace.upkeep.integrity import NotAsSealed

Enter = Callable[..., int]
PLAIN: dict[str, Any] = {"measure": [{"method": "utility.ecdf"}], "threshold": []}


@pytest.fixture(scope="module")
def released_folder(tmp_path_factory: pytest.TempPathFactory, computed: Callable[..., Path]) -> Path:
    """A workspace whose run 1 was released, and beside it what left: to be copied."""
    made = tmp_path_factory.mktemp("released")
    shutil.copytree(computed(key=KEY, **PLAIN), made / "workspace")
    with Workspace.open(made / "workspace") as workspace:
        write_run_release(workspace, 1, made / "out", reason="no risk is measured")
    return made


@pytest.fixture
def workspace(released_folder: Path, tmp_path: Path) -> Iterator[Workspace]:
    shutil.copytree(released_folder / "workspace", tmp_path / "workspace")
    with Workspace.open(tmp_path / "workspace") as copied:
        yield copied


@pytest.fixture
def run_id() -> int:
    return 1


@pytest.fixture
def out(released_folder: Path, tmp_path: Path) -> Path:
    return shutil.copytree(released_folder / "out", tmp_path / "out")


def manifest_of(out: Path, package: str = "public") -> dict[str, Any]:
    found: dict[str, Any] = json.loads((out / package / "manifest.json").read_text("utf-8"))
    return found


def write_manifest(out: Path, table: dict[str, Any]) -> None:
    (out / "public/manifest.json").write_text(json.dumps(table, indent=1, ensure_ascii=False) + "\n", "utf-8")


@pytest.mark.slow
def test_a_release_and_each_of_its_packages_are_as_they_were_written(out: Path) -> None:
    whole, public, internal = (verify_release(path) for path in (out, out / "public", out / "internal"))
    assert (whole.packages, public.packages, internal.packages) == (("public", "internal"), ("public",), ("internal",))
    assert whole.problems == public.problems == internal.problems == ()
    assert whole.n_files == public.n_files + internal.n_files == len([*out.rglob("*.*")]) - 2
    shutil.rmtree(out / "internal")
    assert verify_release(out).packages == ("public",)


def change_byte(out: Path) -> None:
    path = out / "public/dataset-SYNTHETIC-02.csv"
    content = path.read_bytes()
    path.write_bytes(content[:-2] + bytes([content[-2] ^ 1]) + content[-1:])


def remove_report(out: Path) -> None:
    (out / "internal/report.html").unlink()


def add_notes_folder(out: Path) -> None:
    (out / "public/more").mkdir()
    (out / "public/more/notes.txt").write_text("mine")


def add_notes_beside(out: Path) -> None:
    (out / "notes.txt").write_text("mine")


def link_codebook(out: Path) -> None:
    path = out / "public/codebook.csv"
    path.rename(out / "public/copy.csv")
    path.symlink_to(out / "public/copy.csv")


def link_folder(out: Path) -> None:
    (out / "public/more").symlink_to(out / "internal")


def add_pipe(out: Path) -> None:
    os.mkfifo(out / "public/pipe")


def exchange_manifest(out: Path) -> None:
    write_manifest(out, {**manifest_of(out), "records": 81})


def list_file_twice(out: Path) -> None:
    table = manifest_of(out)
    write_manifest(out, {**table, "files": [*table["files"], table["files"][0]]})


def list_outside_file(out: Path) -> None:
    table = manifest_of(out)
    content = Path("/etc/hostname").read_bytes()
    line = {
        "name": "../../../../../../etc/hostname",
        "bytes": len(content),
        "sha256": hashlib.sha256(content).hexdigest(),
    }
    write_manifest(out, {**table, "files": [*table["files"], line]})


def empty_folder(out: Path) -> None:
    (out / "public/written by a friend").mkdir()


def linked_package(out: Path) -> None:
    shutil.move(out / "public", out.with_name("elsewhere"))
    (out / "public").symlink_to(out.with_name("elsewhere"))


def file_for_package(out: Path) -> None:
    shutil.rmtree(out / "internal")
    (out / "internal").write_text("mine")


def many_lines(out: Path) -> None:
    (out / "public/x\npublic: 12 files, 3,456 bytes read, all as the manifest says").write_text("mine")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("change", "said"),
    [
        (empty_folder, "public/written by a friend/: a folder that is not in the manifest"),
        (linked_package, "public: is a link, not a package of the release"),
        (file_for_package, "internal: is a file, not a package of the release"),
        (many_lines, "public/x public: 12 files, 3,456 bytes read, all as the manifest says: not in the manifest"),
        (change_byte, "public/dataset-SYNTHETIC-02.csv: changed since it was released"),
        (remove_report, "internal/report.html: missing"),
        (add_notes_folder, "public/more/notes.txt: not in the manifest"),
        (add_notes_beside, "notes.txt: belongs to no package"),
        (link_codebook, "public/codebook.csv: is a link, not a file of the release"),
        (link_folder, "public/more: is a link, not a file of the release"),
        (add_pipe, "public/pipe: is a named pipe, not a file of the release"),
        (exchange_manifest, "the internal manifest is of another public one"),
        (list_file_twice, "public/dataset-SYNTHETIC-01.csv: the manifest names it twice"),
        (list_outside_file, "public/../../../../../../etc/hostname: missing"),
    ],
)
def test_what_was_changed_is_named(out: Path, change: Callable[[Path], None], said: str) -> None:
    assert verify_release(out).problems == ()
    change(out)
    assert said in verify_release(out).problems


@pytest.mark.slow
@pytest.mark.parametrize("place", ["manifest.json", "codebook.csv", ""])
def test_what_is_exchanged_while_it_is_read_is_named(out: Path, monkeypatch: pytest.MonkeyPatch, place: str) -> None:
    """The files that were read agree with the manifest that was read, and others lie there in the end."""
    read, seen = verification._has_content, list[str]()

    def exchange_after_the_last(path: Path, *more: Any) -> bool:
        found = read(path, *more)
        seen.append(path.name)
        if len(seen) == len(manifest_of(out)["files"]):
            taken = out / "public" / place if place else out / "public"
            taken.rename(out.with_name("taken"))
            if not place:
                shutil.copytree(out.with_name("taken"), taken)
            else:
                taken.write_bytes(out.with_name("taken").read_bytes())
        return found

    assert verify_release(out / "public").problems == ()
    monkeypatch.setattr(verification, "_has_content", exchange_after_the_last)
    assert "public/: changed while it was read; verify it again" in verify_release(out / "public").problems


@pytest.mark.slow
def test_a_folder_that_cannot_be_read_is_named(out: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (out / "public/locked").mkdir()
    scan = os.scandir

    def scan_all_but_one(path: Any) -> Any:
        if not isinstance(path, int) and Path(path).name == "locked":
            raise PermissionError(13, "Permission denied", str(path))
        return scan(path)

    monkeypatch.setattr(os, "scandir", scan_all_but_one)
    assert "public/locked/: cannot be read, so what it has is unknown" in verify_release(out).problems


@pytest.mark.slow
def test_a_manifest_with_a_key_twice_is_refused(workspace: Workspace, out: Path) -> None:
    """One reader takes the first, another the last: the commitment would hold for one of them."""
    path = out / "public/manifest.json"
    path.write_text(path.read_text("utf-8").replace("{", '{"records": 1000000,', 1), "utf-8")
    with pytest.raises(BadInput, match="is no manifest of a release"):
        verify_release(out)


@pytest.mark.slow
def test_no_proof_says_that_changed_files_are_those_that_were_released(workspace: Workspace, out: Path) -> None:
    change_byte(out)
    found = verify_release(out)
    known = check_known_hash(found, found.manifest_hashes["public"])
    origin = find_origin(workspace, found)
    for message in (known.message, origin.message):
        assert "differ from" in message
        assert "is what its giver had" not in message
        assert "are those that were released" not in message


@pytest.mark.parametrize(
    "content",
    [b"", b"[]", b"[" * 100_000, b'{"files": 1}', b'{"files": [{"name": "a", "bytes": 1, "sha256": "0"}]}',
     b'{"files": [{"name": 1, "bytes": 1, "sha256": "' + b"0" * 64 + b'"}]}', b"\xff\xfe"],
)  # fmt: skip
def test_a_manifest_that_is_none_is_refused_with_one_message(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "manifest.json").write_bytes(content)
    with pytest.raises(BadInput, match="is no manifest of a release"):
        verify_release(tmp_path)


def test_a_directory_that_is_no_release_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="is no release"):
        verify_release(tmp_path)
    with pytest.raises(BadInput, match="is no directory"):
        verify_release(tmp_path / "nowhere")
    (tmp_path / "manifest.json").symlink_to("/etc/passwd")
    with pytest.raises(BadInput, match="is a link, no manifest"):
        verify_release(tmp_path)


@pytest.mark.slow
def test_the_key_shows_which_run_made_a_release(
    workspace: Workspace, enter: Enter, run_id: int, out: Path, tmp_path: Path
) -> None:
    other = enter(**PLAIN, release={"m": 3, "seed": 8})
    run_worker(workspace.directory, idle=0)
    write_run_release(workspace, other, tmp_path / "other", reason="no risk is measured")
    for path, made in ((out, run_id), (tmp_path / "other", other), (out / "public", run_id)):
        found = find_origin(workspace, verify_release(path)).run
        assert found is not None
        assert found.id == made
    (workspace.directory / "policy.toml").write_text('name = "a new policy"\n')
    assert find_origin(workspace, verify_release(out)).run is not None, (
        "the policy of that time is known from the audit log"
    )
    change_byte(out)
    assert find_origin(workspace, verify_release(out)).run is not None, (
        "what was changed says the hash, not the commitment"
    )
    table = manifest_of(out)
    table["files"][0]["sha256"] = "0" * 64
    write_manifest(out, table)
    assert find_origin(workspace, verify_release(out)).run is None


@pytest.mark.slow
@pytest.mark.parametrize(
    "statement",
    ["UPDATE run SET seed = 8", "UPDATE run SET recipe = replace(recipe, 'Small', 'Other')",
     "UPDATE artefact SET sha256 = (SELECT table_sha256 FROM dataset) WHERE name = 'draw/1'",
     "UPDATE dataset SET source_sha256 = upper(source_sha256)", "UPDATE run SET versions = '{}'"],
)  # fmt: skip
def test_a_run_that_was_changed_since_made_no_release(workspace: Workspace, out: Path, statement: str) -> None:
    assert find_origin(workspace, verify_release(out)).run is not None
    with workspace.write_transaction() as connection:
        connection.execute(statement)
    with pytest.raises(NotAsSealed):
        find_origin(workspace, verify_release(out))
    reseal(workspace)
    assert find_origin(workspace, verify_release(out)).run is None


@pytest.mark.slow
def test_without_the_key_no_guess_can_be_held_against_it(workspace: Workspace, run_id: int, out: Path) -> None:
    """Who knows everything but the key, the committed values to the last bit, computes another number; with it, that one."""
    run, manifest = find_run(workspace, run_id), manifest_of(out)
    bound = commitment_of_run(
        run,
        workspace.find_dataset(run.dataset_id),
        plan_release(workspace, run_id).tables,
        read_policy_of_workspace(workspace.directory).sha256,
    )
    known = bound.canonical_bytes(manifest)
    guesses = [b"", bytes(32), run.key_fingerprint.encode(), bytes.fromhex(run.key_fingerprint), str(run.seed).encode()]
    assert manifest["commitment"] not in {hmac.digest(guess, known, "sha256").hex() for guess in guesses}
    assert manifest["commitment"] != hashlib.sha256(known).hexdigest()
    assert manifest["commitment"] == hmac.digest(workspace.read_workspace_key(), known, "sha256").hex()
    inside = json.loads((out / "internal/commitments.json").read_text("utf-8"))
    assert inside["commitment"] == manifest["commitment"]
    assert inside["committed"]["seed"] == run.seed
    for secret in (run.key_fingerprint, run.recipe_sha256, bound.table_sha256[0]):
        assert secret in json.dumps(inside)
        assert secret not in json.dumps(manifest)


@pytest.mark.slow
def test_a_public_key_commits_to_nothing(enter: Enter, tmp_path: Path, small_recipe: Any, small_data: Any) -> None:
    from sfumato.engine.methods.run import PUBLIC

    shared = Workspace.create(tmp_path / "shared", PUBLIC)
    run_id = run_recipe(shared, small_recipe(**PLAIN), small_data)
    write_run_release(shared, run_id, tmp_path / "out", reason="a study that strangers shall repeat")
    assert manifest_of(tmp_path / "out")["commitment"] is None
    assert "public key" in json.loads((tmp_path / "out/internal/commitments.json").read_text("utf-8"))["reason"]
    origin = find_origin(shared, verify_release(tmp_path / "out"))
    assert origin.run is None
    assert "no commitment: the run has a public key" in origin.message
    shared.close()


@pytest.mark.slow
def test_the_command_says_what_it_found_and_ends_with_1_where_something_is_wrong(
    workspace: Workspace, run_id: int, out: Path, tmp_path: Path
) -> None:
    def run_verify(*words: str) -> tuple[int, str]:
        done = CliRunner().invoke(sfumato, ["verify", *words, "--workspace", str(workspace.directory)])
        return done.exit_code, done.output

    code, text = run_verify(str(out))
    assert (code, "bytes read, all as the manifest says\n" in text) == (0, True)
    assert "anybody could have made this folder" in text
    code, text = run_verify(str(out / "public"), "--commitment")
    assert (code, f"run {run_id} of this workspace made it" in text) == (0, True)
    assert "checked by the commitment" in text
    assert "checked by the audit log: row" in text
    assert "anybody could have made" not in text
    elsewhere = Workspace.create(tmp_path / "elsewhere")
    elsewhere.close()
    done = CliRunner().invoke(sfumato, ["verify", str(out), "--commitment", "--workspace", str(tmp_path / "elsewhere")])
    assert (done.exit_code, "no run of this workspace made it" in done.output) == (1, True)
    change_byte(out)
    code, text = run_verify(str(out))
    assert code == 1
    assert "dataset-SYNTHETIC-02.csv: changed" in text


def forge(out: Path) -> None:
    """What an intruder does who has the public package alone: another dataset, and a manifest that agrees with it."""
    shutil.rmtree(out / "internal")
    path = out / "public/dataset-SYNTHETIC-01.csv"
    path.write_bytes(path.read_bytes().replace(b"1", b"2"))
    table, content = manifest_of(out), path.read_bytes()
    lines = [
        {"name": line["name"], "bytes": len(content), "sha256": hashlib.sha256(content).hexdigest()}
        if line["name"] == path.name
        else line
        for line in table["files"]
    ]
    write_manifest(out, {**table, "files": lines})


@pytest.mark.slow
def test_a_forged_public_package_passes_only_as_one_that_anybody_could_have_made(
    workspace: Workspace, out: Path
) -> None:
    def ask(*words: str) -> tuple[int, dict[str, Any]]:
        done = CliRunner().invoke(
            sfumato, ["verify", str(out), *words, "--workspace", str(workspace.directory), "--json"]
        )
        return done.exit_code, json.loads(done.output)

    known = hashlib.sha256((out / "public/manifest.json").read_bytes()).hexdigest()
    size = sum(path.stat().st_size for path in out.rglob("*") if path.is_file())
    code, told = ask("--known", known, "--commitment")
    assert (code, told["checked_by"]) == (0, ["own manifest", "known hash", "audit log", "commitment"])
    assert told["bytes"] == size
    assert told["manifests"]["public"] == known
    assert any("internal/ is not covered" in line for line in told["said"])
    forge(out)
    code, told = ask()
    assert (code, told["wrong"], told["checked_by"]) == (0, [], ["own manifest"])
    assert any("anybody could have made this folder" in line for line in told["said"])
    code, told = ask("--known", known)
    assert (code, told["checked_by"]) == (1, ["own manifest"])
    assert any("another release, or forged" in line for line in told["said"])
    code, told = ask("--commitment")
    assert (code, told["checked_by"]) == (1, ["own manifest"])
    assert any("records no release with these manifests" in line for line in told["said"])


@pytest.mark.slow
def test_the_public_half_alone_is_known_to_the_audit_log(workspace: Workspace, out: Path) -> None:
    proof = check_audit_log(workspace, verify_release(out / "public"))
    assert proof.holds
    assert "checked by the audit log" in proof.message
    assert "whoever can read it can seal what they like" in proof.message
    workspace.connection.execute("DROP TRIGGER audit_keeps_UPDATE")
    workspace.connection.execute("UPDATE audit SET subject = 'run 2' WHERE act = 'run released'")
    broken = check_audit_log(workspace, verify_release(out / "public"))
    assert not broken.holds
    assert "proves nothing" in broken.message


def test_a_known_hash_that_is_none_is_refused(tmp_path: Path) -> None:
    (tmp_path / "manifest.json").write_text('{"files": []}')
    verified = verify_release(tmp_path)
    with pytest.raises(BadInput, match="is no SHA-256"):
        check_known_hash(verified, "abc")
    known = verified.manifest_hashes["public"]
    assert check_known_hash(verified, f" {known.upper()} ").holds
