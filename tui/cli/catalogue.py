"""Output of ``sfumato methods`` and ``sfumato recipes``."""

from __future__ import annotations

import re
import textwrap
import typing
from importlib.metadata import entry_points, version
from typing import TYPE_CHECKING, Any

from sfumato.engine.errors import BadInput
from sfumato.engine.methods.protocols import GROUP, method_keys
from sfumato.workspace.manual import page_sections
from sfumato.workspace.reporting.tables import table_from_titles

from .options import table_text, terminal_width

if TYPE_CHECKING:
    from sfumato.engine.methods.registry import Method
    from sfumato.engine.methods.spec import ParamInfo

INTERVALS_REMARK = (
    "Intervals stay inside the range: they are computed on the logarithm of the distance from one end, or on the log odds between "
    "two ends. A mean or a quantile has the bounds of its variable."
)


def method_list_text() -> str:
    """Return a list of all methods with their titles, and of those that cannot be used."""
    titles = {one.name: one for one in page_sections("methods")}
    keys = method_keys()
    # Loading all methods is slow: the manual has the titles of our own.
    if not entry_points(group=GROUP) and all(key in titles for key in keys):
        return _method_table_text(
            [[key, titles[key].heading.partition(": ")[2] + _extra_in_section(titles[key].body)] for key in keys]
        )
    from sfumato.engine.methods.registry import registry, rejected_plugins

    found = _method_table_text([[key, one.title + _extra_and_package_text(one)] for key, one in registry().items()])
    lines = [[one.key, one.distribution, one.reason] for one in rejected_plugins()]
    return found + (
        f"\n\nleft out\n{table_text(table_from_titles(('method', 'package', 'why'), lines))}" if lines else ""
    )


def _method_table_text(lines: list[list[str]]) -> str:
    return table_text(table_from_titles(("method", "what it does"), lines))


def _extra_in_section(body: str) -> str:
    """Return the extra that a section of the manual names, for display; empty for none."""
    named = re.search(r"^Needs the extra `\[(\w+)\]`", body, re.MULTILINE)
    return f" (extra [{named[1]}])" if named else ""


def _extra_and_package_text(found: Method) -> str:
    """Return the extra and the foreign package of a method, for display."""
    from sfumato.engine.methods.registry import OWN

    extra = f" (extra [{found.extra.name}])" if found.extra else ""
    return extra if found.package == OWN else f"{extra} (from {found.package})"


def method_page(key: str) -> str:
    """Return a page on one method: source, measures, parameters with limits and defaults, and meaning of values."""
    from sfumato.engine.methods.registry import OWN
    from sfumato.workspace.reporting.survey import weighted_form_text

    found = _find_method(key)
    parts = [f"{found.key}: {found.title}", f"source: {found.source}"]
    if found.package != OWN:
        parts.append(f"from the package {found.package} {version(found.package)}, which runs as code of its own")
        parts.append(_package_hash_text(found))
    if found.extra:
        state = "is installed" if found.extra.is_installed else f"is not installed here: {found.extra.install_command}"
        parts.append(f"needs the extra [{found.extra.name}], which {state}")
    if found.result_outputs:
        parts.append(
            "measures\n" + table_text(table_from_titles(("key", "meaning", "direction", "range"), output_cells(found)))
        )
        parts.append(INTERVALS_REMARK)
    if said := weighted_form_text(found):
        parts.append(said)
    lines = [
        [info.name, default_text(info), "; ".join(filter(None, (info.param.help, choices_text(info))))]
        for info in found.spec.params()
    ]
    if lines:
        parts.append("parameters\n" + table_text(table_from_titles(("name", "default", "what it is"), lines)))
    parts.extend(f"{name}\n{_wrap_text(meaning)}" for name, meaning in parameter_meanings(found))
    return "\n\n".join(parts)


def _package_hash_text(found: Method) -> str:
    """Return the lines of a policy that let the privacy account of a method's package count; else why there are none."""
    from sfumato.workspace.policy.installed_packages import installed_package
    from sfumato.workspace.policy.packages import package_lines

    try:
        lines = package_lines(installed_package(found.package))
    except BadInput as error:
        return f"no hash of its files: {error}"
    hint = (
        "hash of its installed files, as the policy of the office or your own names it where its privacy accounts count"
    )
    return _wrap_text(hint) + "\n" + textwrap.indent("\n".join(lines), "    ")


def methods_object() -> dict[str, Any]:
    """Return every method as a JSON object."""
    from sfumato.engine.methods.registry import registry

    found = registry().values()
    return {"methods": [{"key": one.key, "title": one.title, "package": one.package} for one in found]}


def method_object(key: str) -> dict[str, Any]:
    """Return one method with its measures and parameters as a JSON object."""
    found = _find_method(key)
    return {
        "key": found.key,
        "title": found.title,
        "package": found.package,
        **_package_hash(found),
        "source": found.source,
        "measures": [
            dict(zip(("key", "meaning", "direction", "range"), cells, strict=True)) for cells in output_cells(found)
        ],
        "parameters": [
            {"name": one.name, "default": default_text(one), "what": one.param.help, "choices": choices_text(one)}
            for one in found.spec.params()
        ],
    }


def _package_hash(found: Method) -> dict[str, str]:
    """Return version and hash of a method's package; empty for a method of ours, or where there is no hash."""
    from sfumato.engine.methods.registry import OWN
    from sfumato.workspace.policy.installed_packages import installed_package

    if found.package == OWN:
        return {}
    try:
        present = installed_package(found.package)
    except BadInput:
        return {}
    return {"package_version": present.version, "package_sha256": present.sha256}


def _find_method(key: str) -> Method:
    """Return the method with this key, or the only one with this name. Raises BadInput."""
    from sfumato.engine.methods.registry import find_method

    near = [name for name in method_keys() if name.partition(".")[2] == key]
    return find_method(near[0] if len(near) == 1 else key, "methods")


def _wrap_text(text: str, indent: int = 0) -> str:
    """Wrap text to lines that fit the terminal with an ``indent``."""
    return textwrap.fill(text, min(96, (terminal_width() or 100) - indent))


def parameter_meanings(found: Method) -> list[tuple[str, str]]:
    """Return the parameters whose type explains its values, each with the explanation."""
    types = [(info.name, kind) for info in found.spec.params() for kind in typing.get_args(info.type)]
    return [(name, kind.meaning) for name, kind in types if hasattr(kind, "meaning")]


def output_cells(found: Method) -> list[list[str]]:
    """Return a line for each output of a method: key, name with meaning, direction, range."""
    from sfumato.workspace.reporting.words import DIRECTION_TEXTS

    return [
        [
            f"{found.key}.{o.name}",
            f"{o.label.name}: {o.meaning}" if o.label.name else o.meaning,
            DIRECTION_TEXTS[o.goal],
            o.range_words,
        ]
        for o in found.result_outputs
    ]


def default_text(info: ParamInfo) -> str:
    """Return the default of a parameter, or ``required``; empty where the default is empty."""
    from sfumato.engine.methods.spec import to_plain_value

    if info.is_required:
        return "required"
    value = to_plain_value(info.default)
    return "" if value in (None, [], {}, "") else str(value)


def choices_text(info: ParamInfo) -> str:
    """Return the choices or the limits of a parameter, in words."""
    return f"one of {', '.join(info.choices)}" if info.choices else info.param.limits_text


def recipe_list_text() -> str:
    """Return a list of the shipped recipes with their descriptions."""
    from sfumato.workspace.recipes import shipped_recipes

    parts = []
    for recipe in shipped_recipes():
        text = str(recipe.table.get("description", "")).strip()
        parts.append(f"{recipe.name}: {recipe.table['title']}\n{textwrap.indent(_wrap_text(text, 4), '    ')}")
    return "\n\n".join([*parts, "sfumato recipes NAME prints one; sfumato run NAME carries it out."])
