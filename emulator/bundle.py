"""The result bundle: a folder that belongs to the user behind sudo, written as plain files.

summary.json says everything in SI units; flows.csv has a row a message; queues.csv and links.csv are
time series, classes.csv too where ports have classes; timeline.json opens in Perfetto;
experiment.yaml runs again.
"""
from __future__ import annotations

import csv
import io
import json
import os
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from emulator.errors import BadInput

SUMMARY = "summary.json"
RANKS = "ranks"  # a folder: what each process of a real program printed
_RANK_FILE = re.compile(r"(rank\d+|mpirun)\.(out|err)")
FILES = (SUMMARY, "experiment.yaml", "log.txt", "flows.csv", "timeline.json", "queues.csv", "links.csv",
         "link_bytes.csv", "traffic_matrix.csv", "traffic_matrix.svg")
SOMETIMES = ("collectives.txt", "background.csv", "classes.csv", "table.svg")
"""Files of the bundles of some runs; the last of several runs, where the experiment file asks for a table."""
TABLE = SOMETIMES[-1]


class Bundle:
    """A folder to write into. It may exist and hold other files; what would be overwritten needs `force`."""

    def __init__(self, path: str, force: bool = False) -> None:
        self.path = Path(path)
        self._owner = user_behind_sudo()
        self._made: list[Path] = []
        try:
            if self.path.exists() and not self.path.is_dir():
                raise BadInput(f'--out "{path}" is not a directory.')
            there = next((name for name in (*FILES, *SOMETIMES) if (self.path / name).exists()), None)
            if there and not force:
                held = "an earlier result" if there == SUMMARY else f"{there}, which would be overwritten"
                raise BadInput(f'--out "{path}" holds {held}; choose another directory or add --force.')
        except (OSError, ValueError) as error:  # too long, or not to be looked into
            reason = getattr(error, "strerror", error)
            raise BadInput(f'--out "{path}" cannot be a directory: {reason}.') from None

    def create(self) -> None:
        """Make the folder and its missing parents, owned by the user; BadInput where that is not allowed.

        What is left there of an earlier bundle goes, so that no file of it passes for one of this run.
        """
        try:
            missing = [p for p in (self.path, *self.path.parents) if not p.exists()]
            for name in (*FILES, *SOMETIMES):
                (self.path / name).unlink(missing_ok=True)
            for name in self._rank_files():
                (self.path / RANKS / name).unlink()
            self.path.mkdir(parents=True, exist_ok=True)
            self._made = [*missing, *self._made]
            for made in missing:
                self._give(made)
            if not os.access(self.path, os.W_OK | os.X_OK):
                raise PermissionError(13, "Permission denied")
        except OSError as error:
            raise BadInput(f'--out "{self.path}" cannot be written: {error.strerror}.') from None

    def discard(self) -> None:
        """Take back what `create` and `write` made, where nothing is worth keeping; other files stay."""
        for name in FILES:
            (self.path / name).unlink(missing_ok=True)
        for made in self._made:
            try:
                made.rmdir()
            except OSError:  # it holds something of others
                return

    def write(self, name: str, content: str | bytes) -> None:
        """Write one file whole; it appears under its name only when it is complete."""
        target = self.path / name
        partial = target.with_name(f".{name}.part")
        data = content.encode() if isinstance(content, str) else content
        partial.write_bytes(data)
        self._give(partial)
        partial.replace(target)

    def adopt(self, name: str) -> None:
        """Hand a file that something else wrote here to the user."""
        self._give(self.path / name)

    def adopt_ranks(self) -> None:
        """Hand what the processes of a real program printed to the user."""
        for name in self._rank_files():
            self._give(self.path / RANKS / name)
        if (self.path / RANKS).is_dir():
            self._give(self.path / RANKS)

    def _rank_files(self) -> list[str]:
        folder = self.path / RANKS
        return [name for name in os.listdir(folder) if _RANK_FILE.fullmatch(name)] if folder.is_dir() else []

    def _give(self, path: Path) -> None:
        if self._owner:
            os.chown(path, *self._owner)


def user_behind_sudo() -> tuple[int, int] | None:
    """(uid, gid) of who called sudo, where we are root through sudo."""
    uid, gid = os.environ.get("SUDO_UID", ""), os.environ.get("SUDO_GID", "")
    if os.geteuid() == 0 and uid.isdigit() and gid.isdigit():
        return int(uid), int(gid)
    return None


def csv_text(columns: Iterable[str], rows: Iterable[Iterable[Any]]) -> str:
    """A CSV file; floats with six significant digits."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(columns)
    for row in rows:
        writer.writerow([f"{v:.6g}" if isinstance(v, float) else v for v in row])
    return out.getvalue()


def json_text(value: Mapping[str, Any]) -> str:
    """JSON for people and programs; a float that is no number would be no JSON either, so it is refused."""
    return json.dumps(value, indent=1, allow_nan=False) + "\n"
