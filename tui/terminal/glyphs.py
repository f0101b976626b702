"""Which characters the terminal can show, and those that plots are drawn with. Known without NumPy, which a first screen need not wait for."""

from __future__ import annotations

import os
import unicodedata
from collections.abc import Mapping, MutableMapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sfumato.engine.errors import BadInput

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Mask = NDArray[np.bool_]


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


@dataclass(frozen=True)
class Glyphs:
    """Characters to draw with: ``table[bits]`` shows a cell of ``down`` by ``across`` dots numbered by ``weights``."""

    name: str
    weights: tuple[tuple[int, ...], ...]
    table: str
    vertical: str
    horizontal: str
    corner: str
    tick_x: str
    tick_y: str
    caret: str
    ellipsis: str

    @property
    def down(self) -> int:
        return len(self.weights)

    @property
    def across(self) -> int:
        return len(self.weights[0])

    @property
    def coarse(self) -> bool:
        """Whether a cell is a single dot, drawn as the mark of its series."""
        return self.down * self.across == 1

    def encode(self, mask: Mask) -> NDArray[np.str_]:
        """The character of each cell: (rows · down, columns · across) dots to (rows, columns) characters."""
        import numpy as np

        return np.array(list(self.table))[self.bits(mask)]

    def bits(self, mask: Mask) -> NDArray[np.intp]:
        """The dots of each cell as a number, (rows, columns)."""
        import numpy as np

        rows, columns = mask.shape[0] // self.down, mask.shape[1] // self.across
        split = mask.reshape(rows, self.down, columns, self.across)
        weights = np.array(self.weights, dtype=np.intp)[:, np.newaxis, :]
        return np.asarray((split * weights).sum(axis=(1, 3)))


_BRAILLE_TABLE = " " + "".join(map(chr, range(0x2801, 0x2900)))
BRAILLE = Glyphs("braille", ((1, 8), (2, 16), (4, 32), (64, 128)), _BRAILLE_TABLE, *"│─└┬┤▲…")
BLOCK = Glyphs("block", ((1, 2), (4, 8)), " ▘▝▀▖▌▞▛▗▚▐▜▄▙▟█", *"│─└┬┤▲…")
ASCII = Glyphs("ascii", ((1,),), " *", *"|-+++^~")
GLYPHS = {glyphs.name: glyphs for glyphs in (BRAILLE, BLOCK, ASCII)}


def glyphs_named(name: str | None = None) -> Glyphs:
    """The set called ``name``, else the one in the environment's SFUMATO_GLYPHS, else braille.

    Raises ValueError for a name other than braille, block, ascii.
    """
    wanted = name or os.environ.get("SFUMATO_GLYPHS") or BRAILLE.name
    if wanted not in GLYPHS:
        raise ValueError(f"glyphs must be one of {', '.join(GLYPHS)}, not {wanted!r}")
    return GLYPHS[wanted]
