"""The rules of a plan: how many records break each, and which others all records keep to, to be marked and taken over."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any, ClassVar

from textual import on
from textual.binding import BindingType

from sfumato.engine.wording import count_noun
from sfumato.tui.keys.acts import bind
from sfumato.tui.parts.fields import Field
from sfumato.tui.session.messages import ErrorMessage
from sfumato.tui.widgets.marks import MarkedGrid
from sfumato.tui.widgets.tables import Table, TableColumn
from sfumato.workspace.plan.drafts import Draft
from sfumato.workspace.reporting.constraints import RuleLine, RulesView
from sfumato.workspace.reporting.words import mark
from sfumato.workspace.views.constraints import rules_of_plan
from sfumato.workspace.visible_text import replace_unprintable

from ..parts.form import Form
from ..parts.page import Exports
from ..parts.tables import TableDialog

READING = "Counting the records that break the plan's rules, and looking for others that all of them keep to …"
NOTHING = "The plan has no rules, and none holds for all records beyond what chance explains. a writes one."


class RuleGrid(MarkedGrid):
    """The plan's rules, then those found in the data."""

    BINDINGS: ClassVar[list[BindingType]] = [bind("open", "select", "Take over", show=True)]


def _sign(line: RuleLine) -> str:
    return f"  {'' if line.support is not None else mark('fail' if line.broken else 'pass')}"


def _records(line: RuleLine) -> str:
    return f"{line.broken if line.support is None else line.support:,}"


def _said(line: RuleLine) -> str:
    unknown = f", {line.unknown:,} unknown" if line.unknown else ""
    return "in support" if line.support is not None else f"violations{unknown}"


TABLE: Table[RuleLine] = Table(
    (
        TableColumn("mark", "", 3, cell=_sign),
        TableColumn("name", "constraint", 12, cell=lambda line: replace_unprintable(line.name)),
        TableColumn("text", "rule", 28, grows=1, cell=lambda line: replace_unprintable(line.text)),
        TableColumn("records", "records", 8, "right", cell=_records),
        TableColumn("said", "what they say", 16, spare=1, cell=_said),
    ),
    key=lambda line: line.name,
)


class Rules(TableDialog[RuleLine, dict[str, Any]], Exports):
    """Answers the ``[constraints]`` of the plan with what was taken over, written or taken out here."""

    manual = "recipe constraints"
    called = exports = "rules"

    BINDINGS: ClassVar[list[BindingType]] = [
        bind("add", "add", "Write one", show=True),
        bind("delete", "remove", "Take out", show=True),
    ]

    def __init__(self, draft: Draft, said: Mapping[str, Any]) -> None:
        super().__init__()
        self._draft, self._said = draft, dict(said)
        self._view: RulesView | None = None

    def make_grid(self) -> RuleGrid:
        return RuleGrid(empty="…")

    def reload(self) -> None:
        self.say_head(READING)
        arguments = self.sfumato.directory, self._draft.dataset_id, self._draft.toml
        self.call_beside(lambda call: call(rules_of_plan, *arguments, what="looking at the data"), self.take)

    @on(ErrorMessage)
    def _tell(self, event: ErrorMessage) -> None:
        event.stop()
        self.say_head(f"{mark('fail')} {replace_unprintable(event.text)}")

    def take(self, answer: RulesView) -> None:
        self._view = answer
        self.say_head(_head(answer))
        self.grid.set_empty(NOTHING)
        self.show_rows(TABLE, (*answer.said, *answer.found))

    def reading(self, row: RuleLine) -> str:
        return f"{replace_unprintable(row.name)}: {replace_unprintable(row.text)}"

    async def chosen(self, _: RuleLine) -> None:
        """Take over the marked rules, or else the one under the cursor."""
        chosen = set(self.query_one(RuleGrid).chosen)
        taken = [line for line in (self._view.found if self._view else ()) if line.name in chosen]
        if not taken:
            self.sfumato.say("The plan has this rule already; space marks others, X takes it out")
            return
        self.dismiss({**self._said, **{line.name: line.to_value() for line in taken}})

    def action_remove(self) -> None:
        """Take the rule under the cursor out of the plan."""
        line = self.here
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


def _check(toml: str, table: dict[str, Any]) -> None:
    """Raises BadInput where what was written is no rule."""
    from sfumato.engine.constraints.constraints import read_constraints
    from sfumato.engine.data.schema import Schema, Variable
    from sfumato.engine.data.toml import get_table, read_toml
    from sfumato.engine.errors import BadInput

    for key in ("name", "holds"):
        if not table.get(key):
            raise BadInput(key, "must be given")
    variables = get_table(read_toml(toml), "variables")
    schema = Schema(tuple(Variable.from_table(name, one, f"variables.{name}") for name, one in variables.items()))
    try:
        read_constraints({str(table["name"]): str(table["holds"])}, schema)
    except BadInput as error:
        raise BadInput("holds", error.message) from None


def _head(view: RulesView) -> str:
    """How many rules are broken, and how many were found."""
    rules, broken = len(view.said), sum(bool(line.broken) for line in view.said)
    said = f"{mark('fail')} {broken} of {rules} rules broken" if broken else f"{count_noun(rules, 'rule')} kept by all"
    found = f"{len(view.found)} more found in the data: space marks, enter takes over"
    return " · ".join([*([said] if rules else []), *([found] if view.found else [])])
