"""When waiting jobs are likely to start, as ``GET /estimates`` says it for all of a pool at once."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Protocol, Self

from trainmaster_client.errors import TrainmasterClientError
from trainmaster_client.jobs.job_views import JobView

MOST_POOLS = 5
"""Each pool is a question of its own, and costs the API up to a second of CPU."""


class EstimatesApi(Protocol):
    def estimates(self, *, pool: str | None = None) -> Mapping[str, Any]: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class StartEstimate:
    p50: datetime
    """As likely as not it starts until then."""
    p90: datetime

    @classmethod
    def parse(cls, document: Mapping[str, Any]) -> Self:
        """Raises KeyError, TypeError or ValueError."""
        p50, p90 = (datetime.fromisoformat(document[key]) for key in ("p50", "p90"))
        return cls(p50=p50, p90=p90)


StartEstimates = Mapping[tuple[str, str | int], StartEstimate]
"""By pool and name; of other teams' jobs, which have none, by pool and position."""


def start_of(job: JobView, estimates: StartEstimates) -> StartEstimate | None:
    """None: it does not wait, or nothing can be said."""
    key = job.name or job.position
    return estimates.get((job.pool, key)) if job.is_waiting and key is not None else None


def start_estimates(api: EstimatesApi, jobs: Sequence[JobView]) -> StartEstimates | None:
    """Of the pools in which these wait, the first few; None where the stack does not estimate.

    They adorn a queue that is shown without them, too: whatever is wrong with them, it is not said.
    """
    pools = list(dict.fromkeys(job.pool for job in jobs if job.is_waiting and job.position is not None))
    found: dict[tuple[str, str | int], StartEstimate] = {}
    try:
        for pool in pools[:MOST_POOLS]:
            found |= _parsed(pool, api.estimates(pool=pool).get("estimates") or ())
    except (TrainmasterClientError, KeyError, TypeError, ValueError, AttributeError):
        return None
    return found


def _parsed(pool: str, entries: Iterable[Mapping[str, Any]]) -> StartEstimates:
    return {
        (pool, one["name"] or int(one["position"])): StartEstimate.parse(one)
        for one in entries
        if one.get("p50") is not None
    }
