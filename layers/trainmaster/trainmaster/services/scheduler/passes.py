"""Run one pass over one pool: look, decide, act, and look again until nothing is left to do."""

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from types import MappingProxyType

from trainmaster.core.errors import UnavailableError
from trainmaster.core.jobs.attempts import Reason
from trainmaster.core.monitoring.alarms import missing_alarms
from trainmaster.core.monitoring.queue_front_looks import EVERY, Look
from trainmaster.core.planning.planner import plan
from trainmaster.core.planning.refusal_records import RoleStarts
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
from trainmaster.services.policy_in_force import RecentPolicy
from trainmaster.services.scheduler.broken_rows import without
from trainmaster.services.scheduler.context import KnownRoles, PassContext
from trainmaster.services.scheduler.executor import execute
from trainmaster.services.scheduler.explanations import explain
from trainmaster.services.scheduler.outbox_relay import relay_messages
from trainmaster.services.scheduler.pass_summary import Summary
from trainmaster.services.scheduler.score_updates import Reranker, needs_reranking

LONGEST_LOOK = timedelta(seconds=20)
"""How long the decisions of one look are carried out before another look decides again."""

CLOCKS_APART = timedelta(seconds=2)
"""Longest difference of the queue's clock and ours: a wake-up sent just before a pass gets its own pass."""


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
    """When this process last recorded a look, by pool."""
    _counted: dict[str, datetime] = field(default_factory=dict, init=False)
    """When this process last counted the instances of a pool."""
    _began: dict[str, datetime] = field(default_factory=dict, init=False)
    """When this process began its last pass without failures, by pool."""

    def run(self, pool: str, *, deadline: Deadline, hops: int = 0) -> Summary:
        """Run one pass. Two at once are harmless: each write is conditional, and the loser looks again.

        Args:
            pool: Name of the pool, or ``UNMANAGED``.
            deadline: Nothing is begun after it.
            hops: Length of the chain, see ``chains.hops_of_next``; 0 leaves a pool alone that has a chain.
        """
        summary = Summary(hops=hops)
        began, goes_on = self.clock(), True
        while goes_on and not deadline.is_over:
            goes_on = self.look(pool, summary, deadline=deadline)
        summary.unfinished |= goes_on
        if not summary.failures:
            self._began[pool] = began
        if self._is_due(self._counted, pool):
            self._counted[pool] = began
            summary.counts_instances = True
        return summary

    def _is_due(self, last: Mapping[str, datetime], pool: str) -> bool:
        """Tell whether a minute has passed, as far as this process knows."""
        return pool not in last or not timedelta() <= self.clock() - last[pool] < EVERY

    def has_answered(self, pool: str, rung_at: datetime) -> bool:
        """Tell whether a pass that began after a wake-up was sent has handled what it was sent for.

        A pass that did not finish requests its own follow-up.
        """
        began = self._began.get(pool)
        return began is not None and rung_at + CLOCKS_APART < began <= self.clock()

    def look(self, name: str, summary: Summary, *, deadline: Deadline) -> bool:
        """Take one look; True if something was done, so that another look is worth it."""
        in_force = self.policy.of_pool(name, at_least=summary.told_version)
        stored, policy = in_force.stored, in_force.policy
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
        context = self._pass(pool_policy, policy, stored, deadline, role_starts=snapshot.role_starts)
        alarms = missing_alarms(snapshot, now=self.clock())
        brief = replace(context, deadline=deadline.within(LONGEST_LOOK))
        outcome = execute((*decided.actions, *alarms), brief)
        repeats = summary.repeats(outcome)
        summary.note(outcome, snapshot, pool_policy)
        are_more = self._tell(context, summary)
        if outcome.gave_up or repeats:
            return False
        if (
            outcome.done
            or outcome.removed
            or outcome.refused
            or outcome.held_back
            or are_more
            or summary.leaves_out(outcome.out_of_reach)
        ):
            return True
        if outcome.left:
            summary.unfinished = True
            return False
        return self._settle(decided.reasons, snapshot, context, summary)

    def _settle(
        self, reasons: Mapping[str, Reason], snapshot: Snapshot, context: PassContext, summary: Summary
    ) -> bool:
        """Explain and tidy once nothing is left to start or stop; True if another look is worth it anyway."""
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

    def _snapshot(self, pool: PoolPolicy, policy: Policy, stored: StoredPolicy, summary: Summary) -> Snapshot:
        """Read the pool without the jobs that earlier looks of the pass found unreadable."""
        out_of_reach = frozenset(summary.out_of_reach)
        now = self.clock()
        snapshot = self.snapshots.snapshot(
            pool, policy=policy, paused=stored.paused, now=now, skip=out_of_reach
        )
        if snapshot.policy_version is None or snapshot.policy_version < stored.version:
            self.store.tell_policy(pool.name, stored.version)
        return without(snapshot, out_of_reach)

    def _takes_over(self, pool: str, snapshot: Snapshot, summary: Summary, deadline: Deadline) -> bool:
        """Take over lanes of the previous release, once in a pass and as far as it gets."""
        if not snapshot.earlier_lanes or summary.took_over:
            summary.unfinished |= bool(snapshot.earlier_lanes)
            return False
        brief = deadline.within(LONGEST_LOOK)
        self.store.take_over(pool, snapshot.earlier_lanes, in_time=lambda: not brief.is_over)
        summary.took_over = True
        return True

    def _note_look(self, pool: str, snapshot: Snapshot) -> None:
        """Record the look for ``reconcile``, which reports unseen first jobs; only if jobs wait."""
        now = self.clock()
        if not snapshot.waiting or not self._is_due(self._noted, pool):
            return
        with suppress(UnavailableError):  # it says no more than that this pass was here
            self.fronts.note_look(pool, Look.over(snapshot.waiting, at=now))
            self._noted[pool] = now

    @staticmethod
    def _tell(context: PassContext, summary: Summary) -> bool:
        """Deliver messages, also of a pool that left the policy; True if there are more."""
        messages = relay_messages(context)
        summary.messages_overdue = messages.overdue
        summary.postponed += [error for _, error in messages.postponed]
        summary.failures += messages.failures
        summary.woken |= messages.woken - {context.pool}
        return messages.more

    def _pass(
        self,
        pool_policy: PoolPolicy,
        policy: Policy,
        stored: StoredPolicy,
        deadline: Deadline,
        *,
        role_starts: Mapping[str, RoleStarts] = MappingProxyType({}),
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
            roles=KnownRoles(records=dict(role_starts)),
        )
