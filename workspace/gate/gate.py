"""The gate: every release is examined, whatever its recipe measured; each finding passes, warns or blocks by the
policy.

What was not computed does not pass: a check that has nothing to look at, or that says nothing of this kind of release,
is ``not checked``, with the reason.

A recipe cannot loosen the checks; its thresholds are how it is tighter. What blocks is released only where every such
finding is waived: by a user whom the policy lets waive, with a reason.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from sfumato.engine.data.long_arrays import long_blocks, release_pages
from sfumato.engine.errors import BadInput, NotComputable, near_miss_hint

from ..audit import user
from ..errors import NotReleased
from ..plan.change_parts import PartsOfChange
from ..policy.charges import LedgerCharge
from ..policy.justification import checked_justification
from ..policy.policy import POLICY_FILE, Policy, PolicyLevel, join_level, own_policy_file
from ..policy.strictness import looser_value
from ..process import reused_memory
from ..store.workspace import Workspace
from . import sentences
from .checks import STATUSES, CheckNotApplicable, CheckResult, ExaminedRelease, GateCheck, Status
from .contents import ReleasePlan
from .files_advice import advice_for_files
from .history_checks import HISTORY_CHECKS
from .ledger import ledger_of_release
from .people_checks import PEOPLE_CHECKS
from .record_checks import RECORD_CHECKS
from .run_checks import RUN_CHECKS

_ORDER = (
    "unmet_thresholds", "thresholds_set", "risk_measured", "utility_measured", "exposed_variables", "public_key", "run_sealed",
    "policy_since_run", "worst_records", "newly_certain", "guessed_beyond_prior", "risk_above_confidential", "model_diagnostics",
    "kept_keys", "singling_out_excess", "linkability_excess", "inference_excess", "membership_excess", "questions_open",
    "weighted_records", "membership_evidence", "disguised_columns", "own_values", "unanimous_classes", "roles_elsewhere", "memorised",
    "equal_records", "extremes", "agreed_values", "kept_weight", "identifying_columns", "small_classes", "formula_cells", "constraints",
    "differencing", "intersections", "privacy_budget", "privacy_delta", "released_before", "earlier_records", "deleted_releases", "kept_tables", "table_changes", "table_rules",
    "joined_releases", "public_figures", "people_described", "units_unclear",
)  # fmt: skip
"""The order of the checks in examinations, policies and documents: it is written to files, and stays whatever file a check lies in."""
CHECKS: tuple[GateCheck, ...] = tuple(
    sorted(
        (*RECORD_CHECKS, *PEOPLE_CHECKS, *RUN_CHECKS, *HISTORY_CHECKS),
        key=lambda check: _ORDER.index(check.key),
    )
)
OF_TABLES = frozenset(
    ("unmet_thresholds", "run_sealed", "policy_since_run", "earlier_records", "deleted_releases", "kept_tables", "table_changes", "table_rules",
     "people_described", "units_unclear")
)  # fmt: skip
"""Keys of the checks that say something of a release that has tables and no dataset."""
IN_MEMBERSHIP_EVIDENCE = frozenset(
    ("standing_people", "near_people", "recoded_people", "moved_people", "repeated_people", "copied_counts", "lone_values", "tail_values", "rare_levels",
     "near_records", "equal_sensitive", "recurring_records")
)  # fmt: skip
"""Keys of checks of older versions, whose looks are part of ``membership_evidence``."""
MOST_RECORDS = 1000
"""Largest number of record numbers in a finding; its words give their total."""
STATES: Mapping[Status, str] = {
    "block": "blocks",
    "warn": "to be judged",
    "pass": "passes",
    "not checked": "not checked",
}
DOES_NOT_APPLY = "does not apply"
WHOLE_RELEASE: Literal["*"] = "*"
SAME_PEOPLE_SHARE = 0.5
"""Two findings are of one leak where so large a share of all people that either is about are in both."""
OF_THIS_PROGRAM = ("advised", "change_has_effect")
"""Fields of a finding that the places of the program use among themselves, and JSON does not have."""


@dataclass(frozen=True, slots=True)
class Finding:
    """The finding of one check of the gate. Its fields but ``OF_THIS_PROGRAM`` are the keys of its JSON (``to_table``).

    check: key of the check
    status: ``pass``, ``warn``, ``block`` or ``not checked``
    title: what the check counts or measures
    message: what was found, in words
    value: the measured value; None where there is none
    baseline: what the value would be without a disclosure
    limit: the limit that was passed, or would have to be passed next
    records: rows of the confidential table that it is about, from 0
    advice: how to fix it
    source: where the limits are from
    waivable: whether it may be waived where it blocks
    compared_value: the number that is compared with the limit: the value, or how far it is beyond the baseline, in ``unit``
    unit: unit of the compared value and of the limit
    reason: why the limits hold
    applies: whether the check says anything of this kind of release
    people: how many people it is about; None where it counts none
    headline: a clause about these people, such as ``can be found by age and sex``
    counted: why these people count, as a clause; empty where the headline says it
    how: how they are found, in a sentence; empty where the headline says it
    learned: what is then learnt of them, in a sentence; empty where that is not known
    change: the change that helps most, with its effect; empty where none was computed
    advised: the changes that ``change`` names, each in its parts, the best first
    change_has_effect: whether ``change`` says whom one still finds after it
    effects: what changes would do, each in a line; empty where that was not computed
    leak: the key of the finding that has the same cause and stands for both; empty for one that stands for itself
    at_least: whether the value must be at least the limit; otherwise at most
    follows: whether the finding follows from its ``leak`` by its own check, not only from being about the same people
    """

    check: str
    status: Status
    title: str
    message: str
    value: float | None = None
    baseline: float | None = None
    limit: float | None = None
    records: tuple[int, ...] = ()
    advice: str = ""
    source: str = ""
    waivable: bool = True
    compared_value: float | None = None
    unit: str = ""
    reason: str = ""
    applies: bool = True
    people: int | None = None
    headline: str = ""
    leak: str = ""
    at_least: bool = False
    follows: bool = False
    learned: str = ""
    change: str = ""
    counted: str = ""
    how: str = ""
    advised: tuple[PartsOfChange, ...] = ()
    change_has_effect: bool = False
    effects: tuple[str, ...] = ()

    @property
    def state(self) -> str:
        """Return the state in words: blocks, to be judged, passes, does not apply, or not checked."""
        return STATES[self.status] if self.applies else DOES_NOT_APPLY

    def to_table(self) -> dict[str, Any]:
        """Return the finding as JSON and stored records have it."""
        # Programs of others read the keys of before, ``said`` and ``held``: they stay for one version.
        kept = {name: value for name, value in asdict(self).items() if name not in OF_THIS_PROGRAM}
        return {**kept, "state": self.state, "said": self.message, "held": self.compared_value}


@dataclass(frozen=True, slots=True)
class Waiver:
    """A reason why a blocking finding is accepted. Its fields are the keys of its JSON.

    check: key of the check, or ``WHOLE_RELEASE`` for a reason that holds for the whole release
    reason: why
    user: account that waived it
    """

    check: str
    reason: str
    user: str


@dataclass(frozen=True, slots=True)
class Approval:
    """A second person's approval of a release. Its fields are the keys of its JSON.

    Accounts are those of the machine; times are those of their files, ISO 8601 in UTC.

    requested_by, requested_at, reason: who requested the release, when and why
    request_sha256: SHA-256 of the request
    approved_by, approved_at, approval_reason: who approved it, when and why
    """

    requested_by: str
    requested_at: str
    reason: str
    request_sha256: str
    approved_by: str
    approved_at: str
    approval_reason: str


@dataclass(frozen=True, slots=True)
class Examination:
    """The findings on a run's release under a policy.

    run_id: number of the run
    policy_sha256: hash of the policy
    findings: one for each check
    waivers: reasons why blocking findings are accepted
    approval: who approved the release, where the policy requires a second person
    charge: what the release is charged to its populations
    ledger_end: last row of the audit log that the gate read of the ledger
    units: number of the units of the confidential data; None where each record is one
    """

    run_id: int
    policy_sha256: str
    findings: tuple[Finding, ...]
    waivers: tuple[Waiver, ...] = ()
    approval: Approval | None = None
    charge: LedgerCharge | None = None
    ledger_end: int = 0
    units: int | None = None

    @property
    def status(self) -> Status:
        """Return the worst status of the findings that apply."""
        found = {finding.status for finding in self.findings if finding.applies}
        return next((one for one in STATUSES if one in found), "pass")

    @property
    def blocking_findings(self) -> tuple[Finding, ...]:
        """Return the findings that block, waived or not."""
        return tuple(one for one in self.findings if one.status == "block")

    @property
    def unwaived_findings(self) -> tuple[Finding, ...]:
        """Return the blocking findings that no waiver covers."""
        named = {waiver.check for waiver in self.waivers}

        def covering(one: Finding) -> tuple[str, ...]:
            """Return the keys of the waivers that cover a finding."""
            # The same people may be harmed in two ways: a reason why nobody knows their keys is none to release their true incomes.
            return (one.check, one.leak, WHOLE_RELEASE) if one.follows else (one.check, WHOLE_RELEASE)

        return tuple(
            one for one in self.blocking_findings if not (one.waivable and not named.isdisjoint(covering(one)))
        )

    @property
    def lead_findings(self) -> tuple[Finding, ...]:
        """Return the findings that stand for themselves: of several with one cause only the worst."""
        return tuple(one for one in self.findings if not one.leak)

    def witnesses_of(self, finding: Finding) -> tuple[Finding, ...]:
        """Return the other findings that have the same cause as ``finding``."""
        return tuple(one for one in self.findings if one.leak == finding.check)

    def with_waivers_by(self, name: str, waive: Mapping[str, str]) -> Examination:
        """Return the examination with further waivers of an account; whether it may waive is not checked here.

        Nothing is added to what another account has approved.
        """
        if self.approval is not None:
            return self
        return replace(self, waivers=(*self.waivers, *make_waivers(self, name, "", waive)))

    def to_table(self) -> dict[str, Any]:
        """Return the examination as JSON and stored records have it."""
        return {
            "run": self.run_id,
            "policy_sha256": self.policy_sha256,
            "status": self.status,
            "findings": [one.to_table() for one in self.findings],
            "waivers": [asdict(one) for one in self.waivers],
            **({} if self.approval is None else {"approval": asdict(self.approval)}),
        }


def check_policy(policy: Policy) -> None:
    """Raise BadInput where a policy has limits for an unknown check, or limits that are looser than those above it."""
    known = [check.key for check in CHECKS]
    for key in policy.findings:
        if key not in known:
            raise BadInput(f"{POLICY_FILE}: findings.{key}", f"no such check{_unknown_check_hint(key, known)}")
    above, file_above = Policy(), str(own_policy_file())
    for level in policy.levels:
        for check in CHECKS:
            _check_limits_not_looser(check, level, above, file_above)
        above, file_above = join_level(above, level), level.file


def _check_limits_not_looser(check: GateCheck, level: PolicyLevel, above: Policy, file_above: str) -> None:
    """Raise BadInput where a policy's limits of a check are looser than those above it."""
    limits = level.findings.get(check.key)
    known = above.findings.get(check.key)
    # The office, and the user where the office is silent, may choose limits that are looser than the check's own.
    if limits is None or (known is None and level.file != POLICY_FILE):
        return
    for name, value, base in zip(
        ("warn", "block"), (limits.warn, limits.block), check.limits_under_policy(above), strict=True
    ):
        if level.file != POLICY_FILE and getattr(known, name) is None:
            continue
        if value is not None and base is not None and (value < base if check.is_minimum else value > base):
            raise looser_value(level.file, f"findings.{check.key}.{name}", value, base, file_above)
    waivable = check.waivable if known is None or known.waivable is None else known.waivable
    if limits.waivable and not waivable:
        raise looser_value(level.file, f"findings.{check.key}.waivable", True, False, file_above)


def _unknown_check_hint(key: str, known: Sequence[str]) -> str:
    """Return a hint for an unknown check: where it went, a similar key, or all keys."""
    if key in IN_MEMBERSHIP_EVIDENCE:
        return "; it is part of membership_evidence now"
    return near_miss_hint(key, known) or f"; checks: {', '.join(known)}"


def examine_release(workspace: Workspace, plan: ReleasePlan, policy: Policy) -> Examination:
    """Examine what a release would hold. Raises BadInput for a policy of unknown checks, NotReady and DamagedTable."""
    check_policy(policy)
    with workspace.tables.mapping_long_tables():
        # Of a long table a check needs much memory: each gives it back, and none adds to that of the others.
        case = ExaminedRelease(workspace, plan, policy)
        with contextlib.nullcontext() if case.is_long else reused_memory():
            # What the checks read is gone before the block gives memory back.
            return _evaluate_checks(case)


def _evaluate_checks(case: ExaminedRelease) -> Examination:
    """Return the findings of all checks, those with one cause named by the worst, and what the release is charged."""
    try:
        found = name_leaks([_evaluate_and_release_memory(check, case) for check in CHECKS])
        if not case.recipe.makes_release and case.plan.tables:
            found = tuple(replace(one, advice=advice_for_files(one.check, one.advice)) for one in found)
        ledger = ledger_of_release(case)
        units = None if case.units is None else len(case.units)
        return Examination(
            case.plan.run.id, case.policy.sha256, found, charge=ledger.own, ledger_end=ledger.end, units=units
        )
    finally:
        case.close()


def _evaluate_and_release_memory(check: GateCheck, case: ExaminedRelease) -> tuple[Finding, Sequence[int]]:
    """Return the finding of a check as ``_evaluate_check`` does, and give back what it read of columns on the disk."""
    try:
        with reused_memory(of_blocks=case.is_long):
            return _evaluate_check(check, case)
    finally:
        release_pages()


def _evaluate_check(check: GateCheck, case: ExaminedRelease) -> tuple[Finding, Sequence[int]]:
    """Return the finding of a check, and all records that it is about."""
    records: Sequence[int] = ()

    def look() -> CheckResult:
        """Evaluate the check, and keep its records."""
        nonlocal records
        if case.plan.has_tables_alone and (
            check.key not in OF_TABLES or (check.key == "unmet_thresholds" and not case.plan.verdicts)
        ):
            raise CheckNotApplicable(sentences.TABLES_ALONE)
        sighting = check.evaluate(case)
        # The finding itself holds at most MOST_RECORDS of them, too few to compare findings by their people.
        records = sighting.records
        return sighting

    finding = make_finding(check, case.policy, look)
    if case.units is not None and not check.counts_units and records and finding.people is not None:
        # People are units: of several records of one, one person is found. Beyond the records it may be any of the rest.
        of_records = len(np.unique(case.units.unit_of[np.asarray(records, dtype=np.int64)]))
        finding = replace(finding, people=min(finding.people, of_records))
    noun = case.unit_noun if check.counts_units else case.record_noun
    if noun != "people" and "people" in finding.unit:
        finding = replace(finding, unit=finding.unit.replace("people", noun, 1))
    return finding, records


def name_leaks(findings: Sequence[tuple[Finding, Sequence[int]]]) -> tuple[Finding, ...]:
    """Return the findings, each with the worse finding of the same cause as its ``leak``.

    findings: each with all records that it is about

    Two findings have one cause where they are about the same people, or where a check declares that its finding follows
    from another.
    """
    leads: list[tuple[Finding, NDArray[np.uint8]]] = []
    lead_of: dict[str, str] = {}
    following: set[str] = set()
    open_findings = [(one, _bits_of_records(records)) for one, records in findings if one.status in ("block", "warn")]
    # The worst leads: nobody waives a leak by waiving its mildest witness.
    for finding, records in sorted(open_findings, key=lambda one: STATUSES.index(one[0].status)):
        follows = next((lead for lead, _ in leads if lead.check == finding.leak), None)
        lead = follows or next((lead for lead, people in leads if _are_same_people(people, records)), None)
        if lead is None:
            leads.append((finding, records))
        else:
            lead_of[finding.check] = lead.check
            if follows is not None:
                following.add(finding.check)
    return tuple(replace(one, leak=lead_of.get(one.check, ""), follows=one.check in following) for one, _ in findings)


def _bits_of_records(records: Sequence[int]) -> NDArray[np.uint8]:
    """Return a bit for each record up to the last one that is named, set for those that are."""
    numbers = np.asarray(records)
    named = np.zeros(int(numbers.max()) + 1 if len(numbers) else 0, dtype=np.bool_)
    for rows in long_blocks(len(numbers)):
        named[numbers[rows]] = True
    return np.packbits(named)


def _are_same_people(one: NDArray[np.uint8], other: NDArray[np.uint8]) -> bool:
    """Return whether two sets of records, a bit each, are mostly the same."""
    # Bits, not sets: in a large table a finding may be about millions of people.
    fewest = min(len(one), len(other))
    both, *each = (int(np.bitwise_count(bits).sum()) for bits in (one[:fewest] & other[:fewest], one, other))
    return both > 0 and both >= SAME_PEOPLE_SHARE * (sum(each) - both)


def make_finding(check: GateCheck, policy: Policy, evaluate: Callable[[], CheckResult]) -> Finding:
    """Return the finding of a check under a policy; it is not checked where ``evaluate`` raises NotComputable."""
    try:
        seen = evaluate()
    except NotComputable as error:
        return _unchecked_finding(check, policy, error.reason, applies=not isinstance(error, CheckNotApplicable))
    return _judge_result(check, policy, seen) if seen.is_measured else _unchecked_finding(check, policy, seen.message)


def _unchecked_finding(check: GateCheck, policy: Policy, reason: str, *, applies: bool = True) -> Finding:
    """Return the finding of a check that could not be made, with the reason why."""
    bare = replace(
        _judge_result(check, policy, CheckResult(reason)), status="not checked", compared_value=None, advice=""
    )
    return replace(bare, applies=applies, people=None)


def _judge_result(check: GateCheck, policy: Policy, result: CheckResult) -> Finding:
    """Return the finding of a result under the limits of a policy."""
    warn, block = check.limits_under_policy(policy)
    given = policy.findings.get(check.key)
    # A limit that the policy states wins over one that follows from the release.
    if result.block_limit is not None and (given is None or given.block is None):
        block = result.block_limit
    status: Status = result.at_least
    if check.is_beyond(result.compared_value, block) and result.at_most == "block":
        status = "block"
    elif (
        check.is_beyond(result.compared_value, warn) or check.is_beyond(result.compared_value, block)
    ) and status != "block":
        status = "warn"
    if result.at_most == "pass":
        status = "pass"
    passed = block if check.is_beyond(result.compared_value, block) else warn
    limit = block if passed is None else passed
    # JSON has no infinity.
    compared_value = result.compared_value if result.compared_value != float("inf") else None
    people = len(result.records) or None if result.people is None else result.people
    return Finding(
        check.key, status, check.title, result.message, result.value, result.baseline, limit, tuple(result.records[:MOST_RECORDS]),
        check.advice if status != "pass" else "", (given.source if given and given.source else check.source),
        check.waivable if given is None or given.waivable is None else given.waivable, compared_value, check.unit, check.reason,
        people=people, headline=result.headline, leak=result.leak, at_least=check.is_minimum,
        learned=(result.learned or check.learned) if people and status != "pass" else "",
        change=result.change if status != "pass" else "", counted=result.counted,
        how=result.how, effects=result.effects if status != "pass" else (),
        advised=result.advised if status != "pass" else (),
        change_has_effect=result.change_has_effect and status != "pass",
    )  # fmt: skip


def apply_waivers(
    examination: Examination, policy: Policy, reason: str = "", waive: Mapping[str, str] | None = None
) -> Examination:
    """Return the examination with the waivers of the current user, by check and for the release as a whole.

    Raises BadInput and NotReleased like ``check_waivers``, and NotReleased where the policy does not let this user waive.
    """
    check_waivers(examination, waive or {})
    if reason.strip():
        checked_justification(reason, "--reason")
    found = make_waivers(examination, user(), reason, waive or {})
    if found and not may_waive(policy, user()):
        raise NotReleased(_may_not_waive_text(policy, user()))
    return replace(examination, waivers=tuple(found))


def may_waive(policy: Policy, name: str) -> bool:
    """Return whether an account may waive findings under a policy."""
    return not policy.waivers or name in policy.waivers


def waiver_obstacle(finding: Finding, policy: Policy, name: str) -> str:
    """Explain why an account cannot waive a finding; empty where it can."""
    if finding.status != "block":
        return f"{finding.check} does not block this release"
    if not finding.waivable:
        return _not_waivable_text(finding)
    return "" if may_waive(policy, name) else _may_not_waive_text(policy, name)


def _not_waivable_text(finding: Finding) -> str:
    """Explain that the policy does not let a finding be waived."""
    return f"{finding.check} cannot be waived, says the policy: {finding.message}"


def _may_not_waive_text(policy: Policy, name: str) -> str:
    """Explain that an account may not waive findings, and which may."""
    return f"{name} may not waive findings; the policy lets {', '.join(policy.waivers)}"


def make_waivers(examination: Examination, name: str, reason: str, waive: Mapping[str, str]) -> list[Waiver]:
    """Return the waivers of an account for findings that block: by check, and one ``reason`` for the whole release."""
    blocking = {one.check for one in examination.blocking_findings}
    given = {key: why for key, why in waive.items() if key in blocking}
    if blocking and reason.strip():
        given.setdefault(WHOLE_RELEASE, reason)
    return [Waiver(key, why.strip(), name) for key, why in given.items()]


def check_waivers(examination: Examination, waive: Mapping[str, str]) -> None:
    """Check waivers against what blocks.

    Raises BadInput for an unknown check, one that does not block, or one without a reason; NotReleased for one that
    nobody may waive.
    """
    blocking = {one.check: one for one in examination.blocking_findings}
    known = [check.key for check in CHECKS]
    for key, why in waive.items():
        if key not in known:
            hint = _unknown_check_hint(key, ()) if key in IN_MEMBERSHIP_EVIDENCE else near_miss_hint(key, known)
            raise BadInput("--waive", f'no check "{key}"{hint}')
        checked_justification(why, f"--waive {key}")
        if key not in blocking:
            raise BadInput("--waive", f"{key} does not block this release; leave it out")
        if not blocking[key].waivable:
            raise NotReleased(_not_waivable_text(blocking[key]))


def checked_reasons(waive: Mapping[str, str], place: str) -> dict[str, str]:
    """Return the reasons of waivers by check. Raises BadInput for a reason that is no justification."""
    return {key: checked_justification(why, f"{place} {key}") for key, why in waive.items()}


def check_not_blocked(examination: Examination, sentence: str = "") -> None:
    """Raise NotReleased where an unwaived finding blocks; the message begins with ``sentence``."""
    left = examination.unwaived_findings
    if not left:
        return
    never = [one for one in left if not one.waivable]
    said = "; ".join(f"{one.check}: {one.message}" for one in left)
    start = f"{sentence} The" if sentence else "the"
    if never:
        raise NotReleased(
            f"{start} gate blocks the release, and {', '.join(one.check for one in never)} cannot be waived. {said}"
        )
    first = left[0].check
    raise NotReleased(
        f"{start} gate blocks the release: {said}. To release it all the same, add --reason TEXT, or "
        f"--waive {first}=REASON for each"
    )
