"""Try another policy on the present jobs: the dry run of PUT /policy."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from itertools import islice
from typing import Any

from trainmaster.api.paging import fitting
from trainmaster.api.request_context import RequestContext
from trainmaster.api.views import View, field_error_view, instant_text
from trainmaster.core.errors import RowSetAsideError
from trainmaster.core.forecast.differences import Difference, Kind, Outlook, differences
from trainmaster.core.planning.coming_changes import coming_changes
from trainmaster.core.planning.order import score_again
from trainmaster.core.planning.planner import plan
from trainmaster.core.planning.snapshot import Snapshot, WaitingJob
from trainmaster.core.policy import Policy, PoolPolicy
from trainmaster.core.policy.job_rules import Mode
from trainmaster.core.policy.pool_changes import changes_with_time
from trainmaster.core.rules import Violation, check

CLOCK_SHOWN = timedelta(days=7)
"""Time ahead of which a trial shows what calendars and reservations change."""
MOST_REQUESTS = 500
"""Requests of waiting jobs read for the rules: one read each, within the function's 15 s."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    changes: tuple[View, ...]
    is_truncated: bool
    """Whether more was left out for lack of time or room; the first of each kind stand for the others."""
    by_the_clock: tuple[View, ...] = ()
    """Changes by calendars and reservations in the next days, in order."""


def try_policy(context: RequestContext, new: Policy) -> Trial:
    """Ask the planner twice about each pool that remains: under the policy in force and under the new one."""
    now = context.outside.clock()
    changes: list[View] = []
    is_truncated = False
    rules = _RuleTrial(context=context, new=new, left=MOST_REQUESTS)
    for pool, after in _concerned(context.policy, new):
        if not context.has_time:
            is_truncated = True
            break
        snapshot = _snapshot(context, pool, context.policy, now=now)
        if not snapshot.waiting:
            continue  # what runs is only ever stopped for those who wait
        before = Outlook(snapshot=snapshot, pool=pool, plan=plan(snapshot, pool, now=now))
        tried = _outlook(context, before, after, new, now=now)
        waiting = snapshot.waiting
        forbidden = list(rules.forbidden(waiting))
        changes += (refusal.view(pool) for refusal in forbidden)
        fail = {refusal.job.name for refusal in forbidden if refusal.is_at_start}
        changes += (
            _view(difference, pool)
            for difference in differences(before, tried)
            if difference.job.name not in fail
        )
        is_truncated = is_truncated or context.outside.reader.queue_length(pool.name) > len(waiting)
    clock = sorted(_by_the_clock(context, new), key=lambda view: str(view["at"]))
    listed = tuple(fitting([*clock, *changes]))
    is_cut = rules.is_truncated or len(listed) < len(clock) + len(changes)
    return Trial(
        changes=listed[len(clock) :],
        is_truncated=is_truncated or is_cut,
        by_the_clock=listed[: len(clock)],
    )


def _by_the_clock(context: RequestContext, new: Policy) -> Iterator[View]:
    """Yield what changes with time in each pool of a policy, and the running jobs that it would stop."""
    now = context.outside.clock()
    for pool in new.pools:
        if not changes_with_time(pool) or not context.has_time:
            continue
        before = context.policy.pool(pool.name)
        snapshot = _snapshot(context, pool, new, now=now)
        for change in coming_changes(snapshot, before or pool, pool, now=now, until=now + CLOCK_SHOWN):
            yield {
                "pool": pool.name,
                "at": instant_text(change.at),
                "capacity": {name: list(counts) for name, counts in change.capacity.items()},
                "begins": [reservation.name for reservation in change.begins],
                "ends": [reservation.name for reservation in change.ends],
                "stops": list(change.stops),
                "message": change.text,
            }


def _concerned(old: Policy, new: Policy) -> list[tuple[PoolPolicy, PoolPolicy]]:
    """List the pools that remain, before and after: changed ones, then others if more changes.

    Pools that go have no jobs, or the policy would have been refused.
    """
    both = [(pool, after) for pool in old.pools if (after := new.pool(pool.name)) is not None]
    changed = [(before, after) for before, after in both if before != after]
    if _beside_pools(old) == _beside_pools(new):
        return changed
    return changed + [(before, after) for before, after in both if before == after]


def _beside_pools(policy: Policy) -> Policy:
    return replace(policy, pools=(), warnings=(), source={})


def _snapshot(context: RequestContext, pool: PoolPolicy, policy: Policy, *, now: datetime) -> Snapshot:
    return context.outside.reader.snapshot(pool, policy=policy, paused=context.stored.paused, now=now)


def _outlook(
    context: RequestContext, before: Outlook, new: PoolPolicy, policy: Policy, *, now: datetime
) -> Outlook:
    """Plan under the new policy, with the state of the first read, so that only the policy differs."""
    other = _snapshot(context, new, policy, now=now)
    tried = replace(
        before.snapshot,
        budgets=other.budgets,
        prices=other.prices,
        spot_max_wait=other.spot_max_wait,
        past_use=other.past_use,
    )
    if new.order_key != before.pool.order_key:
        tried = _in_order_of(new, tried, context)
    return Outlook(snapshot=tried, pool=new, plan=plan(tried, new, now=now))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Forbidden:
    """Describes a waiting job that the new rules refuse and the old ones do not."""

    job: WaitingJob
    violations: Sequence[Violation]
    is_at_start: bool
    """False if only a rule for submissions refuses it: the job starts, but could not be submitted again."""

    def view(self, pool: PoolPolicy) -> View:
        named = "; ".join(
            f"{violation.rule}: {violation.field} {violation.message}" for violation in self.violations
        )
        message = named if self.is_at_start else f"it starts, but would be refused if sent again: {named}"
        difference = Difference(job=self.job, kind=Kind.FORBIDDEN, message=message)
        return _view(difference, pool) | {
            "judged_at": "start" if self.is_at_start else "submission",
            "violations": [field_error_view(violation.as_field_error()) for violation in self.violations],
        }


@dataclass(slots=True, kw_only=True)
class _RuleTrial:
    """Reads the request of each waiting job, if the rules changed at all."""

    context: RequestContext
    new: Policy
    left: int
    is_truncated: bool = False

    def forbidden(self, waiting: Sequence[WaitingJob]) -> Iterator[_Forbidden]:
        if _rules_of(self.new) == _rules_of(self.context.policy):
            return
        self.is_truncated = self.is_truncated or len(waiting) > self.left
        for job in islice(waiting, self.left):
            self.left -= 1
            try:
                body = self.context.outside.reader.request(job.name)
            except RowSetAsideError:
                continue  # reported where it is read; its job fails at its start for that
            refusal = self._refusal(job, body)
            if refusal is not None:
                yield refusal

    def _refusal(self, job: WaitingJob, body: Mapping[str, Any]) -> _Forbidden | None:
        for is_at_start in (True, False):
            before, after = (
                _enforced(body, job.team, policy, is_submission=not is_at_start)
                for policy in (self.context.policy, self.new)
            )
            violations = [violation for violation in after if violation not in before]
            if violations:
                return _Forbidden(job=job, violations=violations, is_at_start=is_at_start)
        return None


def _rules_of(policy: Policy) -> tuple[object, ...]:
    """Return all that rules depend on, prices included."""
    return (
        policy.rules,
        policy.prices,
        policy.defaults,
        [(team.name, team.rules, team.roles, team.images, team.s3_prefixes) for team in policy.teams],
    )


def _enforced(body: Mapping[str, Any], team: str, policy: Policy, *, is_submission: bool) -> list[Violation]:
    violations = check(body, team=team, policy=policy, is_submission=is_submission)
    return [violation for violation in violations if violation.mode is Mode.ENFORCE]


def _in_order_of(pool: PoolPolicy, snapshot: Snapshot, context: RequestContext) -> Snapshot:
    """Score the jobs as the new policy would."""
    names = [*(job.name for job in snapshot.waiting), *(job.name for job in snapshot.running)]
    jobs = context.outside.reader.jobs(names)
    scores = {name: score_again(job, job.priority, pool) for name, job in jobs.items()}
    return replace(
        snapshot,
        waiting=tuple(replace(job, score=scores.get(job.name, job.score)) for job in snapshot.waiting),
        running=tuple(replace(job, score=scores.get(job.name, job.score)) for job in snapshot.running),
    )


def _view(difference: Difference, pool: PoolPolicy) -> View:
    return {
        "job": difference.job.name,
        "team": difference.job.team,
        "pool": pool.name,
        "change": difference.kind.value,
        "message": difference.message,
    }
