"""Public documents for users of the data: a page on the data and their analysis, and a table of their utility."""

from __future__ import annotations

from collections.abc import Sequence

from ..release.dossier import ReleaseDossier
from ..release.users import make_public_release, utility_csv
from ..reporting.privacy_promise import promise_sentences
from ..reporting.user_guide import user_guide_document
from ..visible_text import replace_hidden
from .written import WrittenFile

GUIDE, UTILITY, PRIVACY = "using-these-data.html", "utility.csv", "privacy.txt"


def user_documents(dossier: ReleaseDossier, written: Sequence[WrittenFile]) -> dict[str, bytes]:
    """Return the page for users and the public figures, as bytes by name.

    These are ``using-these-data.html``, ``utility.csv`` where figures may be released, and ``privacy.txt`` where a run
    keeps a privacy account.
    """
    privacy = dossier.read_promise()
    release = make_public_release(
        dossier.plan,
        dossier.policy.disclosure_rules,
        dossier.read_public_figures(),
        dossier.read_released,
        privacy,
        dossier.coverage,
    )
    files = {GUIDE: user_guide_document(release).to_html().encode()}
    if release.figures:
        files[UTILITY] = utility_csv(release)
    if privacy is not None:
        files[PRIVACY] = "".join(f"{replace_hidden(line)}\n" for line in promise_sentences(privacy)).encode()
    return files
