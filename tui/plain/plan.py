"""Menu Plan: draft by goal, list steps, set a value, show the cost."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from sfumato.engine.data.toml import read_toml
from sfumato.engine.errors import BadInput
from sfumato.engine.wording import count_noun
from sfumato.workspace.plan.drafts import PlanDraft, save_draft

from ..session.command_lines import change_text
from .session import MenuEntry, NumberedMenu, PlainSession
from .talk import ActNotPossible

if TYPE_CHECKING:
    from sfumato.engine.methods.audience import Audience
    from sfumato.workspace.plan.drafting import DraftRequest
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
HEAD_SECTIONS = ("data", "release", "weights")
"""The tables of a plan that are no steps and no variables, in the order listed."""


def draft_plan(session: PlainSession) -> None:
    """Draft steps, measures and limits for a goal, and replace those of the plan if the user agrees."""
    from sfumato.workspace.ingest.limits import READ_SECONDS
    from sfumato.workspace.jobs.processes import call_in_process
    from sfumato.workspace.service.draft_data import RoleAssignment, draft_project

    talk, draft = session.conversation, session.plan_draft()
    wanted = _ask_draft_request(session, draft)
    talk.say("The plan is drafted from the data; this can take a minute.")
    found = call_in_process(
        draft_project, session.workspace.directory, draft.project_id, wanted, RoleAssignment(), draft.toml,
        what="the draft", seconds=READ_SECONDS,
    )  # fmt: skip
    talk.print_lines([f"Warning: {one}" for one in found.warnings])
    talk.print_lines([*found.notes, found.cost])
    steps = ", ".join(f"{number} {section}" for section, number in found.steps.items())
    talk.say(f"The draft for {found.want} has {count_noun(sum(found.steps.values()), 'step')}: {steps}.")
    now = _readable_plan_view(draft).lines or ()
    if talk.confirm(f"Replace the {count_noun(len(now), 'step')} of the plan?", default=False):
        save_draft(session.workspace, draft.with_text(found.toml), draft.revision)
        talk.say("The plan is replaced by the draft.")
    else:
        talk.say("The plan is unchanged.")


def _ask_draft_request(session: PlainSession, draft: PlanDraft) -> DraftRequest:
    """Ask for the goal, the audience and the numbers that go with them."""
    from sfumato.engine.data.schema import Role
    from sfumato.workspace.plan.drafting import DraftRequest

    talk = session.conversation
    variables = _readable_plan_view(draft).table.get("variables", {})
    roles = {one.get("role") for one in variables.values() if isinstance(one, Mapping)}
    # "known" is an older word for the role of quasi-identifiers.
    known = Role.QUASI_IDENTIFIER.value in roles or "known" in roles
    likely = GOALS[0] if Role.SENSITIVE.value in roles or not known else GOALS[1]
    goal = GOALS[talk.choose("Which goal?", GOALS, likely, lambda: talk.print_numbered(GOALS_TEXT), "Goal")]
    from sfumato.workspace.plan.protection import DraftAudience
    from sfumato.workspace.policy.policy import read_policy_of_workspace

    policy = read_policy_of_workspace(session.workspace.directory)
    planned = DraftAudience.from_policy(policy, None, _readable_plan_view(draft).table).audience
    question = "Who receives the release?"
    audience = AUDIENCES[
        talk.choose(question, AUDIENCES, planned, lambda: talk.print_numbered(AUDIENCES_TEXT), "Audience")
    ]
    if goal == "anonymisation":
        smallest = DraftAudience.from_policy(policy, audience, {}).smallest_k
        k = talk.ask(
            "How many records in the smallest class?",
            "a whole number of at least 2",
            _whole_number_check(2),
            str(smallest),
        )
        talk.say(f"Smallest class: {count_noun(k, 'record')}.")
        return DraftRequest("anonymisation", k=k, audience=audience)
    tables = goal == "tables"
    full = not tables and talk.confirm("Synthesise every variable, not only the sensitive ones?", default=False)
    if goal == "evaluation":
        return DraftRequest("evaluation", full=full, audience=audience)
    m = talk.ask("How many datasets?", "a whole number from 1 to 1000", _whole_number_check(1, 1000), "5")
    talk.say(f"Datasets: {m}.")
    return DraftRequest("synthesis", full=full, m=m, tables=tables, audience=audience)


def _whole_number_check(least: int, most: int = 1_000_000_000) -> Callable[[str], int]:
    """Return a check that an answer is a whole number between two limits."""

    def check(answer: str) -> int:
        """Return the whole number that was answered. Raises BadInput."""
        # ``isdecimal`` accepts the digits of other scripts too.
        if not (answer.isascii() and answer.isdecimal() and len(answer) < 11 and least <= int(answer) <= most):
            raise BadInput("", f'"{answer}" is not possible.')
        return int(answer)

    return check


def _readable_plan_view(draft: PlanDraft) -> PlanView:
    """Return the view of a plan that can be read. Raises ActNotPossible."""
    from sfumato.workspace.plan.edits import parse_plan

    view = parse_plan(draft.toml)
    if view.lines is None:
        raise ActNotPossible(f"the plan cannot be read: {view.problem}")
    return view


def list_steps(session: PlainSession) -> None:
    """Print every step in a line, with the path that Set a value takes; then whether the plan can be run."""
    project, view = session.current_project(), _readable_plan_view(session.plan_draft())
    lines = view.lines or ()
    session.conversation.say(f"Plan of project {project.name}: {count_noun(len(lines), 'step')}.")
    for section in HEAD_SECTIONS:
        table = view.table.get(section)
        if isinstance(table, Mapping) and table:
            session.conversation.say(f"{section}: {_settings_text(table)}.")
    session.conversation.print_lines([f"{plan_step_line(line)}." for line in lines])
    session.conversation.print_lines([f"Warning: {one}." for one in view.warnings])
    problem = plan_problem(view)
    session.conversation.say(f"The plan cannot be run yet: {problem}." if problem else "The plan can be run.")


def plan_problem(view: PlanView) -> str:
    """Return why a plan cannot be run; empty where it can."""
    from sfumato.engine.recipe.steps import MAKERS

    if not view.problem and not any(view.table.get(section) for section in MAKERS):
        return "it makes no release. Draft a plan first; sfumato evaluate scores files of another tool"
    return view.problem


def plan_step_line(line: StepLine) -> str:
    """Return a step in one line: ``measure[0]: Identification (risk.identification); known: age, sex``; a limit by the name of its number."""
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
        more = f"; {_settings_text(table)}" if table else ""
        return f"{line.place}: {label_of(SeriesIdentity(value, target))}{limit}{more}"
    table.pop("method", None)
    family = {"measure": "", "study": ""}.get(line.place.section, f"{line.place.section}.")
    method = method_by_key(f"{family}{line.method}")
    title = line.method if method is None else f"{method.title} ({line.method})"
    return f"{line.place}: {title}{f'; {_settings_text(table)}' if table else ''}"


def _settings_text(table: Mapping[str, Any]) -> str:
    """Return the settings of a table on one line."""
    from sfumato.workspace.reporting.words import spelled

    return ", ".join(f"{name}: {spelled(value)}" for name, value in table.items())


def set_value(session: PlainSession) -> None:
    """Set one value of the plan by its path, as ``sfumato run --set`` does, unless the plan could then no longer be run."""
    from sfumato.engine.recipe.overrides import apply_settings
    from sfumato.workspace.plan.edits import parse_plan
    from sfumato.workspace.plan.rewrite import rewrite_plan

    draft = session.plan_draft()
    before = _readable_plan_view(draft)
    setting = session.conversation.ask(
        "Which value?",
        "a path, an equals sign and the value, such as release.m=5 or measure[0].radius=0.1",
        _check_setting,
    )
    try:
        toml = rewrite_plan(draft.toml, apply_settings(read_toml(draft.toml), [setting]))
    except BadInput as error:
        raise ActNotPossible(f"{error.place.removeprefix('--set ')}: {error.message}. The plan is unchanged.") from None
    after = parse_plan(toml)
    # An unfinished plan may be edited: only a new problem refuses the value.
    if after.lines is None or after.problem not in ("", before.problem):
        raise ActNotPossible(f"{after.problem}. The plan is unchanged.")
    if toml == draft.toml:
        session.conversation.say("The plan has this value already.")
        return
    save_draft(session.workspace, draft.with_text(toml), draft.revision)
    from sfumato.workspace.plan.edits import changed_lines

    session.conversation.say(f"Set: {' '.join(change_text(changed_lines(draft.toml, toml)).split())}.")
    session.conversation.print_lines([f"Warning: {one}." for one in after.warnings])


def _check_setting(answer: str) -> str:
    """Return a setting with a path and a value. Raises BadInput."""
    path, sign, value = answer.partition("=")
    if not (path.strip() and sign and value.strip()):
        raise BadInput("", f'"{answer}" has no path, or no value behind an equals sign.')
    return answer


def show_cost(session: PlainSession) -> None:
    """Print the time, memory and privacy cost of a run of the plan."""
    draft = session.plan_draft()
    if problem := plan_problem(_readable_plan_view(draft)):
        raise ActNotPossible(f"the cost is not known while the plan cannot be run: {problem}.")
    session.conversation.print_lines(cost_lines(session, draft))


def cost_lines(session: PlainSession, draft: PlanDraft) -> list[str]:
    """Return the cost of a run in time, memory and differential privacy. Raises BadInput where it is beyond the budget."""
    from sfumato.workspace.service.costs import plan_cost_text
    from sfumato.workspace.service.prepare import cost_notice

    records = session.workspace.find_dataset(draft.dataset_id).records
    takes = plan_cost_text(session.workspace, draft.toml, records, session.jobs)
    return [line for line in (takes, cost_notice(session.workspace, draft)) if line]


MENU = NumberedMenu(
    "Plan",
    "steps, measures and limits",
    (
        MenuEntry("Draft a plan", "by goal, from the roles of the variables", draft_plan),
        MenuEntry("List the steps", "each with its path and its settings", list_steps),
        MenuEntry("Set a value", "by its path, as sfumato run --set does", set_value),
        MenuEntry("Show the cost", "time, memory and privacy of a run", show_cost),
    ),
)
