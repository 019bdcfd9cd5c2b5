"""Attributes of a pool's counters that record how starts of each type ended, added up without a read.

``trained#<year>#<type>`` and ``unserved#<year>#<type>`` are weights, ``short_at#<type>`` is the last end for
want of capacity. Where they are missing, nothing is known and nothing is lost.
"""

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from datetime import datetime
from typing import Any

from trainmaster.adapters.dynamodb.codec import iso
from trainmaster.adapters.dynamodb.updates import Update
from trainmaster.core.durations.decay import era_of, weight_at
from trainmaster.core.jobs.instances import Capacity
from trainmaster.core.planning.start_records import StartLesson, StartRecord, StartRecords

TRAINED, UNSERVED, LAST_UNSERVED = "trained#", "unserved#", "short_at#"
FORGOTTEN_YEARS = 2
"""The weights of a year are removed when this many years later a start is recorded."""
Named = Callable[[str, Callable[[str, Any], Any]], Iterator[tuple[str, Any]]]
"""Function that decodes the attributes of one prefix, each by itself."""


def note_start(counters: Update, lesson: StartLesson) -> None:
    """Add a start to its types; ``StartRecord.after``, as increments."""
    year = era_of(lesson.at)
    prefix = TRAINED if lesson.trained else UNSERVED
    for capacity in lesson.vector:
        counters.add[f"{prefix}{year}#{capacity}"] += weight_at(lesson.at)
        forgotten = f"{prefix}{year - FORGOTTEN_YEARS}#{capacity}"
        if forgotten not in counters.remove:
            counters.remove.append(forgotten)
        if not lesson.trained:
            counters.put[f"{LAST_UNSERVED}{capacity}"] = iso(lesson.at)


def start_records(named: Named, instant: Callable[[str], datetime]) -> StartRecords:
    """Decode the records of all types; what cannot be read is left out.

    Args:
        named: As ``Named``; it reports and leaves out what its second argument refuses.
        instant: Function that decodes an instant.
    """
    trained, unserved = _by_capacity(named, TRAINED), _by_capacity(named, UNSERVED)
    last = {Capacity.parse(name): at for name, at in named(LAST_UNSERVED, lambda _, text: instant(text))}
    return StartRecords(
        by_capacity={
            capacity: StartRecord(
                trained=trained.get(capacity, {}),
                unserved=unserved.get(capacity, {}),
                last_unserved=last.get(capacity),
            )
            for capacity in trained.keys() | unserved.keys() | last.keys()
        }
    )


def _by_capacity(named: Named, prefix: str) -> Mapping[Capacity, Mapping[int, int]]:
    weights: defaultdict[Capacity, dict[int, int]] = defaultdict(dict)
    for _, (capacity, year, weight) in named(prefix, _weight):
        weights[capacity][year] = weight
    return weights


def _weight(name: str, content: Any) -> tuple[Capacity, int, int]:
    year, _, capacity = name.partition("#")
    if type(content) is not int or content < 0:
        raise ValueError(f"{content!r} is no weight")
    return Capacity.parse(capacity), int(year), content
