"""The rows that follow from jobs, as the writes of a commit make them, so that a recount cannot drift."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from trainmaster.adapters.dynamodb import layout
from trainmaster.adapters.dynamodb.codec import encode
from trainmaster.adapters.dynamodb.counting import Update, Updates, places
from trainmaster.adapters.dynamodb.guard import Item
from trainmaster.adapters.dynamodb.layout import Key
from trainmaster.adapters.dynamodb.pool_rows import read_counters
from trainmaster.core.jobs.instances import parse_vector
from trainmaster.core.jobs.model import Job
from trainmaster.core.planning.candidates import lane
from trainmaster.core.planning.queue_entries import entry_of
from trainmaster.core.planning.snapshot import LaneRow
from trainmaster.core.records import SetAside

SUMS = (layout.USED, layout.WARM)
"""How fields begin that are counted; beside ``parked`` and ``waiting``."""


@dataclass(slots=True)
class Recount:
    """The rows that a pool should have."""

    entries: dict[Key, dict[str, Any]] = field(default_factory=dict)
    """Entries of queue, parking and running, by key."""
    lanes: dict[Key, LaneRow] = field(default_factory=dict)
    """Lanes in which jobs wait; rows of other lanes may exist, a pass drops them."""
    sums: dict[Key, dict[str, int]] = field(default_factory=dict)
    """Counted fields of the counters and of the teams."""
    kept: set[Key] = field(default_factory=set)
    """Entries of jobs that cannot be understood: they stay as they are, and count."""
    unknown: set[str] = field(default_factory=set)
    """Kinds of sums that a row does not tell: such fields stay as they are."""

    def judges(self, name: str) -> bool:
        return not name.startswith(tuple(self.unknown)) if self.unknown else True


def recounted(pool: str, jobs: Iterable[Job], broken: Iterable[Item], warm: Iterable[Item]) -> Recount:
    """Derive the rows that a pool should have from its jobs.

    Args:
        pool: Its name.
        jobs: All that are not final, and others for that matter.
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
    for item in broken:
        made.kept.add((item["pk"], item["sk"]))
        if not _count_entry(updates, pool, item):
            made.unknown.add(layout.USED)
    counters = updates[layout.counters_key(pool)].add
    for item in warm:
        if not _add_vector(counters, layout.WARM, item.get("vector")):
            made.unknown.add(layout.WARM)
    for key, one in updates.items():
        made.sums[key] = {name: count for name, count in one.add.items() if count}
    return made


def entries_of(job: Job) -> dict[Key, dict[str, Any]]:
    """The rows of queue, parking and pool of a job that is not final."""
    entry = entry_of(job)
    return dict.fromkeys(layout.row_keys(job.spec.pool, entry), encode(entry))


def lanes_of(pool: str, job: Job) -> dict[Key, LaneRow]:
    """The one it waits in, if it does."""
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
        return all(_add_vector(one, layout.USED, item.get("vector")) for one in (sums, counters))
    sums[layout.WAITING] += 1
    sums[layout.PARKED] += int(kind == "B")
    return True


def _add_vector(sums: Counter[str], prefix: str, text: Any) -> bool:
    """False: it cannot be read."""
    try:
        vector = parse_vector(text)
    except (AttributeError, TypeError, ValueError):
        return False
    for capacity, count in vector.items():
        sums[f"{prefix}{capacity}"] += count
    return True


def sums_of(item: Item) -> dict[str, Any]:
    """The counted fields of a row of counters or of a team, whatever they say."""
    counted = {name: content for name, content in item.items() if name.startswith(SUMS)}
    return counted | {name: item[name] for name in (layout.PARKED, layout.WAITING) if name in item}


def entry_fields(item: Item, wanted: Mapping[str, Any]) -> dict[str, Any]:
    """Select the comparable fields of a stored entry; those of a newer release are left alone."""
    return judged({name: item[name] for name in wanted if name in item})


def judged(entry: Mapping[str, Any]) -> dict[str, Any]:
    """One that waits says the version that its job had then: any number will do."""
    if "lease_until" in entry or type(entry.get("ver")) is not int:
        return dict(entry)
    return dict(entry) | {"ver": "any"}


def undecodable(item: Item) -> list[str]:
    """Attributes of the counters that count for nothing: holds, limits, instants, records of AWS."""
    found: list[SetAside] = []
    read_counters(item, found.append)
    prefix = "/".join((item.get("pk", ""), item.get("sk", ""), ""))
    names = (one.key.removeprefix(prefix) for one in found)
    parts = (layout.HOLD, layout.ACCOUNT_LIMIT, layout.LAST_END, layout.SERVED, layout.ROLE_STARTS)
    return sorted(one for one in names if one.startswith(parts))
