"""The dial's numbers of a run: those of the measure for the stated knowledge, of the gate for all kept columns."""

import math

import numpy as np
import pandas as pd
import pytest
from prepared_tables import variables_of
from prepared_workspaces import finished_workspace

from sfumato.engine.errors import NotComputable
from sfumato.workspace.gate.contents import plan_release
from sfumato.workspace.gate.gate import examine_release
from sfumato.workspace.policy.policy import read_policy_of_workspace
from sfumato.workspace.reporting.intruder_dial import IntruderDial
from sfumato.workspace.service import intruder_dial
from sfumato.workspace.service.intruder_dial import count_for_dial, count_unsure, round_step
from sfumato.workspace.store.workspace import Workspace
from sfumato.workspace.views.results import read_result_rows, read_verdicts

PLAN = {
    "title": "People",
    "variables": variables_of(
        "region: categorical quasi_identifier",
        "age: count quasi_identifier",
        "shoe: count other",
        "ill: categorical sensitive",
        "pay: continuous sensitive",
    ),
    "release": {"m": 2, "seed": 7},
    "synthesis": [
        {"target": "ill", "method": "cart", "predictors": ["region", "age"]},
        {"target": "pay", "method": "linear_regression", "predictors": ["region"]},
    ],
    "measure": [{"method": "risk.identification", "radius": {"pay": "5%"}}],
    "threshold": [
        {"value": "risk.identification.largest_true_match_rate", "max": 0.05},
        {"value": "risk.identification.true_match_rate", "max": 0.02},
    ],
}


def people():
    rng = np.random.default_rng(4)
    return pd.DataFrame(
        {
            "region": rng.choice(list("xyz"), 90),
            "age": rng.integers(18, 60, 90),
            "shoe": rng.integers(36, 46, 90),
            "ill": rng.choice(["yes", "no"], 90),
            "pay": rng.normal(3000, 500, 90),
        }
    )


@pytest.fixture(scope="module")
def directory(tmp_path_factory):
    return finished_workspace(tmp_path_factory.mktemp("dial") / "workspace", [PLAN], people())


def measured(directory, measure, **params):
    with Workspace.open(directory, read_only=True) as workspace:
        (found,) = {
            row.value
            for row in read_result_rows(workspace, 1)
            if row.measure == measure and row.draw is None and row.dataset != "confidential"
            and row.params.get("by") == params.get("by")
        }  # fmt: skip
    return found


@pytest.mark.slow
@pytest.mark.parametrize("turned", [12, 2])
def test_the_stated_knowledge_has_the_numbers_of_the_measure(directory, monkeypatch, turned):
    monkeypatch.setattr(intruder_dial, "MOST_VARIABLES", turned)
    numbers = count_for_dial(directory, 1)
    dial = IntruderDial.from_numbers(numbers)
    found = {line.name: line for line in dial.lines()}
    assert found["expected"].value == pytest.approx(measured(directory, "largest_expected_match_risk"))
    assert found["certain"].value == pytest.approx(measured(directory, "largest_true_match_rate") * 90)
    assert found["certain"].limit == pytest.approx(0.02 * 90), "the stricter of two limits"
    assert sorted([*dial.known, *numbers.others]) == ["age", "ill", "pay", "region"]
    assert len(numbers.variables) == min(turned, 5)


@pytest.mark.slow
def test_all_kept_columns_find_those_whom_the_gate_counts(directory):
    dial = IntruderDial.from_numbers(count_for_dial(directory, 1))
    assert [one.name for one in dial.numbers.variables if not one.is_stated] == ["shoe"]
    with Workspace.open(directory, read_only=True) as workspace:
        examination = examine_release(workspace, plan_release(workspace, 1), read_policy_of_workspace(directory))
    (finding,) = [one for one in examination.findings if one.check == "kept_keys"]
    few = {line.name: line for line in dial.toggle_variable("shoe").lines()}["few"]
    assert few.value == finding.people
    assert (few.title, few.limit_text) == ("can be found, group under 11", "the policy allows none")


@pytest.mark.slow
def test_a_kept_number_may_be_known_roughly(directory):
    numbers = count_for_dial(directory, 1)
    reaches = {one.name: one.reaches for one in numbers.variables}
    assert reaches["age"] == (0.0, 1.0, 2.0, 4.0, 6.0)
    wanted = tuple((("age", reach),) for reach in reaches["age"][1:])
    last = numbers.counts
    for counts in count_unsure(directory, 1, wanted):
        for name in ("expected", "certain", "few"):
            assert all(a <= b + 1e-9 for a, b in zip(getattr(counts, name), getattr(last, name), strict=True))
        last = counts


@pytest.mark.slow
def test_a_drawn_number_is_looked_for_in_the_best_window(directory):
    numbers = count_for_dial(directory, 1)
    (pay,) = [one for one in numbers.variables if one.name == "pay"]
    assert pay.certainties == (None, 0.0, 25.0, 50.0, 100.0, 150.0)
    assert pay.windows == 8, "0, the plan's 5 %, and six half widths"
    wanted = tuple((("pay", reach),) for reach in pay.reaches)
    last, few = None, numbers.counts.few
    for counts in count_unsure(directory, 1, wanted):
        assert counts.few == few, "the small groups of kept columns stay"
        for name in ("expected", "certain"):
            if last is None:
                pairs = zip(getattr(numbers.counts, name), getattr(counts, name), strict=True)
            else:
                pairs = zip(getattr(counts, name), getattr(last, name), strict=True)
            assert all(a <= b + 1e-9 for a, b in pairs), "the plan's tolerance is among those of who knows it surely"
        last = counts


@pytest.mark.slow
def test_where_too_many_windows_would_be_tried_the_dial_says_so(directory, monkeypatch):
    monkeypatch.setattr(intruder_dial, "MOST_WINDOW_MATCHES", 90 * 2 * 32 * 7)
    numbers = count_for_dial(directory, 1)
    dial = IntruderDial.from_numbers(numbers).set_reach("pay", 0.0)
    assert numbers.most_windows == 7
    assert dial.uncounted_reason == "the run is too large to try windows of pay; leave it as the plan says"
    assert dial.sentences()[-1] == f"Not counted: {dial.uncounted_reason}."
    with pytest.raises(NotComputable):
        count_unsure(directory, 1, (dial.wanted_reaches,))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("bound", "limit", "text"),
    [
        ("max_ratio", 0.5, ": 50 % of the unprotected count"),
        ("max_increase", 3.0, ": 3 more than the unprotected count"),
    ],
)
def test_a_limit_that_compares_with_the_confidential_data_has_its_line(tmp_path, bound, limit, text):
    plan = {**PLAN, "threshold": [{"value": "risk.identification.largest_expected_match_risk", bound: limit}]}
    directory = finished_workspace(tmp_path / "workspace", [plan], people())
    with Workspace.open(directory, read_only=True) as workspace:
        (verdict,) = read_verdicts(workspace, 1)
        (found,) = {
            row.value
            for row in read_result_rows(workspace, 1)
            if row.measure == "largest_expected_match_risk" and row.dataset == "confidential" and row.draw is None
        }
    line = next(one for one in IntruderDial.from_numbers(count_for_dial(directory, 1)).lines() if one.limit is not None)
    assert line.name == "expected"
    assert line.limit == pytest.approx(found * limit if bound == "max_ratio" else found + limit)
    assert line.limit_text == f"{line.limit_texts[1]}{text}"
    assert line.limit_texts[-1].startswith(f"at most {math.floor(line.limit + 1e-6):,} ")
    assert line.is_above == (verdict.outcome == "not met")


@pytest.mark.slow
def test_without_a_measure_the_roles_say_what_is_known_and_a_policy_may_bind_the_reader(tmp_path):
    plan = {key: value for key, value in PLAN.items() if key not in ("measure", "threshold")}
    plan["release"] = {**PLAN["release"], "audience": "contract"}
    directory = finished_workspace(tmp_path / "workspace", [plan], people())
    dial = IntruderDial.from_numbers(count_for_dial(directory, 1))
    assert dial.knowledge_text() == "region and age"
    assert [one.name for one in dial.numbers.variables] == ["region", "age", "ill"], (
        "the contract binds who knows shoes"
    )
    assert {line.limit for line in dial.lines() if line.name != "few"} == {None}
    assert dial.numbers.limits.smallest_group == 3


def test_a_step_is_a_round_number():
    assert round_step(np.array([0.0, 8.0]), whole=False) == 0.5
    assert round_step(np.array([0.0, 8.0]), whole=True) == 2.0
    assert round_step(np.array([1e5, 3e5, np.nan]), whole=False) == 10_000
    assert round_step(np.array([5.0, 5.0]), whole=False) == 0.0
    assert round_step(np.array([np.nan]), whole=False) == 0.0
