"""When an elastic job may be stopped to come back with more instances."""

from dataclasses import dataclass
from datetime import timedelta

from trainmaster.core.policy.keys import Section, key
from trainmaster.core.policy.kinds import Duration


@dataclass(frozen=True, slots=True, kw_only=True)
class Elastic(Section):
    min_gain: timedelta = key(
        Duration(),
        "20m",
        "Least time that a growth has to save an elastic job, beyond what its restart costs.",
    )
    snooze: timedelta = key(
        Duration(),
        "30m",
        "Time after a change of its width in which an elastic job does not grow.",
    )
