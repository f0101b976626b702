"""What the schema of DDI-Codebook 2.5 asks of the elements that are written."""

from __future__ import annotations

import xml.etree.ElementTree as ET

SPACE = "{ddi:codebook:2_5}"
ORDER = {
    "codeBook": ("stdyDscr", "fileDscr", "dataDscr"),
    "stdyDscr": ("citation", "stdyInfo", "dataAccs"),
    "citation": ("titlStmt", "prodStmt", "distStmt"),
    "titlStmt": ("titl",),
    "prodStmt": ("producer", "software"),
    "distStmt": ("distrbtr",),
    "stdyInfo": ("abstract", "sumDscr"),
    "sumDscr": ("dataKind",),
    "dataAccs": ("useStmt", "notes"),
    "useStmt": ("conditions", "disclaimer"),
    "fileDscr": ("fileTxt",),
    "fileTxt": ("fileName", "fileCont", "dimensns", "fileType"),
    "dimensns": ("caseQnty", "varQnty"),
    "dataDscr": ("var",),
    "var": ("labl", "txt", "catgry", "varFormat"),
    "catgry": ("catValu", "labl", "txt"),
}
"""Of the elements that are written, those that may stand in them, in the order that DDI-Codebook 2.5 gives."""


def check_structure(element: ET.Element) -> None:
    """What the schema asks of the elements that are written: known ones, in its order."""
    tag = element.tag.removeprefix(SPACE)
    assert element.tag.startswith(SPACE)
    places = [ORDER.get(tag, ()).index(child.tag.removeprefix(SPACE)) for child in element]
    assert places == sorted(places), tag
    if places:
        assert not (element.text or "").strip()
    for child in element:
        check_structure(child)
