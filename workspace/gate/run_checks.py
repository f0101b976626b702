"""The gate's checks of the measures of a run, and of how it was made."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass, replace
from itertools import chain, repeat

import numpy as np
from numpy.typing import NDArray

from sfumato.engine.adversary.cells import count_occurrences, row_keys
from sfumato.engine.adversary.evidence import CONTENT_LEVEL
from sfumato.engine.data.arrays import Floats
from sfumato.engine.data.microdata import Microdata
from sfumato.engine.errors import NotComputable
from sfumato.engine.execution.record_risk import RecordRisk, matched_variables
from sfumato.engine.execution.wrong_matches import WrongMatches, count_wrong_matches
from sfumato.engine.methods.labels import labels_of
from sfumato.engine.methods.outputs import Output
from sfumato.engine.methods.registry import Method, find_method, method_by_key
from sfumato.engine.methods.rows import Row, exact_series
from sfumato.engine.recipe.thresholds import threshold_output
from sfumato.engine.statistics.comparing import distance, is_above
from sfumato.engine.statistics.estimated import Estimated, difference
from sfumato.engine.wording import agreeing_word, count_noun, format_number

from ..reporting.beliefs import MeasureBeliefs
from ..reporting.questions import answers_or_reason
from ..reporting.words import thresholds_text
from ..store.artefacts import read_released_dataset
from ..views.beliefs import belief_measures, read_beliefs
from ..views.records import RecordMeasure, read_confidential_risks, read_record_risks, record_measures
from ..views.results import read_diagnostics
from .checks import KEPT_KEYS, CheckNotApplicable, CheckResult, ExaminedRelease, GateCheck, Status, record_numbers
from .earlier import MeasuredRecordRisks, ReleasedData, best_candidate_counts, candidate_counts
from .question_checks import question_limits

LIKELY = 0.5
"""From this probability on a record counts as one of the worst."""
SURE = 0.9
"""Above this probability, over all datasets, a record blocks where it is not chance and no policy says otherwise."""
UNMEASURED_RISK = LIKELY + 1e-11
"""Assumed risk of a record that no measure examined: above ``LIKELY`` by more than rounding."""
NOT_MEASURED = (
    "the strongest intruder was not asked: no measure of the run tells what one who knows all other records believes"
)


def _average_rows(case: ExaminedRelease) -> list[Row]:
    """Return the averages over the datasets, outside sweeps."""
    return [row for row in case.measured_rows if row.draw is None and row.level is None]


def _count_measures(case: ExaminedRelease, families: tuple[str, ...], what: str) -> CheckResult:
    rows = [row for row in _average_rows(case) if row.family in families and row.dataset != "confidential"]
    keys = sorted({row.method_key for row in rows if row.value is not None})
    computed = [key for key in keys if (method := method_by_key(key)) is None or not method.spec.implied]
    said = f"measured: {', '.join(computed)}" if computed else f"the run has no computed measure of {what}"
    return CheckResult(said, len(computed))


def _check_risk_measured(case: ExaminedRelease) -> CheckResult:
    return _count_measures(case, ("risk",), "disclosure risk")


def _check_utility_measured(case: ExaminedRelease) -> CheckResult:
    return _count_measures(case, ("utility", "quality"), "utility or data quality")


def _check_unmet_thresholds(case: ExaminedRelease) -> CheckResult:
    unmet, verdicts = case.plan.unmet_verdicts, case.plan.verdicts
    if not verdicts:
        raise NotComputable("the recipe sets no threshold")
    if not unmet:
        return CheckResult(f"run {case.plan.run.id}: {thresholds_text(verdicts)}", 0)
    named = "; ".join(f"{name}: {one.outcome}" for one, name in zip(unmet, labels_of(unmet), strict=True))
    said = f"run {case.plan.run.id}: {thresholds_text(verdicts)} ({named})"
    decided = any(one.outcome != "undecided" for one in unmet)
    return CheckResult(said, len(unmet), at_most="block" if decided else "warn")


def _check_thresholds_set(case: ExaminedRelease) -> CheckResult:
    count = len(case.plan.verdicts)
    return CheckResult(
        f"the recipe sets {count_noun(count, 'threshold')}"
        if count
        else "the recipe sets no threshold: nothing was judged by it",
        count,
    )


def _check_exposed_variables(case: ExaminedRelease) -> CheckResult:
    if not case.is_synthetic:
        raise CheckNotApplicable("an anonymised table keeps its sensitive variables")
    exposed = case.plan.exposed_variables
    if not exposed:
        return CheckResult("no sensitive variable of a synthetic release is kept", 0)
    said = f"sensitive variables would be released unchanged ({', '.join(exposed)})"
    return CheckResult(said, len(exposed))


def _check_public_key(case: ExaminedRelease) -> CheckResult:
    if not case.plan.has_public_key:
        return CheckResult("its random numbers cannot be repeated without the key of the workspace", 0)
    said = f"run {case.plan.run.id} has a public key, so that whoever has the seed can repeat its random numbers and take the datasets apart"
    return CheckResult(said, 1)


def _check_run_sealed(case: ExaminedRelease) -> CheckResult:
    said = case.plan.seal.message
    return CheckResult(
        said or "recipe, rows, verdicts and tables are what was sealed when the run ended", 1 if said else 0
    )


def _check_policy_since_run(case: ExaminedRelease) -> CheckResult:
    since = case.plan.seal.since
    return CheckResult(since or "it is examined under the policy that held when the run ended", 1 if since else 0)


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
        if method.record_array("prior") is not None or _only_infers_values(method):
            one = _inference_result(measure.key, risk)
            inferred = one if inferred is None or one.compared_value > inferred.compared_value else inferred
            continue
        scored = read_confidential_risks(case.workspace, measure)
        own = None if scored is None else float(np.nanmax(scored.probability))
        for together in _risks_over_releases(case, measure, risk.probability):
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
            f"{worst.message}; no measure asked about all records: the gate assumes that the others are disclosed with more than {LIKELY:g}, since "
            "they are not known to be safer"
        )
        return replace(worst, message=said, adjusted_value=max(worst.compared_value, UNMEASURED_RISK))
    if worst is None:
        raise NotComputable("no measure of the run says anything of single records")
    return worst


@dataclass(frozen=True, eq=False)
class _RisksOverReleases:
    """Risk of each record on average over the datasets of this release and of some earlier ones.

    probability: risk of each record, (n,)
    n_datasets: number of datasets
    earlier: the earlier releases with their risks
    """

    probability: Floats
    n_datasets: int
    earlier: tuple[tuple[ReleasedData, MeasuredRecordRisks], ...] = ()


def _risks_over_releases(
    case: ExaminedRelease, measure: RecordMeasure, probability: Floats
) -> list[_RisksOverReleases]:
    """Return the risks by a measure for this release alone, and together with earlier ones of the same records that it measured too."""
    params = json.dumps(dict(measure.params), sort_keys=True, default=str)
    alone = _RisksOverReleases(probability, len(measure.draw_hashes))
    total, datasets, earlier = (
        probability * alone.n_datasets,
        alone.n_datasets,
        list[tuple[ReleasedData, MeasuredRecordRisks]](),
    )
    seen = set(case.plan.tables)
    for one in (related.earlier for related in case.same_people_releases):
        if one.table_sha256 != case.original_dataset.table_sha256 or seen.issuperset(one.release.tables):
            continue
        for risk in one.read_risks():
            if (risk.key, risk.params) == (measure.key, params) and len(risk.probability) == len(total):
                total, datasets = total + risk.probability * risk.n_datasets, datasets + risk.n_datasets
                earlier.append((one.release, risk))
                seen.update(one.release.tables)
                break
    return [alone, _RisksOverReleases(total / datasets, datasets, tuple(earlier))] if earlier else [alone]


def _result_of_measure(
    case: ExaminedRelease, measure: RecordMeasure, risks: _RisksOverReleases, baseline_risk: float | None
) -> CheckResult:
    key = measure.key
    asked = ~np.isnan(risks.probability)
    if not asked.any():
        return CheckResult(f"{key}: no record was asked about in all releases")
    record = int(np.nanargmax(risks.probability))
    highest, likely = float(risks.probability[record]), np.flatnonzero(is_above(risks.probability, LIKELY))
    few = case.is_synthetic and risks.n_datasets < 2
    # whoever knows keys that stay and that nobody shares finds the row, whatever was drawn: own_values asks whether the drawn part says more
    alone = _unique_on_kept_columns(case) & asked
    others, count_alone = risks.probability[asked & ~alone], int(alone.sum())
    judged = max(float(others.max()) if len(others) else 0.0, min(highest, UNMEASURED_RISK))
    policy = case.policy.findings.get("worst_records")
    strict = policy is not None and policy.block is not None  # an office's own limit holds, whatever chance does
    looked = is_above(judged, SURE) and not (few or strict)
    chance = _compare_with_wrong_matches(case, measure, risks) if looked else None
    said = (
        f"{key}: record {record + 1} is disclosed with probability {highest:.3g} over {count_noun(risks.n_datasets, 'dataset')}, and "
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
            f"and no other record is disclosed with more than {format_number(float(others.max()) if len(others) else 0.0)}"
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


def _compare_with_wrong_matches(
    case: ExaminedRelease, measure: RecordMeasure, together: _RisksOverReleases
) -> WrongMatches | None:
    """Count how often people are found in the rows of others with the same kept values.

    Return None where a measure matches by another rule, or only the risks are left of an earlier release.
    """
    candidates = candidate_counts(case.workspace, measure)
    if not case.is_synthetic or candidates is None:
        return None
    best = best_candidate_counts(case.workspace, measure)
    run, kept = case.plan.run, set(case.plan.kept)
    names, radius = matched_variables(case.recipe, measure.position)
    datasets: list[Iterable[Microdata | None]] = [
        (read_released_dataset(case.workspace, run.id, case.recipe, draw, names) for draw in measure.draw_hashes)
    ]
    for release, risk in together.earlier:
        before = risk.read_candidates()
        if before is None or not set(names) <= set(release.schema.names):
            return None
        kept |= set(release.kept)
        candidates += before
        best += risk.read_best_candidates()
        datasets.append(map(release.read, range(risk.n_datasets), repeat(names)))
    groups = row_keys(
        case.confidential_cells, [name for name in case.confidential_cells if name in kept], len(case.confidential)
    )
    try:
        found = count_wrong_matches(
            case.confidential,
            (one for one in chain(*datasets) if one is not None),
            names,
            radius,
            groups=groups,
            order=row_keys(case.confidential_cells, tuple(case.confidential_cells), len(case.confidential)),
            candidates=candidates,
            beyond=SURE,
            best_candidates=best,
        )
    except NotComputable:  # of an earlier release whose columns are labels now
        return None
    shared = count_occurrences(groups, groups) > 1
    return found if 0 < found.own == int(is_above(together.probability[shared], SURE).sum()) else None


def _unique_on_kept_columns(case: ExaminedRelease) -> NDArray[np.bool_]:
    """Return which records, (n,), have unique kept values in a synthetic release."""
    kept, n = case.plan.kept, len(case.confidential)
    if not case.is_synthetic or not kept or not case.plan.replaced:
        return np.zeros(n, dtype=np.bool_)
    rows = row_keys(case.confidential_cells, kept, n)
    return np.asarray(count_occurrences(rows, rows) == 1)


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


def _only_infers_values(method: Method) -> bool:
    """Return whether a method infers values of people and never finds their records."""
    return {question for output in method.outputs for question in output.risk.questions} == {"inference"}


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
            "the strongest intruder was asked only with a prior that knows nothing, so it is unknown what the release adds; measure "
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


def _check_risk_above_confidential(case: ExaminedRelease) -> CheckResult:
    """Find the risk that is furthest above its value in the confidential data.

    Only one that is above for certain counts: an exact value, or an estimate whose whole interval is. What is inferred does not: a
    smoother table
    says of more people what is so of all like them. Nor does what noise raises: a table of other people has records on keys that one
    person of
    the data has. Neither is a disclosure by itself, and both are shown.
    """
    rows = [row for row in _average_rows(case) if row.family == "risk" and row.value is not None]
    own, exact = {row.series: row for row in rows if row.dataset == "confidential"}, exact_series(rows)
    resized = case.recipe.form.records not in (None, len(case.confidential))
    size = f"; of {case.plan.records:,} records, where uniques are more of all" if resized else ""
    seen = list[CheckResult]()
    for row in rows:
        ours, output = own.get(row.series), threshold_output(row.key)
        if row.dataset == "confidential" or ours is None or output is None or output.goal != "low":
            continue
        sampled = output.estimated and (row.series, row.dataset) not in exact
        ratio, sure = _ratio_to_confidential(row, ours, output, sampled)
        target = f" of {row.target}" if row.target else ""
        said = f"{row.key}{target} is {row.value:.4g}, {ours.value:.4g} in the confidential data{size}"
        method = method_by_key(row.method_key)
        of_people_in_general = output.risk.raised_by_noise or (method is not None and _only_infers_values(method))
        if ratio > 1 and of_people_in_general:
            said += ", which by itself is no disclosure: a smoother or larger table says more of people in general"
        elif ratio > 1 and sure is False:
            said += "; chance may give as much"
        most: Status = "block" if sure and not resized else "warn"
        if of_people_in_general or sure is False:
            most = "pass"
        seen.append(CheckResult(said, ratio, 1.0, at_most=most))
    if not seen:
        raise NotComputable("no risk of the run was measured of the confidential data too")
    return max(seen, key=lambda one: (one.at_most != "pass", *one.severity))


def _ratio_to_confidential(row: Row, ours: Row, output: Output, sampled: bool) -> tuple[float, bool | None]:
    """Return a risk as a ratio to that of the confidential data, and whether it is above for certain; None where an estimate has no interval.

    No ratio is formed of values that may be 0 or negative: such a risk counts as 1 and the difference.
    """
    value, base = (Estimated(one.value or 0.0, one.lower, one.upper) for one in (row, ours))
    # counts by counts: of values that rounding alone tells apart none is above the other
    more = distance(value.value, base.value)
    low = difference(value, base).lower if sampled else more
    if more <= 0:
        sure: bool | None = False
    else:
        sure = None if low is None else low > 0
    if more == 0:
        return 1.0, False
    if output.range[0] is not None and output.range[0] >= 0 and base.value > 0:
        return value.value / base.value, sure
    return 1.0 + value.value - base.value, sure


def _check_model_diagnostics(case: ExaminedRelease) -> CheckResult:
    diagnostics = read_diagnostics(case.workspace, case.plan.run.id)
    if all(one.passed is None for one in diagnostics):
        raise NotComputable("no model of the run has a rule that it could break")
    failed = [one for one in diagnostics if one.passed is False]
    named = ", ".join(dict.fromkeys(f"{one.target} ({one.name})" for one in failed))
    said = f"diagnostics failed: {named}" if failed else f"no diagnostic of {len(diagnostics)} failed"
    return CheckResult(said, len(failed))


RUN_CHECKS = (
    GateCheck(
        "unmet_thresholds", "thresholds of the recipe that are not met", "thresholds", None, 0,
        "the recipe states what its author considers safe; thresholds are how a recipe is tighter than the policy",
        "change the plan until they are met", _check_unmet_thresholds,
    ),
    GateCheck(
        "thresholds_set", "thresholds that the recipe sets", "thresholds", 1, None, "without one its author has not said what is enough",
        "set thresholds: [[threshold]] in the recipe", _check_thresholds_set, is_minimum=True,
    ),
    GateCheck(
        "risk_measured", "measures of disclosure risk", "measures", None, 1, "what was not measured is not known to be low",
        'measure one: a [[measure]] of the family risk, as sfumato methods lists them', _check_risk_measured, is_minimum=True,
    ),
    GateCheck(
        "utility_measured", "measures of utility or data quality", "measures", 1, None, "a release that is of no use is no reason to take a risk",
        'measure one: a [[measure]] of the families utility or quality, as sfumato methods lists them', _check_utility_measured, is_minimum=True,
    ),
    GateCheck(
        "exposed_variables", "sensitive variables released unchanged", "variables", None, 0, "a release that keeps them gives them away",
        "synthesise them, or give them another role", _check_exposed_variables,
    ),
    GateCheck(
        "public_key", "random numbers that anybody can repeat", "keys", None, 0, "whoever can repeat a release can undo it",
        "run the recipe again in a workspace with a key of its own: sfumato init DIR", _check_public_key,
    ),
    GateCheck(
        "run_sealed", "runs that are not sealed", "runs", None, 0, "no seal shows whether it was changed since it was made",
        "run the recipe again", _check_run_sealed,
    ),
    GateCheck(
        "policy_since_run", "policies that changed since the run ended", "policies", 0, None,
        "the run was made when another policy held; the release is examined under the one of today",
        "see what was changed in policy.toml", _check_policy_since_run,
    ),
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
        "an intruder who knows all records but one: Reiter, Wang & Zhang, §2",
    ),
    GateCheck(
        "guessed_beyond_prior", "records guessed right beyond what was believed before", "excess (0 by chance, 1 for certain)", 0.05, 0.2,
        "a release shall teach of people, not of this person: this is the share of the records guessed wrong before that are guessed right now; a "
        "choice of ours; no rule of the field has a number",
        "take models that smooth more, or fewer datasets; the screen of the strongest intruder shows what each dataset adds", _check_guessed_beyond_prior,
        "R and PR: Reiter, Wang & Zhang, eq. 2 and 13; excess risk: Giomi et al. (2023)",
    ),
    GateCheck(
        "risk_above_confidential", "a risk above the confidential data's own", "ratio", 1.0, 1.0,
        "a release with more risk than the data protects no person; it blocks where an exact value, or the whole interval of an estimate, is above",
        "larger leaves, or another model", _check_risk_above_confidential,
    ),
    GateCheck(
        "model_diagnostics", "rules that fitted models break, such as of convergence", "diagnostics", 0, None, "values drawn from a model that did not converge are of no model; it speaks of utility, so it only warns",
        "more steps or another sampler; the Diagnostics tab shows them", _check_model_diagnostics,
    ),
)  # fmt: skip
BELIEF_CHECKS = tuple(one for one in RUN_CHECKS if one.evaluate in (_check_newly_certain, _check_guessed_beyond_prior))
"""Those of the strongest intruder, who knows all records but one."""
