"""Guided form for the smallest sufficient sample, with questions in plain words."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.widgets import OptionList, Static
from textual.widgets.option_list import Option

from sfumato.engine.wording import count_noun
from sfumato.tui.keys.acts import bind_act
from sfumato.tui.parts.fields import FormField
from sfumato.tui.session import jobs
from sfumato.tui.widgets.entries import PagedOptionList
from sfumato.tui.widgets.panel import DialogBox
from sfumato.workspace.service.guided_minimisation import ProjectTable, list_project_tables
from sfumato.workspace.visible_text import replace_unprintable

from ..parts.form import Form
from ..parts.page import Dialog

if TYPE_CHECKING:
    from sfumato.tui.session.app_protocol import AppProtocol
    from sfumato.workspace.store.workspace import Workspace

PURPOSE = """How many records have to be collected, so that an analysis can be done on anonymised data?
Samples of growing size are drawn from a table that you have, made anonymous, and compared with what they were. \
The answer is the smallest size at which the anonymised data are always good enough."""
NONE = "This project has no data yet. Leave with escape, and press n in Runs."


class GuidedMinimisation(Dialog[ProjectTable]):
    """Dialog that explains the search for the smallest sample; it returns the table to run it on."""

    manual = "app smallest sample"

    DEFAULT_CSS = "GuidedMinimisation OptionList { height: 1fr; margin-top: 1; }"
    BINDINGS: ClassVar[list[BindingType]] = [
        bind_act("down", "focused.cursor_down", only="j"),
        bind_act("up", "focused.cursor_up", only="k"),
    ]
    AUTO_FOCUS = "OptionList"

    def __init__(self, project_id: int) -> None:
        """Create the dialog about a project."""
        super().__init__()
        self._project_id = project_id
        self._found: Sequence[ProjectTable] = ()

    def compose(self) -> ComposeResult:
        """Yield the explanation and the tables."""
        with DialogBox("Smallest sample: choose the data", "enter chooses, esc closes", tall=True):
            yield Static(PURPOSE, id="guided-what", markup=False)
            yield PagedOptionList(compact=True)

    def read_query(self) -> Callable[[Workspace], Sequence[ProjectTable]]:
        """Return the query for the tables of the project."""
        project_id = self._project_id
        return lambda workspace: list_project_tables(workspace, project_id)

    def show_answer(self, answer: Sequence[ProjectTable]) -> None:
        """List the tables."""
        self._found = answer
        options = self.query_one(OptionList)
        texts = [
            replace_unprintable(
                f"{one.name}: {count_noun(one.records, 'record')}, {count_noun(len(one.variables), 'variable')}"
            )
            for one in self._found
        ]
        options.add_options([Option(text, id=str(place)) for place, text in enumerate(texts)])
        options.highlighted = 0 if self._found else None
        if not self._found:
            self.query_one("#guided-what", Static).update(NONE)

    @on(OptionList.OptionSelected)
    def _answer_chosen_data(self, event: OptionList.OptionSelected) -> None:
        """Close the dialog with the chosen table."""
        self.dismiss(self._found[int(str(event.option_id))])


async def ask_and_start_minimisation(app: AppProtocol, project_id: int) -> None:
    """Ask for the table, then for the settings, and start the run."""

    def start(data: ProjectTable, answers: dict[str, Any] | None) -> None:
        """Start the run with the answers."""
        if answers is not None:
            app.job(partial(jobs.find_smallest_sample, app.directory, data, answers))

    def ask(data: ProjectTable | None) -> None:
        """Ask for the settings of the chosen table."""
        if data is not None:
            form = Form(
                f"Smallest sample of {data.name}", minimisation_fields(data), partial(_check_minimisation, data)
            )
            app.call_later(app.open, form, partial(start, data))

    await app.open(GuidedMinimisation(project_id), ask)


def minimisation_fields(data: ProjectTable) -> list[FormField]:
    """Return the fields of the form, with the quasi-identifiers of the plan filled in."""
    free = tuple(name for name, table in data.variables.items() if table.get("role") != "identifier")
    return [
        FormField("known", "quasi-identifiers: what somebody might know of a person and find them by, such as age, sex, "
              f"town. To choose from: {', '.join(free)}", "list", list(data.known) or None, words=free),
        FormField("k", "smallest number of people who look alike in the anonymous data; 5 is usual",
              "value", default=5),
        FormField("n", "records that the analysis would need without anonymisation; sizes from n to 2 n are tried",
              "value", default=data.records // 2),
        FormField("r", "samples of each size: more make the answer surer, and the run longer", "value", default=5),
    ]  # fmt: skip


def _check_minimisation(data: ProjectTable, answers: dict[str, Any]) -> None:
    """Raise BadInput unless the answers make a valid recipe."""
    from sfumato.workspace.service.guided_minimisation import minimisation_recipe

    minimisation_recipe(data, answers)
