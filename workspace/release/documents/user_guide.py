"""The public documents for users of the data: a page on what they are and how to compute with them, and what they keep as a table."""

from __future__ import annotations

from collections.abc import Sequence

from ...reporting.user_guide import user_guide
from ..dossier import Dossier
from ..users import public_release, utility_csv
from .written import Written

GUIDE, UTILITY = "using-these-data.html", "utility.csv"


def users_documents(dossier: Dossier, written: Sequence[Written]) -> dict[str, bytes]:
    """``using-these-data.html`` and ``utility.csv``."""
    release = public_release(dossier.plan, dossier.policy.rules, dossier.rows, dossier.confidential(), dossier.released)
    return {GUIDE: user_guide(release).html().encode(), UTILITY: utility_csv(release)}
