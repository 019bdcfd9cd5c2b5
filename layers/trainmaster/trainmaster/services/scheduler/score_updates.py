"""Give every job of a pool a score of its new order, reading the queue through once.

Until that is done the queue is in a mixed order, shown as ``reranking``. Each job is one conditional write,
so a crash leaves a part done; the next pass goes on, and a job with its new score costs a read and no write.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from trainmaster.core.errors import LostRaceError, RowSetAsideError
from trainmaster.core.lifecycle import steps
from trainmaster.core.lifecycle.change import Change
from trainmaster.core.planning.order import score_again
from trainmaster.core.planning.snapshot import Snapshot
from trainmaster.core.policy import PoolPolicy
from trainmaster.ports import Clock, JobReader, JobStore, QueueReader
from trainmaster.services.deadline import Deadline

PAGE = 250
"""Queue entries of one read."""


def needs_reranking(snapshot: Snapshot, pool: PoolPolicy) -> bool:
    """Tell whether the order has changed, or a job was submitted under the old one while it did."""
    key = pool.order_key
    return snapshot.order_key != key or any(job.ranked_by != key for job in snapshot.waiting)


@dataclass(frozen=True, slots=True, kw_only=True)
class Reranker:
    store: JobStore
    queue: QueueReader
    reader: JobReader
    clock: Clock

    def run(self, pool: PoolPolicy, *, deadline: Deadline) -> int:
        """Go on until all jobs have their new score or the time is up; return how many were written."""
        written = 0
        for name in self._names(pool):
            if deadline.is_over:
                return written
            written += self._rerank(name, pool)
        self.store.ranked(pool.name, pool.order_key)
        return written

    def _names(self, pool: PoolPolicy) -> Iterator[str]:
        """Yield jobs with a score of another order; entries that move ahead meanwhile have the new one."""
        key = pool.order_key
        yield from (entry.name for entry in self.queue.running(pool.name) if entry.ranked_by != key)
        for page in (self._waiting(pool.name), self._parked(pool.name)):
            yield from (name for name, ranked_by in page if ranked_by != key)

    def _waiting(self, pool: str) -> Iterator[tuple[str, str]]:
        after: tuple[int, str] | None = None
        while entries := self.queue.waiting(pool, after=after, limit=PAGE):
            yield from ((entry.name, entry.ranked_by) for entry in entries)
            after = entries[-1].rank

    def _parked(self, pool: str) -> Iterator[tuple[str, str]]:
        after: tuple[int, str] | None = None
        while entries := self.queue.parked(pool, after=after, limit=PAGE):
            yield from ((entry.name, entry.ranked_by) for entry in entries)
            after = (entries[-1].parked_until_ms, entries[-1].name)

    def _rerank(self, name: str, pool: PoolPolicy) -> int:
        try:
            job = self.reader.job(name)
        except RowSetAsideError:
            return 0  # nobody can tell its turn; it keeps the one it has
        if job is None or job.is_final or job.ranked_by == pool.order_key:
            return 0
        score = score_again(job, job.priority, pool)
        after = steps.reranked(job, priority=job.priority, score=score, ranked_by=pool.order_key)
        try:
            self.store.commit([Change(before=job, after=after)], at=self.clock())
        except LostRaceError:
            return 0  # it moved on; the next pass looks again
        return 1
