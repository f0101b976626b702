"""The gate's checks of earlier releases from this workspace: two releases of the same people show more than each.

Releases from other workspaces are unknown here, and every finding states it. Deleted runs count by their tombstones.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from sfumato.engine.data.arrays import Integers
from sfumato.engine.errors import NotComputable
from sfumato.engine.recipe.budget import budget_text
from sfumato.engine.wording import count_noun

from .checks import CheckNotApplicable, CheckResult, ExaminedRelease, GateCheck, UncertainPeopleRelease, record_numbers
from .earlier import EarlierRelease, PrivacySpending, privacy_cost_of_run

ELSEWHERE = "releases from other workspaces are not known here"
SAME_COST = 1e-12
"""Below it two costs that were added up in another order are the same."""


def _check_differencing(case: ExaminedRelease) -> CheckResult:
    if case.same_people_releases and all(one.overlap is None for one in case.same_people_releases):
        raise NotComputable(f"no earlier release can be compared record by record; {ELSEWHERE}")
    exact_here, seen = case.release.has_exact_values, list[CheckResult]()
    for one in case.same_people_releases:
        if one.overlap is None:
            continue
        here, there = one.overlap.only_in_first, one.overlap.n_only_in_second
        few = min((count for count in (len(here), there) if count), default=0)
        if few:
            evidence = f" ({one.evidence_text})" if one.evidence_text else ""
            said = (
                f"run {one.earlier.run_id}, released before, is of the same people but for {len(here):,} that are only here and "
                f"{there:,} that are only there{evidence}"
            )
            seen.append(
                CheckResult(
                    f"{said}; {ELSEWHERE}", few, records=record_numbers(here) if len(here) == few else (),
                    at_most="block" if exact_here and one.earlier.release.has_exact_values else "warn",
                )
            )  # fmt: skip
    seen += [_possible_difference(case, one) for one in case.uncertain_releases]
    nothing = CheckResult(
        f"no release differs from an earlier one by a few records{case.uncertain_releases_text}; {ELSEWHERE}",
        adjusted_value=np.inf,
    )
    return min(seen, key=lambda one: (one.at_most != "block", one.compared_value), default=nothing)


def _possible_difference(case: ExaminedRelease, one: UncertainPeopleRelease) -> CheckResult:
    """Return by how much an earlier table would differ if it were of the same people: two tables of exact values that differ by few
    records matter.
    """
    more = len(case.exact_records) - one.earlier.release.n_confidential
    matters = more and case.release.has_exact_values and one.earlier.release.has_exact_values
    said = (
        f"it is unknown whether run {one.earlier.run_id}, released before, is of the same people ({one.reason}); it has {abs(more):,} "
        f"{'fewer' if more > 0 else 'more'} of them if so; {ELSEWHERE}"
    )
    if matters:
        return CheckResult(said, abs(more), at_most="warn")
    return CheckResult(
        f"no release is known to differ from an earlier one by a few records{case.uncertain_releases_text}; {ELSEWHERE}",
        adjusted_value=np.inf,
    )


def _check_intersections(case: ExaminedRelease) -> CheckResult:
    if case.is_synthetic:
        raise CheckNotApplicable("small classes of an anonymised table are compared")
    own = case.released_datasets[0].classes
    nothing = CheckResult(
        f"no other anonymised table of the same records was released; {ELSEWHERE}", adjusted_value=np.inf
    )
    if own is None:
        raise NotComputable("nothing says in which classes the records stand")
    others: list[tuple[int, Integers]] = []
    for one in (related.earlier for related in case.same_people_releases):
        if one.table_sha256 == case.original_dataset.table_sha256:
            theirs = one.read_classes()
            if theirs is not None and len(theirs) == len(own):
                others.append((one.run_id, theirs))
    sets = [[one] for one in others] + ([others] if len(others) > 1 else [])
    seen = [found for one in sets if (found := _intersect_classes(own, one)) is not None]
    return min(seen, key=lambda one: one.compared_value, default=nothing)


def _intersect_classes(own: Integers, others: Sequence[tuple[int, Integers]]) -> CheckResult | None:
    """Return the smallest class of a table intersected with others of the same records; None where no record is in all."""
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
        f"{'both tables leave' if len(others) == 1 else f'the {len(classes)} tables leave'} has {count_noun(smallest, 'record')}, where each "
        f"alone has at least {least:,}; {ELSEWHERE}"
    )
    few = both[sizes[joint] < least]
    return CheckResult(said, smallest, least, smallest / least, record_numbers(few), limit=least)


def _cost_of_datasets(cost: PrivacySpending) -> float:
    """Return the epsilon of the datasets without that of public figures; 0 for a deleted run, which does not separate them.

    With 0 a later release of equal datasets counts in full: too much rather than too little.
    """
    return 0.0 if cost.figures_epsilon is None else cost.epsilon - cost.figures_epsilon


def _check_privacy_budget(case: ExaminedRelease) -> CheckResult:
    """Compare the epsilon of this release and of earlier ones of the same people with the budget; equal datasets cost once.

    Public figures of equal datasets cost each time: other figures, or another epsilon, have other noise. One person in common by a
    declared identifier is enough, since the budget is that person's too. A release whose people may or may not be the same
    does not count, and is to be judged where it would make the difference.
    """
    budget = case.policy.effective_budget(case.recipe.form.epsilon)
    own = privacy_cost_of_run(case.plan.run, case.confidential)
    if not own.steps:
        if budget is None:
            raise CheckNotApplicable("no step keeps a privacy account, and neither recipe nor policy sets a budget")
        return CheckResult("no step keeps a privacy account", adjusted_value=np.inf)
    same = [related.earlier for related in case.same_people_releases] + [
        earlier for earlier, _ in case.sharing_releases
    ]
    found = _costs_by_release(case, own, same)
    for named, cost in found:
        if not cost.covered:
            said = f"the privacy cost of {named} is unknown, and so is that of all releases together; {ELSEWHERE}"
            if budget is None:
                raise NotComputable(f"{said}; neither recipe nor policy sets a budget")
            return CheckResult(said, adjusted_value=np.inf)
    spent = sum(cost.epsilon for _, cost in found)
    runs = f"{count_noun(len(found), 'release')} of these people" if len(found) > 1 else "this release"
    said = f"epsilon of {runs}: {spent:g}{budget_text(case.recipe, case.policy.epsilon)}"
    if case.sharing_releases:
        shared = ", ".join(
            f"run {earlier.run_id} ({case.count_text(people)})" for earlier, people in case.sharing_releases
        )
        said += f"; some of these people are in {shared} too"
    if budget is None:
        raise NotComputable(f"{said}; {ELSEWHERE}; neither recipe nor policy sets a budget to compare it with")
    open_said, matters = _possible_cost(case, own, same, spent, budget)
    return CheckResult(
        f"{said}{open_said}; {ELSEWHERE}",
        spent,
        budget,
        round(spent / budget, 9),
        at_least="warn" if matters else "pass",
    )


def _costs_by_release(
    case: ExaminedRelease, own: PrivacySpending, earlier: Sequence[EarlierRelease]
) -> list[tuple[str, PrivacySpending]]:
    """Return what this release and earlier ones cost together, each by its name."""
    found: list[tuple[str, PrivacySpending]] = [(f"run {case.plan.run.id}", own)]
    paid = {frozenset(case.plan.tables): _cost_of_datasets(own)}
    for one in earlier:
        tables, cost = frozenset(one.release.tables), one.read_cost()
        more = cost.epsilon - paid.get(tables, 0.0)
        if tables not in paid or more > SAME_COST:
            found.append((f"run {one.run_id}", replace(cost, epsilon=more)))
        paid[tables] = paid.get(tables) or _cost_of_datasets(cost)
    return found


def _possible_cost(
    case: ExaminedRelease, own: PrivacySpending, same: Sequence[EarlierRelease], spent: float, budget: float
) -> tuple[str, bool]:
    """Return what releases of possibly the same people would add to the cost, in words, and whether that exceeds the budget."""
    if not case.uncertain_releases:
        return "", False
    costs = _costs_by_release(case, own, [*same, *(one.earlier for one in case.uncertain_releases)])
    unknown = [named for named, cost in costs if not cost.covered]
    most = sum(cost.epsilon for _, cost in costs)
    told = case.uncertain_releases_text
    if unknown:
        return f"{told}; the privacy cost of {', '.join(unknown)} is unknown", True
    if most > spent:
        told += f"; with the same people epsilon would be {most:g}"
    return told, most > budget * (1 + SAME_COST)


def _check_released_before(case: ExaminedRelease) -> CheckResult:
    if not case.same_people_releases:
        return CheckResult(
            f"no other release is known to be of these people{case.uncertain_releases_text}; {ELSEWHERE}", 0
        )
    runs = ", ".join(str(one.earlier.run_id) for one in case.same_people_releases)
    several = len(case.same_people_releases) > 1
    said = f"{'runs' if several else 'run'} {runs} of the same people {'were' if several else 'was'} released before; an intruder has all together{case.uncertain_releases_text}; {ELSEWHERE}"
    return CheckResult(said, len(case.same_people_releases))


def _check_earlier_records(case: ExaminedRelease) -> CheckResult:
    wrong = case.unreadable_releases
    if not wrong:
        return CheckResult("the records of all earlier releases are as they were sealed", 0)
    return CheckResult("; ".join(wrong), len(wrong))


def _check_deleted_releases(case: ExaminedRelease) -> CheckResult:
    lost, other = case.history.runs_without_tombstone, case.incomparable_runs
    said = []
    if lost:
        said.append(
            f"{_runs_text(lost)} released, and deleted by an earlier version that left no tombstone: what the release spent is unknown"
        )
    if other:
        said.append(
            f"{_runs_text(other)} released and deleted with the data, and has too few variables in common with this one to show whether the "
            "people are the same"
        )
    if not said:
        return CheckResult("every deleted run that was released left a tombstone, and can be compared", 0)
    return CheckResult("; ".join(said), len(lost) + len(other), at_most="block" if lost else "warn")


def _runs_text(numbers: Sequence[int]) -> str:
    return f"{'runs' if len(numbers) > 1 else 'run'} {', '.join(map(str, numbers))} {'were' if len(numbers) > 1 else 'was'}"


EARLIER_CHECKS = (
    GateCheck(
        "differencing", "records by which an earlier release differs", "records", None, None,
        "what two releases differ in speaks of these records alone; counts below the smallest cell never leave",
        "release the same records again, or change by more of them", _check_differencing,
        "smallest cell of the policy; differencing: Hundepool et al. (2012)", is_minimum=True, smallest_cell_limit="block",
    ),
    GateCheck(
        "intersections", "classes that two anonymised tables leave together", "ratio to the smaller k", None, 1,
        "who is in one class of each table is in what both have in common (composition attack)",
        "release one of the tables, or coarser classes of the one before", _check_intersections,
        "Ganta, Kasiviswanathan & Smith (2008)", is_minimum=True,
    ),
    GateCheck(
        "privacy_budget", "epsilon of all releases of the same people", "of the budget", None, 1,
        "what is released together adds up, and whoever set a budget set it for the people, not for a run",
        "release fewer records or datasets, with less epsilon, or nothing more of these people", _check_privacy_budget,
        "sequential composition: Dwork (2006)",
    ),
    GateCheck(
        "released_before", "other releases of the same people", "releases", 0, None,
        "more draws of the same model show more of the data it was fitted to", "release one run of these data", _check_released_before,
    ),
    GateCheck(
        "earlier_records", "records of earlier releases that are missing or changed", "records", None, 0,
        "without them nothing shows what the releases together reveal; somebody may have removed them",
        "run sfumato audit verify, and restore the workspace from a backup", _check_earlier_records, waivable=False,
    ),
    GateCheck(
        "deleted_releases", "deleted releases that cannot be compared", "releases", 0, 0,
        "what they gave away of these people, and what they spent of a privacy budget, is unknown",
        "waive it where you know that the deleted runs were of other people", _check_deleted_releases,
    ),
)  # fmt: skip
