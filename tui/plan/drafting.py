"""Dialog that drafts a plan: its goal and requirements, preselected according to the roles."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from textual import on
from textual.app import ComposeResult
from textual.message import Message
from textual.widgets import Static

from sfumato.engine.data.schema import Role, Variable
from sfumato.engine.data.toml import read_toml
from sfumato.engine.errors import BadInput
from sfumato.engine.wording import count_noun, join_first_names
from sfumato.tui.parts.fields import FormField
from sfumato.workspace.jobs.settings import DEFAULT_JOBS
from sfumato.workspace.reporting.words import sign_for
from sfumato.workspace.store.workspace import Workspace

from ..parts.form import Form
from ..parts.page import CallInProcess
from .plan_history import EditsPlan

if TYPE_CHECKING:
    from sfumato.workspace.plan.drafting import DraftRequest
    from sfumato.workspace.service.draft_data import DraftedText

GOALS = ("synthesis", "anonymisation", "evaluation")
SYNTHESISED = ("sensitive only", "all")
DRAW_METHODS = ("from models", "from tables")
AUDIENCES = ("public", "contract", "enclave")
MOST_CHANGES = 3
"""Number of changes of kept columns in the notice of a draft; the comments of the plan have all."""
NO_ROLES = "No variable has a role yet: mark what an intruder may know of a person (quasi-identifiers) and what must not be learnt (sensitive) first"


class DraftForm(Form):
    """Form for a draft of these variables; it returns a table of ``draft_fields``."""

    manual = "tutorial draft a recipe"

    DEFAULT_CSS = """
    DraftForm #draft-says { height: auto; margin-top: 1; }
    """

    def __init__(self, variables: Sequence[Variable], toml: str, records: int) -> None:
        """Create the form for a plan's variables and number of records."""
        self._variables, self._toml, self._records = tuple(variables), toml, records
        self._cost = ""
        super().__init__("Draft a plan", draft_fields(self._variables, planned_audience(toml)), self._check_request)

    def compose_extra(self) -> ComposeResult:
        """Yield the text about the treatment of the variables and the cost."""
        yield Static(id="draft-says", markup=False)

    def _check_request(self, answers: dict[str, Any]) -> None:
        """Check the answers against the roles, and compute the cost. Raises BadInput."""
        self._cost = ""
        wanted = draft_request_from_answers(answers)
        _check_roles(self._variables, answers)
        from sfumato.workspace.service.costs import draft_cost_text

        with Workspace.open(self.sfumato.directory, read_only=True) as workspace:
            self._cost = draft_cost_text(workspace, self._toml, self._records, wanted, DEFAULT_JOBS)

    @on(Form.FieldsChecked)
    def _show_consequences(self, event: Form.FieldsChecked) -> None:
        """Show the treatment of the variables and the cost, unless there is a problem."""
        said = (
            ""
            if event.problem
            else "\n".join(filter(None, [*_consequence_lines(self._variables, event.table), self._cost]))
        )
        self.query_one("#draft-says", Static).update(said)


class DraftsPlan(EditsPlan):
    """Mixin of a tab that drafts a plan in another process, which reads the values."""

    @dataclass
    class PlanDrafted(Message):
        """Message with a drafted plan that may replace the present one."""

        draft: DraftedText

    def draft_in_process(self, wanted: DraftRequest, toml: str) -> None:
        """Draft a plan in another process for the records that a plan describes, and post ``PlanDrafted``."""
        self.sfumato.say("The plan is being drafted")
        directory, project_id = self.sfumato.directory, self._project_id

        def draft(call: CallInProcess) -> DraftedText:
            """Draft the plan by ``call``."""
            from sfumato.workspace.service.draft_data import RoleAssignment, draft_project

            return call(draft_project, directory, project_id, wanted, RoleAssignment(), toml, what="the draft")

        self.compute_in_processes(draft, self.PlanDrafted, group="draft")


def planned_audience(toml: str) -> str:
    """Return the audience that a plan names; the public if it names none or cannot be read."""
    try:
        named = read_toml(toml).get("release", {}).get("audience")
    except (BadInput, AttributeError):
        return AUDIENCES[0]
    return named if named in AUDIENCES else AUDIENCES[0]


def draft_fields(variables: Sequence[Variable], audience: str = AUDIENCES[0]) -> list[FormField]:
    """Return the fields of the form; the goal is anonymisation if variables are known and none is sensitive, otherwise
    synthesis.
    """
    sensitive, known = _names_with_role(variables, Role.SENSITIVE), _names_with_role(variables, Role.QUASI_IDENTIFIER)
    want = "synthesis" if sensitive or not known else "anonymisation"
    classes, models = ("goal", ("anonymisation",)), ("goal", ("synthesis",))
    return [
        FormField("goal", "synthetic records, a k-anonymous table, or an evaluation of existing files",
              value=want, choices=GOALS),
        FormField("k", "fewest records of a class; default: what the audience requires", "value", shown_when=classes),
        FormField("l", "fewest different sensitive values in a class; default: any", "value", shown_when=classes),
        FormField("t", "largest distance of a class's sensitive values from the whole table's, above 0 to 1; default: any", "value", shown_when=classes),
        FormField("synthesise", "which variables are synthesised", value=SYNTHESISED[0], choices=SYNTHESISED, shown_when=models),
        FormField("drawn", "from a model of each variable, or from protected tables of counts, which are published too; with noise where the policy has an epsilon",
              value=DRAW_METHODS[0], choices=DRAW_METHODS, shown_when=models),
        FormField("m", "how many datasets are drawn", "value", 5, shown_when=models),
        FormField("audience", "who receives the release; kept columns become coarser or synthetic until they meet its limits",
              value=audience, choices=AUDIENCES),
    ]  # fmt: skip


def draft_request_from_answers(answers: Mapping[str, Any]) -> DraftRequest:
    """Return the request for a draft given the answers. Raises BadInput."""
    from sfumato.workspace.plan.drafting import DraftRequest

    want, k, m, l, t = (answers.get(name) for name in ("goal", "k", "m", "l", "t"))  # noqa: E741
    for name, number, least in (("k", k, 2), ("m", m, 1)):
        if name == "k" and number is None:
            continue
        # In Python a truth value is an integer.
        if isinstance(number, bool) or not isinstance(number, int) or number < least:
            raise BadInput(name, f"must be a whole number of at least {least}")
    for name, number, below in (("l", l, 1.0), ("t", t, 0.0)):
        if number is not None and (
            isinstance(number, bool) or not isinstance(number, int | float) or not number > below
        ):
            raise BadInput(name, f"must be a number above {below:g}, or be left out")
    if t is not None and t > 1:
        raise BadInput("t", "must be at most 1")
    l_asked, t_asked = (None if number is None else float(number) for number in (l, t))
    tables = want == "synthesis" and answers.get("drawn") == DRAW_METHODS[1]
    return DraftRequest(
        want, answers.get("synthesise") == "all", m or 5, k, l_asked, None, t_asked,
        tables=tables, audience=answers.get("audience"),
    )  # fmt: skip


def _check_roles(variables: Sequence[Variable], answers: Mapping[str, Any]) -> None:
    """Raise BadInput if the roles do not suffice for the request."""
    sensitive, known = _names_with_role(variables, Role.SENSITIVE), _names_with_role(variables, Role.QUASI_IDENTIFIER)
    if not sensitive and not known:
        raise BadInput("roles", NO_ROLES)
    if answers["goal"] == "anonymisation" and not known:
        raise BadInput("roles", "an anonymisation needs quasi-identifiers: mark what an intruder may know of a person")
    if answers["goal"] != "anonymisation" and not sensitive and not _synthesises_all(answers):
        raise BadInput("roles", "no variable is sensitive: mark those to be synthesised, or set synthesise = all")


def _synthesises_all(answers: Mapping[str, Any]) -> bool:
    """Return whether every variable is synthesised."""
    # Tables of counts are of all variables.
    return answers.get("synthesise") == "all" or answers.get("drawn") == DRAW_METHODS[1]


def _consequence_lines(variables: Sequence[Variable], answers: Mapping[str, Any]) -> list[str]:
    """Return what happens to which variables, a line for each treatment."""
    sensitive, known = _names_with_role(variables, Role.SENSITIVE), _names_with_role(variables, Role.QUASI_IDENTIFIER)
    every = [v.name for v in variables if v.role is not Role.IDENTIFIER]
    want = answers["goal"]
    changed = known if want == "anonymisation" else every if _synthesises_all(answers) else sensitive
    word = {"synthesis": "synthesised", "anonymisation": "generalised", "evaluation": "scored"}[want]
    kept = [name for name in every if name not in changed]
    # Limits for the public apply to every kept column, other limits to quasi-identifiers alone.
    judged = kept if answers.get("audience") == "public" else [name for name in kept if name in known]
    if want == "evaluation" or answers.get("audience") == "enclave":
        # Nothing is made coarser for an evaluation, or for users who see the data in an enclave.
        judged = []
    elif want == "anonymisation" and answers.get("audience") == "public":
        judged = [name for name in kept if name not in sensitive]
    unchanged = [name for name in kept if name not in judged]
    treatment = (
        "coarser or left out" if want == "anonymisation" else "unchanged, coarser or synthesised, as the limits require"
    )
    parts = [
        f"{word}: {_first_names(changed)}",
        f"{treatment}: {_first_names(judged)}" if judged else "",
        f"unchanged: {_first_names(unchanged)}" if unchanged else "",
    ]
    return [part for part in parts if part]


def _first_names(names: Sequence[str]) -> str:
    """Return the first eight names and the number of others."""
    return join_first_names(names, 8)


def _names_with_role(variables: Sequence[Variable], role: Role) -> list[str]:
    """Return the names of the variables with a role."""
    return [variable.name for variable in variables if variable.role is role]


def draft_text(found: DraftedText) -> str:
    """Describe what was drafted, with warnings and changes."""
    plural = {
        "synthesis": "synthesis steps",
        "anonymisation": "anonymisation steps",
        "measure": "measures",
        "threshold": "thresholds",
    }
    counts = [
        f"{count} {section if count == 1 else plural.get(section, section)}" for section, count in found.steps.items()
    ]
    changes = [*found.changes[:MOST_CHANGES]]
    if more := len(found.changes) - len(changes):
        changes.append(f"{count_noun(more, 'more column')} changed for the audience: see the comments of the plan.")
    return " ".join(
        [f"{sign_for('pass')} Drafted: {', '.join(counts)}.", *found.warnings, *changes, "u takes it back."]
    )
