"""The rules of a plan: how many records break each, and which others all records keep to, to be marked and taken over."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any, ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical

from sfumato.engine.wording import counted
from sfumato.tui.export import Exportable
from sfumato.tui.fields import Field
from sfumato.tui.messages import ErrorMessage
from sfumato.tui.widgets.grid import Grid
from sfumato.tui.widgets.lines import KeyLine, Line
from sfumato.tui.widgets.marks import MarkedGrid
from sfumato.workspace.plan.drafts import Draft
from sfumato.workspace.reporting.constraints import RuleLine, RulesView
from sfumato.workspace.reporting.tables import Column, cells, fitted
from sfumato.workspace.reporting.words import mark
from sfumato.workspace.views.constraints import rules_of_plan
from sfumato.workspace.visible_text import printable

from .form import Form
from .page import Dialog, Exports, grid_exportable

COLUMNS = (
    Column("mark", "", 3),
    Column("name", "constraint", 12),
    Column("text", "rule", 30),
    Column("records", "records", 8, "right"),
    Column("said", "what they say", 16),
)
READING = "Counting the records that break the plan's rules, and looking for others that all of them keep to …"
NOTHING = "The plan has no rules, and none holds for all records beyond what chance explains. a writes one."


class RuleGrid(MarkedGrid):
    """The plan's rules, then those found in the data."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("enter", "select", "Take over", id="rules.take")]


class Rules(Dialog[dict[str, Any]], Exports):
    """Answers the ``[constraints]`` of the plan with what was taken over, written or taken out here."""

    manual = "recipe constraints"

    AUTO_FOCUS = "RuleGrid"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("a", "add", "Write one", id="rules.add"),
        Binding("X,delete", "remove", "Take out", id="rules.remove"),
    ]

    def __init__(self, draft: Draft, said: Mapping[str, Any]) -> None:
        super().__init__()
        self._draft, self._said = draft, dict(said)
        self._view: RulesView | None = None

    def compose(self) -> ComposeResult:
        """How many rules are broken, all of them, the one under the cursor in full, and the keys."""
        with Vertical(classes="whole"):
            yield Line(name="rules-head")
            yield RuleGrid(empty="…")
            yield Line(name="rules-reading")
            yield KeyLine()

    def reload(self) -> None:
        self.query_one("#rules-head", Line).say(READING)
        arguments = self.sfumato.directory, self._draft.dataset_id, self._draft.toml
        self.call_beside(lambda call: call(rules_of_plan, *arguments, what="looking at the data"), self.take)

    @on(ErrorMessage)
    def _tell(self, event: ErrorMessage) -> None:
        event.stop()
        self.query_one("#rules-head", Line).say(f"{mark('fail')} {printable(event.text)}")

    def take(self, answer: RulesView) -> None:
        self._view = answer
        self._show()

    def on_resize(self) -> None:
        """Give the columns their new widths, once there are rules."""
        self._show()

    @property
    def _lines(self) -> tuple[RuleLine, ...]:
        return (*self._view.said, *self._view.found) if self._view else ()

    def _show(self) -> None:
        if self._view is None:
            return
        self.query_one("#rules-head", Line).say(_head(self._view))
        grid = self.query_one(RuleGrid)
        grid.set_empty(NOTHING)
        columns = fitted(COLUMNS, self.size.width - 1, ("text", "name"), ("said",))
        values = [_values(line) for line in self._lines]
        rows = [cells(columns, row) for row in values]
        grid.show_sifted(columns, rows, [line.name for line in self._lines], values)

    @on(Grid.Highlighted)
    @on(Grid.Opened)
    def _read(self) -> None:
        line = self._here
        self.query_one("#rules-reading", Line).say(
            "" if line is None else f"{printable(line.name)}: {printable(line.text)}"
        )

    @property
    def _here(self) -> RuleLine | None:
        key = self.query_one(RuleGrid).key
        return next((line for line in self._lines if line.name == key), None)

    @on(Grid.Selected)
    def _take_over(self) -> None:
        chosen = set(self.query_one(RuleGrid).chosen)
        taken = [line for line in (self._view.found if self._view else ()) if line.name in chosen]
        if not taken:
            self.sfumato.say("The plan has this rule already; space marks others, X takes it out")
            return
        self.dismiss({**self._said, **{line.name: line.to_value() for line in taken}})

    def action_remove(self) -> None:
        """Take the rule under the cursor out of the plan."""
        line = self._here
        if line is None or line.name not in self._said:
            self.sfumato.say("It is not in the plan; enter takes it over")
            return
        self.dismiss({name: value for name, value in self._said.items() if name != line.name})

    async def action_add(self) -> None:
        fields = [
            Field("name", "what it is called: a word", value=None),
            Field("holds", "what every record keeps to, such as married = 'yes' -> age >= 15", value=None),
        ]

        def answered(table: dict[str, Any] | None) -> None:
            if table is not None:
                self.dismiss({**self._said, str(table["name"]): str(table["holds"])})

        await self.sfumato.open(
            Form("A rule of the plan", fields, partial(_check, self._draft.toml), topic="recipe constraints"), answered
        )

    def exportable(self) -> Exportable | None:
        return grid_exportable(self.query_one(RuleGrid), "rules")


def _check(toml: str, table: dict[str, Any]) -> None:
    """Raises BadInput where what was written is no rule."""
    from sfumato.engine.constraints.constraints import read_constraints
    from sfumato.engine.data.schema import Schema, Variable
    from sfumato.engine.data.toml import read_toml, section_of
    from sfumato.engine.errors import BadInput

    for key in ("name", "holds"):
        if not table.get(key):
            raise BadInput(key, "must be given")
    variables = section_of(read_toml(toml), "variables")
    schema = Schema(tuple(Variable.from_table(name, one, f"variables.{name}") for name, one in variables.items()))
    try:
        read_constraints({str(table["name"]): str(table["holds"])}, schema)
    except BadInput as error:
        raise BadInput("holds", error.message) from None


def _head(view: RulesView) -> str:
    """How many rules are broken, and how many were found."""
    rules, broken = len(view.said), sum(bool(line.broken) for line in view.said)
    said = f"{mark('fail')} {broken} of {rules} rules broken" if broken else f"{counted(rules, 'rule')} kept by all"
    found = f"{len(view.found)} more found in the data: space marks, enter takes over"
    return " · ".join([*([said] if rules else []), *([found] if view.found else [])])


def _values(line: RuleLine) -> dict[str, object]:
    found = line.support is not None
    sign = "" if found else mark("fail" if line.broken else "pass")
    unknown = f", {line.unknown:,} unknown" if line.unknown else ""
    return {
        "mark": f"  {sign}",
        "name": printable(line.name),
        "text": printable(line.text),
        "records": f"{line.support if found else line.broken:,}",
        "said": "in support" if found else f"violations{unknown}",
    }
