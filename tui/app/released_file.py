"""Check of one anonymised file: which columns an intruder may know, and what the file shows by itself."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from textual.app import ComposeResult
from textual.binding import BindingType
from textual.content import Content

from sfumato.engine.errors import BadInput, near_miss_hint
from sfumato.tui.keys.acts import bind_act
from sfumato.tui.parts.fields import FormField
from sfumato.tui.session import jobs
from sfumato.tui.session.app_protocol import AppProtocol
from sfumato.tui.session.released_file import released_file_words
from sfumato.tui.widgets.lines import Scroll
from sfumato.tui.widgets.panel import DialogBox
from sfumato.workspace.reporting.tables import format_table
from sfumato.workspace.reporting.terminal_text import fold_text
from sfumato.workspace.visible_text import replace_unprintable

from ..parts.form import Form
from ..parts.offers import OfferedValue
from ..parts.page import Dialog

if TYPE_CHECKING:
    from sfumato.workspace.reporting.released_file import ReleasedFileView

TOPIC = "recipe one anonymised file"
FileColumns = Mapping[str, tuple[str, ...]]
"""First values of each column, by its name."""
FormAnswer = Callable[[dict[str, Any] | None], None]


def file_form(app: AppProtocol) -> tuple[Form, FormAnswer]:
    """Return the form that asks for a file, and the function that reads its columns."""

    def read_columns(table: dict[str, Any] | None) -> None:
        """Read the columns of the chosen file."""
        if table is not None:
            app.reading_notice.begin(table["file"])
            app.job(partial(jobs.read_released_columns, str(table["file"])))

    field = FormField("file", "the file that somebody anonymised; right completes the path", completes_paths=True)
    return Form("Check one anonymised file", [field], check_file, topic=TOPIC), read_columns


def check_file(table: dict[str, Any]) -> None:
    """Raise BadInput unless a form names a file."""
    file = str(table.get("file", ""))
    if not file or not Path(file).expanduser().is_file():
        raise BadInput("file", f'no such file "{file}"' if file else "name the anonymised file")


def columns_form(
    app: AppProtocol, file: str, columns: FileColumns, answers: Mapping[str, Any]
) -> tuple[Form, FormAnswer]:
    """Return the form for the variables and limits of a file, with ``answers`` given before, and what evaluates it."""
    offers = tuple(OfferedValue(name, ", ".join(map(replace_unprintable, columns[name]))) for name in columns)
    fields = [
        FormField("known", "columns that an intruder may know, such as age, sex", "list", answers.get("known"), offers=offers),
        FormField("sensitive", "sensitive columns, such as disease; empty: k alone", "list", answers.get("sensitive"), offers=offers),
        FormField("k", "limit: fewest records in a class; empty for no limit", "value", answers.get("k")),
        FormField("l", "limit: fewest different sensitive values in a class", "value", answers.get("l")),
        FormField("t", "limit: largest distance of a class from the whole file (0 to 1)", "value", answers.get("t")),
    ]  # fmt: skip

    def evaluate(table: dict[str, Any] | None) -> None:
        """Evaluate the file with the answers of the form."""
        if table is not None:
            app.reading_notice.begin(file)
            app.job(partial(jobs.evaluate_released, file, columns, table))

    title = f"What {replace_unprintable(Path(file).name)} is about"
    return Form(title, fields, partial(check_columns, columns), topic=TOPIC), evaluate


def check_columns(columns: FileColumns, table: dict[str, Any]) -> None:
    """Raise BadInput unless a form names known columns, and limits that can be met."""
    known, sensitive = (list(map(str, table.get(name, []))) for name in ("known", "sensitive"))
    for field, names in (("known", known), ("sensitive", sensitive)):
        if wrong := [name for name in names if name not in columns]:
            raise BadInput(field, f'no column "{wrong[0]}"{near_miss_hint(wrong[0], columns)}')
    if not known:
        raise BadInput("known", "name the columns that an intruder may know")
    if twice := [name for name in sensitive if name in known]:
        raise BadInput("sensitive", f'"{twice[0]}" is known too; leave it out of one')
    _check_limits(table)
    if limited := [name for name in ("l", "t") if table.get(name) is not None and not sensitive]:
        raise BadInput(limited[0], "it limits a sensitive column; name one")


def _check_limits(table: Mapping[str, Any]) -> None:
    """Raise BadInput at the field of a limit that is no number, or that any file or none would meet."""
    k, l, t = (table.get(name) for name in "klt")  # noqa: E741
    for name, value in (("k", k), ("l", l), ("t", t)):
        if value is not None and (isinstance(value, bool) or not isinstance(value, (int, float))):
            raise BadInput(name, f'"{value}" is no number')
    if k is not None and (k != int(k) or k < 2):
        raise BadInput("k", "a whole number from 2 on")
    if l is not None and l <= 1:
        raise BadInput("l", "a number above 1")
    if t is not None and not 0 < t <= 1:
        raise BadInput("t", "a number above 0, at most 1")


class ReleasedFileDialog(Dialog[None]):
    """Dialog with what one file shows by itself: verdict, sentences and tables."""

    AUTO_FOCUS = "Scroll"
    manual = TOPIC
    # The text is folded before a scrollbar takes room from it.
    DEFAULT_CSS = "ReleasedFileDialog Scroll { scrollbar-gutter: stable; }"

    BINDINGS: ClassVar[list[BindingType]] = [
        bind_act("open", "change", "Other columns", show=True),
        bind_act("report", "report", "Write the page", show=True),
    ]

    def __init__(self, view: ReleasedFileView, columns: FileColumns, answers: Mapping[str, Any]) -> None:
        """Create the dialog about a file that was evaluated with the ``answers`` of its form."""
        super().__init__()
        self._view, self._columns, self._answers = view, columns, dict(answers)

    def compose(self) -> ComposeResult:
        """Yield the box for the text."""
        name = replace_unprintable(Path(self._view.file).name)
        with DialogBox(f"What {name} shows by itself", "enter other columns, P page, q closes", tall=True):
            yield Scroll()

    def on_resize(self) -> None:
        """Fold the text for the width of the dialog."""
        self.call_after_refresh(self._show_text)

    def _show_text(self) -> None:
        """Write verdict, sentences and tables for the width of the dialog."""
        # Loads numerical libraries, which the thread that evaluated the file has done by now.
        from sfumato.workspace.reporting.released_file import (
            UNSEEN,
            limits_sentence,
            released_file_sentences,
            released_file_tables,
        )

        pane, view = self.query_one(Scroll), self._view
        width = max(20, pane.scrollable_content_region.width)

        def fold(text: str) -> str:
            """Return a text in lines of the width; the pane would fold a line again for a blank at its end."""
            return "\n".join(line.rstrip() for line in fold_text(text, width))

        style = "bold" if not view.verdicts else "$success bold" if view.are_limits_met else "$error bold"
        head = Content.styled(fold(limits_sentence(view)), style)
        texts = ["\n".join(map(fold, released_file_sentences(view)[1:]))]
        texts += [format_table(table, width) for table in released_file_tables(view)]
        texts.append(fold(UNSEEN))
        pane.show_text(Content("\n").join([head, Content(""), Content("\n\n".join(texts))]))

    async def action_change(self) -> None:
        """Ask for other columns or limits of the same file."""
        app, file = self.sfumato, self._view.file
        self.dismiss(None)
        await app.open(*columns_form(app, file, self._columns, self._answers))

    async def action_report(self) -> None:
        """Ask for a file, and write the page about this one."""
        from ..release.reports import check_report_form, proposed_file

        app, view = self.sfumato, self._view

        def write_page(table: dict[str, Any] | None) -> None:
            """Write the page in a thread."""
            if table is not None:
                path = Path(table["file"]).expanduser().absolute()
                app.job(partial(jobs.write_released_page, view, path, self.command_words()))

        field = FormField(
            "file",
            "a new HTML file, or Markdown where its name ends in .md; right completes the path",
            completes_paths=True,
            value=proposed_file(f"{Path(view.file).stem}-anonymity"),
        )
        await app.open(Form("Page about this file", [field], check_report_form, topic=TOPIC), write_page)

    def command_words(self) -> tuple[str, ...]:
        """Return the words of the command that shows the same."""
        return released_file_words(self._view)
