"""One line a pool: what is used, free and warm, who waits, and when instances are certain to be free."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from rich.cells import cell_len
from trainmaster.core.jobs.spans import short_length

from trainmaster_client.http.answers import printable
from trainmaster_client.jobs.job_views import JobView
from trainmaster_client.views.short_names import middle_cut

_LEAST_NAME = 8
"""Cells of a pool's name."""
_KINDS = (("on-demand", "capacity"), ("spot", "spot_capacity"))


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolSummary:
    name: str
    facts: tuple[str, ...]
    """Phrases, the most important first."""

    def line(self, width: int) -> str:
        """Write at most ``width`` cells: first in fewer words, then with less name, then with fewer facts."""
        brief = [fact.replace(" waiting", " wait").replace("certain end", "end") for fact in self.facts]
        for parts in (self.facts, brief):
            line = f"{self.name}: {', '.join(parts)}"
            if cell_len(line) <= width:
                return line
        while cell_len(rest := f": {', '.join(brief)}") + _LEAST_NAME > width and len(brief) > 1:
            brief.pop()
        return middle_cut(self.name, max(width - cell_len(rest), _LEAST_NAME)) + rest


def pool_summaries(
    pools: Sequence[Mapping[str, Any]], jobs: Sequence[JobView], *, now: datetime
) -> tuple[PoolSummary, ...]:
    """Summarize the pools, those with jobs first; if one cannot be read there are none, as without pools."""
    try:
        by_name = {printable(pool["name"]): pool for pool in pools}
        order = dict.fromkeys([*(job.pool for job in jobs if job.pool in by_name), *by_name])
        live = [job for job in jobs if job.is_live]
        return tuple(
            PoolSummary(
                name=name, facts=tuple(_facts(by_name[name], [job for job in live if job.pool == name], now))
            )
            for name in order
        )
    except (KeyError, TypeError, ValueError, AttributeError):
        return ()


def _facts(pool: Mapping[str, Any], live: Sequence[JobView], now: datetime) -> Iterator[str]:
    """Yield what is said of a pool; ``live`` are its jobs that hold instances, as far as they are shown."""
    (used, capacity), (spot_used, spot_capacity) = (
        (_total((pool.get("used") or {}).get(kind)), _total(pool.get(key))) for kind, key in _KINDS
    )
    if capacity or used or not (spot_capacity or spot_used):
        yield f"{used}/{capacity} used"
        for part in ("free", "warm"):
            yield f"{_total((pool.get(part) or {}).get('on-demand'))} {part}"
    if spot_capacity or spot_used:
        yield f"spot {spot_used}/{spot_capacity} used"
    yield f"{int(pool.get('waiting') or 0)} waiting"
    ends = [job.ends_by for job in live if job.ends_by is not None]
    # An end is certain only if every job that holds instances is seen.
    if ends and sum(job.instance_count for job in live) >= used + spot_used:
        yield f"next certain end {f'in {short_length(min(ends) - now)}' if min(ends) > now else 'due'}"


def _total(counts: Mapping[str, Any] | None) -> int:
    return sum(int(count) for count in (counts or {}).values())
