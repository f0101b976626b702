"""The gate's checks of what a release shows of people, judged against the records that were held out of its run.

They ask for no measure. Without a hold-out only rows that are copied whole can convince; else the check says that it was not made.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from sfumato.engine.adversary.cells import cells_of
from sfumato.engine.adversary.coded import middle_ranks
from sfumato.engine.adversary.disguise import Disguise, disguise
from sfumato.engine.adversary.evidence import BESIDE_KEPT_LEVEL, COPY_LEVEL, EVIDENCE_LEVEL, OWN_ROW_LEVEL
from sfumato.engine.adversary.exchanged_rows import ExchangeEvidence, exchange_rows
from sfumato.engine.adversary.independent_rows import OTHER_WEIGHT, WHOLE, RowEvidence, fewest_copies, strongest_rows
from sfumato.engine.adversary.membership_evidence import LookCounts, weigh_evidence
from sfumato.engine.adversary.people import marked
from sfumato.engine.adversary.unanimous import nearest_members, unanimous
from sfumato.engine.data.arrays import Floats
from sfumato.engine.data.microdata import Microdata
from sfumato.engine.data.schema import Kind, Role
from sfumato.engine.errors import NotComputable
from sfumato.engine.methods.registry import registry
from sfumato.engine.partition.equivalence_classes import equivalence_classes
from sfumato.engine.wording import agree, counted, listed

from ..reporting.results import output_of
from ..store.runs import list_runs
from .checks import Case, Check, DoesNotApply, Pool, Sighting, Status, count_pools, numbered, percent_of, pooled
from .earlier import ReleasedData
from .joint import NUMBERS, Joint

FEWEST = 5
"""People beyond chance from which a finding may block."""
MOST_OF_THE_FOUND, MOST_OF_THE_PEOPLE = 0.6, 0.2
"""A finding blocks where so much of who is found, or of all people, is surely found for being a member."""
MOST_IN_OWN_ROWS = 0.5
"""And where so much of those who have their own values in their own rows do for the rows being theirs."""
NOT_DRAWN = "records of an anonymised table are protected by their classes"
NO_HOLDOUT = "no record was held out of the run, so that nothing shows whom a release finds that never saw them; hold out some under [data]"
FITTED = 0.5
"""An s_pmse below it shows that records are repeated (METHODS: two sides of s_pmse)."""


def _drawn(case: Case) -> tuple[str, ...]:
    weights = case.recipe.schema.of_role(Role.WEIGHT)
    return tuple(n for n in case.plan.replaced if n not in weights)


def _kept(case: Case) -> tuple[str, ...]:
    weights = case.recipe.schema.of_role(Role.WEIGHT)
    return tuple(n for n in case.plan.kept if n not in weights)


def _joint(case: Case, pool: Pool) -> Joint:
    """The joint table beside a pool, made once for all checks of it."""
    if pool.datasets not in case.joints:
        case.joints[pool.datasets] = Joint(case, pool, _drawn(case))
    found = case.joints[pool.datasets]
    assert isinstance(found, Joint)
    return found


def _fits(case: Case) -> Callable[[ReleasedData], bool]:
    names, schema = _drawn(case), case.confidential.schema

    def fits(one: ReleasedData) -> bool:
        return one.synthetic and one.has(names, schema) and set(names) <= set(one.replaced)

    return fits


def is_strong(counts: LookCounts, members: int, *, follows_from_kept: bool = False) -> bool:
    """Return whether so many people, and so much of what is found, are surely found for being members that it may block.

    Beside kept columns what is found ``follows_from_kept`` ones too, which are members'. There only many of the people count.

    A model that fits closely finds its members a little more often than others, which a large table shows: then most of those found must be
    found for being members, or many of all ``members``. Chosen as the strongest of many looks, counts flatter: their limits count.
    """
    of_found = counts.sure_share_of_found >= MOST_OF_THE_FOUND and not follows_from_kept
    return counts.excess >= FEWEST and (of_found or counts.sure_share_of_people(members) >= MOST_OF_THE_PEOPLE)


def is_own_row_strong(evidence: ExchangeEvidence) -> bool:
    """Return whether so many people, and so much of what is found, stand in their own rows that it may block."""
    is_much = evidence.share_of_found >= MOST_IN_OWN_ROWS or evidence.excess_share >= MOST_OF_THE_PEOPLE
    return evidence.excess >= FEWEST and is_much


def _stratum_text(who: str, noun: str) -> str:
    return "" if who.startswith("all ") else f" among {who.replace('people', noun)} of both"


def _count_or_none(count: int) -> str:
    return "none" if count == 0 else f"{count:,}"


def counts_text(counts: LookCounts, noun: str) -> str:
    """Return how many members and how many hold-out people a look finds."""
    what = counts.what or "are found by the looks that object"
    return (
        f"{counts.members:,} of {counts.of_members:,} {noun} of the data{_stratum_text(counts.who, noun)} {what}; of {counts.of_controls:,} such hold-out "
        f"{noun} {_count_or_none(counts.controls)}"
    )


def _percent_of_releases(p: float) -> str:
    return f"honest releases show as much in {100 * p:.2g} % of cases"


def power_text(detectable: Sequence[int | None], members: int, noun: str) -> str:
    """Return the smallest share of people whose copies a test would have shown, of the fewest that each would."""
    known = [one for one in detectable if one is not None]
    if not known:
        return f"too few {noun} have rare values for copies of them to be seen with 80 % power"
    fewest = max(FEWEST, min(known))
    return f"copies of {fewest:,} {noun} ({percent_of(fewest / members)}) or more would be seen with 80 % power"


def _membership_evidence(case: Case) -> Sighting:
    """All looks at people in the release as one test, and the looks that convince alone."""
    if not case.synthetic:
        raise DoesNotApply(NOT_DRAWN)
    if not _drawn(case):
        raise DoesNotApply("nothing is drawn")
    pools = count_pools(case, _fits(case), together=True)
    return pooled(case, _fits(case), lambda pool: _weigh_pool(_joint(case, pool), pools), together=True)


def _weigh_pool(joint: Joint, pools: int) -> Sighting:
    case, noun = joint.case, joint.case.noun
    is_whole = not _kept(case)
    if case.controls is None:
        # A design may give each combination of some columns one row, in the data and in the release: without a hold-out only whole rows count.
        rows = strongest_rows([one for one in joint.whole_rows if one.kind == WHOLE]) if is_whole else None
        if rows is not None and rows.p <= COPY_LEVEL / pools:
            return _by_rows(joint, rows, "; no record was held out to compare with", "block")
        raise NotComputable(NO_HOLDOUT)
    rows = joint.rows_alone if is_whole else None
    looks = joint.looks if is_whole else joint.looks_beside_kept_columns
    level = (EVIDENCE_LEVEL if is_whole else BESIDE_KEPT_LEVEL) / pools
    evidence = weigh_evidence(looks, joint.members, joint.records, level, rows=rows)
    looked = (
        f"{evidence.objecting:,} of {counted(evidence.looks, 'look')} {agree(evidence.objecting, 'objects', 'object')}"
    )
    detectable = [evidence.detectable]
    if pairs := [one.pairs for one in joint.whole_rows if is_whole and one.kind == WHOLE]:
        detectable.append(fewest_copies(min(pairs), joint.members, joint.records, level))
    about = f"{looked}, and {_percent_of_releases(evidence.p)}; {power_text(detectable, joint.members, noun)} ({joint.size})"
    notable = rows if rows is not None and rows.is_notable else None
    candidates = [one for one in (evidence.strongest, evidence.together) if one is not None]
    strong = [one for one in candidates if is_strong(one, joint.members, follows_from_kept=not is_whole)]
    # A look that convinces by itself names itself; rows speak where it takes both.
    is_by_labels = bool(strong) and evidence.by_labels <= level * OTHER_WEIGHT
    is_by_rows = notable is not None and _members_beyond_chance(joint, notable) >= FEWEST
    if notable is not None and evidence.p <= level and is_by_rows and not is_by_labels:
        return _by_rows(joint, notable, f"; {about}", "block")
    if evidence.p > level and notable is not None:
        return _by_rows(joint, notable, f"; the hold-out neither confirms nor contradicts it: {about}", "warn")
    if evidence.strongest is None:
        return Sighting(f"no look finds anybody in the release ({joint.size})", 0.0, judged=0.0)
    if evidence.p > level:
        # A pass shows the counts that come nearest to a finding: a reader sees what was not enough.
        nearest = counts_text(evidence.strongest, noun)
        words = f"no evidence that {noun} of the data are found more often than {noun} who were held out: at most, {nearest}"
        return Sighting(f"{words}; {about}", 0.0, judged=0.0)
    shown = strong[0] if strong else evidence.strongest
    message = counts_text(shown, noun)
    if shown is evidence.strongest and evidence.together is not None:
        message += f"; by all looks that object, {evidence.together.members:,} and {evidence.together.controls:,}"
    return Sighting(
        f"{message}; {about}", float(shown.members), shown.expected, shown.excess, numbered(shown.records),
        "block" if strong else "warn", at_least="warn",
    )  # fmt: skip


def _members_beyond_chance(joint: Joint, rows: RowEvidence) -> float:
    """Return how many members rows alone show beyond those that chance would."""
    found = int((rows.test.records < joint.members).sum())
    return found - _members_by_chance(joint, rows)


def _members_by_chance(joint: Joint, rows: RowEvidence) -> float:
    """Return how many members chance would show among the rows: as large a part of them as of all people."""
    return min(float(len(rows.test.records)), rows.test.expected) * joint.members / joint.records


def _by_rows(joint: Joint, rows: RowEvidence, beside: str, status: Status) -> Sighting:
    """Return what rows show that stand in the release more often than independent draws could repeat them."""
    case, one = joint.case, rows.test
    records = one.records[one.records < joint.members]
    controls = len(one.records) - len(records)
    against = (
        f", and {_count_or_none(controls)} of {joint.records - joint.members:,} hold-out {case.noun}"
        if case.controls is not None
        else ""
    )
    message = (
        f"{case.count(len(records))} of {joint.members:,} of the data, alone with their values in {one.what}, {agree(len(records), 'stands', 'stand')} in the release"
        f"{against}, where {one.chance}: rows that are drawn independently show as much in at most {100 * rows.p:.2g} % of cases{beside}"
    )
    expected = min(float(len(records)), _members_by_chance(joint, rows))
    beyond = len(records) - expected
    return Sighting(message, float(len(records)), expected, beyond, numbered(records), status, at_least="warn")


def _protected(case: Case) -> dict[str, str]:
    """The columns that a release is to hide, and why each."""
    schema = case.recipe.schema
    found = {v.name: "an identifier" for v in schema if v.role is Role.IDENTIFIER}
    if case.synthetic:
        found |= {n: "drawn anew" for n in case.plan.replaced if schema[n].role is Role.SENSITIVE}
        found |= {n: "sensitive" for n in case.plan.kept if schema[n].role is Role.SENSITIVE}
    else:
        found |= dict.fromkeys(case.plan.replaced, "generalised or suppressed")
    return found


def _numbers(data: Microdata, name: str) -> Floats | None:
    return data.numbers(name) if data.schema[name].kind in NUMBERS or data.schema[name].kind is Kind.ORDINAL else None


def _disguised(case: Case) -> Sighting:
    data, found = case.confidential, list[Disguise]()
    secrets = _protected(case)
    for name in case.plan.kept:
        cells = cells_of(data, (name,))[name]
        for secret in secrets:
            if secret == name:
                continue
            one = disguise(
                name, secret, cells, cells_of(data, (secret,))[secret], _numbers(data, name), _numbers(data, secret)
            )
            if one is not None:
                found.append(one)
    if not found:
        return Sighting("no column that stays says what another is to hide", 0)
    worst = max(found, key=lambda one: one.share)
    said = "; ".join(
        f"{one.name} stays and {one.how} as {one.of}, which is {secrets[one.of]}"
        if one.how.startswith("has the same")
        else f"{one.name} stays and {one.how}: it gives {one.of}, which is {secrets[one.of]}, of {100 * one.share:.3g} % of the {case.noun}"
        for one in found
    )
    return Sighting(said, len(found), records=numbered(worst.records))


def _own_values(case: Case) -> Sighting:
    """What is drawn beside kept columns: a record's own row against the rows of people with the same kept values."""
    kept, drawn = _kept(case), _drawn(case)
    if not case.synthetic:
        raise DoesNotApply(NOT_DRAWN)
    if not kept or not drawn:
        raise DoesNotApply("the release keeps no column" if drawn else "nothing is drawn")
    if not case.release.in_order:
        raise NotComputable("no row is known to be a record's own; keep the order of the records, or link them")
    known = list(case.plan.kept)
    classes = np.zeros(len(case.confidential), dtype=np.uint64)
    for keys in marked(cells_of(case.confidential, known), known).values():
        classes += keys
    # A model may know exact values of columns that leave coarser: what follows from these is a little more than rows of equal coarse values say.
    weakest: Status = "pass" if case.recipe.form.recode else "warn"

    def look(pool: Pool) -> Sighting:
        joint = _joint(case, pool)
        rows = classes + joint.rows[: joint.members]
        evidence = exchange_rows(joint.coded, classes, rows, joint.looked_at)
        if evidence is None:
            raise NotComputable(f"no two {case.noun} share {listed(known)}")
        about = f"of {evidence.people:,} {case.noun} who share all values that are not drawn with others"
        said = (
            f"{about}, {evidence.found:,} have their own values of {evidence.what} in their own row, and {evidence.expected:,.0f} would if rows of the same kept "
            f"values were exchanged; {_percent_of_releases(evidence.p)} ({joint.size})"
        )
        if evidence.p > OWN_ROW_LEVEL:
            return Sighting(
                f"a record's own row says no more of its drawn values than rows of the same kept values do: {said}",
                0.0,
                judged=0.0,
            )
        return Sighting(
            said, float(evidence.found), evidence.expected, evidence.excess, numbered(evidence.records),
            "block" if is_own_row_strong(evidence) else weakest, at_least=weakest,
        )  # fmt: skip

    return pooled(case, lambda one: False, look, together=False)


def _unanimous(case: Case) -> Sighting:
    """Classes of an anonymised table of one sensitive value."""
    if case.synthetic:
        raise DoesNotApply("not an anonymised table")
    keys = case.quasi_identifiers
    sensitive = [n for n in (*case.plan.kept, *case.plan.replaced) if case.recipe.schema[n].role is Role.SENSITIVE]
    if not keys or not sensitive:
        raise NotComputable("no variable is a quasi-identifier" if sensitive else "no variable is sensitive")
    released, data, controls = case.releases[0], case.confidential, case.controls
    classes = equivalence_classes([released.frame[name] for name in keys], len(released))
    near = None
    if controls is not None and released.linked:
        joint = Joint(case, case.pool(case.release), keys)
        columns = [
            (middle_ranks(joint.numbers(n)), False)
            if joint.is_number(n)
            else (np.unique(joint.cells(n), return_inverse=True)[1].astype(np.float64), True)
            for n in keys
        ]
        of_member = np.full(len(data), -1, dtype=np.int64)
        of_member[released.records] = classes
        near = of_member[nearest_members(columns, len(data))]
    worst: Sighting | None = None
    for name in sensitive:
        cells = cells_of(released, (name,))[name]
        theirs = None
        if near is not None and controls is not None:
            inside = near >= 0
            theirs = cells_of(controls, (name,))[name][: len(near)][inside]
        found = unanimous(classes, cells, None if near is None else near[near >= 0], theirs)
        beside = (
            f"of {found.controls:,} hold-out {case.noun} like them {100 * found.baseline:.0f} % have it too"
            if found.controls
            else f"{100 * found.baseline:.0f} % of all {case.noun} have such a value"
        )
        said = (
            f"{name}: {found.people:,} of {found.records:,} {case.noun} are in classes that all have the same value, so that whoever knows the "
            f"quasi-identifiers knows it; {beside}"
        )
        records = released.records[found.who] if released.linked else found.who[:0]
        one = Sighting(said, found.people / max(1, found.records), found.baseline, found.excess, numbered(records))
        worst = one if worst is None or one.held > worst.held else worst
    assert worst is not None
    return worst


def _elsewhere(case: Case) -> Sighting:
    """Columns kept here that another plan of the same data calls sensitive, or an identifier."""
    kept = [n for n in case.plan.kept if case.recipe.schema[n].role not in (Role.SENSITIVE, Role.IDENTIFIER)]
    if not case.synthetic:
        raise DoesNotApply("an anonymised table keeps its sensitive columns")
    found: dict[str, str] = {}
    for run in list_runs(case.workspace):
        if (
            run.id == case.plan.run.id
            or case.workspace.dataset(run.dataset_id).source_sha256 != case.original.source_sha256
        ):
            continue
        schema = run.recipe.schema
        for name in kept:
            if name in schema and schema[name].role in (Role.SENSITIVE, Role.IDENTIFIER):
                found.setdefault(name, f"{name} ({schema[name].role.value} in run {run.id})")
    said = f"kept here, and called sensitive or an identifier in another run of the same data: {', '.join(found.values()) or 'none'}"
    return Sighting(said, len(found))


def _memorised(case: Case) -> Sighting:
    """A distance in units of what a right model has, far below 1."""
    if case.recipe.form.recode:
        raise NotComputable(
            "coarser values are further from the exact ones than a fitted model is, and would hide that the others are repeated"
        )
    rows = [
        row for row in case.rows
        if (output := output_of(row)) is not None and output.goal == "one" and row.draw is None and row.level is None and row.value is not None and row.dataset != "confidential"
    ]  # fmt: skip
    if not rows:
        would = " or ".join(one.key for one in registry().values() if any(o.goal == "one" for o in one.outputs))
        raise NotComputable(f"no distance that a right model has at 1 was computed; add {would} under [[measure]]")
    least = min(rows, key=lambda row: row.value or 0.0)
    value = least.value or 0.0
    upper = value if least.upper is None else least.upper
    said = f"{least.key} is {value:.3g}: a release that a right model draws has about 1. " + (
        "It repeats the confidential records more closely than a fitted model can"
        if value < FITTED
        else "It is no closer than a fitted model can be"
    )
    return Sighting(said, value, 1.0, value if upper < 1 else max(value, FITTED))


CONTENT_CHECKS = (
    Check(
        "membership_evidence", "people who are found for being in the data", "people beyond what hold-out records show", 0, FEWEST - 1,
        "a release that depends on no single person finds members no more often than hold-out people, by whatever way of looking; all ways are one test",
        "larger leaves (minbucket of [[synthesis]]), smoothing = true for numbers, a model instead of donors, or a smaller m under [release]",
        _membership_evidence,
        "identical matches against a hold-out: Platzer & Reutterer (2021); agreement weights: Fellegi & Sunter (1969); permutation test: Fisher (1935), Besag & Clifford (1991)",
    ),
    Check(
        "disguised_columns", "columns that say what another is to hide", "columns", None, 0,
        "a column that is a one-to-one or monotone function of a hidden one gives it away, whatever its name and role",
        "give it the role that the hidden column has under [variables] and list it as a target of [[synthesis]], or leave it out", _disguised,
    ),
    Check(
        "own_values", "records whose own row says what is drawn", "people beyond those of the same kept values", 0, FEWEST - 1,
        "a drawn value that the record's own row has more often than rows of the same kept values is remembered, not inferred from what is kept",
        "larger leaves (minbucket of [[synthesis]]), smoothing = true for numbers, or a model instead of donors", _own_values,
        "permutation test: Fisher (1935), Besag & Clifford (1991)",
    ),
    Check(
        "unanimous_classes", "classes in which everybody has the same sensitive value", "excess (0 as for similar people, 1 for all)", 0.05, 0.2,
        "k hides the row of a person and not what all rows of the class say",
        "l_diversity or t_closeness beside k in [[anonymisation]], or a larger k", _unanimous, "homogeneity: Machanavajjhala et al. (2007)",
    ),
    Check(
        "roles_elsewhere", "columns kept that another run of the data calls sensitive", "columns", None, 0,
        "a role that is changed lets a column out unchanged", "give it the same role under [variables], and list it as a target of [[synthesis]]", _elsewhere,
    ),
    Check(
        "memorised", "a release closer to the records than a fitted model can be", "s_pmse", FITTED, None,
        "a model that is fitted and drawn from differs from its data as much as another draw does; what differs less repeats them",
        "larger leaves (minbucket of [[synthesis]]), or a model instead of donors", _memorised, "Snoke et al. (2018)", least=True,
    ),
)  # fmt: skip
