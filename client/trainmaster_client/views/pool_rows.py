"""A pool in the words of every view: its instances by type, who waits, what its teams use, what is wrong."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from rich.cells import cell_len
from trainmaster.core.jobs.row_words import length, short_length

from trainmaster_client.errors import MalformedViewError
from trainmaster_client.http.answers import printable
from trainmaster_client.jobs.job_views import JobView
from trainmaster_client.views.short_names import middle_cut

_LEAST_NAME = 8
"""Cells of a pool's name."""
_KINDS = (("on-demand", "capacity"), ("spot", "spot_capacity"))
_SUFFIXES = {"spot": " spot", "plan": " on plans"}
Part = Mapping[str, Any]
"""A JSON object of the answer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Gauge:
    """Instances of one type and capacity type."""

    instance_type: str
    capacity_type: str
    capacity: int
    used: int
    warm: int
    free: int


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolRow:
    name: str
    waiting: str
    next_end: str
    """When the first of its jobs is certain to have given its instances back; empty if that is not known."""
    gauges: tuple[Gauge, ...]
    calendar: tuple[str, ...]
    """Changes of its capacity by its calendar in the next days, in order."""
    reservations: tuple[str, ...]
    """Reservations that hold or begin in the next days, the first to begin first."""
    plans: tuple[str, ...]
    """Its training plans: how many instances, and when their windows are."""
    teams: tuple[str, ...]
    warm: tuple[str, ...]
    """Its warm pools."""
    warnings: tuple[str, ...]
    """Phrases that say why jobs do not start, or what is about to change."""
    facts: tuple[str, ...]
    """The pool in phrases, the most important first: for one line."""

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


def pool_rows(pools: Sequence[Part], jobs: Sequence[JobView] = (), *, now: datetime) -> tuple[PoolRow, ...]:
    """Put pools into words, those with jobs first. Raises MalformedViewError.

    Args:
        pools: Pools of ``GET /pools``.
        jobs: Jobs of the queue as far as they are shown: ends of those that run are known by them.
        now: An instant with a zone.
    """
    try:
        by_name = {printable(pool["name"]): pool for pool in pools}
        order = dict.fromkeys([*(job.pool for job in jobs if job.pool in by_name), *by_name])
        live = [job for job in jobs if job.is_live]
        return tuple(
            _pool_row(name, by_name[name], [job for job in live if job.pool == name], now) for name in order
        )
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise MalformedViewError(f"{type(error).__name__}: {error}") from error


def _pool_row(name: str, pool: Part, live: Sequence[JobView], now: datetime) -> PoolRow:
    end, rules = _next_end(pool, live, now), pool.get("fair_share") or {}
    return PoolRow(
        name=name,
        waiting=_waiting(pool, now),
        next_end=end,
        gauges=tuple(_gauges(pool)),
        calendar=tuple(
            f"from {datetime.fromisoformat(change['at']):%Y-%m-%d %H:%M} UTC on {_counts(change['capacity'])}"
            for change in pool.get("calendar") or ()
        ),
        reservations=tuple(_reservation_text(reserved) for reserved in pool.get("reservations") or ()),
        plans=tuple(_plan_text(plan, now) for plan in pool.get("plans") or ()),
        teams=tuple(_team_text(team, rules) for team in pool.get("teams") or ()),
        warm=tuple(
            f"{int(warm['instances'])}x {printable(warm['instance_type'])} {_until(warm['expires_at'], now)}"
            + (f"; {printable(warm['because'])}" if warm.get("because") else "")
            for warm in pool.get("warm_pools") or ()
        ),
        warnings=tuple(_warnings(pool, now)),
        facts=tuple(_facts(pool, end)),
    )


def _reservation_text(reservation: Part) -> str:
    begin, end = (f"{datetime.fromisoformat(reservation[key]):%Y-%m-%d %H:%M} UTC" for key in ("from", "to"))
    return (
        f"reservation {printable(reservation['name'])}, {begin} to {end}:"
        f" {_counts(reservation['instances'])} for team {printable(reservation['team'])} alone"
    )


def _gauges(pool: Part) -> Iterator[Gauge]:
    for kind, key in _KINDS:
        for instance_type, capacity in (pool.get(key) or {}).items():
            used, warm, free = (
                int(((pool.get(part) or {}).get(kind) or {}).get(instance_type, 0))
                for part in ("used", "warm", "free")
            )
            yield Gauge(
                instance_type=printable(instance_type),
                capacity_type=kind,
                capacity=int(capacity),
                used=used,
                warm=warm,
                free=free,
            )


def _facts(pool: Part, end: str) -> Iterator[str]:
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
    if end:
        yield end


def _next_end(pool: Part, live: Sequence[JobView], now: datetime) -> str:
    """Say when instances are certain to be free, if every job that holds some is seen."""
    used = sum(_total(counts) for counts in (pool.get("used") or {}).values())
    ends = [job.ends_by for job in live if job.ends_by is not None]
    if not ends or sum(job.instance_count for job in live) < used:
        return ""
    return f"next certain end {f'in {short_length(min(ends) - now)}' if min(ends) > now else 'due'}"


def _waiting(pool: Part, now: datetime) -> str:
    count, since = int(pool.get("waiting") or 0), pool.get("oldest_waiting_since")
    if not count:
        return "no jobs waiting"
    oldest = f", the oldest for {length(now - datetime.fromisoformat(since))}" if since else ""
    return f"{count} waiting{oldest}"


def _warnings(pool: Part, now: datetime) -> Iterator[str]:
    if pool.get("recount"):
        yield f"nothing starts until the pool is recounted: {printable(pool['recount'].get('message'))}"
    if pool.get("reranking"):
        yield "its queue is being put into another order"
    for limit in pool.get("account_limits") or ():
        what = (
            f"{int(limit['limit'])} {printable(limit['capacity_type'])} {printable(limit['instance_type'])}"
        )
        yield f"the account allowed {what}; the next try above it is {_at(limit['until'], now)}"
    for pause in pool.get("start_pauses") or ():
        role = printable(pause["role_arn"]) if pause.get("role_arn") else "a role of another team"
        yield (
            f"starts with {role} have been paused for {length(now - datetime.fromisoformat(pause['since']))},"
            f" AWS says {printable(pause.get('message') or pause.get('code') or '')};"
            f" the next try is {_at(pause['next_probe_at'], now)} or later"
        )


def _at(text: str, now: datetime) -> str:
    at = datetime.fromisoformat(text)
    return f"in {short_length(at - now)}" if at > now else "due"


def _until(text: str, now: datetime) -> str:
    return f"for {short_length(datetime.fromisoformat(text) - now)}"


def _plan_text(plan: Part, now: datetime) -> str:
    name = printable(plan["arn"]).rpartition("/")[2]
    if not plan.get("instance_type"):
        return f"plan {name}: not described by SageMaker yet"
    count = f"{int(plan['instances'])}x {printable(plan['instance_type'])}, {int(plan['used'])} used"
    parts = [count, printable(plan["status"]).lower(), *_windows(plan, now)]
    if plan.get("trouble"):
        parts.append(f"not described since: {printable(plan['trouble'])}")
    return f"plan {name}: {', '.join(parts)}"


def _windows(plan: Part, now: datetime) -> Iterator[str]:
    window, later = plan.get("window"), plan.get("next")
    if window is not None:
        closes, ends = (datetime.fromisoformat(window[key]) for key in ("closes", "to"))
        word = "closes" if closes > now else "closed"
        yield f"{word} {closes:%Y-%m-%d %H:%M} UTC, ends {ends:%Y-%m-%d %H:%M} UTC"
    if later is not None:
        begins, ends = (datetime.fromisoformat(later[key]) for key in ("from", "to"))
        yield f"next window {begins:%Y-%m-%d %H:%M} to {ends:%Y-%m-%d %H:%M} UTC"
    if window is None and later is None:
        yield "no window to come"


def _team_text(team: Part, rules: Part) -> str:
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
    return f"{printable(team['name'])}: {', '.join(parts)}"


def _share_text(share: Part, half_life: str) -> str:
    """Say what a team has used of its share; a team without jobs in the pool has no share now."""
    if share.get("times") is None:
        return f"{float(share['instance_hours']):.1f} instance-hours used recently"
    part, points = f"{float(share['share']):.0%}", float(share["points"])
    used = f"used {float(share['times']):.1f} times its share of {part} (half-life {printable(half_life)})"
    return f"{used}: {points:+.1f} points"


def _vector(by_kind: Part | None) -> str:
    parts = [
        f"{int(count)}x {printable(instance_type)}{_SUFFIXES.get(kind, '')}"
        for kind, counts in (by_kind or {}).items()
        for instance_type, count in counts.items()
    ]
    return " + ".join(parts) or "nothing"


def _counts(counts: Part) -> str:
    return " + ".join(f"{int(count)}x {printable(name)}" for name, count in counts.items()) or "nothing"


def _total(counts: Part | None) -> int:
    return sum(int(count) for count in (counts or {}).values())
