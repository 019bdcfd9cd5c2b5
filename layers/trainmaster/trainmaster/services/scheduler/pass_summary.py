"""What a pass did and found: for whether it goes on, its log lines and its metrics."""

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
    """When it goes on; None: there is none."""


@dataclass(slots=True)
class Summary:
    """What a pass did and found, for its log lines and its metrics."""

    looks: int = 0
    done: list[Action] = field(default_factory=list)
    waiting_since: datetime | None = None
    """Submission of the oldest job at the front of the queue, as the last look found it."""
    last: tuple[PoolPolicy, Snapshot] | None = None
    """What the last look found."""
    counts_instances: bool = False
    messages_overdue: int = 0
    """Left for long, after the last look and as far as it read."""
    postponed: list[TrainmasterError] = field(default_factory=list)
    """Why actions and messages were left for later, one error each."""
    reranked: int = 0
    """Jobs that got a score of the pool's new order."""
    failures: list[Exception] = field(default_factory=list)
    out_of_reach: set[str] = field(default_factory=set)
    """Jobs with rows that cannot be understood, so far."""
    done_before: frozenset[tuple[object, ...]] = frozenset()
    """What the last look did, to which state of things."""
    repeated: bool = False
    """A look did what the one before had done, and nothing else: the pass was ended."""
    told_version: int = 0
    """Of the policy, by the pool's counters, where that was newer than the one that a look had."""
    took_over: bool = False
    """What the release before left was put into the pool's order, as far as the time went."""
    unfinished: bool = False
    """The time was over before there was nothing left to do."""
    hops: int = 0
    """As of ``chains.hops_of_next``."""
    chain: Chain | None = None
    """As the first look found it; None: nobody looked."""
    woken: set[str] = field(default_factory=set)
    """Other pools in which jobs became eligible: each is to have a pass."""
    left_alone: bool = False
    """The pool was left to passes in a row."""

    def repeats(self, outcome: Outcome) -> bool:
        """Whether all that was done now was done by the look before as well, to the same state of things."""
        done = frozenset(map(identity, outcome.done))
        self.repeated = bool(done) and done <= self.done_before
        self.done_before = done
        return self.repeated

    def leaves_pool(self, snapshot: Snapshot, *, now: datetime) -> bool:
        """True where others are at it, each of which asks for the next one."""
        self.chain = self.chain or Chain(until=snapshot.goes_on_until)
        self.left_alone = self.hops == 0 and goes_on(snapshot.goes_on_until, now=now)
        return self.left_alone

    def was_told_more(self, snapshot: Snapshot, stored: StoredPolicy) -> bool:
        """True, once, where the pool knows a newer policy: nothing decided on this one could be claimed."""
        known = snapshot.policy_version or 0
        if known <= max(stored.version, self.told_version):
            return False
        self.told_version = known
        return True

    def leaves_out(self, found: Iterable[str]) -> bool:
        """True where one of them is new, so that another look is worth it."""
        known = len(self.out_of_reach)
        self.out_of_reach |= set(found)
        return len(self.out_of_reach) > known

    def note(self, outcome: Outcome, snapshot: Snapshot, pool: PoolPolicy) -> None:
        self.looks += 1
        self.last = (pool, snapshot)
        self.done += outcome.done
        self.waiting_since = min((job.submitted_at for job in snapshot.waiting), default=None)
        self.postponed += [error for _, error in outcome.postponed]
        self.failures += outcome.failures

    def samples(self, pool: str, *, now: datetime) -> Iterator[Sample]:
        """What waits and what is left at the end of the pass; of a pool that is no more, nothing."""
        if self.looks:
            oldest = self.waiting_since
            wait = 0.0 if oldest is None else (now - oldest).total_seconds()
            yield Sample(metric=OLDEST_WAIT, value=wait, of=pool)
            yield Sample(metric=MESSAGES_PENDING, value=self.messages_overdue, of=pool)
        if self.counts_instances and self.last is not None:
            found, snapshot = self.last
            yield from samples_of_instances(found, used=snapshot.used, warm=snapshot.warm)
        if self.repeated:
            yield Sample(metric=PASSES_REPEATED, value=1, of=pool)
