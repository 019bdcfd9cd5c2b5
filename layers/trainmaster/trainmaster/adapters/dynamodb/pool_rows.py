"""Decode rows of a pool, each by itself: counters attribute by attribute, teams, entries of lists."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, TypeVar

from trainmaster.adapters.dynamodb import layout
from trainmaster.adapters.dynamodb.array_layout import HAS_ARRAYS
from trainmaster.adapters.dynamodb.codec import decode, named
from trainmaster.adapters.dynamodb.guard import Item, Report, described, require, unreported
from trainmaster.adapters.dynamodb.start_rows import start_records
from trainmaster.core.jobs.futile_preemptions import ServedStart, ServedStarts, SizeClass, size_class
from trainmaster.core.jobs.instances import Capacity, Vector, parse_vector
from trainmaster.core.jobs.model import JobState
from trainmaster.core.planning.past_use import UsePeriod, UseSums
from trainmaster.core.planning.refusal_records import AccountLimit, RoleStarts
from trainmaster.core.planning.snapshot import (
    LaneRow,
    PreemptionReservation,
    RunningJob,
    WaitingJob,
    WarmPool,
)
from trainmaster.core.planning.start_records import StartRecords

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Counters:
    """The counters of a pool: its instances in use, and the marks stored beside them."""

    is_there: bool
    used: Vector
    warm: Vector
    holds: tuple[PreemptionReservation, ...]
    limits: Mapping[Capacity, AccountLimit]
    roles: Mapping[str, RoleStarts]
    """Outcomes of starts with each role, by ``starts_key``."""
    last_ends: Mapping[Capacity, datetime]
    served: ServedStarts
    start_records: StartRecords
    order_key: str | None
    policy_version: int | None
    goes_on_until: datetime | None
    teams: frozenset[str]
    """Teams that the pool is known to count."""
    counted: frozenset[str]
    """Names of the attributes of used and warm instances that exist, also at 0."""
    lost: bool
    """True if the counts of used or warm instances cannot be understood."""
    has_arrays: bool
    """Whether the pool ever had an array."""


def read_counters(item: Item | None, report: Report) -> Counters:
    """Decode the counters; unreadable holds, limits and instants are reported and left out."""
    counters = item or {}
    lost = False

    def counted(prefix: str) -> dict[Capacity, int]:
        nonlocal lost
        counts = dict(_named(counters, prefix, _count, report))
        lost = lost or len(counts) != sum(1 for _ in named(counters, prefix))
        return {Capacity.parse(name): count for name, count in counts.items() if count}

    used, warm = counted(layout.USED), counted(layout.WARM)
    order_key, version = counters.get(layout.ORDER_KEY), counters.get("policy_version")
    limits = _named(counters, layout.ACCOUNT_LIMIT, lambda _, content: decode(AccountLimit, content), report)
    ends = _named(counters, layout.LAST_END, lambda _, content: _aware(content), report)
    served = _named(counters, layout.SERVED, _served, report)
    return Counters(
        is_there=item is not None,
        used=used,
        warm=warm,
        holds=tuple(hold for _, hold in _named(counters, layout.HOLD, _hold, report)),
        limits={Capacity.parse(name): limit for name, limit in limits},
        roles=dict(
            _named(counters, layout.ROLE_STARTS, lambda _, content: decode(RoleStarts, content), report)
        ),
        last_ends={Capacity.parse(name): at for name, at in ends},
        served=dict(start for _, start in served),
        start_records=start_records(lambda prefix, make: _named(counters, prefix, make, report), _aware),
        order_key=order_key if isinstance(order_key, str) else None,
        policy_version=version if isinstance(version, int) else None,
        goes_on_until=_from_ms(counters.get(layout.GOES_ON_UNTIL)),
        teams=frozenset(name for name, _ in named(counters, layout.TEAM)),
        counted=frozenset(name for name in counters if name.startswith((layout.USED, layout.WARM))),
        lost=lost,
        has_arrays=HAS_ARRAYS in counters,
    )


def _named(item: Item, prefix: str, make: Callable[[str, Any], T], report: Report) -> Iterator[tuple[str, T]]:
    """Yield attributes of one kind, each decoded by itself."""
    for name, content in named(item, prefix):
        try:
            require(bool(name), "it has no name")
            made = make(name, content)
        except Exception as error:  # noqa: BLE001  the bulkhead: one attribute, whatever is wrong with it
            report(described(item, error, attribute=f"{prefix}{name}"))
        else:
            yield name, made


def _count(_: str, content: Any) -> int:
    """Check a count; increments of a row that was lost may leave it below zero."""
    require(type(content) is int and content >= 0, f"{content!r} is no count")
    return int(content)


def _past_use(text: str, content: Any) -> tuple[UsePeriod, int]:
    return UsePeriod.parse(text), _count(text, content)


def _whole(content: Any) -> int:
    require(type(content) is int, f"{content!r} is not a number")
    return int(content)


def _hold(name: str, content: Any) -> PreemptionReservation:
    hold = decode(PreemptionReservation, content)
    require(hold.preemptor == name, f"it is the hold of {hold.preemptor}")
    return hold


def _served(name: str, content: Any) -> tuple[SizeClass, ServedStart]:
    capacity = Capacity.parse(name.rpartition("#")[0])
    instances, at = content
    start = _from_ms(at)
    require(type(instances) is int and instances > 0 and start is not None, f"{content!r} is no start")
    assert start is not None
    return size_class(capacity, instances), ServedStart(instances=instances, at=start)


def _aware(text: str) -> datetime:
    at = datetime.fromisoformat(text)
    require(at.tzinfo is not None, f"{text!r} has no time zone")
    return at


def _from_ms(content: object) -> datetime | None:
    """Decode an instant; None also for a value that is not one."""
    if type(content) is not int:
        return None
    try:
        return _LONG_AGO + timedelta(milliseconds=content)
    except OverflowError:
        return None


@dataclass(frozen=True, slots=True, kw_only=True)
class TeamRow:
    name: str
    used: Vector = field(default_factory=dict)
    waiting: int = 0
    """Jobs that are neither live nor final."""
    parked: int = 0
    earlier_lanes: Mapping[str, int] = field(default_factory=dict)
    """Lanes that the previous release counted; such counts may be negative."""
    past_use: UseSums = field(default_factory=dict)
    is_counted: bool = False
    """Whether the row exists since the team's first job; rows of earlier releases do not say so."""

    @property
    def queued(self) -> int:
        """Number of jobs that wait for their turn."""
        return max(self.waiting - self.parked, 0)


def team_row(item: Item, report: Report = unreported) -> TeamRow:
    """Decode a team's row. Raises if one count is invalid, as then all of them are doubtful.

    Unreadable past use is left out.
    """
    for name in (layout.PARKED, layout.WAITING):
        _count(name, item.get(name, 0))
    used = {Capacity.parse(name): _count(name, count) for name, count in named(item, layout.USED)}
    return TeamRow(
        name=item["sk"],
        used={capacity: count for capacity, count in used.items() if count},
        waiting=item.get(layout.WAITING, 0),
        parked=item.get(layout.PARKED, 0),
        earlier_lanes={name: _whole(puts) for name, puts in named(item, layout.LANE) if name},
        past_use=dict(used for _, used in _named(item, layout.PAST_USE, _past_use, report)),
        is_counted=bool(item.get(layout.COUNTED)),
    )


def lane_row(item: Item) -> LaneRow:
    made = LaneRow(
        team=item[layout.LANE_TEAM],
        text=item[layout.LANE_TEXT],
        head=item.get(layout.LANE_HEAD, ""),
        puts=item[layout.LANE_PUTS],
    )
    require(layout.lane_key("", made.team, made.text)[1] == item["sk"], f"it is lane {made.text}")
    return made


def waiting_row(item: Item) -> WaitingJob:
    entry = decode(WaitingJob, item)
    require(item["sk"].partition("#")[2] == entry.name, f"it is the entry of {entry.name}")
    require(all(shape.vector for shape in entry.shapes) and bool(entry.shapes), "it asks for nothing")
    return entry


def running_row(item: Item) -> RunningJob:
    entry = decode(RunningJob, item)
    require(item["sk"] == entry.name, f"it is the entry of {entry.name}")
    return entry


def warm_row(item: Item) -> WarmPool:
    warm = decode(WarmPool, item)
    require(item["sk"] == warm.training_job_name, f"it is the warm pool of {warm.training_job_name}")
    return warm


_LONG_AGO = datetime(1970, 1, 1, tzinfo=UTC)


def slot_of(item: Item) -> RunningJob | None:
    """Read an unreadable row as a holder of instances: counted for its team, never stopped.

    None if even that fails.
    """
    try:
        team, vector = item["team"], parse_vector(item["vector"])
        require(isinstance(team, str) and bool(vector), "nobody can tell what it holds")
    except Exception:  # noqa: BLE001  not even that much: the counters alone know of it
        return None
    return RunningJob(
        name=item["sk"],
        ver=-1,
        team=team,
        state=JobState.RUNNING,
        vector=vector,
        priority=0,
        score=0,
        claimed_at=_LONG_AGO,
        lease_until=_LONG_AGO,
        training_job_name="",
        known_to_sagemaker=True,
        training_since=None,
        stop_sent=False,
        preemptible=False,
        has_checkpoint=False,
        preemptions=0,
    )
