"""The first of each pool's order, read once a minute: whether passes look at them, and what they wait for."""

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
    """What a run of ``reconcile`` has found of the pools' orders, as far as it could be read."""

    pools: tuple[PoolPolicy, ...] = ()
    """All there are."""
    depths: dict[str, int] = field(default_factory=dict)
    """Jobs that wait in their turn, by pool."""
    first: dict[str, tuple[WaitingJob, ...]] = field(default_factory=dict)
    """Of those, by pool, as many as are counted by type."""
    unseen: dict[str, timedelta] = field(default_factory=dict)
    """How long no pass has looked at the first of the order, by pool."""

    @property
    def longest_unseen(self) -> tuple[timedelta, str] | None:
        """Of all pools, and which one it is; None: not known of every pool."""
        if not self.pools or any(pool.name not in self.unseen for pool in self.pools):
            return None
        return max((age, pool) for pool, age in self.unseen.items())

    def samples(self) -> Iterator[Sample]:
        for pool, depth in self.depths.items():
            yield Sample(metric=QUEUE_DEPTH, value=depth, of=pool)
        if self.longest_unseen is not None:
            longest, pool = self.longest_unseen
            yield Sample(metric=FIRST_UNSEEN, value=longest.total_seconds(), note=pool)
        for one in self.pools:
            if one.name in self.first:
                yield from samples_of_waiting(one, self.first[one.name])


@dataclass(frozen=True, slots=True, kw_only=True)
class FrontLooks:
    queue: QueueReader
    fronts: FrontRegister
    clock: Clock

    def run(self, pool: str, found: Fronts) -> None:
        """Where nobody waits it costs nothing."""
        depth = found.depths[pool]
        first = self.queue.waiting(pool, after=None, limit=MOST_COUNTED) if depth else ()
        found.first[pool] = first
        found.unseen[pool] = self._unseen_for(pool, first[0] if first else None) if depth else timedelta()

    def _unseen_for(self, pool: str, first: WaitingJob | None) -> timedelta:
        front = self.fronts.front(pool)
        verdict = judged(first, front, now=self.clock())
        if verdict.unseen != front.unseen:
            self.fronts.note_unseen(pool, verdict.unseen)
        return verdict.unseen_for
