"""GET /pools: each pool of the policy, on several pages if one answer cannot hold them all."""

import json
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from datetime import datetime, timedelta
from http import HTTPStatus

from trainmaster.api.known_names import pools_asked
from trainmaster.api.paging import Mark, Room, Seal
from trainmaster.api.plan_views import plan_views
from trainmaster.api.pool_sharing import sharing_views
from trainmaster.api.request_context import Answer, ApiReader, RequestContext, read_flag
from trainmaster.api.views import View, instant_text, pool_view
from trainmaster.core.errors import FieldError, invalid
from trainmaster.core.jobs.end_conditions import NOT_YET
from trainmaster.core.planning.refusal_records import RoleStarts
from trainmaster.core.planning.wait_reasons import MAX_POSITION
from trainmaster.core.planning.warm_pools import why_kept
from trainmaster.core.policy import PoolPolicy
from trainmaster.core.records import PoolState

FEWEST_LOOKED_AT = 50
"""Waiting jobs read to find the longest wait, in each of many pools."""
_SECTION = "pools"

CALENDAR_SHOWN = timedelta(days=7)
"""Time ahead of which ``GET /pools`` shows the changes of a calendar, and reservations."""


def list_pools(context: RequestContext) -> Answer:
    """List at least one pool a page, so that following the tokens ends, however slow the table is."""
    given = context.call.parameters("pool", "next_token", "sharing")
    shares = read_flag(given, "sharing")
    bound = [_SECTION, given.get("pool"), *(["sharing"] if shares else [])]
    seal = Seal(key=bytes.fromhex(context.stored.seal_key), bound=json.dumps(bound))
    pools = pools_asked(context, given.get("pool"))
    after = seal.mark(given["next_token"]) if "next_token" in given else None
    left = pools if after is None else _behind(pools, str(after.order[0]))
    views: list[View] = []
    room = Room()
    for view in _views(left, context, shares=shares):
        fits = room.takes(view) and context.has_time
        if views and not fits:
            break
        views.append(view)
    is_cut = len(views) < len(left)
    end = Mark(section=_SECTION, order=(views[-1]["name"],), counted=0) if is_cut else None
    noted = context.outside.register.noted(now=context.outside.clock())  # of these reads, too
    by_pool = Counter(row.pool for row in noted)
    body = {
        "pools": [view | {"set_aside": by_pool[view["name"]]} for view in views],
        "set_aside": len(noted),
        "next_token": seal.token(end) if end else None,
    }
    return Answer(status=HTTPStatus.OK, body=body)


def _behind(pools: Sequence[PoolPolicy], name: str) -> Sequence[PoolPolicy]:
    for number, pool in enumerate(pools, start=1):
        if pool.name == name:
            return pools[number:]
    error = FieldError(
        field="query.next_token", message="is of a list that has changed", hint="start again without it"
    )
    raise invalid([error])


def _views(pools: Sequence[PoolPolicy], context: RequestContext, *, shares: bool) -> Iterator[View]:
    reader = context.outside.reader
    looks = max(MAX_POSITION // max(len(pools), 1), FEWEST_LOOKED_AT)
    for pool in pools:
        state, oldest = reader.pool_state(pool.name), _oldest(pool.name, reader, looks)
        now = context.outside.clock()
        view = pool_view(pool, state, oldest, now=now)
        kept = zip(view["warm_pools"], _why_kept(pool, state, now=now), strict=True)
        view["warm_pools"] = [warm_view | {"because": because} for warm_view, because in kept]
        if pool.calendar:  # older clients know no such key
            view["calendar"] = _calendar(pool, now=now)
        if pool.reservations:  # likewise
            view["reservations"] = _reservations(pool, now=now)
        if pool.plans:
            view["plans"] = plan_views(pool, state.used, is_admin=context.is_admin, now=now)
        if shares:
            view["sharing"] = sharing_views(pool, context, now=now)
        paused = pause_views(state.role_starts.values(), teams=None if context.is_admin else context.teams)
        yield view | {"start_pauses": paused} if paused else view  # older clients know no such key


def _why_kept(pool: PoolPolicy, state: PoolState, *, now: datetime) -> Iterator[str]:
    """Yield for each type of each warm pool, in the order of the view, why it is kept or being given up."""
    for warm in state.warm_pools:
        because = why_kept(warm, pool.warm_pool, state.warm_histories, now=now)
        yield from (because for _ in warm.vector)


def _calendar(pool: PoolPolicy, *, now: datetime) -> list[View]:
    """Show the changes of the calendar in the next days, in order."""
    soon = [change for change in pool.ahead if change.at <= now + CALENDAR_SHOWN]
    capacities = [pool.capacity, *(change.capacity for change in soon)]
    return [
        {"at": instant_text(change.at), "capacity": dict(change.capacity)}
        for before, change in zip(capacities, soon, strict=False)
        if change.capacity != before
    ]


def _reservations(pool: PoolPolicy, *, now: datetime) -> list[View]:
    """Show the reservations that hold, or begin in the next days, the first to begin first."""
    until = now + CALENDAR_SHOWN
    soon = [reserved for reserved in pool.reservations if now < reserved.to and reserved.from_ <= until]
    return [
        {
            "name": reservation.name,
            "team": reservation.team,
            "from": instant_text(reservation.from_),
            "to": instant_text(reservation.to),
            "instances": dict(reservation.instances),
        }
        for reservation in sorted(soon, key=lambda reservation: reservation.from_)
    ]


def _oldest(pool: str, reader: ApiReader, looks: int) -> datetime | None:
    """Return since when the longest wait lasts, among the first jobs of the pool."""
    waiting = reader.waiting(pool, after=None, limit=looks)
    parked = reader.parked(pool, after=None, limit=looks)
    turns = (entry for entry in (*waiting, *parked) if entry.not_before != NOT_YET)
    return min((entry.submitted_at for entry in turns), default=None)


def pause_views(roles: Iterable[RoleStarts], *, teams: Collection[str] | None) -> list[View]:
    """Show each pause of a pool, the longest first.

    AWS's messages name jobs, keys and subnets of the team whose start failed; others see only the code.

    Args:
        roles: Records of the pool.
        teams: The caller's; None for an admin, who sees everything.
    """
    views: list[tuple[str, View]] = []
    for role in roles:
        pause = role.pause
        if pause is None:
            continue
        may_read = teams is None or pause.team in teams
        since = instant_text(pause.since)
        view = {
            "role_arn": role.role_arn if may_read else None,
            "launcher_role": role.launcher if may_read else None,
            "since": since,
            "code": pause.code,
            "message": pause.message if may_read else None,
            "next_probe_at": instant_text(pause.next_probe_at),
        }
        views.append((f"{since}#{role.role_arn}", view))
    return [view for _, view in sorted(views, key=lambda entry: entry[0])]
