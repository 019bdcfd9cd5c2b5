"""One world as data. What its values may be, and where they come from, is in ``table``."""

from collections.abc import Mapping
from dataclasses import dataclass

from local.worlds.endings import PendingEnd


class WorldError(Exception):
    """A value of a world is not known, or not what it has to be."""

    def __init__(self, name: str, problem: str) -> None:
        super().__init__(f"{name}: {problem}")
        self.name = name
        self.problem = problem


@dataclass(frozen=True, slots=True, kw_only=True)
class Latency:
    p50: float
    p99: float


@dataclass(frozen=True, slots=True, kw_only=True)
class World:
    """The behaviour of AWS; a None sets no limit there, or does nothing of the kind."""

    quotas: Mapping[str, Mapping[str, int]]
    """Instance type -> capacity type -> instances that may run at once; what is missing has no quota."""
    max_instances_per_job: int | None
    max_runtime_seconds: int | None
    max_keep_alive_seconds: int | None
    warm_pool_quota: int | None
    """Instances of one type that may be kept warm."""
    missing_types: tuple[str, ...]
    rates: Mapping[str, float]
    """Operation -> calls a second."""
    latency_seconds: Latency | None
    read_delay_seconds: float
    event_delay_seconds: tuple[float, float]
    """The least and the most; drawn evenly between them."""
    events_without_tags: float
    events_doubled: float
    events_reordered: float
    pending_end: PendingEnd | None
    """End of a job that waited too long without instances; None makes it fail at once without instances,
    whatever MaxPendingTimeInSeconds it has."""
