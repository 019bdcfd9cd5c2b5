"""Sections of a pool: its warm instances, and the limits that hold for each of its teams."""

from dataclasses import dataclass
from datetime import timedelta

from trainmaster.core.jobs.end_conditions import MOST_PARENTS
from trainmaster.core.jobs.index_sets import MOST_ARRAY_TASKS
from trainmaster.core.policy.findings import Location
from trainmaster.core.policy.keys import Section, key, key_or_off
from trainmaster.core.policy.kinds import Duration, Whole, duration_text

# KeepAlivePeriodInSeconds is at most 21600: SageMaker API reference, ResourceConfig.
_KEEP_ALIVE = Duration(most=timedelta(hours=6))
# One warm pool lives so long at most: SageMaker developer guide, "SageMaker AI Managed Warm Pools".
_WARM_POOL_LIFE = Duration(most=timedelta(days=28))
_USUAL_IDLE = timedelta(minutes=10)
"""Default of ``keep_alive``, and earlier of ``retain``."""
_WORTH = "worth"
"""Word for the default of ``retain``: ``planning.warm_worth`` decides."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WarmPool(Section):
    """Instances kept ready. A default that exceeds ``max_idle`` is cut to it without a warning."""

    keep_alive: timedelta = key(
        _KEEP_ALIVE,
        "10m",
        "How long SageMaker keeps the instances of an ended on-demand job ready; `0s`: not at all.",
        earlier={2: "0s"},
    )
    retain: timedelta | None = key_or_off(
        _WARM_POOL_LIFE,
        _WORTH,
        "How long idle instances are kept although no waiting job can use them, up to `max_idle`. `worth`: "
        "as long as the start-up that they are likely to save exceeds what they cost. Or a duration.",
        earlier={2: "0s", 5: "10m"},
        off=(_WORTH,),
    )
    max_idle: timedelta = key(
        _WARM_POOL_LIFE,
        "30m",
        "Idle instances are kept at most this long when a job that can use them is due.",
    )

    def check(self, at: Location) -> None:
        if not at.is_sound("keep_alive", "retain", "max_idle"):
            return
        most = duration_text(self.max_idle)
        if self.retain is not None and self.retain > self.max_idle and self.retain != _USUAL_IDLE:
            message = f"is longer than max_idle, {most}: {duration_text(self.retain)}"
            at.below("retain").refuse(message, "lower it or raise max_idle")
        if self.keep_alive > self.max_idle and self.keep_alive != _USUAL_IDLE:
            message = f"is longer than max_idle: after {most} idle instances are released anyway"
            at.below("keep_alive").warn(message, "lower it or raise max_idle")
        if self.retain not in {None, timedelta(), _USUAL_IDLE} and not self.keep_alive:
            message = "has no effect: without keep_alive there are no warm pools"
            at.below("retain").warn(message, "write a keep_alive, e.g. 10m")


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits(Section):
    """Limits that hold for each team in the pool."""

    max_waiting: int = key(
        Whole(least=1), 5000, "Jobs of one team that may wait in the pool; one more is refused (429)."
    )
    max_submissions_per_minute: int = key(
        Whole(least=1),
        100,
        "Submissions of one team and changes of its jobs (PATCH); one more is refused (429) until the minute "
        "is over.",
    )
    max_parents: int = key(
        Whole(least=1, most=MOST_PARENTS),
        MOST_PARENTS,
        "Jobs that one job may wait for with `trainmaster:after`; one that names more is refused (422).",
    )
    max_array_tasks: int = key(
        Whole(least=1, most=MOST_ARRAY_TASKS),
        MOST_ARRAY_TASKS,
        "Tasks of one array; one that has more is refused (422).",
    )
    max_hold_open: timedelta = key(
        Duration(most=timedelta(hours=24)),
        "1h",
        "Longest wait for a visitor that a job may ask for with `trainmaster:hold-open`; one that asks for "
        "more is refused (422). `0s`: none.",
    )
    max_reads_per_minute: int = key(
        Whole(least=1),
        3000,
        "Reads of one team, of all pools together: the largest of the pools' limits counts. One more is "
        "refused (429) until the minute is over.",
    )
