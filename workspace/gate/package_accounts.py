"""Packages whose privacy accounts count in the account of a stored run."""

from __future__ import annotations

from collections.abc import Sequence

from sfumato.engine.methods.registry import OWN
from sfumato.engine.recipe.budget import NO_PACKAGES, TrustedPackages

from ..policy.installed_packages import trusted_packages
from ..policy.packages import PackageFiles
from ..store.runs import StoredRun
from ..store.workspace import Workspace
from ..views.results import read_raw_rows

OTHER_VERSION = "the run was computed with version {computed}, and {present} is installed"
NOT_COUNTED = "it was not the package that the policy names when the run was computed; run the recipe again"


def trusted_packages_of_run(workspace: Workspace, run: StoredRun, named: Sequence[PackageFiles]) -> TrustedPackages:
    """Return the packages that were as the policy names them when the run was computed, and are now.

    ``named`` are the packages of the policy in force.
    """
    if not named or set(run.recipe.packages) <= {OWN}:
        return NO_PACKAGES
    found = trusted_packages(run.recipe, named)
    # The program that fitted the model compared the files then: without that its account has no noise.
    counted = {
        row.method_key
        for row in read_raw_rows(workspace, run.id)
        if row.measure == "epsilon_noise" and row.value is not None
    }
    versions, differences = dict[str, str](), dict(found.differences)
    for name, version in found.versions.items():
        steps = [step for step in run.recipe.synthesis if step.method.package == name]
        kept = {step.method.key for step in steps if step.method.synthesis.privacy.account is not None}
        if (computed := run.versions.get(name, "")) != version:
            differences[name] = OTHER_VERSION.format(computed=computed or "an unknown one", present=version)
        elif not kept <= counted:
            differences[name] = NOT_COUNTED
        else:
            versions[name] = version
    return TrustedPackages(versions, differences)
