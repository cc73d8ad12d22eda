"""Compile the relay of `--delay` at install time; called by `python -m emulator.asic.build`."""
from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

from emulator.errors import EmulatorError, MachineLacks

SOURCE = Path(__file__).with_name("relay.c")
BINARY = SOURCE.parent / "build" / "relay"
_FLAGS = ("-std=gnu11", "-O2", "-Wall", "-Wextra", "-Werror")
_COMPILERS = ("cc", "gcc", "clang", "clang-14", "clang-15", "clang-16", "clang-17", "clang-18", "clang-19")
_TIMEOUT_S = 60


def stale() -> bool:
    """Is the relay missing, or older than its source?"""
    return not BINARY.exists() or BINARY.stat().st_mtime < SOURCE.stat().st_mtime


def build() -> list[Path]:
    """Compile the relay unless it is up to date; returns what was made.

    Raises MachineLacks without a C compiler, EmulatorError with the compiler's words.
    """
    if not stale():
        return []
    compiler = next(filter(None, map(shutil.which, _COMPILERS)), None)
    if compiler is None:
        raise MachineLacks("There is no C compiler for the relay of --delay: sudo apt install clang.")
    BINARY.parent.mkdir(exist_ok=True)
    partial = BINARY.with_suffix(".partial")
    command = [compiler, *_FLAGS, str(SOURCE), "-o", str(partial)]
    done = subprocess.run(command, stderr=subprocess.PIPE, text=True, timeout=_TIMEOUT_S, check=False)
    if done.returncode:
        raise EmulatorError(f"{compiler} failed with status {done.returncode}:\n{done.stderr[-3000:]}")
    partial.rename(BINARY)
    if os.geteuid() == 0:  # what root built in a user's clone belongs to the user
        owner = SOURCE.stat()
        for path in (BINARY.parent, BINARY):
            os.chown(path, owner.st_uid, owner.st_gid)
    return [BINARY]


def require_relay() -> Path:
    """The compiled relay; MachineLacks where there is none."""
    if not BINARY.exists():
        raise MachineLacks("--delay needs a relay that is not compiled here; run: python -m "
                           "emulator.asic.build.")
    return BINARY
