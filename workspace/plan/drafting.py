"""A whole plan from the roles of the variables, their kinds and what is wanted: steps, measures, thresholds, and why each.

``drafted`` is a function of values alone: what the variables look like (``engine.methods.table_profile``), the plan as it stands, what is wanted.
Which method suits what, with which settings and why, methods say themselves (``engine.methods.drafting``). Who knows what of a person is the
analyst's to say: without roles nothing is drafted. What a draft does not cover it says.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from sfumato.engine.adversary.kept_column_limits import KeptColumnLimits
from sfumato.engine.data.microdata import Microdata
from sfumato.engine.data.recoding import recode_data
from sfumato.engine.data.schema import Kind, Role, Schema, Variable
from sfumato.engine.errors import BadInput
from sfumato.engine.methods.audience import Audience
from sfumato.engine.methods.drafting import Case, DeclinedOffer, Offer, OfferedLimit, Want, request_offer
from sfumato.engine.methods.outputs import QUESTIONS, Question
from sfumato.engine.methods.registry import OWN, Method, find_method, method_of_step, registry
from sfumato.engine.methods.table_profile import TableProfile, VariableProfile, profile_table
from sfumato.engine.recipe.recipe import Recipe
from sfumato.engine.wording import agreeing_word, join_names

from ..policy.policy import Policy
from .protection import (
    ColumnProtection,
    DraftAudience,
    KeptColumnDraft,
    choose_quasi_identifiers,
    evaluation_warning,
    is_counted,
)

MOST_PREDICTORS = 10
MOST_LEVELS = 50
"""A predictor of more levels tells single records apart."""
ENOUGH_FOR_CONTROLS = 1000
"""Records from which on some are held out: with fewer, controls are too few to show what the gate blocks."""
SHARES = (0.2, 0.25, 0.3)
"""Shares of the records that a draft holds out: the smallest that decides the limits, else the largest."""
STRENGTH = 0.5
"""What weight a record loses that is alone with its quasi-identifiers, where these are kept."""
MEASURES = ("utility", "quality", "risk")
LINKING: Question = QUESTIONS[1]
"""The question whether a person is linked to a record, by its place: a draft knows no method by its name, and one is called so."""
STEPS = ("synthesis", "anonymisation", "measure", "study", "threshold", "published")
"""What a draft takes the place of."""
NOT_KNOWN = "Each row is taken for one person, unrelated to the others: the draft does not consider households, several rows a person or survey designs"

GateLimit = Callable[[Question], tuple[tuple[float, str], ...]]
"""From where on the gate warns of what answers a question, then from where on it blocks, each with whose limit that is."""
Problem = Callable[[Mapping[str, Any]], BadInput | None]
"""What is wrong with a recipe's table on the data; None where nothing is."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a plan is wanted for. ``want`` None: synthesis where a variable is sensitive, else anonymisation.

    ``full``: a synthesis makes every variable, not the sensitive ones alone. ``tables``: it draws them from protected tables of counts, all of them, with
    noise of an ``epsilon`` where one is given. ``holdout`` None: where there are enough records.
    ``k`` None is what the audience asks for. ``l``, ``p`` and ``t`` None are not asked for. ``audit``: with an audit of single people, which carries the plan out again hundreds of times.
    ``audience`` None is the plan's, else the public.
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
    def everything(self) -> bool:
        """Whether every variable is made."""
        return self.full or self.tables


@dataclass(frozen=True, slots=True)
class DraftedStep:
    """A step of the plan as a recipe's table, and why it stands there."""

    section: str
    table: Mapping[str, Any]
    why: str


@dataclass(frozen=True, slots=True)
class DraftedPlan:
    """Steps in a recipe's order, the tables ``data``, ``variables`` and ``release`` to go with them, and what is covered and what is not.

    ``warnings`` say what may be taken for safe and is not, ``notes`` the rest. ``changes`` say of each kept column that became coarser or
    synthetic for the audience why it did, ``rule_reasons`` those of the public rules in ``[release] recode``.
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
        found: dict[str, Any] = dict(self.tables)
        for step in self.steps:
            found.setdefault(step.section, []).append(dict(step.table))
        return found


def drafted(
    table: Mapping[str, Any],
    seen: TableProfile,
    wanted: Wanted,
    gate_limit: GateLimit = lambda _: (),
    problem: Problem | None = None,
    hierarchies: Mapping[str, Mapping[str, Any]] | None = None,
    policy: Policy | None = None,
    data: Microdata | None = None,
) -> DraftedPlan:
    """The plan drafted for a recipe's table, of which title, data and variables stay.

    ``hierarchies`` are trees and widths for quasi-identifiers, as the tables ``hierarchies`` and ``widths`` of recipes write them. Without ``problem`` the drafted plan is checked by itself, not on the data.
    ``policy`` has the limits of the audience, ``data`` the records whose kept columns are held to them; without records kept columns stay as they are.
    Raises BadInput where roles are missing, or nothing is left to do.
    """
    audience = DraftAudience.from_policy(policy or Policy(), wanted.audience, table)
    return _Draft(table, seen, wanted, gate_limit, problem or _without_data, hierarchies or {}, audience, data).plan()


def _without_data(table: Mapping[str, Any]) -> BadInput | None:
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
    """What the methods of a family offer, the most suited first, of equal ones ours; ``decline`` is told which of them do not, and why.

    ``joint``: of a synthesis those that make several variables at once, else those that make one.
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


def intended(schema: Schema, wanted: Wanted) -> Want:
    """What a plan is drafted for: as said, else a synthesis where a variable is sensitive, else an anonymisation."""
    if wanted.want is not None:
        return wanted.want
    known, sensitive = schema.names_by_role(Role.QUASI_IDENTIFIER), schema.names_by_role(Role.SENSITIVE)
    return "synthesis" if sensitive or wanted.everything or not known else "anonymisation"


@dataclass
class _Draft:
    given: Mapping[str, Any]
    seen: TableProfile
    wanted: Wanted
    gate_limit: GateLimit
    problem: Problem
    hierarchies: Mapping[str, Mapping[str, Any]]
    audience: DraftAudience
    data: Microdata | None
    protection: ColumnProtection = field(default_factory=ColumnProtection)
    warnings: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    reported: list[str] = field(default_factory=list)
    """The outputs that have no limit because the audience has none on kept columns."""
    undecidable: list[str] = field(default_factory=list)
    """The measures whose limit no hold-out of the draft can decide, each with the smallest leak that it finds."""
    unmeasured: dict[str, list[str]] = field(default_factory=dict)
    """The methods that cannot be of use, by reason."""

    def plan(self) -> DraftedPlan:
        """The draft, checked; measures that cannot be used on these data are left out, and it says so."""
        schema = self._variables()
        if intended(schema, self.wanted) != "synthesis":
            self.wanted = replace(self.wanted, tables=False)
        schema, case = self._for_audience(schema, self._case(schema))
        makers = self._synthesis(case) if case.want == "synthesis" else self._anonymisation(case)
        measures = self._measures(case)
        tables = {**self._tables(schema, case), **self._weights(case, makers)}
        while True:
            steps = (*makers, *(pair[0] for pair in measures))
            steps = (*steps, *(step for pair in measures for step in pair[1]))
            plan = DraftedPlan(case.want, steps, tables)
            error = self.problem(plan.table)
            if error is None:
                break
            number = _measure_at(error.place, [pair[1] for pair in measures])
            if number is None:
                raise error
            left_out = measures.pop(number)[0].table["method"]
            self._decline(left_out, error.message)
        self._summarise(schema, case, measures)
        reasons = tuple(f"{self.protection.reasons[name]}." for name in self.protection.rules)
        notes = (*self.notes, f"{NOT_KNOWN}.")
        changes = tuple(f"{reason}." for reason in self.protection.reasons.values())
        return replace(plan, warnings=tuple(self.warnings), notes=notes, rule_reasons=reasons, changes=changes)

    @property
    def private(self) -> bool:
        """Whether noise of an epsilon is asked for."""
        return self.wanted.tables and self.wanted.epsilon is not None

    @property
    def _recode(self) -> dict[str, Any]:
        """The public rules of the draft, as a recipe writes them."""
        return {name: rule.written for name, rule in self.protection.rules.items()}

    def _decline(self, key: str, reason: str) -> None:
        self.unmeasured.setdefault(reason.rstrip("."), []).append(key)

    def _variables(self) -> Schema:
        """The variables that can take part; a note of those that cannot."""
        own = self.given.get("variables", {})
        schema = Schema(tuple(Variable.from_table(name, one, f"variables.{name}") for name, one in own.items()))
        same = [v.name for v in schema if v.name in self.seen and not self.seen[v.name].varies]
        if same:
            self.notes.append(
                f"{_names(same)} {'has' if len(same) == 1 else 'have'} one value in all records, so there is nothing to model: excluded from the plan."
            )
        kept = tuple(v for v in schema if v.role is Role.IDENTIFIER or (v.name in self.seen and v.name not in same))
        if not [v for v in kept if not _aside(v)]:
            raise BadInput(
                "variables",
                "no variable has two different values in these records: there is nothing to draft a plan for",
            )
        return Schema(kept)

    def _case(self, schema: Schema) -> Case:
        known = tuple(v.name for v in schema if v.role is Role.QUASI_IDENTIFIER)
        sensitive = tuple(v.name for v in schema if v.role is Role.SENSITIVE)
        everything = tuple(v.name for v in schema if not _aside(v))
        wanted = self.wanted
        want = intended(schema, wanted)
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
        if want != "anonymisation" and not sensitive and not wanted.everything:
            raise BadInput(
                "variables",
                "no variable is sensitive: mark those to synthesise, or ask for a full synthesis of all variables",
            )
        released = everything if wanted.everything else tuple(sensitive)
        if want == "anonymisation":
            released = known
        enough = self.seen.records >= ENOUGH_FOR_CONTROLS
        holdout = want == "synthesis" and (
            "holdout" in self.given.get("data", {}) or (enough if wanted.holdout is None else wanted.holdout)
        )
        asked: dict[str, Any] = {
            "epsilon": wanted.epsilon,
            "linked": not wanted.tables,
            "m": wanted.m,
            "k": wanted.k or self.audience.smallest_k,
            "l": wanted.l,
            "p": wanted.p,
            "t": wanted.t,
            "audit": wanted.audit,
        }
        return Case(want, self.seen.with_schema(schema), known, sensitive, released, holdout=holdout, **asked)

    def _for_audience(self, schema: Schema, case: Case) -> tuple[Schema, Case]:
        """The case whose kept columns the audience may have, and the variables that stay in the plan."""
        kept = [v.name for v in schema if is_counted(v.role) and v.name not in case.released]
        if case.want == "anonymisation":
            schema, case = self._generalised_too(schema, case)
            trees: dict[str, Any] = {
                setting: {name: given for name, given in by_name.items() if name in case.known}
                for setting, by_name in self.hierarchies.items()
            }
            return schema, replace(case, **trees)
        if self.data is None:
            return schema, self._sized(case)
        draft = KeptColumnDraft(
            self.data, case.known, self.audience, self.given.get("data", {}).get("rows") or "people"
        )
        if case.want == "evaluation":
            self.warnings += evaluation_warning(draft, kept)
            return schema, case
        # The share of the hold-out follows from what is synthesised, and how large classes must be from the share.
        drawn_anew = case.holdout and "holdout" not in self.given.get("data", {})
        for share in SHARES if drawn_anew else (0.0,):
            self.protection = draft.protection(kept, share)
            own = Schema(tuple(v for v in schema if v.name not in self.protection.left_out))
            rules = self.protection.rules
            profile = (profile_table(recode_data(self.data, rules)) if rules else self.seen).with_schema(own)
            protected = self._sized(
                replace(
                    case,
                    table=profile,
                    released=(*case.released, *self.protection.replaced),
                    recoded=tuple(self.protection.rules),
                )
            )
            if not drawn_anew or _share(protected) <= share:
                break
        return own, protected

    def _generalised_too(self, schema: Schema, case: Case) -> tuple[Schema, Case]:
        """For the public, columns of no role are made coarser with the quasi-identifiers, or they leave the plan; k is what the audience asks for."""
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
        if choice.left_out:
            self.warnings.append(
                f"{join_names(choice.left_out)} {agreeing_word(len(choice.left_out), 'is', 'are')} left out of the plan: a public release would show them true of "
                f"everybody. Classes of {case.k} can be halved {choice.cuts} times, and more quasi-identifiers would coarsen all of them."
            )
        if design:
            self.warnings.append(
                f"{join_names(design)} {agreeing_word(len(design), 'is', 'are')} left out of the plan: the public may know the design of a survey, and it cannot be made coarser."
            )
        known = (*case.known, *choice.added)
        own = Schema(tuple(v for v in schema if v.name not in (*choice.left_out, *design)))
        return own, replace(case, table=self.seen.with_schema(own), known=known, released=known)

    def _sized(self, case: Case) -> Case:
        """The case with the number of records that are held out: the smallest share by which as many offered limits can be decided as by the largest."""
        if not case.holdout:
            return case
        given = self.given.get("data", {}).get("holdout")
        if given is not None and not isinstance(given, int | float):
            return case
        shares = SHARES if given is None else (given,)
        decided = [self._decided_of(replace(case, controls=round(share * case.table.records))) for share in shares]
        share = shares[decided.index(max(decided))]
        return replace(case, controls=round(share * case.table.records))

    def _decided_of(self, case: Case) -> int:
        """How many of the limits that are offered for a case can be decided."""
        offers = (request_offer(method, case) for method in registry().values() if method.family == "risk")
        limits = [limit for offer in offers if isinstance(offer, Offer) for limit in offer.limits if not limit.extra]
        return sum(self._decided(limit) is not None for limit in limits)

    def _decided(self, limit: OfferedLimit) -> tuple[float, str] | None:
        """The strictest limit that can be decided, and whose it is; None where none can."""
        given = self.gate_limit(limit.question) if limit.question is not None else ()
        given = tuple((limit.baseline + (1 - limit.baseline) * share, source) for share, source in given)
        possible = given or ((limit.limit, limit.source),)
        return next((one for one in possible if limit.detectable is None or limit.detectable <= one[0]), None)

    def _of_tables(self, case: Case) -> list[DraftedStep]:
        """One step that makes every variable from protected tables."""
        for method, offer in ranked_offers(case, "synthesis", decline=self._decline, joint=True):
            if method.synthesis.approved is None:
                continue
            step = {"method": method.name, "target": list(case.released), **offer.settings}
            self.warnings += [f"{_sentence(said)}." for said in offer.missed]
            return [DraftedStep("synthesis", step, f"{_sentence(self._from(method) + offer.why)}.")]
        raise BadInput("synthesis", "; ".join(self.unmeasured) or "no method draws all variables from tables")

    def _synthesis(self, case: Case) -> list[DraftedStep]:
        if self.wanted.tables:
            return self._of_tables(case)
        order = sorted(case.released, key=lambda name: _place_in_order(case.table[name]))
        kept = [name for name in self._usable(case) if name not in case.released]
        steps: list[DraftedStep] = []
        for at, name in enumerate(order):
            possible = [*kept, *(made for made in order[:at] if _tells(case.table[made]))]
            told = case.table.order_by_mutual_information(name, possible)[:MOST_PREDICTORS]
            steps.append(self._made(replace(case, target=case.table[name], predictors=told), len(possible)))
        return steps

    def _weights(self, case: Case, makers: Sequence[DraftedStep]) -> dict[str, Any]:
        """Less influence for records that few share their quasi-identifiers with, where these are released unchanged beside what every step can weigh."""
        known = [name for name in case.known if name in case.kept]
        methods = [method_of_step(step.section, str(step.table["method"])) for step in makers]
        if (
            not known
            or case.want != "synthesis"
            or not case.holdout
            or not all(one and one.synthesis.weighted for one in methods)
        ):
            return {}
        self.notes.append(
            f"Records that few share {_names(known)} with have less influence on the models: an intruder finds them most easily, and models repeat them most."
        )
        return {"weights": {"known": known, "strength": STRENGTH}}

    def _made(self, case: Case, possible: int) -> DraftedStep:
        """The step that makes one variable."""
        assert case.target is not None
        name = case.target.name
        for method, offer in self._ranked(case, "synthesis", case.target.variable.kind):
            step = {"method": method.name, "target": name, **offer.settings}
            alone = {
                "variables": {v.name: self.given["variables"][v.name] for v in case.table},
                "synthesis": [step],
                **({"release": {"recode": self._recode}} if self._recode else {}),
            }
            if self.problem(alone) is None:
                reason = f"{self.protection.reasons[name]}. " if name in self.protection.reasons else f"{name}: "
                why = (
                    _sentence(self._from(method) + offer.why)
                    if name in self.protection.reasons
                    else self._from(method) + offer.why
                )
                return DraftedStep("synthesis", step, f"{reason}{why}. {_predictors(offer, case, possible)}".strip())
        raise BadInput(
            f"variables.{name}",
            f'no method of a draft makes "{name}"; leave it out of the plan, or add a step yourself',
        )

    def _ranked(self, case: Case, family: str, kind: Kind | None = None) -> list[tuple[Method, Offer]]:
        return ranked_offers(case, family, kind, self._decline)

    @staticmethod
    def _from(method: Method) -> str:
        return "" if method.package == OWN else f"{method.key} of the package {method.package}; "

    def _anonymisation(self, case: Case) -> list[DraftedStep]:
        if case.want == "evaluation":
            return []
        found = self._ranked(case, "anonymisation")
        if not found:
            reasons = "; ".join(self.unmeasured) or "no method offers that"
            raise BadInput("anonymisation", f"nothing can be drafted for what is asked: {reasons}")
        method, offer = found[0]
        self.unmeasured.clear()
        self.warnings += [f"{_sentence(said)}." for said in offer.missed]
        return [
            DraftedStep(
                "anonymisation",
                {"method": method.name, **offer.settings},
                f"{_sentence(self._from(method) + offer.why)}.",
            )
        ]

    def _measures(self, case: Case) -> list[tuple[DraftedStep, list[DraftedStep]]]:
        """Measures, each with its thresholds."""
        found = []
        for family in MEASURES:
            for method, offer in self._ranked(case, family):
                step = DraftedStep(
                    "measure",
                    {"method": method.key, **offer.settings},
                    f"{_sentence(self._from(method) + offer.why)}.",
                )
                self.warnings += [f"{_sentence(said)}." for said in offer.missed]
                found.append((step, list(self._thresholds(case, method, offer.limits))))
        return found

    def _is_only_reported(self, limit: OfferedLimit, case: Case) -> bool:
        """Return whether a limit is about who is found by kept quasi-identifiers, and the audience has no limit on these."""
        has_limits = self.audience.limits.limits != KeptColumnLimits()
        return not has_limits and limit.question == LINKING and any(name in case.kept for name in case.known)

    def _thresholds(self, case: Case, method: Method, limits: Sequence[OfferedLimit]) -> Iterator[DraftedStep]:
        for limit in limits:
            if self._is_only_reported(limit, case):
                self.reported.append(f"{method.key}.{limit.output}")
                continue
            decided = self._decided(limit)
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

    def _tables(self, schema: Schema, case: Case) -> dict[str, Any]:
        data = dict(self.given.get("data", {}))
        if case.want != "synthesis":
            if isinstance(data.get("holdout"), int | float):
                del data["holdout"]
        elif case.holdout and "holdout" not in data:
            data["holdout"] = _share(case)
        release = {
            key: value for key, value in self.given.get("release", {}).items() if key in ("title", "order", "seed")
        }
        release.setdefault("seed", 1)
        if case.want == "synthesis":
            release = {"m": case.m, **release}
            if self.private:  # how many there are is no secret that noise could keep
                release.setdefault("records", _rounded(self.seen.records))
        elif case.want == "evaluation":
            release["released"] = list(case.released)
        if self.audience.audience != "public":
            release["audience"] = self.audience.audience
        if self._recode:
            release["recode"] = self._recode
        left_out = {Role.IDENTIFIER} if case.want == "anonymisation" or self.private else set()
        variables = {v.name: self.given["variables"][v.name] for v in schema if v.role not in left_out}
        if self.private and data.get("missing") == "keep":  # that a value is missing must not follow from the records
            variables = {name: {**own, "may_be_missing": True} for name, own in variables.items()}
        rest = {key: value for key, value in self.given.items() if key not in (*STEPS, "weights")}
        return {**rest, "data": data, "variables": variables, "release": release}

    def _usable(self, case: Case) -> list[str]:
        """The variables that others may hang on."""
        return [v.name for v in case.table if not _aside(v.variable) and _tells(v)]

    def _summarise(self, schema: Schema, case: Case, measures: Sequence[tuple[DraftedStep, list[DraftedStep]]]) -> None:
        """Say what becomes of which variables, and which questions stay open."""
        kept = [v.name for v in schema if v.name not in case.released and not _aside(v)]
        identifiers = [v.name for v in schema if v.role is Role.IDENTIFIER]
        made = {"synthesis": "Synthesised", "anonymisation": "Coarsened", "evaluation": "Scored as released"}[case.want]
        said = [f"Drafted from roles and kinds. {made}: {_names(case.released)}."]
        if unchanged := [name for name in kept if name not in self.protection.rules]:
            said.append(f"Released unchanged, for anyone to see who has the release: {_names(unchanged)}.")
        said += self.audience.notes
        said += [f"{reason}." for reason in self.protection.reasons.values()]
        said += self.protection.notes
        self.warnings += self.protection.warnings
        if rules := [name for name in self.given.get("release", {}).get("recode", {}) if name in schema]:
            said.append(f"The rules of [release] recode that the plan had are replaced: {_names(rules)}.")
        if identifiers:
            out = " (taken out of the plan)" if case.want == "anonymisation" else ""
            said.append(f"Identifiers never leave{out}: {_names(identifiers)}.")
        if case.holdout and "holdout" not in self.given.get("data", {}):
            said.append(
                f"{_share(case):.0%} of the records are held out: kept from synthesis, to compare attacks with."
            )
        if case.holdout and case.kept:
            said.append(
                "No limit on membership, linkability and singling out: columns that are released unchanged show who is in the data, "
                "whatever is drawn beside them."
            )
        if self.reported:
            said.append(
                f"No limit on {join_names(self.reported)}: people are found by kept quasi-identifiers, which are reported for {self.audience.name}."
            )
        if self.undecidable:
            said.append(
                f"No limit, since the records are too few to decide it: {'; '.join(self.undecidable)}. The gate's checks of people look at them."
            )
        said += [f"Without {_names(keys)}: {reason}." for reason, keys in self.unmeasured.items()]
        self.notes[:0] = said
        survey = [v.name for v in schema if v.role is Role.WEIGHT or v.design is not None]
        if survey:
            self.warnings.append(
                f"Survey weights and design are released unchanged: {_names(survey)}. They may identify records, and no model depends on them."
            )
        if case.want == "synthesis" and (still := [name for name in case.sensitive if name not in case.released]):
            self.warnings.append(f"Sensitive and not synthesised: {_names(still)}.")
        answered = {
            q
            for step, _ in measures
            for output in find_method(step.table["method"], "method").result_outputs
            for q in output.risk.questions
        }
        if still_open := [question for question in QUESTIONS if question not in answered]:
            self.warnings.append(f"Not measured: {', '.join(still_open)}.")


def _measure_at(place: str, limits: Sequence[Sequence[DraftedStep]]) -> int | None:
    """Which measure a place of a recipe belongs to, from 0; None for none."""
    section, _, rest = place.partition("[")
    if section not in ("measure", "threshold") or not rest:
        return None
    number = int(rest.partition("]")[0])
    if section == "measure":
        return number
    owners = [at for at, own in enumerate(limits) for _ in own]
    return owners[number]


def _rounded(records: int) -> int:
    """The number of records to one digit, at least 1: it says nothing of a single one."""
    return max(1, round(records, 1 - len(str(records))))


def _share(case: Case) -> float:
    """The share of the records that a draft holds out."""
    return min(SHARES, key=lambda share: abs(share * case.table.records - (case.controls or 0)))


def _aside(variable: Variable) -> bool:
    """Whether a variable is no property of a person: an identifier, a weight, or a part of the design of a survey."""
    return variable.role in (Role.IDENTIFIER, Role.WEIGHT) or variable.design is not None


def _tells(seen: VariableProfile) -> bool:
    return not seen.variable.kind.has_levels or seen.distinct <= MOST_LEVELS


def _place_in_order(seen: VariableProfile) -> tuple[bool, bool, int]:
    """Complete variables before others, levels before numbers, few values before many: a variable is predicted from those before it,
    and few complete levels predict best while being told from little themselves.
    """
    return bool(seen.missing), not seen.variable.kind.has_levels, seen.distinct


def _predictors(offer: Offer, case: Case, possible: int) -> str:
    used = offer.settings.get("predictors")
    if not used:
        return "Predicted from nothing: there is no variable before it."
    if len(used) == possible:
        return "Predicted from all that are kept or made before it."
    return f"Predicted from {len(used)} of {possible} that are kept or made before it, those that tell most of it (mutual information)."


def _sentence(text: str) -> str:
    """The text from a capital on, without its full stop."""
    return f"{text[:1].upper()}{text[1:]}".rstrip(".")


def _names(names: Iterable[str]) -> str:
    return ", ".join(names)
