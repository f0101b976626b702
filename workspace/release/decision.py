"""Decision on a release and the people responsible for it, as the release's documents show them."""

from __future__ import annotations

from ..gate.gate import WHOLE_RELEASE
from ..reporting.findings import also_seen_text, findings_of_same_leak, is_open, lead_findings
from ..reporting.ledger import charges_table
from ..reporting.release_summary import APPROVED, OWNER, PREPARED, ROLES, ReleaseDecision
from .dossier import ReleaseDossier


def approver_text(dossier: ReleaseDossier) -> str:
    """Return the account that approved the release, and when; empty where no second person was required."""
    approval = dossier.examination.approval
    return "" if approval is None else f"{approval.approved_by}, {_minute_text(approval.approved_at)}"


def _minute_text(time: str) -> str:
    """Return an ISO time in UTC to the minute."""
    return f"{time[:16].replace('T', ' ')} UTC"


def decision_from_dossier(dossier: ReleaseDossier) -> ReleaseDecision:
    """Return the gate's open findings, the waivers, the reason, and the lines to sign on."""
    all_findings = dossier.examination.findings
    findings = [
        (one.state, f"{one.title}{also_seen_text(findings_of_same_leak(one, all_findings), '; ')}", one.message)
        for one in lead_findings(all_findings)
        if is_open(one)
    ]
    titles = {one.check: one.title for one in all_findings}
    waivers = [
        ("every check" if one.check == WHOLE_RELEASE else titles.get(one.check, one.check), one.user, one.reason)
        for one in dossier.examination.waivers
    ]
    names = {PREPARED: dossier.user, OWNER: dossier.judgements.get("owner", "")}
    people = [(role, names.get(role, "")) for role in ROLES]
    approval = dossier.examination.approval
    # Releases without an account cost no epsilon that could be added up.
    ledger = None
    if dossier.ledger is not None and dossier.ledger.charges[-1].steps:
        ledger = charges_table(dossier.ledger)
    if approval is None:
        return ReleaseDecision(dossier.examination.status, findings, waivers, dossier.reason, people, ledger=ledger)
    asked = f"asked for (request {approval.request_sha256[:12]})"
    acts = [
        (asked, approval.requested_by, _minute_text(approval.requested_at), approval.reason),
        ("approved", approval.approved_by, _minute_text(approval.approved_at), approval.approval_reason),
    ]
    people.append((APPROVED, approver_text(dossier)))
    return ReleaseDecision(dossier.examination.status, findings, waivers, dossier.reason, people, acts, ledger)
