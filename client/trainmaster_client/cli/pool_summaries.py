"""One line a pool: what is used, free and warm, who waits, and when instances are certain to be free."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Self

from rich.cells import cell_len

from trainmaster_client.cli.short_names import middle_cut
from trainmaster_client.http.answers import printable
from trainmaster_client.jobs.instants import short_length
from trainmaster_client.jobs.job_views import JobView

MOST_POOLS = 8
"""Lines above the queue; more are counted."""
_LEAST_NAME = 8
"""Cells of a pool's name."""
_KINDS = (("on-demand", "capacity"), ("spot", "spot_capacity"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Share:
    """Instances of one capacity type, all instance types together."""

    used: int
    capacity: int
    free: int
    warm: int


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolSummary:
    name: str
    on_demand: Share
    spot: Share
    waiting: int
    next_end: datetime | None
    """When one of its jobs has surely given its instances back; None if not known."""

    @classmethod
    def parse(cls, pool: Mapping[str, Any], live: Sequence[JobView]) -> Self:
        """Read a pool and its ``live`` jobs, which hold instances. Raises KeyError, TypeError, ValueError."""
        on_demand, spot = (_share(pool, kind, key) for kind, key in _KINDS)
        ends = [job.ends_by for job in live if job.ends_by is not None]
        seen = sum(job.instance_count for job in live)
        return cls(
            name=printable(pool["name"]),
            on_demand=on_demand,
            spot=spot,
            waiting=int(pool.get("waiting") or 0),
            next_end=min(ends) if ends and seen >= on_demand.used + spot.used else None,
        )

    def line(self, *, now: datetime, width: int) -> str:
        """Write at most ``width`` cells: first in fewer words, then with less name, then with fewer facts."""
        facts = list(self._facts(now))
        brief = [fact.replace(" waiting", " wait").replace("certain end", "end") for fact in facts]
        for parts in (facts, brief):
            line = f"{self.name}: {', '.join(parts)}"
            if cell_len(line) <= width:
                return line
        while cell_len(rest := f": {', '.join(brief)}") + _LEAST_NAME > width and len(brief) > 1:
            brief.pop()
        return middle_cut(self.name, max(width - cell_len(rest), _LEAST_NAME)) + rest

    def _facts(self, now: datetime) -> Iterator[str]:
        on_demand, spot = self.on_demand, self.spot
        if on_demand.capacity or on_demand.used or not (spot.capacity or spot.used):
            yield f"{on_demand.used}/{on_demand.capacity} used"
            yield f"{on_demand.free} free"
            yield f"{on_demand.warm} warm"
        if spot.capacity or spot.used:
            yield f"spot {spot.used}/{spot.capacity} used"
        yield f"{self.waiting} waiting"
        if self.next_end is not None:
            when = f"in {short_length(self.next_end - now)}" if self.next_end > now else "due"
            yield f"next certain end {when}"


def _share(pool: Mapping[str, Any], kind: str, key: str) -> Share:
    used, free, warm = (_total((pool.get(part) or {}).get(kind)) for part in ("used", "free", "warm"))
    return Share(used=used, capacity=_total(pool.get(key)), free=free, warm=warm)


def _total(counts: Mapping[str, Any] | None) -> int:
    return sum(int(count) for count in (counts or {}).values())


def summary_lines(
    pools: Sequence[Mapping[str, Any]], jobs: Sequence[JobView], *, now: datetime, width: int
) -> list[str]:
    """Summarize the pools; those with the jobs come first.

    Raises KeyError, TypeError, ValueError or AttributeError.
    """
    by_name = {printable(pool["name"]): pool for pool in pools}
    order = dict.fromkeys([*(job.pool for job in jobs if job.pool in by_name), *by_name])
    summaries = [
        PoolSummary.parse(by_name[name], [job for job in jobs if job.is_live and job.pool == name])
        for name in list(order)[:MOST_POOLS]
    ]
    lines = [summary.line(now=now, width=width) for summary in summaries]
    unshown = len(order) - len(lines)
    return [*lines, f"... {unshown} more pools: trainmaster pools"] if unshown else lines
