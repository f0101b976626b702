"""Documents of a release, one in each module.

They follow from the dossier alone: the same dossier gives the same bytes.
"""

from __future__ import annotations

from .acro import acro_files
from .croissant import croissant_file
from .ddi_codebook import ddi_codebook
from .disclosure_control import disclosure_control
from .kept_tables import kept_table_documents
from .printed_tables import printed_table_files, printed_table_records
from .risk_assessment import risk_assessment
from .ro_crate import ro_crate
from .structure_check import structure_check
from .table_assessment import table_assessment
from .user_guide import user_documents
from .written import DocumentWriter, WrittenFile

PUBLIC_DOCUMENTS: tuple[DocumentWriter, ...] = (
    user_documents,
    kept_table_documents,
    printed_table_files,
    ddi_codebook,
    croissant_file,
)
"""What leaves the building beside the datasets: nothing here may say more of the confidential data than they do."""
INTERNAL_DOCUMENTS: tuple[DocumentWriter, ...] = (
    risk_assessment,
    disclosure_control,
    acro_files,
    ro_crate,
    structure_check,
    printed_table_records,
)
"""What stays with whoever answers for the release: as confidential as the data."""

PUBLIC_DOCUMENTS_OF_TABLES: tuple[DocumentWriter, ...] = (printed_table_files,)
"""What leaves the building of a release that has tables and no dataset."""
INTERNAL_DOCUMENTS_OF_TABLES: tuple[DocumentWriter, ...] = (
    table_assessment,
    disclosure_control,
    acro_files,
    printed_table_records,
    ro_crate,
)
"""What stays of such a release."""

__all__ = [
    "INTERNAL_DOCUMENTS",
    "INTERNAL_DOCUMENTS_OF_TABLES",
    "PUBLIC_DOCUMENTS",
    "PUBLIC_DOCUMENTS_OF_TABLES",
    "DocumentWriter",
    "WrittenFile",
]
