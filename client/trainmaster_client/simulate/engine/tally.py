"""Tallies the replay of one pool while it goes on."""

from dataclasses import dataclass, field

from trainmaster.core.jobs.end_conditions import ParentEnd
from trainmaster.core.jobs.instances import Capacity

from trainmaster_client.simulate.engine.replays import ReplayedAttempt, WarmInterval


@dataclass(slots=True, kw_only=True)
class Tally:
    attempts: list[ReplayedAttempt] = field(default_factory=list)
    warm: list[WarmInterval] = field(default_factory=list)
    ended: list[tuple[str, ParentEnd]] = field(default_factory=list)
    """Jobs that came to their final end, which those that wait for them have not heard of."""
    passes: int = 0
    """Plans made: an event after which nothing can be done needs none."""
    cpu_s: float = 0.0
    """CPU seconds of plans."""
    most_held: dict[Capacity, int] = field(default_factory=dict)
    """Most instances in use and warm at one instant."""
    refused_claims: int = 0
    """Starts whose condition did not hold when they were carried out."""
