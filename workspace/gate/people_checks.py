"""The gate's checks of people: who can be found in a release, what it shows of them, and how probably each is disclosed.

What a release shows of people is compared with the hold-out records of its run. Without a hold-out only rows that are copied whole can
convince; else the check was not made.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from sfumato.engine.adversary.cells import cell_keys
from sfumato.engine.adversary.coded import midrank_shares
from sfumato.engine.adversary.evidence import (
    BESIDE_KEPT_LEVEL,
    CONTENT_LEVEL,
    COPY_LEVEL,
    EVIDENCE_LEVEL,
    OWN_ROW_LEVEL,
)
from sfumato.engine.adversary.exchanged_rows import ExchangeEvidence, exchange_rows
from sfumato.engine.adversary.independent_rows import (
    OTHER_WEIGHT,
    WHOLE,
    RowEvidence,
    fewest_detectable_copies,
    strongest_row_evidence,
)
from sfumato.engine.adversary.membership_evidence import ProbeCounts, weigh_evidence
from sfumato.engine.adversary.people import sum_marked_cells
from sfumato.engine.adversary.unanimous import find_homogeneous_classes, nearest_members
from sfumato.engine.data.arrays import Floats, Integers
from sfumato.engine.data.bits import Keys
from sfumato.engine.data.long_arrays import compute_column, take_rows
from sfumato.engine.data.schema import Role
from sfumato.engine.data.units import Units
from sfumato.engine.errors import NotComputable
from sfumato.engine.execution.record_risk import RecordRisk, matched_variables
from sfumato.engine.methods.declared import list_declarations
from sfumato.engine.methods.registry import find_method
from sfumato.engine.partition.equivalence_classes import equivalence_classes
from sfumato.engine.recipe.recipe import Recipe
from sfumato.engine.recipe.thresholds import threshold_output
from sfumato.engine.statistics.comparing import is_above, is_below
from sfumato.engine.wording import join_names, singular_noun

from ..plan.change_parts import ChangeKind, PartsOfChange, parts_of_change, parts_of_column_changes
from ..reporting.beliefs import MeasureBeliefs
from ..reporting.questions import answers_or_reason
from ..reporting.results import method_title
from ..views.beliefs import belief_measures, read_beliefs
from ..views.records import RecordMeasure, find_highest_confidential_risk, read_record_risks, record_measures
from . import sentences
from .checks import (
    FOLLOW_LESS,
    KEPT_KEYS,
    CheckNotApplicable,
    CheckResult,
    ExaminedRelease,
    GateCheck,
    PooledDatasets,
    Status,
    count_pools,
    record_numbers,
    worst_over_pools,
)
from .earlier import ReleasedData
from .joint import JointTable
from .kept_columns import (
    MOST_FOR_LEVERS,
    KeptColumns,
    declared_sampling_fraction,
    first_names,
    first_names_text,
    kept_columns_of_release,
    row_learned_text,
)
from .questions import only_infers_values, question_limits
from .record_risks import (
    LIKELY,
    SURE,
    UNMEASURED_RISK,
    RisksOverReleases,
    alone_with_columns,
    compare_with_wrong_matches,
    compare_with_wrong_unit_matches,
    largest_of_records,
    records_above,
    risks_over_releases,
    unique_on_kept_columns,
    units_alone_with_kept,
)
from .sentences import fill_sentence

FEWEST = 5
"""People beyond chance from which a finding may block."""
MOST_OF_THE_FOUND, MOST_OF_THE_PEOPLE = 0.6, 0.2
"""A finding blocks where so much of who is found, or of all people, is surely found for being a member."""
MOST_IN_OWN_ROWS = 0.5
"""And where so much of those who have their own values in their own rows do for the rows being theirs."""
COARSEN_FIRST = "coarsen_first"
"""Number of a study of what an intruder knows: the risk without the variable to coarsen first."""
MOST_TO_CHOOSE = 3
"""Columns that a sentence on what to change first names, with what each does."""


def _check_kept_keys(case: ExaminedRelease) -> CheckResult:
    """Check whom the audience can find by the columns that a release keeps."""
    kept = kept_columns_of_release(case)
    n, noun = len(kept.sizes.sizes), case.record_noun
    limits = kept.deciding_limits
    if not case.is_synthetic and set(kept.names) <= set(case.quasi_identifiers) and limits.average_risk is None:
        # small_classes judges the quasi-identifiers of an anonymised table: a second finding on them would say the same
        # twice.
        raise CheckNotApplicable(sentences.CLASSES_ARE_CHECKED)
    if not kept.names and not kept.other_names:
        return CheckResult(sentences.NO_KEPT_COLUMN, 0.0, people=0)
    limit = limits.smallest_class or case.policy.smallest_cell
    over = kept.sizes.records_below(limit) if kept.names else np.zeros(0, dtype=np.int64)
    how = sentences.KEPT_UNCHANGED if set(kept.names) <= set(case.plan.unchanged_variables) else sentences.KEPT_BY_RULES
    if not case.is_synthetic:
        how = sentences.KEPT_AS_RELEASED
    message = fill_sentence(sentences.NO_KEPT_COLUMN_COUNTS, audience=kept.audience)
    if kept.names:
        found = kept.sizes.expected_reidentifications
        fraction = declared_sampling_fraction(case)
        message = fill_sentence(
            sentences.KEPT_COLUMNS,
            few=len(over),
            people=n,
            noun=noun,
            one=singular_noun(noun),
            few_share=len(over) / n,
            columns=kept.columns_text,
            how=how,
            others=limit - 1,
            alone=kept.sizes.n_unique,
            found=found,
            found_share=found / n,
            population=""
            if fraction is None
            else fill_sentence(sentences.KEPT_IN_POPULATION, found=kept.sizes.population_reidentifications(fraction)),
        )
    if kept.names and kept.is_by_unit:
        message += fill_sentence(sentences.ROWS_OF_UNITS, units=case.unit_noun)
    elif kept.names and case.units is not None:
        message += fill_sentence(sentences.ROWS_BY_THEMSELVES, rows=noun, units=case.unit_noun)
    if not kept.is_blocking and kept.n_found_by_all:
        message += fill_sentence(
            sentences.KEPT_OTHER_COLUMNS, names=kept.other_names, found=kept.n_found_by_all, limit=limit
        )
    records = over
    if not case.is_synthetic:
        released = case.released_datasets[0]
        # Rows of a table that nothing links to the confidential records are not record numbers.
        records = released.linked_records[over] if released.linked else over[:0]
    reported = kept.is_only_reported
    return CheckResult(
        message,
        len(over) / n,
        # A policy may limit the average alone: then nobody counts for being in a small class.
        adjusted_value=kept.n_unprotected / n,
        records=record_numbers(records),
        at_most="pass" if reported else "block",
        at_least="warn" if kept.n_found_by_all and not reported else "pass",
        people=max(len(over), kept.n_unprotected) or kept.n_found_by_all,
        headline=_headline_of_kept_columns(case, kept, how),
        # A policy of the average alone counts other people than those of small groups.
        counted=fill_sentence(
            sentences.IN_SMALL_GROUP,
            limit=limit,
            noun=noun,
            alone=fill_sentence(sentences.ALONE_IN_GROUP, alone=kept.sizes.n_unique) if kept.sizes.n_unique else "",
        )
        if len(over) >= kept.n_unprotected
        else "",
        learned=row_learned_text(case, kept.names),
        change=kept.first_change_text if kept.is_blocking else "",
        advised=(parts_of_column_changes(kept.first_changes),) if kept.is_blocking and kept.first_changes else (),
        change_has_effect=kept.is_blocking,
        effects=kept.effects if kept.is_blocking else (),
    )


def _headline_of_kept_columns(case: ExaminedRelease, kept: KeptColumns, how: str) -> str:
    """Describe by what the people are found."""
    columns = kept.columns_text or join_names(kept.other_names)
    if not kept.is_by_unit:
        return fill_sentence(sentences.FOUND_BY_KEPT_COLUMNS, columns=columns, how=how)
    # Each record of a unit may be like many others: who is in it together is what no other unit has.
    rows = case.recipe.data.rows or "members"
    return fill_sentence(sentences.FOUND_BY_WHOLE_UNIT, columns=columns, rows=rows, how=how)


def _drawn_variables(case: ExaminedRelease) -> tuple[str, ...]:
    """Return the replaced variables without survey weights."""
    weights = case.recipe.schema.names_by_role(Role.WEIGHT)
    return tuple(n for n in case.plan.replaced if n not in weights)


def _kept_variables(case: ExaminedRelease) -> tuple[str, ...]:
    """Return the kept variables without survey weights."""
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
    """Return a test whether an earlier release draws all variables that this one draws."""
    names, schema = _drawn_variables(case), case.confidential.schema

    def fits(one: ReleasedData) -> bool:
        return one.is_synthetic and one.has_variables(names, schema) and set(names) <= set(one.replaced)

    return fits


def is_strong(counts: ProbeCounts, members: int, *, follows_from_kept: bool = False) -> bool:
    """Return whether a look finds enough members, and enough for being members, that it may block a release.

    This takes ``FEWEST`` people beyond chance, and that most of those found are found for being members, or many of all
    ``members``.

    follows_from_kept: whether kept columns, which are members' own, explain part of what is found; only a share of all
    people counts then
    """
    # A model that fits closely finds its members a little more often than others, which a large table shows as
    # significant: size counts. These are lower limits, since the strongest of many looks is chosen and its counts
    # flatter.
    of_found = counts.certain_share_of_found >= MOST_OF_THE_FOUND and not follows_from_kept
    return counts.excess_members >= FEWEST and (
        of_found or counts.certain_share_of_people(members) >= MOST_OF_THE_PEOPLE
    )


def is_own_row_strong(evidence: ExchangeEvidence) -> bool:
    """Return whether enough people have their own drawn values in their own rows that it may block a release."""
    is_much = evidence.share_of_found >= MOST_IN_OWN_ROWS or evidence.excess_share >= MOST_OF_THE_PEOPLE
    return evidence.excess >= FEWEST and is_much


def _stratum_text(who: str, noun: str) -> str:
    """Describe the stratum in which members and hold-out people are compared; empty for all people."""
    return "" if who.startswith("all ") else fill_sentence(sentences.STRATUM, who=_who_text(who, noun))


def _who_text(who: str, noun: str) -> str:
    """Return a stratum in words: ``the 250 people with the rarest values``."""
    return re.sub(r"^the ([\d,]+) rarest (\w+)", r"the \1 \2 with the rarest values", who).replace("people", noun)


def _share_beside(count: int, of: int) -> str:
    """Return the share of a count for beside it; empty for none."""
    return fill_sentence(sentences.SHARE_BESIDE, share=count / of) if count and of else ""


def _count_or_none(count: int) -> str:
    return "none" if count == 0 else f"{count:,}"


def look_counts_text(counts: ProbeCounts, noun: str) -> str:
    """Describe how many members and how many hold-out people a look finds."""
    return fill_sentence(
        sentences.LOOK_COUNTS,
        members=counts.n_members,
        eligible_members=counts.n_eligible_members,
        noun=noun,
        stratum=_stratum_text(counts.who, noun),
        what=counts.what or sentences.LOOKS_TOGETHER,
        members_share=_share_beside(counts.n_members, counts.n_eligible_members),
        controls_share=_share_beside(counts.n_controls, counts.n_eligible_controls),
        eligible_controls=counts.n_eligible_controls,
        controls=_count_or_none(counts.n_controls),
    )


def power_text(detectable: Sequence[int | None], members: int, noun: str) -> str:
    """Describe the smallest share of people whose copies would have been detected, by the most powerful of several
    tests.
    """
    known = [one for one in detectable if one is not None]
    if not known:
        return fill_sentence(sentences.NO_POWER, noun=noun)
    fewest = max(FEWEST, min(known))
    return fill_sentence(sentences.POWER, fewest=fewest, noun=noun, share=fewest / members)


def _check_membership_evidence(case: ExaminedRelease) -> CheckResult:
    """Test, by all looks at people in the release together, whether members are found more often than hold-out people."""
    if not case.is_synthetic:
        raise CheckNotApplicable(sentences.PROTECTED_BY_CLASSES)
    if not _drawn_variables(case):
        raise CheckNotApplicable(sentences.NOTHING_DRAWN)
    pools = count_pools(case, _poolable_releases(case), together=True)
    return worst_over_pools(
        case,
        _poolable_releases(case),
        lambda pool: _weigh_pool_evidence(_joint_table(case, pool), pools),
        together=True,
    )


def _weigh_pool_evidence(joint: JointTable, pools: int) -> CheckResult:
    """Return the result of all looks and row tests of one pool of datasets."""
    case, noun = joint.case, joint.noun
    is_whole = not _kept_variables(case)
    if case.controls is None:
        # A design may give each combination of some columns one row, in the data and in the release: without a hold-out only whole rows count.
        rows = strongest_row_evidence([one for one in joint.whole_row_tests if one.kind == WHOLE]) if is_whole else None
        if rows is not None and rows.p <= COPY_LEVEL / pools:
            return _result_of_rows(joint, rows, sentences.UNCONTROLLED, "block")
        raise NotComputable(sentences.NO_HOLDOUT)
    rows = joint.strongest_row_evidence if is_whole else None
    looks = joint.looks if is_whole else joint.looks_beside_kept_columns
    # Bonferroni over the pools that worst_over_pools looks at.
    level = (EVIDENCE_LEVEL if is_whole else BESIDE_KEPT_LEVEL) / pools
    evidence = weigh_evidence(looks, joint.members, joint.n_records, level, joint.unit_of, rows)
    detectable = [evidence.fewest_detectable]
    if pairs := [one.n_pairs for one in joint.whole_row_tests if is_whole and one.kind == WHOLE]:
        detectable.append(fewest_detectable_copies(min(pairs), joint.n_protected_members, joint.n_protected, level))
    about = fill_sentence(
        sentences.LOOKS,
        objecting=evidence.n_objecting,
        looks=evidence.n_probes,
        honest=fill_sentence(sentences.HONEST_RELEASES, p=evidence.p),
        power=power_text(detectable, joint.n_protected_members, noun),
        size=joint.size_text,
    )
    notable = rows if rows is not None and rows.is_notable else None
    candidates = [one for one in (evidence.strongest_counts, evidence.combined_counts) if one is not None]
    strong = [one for one in candidates if is_strong(one, joint.n_protected_members, follows_from_kept=not is_whole)]
    # A look that convinces by itself names itself; rows speak where it takes both.
    is_by_labels = bool(strong) and evidence.p_by_labels <= level * OTHER_WEIGHT
    is_by_rows = notable is not None and _members_beyond_chance(joint, notable) >= FEWEST
    if notable is not None and evidence.p <= level and is_by_rows and not is_by_labels:
        return _result_of_rows(joint, notable, fill_sentence(sentences.ROWS_BESIDE_LOOKS, about=about), "block")
    if evidence.p > level and notable is not None:
        return _result_of_rows(joint, notable, fill_sentence(sentences.HOLDOUT_OPEN, about=about), "warn")
    if evidence.strongest_counts is None:
        return CheckResult(fill_sentence(sentences.NOTHING_FOUND, size=joint.size_text), 0.0, adjusted_value=0.0)
    if evidence.p > level:
        # A pass shows the counts that come nearest to a finding: a reader sees what was not enough.
        nearest = look_counts_text(evidence.strongest_counts, noun)
        message = fill_sentence(sentences.NO_EVIDENCE, noun=noun, counts=nearest, about=about)
        return CheckResult(message, 0.0, adjusted_value=0.0)
    shown = strong[0] if strong else evidence.strongest_counts
    people = _people_beyond_chance(shown.excess_members)
    message = fill_sentence(
        sentences.EVIDENCE,
        excess=people,
        noun=noun,
        counts=look_counts_text(shown, noun),
        by_chance=max(0, shown.n_members - people),
        members=shown.n_members,
        about=about,
    )
    return CheckResult(
        message, float(shown.n_members), shown.expected_members, shown.excess_members, record_numbers(shown.records),
        "block" if strong else "warn", at_least="warn", people=people,
        headline=sentences.SHOWN_BEYOND_CHANCE, how=_how_members_are_shown(shown.columns, noun),
        learned=_learned_of_members(_drawn_variables(case), shown.columns),
    )  # fmt: skip


def _people_beyond_chance(excess: float) -> int:
    """Return a whole number of people who are found beyond those whom chance brings about, at least one.

    It is rounded up. Those whom chance brings about are nobody's loss, and a reader cannot use two numbers.
    """
    return max(1, math.ceil(excess - 1e-9))


def _how_members_are_shown(columns: Sequence[str], noun: str) -> str:
    """Describe by which columns members are found more often than hold-out people; without names where none are known."""
    if not columns:
        return fill_sentence(sentences.SHOWN_TO_BE_MEMBERS, noun=noun)
    return fill_sentence(sentences.SHOWN_BY_COLUMNS, columns=first_names(columns), noun=noun)


def _learned_of_members(drawn: Sequence[str], columns: Sequence[str]) -> str:
    """Describe what is learnt of members who are found by some columns, and what a row shows beside these."""
    others = [name for name in drawn if name not in columns]
    if not columns or not others:
        return sentences.MEMBERS_LEARNED
    return fill_sentence(sentences.VALUES_BESIDE_LEARNED, others=first_names(others))


def _members_beyond_chance(joint: JointTable, rows: RowEvidence) -> float:
    """Return how many more members than chance the row test finds."""
    found, _ = _count_found(joint, rows)
    return found - _members_by_chance(joint, rows)


def _count_found(joint: JointTable, rows: RowEvidence) -> tuple[int, int]:
    """Return how many of the data, and of the hold-out, the row test finds: units where there are any."""
    records = rows.test.records
    own, controls = records[records < joint.members], records[records >= joint.members]
    if joint.unit_of is None:
        return len(own), len(controls)
    return len(np.unique(joint.unit_of[own])), len(np.unique(joint.unit_of[controls]))


def _members_by_chance(joint: JointTable, rows: RowEvidence) -> float:
    """Return how many members chance would put among the rows found: their share of all people."""
    found = sum(_count_found(joint, rows))
    return min(float(found), rows.test.expected) * joint.n_protected_members / joint.n_protected


def _result_of_rows(joint: JointTable, rows: RowEvidence, beside: str, status: Status) -> CheckResult:
    """Return the result for rows that are released more often than independent draws would repeat them."""
    case, one = joint.case, rows.test
    records = one.records[one.records < joint.members]
    members, controls = _count_found(joint, rows)
    holdout = (
        fill_sentence(
            sentences.ROWS_OF_CONTROLS,
            controls=_count_or_none(controls),
            eligible=joint.n_protected - joint.n_protected_members,
            noun=joint.noun,
        )
        if case.controls is not None
        else ""
    )
    message = fill_sentence(
        sentences.ROWS_FOUND,
        people=case.protected_text(records) if joint.unit_of is not None else case.count_text(len(records)),
        members=joint.n_protected_members,
        columns=one.what,
        found=len(records),
        holdout=holdout,
        chance=one.chance,
        p=rows.p,
        beside=beside,
    )
    expected = min(float(members), _members_by_chance(joint, rows))
    return CheckResult(
        message, float(members), expected, members - expected, record_numbers(records), status, at_least="warn",
        people=_people_beyond_chance(members - expected), headline=sentences.SHOWN_BEYOND_CHANCE,
        how=fill_sentence(sentences.SHOWN_TO_BE_MEMBERS, noun=joint.noun),
    )  # fmt: skip


def _check_own_values(case: ExaminedRelease) -> CheckResult:
    """Check whether a record's own row has its drawn values more often than rows of people with the same kept values."""
    kept, drawn = _kept_variables(case), _drawn_variables(case)
    if not case.is_synthetic:
        raise CheckNotApplicable(sentences.PROTECTED_BY_CLASSES)
    if not kept or not drawn:
        raise CheckNotApplicable(sentences.NO_COLUMN_KEPT if drawn else sentences.NOTHING_DRAWN)
    if not case.release.is_in_order:
        raise NotComputable(sentences.NO_OWN_ROW)
    known = list(case.plan.kept)
    classes = sum_marked_cells(case.confidential_cells, known, len(case.confidential))
    # A model may know exact values of columns that leave coarser: what follows from these is a little more than rows of equal coarse values say.
    weakest: Status = "pass" if case.recipe.form.recode else "warn"

    def look(pool: PooledDatasets) -> CheckResult:
        """Return the result for one pool of datasets."""
        joint = _joint_table(case, pool)
        own = joint.row_keys[: joint.members]
        rows: Keys = compute_column(len(own), np.uint64, lambda some: classes[some] + own[some])
        evidence = exchange_rows(joint.coded_columns, classes, rows, joint.n_datasets_used, case.units)
        # this is the last check that asks for it, and that of a long table takes much memory
        case.joints.pop(pool.datasets, None)
        if evidence is None:
            raise NotComputable(fill_sentence(sentences.NOBODY_SHARES, noun=case.unit_noun, names=known))
        message = fill_sentence(
            sentences.OWN_VALUES,
            people=evidence.n_people,
            noun=case.unit_noun,
            found=evidence.n_found,
            columns=evidence.columns_label,
            expected=evidence.n_expected,
            honest=fill_sentence(sentences.HONEST_RELEASES, p=evidence.p),
            size=joint.size_text,
        )
        if evidence.p > OWN_ROW_LEVEL:
            message = fill_sentence(sentences.OWN_VALUES_BY_CHANCE, found=message)
            return CheckResult(message, 0.0, adjusted_value=0.0)
        return CheckResult(
            message, float(evidence.n_found), evidence.n_expected, evidence.excess, record_numbers(evidence.records),
            "block" if is_own_row_strong(evidence) else weakest, at_least=weakest,
            people=_people_beyond_chance(evidence.excess), how=sentences.SHOWN_BY_OWN_ROWS,
        )  # fmt: skip

    # No earlier release is pooled: the exchange of rows is within one release.
    return worst_over_pools(case, lambda one: False, look, together=False)


def _check_unanimous_classes(case: ExaminedRelease) -> CheckResult:
    """Check for equivalence classes of an anonymised table in which all records have one sensitive value."""
    if case.is_synthetic:
        raise CheckNotApplicable(sentences.NOT_AN_ANONYMISED_TABLE)
    keys = case.quasi_identifiers
    sensitive = [n for n in (*case.plan.kept, *case.plan.replaced) if case.recipe.schema[n].role is Role.SENSITIVE]
    if not keys or not sensitive:
        raise NotComputable(sentences.NO_QUASI_IDENTIFIER if sensitive else sentences.NO_SENSITIVE_VARIABLE)
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
        # Suppressed records have no class: hold-out people who are nearest to one of them are left out.
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
            fill_sentence(
                sentences.UNANIMOUS_IN_HOLDOUT, controls=found.n_controls, noun=case.record_noun, share=found.baseline
            )
            if found.n_controls
            else fill_sentence(sentences.UNANIMOUS_IN_ALL, noun=case.record_noun, share=found.baseline)
        )
        message = fill_sentence(
            sentences.UNANIMOUS_CLASSES,
            name=name,
            people=found.n_people,
            records=found.n_records,
            noun=case.record_noun,
            beside=beside,
        )
        records = released.linked_records[found.rows] if released.linked else found.rows[:0]
        one = CheckResult(
            message, found.n_people / max(1, found.n_records), found.baseline, found.excess, record_numbers(records)
        )
        worst = one if worst is None or one.compared_value > worst.compared_value else worst
    assert worst is not None
    return worst


def _check_worst_records(case: ExaminedRelease) -> CheckResult:
    """Find the record that is most at risk from an intruder who knows part of it.

    Methods that only infer values warn, by how far the value is more probable than before; those with controls are
    judged by their excess over other people elsewhere.
    """
    worst: CheckResult | None = None
    inferred: CheckResult | None = None
    everybody = False
    for measure in record_measures(case.workspace, case.plan.run.id):
        method = find_method(measure.key, "method")
        if method.measurement.refits:  # the question that it answers has a check of its own
            continue
        risk = read_record_risks(case.workspace, measure)
        asked = int(np.count_nonzero(risk.is_examined))
        if not asked or (
            risk.prior is not None and (method.measurement.controls or method.measurement.beliefs is not None)
        ):
            continue
        # a suppressed record is not asked about, nor released
        everybody |= asked == len(risk) or not case.is_synthetic
        # What is inferred may be so of people in general: the same would be inferred of others who are like the record.
        # So it never blocks.
        if method.record_array("prior") is not None or only_infers_values(method):
            one = _inference_result(measure.key, risk)
            inferred = one if inferred is None or one.compared_value > inferred.compared_value else inferred
            continue
        own = find_highest_confidential_risk(case.workspace, measure)
        found = [
            _result_of_measure(case, measure, together, own)
            for together in risks_over_releases(case, measure, risk.probability)
        ]
        if risk.unit_probability is not None and case.units is not None:
            found.append(_result_of_units(case, measure, case.units, risk.unit_probability))
        for one in found:
            worst = one if worst is None or _record_severity(one) > _record_severity(worst) else worst
    if inferred is not None and _is_inference_compared(case):
        # what is inferred of fresh people too is no finding about these: the excess over them is, and inference_excess judges it
        inferred = replace(
            inferred,
            message=fill_sentence(sentences.INFERENCE_JUDGED_ELSEWHERE, message=inferred.message),
            adjusted_value=0.0,
        )
    if worst is None or (inferred is not None and (inferred.value or 0.0) > max(LIKELY, worst.compared_value)):
        worst = _add_inference(worst, inferred)
    if worst is not None and not everybody:
        message = fill_sentence(sentences.OTHERS_UNMEASURED, message=worst.message, likely=LIKELY)
        return replace(worst, message=message, adjusted_value=max(worst.compared_value, UNMEASURED_RISK))
    if worst is None:
        has_own_rows = case.release.linked or not case.is_synthetic
        why = sentences.ADD_RECORD_MEASURE if has_own_rows else sentences.NO_ROW_OF_RECORD
        raise NotComputable(fill_sentence(sentences.NO_RECORD_MEASURED, why=why))
    return worst


def _result_of_measure(
    case: ExaminedRelease, measure: RecordMeasure, risks: RisksOverReleases, baseline_risk: float | None
) -> CheckResult:
    """Return the result for the record most at risk by one measure, over one or several releases."""
    key = measure.key
    probability = risks.probability
    asked = compute_column(len(probability), np.bool_, lambda rows: ~np.isnan(probability[rows]))
    if not asked.any():
        return CheckResult(fill_sentence(sentences.RECORD_NOT_ASKED, method=method_title(key)))
    record, highest = largest_of_records(probability)
    likely = records_above(probability, LIKELY)
    # In a single dataset a drawn value may hit by chance alone.
    few = case.is_synthetic and risks.n_datasets < 2
    # whoever knows keys that stay and that nobody shares finds the row, whatever was drawn: own_values asks whether the drawn part says more
    unique = unique_on_kept_columns(case)
    alone = compute_column(len(asked), np.bool_, lambda rows: unique[rows] & asked[rows])
    others = compute_column(len(asked), np.bool_, lambda rows: ~alone[rows])
    highest_of_others, count_alone = largest_of_records(probability, others)[1], int(np.count_nonzero(alone))
    # Records that are unique with what is kept count as just above LIKELY at most: kept_keys judges these.
    judged = max(highest_of_others, min(highest, UNMEASURED_RISK))
    policy = case.policy.findings.get("worst_records")
    strict = policy is not None and policy.block is not None  # an office's own limit holds, whatever chance does
    looked = is_above(judged, SURE) and not (few or strict)
    chance = compare_with_wrong_matches(case, measure, risks) if looked else None
    count = int(np.count_nonzero(take_rows(alone, likely)))
    matches = compared = ""
    if chance is not None:
        matches = fill_sentence(
            sentences.WRONG_MATCHES,
            own=chance.own,
            sure=SURE,
            wrong=chance.wrong,
            p=chance.p_value,
            chance=sentences.MAY_BE_CHANCE if chance.p_value > CONTENT_LEVEL else "",
        )
    if judged < highest and count_alone:
        compared = fill_sentence(
            sentences.COMPARED_LESS,
            above=sentences.ABOVE if judged == UNMEASURED_RISK else "",
            compared=judged,
            highest=highest,
            others=highest_of_others,
        )
    message = fill_sentence(
        sentences.WORST_RECORD,
        method=method_title(key),
        record=record + 1,
        equals=_equals_text(take_rows(probability, likely)),
        probability=highest,
        datasets=risks.n_datasets,
        likely_records=len(likely),
        asked=int(asked.sum()),
        likely=LIKELY,
        one_dataset=sentences.CHANCE_OF_ONE_DATASET if few else "",
        matches=matches,
        compared=compared,
        releases=_releases_together_text(risks),
        alone=fill_sentence(sentences.ALONE_WITH_KEPT, number=count) if count else "",
    )
    # Whoever is alone with kept columns is part of the finding on these, which decides whether the release may leave. People who are not
    # alone and are found all the same are no part of it: a waiver of the kept columns must not cover them.
    leak = KEPT_KEYS if 2 * count > len(likely) and not is_above(judged, SURE) else ""
    by_chance = few or (chance is not None and chance.p_value > CONTENT_LEVEL)
    advice = _advise_change(case, measure, likely)
    return CheckResult(
        message,
        highest,
        baseline_risk,
        judged,
        records=record_numbers(likely) or (record,),
        at_most="warn" if by_chance else "block",
        headline=_found_by_text(case, measure, all_alone=count == len(likely)) if len(likely) else "",
        counted=_how_surely_text(take_rows(probability, likely)) if measure.is_matching else "",
        learned=_learned_text(case, measure),
        change=advice.text,
        advised=advice.advised,
        change_has_effect=advice.has_effect,
        leak=leak,
    )


def _found_by_text(
    case: ExaminedRelease, measure: RecordMeasure, *, all_alone: bool = False, is_unit: bool = False
) -> str:
    """Describe by which variables a measure finds records, where it matches them on what the intruder knows.

    all_alone: whether all that are found are alone with the unchanged columns, so that artificial values find nobody
    is_unit: whether they are alone with all records of their unit together
    """
    if not measure.is_matching:
        return ""
    names, _ = matched_variables(case.recipe, measure.position)
    kept, drawn = ([name for name in names if (name in case.plan.kept) == is_kept] for is_kept in (True, False))
    columns = first_names_text(names)
    if case.is_synthetic and kept and all_alone:
        if is_unit:
            return fill_sentence(
                sentences.FOUND_BY_WHOLE_UNIT,
                columns=first_names_text(kept),
                rows=case.record_noun,
                how=sentences.KEPT_UNCHANGED,
            )
        return fill_sentence(
            sentences.FOUND_BY_KEPT_COLUMNS, columns=first_names_text(kept), how=sentences.KEPT_UNCHANGED
        )
    if case.is_synthetic and kept and drawn:
        columns = fill_sentence(
            sentences.UNCHANGED_AND_DRAWN, kept=first_names_text(kept), drawn=first_names_text(drawn)
        )
    return fill_sentence(sentences.FOUND_BY_INTRUDER, columns=columns)


def _learned_text(case: ExaminedRelease, measure: RecordMeasure) -> str:
    """Describe what is learnt of a person whom a measure finds by what the intruder knows; empty where it matches nothing."""
    return row_learned_text(case, matched_variables(case.recipe, measure.position)[0]) if measure.is_matching else ""


@dataclass(frozen=True, slots=True)
class AdvisedChange:
    """What to change first.

    text: the change in words; empty where nothing is advised
    advised: the changes that the text names, each in its parts, the best first
    has_effect: whether the text says whom one still finds after it
    """

    text: str = ""
    advised: tuple[PartsOfChange, ...] = ()
    has_effect: bool = False


def _advise_change(
    case: ExaminedRelease, measure: RecordMeasure, found: Integers, units: Units | None = None
) -> AdvisedChange:
    """Advise which variable to change first: by a study of what an intruder knows, else of the kept ones that a measure
    matches on that without which fewest of those ``found`` stay alone. Nothing where nothing kept is matched.

    found: the records that are found, or the ``units`` where these are given
    """
    if not measure.is_matching:
        return AdvisedChange()
    first = next((one for one in case.measured_rows if one.measure == COARSEN_FIRST and one.value is not None), None)
    if first is not None:
        text = fill_sentence(sentences.COARSEN_FIRST, variable=first.target, value=first.value)
        return AdvisedChange(text, _changes_of_column(first.target), has_effect=True)
    names, _ = matched_variables(case.recipe, measure.position)
    kept = [name for name in names if name in case.plan.kept]
    if not kept:
        return AdvisedChange()
    if len(kept) < 2 or len(found) < 2 or len(case.confidential) > MOST_FOR_LEVERS:
        shown = kept[:MOST_TO_CHOOSE]
        text = fill_sentence(sentences.COARSEN_KEPT, names=shown)
        return AdvisedChange(text, tuple(one for name in shown for one in _changes_of_column(name)))
    alone = {name: alone_with_columns(case, [one for one in kept if one != name], units)[found] for name in kept}
    left = sorted((int(still.sum()), name) for name, still in alone.items())
    noun = case.record_noun if units is None else case.unit_noun
    # What helps only together with another is advised where nothing helps alone.
    useful = [name for number, name in left if number < len(found)] or [name for _, name in left]
    advised = tuple(one for name in useful for one in _changes_of_column(name))
    if left[0][0] == len(found):
        text = fill_sentence(
            sentences.COARSEN_KEPT_TOGETHER, names=first_names([name for _, name in left]), people=len(found), noun=noun
        )
        return AdvisedChange(text, advised, has_effect=True)
    others = "".join(
        fill_sentence(sentences.COARSEN_KEPT_NEXT, variable=name, left=number)
        if number < len(found)
        else fill_sentence(sentences.COARSEN_KEPT_USELESS, variable=name)
        for number, name in left[1:MOST_TO_CHOOSE]
    )
    text = fill_sentence(
        sentences.COARSEN_KEPT_BEST,
        variable=left[0][1],
        left=left[0][0],
        people=len(found),
        noun=noun,
        others=others,
    )
    return AdvisedChange(text, advised, has_effect=True)


def _changes_of_column(name: str) -> tuple[PartsOfChange, ...]:
    """Return the changes that make a column artificial or coarser, the strongest first."""
    kinds: tuple[ChangeKind, ...] = ("synthesise", "join", "coarsen")
    return tuple(parts_of_change([(kind, (name,))]) for kind in kinds)


def _equals_text(probability: Floats) -> str:
    """Return how many others are found as surely as the one who is named; empty for none.

    probability: of those above one half, (k,)
    """
    # The list of the people most at risk has them in its own order: the one who is named may not be among its first.
    others = int(np.count_nonzero(probability == probability.max())) - 1 if len(probability) else 0
    return fill_sentence(sentences.AS_SURELY, number=others) if others > 0 else ""


def _how_surely_text(probability: Floats) -> str:
    """Describe how surely people are found whose probability (k,) is above one half, and how many of them for certain."""
    certain = len(probability) - int(np.count_nonzero(is_below(probability, 1.0)))
    if certain and certain == len(probability):
        return sentences.NAMED_FOR_CERTAIN
    of_them = fill_sentence(sentences.CERTAIN_OF_NAMED, certain=certain) if certain else ""
    return fill_sentence(sentences.NAMED_BY_INTRUDER, certain=of_them)


def _units_alone_text(case: ExaminedRelease, number: int) -> str:
    """Describe how many units are alone in the kept columns, and whether the check of these columns counts them."""
    if kept_columns_of_release(case).is_by_unit:
        return fill_sentence(sentences.UNITS_ALONE_WITH_KEPT, number=number, rows=case.record_noun)
    return fill_sentence(sentences.UNITS_ALONE_UNSEEN, number=number, rows=case.record_noun, units=case.unit_noun)


def _result_of_units(case: ExaminedRelease, measure: RecordMeasure, units: Units, risk_of_unit: Floats) -> CheckResult:
    """Return the result for the unit most at risk by one measure; ``risk_of_unit`` (n,) is that of each record's unit.

    An intruder who knows all people of a household finds it where each of them alone has doubles.
    """
    probability = risk_of_unit[units.first_records]
    asked = ~np.isnan(probability)
    if not asked.any():
        return CheckResult(fill_sentence(sentences.RECORD_NOT_ASKED, method=method_title(measure.key)))
    worst, likely = int(np.nanargmax(probability)), np.flatnonzero(is_above(probability, LIKELY))
    highest, few = float(probability[worst]), case.is_synthetic and len(measure.draw_hashes) < 2
    alone = units_alone_with_kept(case, units) & asked
    others = probability[asked & ~alone]
    other = float(others.max()) if len(others) else 0.0
    judged = max(other, min(highest, UNMEASURED_RISK))
    policy = case.policy.findings.get("worst_records")
    strict = policy is not None and policy.block is not None
    looked = is_above(judged, SURE) and not (few or strict)
    chance = compare_with_wrong_unit_matches(case, measure, units, probability) if looked else None
    is_chance = chance is not None and chance.p_value > CONTENT_LEVEL
    count = int(alone[likely].sum())
    message = fill_sentence(
        sentences.WORST_UNIT,
        method=method_title(measure.key),
        unit=singular_noun(case.unit_noun),
        number=worst + 1,
        record=int(units.first_records[worst]) + 1,
        equals=_equals_text(probability[likely]),
        probability=highest,
        datasets=len(measure.draw_hashes),
        likely_units=len(likely),
        asked=int(asked.sum()),
        units=case.unit_noun,
        likely=LIKELY,
        one_dataset=sentences.CHANCE_OF_ONE_DATASET if few else "",
        matches=""
        if chance is None
        else fill_sentence(
            sentences.WRONG_UNIT_MATCHES,
            units=case.unit_noun,
            own=chance.own,
            sure=SURE,
            wrong=chance.wrong,
            p=chance.p_value,
            chance=sentences.MAY_BE_CHANCE if is_chance else "",
        ),
        compared=fill_sentence(
            sentences.UNITS_COMPARED_LESS,
            above=sentences.ABOVE if judged == UNMEASURED_RISK else "",
            compared=judged,
            highest=highest,
            units=case.unit_noun,
            others=other,
        )
        if judged < highest and alone.any()
        else "",
        alone=_units_alone_text(case, count) if count else "",
    )
    advice = _advise_change(case, measure, likely, units)
    return CheckResult(
        message,
        highest,
        None,
        judged,
        records=record_numbers(np.sort(units.records_of(likely if len(likely) else np.array([worst])))),
        at_most="warn" if few or is_chance else "block",
        headline=_found_by_text(case, measure, all_alone=count == len(likely), is_unit=True) if len(likely) else "",
        counted=_how_surely_text(probability[likely]) if measure.is_matching else "",
        learned=_learned_text(case, measure),
        change=advice.text,
        advised=advice.advised,
        change_has_effect=advice.has_effect,
        leak=KEPT_KEYS if 2 * count > len(likely) and not is_above(judged, SURE) else "",
    )


def _releases_together_text(risks: RisksOverReleases) -> str:
    """Describe how many releases the risks are of; empty for one."""
    if not risks.earlier:
        return ""
    runs = ", ".join(str(release.run_id) for release, _ in risks.earlier)
    return fill_sentence(sentences.RELEASES_TOGETHER, releases=len(risks.earlier) + 1, runs=runs)


def _is_inference_compared(case: ExaminedRelease) -> bool:
    """Return whether the run compares, with enough power, what is inferred of members with what is inferred of others."""
    block = question_limits("inference", case.policy)[1]
    answers = answers_or_reason(case.measured_rows, case.recipe, "inference", block)[0]
    return any(
        (output := threshold_output(row.key)) is not None and output.risk.gate_reference == "chance" for row in answers
    )


def _record_severity(one: CheckResult) -> tuple[bool, float]:
    """Return the sorting key of a result: one that may block and is above the limit comes before others, then the
    larger value.
    """
    return one.at_most == "block" and is_above(one.compared_value, LIKELY), one.compared_value


def _inference_result(key: str, risk: RecordRisk) -> CheckResult:
    """Return the result for inferred values of single records, which never blocks.

    The probability is beyond the measure's own prior guess, as a share of what that leaves; without a prior it is the
    measured one.
    """
    probability, prior = risk.probability, risk.prior
    if prior is not None:
        measured = probability

        def beyond_prior(rows: slice) -> Floats:
            """Return the probability beyond the prior of some records, as a share of what that leaves."""
            own = prior[rows]
            return np.divide(measured[rows] - own, 1 - own, out=np.zeros(len(own)), where=own < 1)

        probability = compute_column(len(prior), np.float64, beyond_prior)
    record, likely = largest_of_records(probability)[0], records_above(probability, LIKELY)
    message = fill_sentence(
        sentences.INFERRED_RECORD,
        method=method_title(key),
        record=record + 1,
        probability=float(probability[record]),
        beyond="" if prior is None else sentences.BEYOND_A_GUESS,
        likely_records=len(likely),
        asked=int(risk.is_examined.sum()),
        likely=LIKELY,
    )
    return CheckResult(message, float(probability[record]), records=record_numbers(likely) or (record,), at_most="warn")


def _add_inference(worst: CheckResult | None, inferred: CheckResult | None) -> CheckResult | None:
    """Add inferred values to the result for the record most at risk.

    They raise its compared value to just above ``LIKELY`` at most, and never lower it.
    """
    if worst is None or inferred is None:
        return worst or inferred
    judged = max(worst.compared_value, min(inferred.compared_value, UNMEASURED_RISK))
    why = ""
    if judged < inferred.compared_value and judged > worst.compared_value:
        why = fill_sentence(sentences.INFERENCE_COUNTS_LESS, inferred=inferred.compared_value, likely=LIKELY)
    message = fill_sentence(sentences.INFERENCE_ADDED, message=worst.message, inferred=inferred.message, why=why)
    return replace(worst, message=message, adjusted_value=judged)


def _intruder_beliefs(case: ExaminedRelease) -> list[MeasureBeliefs]:
    """Read what intruders who know all other records believe, by measure of the run."""
    run_id = case.plan.run.id
    return [read_beliefs(case.workspace, run_id, one) for one in belief_measures(case.workspace, run_id)]


def _strongest_not_tried_text(recipe: Recipe) -> str:
    """Return that no measure asked an intruder who knows all other records, and what to add to the recipe."""
    titles = [method.title for method in list_declarations().values() if method.has_beliefs]
    made = dict.fromkeys(
        step.method.title for step in recipe.synthesis if step.method.synthesis.release_model.make_model is None
    )
    remedy = (
        fill_sentence(sentences.DRAW_OTHERWISE, titles=titles, made=made)
        if made
        else fill_sentence(sentences.ADD_MEASURE, titles=titles)
    )
    return fill_sentence(sentences.STRONGEST_NOT_TRIED, remedy=remedy)


def _check_newly_certain(case: ExaminedRelease) -> CheckResult:
    """Check how many truths become nearly certain to an intruder who knows all other records."""
    worst: CheckResult | None = None
    for found in _intruder_beliefs(case):
        newly = found.newly_certain
        share = float(newly.mean())
        message = fill_sentence(
            sentences.NEWLY_CERTAIN,
            method=method_title(found.key),
            measure=found.measure_text,
            attacked=found.attacked_text,
            newly=int(newly.sum()),
            certain=found.certain_from,
        )
        records = record_numbers(np.sort(found.record_numbers[newly] - 1))
        one = CheckResult(message, share, records=records)
        worst = one if worst is None or one.compared_value > worst.compared_value else worst
    if worst is None:
        raise NotComputable(_strongest_not_tried_text(case.recipe))
    return _warn_of_earlier_releases(case, worst)


def _warn_of_earlier_releases(case: ExaminedRelease, result: CheckResult) -> CheckResult:
    """Return the result, which at least warns where there are earlier releases of the same people."""
    if not case.same_people_releases:
        return result
    message = fill_sentence(
        sentences.EARLIER_NOT_COUNTED, message=result.message, releases=len(case.same_people_releases)
    )
    return replace(result, message=message, at_least="warn")


def _check_guessed_beyond_prior(case: ExaminedRelease) -> CheckResult:
    """Check how many more records are guessed right once the release is known than before."""
    asked = _intruder_beliefs(case)
    if not asked:
        raise NotComputable(_strongest_not_tried_text(case.recipe))
    # Beyond a prior that knows nothing everything looks learned from the release.
    informed = [found for found in asked if found.is_informed]
    if not informed:
        raise NotComputable(sentences.PRIOR_KNOWS_NOTHING)
    worst: CheckResult | None = None
    for found in informed:
        after, before = found.right_after.value or 0.0, found.right_before.value or 0.0
        sure = after if found.right_after.lower is None else found.right_after.lower
        beyond = (after - before) / (1 - before) if before < 1 else 0.0
        message = fill_sentence(
            sentences.GUESSED_RIGHT,
            method=method_title(found.key),
            measure=found.measure_text,
            attacked=found.attacked_text,
            after=after,
            before=before,
        )
        one = CheckResult(message, after, before, beyond, at_most="block" if is_above(sure, before) else "warn")
        worst = one if worst is None or one.compared_value > worst.compared_value else worst
    assert worst is not None
    return _warn_of_earlier_releases(case, worst)


PEOPLE_CHECKS = (
    GateCheck(
        "worst_records", "the record that is most at risk", "probability", LIKELY, SURE,
        "above 0.5 an intruder is more often right than wrong; above 0.9 over all datasets it blocks, unless the rows of other people with the same unchanged "
        "values match as often",
        "make coarser or synthesise the columns by which people are found; Records shows these people", _check_worst_records,
        "the largest risk of a record: El Emam (2013); Reiter & Mitra (2009)",
    ),
    GateCheck(
        "newly_certain", "values that can be inferred almost for sure", "share of the people asked about", 0.0, 0.01,
        "whoever knows all other records is sure of these; few people know so much, so that single records warn, and more than one in a hundred "
        "block; a choice of ours; no rule of the field has a number",
        "look at them in Records, then take models that smooth more, or fewer datasets", _check_newly_certain,
        "an intruder who knows all records but one: Reiter, Wang & Zhang, §2", intruder="holder",
        learned="Their true values become nearly certain.",
    ),
    GateCheck(
        "guessed_beyond_prior", "records guessed better than without the release", "excess (0 by chance, 1 for certain)", 0.05, 0.2,
        "a release shall teach of people, not of this person: this is the share of the records guessed wrong before that are guessed right now; a "
        "choice of ours; no rule of the field has a number",
        "take models that smooth more, or fewer datasets; the screen of the strongest intruder shows what each dataset adds", _check_guessed_beyond_prior,
        "R and PR: Reiter, Wang & Zhang, eq. 2 and 13; excess risk: Giomi et al. (2023)", intruder="holder",
        learned="Their values are guessed right, which was not possible before.",
    ),
    GateCheck(
        KEPT_KEYS, "people found by columns released unchanged", "share of the people", 0, 0,
        "whoever knows these columns of a person finds the row; the limits follow from the audience of the release",
        "make the columns coarser ([release] recode), synthesise them: replace them by artificial values ([[synthesis]]), or leave them out; or release them to fewer users ([release] audience)",
        _check_kept_keys, "limits of the audience: sfumato policy",
    ),
    GateCheck(
        "membership_evidence", "people shown to be in the data", "people beyond what hold-out records show", 0, FEWEST - 1,
        "a release that depends on no single person finds members no more often than hold-out people, by whatever way of looking; all ways are one test",
        f"{FOLLOW_LESS}; then fewer datasets",
        _check_membership_evidence,
        "identical matches against a hold-out: Platzer & Reutterer (2021); agreement weights: Fellegi & Sunter (1969); permutation test: Fisher (1935), Besag & Clifford (1991)",
        counts_units=True, learned=sentences.MEMBERS_LEARNED,
    ),
    GateCheck(
        "own_values", "records whose own row says what is drawn", "people beyond those of the same kept values", 0, FEWEST - 1,
        "an artificial value that the record's own row has more often than rows of the same kept values is remembered, not inferred from what is kept",
        FOLLOW_LESS, _check_own_values,
        "permutation test: Fisher (1935), Besag & Clifford (1991)", counts_units=True,
        learned="Their own row then shows their true values of the drawn variables.",
    ),
    GateCheck(
        "unanimous_classes", "classes in which everybody has the same sensitive value", "excess (0 as for similar people, 1 for all)", 0.05, 0.2,
        "k hides the row of a person and not what all rows of the class say",
        "l_diversity or t_closeness beside k in [[anonymisation]], or a larger k", _check_unanimous_classes, "homogeneity: Machanavajjhala et al. (2007)",
        learned="Whoever knows the quasi-identifiers of one of them reads the sensitive value.",
    ),
)  # fmt: skip
