"""What a screen shows, as files: a table as CSV, a plot as SVG or PNG. Called in threads."""

from __future__ import annotations

import csv
import os
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, fields
from io import StringIO
from json import dumps
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sfumato.workspace.errors import WorkspaceError
from sfumato.workspace.policy.disclosure import INTERNAL
from sfumato.workspace.visible_text import plain_cell, replace_unprintable

from ..widgets.pages import PAGE, Pages
from .messages import JobDone

if TYPE_CHECKING:
    from sfumato.workspace.plots.figure import Figure

Lines = tuple[Sequence[str], Iterable[Sequence[object]]]
"""The heads of a table, and its rows."""
PICTURES = (".svg", ".png")
PUBLIC = "PUBLIC: what the policy of the workspace lets out"
PNG_SCALE = 2.0


class NotExported(WorkspaceError):
    """What was asked for cannot be written there, or not like that."""


@dataclass(frozen=True)
class Exportable:
    """``name`` is the start of a file's name. ``table`` and ``figure`` may be slow; ``figure`` is None without a plot.

    ``drawn`` says that the plot is what is shown, where there is one. It is as confidential as the data; ``public`` gives what of the table the workspace's policy lets out, None where that is
    nothing.
    """

    name: str
    table: Callable[[], Lines]
    figure: Callable[[], Figure] | None = None
    public: Callable[[], Lines] | None = None
    is_public: bool = False
    drawn: bool = True

    @property
    def outside(self) -> Exportable | None:
        return None if self.public is None else Exportable(self.name, self.public, is_public=True)

    @property
    def mark(self) -> str:
        """What is said of it wherever it goes."""
        return PUBLIC if self.is_public else INTERNAL

    def file_name(self, suffix: str) -> str:
        """``run-3-results-INTERNAL.csv``: a table has no other room to say so."""
        return f"{self.name}-{self.mark.partition(':')[0]}{suffix}"

    @property
    def suffixes(self) -> tuple[str, ...]:
        """How the files that can be written end."""
        return (".csv", *PICTURES) if self.figure else (".csv",)

    @property
    def suffix(self) -> str:
        """How the file of what is shown ends: a plot is drawn, numbers are a table."""
        return PICTURES[0] if self.figure and self.drawn else ".csv"


def lines_of(kind: type[Any], records: Iterable[Any], *first: str) -> Lines:
    """A table with a column for each field of a dataclass, some of them ``first``; what is not a number or text as JSON."""
    names = list(dict.fromkeys([*first, *(field.name for field in fields(kind))]))
    return names, ([_plain(getattr(record, name)) for name in names] for record in records)


def _plain(value: object) -> object:
    return (
        value if value is None or isinstance(value, (str, int, float)) else dumps(value, sort_keys=True, default=dict)
    )


def of_pages(source: Pages) -> Lines:
    """The table that a grid shows, with its words and digits."""
    titles = [column.title or column.name for column in source.columns]
    return titles, (row[: len(titles)] for row in _rows(source))


def _rows(source: Pages) -> Iterator[Sequence[object]]:
    for offset in range(0, source.count(), PAGE):
        yield from source.rows(offset, PAGE)


def comma_separated(lines: Lines) -> str:
    """CSV with a line of heads; nothing stands for a value that is not there."""
    text = StringIO()
    writer = csv.writer(text, lineterminator="\n")
    for line in (lines[0], *lines[1]):
        writer.writerow(
            ["\n".join(map(plain_cell, cell.split("\n"))) if isinstance(cell, str) else cell for cell in line]
        )
    return text.getvalue()


def tab_separated(lines: Lines) -> str:
    """Lines to paste into a sheet or a message."""
    rows = [
        ["" if value is None else replace_unprintable(str(value)) for value in row] for row in (lines[0], *lines[1])
    ]
    return "".join("\t".join(row) + "\n" for row in rows)


def check_path(exportable: Exportable, text: str) -> Path:
    """The file that a user named. Raises NotExported when it cannot be written, or exists."""
    path = Path(text.strip()).expanduser().absolute()
    if path.suffix.lower() not in exportable.suffixes:
        raise NotExported(f'"{path.name}" must end in {" or ".join(exportable.suffixes)}')
    if not path.parent.is_dir():
        raise NotExported(f'There is no directory "{path.parent}"')
    if path.exists():
        raise NotExported(f'"{path}" exists; name another file')
    return path


def save(exportable: Exportable, path: Path) -> JobDone:
    """Write a table or a plot, by the end of the file's name, for its owner alone. Raises NotExported and OSError."""
    content = _content(exportable, path.suffix.lower())
    handle, aside = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
        os.link(aside, path)
    except FileExistsError:
        raise NotExported(f'"{path}" exists; name another file') from None
    finally:
        Path(aside).unlink(missing_ok=True)
    return JobDone(f"Written to {path} ({len(content):,} bytes). {exportable.mark}")


def _content(exportable: Exportable, suffix: str) -> bytes:
    if suffix == ".csv" or exportable.figure is None:
        return comma_separated(exportable.table()).encode()
    from sfumato.workspace.plots.figure import marked_internal
    from sfumato.workspace.plots.svg import svg

    figure = marked_internal(exportable.figure())
    drawing = f'<?xml version="1.0" encoding="UTF-8"?>\n{svg(figure, exportable.name)}\n'
    return drawing.encode() if suffix == ".svg" else _png(drawing)


def _png(drawing: str) -> bytes:
    from sfumato.workspace.plots.png import png

    picture = png(drawing, PNG_SCALE)
    if picture is None:
        raise NotExported(
            'A PNG needs the package cairosvg, which is not installed here: pip install "sfumato[png]"; .svg works without'
        )
    return picture
