"""The widths of an elastic job: how many instances its attempts may have, as the environment tells."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Self

_LISTED = "TRAINMASTER_WIDTHS"
"""The job's tag as written, which the control plane adds to the environment: `2-8`, `2-8:2` or `2 4 8`."""
_LARGEST = "TRAINMASTER_LARGEST_WIDTH"
"""Set by the launcher: the most instances that the job may have."""
_RANGE = re.compile(r"([1-9][0-9]{0,5})-([1-9][0-9]{0,5})(?::([1-9][0-9]{0,5}))?")


@dataclass(frozen=True, slots=True, kw_only=True)
class Widths:
    """Instances that an attempt of this job may have, ascending; one number if the job is not elastic."""

    counts: tuple[int, ...]

    @classmethod
    def of(cls, env: Mapping[str, str], width: int) -> Self:
        """Read the widths of a job whose attempt has ``width`` instances.

        A text of a form that is not known here leaves every count up to the largest: a job does not end
        because a newer control plane writes more than this program reads.
        """
        text, largest = env.get(_LISTED, ""), env.get(_LARGEST, "")
        counts = _counts(text)
        if not counts and re.fullmatch(r"[0-9]{1,6}", largest):
            counts = set(range(1, int(largest) + 1)) if int(largest) > width or text else set()
        return cls(counts=tuple(sorted(counts | {width})))

    @property
    def largest(self) -> int:
        return self.counts[-1]

    @property
    def is_elastic(self) -> bool:
        return len(self.counts) > 1


def _counts(text: str) -> set[int]:
    """Return the counts of a tag; none for a text of another form."""
    if match := _RANGE.fullmatch(text.strip()):
        first, last, by = (int(number or 1) for number in match.groups())
        return set(range(first, last + 1, by))
    words = text.split()
    return (
        {int(word) for word in words}
        if all(re.fullmatch(r"[1-9][0-9]{0,5}", word) for word in words)
        else set()
    )
