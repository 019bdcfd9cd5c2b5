"""Derive rows from jobs, by the same code as the writes of a commit, so that a recount cannot drift."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from trainmaster.adapters.dynamodb import layout
from trainmaster.adapters.dynamodb.array_layout import is_array_key
from trainmaster.adapters.dynamodb.codec import encode
from trainmaster.adapters.dynamodb.counting import places
from trainmaster.adapters.dynamodb.guard import Item
from trainmaster.adapters.dynamodb.layout import Key
from trainmaster.adapters.dynamodb.pool_rows import read_counters
from trainmaster.adapters.dynamodb.updates import Update, Updates
from trainmaster.core.jobs.instances import parse_vector
from trainmaster.core.jobs.model import Job
from trainmaster.core.planning.candidates import lane
from trainmaster.core.planning.queue_entries import entry_of
from trainmaster.core.planning.snapshot import LaneRow
from trainmaster.core.records import SetAside

SUMS = (layout.USED, layout.WARM)
"""Prefixes of fields that are counted; ``parked`` and ``waiting`` are counted too."""


@dataclass(slots=True)
class Recount:
    """The rows that a pool should have."""

    entries: dict[Key, dict[str, Any]] = field(default_factory=dict)
    """Entries of queue, parking and running, by key."""
    lanes: dict[Key, LaneRow] = field(default_factory=dict)
    """Lanes in which jobs wait; rows of other lanes may exist, and a pass drops them."""
    sums: dict[Key, dict[str, int]] = field(default_factory=dict)
    """Counted fields of the counters and of the teams."""
    kept: set[Key] = field(default_factory=set)
    """Entries of unreadable jobs: they stay as they are, and are counted."""
    unknown: set[str] = field(default_factory=set)
    """Kinds of sums that an unreadable row leaves unknown: such fields stay as they are."""

    def judges(self, name: str) -> bool:
        return not name.startswith(tuple(self.unknown)) if self.unknown else True


def recounted(pool: str, jobs: Iterable[Job], broken: Iterable[Item], warm: Iterable[Item]) -> Recount:
    """Derive the rows that a pool should have from its jobs.

    Args:
        pool: Its name.
        jobs: All jobs of the pool that are not final; others are ignored.
        broken: Entries of jobs whose own rows cannot be understood.
        warm: Rows of the pool's warm pools.
    """
    made = Recount()
    updates: Updates = defaultdict(Update)
    for job in jobs:
        if not job.is_final and job.spec.pool == pool:
            places(updates, job, +1)
            made.entries |= entries_of(job)
            made.lanes |= lanes_of(pool, job)
    for row in broken:
        made.kept.add((row["pk"], row["sk"]))
        if not _count_entry(updates, pool, row):
            made.unknown.add(layout.USED)
    counters = updates[layout.counters_key(pool)].add
    for row in warm:
        if not _add_vector(counters, layout.WARM, row.get("vector")):
            made.unknown.add(layout.WARM)
    # What the tasks of an array add up to is in the array's row, which no pool counts.
    counted = {key: update.add for key, update in updates.items() if not is_array_key(key)}
    made.sums = {key: {name: count for name, count in sums.items() if count} for key, sums in counted.items()}
    return made


def entries_of(job: Job) -> dict[Key, dict[str, Any]]:
    """Return the rows of queue, parking and pool of a job that is not final."""
    entry = entry_of(job)
    return dict.fromkeys(layout.row_keys(job.spec.pool, entry), encode(entry))


def lanes_of(pool: str, job: Job) -> dict[Key, LaneRow]:
    """Return the lane that the job waits in, if it waits."""
    if job.is_live or job.is_final or job.is_parked:
        return {}
    text = lane(job.shapes, job.spec.choice)
    row = LaneRow(team=job.spec.team, text=text, head=layout.rank_text(job.score, job.name))
    return {layout.lane_key(pool, row.team, text): row}


def _count_entry(updates: Updates, pool: str, item: Item) -> bool:
    """Count a job that cannot be read by its entry alone; False if its instances are unknown."""
    kind = item["pk"].partition("#")[0]
    team = item.get("team")
    if kind in {"O", "OT"}:
        return True  # counted by its row in the lane
    if not isinstance(team, str):
        return bool(kind != "R")
    sums = updates[layout.team_key(pool, team)].add
    if kind == "R":
        counters = updates[layout.counters_key(pool)].add
        return all(_add_vector(counts, layout.USED, item.get("vector")) for counts in (sums, counters))
    sums[layout.WAITING] += 1
    sums[layout.PARKED] += int(kind == "B")
    return True


def _add_vector(sums: Counter[str], prefix: str, text: Any) -> bool:
    """Add a vector to the sums; return False if it is unreadable."""
    try:
        vector = parse_vector(text)
    except (AttributeError, TypeError, ValueError):
        return False
    for capacity, count in vector.items():
        sums[f"{prefix}{capacity}"] += count
    return True


def sums_of(item: Item) -> dict[str, Any]:
    """Select the counted fields of a row of counters or of a team, whatever their values."""
    counted = {name: content for name, content in item.items() if name.startswith(SUMS)}
    return counted | {name: item[name] for name in (layout.PARKED, layout.WAITING) if name in item}


def entry_fields(item: Item, wanted: Mapping[str, Any]) -> dict[str, Any]:
    """Select the comparable fields of a stored entry; those of a newer release are left alone."""
    return judged({name: item[name] for name in wanted if name in item})


def judged(entry: Mapping[str, Any]) -> dict[str, Any]:
    """Ignore the version of a waiting entry, which is the job's at that time: any number will do."""
    if "lease_until" in entry or type(entry.get("ver")) is not int:
        return dict(entry)
    return dict(entry) | {"ver": "any"}


def undecodable(item: Item) -> list[str]:
    """List the attributes of the counters that cannot be decoded and so count for nothing."""
    set_aside: list[SetAside] = []
    read_counters(item, set_aside.append)
    prefix = "/".join((item.get("pk", ""), item.get("sk", ""), ""))
    names = (row.key.removeprefix(prefix) for row in set_aside)
    parts = (layout.HOLD, layout.ACCOUNT_LIMIT, layout.LAST_END, layout.SERVED, layout.ROLE_STARTS)
    return sorted(name for name in names if name.startswith(parts))
