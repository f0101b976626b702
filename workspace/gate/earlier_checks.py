"""The gate's checks of what has left this workspace before: two releases of the same people say more than each.

Releases of other workspaces are unknown here, and every finding says so. Deleted runs count by their tombstones.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from sfumato.engine.data.arrays import Integers
from sfumato.engine.errors import NotComputable
from sfumato.engine.recipe.budget import budget_words
from sfumato.engine.wording import counted

from .checks import Case, Check, DoesNotApply, Sighting, Undecided, numbered
from .earlier import Cost, Earlier, cost_of

ELSEWHERE = "releases from other workspaces are not known here"
SAME_COST = 1e-12
"""Below it two costs that were added up in another order are the same."""


def _differencing(case: Case) -> Sighting:
    if case.related and all(one.overlap is None for one in case.related):
        raise NotComputable(f"no earlier release can be compared record by record; {ELSEWHERE}")
    exact_here, seen = case.release.exact, list[Sighting]()
    for one in case.related:
        if one.overlap is None:
            continue
        here, there = one.overlap.here, one.overlap.there
        few = min((count for count in (len(here), there) if count), default=0)
        if few:
            evidence = f" ({one.evidence})" if one.evidence else ""
            said = (
                f"run {one.earlier.run_id}, released before, is of the same people but for {len(here):,} that are only here and "
                f"{there:,} that are only there{evidence}"
            )
            seen.append(
                Sighting(
                    f"{said}; {ELSEWHERE}", few, records=numbered(here) if len(here) == few else (),
                    at_most="block" if exact_here and one.earlier.release.exact else "warn",
                )
            )  # fmt: skip
    seen += [_possible_difference(case, one) for one in case.undecided]
    nothing = Sighting(
        f"no release differs from an earlier one by a few records{case.undecided_words}; {ELSEWHERE}", judged=np.inf
    )
    return min(seen, key=lambda one: (one.at_most != "block", one.held), default=nothing)


def _possible_difference(case: Case, one: Undecided) -> Sighting:
    """Return what an earlier table would differ by, if it were of the same people: it matters where two tables of exact values differ by few records."""
    more = len(case.exact) - one.earlier.release.people
    matters = more and case.release.exact and one.earlier.release.exact
    said = (
        f"it cannot be told whether run {one.earlier.run_id}, released before, is of the same people ({one.why}); it has {abs(more):,} "
        f"{'fewer' if more > 0 else 'more'} of them if so; {ELSEWHERE}"
    )
    if matters:
        return Sighting(said, abs(more), at_most="warn")
    return Sighting(
        f"no release is known to differ from an earlier one by a few records{case.undecided_words}; {ELSEWHERE}",
        judged=np.inf,
    )


def _intersections(case: Case) -> Sighting:
    if case.synthetic:
        raise DoesNotApply("small classes of an anonymised table are compared")
    own = case.releases[0].classes
    nothing = Sighting(f"no other anonymised table of the same records was released; {ELSEWHERE}", judged=np.inf)
    if own is None:
        raise NotComputable("nothing says in which classes the records stand")
    others: list[tuple[int, Integers]] = []
    for one in (related.earlier for related in case.related):
        if one.table_sha256 == case.original.table_sha256:
            theirs = one.classes()
            if theirs is not None and len(theirs) == len(own):
                others.append((one.run_id, theirs))
    sets = [[one] for one in others] + ([others] if len(others) > 1 else [])
    seen = [found for one in sets if (found := _intersection(own, one)) is not None]
    return min(seen, key=lambda one: one.held, default=nothing)


def _intersection(own: Integers, others: Sequence[tuple[int, Integers]]) -> Sighting | None:
    """The smallest class that a table leaves with some others of the same records; None where no record is in all."""
    classes = [own, *(theirs for _, theirs in others)]
    both = np.flatnonzero(np.all([one >= 0 for one in classes], axis=0))
    if not len(both):
        return None
    joint = own[both]
    for _, theirs in others:
        joint = np.unique(joint * (int(theirs.max()) + 1) + theirs[both], return_inverse=True)[1]
    sizes = np.bincount(joint)
    least = min(int(np.bincount(c[c >= 0])[np.unique(c[c >= 0])].min()) for c in classes)
    smallest = int(sizes.min())
    runs = ", ".join(str(run_id) for run_id, _ in others)
    said = (
        f"with {'run' if len(others) == 1 else 'runs'} {runs}, released before, the smallest class that "
        f"{'both tables leave' if len(others) == 1 else f'the {len(classes)} tables leave'} has {counted(smallest, 'record')}, where each "
        f"alone has at least {least:,}; {ELSEWHERE}"
    )
    few = both[sizes[joint] < least]
    return Sighting(said, smallest, least, smallest / least, numbered(few), limit=least)


def _cost_of_datasets(cost: Cost) -> float:
    """Return the epsilon of the datasets without that of public figures; 0 for a deleted run, which does not tell them apart.

    With 0 a later release of equal datasets counts in full: too much rather than too little.
    """
    return 0.0 if cost.figures is None else cost.epsilon - cost.figures


def _privacy_spent(case: Case) -> Sighting:
    """Epsilon of this release and of those of the same people before it, with the budget that holds; equal datasets cost once.

    Public figures of equal datasets cost each time: other figures, or another epsilon, have other noise. One person in common by a
    declared identifier is enough, since the budget is that person's too. A release of people of whom it cannot be told whether they are the
    same does not count, and is to be judged where it would make the difference.
    """
    budget = case.policy.budget(case.recipe.form.epsilon)
    own = cost_of(case.plan.run, case.confidential)
    if not own.steps:
        if budget is None:
            raise DoesNotApply("no step keeps a privacy account, and neither recipe nor policy sets a budget")
        return Sighting("no step keeps a privacy account", judged=np.inf)
    same = [related.earlier for related in case.related] + [earlier for earlier, _ in case.sharing]
    found = _costs(case, own, same)
    for named, cost in found:
        if not cost.covered:
            said = f"the privacy cost of {named} is unknown, and so is that of all releases together; {ELSEWHERE}"
            if budget is None:
                raise NotComputable(f"{said}; neither recipe nor policy sets a budget")
            return Sighting(said, judged=np.inf)
    spent = sum(cost.epsilon for _, cost in found)
    runs = f"{counted(len(found), 'release')} of these people" if len(found) > 1 else "this release"
    said = f"epsilon of {runs}: {spent:g}{budget_words(case.recipe, case.policy.epsilon)}"
    if case.sharing:
        shared = ", ".join(f"run {earlier.run_id} ({case.count(people)})" for earlier, people in case.sharing)
        said += f"; some of these people are in {shared} too"
    if budget is None:
        raise NotComputable(f"{said}; {ELSEWHERE}; neither recipe nor policy sets a budget to compare it with")
    open_said, matters = _possible_cost(case, own, same, spent, budget)
    return Sighting(
        f"{said}{open_said}; {ELSEWHERE}",
        spent,
        budget,
        round(spent / budget, 9),
        at_least="warn" if matters else "pass",
    )


def _costs(case: Case, own: Cost, earlier: Sequence[Earlier]) -> list[tuple[str, Cost]]:
    """Return what this release and earlier ones cost together, each by its name."""
    found: list[tuple[str, Cost]] = [(f"run {case.plan.run.id}", own)]
    paid = {frozenset(case.plan.tables): _cost_of_datasets(own)}
    for one in earlier:
        tables, cost = frozenset(one.release.tables), one.cost()
        more = cost.epsilon - paid.get(tables, 0.0)
        if tables not in paid or more > SAME_COST:
            found.append((f"run {one.run_id}", replace(cost, epsilon=more)))
        paid[tables] = paid.get(tables) or _cost_of_datasets(cost)
    return found


def _possible_cost(case: Case, own: Cost, same: Sequence[Earlier], spent: float, budget: float) -> tuple[str, bool]:
    """Return what releases would add of which it cannot be told whether their people are the same, in words, and whether that breaks the budget."""
    if not case.undecided:
        return "", False
    costs = _costs(case, own, [*same, *(one.earlier for one in case.undecided)])
    unknown = [named for named, cost in costs if not cost.covered]
    most = sum(cost.epsilon for _, cost in costs)
    told = case.undecided_words
    if unknown:
        return f"{told}; the privacy cost of {', '.join(unknown)} is unknown", True
    if most > spent:
        told += f"; with the same people epsilon would be {most:g}"
    return told, most > budget * (1 + SAME_COST)


def _more_draws(case: Case) -> Sighting:
    if not case.related:
        return Sighting(f"no other release is known to be of these people{case.undecided_words}; {ELSEWHERE}", 0)
    runs = ", ".join(str(one.earlier.run_id) for one in case.related)
    several = len(case.related) > 1
    said = f"{'runs' if several else 'run'} {runs} of the same people {'were' if several else 'was'} released before; an intruder has all together{case.undecided_words}; {ELSEWHERE}"
    return Sighting(said, len(case.related))


def _records_of_earlier(case: Case) -> Sighting:
    wrong = case.unreadable
    if not wrong:
        return Sighting("the records of all earlier releases are as they were sealed", 0)
    return Sighting("; ".join(wrong), len(wrong))


def _deleted(case: Case) -> Sighting:
    lost, other = case.history.unknown, case.incomparable
    said = []
    if lost:
        said.append(
            f"{_runs(lost)} released, and deleted by an earlier version that left no tombstone: what the release spent is unknown"
        )
    if other:
        said.append(
            f"{_runs(other)} released and deleted with the data, and has too few variables in common with this one to show whether the "
            "people are the same"
        )
    if not said:
        return Sighting("every deleted run that was released left a tombstone, and can be compared", 0)
    return Sighting("; ".join(said), len(lost) + len(other), at_most="block" if lost else "warn")


def _runs(numbers: Sequence[int]) -> str:
    return f"{'runs' if len(numbers) > 1 else 'run'} {', '.join(map(str, numbers))} {'were' if len(numbers) > 1 else 'was'}"


EARLIER_CHECKS = (
    Check(
        "differencing", "records by which an earlier release differs", "records", None, None,
        "what two releases differ in speaks of these records alone; counts below the smallest cell never leave",
        "release the same records again, or change by more of them", _differencing,
        "smallest cell of the policy; differencing: Hundepool et al. (2012)", least=True, cell="block",
    ),
    Check(
        "intersections", "classes that two anonymised tables leave together", "ratio to the smaller k", None, 1,
        "who is in one class of each table is in what both have in common (composition attack)",
        "release one of the tables, or coarser classes of the one before", _intersections,
        "Ganta, Kasiviswanathan & Smith (2008)", least=True,
    ),
    Check(
        "privacy_budget", "epsilon of all releases of the same people", "of the budget", None, 1,
        "what is released together adds up, and whoever set a budget set it for the people, not for a run",
        "release fewer records or datasets, with less epsilon, or nothing more of these people", _privacy_spent,
        "sequential composition: Dwork (2006)",
    ),
    Check(
        "released_before", "other releases of the same people", "releases", 0, None,
        "more draws of the same model show more of the data it was fitted to", "release one run of these data", _more_draws,
    ),
    Check(
        "earlier_records", "records of earlier releases that are missing or changed", "records", None, 0,
        "without them nothing shows what the releases together give away; somebody may have removed them",
        "run sfumato audit verify, and restore the workspace from a backup", _records_of_earlier, waivable=False,
    ),
    Check(
        "deleted_releases", "deleted releases that cannot be compared", "releases", 0, 0,
        "what they gave away of these people, and what they spent of a privacy budget, is unknown",
        "waive it where you know that the deleted runs were of other people", _deleted,
    ),
)  # fmt: skip
