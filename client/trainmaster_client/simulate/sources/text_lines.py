"""Files of lines, plain or compressed by gzip, and what is wrong with them."""

import gzip
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TextIO

from trainmaster_client.errors import FieldProblem, InvalidArgumentError, MalformedHistoryError

_GZIP_MAGIC = b"\x1f\x8b"
MOST_SHOWN = 20
"""Problems of one file; the others are counted."""
_SHOWN_CHARACTERS = 60


@dataclass(slots=True, kw_only=True)
class LineProblems:
    """What is wrong in one file, each with line and field."""

    where: str
    hint: str = ""
    """What else may be the matter: said once, behind all of them."""
    shown: list[FieldProblem] = field(default_factory=list)
    count: int = 0

    def add(self, line: int, name: str, message: str, hint: str) -> None:
        self.count += 1
        if len(self.shown) < MOST_SHOWN:
            at = f"line {line}, {name}" if name else f"line {line}"
            self.shown.append(FieldProblem(field=at, message=message, hint=hint))

    def raise_any(self) -> None:
        """Raises MalformedHistoryError if there was one."""
        if self.count:
            raise MalformedHistoryError(self.where, tuple(self.shown), count=self.count, hint=self.hint)


def shown(text: object) -> str:
    """In quotes, cut."""
    quoted = repr(text)
    return quoted if len(quoted) <= _SHOWN_CHARACTERS else f"{quoted[:_SHOWN_CHARACTERS]}..."


@contextmanager
def text_of(path: Path) -> Iterator[TextIO]:
    """Its lines, without a byte order mark. Raises InvalidArgumentError where they cannot be read."""
    try:
        with path.open("rb") as raw:
            is_gzip = raw.read(len(_GZIP_MAGIC)) == _GZIP_MAGIC
        opener = gzip.open if is_gzip else open
        with opener(path, "rt", encoding="utf-8-sig", newline="") as lines:
            yield lines
    except OSError as error:
        raise InvalidArgumentError(
            f"{path} cannot be read: {error.strerror or error}.", hint="Give a file that you can read."
        ) from error
    except (EOFError, zlib.error) as error:
        raise InvalidArgumentError(
            f"{path} is cut off or damaged: {error}.", hint="Write or copy it again."
        ) from error
    except UnicodeDecodeError as error:
        raise InvalidArgumentError(
            f"{path} is not text in UTF-8: byte {error.start} of what was read.", hint="Save it as UTF-8."
        ) from error


def count_of(count: int, noun: str) -> str:
    """``1 job``, ``2,000 jobs``."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def part_of(count: int, total: int, noun: str) -> str:
    """``all 7 jobs``, ``3 of 7 jobs``, ``the job``."""
    if count == total:
        return f"all {total:,} {noun}s" if total > 1 else f"the {noun}"
    return f"{count:,} of {total:,} {noun}s"


def listed(names: Sequence[str], *, most: int = 8) -> str:
    """``a, b and 3 more``."""
    head = ", ".join(names[:most])
    return head if len(names) <= most else f"{head} and {len(names) - most} more"
