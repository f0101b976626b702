"""Form of a release: how variables and records are released.

Anonymisation steps determine it, or ``[release]`` describes it for existing files:

    [release]
    title = "Visits to doctors, 2020"     # what the public files call the data
    audience = "public"                   # who receives the release: public, contract or enclave
    order = "original"                    # rows stay in the order of the confidential records
    records = 1000                        # of each dataset, where one step makes every variable
    number_of_units = 400                 # of each dataset, where steps with an epsilon draw whole units
    epsilon = 10.0                        # the most that a run may cost
    public_figures = "rounded"            # how figures of utility are published: internal, rounded or paid by epsilon
    redraws = 50                          # how often a record that breaks a constraint is redrawn
    units = "drawn"                       # households, patients are drawn whole: sfumato.engine.recipe.unit_stages
    unmet = "fail"                        # the run fails where some still do; "keep" leaves them in
    recode = { age = 5 }                  # a public rule that makes values coarser: sfumato.engine.data.recoding
    link = "person"                       # identifier that links released to confidential rows, of another tool's table
    generalised = ["age", "postcode"]     # values are labels: intervals, groups of categories, nodes of a tree, *
    micro_aggregated = ["smokes"]         # values are class means: numbers, not counts or levels
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from ..data.declaration import Param, SearchValues, Section, declared_keys
from ..data.recoding import check_recode_rules, recode_schema
from ..data.recoding_rules import RecodeRule
from ..data.schema import Kind, Role, Schema, Variable, check_variable_names
from ..errors import BadInput
from ..partition.equivalence_classes import Limits
from ..partition.hierarchies import Hierarchy
from .audience import Audience
from .results import Diagnostic
from .spec import Spec

if TYPE_CHECKING:
    from ..data.microdata import Microdata

MOST_RECORDS = 100_000_000
Order = Literal["original", "shuffled"]
Unmet = Literal["fail", "keep"]
PublicFigures = Literal["internal", "rounded", "paid"]
UnitsOfRelease = Literal["", "drawn", "kept"]


@dataclass(frozen=True, eq=False)
class Anonymised:
    """Anonymised table of the n confidential records that were not suppressed.

    data: the records that were not suppressed, in their order
    classes: equivalence class of each record, from 0, and -1 where it was suppressed, (n,)
    notes: diagnostics of the anonymisation
    """

    data: Microdata
    class_keys: NDArray[np.int64]
    notes: tuple[Diagnostic, ...] = ()

    @property
    def suppressed(self) -> NDArray[np.bool_]:
        """Mark which of the n records were left out, (n,)."""
        return self.class_keys < 0


Hierarchies = Annotated[
    Mapping[str, Hierarchy],
    Param(
        "generalisation trees by variable: rows of a value and its nodes up to the root; flat without one",
        names="variables",
        kinds=(Kind.CATEGORICAL, Kind.ORDINAL, Kind.BINARY),
    ),
]


Means = Literal["rounded", "exact"]
ClassMeans = Annotated[
    Means,
    Param(
        "how a class shows means: rounded to the decimals that the column has, and a binary variable as its most frequent level; or exact, and a binary variable as a number, the share of its second level",
        always_written=True,
    ),
]


class AnonymisationSpec(Spec):
    """Base of the parameters of anonymisation methods: every one has ``quasi_identifiers``.

    older_defaults: meaning of the keys that recipes of runs of earlier versions lack; the fields of these keys are
        always written
    """

    __slots__ = ()

    older_defaults: ClassVar[Mapping[str, str]] = {}

    quasi_identifiers: tuple[str, ...]

    def keys(self, schema: Schema) -> tuple[str, ...]:
        """Return the quasi-identifiers: the named ones, or else the variables of that role."""
        return self.quasi_identifiers or schema.names_by_role(Role.QUASI_IDENTIFIER)

    def released_variable(self, variable: Variable) -> Variable:
        """Return the declaration of a quasi-identifier in the anonymised table."""
        return variable

    def changed(self, schema: Schema) -> tuple[str, ...]:
        """Return the variables whose values the release changes."""
        return self.keys(schema)

    def generalised(self, schema: Schema) -> frozenset[str]:
        """Return the variables whose values become labels of intervals or of tree nodes."""
        return frozenset()

    def released_schema(self, schema: Schema) -> Schema:
        """Return the schema of the anonymised table."""
        keys = self.changed(schema)
        variables = tuple(self.released_variable(v) if v.name in keys else v for v in schema)
        return replace(schema, variables=variables, constraints=())

    @property
    def limits(self) -> Limits:
        """Return the requirements on every equivalence class of the released table; none by default."""
        return Limits()

    @property
    def missing_matches(self) -> Literal["value", "anything"]:
        """Return what a missing quasi-identifier matches when classes of the released table are compared with the
        limits.
        """
        return "value"

    def constrained(self, schema: Schema) -> tuple[str, ...]:
        """Return the sensitive variables that the limits constrain."""
        return ()

    def check_keys(self, schema: Schema, place: str) -> None:
        """Raise BadInput where there is no quasi-identifier."""
        if not self.keys(schema):
            raise BadInput(
                f"{place}.quasi_identifiers",
                'no variable is a quasi-identifier; name some, or give variables the role "quasi_identifier"',
            )


def generalised_variable(variable: Variable) -> Variable:
    """Return the declaration of a variable whose values become labels: categorical, with levels that follow from the
    data.
    """
    return Variable(variable.name, Kind.CATEGORICAL, variable.role, title=variable.title)


def micro_aggregated_variable(variable: Variable, means: Means) -> Variable:
    """Return the declaration of a variable whose values become class means, medians or modes."""
    # A mean of counts is no count.
    if variable.kind is Kind.COUNT:
        return replace(variable, kind=Kind.CONTINUOUS, bounds=(variable.lower, variable.upper), missing=())
    # Coded 0 and 1, its mean is the share of the second level, "interpreted probabilistically" (Measuring Data Quality
    # for Project Lighthouse §3.1). Rounded it is a level.
    if variable.kind is Kind.BINARY and means == "exact":
        return Variable(variable.name, Kind.CONTINUOUS, variable.role, (0.0, 1.0), title=variable.title)
    return variable


REDRAWS, MOST_REDRAWS = 50, 10_000


@dataclass(frozen=True, slots=True)
class DatasetsTable(Section):
    """Number of datasets of a release, their seed, and the ``released`` variables of one that is only scored."""

    m: Annotated[
        int | None,
        Param("datasets to release", ge=1, search_values=SearchValues((1, 2, 3, 5), larger_protects_more=False)),
    ] = None
    seed: Annotated[int, Param("of all randomness", ge=0, always_written=True)] = 1
    released: Annotated[
        tuple[str, ...] | None, Param("the released variables, where no step says them", names="variables")
    ] = None


@dataclass(frozen=True, slots=True)
class ReleaseForm(Section):
    """Form of the released datasets.

    order: of the rows
    link: identifier that pairs released and confidential records, empty without one
    records: records of a dataset, None for as many as the confidential data
    number_of_units: units of a dataset whose units are drawn, None for as many as the confidential data
    epsilon: privacy budget of a run
    title: name of the data in the public files; the recipe's own title stays internal
    surrogate_keys: identifiers whose values are replaced by keyed pseudonyms, equal in all releases of the same
        ``surrogate_scope``
    redraws, unmet: of constraints (``sfumato.engine.constraints.rejection_sampling``)
    units: whether units of several records are drawn, or kept with records drawn one after another; empty where
        every record is drawn by itself
    until: yes/no variable of the record that is a drawn unit's last; empty where its size says that
    """

    order: Annotated[
        Order, Param("the order of the rows; left out, shuffled, or the original's where a release is only scored")
    ] = "shuffled"
    title: Annotated[str, Param("what the public files call the data")] = ""
    audience: Annotated[
        Audience, Param("who receives the release; the limits on columns that it keeps follow from that")
    ] = "public"
    records: Annotated[
        int | None,
        Param(
            "of each dataset, where one step makes every variable; left out, as many as there are",
            ge=1,
            le=MOST_RECORDS,
        ),
    ] = None
    number_of_units: Annotated[
        int | None,
        Param(
            "of each dataset, where steps with an epsilon draw units; left out, as many as there are",
            ge=1,
            le=MOST_RECORDS,
        ),
    ] = None
    epsilon: Annotated[
        float | None,
        Param("budget: the most that the run may cost, where a step keeps a privacy account; left out, none", gt=0),
    ] = None
    public_figures: Annotated[
        PublicFigures,
        Param(
            "figures of utility in the public package: none, computed from rounded counts, or with noise that the privacy account pays for"
        ),
    ] = "internal"
    public_figures_epsilon: Annotated[
        float | None,
        Param("what the noise of all paid public figures costs together, beside the datasets", gt=0),
    ] = None
    link: Annotated[str, Param("the identifier that says whose row a released one is")] = ""
    surrogate_keys: Annotated[
        tuple[str, ...],
        Param("identifiers that are released as random keys, by which released tables join", names="variables"),
    ] = ()
    surrogate_scope: Annotated[
        str, Param("a name: only releases of the same scope have the same surrogate keys and join")
    ] = ""
    generalised: Annotated[
        tuple[str, ...],
        Param(
            "variables whose values are labels: intervals, groups of categories, nodes of a tree, *", names="variables"
        ),
    ] = ()
    micro_aggregated: Annotated[
        tuple[str, ...], Param("variables whose values are class means", names="variables")
    ] = ()
    redraws: Annotated[int, Param("how often a record that breaks a constraint is redrawn", ge=0, le=MOST_REDRAWS)] = (
        REDRAWS
    )
    unmet: Annotated[Unmet, Param("whether the run fails where records still break a constraint")] = "fail"
    units: Annotated[
        UnitsOfRelease,
        Param(
            "how units of several records are made: drawn with new sizes, or kept while their records are drawn one after another; left out, every record by itself"
        ),
    ] = ""
    until: Annotated[
        str,
        Param(
            "with drawn units, a yes/no variable that a step draws: no record of a unit follows one where it is yes; left out, size says how many records a unit has"
        ),
    ] = ""
    recode: Annotated[
        Mapping[str, RecodeRule],
        Param(
            'public rules that make values coarser: age = 5 shows the lower ends of steps of 5, Race = { other = ["4", "5"] } two levels as one',
            names="variables",
        ),
    ] = field(default_factory=dict)

    @classmethod
    def from_table(cls, release: Mapping[str, Any], schema: Schema, *, made: bool) -> ReleaseForm:
        """Read the form that ``[release]`` requests. Raises BadInput.

        ``made`` tells whether the recipe itself makes the release: its rows are then shuffled by default, and its steps
        define how values change. A release that is only scored has the original's order by default.
        """
        form = cls.read_section(
            {"order": _default_order(made=made), **release}, "release", others=declared_keys(DatasetsTable)
        )
        check_variable_names(form, schema, "release")
        for key in ("generalised", "micro_aggregated"):
            if getattr(form, key) and made:
                raise BadInput(f"release.{key}", "the recipe's steps already define how values change; leave it out")
        _check_recode(form, schema)
        _check_surrogate_keys(form, schema, made=made)
        _check_paid_epsilon(form)
        for i, name in enumerate(form.micro_aggregated):
            if name in form.generalised:
                raise BadInput(f"release.micro_aggregated[{i}]", f'"{name}" is generalised too; leave it out of one')
        if form.link and schema.require_variable(form.link, "release.link").role is not Role.IDENTIFIER:
            raise BadInput("release.link", f'"{form.link}" links records, so it must have the role "identifier"')
        # With another number of records, no released record corresponds to a confidential one.
        for name in schema.names_by_role(Role.IDENTIFIER) if form.records is not None else ():
            raise BadInput(f"variables.{name}.role", "synthetic records have no identifier; leave the column out")
        return form

    def to_table(self, *, made: bool | None = None) -> dict[str, Any]:
        """Return the keys of ``[release]`` that are not at their default."""
        table = {"order": self.order, **Section.to_table(self)}
        return {
            # The default of order depends on whether the recipe makes the release, so it is not the field's default.
            key: value
            for key, value in table.items()
            if key != "order" or value != _default_order(made=made is not False)
        }

    @property
    def changed_variables(self) -> tuple[str, ...]:
        """Return the variables that it declares as generalised or micro-aggregated."""
        return (*self.generalised, *self.micro_aggregated)

    def released_schema(self, schema: Schema) -> Schema:
        """Return the schema of tables of this form."""
        changes = {name: generalised_variable(schema[name]) for name in self.generalised}
        changes |= {name: micro_aggregated_variable(schema[name], "exact") for name in self.micro_aggregated}
        schema = recode_schema(schema, self.recode)
        variables = tuple(changes.get(variable.name, variable) for variable in schema)
        return replace(schema, variables=variables, constraints=())


def _check_paid_epsilon(form: ReleaseForm) -> None:
    """Raise BadInput where paid figures have no epsilon, or other figures have one."""
    place = "release.public_figures_epsilon"
    if form.public_figures == "paid" and form.public_figures_epsilon is None:
        raise BadInput(place, "paid public figures need an epsilon of their own; set it, such as 0.1")
    if form.public_figures != "paid" and form.public_figures_epsilon is not None:
        raise BadInput(place, 'only paid figures cost an epsilon; set public_figures = "paid", or leave it out')


def _check_surrogate_keys(form: ReleaseForm, schema: Schema, *, made: bool) -> None:
    """Raise BadInput where a surrogate key is not of an identifier, or where no released row has a record of its own."""
    place = "release.surrogate_keys"
    for i, name in enumerate(form.surrogate_keys):
        if not schema[name].role.is_identifier:
            raise BadInput(
                f"{place}[{i}]", f'"{name}" is no identifier; give it the role "identifier", or leave it out here'
            )
    if form.surrogate_keys and not made:
        raise BadInput(place, "the recipe only scores files that another tool made; leave it out")
    if form.surrogate_keys and form.records is not None:
        raise BadInput(place, "with [release] records no released row is of one record; leave one of them out")
    if form.surrogate_scope and not form.surrogate_keys:
        raise BadInput("release.surrogate_scope", "there is no surrogate key; set surrogate_keys, or leave it out")


def _check_recode(form: ReleaseForm, schema: Schema) -> None:
    """Raise BadInput where a rule does not suit its variable, or the form changes the variable in another way too."""
    check_recode_rules(form.recode, schema, "release.recode")
    for name in form.recode:
        role, where = schema[name].role, f"release.recode.{name}"
        if role in (Role.IDENTIFIER, Role.UNIT, Role.WEIGHT) or schema[name].design is not None:
            what = "an identifier, which is never released" if role.is_identifier else "part of the survey design"
            raise BadInput(where, f'"{name}" is {what}; leave it out')
        if name in form.changed_variables:
            raise BadInput(where, f'"{name}" is generalised or micro-aggregated too; leave it out of one')


def _default_order(*, made: bool) -> Order:
    """Return the order of rows where a recipe names none."""
    return "shuffled" if made else "original"
