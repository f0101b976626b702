"""A number of a run with all that is needed to explain it, as the workspace has it."""

from __future__ import annotations

import re
from dataclasses import replace

from sfumato.engine.data.schema import SURVEY_SETTING
from sfumato.engine.errors import EngineError
from sfumato.engine.methods.labels import measure_name, method_and_output
from sfumato.engine.methods.outputs import ATTACK_PARTS, BEST_PARTS
from sfumato.engine.methods.rows import Row

from ..errors import WorkspaceError
from ..reporting.explanation import FINDING, SAMPLING_WIDTH, ExplainedNumber
from ..reporting.numbers import NumberLine, member_facts
from ..reporting.words import NO_SETTINGS, SettingsByMethod
from ..store.runs import count_confidential_records, count_records_and_units, find_run, read_run_records
from ..store.workspace import Workspace
from .audits import audited_records_of_row
from .results import read_attack_rows, read_series_rows, read_verdicts, verdicts_of_row

BEST_VARIABLES = ", best variables"
"""End of the name of a number that an intruder reaches who compares only the variables that help."""
PARTS = (*ATTACK_PARTS, *(name for names in BEST_PARTS.values() for name in names), *FINDING)
"""Measures of which an attack is made, with the finding of the best of several attackers."""
LOGARITHM = re.compile(r"(natural )?log(arithm)?(10)? of ", re.IGNORECASE)
"""Beginning of the title of a variable that is a logarithm."""
STANDARD_ERROR = "estimate", "standard_error"
"""Measures of an estimate and of its standard error."""
MOST_READ, FEWEST_READ = 1_000_000, 30
"""Records up to which a column is read to say how far another sample would be, and from which that is worth it."""


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
        _read_resampled(workspace, run_id, row),
        _logarithm_title(workspace, run_id, row),
        *_find_limited_number(workspace, run_id, row),
    )


def _find_limited_number(workspace: Workspace, run_id: int, row: Row) -> tuple[str, str]:
    """Return the name of the same number by the best choice of variables, where limits are on that one, and their worst
    outcome; else empty texts.
    """
    best = f"{measure_name(row.key)}{BEST_VARIABLES}"
    found = [one.outcome for one in read_verdicts(workspace, run_id) if measure_name(one.value) == best]
    return (best, next((one for one in found if one != "met"), "met")) if found else ("", "")


def _logarithm_title(workspace: Workspace, run_id: int, row: Row) -> str:
    """Return the title of the variable of a statistic, where it says that it is a logarithm; else empty."""
    schema = find_run(workspace, run_id).recipe.schema
    title = schema[row.target].title if row.family == "utility" and row.target in schema else ""
    return title if LOGARITHM.match(title) else ""


def _read_resampled(workspace: Workspace, run_id: int, row: Row) -> tuple[float, float] | None:
    """Return between what another sample as large as the confidential data has a quantile, a standard deviation or an
    estimate in 19 of 20 cases; None for other numbers, for a survey, and where the data are too long to be read.
    """
    if row.family != "utility" or row.value is None or row.dataset == "confidential":
        return None
    if row.measure == "estimate":
        return _resampled_estimate(workspace, run_id, row)
    run = find_run(workspace, run_id)
    if row.measure not in ("quantile", "sd") or SURVEY_SETTING in row.params or row.target not in run.recipe.schema:
        return None
    if count_confidential_records(workspace, run) > MOST_READ:
        return None
    try:
        values = read_run_records(workspace, run, [row.target]).present_numbers(row.target)
    # The number is shown without its yardstick where the table cannot be read.
    except (WorkspaceError, EngineError, OSError):
        return None
    # imported late, since numerical libraries take long to load
    from sfumato.engine.statistics.resampled import resampled_quantile, resampled_sd

    if len(values) < FEWEST_READ:
        return None
    return resampled_sd(values) if row.measure == "sd" else resampled_quantile(values, float(row.params["q"]))


def _resampled_estimate(workspace: Workspace, run_id: int, row: Row) -> tuple[float, float] | None:
    """Return the same of an estimate, by its standard error on the confidential data."""
    own, error = (
        next((one.value for one in found if one.draw is None and one.dataset == "confidential"), None)
        or next((one.baseline for one in found if one.draw is None), None)
        for found in (read_series_rows(workspace, run_id, replace(row, measure=name)) for name in STANDARD_ERROR)
    )
    if own is None or not error:
        return None
    return own - SAMPLING_WIDTH * error, own + SAMPLING_WIDTH * error


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
