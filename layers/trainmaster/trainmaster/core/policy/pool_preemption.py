"""When a waiting job may stop running ones, and what that has to be worth."""

from dataclasses import dataclass
from datetime import timedelta

from trainmaster.core.policy.keys import OFF, Keys, Section, key, key_or_off
from trainmaster.core.policy.kinds import Duration, Flag, Whole
from trainmaster.core.policy.pool_order import PRIORITY_POINTS
from trainmaster.core.request.options import MAX_PRIORITY


@dataclass(frozen=True, slots=True, kw_only=True)
class PreemptionCost(Section):
    """A preemption has to spare the waiting job more than it costs the stopped ones."""

    enabled: bool = key(
        Flag(), True, "Whether a preemption has to be worth what it costs.", earlier={2: False}
    )
    double_every: int = key(
        Whole(least=10, most=MAX_PRIORITY),
        100,
        "Points of priority. An hour of a job counts twice as much as an hour of one of so many points less.",
    )
    lost_work: int = key(
        Whole(least=1, most=100),
        5,
        "Hours of waiting that an hour of lost work counts as: it is done again while others wait.",
    )
    restart: timedelta = key(
        Duration(),
        "5m",
        "What a stopped job needs until it trains again, start-up and loading its checkpoint; or what its "
        "attempt took to start, if that is longer.",
    )
    small_loss: timedelta = key(
        Duration(),
        "5m",
        "Jobs that would lose no more work than this are stopped without asking what it costs.",
    )
    unsaved: timedelta = key(
        Duration(least=timedelta(minutes=1)),
        "24h",
        "Lost work counts half for a job that has saved nothing for this long, a third after twice as long, "
        "and so on: none is out of reach.",
    )
    longest_wait: timedelta | None = key_or_off(
        Duration(),
        "3m",
        "A job of the highest priority in the pool that has waited this long stops others whatever it costs. "
        "`off`: it waits until it is worth it.",
        earlier={4: OFF},
        off=(OFF, False),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Preemption(Section):
    enabled: bool = key(Flag(), True, "Whether a waiting job may stop running ones.")
    min_priority_gap: int = key(
        PRIORITY_POINTS, 1, "How many points its priority must be above the victim's."
    )
    min_runtime: timedelta = key(
        Duration(),
        "0s",
        "An attempt in training is not preempted until it has trained this long; one still starting may be.",
    )
    preempt_delay: timedelta = key(
        Duration(), "0s", "No job is stopped if enough instances are certain to be free within this time."
    )
    max_per_job: int = key(
        Whole(),
        100,
        "A job preempted this many times for priorities is not again. A team still takes back what it lent.",
        earlier={2: 3},
    )
    needs_checkpoint: bool = key(Flag(), False, "Whether only jobs with a `CheckpointConfig` may be stopped.")
    cost: PreemptionCost = key(
        Keys(PreemptionCost), {}, "A preemption has to be worth what it costs the jobs that it stops."
    )
