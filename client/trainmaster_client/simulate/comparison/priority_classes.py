"""Groups priorities in a few classes, so that waits can be read: one each while there are few, else bands."""

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

MOST_CLASSES = 4
"""Most priorities that get a class each; more become bands."""
BANDS = 3
WEIGHTS = (1, 3, 8, 20)
"""Weights of a job's delay in the weighted mean, from the lowest class upwards."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PriorityClass:
    """Jobs that are worth the same."""

    lowest: int
    highest: int
    weight: int

    @property
    def label(self) -> str:
        same = self.lowest == self.highest
        return f"priority {self.lowest}" if same else f"priority {self.lowest} to {self.highest}"


def classes_of(priorities: Iterable[int]) -> tuple[PriorityClass, ...]:
    """Make the classes, highest first; bands get about equally many jobs, as their priorities allow."""
    ordered = sorted(priorities)
    known = sorted(set(ordered))
    parts = [[priority] for priority in known] if len(known) <= MOST_CLASSES else _bands(ordered, known)
    classes = [
        PriorityClass(lowest=part[0], highest=part[-1], weight=weight)
        for part, weight in zip(parts, WEIGHTS, strict=False)
    ]
    return tuple(reversed(classes))


def class_of(priority: int, classes: Sequence[PriorityClass]) -> PriorityClass:
    return next(candidate for candidate in classes if candidate.lowest <= priority)


def _bands(ordered: Sequence[int], known: Sequence[int]) -> list[list[int]]:
    last = (ordered[len(ordered) * number // BANDS - 1] for number in range(1, BANDS))
    cuts = sorted({min(priority, known[-2]) for priority in last})  # the highest never swallows the others
    parts: list[list[int]] = [[] for _ in range(len(cuts) + 1)]
    for priority in known:
        parts[bisect_left(cuts, priority)].append(priority)
    return [part for part in parts if part]
