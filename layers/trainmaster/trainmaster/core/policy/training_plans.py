"""Training plans of a pool: instances that AWS keeps for the account in windows, paid for in advance.

Source: SageMaker API reference, DescribeTrainingPlan; SageMaker developer guide, training plans.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import timedelta
from decimal import Decimal

from trainmaster.core.errors import FieldError
from trainmaster.core.jobs.instances import plan_name
from trainmaster.core.policy.findings import Location, shown
from trainmaster.core.policy.keys import Section, key, needed, optional
from trainmaster.core.policy.kinds import Duration, Usd, list_of, plain_text
from trainmaster.core.policy.names import NAME, check_teams

MOST_PLANS = 20
"""Plans that a pool may have: each is described every few minutes."""
_ARN_HINT = "write arn:aws:sagemaker:us-east-1:111122223333:training-plan/NAME"
ARN = plain_text(
    r"arn:aws[a-z-]*:sagemaker:[a-z0-9-]+:[0-9]{12}:training-plan/[a-zA-Z0-9][a-zA-Z0-9-]{0,63}",
    "is not the ARN of a training plan",
    _ARN_HINT,
)
_OWNER = re.compile(r"arn:(?P<partition>[^:]+):sagemaker:(?P<region>[^:]+):(?P<account>[^:]+):")
# A stop takes two minutes, a pass comes each minute, and clocks differ: 5 minutes is the least that is safe.
_DRAIN = Duration(least=timedelta(minutes=5), most=timedelta(hours=6))
_FEE = Usd(least=Decimal("0.01"), most=Decimal(1_000_000_000))


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanEntry(Section):
    """A training plan that a pool counts as capacity of its own."""

    arn: str = needed(
        ARN, "The ARN of the plan, in the stack's account and region.", stand_in="", hint=_ARN_HINT
    )
    teams: tuple[str, ...] | None = optional(
        list_of(NAME, "write a list of teams", empty=("names no team", "leave it out for all teams")),
        "The teams whose jobs may run on it. Default: all.",
        example="[vision]",
    )
    drain: timedelta = key(
        _DRAIN,
        "10m",
        "Jobs are asked to stop this long before SageMaker begins to end the instances, 30 minutes before a "
        "window closes.",
    )
    fee_usd: Decimal | None = optional(
        _FEE, "USD paid for the plan in all. Default: the fee that SageMaker reports.", example="41000"
    )

    @property
    def name(self) -> str:
        """The name at the end of the ARN, which no other plan of the account and region has."""
        return plan_name(self.arn)

    def is_open_to(self, team: str) -> bool:
        return self.teams is None or team in self.teams


def plans_elsewhere(
    pools: Sequence[Sequence[PlanEntry]], *, account: str, region: str
) -> Iterator[FieldError]:
    """Yield the plans of another account or region than the stack's, as a plan cannot be shared.

    Args:
        pools: The plans of each pool, in order.
        account: Id of the stack's account.
        region: Region of the stack; empty: it is not known.
    """
    for plan, place in _each(pools, Location(path="pools")):
        owner = _OWNER.match(plan.arn)
        assert owner is not None, plan.arn
        if owner["account"] != account or (region and owner["region"] != region):
            home = f"account {account}" + (f" and region {region}" if region else "")
            message = f"is not of the stack's {home}: {shown(plan.arn)}"
            right = f"arn:{owner['partition']}:sagemaker:{region or owner['region']}:{account}"
            hint = f"write {right}:training-plan/{plan.name}"
            yield FieldError(field=place.path, message=message, hint=hint)


def check_plans(pools: Sequence[Sequence[PlanEntry]], at: Location) -> None:
    """Refuse a plan that stands twice in the policy, of another account or region than the first, too many.

    Args:
        pools: The plans of each pool, in order.
        at: The list of pools.
    """
    first: dict[str, str] = {}
    owner: str | None = None
    for entry, place in _each(pools, at):
        if entry.arn in first:
            message = f"is already the plan of {first[entry.arn]}: a plan is capacity of one pool, once"
            place.refuse(message, "remove one of the two")
        first.setdefault(entry.arn, place.path.removesuffix(".arn"))
        owns = _OWNER.match(entry.arn)
        if owns is not None and owner is not None and owns[0] != owner:
            message = f"is of another account or region than {next(iter(first))}: {shown(entry.arn)}"
            place.refuse(message, "a stack has the plans of its own account and region")
        elif owns is not None and owner is None:
            owner = owns[0]
    for index, plans in enumerate(pools):
        if len(plans) > MOST_PLANS:
            place = at.item(index).below("plans")
            place.refuse(f"has {len(plans)} plans", f"write at most {MOST_PLANS}")


def check_plan_teams(plans: Sequence[PlanEntry], teams: list[str], at: Location) -> None:
    """Refuse teams that the policy does not have; without teams, warn of any but the default one."""
    for index, plan in enumerate(plans):
        check_teams(plan.teams or (), teams, at.item(index).below("teams"))


def _each(pools: Sequence[Sequence[PlanEntry]], at: Location) -> Iterator[tuple[PlanEntry, Location]]:
    for index, plans in enumerate(pools):
        for number, plan in enumerate(plans):
            if plan.arn:  # else it could not be read, which is noted already
                yield plan, at.item(index).below("plans").item(number).below("arn")
