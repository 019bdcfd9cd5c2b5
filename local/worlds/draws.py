"""Draws what chance decides in a world: how long a call takes, how an event arrives."""

import math
from dataclasses import dataclass
from datetime import timedelta
from random import Random

from local.worlds.world import World

_Z99 = 2.3263478740408408
"""The 99th percentile of the standard normal distribution."""

OVERTAKEN = timedelta(minutes=1)
"""Longest delay of an event that loses its turn; EventBridge promises no bound. Assumed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Delivery:
    after: timedelta
    has_tags: bool


def latency(world: World, draw: Random) -> timedelta:
    """Draw how long one call takes: log-normal, so that its percentiles are the world's."""
    percentiles = world.latency_seconds
    if percentiles is None or not percentiles.p99:
        return timedelta()
    sigma = math.log(percentiles.p99 / percentiles.p50) / _Z99
    return timedelta(seconds=percentiles.p50 * math.exp(sigma * draw.gauss(0, 1)))


def deliveries(world: World, draw: Random) -> tuple[Delivery, ...]:
    """Draw how one event arrives: once or twice, each time late by another delay."""
    has_tags = draw.random() >= world.events_without_tags
    times = 2 if draw.random() < world.events_doubled else 1
    return tuple(Delivery(after=_delay(world, draw), has_tags=has_tags) for _ in range(times))


def _delay(world: World, draw: Random) -> timedelta:
    delay = timedelta(seconds=draw.uniform(*world.event_delay_seconds))
    if draw.random() < world.events_reordered:
        return delay + OVERTAKEN * draw.random()
    return delay
