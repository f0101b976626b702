"""Codebook in DDI-Codebook 2.5, for archives and catalogues: study, files, variables, and the levels that occur."""

from __future__ import annotations

from collections.abc import Sequence

from sfumato.engine.data.schema import Kind
from sfumato.engine.wording import count_noun

from ..ingest.file_formats import format_by_name
from ..plots.markup import Markup, element
from ..release.dossier import ReleaseDossier
from ..release.forms import DatasetForm
from .described import PublishedColumn, PublishedLevel, ReleaseDescription, describe_release
from .written import WrittenFile

NATURE = {
    Kind.CATEGORICAL: "nominal", Kind.BINARY: "nominal", Kind.ORDINAL: "ordinal", Kind.DATE: "interval",
    Kind.COUNT: "ratio", Kind.CONTINUOUS: "ratio",
}  # fmt: skip


def ddi_codebook(dossier: ReleaseDossier, written: Sequence[WrittenFile]) -> dict[str, bytes]:
    """Return ``codebook-ddi.xml`` as bytes, by name."""
    about = describe_release(dossier, written)
    book = element(
        "codeBook",
        _study_element(about),
        [_file_element(about, one, number, dossier.form) for number, one in enumerate(about.files, start=1)],
        element(
            "dataDscr", [_variable_element(about, one, number) for number, one in enumerate(about.columns, start=1)]
        ),
        version="2.5",
        xmlns="ddi:codebook:2_5",
    )
    return {"codebook-ddi.xml": f'<?xml version="1.0" encoding="UTF-8"?>\n{book}\n'.encode()}


def _study_element(about: ReleaseDescription) -> Markup:
    """Return the element of the study: title, producer, abstract and conditions of use."""
    software = element("software", "Sfumato", version=about.version or None)
    citation = element(
        "citation",
        element("titlStmt", element("titl", about.title)),
        element("prodStmt", element("producer", about.publisher) if about.publisher else "", software),
        element("distStmt", element("distrbtr", about.publisher, URI=about.address or None)) if about.publisher else "",
    )
    info = element(
        "stdyInfo",
        element("abstract", about.account),
        element("sumDscr", element("dataKind", f"{about.kind} microdata, {count_noun(about.datasets, 'dataset')}")),
    )
    access = element(
        "dataAccs",
        element(
            "useStmt",
            element("conditions", about.licence) if about.licence else "",
            element("disclaimer", " ".join(about.limits)),
        ),
        element("notes", " ".join(about.privacy), type="privacy", subject="differential privacy")
        if about.privacy
        else "",
    )
    return element("stdyDscr", citation, info, access)


def _file_element(about: ReleaseDescription, file: WrittenFile, number: int, form: DatasetForm) -> Markup:
    """Return the element of one dataset's file."""
    size = element("dimensns", element("caseQnty", str(about.records)), element("varQnty", str(len(about.columns))))
    written = format_by_name(form)
    said = f"{about.kind} data, dataset {number} of {about.datasets}"
    text = element(
        "fileTxt",
        element("fileName", file.name),
        element("fileCont", said),
        size,
        element("fileType", written.media_type, charset=written.charset or None),
    )
    return element("fileDscr", text, ID=f"F{number}", URI=file.name)


def _variable_element(about: ReleaseDescription, column: PublishedColumn, number: int) -> Markup:
    """Return the element of one variable, with the levels that occur."""
    variable = column.variable
    kind = variable.kind
    form = element(
        "varFormat",
        type="character" if kind.has_levels or kind is Kind.DATE else "numeric",
        category="date" if kind is Kind.DATE else None,
        formatname=column.date_format or None,
    )
    return element(
        "var",
        element("labl", variable.title) if variable.title else "",
        element("txt", column.treatment),
        [_category_element(one) for one in column.categories],
        form,
        ID=f"V{number}",
        name=column.name,
        files=" ".join(f"F{one}" for one in range(1, len(about.files) + 1)) or None,
        intrvl="contin" if kind is Kind.CONTINUOUS else "discrete",
        nature=NATURE[kind],
    )


def _category_element(category: PublishedLevel) -> Markup:
    """Return the element of one level."""
    return element(
        "catgry",
        element("catValu", category.value),
        element("labl", category.label),
        element("txt", f"code {category.code}") if category.code else "",
    )
