"""The release as a Croissant 1.1 dataset, for tools that load data by their description: files, columns, levels, responsible use."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any
from urllib.parse import quote

from sfumato.engine.data.schema import Kind
from sfumato.engine.wording import counted

from ..ingest.file_formats import format_called
from ..release.dossier import Dossier
from ..release.forms import Form
from .described import Column, Described, described
from .written import Written, json_document

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


def croissant(dossier: Dossier, written: Sequence[Written]) -> dict[str, bytes]:
    return {"croissant.json": json_document(dataset(described(dossier, written), dossier.form))}


def dataset(about: Described, form: Form) -> dict[str, Any]:
    """The dataset as JSON-LD; what only a publisher knows is left out until it is said."""
    given = {
        "license": about.licence,
        "url": about.address,
        "datePublished": about.published,
        "creator": {"@type": "sc:Organization", "name": about.publisher} if about.publisher else "",
    }
    return {
        "@context": dict(CONTEXT),
        "@type": "sc:Dataset",
        "conformsTo": CONFORMS,
        "name": about.title,
        "description": f"{about.kind} DATA. {about.account} {' '.join(about.limits)}",
        "keywords": [about.kind.lower(), "microdata", "statistical disclosure control"],
        **{key: value for key, value in given.items() if value},
        "version": "1.0.0",
        "isLiveDataset": False,
        "rai:dataCollection": about.account,
        "rai:dataCollectionType": f"{about.kind.capitalize()} microdata",
        "rai:dataManipulationProtocol": [f"{one.name}: {one.made}" for one in about.columns],
        "rai:dataLimitations": list(about.limits),
        "rai:personalSensitiveInformation": [about.account, *about.privacy] if about.privacy else about.account,
        "distribution": [_file(one, form) for one in about.files],
        "recordSet": [*_levels(about), *(_records(about, one, number) for number, one in enumerate(about.files, 1))],
    }


def _file(file: Written, form: Form) -> dict[str, Any]:
    written = format_called(form)
    return {
        "@type": "cr:FileObject",
        "@id": file.name,
        "name": file.name,
        "contentUrl": file.name,
        "encodingFormat": written.croissant_type or written.media_type,
        "contentSize": f"{file.bytes} B",
        "sha256": file.sha256,
    }


def _id(*parts: str) -> str:
    """A name within the document, whatever its parts are called."""
    return "/".join(quote(part, safe="") for part in parts)


def _levels(about: Described) -> list[dict[str, Any]]:
    """The levels of each variable as a set of records of its own.

    Columns say in words which is theirs: a reference would have tools join the two, which drops missing values.
    """
    return [
        {
            "@type": "cr:RecordSet",
            "@id": _id("levels", column.name),
            "name": f"levels of {column.name}",
            "dataType": "sc:Enumeration",
            "key": {"@id": _id("levels", column.name, "name")},
            "field": [
                {"@type": "cr:Field", "@id": _id("levels", column.name, "name"), "name": "name", "dataType": "sc:Text"}
            ],
            "data": [{_id("levels", column.name, "name"): one.value} for one in column.categories],
        }
        for column in about.columns
        if column.categories
    ]


def _records(about: Described, file: Written, number: int) -> dict[str, Any]:
    own = f"dataset-{number:02}"
    return {
        "@type": "cr:RecordSet",
        "@id": own,
        "name": own,
        "description": f"{about.kind} data, dataset {number} of {about.datasets}, {counted(about.records, 'record')}",
        "field": [_field(column, own, file) for column in about.columns],
    }


def _field(column: Column, own: str, file: Written) -> dict[str, Any]:
    title = f"{column.variable.title}. " if column.variable.title else ""
    levels = f"; its levels are the records of {_id('levels', column.name)}" if column.categories else ""
    return {
        "@type": "cr:Field",
        "@id": _id(own, column.name),
        "name": column.name,
        "description": f"{title}{column.made}{levels}",
        "dataType": TYPES.get(column.variable.kind, "sc:Text"),
        "source": {"fileObject": {"@id": file.name}, "extract": {"column": column.name}},
    }
