"""Check once a minute whether passes consider the first jobs of each pool, and what these wait for."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import timedelta

from trainmaster.core.monitoring.metric_samples import MOST_COUNTED, samples_of_waiting
from trainmaster.core.monitoring.metrics import FIRST_UNSEEN, QUEUE_DEPTH, Sample
from trainmaster.core.monitoring.queue_front_looks import judged
from trainmaster.core.planning.snapshot import WaitingJob
from trainmaster.core.policy import PoolPolicy
from trainmaster.ports import Clock, FrontRegister, QueueReader


@dataclass(slots=True)
class Fronts:
    """Collects what a run of ``reconcile`` found about the pools' orders, as far as it could read them."""

    pools: tuple[PoolPolicy, ...] = ()
    """All pools, those included that could not be read."""
    depths: dict[str, int] = field(default_factory=dict)
    """Number of jobs that wait for their turn, by pool."""
    first: dict[str, tuple[WaitingJob, ...]] = field(default_factory=dict)
    """The first of these jobs, by pool, as many as are counted by type."""
    unseen: dict[str, timedelta] = field(default_factory=dict)
    """How long no pass has considered the first job of the order, by pool."""

    @property
    def longest_unseen(self) -> tuple[timedelta, str] | None:
        """Longest such time of all pools, with its pool; None if it is unknown for one pool."""
        if not self.pools or any(pool.name not in self.unseen for pool in self.pools):
            return None
        return max((age, pool) for pool, age in self.unseen.items())

    def samples(self) -> Iterator[Sample]:
        for pool, depth in self.depths.items():
            yield Sample(metric=QUEUE_DEPTH, value=depth, of=pool)
        if self.longest_unseen is not None:
            longest, pool = self.longest_unseen
            yield Sample(metric=FIRST_UNSEEN, value=longest.total_seconds(), note=pool)
        for pool_policy in self.pools:
            if pool_policy.name in self.first:
                yield from samples_of_waiting(pool_policy, self.first[pool_policy.name])


@dataclass(frozen=True, slots=True, kw_only=True)
class FrontLooks:
    queue: QueueReader
    fronts: FrontRegister
    clock: Clock

    def run(self, pool: str, fronts: Fronts) -> None:
        """Read the first jobs of a pool and note how long they go unseen; an empty queue costs nothing."""
        depth = fronts.depths[pool]
        first = self.queue.waiting(pool, after=None, limit=MOST_COUNTED) if depth else ()
        fronts.first[pool] = first
        fronts.unseen[pool] = self._unseen_for(pool, first[0] if first else None) if depth else timedelta()

    def _unseen_for(self, pool: str, first: WaitingJob | None) -> timedelta:
        front = self.fronts.front(pool)
        verdict = judged(first, front, now=self.clock())
        if verdict.unseen != front.unseen:
            self.fronts.note_unseen(pool, verdict.unseen)
        return verdict.unseen_for
