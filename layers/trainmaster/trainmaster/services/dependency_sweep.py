"""Looks for jobs that wait for others which have ended long ago: a message was lost, or nobody left one.

That happens after a release that knows no conditions was rolled back to, or a table was restored. Each run
looks at some of the waiting jobs of a few pools, so its cost does not grow with how many there are.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from trainmaster.core.jobs.end_conditions import NOT_YET
from trainmaster.core.jobs.model import Job, epoch_ms
from trainmaster.core.outbox.derive import message_to_dependents
from trainmaster.ports import Clock, JobStore, PoolReader, QueueReader
from trainmaster.services.deadline import Deadline

MOST_JOBS = 50
"""Jobs of one pool and run; their parents are read with them."""
MOST_POOLS = 20
"""Pools of one run; the next one begins behind them."""
GRACE_MS = 5 * 60 * 1000
"""A parent that ended a moment ago has left a message that a pass is about to do."""


@dataclass(slots=True, kw_only=True)
class DependencySweep:
    """Leaves the message of an end again where a job still waits for it."""

    queue: QueueReader
    pools: PoolReader
    store: JobStore
    clock: Clock
    _upto: dict[str, str] = field(default_factory=dict)
    """Last job that this process looked at, by pool; a new process begins again."""
    _next_pool: int = 0

    def run(self, pools: Sequence[str], deadline: Deadline) -> Iterator[Exception]:
        """Look at some pools; yields what could not be done, for the next run."""
        for _ in range(min(MOST_POOLS, len(pools))):
            if deadline.is_over:
                return
            pool = pools[self._next_pool % len(pools)]
            self._next_pool += 1
            try:
                self._look_at(pool)
            except Exception as error:  # noqa: BLE001  one pool must not keep the others waiting
                yield error

    def _look_at(self, pool: str) -> None:
        after = (epoch_ms(NOT_YET), self._upto.get(pool, ""))
        entries = self.queue.parked(pool, after=after, limit=MOST_JOBS)
        self._upto[pool] = entries[-1].name if len(entries) == MOST_JOBS else ""
        jobs = self.pools.jobs(entry.name for entry in entries) if entries else {}
        children = [job for job in jobs.values() if job.waits_for_others]
        names = {condition.job for job in children if job.after for condition in job.after.open}
        parents = self.pools.jobs(sorted(names)) if names else {}
        for parent in parents.values():
            if self._ended_long_ago(parent) and self._is_waited_for(parent, children):
                self._leave_again(parent)

    def _ended_long_ago(self, parent: Job) -> bool:
        if not parent.is_final or parent.ended_at is None:
            return parent.is_final
        return epoch_ms(self.clock()) - epoch_ms(parent.ended_at) >= GRACE_MS

    @staticmethod
    def _is_waited_for(parent: Job, children: Sequence[Job]) -> bool:
        entry_id = parent.spec.entry_id
        return any(
            condition.entry_id == entry_id
            for child in children
            if child.after is not None
            for condition in child.after.open
        )

    def _leave_again(self, parent: Job) -> None:
        """One that is there already stays as it is."""
        self.store.leave(parent.spec.pool, [message_to_dependents(parent, at=self.clock())])
