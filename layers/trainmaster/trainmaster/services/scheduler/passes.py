"""One pass over one pool: look, decide, act, and look again until nothing is left to do."""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from trainmaster.core.errors import TrainmasterError, UnavailableError
from trainmaster.core.jobs.attempts import Reason
from trainmaster.core.monitoring.alarms import missing_alarms
from trainmaster.core.monitoring.first_look import EVERY, Look
from trainmaster.core.monitoring.metrics import MESSAGES_PENDING, OLDEST_WAIT, PASSES_REPEATED, Sample
from trainmaster.core.planning.actions import Action, identity
from trainmaster.core.planning.chains import goes_on
from trainmaster.core.planning.planner import plan
from trainmaster.core.planning.snapshot import Snapshot
from trainmaster.core.policy import Policy, PoolPolicy
from trainmaster.core.records import StoredPolicy
from trainmaster.core.unmanaged.decisions import rules_for
from trainmaster.ports import (
    AlarmKeeper,
    Beside,
    Clock,
    FrontRegister,
    JobReader,
    JobStore,
    Mailer,
    Notifier,
    OutboxStore,
    PoolReader,
    SnapshotReader,
    TrainingApi,
    Turns,
)
from trainmaster.services.deadline import Deadline
from trainmaster.services.outbox_relay import relay_messages
from trainmaster.services.policy_in_force import RecentPolicy
from trainmaster.services.scheduler.broken_rows import without
from trainmaster.services.scheduler.context import PassContext
from trainmaster.services.scheduler.executor import Outcome, execute
from trainmaster.services.scheduler.explanations import explain
from trainmaster.services.scheduler.score_updates import Reranker, needs_reranking

LONGEST_LOOK = timedelta(seconds=20)
"""What a look decided is carried out for so long; then another one decides anew."""

CLOCKS_APART = timedelta(seconds=2)
"""At most, that of the queue and ours: a wake-up that was sent just before a pass began gets its own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Scheduler:
    policy: RecentPolicy
    snapshots: SnapshotReader
    store: JobStore
    messages: OutboxStore
    reader: JobReader
    pools: PoolReader
    training: TrainingApi
    alarms: AlarmKeeper
    notifier: Notifier
    mailer: Mailer
    reranker: Reranker
    turns: Turns
    beside: Beside
    fronts: FrontRegister
    clock: Clock
    stack: str
    _noted: dict[str, datetime] = field(default_factory=dict, init=False)
    """When this process last wrote down a look, by pool."""
    _began: dict[str, datetime] = field(default_factory=dict, init=False)
    """When this process began its last pass that left nothing to others, by pool."""

    def run(self, pool: str, *, deadline: Deadline, hops: int = 0) -> "Summary":
        """Run one pass. Two at once are harmless: each write is conditional, the loser looks again.

        Args:
            pool: By name, or ``UNMANAGED``.
            deadline: Nothing is begun after it.
            hops: As of ``chains.hops_of_next``; 0: it leaves the pool to others that are at it.
        """
        summary = Summary(hops=hops)
        began, goes_on = self.clock(), True
        while goes_on and not deadline.is_over:
            goes_on = self.look(pool, summary, deadline=deadline)
        summary.unfinished |= goes_on
        if not summary.failures:
            self._began[pool] = began
        return summary

    def has_answered(self, pool: str, rung_at: datetime) -> bool:
        """Whether a pass that began after a wake-up was sent has seen what that was sent for.

        What a pass did not finish has a wake-up of its own.
        """
        began = self._began.get(pool)
        return began is not None and rung_at + CLOCKS_APART < began <= self.clock()

    def look(self, name: str, summary: "Summary", *, deadline: Deadline) -> bool:
        """One look; True when something was done, so that another look is worth it."""
        found = self.policy.of_pool(name, at_least=summary.told_version)
        stored, policy = found.stored, found.policy
        written = policy.pool(name)
        if written is None:
            nothing = PoolPolicy(name=name, capacity={})
            return self._tell(self._pass(nothing, policy, stored, deadline), summary)
        snapshot = self._snapshot(written, policy, stored, summary)
        if summary.leaves_pool(snapshot, now=self.clock()):
            return False
        if summary.was_told_more(snapshot, stored) or self._takes_over(name, snapshot, summary, deadline):
            return True
        pool_policy = rules_for(written, snapshot)
        decided = plan(snapshot, pool_policy, now=self.clock())
        self._note_look(name, snapshot)
        context = self._pass(pool_policy, policy, stored, deadline)
        alarms = missing_alarms(snapshot, now=self.clock())
        brief = replace(context, deadline=deadline.within(LONGEST_LOOK))
        outcome = execute((*decided.actions, *alarms), brief)
        repeats = summary.repeats(outcome)
        summary.note(outcome, snapshot)
        more = self._tell(context, summary)
        if outcome.gave_up or repeats:
            return False
        if (
            outcome.done
            or outcome.removed
            or outcome.refused
            or more
            or summary.leaves_out(outcome.out_of_reach)
        ):
            return True
        if outcome.left:
            summary.unfinished = True
            return False
        return self._settle(decided.reasons, snapshot, context, summary)

    def _settle(
        self, reasons: Mapping[str, Reason], snapshot: Snapshot, context: PassContext, summary: "Summary"
    ) -> bool:
        """Nothing is left to start or to stop; True when another look is worth it all the same."""
        if summary.leaves_out(explain(reasons, snapshot.waiting, context, summary.failures)):
            return True
        if context.deadline.is_over:
            return True
        if snapshot.empty_lanes:
            self.store.drop_lanes(context.pool, snapshot.empty_lanes)
        if not needs_reranking(snapshot, context.pool_policy):
            return False
        summary.reranked += self.reranker.run(context.pool_policy, deadline=context.deadline)
        return True

    def _snapshot(
        self, pool: PoolPolicy, policy: Policy, stored: StoredPolicy, summary: "Summary"
    ) -> Snapshot:
        """Without those that earlier looks of the pass found out of reach."""
        out_of_reach = frozenset(summary.out_of_reach)
        now = self.clock()
        found = self.snapshots.snapshot(pool, policy=policy, paused=stored.paused, now=now, skip=out_of_reach)
        if found.policy_version is None or found.policy_version < stored.version:
            self.store.tell_policy(pool.name, stored.version)
        return without(found, out_of_reach)

    def _takes_over(self, pool: str, snapshot: Snapshot, summary: "Summary", deadline: Deadline) -> bool:
        """Once in a pass, what the release before left, as far as it gets: nobody waits for the rest."""
        if not snapshot.earlier_lanes or summary.took_over:
            summary.unfinished |= bool(snapshot.earlier_lanes)
            return False
        brief = deadline.within(LONGEST_LOOK)
        self.store.take_over(pool, snapshot.earlier_lanes, in_time=lambda: not brief.is_over)
        summary.took_over = True
        return True

    def _note_look(self, pool: str, snapshot: Snapshot) -> None:
        """For ``reconcile``, who tells when the first is not looked at; only where somebody waits."""
        now, last = self.clock(), self._noted.get(pool)
        if not snapshot.waiting or (last is not None and timedelta() <= now - last < EVERY):
            return
        with suppress(UnavailableError):  # it says no more than that this pass was here
            self.fronts.note_look(pool, Look.over(snapshot.waiting, at=now))
            self._noted[pool] = now

    @staticmethod
    def _tell(context: PassContext, summary: "Summary") -> bool:
        """Do messages, also of a pool that the policy has no more; True when there are more."""
        messages = relay_messages(context)
        summary.messages_overdue = messages.overdue
        summary.postponed += [error for _, error in messages.postponed]
        summary.failures += messages.failures
        return messages.more

    def _pass(
        self, pool_policy: PoolPolicy, policy: Policy, stored: StoredPolicy, deadline: Deadline
    ) -> PassContext:
        return PassContext(
            pool=pool_policy.name,
            policy_version=stored.version,
            store=self.store,
            messages=self.messages,
            reader=self.reader,
            pools=self.pools,
            training=self.training,
            alarms=self.alarms,
            notifier=self.notifier,
            mailer=self.mailer,
            turns=self.turns,
            beside=self.beside,
            clock=self.clock,
            deadline=deadline,
            stack=self.stack,
            policy=policy,
            pool_policy=pool_policy,
        )


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

    def note(self, outcome: Outcome, snapshot: Snapshot) -> None:
        self.looks += 1
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
        if self.repeated:
            yield Sample(metric=PASSES_REPEATED, value=1, of=pool)
