"""Plan: drafted by goal, its steps, a value set, its cost."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from sfumato.engine.data.toml import read_toml
from sfumato.engine.errors import BadInput
from sfumato.engine.wording import count_noun
from sfumato.workspace.plan.drafts import Draft, save_draft

from ..session.command_lines import change_text, changed_lines
from .session import Entry, Menu, Session
from .talk import NotPossible

if TYPE_CHECKING:
    from sfumato.engine.methods.audience import Audience
    from sfumato.workspace.plan.drafting import Wanted
    from sfumato.workspace.plan.edits import PlanView, StepLine

GOALS = ("synthesis", "anonymisation", "evaluation", "tables")
GOALS_TEXT = (
    "synthesis: datasets drawn from models",
    "anonymisation: a k-anonymous table",
    "evaluation: scores for files that another tool made",
    "tables: datasets drawn from protected tables of counts, which are published too",
)
AUDIENCES: tuple[Audience, ...] = ("public", "contract", "enclave")
AUDIENCES_TEXT = (
    "public: anybody; somebody knows any column that is released unchanged",
    "contract: users bound by a contract; the quasi-identifiers count",
    "enclave: users inside a secure environment; kept columns are reported",
)
HEAD = ("data", "release", "weights")
"""The tables of a plan that are no steps and no variables, as they are listed."""


def draft_plan(session: Session) -> None:
    """Draft steps, measures and limits for a goal, and put them in place of the plan's own after a question."""
    from sfumato.workspace.ingest.limits import READ_SECONDS
    from sfumato.workspace.jobs.processes import call_in_process
    from sfumato.workspace.service.draft_data import RoleAssignment, draft_project

    talk, draft = session.talk, session.draft()
    wanted = _wanted(session, draft)
    talk.say("The plan is drafted from the data; this can take a minute.")
    found = call_in_process(
        draft_project, session.workspace.directory, draft.project_id, wanted, RoleAssignment(), draft.toml,
        what="the draft", seconds=READ_SECONDS,
    )  # fmt: skip
    talk.say_all([f"Warning: {one}" for one in found.warnings])
    talk.say_all([*found.notes, found.cost])
    steps = ", ".join(f"{number} {section}" for section, number in found.steps.items())
    talk.say(f"The draft for {found.want} has {count_noun(sum(found.steps.values()), 'step')}: {steps}.")
    now = _view(draft).lines or ()
    if talk.confirm(f"Replace the {count_noun(len(now), 'step')} of the plan?", default=False):
        save_draft(session.workspace, draft.saying(found.toml), draft.revision)
        talk.say("The plan is replaced by the draft.")
    else:
        talk.say("The plan is unchanged.")


def _wanted(session: Session, draft: Draft) -> Wanted:
    """The goal, and the sizes that go with it."""
    from sfumato.engine.data.schema import Role
    from sfumato.workspace.plan.drafting import Wanted

    talk = session.talk
    variables = _view(draft).table.get("variables", {})
    roles = {one.get("role") for one in variables.values() if isinstance(one, Mapping)}
    known = Role.QUASI_IDENTIFIER.value in roles or "known" in roles
    likely = GOALS[0] if Role.SENSITIVE.value in roles or not known else GOALS[1]
    goal = GOALS[talk.choose("Which goal?", GOALS, likely, lambda: talk.list(GOALS_TEXT), "Goal")]
    from sfumato.workspace.plan.protection import DraftAudience
    from sfumato.workspace.policy.policy import read_policy_of_workspace

    policy = read_policy_of_workspace(session.workspace.directory)
    planned = DraftAudience.from_policy(policy, None, _view(draft).table).audience
    question = "Who receives the release?"
    audience = AUDIENCES[talk.choose(question, AUDIENCES, planned, lambda: talk.list(AUDIENCES_TEXT), "Audience")]
    if goal == "anonymisation":
        smallest = DraftAudience.from_policy(policy, audience, {}).smallest_k
        k = talk.ask(
            "How many records in the smallest class?", "a whole number of at least 2", _whole(2), str(smallest)
        )
        talk.say(f"Smallest class: {count_noun(k, 'record')}.")
        return Wanted("anonymisation", k=k, audience=audience)
    tables = goal == "tables"
    full = not tables and talk.confirm("Synthesise every variable, not only the sensitive ones?", default=False)
    if goal == "evaluation":
        return Wanted("evaluation", full=full, audience=audience)
    m = talk.ask("How many datasets?", "a whole number from 1 to 1000", _whole(1, 1000), "5")
    talk.say(f"Datasets: {m}.")
    return Wanted("synthesis", full=full, m=m, tables=tables, audience=audience)


def _whole(least: int, most: int = 1_000_000_000) -> Callable[[str], int]:
    def check(answer: str) -> int:
        if not (answer.isascii() and answer.isdecimal() and len(answer) < 11 and least <= int(answer) <= most):
            raise BadInput("", f'"{answer}" is not possible.')
        return int(answer)

    return check


def _view(draft: Draft) -> PlanView:
    """The plan as it can be read. Raises NotPossible."""
    from sfumato.workspace.plan.edits import plan_view

    view = plan_view(draft.toml)
    if view.lines is None:
        raise NotPossible(f"the plan cannot be read: {view.problem}")
    return view


def list_steps(session: Session) -> None:
    """Every step in a line, by the place that Set a value takes; then whether the plan can be run."""
    project, view = session.project(), _view(session.draft())
    lines = view.lines or ()
    session.talk.say(f"Plan of project {project.name}: {count_noun(len(lines), 'step')}.")
    for section in HEAD:
        table = view.table.get(section)
        if isinstance(table, Mapping) and table:
            session.talk.say(f"{section}: {_settings(table)}.")
    session.talk.say_all([f"{step_text(line)}." for line in lines])
    session.talk.say_all([f"Warning: {one}." for one in view.threshold_warnings])
    problem = problem_of(view)
    session.talk.say(f"The plan cannot be run yet: {problem}." if problem else "The plan can be run.")


def problem_of(view: PlanView) -> str:
    """Why a plan cannot be run; empty where it can."""
    from sfumato.engine.recipe.steps import MAKERS

    if not view.problem and not any(view.table.get(section) for section in MAKERS):
        return "it makes no release. Draft a plan first; sfumato evaluate scores files of another tool"
    return view.problem


def step_text(line: StepLine) -> str:
    """``measure[0]: Identification (risk.identification); known: age, sex``; a limit by the name of its number."""
    from sfumato.engine.methods.labels import SeriesIdentity, label_of
    from sfumato.engine.methods.registry import method_by_key
    from sfumato.engine.recipe.thresholds import BOUNDS
    from sfumato.workspace.reporting.words import limit_text

    table = dict(line.table)
    if line.method == "threshold":
        value, target = str(table.pop("value", "")), str(table.get("target", ""))
        bound = next((one for one in BOUNDS if isinstance(table.get(one), int | float)), None)
        limit = "" if bound is None else f", {limit_text(bound, table.pop(bound), value)}"
        table.pop("target", None)
        more = f"; {_settings(table)}" if table else ""
        return f"{line.place}: {label_of(SeriesIdentity(value, target))}{limit}{more}"
    table.pop("method", None)
    family = {"measure": "", "study": ""}.get(line.place.section, f"{line.place.section}.")
    method = method_by_key(f"{family}{line.method}")
    title = line.method if method is None else f"{method.title} ({line.method})"
    return f"{line.place}: {title}{f'; {_settings(table)}' if table else ''}"


def _settings(table: Mapping[str, Any]) -> str:
    from sfumato.workspace.reporting.words import spelled

    return ", ".join(f"{name}: {spelled(value)}" for name, value in table.items())


def set_value(session: Session) -> None:
    """Set one value of the plan by its path, as ``sfumato run --set`` does. A plan that can be run stays one."""
    from sfumato.engine.recipe.overrides import apply_settings
    from sfumato.workspace.plan.edits import plan_view
    from sfumato.workspace.plan.rewrite import rewritten

    draft = session.draft()
    before = _view(draft)
    setting = session.talk.ask(
        "Which value?", "a path, an equals sign and the value, such as release.m=5 or measure[0].radius=0.1", _setting
    )
    try:
        toml = rewritten(draft.toml, apply_settings(read_toml(draft.toml), [setting]))
    except BadInput as error:
        raise NotPossible(f"{error.place.removeprefix('--set ')}: {error.message}. The plan is unchanged.") from None
    after = plan_view(toml)
    if after.lines is None or after.problem not in ("", before.problem):
        raise NotPossible(f"{after.problem}. The plan is unchanged.")
    if toml == draft.toml:
        session.talk.say("The plan has this value already.")
        return
    save_draft(session.workspace, draft.saying(toml), draft.revision)
    session.talk.say(f"Set: {' '.join(change_text(changed_lines(draft.toml, toml)).split())}.")
    session.talk.say_all([f"Warning: {one}." for one in after.threshold_warnings])


def _setting(answer: str) -> str:
    path, sign, value = answer.partition("=")
    if not (path.strip() and sign and value.strip()):
        raise BadInput("", f'"{answer}" has no path, or no value behind an equals sign.')
    return answer


def show_cost(session: Session) -> None:
    """What a run of the plan takes in time, memory and privacy."""
    draft = session.draft()
    if problem := problem_of(_view(draft)):
        raise NotPossible(f"the cost is not known while the plan cannot be run: {problem}.")
    session.talk.say_all(cost_lines(session, draft))


def cost_lines(session: Session, draft: Draft) -> list[str]:
    """What a run takes, and what it costs in differential privacy. Raises BadInput where that is beyond the budget."""
    from sfumato.workspace.service.costs import plan_cost_text
    from sfumato.workspace.service.prepare import cost_notice

    records = session.workspace.dataset(draft.dataset_id).records
    takes = plan_cost_text(session.workspace, draft.toml, records, session.jobs)
    return [line for line in (takes, cost_notice(session.workspace, draft)) if line]


MENU = Menu(
    "Plan",
    "steps, measures and limits",
    (
        Entry("Draft a plan", "by goal, from the roles of the variables", draft_plan),
        Entry("List the steps", "each with its path and its settings", list_steps),
        Entry("Set a value", "by its path, as sfumato run --set does", set_value),
        Entry("Show the cost", "time, memory and privacy of a run", show_cost),
    ),
)
