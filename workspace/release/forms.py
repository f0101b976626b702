"""File formats of released datasets."""

from __future__ import annotations

from ..ingest.file_formats import all_formats, format_by_name, format_of_suffix

DatasetForm = str
"""The name of a format, such as "csv"."""


def writable_forms() -> tuple[DatasetForm, ...]:
    """Return the names of the formats that can be written."""
    return tuple(one.name for one in all_formats() if one.write is not None)


def keeps_codes(form: DatasetForm) -> bool:
    """Return whether released levels are codes, with their labels, and kinds of missing value are kept."""
    return format_by_name(form).keeps_codes


def form_for_file(file: str) -> DatasetForm:
    """Return the default format for the datasets of a confidential file: its own where it can be written.

    CSV for all text.
    """
    found = format_of_suffix(file)
    return found.name if found.write is not None else found.released_as or "csv"
