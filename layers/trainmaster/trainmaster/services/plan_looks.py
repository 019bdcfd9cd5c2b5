"""Training plans as they are at an instant, and the looks by which ``reconcile`` keeps track of them."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from trainmaster.core.errors import TrainmasterError
from trainmaster.core.history.past_records import CapacityChange
from trainmaster.core.outbox import plan_unreadable_notice, to_tell
from trainmaster.core.outbox.texts.refusals import PlatformSubject
from trainmaster.core.planning.capacity import pool_vector
from trainmaster.core.policy import Policy, PoolPolicy
from trainmaster.core.policy.plan_windows import PLANS_AHEAD, PlanSeen, after_look, is_due, unread
from trainmaster.core.policy.training_plans import PlanEntry
from trainmaster.ports import Clock, JobStore, PlanReader, PolicyStore, PoolReader
from trainmaster.services.calendars import NOTED
from trainmaster.services.deadline import Deadline

_MOMENT = timedelta(milliseconds=1)


def with_plans(policy: Policy, policies: PolicyStore, now: datetime) -> Policy:
    """Return the policy with the instances that its plans have at this instant."""
    if not any(pool.plans for pool in policy.pools):
        return policy
    seen = policies.plans()
    pools = (
        pool.with_plans(seen, now=now, until=now + PLANS_AHEAD) if pool.plans else pool
        for pool in policy.pools
    )
    return replace(policy, pools=tuple(pools))


def recent_windows(policy: Policy, now: datetime) -> Iterator[CapacityChange]:
    """Yield the openings and closings of the last minutes, for the history.

    Args:
        policy: The policy in force, with its plans.
        now: The instant up to which changes count.
    """
    for pool in policy.pools:
        if pool.plans:
            before = pool.with_plans(pool.seen_plans, now=now - NOTED, until=now + _MOMENT)
            for change in before.plans_ahead:
                yield _changed(pool, before, after := before.since(change), at=change.at)
                before = after


def _changed(pool: PoolPolicy, before: PoolPolicy, after: PoolPolicy, *, at: datetime) -> CapacityChange:
    return CapacityChange(pool=pool.name, at=at, capacity=pool_vector(after), before=pool_vector(before))


@dataclass(frozen=True, slots=True, kw_only=True)
class Looked:
    """A look at a plan that has changed, or that failed."""

    pool: str
    failure: Exception | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanLooks:
    """Describes the plans of the policy, and records what has changed."""

    plans: PlanReader
    policies: PolicyStore
    pools: PoolReader
    store: JobStore
    clock: Clock

    def run(self, policy: Policy, *, deadline: Deadline) -> Iterator[Looked]:
        """Look at the plans that are due; yield those that have changed, and what failed."""
        plans = [(pool, entry) for pool in policy.pools for entry in pool.plans]
        known = self.policies.plans() if plans else {}
        for number, (pool, entry) in enumerate(plans):
            if deadline.is_over:
                return
            seen = known.get(entry.arn)
            if not is_due(seen, drain=entry.drain, turn=number, now=self.clock()):
                continue
            try:
                has_changed = self._look(pool, entry, seen)
            except Exception as error:  # noqa: BLE001  one plan must not keep the others waiting
                yield Looked(pool=pool.name, failure=error)
            else:
                if has_changed:
                    yield Looked(pool=pool.name)

    def _look(self, pool: PoolPolicy, entry: PlanEntry, known: PlanSeen | None) -> bool:
        """Describe a plan; True if that changed what is known of it."""
        try:
            described = self.plans.plan(entry.arn)
        except TrainmasterError as error:
            self._not_read(pool, entry, known, str(error))
            raise
        if described is None:
            self._not_read(pool, entry, known, "SageMaker knows no such training plan")
            return False
        used = self.pools.pool_state(pool.name).used.get(described.capacity_key, 0)
        seen = after_look(described, known, drain=entry.drain, used=used, now=self.clock())
        if seen != known:
            self.policies.note_plan(seen)
            self._note_count(pool, seen)
        return seen != known

    def _note_count(self, pool: PoolPolicy, seen: PlanSeen) -> None:
        """Write into the history what a look has changed."""
        now = self.clock()
        plans = {**pool.seen_plans, seen.arn: seen}
        after = pool.with_plans(plans, now=now, until=now)
        if after.plan_counts != pool.plan_counts:
            self.policies.note_capacity([_changed(pool, pool, after, at=now)])

    def _not_read(self, pool: PoolPolicy, entry: PlanEntry, known: PlanSeen | None, why: str) -> None:
        """Record that a plan cannot be described, once; what was known of it holds."""
        if known is not None and known.trouble is not None:
            return
        at = self.clock()
        self.policies.note_plan(unread(entry.arn, known, why=why, at=at))
        subject = f"{PlatformSubject.PLAN_UNREADABLE}:{entry.name}"
        message = to_tell(plan_unreadable_notice(entry.arn, pool.name, why), cause=f"{subject}#{at}", at=at)
        self.store.leave_once(pool.name, message, subject=subject)
