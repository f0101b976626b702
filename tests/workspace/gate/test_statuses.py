"""Only what was computed passes: what becomes of a check that has nothing to look at, and of the examination."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest

from sfumato.engine.data.microdata import conform_to_schema
from sfumato.engine.data.schema import Kind, MissingPolicy, Role, Schema, Variable
from sfumato.engine.errors import NotComputable
from sfumato.engine.methods.outputs import Output, RiskOutput
from sfumato.engine.methods.registry import method_by_key
from sfumato.engine.methods.rows import Row
from sfumato.engine.methods.run import Run
from sfumato.engine.recipe.outcomes import Outcome
from sfumato.engine.recipe.thresholds import Verdict
from sfumato.workspace.gate import run_checks, sentences
from sfumato.workspace.gate.checks import STATUSES, CheckNotApplicable, CheckResult, GateCheck, Status
from sfumato.workspace.gate.contents import plan_release
from sfumato.workspace.gate.gate import Examination, Finding, examine_release, make_finding
from sfumato.workspace.jobs.worker import run_worker
from sfumato.workspace.policy.policy import Policy
from sfumato.workspace.reporting.findings import finding_counts_text, sort_by_status
from sfumato.workspace.store.workspace import Workspace


def evaluate_check(look: Callable[[Any], CheckResult], **changes: Any) -> Finding:
    check = GateCheck("equal_records", "t", "u", 0.1, 0.5, "r", "take larger leaves", look)
    return make_finding(replace(check, **changes), Policy(), lambda: look(None))


def raises(error: NotComputable) -> Callable[[Any], CheckResult]:
    def look(_: Any) -> CheckResult:
        raise error

    return look


@pytest.mark.parametrize("least", [False, True])
def test_a_check_that_cannot_look_is_not_checked_on_either_side_of_its_limits(least: bool) -> None:
    finding = evaluate_check(raises(NotComputable("there are no controls")), is_minimum=least)
    assert (finding.status, finding.message, finding.compared_value, finding.applies) == (
        "not checked", "there are no controls", None, True,
    )  # fmt: skip
    assert finding.advice == ""


def test_a_check_that_measured_nothing_is_not_checked() -> None:
    assert evaluate_check(lambda _: CheckResult("nothing is there")).status == "not checked"
    assert evaluate_check(lambda _: CheckResult("nothing is there", 0.0)).status == "pass", (
        "the control: 0 was measured"
    )
    assert evaluate_check(lambda _: CheckResult("nothing is there", adjusted_value=0.0)).status == "pass"


def test_a_check_that_does_not_apply_says_so_and_leaves_nothing_open() -> None:
    finding = evaluate_check(raises(CheckNotApplicable("asked of artificial values only")))
    assert (finding.status, finding.message) == ("not checked", "does not apply: asked of artificial values only")
    passed = evaluate_check(lambda _: CheckResult("s", 0.0))
    assert Examination(1, "hash", (finding, passed)).status == "pass"
    assert Examination(1, "hash", (replace(finding, applies=True), passed)).status == "not checked"


@pytest.mark.parametrize(
    ("found", "status"),
    [
        (["pass", "pass"], "pass"),
        (["pass", "not checked"], "not checked"),
        (["pass", "not checked", "warn"], "warn"),
        (["not checked", "warn", "block"], "block"),
        ([], "pass"),
    ],
)
def test_an_examination_is_as_bad_as_its_worst_finding(found: list[Status], status: str) -> None:
    findings = tuple(Finding(f"c{i}", one, "t", "s") for i, one in enumerate(found))
    assert Examination(1, "hash", findings).status == status


def test_findings_stand_with_the_worst_first_and_what_does_not_apply_last() -> None:
    findings = [Finding(one, one, "t", "s") for one in reversed(STATUSES)]
    out = Finding("out", "not checked", "t", "s", applies=False)
    assert [one.check for one in sort_by_status([out, *findings])] == [*STATUSES, "out"]
    assert finding_counts_text([out, *findings]) == (
        "1 blocks, 1 to be judged, 1 not checked, 1 passes, 1 does not apply"
    )


def test_what_was_measured_is_worse_than_what_was_not() -> None:
    seen = [CheckResult("nothing"), CheckResult("below chance", -0.2), CheckResult("some", 0.1, at_most="warn")]
    assert max(seen, key=lambda one: one.severity).message == "below chance"


@pytest.mark.slow
def test_no_check_of_a_run_passes_without_a_number(workspace: Workspace, enter: Callable[..., int]) -> None:
    """Fully synthetic, partly synthetic and anonymised: 11 of 34 checks of such runs passed by nothing."""
    anonymised = {"synthesis": [], "release": {"seed": 7}, "anonymisation": [{"method": "mondrian", "k": 5}]}
    runs = [
        enter(),
        enter(measure=[], threshold=[]),
        enter(**anonymised, measure=[{"method": "risk.anonymity"}], threshold=[]),
    ]
    run_worker(workspace.directory, idle=0)
    for run_id in runs:
        findings = examine_release(workspace, plan_release(workspace, run_id), Policy()).findings
        assert {one.check for one in findings if one.status == "pass" and one.compared_value is None and one.value is None} <= {
            "differencing", "intersections",
        }, "which compare with earlier releases, and there are none"  # fmt: skip
        assert any(one.status == "not checked" and one.applies for one in findings)


EXCESS = "risk.attack.excess_risk"


@pytest.fixture
def above(monkeypatch: pytest.MonkeyPatch) -> Callable[..., tuple[str, CheckResult]]:
    """What the comparison with the confidential data sees of two rows."""

    def look(
        release: tuple[float, ...], own: tuple[float, ...], *, low: float | None, estimated: bool, noise: bool = False
    ) -> CheckResult:
        def row(dataset: str, found: tuple[float, ...]) -> Row:
            ends = found[1:] or (None, None)
            return Row("risk", "attack", "excess_risk", "", dataset, None, None, found[0], ends[0], ends[1])

        risk = RiskOutput(raised_by_noise=noise)
        output = Output("excess_risk", "m", "low", range=(low, 1.0), estimated=estimated, risk=risk)
        monkeypatch.setattr(run_checks, "threshold_output", lambda _: output)
        monkeypatch.setattr(
            run_checks, "_average_rows", lambda _: [row("synthetic", release), row("confidential", own)]
        )

        case = SimpleNamespace(
            recipe=SimpleNamespace(form=SimpleNamespace(records=None, number_of_units=None)), confidential=()
        )
        return run_checks._check_risk_above_confidential(case)  # type: ignore[arg-type]

    return look  # type: ignore[return-value]


@pytest.mark.parametrize(
    ("release", "own", "low", "estimated", "held", "may"),
    [
        ((0.3,), (0.2,), 0.0, False, 1.5, "block"),
        ((0.1,), (0.2,), 0.0, False, 0.5, "pass"),
        ((5 * 0.1 / 0.5 + 2e-16,), (1.0,), 0.0, False, 1.0, "pass"),
        ((0.3, 0.1, 0.5), (0.2,), 0.0, False, 1.5, "block"),
        ((0.3,), (0.2,), 0.0, True, 1.5, "warn"),
        ((0.3, 0.1, 0.5), (0.2, 0.1, 0.3), 0.0, True, 1.5, "pass"),
        ((0.8, 0.7, 0.9), (0.2, 0.1, 0.3), 0.0, True, 4.0, "block"),
        ((0.8, 0.7, 0.9), (0.2,), 0.0, True, 4.0, "warn"),
        ((-0.28,), (-0.09,), None, False, 0.81, "pass"),
        ((0.9,), (-0.01,), None, False, 1.91, "block"),
        ((0.2,), (0.0,), 0.0, False, 1.2, "block"),
    ],
)
def test_only_a_risk_that_is_above_for_certain_may_block_and_no_ratio_is_formed_of_negative_values(
    above: Any,
    release: tuple[float, ...],
    own: tuple[float, ...],
    low: float | None,
    estimated: bool,
    held: float,
    may: str,
) -> None:
    seen = above(release, own, low=low, estimated=estimated)
    assert (seen.compared_value, seen.at_most) == (pytest.approx(held), may)


def test_what_noise_raises_is_no_finding(above: Any) -> None:
    """The same value blocks where noise does not raise it. It warned of every honest release, and nobody could judge it."""
    seen = above((0.3,), (0.2,), low=0.0, estimated=False, noise=True)
    assert seen.at_most == "pass"
    assert "which by itself is no disclosure" in seen.message
    assert above((0.3,), (0.2,), low=0.0, estimated=False).at_most == "block"


def test_independent_columns_have_more_records_in_small_groups_than_the_data() -> None:
    """What declares that noise raises it: mixed people have more of it than the data, and a copy has as much."""
    rng = np.random.default_rng(3)
    place = rng.integers(0, 16, 600)
    frame = pd.DataFrame({"place": place, "trade": np.where(rng.random(600) < 0.97, place, rng.integers(0, 16, 600))})
    variables = [Variable(name, Kind.COUNT, Role.QUASI_IDENTIFIER) for name in frame]
    data = conform_to_schema(frame, Schema(tuple(variables)), MissingPolicy.REFUSE)
    mixed = frame.assign(trade=rng.permutation(frame["trade"]))
    method = method_by_key("risk.uniqueness")
    assert method is not None
    raised = [output.name for output in method.outputs if output.risk.raised_by_noise]
    assert raised == ["sample_uniques", "population_uniques", "share_in_small_groups"]
    spec = method.spec.from_table({"keys": ["place", "trade"], "sizes": [3]}, "measure[0]")

    def values(released: pd.DataFrame) -> list[float | None]:
        other = conform_to_schema(released, data.schema, MissingPolicy.REFUSE, "synthetic")
        found = method.func(data, other, spec, Run(np.random.default_rng(1))).estimates
        return [next(one.value for one in found if one.measure == name) for name in raised]

    for copied, independent in zip(values(frame), values(mixed), strict=True):
        assert copied is not None
        assert independent is not None
        assert independent > 1.5 * copied


@pytest.mark.parametrize(
    ("outcomes", "status"),
    [
        (("met", "met"), "pass"),
        (("met", "undecided"), "warn"),
        (("undecided", "not met"), "block"),
        (("undecided", "not computed"), "block"),
    ],
)
def test_thresholds_that_are_only_undecided_warn(outcomes: tuple[Outcome, ...], status: Status) -> None:
    verdicts = tuple(Verdict("risk.a.b", "", None, "max", 0.1, 0.1, 0.0, one) for one in outcomes)
    plan = SimpleNamespace(
        run=SimpleNamespace(id=1), verdicts=verdicts, unmet_verdicts=tuple(v for v in verdicts if v.outcome != "met")
    )
    (check,) = (one for one in run_checks.RUN_CHECKS if one.key == "unmet_thresholds")
    case = SimpleNamespace(plan=plan, policy=Policy(), is_synthetic=True)
    assert make_finding(check, Policy(), lambda: check.evaluate(case)).status == status  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("keys", "is_synthetic", "change"),
    [
        (["quality.rilm.minimum"], False, sentences.KEEP_MORE_OF_TABLE),
        (["utility.propensity.ratio"], True, sentences.MODEL_MORE),
        (["utility.propensity.ratio", "risk.identification.true_rate"], True, ""),
    ],
)
def test_unmet_limits_of_utility_alone_ask_for_more_of_the_data_and_never_for_protection(
    keys: list[str], is_synthetic: bool, change: str
) -> None:
    verdicts = tuple(Verdict(key, "", None, "min", 0.9, 0.1, -0.8, "not met") for key in keys)
    plan = SimpleNamespace(run=SimpleNamespace(id=1), verdicts=verdicts, unmet_verdicts=verdicts)
    (check,) = (one for one in run_checks.RUN_CHECKS if one.key == "unmet_thresholds")
    result = check.evaluate(SimpleNamespace(plan=plan, policy=Policy(), is_synthetic=is_synthetic))  # type: ignore[arg-type]
    assert result.change == change
