"""Training plans in a replay: which a policy has, which are added to ask what they would have done."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from decimal import Decimal

from trainmaster.core.policy import Policy, PoolPolicy
from trainmaster.core.policy.plan_windows import ENDS_BEFORE, PlanSeen, Window
from trainmaster.core.policy.training_plans import PlanEntry

from trainmaster_client.errors import InvalidArgumentError
from trainmaster_client.simulate.engine.past_jobs import History
from trainmaster_client.simulate.engine.replays import ReplayedPlan, ReplayedWindow
from trainmaster_client.simulate.engine.runs import SECOND

_MADE_UP_ARN = "arn:aws:sagemaker:us-east-1:000000000000:training-plan"


@dataclass(frozen=True, slots=True, kw_only=True)
class BoughtPlan:
    """A training plan that nobody has bought, as if it had been."""

    instance_type: str
    instances: int
    windows: tuple[tuple[datetime, datetime], ...]
    """Begin and end of each, in order."""
    fee_usd: Decimal | None = None
    drain: timedelta | None = None
    """Time that jobs have to stop; None takes the policy's default."""


def with_known_plans(policy: Policy, known: Mapping[str, PlanSeen]) -> Policy:
    """Return the policy with what is known of its plans, by ARN: their windows of the past, too."""
    pools = (
        replace(pool, seen_plans={plan.arn: known[plan.arn] for plan in pool.plans if plan.arn in known})
        for pool in policy.pools
    )
    return replace(policy, pools=tuple(pools))


def without_plans(policy: Policy) -> Policy:
    """Return the policy for a queue that knows nothing of plans."""
    return replace(policy, pools=tuple(replace(pool, plans=(), seen_plans={}) for pool in policy.pools))


def with_bought(policy: Policy, bought: Sequence[BoughtPlan]) -> Policy:
    """Add plans to the pools of their instance types, named ``what-if-1`` and so on.

    Raises:
        InvalidArgumentError: No pool has the instance type.
    """
    pools = list(policy.pools)
    for number, plan in enumerate(bought, start=1):
        owner = policy.pool_of([plan.instance_type])
        if owner is None:
            known = ", ".join(sorted(name for pool in pools for name in pool.instance_types)) or "none"
            raise InvalidArgumentError(
                f"--plan: no pool has {plan.instance_type}.",
                hint=f"The policy's types: {known}. capacity: {{{plan.instance_type}: 0}} will do.",
            )
        index = next(index for index, pool in enumerate(pools) if pool.name == owner.name)
        pools[index] = _with_plan(pools[index], plan, f"{_MADE_UP_ARN}/what-if-{number}")
    return replace(policy, pools=tuple(pools))


def _with_plan(pool: PoolPolicy, plan: BoughtPlan, arn: str) -> PoolPolicy:
    entry = PlanEntry(arn=arn) if plan.drain is None else PlanEntry(arn=arn, drain=plan.drain)
    seen = PlanSeen(
        arn=arn,
        status="Scheduled",
        instance_type=plan.instance_type,
        total=plan.instances,
        fee_usd=plan.fee_usd,
        windows=tuple(Window(begin=begin, end=end, instances=plan.instances) for begin, end in plan.windows),
    )
    return replace(pool, plans=(*pool.plans, entry), seen_plans={**pool.seen_plans, arn: seen})


def replayed_plans(history: History, policy: Policy) -> list[ReplayedPlan]:
    """Return the plans whose windows are known, in seconds of the history."""
    return [
        ReplayedPlan(
            pool=pool.name,
            name=seen.name,
            instance_type=seen.instance_type,
            fee_usd=None if (fee := seen.fee_usd or entry.fee_usd) is None else float(fee),
            windows=tuple(
                ReplayedWindow(
                    since_s=(window.begin - history.begins) // SECOND,
                    until_s=(window.end - history.begins) // SECOND,
                    ends_s=(window.end - ENDS_BEFORE - history.begins) // SECOND,
                    instances=window.instances,
                )
                for window in seen.windows
            ),
        )
        for pool in policy.pools
        for entry, seen in pool.known_plans
    ]


def notes_on_plans(policy: Policy) -> Iterator[str]:
    """Yield what a replay assumes about plans, and which it leaves out."""
    known = [plan.name for pool in policy.pools for _, plan in pool.known_plans]
    if known:
        yield (
            f"Training plans {', '.join(known)} are replayed: known from the beginning, whole, used by no "
            "job outside of the history. Which jobs asked for none is not recorded: all may use them."
        )
    unknown = [plan.name for pool in policy.pools for plan in pool.plans if plan.arn not in pool.seen_plans]
    if unknown:
        yield (
            f"Training plans {', '.join(unknown)} are left out: their windows are not known here "
            "(--from-account asks the stack; --plan says them)."
        )
