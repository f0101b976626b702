"""Menu Data: variables of the open project and their settings in the plan."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sfumato.engine.data.schema import Kind, Role, Variable
from sfumato.engine.errors import BadInput
from sfumato.engine.wording import count_noun, format_percent
from sfumato.workspace.plan.drafts import save_draft
from sfumato.workspace.plan.variables import change_kind, change_variables
from sfumato.workspace.reporting.words import role_text
from sfumato.workspace.views.data_view import DataView, VariableLine, read_data_view

from .session import MenuEntry, NumberedMenu, PlainSession
from .talk import ActNotPossible

ROWS_AT_ONCE = 10
"""Number of records that are printed at once."""
MISSING = "no value"
ISO_DATES = "2019-07-31"
"""Answer for dates that are written as ISO 8601 has them."""


def session_data_view(session: PlainSession) -> DataView:
    """Return the view of the open project's variables. Raises ActNotPossible."""
    view = read_data_view(session.workspace, session.plan_draft())
    if view.problem:
        raise ActNotPossible(f"the plan cannot be read: {view.problem}")
    return view


def list_variables(session: PlainSession) -> None:
    """Print every variable in a line: role, kind, missing values."""
    view = session_data_view(session)
    records = f"{count_noun(view.stored.records, 'record')} of {view.stored.name}"
    session.conversation.say(f"{records}, {count_noun(len(view.lines), 'variable')}.")
    session.conversation.print_numbered([variable_text(line) for line in view.lines])


def variable_text(line: VariableLine) -> str:
    """Return a variable on one line: ``age: quasi-identifier, count, no missing values``."""
    variable = line.variable
    title = f" ({variable.title})" if variable.title else ""
    if not line.is_planned:
        return f"{variable.name}{title}: excluded from the plan{f'; {line.left_out_reason}' if line.left_out_reason else ''}"
    missing = (
        "missing values not counted" if line.missing is None
        else f"{format_percent(line.missing)} missing" if line.missing else "no missing values"
    )  # fmt: skip
    problem = f"; {line.problem}" if line.problem else ""
    return f"{variable.name}{title}: {role_text(variable.role)}, {variable.kind}, {missing}{problem}"


def _ask_variable(session: PlainSession, view: DataView, question: str, *, planned: bool = True) -> VariableLine:
    """Ask for a variable, and return its line. Raises ActNotPossible where the plan includes none."""
    lines = [line for line in view.lines if line.is_planned or not planned]
    if not lines:
        raise ActNotPossible("the plan includes no variable. Include one first.")
    names = [line.variable.name for line in lines]
    return lines[
        session.conversation.choose(
            question, names, explain=lambda: session.conversation.print_numbered(list(map(variable_text, lines)))
        )
    ]


def _store_variable_changes(
    session: PlainSession, view: DataView, changes: Mapping[str, Mapping[str, Any] | None]
) -> None:
    """Store new tables of variables in the plan; None excludes a variable."""
    toml = change_variables(view.draft.toml, changes, tuple(view.stored.columns))
    if toml != view.draft.toml:
        # With the revision that was read: an edit from elsewhere is never overwritten.
        save_draft(session.workspace, view.draft.with_text(toml), view.draft.revision)


def set_role(session: PlainSession) -> None:
    """Give a variable a role."""
    view = session_data_view(session)
    variable = _ask_variable(session, view, "The role of which variable?").variable
    roles = list(Role)
    words = [role_text(role) for role in roles]
    role = roles[
        session.conversation.choose(f"The role of {variable.name}?", words, role_text(variable.role), what="Role")
    ]
    _store_variable_changes(session, view, {variable.name: {**variable.to_table(), "role": role.value}})
    session.conversation.say(f"{variable.name}: role {role_text(role)}, was {role_text(variable.role)}.")


def set_kind(session: PlainSession) -> None:
    """Give a variable a kind."""
    view = session_data_view(session)
    variable = _ask_variable(session, view, "The kind of which variable?").variable
    kinds = list(Kind)
    words = [kind.value for kind in kinds]
    kind = kinds[session.conversation.choose(f"The kind of {variable.name}?", words, variable.kind.value, what="Kind")]
    table = change_kind(variable, kind)
    if kind is Kind.DATE:
        form = _ask_date_format(session, variable)
        table = {key: value for key, value in table.items() if key != "format"} | ({"format": form} if form else {})
    _store_variable_changes(session, view, {variable.name: table})
    session.conversation.say(f"{variable.name}: kind {kind}, was {variable.kind}.")


def _ask_date_format(session: PlainSession, variable: Variable) -> str:
    """Return the form in which a variable's dates are written; empty for ISO 8601."""

    def check(answer: str) -> str:
        """Return the form, empty for ISO 8601. Raises BadInput."""
        form = "" if answer == ISO_DATES else answer
        Variable.from_table(variable.name, {"kind": Kind.DATE.value, "format": form}, "")
        return form

    now = variable.format if variable.kind is Kind.DATE else ""
    form = session.conversation.ask(
        f"How are the dates of {variable.name} written?",
        f"a form such as dd.mm.yyyy, or {ISO_DATES}",
        check,
        now or ISO_DATES,
    )
    session.conversation.say(f"Form: {form or ISO_DATES}.")
    return form


def include_or_exclude_variable(session: PlainSession) -> None:
    """Include a variable in the plan, or exclude it."""
    view = session_data_view(session)
    line = _ask_variable(session, view, "Include or exclude which variable?", planned=False)
    name = line.variable.name
    done, act = ("excluded", "Exclude") if line.is_planned else ("included", "Include")
    if session.conversation.confirm(f"{act} {name}?", default=True):
        _store_variable_changes(session, view, {name: None if line.is_planned else line.variable.to_table()})
        session.conversation.say(f"{name} is {done}.")


def show_rows(session: PlainSession) -> None:
    """Print some rows of the data; their values only after a question."""
    from sfumato.workspace.views.rows import find_stored_rows

    stored = find_stored_rows(session.workspace, session.plan_draft().dataset_id)
    talk = session.conversation
    talk.say(
        f"{count_noun(stored.records, 'record')} of {stored.name}, {count_noun(len(stored.variables), 'variable')}."
    )

    def check(answer: str) -> int:
        """Return the number of a record. Raises BadInput."""
        if not answer.isdecimal() or not 1 <= int(answer) <= stored.records:
            raise BadInput("", f"there are records 1 to {stored.records}")
        return int(answer)

    first = talk.ask("From which record?", f"a number from 1 to {stored.records}", check, "1")
    # An empty line takes the default, which must not show confidential values.
    if not talk.confirm(f"Show the values of {ROWS_AT_ONCE} records? They are confidential.", default=False):
        return
    for number, values in enumerate(stored.read_page(first - 1, ROWS_AT_ONCE), first):
        said = (
            f"{variable.name} {MISSING if value is None else plain_number(value)}"
            for variable, value in zip(stored.variables, values, strict=True)
        )
        talk.say(f"Record {number}, confidential: {', '.join(said)}.")


def plain_number(value: object) -> str:
    """Return a value as text, a float in the digits that tell it from others of its column."""
    return f"{value:.6g}" if isinstance(value, float) else str(value)


MENU = NumberedMenu(
    "Data",
    "variables with role, kind and missing values",
    (
        MenuEntry("List variables", "role, kind and missing values of each", list_variables),
        MenuEntry("Set a role", "quasi-identifier, sensitive, identifier, survey weight or other", set_role),
        MenuEntry("Set a kind", "categorical, ordinal, binary, count, continuous or date", set_kind),
        MenuEntry("Include or exclude", "a variable, in the plan", include_or_exclude_variable),
        MenuEntry("Rows", "ten records of the data, with their values after a question", show_rows),
    ),
)
