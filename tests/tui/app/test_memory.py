"""Few stores of memory for all threads, where the C library can be told so."""

import platform
import subprocess
import sys

import pytest

from sfumato.tui.app import memory


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="another C library")
def test_the_gnu_c_library_takes_the_number() -> None:
    told = [
        sys.executable,
        "-P",
        "-c",
        "from sfumato.tui.app.memory import limit_malloc_arenas; print(limit_malloc_arenas())",
    ]
    assert subprocess.run(told, capture_output=True, text=True, check=True).stdout.strip() == "True"


@pytest.mark.parametrize("error", [OSError, AttributeError, TypeError])
def test_another_c_library_is_left_alone(monkeypatch: pytest.MonkeyPatch, error: type[Exception]) -> None:
    def none(_: object) -> None:
        raise error

    monkeypatch.setattr(memory.ctypes, "CDLL", none)
    assert not memory.limit_malloc_arenas()
