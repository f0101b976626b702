"""Convergence of the models of a run: every statistic with its rule, and which parameters exceed a usual limit."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace

from sfumato.engine.methods.results import Diagnostic
from sfumato.engine.wording import count_noun, join_names

from ..visible_text import replace_unprintable
from .tables import DisplayCell, DisplayColumn, DisplayTable, grid_value
from .words import number, sign_for

ALL_PARAMETERS = "all parameters"
"""Name under which the statistics of a whole model are listed."""
# R-hat and effective sample sizes: Vehtari et al. (2021); Pareto k: Vehtari et al. (2024)
LARGEST_R_HAT, SMALLEST_SIZE, LARGEST_K = 1.01, 400.0, 0.7
_STATISTICS = {
    "r_hat": "r_hat",
    "effective_sample_size": "bulk",
    "tail_effective_sample_size": "tail",
    "acceptance": "acceptance",
    "pareto_k": "pareto_k",
}
CONVERGENCE_CAPTION = "Convergence: R-hat at most 1.01, effective sample sizes at least 400, Pareto k at most 0.7 (Vehtari et al. 2021, 2024)"
EARLIER_VERSION = "an earlier version fitted it; run its recipe again"
SparklineValues = Mapping[tuple[str, str], Sequence[float]]
"""Values that a small line plot draws, by model and parameter."""


@dataclass(frozen=True, slots=True)
class ParameterConvergence:
    """Convergence statistics of a parameter; None where a statistic is not known.

    target: the modelled variable
    parameter: its name, or ALL_PARAMETERS for a whole model
    r_hat: potential scale reduction
    bulk, tail: effective sample sizes; ``bulk`` of a whole model is that of its importance weights
    acceptance, pareto_k: acceptance rate and Pareto k, of whole models only
    """

    target: str
    parameter: str
    r_hat: float | None = None
    bulk: float | None = None
    tail: float | None = None
    acceptance: float | None = None
    pareto_k: float | None = None

    @property
    def exceeded_limits(self) -> tuple[str, ...]:
        """Return the usual limits that are exceeded, in words."""
        weights = "ESS" if self.parameter == ALL_PARAMETERS else "bulk ESS"
        checks = (
            (self.r_hat, LARGEST_R_HAT, "R-hat over 1.01", True),
            (self.pareto_k, LARGEST_K, "Pareto k over 0.7", True),
            (self.bulk, SMALLEST_SIZE, f"{weights} under 400", False),
            (self.tail, SMALLEST_SIZE, "tail ESS under 400", False),
        )
        return tuple(
            words
            for value, limit, words, most in checks
            if value is not None and (value > limit if most else value < limit)
        )

    @property
    def is_judged(self) -> bool:
        """Return whether some statistic with a limit is known."""
        return any(value is not None for value in (self.r_hat, self.bulk, self.tail, self.pareto_k))


def convergence_by_parameter(lines: Sequence[Diagnostic]) -> list[ParameterConvergence]:
    """Return the statistics of each parameter of the models that have a sampler, the whole model before its parameters."""
    sampled = {line.target for line in lines if line.name in _STATISTICS}
    found: dict[tuple[str, str], dict[str, float | None]] = {(target, ALL_PARAMETERS): {} for target in sampled}
    for line in lines:
        if line.target in sampled:
            known = found.setdefault((line.target, line.parameter), {})
            if line.name in _STATISTICS:
                known[_STATISTICS[line.name]] = line.value
    # reversed, so that the first place of each model is the one that stays
    order = {target: i for i, target in reversed(list(enumerate(line.target for line in lines)))}
    made = [ParameterConvergence(target, parameter, **known) for (target, parameter), known in found.items()]
    return sorted(made, key=lambda line: (order[line.target], line.parameter != ALL_PARAMETERS))


def sort_worst_first(lines: Sequence[ParameterConvergence]) -> list[ParameterConvergence]:
    """Sort parameters by most exceeded limits, then by largest R-hat, then by smallest sample size."""

    def doubt(line: ParameterConvergence) -> tuple[int, float, float]:
        """Return the sort key, smallest for the worst parameter."""
        sizes = [size for size in (line.bulk, line.tail) if size is not None]
        return -len(line.exceeded_limits), -(line.r_hat or 0.0), min(sizes, default=float("inf"))

    return sorted(lines, key=doubt)


STATISTIC_COLUMNS = (
    DisplayColumn("target", "model of", 10),
    DisplayColumn("name", "statistic", 18),
    DisplayColumn("parameter", "parameter", 10, grow_order=1),
    DisplayColumn("value", "value", 9, "right"),
    DisplayColumn("rule", "rule", 12),
    DisplayColumn("passed", "result", 8),
)


def statistic_cells(found: Diagnostic) -> dict[str, DisplayCell | str]:
    """Return the cells of a statistic by column."""
    results: Mapping[bool | None, DisplayCell | str] = {
        True: DisplayCell("passed", "pass"),
        False: DisplayCell("FAILED", "fail"),
        None: "",
    }
    return {
        "target": found.target,
        "name": found.name,
        "parameter": found.parameter,
        "value": number(found.value),
        "rule": found.rule,
        "passed": results[found.passed],
    }


def statistic_table(found: Sequence[Diagnostic]) -> DisplayTable:
    """Return every statistic of a run's models with the rule that it must meet."""
    return DisplayTable(STATISTIC_COLUMNS, [tuple(statistic_cells(one).values()) for one in found], "Every statistic")


def statistics_summary(found: Sequence[Diagnostic]) -> str:
    """Return the number of statistics and of broken rules: ``12 statistics of 1 model; ✓ every rule met (8)``."""
    if not found:
        return ""
    judged = [one for one in found if one.passed is not None]
    broken = [one for one in judged if not one.passed]
    said = f"{count_noun(len(found), 'statistic')} of {count_noun(len({one.target for one in found}), 'model')}; "
    if not judged:
        return said + "none of them has a rule to meet"
    if broken:
        return said + f"{sign_for('fail')} {len(broken)} of {len(judged)} rules broken"
    return said + f"{sign_for('pass')} every rule met ({len(judged)})"


def broken_rule_lines(diagnostics: Sequence[Diagnostic]) -> list[str]:
    """Return a line for each model and statistic that breaks its rule: the worst value, and the number of others."""
    broken: dict[tuple[str, str, str], list[Diagnostic]] = {}
    for found in diagnostics:
        if found.passed is False:
            broken.setdefault((found.target, found.name, found.rule), []).append(found)
    lines = []
    for (target, name, rule), own in broken.items():
        # the worst value is the smallest under a lower limit
        sign = -1 if rule.startswith("at least") else 1
        # a statistic that could not be computed is worse than any value
        worst = max(own, key=lambda one: float("inf") if one.value is None else sign * one.value)
        others = f", and {len(own) - 1} more" if len(own) > 1 else ""
        lines.append(
            f"{replace_unprintable(target)}: {name} of {replace_unprintable(worst.parameter)} is {number(worst.value)}, {rule}{others}"
        )
    return lines


PARAMETER_COLUMNS = (
    DisplayColumn("target", "model of", 8),
    DisplayColumn("parameter", "parameter", 12, grow_order=1),
    DisplayColumn("r_hat", "R-hat", 5, "right"),
    DisplayColumn("bulk", "bulk", 6, "right", full_title="bulk ESS"),
    DisplayColumn("tail", "tail", 6, "right", full_title="tail ESS"),
    DisplayColumn("sampler", "sampler", 13, drop_order=1),
    DisplayColumn("verdict", "verdict", 22),
)
WITHIN, NO_CHECK, NO_TRACE = "within limits", "no convergence check", "no trace kept"


@dataclass(frozen=True)
class ConvergenceLine:
    """Line of the convergence table: a parameter of a model with a sampler, or a model without one.

    convergence: the statistics
    missing_reason: why the model has no convergence check; empty where it has one
    sparkline: values that a small line plot draws
    n_folded: number of other parameters of the model, all within their limits, for which a line of the whole model stands
    concern: what else is to be minded of the model: a broken rule, or a tree of one leaf
    fit_text: what is known of the fit of a model without a sampler; empty for others, or where it needs more room
    """

    convergence: ParameterConvergence
    missing_reason: str = ""
    sparkline: Sequence[float] = field(default=(), compare=False)
    n_folded: int = 0
    concern: DisplayCell | None = None
    fit_text: str = ""

    @property
    def parameter_key(self) -> tuple[str, str]:
        """Return the model and the parameter of the line."""
        return self.convergence.target, self.convergence.parameter

    @property
    def is_flagged(self) -> bool:
        """Return whether a usual limit is exceeded."""
        return bool(self.convergence.exceeded_limits)

    @property
    def has_failed(self) -> bool:
        """Return whether a usual limit is exceeded, or a rule broken."""
        return self.is_flagged or self.concern == RULE_BROKEN


RULE_BROKEN, ONE_LEAF = DisplayCell("rule broken", "fail"), DisplayCell("one leaf", "warn")


def one_leaf_targets(diagnostics: Sequence[Diagnostic]) -> list[str]:
    """Return the variables whose tree has one leaf."""
    return list(dict.fromkeys(one.target for one in diagnostics if one.name == "leaves" and one.value == 1))


MOST_FIT_TEXT = 40
"""Cells of what is known of a fit above which it has no room in its line of the table."""
OF_DRAWS = {"mean_of_draws": "mean", "sd_of_draws": "sd"}
"""Statistics whose draws the heading of the parameters names."""


def fit_facts(lines: Sequence[Diagnostic]) -> list[tuple[str, str]]:
    """Return what is known of each fitted part in a line: ``PID``, ``records 944 · steps 5``."""
    found: dict[str, list[Diagnostic]] = {}
    for line in lines:
        found.setdefault(line.target if line.parameter in ("", line.target) else line.parameter, []).append(line)
    return [(part, _facts_text(own)) for part, own in found.items()]


def _facts_text(lines: Sequence[Diagnostic]) -> str:
    """Return the statistics of a fitted part in words; a tree has those of its leaves in a phrase."""
    values = {line.name: line.value for line in lines}
    texts = []
    if values.get("leaves") is not None and values.get("smallest_leaf") is not None:
        texts = [_leaves_text(values)]
        lines = [line for line in lines if line.name not in ("leaves", "smallest_leaf", "leaves_of_one_value")]
    for line in lines:
        judged = str(grid_value(statistic_cells(line)["passed"]))
        rule = f" ({judged}: {line.rule})" if line.rule else ""
        texts.append(f"{OF_DRAWS.get(line.name, line.name.replace('_', ' '))} {number(line.value)}{rule}")
    return " · ".join(texts)


def _leaves_text(values: Mapping[str, float | None]) -> str:
    """Return the leaves of a tree in words: ``22 leaves of 253 or more, 2 of one value``."""
    leaves, smallest, uniform = (values.get(name) for name in ("leaves", "smallest_leaf", "leaves_of_one_value"))
    if leaves == 1:
        return f"1 leaf of all {number(smallest)} records{' of one value' if uniform else ''}"
    alike = f", {number((leaves or 0.0) * uniform)} of one value" if uniform else ""
    return f"{number(leaves)} leaves of {number(smallest)} or more{alike}"


def fit_meaning(lines: Sequence[Diagnostic], target: str) -> str:
    """Return what the leaves of a variable's tree, or the statistics of its sampler, mean for the values drawn from it.

    Empty for other models.
    """
    own = [line for line in lines if line.target == target]
    whole = {line.name: line.value for line in own if line.parameter in ("", target, ALL_PARAMETERS)}
    if whole.get("pareto_k") is not None:
        size = number(whole.get("effective_sample_size"))
        return (
            f"The draws have weights and count as {size} independent ones; a Pareto k of at most {LARGEST_K} means that "
            "the weights can be trusted."
        )
    if any(line.name == "r_hat" for line in own):
        return (
            f"Chains agree where R-hat is at most {LARGEST_R_HAT}; they have enough draws where each effective sample "
            f"size (ESS) is at least {number(SMALLEST_SIZE)}."
        )
    leaves, smallest, uniform = (whole.get(name) for name in ("leaves", "smallest_leaf", "leaves_of_one_value"))
    if leaves == 1:
        return f"The values of {target} are drawn as if nothing else mattered: they follow no other variable."
    if leaves is None or smallest is None:
        return ""
    said = f"The tree parts the records into {number(leaves)} groups; a value is drawn within a record's own group."
    alike = round(leaves * (uniform or 0.0))
    return said + (f" In {count_noun(alike, 'group')} all records have one value." if alike else "")


def _row_fits(diagnostics: Sequence[Diagnostic]) -> dict[str, str]:
    """Return what is known of the fits by variable, as far as it has room in a line of the table."""
    own: dict[str, list[Diagnostic]] = {}
    for line in diagnostics:
        own.setdefault(line.target, []).append(line)
    texts = {target: dict(fit_facts(lines)).get(target, "") for target, lines in own.items()}
    return {target: text for target, text in texts.items() if text and len(text) <= MOST_FIT_TEXT}


def missing_check_texts(lines: Sequence[ConvergenceLine]) -> list[str]:
    """Return why models have no convergence check, each reason once: ``x, z: a tree is grown once, not sampled``."""
    targets: dict[str, list[str]] = {}
    for line in lines:
        if line.missing_reason:
            targets.setdefault(line.missing_reason, []).append(line.convergence.target)
    checks = {why: NO_TRACE if why == EARLIER_VERSION else NO_CHECK for why in targets}
    return [f"{checks[why]} for {join_names(own)}: {why}" for why, own in targets.items()]


def _concerns_by_target(diagnostics: Sequence[Diagnostic], flagged: Collection[str]) -> dict[str, DisplayCell]:
    """Return what is to be minded by variable, the worst first; a rule whose limit a parameter exceeds is said there."""
    broken = dict.fromkeys(one.target for one in diagnostics if one.passed is False and one.target not in flagged)
    leaves = dict.fromkeys(one_leaf_targets(diagnostics), ONE_LEAF)
    return {**dict.fromkeys(broken, RULE_BROKEN), **{key: leaf for key, leaf in leaves.items() if key not in broken}}


def convergence_lines(
    lines: Sequence[Diagnostic], whys: Mapping[str, str], shapes: SparklineValues
) -> list[ConvergenceLine]:
    """Return the lines of all models: what the answer names first, the worst before the others, then models without a
    sampler.
    """
    sampled, fits = convergence_by_parameter(lines), _row_fits(lines)
    known = {line.target for line in sampled}
    worst = sort_worst_first([line for line in sampled if line.exceeded_limits])
    concerns = _concerns_by_target(lines, {line.target for line in worst})
    free = [ParameterConvergence(target, "") for target in whys if target not in known]
    wholes = {line.target: line for line in sampled if line.parameter == ALL_PARAMETERS and line not in worst}
    # A model without a sampler has one line, any other the line of its whole.
    minded = {
        target: one for target, one in ({line.target: line for line in free} | wholes).items() if target in concerns
    }
    first = [*worst, *(minded[target] for target in concerns if target in minded)]
    return [
        ConvergenceLine(
            line,
            whys[line.target] if line in free else "",
            shapes.get((line.target, line.parameter), ()),
            concern=concerns.get(line.target) if line in minded.values() else None,
            fit_text=fits.get(line.target, "") if line in free else "",
        )
        for line in [*first, *(line for line in (*sampled, *free) if line not in first)]
    ]


MOST_PASSES = 8
"""Parameters of a model within their limits above which the line of the whole model stands for them."""


def fold_passed_parameters(lines: Sequence[ConvergenceLine]) -> list[ConvergenceLine]:
    """Return the lines with those of many parameters of a model that are within their limits folded into the model's."""
    passed: dict[str, list[ConvergenceLine]] = {}
    for line in lines:
        if not (line.is_flagged or line.missing_reason or line.convergence.parameter == ALL_PARAMETERS):
            passed.setdefault(line.convergence.target, []).append(line)
    folded = {target: found for target, found in passed.items() if len(found) > MOST_PASSES}
    kept = []
    for line in lines:
        found = folded.get(line.convergence.target, [])
        if found and line.convergence.parameter == ALL_PARAMETERS:
            kept.append(replace(line, n_folded=len(found)))
        elif line not in found:
            kept.append(line)
    return kept


def _parameter_text(line: ConvergenceLine) -> str:
    """Return the parameter of a line, those for which it stands, what is known of a fit without a sampler, or why it
    has no convergence check.
    """
    if line.n_folded:
        return f"{sign_for('folded')} {ALL_PARAMETERS} ({line.n_folded})"
    return line.convergence.parameter or line.fit_text or line.missing_reason


def convergence_cells(line: ConvergenceLine) -> dict[str, DisplayCell | str]:
    """Return the cells of a line by column."""
    of = line.convergence
    return {
        "target": of.target,
        "parameter": _parameter_text(line),
        "r_hat": _rounded_text(of.r_hat, 3),
        "bulk": _rounded_text(of.bulk, 0),
        "tail": _rounded_text(of.tail, 0),
        "sampler": _sampler_text(of),
        "verdict": _verdict_cell(line),
    }


def convergence_table(diagnostics: Sequence[Diagnostic]) -> DisplayTable | None:
    """Return the table of convergence statistics; None where no model has a sampler."""
    lines = [tuple(convergence_cells(ConvergenceLine(line)).values()) for line in convergence_by_parameter(diagnostics)]
    return DisplayTable(PARAMETER_COLUMNS, lines, CONVERGENCE_CAPTION) if lines else None


def _rounded_text(value: float | None, digits: int) -> str:
    """Return a number with a fixed number of decimals; empty for None."""
    return "" if value is None else f"{value:.{digits}f}"


def _sampler_text(line: ParameterConvergence) -> str:
    """Return the acceptance rate, or the Pareto k, of a whole model."""
    if line.acceptance is not None:
        return f"accept {line.acceptance:.2f}"
    return "" if line.pareto_k is None else f"Pareto k {line.pareto_k:.2f}"


def _verdict_cell(line: ConvergenceLine) -> DisplayCell | str:
    """Return the first exceeded limit and how many more there are, or that all limits are kept."""
    if line.concern is not None and not line.is_flagged:
        return line.concern
    if line.missing_reason:
        return NO_TRACE if line.missing_reason == EARLIER_VERSION else NO_CHECK
    flags = line.convergence.exceeded_limits
    if flags:
        return DisplayCell(flags[0] + (f" +{len(flags) - 1}" if len(flags) > 1 else ""), "fail", ", ".join(flags))
    return DisplayCell(WITHIN, "pass") if line.convergence.is_judged or line.n_folded else ""


def convergence_text(line: ParameterConvergence) -> str:
    """Return all statistics of a parameter in a line: ``R-hat 1.003 · bulk ESS 812 · tail ESS 790 · ✓ within limits``."""
    sizes = "ESS of the weights" if line.parameter == ALL_PARAMETERS else "bulk ESS"
    numbers = (
        ("accepted", line.acceptance, ".0%"),
        ("Pareto k", line.pareto_k, ".2f"),
        ("R-hat", line.r_hat, ".4f"),
        (sizes, line.bulk, ",.0f"),
        ("tail ESS", line.tail, ",.0f"),
    )
    words = [f"{name} {value:{form}}" for name, value, form in numbers if value is not None]
    return " · ".join([*words, *_judgement_texts(line)])


def _judgement_texts(line: ParameterConvergence) -> Sequence[str]:
    """Return each exceeded limit with its sign, or that all are kept."""
    if line.exceeded_limits:
        return [f"{sign_for('fail')} {flag}" for flag in line.exceeded_limits]
    return [f"{sign_for('pass')} {WITHIN}"] if line.is_judged else []


def parameter_or_model_text(line: ParameterConvergence | None, whole: ParameterConvergence | None) -> str:
    """Return the statistics of a parameter, or of its whole model where the parameter has none."""
    own = "" if line is None else convergence_text(line)
    return own or ("" if whole is None else f"the whole model: {convergence_text(whole)}")


def convergence_summary(lines: Sequence[ConvergenceLine], whys: Mapping[str, str]) -> str:
    """Return the number of parameters and of flagged ones: ``17 parameters of 1 model: ✓ all within limits``."""
    judged = [one for one in lines if one.convergence.is_judged and not one.missing_reason]
    flagged = sum(one.is_flagged for one in judged)
    parts = []
    if judged:
        models = len({one.convergence.target for one in judged})
        state = f"{sign_for('fail')} {flagged} outside a limit" if flagged else f"{sign_for('pass')} all within limits"
        known = len(
            {
                one.parameter_key
                for one in lines
                if not one.missing_reason and one.convergence.parameter != ALL_PARAMETERS
            }
        )
        parts.append(f"{count_noun(known, 'parameter')} of {count_noun(models, 'model')}: {state}")
    if free := [target for target, why in whys.items() if why != EARLIER_VERSION]:
        parts.append(f"no convergence check in {', '.join(free)}")
    if EARLIER_VERSION in whys.values():
        parts.append("no traces of an earlier version")
    return " · ".join(parts)


QUESTION = "Do the models fit well enough?"
RUN_AGAIN = "run the recipe again."
"""What to do where an earlier version fitted the models."""
COLUMN_MEANINGS: Mapping[str, str] = {
    "r_hat": f"R-hat: at most {LARGEST_R_HAT} where chains agree",
    "bulk": "bulk: independent draws that they count as (ESS)",
    "tail": "tail: that number for extreme values",
    "trace": "trace: the draws in their order",
    "density": "density: how the draws are spread",
}
"""What the columns of the table of parameters have, by column or by title of their picture."""


def fit_answer(
    lines: Sequence[ConvergenceLine], diagnostics: Sequence[Diagnostic], whys: Mapping[str, str]
) -> tuple[str, str, str]:
    """Return whether the models of a run fit well enough, the answer in words, and what to do about it.

    The first is ``fail`` where a limit or a rule is broken, ``warn`` where nothing is known or a tree has one leaf, and
    empty where no check fails. A check that passes says nothing of how near drawn values are to the data: measures of utility do.
    """
    flagged = [one for one in lines if one.is_flagged]
    if flagged:
        worst = sort_worst_first([one.convergence for one in flagged])[0]
        said = f"{worst.target} {worst.parameter}: {', '.join(worst.exceeded_limits)}"
        more = f"; {len(flagged) - 1} more" if len(flagged) > 1 else ""
        is_of_weights = worst.pareto_k is not None and worst.pareto_k > LARGEST_K
        mend = "draw by another method or from fewer predictors" if is_of_weights else "run longer"
        return "fail", f"Not sure. {said}{more}.", f"{mend}: the draws of {worst.target} may be off their model."
    if broken := broken_rule_lines(diagnostics):
        more = f"; {len(broken) - 1} more" if len(broken) > 1 else ""
        return "fail", f"Not sure. {broken[0]}{more}.", "give this model fewer predictors, or another method."
    judged = list(dict.fromkeys(one.convergence.target for one in lines if one.convergence.is_judged))
    if any(why == EARLIER_VERSION and target not in judged for target, why in whys.items()) or not lines:
        return "warn", "Not known: an earlier version fitted them.", RUN_AGAIN
    judged = list(dict.fromkeys(one.convergence.target for one in lines if one.convergence.is_judged))
    if bare := one_leaf_targets(diagnostics):
        trees, whose = ("The tree of {} has", "its") if len(bare) == 1 else ("The trees of {} have", "their")
        said = f"Partly. {trees.format(', '.join(bare))} one leaf: {whose} values follow nothing else."
        do = f"smaller leaves (minbucket of {join_names(bare)}) if values should follow other variables."
        return "warn", said, do
    settled = f"the sampler of {', '.join(judged)} settled" if judged else "no model has a sampler that must settle"
    return "", f"No check fails: {settled}.", "nothing here; the utility in Numbers says how near drawn values are."


def missing_check_text(line: ConvergenceLine) -> str:
    """Return why a model has no convergence check: ``price: no trace kept; an earlier version fitted it ...``."""
    concern = "" if line.concern is None else f"{grid_value(line.concern)} · "
    check = NO_TRACE if line.missing_reason == EARLIER_VERSION else NO_CHECK
    return f"{line.convergence.target}: {concern}{check}; {line.missing_reason}"
