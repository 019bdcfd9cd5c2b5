"""One pass over one pool: look, decide, act, and look again until nothing is left to do."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from trainmaster.core.errors import TrainmasterError
from trainmaster.core.monitoring.alarms import missing_alarms
from trainmaster.core.monitoring.metrics import MESSAGES_PENDING, OLDEST_WAIT, Sample
from trainmaster.core.planning.actions import Action
from trainmaster.core.planning.planner import plan
from trainmaster.core.planning.snapshot import Snapshot
from trainmaster.core.policy import Policy, PoolPolicy, parse_policy
from trainmaster.core.records import StoredPolicy
from trainmaster.core.unmanaged.decisions import rules_for
from trainmaster.ports import (
    AlarmKeeper,
    Clock,
    JobReader,
    JobStore,
    Mailer,
    Notifier,
    OutboxStore,
    PolicyStore,
    PoolReader,
    SnapshotReader,
    TrainingApi,
)
from trainmaster.services.outbox_relay import relay_messages
from trainmaster.services.scheduler.context import PassContext
from trainmaster.services.scheduler.executor import Outcome, execute, explain
from trainmaster.services.scheduler.score_updates import Reranker, needs_reranking

LONGEST = timedelta(seconds=90)
"""A pass ends in time for the function's timeout (120 s)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Scheduler:
    policies: PolicyStore
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
    clock: Clock
    stack: str

    def run(self, pool: str, *, until: datetime) -> "Summary":
        """Run one pass. Two at once are harmless: each write is conditional, the loser looks again."""
        summary = Summary()
        while self._once(pool, summary, until=until) and self.clock() < until:
            continue
        return summary

    def _once(self, name: str, summary: "Summary", *, until: datetime) -> bool:
        """One look; True when something was done, so that another look is worth it."""
        stored = self.policies.current()
        policy = parse_policy(stored.document)
        written = policy.pool(name)
        if written is None:
            return self._tell(
                self._pass(PoolPolicy(name=name, capacity={}), policy, stored), summary, until=until
            )
        snapshot = self.snapshots.snapshot(written, policy=policy, paused=stored.paused, now=self.clock())
        pool_policy = rules_for(written, snapshot)
        decided = plan(snapshot, pool_policy, now=self.clock())
        context = self._pass(pool_policy, policy, stored)
        alarms = missing_alarms(snapshot, now=self.clock())
        outcome = execute((*decided.actions, *alarms), context)
        summary.note(outcome, snapshot)
        more = self._tell(context, summary, until=until)
        if outcome.gave_up:
            return False
        if outcome.done or more:
            return True
        explain(decided.reasons, snapshot.waiting, context)
        if not needs_reranking(snapshot, pool_policy):
            return False
        summary.reranked += self.reranker.run(pool_policy, until=until)
        return True

    @staticmethod
    def _tell(context: PassContext, summary: "Summary", *, until: datetime) -> bool:
        """Do messages, also of a pool that the policy has no more; True when there are more."""
        messages = relay_messages(context, until=until)
        summary.messages_overdue = messages.overdue
        summary.postponed += [error for _, error in messages.postponed]
        summary.failures += messages.failures
        return messages.more

    def _pass(self, pool_policy: PoolPolicy, policy: Policy, stored: StoredPolicy) -> PassContext:
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
            clock=self.clock,
            stack=self.stack,
            policy=policy,
            pool_policy=pool_policy,
        )


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
