"""Texts about a release: what is released, and where it was written."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sfumato.engine.wording import count_noun, count_records
from sfumato.workspace.visible_text import replace_unprintable

if TYPE_CHECKING:
    from sfumato.workspace.gate.contents import ReleasePlan
    from sfumato.workspace.release.forms import DatasetForm
    from sfumato.workspace.service.release import WrittenRelease


def released_text(done: WrittenRelease) -> str:
    """Return where a release was written, with its files and manifest, and the number of thresholds not met."""
    unmet = f"; {count_noun(done.n_unmet, 'threshold')} not met, the reason is in the audit log" if done.n_unmet else ""
    return f"released to {done.directory}: {count_noun(len(done.files), 'file')}, manifest sha256 {done.manifest_sha256}{unmet}"


def derived_names_text(plan: ReleasePlan, form: DatasetForm) -> str:
    """Return the columns whose names the program of a form refuses, each with the name in the datasets; empty for none."""
    from sfumato.workspace.release.tables import written_column_names

    written = written_column_names(form, plan.released_columns)
    return ", ".join(f"{name} ({other})" for name, other in written.items() if name != other)


def release_contents_lines(plan: ReleasePlan, form: DatasetForm) -> list[str]:
    """Return lines on what is released as files of a form, variable by variable."""
    tables = f"{count_noun(plan.datasets, 'dataset')} of {count_records(plan.records)}, {plan.row_order_text}"
    parts = {
        "replaced": plan.replaced,
        "unchanged from the confidential data": plan.unchanged_variables,
        "coarser by a public rule": plan.recoded_variables,
        "identifiers as surrogate keys": plan.surrogate_keys,
        "left out, identifiers": plan.identifiers_without_key,
        f"other names, as {form} needs them": [text] if (text := derived_names_text(plan, form)) else [],
    }
    # Names come after the words, so that no name can be read as words of ours.
    return [tables, *(replace_unprintable(f"{words}: {', '.join(names)}") for words, names in parts.items() if names)]
