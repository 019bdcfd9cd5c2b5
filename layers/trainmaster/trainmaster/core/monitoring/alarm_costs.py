"""Cost of the alarms of running attempts, before they are made."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from decimal import Decimal

from trainmaster.core.jobs.instances import Vector
from trainmaster.core.monitoring.alarms import HOSTS_OF_ONE, AlarmKind, wanted_of
from trainmaster.core.policy.governance import Watch

USD_PER_METRIC = Decimal("0.10")
"""USD a month for each metric that an alarm reads. Source: aws.amazon.com/cloudwatch/pricing, us-east-1."""
USD_PER_COMPOSITE = Decimal("0.50")
"""USD a month for a composite alarm. Source: as above."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NewAlarms:
    """The alarms that a change of the policy gives to running attempts."""

    attempts: int
    """Attempts that get at least one alarm of a kind that they did not have."""
    usd_per_month: Decimal
    """Cost of the alarms if all attempts ran for the whole month."""


def new_kinds(before: Watch, after: Watch) -> tuple[AlarmKind, ...]:
    """List the kinds of alarms that are wanted after a change and were not before it."""
    wanted_before = tuple(_kinds(before))
    return tuple(kind for kind in _kinds(after) if kind not in wanted_before)


def new_alarms(vectors: Iterable[Vector], before: Watch, after: Watch) -> NewAlarms:
    """Count the attempts that get an alarm of a new kind, and what CloudWatch bills for those.

    Args:
        vectors: The instances of each running attempt.
        before: Monitoring of GPUs by the policy in force.
        after: Monitoring of GPUs by the next one.
    """
    kinds = len(new_kinds(before, after))
    hosts = [wanted.hosts for vector in vectors if (wanted := wanted_of(vector, after)).digest is not None]
    if not kinds:
        return NewAlarms(attempts=0, usd_per_month=Decimal())
    composites = sum(count > HOSTS_OF_ONE for count in hosts)
    usd = kinds * (sum(hosts) * USD_PER_METRIC + composites * USD_PER_COMPOSITE)
    return NewAlarms(attempts=len(hosts), usd_per_month=usd)


def _kinds(watch: Watch) -> Iterator[AlarmKind]:
    if watch.idle is not None:
        yield AlarmKind.IDLE
    if watch.utilization is not None:
        yield AlarmKind.UTILIZATION
