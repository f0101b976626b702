"""Releases of a recipe whose records have a number each: once as an identifier, once as the number of a unit of one record.

A unit of one record is a record, so both releases must be equal byte for byte. What is not compared is what cannot be equal:
the role itself in the recipe, and what is made from the recipe's text or the clock (``mask_what_differs``).
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from sfumato.engine.data.toml import read_toml
from sfumato.engine.methods.run import PUBLIC
from sfumato.engine.recipe.overrides import apply_settings
from sfumato.engine.recipe.recipe import Recipe
from sfumato.workspace.ingest.files import SourceFile, find_source
from sfumato.workspace.jobs.worker import run_worker
from sfumato.workspace.recipes import find_recipe
from sfumato.workspace.service.prepare import prepare_on_source
from sfumato.workspace.service.release import write_run_release
from sfumato.workspace.store.workspace import Workspace

NUMBER = "number_of_the_record"
NOT_NAMED = "not named"
KEY = bytes(range(32))


def release_with_numbers(
    name: str, role: str, folder: Path, file: str = "", settings: Sequence[str] = (), records: int = 1
) -> Path:
    """Run and release a shipped recipe on its file with a column of distinct numbers of this role; return the release.

    Without a role the recipe does not name the column. ``records`` is that of each number, 1 but for a control. A number of units that the recipe declares gives way to the new one: there is at most one.
    """
    table = apply_settings(read_toml(find_recipe(name).text), list(settings))
    found = find_source(file or str(table["data"]["file"]))
    source = SourceFile(found.name, _add_numbers(found.content, records))
    declared = {key: one for key, one in table.get("variables", {}).items() if one.get("role") != "unit"}
    table["variables"] = {**declared, **({NUMBER: {"kind": "count", "role": role}} if role else {})}
    if role == "unit" and "epsilon" in table["release"]:
        # a promise holds for all data: that units have one record is stated, and not seen
        table["data"] = {**table["data"], "largest_unit": 1}
    # random numbers are bound to the data, which have a column more where it is named, but for those of a public key
    key = PUBLIC if "" in roles_of(name) else KEY
    prepared = prepare_on_source(Recipe.from_table(table), source, key=key)
    out = folder / (role or NOT_NAMED)
    with Workspace.create(folder / f"workspace-{role}", key) as workspace:
        run_id = prepared.enter(workspace)
        run_worker(workspace.directory, idle=0)
        write_run_release(workspace, run_id, out, reason="a comparison of two releases")
    return out


def roles_of(name: str) -> tuple[str, str]:
    """Return the roles of the numbers in the two releases of a recipe."""
    # an anonymised table has no identifier, nor have records of another number: the numbers are not named, or those of units
    table = find_recipe(name).table
    return ("", "unit") if "anonymisation" in table or "records" in table["release"] else ("identifier", "unit")


def _add_numbers(content: bytes, records: int) -> bytes:
    """Return a text file as one with commas and a last column of distinct whole numbers in random order."""
    text = content.decode("utf-8-sig")
    header, *rows = csv.reader(io.StringIO(text), delimiter="\t" if "\t" in text.partition("\n")[0] else ",")
    numbers = np.random.default_rng(len(rows)).permutation(len(rows)) // records + 1
    made = io.StringIO()
    writer = csv.writer(made, lineterminator="\n")
    writer.writerow([*(name.strip("'") for name in header), NUMBER])
    writer.writerows([*row, number] for row, number in zip(rows, numbers.tolist(), strict=True))
    return made.getvalue().encode()


MOST_LINES = 20
"""Lines of a file that are shown where they differ."""
MASKS = (
    # what a promise needs beside the role
    (rb"largest_unit = 1\n", b""),
    # hashes and identities, of which the recipe is a part, and the sizes of files in which it or the clock stands
    (rb"\b([0-9a-f]{128}|[0-9a-f]{64}|[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12})\b", b"<hash>"),
    (rb'(?<="bytes": )\d+|(?<=Payload-Oxum: )[\d.]+', b"<size>"),
    # the clock
    (rb"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d(\.\d+)?)?(Z|[+-]\d\d:\d\d| UTC)?", b"<time>"),
    (rb'(?<="seconds": )[\d.e-]+|[\d.,]+ (s|min|h)(?= of computing)', b"<seconds>"),
    # the role of the added column, where the recipe or a table of variables states it
    (
        NUMBER.encode() + rb'\]\nkind = (&quot;|")count(&quot;|")\nrole = (&quot;|")(identifier|unit)(&quot;|")',
        b"<role>",
    ),
    (
        NUMBER.encode() + rb"(</th>(<td></td>)?<td>count</td><td>| \|(  \|)? count \| )(identifier|unit number)",
        b"<role>",
    ),
)
"""What is not compared, in any file of a release: what is made from the text of the recipe or from the clock, and the role."""


def mask_what_differs(content: bytes) -> bytes:
    """Return a file of a release without what cannot be equal in two runs."""
    for pattern, word in MASKS:
        content = re.sub(pattern, word, content)
    return content


MENTIONS = (
    (rb"\n?\[variables\." + NUMBER.encode() + rb"\]\n(kind|role) = [^\n]*\n(kind|role) = [^\n]*\n", b""),
    (rb"<tr>(?:(?!</tr>).)*" + NUMBER.encode() + rb"(?:(?!</tr>).)*</tr>", b""),
    (rb"\| " + NUMBER.encode() + rb" [^\n]*\n", b""),
    (rb'\[\s*"' + NUMBER.encode() + rb'"\s*\]', b"[]"),
    (rb',\s*"' + NUMBER.encode() + rb'": 0', b""),
    (rb"<dt>Left out</dt><dd>" + NUMBER.encode() + rb"</dd>", b""),
    (rb" Left out: " + NUMBER.encode() + rb"\.", b""),
)
"""Where a file of a release mentions the column, which the first of two recipes does not name where it cannot."""


def files_of(folder: Path) -> list[str]:
    """List the files of a release, by name."""
    return sorted(str(one.relative_to(folder)) for one in folder.rglob("*") if one.is_file())


def differences(one: Path, other: Path) -> Iterator[str]:
    """Yield what differs between two releases: the file, the line and both texts."""
    if files_of(one) != files_of(other):
        yield f"files: {files_of(one)} and {files_of(other)}"
        return
    for name in files_of(one):
        mine, theirs = ((folder / name).read_bytes() for folder in (one, other))
        if one.name == NOT_NAMED:
            for pattern, word in MENTIONS:
                theirs = re.sub(pattern, word, theirs, flags=re.DOTALL if b"<tr>" in pattern else 0)
        mine, theirs = mask_what_differs(mine), mask_what_differs(theirs)
        if mine == theirs:
            continue
        lines, others = mine.split(b"\n"), theirs.split(b"\n")
        if sorted(lines) == sorted(others):
            yield f"{name}: the same {len(lines)} lines in another order"
            continue
        shown = 0
        for at, (a, b) in enumerate(zip(lines, others, strict=False), 1):
            if a != b:
                start = next((i for i, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), min(len(a), len(b)))
                shown += 1
                if shown > MOST_LINES:
                    break
                yield f"{name}:{at}: {a[max(0, start - 60) : start + 90]!r} and {b[max(0, start - 60) : start + 90]!r}"
        if len(lines) != len(others):
            yield f"{name}: {len(lines)} and {len(others)} lines"
