"""Drafting of a whole plan (steps, measures and thresholds, each with its reason) from roles, kinds and goal.

``make_drafted_plan`` depends on values alone: a profile of the variables (``engine.methods.table_profile``), the plan
as it stands and the request. Methods define themselves what they suit, with which settings and why
(``engine.methods.drafting``). Only the analyst can declare what an intruder knows of a person, so nothing is drafted
without roles. A draft states what it does not cover.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from sfumato.engine.adversary.kept_column_limits import KeptColumnLimits
from sfumato.engine.constraints.unit_terms import PLACE, SIZE
from sfumato.engine.data.microdata import Microdata
from sfumato.engine.data.recoding import recode_data
from sfumato.engine.data.schema import Kind, Role, Schema, Variable
from sfumato.engine.errors import BadInput, NotComputable
from sfumato.engine.methods.audience import Audience
from sfumato.engine.methods.drafting import (
    GENERAL,
    Case,
    DeclinedOffer,
    Offer,
    OfferedLimit,
    Want,
    request_offer,
)
from sfumato.engine.methods.outputs import QUESTIONS, Question
from sfumato.engine.methods.registry import OWN, Method, find_method, method_of_step, registry
from sfumato.engine.methods.table_profile import TableProfile, VariableProfile, profile_table
from sfumato.engine.recipe.provenance import release_provenance
from sfumato.engine.recipe.recipe import Recipe
from sfumato.engine.statistics.combining import combining_rule
from sfumato.engine.wording import agreeing_word, count_noun, join_names, singular_noun

from ..policy.policy import Policy
from .protection import (
    ColumnProtection,
    DraftAudience,
    KeptColumnDraft,
    choose_quasi_identifiers,
    evaluation_warning,
    is_counted,
)
from .unit_steps import UnitStages

RECORDS_OF_A_UNIT = 5
"""Records of a unit that a drafted step with noise counts at most."""
INTERROGATED_RECORDS = 100
"""Records about which a drafted measure asks the strongest intruder: each takes seconds."""
MAX_PREDICTORS = 10
MAX_PREDICTOR_LEVELS = 50
"""A predictor of more levels tells single records apart."""
MIN_RECORDS_FOR_CONTROLS = 1000
"""Records from which on some are held out: with fewer, controls are too few to show what the gate blocks."""
HOLDOUT_SHARES = (0.2, 0.25, 0.3)
"""Shares of the records that a draft holds out: the smallest that decides the limits, else the largest."""
WEIGHT_STRENGTH = 0.5
"""Weight that a record with unique quasi-identifiers loses, where these are kept."""
MEASURE_FAMILIES = ("utility", "quality", "risk")
LINKAGE_QUESTION: Question = QUESTIONS[1]
"""The question whether a person is linked to a record, by its place: a draft knows no method by its name, and one is called so."""
STEP_SECTIONS = ("synthesis", "anonymisation", "measure", "study", "threshold", "published")
"""Sections that a draft replaces."""
LEAF_OF_PLACES = 1
"""Records of a leaf where the place of a record determines its value: a leaf tells nothing that the place does not."""
UNKNOWN_DESIGN_NOTE = "Each row is taken for one person, unrelated to the others: the draft does not consider households, several rows a person or survey designs"

GateLimits = Callable[[Question], tuple[tuple[float, str], ...]]
"""Returns the limits from which the gate warns of the answer to a question and from which it blocks, each with its source."""
CheckRecipe = Callable[[Mapping[str, Any]], BadInput | None]
"""Returns what is wrong with a recipe's table on the data, or None."""


@dataclass(frozen=True, slots=True)
class DraftRequest:
    """Request for a draft of a plan.

    want: goal; None: synthesis where a variable is sensitive, else anonymisation
    full: synthesise every variable, not only the sensitive ones
    m: number of datasets
    k: smallest class; None is what the audience requires
    l, p, t: parameters of further guarantees (l-diversity, p-sensitivity, t-closeness), None if not requested
    holdout: whether to hold records out; None: where there are enough records
    tables: synthesise all variables from protected tables of counts
    epsilon: privacy budget of the noise in these tables, None for no noise
    audit: audit single people, which repeats the plan hundreds of times
    audience: audience; None is the plan's, else the public
    """

    want: Want | None = None
    full: bool = False
    m: int = 5
    k: int | None = None
    l: float | None = None  # noqa: E741
    p: int | None = None
    t: float | None = None
    holdout: bool | None = None
    tables: bool = False
    epsilon: float | None = None
    audit: bool = False
    audience: Audience | None = None

    @property
    def makes_everything(self) -> bool:
        """Return whether every variable is synthesised."""
        return self.full or self.tables


@dataclass(frozen=True, slots=True)
class DraftedStep:
    """Drafted step of a plan.

    section: section of the recipe
    table: the step as a recipe's table
    reason: why it stands there
    """

    section: str
    table: Mapping[str, Any]
    reason: str


@dataclass(frozen=True, slots=True)
class DraftedPlan:
    """Drafted plan.

    want: its goal
    steps: steps in a recipe's order
    tables: tables ``data``, ``variables`` and ``release`` to go with them
    warnings: what may be taken for safe and is not
    notes: other remarks
    rule_reasons: reasons of the public rules in ``[release] recode``
    changes: reason of each kept column that became coarser or synthetic for the audience
    """

    want: Want
    steps: tuple[DraftedStep, ...]
    tables: Mapping[str, Any]
    warnings: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    rule_reasons: tuple[str, ...] = ()
    changes: tuple[str, ...] = ()

    @property
    def table(self) -> dict[str, Any]:
        """Return the whole drafted plan as a recipe's table."""
        found: dict[str, Any] = dict(self.tables)
        for step in self.steps:
            found.setdefault(step.section, []).append(dict(step.table))
        return found


def make_drafted_plan(
    table: Mapping[str, Any],
    profile: TableProfile,
    request: DraftRequest,
    gate_limit: GateLimits = lambda _: (),
    check: CheckRecipe | None = None,
    hierarchies: Mapping[str, Mapping[str, Any]] | None = None,
    policy: Policy | None = None,
    data: Microdata | None = None,
) -> DraftedPlan:
    """Draft a plan for a recipe's table; its title, data and variables stay.

    ``hierarchies`` are trees and widths for quasi-identifiers, as the tables ``hierarchies`` and ``widths`` of recipes
    write them. Without ``check`` the drafted plan is checked by itself, not on the data. ``policy`` has the limits of
    the audience, ``data`` the records whose kept columns must satisfy them; without records kept columns stay
    unchanged. Raises BadInput where roles are missing, or nothing is left to do.
    """
    audience = DraftAudience.from_policy(policy or Policy(), request.audience, table)
    return _PlanDrafter(
        table, profile, request, gate_limit, check or _check_without_data, hierarchies or {}, audience, data
    ).make_plan()


def _check_without_data(table: Mapping[str, Any]) -> BadInput | None:
    """Return why a recipe's table is no valid recipe, or None; the data are not needed for that."""
    try:
        Recipe.from_table(table)
    except BadInput as error:
        return error
    return None


def ranked_offers(
    case: Case,
    family: str,
    kind: Kind | None = None,
    decline: Callable[[str, str], None] = lambda *_: None,
    joint: bool = False,
) -> list[tuple[Method, Offer]]:
    """List the methods of a family that offer a step for a case, each with its offer, the most suited first.

    Among equals built-in methods come first. ``decline`` is called with the key and the reason of each method that
    declines. With ``joint`` only methods that synthesise several variables at once are asked, else only those that
    synthesise one.
    """
    found = []
    for method in registry().values():
        if (
            method.family != family
            or method.joint is not joint
            or (kind is not None and method.synthesis.targets and kind not in method.synthesis.targets)
        ):
            continue
        offer = request_offer(method, case)
        if isinstance(offer, DeclinedOffer):
            decline(method.key, offer.reason)
        elif offer is not None:
            found.append((method, offer))
    return sorted(found, key=lambda one: (-one[1].rank, one[0].package != OWN))


def choose_goal(schema: Schema, request: DraftRequest) -> Want:
    """Return the goal of a plan: as requested, else synthesis where a variable is sensitive, else anonymisation."""
    if request.want is not None:
        return request.want
    known, sensitive = schema.names_by_role(Role.QUASI_IDENTIFIER), schema.names_by_role(Role.SENSITIVE)
    return "synthesis" if sensitive or request.makes_everything or not known else "anonymisation"


@dataclass
class _PlanDrafter:
    """State of one draft: its inputs, and the warnings and notes that the steps collect."""

    table: Mapping[str, Any]
    profile: TableProfile
    request: DraftRequest
    gate_limit: GateLimits
    check: CheckRecipe
    hierarchies: Mapping[str, Mapping[str, Any]]
    audience: DraftAudience
    data: Microdata | None
    protection: ColumnProtection = field(default_factory=ColumnProtection)
    warnings: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    without_limit: list[str] = field(default_factory=list)
    """The outputs that have no limit because the audience has none on kept columns."""
    undecidable: list[str] = field(default_factory=list)
    """The measures whose limit no hold-out of the draft can decide, each with the smallest leak that it finds."""
    draws_units: bool = False
    """Whether new units are drawn, in two stages."""
    declined_methods: dict[str, list[str]] = field(default_factory=dict)
    """The methods that cannot be of use, by reason."""

    def make_plan(self) -> DraftedPlan:
        """Draft the plan and check it; leave out, with a note, the measures that cannot be computed on these data."""
        schema = self._usable_schema()
        if choose_goal(schema, self.request) != "synthesis":
            self.request = replace(self.request, tables=False)
        schema = self._choose_drawn_units(schema)
        schema, case = self._protect_kept_columns(schema, self._make_case(schema))
        makers = self._draft_synthesis(case) if case.want == "synthesis" else self._draft_anonymisation(case)
        measures = [*self._draft_measures(case), *self._draft_strongest_intruder(case, makers)]
        tables = {**self._draft_tables(schema, case), **self._draft_weights(case, makers)}
        while True:
            steps = (*makers, *(pair[0] for pair in measures))
            steps = (*steps, *(step for pair in measures for step in pair[1]))
            plan = DraftedPlan(case.want, steps, tables)
            error = self.check(plan.table)
            if error is None:
                break
            number = _measure_index(error.place, [pair[1] for pair in measures])
            if number is None:
                raise error
            # The check stops at the first error, so each pass removes the one measure (with its thresholds) that caused
            # it.
            left_out = measures.pop(number)[0].table["method"]
            self._note_declined(left_out, error.message)
        self._add_summary_notes(schema, case, measures)
        reasons = tuple(f"{self.protection.reasons[name]}." for name in self.protection.rules)
        if case.want == "synthesis":
            self.notes.append(_interval_note(Recipe.from_table(plan.table), self.profile.records))
        if self._unit is None:
            self.notes.append(f"{UNKNOWN_DESIGN_NOTE}.")
        notes = tuple(self.notes)
        changes = tuple(f"{reason}." for reason in self.protection.reasons.values())
        return replace(plan, warnings=tuple(self.warnings), notes=notes, rule_reasons=reasons, changes=changes)

    def _choose_drawn_units(self, schema: Schema) -> Schema:
        """Decide whether whole units are drawn, which a synthesis of units of several records does.

        Return the variables that stay in the plan: drawn units have no identifier, weight or design of a survey.
        """
        if choose_goal(schema, self.request) != "synthesis" or self.request.tables or schema.unit is None:
            return schema
        if self.data is None or self.data.units is None:
            return schema
        if clash := [name for name in (SIZE, PLACE) if name in schema]:
            self.warnings.append(
                f"Records are drawn one by one, not in whole units: {join_names(clash)} {agreeing_word(len(clash), 'is', 'are')} the name of a column, "
                f"and a draft of whole units needs it; rename {agreeing_word(len(clash), 'it', 'them')} in the file."
            )
            return schema
        out = [v.name for v in schema if v.role is not Role.UNIT and _is_not_personal(v)]
        if survey := [name for name in out if schema[name].role is not Role.IDENTIFIER]:
            self.warnings.append(
                f"{join_names(survey)} {agreeing_word(len(survey), 'is', 'are')} left out of the plan: no model draws the weight of a new unit, "
                "so that the release describes the records and no population."
            )
        self.draws_units, self.request = True, replace(self.request, full=True)
        return Schema(tuple(v for v in schema if v.name not in out), order=self.data.schema.order)

    @property
    def is_private(self) -> bool:
        """Return whether noise of an epsilon is requested."""
        return self.request.tables and self.request.epsilon is not None

    @property
    def _recode_table(self) -> dict[str, Any]:
        """Return the public rules of the draft, as a recipe writes them."""
        return {name: rule.written for name, rule in self.protection.rules.items()}

    def _note_declined(self, key: str, reason: str) -> None:
        """Record that a method cannot be of use, by reason."""
        self.declined_methods.setdefault(reason.rstrip("."), []).append(key)

    def _usable_schema(self) -> Schema:
        """Return the variables that can take part, and note those that have one value only."""
        own = self.table.get("variables", {})
        schema = Schema(tuple(Variable.from_table(name, one, f"variables.{name}") for name, one in own.items()))
        same = [v.name for v in schema if v.name in self.profile and not self.profile[v.name].varies]
        if same:
            self.notes.append(
                f"{_join_names(same)} {'has' if len(same) == 1 else 'have'} one value in all records, so there is nothing to model: excluded from the plan."
            )
        kept = tuple(v for v in schema if v.role.is_identifier or (v.name in self.profile and v.name not in same))
        if not [v for v in kept if not _is_not_personal(v)]:
            raise BadInput(
                "variables",
                "no variable has two different values in these records: there is nothing to draft a plan for",
            )
        return Schema(kept)

    def _make_case(self, schema: Schema) -> Case:
        """Return the case that methods are asked about: goal, roles, released variables and guarantees.

        Raises BadInput where the roles that the goal needs are missing.
        """
        known = tuple(v.name for v in schema if v.role is Role.QUASI_IDENTIFIER)
        sensitive = tuple(v.name for v in schema if v.role is Role.SENSITIVE)
        everything = tuple(v.name for v in schema if not _is_not_personal(v))
        wanted = self.request
        want = choose_goal(schema, wanted)
        if not known and not sensitive:
            raise BadInput(
                "variables",
                "no variable has a role yet: mark the quasi-identifiers, which an intruder may know, and the sensitive variables, which must not be "
                "learnt",
            )
        if want == "anonymisation" and not known:
            raise BadInput(
                "variables", "an anonymisation needs quasi-identifiers: mark what an intruder may know of a person"
            )
        if want != "anonymisation" and not sensitive and not wanted.makes_everything:
            raise BadInput(
                "variables",
                "no variable is sensitive: mark those to synthesise, or ask for a full synthesis of all variables",
            )
        released = everything if wanted.makes_everything else tuple(sensitive)
        if want == "anonymisation":
            released = known
        enough = self.profile.records >= MIN_RECORDS_FOR_CONTROLS
        holdout = want == "synthesis" and (
            "holdout" in self.table.get("data", {}) or (enough if wanted.holdout is None else wanted.holdout)
        )
        asked: dict[str, Any] = {
            "epsilon": wanted.epsilon,
            "linked": not wanted.tables and not self.draws_units,
            "draws_units": self.draws_units,
            "m": wanted.m,
            "k": wanted.k or self.audience.smallest_k,
            "l": wanted.l,
            "p": wanted.p,
            "t": wanted.t,
            "audit": wanted.audit,
        }
        return Case(want, self.profile.with_schema(schema), known, sensitive, released, holdout=holdout, **asked)

    def _protect_kept_columns(self, schema: Schema, case: Case) -> tuple[Schema, Case]:
        """Return the variables that stay in the plan, and the case whose kept columns satisfy the audience's limits."""
        kept = [v.name for v in schema if is_counted(v.role) and v.name not in case.released]
        if case.want == "anonymisation":
            schema, case = self._add_quasi_identifiers(schema, case)
            trees: dict[str, Any] = {
                setting: {name: given for name, given in by_name.items() if name in case.known}
                for setting, by_name in self.hierarchies.items()
            }
            return schema, replace(case, **trees)
        if self.data is None:
            return schema, self._choose_holdout(case)
        draft = KeptColumnDraft(
            self.data, case.known, self.audience, self.table.get("data", {}).get("rows") or "people"
        )
        if case.want == "evaluation":
            self.warnings += evaluation_warning(draft, kept)
            return schema, case
        # The share of the hold-out follows from what is synthesised, and how large classes must be from the share.
        drawn_anew = case.holdout and "holdout" not in self.table.get("data", {})
        for share in HOLDOUT_SHARES if drawn_anew else (0.0,):
            self.protection = draft.choose_protection(kept, share)
            own = Schema(tuple(v for v in schema if v.name not in self.protection.left_out))
            rules = self.protection.rules
            profile = (profile_table(recode_data(self.data, rules)) if rules else self.profile).with_schema(own)
            protected = self._choose_holdout(
                replace(
                    case,
                    table=profile,
                    released=(*case.released, *self.protection.replaced),
                    recoded=tuple(self.protection.rules),
                )
            )
            if not drawn_anew or _holdout_share(protected) <= share:
                break
        return own, protected

    def _add_quasi_identifiers(self, schema: Schema, case: Case) -> tuple[Schema, Case]:
        """Return the variables and the case of an anonymisation in which the public may know every column.

        Columns without a role are generalised with the quasi-identifiers, or left out; k is what the audience requires.
        """
        limit = self.audience.limits.smallest_class
        if case.k < limit:
            self.warnings.append(
                f"k = {case.k} is below {limit}, the smallest class for {self.audience.name}: the gate will block the release."
            )
        if self.audience.audience != "public":
            return schema, case
        kept = [v.name for v in schema if v.role is Role.OTHER and v.name in case.table and v.name not in case.known]
        design = [name for name in kept if schema[name].design is not None]
        others = [name for name in kept if name not in design]
        choice = choose_quasi_identifiers(case.table, case.known, case.sensitive, others, case.k)
        if choice.added:
            self.notes.append(
                f"{join_names(choice.added)} {agreeing_word(len(choice.added), 'is', 'are')} made coarser too: the public may know any column, whatever its role."
            )
        lacking = [name for name in choice.left_out if case.table[name].missing]
        if lacking:
            self.warnings.append(
                f"{join_names(lacking)} {agreeing_word(len(lacking), 'is', 'are')} left out of the plan: some {self.table.get('data', {}).get('rows') or 'people'} "
                "have no value there, and no class covers a missing value. As a quasi-identifier it stays, and they are dropped."
            )
        if crowded := [name for name in choice.left_out if name not in lacking]:
            self.warnings.append(
                f"{join_names(crowded)} {agreeing_word(len(crowded), 'is', 'are')} left out of the plan: a public release would show them true of "
                f"everybody. Classes of {case.k} can be halved {choice.cuts} times, and more quasi-identifiers would coarsen all of them."
            )
        if design:
            self.warnings.append(
                f"{join_names(design)} {agreeing_word(len(design), 'is', 'are')} left out of the plan: the public may know the design of a survey, and it cannot be made coarser."
            )
        known = (*case.known, *choice.added)
        own = Schema(tuple(v for v in schema if v.name not in (*choice.left_out, *design)))
        return own, replace(case, table=self.profile.with_schema(own), known=known, released=known)

    def _choose_holdout(self, case: Case) -> Case:
        """Return the case with its number of hold-out records.

        It is the smallest share of the records with which as many of the offered limits can be decided as with the
        largest share.
        """
        if not case.holdout:
            return case
        given = self.table.get("data", {}).get("holdout")
        if given is not None and not isinstance(given, int | float):
            return case
        shares = HOLDOUT_SHARES if given is None else (given,)
        decided = [
            self._count_decidable_limits(replace(case, controls=round(share * case.table.records))) for share in shares
        ]
        # ``index`` finds the first, and so the smallest, share: every record held out is missing from the synthesis.
        share = shares[decided.index(max(decided))]
        return replace(case, controls=round(share * case.table.records))

    def _count_decidable_limits(self, case: Case) -> int:
        """Count the limits that methods offer for a case and that its hold-out is large enough to decide."""
        offers = (request_offer(method, case) for method in registry().values() if method.family == "risk")
        limits = [limit for offer in offers if isinstance(offer, Offer) for limit in offer.limits if not limit.extra]
        return sum(self._strictest_decidable(limit) is not None for limit in limits)

    def _strictest_decidable(self, limit: OfferedLimit) -> tuple[float, str] | None:
        """Return the strictest limit that the hold-out can decide, with its source; None where there is none."""
        given = self.gate_limit(limit.question) if limit.question is not None else ()
        # The gate limits the share of the risk that is left above the baseline; a threshold limits the value itself.
        given = tuple((limit.baseline + (1 - limit.baseline) * share, source) for share, source in given)
        possible = given or ((limit.limit, limit.source),)
        return next((one for one in possible if limit.detectable is None or limit.detectable <= one[0]), None)

    def _draft_table_synthesis(self, case: Case) -> list[DraftedStep]:
        """Draft one step that synthesises every variable from protected tables."""
        for method, offer in ranked_offers(case, "synthesis", decline=self._note_declined, joint=True):
            if method.synthesis.privacy.publishable_tables is None:
                continue
            step = {"method": method.name, "target": list(case.released), **offer.settings}
            self.warnings += [f"{_as_sentence(said)}." for said in offer.missed]
            return [DraftedStep("synthesis", step, f"{_as_sentence(self._package_remark(method) + offer.why)}.")]
        raise BadInput("synthesis", "; ".join(self.declined_methods) or "no method draws all variables from tables")

    def _bound_units(self, data: dict[str, Any], schema: Schema) -> None:
        """Set the bound of ``[data]`` by which a promise of epsilon is about whole units; leave it out elsewhere."""
        if not self.is_private:
            data.pop("largest_unit", None)
        elif schema.unit is not None and "largest_unit" not in data:
            # The largest number in these data would itself tell of a unit.
            data["largest_unit"] = RECORDS_OF_A_UNIT
            chosen = f"the first by {data['order']}" if data.get("order") else "taken at random"
            self.warnings.append(
                f"Of each {singular_noun(schema.unit_noun)} {RECORDS_OF_A_UNIT} records are counted, {chosen}: set largest_unit under [data] to "
                "what is public knowledge about the records of one; fewer cost less noise."
            )

    def _draft_synthesis(self, case: Case) -> list[DraftedStep]:
        """Draft the synthesis: one step for each variable, each predicted from those kept or made before it."""
        if self.request.tables:
            return self._draft_table_synthesis(case)
        if self.draws_units:
            return self._draft_units(case)
        order = sorted(case.released, key=lambda name: _synthesis_order_key(case.table[name]))
        kept = [name for name in self._possible_predictors(case) if name not in case.released]
        steps: list[DraftedStep] = []
        for at, name in enumerate(order):
            possible = [*kept, *(made for made in order[:at] if _can_predict(case.table[made]))]
            told = case.table.order_by_mutual_information(name, possible)[:MAX_PREDICTORS]
            steps.append(
                self._draft_synthesis_step(replace(case, target=case.table[name], predictors=told), len(possible))
            )
        return steps

    @property
    def _unit(self) -> str | None:
        """Return the variable of the plan that numbers units; None without one."""
        own = self.table.get("variables", {})
        return next((name for name, one in own.items() if one.get("role") == Role.UNIT), None)

    def _draft_units(self, case: Case) -> list[DraftedStep]:
        """Draft the steps of both stages: variables of a unit and its size, then those of a record."""
        assert self.data is not None
        order = sorted(case.released, key=lambda name: _synthesis_order_key(case.table[name]))
        ordering = self.data.schema.order
        by_record = [name for name in order if self.data.schema[name].level != "unit"]
        # What orders the records comes first: a state is of its wave.
        by_record.sort(key=lambda name: name != ordering)
        stages = UnitStages.of_data(self.data, [name for name in order if name not in by_record], by_record)
        steps = []
        for name in (*stages.by_unit, SIZE):
            table = stages.unit_profile
            possible = [one for one in stages.predictors_of_unit(name) if _can_predict(table[one])]
            step = self._draft_unit_step(case, table, name, (), possible)
            if name == SIZE:
                # Only sizes that units have are drawn; near ones would change how many have each.
                step = replace(step, table={key: one for key, one in step.table.items() if key != "smoothing"})
            steps.append(step)
        for name in by_record:
            table = stages.record_profile
            if name == ordering and stages.order_follows_place:
                steps.append(self._draft_order_step(case, table, name))
                continue
            always, others = (
                [one for one in found if _can_predict(table[one]) and table[one].varies]
                for found in stages.predictors_of_record(name)
            )
            steps.append(self._draft_unit_step(case, table, name, always, others, stages.later_profile))
        return steps

    def _draft_order_step(self, case: Case, table: TableProfile, name: str) -> DraftedStep:
        """Draft the step of a variable that numbers the records of a unit in their order."""
        step = self._draft_unit_step(case, table, name, [PLACE], [])
        settings = {**step.table, **({"minbucket": LEAF_OF_PLACES} if "minbucket" in step.table else {})}
        # Values near another's would be no place, and members do not share one.
        for key in ("smoothing", "unit_effect"):
            settings.pop(key, None)
        return replace(step, table=settings, reason=f"{name}: follows from the place of a record within its unit.")

    def _draft_unit_step(
        self,
        case: Case,
        table: TableProfile,
        name: str,
        always: Sequence[str],
        others: Sequence[str],
        later: TableProfile | None = None,
    ) -> DraftedStep:
        """Draft the step of a variable of a unit or of a record, by a method that can draw any variable of its kind.

        It has the predictors ``always``, and of the ``others`` those that tell most of it, by ``later`` records where
        given.
        """
        # The first record of a unit has none before it: by it each term would seem to tell the same.
        told = (later or table).order_by_mutual_information(name, others)[: MAX_PREDICTORS - len(always)]
        own = replace(case, table=table, target=table[name], predictors=(*always, *told))
        return self._draft_synthesis_step(own, len(always) + len(others))

    def _draft_weights(self, case: Case, makers: Sequence[DraftedStep]) -> dict[str, Any]:
        """Return a ``[weights]`` table that gives records with rare quasi-identifiers less influence.

        Empty where that is of no use. It is of use where quasi-identifiers are released unchanged and every step can
        weight records.
        """
        known = [name for name in case.known if name in case.kept_variables]
        methods = [method_of_step(step.section, str(step.table["method"])) for step in makers]
        if (
            not known
            or case.want != "synthesis"
            or not case.holdout
            or not all(one and one.synthesis.weighted for one in methods)
        ):
            return {}
        self.notes.append(
            f"Records that few share {_join_names(known)} with have less influence on the models: an intruder finds them most easily, and models repeat them most."
        )
        return {"weights": {"known": known, "strength": WEIGHT_STRENGTH}}

    def _draft_synthesis_step(self, case: Case, possible: int) -> DraftedStep:
        """Draft the step that synthesises one variable, by the best method whose step is valid on the data.

        ``possible`` is how many variables could be predictors.
        """
        assert case.target is not None
        name = case.target.name
        for method, offer in self._ranked_offers(case, "synthesis", case.target.variable.kind):
            step = {"method": method.name, "target": name, **offer.settings}
            # Each step is checked alone, so that an error is this step's and the next method can be tried.
            if case.draws_units and offer.rank != GENERAL:
                continue
            if self.check(self._recipe_of_step(step, case)) is None:
                reason = f"{self.protection.reasons[name]}. " if name in self.protection.reasons else f"{name}: "
                why = (
                    _as_sentence(self._package_remark(method) + offer.why)
                    if name in self.protection.reasons
                    else self._package_remark(method) + offer.why
                )
                return DraftedStep(
                    "synthesis", step, f"{reason}{why}. {_predictors_remark(offer, case, possible)}".strip()
                )
        raise BadInput(
            f"variables.{name}",
            f'no method of a draft makes "{name}"; leave it out of the plan, or add a step yourself',
        )

    def _recipe_of_step(self, step: Mapping[str, Any], case: Case) -> dict[str, Any]:
        """Return a recipe with this step alone."""
        own = self.table["variables"]
        if not case.draws_units:
            release = {"recode": self._recode_table} if self._recode_table else {}
            return {
                "variables": {v.name: own[v.name] for v in case.table},
                "synthesis": [step],
                **({"release": release} if release else {}),
            }
        names = [self._unit, *case.released]
        # Only units that are kept leave variables without a step, and only drawn ones have a size of their own.
        rest = [] if step["target"] != SIZE else [{"target": one, "method": step["method"]} for one in case.released]
        return {
            "data": {key: one for key, one in self.table.get("data", {}).items() if key == "order"},
            "variables": {name: own[name] for name in names},
            "release": {"units": "drawn" if rest else "kept"},
            "synthesis": [*rest, step],
        }

    def _ranked_offers(self, case: Case, family: str, kind: Kind | None = None) -> list[tuple[Method, Offer]]:
        return ranked_offers(case, family, kind, self._note_declined)

    @staticmethod
    def _package_remark(method: Method) -> str:
        return "" if method.package == OWN else f"{method.key} of the package {method.package}; "

    def _draft_anonymisation(self, case: Case) -> list[DraftedStep]:
        """Draft the anonymisation by the most suited method; no step for an evaluation.

        Raises BadInput where none offers one.
        """
        if case.want == "evaluation":
            return []
        found = self._ranked_offers(case, "anonymisation")
        if not found:
            reasons = "; ".join(self.declined_methods) or "no method offers that"
            raise BadInput("anonymisation", f"no plan can be drafted for this goal: {reasons}")
        method, offer = found[0]
        self.declined_methods.clear()
        self.warnings += [f"{_as_sentence(said)}." for said in offer.missed]
        return [
            DraftedStep(
                "anonymisation",
                {"method": method.name, **offer.settings},
                f"{_as_sentence(self._package_remark(method) + offer.why)}.",
            )
        ]

    def _draft_measures(self, case: Case) -> list[tuple[DraftedStep, list[DraftedStep]]]:
        """Draft measures, each with its thresholds."""
        found = []
        for family in MEASURE_FAMILIES:
            for method, offer in self._ranked_offers(case, family):
                step = DraftedStep(
                    "measure",
                    {"method": method.key, **offer.settings},
                    f"{_as_sentence(self._package_remark(method) + offer.why)}.",
                )
                self.warnings += [f"{_as_sentence(said)}." for said in offer.missed]
                found.append((step, list(self._draft_thresholds(case, method, offer.limits))))
        return found

    def _draft_strongest_intruder(
        self, case: Case, makers: Sequence[DraftedStep]
    ) -> list[tuple[DraftedStep, list[DraftedStep]]]:
        """Draft the measures of an intruder who knows all other records, where the models can be asked; else warn.

        What was not tried is not known to be safe, so that a draft without such a measure says so.
        """
        if case.want != "synthesis":
            return []
        measures = [one for one in registry().values() if one.measurement.beliefs is not None]
        made = [method_of_step(step.section, str(step.table["method"])) for step in makers]
        unable = dict.fromkeys(
            one.title for one in made if one is not None and one.synthesis.release_model.make_model is None
        )
        if unable or case.draws_units or not case.linked:
            by = (
                f"{join_names([str(title) for title in unable])} cannot be asked how probable a release is"
                if unable
                else ("whole units or tables cannot be asked about one record")
            )
            self.warnings.append(
                f"No measure tries the intruder who knows everything of everybody else, and how the release was made: {by}. Draw by a regression or "
                "by classes, or have single people audited."
            )
            return []
        return [
            (
                DraftedStep(
                    "measure",
                    {"method": one.key, "records": min(INTERROGATED_RECORDS, case.table.records), "refits": 2},
                    f"{_as_sentence('what an intruder learns who knows everything of everybody else, and how the release was made')}.",
                ),
                [],
            )
            for one in measures
        ]

    def _is_only_reported(self, limit: OfferedLimit, case: Case) -> bool:
        """Return whether a limit is about who is found by kept quasi-identifiers, and the audience has no limit on these."""
        has_limits = self.audience.limits.limits != KeptColumnLimits()
        return (
            not has_limits
            and limit.question == LINKAGE_QUESTION
            and any(name in case.kept_variables for name in case.known)
        )

    def _draft_thresholds(self, case: Case, method: Method, limits: Sequence[OfferedLimit]) -> Iterator[DraftedStep]:
        """Yield the thresholds of a measure; note the limits that are only reported or that the hold-out cannot decide."""
        for limit in limits:
            if self._is_only_reported(limit, case):
                self.without_limit.append(f"{method.key}.{limit.output}")
                continue
            decided = self._strictest_decidable(limit)
            if decided is None and limit.extra:
                continue
            if decided is None:
                of = f" of {limit.target}" if limit.target else ""
                self.undecidable.append(f"{method.key}{of} finds {limit.detectable:.2g} or more only")
                continue
            value, source = decided
            target = {"target": limit.target} if limit.target else {}
            params = {"params": dict(limit.params)} if limit.params else {}
            table = {"value": f"{method.key}.{limit.output}", **target, **params, limit.bound: value}
            yield DraftedStep("threshold", table, f"Source of the limit: {source}.")

    def _draft_tables(self, schema: Schema, case: Case) -> dict[str, Any]:
        """Return the drafted tables ``data``, ``variables`` and ``release``, with what else the recipe had."""
        data = dict(self.table.get("data", {}))
        if case.want != "synthesis":
            if isinstance(data.get("holdout"), int | float):
                del data["holdout"]
        elif case.holdout and "holdout" not in data:
            data["holdout"] = _holdout_share(case)
        self._bound_units(data, schema)
        release = {
            key: value for key, value in self.table.get("release", {}).items() if key in ("title", "order", "seed")
        }
        release.setdefault("seed", 1)
        if case.want == "synthesis":
            release = {"m": case.m, **release, **({"units": "drawn"} if case.draws_units else {})}
            if self.is_private:
                # The exact number of rows would give away what noise in the tables hides.
                release.setdefault("records", _round_to_one_digit(self.profile.records))
        elif case.want == "evaluation":
            release["released"] = list(case.released)
        if self.audience.audience != "public":
            release["audience"] = self.audience.audience
        if self._recode_table:
            release["recode"] = self._recode_table
        left_out = {Role.IDENTIFIER} if case.want == "anonymisation" or self.is_private else set()
        variables = {v.name: self.table["variables"][v.name] for v in schema if v.role not in left_out}
        if (
            self.is_private and data.get("missing") == "keep"
        ):  # that a value is missing must not follow from the records
            variables = {name: {**own, "may_be_missing": True} for name, own in variables.items()}
        rest = {key: value for key, value in self.table.items() if key not in (*STEP_SECTIONS, "weights")}
        return {**rest, "data": data, "variables": variables, "release": release}

    def _possible_predictors(self, case: Case) -> list[str]:
        """Return the names of the variables that can be predictors."""
        return [v.name for v in case.table if not _is_not_personal(v.variable) and _can_predict(v)]

    def _add_summary_notes(
        self, schema: Schema, case: Case, measures: Sequence[tuple[DraftedStep, list[DraftedStep]]]
    ) -> None:
        """Add the notes on how each variable is treated, and the warnings on questions that stay open."""
        kept = [v.name for v in schema if v.name not in case.released and not _is_not_personal(v)]
        identifiers = [v.name for v in schema if v.role.is_identifier]
        made = {"synthesis": "Synthesised", "anonymisation": "Coarsened", "evaluation": "Scored as released"}[case.want]
        said = [f"Drafted from roles and kinds. {made}: {_join_names(case.released)}."]
        if unchanged := [name for name in kept if name not in self.protection.rules]:
            said.append(f"Released unchanged, for anyone to see who has the release: {_join_names(unchanged)}.")
        said += self.audience.policy_notes
        said += [f"{reason}." for reason in self.protection.reasons.values()]
        said += self.protection.notes
        self.warnings += self.protection.warnings
        if rules := [name for name in self.table.get("release", {}).get("recode", {}) if name in schema]:
            said.append(f"The rules of [release] recode that the plan had are replaced: {_join_names(rules)}.")
        if case.draws_units:
            said.append(
                f"Whole units of {self._unit} are drawn and have new numbers: variables of the unit and its size, then record after record, each from "
                "those before it. So every variable is synthesised. Add what must hold in each unit as [constraints]."
            )
            identifiers = [
                name for name in self.table["variables"] if name not in schema and _is_identifier(self.table, name)
            ]
        if identifiers:
            out = " (taken out of the plan)" if case.want == "anonymisation" or case.draws_units else ""
            said.append(f"Identifiers never leave{out}: {_join_names(identifiers)}.")
        if case.holdout and "holdout" not in self.table.get("data", {}):
            of = "records" if self._unit is None else "units"
            said.append(
                f"{_holdout_share(case):.0%} of the {of} are held out: kept from synthesis, to compare attacks with."
            )
        if case.holdout and case.kept_variables:
            said.append(
                "No limit on membership, linkability and singling out: columns that are released unchanged show who is in the data, "
                "whatever is drawn beside them."
            )
        if self.without_limit:
            said.append(
                f"No limit on {join_names(self.without_limit)}: people are found by kept quasi-identifiers, which are reported for {self.audience.name}."
            )
        if self.undecidable:
            said.append(
                f"No limit, since the records are too few to decide it: {'; '.join(self.undecidable)}. The gate's checks of people look at them."
            )
        said += [f"Without {_join_names(keys)}: {reason}." for reason, keys in self.declined_methods.items()]
        self.notes[:0] = said
        survey = [v.name for v in schema if v.role is Role.WEIGHT or v.design is not None]
        if survey:
            self.warnings.append(
                f"Survey weights and design are released unchanged: {_join_names(survey)}. They may identify records, and no model depends on them."
            )
        if case.want == "synthesis" and (still := [name for name in case.sensitive if name not in case.released]):
            self.warnings.append(f"Sensitive and not synthesised: {_join_names(still)}.")
        answered = {
            q
            for step, _ in measures
            for output in find_method(step.table["method"], "method").result_outputs
            for q in output.risk.questions
        }
        if still_open := [question for question in QUESTIONS if question not in answered]:
            self.warnings.append(f"Not measured: {', '.join(still_open)}.")


def _interval_note(recipe: Recipe, records: int) -> str:
    """Return the rule by which estimates of the drafted datasets are combined, or why there is none."""
    m = count_noun(recipe.m, "dataset")
    try:
        rule = combining_rule(release_provenance(recipe, records))
    except NotComputable as error:
        return f"No interval of an estimate from {m} covers: {error.reason}."
    return f"Intervals of estimates from {m}: {rule.formula}. Why: {rule.reason}."


def _measure_index(place: str, limits: Sequence[Sequence[DraftedStep]]) -> int | None:
    """Return the number, from 0, of the measure that a place of a recipe belongs to; None for any other place."""
    section, _, rest = place.partition("[")
    if section not in ("measure", "threshold") or not rest:
        return None
    number = int(rest.partition("]")[0])
    if section == "measure":
        return number
    # Thresholds are numbered through over all measures, in the order of the measures.
    owners = [at for at, own in enumerate(limits) for _ in own]
    return owners[number]


def _round_to_one_digit(records: int) -> int:
    """Round a number of records to one significant digit, at least 1."""
    return max(1, round(records, 1 - len(str(records))))


def _holdout_share(case: Case) -> float:
    """Return the share of the records that a draft holds out: the nearest of ``HOLDOUT_SHARES`` to the case's controls."""
    return min(HOLDOUT_SHARES, key=lambda share: abs(share * case.table.records - (case.controls or 0)))


def _is_identifier(table: Mapping[str, Any], name: str) -> bool:
    """Return whether a variable of a recipe's table is an identifier of a record."""
    return bool(table["variables"][name].get("role") == Role.IDENTIFIER)


def _is_not_personal(variable: Variable) -> bool:
    """Return whether a variable is no property of a person: an identifier, a weight or part of a survey's design."""
    return variable.role in (Role.IDENTIFIER, Role.UNIT, Role.WEIGHT) or variable.design is not None


def _can_predict(profile: VariableProfile) -> bool:
    """Return whether a variable has few enough levels to be a predictor."""
    return not profile.variable.kind.has_levels or profile.distinct <= MAX_PREDICTOR_LEVELS


def _synthesis_order_key(profile: VariableProfile) -> tuple[bool, bool, int]:
    """Return the sort key of a variable in the order of synthesis.

    Complete variables come before others, levels before numbers, few values before many.
    """
    # A variable is predicted from those before it: few complete levels predict best, and little is needed to predict
    # them.
    return bool(profile.missing), not profile.variable.kind.has_levels, profile.distinct


def _predictors_remark(offer: Offer, case: Case, possible: int) -> str:
    """Return a sentence on how many of the ``possible`` predictors a step uses."""
    used = offer.settings.get("predictors")
    if not used:
        return "Predicted from nothing: there is no variable before it."
    if len(used) == possible:
        return "Predicted from all that are kept or made before it."
    return f"Predicted from {len(used)} of {possible} that are kept or made before it, those that tell most of it (mutual information)."


def _as_sentence(text: str) -> str:
    """Return the text with a capital first letter, without its full stop."""
    return f"{text[:1].upper()}{text[1:]}".rstrip(".")


def _join_names(names: Iterable[str]) -> str:
    return ", ".join(names)
