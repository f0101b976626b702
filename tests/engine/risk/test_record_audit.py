"""The audit of single records on releases whose leak is known: copies, tables of other people, counts, regressions, classes of k records."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from prepared_tables import schema_of

from sfumato.engine.data.microdata import Microdata, conform_to_schema
from sfumato.engine.data.schema import Kind, Role, Schema, Variable
from sfumato.engine.errors import BadInput, NotComputable
from sfumato.engine.execution.tasks import execute_run, measure_block
from sfumato.engine.methods.drafting import DeclinedOffer, Offer
from sfumato.engine.methods.refits import ShadowRelease
from sfumato.engine.methods.results import Estimate, WholeReleaseMeasure
from sfumato.engine.methods.rows import Row
from sfumato.engine.methods.run import PUBLIC, Run
from sfumato.engine.recipe.recipe import Recipe
from sfumato.engine.risk.record_audit import OUTPUTS, RecordAuditSpec, _draft_offer, gather_blocks, record_audit

KEY = b"k" * 32
SCHEMA = schema_of(
    Variable("region", Kind.CATEGORICAL, Role.QUASI_IDENTIFIER, levels=tuple("abcd")),
    "age: count quasi_identifier",
    "pay: continuous sensitive",
    Variable("ill", Kind.BINARY, Role.SENSITIVE, levels=("n", "y")),
)


def people(n: int, seed: int, levels: Sequence[str] = "abcd") -> Microdata:
    rng = np.random.default_rng(seed)
    age = rng.integers(18, 80, n)
    frame = pd.DataFrame(
        {
            "region": np.array(list(levels))[rng.choice(4, n, p=[0.4, 0.3, 0.2, 0.1])],
            "age": age,
            "pay": np.round(age + 10 * rng.standard_t(3, n), 1),
            "ill": np.array(["n", "y"])[(rng.random(n) < 0.2 + (age > 60) * 0.3).astype(int)],
        }
    )
    variables = (replace(SCHEMA["region"], levels=tuple(levels)), *list(SCHEMA)[1:])
    return conform_to_schema(frame, Schema(variables))


OTHERS = people(2000, 99)


@dataclass(frozen=True)
class Stub:
    """Steps that release the ``share`` of the data that they are given as it is, and other people for the rest."""

    share: float
    seed: int
    fails: int | None = None
    changed_variables: tuple[str, ...] = SCHEMA.names
    kept_variables: tuple[str, ...] = ()
    dataset_count: int = 1
    removable: bool = False
    publishes_tables: bool = False
    hierarchies: Mapping[str, Any] = None  # type: ignore[assignment]
    has_models: bool = False
    others: Microdata | None = None

    def noise_guarantee(self, removed: bool) -> None:
        return None

    def make_releases(
        self, shadows: Sequence[int], tables: Sequence[Microdata], datasets: int, people: Microdata
    ) -> list[ShadowRelease]:
        return [ShadowRelease(self.release(data, shadow)) for shadow, data in zip(shadows, tables, strict=True)]

    def release(self, data: Microdata, shadow: int) -> tuple[Microdata, ...]:
        if shadow == self.fails:
            raise NotComputable("the steps fail")
        rng = np.random.default_rng([self.seed, shadow])
        n, own = len(data), round(self.share * len(data))
        others = (self.others or OTHERS).frame.iloc[rng.integers(len(OTHERS), size=n - own)]
        frame = pd.concat([data.frame.iloc[rng.permutation(n)[:own]], others], ignore_index=True)
        return (Microdata(data.schema, frame, "synthetic"),)

    def fit_models(self, data: Microdata, releases: Sequence[Microdata]) -> Any:
        raise AssertionError


def audited(data: Microdata, steps: Stub, seed: int = 1, **settings: Any) -> WholeReleaseMeasure:
    table = {"targets": 4, "shadows": 50, "people": ["vulnerable"], "blocks": 1, **settings}
    spec = RecordAuditSpec.from_table(table, "step").for_release(data.schema, data.schema.names)
    parts = [record_audit(data, [data], steps, spec, int(b), Run(np.random.default_rng(seed))) for b in spec.grid()]
    return gather_blocks(data, [data], spec, parts)


def of(found: WholeReleaseMeasure, name: str) -> Estimate:
    return next(one for one in found.whole.estimates if one.measure == name)


@pytest.mark.slow
def test_a_copy_gives_every_target_away_and_tables_of_other_people_nobody() -> None:
    data = people(60, 1)
    copy, nothing = audited(data, Stub(1.0, 1)), audited(data, Stub(0.0, 1))
    assert of(copy, "auc").value == pytest.approx(1.0, abs=0.02)
    assert of(copy, "given_away").value == 4
    assert of(copy, "reconstruction").value == pytest.approx(1.0, abs=0.05)
    assert (of(copy, "memorisation").lower or 0) > 0.2
    assert (of(copy, "epsilon_lower").value or 0) > 0.5
    assert of(nothing, "given_away").value == 0
    low, high = of(nothing, "auc").lower, of(nothing, "auc").upper
    assert low is not None
    assert high is not None
    assert low < 0.5 < high
    assert of(nothing, "epsilon_lower").value == 0
    assert (of(nothing, "p_value").value or 0) > 0.05


@pytest.mark.study
def test_intervals_of_all_targets_at_once_miss_one_half_in_five_percent_of_recipes_that_give_nobody_away() -> None:
    """Two limits a target, all targets together: 2.5 % above and 2.5 % below are meant. Intervals of single targets are the control."""
    missed = np.zeros((2, 2))
    audits = 1000
    for seed in range(audits):
        found = audited(people(60, seed + 5000), Stub(0.0, seed + 5000), seed + 5000, shadows=60, targets=6)
        whole = found.whole.per_record
        low, high, area = (
            whole[name][found.guesses["record"]] for name in ("audited_lower", "audited_upper", "audited_auc")
        )
        missed[0] += [(low > 0.5).any(), (high < 0.5).any()]
        error = np.sqrt(61 / (12 * 30 * 30))
        missed[1] += [(area > 0.5 + 1.96 * error).any(), (area < 0.5 - 1.96 * error).any()]
    shares = missed / audits
    print(
        f"{audits} recipes without a leak, 6 targets: simultaneous intervals lie above 1/2 in {shares[0, 0]:.3f} and below in {shares[0, 1]:.3f}, "
        f"together {shares[0].sum():.3f}; intervals of single targets by the usual formula (control) {shares[1].sum():.3f}"
    )
    assert abs(shares[0].sum() - 0.05) <= 0.021  # 5 %, three standard errors
    assert shares[1].sum() > 0.1


@pytest.mark.slow
def test_results_do_not_depend_on_blocks_or_the_order_of_records_and_name_the_targets() -> None:
    data = people(60, 2)
    one, other = audited(data, Stub(0.5, 3)), audited(data, Stub(0.5, 3), blocks=3)
    assert [e.value for e in one.whole.estimates] == [e.value for e in other.whole.estimates]
    order = np.random.default_rng(4).permutation(60)
    moved = replace(data, frame=data.frame.iloc[order].reset_index(drop=True))
    again = audited(moved, Stub(0.5, 3))
    assert [e.value for e in one.whole.estimates] == [e.value for e in again.whole.estimates]
    areas = one.whole.per_record["audited_auc"]
    assert np.isfinite(areas).sum() == 4
    assert np.array_equal(again.whole.per_record["audited_auc"], areas[order], equal_nan=True)
    assert sorted(one.guesses["record"]) == np.flatnonzero(np.isfinite(areas)).tolist()
    assert one.guesses["weight"].shape == (4, len(one.guesses["feature"]))
    figures = {name: values[np.isfinite(areas)] for name, values in one.whole.per_record.items()}
    low, high = figures["audited_lower"], figures["audited_upper"]
    assert ((low >= 0) & (low <= figures["audited_auc"]) & (figures["audited_auc"] <= high) & (high <= 1)).all()
    assert figures["audited_risk"].tolist() == [max(2 * one - 1, 0) for one in low.tolist()]


def rewrite_data(data: Microdata, change: str) -> Microdata:
    """The same people, otherwise written down."""
    frame, variables = data.frame, list(data.schema)
    if change == "names":
        variables = [replace(v, name=f"x {v.name}") for v in variables]
        return Microdata(Schema(tuple(variables)), frame.set_axis([v.name for v in variables], axis=1))
    if change == "levels":
        levels = ("Aarau", "Bern", "Chur", "Davos")
        frame = frame.assign(region=frame["region"].cat.rename_categories(dict(zip("abcd", levels, strict=True))))
        return Microdata(Schema((replace(variables[0], levels=levels), *variables[1:])), frame)
    if change == "unit":
        return Microdata(data.schema, frame.assign(pay=frame["pay"] * 1000))
    if change == "kind":
        variables[1] = replace(variables[1], kind=Kind.CONTINUOUS)
        return Microdata(Schema(tuple(variables)), frame.assign(age=frame["age"].astype("float64")))
    if change == "order of columns":
        variables = variables[::-1]
        return Microdata(Schema(tuple(variables)), frame[[v.name for v in variables]])
    spelled = frame.assign(age=frame["age"].map("+{:.1f}".format), pay=frame["pay"].map("{:.16e}".format))
    return conform_to_schema(spelled.astype("str"), data.schema)


@pytest.mark.slow
@pytest.mark.parametrize("change", ["names", "levels", "unit", "kind", "spelling", "order of columns"])
def test_how_people_are_written_down_changes_nothing(change: str) -> None:
    data = people(60, 12)
    plain = audited(data, Stub(0.5, 6))
    again = rewrite_data(data, change)
    found = audited(again, Stub(0.5, 6, changed_variables=again.schema.names, others=rewrite_data(OTHERS, change)))
    assert [(e.measure, e.value) for e in found.whole.estimates] == [
        (e.measure, e.value) for e in plain.whole.estimates
    ]
    assert np.array_equal(found.guesses["record"], plain.guesses["record"])


@pytest.mark.slow
def test_roles_decide_who_is_vulnerable_and_what_is_guessed_and_no_more() -> None:
    data = people(60, 12)
    roles = Schema(tuple(replace(v, role=Role.QUASI_IDENTIFIER) for v in SCHEMA))
    plain, found = (audited(one, Stub(1.0, 6), targets=6) for one in (data, Microdata(roles, data.frame)))
    assert of(found, "given_away").value == of(plain, "given_away").value == 6
    assert of(found, "auc").value == pytest.approx(of(plain, "auc").value, abs=0.03)
    assert of(found, "reconstruction").value is None


@pytest.mark.slow
def test_values_that_are_written_with_fewer_digits_are_others() -> None:
    data = people(60, 12)
    coarse = Microdata(SCHEMA, data.frame.assign(age=data.frame["age"] // 20 * 20))
    found = [audited(one, Stub(0.5, 6)) for one in (data, coarse)]
    values = [[e.value for e in one.whole.estimates] for one in found]
    assert values[0] != values[1], "the control"


@pytest.mark.slow
def test_canaries_prove_the_loss_of_a_copy_in_few_shadows_and_none_of_other_tables() -> None:
    copy = audited(people(60, 9), Stub(1.0, 4), shadows=40, background="canaries", targets=10)
    nothing = audited(people(60, 9), Stub(0.0, 4), shadows=40, background="canaries", targets=10)
    assert (of(copy, "epsilon_guesses").value or 0) > 2
    assert (of(copy, "epsilon_lower").value or 0) < (of(copy, "epsilon_guesses").value or 0)
    assert of(nothing, "epsilon_guesses").value == 0


def test_steps_that_fail_on_a_shadow_and_few_records_are_said() -> None:
    with pytest.raises(NotComputable, match="the steps fail"):
        audited(people(60, 5), Stub(1.0, 1, fails=3))
    with pytest.raises(NotComputable, match="too few for shadows"):
        audited(people(14, 5), Stub(1.0, 1), targets=20, people=["vulnerable", "random"])


@pytest.mark.parametrize(
    ("question", "names"), [("record", {"auc", "largest_auc"}), ("values", {"values_auc", "values_largest_auc"})]
)
def test_areas_are_named_after_what_the_audit_asks(question: str, names: set[str]) -> None:
    found = audited(people(40, 1), Stub(1.0, 1), shadows=40, targets=2, question=question)
    assert {e.measure for e in found.whole.estimates if "auc" in e.measure} == names | {"detectable_auc"}
    assert of(found, "reconstruction").value == pytest.approx(1.0, abs=0.05), "of a copy all values are guessed"


def test_one_target_can_be_audited_and_no_fewer() -> None:
    assert RecordAuditSpec.from_table({"targets": 1}, "step").targets == 1
    with pytest.raises(BadInput, match=r"targets: 0 must be at least 1 and at most 1000"):
        RecordAuditSpec.from_table({"targets": 0}, "step")


def test_shares_are_within_0_and_1_and_their_differences_within_1_of_0() -> None:
    ranges = {one.name: one.range for one in OUTPUTS}
    assert {ranges[name] for name in ("auc", "values_auc", "reconstruction", "tpr", "p_value")} == {(0, 1)}
    assert {ranges[name] for name in ("advantage", "memorisation")} == {(-1, 1)}


def test_a_draft_audits_one_of_several_datasets_and_at_most_a_quarter_of_the_records() -> None:
    case = SimpleNamespace(audit=True, want="synthesis", m=2, controls=100, table=SimpleNamespace(records=1000))
    offer = _draft_offer(case)  # type: ignore[arg-type]
    assert isinstance(offer, Offer)
    assert offer.settings == {"datasets": 1}
    case.m, case.table.records = 1, 180
    few = _draft_offer(case)  # type: ignore[arg-type]
    assert isinstance(few, Offer)
    assert few.settings == {"targets": 10}, "two kinds of 10 are a quarter of the 80 records that are not held out"
    case.table.records = 107
    assert isinstance(_draft_offer(case), DeclinedOffer)  # type: ignore[arg-type]


def test_a_task_makes_its_share_of_the_releases() -> None:
    """Shadows are shared by all targets unless all others stand beside each."""
    table = {"shadows": 400, "targets": 10, "blocks": 8, "people": ["vulnerable", "random"]}
    assert RecordAuditSpec.from_table(table, "step").shadows_a_task() == 50
    assert RecordAuditSpec.from_table({**table, "background": "all"}, "step").shadows_a_task() == 20 * 50


def test_a_recipe_without_steps_is_refused() -> None:
    table = recipe_table({}, [{"method": "risk.record_audit"}])
    with pytest.raises(BadInput, match="carries out the steps of the recipe again"):
        Recipe.from_table({**table, "release": {"released": ["pay"]}})


def recipe_table(steps: Mapping[str, Any], measures: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    variables = {v.name: v.to_table() for v in SCHEMA}
    return {
        "title": "audited",
        "variables": variables,
        "release": {"m": 1, "seed": 5},
        **steps,
        "measure": list(measures),
    }


def rows_of(steps: Mapping[str, Any], n: int = 100, key: bytes = KEY, seed: int = 7, **settings: Any) -> list[Row]:
    audit = {"method": "risk.record_audit", "targets": 3, "shadows": 60, "blocks": 1, **settings}
    recipe = Recipe.from_table(recipe_table(steps, [audit]))
    variables = {v.name for v in recipe.schema}
    data = people(n, seed)
    data = Microdata(recipe.schema, data.frame[[name for name in data.schema.names if name in variables]])
    return list(execute_run(recipe, data, key=key).rows)


def value(rows: Sequence[Row], measure: str, people: str = "random") -> Row:
    return next(r for r in rows if r.measure == measure and r.params.get("people", "random") == people)


TABLE = {
    "synthesis": [
        {
            "method": "dirichlet_multinomial",
            "target": list(SCHEMA.names),
            "bins": {"age": "3 equal width", "pay": "3 equal width"},
            "concentration": 0.001,
        }
    ]
}
MARGINS = {"synthesis": [{"method": "marginal_bootstrap", "target": name} for name in SCHEMA.names]}


@pytest.mark.slow
def test_counts_give_more_away_than_independent_margins() -> None:
    counts = value(rows_of(TABLE, shadows=120), "auc", "vulnerable")
    margins = value(rows_of(MARGINS, shadows=120), "auc", "vulnerable")
    assert (counts.lower or 0) > 0.5
    assert (margins.value or 1) < (counts.value or 0)


@pytest.mark.slow
def test_classes_of_many_records_give_less_away_than_of_few() -> None:
    found = []
    for k in (2, 30):
        step = {"method": "mondrian", "quasi_identifiers": ["region", "age"], "k": k, "output": "generalised"}
        rows = rows_of({"anonymisation": [step]}, n=120, question="record", shadows=100)
        found.append(value(rows, "auc", "vulnerable").value)
    assert found[0] > 0.8
    assert found[1] < found[0]


REGRESSION = {
    "synthesis": [{"method": "linear_regression", "target": "pay", "predictors": ["age"]}],
}


@pytest.mark.slow
@pytest.mark.parametrize("steps", [REGRESSION, TABLE], ids=["regression", "counts"])
def test_shadows_find_no_more_than_exact_likelihood_ratios(steps: Mapping[str, Any]) -> None:
    settings = {"background": "all", "targets": 1, "people": ["vulnerable"], "shadows": 120, "n": 40}
    exact, learned = rows_of(steps, **settings), rows_of(steps, **settings, exact=False)
    name = "values_auc" if steps is REGRESSION else "auc"
    best, other = value(exact, name, "vulnerable"), value(learned, name, "vulnerable")
    assert "likelihood ratios" in best.reason
    assert "likelihood" not in other.reason
    most, learnt = best.value or 0, other.value or 0
    assert most > 0.5
    assert (other.lower or 0) < most  # no test is more powerful
    assert most - learnt < 0.15


@pytest.mark.slow
def test_exact_ratios_of_counts_are_those_of_the_closed_form() -> None:
    """log p(Z | D) of Dirichlet counts by gamma functions, for the record and for others in its place."""
    from scipy.special import gammaln, logsumexp

    names = ("region", "ill")
    step = {"method": "dirichlet_multinomial", "target": list(names), "concentration": 0.5}
    variables = {name: SCHEMA[name].to_table() for name in names}
    table = {**recipe_table({"synthesis": [step]}, []), "variables": variables}
    audit = {
        "method": "risk.record_audit",
        "targets": 1,
        "people": ["random"],
        "shadows": 40,
        "blocks": 1,
        "background": "all",
    }
    recipe = Recipe.from_table({**table, "measure": [audit]})
    data = Microdata(recipe.schema, people(12, 8).frame[list(names)])
    kept: list[Any] = []

    from sfumato.engine.execution import refitting

    original = refitting.RecipeShadows.fit_models

    def models(self: Any, own: Microdata, releases: Sequence[Microdata]) -> Any:
        kept.append((own, releases[0]))
        return original(self, own, releases)

    refitting.RecipeShadows.fit_models = models  # type: ignore[method-assign]
    try:
        part = measure_block(recipe, 0, 0, data, [data], key=PUBLIC)
    finally:
        refitting.RecipeShadows.fit_models = original  # type: ignore[method-assign]

    def cells(one: Microdata) -> np.ndarray:
        return one.numbers("region").astype(int) * 2 + one.numbers("ill").astype(int)

    target = int(part["records"][0])
    own_cell = cells(data)[target]
    assert len(kept) == 40
    for (own, released), odds in zip(kept, part["odds"], strict=True):
        z, base = np.bincount(cells(released), minlength=8), np.bincount(cells(own), minlength=8)

        def log_p(counts: np.ndarray, z: np.ndarray = z) -> float:
            a = counts + 0.5
            return float(np.sum(gammaln(a + z) - gammaln(a)) + gammaln(a.sum()) - gammaln(a.sum() + z.sum()))

        others = np.delete(cells(data), target)  # the pool is all eleven others
        alternatives = []
        for cell in others:
            counts = base.copy()
            counts[own_cell] -= 1
            counts[cell] += 1
            alternatives.append(log_p(counts))
        assert odds == pytest.approx(log_p(base) - logsumexp(alternatives) + np.log(11), abs=1e-6)
