"""Warm pools: instances that a job leaves behind for the next one that asks for the same.

Source: SageMaker developer guide, "SageMaker AI Managed Warm Pools"; API reference, WarmPoolStatus.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any, TypeAlias


class PoolStatus(StrEnum):
    IN_USE = "InUse"
    """Used by a job that took another's pool; a job that was started cold has no pool while it runs."""
    AVAILABLE = "Available"
    REUSED = "Reused"
    TERMINATED = "Terminated"


@dataclass(frozen=True, slots=True, kw_only=True)
class WarmPool:
    status: PoolStatus
    kept_since: datetime | None = None
    """End of the job, from which the retention counts; None as long as the job runs."""
    kept_for: timedelta = timedelta()
    ended_at: datetime | None = None
    """When the retention ended, whichever way."""
    reused_by: str | None = None

    @property
    def due(self) -> datetime | None:
        """When it ends unless a job takes it; None if that is settled or not known yet."""
        if self.status is not PoolStatus.AVAILABLE or self.kept_since is None:
            return None
        return self.kept_since + self.kept_for

    def retained_seconds(self, now: datetime) -> int | None:
        """Return the seconds billed to the job that left it; None before it was left."""
        if self.kept_since is None:
            return None
        return round(((self.ended_at or now) - self.kept_since).total_seconds())

    def kept(self, wait: timedelta, now: datetime) -> "WarmPool":
        """Return the pool with another retention, counted from the job's end; one that is over ends now."""
        pool = replace(self, kept_for=wait)
        if pool.due is None or now < pool.due:
            return pool
        return replace(pool, status=PoolStatus.TERMINATED, ended_at=now)

    def at(self, now: datetime) -> "WarmPool":
        """Return its state at an instant: it ends by itself at its time, without an event."""
        if self.due is None or now < self.due:
            return self
        return replace(self, status=PoolStatus.TERMINATED, ended_at=self.due)

    def taken(self, job_name: str, now: datetime) -> "WarmPool":
        return replace(self, status=PoolStatus.REUSED, ended_at=now, reused_by=job_name)


IN_USE = WarmPool(status=PoolStatus.IN_USE)
TERMINATED = WarmPool(status=PoolStatus.TERMINATED)


def left_behind(wait: timedelta, now: datetime) -> WarmPool:
    return WarmPool(status=PoolStatus.AVAILABLE, kept_since=now, kept_for=wait)


_KEEPS_HOSTS = ("AlgorithmError", "ClientError")
"""Failures after which the pool is kept; any other may be the fault of the instances."""


def keeps_hosts(failure_reason: str | None) -> bool:
    return failure_reason is None or failure_reason.startswith(_KEEPS_HOSTS)


WarmKey: TypeAlias = tuple[Any, ...]


def warm_key(request: Mapping[str, Any], *, instance_type: str, instance_count: int) -> WarmKey:
    """Return what must be equal for one job to run on the instances of another."""
    resources, network = request["ResourceConfig"], request.get("VpcConfig", {})
    return (
        request["RoleArn"],
        instance_type,
        instance_count,
        resources.get("VolumeSizeInGB"),
        resources.get("VolumeKmsKeyId"),
        frozenset(network.get("Subnets", ())),
        frozenset(network.get("SecurityGroupIds", ())),
        request.get("EnableInterContainerTrafficEncryption", False),
        request.get("EnableNetworkIsolation", False),
        request.get("SessionChainingConfig", {}).get("EnableSessionTagChaining", False),
    )
