"""The gate's checks of earlier releases of this workspace: two releases of the same people show more than each.

Releases from other workspaces are unknown here, and every finding states it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from sfumato.engine.data.arrays import Integers
from sfumato.engine.data.recoding_rules import RecodeRule
from sfumato.engine.data.schema import Role
from sfumato.engine.errors import BadInput, NotComputable
from sfumato.engine.margins.margin_audit import MarginAudit, known_record_range
from sfumato.engine.methods.results import Fit
from sfumato.engine.recipe.budget import budget_text, repeated_accounts
from sfumato.engine.recipe.provenance import release_provenance

from ..errors import NotFound
from ..policy.charges import LedgerCharge, total_delta
from ..store.runs import StoredRun, find_run, list_runs
from ..views.approved import read_publishing_fits
from . import sentences
from .checks import (
    CheckNotApplicable,
    CheckResult,
    ExaminedRelease,
    GateCheck,
    Status,
    UncertainPeopleRelease,
    record_numbers,
)
from .joined_releases import join_releases
from .kept_columns import first_names, kept_columns_of_release, row_learned_text
from .ledger import (
    SAME_COST,
    ReleaseLedger,
    ledger_of_release,
    read_all_charges,
    spending_of_charges,
)
from .package_accounts import trusted_packages_of_run
from .printed_tables import check_printed_tables, check_table_changes, check_table_rules
from .sentences import fill_sentence
from .tables_beside import packages_that_publish, published_fits

WARN_DELTA_SHARE = 0.1
"""Delta times the number of people above which a person has to judge the promise."""
MOST_NAMED = 5
"""Sets of variables that are named of those whose small counts follow."""


def _check_differencing(case: ExaminedRelease) -> CheckResult:
    """Check for earlier releases that differ from this one by few records."""
    if case.same_people_releases and all(one.overlap is None for one in case.same_people_releases):
        raise NotComputable(sentences.NOT_COMPARABLE)
    exact_here, seen = case.release.has_exact_values, list[CheckResult]()
    for one in case.same_people_releases:
        if one.overlap is None:
            continue
        here, there = one.overlap.only_in_first, one.overlap.n_only_in_second
        # A side without a record that the other lacks reveals nobody: subtraction isolates the records of one side
        # alone.
        few = min((count for count in (len(here), there) if count), default=0)
        if few:
            evidence = one.evidence_text
            message = fill_sentence(
                sentences.DIFFERENCE,
                run=one.earlier.run_id,
                here=len(here),
                there=there,
                evidence=fill_sentence(sentences.EVIDENCE_OF_DIFFERENCE, evidence=evidence) if evidence else "",
            )
            seen.append(
                CheckResult(
                    message, few, records=record_numbers(here) if len(here) == few else (),
                    # Drawn values differ between two releases of the very same records: subtracting them isolates
                    # nobody for certain.
                    at_most="block" if exact_here and one.earlier.release.has_exact_values else "warn",
                )
            )  # fmt: skip
    seen += [_possible_difference(case, one) for one in case.uncertain_releases]
    nothing = CheckResult(
        fill_sentence(sentences.NO_DIFFERENCE, uncertain=case.uncertain_releases_text),
        adjusted_value=np.inf,
    )
    return min(seen, key=lambda one: (one.at_most != "block", one.compared_value), default=nothing)


def _possible_difference(case: ExaminedRelease, one: UncertainPeopleRelease) -> CheckResult:
    """Return by how many records an earlier table would differ if it were of the same people."""
    more = len(case.exact_records) - one.earlier.release.n_confidential
    matters = more and case.release.has_exact_values and one.earlier.release.has_exact_values
    if matters:
        message = fill_sentence(
            sentences.POSSIBLE_DIFFERENCE,
            run=one.earlier.run_id,
            reason=one.reason,
            more=abs(more),
            fewer_or_more=sentences.FEWER if more > 0 else sentences.MORE,
        )
        return CheckResult(message, abs(more), at_most="warn")
    return CheckResult(
        fill_sentence(sentences.NO_KNOWN_DIFFERENCE, uncertain=case.uncertain_releases_text),
        adjusted_value=np.inf,
    )


def _check_intersections(case: ExaminedRelease) -> CheckResult:
    """Check for small classes that several anonymised tables of the same records leave together."""
    if case.is_synthetic:
        raise CheckNotApplicable(sentences.CLASSES_COMPARED)
    own = case.released_datasets[0].classes
    nothing = CheckResult(sentences.NO_OTHER_TABLE, adjusted_value=np.inf)
    if own is None:
        raise NotComputable(sentences.NO_CLASSES)
    others: list[tuple[int, Integers]] = []
    for one in (related.earlier for related in case.same_people_releases):
        if one.table_sha256 == case.original_dataset.table_sha256:
            theirs = one.read_classes()
            if theirs is not None and len(theirs) == len(own):
                others.append((one.run_id, theirs))
    # With each table and with all: an intersection of all is finest, but only of the records that are in all of them.
    sets = [[one] for one in others] + ([others] if len(others) > 1 else [])
    seen = [found for one in sets if (found := _intersect_classes(own, one)) is not None]
    return min(seen, key=lambda one: one.compared_value, default=nothing)


def _intersect_classes(own: Integers, others: Sequence[tuple[int, Integers]]) -> CheckResult | None:
    """Return the result for a table's classes intersected with others of the same records; None where no record is in
    all.
    """
    classes = [own, *(theirs for _, theirs in others)]
    both = np.flatnonzero(np.all([one >= 0 for one in classes], axis=0))
    if not len(both):
        return None
    joint = own[both]
    for _, theirs in others:
        # Renumbered after each table, so that the products stay below 2^63.
        joint = np.unique(joint * (int(theirs.max()) + 1) + theirs[both], return_inverse=True)[1]
    sizes = np.bincount(joint)
    least = min(int(np.bincount(c[c >= 0])[np.unique(c[c >= 0])].min()) for c in classes)
    smallest = int(sizes.min())
    runs = ", ".join(str(run_id) for run_id, _ in others)
    message = fill_sentence(
        sentences.INTERSECTION,
        others=len(others),
        runs=runs,
        who=sentences.BOTH_TABLES if len(others) == 1 else fill_sentence(sentences.ALL_TABLES, tables=len(classes)),
        smallest=smallest,
        least=least,
    )
    few = both[sizes[joint] < least]
    return CheckResult(message, smallest, least, smallest / least, record_numbers(few), limit=least)


def _check_privacy_budget(case: ExaminedRelease) -> CheckResult:
    """Compare the epsilon of this release and of all others of its population with the budget.

    Equal datasets cost once, public figures each time. A release whose people may or may not be the same does not
    count, and is to be judged where it would exceed the budget.
    """
    budget = case.policy.effective_budget(case.recipe.form.epsilon)
    packages = trusted_packages_of_run(case.workspace, case.plan.run, case.policy.packages)
    repeated = repeated_accounts(case.recipe, packages)
    ledger = ledger_of_release(case)
    if not ledger.own.steps:
        if budget is None:
            raise CheckNotApplicable(sentences.NO_ACCOUNT_AND_BUDGET)
        return CheckResult(sentences.NO_ACCOUNT, adjusted_value=np.inf)
    charges = spending_of_charges(ledger.own, ledger.charges)
    for one in charges:
        if not one.covered:
            message = fill_sentence(sentences.COST_UNKNOWN, run=fill_sentence(sentences.RUN_NAME, run=one.run_id))
            if budget is None:
                raise NotComputable(fill_sentence(sentences.NO_BUDGET, message=message))
            return CheckResult(message, adjusted_value=np.inf)
    spent = math.fsum(one.epsilon for one in charges)
    message = fill_sentence(
        sentences.SPENT,
        releases=_releases_text(charges),
        spent=spent,
        budget=budget_text(case.recipe, case.policy.epsilon),
        ledger=_ledger_text(ledger, charges),
        shared=_shared_people_text(case, ledger),
        repeated=fill_sentence(sentences.ACCOUNT_OF_PACKAGE, packages=repeated) if repeated else "",
    )
    if budget is None:
        raise NotComputable(fill_sentence(sentences.NO_BUDGET_TO_COMPARE, message=message))
    possible, matters = _possible_cost(case, ledger, spent, budget)
    unstated = _uncompared_cost(case, ledger, budget) + _unstated_cost(case, ledger, budget)
    return CheckResult(
        fill_sentence(sentences.SPENT_AND_POSSIBLE, message=message, possible=possible + unstated),
        spent,
        budget,
        # A budget spent to the last digit is not exceeded by the rounding of its sum.
        round(spent / budget, 9),
        at_least="warn" if matters or unstated else "pass",
    )


def _uncompared_cost(case: ExaminedRelease, ledger: ReleaseLedger, budget: float) -> str:
    """Describe what releases would add whose people are marked by another key.

    The result is empty where that would not exceed the budget.
    """
    apart = ledger.registry.populations_declared_apart(ledger.own.populations)
    known = {*(one.run_id for one in ledger.charges), *case.identified_runs}
    others = [
        one
        for one in ledger.uncompared
        if one.run_id not in known and apart.isdisjoint(map(ledger.registry.key_of, one.populations))
    ]
    most = math.fsum(one.epsilon for one in spending_of_charges(ledger.own, [*ledger.charges, *others]))
    if not others or most <= budget * (1 + SAME_COST):
        return ""
    runs = [fill_sentence(sentences.RUN_NAME, run=one.run_id) for one in others]
    return fill_sentence(sentences.UNCOMPARED_MARKS, runs=runs, most=most)


def _unstated_cost(case: ExaminedRelease, ledger: ReleaseLedger, budget: float) -> str:
    """Describe what all populations together would have spent, where nobody stated whose data the project has.

    The result is empty where that would not exceed the budget.
    """
    if ledger.changes:
        return ""
    # Without a statement a new name of a project would be a new budget, in silence. An identifier in common that shows
    # nobody twice says that others were asked.
    charged = {ledger.own.run_id, *(one.run_id for one in ledger.charges), *case.identified_runs}
    everything = read_all_charges(case.workspace, case.history.releases)
    others = [one for one in everything if one.run_id not in charged and one.steps]
    most = math.fsum(one.epsilon for one in spending_of_charges(ledger.own, [*ledger.charges, *others]))
    if not others or most <= budget * (1 + SAME_COST):
        return ""
    names = dict.fromkeys(f'"{ledger.registry.display_name(name)}"' for one in others for name in one.populations)
    return fill_sentence(sentences.UNSTATED_POPULATION, project=ledger.own.project, names=names, most=most)


def _releases_text(charges: Sequence[LedgerCharge]) -> str:
    """Return how many releases a sum is of."""
    if len(charges) == 1:
        return sentences.THIS_RELEASE
    return fill_sentence(sentences.RELEASES_OF_THESE_PEOPLE, number=len(charges))


def _ledger_text(ledger: ReleaseLedger, charges: Sequence[LedgerCharge]) -> str:
    """Name the population with the runs that spent its budget, and who stated that other people were asked."""
    begun, spent = ledger.opening_statement, [one for one in charges if one.run_id != ledger.own.run_id]
    runs = [fill_sentence(sentences.RUN_SPENT, run=one.run_id, epsilon=one.epsilon) for one in spent]
    return fill_sentence(
        sentences.LEDGER_OF_POPULATION,
        population=ledger.population,
        runs=fill_sentence(sentences.SPENT_BEFORE, runs=runs) if runs else "",
        begun=""
        if begun is None
        else fill_sentence(sentences.OTHERS_ASKED, user=begun.user, date=begun.time[:10], reason=begun.reason),
    )


def _shared_people_text(case: ExaminedRelease, ledger: ReleaseLedger) -> str:
    """Name the releases of other populations in which people of this release are; empty without one."""
    counts = {earlier.run_id: people for earlier, people in case.sharing_releases} | dict(ledger.shared_people)
    sharing = [
        fill_sentence(sentences.RUN_SHARES, run=run_id, people=case.count_text(people))
        for run_id, people in sorted(counts.items())
    ]
    shared = fill_sentence(sentences.SHARED_PEOPLE, runs=sharing) if sharing else ""
    if not ledger.own.recognised:
        return shared
    names = [f'"{ledger.registry.display_name(name)}"' for name in ledger.own.recognised]
    return shared + fill_sentence(sentences.RECOGNISED_POPULATIONS, names=names)


def _possible_cost(case: ExaminedRelease, ledger: ReleaseLedger, spent: float, budget: float) -> tuple[str, bool]:
    """Describe what releases of possibly the same people would add to the cost, and return whether that exceeds the
    budget.
    """
    apart = ledger.registry.populations_declared_apart(ledger.own.populations)
    charged = {one.run_id for one in ledger.charges}
    unclear = [one for one in case.uncertain_releases if one.earlier.run_id not in charged]
    numbers = {one.earlier.run_id for one in unclear}
    # A person has stated of these that other people were asked.
    possible = [
        one
        for one in read_all_charges(case.workspace, case.history.releases)
        if one.run_id in numbers and apart.isdisjoint(map(ledger.registry.key_of, one.populations))
    ]
    if not possible:
        return "", False
    named = {one.run_id for one in possible}
    uncertain = case.uncertain_text([one for one in unclear if one.earlier.run_id in named])
    costs = spending_of_charges(ledger.own, [*ledger.charges, *possible])
    unknown = [fill_sentence(sentences.RUN_NAME, run=one.run_id) for one in costs if not one.covered]
    most = math.fsum(one.epsilon for one in costs)
    if unknown:
        return fill_sentence(sentences.COST_OF_RUNS_UNKNOWN, uncertain=uncertain, runs=unknown), True
    if most > spent:
        uncertain = fill_sentence(sentences.POSSIBLE_COST, uncertain=uncertain, most=most)
    return uncertain, most > budget * (1 + SAME_COST)


def _check_privacy_delta(case: ExaminedRelease) -> CheckResult:
    """Compare the delta of this release and of all others of its population with the policy and with 1 / people.

    At a delta of 1 / n a release may publish the whole record of one person of n, and still keep its promise.
    """
    ledger, limit = ledger_of_release(case), case.policy.delta
    if not ledger.own.steps:
        raise CheckNotApplicable(sentences.NO_ACCOUNT)
    charges = spending_of_charges(ledger.own, ledger.charges)
    uncovered = sorted(one.run_id for one in charges if not one.covered)
    if uncovered:
        message = fill_sentence(sentences.DELTA_WITHOUT_PROOF, count=len(uncovered), runs=map(str, uncovered))
        if limit is None:
            raise NotComputable(message)
        return CheckResult(message, adjusted_value=np.inf)
    spent = total_delta(charges)
    if spent is None:
        runs = [one.run_id for one in charges if one.delta is None]
        raise NotComputable(fill_sentence(sentences.DELTA_UNKNOWN, runs=runs))
    people = max(1, ledger.n_people)
    message = fill_sentence(
        sentences.DELTA_SPENT,
        releases=_releases_text(charges),
        spent=spent,
        limit="" if limit is None else fill_sentence(sentences.DELTA_LIMIT, limit=limit),
        ledger=_ledger_text(ledger, ()),
        people=people,
        share=1 / people,
    )
    # At 1 / n itself the promise is empty already; from a tenth of it on a person has to look.
    reached = spent * people
    at_least: Status = "block" if reached >= 1 - SAME_COST else "warn" if reached > WARN_DELTA_SHARE else "pass"
    allowed = 1 / people if limit is None else min(limit, 1 / people)
    return CheckResult(message, spent, allowed, round(spent / allowed, 9), at_least=at_least)


def _check_released_before(case: ExaminedRelease) -> CheckResult:
    """Count the earlier releases of the same people."""
    if not case.same_people_releases:
        return CheckResult(fill_sentence(sentences.NOT_RELEASED_BEFORE, uncertain=case.uncertain_releases_text), 0)
    runs = ", ".join(str(one.earlier.run_id) for one in case.same_people_releases)
    message = fill_sentence(
        sentences.RELEASED_BEFORE,
        number=len(case.same_people_releases),
        runs=runs,
        uncertain=case.uncertain_releases_text,
    )
    return CheckResult(message, len(case.same_people_releases))


def _check_earlier_records(case: ExaminedRelease) -> CheckResult:
    """Check for records of earlier releases that are missing or were changed."""
    wrong = case.unreadable_releases
    if not wrong:
        return CheckResult(sentences.RECORDS_AS_SEALED, 0)
    return CheckResult("; ".join(wrong), len(wrong))


def _check_deleted_releases(case: ExaminedRelease) -> CheckResult:
    """Check for deleted releases that cannot be compared with this one."""
    lost, other = case.history.runs_without_tombstone, case.incomparable_runs
    parts: list[str] = []
    if lost:
        parts.append(fill_sentence(sentences.NO_TOMBSTONE, number=len(lost), runs=lost))
    if other:
        parts.append(fill_sentence(sentences.DELETED_WITH_DATA, number=len(other), runs=other))
    if not parts:
        return CheckResult(sentences.TOMBSTONES_LEFT, 0)
    return CheckResult("; ".join(parts), len(lost) + len(other), at_most="block" if lost else "warn")


def _check_kept_tables(case: ExaminedRelease) -> CheckResult:
    """Check for cells that follow from this release's printed tables, and small counts from its rounded ones."""
    if not case.recipe.tables:
        return _check_rounded_tables(case)
    printed = check_printed_tables(case)
    try:
        rounded = _check_rounded_tables(case) if case.plan.tables else None
    except CheckNotApplicable:
        rounded = None
    return printed if rounded is None else max((printed, rounded), key=lambda one: one.compared_value)


def _check_rounded_tables(case: ExaminedRelease) -> CheckResult:
    """Check for small counts that follow from this release's published tables and those of earlier releases."""
    own = published_fits(case, case.plan.run)
    if not own:
        if any(
            step.method.synthesis.privacy.implied_counts is not None
            for step, _ in read_publishing_fits(
                case.workspace, case.plan.run, packages_that_publish(case, case.plan.run)
            )
        ):
            raise NotComputable(sentences.TABLES_WITHHELD)
        raise CheckNotApplicable(sentences.NO_TABLES)
    with_tables, gone, unlike = dict[int, list[tuple[Any, Fit, Any, tuple[str, ...]]]](), list[int](), list[int]()
    releases = [release_provenance(case.recipe, len(case.confidential))]
    for one in (related.earlier for related in case.same_people_releases):
        if one.table_sha256 != case.original_dataset.table_sha256:
            continue  # other records: the check of differencing says by how many they differ
        try:
            run = find_run(case.workspace, one.run_id)
        except NotFound:
            gone.append(one.run_id)
            continue
        # The number of rows of the datasets is published: where a release has a row for each record, readers know the
        # number of records.
        releases.append(release_provenance(run.recipe, len(case.confidential)))
        if found := published_fits(case, run):
            with_tables[one.run_id] = found
            if _rules_for_tables(run, [*own, *found]) != _rules_for_tables(case.plan.run, [*own, *found]):
                unlike.append(one.run_id)
    if gone:
        raise NotComputable(fill_sentence(sentences.TABLES_GONE, runs=len(gone)))
    if unlike:
        raise NotComputable(fill_sentence(sentences.OTHER_LEVELS, runs=unlike))
    # A printed table says how many records there are.
    everybody = float(len(case.confidential))
    records = (everybody, everybody) if case.recipe.tables else known_record_range(releases)
    audits = []
    for method in dict.fromkeys(method for method, *_ in own):
        follows = method.synthesis.privacy.implied_counts
        fits = [fit for published in (own, *with_tables.values()) for of, *fit in published if of is method]
        if follows is not None and (audit := follows(fits, case.confidential, records)) is not None:
            audits.append(audit)
    if not audits:
        return CheckResult(sentences.NOISY_TABLES, 0)
    return _result_of_audits(audits, list(with_tables), records)


def _result_of_audits(
    audits: Sequence[MarginAudit], earlier: Sequence[int], records: tuple[float, float]
) -> CheckResult:
    """Return the result of the audits of all tables."""
    exact, undecided, looked, too_large = (
        sum(getattr(one, name) for one in audits) for name in ("exact", "undecided", "looked_at", "too_large")
    )
    message = fill_sentence(
        sentences.COUNTS_FOLLOW,
        tables=fill_sentence(sentences.TABLES_OF_RELEASES, runs=earlier) if earlier else sentences.TABLES_OF_RELEASE,
        known=sentences.NUMBER_OF_RECORDS_KNOWN if records[0] == records[1] else "",
        exact=exact,
        looked=looked,
        named=_counts_by_variables_text(audits),
        undecided=fill_sentence(sentences.COUNTS_UNDECIDED, number=undecided) if undecided else "",
        too_large=fill_sentence(sentences.TABLES_TOO_LARGE, number=too_large) if too_large else "",
    )
    if exact:
        return CheckResult(message, exact)
    # Not found out is no pass.
    if undecided or too_large:
        raise NotComputable(message)
    return CheckResult(message, 0)


def _counts_by_variables_text(audits: Sequence[MarginAudit]) -> str:
    """Describe how many small counts follow for each set of variables; empty where none follows."""
    counts = [
        fill_sentence(
            sentences.COUNTS_OF_VARIABLES, names=" and ".join(audit.names[at] for at in variables), number=number
        )
        for audit in audits
        for variables, number in audit.variables
    ]
    if not counts:
        return ""
    left = len(counts) - MOST_NAMED
    return fill_sentence(
        sentences.COUNTS_BY_VARIABLES,
        counts="; ".join(counts[:MOST_NAMED]),
        more=fill_sentence(sentences.MORE_SETS, number=left) if left > 0 else "",
    )


def _rules_for_tables(
    run: StoredRun, published: Sequence[tuple[Any, Fit, Any, tuple[str, ...]]]
) -> dict[str, RecodeRule]:
    """Return the public recoding rules of a run for the variables of some tables."""
    names = {name for *_, targets in published for name in targets}
    return {name: rule for name, rule in run.recipe.form.recode.items() if name in names}


def _check_roles_elsewhere(case: ExaminedRelease) -> CheckResult:
    """Check for kept columns that another plan of the same data calls sensitive or an identifier."""
    kept = [
        n
        for n in case.plan.kept
        if not (case.recipe.schema[n].role is Role.SENSITIVE or case.recipe.schema[n].role.is_identifier)
    ]
    if not case.is_synthetic:
        raise CheckNotApplicable(sentences.KEEPS_SENSITIVE_COLUMNS)
    found: dict[str, str] = {}
    for run in list_runs(case.workspace):
        if (
            run.id == case.plan.run.id
            or case.workspace.find_dataset(run.dataset_id).source_sha256 != case.original_dataset.source_sha256
        ):
            continue
        try:
            schema = run.recipe.schema
        except (
            BadInput
        ):  # of another version, or changed since, which sfumato audit verify names: the others still count
            continue
        for name in kept:
            if name in schema and schema[name].role in (Role.SENSITIVE, Role.IDENTIFIER, Role.UNIT):
                found.setdefault(
                    name,
                    fill_sentence(sentences.ROLE_IN_RUN, name=name, role=schema[name].role.value, run=run.id),
                )
    message = fill_sentence(sentences.ROLES_ELSEWHERE, columns=", ".join(found.values()) or "none")
    return CheckResult(message, len(found))


def _check_joined_releases(case: ExaminedRelease) -> CheckResult:
    """Check whom the audience finds once released tables are joined by a surrogate key."""
    if not case.plan.surrogate_keys:
        raise CheckNotApplicable(sentences.NO_SURROGATE_KEY)
    if case.plan.run.key_public:
        return CheckResult(sentences.PUBLIC_SURROGATE_KEYS, 1.0)
    joined, kept = join_releases(case), kept_columns_of_release(case)
    limits, n = kept.deciding_limits, len(joined.sizes.sizes)
    limit = limits.smallest_class or case.policy.smallest_cell
    # Without a column the number of rows with one key is still shown.
    shows = bool(joined.names) or joined.has_groups
    over = joined.sizes.records_below(limit) if shows else np.zeros(0, dtype=np.int64)
    unprotected = limits.count_unprotected(joined.sizes) if shows else 0
    drawn = case.is_synthetic and (case.plan.datasets > 1 or bool(joined.joined_runs))
    message = fill_sentence(
        sentences.JOINED_RELEASES,
        keys=case.plan.surrogate_keys,
        runs=fill_sentence(sentences.JOINED_RUNS, runs=joined.joined_runs) if joined.joined_runs else "",
        few=len(over),
        people=n,
        noun=case.record_noun,
        share=len(over) / n,
        columns=first_names(joined.names) or (sentences.NO_COLUMN,),
        groups=sentences.JOINED_GROUPS if joined.has_groups else "",
        others=limit - 1,
        draws=sentences.JOINED_DRAWS if drawn else "",
        uncounted=fill_sentence(sentences.UNCOUNTED_RUNS, runs=joined.uncounted_runs) if joined.uncounted_runs else "",
    )
    only_reported = kept.is_only_reported
    return CheckResult(
        message,
        len(over) / n,
        adjusted_value=unprotected / n,
        records=record_numbers(over),
        at_most="pass" if only_reported else "block",
        at_least="pass" if only_reported else "block" if joined.uncounted_runs else "warn" if drawn else "pass",
        people=max(len(over), unprotected),
        headline=fill_sentence(sentences.FOUND_BY_JOINED, columns=first_names(joined.names) or (sentences.NO_COLUMN,)),
        learned=row_learned_text(case, joined.names),
    )


HISTORY_CHECKS = (
    GateCheck(
        "roles_elsewhere", "columns kept that another run of the data calls sensitive", "columns", None, 0,
        "a role that is changed lets a column out unchanged", "give it the same role under [variables], and list it as a target of [[synthesis]]", _check_roles_elsewhere,
    ),
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
        "release fewer records or datasets, with less epsilon, or nothing more of these people; where other people were asked, a person "
        "states that with a reason: sfumato population PROJECT --others NAME --reason TEXT", _check_privacy_budget,
        "sequential composition: Dwork (2006)",
    ),
    GateCheck(
        "privacy_delta", "delta of all releases of the same people", "of the limit", None, 1,
        "the chances that a promise fails add up; at 1 / n a release may publish one whole record of n and keep its promise",
        "state a smaller delta in the recipe, far below 1 / n of the people", _check_privacy_delta,
        "delta far below 1 / n: Dwork & Roth (2014), section 2.3",
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
    GateCheck(
        "joined_releases", "people who can be found once tables are joined by a surrogate key", "share of the people", 0, 0,
        "a surrogate key lets whoever has several releases put their columns together, and the rows of a household or of one person",
        "leave the key out, name another [release] surrogate_scope for each recipient, or make the columns coarser in every release",
        _check_joined_releases, "limits of the audience: sfumato policy",
    ),
    GateCheck(
        "kept_tables", "small counts and hidden cells that follow from published tables", "cells", 0, 0,
        "all published tables and the number of rows together can leave one possible count where each alone leaves several",
        "of [[table]]: remove what fixed publishes, and run the recipe again so that earlier releases are taken into account; of rounded tables: "
        "round to a larger limit, publish fewer or smaller tables, or release a rounded number of records ([release] records); publish the tables "
        "of an earlier release again rather than similar ones", _check_kept_tables,
        "bounds by linear and whole-number programs: Dobra & Fienberg (2000); hidden cells: Fischetti & Salazar (2001)", counts_units=True,
    ),
    GateCheck(
        "table_changes", "people whose change follows from the tables of two releases", "changes", None, 0,
        "the difference of one cell in two releases is a count of the people who came, left or moved",
        "leave changes = true under [tables] and run the recipe again, so that what earlier releases printed is taken into account; or print "
        "broader groups", check_table_changes, "differencing over time: Hundepool et al. (2012), section 5.4", counts_units=True,
    ),
    GateCheck(
        "table_rules", "rules for tables that are looser than the policy's", "rules", None, 0,
        "the policy says from which number on a cell may be printed, and how well a contribution may be estimated",
        "state the policy's rules, or stricter ones, under [tables]", check_table_rules, "the policy's [tables]", intruder="none",
    ),
)  # fmt: skip
