"""Hands warm pools on to jobs that match, and keeps them for as long as is asked."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from random import Random
from typing import Any

from local.clock import TwinClock
from local.sagemaker.job_table import JobTable
from local.sagemaker.jobs import TrainingJob
from local.sagemaker.warm_pools import TERMINATED, PoolStatus, WarmPool
from local.wire import AwsError
from local.worlds import World, keeps_warm

_SHOWN_AS_TERMINATED = 0.5


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolKeeper:
    table: JobTable
    clock: TwinClock

    def add(self, job: TrainingJob) -> TrainingJob:
        """Put a new job into the table, on a pool that matches if there is one.

        Raises:
            AwsError: the name is taken.
        """
        with self.table.changing():
            match = self._match(job)
            added = job if match is None else job.on_pool()
            self.table.add(added)
            if match is not None:
                donor, pool = match
                taken = pool.taken(job.name, job.created_at)
                self.table.update(donor, lambda old: replace(old, warm_pool=taken))
        return added

    def kept_beside(self, job: TrainingJob) -> Counter[str]:
        """Count instances by type that are kept warm beside this new job: all but those it would take."""
        taken = self._match(job)
        kept: Counter[str] = Counter()
        for other in self.table.all():
            if has_pool(other, job.created_at) and (taken is None or other.name != taken[0]):
                kept[other.groups[0].instance_type] += other.groups[0].count
        return kept

    def keep(self, name: str, config: Mapping[str, Any]) -> TrainingJob:
        """Keep a pool by UpdateTrainingJob with a ResourceConfig. Raises ``AwsError`` if there is none."""
        now = self.clock.now()

        def kept(job: TrainingJob) -> TrainingJob:
            pool = _available(job, now)
            if pool is None:
                raise AwsError(
                    "ValidationException",
                    f"Training job {job.name} has no warm pool with status Available, so its "
                    "KeepAlivePeriodInSeconds cannot be updated.",
                )
            wait = timedelta(seconds=config["KeepAlivePeriodInSeconds"])
            request = {**job.request, "ResourceConfig": {**job.request["ResourceConfig"], **config}}
            return replace(job, request=request, warm_pool=pool.kept(wait, now), modified_at=now)

        return self.table.update(name, kept)

    def _match(self, job: TrainingJob) -> tuple[str, WarmPool] | None:
        """Return the matching pool that would end first, with the name of its job; None if none matches."""
        if job.warm_key is None:
            return None
        fitting = [
            (other.name, pool)
            for other in self.table.all()
            if (pool := _available(other, job.created_at)) is not None and other.warm_key == job.warm_key
        ]
        return min(fitting, key=lambda candidate: (candidate[1].due, candidate[0]), default=None)


def within_quota(job: TrainingJob, others: Iterable[TrainingJob], world: World, draw: Random) -> TrainingJob:
    """Return a job that has just ended, with the pool it leaves only if the account may keep it.

    Else WarmPoolStatus is Terminated or, if the job took nobody's pool, maybe not there at all; drawn, as
    AWS documents neither.
    """
    if job.ended_at is None or not has_pool(job, job.ended_at):
        return job
    group = job.groups[0]
    kept = sum(
        other.groups[0].count
        for other in others
        if other.name != job.name
        and has_pool(other, job.ended_at)
        and other.groups[0].instance_type == group.instance_type
    )
    if keeps_warm(world, group.count, kept):
        return job
    return replace(job, warm_pool=TERMINATED if draw.random() < _SHOWN_AS_TERMINATED else None)


def has_pool(job: TrainingJob, now: datetime) -> bool:
    """Tell whether instances are kept for the job, and billed."""
    return _available(job, now) is not None


def _available(job: TrainingJob, now: datetime) -> WarmPool | None:
    """Return the pool another job can take; None if its time is over."""
    if job.warm_pool is None:
        return None
    pool = job.warm_pool.at(now)
    return pool if pool.status is PoolStatus.AVAILABLE else None
