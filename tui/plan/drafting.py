"""The dialog that drafts a plan: what it is wanted for, and what is asked of it, preselected by what the roles allow."""

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
from sfumato.engine.wording import count_noun
from sfumato.tui.parts.fields import Field
from sfumato.workspace.jobs.settings import JOBS
from sfumato.workspace.reporting.words import mark
from sfumato.workspace.store.workspace import Workspace

from ..parts.form import Form
from ..parts.page import Beside
from .plan_history import EditsPlan

if TYPE_CHECKING:
    from sfumato.workspace.plan.drafting import Wanted
    from sfumato.workspace.service.draft_data import DraftedText

WANTS = ("synthesis", "anonymisation", "evaluation")
MADE = ("sensitive only", "all")
DRAWN = ("from models", "from tables")
AUDIENCES = ("public", "contract", "enclave")
MOST_CHANGES = 3
"""Changes of kept columns that the notice of a draft lists; the comments of the plan have all."""
NO_ROLES = "No variable has a role yet: mark what an intruder may know of a person (quasi-identifiers) and what must not be learnt (sensitive) first"


class DraftForm(Form):
    """Answers what is wanted, as a table of ``draft_fields``, for these variables."""

    manual = "tutorial draft a recipe"

    DEFAULT_CSS = """
    DraftForm #draft-says { height: auto; margin-top: 1; }
    """

    def __init__(self, variables: Sequence[Variable], toml: str, records: int) -> None:
        self._variables, self._toml, self._records = tuple(variables), toml, records
        self._cost = ""
        super().__init__("Draft a plan", draft_fields(self._variables, planned_audience(toml)), self._check_wanted)

    def compose_beside(self) -> ComposeResult:
        """What becomes of which variables, and what it will take."""
        yield Static(id="draft-says", markup=False)

    def _check_wanted(self, answers: dict[str, Any]) -> None:
        self._cost = ""
        wanted = asked_wanted(answers)
        _ask_roles(self._variables, answers)
        from sfumato.workspace.service.costs import draft_cost_text

        with Workspace.open(self.sfumato.directory, read_only=True) as workspace:
            self._cost = draft_cost_text(workspace, self._toml, self._records, wanted, JOBS)

    @on(Form.Checked)
    def _say(self, event: Form.Checked) -> None:
        said = "" if event.problem else "\n".join(filter(None, [*_says(self._variables, event.table), self._cost]))
        self.query_one("#draft-says", Static).update(said)


class DraftsPlan(EditsPlan):
    """Has a plan drafted by another process, which reads the values."""

    @dataclass
    class Drafted(Message):
        """A plan was drafted, and may take the place of the one there is."""

        found: DraftedText

    def draft_apart(self, wanted: Wanted, toml: str) -> None:
        """Have what is wanted drafted for the records that a plan describes; ``Drafted`` brings it."""
        self.sfumato.say("The plan is being drafted")
        directory, project_id = self.sfumato.directory, self._project_id

        def draft(call: Beside) -> DraftedText:
            from sfumato.workspace.service.draft_data import RoleAssignment, draft_project

            return call(draft_project, directory, project_id, wanted, RoleAssignment(), toml, what="the draft")

        self.call_beside(draft, self.Drafted, group="draft")


def planned_audience(toml: str) -> str:
    """Return the audience that a plan names, the public where it names none or cannot be read."""
    try:
        named = read_toml(toml).get("release", {}).get("audience")
    except (BadInput, AttributeError):
        return AUDIENCES[0]
    return named if named in AUDIENCES else AUDIENCES[0]


def draft_fields(variables: Sequence[Variable], audience: str = AUDIENCES[0]) -> list[Field]:
    """The form: synthesis where a variable is sensitive, else anonymisation."""
    sensitive, known = _of(variables, Role.SENSITIVE), _of(variables, Role.QUASI_IDENTIFIER)
    want = "synthesis" if sensitive or not known else "anonymisation"
    classes, models = ("goal", ("anonymisation",)), ("goal", ("synthesis",))
    return [
        Field("goal", "synthetic records, a k-anonymous table, or an evaluation of existing files",
              value=want, choices=WANTS),
        Field("k", "fewest records of a class; default: what the audience requires", "value", when=classes),
        Field("l", "fewest different sensitive values in a class; default: any", "value", when=classes),
        Field("t", "largest distance of a class's sensitive values from the whole table's, above 0 to 1; default: any", "value", when=classes),
        Field("synthesise", "which variables are synthesised", value=MADE[0], choices=MADE, when=models),
        Field("drawn", "from a model of each variable, or from protected tables of counts, which are published too; with noise where the policy has an epsilon",
              value=DRAWN[0], choices=DRAWN, when=models),
        Field("m", "how many datasets are drawn", "value", 5, when=models),
        Field("audience", "who receives the release; kept columns become coarser or synthetic until they meet its limits",
              value=audience, choices=AUDIENCES),
    ]  # fmt: skip


def asked_wanted(answers: Mapping[str, Any]) -> Wanted:
    """What a form asks of a draft. Raises BadInput."""
    from sfumato.workspace.plan.drafting import Wanted

    want, k, m, l, t = (answers.get(name) for name in ("goal", "k", "m", "l", "t"))  # noqa: E741
    for name, number, least in (("k", k, 2), ("m", m, 1)):
        if name == "k" and number is None:
            continue
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
    tables = want == "synthesis" and answers.get("drawn") == DRAWN[1]
    return Wanted(
        want, answers.get("synthesise") == "all", m or 5, k, l_asked, None, t_asked,
        tables=tables, audience=answers.get("audience"),
    )  # fmt: skip


def _ask_roles(variables: Sequence[Variable], answers: Mapping[str, Any]) -> None:
    """BadInput where the roles do not say what is asked for."""
    sensitive, known = _of(variables, Role.SENSITIVE), _of(variables, Role.QUASI_IDENTIFIER)
    if not sensitive and not known:
        raise BadInput("roles", NO_ROLES)
    if answers["goal"] == "anonymisation" and not known:
        raise BadInput("roles", "an anonymisation needs quasi-identifiers: mark what an intruder may know of a person")
    if answers["goal"] != "anonymisation" and not sensitive and not _makes_all(answers):
        raise BadInput("roles", "no variable is sensitive: mark those to be synthesised, or set made = all")


def _makes_all(answers: Mapping[str, Any]) -> bool:
    """Whether every variable is made: tables are of all of them."""
    return answers.get("synthesise") == "all" or answers.get("drawn") == DRAWN[1]


def _says(variables: Sequence[Variable], answers: Mapping[str, Any]) -> list[str]:
    sensitive, known = _of(variables, Role.SENSITIVE), _of(variables, Role.QUASI_IDENTIFIER)
    every = [v.name for v in variables if v.role is not Role.IDENTIFIER]
    want = answers["goal"]
    changed = known if want == "anonymisation" else every if _makes_all(answers) else sensitive
    word = {"synthesis": "synthesised", "anonymisation": "generalised", "evaluation": "scored"}[want]
    kept = [name for name in every if name not in changed]
    judged = kept if answers.get("audience") == "public" else [name for name in kept if name in known]
    if want == "evaluation" or answers.get("audience") == "enclave":
        judged = []
    elif want == "anonymisation" and answers.get("audience") == "public":
        judged = [name for name in kept if name not in sensitive]
    unchanged = [name for name in kept if name not in judged]
    treatment = (
        "coarser or left out" if want == "anonymisation" else "unchanged, coarser or synthesised, as the limits require"
    )
    parts = [
        f"{word}: {_few(changed)}",
        f"{treatment}: {_few(judged)}" if judged else "",
        f"unchanged: {_few(unchanged)}" if unchanged else "",
    ]
    return [part for part in parts if part]


def _few(names: Sequence[str]) -> str:
    return ", ".join(names[:8]) + (f" and {len(names) - 8} more" if len(names) > 8 else "")


def _of(variables: Sequence[Variable], role: Role) -> list[str]:
    return [variable.name for variable in variables if variable.role is role]


def drafted_words(found: DraftedText) -> str:
    """What was drafted, and what nothing in it answers."""
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
    return " ".join([f"{mark('pass')} Drafted: {', '.join(counts)}.", *found.warnings, *changes, "u takes it back."])
