"""Whether a job whose preemptions did not help may preempt again."""

from collections.abc import Iterable, Iterator
from datetime import datetime

from trainmaster.core.jobs.futile_preemptions import FutilePreemptions
from trainmaster.core.jobs.instances import Capacity, Choice
from trainmaster.core.planning.snapshot import Snapshot, WaitingJob


def wait_in_force(job: WaitingJob, snapshot: Snapshot, *, now: datetime) -> FutilePreemptions | None:
    """Say why the job may stop nobody now; None: it may.

    Its wait is over when its time is, or once AWS has served as many instances as it did not get: to any
    attempt, of this job or of another, that reached Training since.
    """
    futile = job.futile
    if futile is None or futile.until <= now or _is_served(futile, snapshot):
        return None
    return futile


def waits_over(jobs: Iterable[WaitingJob], *, now: datetime) -> Iterator[tuple[str, datetime]]:
    """Give the jobs that stop nobody yet, and when each of them may at the latest."""
    for job in jobs:
        if job.futile is not None and job.futile.until > now:
            yield job.name, job.futile.until


def _is_served(futile: FutilePreemptions, snapshot: Snapshot) -> bool:
    served = (
        any(at > futile.since for at in _served_at(snapshot, capacity, least=count))
        for capacity, count in futile.vector.items()
    )
    return any(served) if futile.choice is Choice.SAGEMAKER else all(served)


def _served_at(snapshot: Snapshot, capacity: Capacity, *, least: int) -> Iterable[datetime]:
    """When attempts of at least so many instances reached Training."""
    for job in snapshot.running:
        if job.training_since is not None and job.vector.get(capacity, 0) >= least:
            yield job.training_since
    for (kind, _), served in snapshot.served.items():
        if kind == capacity and served.instances >= least:
            yield served.at
