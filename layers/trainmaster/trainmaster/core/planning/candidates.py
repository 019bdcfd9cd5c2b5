"""Candidates: the queue entries a pass looks at, bounded whatever the depth of the queue or number of lanes.

Every pass reads the first entries of the pool's order and of each team's; free capacity decides nothing. Some
of the lanes that none of these represents are read by the order of their heads, and some take turns.
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
"""Number of teams from which the order is read on instead of each team's own, if that finds them all."""
MAX_LANES = 64
"""Most lanes without a representative that are read in one pass: half by their heads, half in turns."""
MAX_SHORT = 8
"""Most lanes with fewer than ``HEADS`` among the first that are read on in one pass: they take turns."""
MAX_KNOWN = 512
"""Most rows of lanes read in one pass."""
MAX_LANE_TEXT = 200
"""Most characters of a lane's text; longer ones (many instance groups) are hashed, so that keys stay far
below 1,024 bytes."""

_RING = 1 << 128
_GOLDEN = 0x9E3779B97F4A7C15F39CC0605CEDC834
"""Step on the ring by the golden ratio, which leaves no part of it out for long."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LaneRead:
    """Part of a lane that is to be read."""

    lane: LaneRow
    after: tuple[int, str] | None
    """Rank of the last of its entries that was read; None if none was."""
    most: int


def teams_to_read(first: Iterable[WaitingJob], queued: Mapping[str, int]) -> tuple[str, ...]:
    """Return the teams with fewer than ``HEADS`` among the first, and more that wait.

    Args:
        first: The first of the pool's order.
        queued: Number of each team's jobs that wait for their turn.
    """
    seen = Counter(entry.team for entry in first)
    return tuple(sorted(team for team, count in queued.items() if seen[team] < min(HEADS, count)))


def order_to_read(teams: Collection[str], queued: Mapping[str, int]) -> int:
    """Return how many entries of the pool's order to read instead of the heads of these teams; 0: none.

    If all waiting jobs are no more than those heads may be, one read of the order finds them all.
    """
    most = HEADS * len(teams)
    return most if len(teams) >= MANY_TEAMS and sum(queued.values()) <= most else 0


def lanes_to_read(
    known: Iterable[LaneRow], seen: Sequence[WaitingJob], *, now: datetime
) -> tuple[LaneRead, ...]:
    """Return the further lanes to read: first those that none of the entries seen represents.

    Args:
        known: All lanes of the pool.
        seen: Entries that were read so far.
        now: Instant of the pass, which decides whose turn it is.
    """
    ranks: dict[tuple[str, str], list[tuple[int, str]]] = {}
    for entry in seen:
        ranks.setdefault((entry.team, lane(entry.shapes, entry.choice)), []).append(entry.rank)
    # Half of the places go to the lanes with the earliest heads. The others go round a ring that begins at
    # another point each minute, so that every lane is read in time, however late its jobs are.
    point = ring_point(now)
    ring = sorted(
        known,
        key=lambda row: (lane_id(row.team, row.text) < point, lane_id(row.team, row.text)),
    )
    unseen = [row for row in ring if (row.team, row.text) not in ranks]
    by_head = dict.fromkeys(sorted(unseen, key=lambda row: row.head)[: MAX_LANES // 2])
    fresh = islice(dict.fromkeys((*by_head, *unseen)), MAX_LANES)
    short = [row for row in ring if 0 < len(ranks.get((row.team, row.text), ())) < HEADS]
    behind = ((row, ranks[row.team, row.text]) for row in short[:MAX_SHORT])
    return (
        *(LaneRead(lane=row, after=None, most=HEADS) for row in fresh),
        *(LaneRead(lane=row, after=max(ranked), most=HEADS - len(ranked)) for row, ranked in behind),
    )


def ring_point(now: datetime) -> str:
    """Return the id at which the lanes of this minute begin."""
    return f"{int(now.timestamp() // 60) * _GOLDEN % _RING:032x}"


def lane_id(team: str, text: str) -> str:
    """Return a lane's id, which spreads lanes evenly: those from any point on are of any team."""
    return hashlib.blake2b(f"{team}#{text}".encode(), digest_size=16).hexdigest()


def lane(shapes: Sequence[Shape], choice: Choice) -> str:
    """Return the lane of a job.

    Its jobs ask for the same, so a head that cannot start represents those behind it.
    """
    return short_lane(lane_text(shapes, choice))


def short_lane(text: str) -> str:
    """Shorten a lane's text for keys; a text that is short enough stays as it is."""
    if len(text) <= MAX_LANE_TEXT:
        return text
    return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()
