"""A privacy account of another package counts only where office or user name the package, its version and its files."""

from __future__ import annotations

import json
import os
import py_compile
import re
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from importlib.resources import files
from importlib.util import cache_from_source
from pathlib import Path
from py_compile import PycInvalidationMode
from types import ModuleType

import installed_packages
import pandas as pd
import pytest
from prepared_workspaces import enter_recipe, reseal, run_recipe

from sfumato.engine.data.microdata import Microdata, conform_to_schema
from sfumato.engine.errors import BadInput
from sfumato.engine.methods.registry import registry, rejected_plugins
from sfumato.engine.recipe.budget import privacy_cost_text
from sfumato.engine.recipe.recipe import Recipe
from sfumato.tui.cli.catalogue import method_object, method_page
from sfumato.workspace.gate.contents import plan_release
from sfumato.workspace.gate.earlier import privacy_cost_of_run
from sfumato.workspace.gate.gate import examine_release
from sfumato.workspace.gate.package_accounts import trusted_packages_of_run
from sfumato.workspace.gate.policy_text import policy_toml
from sfumato.workspace.jobs.runs import result_object
from sfumato.workspace.jobs.worker import run_worker
from sfumato.workspace.policy.installed_packages import find_trusted_packages, installed_package
from sfumato.workspace.policy.packages import PackageFiles
from sfumato.workspace.policy.policy import Policy, parse_policy, read_policy_of_workspace
from sfumato.workspace.release.dossier import read_dossier
from sfumato.workspace.release.report import read_public_release
from sfumato.workspace.release.users import privacy_table
from sfumato.workspace.reporting.privacy_promise import PrivacyPromise, promise_sentences
from sfumato.workspace.service.prepare import prepare_on_source
from sfumato.workspace.store.artefacts import packages_name, read_packages, write_packages
from sfumato.workspace.store.runs import find_run
from sfumato.workspace.store.workspace import Workspace

Write = Callable[[str], Path]
NAME, KEY = "cell-swapper", "synthesis.cell_swapping"
PROJECT = f"""
[project]
name = "{NAME}"
version = "1.0"

[project.entry-points."sfumato.methods"]
"{KEY}" = "cell_swapper.cell_swapping"
"""
SWAPPING = '''
"""Values in another order, with the claim of a privacy that this has not."""

from __future__ import annotations

from dataclasses import dataclass

from sfumato.engine.data.schema import Kind
from sfumato.engine.methods.privacy import ACCOUNT, PrivacyAccount
from sfumato.engine.methods.registry import PrivacyDeclaration, method
from sfumato.engine.methods.results import Fit
from sfumato.engine.methods.spec import Spec


@dataclass(frozen=True, kw_only=True, slots=True)
class SwapSpec(Spec):
    """Nothing to say."""


def joint_draw(fit, spec, targets, confidential, released, index, records, rng):
    return {name: rng.permutation(fit.arrays[name]) for name in targets}


@method("Swapping", spec=SwapSpec, source="An example (2026)", joint_draw=joint_draw, targets=tuple(Kind), outputs=ACCOUNT,
        privacy=PrivacyDeclaration(account=lambda *_: PrivacyAccount(0.01, 1, 1)))
def cell_swapping(data, targets, spec, run, draws):
    return Fit({name: data.numbers(name) for name in targets}, ())
'''


@pytest.fixture
def swapper(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, find_methods_again: Callable[[], None]) -> Path:
    """The folder with the installed package of a method that swaps cells and claims an epsilon of .01."""
    return install_swapper(tmp_path, monkeypatch, find_methods_again, PROJECT)


find_methods_again = installed_packages.find_methods_again


def install_swapper(
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    find_again: Callable[[], None],
    project: str,
    site: str = "site",
    **modules: str,
) -> Path:
    source, installed = folder / f"source of {site}", folder / site
    (source / "cell_swapper").mkdir(parents=True)
    (source / "pyproject.toml").write_text(project, "utf-8")
    (source / "cell_swapper" / "__init__.py").write_text("", "utf-8")
    for name, text in {"cell_swapping": SWAPPING, **modules}.items():
        (source / "cell_swapper" / f"{name}.py").write_text(text, "utf-8")
    installed_packages.install(source, installed)
    monkeypatch.syspath_prepend(str(installed))
    for name in [name for name in sys.modules if name.startswith("cell_swapper")]:
        monkeypatch.delitem(sys.modules, name)
    find_again()
    return installed


def planned(**release: object) -> tuple[Recipe, Microdata]:
    recipe = Recipe.from_table(
        {
            "variables": {"x": {"kind": "categorical", "levels": ["a", "b"], "may_be_missing": False}},
            "data": {"missing": "refuse"},
            "synthesis": [{"method": "cell_swapping", "target": ["x"]}],
            "release": {"m": 1, "seed": 1, "records": 90, **release},
        }
    )
    return recipe, table_of(recipe)


def table_of(recipe: Recipe) -> Microdata:
    return conform_to_schema(pd.DataFrame({"x": ["a", "b", "b"] * 30}), recipe.schema, recipe.data.missing)


def policy_text(sha256: str = "", version: str = "1.0", name: str = NAME) -> str:
    sha256 = sha256 or installed_package(NAME).sha256
    return f'[privacy.packages.{name}]\nversion = "{version}"\nsha256 = "{sha256}"\n'


@pytest.fixture
def secret(tmp_path: Path) -> Workspace:
    """A workspace with a secret key."""
    return Workspace.create(tmp_path / "secret")


def sentences_of(workspace: Workspace, run_id: int) -> str:
    promise = read_public_release(workspace, run_id).privacy
    assert promise is not None
    return " ".join(promise_sentences(promise))


def test_the_record_of_disclosure_control_may_name_unchecked_packages() -> None:
    schema = json.loads((files("sfumato.workspace.documents") / "disclosure-control.schema.json").read_text("utf-8"))
    table = privacy_table(PrivacyPromise(0.01, 0.02, packages=(f"{NAME} 1.0",)))
    assert table["unchecked_packages"] == [f"{NAME} 1.0"]
    assert table.keys() <= schema["properties"]["privacy"]["properties"].keys()


def is_covered(workspace: Workspace, run_id: int) -> bool:
    run, data = find_run(workspace, run_id), planned()[1]
    named = read_policy_of_workspace(workspace.directory).packages
    covered = privacy_cost_of_run(run, data, trusted_packages_of_run(workspace, run, named)).covered
    assert plan_release(workspace, run_id).run.id == run_id
    return covered


def budget_message(workspace: Workspace, run_id: int) -> str:
    """The message of the gate's check of the privacy budget."""
    examined = examine_release(
        workspace, plan_release(workspace, run_id), read_policy_of_workspace(workspace.directory)
    )
    (message,) = [one.message for one in examined.findings if one.check == "privacy_budget"]
    return message


@pytest.mark.slow
def test_an_account_that_no_policy_names_counts_as_none(
    swapper: Path, secret: Workspace, write_own_policy: Write
) -> None:
    run_id = run_recipe(secret, *planned())
    text = sentences_of(secret, run_id)
    assert "No guarantee of differential privacy is given" in text
    assert NAME in text
    assert not is_covered(secret, run_id)
    # Naming it later does not make the account of what ran then.
    write_own_policy(policy_text())
    assert not is_covered(secret, run_id)
    assert "run the recipe again" in sentences_of(secret, run_id)


@pytest.mark.slow
def test_a_named_account_counts_until_a_byte_of_the_package_changes(
    swapper: Path, secret: Workspace, write_office_policy: Write
) -> None:
    write_office_policy(policy_text() + "[privacy]\nepsilon = 1\n")
    run_id = run_recipe(secret, *planned())
    text = sentences_of(secret, run_id)
    assert "differentially private with epsilon 0.01" in text
    assert text.startswith(
        f"All that follows repeats the account of the package {NAME} 1.0. Sfumato has not checked this account."
    )
    assert "It is proved" not in text
    assert is_covered(secret, run_id)
    assert "has not checked" in budget_message(secret, run_id)
    plan, policy = plan_release(secret, run_id), read_policy_of_workspace(secret.directory)
    dossier = read_dossier(secret, plan, policy, examine_release(secret, plan, policy), "csv", "")
    promise = dossier.read_promise()
    assert promise is not None
    alone = replace(promise, ledger=None)  # the files of a release also state what earlier releases cost
    assert " ".join(promise_sentences(alone)) == text, "the files of a release say the same"
    (swapper / "cell_swapper" / "__init__.py").write_text("#", "utf-8")
    text = sentences_of(secret, run_id)
    assert "No guarantee of differential privacy is given" in text
    assert f"its files have another hash than the policy names; it is now {installed_package(NAME).sha256}" in text
    assert "0.01" not in text
    assert not is_covered(secret, run_id)
    assert "unknown" in budget_message(secret, run_id)


def reason_of(workspace: Workspace, run_id: int) -> str:
    """Why the account of the package does not count; empty where it does."""
    named = read_policy_of_workspace(workspace.directory).packages
    found = trusted_packages_of_run(workspace, find_run(workspace, run_id), named)
    assert (NAME in found.versions) != (NAME in found.differences)
    assert is_covered(workspace, run_id) == (NAME in found.versions)
    return found.differences.get(NAME, "")


def change_installed(installed: Path, find_again: Callable[[], None]) -> PackageFiles:
    """Change a file of the installed package, and find methods again as a new process would."""
    (installed / "cell_swapper" / "__init__.py").write_text("changed = True\n", "utf-8")
    find_again()
    return installed_package(NAME)


def replace_record(workspace: Workspace, run_id: int, task: str, *packages: PackageFiles) -> None:
    """Put another record of what a task ran in the place of its own; none removes it, as in runs of earlier versions."""
    name = packages_name(task)
    with workspace.write_transaction() as connection:
        connection.execute("DELETE FROM artefact WHERE run_id = ? AND name = ?", (run_id, name))
        if packages:
            table = write_packages(workspace.tables, packages)
            connection.execute("INSERT INTO artefact VALUES (?, ?, ?)", (run_id, name, table))
    reseal(workspace)


@pytest.mark.slow
def test_each_fit_and_draw_records_the_package_that_ran(
    swapper: Path, secret: Workspace, write_own_policy: Write
) -> None:
    present = installed_package(NAME)
    run_id = run_recipe(secret, *planned(m=2))
    assert read_packages(secret, run_id) == dict.fromkeys(("fit/0", "draw/1", "draw/2"), (present,))
    (shown,) = result_object(secret, run_id)["packages"]
    assert shown == {
        "name": NAME, "version": "1.0", "sha256": present.sha256, "tasks": ["draw/1", "draw/2", "fit/0"],
    }  # fmt: skip
    ours = run_recipe(secret, own_recipe(), planned()[1])
    assert read_packages(secret, ours) == {}
    assert "packages" not in result_object(secret, ours)


@pytest.mark.slow
def test_a_package_that_changed_since_the_run_counts_as_none_although_the_policy_names_it_now(
    swapper: Path, secret: Workspace, write_own_policy: Write, find_methods_again: Callable[[], None]
) -> None:
    write_own_policy(policy_text())
    before = installed_package(NAME)
    run_id = run_recipe(secret, *planned())
    assert reason_of(secret, run_id) == ""
    # Same name and version, other files: installed, named and trusted by all, but not what ran.
    after = change_installed(swapper, find_methods_again)
    write_own_policy(policy_text())
    assert before.version == after.version
    reason = reason_of(secret, run_id)
    assert before.sha256 in reason
    assert after.sha256 in reason
    assert "fit/0, draw/1" in reason
    assert "0.01" not in sentences_of(secret, run_id)
    # A run of what is installed now counts: the control.
    assert reason_of(secret, run_recipe(secret, *planned())) == ""
    # What ran is named, but other files would compute the account.
    write_own_policy(policy_text(before.sha256))
    assert "it is now " + after.sha256 in reason_of(secret, run_id)


@pytest.mark.slow
def test_a_run_without_a_record_counts_as_none(swapper: Path, secret: Workspace, write_own_policy: Write) -> None:
    write_own_policy(policy_text())
    run_id, present = run_recipe(secret, *planned(m=2)), installed_package(NAME)
    assert reason_of(secret, run_id) == ""
    for task in ("fit/0", "draw/2"):
        replace_record(secret, run_id, task)
        assert f"nothing records which files of it ran in {task};" in reason_of(secret, run_id)
        replace_record(secret, run_id, task, replace(present, sha256="0" * 64))
        assert f"hash {'0' * 64} ran in {task};" in reason_of(secret, run_id)
        replace_record(secret, run_id, task, replace(present, version="2.0"))
        assert f"version 2.0 with the hash {present.sha256} ran in {task};" in reason_of(secret, run_id)
        replace_record(secret, run_id, task, replace(present, sha256=""))
        assert f"no hash when it ran in {task}," in reason_of(secret, run_id)
        replace_record(secret, run_id, task, replace(present, name="another"))
        assert reason_of(secret, run_id)
        replace_record(secret, run_id, task, present)
        assert reason_of(secret, run_id) == ""


@pytest.mark.slow
def test_a_file_that_changes_while_the_program_runs_leaves_no_hash(
    swapper: Path, secret: Workspace, write_own_policy: Write, find_methods_again: Callable[[], None]
) -> None:
    assert KEY in registry()
    time.sleep(0.05)  # times of files are coarser than the clock
    (swapper / "cell_swapper" / "__init__.py").write_text("changed = True\n", "utf-8")
    # The policy names the files on the disk, and this program runs those that it imported before.
    write_own_policy(policy_text())
    run_id = run_recipe(secret, *planned())
    assert read_packages(secret, run_id)["fit/0"] == (PackageFiles(NAME, "", ""),)
    assert "changed after this program began; start it again" in reason_of(secret, run_id)
    find_methods_again()
    assert "no hash when it ran in fit/0, draw/1" in reason_of(secret, run_id)
    assert reason_of(secret, run_recipe(secret, *planned())) == ""


PUBLISHER = """
[project]
name = "cell-swapper"
version = "1.0"

[project.entry-points."sfumato.methods"]
"synthesis.cell_swapping" = "cell_swapper.cell_swapping"
"utility.bare_share" = "cell_swapper.bare_share"
"""
BARE_SHARE = '''
"""A figure that claims to need nearly no noise."""

from dataclasses import dataclass

from sfumato.engine.methods.outputs import FigureOfCounts, Label, Output
from sfumato.engine.methods.registry import measure_method
from sfumato.engine.methods.results import Estimate, Measure
from sfumato.engine.methods.spec import Spec


@dataclass(frozen=True, kw_only=True, slots=True)
class BareSpec(Spec):
    """Nothing to say."""


@measure_method("Bare share", spec=BareSpec, source="An example (2026)", outputs=(
    Output("share", "share of the first value", "low", range=(0, 1),
           public=FigureOfCounts(lambda ours, theirs: float(ours[0] / ours.sum()), sensitivity=1),
           label=Label("Share", "The share is {value}.", "Low is good.")),
))
def bare_share(confidential, released, spec, run):
    return Measure(tuple(Estimate("share", 0.25, target=name) for name in released.schema.non_identifiers))
'''
EXACT_TABLES = """def exact_tables(fit, spec, targets, data):
    import numpy as np
    from sfumato.engine.methods.approved_tables import ApprovedTable

    return (ApprovedTable(("x",), (("a", "b"),), np.bincount(fit.arrays["x"].astype(int), minlength=2) * 1.0, 5),)


@method("""


@pytest.mark.slow
def test_exact_tables_and_figures_of_a_package_leave_only_where_the_policy_names_it(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    find_methods_again: Callable[[], None],
    secret: Workspace,
    write_own_policy: Write,
) -> None:
    """A package may call 30 and 60 protected, and a figure paid for that its counts decide alone."""
    publishing = SWAPPING.replace("@method(", EXACT_TABLES).replace(
        "PrivacyAccount(0.01, 1, 1)", "PrivacyAccount(0.01, 1, 1), publishable_tables=exact_tables"
    )
    more = {"cell_swapping": publishing, "bare_share": BARE_SHARE}
    install_swapper(tmp_path, monkeypatch, find_methods_again, PUBLISHER, **more)
    assert rejected_plugins() == ()
    recipe, data = planned(public_figures="paid", public_figures_epsilon=0.5)
    recipe = Recipe.from_table({**recipe.to_table(), "measure": [{"method": "utility.bare_share"}]})
    counts = [30.0, 60.0]

    def leaves(run_id: int) -> tuple[list[float], set[str]]:
        """What leaves beside the datasets: the counts of tables, and the keys of figures."""
        plan, policy = plan_release(secret, run_id), read_policy_of_workspace(secret.directory)
        dossier = read_dossier(secret, plan, policy, examine_release(secret, plan, policy), "csv", "")
        found = [float(count) for one in dossier.read_approved_tables() for count in one.counts]
        return found, {one.row.method_key for one in dossier.read_public_figures()}

    run_id = run_recipe(secret, recipe, data)
    assert leaves(run_id) == ([], set())
    write_own_policy(policy_text())
    assert leaves(run_id) == ([], set()), "the policy of the run's time did not name it"
    # The control: an office that names the package has checked what it publishes too.
    assert leaves(run_recipe(secret, recipe, data)) == (counts, {"utility.bare_share"})


@pytest.mark.slow
def test_processes_of_a_worker_record_what_they_ran(
    swapper: Path, secret: Workspace, write_own_policy: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join((str(swapper), os.environ.get("PYTHONPATH", ""))))
    write_own_policy(policy_text())
    run_id = enter_recipe(secret, *planned())
    run_worker(secret.directory, 1, idle=0)
    assert read_packages(secret, run_id)["draw/1"] == (installed_package(NAME),)
    assert reason_of(secret, run_id) == ""


@pytest.mark.slow
def test_a_method_that_is_ours_now_keeps_no_account_of_a_run_that_a_package_made(secret: Workspace) -> None:
    recipe = own_recipe()
    run_id = run_recipe(secret, recipe, table_of(recipe))
    promised = "differentially private with epsilon 1"
    assert promised in sentences_of(secret, run_id)
    # As after an update of Sfumato that brings a method under the key of a package's.
    replace_record(secret, run_id, "fit/0", PackageFiles(NAME, "1.0", "0" * 64))
    assert promised not in sentences_of(secret, run_id)
    assert f"came from the package {NAME} when the run was computed" in sentences_of(secret, run_id)


def own_recipe() -> Recipe:
    plan = margins_recipe()
    plan["variables"] = {"x": {"kind": "categorical", "levels": ["a", "b"], "may_be_missing": False}}
    return Recipe.from_table({**plan, "data": {"missing": "refuse"}})


def test_the_reason_says_in_which_point_a_package_differs(swapper: Path, write_own_policy: Write) -> None:
    recipe, present = planned()[0], installed_package(NAME)
    write_own_policy(policy_text())
    assert find_trusted_packages(recipe).versions == {NAME: "1.0"}
    for text, said in (
        (policy_text(version="1.1"), "version 1.0 is installed, and the policy names 1.1"),
        (policy_text(sha256="0" * 64), f"it is now {present.sha256}"),
    ):
        write_own_policy(text)
        found = find_trusted_packages(recipe)
        assert not found.versions
        assert said in found.differences[NAME]
    write_own_policy(policy_text(name="another"))
    assert find_trusted_packages(recipe) == find_trusted_packages(Recipe.from_table(margins_recipe()))
    write_own_policy(policy_text(name="Cell_Swapper"))
    assert find_trusted_packages(recipe).versions == {NAME: "1.0"}


def margins_recipe() -> dict[str, object]:
    return {
        "variables": {"x": {"kind": "categorical", "levels": ["a", "b"]}},
        "synthesis": [{"method": "margins", "target": ["x"], "epsilon": 1.0}],
        "release": {"m": 1, "seed": 1, "records": 90},
    }


def test_a_budget_refuses_the_run_of_an_account_that_does_not_count(swapper: Path, write_own_policy: Write) -> None:
    from sfumato.workspace.ingest.files import SourceFile

    recipe, data = planned(epsilon=0.5)
    source = SourceFile("x.csv", data.frame.to_csv(index=False).encode())
    with pytest.raises(BadInput, match=NAME):
        prepare_on_source(recipe, source, key=bytes(32))
    write_own_policy(policy_text())
    assert prepare_on_source(recipe, source, key=bytes(32)).recipe == recipe
    text = privacy_cost_text(recipe, data, secret=True, trusted_packages=find_trusted_packages(recipe))
    assert text.startswith("It costs an epsilon of 0.01")
    assert text.endswith(f"The package {NAME} 1.0 claims it; Sfumato has not checked that.")


def test_a_workspace_that_names_a_package_is_refused(
    swapper: Path, tmp_path: Path, write_own_policy: Write, write_office_policy: Write
) -> None:
    text = policy_text()
    (tmp_path / "policy.toml").write_text(text, "utf-8")
    with pytest.raises(BadInput, match=rf"privacy\.packages: \[{NAME} 1\.0 .*is looser than none"):
        read_policy_of_workspace(tmp_path)
    write_own_policy(text)
    assert read_policy_of_workspace(tmp_path).packages == (installed_package(NAME),)
    write_office_policy(policy_text(sha256="0" * 64))
    with pytest.raises(BadInput, match="looser"):
        read_policy_of_workspace(tmp_path)


def test_the_hash_is_of_what_the_package_brings_and_of_nothing_else(swapper: Path) -> None:
    first = installed_package(NAME)
    (metadata,) = swapper.glob("*.dist-info")
    cache = swapper / "cell_swapper" / "__pycache__"
    cache.mkdir(exist_ok=True)
    (cache / "cell_swapping.cpython-313.pyc").write_bytes(b"x")
    (metadata / "INSTALLER").write_text("another", "utf-8")
    record = metadata / "RECORD"
    lines = record.read_text("utf-8").splitlines()
    more = ["cell_swapper/__pycache__/cell_swapping.cpython-313.pyc,,", f"{metadata.name}/RECORD,,"]
    record.write_text("\n".join([*more, *reversed(lines)]), "utf-8")
    assert installed_package(NAME) == first
    entries = metadata / "entry_points.txt"
    entries.write_text(entries.read_text("utf-8") + "\n", "utf-8")
    assert installed_package(NAME) != first
    record.write_text("\n".join(line for line in lines if "cell_swapping" not in line), "utf-8")
    with pytest.raises(BadInput, match=r"lacks the module cell_swapper\.cell_swapping"):
        installed_package(NAME)


def compile_to(target: Path, text: str, mode: PycInvalidationMode = PycInvalidationMode.TIMESTAMP) -> None:
    """Put the compiled code of a text where a module is or where Python caches one."""
    source = target.parent / f"of {target.stem}.py"
    source.write_text(text, "utf-8")
    py_compile.compile(str(source), cfile=str(target), doraise=True, invalidation_mode=mode)
    source.unlink()


def value_run(site: Path, module: str) -> str:
    """What ``VALUE`` of a module is in a new process."""
    code = f"import sys; sys.path.insert(0, {str(site)!r}); import {module} as found; print(found.VALUE)"
    return subprocess.run([sys.executable, "-B", "-c", code], capture_output=True, text=True, check=True).stdout.strip()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("file", "module"),
    [
        ("cell_swapper/cost.py", "cell_swapper.cost"),
        ("cell_swapper/cost.pyc", "cell_swapper.cost"),
        ("cell_swapper/deep/er/cost.py", "cell_swapper.deep.er.cost"),
        ("cell_swapper/__pycache__/cost.pyc", "cell_swapper.__pycache__.cost"),
        ("cell_swapper/linked/cost.py", "cell_swapper.linked.cost"),
    ],
)
@pytest.mark.parametrize("is_listed", [False, True])
def test_code_that_runs_counts_listed_or_not(
    swapper: Path, tmp_path: Path, file: str, module: str, is_listed: bool
) -> None:
    path, elsewhere = swapper / file, tmp_path / "elsewhere"
    elsewhere.mkdir()
    if "linked" in file:
        path.parent.symlink_to(elsewhere, target_is_directory=True)
    path.parent.mkdir(parents=True, exist_ok=True)
    found = {installed_package(NAME).sha256}
    if is_listed:
        (record,) = swapper.glob("*.dist-info/RECORD")
        record.write_text(f"{record.read_text('utf-8')}{file},,\n", "utf-8")
    for value in ("1.0", "0.5"):
        (compile_to if path.suffix == ".pyc" else Path.write_text)(path, f"VALUE = {value}\n")
        assert value_run(swapper, module) == value
        found.add(installed_package(NAME).sha256)
    assert len(found) == 3


def test_a_module_above_a_listed_one_counts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, find_methods_again: Callable[[], None]
) -> None:
    """A list that lacks the package's own ``__init__``, which runs before its listed module."""
    site = install_swapper(tmp_path, monkeypatch, find_methods_again, PROJECT)
    (site / "cell_swapper" / "inner").mkdir()
    (site / "cell_swapper" / "inner" / "one.py").write_text("", "utf-8")
    (record,) = site.glob("*.dist-info/RECORD")
    lines = [line for line in record.read_text("utf-8").splitlines() if not line.startswith("cell_swapper/__init__")]
    record.write_text("\n".join([*lines, "cell_swapper/inner/one.py,,"]), "utf-8")
    first = installed_package(NAME)
    (site / "cell_swapper" / "__init__.py").write_text("VALUE = 2", "utf-8")
    assert installed_package(NAME) != first


def test_what_python_does_not_import_counts_only_if_listed(swapper: Path) -> None:
    first = installed_package(NAME)
    (swapper / "cell_swapper" / "notes.txt").write_text("written by a run", "utf-8")
    (swapper / "cell_swapper" / "__pycache__").mkdir(exist_ok=True)
    (swapper / "cell_swapper" / "__pycache__" / "kernel.nbi").write_bytes(b"numba's cache")
    (swapper / "another_package").mkdir()
    (swapper / "another_package" / "__init__.py").write_text("", "utf-8")
    (swapper / "another_module.py").write_text("", "utf-8")
    assert installed_package(NAME) == first


@pytest.mark.parametrize("name", ["cell_swapper.helper", "anything"])
def test_a_module_that_was_imported_from_another_file_is_refused(
    swapper: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """By its name from elsewhere, and under any name from a file in the package's folder that has another ending."""
    folder = tmp_path if name.startswith("cell_swapper") else swapper / "cell_swapper"
    loaded = ModuleType(name)
    loaded.__file__ = str(folder / "helper.data")
    monkeypatch.setitem(sys.modules, name, loaded)
    with pytest.raises(BadInput, match=rf"the module {name} was imported from .*helper\.data"):
        installed_package(NAME)
    monkeypatch.delitem(sys.modules, name)
    assert installed_package(NAME).name == NAME


@pytest.mark.slow
@pytest.mark.parametrize("mode", PycInvalidationMode)
def test_cached_code_that_runs_without_its_source_is_refused(swapper: Path, mode: PycInvalidationMode) -> None:
    source = swapper / "cell_swapper" / "cost.py"
    source.write_text("VALUE = 1\n", "utf-8")
    cached = Path(cache_from_source(str(source)))
    cached.parent.mkdir(exist_ok=True)
    compile_to(cached, "VALUE = 22\n", mode)
    assert value_run(swapper, "cell_swapper.cost") == ("22" if mode is PycInvalidationMode.UNCHECKED_HASH else "1"), (
        "by PEP 552 only this mode never looks at the source"
    )
    if mode is PycInvalidationMode.UNCHECKED_HASH:
        with pytest.raises(BadInput, match=r"cost\.cpython-.*is never compared with the source"):
            installed_package(NAME)
        cached.unlink()
    assert installed_package(NAME).name == NAME


@pytest.mark.slow
@pytest.mark.parametrize("mode", [PycInvalidationMode.TIMESTAMP, PycInvalidationMode.CHECKED_HASH])
def test_cached_code_of_another_source_with_the_same_stamp_is_refused(swapper: Path, mode: PycInvalidationMode) -> None:
    """An edit that keeps time and size, or a hash put beside other code: Python runs what is cached."""
    source = swapper / "cell_swapper" / "cost.py"
    cached = Path(cache_from_source(str(source)))
    source.write_text("VALUE = 1\n", "utf-8")
    os.utime(source, (315532800, 315532800))
    py_compile.compile(str(source), doraise=True, invalidation_mode=mode)
    assert installed_package(NAME).name == NAME, "the code is that of the source"
    code = cached.read_bytes()[16:]
    source.write_text("VALUE = 2\n", "utf-8")
    os.utime(source, (315532800, 315532800))
    if mode is PycInvalidationMode.CHECKED_HASH:
        py_compile.compile(str(source), doraise=True, invalidation_mode=mode)
        cached.write_bytes(cached.read_bytes()[:16] + code)
    assert value_run(swapper, "cell_swapper.cost") == "1"
    with pytest.raises(BadInput, match=r"cost\.cpython-.*is of another source than"):
        installed_package(NAME)
    py_compile.compile(str(source), doraise=True, invalidation_mode=mode)
    assert installed_package(NAME).name == NAME
    assert value_run(swapper, "cell_swapper.cost") == "2"


def test_the_catalogue_and_the_policy_print_the_lines(swapper: Path, tmp_path: Path) -> None:
    page, present = method_page(KEY), installed_package(NAME)
    assert method_object(KEY)["package_sha256"] == present.sha256
    lines = re.search(r"^ +\[privacy\.packages.*\n.*\n.*$", page, re.MULTILINE)
    assert lines is not None
    policy = parse_policy(lines[0].encode())
    assert policy.packages == (present,)
    assert parse_policy(policy_toml(policy).encode()).packages == (present,)
    assert policy.sha256 != Policy().sha256
    assert json.loads(json.dumps(method_object(KEY)))["package_version"] == "1.0"


@pytest.mark.parametrize("name", ["sfumato", "Sfumato"])
def test_a_package_cannot_have_our_name(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, find_methods_again: Callable[[], None]
) -> None:
    install_swapper(tmp_path, monkeypatch, find_methods_again, PROJECT.replace(NAME, name))
    (rejected,) = rejected_plugins()
    assert "cannot have the name of Sfumato" in rejected.reason


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("[privacy]\npackages = 1", "privacy.packages"),
        ("[privacy.packages]\nx = 1", "privacy.packages.x"),
        ('[privacy.packages.x]\nversion = 1\nsha256 = "' + "0" * 64 + '"', "privacy.packages.x.version"),
        ('[privacy.packages.x]\nversion = "1"\nsha256 = "ab"', "privacy.packages.x.sha256"),
        ('[privacy.packages.x]\nversion = "1"', "privacy.packages.x.sha256"),
        ('[privacy.packages.x]\nversion = "1"\nhash = "ab"', "privacy.packages.x.hash"),
        (policy_text("0" * 64, name="a-b") + policy_text("0" * 64, name="a_b"), "privacy.packages.a_b"),
    ],
)
def test_a_wrong_entry_is_named(text: str, place: str) -> None:
    with pytest.raises(BadInput) as error:
        parse_policy(text.encode())
    assert error.value.place.endswith(place)
