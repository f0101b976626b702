"""A number of a run with all that is needed to explain it, as the workspace has it."""

from __future__ import annotations

from dataclasses import replace

from sfumato.engine.methods.labels import measure_name, method_and_output
from sfumato.engine.methods.outputs import ATTACK_PARTS, BEST_PARTS
from sfumato.engine.methods.rows import Row

from ..reporting.explanation import FINDING, ExplainedNumber
from ..reporting.numbers import NumberLine, member_facts
from ..reporting.words import NO_SETTINGS, SettingsByMethod
from ..store.runs import count_records_and_units, find_run
from ..store.workspace import Workspace
from .audits import audited_records_of_row
from .results import read_attack_rows, read_series_rows, read_verdicts, verdicts_of_row

BEST_VARIABLES = ", best variables"
"""End of the name of a number that an intruder reaches who compares only the variables that help."""
PARTS = (*ATTACK_PARTS, *(name for names in BEST_PARTS.values() for name in names), *FINDING)
"""Measures of which an attack is made, with the finding of the best of several attackers."""


def read_explained_number(
    workspace: Workspace, run_id: int, row: Row, line: NumberLine | None = None, apart: SettingsByMethod = NO_SETTINGS
) -> ExplainedNumber:
    """Read a row with its verdicts, companions, yardstick and audited targets, and what is folded into its line."""
    records = count_records_and_units(workspace, find_run(workspace, run_id))
    return ExplainedNumber(
        row,
        read_series_rows(workspace, run_id, row),
        verdicts_of_row(workspace, run_id, row),
        records,
        audited_records_of_row(workspace, run_id, row),
        () if line is None else member_facts(line, records, apart),
        {one.measure: one for one in read_attack_rows(workspace, run_id, row, PARTS)},
        _read_yardstick(workspace, run_id, row),
        _read_what_others_reveal(workspace, run_id, row),
        _read_spread(workspace, run_id, row),
        _limited_number(workspace, run_id, row),
    )


def _limited_number(workspace: Workspace, run_id: int, row: Row) -> str:
    """Return the name of the same number by the best choice of variables, where a limit is on that one; else empty."""
    best = f"{measure_name(row.key)}{BEST_VARIABLES}"
    names = {measure_name(verdict.value) for verdict in read_verdicts(workspace, run_id)}
    return best if best in names else ""


def _read_what_others_reveal(workspace: Workspace, run_id: int, row: Row) -> Row | None:
    """Read what other records of the data reveal anyway to who knows and guesses the same; None for other numbers, and
    where that was not measured.
    """
    output = method_and_output(row.key)[1]
    # counts of guesses alone, which a yardstick in the same unit can stand beside
    if output.unit != "records" or "inference" not in output.risk.questions or output.risk.yardstick or row.target:
        return None
    params = {name: row.params[name] for name in ("known", "radius", "sensitive") if name in row.params}
    if isinstance(radius := params.get("radius"), dict):
        # a study has those of other numbers too
        named = (*params.get("known", ()), *params.get("sensitive", ()))
        params["radius"] = {name: one for name, one in radius.items() if name in named}
    for method in (step.method for step in find_run(workspace, run_id).recipe.measures):
        for other in method.outputs:
            if other.risk.yardstick and "inference" in other.risk.questions:
                family, _, name = method.key.partition(".")
                of = replace(row, family=family, method=name, measure=other.risk.yardstick, level=None, params=params)
                found = read_series_rows(workspace, run_id, of)
                if own := next((one for one in found if one.draw is None and one.dataset == "confidential"), None):
                    return own
    return None


def _read_spread(workspace: Workspace, run_id: int, row: Row) -> float | None:
    """Read the standard deviation of a variable in the confidential data, of its mean; None for other numbers."""
    if row.family != "utility" or row.measure != "mean":
        return None
    found = read_series_rows(workspace, run_id, replace(row, measure="sd"))
    return next((one.value for one in found if one.draw is None and one.dataset == "confidential"), None)


def _read_yardstick(workspace: Workspace, run_id: int, row: Row) -> Row | None:
    """Read the row with what other records reveal anyway about what a row is about; of that row, the row of the
    release that is compared with it. None without one.
    """
    method, output = method_and_output(row.key)
    name = output.risk.yardstick
    if not name:
        compared = (one.name for one in (method.outputs if method else ()) if one.risk.yardstick == row.measure)
        name = next(compared, "")
    found = read_series_rows(workspace, run_id, replace(row, measure=name)) if name else []
    # the yardstick is of the confidential data, and what is compared with it of the release
    is_yardstick = bool(output.risk.yardstick)
    return next((one for one in found if one.draw is None and (one.dataset == "confidential") is is_yardstick), None)
