"""Reading a text file that a user named, with a sentence for each way in which that can fail."""
from __future__ import annotations

from pathlib import Path

from emulator.errors import BadInput

LARGEST_BYTES = 256 * 2**20


def read_lines(path: str, what: str) -> list[str]:
    """The lines of a UTF-8 file; `what` says what it should hold, as in 'a connection matrix'."""
    file = Path(path)
    try:
        if file.is_dir():
            raise BadInput(f"{path} is a directory; {what} must be a file.")
        if not file.exists():
            raise BadInput(f"{path} does not exist; {what} was expected there.")
        if not file.is_file():
            raise BadInput(f"{path} is not a regular file; {what} was expected there.")
        if file.stat().st_size > LARGEST_BYTES:
            raise BadInput(f"{path} has {file.stat().st_size} bytes; {what} may have at most "
                           f"{LARGEST_BYTES}.")
        raw = file.read_bytes()
    except OSError as error:
        reason = error.strerror or error
        raise BadInput(f"{path} cannot be read ({reason}); {what} was expected there.") from None
    except ValueError:  # a zero byte in the path
        raise BadInput(f"{path!r} is not a file name; {what} was expected there.") from None
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise BadInput(f"{path} is not text; {what} was expected there.") from None
    if "\0" in text:
        raise BadInput(f"{path} is not text; {what} was expected there.")
    if not text.strip():
        raise BadInput(f"{path} is empty; {what} was expected there.")
    return text.splitlines()


def slip(path: str, line: int, sentence: str) -> BadInput:
    """A BadInput that points at a line (from 1), as compilers do."""
    return BadInput(f"{path}:{line}: {sentence}")
