"""Characters that the terminal can show, and those that plots are drawn with."""

from __future__ import annotations

import os
import unicodedata
from collections.abc import Mapping, MutableMapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from sfumato.engine.errors import BadInput

# NumPy is imported where it is needed, since the first screen need not wait for it.
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
    """Return one ASCII character that looks like ``character``, its base letter, or a question mark."""
    if character.isascii():
        return character
    if character in _ALIKE:
        return _ALIKE[character]
    # The braille and block characters that plots are drawn with.
    if 0x2800 <= ord(character) <= 0x28FF or 0x2580 <= ord(character) <= 0x259F:
        return "*"
    base = unicodedata.normalize("NFKD", character)[0]
    return base if base.isascii() else _UNKNOWN


def choose_glyphs(environment: MutableMapping[str, str] = os.environ) -> None:
    """Set SFUMATO_GLYPHS to ascii if nothing is chosen and locale or terminal have no other characters.

    Raises BadInput.
    """
    chosen = environment.get(CHOICE)
    if chosen and chosen not in SETS:
        raise BadInput(CHOICE, f'must be one of {", ".join(SETS)}, not "{chosen}"')
    if not chosen and (_has_ascii_locale(environment) or environment.get("TERM") == "linux"):
        environment[CHOICE] = "ascii"


def _has_ascii_locale(environment: Mapping[str, str]) -> bool:
    """Return whether the locale is one without UTF-8; False if no locale is set."""
    locale = next((environment[name] for name in ("LC_ALL", "LC_CTYPE", "LANG") if environment.get(name)), "")
    codes = locale.partition(".")[2].partition("@")[0].lower().replace("-", "")
    return locale in ("C", "POSIX") or codes not in ("", "utf8")


@dataclass(frozen=True)
class Glyphs:
    """Characters to draw with.

    ``table[cell_bits]`` shows a cell of ``dots_down`` by ``dots_across`` dots, whose bits are ``weights``. ``marks`` are
    those of points, by series.
    """

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
    marks: str = "○●+*#%@&"

    @property
    def dots_down(self) -> int:
        """Return the number of rows of dots in a cell."""
        return len(self.weights)

    @property
    def dots_across(self) -> int:
        """Return the number of columns of dots in a cell."""
        return len(self.weights[0])

    @property
    def is_coarse(self) -> bool:
        """Return whether a cell is a single dot, drawn as the mark of its series."""
        return self.dots_down * self.dots_across == 1

    def encode_mask(self, mask: Mask) -> NDArray[np.str_]:
        """Return the character of each cell: (rows · down, columns · across) dots to (rows, columns) characters."""
        import numpy as np

        return np.array(list(self.table))[self.cell_bits(mask)]

    def cell_bits(self, mask: Mask) -> NDArray[np.intp]:
        """Return the dots of each cell as a number, (rows, columns)."""
        import numpy as np

        rows, columns = mask.shape[0] // self.dots_down, mask.shape[1] // self.dots_across
        split = mask.reshape(rows, self.dots_down, columns, self.dots_across)
        weights = np.array(self.weights, dtype=np.intp)[:, np.newaxis, :]
        return np.asarray((split * weights).sum(axis=(1, 3)))


_BRAILLE_TABLE = " " + "".join(map(chr, range(0x2801, 0x2900)))
BRAILLE = Glyphs("braille", ((1, 8), (2, 16), (4, 32), (64, 128)), _BRAILLE_TABLE, *"│─└┬┤▲…")
BLOCK = Glyphs("block", ((1, 2), (4, 8)), " ▘▝▀▖▌▞▛▗▚▐▜▄▙▟█", *"│─└┬┤▲…")
ASCII = replace(Glyphs("ascii", ((1,),), " *", *"|-+++^~"), marks="ox+*#%@&")
GLYPHS = {glyphs.name: glyphs for glyphs in (BRAILLE, BLOCK, ASCII)}


def find_glyphs(name: str | None = None) -> Glyphs:
    """Return the set called ``name``, otherwise the one in SFUMATO_GLYPHS, otherwise braille.

    Raises ValueError for a name other than braille, block, ascii.
    """
    wanted = name or os.environ.get("SFUMATO_GLYPHS") or BRAILLE.name
    if wanted not in GLYPHS:
        raise ValueError(f"glyphs must be one of {', '.join(GLYPHS)}, not {wanted!r}")
    return GLYPHS[wanted]
