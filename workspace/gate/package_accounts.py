"""Packages whose privacy accounts count in the account of a stored run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from sfumato.engine.methods.registry import OWN
from sfumato.engine.recipe.budget import NO_PACKAGES, TrustedPackages

from ..errors import DamagedTable
from ..policy.installed_packages import trusted_packages
from ..policy.packages import PackageFiles, normalise_package_name
from ..store.artefacts import read_packages
from ..store.runs import StoredRun
from ..store.workspace import Workspace
from ..views.results import read_raw_rows

NOT_COUNTED = "it was not the package that the policy names when the run was computed; run the recipe again"
NOT_RECORDED = "nothing records which files of it ran in {tasks}; run the recipe again"
WITHOUT_HASH = (
    "its files had no hash when it ran in {tasks}, or had changed since the program began; run the recipe again"
)
OTHER_FILES_RAN = "the policy names version {version} with the hash {sha256}, and {ran}; run the recipe again"
RAN = "version {version} with the hash {sha256} ran in {tasks}"
OTHER_PACKAGE_RAN = "its method {key} came from the package {package} when the run was computed; run the recipe again"
DAMAGED = "the record of the packages that ran cannot be read: {error}"


def trusted_packages_of_run(workspace: Workspace, run: StoredRun, named: Sequence[PackageFiles]) -> TrustedPackages:
    """Return the packages whose files were as the policy names them in each task that ran them, and are now.

    What is installed now matters too, since its code computes the account. ``named`` are the packages of the policy in
    force.
    """
    try:
        ran = read_packages(workspace, run.id)
    except DamagedTable as error:
        return TrustedPackages(differences=dict.fromkeys(run.recipe.packages, DAMAGED.format(error=error)))
    differences = dict(_packages_that_were_others(run, ran))
    if not named or set(run.recipe.packages) <= {OWN}:
        return TrustedPackages(differences=differences) if differences else NO_PACKAGES
    found = trusted_packages(run.recipe, named)
    # The program that fitted the model compared the files then: without that its account has no noise.
    counted = {
        row.method_key
        for row in read_raw_rows(workspace, run.id)
        if row.measure == "epsilon_noise" and row.value is not None
    }
    versions, by_name = dict[str, str](), {package.name: package for package in named}
    differences = {**found.differences, **differences}
    for name, version in found.versions.items():
        steps = [step for step in run.recipe.synthesis if step.method.package == name]
        kept = {step.method.key for step in steps if step.method.synthesis.privacy.account is not None}
        if name in differences:
            continue
        if difference := _difference_of_record(run, by_name[normalise_package_name(name)], name, ran):
            differences[name] = difference
        elif not kept <= counted:
            differences[name] = NOT_COUNTED
        else:
            versions[name] = version
    return TrustedPackages(versions, differences)


def _packages_that_were_others(run: StoredRun, ran: Mapping[str, Sequence[PackageFiles]]) -> Iterator[tuple[str, str]]:
    """Yield the packages of a run's methods of which another package had the method when it ran, with that in words."""
    for item, step in enumerate(run.recipe.synthesis):
        for one in ran.get(f"fit/{item}", ()):
            if one.name != normalise_package_name(step.method.package):
                yield step.method.package, OTHER_PACKAGE_RAN.format(key=step.method.key, package=one.name)


def _difference_of_record(
    run: StoredRun, named: PackageFiles, package: str, ran: Mapping[str, Sequence[PackageFiles]]
) -> str:
    """Explain in which point what ran differs from what the policy names; empty where every task ran just that."""
    fits = [f"fit/{item}" for item, step in enumerate(run.recipe.synthesis) if step.method.package == package]
    if not fits:
        return ""  # the package brings measures alone, which make no dataset
    tasks = [*fits, *(f"draw/{draw}" for draw in range(1, run.recipe.m + 1))]
    recorded = {task: next((one for one in ran.get(task, ()) if one.name == named.name), None) for task in tasks}
    if missing := [task for task, one in recorded.items() if one is None]:
        return NOT_RECORDED.format(tasks=", ".join(missing))
    if unknown := [task for task, one in recorded.items() if one is not None and not one.sha256]:
        return WITHOUT_HASH.format(tasks=", ".join(unknown))
    others: dict[PackageFiles, list[str]] = {}
    for task, one in recorded.items():
        if one is not None and one != named:
            others.setdefault(one, []).append(task)
    lines = [
        RAN.format(version=one.version, sha256=one.sha256, tasks=", ".join(where)) for one, where in others.items()
    ]
    return OTHER_FILES_RAN.format(version=named.version, sha256=named.sha256, ran=" and ".join(lines)) if lines else ""
