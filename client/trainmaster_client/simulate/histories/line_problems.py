"""The problems of one file of lines, each with its line and field, and how counts and names are written."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from trainmaster_client.errors import FieldProblem, MalformedHistoryError

MOST_SHOWN = 20
"""Problems of one file; the others are counted."""
_SHOWN_CHARACTERS = 60


@dataclass(slots=True, kw_only=True)
class LineProblems:
    """Collects what is wrong in one file, each with line and field."""

    where: str
    hint: str = ""
    """Advice on what else may be the matter, given once after all problems."""
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
    """Return the text in quotes, shortened."""
    quoted = repr(text)
    return quoted if len(quoted) <= _SHOWN_CHARACTERS else f"{quoted[:_SHOWN_CHARACTERS]}..."


def count_of(count: int, noun: str) -> str:
    """Count in words: ``1 job``, ``2,000 jobs``."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def part_of(count: int, total: int, noun: str) -> str:
    """Write a part: ``all 7 jobs``, ``3 of 7 jobs``, ``the job``."""
    if count == total:
        return f"all {total:,} {noun}s" if total > 1 else f"the {noun}"
    return f"{count:,} of {total:,} {noun}s"


def listed(names: Sequence[str], *, most: int = 8) -> str:
    """List names: ``a, b and 3 more``."""
    head = ", ".join(names[:most])
    return head if len(names) <= most else f"{head} and {len(names) - most} more"
