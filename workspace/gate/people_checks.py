"""The gate's checks of people: who can be found in a release, what it shows of them, and how probably each is given away.

What a release shows of people is compared with the hold-out records of its run. Without a hold-out only rows that are copied whole can
convince; else the check was not made.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

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
from sfumato.engine.adversary.people import mark_cells
from sfumato.engine.adversary.unanimous import find_homogeneous_classes, nearest_members
from sfumato.engine.data.schema import Role
from sfumato.engine.errors import NotComputable
from sfumato.engine.execution.record_risk import RecordRisk
from sfumato.engine.methods.registry import find_method
from sfumato.engine.partition.equivalence_classes import equivalence_classes
from sfumato.engine.recipe.thresholds import threshold_output
from sfumato.engine.statistics.comparing import is_above
from sfumato.engine.wording import agreeing_word, count_noun, format_number, format_percent, join_names

from ..reporting.beliefs import MeasureBeliefs
from ..reporting.questions import answers_or_reason
from ..views.beliefs import belief_measures, read_beliefs
from ..views.records import RecordMeasure, read_confidential_risks, read_record_risks, record_measures
from .checks import (
    KEPT_KEYS,
    PROTECTED_BY_CLASSES,
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
from .joint import JointTable
from .kept_columns import MOST_NAMED, KeptColumns, declared_sampling_fraction, kept_columns_of_release
from .questions import only_infers_values, question_limits
from .record_risks import (
    LIKELY,
    SURE,
    UNMEASURED_RISK,
    RisksOverReleases,
    compare_with_wrong_matches,
    risks_over_releases,
    unique_on_kept_columns,
)

FEWEST = 5
"""People beyond chance from which a finding may block."""
MOST_OF_THE_FOUND, MOST_OF_THE_PEOPLE = 0.6, 0.2
"""A finding blocks where so much of who is found, or of all people, is surely found for being a member."""
MOST_IN_OWN_ROWS = 0.5
"""And where so much of those who have their own values in their own rows do for the rows being theirs."""
NO_HOLDOUT = "no record was held out of the run, so that nothing shows whom a release finds that never saw them; hold out some under [data]"
MOST_LEVERS = 3
NOT_MEASURED = (
    "the strongest intruder was not asked: no measure of the run tells what one who knows all other records believes"
)


def _check_kept_keys(case: ExaminedRelease) -> CheckResult:
    kept = kept_columns_of_release(case)
    n, noun = len(kept.sizes.sizes), case.record_noun
    limits = kept.deciding_limits
    if not case.is_synthetic and set(kept.names) <= set(case.quasi_identifiers) and limits.average_risk is None:
        raise CheckNotApplicable("small_classes looks at the quasi-identifiers of an anonymised table")
    if not kept.names and not kept.other_names:
        return CheckResult("no column is released unchanged", 0.0, people=0)
    limit = limits.smallest_class or case.policy.smallest_cell
    over = kept.sizes.records_below(limit) if kept.names else np.zeros(0, dtype=np.int64)
    how = (
        "released unchanged"
        if set(kept.names) <= set(case.plan.unchanged_variables)
        else "released unchanged or by public rules"
    )
    if not case.is_synthetic:
        how = "as released"
    message = f"no column that counts for this audience ({kept.audience}) is released unchanged"
    if kept.names:
        finds = kept.sizes.expected_reidentifications
        message = (
            f"{len(over):,} of {n:,} {noun} ({format_percent(len(over) / n)}) share their values of {kept.columns_text}, {how}, with fewer than "
            f"{limit - 1} others; {kept.sizes.n_unique:,} share theirs with nobody; an intruder who picks a matching row for each finds {format_number(finds)} on "
            f"average ({format_percent(finds / n)})"
        )
        if (fraction := declared_sampling_fraction(case)) is not None:
            message += f", {format_number(kept.sizes.population_reidentifications(fraction))} without knowing who of the population is in the file"
    if kept.is_blocking:
        message += _changes_text(kept)
    elif kept.n_found_by_all:
        message += (
            f"; who also knows {join_names(kept.other_names)} finds {kept.n_found_by_all:,} in classes of fewer than {limit}: judge whether "
            f"this audience can know these columns"
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
        headline=f"can be found by {kept.columns_text or join_names(kept.other_names)}, {how}{_learned_text(case)}",
    )


def _learned_text(case: ExaminedRelease) -> str:
    """Return what the row of a person who is found shows in addition: true sensitive values, or drawn ones."""
    schema = case.recipe.schema
    true = [name for name in case.plan.kept if schema[name].role is Role.SENSITIVE]
    if true:
        return f"; the row then shows their true {join_names(true[:MOST_NAMED])}"
    if case.is_synthetic and case.plan.replaced:
        drawn = join_names(case.plan.replaced[:MOST_NAMED])
        return f"; what the row then shows of {drawn} is drawn"
    return ""


def _changes_text(kept: KeptColumns) -> str:
    """Return what single changes leave over, and which changes together protect everybody."""
    if not kept.single_changes:
        return ""
    single = "; ".join(
        f"{lever.description}: {lever.n_unprotected:,} left" for lever in kept.single_changes[:MOST_LEVERS]
    )
    together = f". Together: {kept.combined_changes_text}" if kept.combined_changes_text else ""
    return f". Single changes: {single}{together}"


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
    """Return whether so many people, and so much of what is found, are surely found for being members that it may block.

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
    """Return whether so many people, and so much of what is found, are in their own rows that it may block."""
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
        raise CheckNotApplicable(PROTECTED_BY_CLASSES)
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


def _check_own_values(case: ExaminedRelease) -> CheckResult:
    """Compare what a record's own row shows of drawn values with the rows of people who have the same kept values."""
    kept, drawn = _kept_variables(case), _drawn_variables(case)
    if not case.is_synthetic:
        raise CheckNotApplicable(PROTECTED_BY_CLASSES)
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


def _check_worst_records(case: ExaminedRelease) -> CheckResult:
    """Find the record most at risk from an intruder who knows some of it; one who knows all others has checks of its own.

    What is inferred of a record may be so of people in general, and right with certainty of most: of others who are like the record the
    same
    would be inferred. A method whose measures answer inference alone therefore only warns, beyond how probable the value was anyway
    where it
    tells (a part ``prior``). One with controls is compared by its excess elsewhere.
    """
    worst: CheckResult | None = None
    inferred: CheckResult | None = None
    everybody = False
    for measure in record_measures(case.workspace, case.plan.run.id):
        method = find_method(measure.key, "method")
        if method.measurement.refits:  # the question that it answers has a check of its own
            continue
        risk = read_record_risks(case.workspace, measure)
        asked = int(risk.is_examined.sum())
        if not asked or (
            risk.prior is not None and (method.measurement.controls or method.measurement.beliefs is not None)
        ):
            continue
        # a suppressed record is not asked about, nor released
        everybody |= asked == len(risk) or not case.is_synthetic
        if method.record_array("prior") is not None or only_infers_values(method):
            one = _inference_result(measure.key, risk)
            inferred = one if inferred is None or one.compared_value > inferred.compared_value else inferred
            continue
        scored = read_confidential_risks(case.workspace, measure)
        own = None if scored is None else float(np.nanmax(scored.probability))
        for together in risks_over_releases(case, measure, risk.probability):
            one = _result_of_measure(case, measure, together, own)
            worst = one if worst is None or _record_severity(one) > _record_severity(worst) else worst
    if inferred is not None and _is_inference_compared(case):
        # what is inferred of fresh people too is no finding about these: the excess over them is, and inference_excess judges it
        inferred = replace(
            inferred,
            message=f"{inferred.message}; inference_excess judges what is so of these people alone",
            adjusted_value=0.0,
        )
    if worst is None or (inferred is not None and (inferred.value or 0.0) > max(LIKELY, worst.compared_value)):
        worst = _add_inference(worst, inferred)
    if worst is not None and not everybody:
        said = (
            f"{worst.message}; no measure asked about all records: the gate takes the others to be given away with more than {LIKELY:g}, since "
            "they are not known to be safer"
        )
        return replace(worst, message=said, adjusted_value=max(worst.compared_value, UNMEASURED_RISK))
    if worst is None:
        raise NotComputable("no measure of the run says anything of single records")
    return worst


def _result_of_measure(
    case: ExaminedRelease, measure: RecordMeasure, risks: RisksOverReleases, baseline_risk: float | None
) -> CheckResult:
    key = measure.key
    asked = ~np.isnan(risks.probability)
    if not asked.any():
        return CheckResult(f"{key}: no record was asked about in all releases")
    record = int(np.nanargmax(risks.probability))
    highest, likely = float(risks.probability[record]), np.flatnonzero(is_above(risks.probability, LIKELY))
    few = case.is_synthetic and risks.n_datasets < 2
    # whoever knows keys that stay and that nobody shares finds the row, whatever was drawn: own_values asks whether the drawn part says more
    alone = unique_on_kept_columns(case) & asked
    others, count_alone = risks.probability[asked & ~alone], int(alone.sum())
    judged = max(float(others.max()) if len(others) else 0.0, min(highest, UNMEASURED_RISK))
    policy = case.policy.findings.get("worst_records")
    strict = policy is not None and policy.block is not None  # an office's own limit holds, whatever chance does
    looked = is_above(judged, SURE) and not (few or strict)
    chance = compare_with_wrong_matches(case, measure, risks) if looked else None
    said = (
        f"{key}: record {record + 1} is given away with probability {highest:.3g} over {count_noun(risks.n_datasets, 'dataset')}, and "
        f"{len(likely):,} of {int(asked.sum()):,} with more than {LIKELY:g}"
    ) + ("; of one dataset it may be chance" if few else "")
    if chance is not None:
        said += (
            f"; among people who have all that is kept in common, {chance.own:,} {agreeing_word(chance.own, 'is', 'are')} found with more than {SURE:g}, and "
            f"{chance.wrong:.3g} would be if their rows were dealt among them at random (p = {chance.p_value:.2g})"
        ) + (": it may be chance" if chance.p_value > CONTENT_LEVEL else "")
    if judged < highest and count_alone:
        said += (
            f"; the gate compares {format_number(judged)} and not {format_number(highest)}: whoever is found by columns that stay is counted by {KEPT_KEYS}, "
            f"and nobody else is given away with more than {format_number(float(others.max()) if len(others) else 0.0)}"
        )
    if risks.earlier:
        runs = ", ".join(str(release.run_id) for release, _ in risks.earlier)
        said += f" ({len(risks.earlier) + 1} releases together, this one and {runs} before)"
    if count := int(alone[likely].sum()):
        said += f"; {count:,} of them {agreeing_word(count, 'is', 'are')} alone with the columns that stay, and found by these whatever is drawn"
    # Whoever is alone with kept columns is part of the finding on these, which decides whether the release may leave. People who are not
    # alone and are found all the same are no part of it: a waiver of the kept columns must not cover them.
    leak = KEPT_KEYS if 2 * count > len(likely) and not is_above(judged, SURE) else ""
    by_chance = few or (chance is not None and chance.p_value > CONTENT_LEVEL)
    return CheckResult(
        said,
        highest,
        baseline_risk,
        judged,
        records=record_numbers(likely) or (record,),
        at_most="warn" if by_chance else "block",
        leak=leak,
    )


def _is_inference_compared(case: ExaminedRelease) -> bool:
    """Return whether a measure of the run compares what is inferred of members with what is inferred of other people, with enough power."""
    block = question_limits("inference", case.policy)[1]
    answers = answers_or_reason(case.measured_rows, case.recipe, "inference", block)[0]
    return any(
        (output := threshold_output(row.key)) is not None and output.risk.gate_reference == "chance" for row in answers
    )


def _record_severity(one: CheckResult) -> tuple[bool, float]:
    """Return a sorting key: what may block before what only warns, where it is above the limit from which on it warns."""
    return one.at_most == "block" and is_above(one.compared_value, LIKELY), one.compared_value


def _inference_result(key: str, risk: RecordRisk) -> CheckResult:
    """Return the result of inferred values of single records, beyond a guess at everybody; as measured where no measure has that guess."""
    probability, prior = risk.probability, risk.prior
    if prior is not None:
        probability = np.divide(probability - prior, 1 - prior, out=np.zeros(len(prior)), where=prior < 1)
    record, likely = int(np.nanargmax(probability)), np.flatnonzero(is_above(probability, LIKELY))
    beyond = "" if prior is None else ", beyond a guess at everybody"
    said = (
        f"{key}: the value of record {record + 1} is inferred with probability {float(probability[record]):.3g}{beyond}, and of {len(likely):,} of "
        f"{int(risk.is_examined.sum()):,} with more than {LIKELY:g}; it may be so of people in general"
    )
    return CheckResult(said, float(probability[record]), records=record_numbers(likely) or (record,), at_most="warn")


def _add_inference(worst: CheckResult | None, inferred: CheckResult | None) -> CheckResult | None:
    """Return the result for the record most at risk with inferred values added: they warn, and take nothing away from its compared value."""
    if worst is None or inferred is None:
        return worst or inferred
    judged = max(worst.compared_value, min(inferred.compared_value, UNMEASURED_RISK))
    why = ""
    if judged < inferred.compared_value and judged > worst.compared_value:
        why = f": the gate counts {format_number(inferred.compared_value)} as just above {LIKELY:g}, which is to be judged and never blocks"
    return replace(worst, message=f"{worst.message}. {inferred.message}{why}", adjusted_value=judged)


def _intruder_beliefs(case: ExaminedRelease) -> list[MeasureBeliefs]:
    run_id = case.plan.run.id
    return [read_beliefs(case.workspace, run_id, one) for one in belief_measures(case.workspace, run_id)]


def _check_newly_certain(case: ExaminedRelease) -> CheckResult:
    worst: CheckResult | None = None
    for found in _intruder_beliefs(case):
        newly = found.newly_certain
        share = float(newly.mean())
        said = (
            f"{found.key} ({found.measure_text}): of {found.attacked_text} the truth of {int(newly.sum()):,} has a probability of {found.certain_from:g} or more "
            "once the release is known, and had less before"
        )
        records = record_numbers(np.sort(found.record_numbers[newly] - 1))
        one = CheckResult(said, share, records=records)
        worst = one if worst is None or one.compared_value > worst.compared_value else worst
    if worst is None:
        raise NotComputable(NOT_MEASURED)
    return _warn_of_earlier_releases(case, worst)


def _warn_of_earlier_releases(case: ExaminedRelease, result: CheckResult) -> CheckResult:
    """Return the result, which at least warns where there are earlier releases: no number says what this intruder learns from all together."""
    if not case.same_people_releases:
        return result
    alone = f"this release alone; with the {count_noun(len(case.same_people_releases), 'earlier release')} of these people the intruder learns more"
    return replace(result, message=f"{result.message}; {alone}", at_least="warn")


def _check_guessed_beyond_prior(case: ExaminedRelease) -> CheckResult:
    asked = _intruder_beliefs(case)
    if not asked:
        raise NotComputable(NOT_MEASURED)
    informed = [found for found in asked if found.is_informed]
    if not informed:
        raise NotComputable(
            "the strongest intruder was asked only with a prior that knows nothing, so that nobody knows what the release adds; measure "
            "it with a prior of the models too"
        )
    worst: CheckResult | None = None
    for found in informed:
        after, before = found.right_after.value or 0.0, found.right_before.value or 0.0
        sure = after if found.right_after.lower is None else found.right_after.lower
        beyond = (after - before) / (1 - before) if before < 1 else 0.0
        said = f"{found.key} ({found.measure_text}): of {found.attacked_text} a share of {after:.4g} is guessed right once the release is known, {before:.4g} before"
        one = CheckResult(said, after, before, beyond, at_most="block" if is_above(sure, before) else "warn")
        worst = one if worst is None or one.compared_value > worst.compared_value else worst
    assert worst is not None
    return _warn_of_earlier_releases(case, worst)


PEOPLE_CHECKS = (
    GateCheck(
        "worst_records", "the record that is most at risk", "probability", LIKELY, SURE,
        "above one half an intruder is more often right than wrong; nine in ten over all datasets blocks, unless people with the same kept values are found in "
        "each other's rows as often",
        "look at the record (Records, or sfumato records RUN), then change what drives its risk", _check_worst_records,
        "the largest risk of a record: El Emam (2013); Reiter & Mitra (2009)",
    ),
    GateCheck(
        "newly_certain", "truths that the release makes nearly certain", "share of the people asked about", 0.0, 0.01,
        "whoever knows all other records is sure of these; few people know so much, so that single records warn, and more than one in a hundred "
        "block; a choice of ours; no rule of the field has a number",
        "look at them (Records, or sfumato records RUN), then take models that smooth more, or fewer datasets", _check_newly_certain,
        "an intruder who knows all records but one: Reiter, Wang & Zhang, §2", intruder="holder",
    ),
    GateCheck(
        "guessed_beyond_prior", "records guessed right beyond what was believed before", "excess (0 by chance, 1 for certain)", 0.05, 0.2,
        "a release shall teach of people, not of this person: this is the share of the records guessed wrong before that are guessed right now; a "
        "choice of ours; no rule of the field has a number",
        "take models that smooth more, or fewer datasets; the screen of the strongest intruder shows what each dataset adds", _check_guessed_beyond_prior,
        "R and PR: Reiter, Wang & Zhang, eq. 2 and 13; excess risk: Giomi et al. (2023)", intruder="holder",
    ),
    GateCheck(
        KEPT_KEYS, "people who can be found by columns that are released unchanged", "share of the people", 0, 0,
        "whoever knows these columns of a person finds the row; the limits follow from the audience of the release",
        "make the columns coarser ([release] recode), list them as targets of [[synthesis]], or leave them out; or release them to fewer users ([release] audience)",
        _check_kept_keys, "limits of the audience: sfumato policy",
    ),
    GateCheck(
        "membership_evidence", "people who are found for being in the data", "people beyond what hold-out records show", 0, FEWEST - 1,
        "a release that depends on no single person finds members no more often than hold-out people, by whatever way of looking; all ways are one test",
        "larger leaves (minbucket of [[synthesis]]), smoothing = true for numbers, a model instead of donors, or a smaller m under [release]",
        _check_membership_evidence,
        "identical matches against a hold-out: Platzer & Reutterer (2021); agreement weights: Fellegi & Sunter (1969); permutation test: Fisher (1935), Besag & Clifford (1991)",
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
)  # fmt: skip
