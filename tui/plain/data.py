"""Data: the variables of the open project, and what the plan says of each."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sfumato.engine.data.schema import Kind, Role
from sfumato.engine.wording import count_noun, format_percent
from sfumato.workspace.plan.drafts import save_draft
from sfumato.workspace.plan.variables import of_kind, with_variables
from sfumato.workspace.reporting.words import role_text
from sfumato.workspace.views.data_view import DataView, VariableLine, outline

from .session import Entry, Menu, Session
from .talk import NotPossible


def view_of(session: Session) -> DataView:
    """The variables of the open project. Raises NotPossible."""
    view = outline(session.workspace, session.draft())
    if view.problem:
        raise NotPossible(f"the plan cannot be read: {view.problem}")
    return view


def list_variables(session: Session) -> None:
    """Every variable in a line: role, kind, missing values."""
    view = view_of(session)
    records = f"{count_noun(view.stored.records, 'record')} of {view.stored.name}"
    session.talk.say(f"{records}, {count_noun(len(view.lines), 'variable')}.")
    session.talk.list([variable_text(line) for line in view.lines])


def variable_text(line: VariableLine) -> str:
    """``age: quasi-identifier, count, no missing values``."""
    variable = line.variable
    title = f" ({variable.title})" if variable.title else ""
    if not line.planned:
        return f"{variable.name}{title}: excluded from the plan{f'; {line.why}' if line.why else ''}"
    missing = (
        "missing values not counted" if line.missing is None
        else f"{format_percent(line.missing)} missing" if line.missing else "no missing values"
    )  # fmt: skip
    problem = f"; {line.problem}" if line.problem else ""
    return f"{variable.name}{title}: {role_text(variable.role)}, {variable.kind}, {missing}{problem}"


def _ask_variable(session: Session, view: DataView, question: str, *, planned: bool = True) -> VariableLine:
    lines = [line for line in view.lines if line.planned or not planned]
    if not lines:
        raise NotPossible("the plan includes no variable. Include one first.")
    names = [line.variable.name for line in lines]
    return lines[
        session.talk.choose(question, names, explain=lambda: session.talk.list(list(map(variable_text, lines))))
    ]


def _store(session: Session, view: DataView, changes: Mapping[str, Mapping[str, Any] | None]) -> None:
    toml = with_variables(view.draft.toml, changes, tuple(view.stored.columns))
    if toml != view.draft.toml:
        save_draft(session.workspace, view.draft.saying(toml), view.draft.revision)


def set_role(session: Session) -> None:
    """Give a variable a role."""
    view = view_of(session)
    variable = _ask_variable(session, view, "The role of which variable?").variable
    roles = list(Role)
    words = [role_text(role) for role in roles]
    role = roles[session.talk.choose(f"The role of {variable.name}?", words, role_text(variable.role), what="Role")]
    _store(session, view, {variable.name: {**variable.to_table(), "role": role.value}})
    session.talk.say(f"{variable.name}: role {role_text(role)}, was {role_text(variable.role)}.")


def set_kind(session: Session) -> None:
    """Give a variable a kind."""
    view = view_of(session)
    variable = _ask_variable(session, view, "The kind of which variable?").variable
    kinds = list(Kind)
    words = [kind.value for kind in kinds]
    kind = kinds[session.talk.choose(f"The kind of {variable.name}?", words, variable.kind.value, what="Kind")]
    _store(session, view, {variable.name: of_kind(variable, kind)})
    session.talk.say(f"{variable.name}: kind {kind}, was {variable.kind}.")


def include(session: Session) -> None:
    """Include a variable in the plan, or exclude it."""
    view = view_of(session)
    line = _ask_variable(session, view, "Include or exclude which variable?", planned=False)
    name = line.variable.name
    done, act = ("excluded", "Exclude") if line.planned else ("included", "Include")
    if session.talk.confirm(f"{act} {name}?", default=True):
        _store(session, view, {name: None if line.planned else line.variable.to_table()})
        session.talk.say(f"{name} is {done}.")


MENU = Menu(
    "Data",
    "variables with role, kind and missing values",
    (
        Entry("List variables", "role, kind and missing values of each", list_variables),
        Entry("Set a role", "quasi-identifier, sensitive, identifier, survey weight or other", set_role),
        Entry("Set a kind", "categorical, ordinal, binary, count, continuous or date", set_kind),
        Entry("Include or exclude", "a variable, in the plan", include),
    ),
)
