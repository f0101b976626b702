"""Checks of the gate that compare what a release shows of people with the hold-out records of its run.

They need no measure of the recipe. Without a hold-out only rows that are copied whole can convince; else the check was not made.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from sfumato.engine.adversary.cells import cell_keys
from sfumato.engine.adversary.coded import midrank_shares
from sfumato.engine.adversary.disguise import DisguisedColumn, find_disguise
from sfumato.engine.adversary.evidence import BESIDE_KEPT_LEVEL, COPY_LEVEL, EVIDENCE_LEVEL, OWN_ROW_LEVEL
from sfumato.engine.adversary.exchanged_rows import ExchangeEvidence, exchange_rows
from sfumato.engine.adversary.independent_rows import (
    OTHER_WEIGHT,
    WHOLE,
    RowEvidence,
    fewest_detectable_copies,
    strongest_row_evidence,
)
from sfumato.engine.adversary.membership_evidence import ProbeCounts, weigh_evidence
from sfumato.engine.adversary.people import mark_cells
from sfumato.engine.adversary.unanimous import find_homogeneous_classes, nearest_members
from sfumato.engine.data.arrays import Floats
from sfumato.engine.data.microdata import Microdata
from sfumato.engine.data.schema import Kind, Role
from sfumato.engine.errors import NotComputable
from sfumato.engine.methods.registry import registry
from sfumato.engine.partition.equivalence_classes import equivalence_classes
from sfumato.engine.wording import agreeing_word, count_noun, join_names

from ..reporting.results import row_output
from ..store.runs import list_runs
from .checks import (
    CheckNotApplicable,
    CheckResult,
    ExaminedRelease,
    GateCheck,
    PooledDatasets,
    Status,
    count_pools,
    percent_text,
    record_numbers,
    worst_over_pools,
)
from .earlier import ReleasedData
from .joint import NUMBERS, JointTable

FEWEST = 5
"""People beyond chance from which a finding may block."""
MOST_OF_THE_FOUND, MOST_OF_THE_PEOPLE = 0.6, 0.2
"""A finding blocks where so much of who is found, or of all people, is surely found for being a member."""
MOST_IN_OWN_ROWS = 0.5
"""And where so much of those who have their own values in their own rows do for the rows being theirs."""
NOT_DRAWN = "records of an anonymised table are protected by their classes"
NO_HOLDOUT = "no record was held out of the run, so that nothing shows whom a release finds that never saw them; hold out some under [data]"
FITTED = 0.5
"""An s_pmse below it shows that records are repeated (METHODS: two sides of s_pmse)."""


def _drawn_variables(case: ExaminedRelease) -> tuple[str, ...]:
    weights = case.recipe.schema.names_by_role(Role.WEIGHT)
    return tuple(n for n in case.plan.replaced if n not in weights)


def _kept_variables(case: ExaminedRelease) -> tuple[str, ...]:
    weights = case.recipe.schema.names_by_role(Role.WEIGHT)
    return tuple(n for n in case.plan.kept if n not in weights)


def _joint_table(case: ExaminedRelease, pool: PooledDatasets) -> JointTable:
    """Return the joint table for a pool of datasets, computed once for all checks."""
    if pool.datasets not in case.joints:
        case.joints[pool.datasets] = JointTable(case, pool, _drawn_variables(case))
    found = case.joints[pool.datasets]
    assert isinstance(found, JointTable)
    return found


def _poolable_releases(case: ExaminedRelease) -> Callable[[ReleasedData], bool]:
    names, schema = _drawn_variables(case), case.confidential.schema

    def fits(one: ReleasedData) -> bool:
        return one.is_synthetic and one.has_variables(names, schema) and set(names) <= set(one.replaced)

    return fits


def is_strong(counts: ProbeCounts, members: int, *, follows_from_kept: bool = False) -> bool:
    """Return whether enough people, and enough of those found, are surely found for being members that it may block.

    With kept columns, what is found follows from these too, which are members' (``follows_from_kept``). There only a large share of all
    people counts.

    A model that fits closely finds its members a little more often than others, which a large table shows: then most of those found must be
    found for being members, or many of all ``members``. Chosen as the strongest of many looks, counts flatter: their limits count.
    """
    of_found = counts.certain_share_of_found >= MOST_OF_THE_FOUND and not follows_from_kept
    return counts.excess_members >= FEWEST and (
        of_found or counts.certain_share_of_people(members) >= MOST_OF_THE_PEOPLE
    )


def is_own_row_strong(evidence: ExchangeEvidence) -> bool:
    """Return whether enough people, and enough of those found, are in their own rows that it may block."""
    is_much = evidence.share_of_found >= MOST_IN_OWN_ROWS or evidence.excess_share >= MOST_OF_THE_PEOPLE
    return evidence.excess >= FEWEST and is_much


def _stratum_text(who: str, noun: str) -> str:
    return "" if who.startswith("all ") else f" among {who.replace('people', noun)} of both"


def _count_or_none(count: int) -> str:
    return "none" if count == 0 else f"{count:,}"


def look_counts_text(counts: ProbeCounts, noun: str) -> str:
    """Return in words how many members and how many hold-out people a look finds."""
    what = counts.what or "are found by the looks that object"
    return (
        f"{counts.n_members:,} of {counts.n_eligible_members:,} {noun} of the data{_stratum_text(counts.who, noun)} {what}; of {counts.n_eligible_controls:,} such hold-out "
        f"{noun} {_count_or_none(counts.n_controls)}"
    )


def _percent_of_releases(p: float) -> str:
    return f"honest releases show as much in {100 * p:.2g} % of cases"


def power_text(detectable: Sequence[int | None], members: int, noun: str) -> str:
    """Return in words the smallest share of people whose copies a test would have shown, of the fewest that each would."""
    known = [one for one in detectable if one is not None]
    if not known:
        return f"too few {noun} have rare values for copies of them to be seen with 80 % power"
    fewest = max(FEWEST, min(known))
    return f"copies of {fewest:,} {noun} ({percent_text(fewest / members)}) or more would be seen with 80 % power"


def _check_membership_evidence(case: ExaminedRelease) -> CheckResult:
    """Test, by all looks at people in the release together, whether members are found more often than hold-out people."""
    if not case.is_synthetic:
        raise CheckNotApplicable(NOT_DRAWN)
    if not _drawn_variables(case):
        raise CheckNotApplicable("nothing is drawn")
    pools = count_pools(case, _poolable_releases(case), together=True)
    return worst_over_pools(
        case,
        _poolable_releases(case),
        lambda pool: _weigh_pool_evidence(_joint_table(case, pool), pools),
        together=True,
    )


def _weigh_pool_evidence(joint: JointTable, pools: int) -> CheckResult:
    case, noun = joint.case, joint.case.record_noun
    is_whole = not _kept_variables(case)
    if case.controls is None:
        # A design may give each combination of some columns one row, in the data and in the release: without a hold-out only whole rows count.
        rows = strongest_row_evidence([one for one in joint.whole_row_tests if one.kind == WHOLE]) if is_whole else None
        if rows is not None and rows.p <= COPY_LEVEL / pools:
            return _result_of_rows(joint, rows, "; no record was held out to compare with", "block")
        raise NotComputable(NO_HOLDOUT)
    rows = joint.strongest_row_evidence if is_whole else None
    looks = joint.looks if is_whole else joint.looks_beside_kept_columns
    level = (EVIDENCE_LEVEL if is_whole else BESIDE_KEPT_LEVEL) / pools
    evidence = weigh_evidence(looks, joint.members, joint.n_records, level, rows=rows)
    looked = f"{evidence.n_objecting:,} of {count_noun(evidence.n_probes, 'look')} {agreeing_word(evidence.n_objecting, 'objects', 'object')}"
    detectable = [evidence.fewest_detectable]
    if pairs := [one.n_pairs for one in joint.whole_row_tests if is_whole and one.kind == WHOLE]:
        detectable.append(fewest_detectable_copies(min(pairs), joint.members, joint.n_records, level))
    about = f"{looked}, and {_percent_of_releases(evidence.p)}; {power_text(detectable, joint.members, noun)} ({joint.size_text})"
    notable = rows if rows is not None and rows.is_notable else None
    candidates = [one for one in (evidence.strongest_counts, evidence.combined_counts) if one is not None]
    strong = [one for one in candidates if is_strong(one, joint.members, follows_from_kept=not is_whole)]
    # A look that convinces by itself names itself; rows speak where it takes both.
    is_by_labels = bool(strong) and evidence.p_by_labels <= level * OTHER_WEIGHT
    is_by_rows = notable is not None and _members_beyond_chance(joint, notable) >= FEWEST
    if notable is not None and evidence.p <= level and is_by_rows and not is_by_labels:
        return _result_of_rows(joint, notable, f"; {about}", "block")
    if evidence.p > level and notable is not None:
        return _result_of_rows(joint, notable, f"; the hold-out neither confirms nor contradicts it: {about}", "warn")
    if evidence.strongest_counts is None:
        return CheckResult(f"no look finds anybody in the release ({joint.size_text})", 0.0, adjusted_value=0.0)
    if evidence.p > level:
        # A pass shows the counts that come nearest to a finding: a reader sees what was not enough.
        nearest = look_counts_text(evidence.strongest_counts, noun)
        words = f"no evidence that {noun} of the data are found more often than {noun} who were held out: at most, {nearest}"
        return CheckResult(f"{words}; {about}", 0.0, adjusted_value=0.0)
    shown = strong[0] if strong else evidence.strongest_counts
    message = look_counts_text(shown, noun)
    if shown is evidence.strongest_counts and evidence.combined_counts is not None:
        message += f"; by all looks that object, {evidence.combined_counts.n_members:,} and {evidence.combined_counts.n_controls:,}"
    return CheckResult(
        f"{message}; {about}", float(shown.n_members), shown.expected_members, shown.excess_members, record_numbers(shown.records),
        "block" if strong else "warn", at_least="warn",
    )  # fmt: skip


def _members_beyond_chance(joint: JointTable, rows: RowEvidence) -> float:
    """Return how many more members the rows alone show than chance would."""
    found = int((rows.test.records < joint.members).sum())
    return found - _members_by_chance(joint, rows)


def _members_by_chance(joint: JointTable, rows: RowEvidence) -> float:
    """Return how many members chance would show among the rows: as large a share of them as of all people."""
    return min(float(len(rows.test.records)), rows.test.expected) * joint.members / joint.n_records


def _result_of_rows(joint: JointTable, rows: RowEvidence, beside: str, status: Status) -> CheckResult:
    """Return the result of rows that are released more often than independent draws could repeat them."""
    case, one = joint.case, rows.test
    records = one.records[one.records < joint.members]
    controls = len(one.records) - len(records)
    against = (
        f", and {_count_or_none(controls)} of {joint.n_records - joint.members:,} hold-out {case.record_noun}"
        if case.controls is not None
        else ""
    )
    message = (
        f"{case.count_text(len(records))} of {joint.members:,} of the data, alone with their values in {one.what}, {agreeing_word(len(records), 'stands', 'stand')} in the release"
        f"{against}, where {one.chance}: rows that are drawn independently show as much in at most {100 * rows.p:.2g} % of cases{beside}"
    )
    expected = min(float(len(records)), _members_by_chance(joint, rows))
    beyond = len(records) - expected
    return CheckResult(message, float(len(records)), expected, beyond, record_numbers(records), status, at_least="warn")


def _hidden_columns(case: ExaminedRelease) -> dict[str, str]:
    """Return the columns that a release is to hide, each with the reason."""
    schema = case.recipe.schema
    found = {v.name: "an identifier" for v in schema if v.role is Role.IDENTIFIER}
    if case.is_synthetic:
        found |= {n: "synthesised" for n in case.plan.replaced if schema[n].role is Role.SENSITIVE}
        found |= {n: "sensitive" for n in case.plan.kept if schema[n].role is Role.SENSITIVE}
    else:
        found |= dict.fromkeys(case.plan.replaced, "generalised or suppressed")
    return found


def _column_numbers(data: Microdata, name: str) -> Floats | None:
    return data.numbers(name) if data.schema[name].kind in NUMBERS or data.schema[name].kind is Kind.ORDINAL else None


def _check_disguised_columns(case: ExaminedRelease) -> CheckResult:
    data, found = case.confidential, list[DisguisedColumn]()
    secrets = _hidden_columns(case)
    for name in case.plan.kept:
        cells = cell_keys(data, (name,))[name]
        for secret in secrets:
            if secret == name:
                continue
            one = find_disguise(
                name,
                secret,
                cells,
                cell_keys(data, (secret,))[secret],
                _column_numbers(data, name),
                _column_numbers(data, secret),
            )
            if one is not None:
                found.append(one)
    if not found:
        return CheckResult("no column that stays says what another is to hide", 0)
    worst = max(found, key=lambda one: one.share)
    said = "; ".join(
        f"{one.column} stays and {one.relation} as {one.sensitive_column}, which is {secrets[one.sensitive_column]}"
        if one.relation.startswith("has the same")
        else f"{one.column} stays and {one.relation}: it gives {one.sensitive_column}, which is {secrets[one.sensitive_column]}, of {100 * one.share:.3g} % of the {case.record_noun}"
        for one in found
    )
    return CheckResult(said, len(found), records=record_numbers(worst.records))


def _check_own_values(case: ExaminedRelease) -> CheckResult:
    """Compare what a record's own row shows of drawn values with the rows of people who have the same kept values."""
    kept, drawn = _kept_variables(case), _drawn_variables(case)
    if not case.is_synthetic:
        raise CheckNotApplicable(NOT_DRAWN)
    if not kept or not drawn:
        raise CheckNotApplicable("the release keeps no column" if drawn else "nothing is drawn")
    if not case.release.is_in_order:
        raise NotComputable("no row is known to be a record's own; keep the order of the records, or link them")
    known = list(case.plan.kept)
    classes = np.zeros(len(case.confidential), dtype=np.uint64)
    for keys in mark_cells(cell_keys(case.confidential, known), known).values():
        classes += keys
    # A model may know exact values of columns that leave coarser: what follows from these is a little more than rows of equal coarse values say.
    weakest: Status = "pass" if case.recipe.form.recode else "warn"

    def look(pool: PooledDatasets) -> CheckResult:
        joint = _joint_table(case, pool)
        rows = classes + joint.row_keys[: joint.members]
        evidence = exchange_rows(joint.coded_columns, classes, rows, joint.n_datasets_used)
        if evidence is None:
            raise NotComputable(f"no two {case.record_noun} share {join_names(known)}")
        about = f"of {evidence.n_people:,} {case.record_noun} who share all values that are not drawn with others"
        said = (
            f"{about}, {evidence.n_found:,} have their own values of {evidence.columns_label} in their own row, and {evidence.n_expected:,.0f} would if rows of the same kept "
            f"values were exchanged; {_percent_of_releases(evidence.p)} ({joint.size_text})"
        )
        if evidence.p > OWN_ROW_LEVEL:
            return CheckResult(
                f"a record's own row says no more of its drawn values than rows of the same kept values do: {said}",
                0.0,
                adjusted_value=0.0,
            )
        return CheckResult(
            said, float(evidence.n_found), evidence.n_expected, evidence.excess, record_numbers(evidence.records),
            "block" if is_own_row_strong(evidence) else weakest, at_least=weakest,
        )  # fmt: skip

    return worst_over_pools(case, lambda one: False, look, together=False)


def _check_unanimous_classes(case: ExaminedRelease) -> CheckResult:
    """Check an anonymised table for equivalence classes with one sensitive value."""
    if case.is_synthetic:
        raise CheckNotApplicable("not an anonymised table")
    keys = case.quasi_identifiers
    sensitive = [n for n in (*case.plan.kept, *case.plan.replaced) if case.recipe.schema[n].role is Role.SENSITIVE]
    if not keys or not sensitive:
        raise NotComputable("no variable is a quasi-identifier" if sensitive else "no variable is sensitive")
    released, data, controls = case.released_datasets[0], case.confidential, case.controls
    classes = equivalence_classes([released.frame[name] for name in keys], len(released))
    near = None
    if controls is not None and released.linked:
        joint = JointTable(case, case.pool_releases(case.release), keys)
        columns = [
            (midrank_shares(joint.numbers_of_column(n)), False)
            if joint.is_number(n)
            else (np.unique(joint.cells_of_column(n), return_inverse=True)[1].astype(np.float64), True)
            for n in keys
        ]
        of_member = np.full(len(data), -1, dtype=np.int64)
        of_member[released.linked_records] = classes
        near = of_member[nearest_members(columns, len(data))]
    worst: CheckResult | None = None
    for name in sensitive:
        cells = cell_keys(released, (name,))[name]
        theirs = None
        if near is not None and controls is not None:
            inside = near >= 0
            theirs = cell_keys(controls, (name,))[name][: len(near)][inside]
        found = find_homogeneous_classes(classes, cells, None if near is None else near[near >= 0], theirs)
        beside = (
            f"of {found.n_controls:,} hold-out {case.record_noun} like them {100 * found.baseline:.0f} % have it too"
            if found.n_controls
            else f"{100 * found.baseline:.0f} % of all {case.record_noun} have such a value"
        )
        said = (
            f"{name}: {found.n_people:,} of {found.n_records:,} {case.record_noun} are in classes that all have the same value, so that whoever knows the "
            f"quasi-identifiers knows it; {beside}"
        )
        records = released.linked_records[found.rows] if released.linked else found.rows[:0]
        one = CheckResult(
            said, found.n_people / max(1, found.n_records), found.baseline, found.excess, record_numbers(records)
        )
        worst = one if worst is None or one.compared_value > worst.compared_value else worst
    assert worst is not None
    return worst


def _check_roles_elsewhere(case: ExaminedRelease) -> CheckResult:
    """Check for columns kept here that another plan of the same data calls sensitive, or an identifier."""
    kept = [n for n in case.plan.kept if case.recipe.schema[n].role not in (Role.SENSITIVE, Role.IDENTIFIER)]
    if not case.is_synthetic:
        raise CheckNotApplicable("an anonymised table keeps its sensitive columns")
    found: dict[str, str] = {}
    for run in list_runs(case.workspace):
        if (
            run.id == case.plan.run.id
            or case.workspace.find_dataset(run.dataset_id).source_sha256 != case.original_dataset.source_sha256
        ):
            continue
        schema = run.recipe.schema
        for name in kept:
            if name in schema and schema[name].role in (Role.SENSITIVE, Role.IDENTIFIER):
                found.setdefault(name, f"{name} ({schema[name].role.value} in run {run.id})")
    said = f"kept here, and called sensitive or an identifier in another run of the same data: {', '.join(found.values()) or 'none'}"
    return CheckResult(said, len(found))


def _check_memorised(case: ExaminedRelease) -> CheckResult:
    """Check for a distance to the confidential records that is far below 1, the value that a right model has."""
    if case.recipe.form.recode:
        raise NotComputable(
            "coarser values are further from the exact ones than a fitted model is, and would hide that the others are repeated"
        )
    rows = [
        row for row in case.measured_rows
        if (output := row_output(row)) is not None and output.goal == "one" and row.draw is None and row.level is None and row.value is not None and row.dataset != "confidential"
    ]  # fmt: skip
    if not rows:
        would = " or ".join(one.key for one in registry().values() if any(o.goal == "one" for o in one.outputs))
        raise NotComputable(f"no distance that a right model has at 1 was computed; add {would} under [[measure]]")
    least = min(rows, key=lambda row: row.value or 0.0)
    value = least.value or 0.0
    upper = value if least.upper is None else least.upper
    said = f"{least.key} is {value:.3g}: a release that a right model draws has about 1. " + (
        "It repeats the confidential records more closely than a fitted model can"
        if value < FITTED
        else "It is no closer than a fitted model can be"
    )
    return CheckResult(said, value, 1.0, value if upper < 1 else max(value, FITTED))


CONTENT_CHECKS = (
    GateCheck(
        "membership_evidence", "people who are found for being in the data", "people beyond what hold-out records show", 0, FEWEST - 1,
        "a release that depends on no single person finds members no more often than hold-out people, by whatever way of looking; all ways are one test",
        "larger leaves (minbucket of [[synthesis]]), smoothing = true for numbers, a model instead of donors, or a smaller m under [release]",
        _check_membership_evidence,
        "identical matches against a hold-out: Platzer & Reutterer (2021); agreement weights: Fellegi & Sunter (1969); permutation test: Fisher (1935), Besag & Clifford (1991)",
    ),
    GateCheck(
        "disguised_columns", "columns that say what another is to hide", "columns", None, 0,
        "a column that is a one-to-one or monotone function of a hidden one gives it away, whatever its name and role",
        "give it the role that the hidden column has under [variables] and list it as a target of [[synthesis]], or leave it out", _check_disguised_columns,
    ),
    GateCheck(
        "own_values", "records whose own row says what is drawn", "people beyond those of the same kept values", 0, FEWEST - 1,
        "a drawn value that the record's own row has more often than rows of the same kept values is remembered, not inferred from what is kept",
        "larger leaves (minbucket of [[synthesis]]), smoothing = true for numbers, or a model instead of donors", _check_own_values,
        "permutation test: Fisher (1935), Besag & Clifford (1991)",
    ),
    GateCheck(
        "unanimous_classes", "classes in which everybody has the same sensitive value", "excess (0 as for similar people, 1 for all)", 0.05, 0.2,
        "k hides the row of a person and not what all rows of the class say",
        "l_diversity or t_closeness beside k in [[anonymisation]], or a larger k", _check_unanimous_classes, "homogeneity: Machanavajjhala et al. (2007)",
    ),
    GateCheck(
        "roles_elsewhere", "columns kept that another run of the data calls sensitive", "columns", None, 0,
        "a role that is changed lets a column out unchanged", "give it the same role under [variables], and list it as a target of [[synthesis]]", _check_roles_elsewhere,
    ),
    GateCheck(
        "memorised", "a release closer to the records than a fitted model can be", "s_pmse", FITTED, None,
        "a model that is fitted and drawn from differs from its data as much as another draw does; what differs less repeats them",
        "larger leaves (minbucket of [[synthesis]]), or a model instead of donors", _check_memorised, "Snoke et al. (2018)", is_minimum=True,
    ),
)  # fmt: skip
