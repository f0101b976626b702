"""Table of the acts of the app and their keys: a key has the same meaning everywhere.

Screens and widgets bind acts of this table by ``bind_act`` and have no keys of their own. An act without a key is run
from ``?`` of its place and from the palette; users can give it a key in ``keys.toml``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from textual.binding import Binding

KEYLESS = "act:"
"""Prefix of the key in the binding of an act without a key; no terminal sends such a key."""
TYPED = ".typed"
"""Suffix of the name of a binding where text is typed: it has only those of its act's keys that are not characters."""
CHARACTERS = frozenset({"asterisk", "slash", "plus", "minus", "colon", "at", "space", "comma", "full_stop"})


@dataclass(frozen=True)
class KeyAct:
    """Act of the app.

    name: name of the act
    keys: its keys
    description: its one meaning
    group: heading under which the help lists it
    """

    name: str
    keys: tuple[str, ...]
    description: str
    group: str


def _acts_of_group(group: str, *lines: tuple[str, str, str]) -> tuple[KeyAct, ...]:
    """Return the acts of a group from (name, keys separated by blanks, description)."""
    return tuple(KeyAct(name, tuple(keys.split()), does, group) for name, keys, does in lines)


PLACES, MOVE, OPEN, ROWS, CHANGE, RUN, LOOK, TAKE, HELP = (
    "Places", "Move", "Open and leave", "Rows", "Change", "Run", "Look", "Take away", "Help",
)  # fmt: skip
ACTS: tuple[KeyAct, ...] = (
    *_acts_of_group(
        PLACES,
        ("data", "1", "Data"),
        ("plan", "2", "Plan"),
        ("runs", "3", "Runs"),
        ("findings", "4", "Findings"),
        ("release", "5", "Release"),
        ("projects", "p", "Projects"),
        ("workspace", "", "Open or create a workspace"),
        ("verdicts", "", "Findings: verdicts"),
        ("results", "", "Findings: all numbers"),
        ("sweep", "", "Findings: studies"),
        ("records", "", "Findings: records"),
        ("diagnostics", "", "Findings: diagnostics"),
        ("tables", "", "Findings: tables"),
        ("map", "", "Runs: map"),
        ("quality", "", "Findings: data quality"),
        ("planes", "", "Findings: studies with curves"),
        ("limits", "", "Findings: studies with limits"),
        ("beliefs", "", "Findings: strongest intruder"),
        ("pairs", "", "Findings: pairs that are kept"),
        ("rows", "", "Data: rows"),
        ("distributions", "", "Data: distributions"),
    ),
    *_acts_of_group(
        MOVE,
        ("up", "up k", "Up"),
        ("down", "down j", "Down"),
        ("left", "left h", "Left"),
        ("right", "right l", "Right"),
        ("page_up", "pageup ctrl+u", "Page up"),
        ("page_down", "pagedown ctrl+d", "Page down"),
        ("first", "home g", "First"),
        ("last", "end G", "Last"),
        ("far_left", "", "Far left"),
        ("far_right", "", "Far right"),
        ("next_tab", "right_square_bracket", "Next tab or step"),
        ("previous_tab", "left_square_bracket", "Previous tab or step"),
        ("next_pane", "tab", "Next pane or field"),
        ("jump", "ctrl+o", "Jump to a field by its letter"),
    ),
    *_acts_of_group(
        OPEN,
        ("open", "enter", "Open, or accept"),
        ("back", "escape", "Leave a dialog, a filter or a text"),
        ("close", "q", "Close; at the top, quit"),
        ("save", "ctrl+s", "Save, or accept"),
    ),
    *_acts_of_group(
        ROWS,
        ("mark", "space", "Mark"),
        ("mark_all", "asterisk", "Mark all, or none"),
        ("filter", "slash", "Filter or search"),
        ("sort", "s", "Sort"),
        ("only", "f", "Only some, such as what failed; or all"),
    ),
    *_acts_of_group(
        CHANGE,
        ("add", "a", "Add"),
        ("new", "n", "New"),
        ("draft", "D", "Draft a plan"),
        ("role", "r", "Set the role"),
        ("exclude", "x", "Include or exclude"),
        ("duplicate", "d", "Duplicate"),
        ("delete", "X delete", "Delete"),
        ("undo", "u", "Undo"),
        ("redo", "ctrl+r", "Redo"),
        ("earlier", "less_than_sign", "Move the step up"),
        ("later", "greater_than_sign", "Move the step down"),
        ("list", "f4", "Choose from a list"),
        ("editor", "E", "Edit the text in your editor"),
        ("quasi_identifier", "", "Role: quasi-identifier"),
        ("sensitive", "", "Role: sensitive"),
        ("identifier", "", "Role: identifier"),
        ("weight", "", "Role: survey weight"),
        ("other", "", "Role: other"),
        ("kind", "", "Kind of the variable"),
        ("codes", "", "Missing codes"),
        ("hierarchy", "", "Hierarchy"),
        ("constraints", "", "Constraints"),
        ("rename", "", "Name and note"),
        ("widths", "", "Widths of the intervals"),
        ("propose", "", "Propose a hierarchy"),
        ("join", "", "Join the last two marked"),
        ("reset_limits", "", "Reset the limits"),
        ("request", "", "Request approval"),
        ("answer", "", "Look for the answer"),
        ("others", "", "State that other people were asked"),
        ("format", "", "Format of the datasets"),
    ),
    *_acts_of_group(
        RUN,
        ("run", "R", "Run"),
        ("search", "S", "Search for a sample or plan"),
        ("interrupt", "i", "Interrupt, or resume"),
        ("compare", "c", "Compare the marked"),
        ("try", "T", "Try other limits"),
        ("import", "I", "Import a file"),
        ("demo", "N", "Open the demo"),
        ("evaluate", "", "Evaluate files of another tool"),
        ("check_file", "", "Check one anonymised file: k, l, t"),
        ("weigh", "", "Less influence for records at risk"),
        ("log", "", "Log of the tasks"),
        ("computing", "", "Where runs are computed"),
    ),
    *_acts_of_group(
        LOOK,
        ("ledger", "", "Privacy ledger of these people"),
        ("previous", "comma", "Previous dataset, study, table, variable, person or page"),
        ("next", "full_stop", "Next dataset, study, table, variable, person or page"),
        ("previous_other", "left_curly_bracket", "Previous second variable, chain, hit or cell"),
        ("next_other", "right_curly_bracket", "Next second variable, chain, hit or cell"),
        ("picture", "m", "Next picture, measure or view"),
        ("previous_picture", "", "Previous picture, measure or view"),
        ("table", "t", "Table or plot, list or text"),
        ("datasets", "b", "Datasets: one, or all"),
        ("log_scale", "o", "Logarithmic scale"),
        ("zoom_in", "plus equals_sign", "Larger: zoom in, or a wider range"),
        ("zoom_out", "minus", "Smaller: zoom out, or a narrower range"),
        ("zoom_all", "0", "Whole range"),
        ("reveal", "v", "Reveal or hide confidential values"),
        ("zoom_in_up", "", "Zoom in up and down"),
        ("zoom_out_up", "", "Zoom out up and down"),
        ("previous_datasets", "", "Previous datasets"),
        ("log_scale_other", "", "Logarithmic scale of the second, or of shares"),
        ("shades", "", "Logarithmic shades"),
        ("arrange", "", "Arrange the pictures"),
        ("upward", "", "Choose the y axis"),
        ("behind", "", "What is behind the x value"),
        ("behind_up", "", "What is behind the y value"),
        ("confidential", "", "Confidential data on or off"),
        ("any_data", "", "Compare runs of different data"),
        ("statistics", "", "Statistics of the models"),
        ("trace", "", "Trace"),
        ("ranks", "", "Ranks"),
        ("density", "", "Density"),
        ("autocorrelation", "", "Autocorrelation"),
        ("weights", "", "Weights"),
        ("suggested", "", "Suggested threshold"),
        ("profile", "", "Keys to the plot, or back"),
        ("theme", "", "Theme"),
    ),
    *_acts_of_group(
        TAKE,
        ("export", "e", "Export"),
        ("copy", "y", "Copy"),
        ("public", "Y ctrl+y", "Copy or export the public part"),
        ("report", "P", "Report"),
        ("release_run", "w", "Release the run"),
    ),
    *_acts_of_group(
        HELP,
        ("keys", "question_mark", "Keys of this place"),
        ("manual", "f1", "Manual"),
        ("command", "colon", "Command or place by name"),
        ("palette", "ctrl+p", "Palette"),
        ("commands", "at", "Equivalent commands"),
        ("redraw", "ctrl+l", "Redraw"),
        ("audit", "", "Audit log"),
        ("doctor", "", "Doctor"),
    ),
)  # fmt: skip
BY_NAME: Mapping[str, KeyAct] = {act.name: act for act in ACTS}
BY_KEY: Mapping[str, KeyAct] = {key: act for act in ACTS for key in act.keys}


def bind_act(
    name: str,
    action: str,
    label: str = "",
    *,
    show: bool = False,
    priority: bool = False,
    typed: bool = False,
    only: str = "",
) -> Binding:
    """Return the binding of an act to an action, with ``label`` for what it does here.

    typed: whether text is typed here, so that only keys that are not characters count
    only: the one key of the act to bind, if the others have another use here

    Raises KeyError for an unknown act.
    """
    act = BY_NAME[name]
    keys = [key for key in act.keys if not only or key == only]
    if typed:
        keys = [key for key in keys if not is_character_key(key)]
    # Own keys of the user replace a binding by its name; a key of theirs must not end up where text is typed.
    ident = name if not (typed or only) else f"{name}{TYPED}"
    return Binding(
        ",".join(keys) or f"{KEYLESS}{name}", action, label or act.description, show=show, priority=priority, id=ident
    )


def is_character_key(key: str) -> bool:
    """Return whether a key is a character, which a field takes as text."""
    return len(key) == 1 or key.endswith(("_mark", "_sign", "_bracket")) or key in CHARACTERS


def find_act(binding: Binding) -> KeyAct | None:
    """Return the act of a binding; None for one of Textual's own."""
    return BY_NAME.get((binding.id or "").removesuffix(TYPED))


def label_of_binding(node: object, binding: Binding) -> str:
    """Return what a binding of ``node`` does, in the words of the footer.

    What enter does may depend on the row under the cursor: the ``open_word`` of the node says it, empty where it does
    nothing.
    """
    word = getattr(node, "open_word", None) if find_act(binding) is BY_NAME["open"] else None
    return binding.description if word is None else str(word)
