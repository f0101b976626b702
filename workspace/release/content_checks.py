"""The gate's checks of what a release shows of people, judged against the records that were held out of its run.

They ask for no measure. Without a hold-out they compare with what the confidential table itself shows of chance, and say so.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

import numpy as np

from sfumato.engine.data.arrays import Floats
from sfumato.engine.data.microdata import Microdata
from sfumato.engine.data.schema import Kind, Role
from sfumato.engine.disclosure.agreement import own_rows, reproduced
from sfumato.engine.disclosure.cells import cells_of, rows_of
from sfumato.engine.disclosure.coded import middle_ranks
from sfumato.engine.disclosure.counts import copied_counts
from sfumato.engine.disclosure.disguise import Disguise, disguise
from sfumato.engine.disclosure.evidence import LEVEL, WEAK, Found, Verdict, corrected
from sfumato.engine.disclosure.people import most_multiplied
from sfumato.engine.disclosure.unanimous import nearest_members, unanimous
from sfumato.engine.errors import NotComputable
from sfumato.engine.methods.registry import registry
from sfumato.engine.partition.equivalence_classes import equivalence_classes
from sfumato.engine.wording import agree

from ..reporting.results import output_of
from ..store.runs import list_runs
from .checks import Case, Check, DoesNotApply, Pool, Sighting, numbered, pooled
from .earlier import ReleasedData
from .joint import NUMBERS, Joint

FEWEST = 5
"""People beyond chance from which a finding may block."""
MOST_OF_THE_FOUND, MOST_OF_THE_PEOPLE = 0.5, 0.2
"""A finding blocks where so much of who is found, or of who could be found, is found for being a member."""
WEAKLY = 0.05
RECODED = 0.005
"""What the hold-out alone must show of ranks and renamed levels, which differ between honest tables by themselves."""
UNCONTROLLED = 1e-4
"""The probability from which on a finding without a hold-out blocks: the table itself is the lesser witness."""
NOT_DRAWN = "records of an anonymised table are protected by their classes"
KEPT = "the release keeps columns, so that own_values looks at what is drawn beside them"


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


def _whole(case: Case) -> None:
    """Raises NotComputable unless all columns are drawn."""
    if not case.synthetic:
        raise DoesNotApply(NOT_DRAWN)
    if _kept(case):
        raise DoesNotApply(KEPT)
    if not _drawn(case):
        raise DoesNotApply("nothing is drawn")


def _fits(case: Case) -> Callable[[ReleasedData], bool]:
    names, schema = _drawn(case), case.confidential.schema

    def fits(one: ReleasedData) -> bool:
        return one.synthetic and one.has(names, schema) and set(names) <= set(one.replaced)

    return fits


def strong(found: Found) -> bool:
    """Whether so many people, and so much of what is found, are found for being members that it may block.

    Where the hold-out alone shows it, though the table has as many by chance, a model that fits closely may do so: then most must be found for being members.
    """
    of_the_people = found.share >= MOST_OF_THE_PEOPLE and found.by_both
    return found.excess >= FEWEST and (found.of_the_found >= MOST_OF_THE_FOUND or of_the_people)


def _chosen(counts: Sequence[Found], *, controlled: bool) -> tuple[Verdict, bool] | None:
    """The test that shows most, and whether it blocks; None where none shows anything. What both references show comes before what the hold-out
    alone does.
    """
    verdicts = sorted(corrected(counts), key=lambda one: not one.found.by_both)
    level = LEVEL if controlled else UNCONTROLLED
    for one in verdicts:
        if one.p <= level and strong(one.found):
            return one, True
    for one in verdicts:
        if one.p <= WEAKLY and one.found.excess >= 2:
            return one, False
    return None


def _none(count: int) -> str:
    return "none does" if count == 0 else f"{count:,} {agree(count, 'does', 'do')}"


def _counts_text(found: Found, shows: str, noun: str, *, controlled: bool) -> str:
    """Return how many members a test finds, and how many hold-out people or how many by chance."""
    among = "" if found.who.startswith("all ") else f" among {found.who.replace('people', noun)} of both"
    against = (
        f"of {found.of_controls:,} equally rare hold-out {noun} {_none(found.controls)}"
        if controlled
        else f"of an independent sample it would be {found.chance * found.exposure:.0f}"
    )
    return f"{found.members:,} of {found.of_members:,} {noun} of the data{among} {shows.format(what=found.what)}; {against}"


def _by_people(joint: Joint, counts: Sequence[Found], shows: str, nothing: str) -> Sighting:
    controlled, noun = joint.case.controls is not None, joint.case.noun
    chosen = _chosen(counts, controlled=controlled)
    beside = "" if controlled else "; no record was held out to compare with"
    if chosen is None:
        # A pass shows the counts that come nearest to a finding: a reader sees what was not enough.
        nearest = next(iter(corrected(counts)), None)
        at_most = (
            "nobody was found"
            if nearest is None
            else f"at most, {_counts_text(nearest.found, shows, noun, controlled=controlled)}"
        )
        return Sighting(f"{nothing.format(noun=noun)}; {at_most} ({joint.size}){beside}", 0.0, judged=0.0)
    found, blocks = chosen[0].found, chosen[1]
    said = f"{_counts_text(found, shows, noun, controlled=controlled)} ({joint.size}){beside}"
    return Sighting(
        said, float(found.members), float(found.expected), found.excess, numbered(np.sort(found.records)),
        "block" if blocks else "warn",
    )  # fmt: skip


def _standing(case: Case) -> Sighting:
    _whole(case)

    def look(pool: Pool) -> Sighting:
        joint = _joint(case, pool)
        counts = joint.standing.found
        return _by_people(
            joint, counts, "who are alone with their values in {what} stand in the release with them",
            "no test shows that {noun} of the data stand in the release more often than others",
        )  # fmt: skip

    return pooled(case, _fits(case), look, together=True)


def _reproduced(case: Case, *, recoded: bool) -> Sighting:
    _whole(case)
    how = "by ranks and renamed levels" if recoded else "by value"
    near = f"with nearly their own values, nearer to them {how} than another person would be"

    def look(pool: Pool) -> Sighting:
        joint = _joint(case, pool)
        columns, weak = (joint.renamed, RECODED) if recoded else (joint.coded, 4 * WEAK)
        counts = reproduced(columns, joint.members, joint.order, joint.rows, near, weak)
        counts += [
            replace(one, what=f"with their values in {one.what}, which nobody shares, under other names of levels")
            for one in (joint.named_back if recoded else ())
        ]
        return _by_people(
            joint, counts, "stand in the release {what}",
            f"no test shows that released rows are nearer to {{noun}} of the data, {how}, than to others",
        )  # fmt: skip

    return pooled(case, _fits(case), look, together=False)


def _moved(case: Case) -> Sighting:
    _whole(case)

    def look(pool: Pool) -> Sighting:
        joint = _joint(case, pool)
        if len(joint.scaled) < 2:
            raise DoesNotApply("no two numbers or dates are drawn")
        return _by_people(
            joint, joint.moved, "stand in the release {what}",
            "no test shows that a common change of numbers or of dates fits {noun} of the data more often than others",
        )  # fmt: skip

    return pooled(case, _fits(case), look, together=False)


def _multiplied(case: Case) -> Sighting:
    _whole(case)

    def look(pool: Pool) -> Sighting:
        joint = _joint(case, pool)
        found = most_multiplied(joint.standing.multiplied)
        if found is None or found.p > WEAKLY:
            return Sighting(
                f"no row of a person is repeated more often than chance repeats it ({joint.size})", 0.0, judged=0.0
            )
        said = (
            f"{case.count(found.people)} who {agree(found.people, 'is', 'are')} alone with their values in {found.what} "
            f"{agree(found.people, 'stands', 'stand')} in {found.rows:,} of {found.of_rows:,} released rows, {found.times} times or more each and at most {found.most} times; "
            f"by chance {found.expected:.2g} {case.noun} would be repeated so often ({joint.size})"
        )
        return Sighting(
            said,
            float(found.rows),
            found.expected,
            float(found.rows),
            numbered(found.records),
            "block" if found.p <= LEVEL / 10 else "warn",
        )

    return pooled(case, _fits(case), look, together=False)


def _copied_counts(case: Case) -> Sighting:
    _whole(case)

    def look(pool: Pool) -> Sighting:
        joint = _joint(case, pool)
        found = copied_counts(joint.own, joint.members, joint.released, joint.subsets)
        if found is None:
            raise NotComputable("no set of columns has ten combinations of eight records or more")
        said = (
            f"the counts of {found.cells:,} combinations of {found.what}, of {found.records:,} {case.noun}, differ from the confidential ones by "
            f"{found.distance:.2g} of what chance lets a fitted model differ ({joint.size})"
        )
        blocks = found.p <= UNCONTROLLED
        return Sighting(said, found.distance, 1.0, 1 - found.distance if blocks else 0.0)

    return pooled(case, _fits(case), look, together=False)


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


ASKED = 400
"""So many of the rarest people are asked about in own_values, beside others spread over the table."""


def _own_values(case: Case) -> Sighting:
    """What is drawn beside kept columns: a record's own row against that of somebody like it."""
    kept, drawn = _kept(case), _drawn(case)
    if not case.synthetic:
        raise DoesNotApply(NOT_DRAWN)
    if not kept or not drawn:
        raise DoesNotApply("the release keeps no column" if drawn else "nothing is drawn")
    if not case.release.in_order:
        raise NotComputable("no row is known to be a record's own; keep the order of the records, or link them")

    def look(pool: Pool) -> Sighting:
        every = Joint(case, pool, (*kept, *drawn))
        order = every.order[every.order < every.members]
        joint = Joint(case, pool, drawn)
        coded = joint.coded
        levels = [name for name in kept if case.confidential.schema[name].kind.has_levels]
        rows = rows_of(case.own, levels, len(case.confidential))
        counts, asked = list[Found](), 0
        for who, among in (
            (f"the rarest {case.noun}", order[: min(ASKED, len(order) // 5)]),
            (f"{case.noun} spread over the table", None),
        ):
            pairs = case.nearest(kept, drawn, among)
            # from other levels a model infers other values: only people of the same levels are likely to have each other's
            alike = rows[pairs.own] == rows[pairs.other]
            own, first = np.unique(pairs.own[alike], return_index=True)
            other, asked = pairs.other[alike][first], asked + len(own)
            if not len(own):
                continue
            for at in range(joint.looked_at):
                counts += own_rows(coded, at, own, other, f"{len(own):,} of {who}", ", ".join(drawn))
                if len(coded) > 1:
                    for one in coded:
                        counts += own_rows([one], at, own, other, f"{len(own):,} of {who}", one.name)
        if not asked:
            raise NotComputable(f"nobody has the same levels as somebody else in {', '.join(levels)}")
        chosen = _chosen(counts, controlled=True)
        if chosen is None:
            return Sighting(
                f"a record's own row says no more of its drawn values than that of somebody like it ({joint.size})",
                0.0,
                judged=0.0,
            )
        found, blocks = chosen[0].found, chosen[1]
        said = (
            f"of {found.who}, {found.members:,} have their own values in {found.what} in their own row and not in that of the person most like them; "
            f"the other way round it is {found.chance:.0f} ({joint.size})"
        )
        return Sighting(
            said,
            float(found.members),
            found.chance,
            found.excess,
            numbered(np.sort(found.records)),
            "block" if blocks else "warn",
        )

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


FITTED = 0.5
"""An s_pmse below it shows that records are repeated (METHODS: two sides of s_pmse)."""

ONE_DRAW = "what is drawn varies by chance"

CONTENT_CHECKS = (
    Check(
        "standing_people", "people whose records stand in the release", "people beyond what hold-out records show", 0, FEWEST - 1,
        "a released row that a single person has is that person's; hold-out people, who are in no model, show how many would be found by chance",
        "larger leaves (minbucket of [[synthesis]]), smoothing = true for numbers, a model instead of donors, or a smaller m under [release]",
        _standing, "identical matches against a hold-out: Platzer & Reutterer (2021); conditional exact test: Fisher (1935), Tarone (1990)",
    ),
    Check(
        "near_people", "people whom a released row resembles too closely", "people beyond what hold-out records show", 0, FEWEST - 1,
        "noise, swapped cells and left-out columns do not hide a person whose other values are rare",
        "larger leaves (minbucket of [[synthesis]]), a model instead of donors, fewer predictors, or a smaller m under [release]",
        partial(_reproduced, recoded=False), "agreement weights: Fellegi & Sunter (1969); against a hold-out: Platzer & Reutterer (2021)",
    ),
    Check(
        "recoded_people", "people who are found after columns are recoded", "people beyond what hold-out records show", 0, FEWEST - 1,
        "numbers in another unit, ranks and new names of levels hide no person: the order, the frequencies and the other columns say which is which",
        "synthesise the columns; another spelling of a value is the same value",
        partial(_reproduced, recoded=True), "agreement weights: Fellegi & Sunter (1969); levels assigned one to one: Kuhn (1955)",
    ),
    Check(
        "moved_people", "people whose numbers or dates are all changed alike", "people beyond what hold-out records show", 0, FEWEST - 1,
        "numbers that are multiplied by one factor keep their ratio, dates that are moved together the days between them",
        "synthesise the columns; a common factor or a shift is undone by whoever finds it", _moved,
        "attack against a control: Giomi et al. (2023)",
    ),
    Check(
        "repeated_people", "people whose record is released many times", "released rows", 0, 2,
        "whoever sees a rare record several times knows that it was in the data",
        "larger leaves (minbucket of [[synthesis]]), or a model instead of donors", _multiplied, "an independent sample: Good (1953)",
    ),
    Check(
        "copied_counts", "counts that are closer to the data than chance allows", "missing variation (0 as a fitted model, 1 as a copy)", 0, 0.5,
        "rows that are copied in some columns have the confidential counts there, even where no person stands out; " + ONE_DRAW,
        "a model in place of copied columns: list them as targets of [[synthesis]]", _copied_counts, "Pearson's chi-squared",
    ),
    Check(
        "disguised_columns", "columns that say what another is to hide", "columns", None, 0,
        "a column that is a one-to-one or monotone function of a hidden one gives it away, whatever its name and role",
        "give it the role that the hidden column has under [variables] and list it as a target of [[synthesis]], or leave it out", _disguised,
    ),
    Check(
        "own_values", "records whose own row says what is drawn", "people beyond those like them", 0, FEWEST - 1,
        "a drawn value that only the record's own row has is remembered, not inferred from what is kept",
        "larger leaves (minbucket of [[synthesis]]), smoothing = true for numbers, or a model instead of donors", _own_values,
        "attack against a control: Giomi et al. (2023)",
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
