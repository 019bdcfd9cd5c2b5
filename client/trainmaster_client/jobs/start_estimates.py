"""When waiting jobs are likely to start, as ``GET /estimates`` says it for all of a pool at once."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Protocol, Self

from trainmaster_client.errors import TrainmasterClientError
from trainmaster_client.jobs.job_views import JobView

MOST_POOLS = 5
"""Pools that are asked for: each is a call of its own, and costs the API up to a second of CPU."""


class EstimatesApi(Protocol):
    def estimates(self, *, pool: str | None = None) -> Mapping[str, Any]: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class StartEstimate:
    p50: datetime
    """The job is as likely as not to start by then."""
    p90: datetime

    @classmethod
    def parse(cls, document: Mapping[str, Any]) -> Self:
        """Raises KeyError, TypeError or ValueError."""
        p50, p90 = (datetime.fromisoformat(document[key]) for key in ("p50", "p90"))
        return cls(p50=p50, p90=p90)


StartEstimates = Mapping[tuple[str, str | int], StartEstimate]
"""Estimates by pool and name; those of other teams' jobs, which have no name here, by pool and position."""


def start_of(job: JobView, estimates: StartEstimates) -> StartEstimate | None:
    """Return the estimate of a job; None if it does not wait, or none is known."""
    key = job.name or job.position
    return estimates.get((job.pool, key)) if job.is_waiting and key is not None else None


def pools_to_ask(jobs: Sequence[JobView]) -> list[str]:
    """Return the first few pools in which these jobs wait for their turn."""
    pools = dict.fromkeys(job.pool for job in jobs if job.is_waiting and job.position is not None)
    return list(pools)[:MOST_POOLS]


def start_estimates(api: EstimatesApi, pools: Iterable[str]) -> StartEstimates | None:
    """Read the estimates of these pools; None if the stack has no estimates.

    They adorn a queue that is shown without them, too, so their errors are not reported.
    """
    estimates: dict[tuple[str, str | int], StartEstimate] = {}
    try:
        for pool in pools:
            estimates |= _parsed(pool, api.estimates(pool=pool).get("estimates") or ())
    except (TrainmasterClientError, KeyError, TypeError, ValueError, AttributeError):
        return None
    return estimates


def _parsed(pool: str, entries: Iterable[Mapping[str, Any]]) -> StartEstimates:
    return {
        (pool, entry["name"] or int(entry["position"])): StartEstimate.parse(entry)
        for entry in entries
        if entry.get("p50") is not None
    }
