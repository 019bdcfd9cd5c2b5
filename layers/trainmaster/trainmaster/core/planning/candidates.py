"""Which queue entries a pass looks at: bounded by teams and shapes, whatever the depth of the queue."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from trainmaster.core.jobs.instances import Vector, parse_vector

HEADS = 8
"""Entries read of each lane."""
MAX_LANES = 64
"""Lanes read in one pass."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Lane:
    """Jobs of one team that ask for the same thing: one that cannot start speaks for those behind it."""

    team: str
    text: str
    """``lane_text``, or a digest of it where that is long."""
    waiting: int


def chosen_lanes(lanes: Iterable[Lane], *, free: Vector, now: datetime) -> tuple[Lane, ...]:
    """At most ``MAX_LANES``: those with something free first, the others taking turns minute by minute."""
    known = sorted(lanes, key=lambda lane: (lane.team, lane.text))
    if len(known) <= MAX_LANES:
        return tuple(known)
    promising = _some([lane for lane in known if _may_fit(lane, free)], MAX_LANES, now)
    others = [lane for lane in known if not _may_fit(lane, free)]
    return (*promising, *_some(others, MAX_LANES - len(promising), now))


def _some(lanes: list[Lane], places: int, now: datetime) -> tuple[Lane, ...]:
    """As many as there are places: the next ones each minute, so that each gets its look."""
    if len(lanes) <= places:
        return tuple(lanes)
    first = int(now.timestamp() // 60) * places % len(lanes)
    return tuple([*lanes[first:], *lanes[:first]][:places])


def _may_fit(lane: Lane, free: Vector) -> bool:
    """A lane whose text is a digest might."""
    shapes = lane.text.replace("|", ">").split(">")
    if "=" not in lane.text:
        return True
    return any(
        all(
            free.get(capacity, 0) >= count
            for capacity, count in parse_vector(shape.partition("@")[0]).items()
        )
        for shape in shapes
    )
