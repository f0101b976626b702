"""The gate's checks of what has left this workspace before: two releases of the same people say more than each.

Releases of other workspaces are unknown here, and every finding says so.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from sfumato.engine.arrays import Integers
from sfumato.engine.budget import accounts_of
from sfumato.engine.disclosure.cells import cells_of, how_often, rows_of
from sfumato.engine.microdata import Microdata
from sfumato.engine.privacy import PrivacyAccount, total
from sfumato.engine.wording import counted

from ..audit import Act
from ..errors import NotFound
from ..store.artefacts import released_dataset
from ..store.workspace import Dataset
from ..views.runs import Run, find_run
from .checks import Case, Check, Sighting, numbered
from .read_on_demand import CellsOnDemand

ELSEWHERE = "releases from other workspaces are not known here"
SAME_PEOPLE = 0.5
"""The share of common records from which two tables of different files are taken for the same people's."""


@dataclass(frozen=True, eq=False)
class Earlier:
    """A run that was released before, other than the one that is examined, and its confidential data."""

    run: Run
    original: Dataset
    data: Microdata


def _released_runs(case: Case) -> list[int]:
    """The runs that have been released from this workspace, each once, but for the one that is examined."""
    rows = case.workspace.connection.execute(
        "SELECT DISTINCT subject FROM audit WHERE act = ? ORDER BY number", (Act.RUN_RELEASED.value,)
    )
    numbers = [row["subject"].removeprefix("run ") for row in rows]
    return [int(number) for number in numbers if number.isdecimal() and int(number) != case.plan.run.id]


def _earlier(case: Case) -> Iterator[Earlier]:
    for number in _released_runs(case):
        try:
            run = find_run(case.workspace, number)
        except NotFound:
            continue
        original = case.workspace.dataset(run.dataset_id)
        data = case.confidential if original.id == case.original.id else case.workspace.read(original)
        yield Earlier(run, original, data)


def _rows(case: Case, other: Microdata) -> tuple[Integers, Integers]:
    """How often each record of the two tables occurs in the other less how often in its own, by their common variables, (n,) and (k,)."""
    mine = case.confidential
    names = tuple(n for n in case.own if n in other.schema and other.schema[n].kind == mine.schema[n].kind)
    theirs = CellsOnDemand(names, lambda name: cells_of(other, (name,))[name])
    first, second = rows_of(case.own, names, len(mine)), rows_of(theirs, names, len(other))
    return how_often(first, second) - how_often(first, first), how_often(second, first) - how_often(second, second)


def _related(case: Case) -> list[tuple[Earlier, Integers, Integers]]:
    """Earlier releases of the same people, with the surplus of each record as ``_rows`` gives it."""
    found = []
    for one in _earlier(case):
        mine, theirs = _rows(case, one.data)
        same_file = one.original.source_sha256 == case.original.source_sha256
        if same_file or float((mine >= 0).mean()) >= SAME_PEOPLE:
            found.append((one, mine, theirs))
    return found


def _exact(case: Case, other: Run) -> bool:
    """Whether both releases hold something as it is in the confidential data, so that they can be subtracted."""
    recipe = other.recipe
    left = {v.name for v in recipe.schema if v.name not in recipe.released}
    return (not case.synthetic or bool(case.plan.kept)) and (recipe.origin != "synthetic" or bool(left))


def _differencing(case: Case) -> Sighting:
    seen = []
    for one, mine, theirs in _related(case):
        here, there = np.flatnonzero(mine < 0), int((theirs < 0).sum())
        few = min((count for count in (len(here), there) if count), default=0)
        if few:
            said = f"run {one.run.id}, released before, is of the same people but for {len(here):,} that are only here and {there:,} that are only there"
            exact = _exact(case, one.run)
            seen.append(
                Sighting(
                    f"{said}; {ELSEWHERE}", few, records=numbered(here) if len(here) == few else (),
                    at_most="block" if exact else "warn",
                )
            )  # fmt: skip
    nothing = Sighting(f"no release differs from an earlier one by a few records; {ELSEWHERE}", judged=np.inf)
    return min(seen, key=lambda one: (one.at_most != "block", one.held), default=nothing)


def _classes(case: Case, run: Run) -> Integers | None:
    found = released_dataset(case.workspace, run.id, run.recipe, 1)
    return None if found is None else found.classes


def _intersections(case: Case) -> Sighting:
    own = case.releases[0].classes if not case.synthetic else None
    worst = Sighting(f"no other anonymised table of the same records was released; {ELSEWHERE}", judged=np.inf)
    if own is None:
        return worst
    for one in _earlier(case):
        theirs = _classes(case, one.run)
        if one.original.table_sha256 != case.original.table_sha256 or theirs is None or len(theirs) != len(own):
            continue
        both = np.flatnonzero((own >= 0) & (theirs >= 0))
        if not len(both):
            continue
        joint = np.unique(own[both] * (int(theirs.max()) + 1) + theirs[both], return_inverse=True)[1]
        sizes = np.bincount(joint)
        least = min(int(np.bincount(c[c >= 0])[np.unique(c[c >= 0])].min()) for c in (own, theirs))
        smallest = int(sizes.min())
        said = (
            f"with run {one.run.id}, released before, the smallest class that both tables leave has {counted(smallest, 'record')}, where each "
            f"alone has at least {least:,}; {ELSEWHERE}"
        )
        if smallest / least < worst.held:
            few = both[sizes[joint] < least]
            worst = Sighting(said, smallest, least, smallest / least, numbered(few), limit=least)
    return worst


def _privacy_spent(case: Case) -> Sighting:
    """Epsilon of this release and of those of the same people before it, held against the recipe's budget."""
    budget = case.recipe.form.epsilon
    own = [account for _, account in accounts_of(case.recipe, case.confidential, secret=not case.plan.run.key_public)]
    if not own:
        said = "no step keeps a privacy account, and the recipe sets no budget"
        return Sighting(
            said if budget is None else "no step keeps a privacy account", judged=0 if budget is None else np.inf
        )
    before = [one for one, _, _ in _related(case)]
    found = [(f"run {case.plan.run.id}", own)]
    found += [
        (
            f"run {one.run.id}",
            [account for _, account in accounts_of(one.run.recipe, one.data, secret=not one.run.key_public)],
        )
        for one in before
    ]
    for named, accounts in found:
        known = [account for account in accounts if isinstance(account, PrivacyAccount)]
        if not accounts or len(known) < len(accounts) or total(known).release is None:
            said = f"what {named} costs cannot be told, so neither can what all cost together; {ELSEWHERE}"
            return Sighting(said, judged=0 if budget is None else np.inf, at_most="block")
    spent = total([one for _, accounts in found for one in accounts if isinstance(one, PrivacyAccount)]).noise
    runs = f"{counted(len(found), 'release')} of these people" if len(found) > 1 else "this release"
    said = f"epsilon of {runs}: {spent:g}{'' if budget is None else f', of a budget of {budget:g}'}; {ELSEWHERE}"
    return Sighting(said, spent, budget, 0 if budget is None else round(spent / budget, 9))


def _more_draws(case: Case) -> Sighting:
    related = [one for one, _, _ in _related(case)]
    deleted = len(_released_runs(case)) - len(list(_earlier(case)))
    gone = f"; {deleted} released runs were deleted and cannot be looked at" if deleted else ""
    if not related:
        return Sighting(f"no other release of these people; {ELSEWHERE}{gone}", deleted)
    said = f"runs {', '.join(str(one.run.id) for one in related)} of the same people were released before; an intruder has all together; {ELSEWHERE}{gone}"
    return Sighting(said, len(related) + deleted)


EARLIER_CHECKS = (
    Check(
        "differencing", "records by which an earlier release differs", "records", None, None,
        "what two releases differ in speaks of these records alone; counts below the smallest cell never leave",
        "release the same records again, or change by more of them", _differencing,
        "smallest cell of the policy; differencing: Hundepool et al. (2012)", least=True, cell="block",
    ),
    Check(
        "intersections", "classes that two anonymised tables leave together", "share of the smaller k", None, 1,
        "who is in one class of each table is in what both have in common (composition attack)",
        "release one of the tables, or coarser classes of the one before", _intersections,
        "Ganta, Kasiviswanathan & Smith (2008)", least=True,
    ),
    Check(
        "privacy_budget", "epsilon of all releases of the same people", "of the recipe's budget", None, 1,
        "what is released together adds up, and whoever set a budget set it for the people, not for a run",
        "release fewer records or datasets, with less epsilon, or nothing more of these people", _privacy_spent,
        "sequential composition: Dwork (2006)",
    ),
    Check(
        "released_before", "other releases of the same people", "releases", 0, None,
        "more draws of the same model say more of what it was fitted to", "release one run of these data", _more_draws,
    ),
)  # fmt: skip
