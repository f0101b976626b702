"""What was decided of a release, and who answers for it, as its documents say it."""

from __future__ import annotations

from ..reporting.release_summary import OWNER, PREPARED, ROLES, Decision
from .dossier import Dossier
from .gate import ALL


def decision_of(dossier: Dossier) -> Decision:
    """The gate's findings that are no pass, waivers, the reason, and the lines to sign on."""
    findings = [(one.status, one.title, one.said) for one in dossier.examination.findings if one.status != "pass"]
    waivers = [
        ("every check" if one.check == ALL else one.check, one.user, one.reason) for one in dossier.examination.waivers
    ]
    names = {PREPARED: dossier.user, OWNER: dossier.judgements.get("owner", "")}
    people = [(role, names.get(role, "")) for role in ROLES]
    return Decision(dossier.examination.status, findings, waivers, dossier.reason, people)
