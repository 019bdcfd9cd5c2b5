"""What another policy would make of the jobs that are there: the dry run of PUT /policy."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import islice
from typing import Any

from trainmaster.api.paging import fitting
from trainmaster.api.request_context import RequestContext
from trainmaster.api.views import View, field_error_view
from trainmaster.core.errors import RowSetAsideError
from trainmaster.core.forecast.differences import Difference, Kind, Outlook, differences
from trainmaster.core.planning.order import score_again
from trainmaster.core.planning.planner import plan
from trainmaster.core.planning.snapshot import Snapshot, WaitingJob
from trainmaster.core.policy import Policy, PoolPolicy
from trainmaster.core.policy.job_rules import Mode
from trainmaster.core.rules import Violation, check

MOST_REQUESTS = 500
"""Of waiting jobs that are read for the rules: a read each, in the 15 s that the function has."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    changes: tuple[View, ...]
    is_truncated: bool
    """There is more than was looked at, or than one answer takes: the first of each kind speak for others."""


def try_policy(context: RequestContext, new: Policy) -> Trial:
    """Ask the planner twice about each pool that stays: under the policy in force, and under the new one."""
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
        changes += (one.view(pool) for one in forbidden)
        fail = {one.job.name for one in forbidden if one.is_at_start}
        changes += (_view(one, pool) for one in differences(before, tried) if one.job.name not in fail)
        is_truncated = is_truncated or context.outside.reader.queue_length(pool.name) > len(waiting)
    listed = tuple(fitting(changes))
    is_cut = rules.is_truncated or len(listed) < len(changes)
    return Trial(changes=listed, is_truncated=is_truncated or is_cut)


def _concerned(old: Policy, new: Policy) -> list[tuple[PoolPolicy, PoolPolicy]]:
    """Pools that stay, before and after: those that change, then the others where something else changes.

    Nobody is in one that goes: else the policy would have been refused.
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
    """Read at two instants; only what the policy decides may differ between the plans."""
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
    """A waiting job that the new rules refuse and the old ones do not."""

    job: WaitingJob
    violations: Sequence[Violation]
    is_at_start: bool
    """False: by defaults alone, which judge submissions; it starts, but would not be accepted again."""

    def view(self, pool: PoolPolicy) -> View:
        named = "; ".join(f"{one.rule}: {one.field} {one.message}" for one in self.violations)
        message = named if self.is_at_start else f"it starts, but would be refused if sent again: {named}"
        difference = Difference(job=self.job, kind=Kind.FORBIDDEN, message=message)
        return _view(difference, pool) | {
            "judged_at": "start" if self.is_at_start else "submission",
            "violations": [field_error_view(one.as_field_error()) for one in self.violations],
        }


@dataclass(slots=True, kw_only=True)
class _RuleTrial:
    """Reads the request of each waiting job, where the rules changed at all."""

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
            found = self._found(job, body)
            if found is not None:
                yield found

    def _found(self, job: WaitingJob, body: Mapping[str, Any]) -> _Forbidden | None:
        for is_at_start in (True, False):
            before, after = (
                _enforced(body, job.team, one, is_submission=not is_at_start)
                for one in (self.context.policy, self.new)
            )
            violations = [one for one in after if one not in before]
            if violations:
                return _Forbidden(job=job, violations=violations, is_at_start=is_at_start)
        return None


def _rules_of(policy: Policy) -> tuple[object, ...]:
    """What rules, and the prices that they reckon with, are made of."""
    return (
        policy.rules,
        policy.prices,
        policy.defaults,
        [(one.name, one.rules, one.roles, one.images, one.s3_prefixes) for one in policy.teams],
    )


def _enforced(body: Mapping[str, Any], team: str, policy: Policy, *, is_submission: bool) -> list[Violation]:
    found = check(body, team=team, policy=policy, is_submission=is_submission)
    return [one for one in found if one.mode is Mode.ENFORCE]


def _in_order_of(pool: PoolPolicy, snapshot: Snapshot, context: RequestContext) -> Snapshot:
    """With the scores that the jobs would get."""
    names = [*(one.name for one in snapshot.waiting), *(one.name for one in snapshot.running)]
    jobs = context.outside.reader.jobs(names)
    scores = {name: score_again(job, job.priority, pool) for name, job in jobs.items()}
    return replace(
        snapshot,
        waiting=tuple(replace(one, score=scores.get(one.name, one.score)) for one in snapshot.waiting),
        running=tuple(replace(one, score=scores.get(one.name, one.score)) for one in snapshot.running),
    )


def _view(one: Difference, pool: PoolPolicy) -> View:
    return {
        "job": one.job.name,
        "team": one.job.team,
        "pool": pool.name,
        "change": one.kind.value,
        "message": one.message,
    }
