"""Lines of the steps that draw nothing, in columns: what is measured or limited, of which variables, with what settings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from rich.cells import cell_len

from sfumato.engine.wording import count_noun, join_first_names
from sfumato.workspace.reporting.words import brief_limit_text

from ..terminal.text import cut_words, fit_text

if TYPE_CHECKING:
    from sfumato.workspace.reporting.plan_steps import StepDescription

GAP = "  "
VARIABLES = ("target", "variable", "variables", "synthesised", "sensitive", "models", "by", "known", "keys")
"""Settings that name what a step is about, the most telling first."""
HEADS = {"threshold": ("limit", "of")}
"""Heads of the second and third column of a section, where they are not those of a measure."""
MEASURE_HEADS = ("variables", "settings")
MOST_NAME = 0.62
"""Largest share of a line that the names of steps take."""
LEAST_SETTINGS = 15
"""Cells of the settings that the variables leave them."""


@dataclass(frozen=True)
class StepTexts:
    """Texts of a step by column.

    name: what is measured or limited
    about: variables that it is about, or the limit
    settings: settings, or what a limit is of, as phrases
    is_limit: whether ``about`` is a limit
    """

    name: str
    about: str = ""
    settings: tuple[str, ...] = ()
    is_limit: bool = False

    @property
    def is_bare(self) -> bool:
        """Return whether a step has nothing but its name, which has the whole line then."""
        return not (self.about or self.settings)


def step_texts(section: str, words: StepDescription, step: Mapping[str, Any]) -> StepTexts:
    """Return the texts of a step that draws nothing."""
    from sfumato.workspace.reporting.plan_steps import HEADLINE_KEYS, exact_value_text, settings_phrases

    phrases = tuple(filter(None, words.settings.split("; ")))
    if section == "threshold":
        limit = dict(words.facts).get("limit", "")
        return StepTexts(words.name, limit, phrases[1:], is_limit=True) if limit else StepTexts(words.name, "", phrases)
    about = next((name for name in VARIABLES if exact_value_text(step.get(name))), "")
    given = {name: value for name, value in step.items() if name not in (*HEADLINE_KEYS, "name", about)}
    return StepTexts(words.name, exact_value_text(step.get(about)), tuple(settings_phrases(given)))


def step_lines(section: str, steps: Sequence[StepTexts], width: int) -> tuple[str, list[str]]:
    """Return the heads of the columns behind the names, and a line of at most ``width`` cells for each step.

    What has no room is shortened by whole words, and counted; the step at the cursor is told whole elsewhere.
    """
    filled = [one for one in steps if not one.is_bare]
    name, about, settings = _column_widths(filled, width)
    if any(one.is_limit for one in filled) and _needs_more(filled, (name, about, settings), width):
        brief = {one: replace(one, about=brief_limit_text(one.about)) for one in filled}
        steps, filled = [brief.get(one, one) for one in steps], list(brief.values())
        name, about, settings = _column_widths(filled, width)
    second, third = HEADS.get(section, MEASURE_HEADS)
    if 0 < about < cell_len(second):
        about, settings = cell_len(second), max(0, settings - cell_len(second) + about)
    lines = []
    for one in steps:
        if one.is_bare:
            lines.append(cut_words(one.name, width))
            continue
        # A cell has the room of an empty one behind it.
        room = about if settings and one.settings else width - name - len(GAP)
        shown = fit_variables(one.about, room) if not one.is_limit else cut_words(one.about, room)
        told = fit_phrases(one.settings, settings)
        lines.append(GAP.join([fit_text(cut_words(one.name, name), name), fit_text(shown, about), told]).rstrip())
        if cell_len(shown) > about and not told:
            lines[-1] = GAP.join([fit_text(cut_words(one.name, name), name), shown])
    heads = GAP.join([" " * name, fit_text(second if about else "", about), third if settings else ""])
    return heads.rstrip(), lines


def _column_widths(steps: Sequence[StepTexts], width: int) -> tuple[int, int, int]:
    """Return the widths of the columns of name, variables and settings in a line of ``width`` cells."""
    name = min(max((cell_len(one.name) for one in steps), default=0), round(width * MOST_NAME))
    about = max((cell_len(one.about) for one in steps), default=0)
    settings = max((cell_len("; ".join(one.settings)) for one in steps), default=0)
    room = width - name - len(GAP)
    if not settings:
        return name, min(about, room), 0
    least = min(settings, LEAST_SETTINGS)
    about = min(about, max(room - len(GAP) - settings, room - len(GAP) - least))
    return name, about, max(0, room - len(GAP) - about)


def _needs_more(steps: Sequence[StepTexts], widths: tuple[int, int, int], width: int) -> bool:
    """Return whether a limit, or what it is of, does not fit into its column."""
    _, about, settings = widths
    return any(cell_len(one.about) > about or cell_len("; ".join(one.settings)) > settings for one in steps)


def fit_variables(names: str, width: int) -> str:
    """Return names in ``width`` cells, with the number of those that are left out."""
    parts = names.split(", ")
    tried = (join_first_names(parts, most) for most in range(len(parts), 0, -1))
    return next((one for one in tried if cell_len(one) <= width), cut_words(names, width))


def fit_phrases(phrases: Sequence[str], width: int) -> str:
    """Return settings in ``width`` cells: whole, the first of them and the names of the others, the names, or how many."""
    if not phrases:
        return ""
    names = [setting_name(one) for one in phrases]
    some = range(len(phrases) - 1, 0, -1)
    told = ["; ".join(phrases), *(f"{'; '.join(phrases[:most])}; also {', '.join(names[most:])}" for most in some)]
    # Of a long setting its first values.
    also = f"; also {', '.join(names[1:])}" if names[1:] else ""
    values = phrases[0].split(", ")
    told += [f"{join_first_names(values, most)}{also}" for most in range(len(values) - 1, 0, -1)]
    told += [join_first_names(names, most) for most in range(len(names), 0, -1)]
    told.append(count_noun(len(phrases), "setting"))
    return next((one for one in told if cell_len(one) <= width), "")


def setting_name(phrase: str) -> str:
    """Return the name of a setting from its phrase: ``records`` of ``records 1000``, ``kept back`` of ``20 % kept back``."""
    said = phrase.lstrip("0123456789., %")
    return said if said != phrase else phrase.removeprefix("a ").partition(" ")[0]
