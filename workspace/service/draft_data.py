"""Drafts of plans for the records of a project or of a file.

Called in a process of their own, since numerical libraries are loaded here.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from sfumato.engine.data.affected_group import AffectedGroup
from sfumato.engine.data.microdata import Microdata, conform_to_schema
from sfumato.engine.data.schema import MissingPolicy, Role, Schema, Variable
from sfumato.engine.data.toml import read_toml
from sfumato.engine.errors import BadInput, near_miss_hint
from sfumato.engine.methods.drafting import Want
from sfumato.engine.methods.outputs import Question
from sfumato.engine.methods.table_profile import profile_table
from sfumato.engine.recipe.checks import check_steps
from sfumato.engine.recipe.data_source import DataSource
from sfumato.engine.recipe.recipe import Recipe
from sfumato.engine.statistics.missing_by_group import find_affected_group
from sfumato.engine.wording import format_percent, join_names

from ..errors import NotFound
from ..gate.questions import limits_with_sources
from ..ingest.columns import profile_columns, records_with_missing
from ..ingest.files import find_source, microdata_from_table
from ..jobs.memory import local_memory_limit
from ..jobs.settings import DEFAULT_JOBS
from ..jobs.task_costs import MeasuredCosts, measure_recent_costs
from ..plan.drafted_text import write_drafted_plan
from ..plan.drafting import DraftedPlan, DraftRequest, GateLimits, choose_goal, make_drafted_plan
from ..plan.drafts import find_draft
from ..plan.hierarchies import proposed_hierarchies
from ..policy.installed_packages import trusted_packages
from ..policy.policy import Policy, read_policy_of_workspace
from ..reporting.words import affected_group_text
from ..store.workspace import Workspace
from .costs import estimate_run_cost, run_cost_text
from .importing import EVERYTHING, ImportSelection, add_unit_column, draft_recipe, read_source


@dataclass(frozen=True, slots=True)
class DraftedText:
    """Drafted plan as TOML, with a summary.

    toml: the plan
    want: its goal
    steps: number of steps of each kind
    warnings, notes: what it covers and what it does not (``DraftedPlan``)
    cost: estimated cost, in a sentence
    changes: why each kept column became coarser or synthetic for the audience; the notes have them too
    """

    toml: str
    want: Want
    steps: Mapping[str, int]
    warnings: tuple[str, ...]
    notes: tuple[str, ...]
    cost: str
    changes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class RoleAssignment:
    """Roles of variables as the owner of a file sets them, instead of those of a plan.

    quasi_identifiers, sensitive: names by role
    left_out: variables that are no part of the plan
    """

    quasi_identifiers: tuple[str, ...] = ()
    sensitive: tuple[str, ...] = ()
    left_out: tuple[str, ...] = ()


def draft_project(
    directory: Path, project_id: int, wanted: DraftRequest, roles: RoleAssignment, toml: str = ""
) -> DraftedText:
    """Draft a plan for a project's records in place of the steps of its plan, or of ``toml``; store nothing.

    Raises NotFound where the project has no data, BadInput where roles are missing or nothing can be drafted.
    """
    with Workspace.open(directory, read_only=True) as workspace:
        draft = find_draft(workspace, project_id)
        if draft is None:
            raise NotFound("the project has no data to draft a plan for; import a file first")
        records = workspace.read_stored_dataset(workspace.find_dataset(draft.dataset_id))
        earlier = measure_recent_costs(workspace, len(records))
    toml = toml or draft.toml
    table = assign_roles(read_toml(toml), roles)
    schema = _schema_without_identifiers(table)
    missing = [v.name for v in schema if v.name not in records.schema]
    if missing:
        raise BadInput(
            f"variables.{missing[0]}", "the stored table has no such column; import the file again, or leave it out"
        )
    source = DataSource.from_table(table.get("data", {}))
    data = conform_to_schema(records.frame, schema, source.missing).dropped_after(records)
    affected = None
    if data.dropped and source.missing is MissingPolicy.DROP:
        whole = conform_to_schema(records.frame, schema, MissingPolicy.KEEP)
        affected = find_affected_group(whole, whole.any_missing_mask(schema.names))
    policy = read_policy_of_workspace(directory)
    if wanted.tables and wanted.epsilon is None:
        wanted = replace(wanted, epsilon=policy.epsilon)
    return draft_for_records(toml, table, data, wanted, policy, earlier, affected)


def draft_file(
    file: str, format_settings: Mapping[str, Any], wanted: DraftRequest, roles: RoleAssignment
) -> DraftedText:
    """Draft a plan for the records of a file; store nothing. ``format_settings`` are keys of ``[data.format]``.

    Raises BadInput.
    """
    source = find_source(file, place="FILE")
    raw, detection = read_source(source, format_settings, EVERYTHING)
    if not raw.records:
        raise BadInput("FILE", f'"{source.name}" has no records')
    found = profile_columns(raw)
    form = None if detection is None or detection.is_default else detection.format
    path = file if ":" in file and not Path(file).exists() else str(Path(file).expanduser().resolve())
    there = {column.variable.name for column in found}
    # A column that is given a role is no identifier, even where an import would suspect one.
    asked = ImportSelection(keep=tuple(name for name in (*roles.quasi_identifiers, *roles.sensitive) if name in there))
    columns = [column for column in asked.select_columns(found) if column.distinct or not column.is_included]
    raw = add_unit_column(raw, columns)
    incomplete = int(records_with_missing(raw, columns).sum()), raw.records
    toml = draft_recipe(asked.data_source(path, form, columns), Path(source.name).stem, columns, incomplete)
    table = assign_roles(read_toml(toml), roles)
    data = microdata_from_table(
        raw, source, DataSource.from_table(table["data"]), _schema_without_identifiers(table), 1, key=b""
    )
    return draft_for_records(toml, table, data, wanted, Policy())


def _schema_without_identifiers(table: Mapping[str, Any]) -> Schema:
    """Return the variables whose values a draft reads: all but identifiers of records. Raises BadInput."""
    own = table.get("variables", {})
    if not isinstance(own, Mapping):
        raise BadInput("variables", "must be a table, [variables]")
    found = (Variable.from_table(name, one, f"variables.{name}") for name, one in own.items())
    schema = Schema(tuple(variable for variable in found if variable.role is not Role.IDENTIFIER))
    order = table.get("data", {}).get("order")
    return replace(schema, order=order) if order in schema else schema


def draft_for_records(
    toml: str,
    table: Mapping[str, Any],
    data: Microdata,
    wanted: DraftRequest,
    policy: Policy,
    earlier: MeasuredCosts | None = None,
    affected: AffectedGroup | None = None,
) -> DraftedText:
    """Draft a plan for records; ``table`` is the content of ``toml``, possibly with other roles.

    ``affected`` is the group of which most were dropped from the records. Raises BadInput.
    """
    known = data.schema.names_by_role(Role.QUASI_IDENTIFIER)
    # The draft decides whose values must be complete; those of another draft are of other quasi-identifiers.
    own = {key: value for key, value in table.get("data", {}).items() if key != "complete_cases"}
    lacking = [name for name in known if data.missing_mask(name).any()]
    if lacking and choose_goal(data.schema, wanted) == "anonymisation":
        affected = find_affected_group(data, data.any_missing_mask(lacking)) or affected
        # No class covers a missing value. What the other variables lack is no reason to leave a person out.
        own = {**own, "missing": MissingPolicy.KEEP.value, "complete_cases": lacking}
        data = conform_to_schema(data.frame, data.schema, MissingPolicy.KEEP, complete_cases=lacking).dropped_after(
            data
        )
    table = {**table, "data": own}
    warnings = _dropping_warnings(data, own.get("rows") or "people", affected)

    def problem(planned: Mapping[str, Any]) -> BadInput | None:
        """Return what is wrong with a planned recipe on the data, or None."""
        try:
            recipe = Recipe.from_table(planned)
            check_steps(recipe, data, trusted_packages(recipe, policy.packages))
        except BadInput as error:
            return error
        return None

    # Columns of no role may become quasi-identifiers of an anonymisation for the public.
    named = (*known, *(v.name for v in data.schema if v.role is Role.OTHER and v.design is None))
    hierarchies = proposed_hierarchies(data, named if choose_goal(data.schema, wanted) == "anonymisation" else known)
    plan = make_drafted_plan(
        table, profile_table(data), wanted, make_gate_limit(policy), problem, hierarchies, policy, data
    )
    plan = replace(plan, warnings=(*warnings, *plan.warnings))
    cost = run_cost_text(
        estimate_run_cost(Recipe.from_table(plan.table), len(data), DEFAULT_JOBS, earlier, local_memory_limit())
    )
    return DraftedText(
        write_drafted_plan(toml, plan), plan.want, _count_steps(plan), plan.warnings, plan.notes, cost, plan.changes
    )


def _dropping_warnings(data: Microdata, noun: str, affected: AffectedGroup | None) -> tuple[str, ...]:
    """Return a warning about who is dropped for a missing value, and of which group most; none where nobody is."""
    if not data.dropped:
        return ()
    counts = sorted(data.missing_counts.items(), key=lambda one: -one[1])
    names = join_names([f"{name} ({count:,})" for name, count in counts if count])
    of = f" of {data.file_records:,} {noun}" if data.file_records else f" {noun}"
    lacking = f" of {names}" if names else ""
    more = "" if affected is None else f" {affected_group_text(affected, 'are dropped')}."
    return (
        f"{data.dropped:,}{of} ({format_percent(1 - data.complete_share)}) are dropped for a missing value{lacking}: "
        f"the release does not describe them.{more}",
    )


def _count_steps(plan: DraftedPlan) -> dict[str, int]:
    """Count the steps of a drafted plan by section."""
    sections = [step.section for step in plan.steps]
    return {section: sections.count(section) for section in dict.fromkeys(sections)}


def make_gate_limit(policy: Policy) -> GateLimits:
    """Return a function that maps a question to the limits from which the gate warns and blocks under a policy."""

    def limit(question: Question) -> tuple[tuple[float, str], ...]:
        return limits_with_sources(question, policy)

    return limit


def assign_roles(table: Mapping[str, Any], roles: RoleAssignment) -> dict[str, Any]:
    """Return a recipe's table whose variables have these roles.

    Raises BadInput where a name does not exist or is in two roles.
    """
    variables = dict(table.get("variables", {}))
    given = {
        **dict.fromkeys(roles.quasi_identifiers, Role.QUASI_IDENTIFIER.value),
        **dict.fromkeys(roles.sensitive, Role.SENSITIVE.value),
    }
    for name in (*given, *roles.left_out):
        if name not in variables:
            raise BadInput(
                "variables",
                f'no column "{name}"{near_miss_hint(name, list(variables)) or "; columns: " + ", ".join(variables)}',
            )
    if both := [name for name in roles.quasi_identifiers if name in roles.sensitive]:
        raise BadInput(f"variables.{both[0]}", "is given as a quasi-identifier and as sensitive; choose one")
    described = {
        name: {**one, "role": given[name]} if name in given else one
        for name, one in variables.items()
        if name not in roles.left_out
    }
    return {**table, "variables": described}
