"""The forms in which datasets go out: by default that which the confidential file came in."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal, get_args

Form = Literal["csv", "parquet", "arrow", "excel", "spss", "stata", "sas-xpt"]
FORMS: tuple[Form, ...] = get_args(Form)
STATISTICAL: frozenset[Form] = frozenset({"spss", "stata", "sas-xpt"})
"""Those that keep codes, with their labels, and kinds of missing value."""


@dataclass(frozen=True, slots=True)
class FileType:
    """How a form is named: the ending of its files, its media type, and whose it is."""

    suffix: str
    media_type: str
    said: str


FILE_TYPES: dict[Form, FileType] = {
    "csv": FileType("csv", "text/csv", "CSV"),
    "parquet": FileType("parquet", "application/vnd.apache.parquet", "Parquet"),
    "arrow": FileType("arrow", "application/vnd.apache.arrow.file", "Arrow"),
    "excel": FileType("xlsx", "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet", "Excel"),
    "spss": FileType("sav", "application/x-spss-sav", "SPSS"),
    "stata": FileType("dta", "application/x-stata-dta", "Stata"),
    "sas-xpt": FileType("xpt", "application/x-sas-xport", "SAS transport"),
}
COMES_AS: dict[str, Form] = {
    ".parquet": "parquet", ".pq": "parquet", ".arrow": "arrow", ".feather": "arrow", ".ipc": "arrow", ".xlsx": "excel",
    ".sav": "spss", ".zsav": "spss", ".por": "spss", ".dta": "stata", ".xpt": "sas-xpt", ".sas7bdat": "sas-xpt",
}  # fmt: skip


def form_of(file: str) -> Form:
    """The form that a file of this name has; CSV for all text."""
    return COMES_AS.get(Path(file).suffix.lower(), "csv")
