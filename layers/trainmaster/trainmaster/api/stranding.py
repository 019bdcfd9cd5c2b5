"""Policy changes that take pools or types away: nobody may be left in what is no more.

The order matters. First the pools that lose something are closed to whoever was let in by the old policy,
then their jobs are looked for, then the new policy is put in force. A submission is stored either before
the closing, and then it is found, or it was judged by the new policy. A death on the way leaves the pools
closed for a minute at most; submissions of that minute are told to try again.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta

from trainmaster.api.request_context import ApiReader, Visit
from trainmaster.core.errors import FieldError, PolicyInUseError, TrainmasterError
from trainmaster.core.policy import DEFAULT_TEAM, Policy, PoolPolicy
from trainmaster.core.records import Closing

CLOSED_FOR = timedelta(minutes=1)
"""More than the API function may take (15 s), and than two clocks may differ."""
_EVERY = 1_000_000
"""More than a pool ever holds."""


@contextmanager
def closed_where_less(visit: Visit, new: Policy) -> Iterator[None]:
    """Pools that lose a type, or go, take no submissions that were judged by the policy before ``new``."""
    pools = tuple(pool.name for pool in visit.policy.pools if _removed(pool, new))
    if not pools:
        yield
        return
    now = visit.outside.clock()
    closing = Closing(
        pools=pools,
        teams=tuple(team.name for team in visit.policy.teams) or (DEFAULT_TEAM,),
        version=visit.stored.version,
        at=now,
        until=now + CLOSED_FOR,
    )
    visit.outside.policies.close(closing)
    try:
        yield
    except TrainmasterError:
        visit.outside.policies.reopen(closing)
        raise


def _removed(pool: PoolPolicy, new: Policy) -> frozenset[str]:
    after = new.pool(pool.name)
    return pool.instance_types - (after.instance_types if after else frozenset())


def refuse_strandings(old: Policy, new: Policy, reader: ApiReader) -> None:
    """Raises PolicyInUseError when a live or waiting job needs what the new policy does not have."""
    errors = [error for pool in old.pools for error in _strandings(pool, new, reader)]
    if errors:
        raise PolicyInUseError("live or waiting jobs need what the new policy removes", errors=errors)


def _strandings(pool: PoolPolicy, new: Policy, reader: ApiReader) -> Iterator[FieldError]:
    after = new.pool(pool.name)
    removed = _removed(pool, new)
    in_use = removed & _types_in_use(pool.name, reader) if removed else frozenset()
    if after is None and in_use:
        yield _stranding("pools", f"pool {pool.name} has live or waiting jobs")
    elif after is not None:
        for instance_type in sorted(in_use):
            field = f"pools[{new.pools.index(after)}].capacity"
            yield _stranding(field, f"pool {pool.name} has live or waiting jobs on {instance_type}")


def _stranding(field: str, message: str) -> FieldError:
    return FieldError(field=field, message=message, hint="set its capacity to 0 and drain")


def _types_in_use(pool: str, reader: ApiReader) -> frozenset[str]:
    """Of every job that is not final, alternatives too: a whole queue is read, as rarely as pools go."""
    waiting = reader.waiting(pool, after=None, limit=_EVERY)
    parked = reader.parked(pool, after=None, limit=_EVERY)
    asked = [shape.vector for job in (*waiting, *parked) for shape in job.shapes]
    held = [job.vector for job in reader.running(pool)]
    return frozenset(capacity.instance_type for vector in (*asked, *held) for capacity in vector)
