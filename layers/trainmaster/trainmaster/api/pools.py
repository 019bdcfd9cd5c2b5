"""GET /pools."""

from datetime import datetime
from http import HTTPStatus

from trainmaster.api.request_context import Answer, ApiReader, Visit
from trainmaster.api.views import MAX_POSITION, pool_view


def list_pools(visit: Visit) -> Answer:
    visit.call.parameters()
    reader = visit.outside.reader
    pools = [
        pool_view(pool, reader.pool_state(pool.name), _oldest(pool.name, reader))
        for pool in visit.policy.pools
    ]
    return Answer(status=HTTPStatus.OK, body={"pools": pools})


def _oldest(pool: str, reader: ApiReader) -> datetime | None:
    """When the longest wait began; looks at as many jobs as have an exact position."""
    waiting = reader.waiting(pool, after=None, limit=MAX_POSITION)
    parked = reader.parked(pool, after=None, limit=MAX_POSITION)
    return min((entry.submitted_at for entry in (*waiting, *parked)), default=None)
