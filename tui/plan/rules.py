"""Dialog with the rules of a plan: the number of records that break each, and further rules that all
records satisfy.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any, ClassVar

from textual import on
from textual.binding import BindingType

from sfumato.engine.wording import count_noun
from sfumato.tui.keys.acts import bind_act
from sfumato.tui.parts.fields import FormField
from sfumato.tui.session.messages import ErrorMessage
from sfumato.tui.widgets.marks import MarkedGrid
from sfumato.tui.widgets.tables import GridTable, TableColumn
from sfumato.workspace.plan.drafts import PlanDraft
from sfumato.workspace.reporting.constraints import RuleLine, RulesView
from sfumato.workspace.reporting.words import sign_for
from sfumato.workspace.views.constraints import evaluate_rules_of_plan
from sfumato.workspace.visible_text import replace_unprintable

from ..parts.form import Form
from ..parts.page import OffersExport
from ..parts.tables import TableDialog

READING = "Counting the records that break the plan's rules, and looking for others that all of them keep to …"
NOTHING = "The plan has no rules, and none holds for all records beyond what chance explains. a writes one."


class RuleGrid(MarkedGrid):
    """Grid of the plan's rules, then those found in the data."""

    BINDINGS: ClassVar[list[BindingType]] = [bind_act("open", "select", "Take over", show=True)]


def _state_mark(line: RuleLine) -> str:
    """Return the sign of a rule: broken, kept, or none for a rule found in the data."""
    return f"  {'' if line.support is not None else sign_for('fail' if line.broken else 'pass')}"


def _record_count_text(line: RuleLine) -> str:
    """Return the number of records that break a rule, or support a rule found in the data."""
    return f"{line.broken if line.support is None else line.support:,}"


def _count_meaning(line: RuleLine) -> str:
    """Return what the number of records means."""
    unknown = f", {line.unknown:,} unknown" if line.unknown else ""
    return "in support" if line.support is not None else f"violations{unknown}"


TABLE: GridTable[RuleLine] = GridTable(
    (
        TableColumn("mark", "", 3, cell=_state_mark),
        TableColumn("name", "constraint", 12, cell=lambda line: replace_unprintable(line.name)),
        TableColumn("text", "rule", 28, grow_order=1, cell=lambda line: replace_unprintable(line.text)),
        TableColumn("records", "records", 8, "right", cell=_record_count_text),
        TableColumn("said", "what they say", 16, drop_order=1, cell=_count_meaning),
    ),
    key=lambda line: line.name,
)


class RulesDialog(TableDialog[RuleLine, dict[str, Any]], OffersExport):
    """Dialog with the rules of a plan; it returns the ``[constraints]`` after additions and removals."""

    manual = "recipe constraints"
    id_prefix = export_file = "rules"

    BINDINGS: ClassVar[list[BindingType]] = [
        bind_act("add", "add", "Write one", show=True),
        bind_act("delete", "remove", "Take out", show=True),
    ]

    def __init__(self, draft: PlanDraft, said: Mapping[str, Any]) -> None:
        """Create the dialog for a plan with its constraints."""
        super().__init__()
        self._draft, self._said = draft, dict(said)
        self._view: RulesView | None = None

    def make_grid(self) -> RuleGrid:
        """Return the grid of rules."""
        return RuleGrid(empty="…")

    def reload(self) -> None:
        """Evaluate the rules on the data in another process."""
        self.set_head(READING)
        arguments = self.sfumato.directory, self._draft.dataset_id, self._draft.toml
        self.compute_in_processes(
            lambda call: call(evaluate_rules_of_plan, *arguments, what="looking at the data"), self.show_answer
        )

    @on(ErrorMessage)
    def _show_error(self, event: ErrorMessage) -> None:
        """Show an error in the heading."""
        event.stop()
        self.set_head(f"{sign_for('fail')} {replace_unprintable(event.text)}")

    def show_answer(self, answer: RulesView) -> None:
        """Show the plan's rules and those found in the data."""
        self._view = answer
        self.set_head(_rules_summary(answer))
        self.grid.set_empty_text(NOTHING)
        self.show_rows(TABLE, (*answer.said, *answer.found))

    def describe_row(self, row: RuleLine) -> str:
        """Return name and text of a rule."""
        return f"{replace_unprintable(row.name)}: {replace_unprintable(row.text)}"

    async def open_row(self, _: RuleLine) -> None:
        """Close the dialog with the marked rules added, or the one under the cursor."""
        chosen = set(self.query_one(RuleGrid).chosen_keys)
        taken = [line for line in (self._view.found if self._view else ()) if line.name in chosen]
        if not taken:
            self.sfumato.say("The plan has this rule already; space marks others, X takes it out")
            return
        self.dismiss({**self._said, **{line.name: line.to_recipe_value() for line in taken}})

    def action_remove(self) -> None:
        """Close the dialog without the rule under the cursor."""
        line = self.current_row
        if line is None or line.name not in self._said:
            self.sfumato.say("It is not in the plan; enter takes it over")
            return
        self.dismiss({name: value for name, value in self._said.items() if name != line.name})

    async def action_add(self) -> None:
        """Ask for a rule, and add it."""
        fields = [
            FormField("name", "what it is called: a word", value=None),
            FormField("holds", "what every record keeps to, such as married = 'yes' -> age >= 15", value=None),
        ]

        def add_typed_rule(table: dict[str, Any] | None) -> None:
            """Close the dialog with the typed rule."""
            if table is not None:
                self.dismiss({**self._said, str(table["name"]): str(table["holds"])})

        await self.sfumato.open(
            Form("A rule of the plan", fields, partial(_check_rule, self._draft.toml), topic="recipe constraints"),
            add_typed_rule,
        )


def _check_rule(toml: str, table: dict[str, Any]) -> None:
    """Raise BadInput if the typed text is not a rule."""
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


def _rules_summary(view: RulesView) -> str:
    """Return the number of broken rules and of rules found in the data."""
    rules, broken = len(view.said), sum(bool(line.broken) for line in view.said)
    said = (
        f"{sign_for('fail')} {broken} of {rules} rules broken" if broken else f"{count_noun(rules, 'rule')} kept by all"
    )
    found = f"{len(view.found)} more found in the data: space marks, enter takes over"
    return " · ".join([*([said] if rules else []), *([found] if view.found else [])])
