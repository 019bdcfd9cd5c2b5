"""PUT /policy?dry_run=true: what a policy would do to the jobs that wait and run now."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import chain
from typing import Any

from trainmaster.api.request_context import Visit
from trainmaster.api.views import View
from trainmaster.core.forecast.differences import Difference, Kind, Outlook, differences
from trainmaster.core.planning.ordering import score_of
from trainmaster.core.planning.planner import plan
from trainmaster.core.planning.snapshot import Snapshot
from trainmaster.core.policy import Policy, PoolPolicy
from trainmaster.core.policy.governing import Mode
from trainmaster.core.rules import Violation, check


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    changes: tuple[View, ...]
    is_truncated: bool
    """More jobs wait than were looked at: the first of each kind speak for those behind them."""


def try_policy(visit: Visit, new: Policy) -> Trial:
    """Ask the planner twice about each pool that stays: under the policy in force, and under the new one."""
    now = visit.outside.clock()
    changes: list[View] = []
    is_truncated = False
    for pool in visit.policy.pools:
        after = new.pool(pool.name)
        if after is None:
            continue  # nobody is in it: else the policy would have been refused
        looked_at, found = _try_pool(visit, pool, after, new, now=now)
        is_truncated = is_truncated or visit.outside.reader.queue_length(pool.name) > looked_at
        changes += (_view(one, pool) for one in found)
    return Trial(changes=tuple(changes), is_truncated=is_truncated)


def _try_pool(
    visit: Visit, old: PoolPolicy, new: PoolPolicy, policy: Policy, *, now: datetime
) -> tuple[int, Iterator[Difference]]:
    reader, paused = visit.outside.reader, visit.stored.paused
    snapshot = reader.snapshot(old, policy=visit.policy, paused=paused, now=now)
    other = reader.snapshot(new, policy=policy, paused=paused, now=now)
    # Read at two instants; only what the policy decides may differ between the plans.
    tried = replace(snapshot, budgets=other.budgets, prices=other.prices, spot_max_wait=other.spot_max_wait)
    if new.order_key != old.order_key:
        tried = _in_order_of(new, tried, visit)
    before = Outlook(snapshot=snapshot, pool=old, plan=plan(snapshot, old, now=now))
    after = Outlook(snapshot=tried, pool=new, plan=plan(tried, new, now=now))
    forbidden = {one.job.name: one for one in _forbidden(snapshot, policy, visit)}
    others = (one for one in differences(before, after) if one.job.name not in forbidden)
    return len(snapshot.waiting), chain(forbidden.values(), others)


def _forbidden(snapshot: Snapshot, policy: Policy, visit: Visit) -> Iterator[Difference]:
    """Whom rules that change would refuse at the start: each such job has its request read."""
    if _rules_of(policy) == _rules_of(visit.policy):
        return
    for job in snapshot.waiting:
        body = visit.outside.reader.request(job.name)
        before, after = (_enforced(body, job.team, one) for one in (visit.policy, policy))
        new = [f"{one.rule}: {one.field} {one.message}" for one in after if one not in before]
        if new:
            yield Difference(job=job, kind=Kind.FORBIDDEN, message="; ".join(new))


def _rules_of(policy: Policy) -> tuple[object, ...]:
    """What rules, and the prices that they reckon with, are made of."""
    return (
        policy.rules,
        policy.prices,
        [(one.name, one.rules, one.roles, one.images, one.s3_prefixes) for one in policy.teams],
    )


def _enforced(body: Mapping[str, Any], team: str, policy: Policy) -> list[Violation]:
    return [one for one in check(body, team=team, policy=policy) if one.mode is Mode.ENFORCE]


def _in_order_of(pool: PoolPolicy, snapshot: Snapshot, visit: Visit) -> Snapshot:
    """With the scores that the jobs would get."""
    names = [*(one.name for one in snapshot.waiting), *(one.name for one in snapshot.running)]
    jobs = visit.outside.reader.jobs(names)
    scores = {name: score_of(job.spec, job.priority, pool) for name, job in jobs.items()}
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
