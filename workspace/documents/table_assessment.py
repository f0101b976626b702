"""Risk assessment of a release that has printed tables and no dataset, for whoever answers for it.

The numbers of a run are of its tables and of what earlier releases printed; the gate's findings are of everything that
readers have. Both stand here, and where they differ the gate decides.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from sfumato.engine.execution.protecting import CONTRIBUTORS_NOT_EXAMINED
from sfumato.engine.recipe.table_sections import TableProtection
from sfumato.engine.tables.audit import NOT_EXAMINED
from sfumato.engine.tables.rules import TableRules
from sfumato.engine.wording import count_noun

from ..policy.disclosure import MARKING
from ..release.decision import approver_text, decision_from_dossier
from ..release.dossier import ReleaseDossier
from ..reporting.document import BulletList, Chapter, DefinitionList, Document, DocumentPart, Paragraph, SignatureLines
from ..reporting.findings import finding_limit_text, people_text, sort_by_status
from ..reporting.release_summary import APPROVED
from ..reporting.tables import DisplayCell, DisplayRow, table_from_titles
from ..store.protected_tables import StoredTables
from .first_page import accountable_person_text, next_step_text, open_findings_table, waiver_lines
from .written import WrittenFile

TITLE = "Risk assessment of tables"
NONE_EARLIER = "Readers have no table that an earlier release of this workspace printed of these people, as far as was found when the run was entered."
OF_RUN = (
    "These numbers are as the run left the tables. What was released since, and cells that the recipe calls safe, count "
    "in the findings of the gate below, which decide."
)
LOST = (
    "{number} cannot be protected: an earlier release printed them, the recipe publishes them, or they follow from such "
    "cells. Nothing that this release hides changes that."
)
GROUPS = f"{NOT_EXAMINED} A row or column all of whose people lie in one cell tells that of each of them."
OTHER_SOURCES = (
    "What readers know from elsewhere, such as registers, other offices' tables and releases from other workspaces, is "
    "not known here."
)
COALITIONS = "Contributors who put together what they know were not examined, unless they are one unit of the recipe."


def table_assessment(dossier: ReleaseDossier, written: Sequence[WrittenFile]) -> dict[str, bytes]:
    """Return ``risk-assessment.html`` and the same in Markdown; nothing where no tables are stored."""
    stored = dossier.read_printed_tables()
    if stored is None:
        return {}
    made = table_assessment_document(dossier, stored)
    return {"risk-assessment.html": made.to_html().encode(), "risk-assessment.md": made.to_markdown().encode()}


def table_assessment_document(dossier: ReleaseDossier, stored: StoredTables) -> Document:
    """Return the assessment: the answer, who attacks, counts, rules, what was not examined, findings and signatures."""
    answer, findings = dossier.answer, open_findings_table(dossier)
    summary: list[DocumentPart] = [
        Paragraph(answer.title, is_strong=True),
        Paragraph(answer.sentence),
        BulletList([next_step_text(dossier), *waiver_lines(dossier), accountable_person_text(dossier)]),
        *([findings] if findings is not None else []),
    ]
    return Document(
        f"{TITLE}: {dossier.plan.run.title}",
        MARKING,
        [
            Chapter("Summary", summary),
            Chapter("Who attacks", [_readers_table(stored), Paragraph(f"{_earlier_text(stored)} {OF_RUN}")]),
            Chapter("Cells", [_counts_of_cells(stored)]),
            Chapter("Rules", [_rules_table(dossier)]),
            Chapter("What was not examined", [BulletList(not_examined_of_tables(stored))]),
            Chapter("Findings of the gate", [_findings_part(dossier)]),
            Chapter(
                "Signatures",
                [
                    *decision_from_dossier(dossier).request_tables,
                    SignatureLines(
                        [
                            ("Assessed by", ""),
                            ("Owner of the risk", dossier.judgements.get("owner", "")),
                            (APPROVED, approver_text(dossier)),
                        ]
                    ),
                ],
            ),
        ],
    )


def _readers_table(stored: StoredTables) -> DocumentPart:
    """Return each reader with what he knows, and how many unsafe cells follow for him from the run's own tables."""
    audit = stored.audit
    zeros = (
        "not asked: cells without records are hidden too"
        if stored.are_zeros_hidden
        else f"{int(audit.exact_zeros_shown.sum()):,}"
    )
    contributor = f"{int(audit.exact_contributor.sum()):,}" if stored.are_contributors_examined else "not examined"
    lines: list[DisplayRow] = [
        ["outside reader", "all printed cells, and that values are not below 0", f"{int(audit.exact_outside.sum()):,}"],
        ["reader of zeros", "in addition, that a hidden number of records is not 0, since zeros are printed", zeros],
        ["contributor", "in addition, what the own records add to each cell", contributor],
        [
            "holder of earlier releases",
            "what earlier releases of these people printed; the three readers above are asked with it",
            "in the lines above",
        ],
    ]
    return table_from_titles(
        ("reader", "what this reader knows", "unsafe cells that follow exactly"), lines, right=(2,)
    )


def _earlier_text(stored: StoredTables) -> str:
    """Return with which earlier releases the tables were protected."""
    names = list(dict.fromkeys(one.release for one in stored.system.tables if one.release != stored.release))
    if not names:
        return NONE_EARLIER
    return f"The tables were protected together with those of {', '.join(names)}, released before."


def _counts_of_cells(stored: StoredTables) -> DocumentPart:
    """Return how many cells there are, are unsafe, hidden, exact, known too closely and undecided."""
    audit = stored.audit
    hidden = ~audit.published
    width = stored.counts["smallest_interval"]
    terms = [
        ("Tables", f"{len(stored.printed):,}"),
        ("Different cells", f"{stored.system.cell_count:,}, those of earlier releases among them"),
        ("Unsafe", f"{int(audit.primary.sum()):,}"),
        ("Hidden", f"{int(hidden.sum()):,}, of which {int((hidden & ~audit.primary).sum()):,} for others' sake"),
        ("Known too closely", f"{int(audit.short_of_level.sum()):,}"),
        ("Not found out", f"{int(audit.undecided.sum()):,}"),
        ("Cannot be protected", f"{int(stored.unprotected.sum()):,}"),
        ("Smallest interval of an unsafe cell", "none" if math.isnan(width) else f"{width:,.6g}"),
        ("People in cells that are not shown to be safe", f"{audit.people_affected:,}"),
    ]
    return DefinitionList(terms)


def _rules_table(dossier: ReleaseDossier) -> DocumentPart:
    """Return each rule in force beside the least that the policy wants."""
    protection = dossier.plan.run.recipe.table_protection
    own = dict(_rule_texts(protection.rules)) if protection is not None else {}
    least = dict(_rule_texts(dossier.policy.table_rules))
    lines: list[DisplayRow] = [
        [name, own.get(name, "none"), least.get(name, "none")] for name in dict.fromkeys((*own, *least))
    ]
    if protection is not None:
        lines += [
            ["cells without records", "hidden" if protection.zeros == "unsafe" else "printed", ""],
            ["cells that the recipe fixes", _fixed_text(protection), ""],
        ]
    return table_from_titles(("rule", "in the recipe", "at least, by the policy"), lines)


def _rule_texts(rules: TableRules) -> list[tuple[str, str]]:
    """Return the rules in words; their parameters are confidential, and this page is internal."""
    found = [("fewest contributors", f"{rules.threshold:,}")] if rules.threshold else []
    found += [(f"largest {n} of a sum", f"at most {k:g} % of it") for n, k in rules.dominance]
    if rules.p_percent is not None:
        found.append(("p %", f"{rules.p_percent:g}"))
    if rules.prior_posterior is not None:
        p, q = rules.prior_posterior
        found.append(("prior and posterior", f"{p:g} and {q:g} %"))
    return found


def _fixed_text(protection: TableProtection) -> str:
    """Return how many cells the recipe fixes, by what becomes of them."""
    words = [one.status for one in protection.fixed if one.status is not None]
    counts = [f"{words.count(word):,} {word}" for word in dict.fromkeys(words)]
    return ", ".join(counts) or "none"


def not_examined_of_tables(stored: StoredTables) -> list[str]:
    """Return what was not examined of tables, a sentence each."""
    lines = [GROUPS, COALITIONS, OTHER_SOURCES]
    if not stored.are_contributors_examined:
        lines.append(CONTRIBUTORS_NOT_EXAMINED)
    if number := int(stored.audit.undecided.sum()):
        lines.append(f"Of {count_noun(number, 'unsafe cell')} it was not found out; they do not count as safe.")
    if number := int(stored.unprotected.sum()):
        lines.append(LOST.format(number=count_noun(number, "unsafe cell")))
    return list(dict.fromkeys([*lines, *(one for one in stored.warnings if one != NOT_EXAMINED)]))


def _findings_part(dossier: ReleaseDossier) -> DocumentPart:
    """Return the findings that apply, the most harmful first."""
    lines: list[DisplayRow] = [
        [
            one.title,
            DisplayCell(one.state, one.status),
            one.message,
            finding_limit_text(one),
            people_text(one),
            one.advice,
        ]
        for one in sort_by_status([one for one in dossier.examination.findings if one.applies])
    ]
    if not lines:
        return Paragraph("The gate has no finding.")
    return table_from_titles(("check", "state", "found", "limit", "people", "how to fix it"), lines)
