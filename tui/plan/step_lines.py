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
OF_ATTACKS = ("people", "guesses")
"""Parameters that say of which people and guesses a number of an attack is."""
HEADS = {"threshold": "limit"}
"""Head of the second column of a section, where it is not that of a measure."""
MEASURE_HEAD = "variables, settings"
MOST_NAME = 0.62
"""Largest share of a line that the names of steps take."""


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
    # It loads methods, which takes the app longer than to start.
    from sfumato.engine.methods.labels import method_and_output
    from sfumato.workspace.reporting.plan_steps import HEADLINE_KEYS, exact_value_text, settings_phrases

    phrases = tuple(filter(None, words.settings.split("; ")))
    if section == "threshold":
        limit = dict(words.facts).get("limit", "")
        # Of which people a number is by default is no setting of its limit.
        usual = dict(method_and_output(str(step.get("value")))[1].row_defaults)
        left_out = settings_phrases({key: value for key, value in usual.items() if key in OF_ATTACKS})
        told = tuple(one for one in phrases[1:] if one not in left_out)
        return StepTexts(words.name, limit, told, is_limit=True) if limit else StepTexts(words.name, "", phrases)
    about = next((name for name in VARIABLES if exact_value_text(step.get(name))), "")
    given = {name: value for name, value in step.items() if name not in (*HEADLINE_KEYS, "name", about)}
    return StepTexts(words.name, exact_value_text(step.get(about)), tuple(settings_phrases(given)))


def width_of_names(steps: Sequence[StepTexts], width: int) -> int:
    """Return the cells of the names of steps in a line of ``width`` cells, behind which their variables begin."""
    longest = max((cell_len(one.name) for one in steps if not one.is_bare), default=0)
    return min(longest, round(width * MOST_NAME))


def step_lines(
    section: str, steps: Sequence[StepTexts], width: int, name_width: int | None = None
) -> tuple[str, list[str]]:
    """Return the head of the column behind the names, and a line of at most ``width`` cells for each step.

    What has no room is shortened by whole words, and counted; the step at the cursor is told whole elsewhere. The names
    have ``name_width`` cells, so that columns of several sections begin at one place.
    """
    filled = [one for one in steps if not one.is_bare]
    name = width_of_names(steps, width) if name_width is None else name_width
    room = width - name - len(GAP)
    if any(one.is_limit and cell_len("; ".join([one.about, *one.settings])) > room for one in filled):
        steps = [replace(one, about=brief_limit_text(one.about)) if one.is_limit else one for one in steps]
    lines = [
        cut_words(one.name, width)
        if one.is_bare
        else GAP.join([fit_text(cut_words(one.name, name), name), _about_text(one, room)]).rstrip()
        for one in steps
    ]
    return f"{' ' * name}{GAP}{HEADS.get(section, MEASURE_HEAD)}" if filled else "", lines


def _about_text(step: StepTexts, room: int) -> str:
    """Return what a step is about and its settings in ``room`` cells; of settings without room how many there are."""
    about = cut_words(step.about, room) if step.is_limit else fit_variables(step.about, room)
    least = 0 if about else 1
    for most in range(len(step.settings), least - 1, -1):
        left = len(step.settings) - most
        parts = [*([about] if about else []), *step.settings[:most], *([count_noun(left, "setting")] if left else [])]
        if cell_len(text := "; ".join(parts)) <= room:
            return text
    return about or fit_phrases(step.settings, room)


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
