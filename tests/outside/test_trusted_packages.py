"""A privacy account of another package counts only where office or user name the package, its version and its files."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable
from dataclasses import replace
from importlib.resources import files
from pathlib import Path

import installed_packages
import pandas as pd
import pytest
from prepared_workspaces import run_recipe

from sfumato.engine.data.microdata import Microdata, conform_to_schema
from sfumato.engine.errors import BadInput
from sfumato.engine.methods.registry import rejected_plugins
from sfumato.engine.recipe.budget import privacy_cost_text
from sfumato.engine.recipe.recipe import Recipe
from sfumato.tui.cli.catalogue import method_object, method_page
from sfumato.workspace.gate.contents import plan_release
from sfumato.workspace.gate.earlier import privacy_cost_of_run
from sfumato.workspace.gate.gate import examine_release
from sfumato.workspace.gate.package_accounts import trusted_packages_of_run
from sfumato.workspace.gate.policy_text import policy_toml
from sfumato.workspace.policy.installed_packages import find_trusted_packages, installed_package
from sfumato.workspace.policy.policy import Policy, parse_policy, read_policy_of_workspace
from sfumato.workspace.release.dossier import read_dossier
from sfumato.workspace.release.report import read_public_release
from sfumato.workspace.release.users import privacy_table
from sfumato.workspace.reporting.privacy_promise import PrivacyPromise, promise_sentences
from sfumato.workspace.service.prepare import prepare_on_source
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
    folder: Path, monkeypatch: pytest.MonkeyPatch, find_again: Callable[[], None], project: str, site: str = "site"
) -> Path:
    source, installed = folder / f"source of {site}", folder / site
    (source / "cell_swapper").mkdir(parents=True)
    (source / "pyproject.toml").write_text(project, "utf-8")
    (source / "cell_swapper" / "__init__.py").write_text("", "utf-8")
    (source / "cell_swapper" / "cell_swapping.py").write_text(SWAPPING, "utf-8")
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
    return recipe, conform_to_schema(pd.DataFrame({"x": ["a", "b", "b"] * 30}), recipe.schema, recipe.data.missing)


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
