"""Reading a text file that a user named, with a sentence for each way in which that can fail."""
from __future__ import annotations

import re
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


class Word(str):
    """A word of a line that knows its column (from 1), for sentences."""

    column: int

    def __new__(cls, text: str, column: int) -> Word:
        made = super().__new__(cls, text)
        made.column = column
        return made


def words_of(line: str) -> list[Word]:
    """The words of a line, parted by blanks and tabs."""
    return [Word(match[0], match.start() + 1) for match in re.finditer(r"\S+", line)]


def slip(path: str, line: int, sentence: str, word: str = "") -> BadInput:
    """A BadInput that points at a line (from 1), and at the column where `word` knows its own."""
    column = f":{word.column}" if isinstance(word, Word) else ""
    return BadInput(f"{path}:{line}{column}: {sentence}")


def whole_number(path: str, line: int, name: str, text: str, least: int = 0, most: int = 10**18) -> int:
    """A whole number in ASCII digits; int() would also take '1_000' and other scripts' digits."""
    if not re.fullmatch(r"[0-9]{1,19}", text) or not least <= int(text) <= most:
        bound = f"from {least} to {most}" if most < 10**18 else f"of at least {least}"
        raise slip(path, line, f'{name} "{shown(text)}" is not a whole number {bound}.', text)
    return int(text)


def decimal(path: str, line: int, name: str, text: str, most: float = 1e18) -> float:
    """A number of zero or more, with or without a fraction or an exponent; not nan, not inf."""
    if not re.fullmatch(r"[0-9]{1,19}(\.[0-9]{0,19})?([eE][-+]?[0-9]{1,2})?", text) or float(text) > most:
        raise slip(path, line, f'{name} "{shown(text)}" is not a number from 0 to {most:g}.', text)
    return float(text)


def shown(text: str, most: int = 40) -> str:
    """A word of a foreign file as it may stand in a sentence: one line, not too long."""
    printable = "".join(character if character.isprintable() else "?" for character in text)
    return printable if len(printable) <= most else printable[:most] + "…"
