"""That a file is being read is said for as long as that may take, and no longer than it does."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from sfumato.tui.session.reading_notice import BYTES_A_SECOND, NOTICE_SECONDS, ReadingNotice


class Said:
    """What an app was asked to say."""

    def __init__(self) -> None:
        self.said: list[tuple[str, float | None]] = []

    def say(self, text: str, severity: Any = "information", seconds: float | None = None) -> None:
        assert severity == "information"
        self.said.append((text, seconds))

    def clear_notifications(self) -> None:
        self.said.append(("cleared", None))


def test_a_large_file_is_said_to_be_read_until_it_is(tmp_path: Path) -> None:
    path = tmp_path / "large.csv"
    with path.open("wb") as file:
        file.truncate(30 * BYTES_A_SECOND)
    app = Said()
    notice = ReadingNotice(app)
    notice.end()
    assert app.said == [], "the control: nothing was shown, other messages stay"
    notice.begin(str(path))
    assert app.said == [("large.csv (120 MiB) is being read", NOTICE_SECONDS + 30)]
    notice.end()
    notice.end()
    assert app.said[1:] == [("cleared", None)]


def test_of_a_small_file_or_none_nothing_more_is_said(tmp_path: Path) -> None:
    (tmp_path / "small.csv").write_text("a,b\n1,2\n", "utf-8")
    app = Said()
    for name in ("small.csv", "none.csv"):
        ReadingNotice(app).begin(str(tmp_path / name))
    assert [text for text, _ in app.said] == ["small.csv is being read", "none.csv is being read"]
    assert all(seconds is not None and seconds < NOTICE_SECONDS + 1 for _, seconds in app.said)
