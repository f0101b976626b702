"""The gate's checks of a run: how it was made, what it measured, and what of that answers the risk assessment."""

from __future__ import annotations

from functools import partial

from sfumato.engine.errors import NotComputable
from sfumato.engine.methods.declared import list_declarations
from sfumato.engine.methods.labels import labels_of, measure_name
from sfumato.engine.methods.outputs import QUESTIONS, Output, Question
from sfumato.engine.methods.privacy import PrivacyAccount
from sfumato.engine.methods.registry import method_by_key
from sfumato.engine.methods.rows import Row, exact_series
from sfumato.engine.recipe.budget import privacy_accounts
from sfumato.engine.recipe.thresholds import threshold_output
from sfumato.engine.statistics.comparing import distance_from_limit
from sfumato.engine.statistics.estimated import ValueWithInterval, difference_with_interval

from ..ingest.unit_detection import (
    CodedTable,
    find_hidden_units,
    find_stacked_waves,
    list_unit_candidates,
    propose_unit,
)
from ..reporting.findings import MULTIPLE
from ..reporting.questions import BLOCK_FROM, WARN_FROM, unanswered_questions
from ..reporting.results import method_title, row_output
from ..reporting.words import thresholds_text
from ..views.coverage import read_file_coverage
from ..views.results import read_diagnostics
from ..views.weights import record_weight_lines
from . import sentences
from .checks import FOLLOW_LESS, OWN_CHOICE, CheckNotApplicable, CheckResult, ExaminedRelease, GateCheck, Status
from .kept_columns import kept_columns_of_release
from .package_accounts import trusted_packages_of_run
from .public_figures import follows_from_rounded_counts, has_paid_noise, public_figures_of_release
from .questions import (
    block_limits_by_question,
    evaluate_question,
    key_of_question,
    only_infers_values,
    open_question_text,
)
from .sentences import fill_sentence

FITTED = 0.5
"""A multiple of chance (s_pmse) below it shows that records are repeated (METHODS: two sides of s_pmse)."""
MOSTLY_DESCRIBED = 0.95
"""A release that describes less of its file's people is to be judged."""
EXCESS = "excess (0 by chance, 1 for certain)"
"""The unit of what an attack gets right beyond its baseline, as a part of what the baseline leaves."""
_TITLES_AND_REASONS: dict[Question, tuple[str, str, str]] = {
    "singling out": (
        "singling out people",
        "a person who can be singled out can be found",
        "singling out, Article 29 Working Party (WP216); residual risk: Giomi et al. (2023), eq. 3",
    ),
    "linkability": (
        "linking the records of people",
        "a record that is linked rightly gives all of it away",
        "linkability, Article 29 Working Party (WP216); linkage beside chance: Domingo-Ferrer & Torra (2001)",
    ),
    "inference": (
        "inferring values of people",
        "what is inferred of people who were not in the data too is no disclosure, what is inferred beyond it is; "
        "without controls an attribution does not show which, so it only warns",
        "inference, Article 29 Working Party (WP216); Giomi et al. (2023), eq. 3; Raab, Nowok & Dibben (2024)",
    ),
    "membership": (
        "guessing who is in the data",
        "that somebody is in the data may be what must not be known",
        "consensus on measuring disclosure of synthetic data: Pilgram et al. (2025)",
    ),
}


def _average_rows(case: ExaminedRelease) -> list[Row]:
    """Return the result rows that are averages over the datasets, outside sweeps."""
    return [row for row in case.measured_rows if row.draw is None and row.level is None]


def _count_measures(case: ExaminedRelease, families: tuple[str, ...], what: str) -> CheckResult:
    """Count the methods of these families that were computed for the release."""
    rows = [row for row in _average_rows(case) if row.family in families and row.dataset != "confidential"]
    keys = sorted({row.method_key for row in rows if row.value is not None})
    # What a run computes by itself is no measure that its author asked for.
    computed = [key for key in keys if (method := method_by_key(key)) is None or not method.spec.implied]
    message = (
        fill_sentence(sentences.MEASURED, methods=[method_title(key) for key in computed])
        if computed
        else fill_sentence(sentences.NOT_MEASURED, what=what)
    )
    return CheckResult(message, len(computed))


def _check_risk_measured(case: ExaminedRelease) -> CheckResult:
    """Count the computed measures of disclosure risk."""
    return _count_measures(case, ("risk",), sentences.DISCLOSURE_RISK)


def _check_utility_measured(case: ExaminedRelease) -> CheckResult:
    """Count the computed measures of utility and data quality."""
    return _count_measures(case, ("utility", "quality"), sentences.UTILITY)


def _check_unmet_thresholds(case: ExaminedRelease) -> CheckResult:
    """Count the thresholds of the recipe that are not met."""
    unmet, verdicts = case.plan.unmet_verdicts, case.plan.verdicts
    if not verdicts:
        raise NotComputable(sentences.NO_THRESHOLD)
    if not unmet:
        message = fill_sentence(sentences.THRESHOLDS_MET, run=case.plan.run.id, thresholds=thresholds_text(verdicts))
        return CheckResult(message, 0)
    named = "; ".join(
        fill_sentence(sentences.THRESHOLD_OUTCOME, name=name, outcome=one.outcome)
        for one, name in zip(unmet, labels_of(unmet), strict=True)
    )
    message = fill_sentence(
        sentences.THRESHOLDS_UNMET, run=case.plan.run.id, thresholds=thresholds_text(verdicts), unmet=named
    )
    # An interval that contains the threshold decides nothing, so that a person has to.
    decided = any(one.outcome != "undecided" for one in unmet)
    change = ""
    if not any(one.key.startswith("risk.") for one in unmet):
        change = sentences.MODEL_MORE if case.is_synthetic else sentences.KEEP_MORE_OF_TABLE
    return CheckResult(message, len(unmet), at_most="block" if decided else "warn", change=change)


def _check_thresholds_set(case: ExaminedRelease) -> CheckResult:
    """Count the thresholds that the recipe sets."""
    count = len(case.plan.verdicts)
    message = fill_sentence(sentences.THRESHOLDS_SET, number=count) if count else sentences.NO_THRESHOLD_SET
    return CheckResult(message, count)


def _check_exposed_variables(case: ExaminedRelease) -> CheckResult:
    """Count the sensitive variables that are released unchanged."""
    if not case.is_synthetic:
        raise CheckNotApplicable(sentences.KEEPS_SENSITIVE)
    exposed = case.plan.exposed_variables
    if not exposed:
        return CheckResult(sentences.NOTHING_EXPOSED, 0)
    return CheckResult(fill_sentence(sentences.EXPOSED, names=exposed), len(exposed))


def _check_people_described(case: ExaminedRelease) -> CheckResult:
    """Compare the people whom the release describes with those of the file."""
    coverage = read_file_coverage(case.workspace, case.plan.run)
    if coverage.share is None:
        raise NotComputable(sentences.FILE_NOT_COUNTED)
    if coverage.is_whole:
        return CheckResult(sentences.ALL_DESCRIBED, coverage.share)
    return CheckResult(fill_sentence(sentences.SOME_DESCRIBED, coverage=coverage.text), coverage.share)


def _check_units_unclear(case: ExaminedRelease) -> CheckResult:
    """Look for units of several records that the recipe does not declare."""
    data = case.exact_records
    unit = case.recipe.schema.unit
    # a column of which no value repeats numbers records
    if unit is not None and case.units is not None:
        n_units = case.confidential.n_units
        message = fill_sentence(sentences.UNITS_DECLARED, unit=unit, units=n_units, records=len(data))
        lacking = int(data.missing_mask(unit).sum())
        if lacking:
            # who lives with them is not known, so that people of one household may be on both sides of a hold-out
            message += fill_sentence(sentences.UNITS_WITHOUT_NUMBER, records=lacking)
        return CheckResult(message, 1 if lacking else 0)
    table = CodedTable.from_columns({name: data.column(name) for name in data.schema.names})
    if (proposal := propose_unit(table, list_unit_candidates(data.schema))) is not None:
        message = fill_sentence(
            sentences.UNITS_SUSPECTED,
            name=proposal.name, units=proposal.n_units, records=proposal.n_records / proposal.n_units, reason=proposal.reason,
        )  # fmt: skip
        return CheckResult(message, 1)
    if (hidden := find_hidden_units(table)) is not None:
        return CheckResult(fill_sentence(sentences.UNITS_HIDDEN, like=hidden.like_share, chance=hidden.chance_share), 1)
    if (waves := find_stacked_waves(table)) is not None:
        message = fill_sentence(
            sentences.UNITS_IN_WAVES, wave=waves.wave, like=waves.like_share, chance=waves.chance_share
        )
        return CheckResult(message, 1)
    is_sample = case.recipe.data.sample is not None
    return CheckResult(sentences.UNITS_NOT_IN_SAMPLE if is_sample else sentences.UNITS_NOT_FOUND, 0)


def _check_public_key(case: ExaminedRelease) -> CheckResult:
    """Check whether anybody could repeat the random numbers of the run."""
    if not case.plan.has_public_key:
        return CheckResult(sentences.NOT_REPEATABLE, 0)
    return CheckResult(fill_sentence(sentences.REPEATABLE_BY_ANYBODY, run=case.plan.run.id), 1)


def _check_run_sealed(case: ExaminedRelease) -> CheckResult:
    """Check whether the run is as it was sealed."""
    fault = case.plan.seal.message
    return CheckResult(fault or sentences.RUN_AS_SEALED, 1 if fault else 0)


def _check_policy_since_run(case: ExaminedRelease) -> CheckResult:
    """Check whether the policy has changed since the run ended."""
    since = case.plan.seal.since
    return CheckResult(since or sentences.POLICY_OF_RUN, 1 if since else 0)


def _check_risk_above_confidential(case: ExaminedRelease) -> CheckResult:
    """Find the risk that is furthest above its value in the confidential data.

    Only one that is certainly above counts: an exact value, or an estimate whose whole interval is.
    """
    rows = [
        row for row in _average_rows(case) if row.family == "risk" and row.value is not None and not row.is_of_one_size
    ]
    own, exact = {row.series: row for row in rows if row.dataset == "confidential"}, exact_series(rows)
    form, confidential = case.recipe.form, case.confidential
    resized = form.records not in (None, len(confidential))
    if form.number_of_units is not None:
        resized = form.number_of_units != confidential.n_units
    size = fill_sentence(sentences.OTHER_SIZE, records=case.plan.records) if resized else ""
    seen = list[CheckResult]()
    for row in rows:
        ours, output = own.get(row.series), threshold_output(row.key)
        if row.dataset == "confidential" or ours is None or output is None or output.goal != "low":
            continue
        sampled = output.estimated and (row.series, row.dataset) not in exact
        ratio, sure = _ratio_to_confidential(row, ours, output, sampled)
        method = method_by_key(row.method_key)
        # A smoother table says of more people what is so of all like them, and a noisy one of other people has records
        # on keys that one person of the data has. Neither is a disclosure by itself; both are shown.
        of_people_in_general = output.risk.raised_by_noise or (method is not None and only_infers_values(method))
        remark = ""
        if ratio > 1 and of_people_in_general:
            remark = sentences.OF_PEOPLE_IN_GENERAL
        elif ratio > 1 and sure is False:
            remark = sentences.CHANCE_MAY_GIVE_AS_MUCH
        message = fill_sentence(
            sentences.RISK_AND_CONFIDENTIAL,
            measure=measure_name(row.key),
            target=fill_sentence(sentences.OF_TARGET, target=row.target) if row.target else "",
            value=row.value,
            own=ours.value,
            size=size,
            remark=remark,
        )
        # In a table of another size a risk is another quantity: uniques are more of a small one.
        most: Status = "block" if sure and not resized else "warn"
        if of_people_in_general or sure is False:
            most = "pass"
        seen.append(CheckResult(message, ratio, 1.0, at_most=most))
    if not seen:
        raise NotComputable(sentences.NO_RISK_OF_CONFIDENTIAL)
    return max(seen, key=lambda one: (one.at_most != "pass", *one.severity))


def _ratio_to_confidential(row: Row, ours: Row, output: Output, sampled: bool) -> tuple[float, bool | None]:
    """Return the ratio of a risk to that of the confidential data, and whether it is certainly above.

    The second is None where an estimate has no interval.
    """
    value, base = (ValueWithInterval(one.value or 0.0, one.lower, one.upper) for one in (row, ours))
    # counts by counts: of values that rounding alone tells apart none is above the other
    more = distance_from_limit(value.value, base.value)
    low = difference_with_interval(value, base).lower if sampled else more
    if more <= 0:
        sure: bool | None = False
    else:
        sure = None if low is None else low > 0
    if more == 0:
        return 1.0, False
    if output.range[0] is not None and output.range[0] >= 0 and base.value > 0:
        return value.value / base.value, sure
    # No ratio is formed of values that may be 0 or negative.
    return 1.0 + value.value - base.value, sure


def _check_model_diagnostics(case: ExaminedRelease) -> CheckResult:
    """Count the diagnostics of fitted models that failed."""
    diagnostics = read_diagnostics(case.workspace, case.plan.run.id)
    if all(one.passed is None for one in diagnostics):
        raise CheckNotApplicable(sentences.NO_DIAGNOSTIC)
    failed = [one for one in diagnostics if one.passed is False]
    named = [fill_sentence(sentences.DIAGNOSTIC, target=one.target, name=one.name) for one in failed]
    message = (
        fill_sentence(sentences.DIAGNOSTICS_FAILED, diagnostics=dict.fromkeys(named))
        if failed
        else fill_sentence(sentences.DIAGNOSTICS_PASSED, number=len(diagnostics))
    )
    return CheckResult(message, len(failed))


def _check_question(case: ExaminedRelease, question: Question) -> CheckResult:
    """Check how far the answers to a question of the risk assessment are beyond their baselines."""
    blocks = kept_columns_of_release(case).is_blocking
    return evaluate_question(
        question,
        case.measured_rows,
        case.recipe,
        case.policy,
        case.plan.records,
        case.share_found_by_columns,
        kept_columns_block=blocks,
    )


def _check_open_questions(case: ExaminedRelease) -> CheckResult:
    """Count the questions of the risk assessment that no measure answers."""
    rows = case.measured_rows
    left = unanswered_questions(rows, case.recipe, block_limits_by_question(case.policy))
    message = "; ".join(open_question_text(question, reason, rows) for question, reason in left.items())
    return CheckResult(message or fill_sentence(sentences.ALL_QUESTIONS_ANSWERED, questions=QUESTIONS), len(left))


def _check_weighted_records(case: ExaminedRelease) -> CheckResult:
    """Note whether the models weight records."""
    lines = record_weight_lines(case.workspace, case.plan.run.id)
    if not lines:
        return CheckResult(sentences.NOT_WEIGHTED, 0)
    return CheckResult(fill_sentence(sentences.WEIGHTED, weights=lines[0]), 1)


def _check_memorised(case: ExaminedRelease) -> CheckResult:
    """Check for an s_pmse far below 1, the value that a correct model has."""
    if case.recipe.form.recode:
        raise NotComputable(sentences.COARSER_HIDES)
    rows = [
        row for row in case.measured_rows
        if (output := row_output(row)) is not None and output.goal == "one" and row.draw is None and row.level is None and row.value is not None and row.dataset != "confidential"
    ]  # fmt: skip
    if not rows:
        methods = " or ".join(one.title for one in list_declarations().values() if one.is_best_at_one)
        raise NotComputable(fill_sentence(sentences.NO_DISTANCE, methods=methods))
    least = min(rows, key=lambda row: row.value or 0.0)
    value = least.value or 0.0
    upper = value if least.upper is None else least.upper
    message = fill_sentence(
        sentences.MEMORISED if value < FITTED else sentences.NOT_MEMORISED, measure=measure_name(least.key), value=value
    )
    # An interval that contains 1 is no evidence of repetition, however low the estimate.
    return CheckResult(message, value, 1.0, value if upper < 1 else max(value, FITTED))


def _check_unprotected_figures(case: ExaminedRelease) -> CheckResult:
    """Count the public figures that neither paid noise nor rounded counts protect."""
    figures, rules = public_figures_of_release(case), case.policy.disclosure_rules
    if not figures:
        return CheckResult(sentences.NO_PUBLIC_FIGURE, 0)
    if any(step.method.synthesis.privacy.account for step in case.recipe.synthesis):
        accounts = [
            own
            for _, own in privacy_accounts(
                case.recipe,
                case.confidential,
                secret=not case.plan.run.key_public,
                trusted_packages=trusted_packages_of_run(case.workspace, case.plan.run, case.policy.packages),
            )
        ]
        budget = sum(one.figures for one in accounts if isinstance(one, PrivacyAccount))
        spent = sum(one.epsilon for one in figures)
        bare = [one for one in figures if not has_paid_noise(one, rules)]
        if spent > budget * (1 + 1e-9):  # the account does not have what they cost
            bare = list(figures)
        how = fill_sentence(sentences.WITH_PAID_NOISE, epsilon=budget)
    else:
        bare = [one for one in figures if not follows_from_rounded_counts(one, rules)]
        how = fill_sentence(sentences.OF_ROUNDED_COUNTS, base=rules.base)
    message = fill_sentence(sentences.PUBLIC_FIGURES, figures=len(figures), how=how)
    if bare:
        names = dict.fromkeys(f"{one.row.key} {one.row.target}".strip() for one in bare)
        message = fill_sentence(sentences.UNPROTECTED_FIGURES, bare=len(bare), figures=len(figures), names=names)
    return CheckResult(message, len(bare))


QUESTION_CHECKS = (
    *(
        GateCheck(
            key_of_question(question), title, EXCESS, WARN_FROM, BLOCK_FROM,
            f"{reason}; {OWN_CHOICE}; it blocks where the interval is above the baseline too",
            f"{FOLLOW_LESS}; then coarser values or fewer datasets",
            partial(_check_question, question=question), source,
        )
        for question, (title, reason, source) in _TITLES_AND_REASONS.items()
    ),
    GateCheck(
        "questions_open", "risk questions without an answer", "questions", 0, None,
        "a risk that was not measured is not known to be low; it may be large",
        "measure what the finding names, against an intruder who knows every quasi-identifier; attacks that need people who were not in the data "
        "want [data] holdout in the recipe, of more records where they find large leaks only", _check_open_questions,
        "singling out, linkability, inference: Article 29 Working Party (WP216); membership: Pilgram et al. (2025)", intruder="none",
    ),
    GateCheck(
        "weighted_records", "weights by which records say less to the models", "weights", None, None,
        "weights change what the models know of people, and say themselves who was at risk: keep them where the data are", "nothing has to be done",
        _check_weighted_records, "risk-weighted pseudo posterior: Hu, Savitsky & Williams (2022)", is_note=True, intruder="none",
    ),
)  # fmt: skip
RUN_CHECKS = (
    *QUESTION_CHECKS,
    GateCheck(
        "unmet_thresholds", "limits of the plan not shown to be met", "limits", None, 0,
        "the recipe states what its author considers safe; thresholds are how a recipe is tighter than the policy",
        "change the plan until they are met", _check_unmet_thresholds, intruder="none",
    ),
    GateCheck(
        "thresholds_set", "limits that the plan sets", "limits", 1, None, "without one its author has not said what is enough",
        "set thresholds: [[threshold]] in the recipe", _check_thresholds_set, is_minimum=True, intruder="none",
    ),
    GateCheck(
        "risk_measured", "measures of disclosure risk", "measures", None, 1, "what was not measured is not known to be low",
        'measure one: a [[measure]] of the family risk, as sfumato methods lists them', _check_risk_measured, is_minimum=True, intruder="none",
    ),
    GateCheck(
        "utility_measured", "measures of utility or data quality", "measures", 1, None, "a release that is of no use is no reason to take a risk",
        'measure one: a [[measure]] of the families utility or quality, as sfumato methods lists them', _check_utility_measured, is_minimum=True, intruder="none",
    ),
    GateCheck(
        "exposed_variables", "sensitive variables released unchanged", "variables", None, 0, "a release that keeps them gives them away",
        "synthesise them, or give them another role", _check_exposed_variables,
    ),
    GateCheck(
        "people_described", "people of the file whom the release describes", "share of the people of the file", MOSTLY_DESCRIBED, None,
        "people who are left out may differ from the others, and then a release without them misleads; it speaks of utility, so it only warns",
        'keep records with a missing value ([data] missing = "keep"), leave out columns that many lack, or suppress less', _check_people_described,
        "up to 5 % of missing values are of little consequence: Schafer (1999)", is_minimum=True, intruder="none",
    ),
    GateCheck(
        "units_unclear", "units of several records that the recipe does not declare", "signs of them", 0, None,
        "where several records are of one person or household, checks that count records as people hide leaks, and may block honest releases",
        'give the variable that numbers them role = "unit" under [variables], or leave the warning where each record is a person of its own',
        _check_units_unclear, "constant columns within a unit and like neighbours, beyond chance: see the manual, Units of several records", intruder="none",
    ),
    GateCheck(
        "public_key", "random numbers that anybody can repeat", "keys", None, 0, "whoever can repeat a release can undo it",
        "run the recipe again in a workspace with a key of its own: sfumato init DIR", _check_public_key,
    ),
    GateCheck(
        "run_sealed", "runs that are not sealed", "runs", None, 0, "no seal shows whether it was changed since it was made",
        "run the recipe again", _check_run_sealed, intruder="none",
    ),
    GateCheck(
        "policy_since_run", "policies that changed since the run ended", "policies", 0, None,
        "the run was made when another policy held; the release is examined under the one of today",
        "see what was changed in policy.toml", _check_policy_since_run, intruder="none",
    ),
    GateCheck(
        "risk_above_confidential", "a risk above the confidential data's own", "ratio", 1.0, 1.0,
        "a release with more risk than the data protects no person; it blocks where an exact value, or the whole interval of an estimate, is above",
        "larger leaves, or another model", _check_risk_above_confidential,
    ),
    GateCheck(
        "model_diagnostics", "rules that fitted models break, such as of convergence", "diagnostics", 0, None, "values drawn from a model that did not converge are of no model; it speaks of utility, so it only warns",
        "more steps or another sampler; the Diagnostics tab shows them", _check_model_diagnostics, intruder="none",
    ),
    GateCheck(
        "memorised", "whether records were copied", MULTIPLE, FITTED, None,
        "a model that is fitted and drawn from differs from its data as much as another draw does; what differs less repeats them",
        FOLLOW_LESS, _check_memorised, "Snoke et al. (2018)", is_minimum=True,
    ),
    GateCheck(
        "public_figures", "public figures computed from confidential records without protection", "figures", None, 0,
        "whoever knows the other people solves an exact figure for the one who is left; beside a privacy account only noise protects",
        'set [release] public_figures = "internal", or "rounded" without and "paid" with a privacy account', _check_unprotected_figures,
        "rounded counts: ESSnet SDC guidelines for output checking (Brandt et al. 2010); noise: Dwork (2006)", waivable=False, intruder="none",
    ),
)  # fmt: skip


def check_of_question(question: Question) -> GateCheck:
    """Return the gate's check for a question."""
    return next(check for check in QUESTION_CHECKS if check.key == key_of_question(question))
