"""Summarise what a pass did and found: to decide whether it goes on, and for log lines and metrics."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import datetime

from trainmaster.core.errors import TrainmasterError
from trainmaster.core.monitoring.metric_samples import samples_of_instances
from trainmaster.core.monitoring.metrics import MESSAGES_PENDING, OLDEST_WAIT, PASSES_REPEATED, Sample
from trainmaster.core.planning.actions import Action, identity
from trainmaster.core.planning.chains import goes_on
from trainmaster.core.planning.snapshot import Snapshot
from trainmaster.core.policy import PoolPolicy
from trainmaster.core.records import StoredPolicy
from trainmaster.services.scheduler.executor import Outcome


@dataclass(frozen=True, slots=True)
class Chain:
    until: datetime | None
    """Time until which passes in a row have the pool; None if there is no chain."""


@dataclass(slots=True)
class Summary:
    """Collects what a pass did and found."""

    looks: int = 0
    done: list[Action] = field(default_factory=list)
    waiting_since: datetime | None = None
    """Submission of the oldest candidate, as the last look read it."""
    last: tuple[PoolPolicy, Snapshot] | None = None
    """Pool and snapshot of the last look."""
    counts_instances: bool = False
    messages_overdue: int = 0
    """Number of messages left for long, after the last look and as far as it read."""
    postponed: list[TrainmasterError] = field(default_factory=list)
    """Errors because of which actions and messages were left for later, one each."""
    reranked: int = 0
    """Number of jobs that got a score of the pool's new order."""
    failures: list[Exception] = field(default_factory=list)
    out_of_reach: set[str] = field(default_factory=set)
    """Jobs with unreadable rows, so far."""
    done_before: frozenset[tuple[object, ...]] = frozenset()
    """Actions of the last look, each with the state that it changed."""
    repeated: bool = False
    """Whether a look did only what the one before had done; then the pass was ended."""
    told_version: int = 0
    """Newest policy version in the pool's counters, if newer than the policy of a look."""
    took_over: bool = False
    """Whether lanes of the previous release were put into the pool's order, as far as the time went."""
    unfinished: bool = False
    """Whether the time was over before all was done."""
    hops: int = 0
    """Length of the chain of passes, see ``chains.hops_of_next``."""
    chain: Chain | None = None
    """The chain as the first look read it; None before the first look."""
    woken: set[str] = field(default_factory=set)
    """Other pools in which jobs became eligible: each is to have a pass."""
    left_alone: bool = False
    """Whether the pool was left to passes in a row."""

    def repeats(self, outcome: Outcome) -> bool:
        """Tell whether all that was done now was also done by the look before, to the same state."""
        done = frozenset(map(identity, outcome.done))
        self.repeated = bool(done) and done <= self.done_before
        self.done_before = done
        return self.repeated

    def leaves_pool(self, snapshot: Snapshot, *, now: datetime) -> bool:
        """Tell whether a chain of other passes has the pool, each of which requests the next."""
        self.chain = self.chain or Chain(until=snapshot.goes_on_until)
        self.left_alone = self.hops == 0 and goes_on(snapshot.goes_on_until, now=now)
        return self.left_alone

    def was_told_more(self, snapshot: Snapshot, stored: StoredPolicy) -> bool:
        """Tell once that the pool knows a newer policy, so that no claim decided on this one can succeed."""
        known = snapshot.policy_version or 0
        if known <= max(stored.version, self.told_version):
            return False
        self.told_version = known
        return True

    def leaves_out(self, jobs: Iterable[str]) -> bool:
        """Leave out these jobs; True if one of them is new, so that another look is worth it."""
        known = len(self.out_of_reach)
        self.out_of_reach |= set(jobs)
        return len(self.out_of_reach) > known

    def note(self, outcome: Outcome, snapshot: Snapshot, pool: PoolPolicy) -> None:
        self.looks += 1
        self.last = (pool, snapshot)
        self.done += outcome.done
        self.waiting_since = min((job.submitted_at for job in snapshot.waiting), default=None)
        self.postponed += [error for _, error in outcome.postponed]
        self.failures += outcome.failures

    def samples(self, pool: str, *, now: datetime) -> Iterator[Sample]:
        """Yield metrics of what waits and is left at the end of the pass; none for a pool that is gone."""
        if self.looks:
            oldest = self.waiting_since
            wait = 0.0 if oldest is None else (now - oldest).total_seconds()
            yield Sample(metric=OLDEST_WAIT, value=wait, of=pool)
            yield Sample(metric=MESSAGES_PENDING, value=self.messages_overdue, of=pool)
        if self.counts_instances and self.last is not None:
            pool_policy, snapshot = self.last
            yield from samples_of_instances(pool_policy, used=snapshot.used, warm=snapshot.warm)
        if self.repeated:
            yield Sample(metric=PASSES_REPEATED, value=1, of=pool)
