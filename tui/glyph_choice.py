"""Which characters the terminal can show: settled once at the start, and ASCII in place of all others where it must be."""

from __future__ import annotations

import os
import unicodedata
from collections.abc import Mapping, MutableMapping

from sfumato.engine.errors import BadInput

CHOICE = "SFUMATO_GLYPHS"
SETS = ("braille", "block", "ascii")
_UNKNOWN = "?"
_ALIKE: Mapping[str, str] = {
    **dict.fromkeys("─━╌╍┄┅┈┉═╴╶╸╺", "-"),
    **dict.fromkeys("│┃║▌▐▎▊▍▏▕╎┆┊", "|"),
    **dict.fromkeys("┌┐└┘├┤┬┴┼╭╮╰╯┏┓┗┛┣┫┳┻╋", "+"),
    **dict.fromkeys("█▇▆▅▀", "#"),
    **dict.fromkeys("▄▃▂▁", "_"),
    **dict.fromkeys("✓", "+"),
    **dict.fromkeys("✗×", "x"),
    **dict.fromkeys("›→≥▶▸", ">"),
    **dict.fromkeys("‹←≤◀◂", "<"),
    **dict.fromkeys("●•∙■◆", "*"),
    **dict.fromkeys("○◦□◇", "o"),
    **dict.fromkeys("–—‑−", "-"),
    **dict.fromkeys("“”„«»", '"'),
    **dict.fromkeys("‘’‚", "'"),
    **dict.fromkeys("·⋅", "."),
    **dict.fromkeys("↑▲△", "^"),
    **dict.fromkeys("↓▼▽", "v"),
    **dict.fromkeys("±…≈", "~"),
    "‖": "=",
    "ß": "s",
    "\N{NO-BREAK SPACE}": " ",
}


def ascii_sign(character: str) -> str:
    """One ASCII character that looks like ``character``; its base letter; else a question mark."""
    if character.isascii():
        return character
    if character in _ALIKE:
        return _ALIKE[character]
    if 0x2800 <= ord(character) <= 0x28FF or 0x2580 <= ord(character) <= 0x259F:
        return "*"
    base = unicodedata.normalize("NFKD", character)[0]
    return base if base.isascii() else _UNKNOWN


def settle_signs(environment: MutableMapping[str, str] = os.environ) -> None:
    """Have SFUMATO_GLYPHS say ascii where nothing is chosen and locale or terminal have no others. Raises BadInput."""
    chosen = environment.get(CHOICE)
    if chosen and chosen not in SETS:
        raise BadInput(CHOICE, f'must be one of {", ".join(SETS)}, not "{chosen}"')
    if not chosen and (_ascii_locale(environment) or environment.get("TERM") == "linux"):
        environment[CHOICE] = "ascii"


def _ascii_locale(environment: Mapping[str, str]) -> bool:
    """Whether the locale is one without UTF-8. Where nothing is set, nothing is known."""
    locale = next((environment[name] for name in ("LC_ALL", "LC_CTYPE", "LANG") if environment.get(name)), "")
    codes = locale.partition(".")[2].partition("@")[0].lower().replace("-", "")
    return locale in ("C", "POSIX") or codes not in ("", "utf8")
