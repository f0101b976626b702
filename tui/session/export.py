"""Export of a screen's contents to files: a table as CSV, a plot as SVG or PNG. Called in threads."""

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

from ..widgets.pages import PAGE, PageSource
from .messages import JobDone

if TYPE_CHECKING:
    from sfumato.workspace.plots.figure import Figure

ExportTable = tuple[Sequence[str], Iterable[Sequence[object]]]
"""The heads of a table, and its rows."""
PICTURE_SUFFIXES = (".svg", ".png")
PUBLIC_MARK = "PUBLIC: what the policy of the workspace lets out"
PNG_SCALE = 2.0


class ExportError(WorkspaceError):
    """Failure of an export that cannot be written to this place or in this format."""


@dataclass(frozen=True)
class ScreenExport:
    """Table and plot of a screen that can be written to files.

    name: start of the file name
    table: returns heads and rows; may be slow
    figure: returns the plot; may be slow; None without a plot
    public: returns the part of the table that the workspace's policy lets out; None where that is nothing
    is_public: the table is that public part
    is_plot_shown: the plot is shown rather than the table; the plot is as confidential as the data
    """

    name: str
    table: Callable[[], ExportTable]
    figure: Callable[[], Figure] | None = None
    public: Callable[[], ExportTable] | None = None
    is_public: bool = False
    is_plot_shown: bool = True

    @property
    def public_export(self) -> ScreenExport | None:
        """Return the export of the public part of the table, or None."""
        return None if self.public is None else ScreenExport(self.name, self.public, is_public=True)

    @property
    def disclosure_mark(self) -> str:
        """Return the mark that accompanies the export: public or internal."""
        return PUBLIC_MARK if self.is_public else INTERNAL

    def file_name(self, suffix: str) -> str:
        """Return the file name with the disclosure mark: ``run-3-results-INTERNAL.csv``."""
        return f"{self.name}-{self.disclosure_mark.partition(':')[0]}{suffix}"

    @property
    def suffixes(self) -> tuple[str, ...]:
        """Return the suffixes of the files that can be written."""
        return (".csv", *PICTURE_SUFFIXES) if self.figure else (".csv",)

    @property
    def default_suffix(self) -> str:
        """Return the suffix of the file for what is shown: that of a plot or of a table."""
        return PICTURE_SUFFIXES[0] if self.figure and self.is_plot_shown else ".csv"


def table_of_records(record_type: type[Any], records: Iterable[Any], *first: str) -> ExportTable:
    """Return the column names and the rows of dataclass records, for export.

    The columns ``first`` come before the others; a value that is no number or text is written as JSON.
    """
    names = list(dict.fromkeys([*first, *(field.name for field in fields(record_type))]))
    return names, ([_plain_cell(getattr(record, name)) for name in names] for record in records)


def _plain_cell(value: object) -> object:
    """Return a number or text unchanged, any other value as JSON."""
    return (
        value if value is None or isinstance(value, (str, int, float)) else dumps(value, sort_keys=True, default=dict)
    )


def table_of_pages(source: PageSource) -> ExportTable:
    """Return the table that a grid shows, with its words and digits."""
    titles = [column.title or column.name for column in source.columns]
    return titles, (row[: len(titles)] for row in _read_all_pages(source))


def _read_all_pages(source: PageSource) -> Iterator[Sequence[object]]:
    for offset in range(0, source.count(), PAGE):
        yield from source.rows(offset, PAGE)


def to_csv(lines: ExportTable) -> str:
    """Return the table as CSV with a line of heads; a missing value is an empty cell."""
    text = StringIO()
    writer = csv.writer(text, lineterminator="\n")
    for line in (lines[0], *lines[1]):
        writer.writerow(
            # Each line of a cell is made plain by itself, so that line ends stay.
            ["\n".join(map(plain_cell, cell.split("\n"))) if isinstance(cell, str) else cell for cell in line]
        )
    return text.getvalue()


def to_tab_separated(lines: ExportTable) -> str:
    """Return the table as tab-separated lines, to paste into a sheet or a message."""
    rows = [
        ["" if value is None else replace_unprintable(str(value)) for value in row] for row in (lines[0], *lines[1])
    ]
    return "".join("\t".join(row) + "\n" for row in rows)


def check_export_path(exportable: ScreenExport, text: str) -> Path:
    """Return the path that a user typed. Raises ExportError when it cannot be written, or exists."""
    path = Path(text.strip()).expanduser().absolute()
    if path.suffix.lower() not in exportable.suffixes:
        raise ExportError(f'"{path.name}" must end in {" or ".join(exportable.suffixes)}')
    if not path.parent.is_dir():
        raise ExportError(f'There is no directory "{path.parent}"')
    if path.exists():
        raise ExportError(f'"{path}" exists; name another file')
    return path


def save_export(exportable: ScreenExport, path: Path) -> JobDone:
    """Write a table or a plot, by the suffix of the path, readable by its owner alone. Raises ExportError and OSError.

    .
    """
    content = _export_content(exportable, path.suffix.lower())
    # ``mkstemp`` makes a file that its owner alone can read.
    handle, aside = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
        # A link fails where the file exists; renaming would replace a file that was made since the path was checked.
        os.link(aside, path)
    except FileExistsError:
        raise ExportError(f'"{path}" exists; name another file') from None
    finally:
        Path(aside).unlink(missing_ok=True)
    return JobDone(f"Written to {path} ({len(content):,} bytes). {exportable.disclosure_mark}")


def _export_content(exportable: ScreenExport, suffix: str) -> bytes:
    """Return the bytes of an export in the format of a suffix."""
    if suffix == ".csv" or exportable.figure is None:
        return to_csv(exportable.table()).encode()
    from sfumato.workspace.plots.figure import mark_internal
    from sfumato.workspace.plots.svg import figure_svg

    figure = mark_internal(exportable.figure())
    drawing = f'<?xml version="1.0" encoding="UTF-8"?>\n{figure_svg(figure, exportable.name)}\n'
    return drawing.encode() if suffix == ".svg" else _png_bytes(drawing)


def _png_bytes(drawing: str) -> bytes:
    """Return an SVG drawing as a PNG. Raises ExportError where cairosvg is not installed."""
    from sfumato.workspace.plots.png import svg_to_png

    picture = svg_to_png(drawing, PNG_SCALE)
    if picture is None:
        raise ExportError(
            'A PNG needs the package cairosvg, which is not installed here: pip install "sfumato[png]"; .svg works without'
        )
    return picture
