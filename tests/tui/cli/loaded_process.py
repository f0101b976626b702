"""Processes in which the program is loaded already: forks of one that has imported it, each with a folder, an environment and streams of its own.

What such a process does, and how Python ends it, is as in any other. What a test says of how a process begins (what it loads, in which
locale, with which streams) needs one that does begin.
"""

from __future__ import annotations

import atexit
import functools
import os
import socket
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from json import dumps
from pathlib import Path

COMMAND = "from sfumato.tui.cli.main import main; main()"
PYTEST = "import runpy; sys.path.insert(0, ''); runpy.run_module('pytest', run_name='__main__', alter_sys=True)"
LOADED = ("engine", "workspace", "tui.cli")
LOADS = """
import gc, importlib, json, os, pkgutil, signal, socket, sys
import hypothesis, pytest
channel = socket.socket(fileno=int(sys.argv[1]))
for name in sys.argv[2:]:
    for found in pkgutil.walk_packages(importlib.import_module(name).__path__, f"{name}."):
        if not found.name.startswith("sfumato.engine.contract"):  # pytest loads it in its own way
            importlib.import_module(found.name)
gc.collect()
gc.freeze()
while True:
    request, streams, _, _ = socket.recv_fds(channel, 1 << 20, 3)
    if not request:
        os._exit(0)
    process = os.fork()
    if process == 0:
        break
    for stream in streams:
        os.close(stream)
    channel.send(str(os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])).encode())
channel.close()
for number, stream in enumerate(streams):
    os.dup2(stream, number)
    os.close(stream)
code, arguments, folder, environment = json.loads(request)
signal.alarm(120)
os.chdir(folder)
os.environ.clear()
os.environ.update(environment)
sys.path[:0] = [place for place in environment.get("PYTHONPATH", "").split(":") if place and place not in sys.path]
sys.argv = ["-c", *arguments]
sys.stdin = sys.__stdin__ = open(0, closefd=False)
sys.stdout = sys.__stdout__ = open(1, "w", closefd=False)
sys.stderr = sys.__stderr__ = open(2, "w", 1, errors="backslashreplace", closefd=False)
exec(code)
"""


@functools.cache
def _loaded() -> socket.socket:
    """The way to the process that has loaded everything; it ends when this one does."""
    ours, theirs = socket.socketpair()
    names = [f"sfumato.{name}" for name in LOADED]
    command = [sys.executable, "-P", "-c", LOADS, str(theirs.fileno()), *names]
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    process = subprocess.Popen(command, pass_fds=[theirs.fileno()], env=environment)
    theirs.close()
    atexit.register(process.wait)
    atexit.register(ours.close)
    return ours


def run_loaded(
    *arguments: str,
    code: str = COMMAND,
    folder: Path | None = None,
    environment: Mapping[str, str] | None = None,
    stdout: int | None = None,
    stderr: int | None = None,
) -> subprocess.CompletedProcess[str]:
    """What a command, or other code, writes where no stream is given, and how it ends: after two minutes by SIGALRM."""
    channel = _loaded()
    asked = dumps(
        [code, arguments, str(folder or Path.cwd()), dict(os.environ if environment is None else environment)]
    )
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err, Path(os.devnull).open("rb") as nothing:
        streams = [
            nothing.fileno(),
            out.fileno() if stdout is None else stdout,
            err.fileno() if stderr is None else stderr,
        ]
        socket.send_fds(channel, [asked.encode()], streams)
        status = int(channel.recv(16))
        out.seek(0)
        err.seek(0)
        return subprocess.CompletedProcess(arguments, status, out.read().decode(), err.read().decode())
