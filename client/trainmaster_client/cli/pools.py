"""``trainmaster pools``: what there is, who uses it, who waits."""

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Annotated, Any

import typer

from trainmaster_client.cli.connection import connect
from trainmaster_client.cli.queue_table import age
from trainmaster_client.cli.screen import JsonFlag, print_json, print_lines
from trainmaster_client.errors import MalformedViewError
from trainmaster_client.http.answers import printable

Part = Mapping[str, Any]
"""A JSON object of the answer."""


AheadFlag = Annotated[
    bool, typer.Option("--ahead", help="Show every change of the calendars in the next 7 days.")
]


def pools(*, ahead: AheadFlag = False, as_json: JsonFlag = False) -> None:
    """Show every pool: capacity, use, quotas of teams, warm pools, limits of the account."""
    document = connect().pools()
    if as_json:
        print_json(document)
        return
    try:
        lines = list(pool_lines(document.get("pools") or (), now=datetime.now(UTC), ahead=ahead))
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise MalformedViewError(f"{type(error).__name__}: {error}") from error
    print_lines(lines or ["No pools: an admin has to apply a policy."])


def pool_lines(views: Any, *, now: datetime, ahead: bool = False) -> Iterator[str]:  # noqa: ANN401  JSON
    for pool in views:
        yield f"{printable(pool['name'])}: {_waiting(pool, now)}"
        if pool.get("reranking"):
            yield "  its queue is being put into another order"
        yield from _capacity_lines(pool)
        yield from _calendar_lines(pool, ahead=ahead)
        rules = pool.get("fair_share") or {}
        yield from (_team_line(team, rules) for team in pool.get("teams") or ())
        for warm in pool.get("warm_pools") or ():
            yield (
                f"  warm: {int(warm['instances'])}x {printable(warm['instance_type'])}"
                f" until {printable(warm['expires_at'])}"
            )
        for limit in pool.get("account_limits") or ():
            what = f"{printable(limit['capacity_type'])} {printable(limit['instance_type'])}"
            until = printable(limit["until"])
            yield f"  the account allowed {int(limit['limit'])} {what}; the next try above it is at {until}"
        yield from (_pause_line(pause) for pause in pool.get("start_pauses") or ())


def _pause_line(pause: Part) -> str:
    role = printable(pause["role_arn"]) if pause.get("role_arn") else "a role of another team"
    message = printable(pause.get("message") or pause.get("code") or "")
    return (
        f"  starts with {role} are paused since {printable(pause['since'])}, AWS says {message};"
        f" the next try is at {printable(pause['next_probe_at'])} or later"
    )


def _waiting(pool: Part, now: datetime) -> str:
    count, since = int(pool.get("waiting") or 0), pool.get("oldest_waiting_since")
    if not count:
        return "no jobs waiting"
    oldest = f", the oldest for {age(datetime.fromisoformat(since), now)}" if since else ""
    return f"{count} waiting{oldest}"


def _capacity_lines(pool: Part) -> Iterator[str]:
    for kind, key in (("on-demand", "capacity"), ("spot", "spot_capacity")):
        for instance_type, count in (pool.get(key) or {}).items():
            parts = [
                f"{int((pool.get(part) or {}).get(kind, {}).get(instance_type, 0))} {part}"
                for part in ("used", "warm", "free")
            ]
            yield f"  {int(count)}x {printable(instance_type)} {kind}: {', '.join(parts)}"


def _calendar_lines(pool: Part, *, ahead: bool) -> Iterator[str]:
    """Yield the next change of the calendar, or all that are known."""
    changes = pool.get("calendar") or []
    for change in changes if ahead else changes[:1]:
        yield f"  from {printable(change['at'])} on: {_vector({'on-demand': change['capacity']})}"
    if len(changes) > 1 and not ahead:
        yield f"  and {len(changes) - 1} more changes in 7 days (--ahead)"


def _team_line(team: Part, rules: Part) -> str:
    parts = [f"uses {_vector(team.get('used'))}"]
    if team.get("quota") is not None:
        quota = team["quota"]
        limit = quota.get("borrowing_limit")
        may = "whatever is idle" if limit is None else _counts(limit)
        parts.append(f"of its quota of {_counts(quota.get('nominal') or {})}, may borrow {may}")
        parts.append(f"borrows {_vector(team.get('borrowed'))}")
    parts.append(f"{int(team.get('waiting') or 0)} waiting")
    if rules.get("weight"):
        parts.append(_share_text(team["fair_share"], str(rules["half_life"])))
    return f"  team {printable(team['name'])}: {', '.join(parts)}"


def _share_text(share: Part, half_life: str) -> str:
    """Say what a team has used of its share; a team without jobs in the pool has no share now."""
    if share.get("times") is None:
        return f"{float(share['instance_hours']):.1f} instance-hours used recently"
    part, points = f"{float(share['share']):.0%}", float(share["points"])
    used = f"used {float(share['times']):.1f} times its share of {part} (half-life {printable(half_life)})"
    return f"{used}: {points:+.1f} points"


def _vector(by_kind: Part | None) -> str:
    parts = [
        f"{int(count)}x {printable(instance_type)}{' spot' if kind == 'spot' else ''}"
        for kind, counts in (by_kind or {}).items()
        for instance_type, count in counts.items()
    ]
    return " + ".join(parts) or "nothing"


def _counts(counts: Part) -> str:
    return " + ".join(f"{int(count)}x {printable(name)}" for name, count in counts.items()) or "nothing"
