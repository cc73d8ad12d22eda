"""The result bundle: a folder that belongs to the user behind sudo, written as plain files.

summary.json says everything in SI units; flows.csv has a row a message; queues.csv and links.csv are
time series, classes.csv too where ports have classes; timeline.json opens in Perfetto;
experiment.yaml runs again.
"""
from __future__ import annotations

import csv
import errno
import fcntl
import hashlib
import io
import json
import os
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
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
CAPTURE = ".pcap"
LONGEST_FOLDER = 120  # letters; file systems take 143 (eCryptfs) or more
MOST_DATED = 1000
_PROBE = b"\0" * 4096  # a full disk still takes an empty file


class Bundle:
    """A folder to write into. It may exist and hold other files; what would be overwritten needs `force`.

    captures: names of files that the run itself will write there. dated: the name is ours, so where somebody
    has it already the next free one is taken (-2, -3, …).
    """

    def __init__(self, path: str, force: bool = False, captures: Iterable[str] = (), dated: bool = False
                 ) -> None:
        self.path = Path(path)
        self._force, self._captures, self._dated = force, tuple(captures), dated
        self._owner = user_behind_sudo()
        self._made: list[Path] = []
        self._lock: int | None = None
        self._created = False
        self._check()

    def _check(self) -> None:
        """Raise BadInput where the folder cannot be one, or holds what would be overwritten."""
        path = self.path
        try:
            if path.exists() and not path.is_dir():
                raise BadInput(f'--out "{path}" is not a directory.')
            names = (*FILES, *SOMETIMES, *self._captures)
            there = next((name for name in names if os.path.lexists(path / name)), None)
            if there and not self._force and not self._dated:
                held = "an earlier result" if there == SUMMARY else f"{there}, which would be overwritten"
                raise BadInput(f'--out "{path}" holds {held}; choose another directory or add --force.')
        except (OSError, ValueError) as error:  # too long, or not to be looked into
            reason = getattr(error, "strerror", error)
            raise BadInput(f'--out "{path}" cannot be a directory: {reason}.') from None

    def folder(self, name: str, captures: Iterable[str] = ()) -> Bundle:
        """The bundle of one run of several, in a folder of its own."""
        return Bundle(str(self.path / name), self._force, captures)

    def create(self) -> None:
        """Make the folder and its missing parents, owned by the user, and hold it until `close`; BadInput
        where that is not allowed, or where what is written there could not be the user's.

        What is left there of an earlier bundle goes, so that no file of it passes for one of this run.
        """
        try:
            self._make()
            for made in self._made:
                self._give(made)
            self._hold()
            self._check()  # again: another run may have ended here since the first time
            self._probe()
            _clear(self.path, self._captures)
            self._created = True
        except OSError as error:
            raise BadInput(f'--out "{self.path}" cannot be written: {error.strerror}.') from None
        finally:
            if not self._created:
                self._take_back()

    def _make(self) -> None:
        """Make the folder and its missing parents."""
        path = self.path
        self._made = [p for p in (path, *path.parents) if not p.exists()]
        if not self._dated:
            path.mkdir(parents=True, exist_ok=True)
            return
        path.parent.mkdir(parents=True, exist_ok=True)
        self._made = [p for p in self._made if p != path]
        for number in range(1, MOST_DATED):
            self.path = path if number == 1 else path.with_name(f"{path.name}-{number}")
            try:
                self.path.mkdir()
            except FileExistsError:
                continue
            self._made = [self.path, *self._made]
            return
        raise FileExistsError(errno.EEXIST, "there are too many results of this second; name one with --out")

    def _hold(self) -> None:
        """Lock the folder for as long as this process has it open, whatever ends it."""
        self._lock = os.open(self.path, os.O_RDONLY | os.O_DIRECTORY)
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            self.close()
            raise BadInput(f'--out "{self.path}" is in use by another run; choose another directory.'
                           ) from None
        except OSError:  # a file system without locks (some NFS): the check has to do
            self.close()

    def _probe(self) -> None:
        """Write what the results will be written as; better refused now than after the measurement."""
        probe = self.path / ".probe.part"
        try:
            probe.write_bytes(_PROBE)
            self._give(probe)
        finally:
            probe.unlink(missing_ok=True)

    def close(self) -> None:
        """Let another run have the folder."""
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    def discard(self) -> None:
        """Take back what `create` and `write` made, where nothing is worth keeping; other files stay."""
        for name in (*FILES, *SOMETIMES, *self._captures) if self._created else ():
            (self.path / name).unlink(missing_ok=True)
        self._take_back()

    def _take_back(self) -> None:
        for made in self._made:
            try:
                made.rmdir()
            except FileNotFoundError:  # it never came to be
                continue
            except OSError:  # it holds something of others
                return

    def write(self, name: str, content: str | bytes) -> None:
        """Write one file whole; it appears under its name only when it is complete."""
        with self.writing(name) as partial:
            partial.write_bytes(content.encode() if isinstance(content, str) else content)

    @contextmanager
    def writing(self, name: str) -> Iterator[Path]:
        """Where to write a file, which appears under its name when the block is through, or not at all."""
        partial = self.path / f".{name}.part"
        try:
            yield partial
            self._give(partial)
            partial.replace(self.path / name)
        finally:
            partial.unlink(missing_ok=True)

    def adopt(self, name: str) -> None:
        """Hand a file that something else wrote here to the user."""
        self._give(self.path / name)

    def adopt_ranks(self) -> None:
        """Hand what the processes of a real program printed to the user."""
        for name in _rank_files(self.path):
            self._give(self.path / RANKS / name)
        if (self.path / RANKS).is_dir():
            self._give(self.path / RANKS)

    def _give(self, path: Path) -> None:
        if self._owner:
            try:
                os.chown(path, *self._owner)
            except PermissionError as error:
                raise PermissionError(error.errno, "its file system (vfat, exfat, some NFS) lets root give "
                                                   "nothing to you; choose a directory on another one"
                                      ) from None


def folder_names(labels: Sequence[str]) -> list[str]:
    """A folder's name for each run of several: its label with nothing that a path could trip over, no two
    alike, also where capital letters do not count.
    """
    plain = ["".join(c if c.isascii() and c.isalnum() or c in "=.-" else "_" for c in label)
             for label in labels]
    seen = Counter(name.lower() for name in plain)
    return [name if seen[name.lower()] == 1 and len(name) <= LONGEST_FOLDER else
            f"{name[:LONGEST_FOLDER]}-{_digest(f'{number} {label}')}"
            for number, (name, label) in enumerate(zip(plain, labels))]


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode(errors="surrogateescape")).hexdigest()[:8]


def _clear(path: Path, captures: Iterable[str]) -> None:
    """Remove a bundle from a folder: its files, its captures, and the bundles of its runs; nothing else."""
    earlier = _earlier(path / SUMMARY)
    for name in (*FILES, *SOMETIMES, *captures, *_names(earlier, "captures", "file", CAPTURE)):
        (path / name).unlink(missing_ok=True)
    for name in _rank_files(path):
        (path / RANKS / name).unlink()
    for name in _names(earlier, "runs", "folder"):
        folder = path / name
        if folder.is_dir() and not folder.is_symlink() and any((folder / file).exists() for file in FILES):
            _clear(folder, ())
            if not os.listdir(folder):
                folder.rmdir()


def _earlier(path: Path) -> Mapping[str, Any]:
    """What the summary of an earlier bundle says; nothing where there is none that can be read."""
    try:
        found = json.loads(path.read_bytes())
    except (FileNotFoundError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def _names(summary: Mapping[str, Any], key: str, of: str, ending: str = "") -> list[str]:
    """The names under summary[key][*][of] that lie in the bundle's own folder."""
    listed = summary.get(key)
    found = [each.get(of) for each in listed if isinstance(each, dict)] if isinstance(listed, list) else []
    return [name for name in found if isinstance(name, str) and name.endswith(ending)
            and name not in ("", ".", "..") and "/" not in name and "\0" not in name]


def _rank_files(path: Path) -> list[str]:
    folder = path / RANKS
    return [name for name in os.listdir(folder) if _RANK_FILE.fullmatch(name)] if folder.is_dir() else []


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
