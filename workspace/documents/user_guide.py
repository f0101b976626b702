"""The public documents for users of the data: a page on what they are and how to compute with them, and what they keep as a table."""

from __future__ import annotations

from collections.abc import Sequence

from ..release.dossier import Dossier
from ..release.users import public_release, utility_csv
from ..reporting.privacy_promise import promise
from ..reporting.user_guide import user_guide
from ..visible_text import visible
from .written import Written

GUIDE, UTILITY, PRIVACY = "using-these-data.html", "utility.csv", "privacy.txt"


def users_documents(dossier: Dossier, written: Sequence[Written]) -> dict[str, bytes]:
    """``using-these-data.html``, ``utility.csv`` where figures may leave, and beside the codebook ``privacy.txt`` where a run keeps a privacy account."""
    privacy = dossier.promise()
    release = public_release(dossier.plan, dossier.policy.rules, dossier.public_figures(), dossier.released, privacy)
    files = {GUIDE: user_guide(release).html().encode()}
    if release.figures:
        files[UTILITY] = utility_csv(release)
    if privacy is not None:
        files[PRIVACY] = "".join(f"{visible(line)}\n" for line in promise(privacy)).encode()
    return files
