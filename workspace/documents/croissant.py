"""Release as a Croissant 1.1 dataset, for tools that load data by their description: files, columns, levels, use."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any
from urllib.parse import quote

from sfumato.engine.data.schema import Kind
from sfumato.engine.wording import count_noun

from ..ingest.file_formats import format_by_name
from ..release.dossier import ReleaseDossier
from ..release.forms import DatasetForm
from .described import PublishedColumn, ReleaseDescription, describe_release
from .written import WrittenFile, json_document

CONFORMS = "http://mlcommons.org/croissant/1.1"
CONTEXT: Mapping[str, Any] = MappingProxyType(
    {
        "@language": "en",
        "@vocab": "https://schema.org/",
        "sc": "https://schema.org/",
        "cr": "http://mlcommons.org/croissant/",
        "rai": "http://mlcommons.org/croissant/RAI/",
        "dct": "http://purl.org/dc/terms/",
        "data": {"@id": "cr:data", "@type": "@json"},
        "dataType": {"@id": "cr:dataType", "@type": "@vocab"},
        "examples": {"@id": "cr:examples", "@type": "@json"},
        "conformsTo": "dct:conformsTo",
        **{
            name: f"cr:{name}"
            for name in (
                "annotation", "arrayShape", "citeAs", "column", "containedIn", "equivalentProperty", "excludes",
                "extract", "field", "fileProperty", "fileObject", "fileSet", "format", "includes", "isArray",
                "isLiveDataset", "jsonPath", "key", "md5", "parentField", "path", "readLines", "recordSet", "references",
                "regex", "repeated", "replace", "samplingRate", "sdVersion", "separator", "source", "subField",
                "transform", "unArchive", "value",
            )
        },
    }
)  # fmt: skip
TYPES = {Kind.COUNT: "sc:Integer", Kind.CONTINUOUS: "sc:Float", Kind.DATE: "sc:Date"}


def croissant_file(dossier: ReleaseDossier, written: Sequence[WrittenFile]) -> dict[str, bytes]:
    """Return ``croissant.json`` as bytes, by name."""
    return {"croissant.json": json_document(croissant_dataset(describe_release(dossier, written), dossier.form))}


def croissant_dataset(description: ReleaseDescription, form: DatasetForm) -> dict[str, Any]:
    """Return the dataset as JSON-LD; properties that only a publisher knows are left out until they are given."""
    given = {
        "license": description.licence,
        "url": description.address,
        "datePublished": description.published,
        "creator": {"@type": "sc:Organization", "name": description.publisher} if description.publisher else "",
    }
    return {
        "@context": dict(CONTEXT),
        "@type": "sc:Dataset",
        "conformsTo": CONFORMS,
        "name": description.title,
        "description": f"{description.kind} DATA. {description.account} {' '.join(description.limits)}",
        "keywords": [description.kind.lower(), "microdata", "statistical disclosure control"],
        **{key: value for key, value in given.items() if value},
        "version": "1.0.0",
        "isLiveDataset": False,
        "rai:dataCollection": description.account,
        "rai:dataCollectionType": f"{description.kind.capitalize()} microdata",
        "rai:dataManipulationProtocol": [f"{one.name}: {one.treatment}" for one in description.columns],
        "rai:dataLimitations": list(description.limits),
        "rai:personalSensitiveInformation": [description.account, *description.privacy]
        if description.privacy
        else description.account,
        "distribution": [_file_object(one, form) for one in description.files],
        "recordSet": [
            *_level_record_sets(description),
            *(_dataset_record_set(description, one, number) for number, one in enumerate(description.files, 1)),
        ],
    }


def _file_object(file: WrittenFile, form: DatasetForm) -> dict[str, Any]:
    """Return a dataset's file as Croissant describes it."""
    written = format_by_name(form)
    return {
        "@type": "cr:FileObject",
        "@id": file.name,
        "name": file.name,
        "contentUrl": file.name,
        "encodingFormat": written.croissant_type or written.media_type,
        "contentSize": f"{file.bytes} B",
        "sha256": file.sha256,
    }


def _quoted_id(*parts: str) -> str:
    """Return an identifier within the document, with its parts percent-encoded."""
    return "/".join(quote(part, safe="") for part in parts)


def _level_record_sets(about: ReleaseDescription) -> list[dict[str, Any]]:
    """Return the levels of each variable as a record set of its own."""
    # Columns name their levels in words: a reference would have tools join the two, which drops missing values.
    return [
        {
            "@type": "cr:RecordSet",
            "@id": _quoted_id("levels", column.name),
            "name": f"levels of {column.name}",
            "dataType": "sc:Enumeration",
            "key": {"@id": _quoted_id("levels", column.name, "name")},
            "field": [
                {
                    "@type": "cr:Field",
                    "@id": _quoted_id("levels", column.name, "name"),
                    "name": "name",
                    "dataType": "sc:Text",
                }
            ],
            "data": [{_quoted_id("levels", column.name, "name"): one.value} for one in column.categories],
        }
        for column in about.columns
        if column.categories
    ]


def _dataset_record_set(about: ReleaseDescription, file: WrittenFile, number: int) -> dict[str, Any]:
    """Return the record set of one dataset."""
    own = f"dataset-{number:02}"
    return {
        "@type": "cr:RecordSet",
        "@id": own,
        "name": own,
        "description": f"{about.kind} data, dataset {number} of {about.datasets}, {count_noun(about.records, 'record')}",
        "field": [_column_field(column, own, file) for column in about.columns],
    }


def _column_field(column: PublishedColumn, own: str, file: WrittenFile) -> dict[str, Any]:
    """Return a column of a dataset as a field of its record set."""
    title = f"{column.variable.title}. " if column.variable.title else ""
    levels = f"; its levels are the records of {_quoted_id('levels', column.name)}" if column.categories else ""
    return {
        "@type": "cr:Field",
        "@id": _quoted_id(own, column.name),
        "name": column.name,
        "description": f"{title}{column.treatment}{levels}",
        # tools read texts of this type as ISO 8601, or with the month first
        "dataType": "sc:Text" if column.date_format else TYPES.get(column.variable.kind, "sc:Text"),
        "source": {"fileObject": {"@id": file.name}, "extract": {"column": column.name}},
    }
