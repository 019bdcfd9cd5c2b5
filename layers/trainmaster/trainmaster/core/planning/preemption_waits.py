"""Waits of jobs whose preemptions did not help, before they may preempt again."""

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property

from trainmaster.core.jobs.futile_preemptions import FutilePreemptions
from trainmaster.core.jobs.instances import Capacity, Choice
from trainmaster.core.planning.snapshot import Snapshot, WaitingJob


@dataclass(kw_only=True)
class PreemptionWaits:
    """Waits of one pool's jobs at one instant: which of them may not preempt yet."""

    snapshot: Snapshot
    now: datetime

    def of(self, job: WaitingJob) -> FutilePreemptions | None:
        """Return why the job may stop no other now; None if it may.

        The wait ends at its deadline, or once AWS has served as many instances as the job did not get, to any
        attempt, of this job or of another, that reached Training since.
        """
        futile = job.futile
        if futile is None or futile.until <= self.now or self._is_served(futile):
            return None
        return futile

    def _is_served(self, futile: FutilePreemptions) -> bool:
        served = (
            self._last_served(capacity, least=count) > futile.since
            for capacity, count in futile.vector.items()
        )
        return any(served) if futile.choice is Choice.SAGEMAKER else all(served)

    def _last_served(self, capacity: Capacity, *, least: int) -> datetime:
        """Return when an attempt of at least this many instances last reached Training.

        The earliest instant of all is returned if none did.
        """
        starts = self._served.get(capacity, [])
        position = bisect_left(starts, least, key=lambda start: start[0])
        never = datetime.min.replace(tzinfo=self.now.tzinfo)
        return starts[position][1] if position < len(starts) else never

    @cached_property
    def _served(self) -> dict[Capacity, list[tuple[int, datetime]]]:
        """Counts of instances by type, rising, and when as many or more last reached Training."""
        newest: defaultdict[Capacity, dict[int, datetime]] = defaultdict(dict)
        for capacity, count, at in self._starts():
            known = newest[capacity].get(count)
            newest[capacity][count] = at if known is None else max(known, at)
        by_capacity: dict[Capacity, list[tuple[int, datetime]]] = {}
        for capacity, by_count in newest.items():
            # From the largest attempt down, so that each count knows the newest start of any larger one.
            falling = sorted(by_count.items(), reverse=True)
            last = falling[0][1]
            rising = [(count, last := max(last, at)) for count, at in falling]
            by_capacity[capacity] = rising[::-1]
        return by_capacity

    def _starts(self) -> Iterator[tuple[Capacity, int, datetime]]:
        for job in self.snapshot.running:
            if job.training_since is not None:
                for capacity, count in job.held:
                    yield capacity, count, job.training_since
        for (capacity, _), served in self.snapshot.served.items():
            yield capacity, served.instances, served.at


def waits_over(jobs: Iterable[WaitingJob], *, now: datetime) -> Iterator[tuple[str, datetime]]:
    """Yield the jobs that may stop no other yet, and when each of them may at the latest."""
    for job in jobs:
        if job.futile is not None and job.futile.until > now:
            yield job.name, job.futile.until
