"""The forms in which datasets leave: the formats that can be written, by default that of the confidential file."""

from __future__ import annotations

from ..ingest.file_formats import format_called, format_of_name, formats

Form = str
"""The name of a format, such as "csv"."""


def forms() -> tuple[Form, ...]:
    return tuple(one.name for one in formats() if one.write is not None)


def keeps_codes(form: Form) -> bool:
    """Whether released levels are codes, with their labels, and kinds of missing value are kept."""
    return format_called(form).keeps_codes


def form_of(file: str) -> Form:
    """The form of data that came in a file of this name; CSV for all text."""
    found = format_of_name(file)
    return found.name if found.write is not None else found.released_as or "csv"
