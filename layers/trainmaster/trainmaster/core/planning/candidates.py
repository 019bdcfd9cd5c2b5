"""Which queue entries a pass looks at: bounded, whatever the depth of the queue and the number of lanes.

The first of the pool's order and of each team's come in every pass; what is free decides nothing. Of the
lanes that none of them speaks for some come by the order of their heads, and some in turns.
"""

import hashlib
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import islice

from trainmaster.core.jobs.instances import Choice, Shape, lane_text
from trainmaster.core.planning.snapshot import LaneRow, WaitingJob

FIRST = 64
"""Entries read of the pool's order."""
HEADS = 8
"""Entries read of each team's order, and of each lane."""
MANY_TEAMS = 16
"""From so many on the order is read on instead of each team's own, where that finds them all."""
MAX_LANES = 64
"""Lanes that nobody speaks for yet, read in one pass: half by their heads, half in turns."""
MAX_SHORT = 8
"""Lanes of which fewer than ``HEADS`` are among the first, read on in one pass: they take turns."""
MAX_KNOWN = 512
"""Rows of lanes read in one pass."""
MAX_LANE_TEXT = 200
"""Longer lanes (many instance groups) are hashed, so that keys stay far below 1,024 bytes."""

_RING = 1 << 128
_GOLDEN = 0x9E3779B97F4A7C15F39CC0605CEDC834
"""Of the ring: steps of the golden ratio leave no part of it out for long."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LaneRead:
    """What to read of a lane."""

    lane: LaneRow
    after: tuple[int, str] | None
    """Rank of its last entry that is known; None: none is."""
    most: int


def teams_to_read(first: Iterable[WaitingJob], queued: Mapping[str, int]) -> tuple[str, ...]:
    """Those with fewer than ``HEADS`` among the first, and more that wait.

    Args:
        first: The first of the pool's order.
        queued: How many of each team wait for their turn.
    """
    seen = Counter(entry.team for entry in first)
    return tuple(sorted(team for team, count in queued.items() if seen[team] < min(HEADS, count)))


def order_to_read(teams: Collection[str], queued: Mapping[str, int]) -> int:
    """How many entries of the pool's order to read on instead of the heads of these teams; 0: none.

    Where all who wait are no more than those heads may be, one read of the order finds them all.
    """
    most = HEADS * len(teams)
    return most if len(teams) >= MANY_TEAMS and sum(queued.values()) <= most else 0


def lanes_to_read(
    known: Iterable[LaneRow], seen: Sequence[WaitingJob], *, now: datetime
) -> tuple[LaneRead, ...]:
    """The further lanes: first those that none of the entries seen speaks for."""
    ranks: dict[tuple[str, str], list[tuple[int, str]]] = {}
    for entry in seen:
        ranks.setdefault((entry.team, lane(entry.shapes, entry.choice)), []).append(entry.rank)
    point = ring_point(now)
    ring = sorted(known, key=lambda one: (lane_id(one.team, one.text) < point, lane_id(one.team, one.text)))
    unseen = [one for one in ring if (one.team, one.text) not in ranks]
    by_head = dict.fromkeys(sorted(unseen, key=lambda one: one.head)[: MAX_LANES // 2])
    fresh = islice(dict.fromkeys((*by_head, *unseen)), MAX_LANES)
    short = [one for one in ring if 0 < len(ranks.get((one.team, one.text), ())) < HEADS]
    behind = ((one, ranks[one.team, one.text]) for one in short[:MAX_SHORT])
    return (
        *(LaneRead(lane=one, after=None, most=HEADS) for one in fresh),
        *(LaneRead(lane=one, after=max(found), most=HEADS - len(found)) for one, found in behind),
    )


def ring_point(now: datetime) -> str:
    """Where the lanes of this minute begin, by their ids."""
    return f"{int(now.timestamp() // 60) * _GOLDEN % _RING:032x}"


def lane_id(team: str, text: str) -> str:
    """Spread evenly, so that the lanes from any point on are anybody's."""
    return hashlib.blake2b(f"{team}#{text}".encode(), digest_size=16).hexdigest()


def lane(shapes: Sequence[Shape], choice: Choice) -> str:
    """Jobs of a lane ask for the same thing, so a head that cannot start represents those behind it."""
    return short_lane(lane_text(shapes, choice))


def short_lane(text: str) -> str:
    """A text that is short enough for keys stays as it is."""
    if len(text) <= MAX_LANE_TEXT:
        return text
    return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()
